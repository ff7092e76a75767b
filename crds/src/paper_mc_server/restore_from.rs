//! Pure. The copy that a new volume gets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What a volume without a world gets before the server starts on it: all that one copy holds. A volume with a world is left alone, and the
/// field is harmless after that. With `restoreFrom: {}` it is the newest of the server's own copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// The copy's name, or `latest`: the newest that holds worlds.
    #[serde(default = "latest")]
    #[schemars(schema_with = "schema::copy_name")]
    pub copy: String,
    /// Whose copies, when they are not this server's own: a server of the same namespace, there or gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub server: Option<String>,
    /// The claim that they lie on, when it is neither that of `backup` nor `backup-<server>-0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub claim: Option<String>,
}

fn latest() -> String {
    "latest".to_owned()
}
