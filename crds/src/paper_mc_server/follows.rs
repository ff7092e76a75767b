//! Pure. Defines the leader server, which is updated before the servers that follow it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The server that has to run an update first, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Follows {
    /// The name of the leader server, in the same namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub server: String,
    /// How long the leader must have run the changed releases, verified, such as `48h`. Defaults to `24h`. With `0s`, verification on the leader is
    /// enough.
    #[serde(default = "a_day")]
    #[schemars(schema_with = "schema::duration")]
    pub soak: String,
}

/// A day includes one evening. Errors that need many players show up then.
fn a_day() -> String {
    "24h".to_owned()
}
