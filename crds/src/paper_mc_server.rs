//! Pure. Defines the kind `PaperMCServer`: one server with its schedule and its volume.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{pod_template, schema};

mod backup;
mod blackout;
mod crash_loop;
mod follows;
mod hang;
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
pub use crash_loop::{CrashLoopStop, CrashStatus, OnCrashLoop};
pub use follows::Follows;
pub use hang::OnHang;
pub use notify::{ChatKind, NotificationEvent, NotificationState, NotificationTexts, NotifyChannel, PLACEHOLDERS};
pub use plugin_data::{KeepPluginData, PluginDataStatus, SettingsSaved};
pub use restart::{Restart, RestartOnlyIf};
pub use restore_from::RestoreFrom;
pub use settings::{
    AccessMode, AnnouncementTarget, GracefulShutdown, Jvm, MaintenanceWindow, NamedWindow, Opportunistic,
    PlayersPolicy, PolicyKind, Rcon, SecretKey, ServiceKind, ServiceSpec, Storage, UpdateSchedule,
};
pub use status::{
    AnswerBasis, AvailableUpdate, BlockedBy, DelistedFileStatus, DelistedReleaseStatus, HandledRequests, HistoryEntry,
    LastUpdate, ObservedStop, PaperMCServerStatus, PlannedPlugin, PluginState, PluginStateKind, RolloutFacts,
    UpdateBlocked,
};
pub use unmanaged_jars::{TrustedFile, UnmanagedFile, UnmanagedPlugins};

/// The message that rejects a server without RCON whose spec uses a feature that needs RCON.
pub const RCON_REQUIRED_MESSAGE: &str = "without RCON, players cannot be warned or counted, and no save is confirmed \
before a stop: set players.policy and restart.policy to Ignore, and remove backup.schedule and \
updateSchedule.opportunistic. Or remove this field";

/// The entry of `hold` that stands for the whole version set instead of one plugin.
pub const WHOLE_SET: &str = "*";

