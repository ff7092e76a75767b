//! Pure. Defines the backup that a new volume is filled from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The backup that a volume without a world is filled from before the server starts on it. Everything in the backup is restored. A volume with a
/// world is not changed, so the field has no effect after that. `restoreFrom: {}` takes the newest backup of this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreFrom {
    /// The name of the backup, such as `20261122T030000Z-1a2b3c4d`, or `latest` (default). `latest` is the newest backup that contains worlds.
    #[serde(default = "latest")]
    #[schemars(schema_with = "schema::backup_name")]
    pub backup: String,
    /// The server whose backups are used, in the same namespace. It may be deleted already. Defaults to this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub server: Option<String>,
    /// The claim that the backups are stored on. Defaults to the claim of `backup`, or `backup-<server>-0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub claim: Option<String>,
}

fn latest() -> String {
    "latest".to_owned()
}
