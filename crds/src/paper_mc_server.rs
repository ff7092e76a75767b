//! Pure. The kind `PaperMCServer`: one server, its schedule, its volume.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{pod_template, schema};

mod backup;
mod blackout;
mod crash_loop;
mod follows;
mod notify;
mod plugin_data;
mod restart;
mod restore_from;
mod settings;
mod status;
mod unmanaged_jars;

pub use backup::{
    Backup, BackupContents, BackupRetention, BackupSchedule, BackupStatus, BackupStorage, BackupTrigger, BeforeUpdate,
    LastBackup, LastRestore, RestoreHandled, RestoreResult, ScheduledContents,
};
pub use blackout::Blackout;
pub use crash_loop::{CrashStatus, OnCrashLoop, StoppedByCrashes};
pub use follows::Follows;
pub use notify::{ChatKind, NotificationEvent, NotificationState, NotificationTexts, NotifyChannel, PLACES};
pub use plugin_data::{KeepPluginData, PluginDataStatus, SettingsKept};
pub use restart::{Restart, RestartOnlyIf};
pub use restore_from::RestoreFrom;
pub use settings::{
    AccessMode, AnnouncementTarget, GracefulShutdown, Jvm, MaintenanceWindow, NamedWindow, Opportunistic,
    PlayersPolicy, PolicyKind, Rcon, SecretKey, ServiceKind, ServiceSpec, Storage, UpdateSchedule,
};
pub use status::{
    AnswerBasis, AvailableUpdate, BlockedBy, DelistedFileStatus, DelistedReleaseStatus, HandledRequests, HistoryEntry,
    LastUpdate, PaperMCServerStatus, PlannedPlugin, PluginState, PluginStateKind, RolloutFacts, StopSeen,
    UpdateBlocked,
};
pub use unmanaged_jars::{TrustedFile, UnmanagedFile, UnmanagedPlugins};

/// Why a server without RCON is refused: something that it wishes for is done over RCON.
pub const NEEDS_RCON: &str = "without RCON nobody can be warned or counted and no save is confirmed before a stop: players.policy has to be Ignore, \
                              restart.policy too, and there can be neither backup.schedule nor updateSchedule.opportunistic. Or remove the field";

/// In `hold`: not one plugin, but the whole set that runs.
pub const WHOLE_SET: &str = "*";