/// One Paper server. Nightshift keeps it on the newest version set whose parts work together.
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
    printcolumn(json_path = ".status.heldBy", name = "Blocked By", type_ = "string"),
    printcolumn(json_path = ".status.conditions[?(@.type==\"Ready\")].status", name = "Ready", type_ = "string"),
    printcolumn(json_path = ".status.nextRestart", name = "Next Restart", type_ = "string", priority = 1),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date"),
    validation = Rule::new("size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must be at most 40 lower-case letters, digits and dashes, and begin with a letter: it \
        is part of the names of Service, pod and label"),
    validation = Rule::new("!has(self.spec.follows) || self.spec.follows.server != self.metadata.name")
        .message("a server cannot follow itself: name the server that is updated first, or remove follows").field_path(".spec.follows.server"),
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(self.updateStrategy in ['pin', 'build-pin']) || (has(self.version) && size(self.version) > 0)")
        .message("updateStrategy pin and build-pin need the version to stay on, such as 1.21.10").field_path(".version").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.updateStrategy != 'build-pin' || has(self.build)")
        .message("updateStrategy build-pin needs the build to stay on, such as 130").field_path(".build").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.image) || self.imagePolicy == 'Follow'")
        .message("imagePolicy says how a chosen image may change, but image pins one: remove one of the two").field_path(".imagePolicy").reason(Reason::FieldValueForbidden),
    // On the spec and not on `updateSchedule`: the API server checks a default against the rules of its own field, and the default of
    // `updateSchedule` breaks this rule.
    validation = Rule::new("has(self.updateSchedule.maintenanceWindow) || (has(self.updateSchedule.windows) && size(self.updateSchedule.windows) > 0)")
        .message("set when the server may restart: a maintenanceWindow with a cron such as \"0 4 * * 0\" (Sundays at \
        04:00), or with enabled: false for no automatic restart")
        .field_path(".updateSchedule.maintenanceWindow").reason(Reason::FieldValueRequired),
    validation = Rule::new("!has(self.updateSchedule.maintenanceWindow) || !self.updateSchedule.maintenanceWindow.enabled || has(self.updateSchedule.maintenanceWindow.cron)")
        .message("set when the server may restart: a cron such as \"0 4 * * 0\" (Sundays at 04:00)")
        .field_path(".updateSchedule.maintenanceWindow.cron").reason(Reason::FieldValueRequired),
    validation = Rule::new("self.rcon.enabled || (self.players.policy == 'Ignore' && (!has(self.restart) || !has(self.restart.policy) || self.restart.policy == 'Ignore') && (!has(self.backup) || !has(self.backup.schedule)) && !has(self.updateSchedule.opportunistic))")
        .message(RCON_REQUIRED_MESSAGE).field_path(".rcon.enabled").reason(Reason::FieldValueForbidden),
)]
pub struct PaperMCServerSpec {
    /// Your consent to the Minecraft EULA (<https://aka.ms/MinecraftEULA>). The only value is `Accepted`. Without it, the server does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eula: Option<Eula>,
    /// The server software: `Paper` (default), `Purpur`, `Folia` or `Velocity`. The operator runs Paper only. `resolver explain` also answers for the
    /// others.
    #[serde(default)]
    pub software: Software,
    /// How the Paper version is chosen: `latest`, `auto`, `pin` or `build-pin`. `latest` takes the newest Paper, and plugins follow as far as they
    /// can. `auto` takes the newest Paper for which every plugin has a working release. `pin` takes the newest build of `version`. `build-pin` takes
    /// exactly `version` and `build`.
    pub update_strategy: UpdateStrategy,
    /// The Minecraft version to run, such as `1.21.10`. Required for `pin` and `build-pin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::minecraft")]
    pub version: Option<String>,
    /// The Paper build to run, such as `130`. Required for `build-pin`. 1 to 1000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub build: Option<u32>,
    /// The minimum age of a release before it is used, by its own publication date, such as `72h`. Defaults to `0s`. Units are `d`, `h`, `m` and `s`,
    /// and they can be combined, such as `3d12h`.
    #[serde(default = "zero")]
    #[schemars(schema_with = "schema::duration")]
    pub update_delay: String,
    /// The least stable channel of Paper builds that may be used: `Stable` (default), `Beta` or `Alpha`.
    #[serde(default)]
    pub channel: PaperChannel,
    /// The IANA time zone of all schedules in this spec, and `TZ` of the server, such as `Europe/Berlin`. Defaults to `UTC`. A change applies to
    /// schedules at once. It applies to the server with a restart in the next maintenance window.
    #[serde(default = "utc")]
    #[schemars(schema_with = "schema::zone")]
    pub time_zone: String,
    /// When updates are applied.
    #[serde(default)]
    pub update_schedule: UpdateSchedule,
    /// Scheduled restarts without an update. Without this field, there are no scheduled restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// Suspends all automatic changes. Defaults to `false`. While it is true, the operator neither changes nor restarts a running server by itself,
    /// not even in a maintenance window. Updates are still planned and staged.
    #[serde(default)]
    pub suspend: bool,
    /// Plugins that stay at the release that this server runs, by the names of their Plugin objects, such as `luckperms`. At most 64. `*` stands for
    /// the whole version set: Paper, its plugins and the image that was chosen for them. Unlike with `suspend`, scheduled restarts and changes of the
    /// pod continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::hold")]
    pub hold: Vec<String>,
    /// Whether a version set other than the running one needs an approval before its maintenance window. `Automatic` (default) needs none. `Required`
    /// needs the annotation `nightshift.dev/approve` with the digest of the lock.
    #[serde(default)]
    pub approval: Approval,
    /// The leader server, which is updated first. An update here waits until the leader has run what the update changes. Plugins that the leader does
    /// not have are not waited for. Without this field, updates do not wait for another server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    /// How players are warned before a stop, and whether they can delay an update.
    #[serde(default)]
    pub players: PlayersPolicy,
    /// When the server may be evicted from its node, for example by `kubectl drain` or an autoscaler. `Always` allows it at any time: the stop itself
    /// warns players for seconds and saves. `OnUpgrade` allows it after the warning of `players.notice` and a confirmed save. The warning begins when
    /// the node is cordoned or marked. `Never` rejects every eviction: a user has to delete the pod. Defaults to `OnUpgrade` with
    /// `players.policy: WaitForEmpty`, if the operator may read nodes, and to `Always` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// Chat channels that receive notifications about this server. At most 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub notify: Vec<NotifyChannel>,
    /// Whether the channels that the operator was given for all servers receive notifications about this server too. Defaults to `true`.
    #[serde(default = "yes")]
    pub notify_cluster: bool,
    /// How the server is stopped.
    #[serde(default)]
    pub graceful_shutdown: GracefulShutdown,
    /// The reaction to a process that exits with an error three times within an hour. `Continue` (default) lets the kubelet restart it each time and
    /// sends a notification. `Stop` stops the server and sends a notification. A stopped server starts again when the spec changes, or when a user
    /// requests an update, a roll-back or a restore.
    #[serde(default)]
    pub on_crash_loop: OnCrashLoop,
    /// The reaction to a running server that answers no ping, or no command by RCON. `Report` (default) reports it after a minute. `Restart` also
    /// restarts it after two minutes, without a countdown, because such a server cannot warn its players. The restarts count as crashes: after three
    /// within an hour no further one is made, and `onCrashLoop` applies.
    #[serde(default)]
    pub on_hang: OnHang,
    /// RCON, the remote console through which the operator warns players and saves the world. It listens on the loopback address of the pod only.
    #[serde(default)]
    pub rcon: Rcon,
    /// Settings of the Java virtual machine.
    #[serde(default)]
    pub jvm: Jvm,
    /// The volume of the world.
    #[serde(default)]
    pub storage: Storage,
    /// Backups of the server. Without this field: `beforeUpdate: OneWay`, stored in `.nightshift/backups` on the volume of the server, and one
    /// backup is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// The backup that a volume without a world is filled from before the server starts on it. Everything in the backup is restored. A volume with a
    /// world is not changed, so the field may stay. `restoreFrom: {}` takes the newest backup of this server. Without this field, a server on an
    /// empty volume creates a new world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreFrom>,
    /// The plugin data that is saved when JARs change. The agent saves the data folder of each plugin whose JAR changes. If Paper changes, it also
    /// saves the server's own settings, such as `server.properties`, `bukkit.yml` and `config`. Both are restored when the new version set fails
    /// before anyone has played. Of the other plugins, it saves the settings only, and these are never restored automatically. A change applies in
    /// the next maintenance window.
    #[serde(default)]
    pub keep_plugin_data: KeepPluginData,
    /// The handling of a required dependency that has no Plugin object. `Install` (default) installs it from the same source and shows it as
    /// required. `Propose` does not install it and proposes the Plugin to create. `Forbid` rejects it and names the Plugin that would have to be
    /// created.
    #[serde(default)]
    pub dependencies: Dependencies,
    /// Whether a release that is listed only for a hotfix sibling counts for that Paper version. A hotfix sibling has the same network protocol, such
    /// as 1.21.9 for 1.21.10. `Trust` (default): it counts, and the answer says so. `Ask`: it does not count, and the answer names the sibling and
    /// the setting to change.
    #[serde(default)]
    pub hotfix_siblings: HotfixSiblings,
    /// The meaning of a project page that lists no Minecraft version. `Assume` (default): the release is assumed to work, with a warning. `Refuse`:
    /// the release is not used.
    #[serde(default)]
    pub unlisted: Unlisted,
    /// The effect of unmanaged JARs in `plugins` on a new Minecraft version. New builds of the same Minecraft version are applied in any case. `Hold`
    /// (default): the new version waits until you confirm the JARs in `unmanaged`. `Warn`: the new version is applied with a warning. With both, a
    /// version on which the server would not load the JARs is not applied. `Ignore`: the JARs have no effect.
    #[serde(default)]
    pub unmanaged_plugins: UnmanagedPlugins,
    /// Unmanaged JARs that you have checked. At most 100. `kubectl nightshift trust` prints the entry to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["sha256"]))]
    pub unmanaged: Vec<TrustedFile>,
    /// The container image of the server, such as `docker.io/itzg/minecraft-server:2026.8.1-java21`. Without this field, an image is chosen with the
    /// Java version that Paper and the plugins need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^\S+$"))]
    pub image: Option<String>,
    /// Whether a chosen image may change by itself. Only valid without `image`. `Follow` (default): to the newest image with the lowest Java version
    /// that is sufficient. `SameJava`: to the newest image with the Java version that is running. `Keep`: never. With the last two, an update that
    /// needs another Java version waits.
    #[serde(default)]
    pub image_policy: ImagePolicy,
    /// The Service that players connect to.
    #[serde(default)]
    pub service: ServiceSpec,
    /// The number of pods: 1 (default) runs the server, 0 scales it to zero. The world is kept.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1))]
    pub replicas: i32,
    /// A pod template that is merged into the server's pod: resources, node selectors, additional containers. The container of the server is named
    /// `papermc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_template::schema")]
    pub pod_template: Option<PodTemplateSpec>,
}

