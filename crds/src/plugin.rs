//! Pure. Defines the kind `Plugin`: one plugin from one source for the servers that its selector matches.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::paper_mc_server::{NamedWindow, UpdateStrategy};
use crate::schema;

/// One plugin from one source, for the servers that its selector matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "nightshift.dev",
    version = "v1alpha1",
    kind = "Plugin",
    plural = "plugins",
    singular = "plugin",
    shortname = "pmp",
    category = "nightshift",
    namespaced,
    status = "PluginStatus",
    printcolumn(json_path = ".spec.source.type", name = "Source", type_ = "string"),
    printcolumn(json_path = ".status.project", name = "Project", type_ = "string"),
    printcolumn(json_path = ".spec.updateStrategy", name = "Strategy", type_ = "string"),
    printcolumn(json_path = ".status.newest", name = "Newest", type_ = "string"),
    printcolumn(json_path = ".status.matchedCount", name = "Servers", type_ = "integer"),
    printcolumn(json_path = ".status.conditions[?(@.type==\"Ready\")].status", name = "Ready", type_ = "string"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date"),
    validation = Rule::new("size(self.metadata.name) <= 63").message("metadata.name must be at most 63 characters"),
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.source.type == 'url' || !(self.updateStrategy in ['pin', 'build-pin']) || (has(self.version) && size(self.version) > 0)")
        .message("updateStrategy pin and build-pin need the version to stay on").field_path(".version").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.source.type == 'url' || has(self.source.project)")
        .message("hangar and modrinth need the project: the last part of its page's address").field_path(".source.project").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.source.type != 'url' || !has(self.source.project)")
        .message("a url names the file itself: remove the project").field_path(".source.project").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.source.type != 'url' || has(self.source.url)")
        .message("type url needs the https address of the JAR").field_path(".source.url").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.source.type == 'url' || !has(self.source.url)")
        .message("hangar and modrinth know where their files are: remove the url, or write type: url").field_path(".source.url").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.source.type == 'modrinth' || !has(self.source.jars)")
        .message("only modrinth has releases of several JARs: remove the jars").field_path(".source.jars").reason(Reason::FieldValueForbidden),
    validation = Rule::new("!has(self.source.jars) || !self.source.jars.exists(jar, jar.endsWith('.jar'))")
        .message("a file name without version and .jar, such as EssentialsXChat: the next release has another version").field_path(".source.jars").reason(Reason::FieldValueInvalid),
    validation = Rule::new("!has(self.source.url) || (isURL(self.source.url) && url(self.source.url).getScheme() == 'https')")
        .message("must be an https address: files over plain http are not authenticated").field_path(".source.url").reason(Reason::FieldValueInvalid),
    validation = Rule::new("self.source.type != 'url' || has(self.source.checksum)")
        .message("type url needs the sha256 of the JAR, as sha256sum prints it: the address alone does not identify \
        the file").field_path(".source.checksum").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.source.type == 'url' || !has(self.source.checksum)")
        .message("hangar and modrinth publish a checksum for each release: remove this one").field_path(".source.checksum").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.source.type != 'url' || !(self.updateStrategy in ['pin', 'build-pin'])")
        .message("a url is one release, and its checksum pins it: remove the updateStrategy").field_path(".updateStrategy").reason(Reason::FieldValueInvalid),
    validation = Rule::new("self.source.type != 'url' || !has(self.version)")
        .message("a url is one release, and its version is read from the JAR: remove the version").field_path(".version").reason(Reason::FieldValueForbidden),
)]
pub struct PluginSpec {
    /// The source that the plugin is downloaded from.
    pub source: PluginSource,
    /// The least stable channel of releases that may be used: `Release` (default), `Beta` or `Alpha`. `Beta` includes snapshots, and `Alpha` includes
    /// every release.
    #[serde(default)]
    pub channel: PluginChannel,
    /// How a release is chosen. `latest` (default) takes the newest release that works on all matched servers. `auto` takes the newest release for
    /// each server. `pin` and `build-pin` take `version`.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// The release to install, as its authors write it, such as `5.3.3`. Required for `pin` and `build-pin`. At most 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// The minimum age of a release before it is used, such as `24h`. Defaults to `updateDelay` of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub update_delay: Option<String>,
    /// Whether the plugin may be downgraded for a newer Paper or for another plugin. Defaults to `false`. It also applies to dependencies that are
    /// installed only for this plugin. Plugins can rarely read data that a newer release of them wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_downgrade: bool,
    /// Keeps the plugin at the release that each server runs. Defaults to `false`. It overrides `updateStrategy` and `version`. It has no effect on a
    /// server that does not run the plugin yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// Applies a newer release at once. Defaults to `false`. The release waits neither for a maintenance window nor for `updateDelay`. It is applied
    /// alone: everything else stays at the running version. Players are warned and the update is verified as usual. Blackouts, `suspend`,
    /// `approval: Required` and a maintenance window with `enabled: false` still block it. `spec.follows` of a server does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// Additional windows in which a newer release of this plugin is applied alone. At most 8. Everything else stays at the running version. In a
    /// maintenance window of the server, all due updates are applied together. `updateDelay`, blackouts, `suspend`, `approval: Required`,
    /// `spec.follows` and a maintenance window with `enabled: false` still apply. A plugin that is `urgent` needs no window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub windows: Vec<NamedWindow>,
    /// Minecraft versions that you add to, remove from or set instead of the list on the project page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility_override: Option<CompatibilityOverride>,
    /// Constraints between versions of this plugin and other plugins. At most 16. They replace the built-in constraints for the same plugin, and
    /// those that the operator was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["plugin"]))]
    pub requires: Vec<RequiredPlugin>,
    /// Plugins that are released together with this one, by name, such as `ViaVersion`. At most 16. Releases that they and this plugin publish in one
    /// night reach the age of `updateDelay` together. The usual groups, such as the modules of `EssentialsX`, are built in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::plugin_names")]
    pub delay_together: Vec<String>,
    /// A label selector for the servers of this namespace that get the plugin. An empty selector (`{}`) matches all of them.
    #[schemars(schema_with = "schema::label_selector")]
    pub instance_selector: LabelSelector,
}