/// One Paper server that Nightshift keeps on the newest set of versions that works together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "nightshift.dev",
    version = "v1alpha1",
    kind = "PaperMCServer",
    plural = "papermcservers",
    singular = "papermcserver",
    shortname = "pmc",
    category = "nightshift",
    namespaced,
    status = "PaperMCServerStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(json_path = ".status.version", name = "Version", type_ = "string"),
    printcolumn(json_path = ".status.update", name = "Update", type_ = "string"),
    printcolumn(json_path = ".status.nextWindow", name = "Next Window", type_ = "string"),
    printcolumn(json_path = ".status.heldBy", name = "Held By", type_ = "string"),
    printcolumn(json_path = ".status.conditions[?(@.type==\"Ready\")].status", name = "Ready", type_ = "string"),
    printcolumn(json_path = ".status.nextRestart", name = "Next Restart", type_ = "string", priority = 1),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date"),
    validation = Rule::new("size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must be at most 40 lower-case letters, digits and dashes, and begin with a letter: Service, pod and label are made of it"),
    validation = Rule::new("!has(self.spec.follows) || self.spec.follows.server != self.metadata.name")
        .message("a server cannot follow itself: name the one that is to go first, or leave follows out").field_path(".spec.follows.server"),
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(self.updateStrategy in ['pin', 'build-pin']) || (has(self.version) && size(self.version) > 0)")
        .message("updateStrategy pin and build-pin need the version to stay on, such as 1.21.10").field_path(".version").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.updateStrategy != 'build-pin' || has(self.build)")
        .message("updateStrategy build-pin needs the build to stay on, such as 130").field_path(".build").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.image) || self.imagePolicy == 'Follow'")
        .message("imagePolicy says how a chosen image may change, and image pins one; remove one of the two").field_path(".imagePolicy").reason(Reason::FieldValueForbidden),
    // Here and not on `updateSchedule`: the API server holds a default to the rules of its own field, and this one's breaks it.
    validation = Rule::new("has(self.updateSchedule.maintenanceWindow) || (has(self.updateSchedule.windows) && size(self.updateSchedule.windows) > 0)")
        .message("say when the server may restart: a maintenanceWindow with a cron such as \"0 4 * * 0\" (Sundays at 04:00), or with enabled: false for never by itself")
        .field_path(".updateSchedule.maintenanceWindow").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.updateSchedule.maintenanceWindow) || !self.updateSchedule.maintenanceWindow.enabled || has(self.updateSchedule.maintenanceWindow.cron)")
        .message("say when the server may restart: a cron such as \"0 4 * * 0\" (Sundays at 04:00)")
        .field_path(".updateSchedule.maintenanceWindow.cron").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.rcon.enabled || (self.players.policy == 'Ignore' && (!has(self.restart) || !has(self.restart.policy) || self.restart.policy == 'Ignore') && (!has(self.backup) || !has(self.backup.schedule)) && !has(self.updateSchedule.opportunistic))")
        .message(NEEDS_RCON).field_path(".rcon.enabled").reason(Reason::FieldValueForbidden),
)]
pub struct PaperMCServerSpec {
    /// Your consent to the Minecraft EULA (<https://aka.ms/MinecraftEULA>). Without it nothing starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eula: Option<Eula>,
    /// What the server runs as. Nightshift runs Paper only; `resolver explain` answers for the others.
    #[serde(default)]
    pub software: Software,
    /// How Paper is chosen.
    pub update_strategy: UpdateStrategy,
    /// The Minecraft version, for `pin` and `build-pin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::minecraft")]
    pub version: Option<String>,
    /// Paper's build, for `build-pin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub build: Option<u32>,
    /// Age a release must have before it is used, by its own publication date, such as `72h`.
    #[serde(default = "zero")]
    #[schemars(schema_with = "schema::duration")]
    pub update_delay: String,
    /// The least stable Paper build that may be used.
    #[serde(default)]
    pub channel: PaperChannel,
    /// Zone of every schedule here, and `TZ` of the server: a change counts for schedules at once, and for the server with a restart in the next
    /// window.
    #[serde(default = "utc")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: String,
    /// When updates are applied.
    #[serde(default)]
    pub update_schedule: UpdateSchedule,
    /// Restarts by the clock, without an update; there are none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// While true, nothing that runs is changed or restarted by itself, also in a window. Updates are planned and staged.
    #[serde(default)]
    pub suspend: bool,
    /// Plugins that stay at the release that runs here, by the names of their Plugin objects. `*` is the whole set: Paper, its plugins and the
    /// image that was chosen for them. Unlike with `suspend`, restarts by the clock and changes of the pod go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::hold")]
    pub hold: Vec<String>,
    /// Whether another set than the one that runs has to be approved before its window.
    #[serde(default)]
    pub approval: Approval,
    /// The server that goes first: what an update changes here must have run there, where it runs there at all. Nothing is waited for without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    /// What players are told, and how much say they have.
    #[serde(default)]
    pub players: PlayersPolicy,
    /// When the server may be evicted from its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// Channels of a chat that are told what happens to the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub notify: Vec<NotifyChannel>,
    /// Whether the channels that the operator was given for all servers are told about this one, too.
    #[serde(default = "yes")]
    pub notify_cluster: bool,
    /// How the server is stopped.
    #[serde(default)]
    pub graceful_shutdown: GracefulShutdown,
    /// What becomes of it when its process ends with an error again and again.
    #[serde(default)]
    pub on_crash_loop: OnCrashLoop,
    /// RCON, which stays on the pod's own loopback.
    #[serde(default)]
    pub rcon: Rcon,
    /// The Java virtual machine.
    #[serde(default)]
    pub jvm: Jvm,
    /// The volume of the world.
    #[serde(default)]
    pub storage: Storage,
    /// Copies of the server; none are taken without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// The copy that a volume without a world gets before the server starts on it. Without it, such a server makes a new world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreFrom>,
    /// What is kept of plugins' data when their JARs change.
    #[serde(default)]
    pub keep_plugin_data: KeepPluginData,
    /// What happens to a required dependency that no Plugin asks for.
    #[serde(default)]
    pub dependencies: Dependencies,
    /// Whether a page that lists only a hotfix sibling of a Paper (the same network protocol, such as 1.21.9 for 1.21.10)
    /// counts for that Paper.
    #[serde(default)]
    pub hotfix_siblings: HotfixSiblings,
    /// What a page means that lists no Minecraft version at all.
    #[serde(default)]
    pub unlisted: Unlisted,
    /// What JARs in `plugins` that are not managed here do to a new Minecraft version. Builds of the same one come in any case.
    #[serde(default)]
    pub unmanaged_plugins: UnmanagedPlugins,
    /// Those of them that you have checked. `kubectl nightshift trust` prints what to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["sha256"]))]
    pub unmanaged: Vec<TrustedFile>,
    /// The server's image. Chosen with the Java that Paper and the plugins need when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^\S+$"))]
    pub image: Option<String>,
    /// Whether an image that was chosen may change by itself. Only without `image`.
    #[serde(default)]
    pub image_policy: ImagePolicy,
    /// The Service players connect to.
    #[serde(default)]
    pub service: ServiceSpec,
    /// 1 runs the server, 0 lets it sleep; the world stays.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1))]
    pub replicas: i32,
    /// Merged into the pod: resources, node selectors, further containers. The server's container is called `papermc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_template::schema")]
    pub pod_template: Option<PodTemplateSpec>,
}

