//! Pure. What Nightshift sees of a server.

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

/// What Nightshift sees of a server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaperMCServerStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What runs, `1.21.10-130`, as the server itself says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// The Minecraft version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub current_version: Option<String>,
    /// Paper's build that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_build: Option<u32>,
    /// The Minecraft version that should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub desired_version: Option<String>,
    /// Paper's build that should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_build: Option<u32>,
    /// Digest of the lock that runs: 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub lock: Option<String>,
    /// What the next window brings, `ViaVersion 5.6.0 -> 5.7.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub update: Option<String>,
    /// When the next window opens, for people: `Sun 22 Nov 04:00 CET`, with `or when empty` where that is enough; or what it waits for, `waits for staging`. No date column: one in the future prints `<invalid>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub next_window: Option<String>,
    /// When the next window opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_window_at: Option<Timestamp>,
    /// When it is restarted by the clock next, for people, or `now`; with `kubectl get -o wide`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub next_restart: Option<String>,
    /// When it is restarted by the clock next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_restart_at: Option<Timestamp>,
    /// The plugins that keep Paper from being newer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub held_by: Option<String>,
    /// The newer Paper that is held back, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_blocked: Option<UpdateBlocked>,
    /// The plugins, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub plugins: Vec<PluginState>,
    /// The JARs in `plugins` that are not managed here, by file; of more than 100 first those that nobody vouches for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["file"]))]
    pub unmanaged: Vec<UnmanagedFile>,
    /// The update that is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_update: Option<AvailableUpdate>,
    /// The last update that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update: Option<LastUpdate>,
    /// The sets that ran here, the one that runs first. Their locks are kept, and `nightshift.dev/rollback-to` brings them back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["lock"]))]
    pub history: Vec<HistoryEntry>,
    /// How the server stopped last, by its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stop: Option<StopSeen>,
    /// How often its process has ended with an error lately, and whether it is stopped for that; None: not within the last hour, in this pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<CrashStatus>,
    /// The copies of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupStatus>,
    /// The plugins' data that were kept before the set changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_data: Option<PluginDataStatus>,
    /// Requests by annotation that were served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled: Option<HandledRequests>,
    /// What the channels, the server's own and those of the cluster, are told and were told lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["occasion", "about"]))]
    pub notices: Vec<NotificationState>,
    /// What the rollout must remember should its `StatefulSet` be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutFacts>,
    /// What every answer about this server rests on beside the specs; `resolver explain server/NAME` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<AnswerBasis>,
    /// Players, as of the last write of this status; nothing is written for it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    /// For `kubectl scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// For `kubectl scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub selector: Option<String>,
    /// `Ready`, `Resolved`, `UpdateAvailable`, `UpdateBlocked`, `Updating`; and, when there is something to say, `BackupReady`, `BackupCronValid`, `ArtifactsReady`, `ImagesPulled`, `PinnedToSet`, `Scoped`, `ApprovalNeeded`, `WaitingForLeaderServer`, `Draining`, `Suspended`, `NoUsableWindow`, `RestoreRequested`, `RestoredFrom`, `Drifted`, `CrashLoop`, `WorldDamaged`, `DuplicatePluginName`, `JarsDisplaced`, `AgentRejectsRequests`, `RconExposed`, `NotifyFailed`, `Reconciled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_of_a_server")]
    pub conditions: Vec<Condition>,
}

/// One plugin of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginState {
    /// The name people know.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// The Plugin object that asks for it; absent for a dependency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub plugin: Option<String>,
    /// The plugin that needs it, when nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub needed_by: Option<String>,
    /// What runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub current_version: Option<String>,
    /// What should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub desired_version: Option<String>,
    /// Where it stands.
    pub state: PluginStateKind,
}

/// Where a plugin stands on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PluginStateKind {
    /// It runs as it should.
    Installed,
    /// It comes with the next window.
    PendingInstall,
    /// Another version comes with the next window.
    PendingUpdate,
    /// Its JAR goes with the next window.
    PendingRemoval,
    /// Strategy `latest`: Paper went on, and no release of it works there.
    Unfollowed,
}

/// The update that is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableUpdate {
    /// Digest of its lock.
    #[schemars(schema_with = "schema::text64")]
    pub digest: String,
    /// Minecraft.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// Paper's build.
    pub build: u32,
    /// The world cannot go back afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
    /// What changes, in words.
    #[schemars(schema_with = "schema::text1024")]
    pub summary: String,
    /// When it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub found_at: Option<Timestamp>,
    /// The plugins it changes, and to what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub plugins: Vec<PlannedPlugin>,
    /// How long the server is down for it, and how long for the copy before it, as far as that can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub cost: Option<String>,
    /// Which image of it the server's node could not pull, and why. The server is not stopped for it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub image_problem: Option<String>,
    /// All its files lie on the server's volume, verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
}

/// A plugin that an update changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPlugin {
    /// The name people know.
    #[schemars(schema_with = "schema::text64")]
    pub name: String,
    /// What it will be.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
}

/// An update that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastUpdate {
    /// When it was proven or kept unproven, rolled back, or failed.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub applied_at: Timestamp,
    /// What ran before, `1.21.9-122`. Of one that went back: what was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub previous_version: Option<String>,
    /// What runs since, `1.21.10-130`. Of one that failed: what was tried, until it goes back.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// Whether it was kept.
    pub successful: bool,
    /// It was kept, and is not proven: the message says what could not be read, or is not as it should be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// It was not kept, and what ran before is not up again yet. False while a set that failed waits for a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub going_back: bool,
    /// What happened, in words.
    #[schemars(schema_with = "schema::text1024")]
    pub message: String,
    /// How long the server was down for it, in seconds, with the copy before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_seconds: Option<u32>,
    /// How many players were on when the server was stopped for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
}

