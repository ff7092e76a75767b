//! Pure. The server that another one lets go first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Which server has to run an update first, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Follows {
    /// Its name; a server of the same namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub server: String,
    /// How long it must have run what an update changes here, proven, such as `48h`. With `0s` it is enough that it is proven there.
    #[serde(default = "a_day")]
    #[schemars(schema_with = "schema::duration")]
    pub soak: String,
}

/// A day has one evening, and what goes wrong with many players goes wrong then.
fn a_day() -> String {
    "24h".to_owned()
}