impl PaperMCServerSpec {
    /// Whether the whole version set is held: `hold` contains [`WHOLE_SET`].
    pub fn is_fully_held(&self) -> bool {
        self.hold.iter().any(|name| name == WHOLE_SET)
    }

    /// The updates before which a backup is taken.
    pub fn backup_before_update(&self) -> BeforeUpdate {
        match &self.backup {
            Some(backup) if backup.enabled => backup.before_update,
            Some(_) => BeforeUpdate::Never,
            None => BeforeUpdate::OneWay,
        }
    }

    /// Whether the spec uses a feature that needs RCON while RCON is disabled. The schema rule above checks the same.
    pub fn is_missing_rcon(&self) -> bool {
        let of_restart = self.restart.as_ref().and_then(|restart| restart.policy);
        let mut policies = [Some(self.players.policy), of_restart].into_iter().flatten();
        let has_backup_schedule = self.backup.as_ref().is_some_and(|backup| backup.schedule.is_some());
        let uses_rcon = policies.any(|kind| kind != PolicyKind::Ignore)
            || has_backup_schedule
            || self.update_schedule.opportunistic.is_some();
        uses_rcon && !self.rcon.enabled
    }
}

/// The server software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Software {
    /// Paper.
    #[default]
    Paper,
    /// Purpur. It loads Paper plugins and plugins made for Purpur only.
    Purpur,
    /// Folia. It loads only plugins that declare support for Folia.
    Folia,
    /// The proxy Velocity. It has its own versions and plugins.
    Velocity,
}

