//! Pure. The kind `Plugin`: one plugin from one source, for the servers that its selector matches.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::paper_mc_server::{NamedWindow, UpdateStrategy};
use crate::schema;

/// One plugin for the servers that match.
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
        .message("a url names the file itself; remove the project").field_path(".source.project").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.source.type != 'url' || has(self.source.url)")
        .message("type url needs the https address of the JAR").field_path(".source.url").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.source.type == 'url' || !has(self.source.url)")
        .message("hangar and modrinth know where their files are; remove the url, or write type: url").field_path(".source.url").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.source.type == 'modrinth' || !has(self.source.jars)")
        .message("only modrinth has releases of several JARs; remove the jars").field_path(".source.jars").reason(Reason::FieldValueForbidden),
    validation = Rule::new("!has(self.source.jars) || !self.source.jars.exists(jar, jar.endsWith('.jar'))")
        .message("a file name without version and .jar, such as EssentialsXChat: the next release has another version").field_path(".source.jars").reason(Reason::FieldValueInvalid),
    validation = Rule::new("!has(self.source.url) || (isURL(self.source.url) && url(self.source.url).getScheme() == 'https')")
        .message("must be an https address: what comes over plain http is nobody's word").field_path(".source.url").reason(Reason::FieldValueInvalid),
    validation = Rule::new("self.source.type != 'url' || has(self.source.checksum)")
        .message("type url needs the sha256 of the JAR, as sha256sum prints it: the address alone does not say which bytes are meant").field_path(".source.checksum").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.source.type == 'url' || !has(self.source.checksum)")
        .message("hangar and modrinth publish a checksum for each release; remove this one").field_path(".source.checksum").reason(Reason::FieldValueForbidden),
    validation = Rule::new("self.source.type != 'url' || !(self.updateStrategy in ['pin', 'build-pin'])")
        .message("a url is one release, and its checksum pins it; remove the updateStrategy").field_path(".updateStrategy").reason(Reason::FieldValueInvalid),
    validation = Rule::new("self.source.type != 'url' || !has(self.version)")
        .message("a url is one release, and its version is read from the JAR; remove the version").field_path(".version").reason(Reason::FieldValueForbidden),
)]
pub struct PluginSpec {
    /// Where it comes from.
    pub source: PluginSource,
    /// The least stable release that may be used.
    #[serde(default)]
    pub channel: PluginChannel,
    /// How a release is chosen.
    #[serde(default)]
    pub update_strategy: UpdateStrategy,
    /// The release, for `pin`, as its authors write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// Age a release must have; the server's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub update_delay: Option<String>,
    /// Whether it may go to a release older than the one that runs, for the sake of a newer Paper or of another plugin: it, and
    /// what only others need for it. Plugins rarely read what a newer release of them wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_downgrade: bool,
    /// While true, each server stays at the release that it runs, whatever else is written here. Where none runs it changes
    /// nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// While true, a newer release waits neither for a server's window nor for `updateDelay`: it comes alone, with everything
    /// else at what runs, announced and proven as ever. Blackouts, `suspend`, `approval: Required` and a maintenance window
    /// with `enabled: false` hold it back all the same; `spec.follows` of a server does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// Windows in which a newer release comes alone, with everything else at what runs: beside the windows of a server, in which all that is
    /// due comes together. `updateDelay` counts, and so does all that keeps a server as it is: blackouts, `suspend`, `approval: Required`,
    /// `spec.follows`, a maintenance window with `enabled: false`. What is `urgent` needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub windows: Vec<NamedWindow>,
    /// What you say about Minecraft versions, against or beside the page's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility_override: Option<CompatibilityOverride>,
    /// What you know about its versions and those of others. It counts instead of what is built in and of what the
    /// operator was given for the same plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["plugin"]))]
    pub requires: Vec<RequiredPlugin>,
    /// Plugins that belong to it, by name: what they and it publish in one night is old enough together. The usual groups,
    /// such as the modules of `EssentialsX`, are known already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::plugin_names")]
    pub delay_together: Vec<String>,
    /// The servers of this namespace that get it.
    #[schemars(schema_with = "schema::label_selector")]
    pub instance_selector: LabelSelector,
}

/// A plugin that has to be there, in certain versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredPlugin {
    /// Its name, its slug, or the name of the Plugin object that asks for it.
    #[schemars(schema_with = "schema::plugin_name")]
    pub plugin: String,
    /// Which versions will do: conditions with commas between them, such as `>=7.4, <7.5`, `7.4.x` or `*`.
    #[schemars(schema_with = "schema::version_range")]
    pub version: String,
}

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSource {
    /// Which site, or a file by its address.
    #[serde(rename = "type")]
    pub kind: SourceKind,
    /// For hangar and modrinth: slug or id of the project there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::project")]
    pub project: Option<String>,
    /// For modrinth: which JARs of a release come, where it has several, by file name without version and `.jar`
    /// (`EssentialsXChat`), with `*` and `?` if need be. Each has to mean one file. Empty: the main one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::jars")]
    pub jars: Vec<String>,
    /// For url: the https address of the JAR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::url")]
    pub url: Option<String>,
    /// For url: the JAR's sha256, as `sha256:` and 64 hex digits or as the digits alone. Other bytes are never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::sha256")]
    pub checksum: Option<String>,
}

/// Where plugins are published.
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

/// Channels of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PluginChannel {
    /// For everybody.
    #[default]
    Release,
    /// Snapshots and betas too.
    Beta,
    /// Everything.
    Alpha,
}

/// What you say about Minecraft versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompatibilityOverride {
    /// Whether it counts.
    #[serde(default)]
    pub enabled: bool,
    /// What is done with the page's list.
    #[serde(default)]
    pub mode: OverrideMode,
    /// Minecraft versions, or globs such as `1.21.x`. Empty with `Replace`: compatible with everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub minecraft_versions: Vec<String>,
    /// The releases it is about: versions, or lines such as `5.x`. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub releases: Vec<String>,
}

/// What an override does with the page's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OverrideMode {
    /// Adds to it.
    Add,
    /// Stands instead of it.
    #[default]
    Replace,
    /// Takes away from it.
    Remove,
}

/// What Nightshift sees of a plugin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What it is called: the project, or for a url the name in its JAR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub project: Option<String>,
    /// The newest release on the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub newest: Option<String>,
    /// The newest releases; the whole list is never kept in the API server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub available_versions: Vec<AvailableVersion>,
    /// How many releases the source lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<u32>,
    /// Digest of the whole list as last read: 16 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub catalog_digest: Option<String>,
    /// When that list last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_changed: Option<Timestamp>,
    /// Whether the source answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_status: Option<RepositoryStatus>,
    /// Servers that match, by name, the first 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub matched_instances: Vec<MatchedInstance>,
    /// How many servers match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_count: Option<u32>,
    /// Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// One release, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableVersion {
    /// As its authors write it.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// When it was published; absent for a url, which does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub released_at: Option<Timestamp>,
    /// How stable its authors call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<PluginChannel>,
    /// The newest Minecraft versions it is listed for, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 64)))]
    pub minecraft_versions: Vec<String>,
}

/// A server that a Plugin matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchedInstance {
    /// Its name, in the Plugin's namespace.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The release that was chosen for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// Whether there is one that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatible: Option<bool>,
}

/// Whether a source answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepositoryStatus {
    /// It does.
    Available,
    /// It does not, and nothing is known.
    Unavailable,
    /// It does not; what was read before is used.
    Orphaned,
}