/// A plugin that has to be installed in certain versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredPlugin {
    /// The name of the required plugin, its slug, or the name of its Plugin object.
    #[schemars(schema_with = "schema::plugin_name")]
    pub plugin: String,
    /// The versions that are accepted: conditions separated by commas, such as `>=7.4, <7.5`, `7.4.x` or `*`. At most 128 characters.
    #[schemars(schema_with = "schema::version_range")]
    pub version: String,
}

/// The source of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSource {
    /// The type of the source: `hangar` (hangar.papermc.io), `modrinth` (modrinth.com) or `url` (one file at an HTTPS address).
    #[serde(rename = "type")]
    pub kind: SourceKind,
    /// The slug or ID of the project, such as `essentialsx`. Required for `hangar` and `modrinth`, and not allowed for `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::project")]
    pub project: Option<String>,
    /// The JARs to install from a release that has several. For `modrinth` only, and at most 16. Each entry is a file name without version and
    /// `.jar`, such as `EssentialsXChat`. It may contain `*` and `?`, and it must match exactly one file. An empty list means the main JAR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::jars")]
    pub jars: Vec<String>,
    /// The HTTPS address of the JAR. Required for `url`, and not allowed for other types. At most 2048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::url")]
    pub url: Option<String>,
    /// The SHA-256 of the JAR: 64 hex digits, with or without the prefix `sha256:`. Required for `url`, and not allowed for other types. A file with
    /// other content is never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::sha256")]
    pub checksum: Option<String>,
}

/// The sites that publish plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// hangar.papermc.io
    Hangar,
    /// modrinth.com
    Modrinth,
    /// One file at an https address.
    Url,
}

/// The channels of plugin releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PluginChannel {
    /// For everyone.
    #[default]
    Release,
    /// Snapshots and betas too.
    Beta,
    /// Every release.
    Alpha,
}

/// Minecraft versions that you state for a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompatibilityOverride {
    /// Whether the override is applied. Defaults to `false`.
    #[serde(default)]
    pub enabled: bool,
    /// How the override changes the list on the project page. `Replace` (default) replaces the list, `Add` adds to it and `Remove` removes from it.
    #[serde(default)]
    pub mode: OverrideMode,
    /// The Minecraft versions, or globs such as `1.21.x`. At most 100. An empty list with `Replace` means compatible with every version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub minecraft_versions: Vec<String>,
    /// The releases that the override applies to: versions, or lines such as `5.x`. At most 100. An empty list means all releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub releases: Vec<String>,
}

/// How an override changes the list on the project page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OverrideMode {
    /// Adds to the list.
    Add,
    /// Replaces the list.
    #[default]
    Replace,
    /// Removes from the list.
    Remove,
}

/// The observed state of a Plugin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// The name of the plugin: the project, or for `url` the name in its JAR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub project: Option<String>,
    /// The newest release in the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub newest: Option<String>,
    /// The newest releases. At most 10. The API server never stores the complete list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub available_versions: Vec<AvailableVersion>,
    /// The number of releases that the source lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<u32>,
    /// The digest of the complete list when it was last read: 16 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub catalog_digest: Option<String>,
    /// The time at which the list last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_changed: Option<Timestamp>,
    /// Whether the source answers. `available`: it does. `unavailable`: it does not, and no list is cached. `orphaned`: it does not, and the cached
    /// list is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_status: Option<RepositoryStatus>,
    /// The servers that the selector matches, by name. Only the first 50 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub matched_instances: Vec<MatchedInstance>,
    /// The number of servers that the selector matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_count: Option<u32>,
    /// The conditions of the Plugin. The types are `Ready`, and `Outranked` if several Plugins name one project on a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A summary of one release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableVersion {
    /// The version, as its authors write it.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// The time of publication. Absent for `url`, which states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub released_at: Option<Timestamp>,
    /// The channel that the authors published it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<PluginChannel>,
    /// The newest Minecraft versions that it is listed for. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 64)))]
    pub minecraft_versions: Vec<String>,
}

/// A server that the Plugin's selector matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchedInstance {
    /// The name of the server, in the Plugin's namespace.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The release that was chosen for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// Whether a release exists that works on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatible: Option<bool>,
    /// Whether the plugin's JAR is installed on the server, and the running server did not enable it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_enabled: bool,
    /// The Plugin whose fields apply on the server, if several name this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub decided_by: Option<String>,
}

/// Whether a source answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepositoryStatus {
    /// It answers.
    Available,
    /// It does not answer, and no list is cached.
    Unavailable,
    /// It does not answer. The cached list is used.
    Orphaned,
}