/// How a server stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopSeen {
    /// When its process was gone, or was there last if nobody saw it go.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
    /// Whether it had confirmed before that everything is saved, or its log says so of the stop. False: nobody knows.
    pub saved: bool,
    /// What asked for the stop, and what went wrong if anything did.
    #[schemars(schema_with = "schema::text1024")]
    pub why: String,
    /// How many players were on when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    /// When it is known to have saved everything last. It also saves by itself, and says nothing of that. Left out: no save is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub saved_at: Option<Timestamp>,
}

/// A set that ran here and was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Digest of its lock: 64 hex digits.
    #[schemars(schema_with = "schema::text64")]
    pub lock: String,
    /// Its Paper, `1.21.10-130`.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// When it was proven last; of one that is not, when it was kept.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub settled_at: Timestamp,
    /// It is not proven: something could not be read, or is not as it should be. Goes when a later look at it while it runs proves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// How long the server was down when it came, in seconds, without the copy before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_seconds: Option<u32>,
    /// How many players were on when the server was stopped for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
}

/// Values of request annotations that were served. The annotations themselves are never removed by us: git would put
/// them back, and they would run again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandledRequests {
    /// Of `nightshift.dev/apply-now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub apply_now: Option<String>,
    /// Of `nightshift.dev/apply-now` too: came in time and is being served. Both keep the whole value, with its scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub apply_now_accepted: Option<String>,
    /// Of `nightshift.dev/backup-now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub backup_now: Option<String>,
    /// Of `nightshift.dev/backup-now` too: came in time and is being served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub backup_now_accepted: Option<String>,
    /// Of `nightshift.dev/apply`, for as long as it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub apply: Option<String>,
    /// When that was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub apply_seen_at: Option<Timestamp>,
    /// Of `nightshift.dev/rollback-to`, for as long as it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text253")]
    pub rollback_to: Option<String>,
    /// The set that it named when it was first seen: `previous` means another one afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub rollback_digest: Option<String>,
    /// When that was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub rollback_seen_at: Option<Timestamp>,
    /// Of `nightshift.dev/restore-from`, for as long as it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreHandled>,
}

/// Copy of the facts on the `StatefulSet`, for one that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutFacts {
    /// The last revision that passed its proof, or was kept unproven: 16 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub settled: Option<String>,
    /// The world format of its Minecraft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_world: Option<u32>,
    /// Revisions that failed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 64)))]
    pub failed: Vec<String>,
}

/// A newer Paper that is held back, or a whole set that does not come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateBlocked {
    /// Whether one is.
    pub blocked: bool,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text1024")]
    pub reason: Option<String>,
    /// Who holds Paper back, the first 10; nobody where two files of one plugin name keep the whole set away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub blocked_by: Vec<BlockedBy>,
}

/// A plugin that holds Paper back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// The name people know.
    #[schemars(schema_with = "schema::text64")]
    pub plugin: String,
    /// The release that was looked at.
    #[schemars(schema_with = "schema::text64")]
    pub version: String,
    /// The Minecraft versions its page lists: the newest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 64)))]
    pub supported_versions: Vec<String>,
}

/// What every answer about a server rests on beside the specs: what runs by the last proven lock, and how old its world is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerBasis {
    /// The newest Minecraft that opened its world: never below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub floor: Option<String>,
    /// The Minecraft version that runs; what comes next is chosen beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text64")]
    pub version: Option<String>,
    /// Paper's build that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<u32>,
    /// The releases that run, by the ids that their sources give them; the longest is `sha256:` and 64 digits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 80)))]
    pub releases: Vec<String>,
    /// The projects of those that nobody asked for, `modrinth/vault`: they run because something needs them. The first 60.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 60), inner(length(max = 128)))]
    pub unasked: Vec<String>,
    /// What the releases that run are called, `modrinth/vault 1.7.3`: a page that has lost one says it no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 192)))]
    pub versions: Vec<String>,
    /// Those of them that their pages have lost, as far as they are known: they may be kept. The first 4.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub lost: Vec<DelistedReleaseStatus>,
    /// The image that runs, when it was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub running_image: Option<String>,
    /// The Java of the image that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// The image, when it is neither the server's own wish nor chosen by the Java that Paper needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
}

/// A release that runs and that its page has lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DelistedReleaseStatus {
    /// Where it came from, `modrinth/vault`.
    #[schemars(length(max = 128))]
    pub project: String,
    /// The id that its source gave it.
    #[schemars(length(max = 80))]
    pub release: String,
    /// What it is called.
    #[schemars(length(max = 192))]
    pub version: String,
    /// The Java that it needs at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
    /// The projects that came for it, by the ids of its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 128)))]
    pub needs: Vec<String>,
    /// Its files.
    #[schemars(length(max = 4))]
    pub files: Vec<DelistedFileStatus>,
}

/// A file of a release that its page has lost. It lies on the server's volume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DelistedFileStatus {
    /// Its name in `plugins/`.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Where it was downloaded.
    #[schemars(length(max = 384))]
    pub url: String,
    /// Its size in bytes, where the source said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size: Option<i64>,
    /// `sha256:<hex>` or `sha512:<hex>`.
    #[schemars(length(max = 144))]
    pub hash: String,
}