impl PaperMCServerSpec {
    /// Whether the whole set that runs stays: [`WHOLE_SET`] is in `hold`.
    pub fn holds_all(&self) -> bool {
        self.hold.iter().any(|name| name == WHOLE_SET)
    }

    /// Whether something in it is done over RCON, and there is none. The rule of the schema above says the same.
    pub fn lacks_rcon(&self) -> bool {
        let of_restart = self.restart.as_ref().and_then(|restart| restart.policy);
        let mut policies = [Some(self.players.policy), of_restart].into_iter().flatten();
        let copies = self.backup.as_ref().is_some_and(|backup| backup.schedule.is_some());
        let is_done_over_it =
            policies.any(|kind| kind != PolicyKind::Ignore) || copies || self.update_schedule.opportunistic.is_some();
        is_done_over_it && !self.rcon.enabled
    }
}

/// What a server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Software {
    /// Paper.
    #[default]
    Paper,
    /// Purpur: loads what Paper loads, and what is made for it alone.
    Purpur,
    /// Folia: loads only plugins that say so.
    Folia,
    /// The proxy Velocity, with versions and plugins of its own.
    Velocity,
}

impl Software {
    /// As the spec spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paper => "Paper",
            Self::Purpur => "Purpur",
            Self::Folia => "Folia",
            Self::Velocity => "Velocity",
        }
    }
}

/// What may be done to the server by whoever empties its node, with `kubectl drain` or as an autoscaler. When absent: `OnUpgrade` with
/// `players.policy: WaitForEmpty` where the operator may read nodes, else `Always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Eviction {
    /// At any time: the stop itself warns players for seconds, and saves.
    Always,
    /// When its players had their `notice` and the world is saved. That begins when the node is cordoned or marked; until then evictions are refused.
    OnUpgrade,
    /// Not at all: a person deletes the pod.
    Never,
}

/// Consent to the Minecraft EULA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Eula {
    /// You have read it and agree.
    Accepted,
}

/// How a version is chosen; both kinds have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateStrategy {
    /// Newest Paper; plugins follow as far as they can. On a Plugin: newest that works on all matched servers.
    #[default]
    Latest,
    /// Newest Paper for which every plugin has a release that works. On a Plugin: newest for each server.
    Auto,
    /// This version, newest build.
    Pin,
    /// Exactly this build.
    BuildPin,
}

/// Channels of Paper's builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PaperChannel {
    /// For everybody; includes recommended builds.
    #[default]
    Stable,
    /// Mostly done.
    Beta,
    /// Early builds of a new Minecraft version.
    Alpha,
}

/// What happens to a required dependency nobody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Dependencies {
    /// Installed from the same source and shown as needed.
    #[default]
    Install,
    /// Not installed; the Plugin to write is proposed.
    Propose,
    /// Refused, with the Plugin that would have to be written.
    Forbid,
}

/// Whether a set has to be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// It does not.
    #[default]
    Automatic,
    /// By the annotation `nightshift.dev/approve: <digest of the lock>`.
    Required,
}

/// Whether an image that was chosen may change by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ImagePolicy {
    /// To the newest one with the least Java that will do.
    #[default]
    Follow,
    /// To the newest one with the Java that runs now; what needs another Java waits.
    SameJava,
    /// Never; what needs another Java waits.
    Keep,
}

/// Whether a hotfix sibling on a page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum HotfixSiblings {
    /// It does, and the answer says so.
    #[default]
    Trust,
    /// It does not; the answer names the sibling and what to set.
    Ask,
}

/// What a page without any Minecraft version means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Unlisted {
    /// That it works; there is a warning.
    #[default]
    Assume,
    /// That nobody has said so: the release is not used.
    Refuse,
}

fn zero() -> String {
    "0s".to_owned()
}
fn utc() -> String {
    "UTC".to_owned()
}
fn one() -> i32 {
    1
}
fn yes() -> bool {
    true
}
