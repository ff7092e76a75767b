//! Pure. The data of plugins and the server's own settings: what is kept of them when JARs change, and what came of it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The data folder of each plugin whose JAR changes, and the server's own settings (server.properties, bukkit.yml, config, …) when Paper
/// changes, are kept on the server's volume, and put back when the new set fails before anybody has played. Of the other plugins the settings are
/// kept, which nothing puts back but you. A change of it comes with the next window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeepPluginData {
    /// How large one such folder or file may be; a larger one is named and not kept. `"0"`: nothing is kept.
    #[serde(default = "half_a_gi")]
    #[schemars(schema_with = "schema::quantity")]
    pub max_size: String,
}

impl Default for KeepPluginData {
    fn default() -> Self {
        Self { max_size: half_a_gi() }
    }
}

/// The plugins' data and the server's settings that were kept before the set changed last, as the agent said it last. Folders are named as they
/// lie in `plugins`, what is the server's own with `./` in front; places are relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginDataStatus {
    /// When keeping began: nothing later is in it.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub kept_at: Timestamp,
    /// Where they lie, until two further changes of the set; gone when they were put back. Absent: nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub place: Option<String>,
    /// What was kept: `LuckPerms`, `./bukkit.yml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub kept: Vec<String>,
    /// What was not kept, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 340)))]
    pub not_kept: Vec<String>,
    /// The settings of the plugins that did not change. Absent: none were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_kept: Option<SettingsKept>,
    /// When they were put back, because the set that came next failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub put_back_at: Option<Timestamp>,
    /// Where that lies which the failed set left. It stays until you delete it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub set_aside: Option<String>,
    /// Why they were not put back, although the set that came next failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub not_put_back: Option<String>,
}

/// Settings of the plugins that did not change with the set, as they were before it. Nothing puts them back but you.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsKept {
    /// Where they lie, in a folder for each plugin, until two further changes of the set.
    #[schemars(schema_with = "schema::text253")]
    pub place: String,
    /// How many files they are.
    pub files: u32,
    /// How many files were found. The others were too many or too large together, or could not be read, or the volume had no room for them.
    pub found: u32,
}

fn half_a_gi() -> String {
    "512Mi".to_owned()
}
