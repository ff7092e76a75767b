//! Pure. Defines unmanaged JARs in `plugins`: their effect on updates, and which of them were checked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The effect of unmanaged JARs on a new Minecraft version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum UnmanagedPlugins {
    /// The new version waits until you confirm the JARs. A version on which the server would not load them is not applied.
    #[default]
    Hold,
    /// The new version is applied with a warning, unless the server would not load the JARs on it.
    Warn,
    /// The JARs have no effect.
    Ignore,
}

/// An unmanaged JAR that you have checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedFile {
    /// The file name in `plugins`, for readers only.
    #[schemars(length(min = 1, max = 253))]
    pub file: String,
    /// The SHA-256 of the file: 64 lower-case hex digits. A changed file has another hash, so it is not trusted.
    #[schemars(length(min = 64, max = 64), regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// The Minecraft versions on which the JAR works, or globs such as `1.21.x`. At most 100.
    #[schemars(schema_with = "schema::texts")]
    pub minecraft_versions: Vec<String>,
}

/// An unmanaged JAR in `plugins`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedFile {
    /// The file name in `plugins`.
    #[schemars(schema_with = "schema::text253")]
    pub file: String,
    /// The SHA-256 of the file. Absent while the server's agent has a version that does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub sha256: Option<String>,
    /// The SHA-512 of the file, by which Modrinth identifies files. Absent while the server's agent has a version that does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub sha512: Option<String>,
    /// The plugin name that the JAR declares. Absent if the file is not a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub name: Option<String>,
    /// Additional names that the JAR provides to other plugins. Only the first 2 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), inner(length(max = 64)))]
    pub provides: Vec<String>,
    /// The plugins that the JAR needs to load. Only the first 4 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 64)))]
    pub depend: Vec<String>,
    /// The oldest Minecraft version that loads the JAR (`api-version` in its plugin descriptor). Absent if the descriptor has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub api_version: Option<String>,
    /// The oldest Java version that loads the JAR, according to its main class. Absent if the file has no main class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
}
