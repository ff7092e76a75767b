//! Pure. Defines the status of a server.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup::{BackupStatus, RestoreHandled};
use super::crash_loop::CrashStatus;
use super::notify::NotificationState;
use super::plugin_data::PluginDataStatus;
use super::unmanaged_jars::UnmanagedFile;
use crate::schema;

/// The observed state of a server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaperMCServerStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// The running Paper version, such as `1.21.10-130`, as reported by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// The running Minecraft version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub current_version: Option<String>,
    /// The running Paper build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_build: Option<u32>,
    /// The desired Minecraft version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub desired_version: Option<String>,
    /// The desired Paper build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_build: Option<u32>,
    /// The digest of the running lock: 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub lock: Option<String>,
    /// The changes that the next maintenance window applies, such as `ViaVersion 5.6.0 -> 5.7.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub update: Option<String>,
    /// When the next maintenance window opens, as text for users, such as `Sun 22 Nov 04:00 CET`. `or when empty` is appended where an empty server
    /// is sufficient. If the update waits, the reason is shown instead, such as `waits for staging`. This is not a date column, because a date in
    /// the future prints `<invalid>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub next_window: Option<String>,
    /// The time at which the next maintenance window opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_window_at: Option<Timestamp>,
    /// When the next scheduled restart happens, as text for users, or `now`. Shown by `kubectl get -o wide`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub next_restart: Option<String>,
    /// The time of the next scheduled restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_restart_at: Option<Timestamp>,
    /// The plugins that block a newer Paper version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub held_by: Option<String>,
    /// The newer Paper version that is blocked, and the plugins that block it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_blocked: Option<UpdateBlocked>,
    /// The plugins of the server, by name. At most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub plugins: Vec<PluginState>,
    /// The unmanaged JARs in `plugins`, by file name. At most 100, untrusted JARs first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["file"]))]
    pub unmanaged: Vec<UnmanagedFile>,
    /// The planned update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_update: Option<AvailableUpdate>,
    /// The last update that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<LastUpdate>,
    /// The version sets that ran on this server, the running one first. At most 20. Their locks are kept, and `nightshift.dev/rollback-to` restores
    /// one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["lock"]))]
    pub history: Vec<HistoryEntry>,
    /// The last stop of the server, as reported by its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stop: Option<ObservedStop>,
    /// How often the process has recently exited with an error or was restarted because it hung, and whether the server is stopped for it. Absent if
    /// that did not happen within the last hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<CrashStatus>,
    /// The backups of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupStatus>,
    /// The plugin data that was saved before the last change of the version set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_data: Option<PluginDataStatus>,
    /// The annotation requests that were handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled: Option<HandledRequests>,
    /// The pending and recently delivered notifications to the channels of the server and of the cluster. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["event", "about"]))]
    pub notices: Vec<NotificationState>,
    /// The facts that the rollout needs if its StatefulSet is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutFacts>,
    /// The facts, besides the specs, that every answer about this server is based on. `resolver explain server/NAME` reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<AnswerBasis>,
    /// The number of online players at the last write of this status. It does not cause a write of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    /// The number of replicas, for `kubectl scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The label selector of the pod, for `kubectl scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub selector: Option<String>,
    /// The conditions of the server. Always present: `Ready`, `Resolved`, `UpdateAvailable`, `UpdateBlocked` and `Updating`. Present when they
    /// apply: `BackupReady`, `BackupCronValid`, `ArtifactsReady`, `ImagesPulled`, `PinnedToSet`, `PartialUpdate`, `ApprovalNeeded`,
    /// `WaitingForLeaderServer`, `Draining`, `Suspended`, `NoUsableWindow`, `RestoreRequested`, `RestoredFrom`, `Drifted`, `CrashLoop`,
    /// `WorldDamaged`, `PluginsEnabled`, `DuplicatePluginName`, `OtherProject`, `JarsDisplaced`, `AgentRejectsRequests`, `RconExposed`,
    /// `NotifyFailed`, `Reconciled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_of_a_server")]
    pub conditions: Vec<Condition>,
}

/// One plugin of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginState {
    /// The plugin's display name.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The Plugin object that requests the plugin. Absent for a dependency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub plugin: Option<String>,
    /// The Plugin object whose fields apply, if several request the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub decided_by: Option<String>,
    /// The plugin that requires this one. Absent if a Plugin object requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub needed_by: Option<String>,
    /// The running version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub current_version: Option<String>,
    /// The desired version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub desired_version: Option<String>,
    /// The state of the plugin. `Installed`: it runs as desired. `PendingInstall`, `PendingUpdate` and `PendingRemoval`: the next maintenance
    /// window installs, updates or removes it. `Unfollowed`: Paper was updated with strategy `latest`, and no release of the plugin works on it.
    /// `NotEnabled`: its JAR is installed, and the running server did not enable it.
    pub state: PluginStateKind,
}

