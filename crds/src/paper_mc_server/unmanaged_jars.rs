//! Pure. JARs in `plugins` that people put there themselves: what they do to updates, and which of them were checked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What JARs that are not managed here do to a new Minecraft version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum UnmanagedPlugins {
    /// It waits until you say that you have checked them. One on which a server would not load them does not come at all.
    #[default]
    Hold,
    /// It comes, and a warning is given, unless a server would not load them on it.
    Warn,
    /// As if they were not there.
    Ignore,
}

/// A JAR that you have checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedFile {
    /// Its name in `plugins`, for readers.
    #[schemars(length(min = 1, max = 253))]
    pub file: String,
    /// The sha256 of its bytes: with other bytes it is another file, which nobody has checked.
    #[schemars(length(min = 64, max = 64), regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// The Minecraft versions on which it runs, or globs such as `1.21.x`.
    #[schemars(schema_with = "schema::texts")]
    pub minecraft_versions: Vec<String>,
}

/// A JAR in `plugins` that is not managed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedFile {
    /// Its name in `plugins`.
    #[schemars(schema_with = "schema::text253")]
    pub file: String,
    /// The sha256 of its bytes; absent while the server's agent is of a version that does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub sha256: Option<String>,
    /// The sha512 of its bytes, by which Modrinth knows files; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub sha512: Option<String>,
    /// What it calls itself; absent for a file that is no plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub name: Option<String>,
    /// Further names that it has for other plugins, the first 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 64)))]
    pub provides: Vec<String>,
    /// Names without which it does not load, the first 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 64)))]
    pub depend: Vec<String>,
    /// The least Minecraft that loads it (`api-version` in its description); absent where that states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub api_version: Option<String>,
    /// The least Java that loads it, by its main class; absent where that is not in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
}
