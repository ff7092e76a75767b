//! Pure. Defines which plugin data and server settings are saved when JARs change, and the state of the saved data.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The plugin data and server settings that are saved when JARs change. The agent saves the data folder of each plugin whose JAR changes. If Paper
/// changes, it also saves the server's own settings (server.properties, bukkit.yml, config, …). Both are saved on the server's volume, and restored
/// when the new version set fails before anyone has played. Of the other plugins, the settings are saved, and only a user can restore them. A
/// change applies in the next maintenance window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeepPluginData {
    /// The maximum size of one data folder or file, such as `2Gi`. Defaults to `512Mi`. A larger one is reported and not saved. `"0"` saves none.
    #[serde(default = "half_a_gi")]
    #[schemars(schema_with = "schema::quantity")]
    pub max_size: String,
}

impl Default for KeepPluginData {
    fn default() -> Self {
        Self { max_size: half_a_gi() }
    }
}

/// The plugin data and server settings that were saved before the last change of the version set, as last reported by the agent. A folder is named
/// as in `plugins`, and a file of the server has `./` in front. Paths are relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginDataStatus {
    /// The time at which saving started. Later changes are not included.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub kept_at: Timestamp,
    /// The directory of the saved data. The data is kept for two further changes of the version set, or until it is restored. Absent if no data was
    /// saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub place: Option<String>,
    /// The saved folders and files, such as `LuckPerms` or `./bukkit.yml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub kept: Vec<String>,
    /// The folders and files that were not saved, with the reason. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 340)))]
    pub not_kept: Vec<String>,
    /// The saved settings of the plugins that did not change. Absent if none were saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_kept: Option<SettingsSaved>,
    /// The time at which the data was restored, because the next version set failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub put_back_at: Option<Timestamp>,
    /// The directory with the data that the failed version set left. It is kept until you delete it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub set_aside: Option<String>,
    /// Why the data was not restored, although the next version set failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub not_put_back: Option<String>,
}

/// The settings of plugins that did not change, from before the change of the version set. Only a user can restore them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsSaved {
    /// The directory of the settings, with one folder for each plugin. They are kept for two further changes of the version set.
    #[schemars(schema_with = "schema::text253")]
    pub place: String,
    /// The number of saved files.
    pub files: u32,
    /// The number of files that were found. Files are left out if they are too many or too large together, if they cannot be read, or if the volume
    /// has no space for them.
    pub found: u32,
}

fn half_a_gi() -> String {
    "512Mi".to_owned()
}