/// The state of a plugin on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PluginStateKind {
    /// The plugin runs as desired.
    Installed,
    /// The next maintenance window installs the plugin.
    PendingInstall,
    /// The next maintenance window updates the plugin.
    PendingUpdate,
    /// The next maintenance window removes the plugin's JAR.
    PendingRemoval,
    /// Strategy `latest`: Paper was updated, and no release of the plugin works on it.
    Unfollowed,
    /// The plugin's JAR is installed, and the running server did not enable it.
    NotEnabled,
}

/// The planned update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableUpdate {
    /// The digest of the update's lock: 64 hex digits.
    #[schemars(schema_with = "schema::text64")]
    pub digest: String,
    /// The Minecraft version of the update.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// The Paper build of the update.
    pub build: u32,
    /// Whether the update is irreversible: the world cannot be downgraded afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
    /// The changes, as text for users.
    #[schemars(schema_with = "schema::text1024")]
    pub summary: String,
    /// The time at which the update was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub found_at: Option<Timestamp>,
    /// The plugins that the update changes, and their new versions. At most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub plugins: Vec<PlannedPlugin>,
    /// The downtime estimate, as text for users, including the backup before the update. Absent if no estimate is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub cost: Option<String>,
    /// The image of the update that the server's node could not pull, and the reason. The server is not stopped for the update until the pull
    /// succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub image_problem: Option<String>,
    /// Whether all files of the update are on the server's volume and verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
}

/// A plugin that an update changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPlugin {
    /// The plugin's display name.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The new version.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
}

/// A completed update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastUpdate {
    /// The time at which the update was verified, kept without verification, rolled back, or failed.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub applied_at: Timestamp,
    /// The previous version, such as `1.21.9-122`. After a roll-back, the version that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub previous_version: Option<String>,
    /// The version that runs since, such as `1.21.10-130`. After a failed update, the version that was tried, until the roll-back.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// Whether the update was kept.
    pub successful: bool,
    /// Whether the update was kept without verification. `message` states which check could not be made or did not pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// Whether a roll-back is in progress: the update was not kept, and the previous version is not running yet. `false` while a failed version set
    /// waits for a user's decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub going_back: bool,
    /// The result, as text for users.
    #[schemars(schema_with = "schema::text1024")]
    pub message: String,
    /// How long the server was down for the update, in seconds, including the backup before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_seconds: Option<u32>,
    /// The number of online players when the server was stopped for the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
}

/// A stop of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedStop {
    /// The time at which the process had exited, or at which it was last seen running.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// Whether the server confirmed a complete save before the stop, or its log reports the save. `false` means unknown.
    pub saved: bool,
    /// The cause of the stop, and the error if one occurred.
    #[schemars(schema_with = "schema::text1024")]
    pub why: String,
    /// The number of online players when the stop was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    /// The time of the last known complete save. Saves that the server makes by itself are not reported. Absent if no save is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub saved_at: Option<Timestamp>,
}

/// A version set that ran on this server and was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The digest of the lock: 64 hex digits.
    #[schemars(schema_with = "schema::text64")]
    pub lock: String,
    /// The Paper version of the set, such as `1.21.10-130`.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// The time of the last verification, or the time at which an unverified set was kept.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub settled_at: Timestamp,
    /// Whether the version set is unverified, because a check could not be made or did not pass. It is cleared when a later check of the running
    /// server verifies the set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// How long the server was down when the version set was applied, in seconds, without the backup before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_seconds: Option<u32>,
    /// The number of online players when the server was stopped for the version set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
}