impl Software {
    /// The name as written in the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paper => "Paper",
            Self::Purpur => "Purpur",
            Self::Folia => "Folia",
            Self::Velocity => "Velocity",
        }
    }
}

/// The evictions that `kubectl drain` or an autoscaler may make when the server's node is drained. When absent: `OnUpgrade` with
/// `players.policy: WaitForEmpty` if the operator may read nodes, `Always` otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Eviction {
    /// Evictions are allowed at any time. The stop itself warns players for seconds and saves.
    Always,
    /// Evictions are allowed after players had their `notice` and the world is saved. This begins when the node is cordoned or marked. Until then,
    /// evictions are rejected.
    OnUpgrade,
    /// Evictions are rejected. A user has to delete the pod.
    Never,
}

/// Consent to the Minecraft EULA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Eula {
    /// You have read the EULA and agree.
    Accepted,
}

/// How a version is chosen. Both kinds use this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateStrategy {
    /// The newest Paper. Plugins follow as far as they can. On a Plugin: the newest release that works on all matched servers.
    #[default]
    Latest,
    /// The newest Paper for which every plugin has a working release. On a Plugin: the newest release for each server.
    Auto,
    /// The given version, in its newest build.
    Pin,
    /// Exactly the given build.
    BuildPin,
}

/// The channels of Paper builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PaperChannel {
    /// For everyone. Includes recommended builds.
    #[default]
    Stable,
    /// Mostly finished builds.
    Beta,
    /// Early builds of a new Minecraft version.
    Alpha,
}

/// The handling of a required dependency that has no Plugin object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Dependencies {
    /// It is installed from the same source and shown as required.
    #[default]
    Install,
    /// It is not installed. The Plugin to create is proposed.
    Propose,
    /// It is rejected. The message names the Plugin that would have to be created.
    Forbid,
}

/// Whether a version set needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// It needs none.
    #[default]
    Automatic,
    /// It needs the annotation `nightshift.dev/approve: <digest of the lock>`.
    Required,
}

/// Whether a chosen image may change by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ImagePolicy {
    /// To the newest image with the lowest Java version that is sufficient.
    #[default]
    Follow,
    /// To the newest image with the Java version that is running. An update that needs another Java version waits.
    SameJava,
    /// It does not change. An update that needs another Java version waits.
    Keep,
}

/// Whether a hotfix sibling on a project page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum HotfixSiblings {
    /// It counts, and the answer says so.
    #[default]
    Trust,
    /// It does not count. The answer names the sibling and the setting to change.
    Ask,
}

/// The meaning of a project page that lists no Minecraft version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Unlisted {
    /// The release is assumed to work, with a warning.
    #[default]
    Assume,
    /// The release is not used, because no source states that it works.
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