/// The values of handled request annotations. The operator never removes the annotations themselves: git would restore them, and the requests would
/// run again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandledRequests {
    /// The last handled value of `nightshift.dev/apply-now`, complete with its scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub apply_now: Option<String>,
    /// The value of `nightshift.dev/apply-now` that was accepted in time and is in progress, complete with its scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub apply_now_accepted: Option<String>,
    /// The last handled value of `nightshift.dev/backup-now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub backup_now: Option<String>,
    /// The value of `nightshift.dev/backup-now` that was accepted in time and is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub backup_now_accepted: Option<String>,
    /// The last handled value of `nightshift.dev/reconcile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub reconcile: Option<String>,
    /// The time at which the operator looked for releases because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub reconciled_at: Option<Timestamp>,
    /// The value of `nightshift.dev/apply`, as long as the annotation is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub apply: Option<String>,
    /// The time at which the operator first observed the value of `nightshift.dev/apply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub apply_seen_at: Option<Timestamp>,
    /// The value of `nightshift.dev/rollback-to`, as long as the annotation is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub rollback_to: Option<String>,
    /// The digest of the version set that `nightshift.dev/rollback-to` named when it was first observed. Afterwards `previous` stands for another
    /// version set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub rollback_digest: Option<String>,
    /// The time at which the operator first observed the value of `nightshift.dev/rollback-to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub rollback_seen_at: Option<Timestamp>,
    /// The request of `nightshift.dev/restore-from`, as long as the annotation is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreHandled>,
    /// The time at which the operator first observed `spec.replicas: 0`, as long as the server still runs. A deadline for players counts from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub scaled_down_at: Option<Timestamp>,
}

/// A copy of the facts on the StatefulSet. It is used if the StatefulSet was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutFacts {
    /// The last stable revision, which was verified or kept without verification: 16 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub settled: Option<String>,
    /// The world format of the stable revision's Minecraft version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_world: Option<u32>,
    /// The revisions that failed on this server. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 64)))]
    pub failed: Vec<String>,
}

/// A newer Paper version that is blocked, or a whole version set that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateBlocked {
    /// Whether an update is blocked.
    pub blocked: bool,
    /// The reason, as text for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub reason: Option<String>,
    /// The plugins that block Paper. Only the first 10 are listed. Empty if two files with one plugin name block the whole version set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub blocked_by: Vec<BlockedBy>,
}

/// A plugin that blocks a newer Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// The plugin's display name.
    #[schemars(schema_with = "schema::text64")]
    pub plugin: String,
    /// The release that was checked.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// The newest Minecraft versions on the release's page. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 64)))]
    pub supported_versions: Vec<String>,
}

/// The facts, besides the specs, that every answer about a server is based on: the versions of the last verified lock, and the age of the world.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerBasis {
    /// The newest Minecraft version that has opened the world. No older version is ever chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub floor: Option<String>,
    /// The running Minecraft version, which the next choice takes into account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// The running Paper build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<u32>,
    /// The running releases, by the IDs of their sources. The longest ID is `sha256:` and 64 digits. At most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 80)))]
    pub releases: Vec<String>,
    /// The projects of running releases without a Plugin object, such as `modrinth/vault`. They run because another plugin requires them. Only the
    /// first 60 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 60), inner(length(max = 128)))]
    pub unasked: Vec<String>,
    /// The names of the running releases, such as `modrinth/vault 1.7.3`. A page no longer states the name of a delisted release. At most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 192)))]
    pub versions: Vec<String>,
    /// The running releases that no page lists any more, as far as known. They may be kept. Only the first 4 are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub lost: Vec<DelistedReleaseStatus>,
    /// The running image, if it was chosen automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub running_image: Option<String>,
    /// The Java version of the running image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// The image, if it is neither set in the spec nor chosen by the Java version that Paper needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
}

/// A running release that the page of its project no longer lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DelistedReleaseStatus {
    /// The project of the release, such as `modrinth/vault`.
    #[schemars(length(max = 128))]
    pub project: String,
    /// The ID of the running project at its source, if the project leads to another one now or could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub project_id: Option<String>,
    /// The display name of a project that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub name: Option<String>,
    /// The ID of the release at its source.
    #[schemars(length(max = 80))]
    pub release: String,
    /// The name of the release.
    #[schemars(length(max = 192))]
    pub version: String,
    /// An upper bound of the Java version that the release needs: the Java version that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// The projects that the release requires, by the IDs of its source. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 128)))]
    pub needs: Vec<String>,
    /// The files of the release. At most 4.
    #[schemars(length(max = 4))]
    pub files: Vec<DelistedFileStatus>,
}

/// A file of a delisted release. It is on the server's volume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DelistedFileStatus {
    /// The file name in `plugins/`.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The URL from which the file was downloaded.
    #[schemars(length(max = 384))]
    pub url: String,
    /// The size in bytes. Absent if the source did not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size: Option<i64>,
    /// The hash of the file: `sha256:<hex>` or `sha512:<hex>`.
    #[schemars(length(max = 144))]
    pub hash: String,
}
