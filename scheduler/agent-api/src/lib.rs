//! Pure. Defines the protocol between operator and agent: HTTP on the pod's port [`PORT`] with JSON bodies and signed requests.
//!
//! | request | sent by | response |
//! |---|---|---|
//! | `GET /started`, `GET /ready` | kubelet, unsigned | 200, or 503 and a sentence |
//! | `GET /v1/report` | operator | [`AgentReport`] |
//! | `POST /v1/stage` with [`FileSet`] | operator | 202, with progress in the next report |
//! | `POST /v1/announce` with [`Announce`] | operator | 202, idempotent for the same disruption and end. 409 with `not_now` during a backup's flush |
//! | `POST /v1/cancel-announcement` with [`CancelAnnouncement`] | operator | 204. Announcements of other disruptions stay |
//! | `POST /v1/save` with [`Save`] | operator | [`Saved`] |
//! | `POST /v1/backup` with [`OnlineBackupRequest`] | operator | 202, idempotent for the same request, with progress in the next report |
//! | `POST /v1/protect-backup` with [`ProtectBackup`] | operator | 204. The last request counts |
//! | `POST /v1/players` | operator | [`PlayerCount`], read over RCON now |
//!
//! The operator pulls no other data. The agent pulls files from the operator's store (`GET <store>/files/<algorithm>/<hex>`).

pub mod announce;
pub mod backup_size;
mod backups;
pub mod loaded_content;
pub mod online_backup;
pub mod plugin_data;
pub mod restore;
pub mod signature;
pub mod signed;
pub mod termination_message;
pub mod world_damage;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use announce::{Announce, AnnouncementTarget, CancelAnnouncement, in_the_chat};
pub use backups::{BackupFailed, BackupReport, BackupsReport, Contents, Trigger};
use loaded_content::Loaded;
pub use online_backup::{OnlineBackupOutcome, OnlineBackupReport, OnlineBackupRequest, ProtectBackup};
use plugin_data::PluginData;
use restore::SeedResult;
pub use restore::{Restored, space_needed};
use world_damage::DamageReport;

/// The start of the termination message when a volume without a world should be restored from a backup, and is not.
pub const NOT_RESTORED: &str = "NOT RESTORED: ";

/// The start of the termination message when the init container does not continue because a backup failed.
pub const NO_BACKUP: &str = "NO BACKUP: ";

/// The start of [`LastStop::why`] when the process ended without a requested stop: a crash, a kill, or `/stop` in the game. The exit code tells
/// which, and the kubelet knows it.
pub const UNREQUESTED_STOP: &str = "the process exited without a request to this agent";

/// The start of [`LastStop::why`] when no agent observed the end.
pub const UNOBSERVED_STOP: &str = "the exit of the process was not observed";

/// The key of a lock's files in its `ConfigMap`.
pub const FILES_KEY: &str = "files.json";

/// The port of the agent in each server pod. The startup and readiness probes of the server container use it too.
pub const PORT: u16 = 8470;

/// The default time for a stop with its save, in seconds. It applies to `agent stop` and `spec.gracefulShutdown.timeout`.
pub const STOP_TIMEOUT_SECONDS: u64 = 300;

/// The directory on the volume that belongs to Nightshift and contains all its records.
pub const NIGHTSHIFT_DIR: &str = ".nightshift";

/// A file's hash with the name of its algorithm, as `sha256:<hex>`, `sha512:<hex>` or `sha1:<hex>`.
///
/// Sources publish different ones (Fill and Hangar sha256, Modrinth sha1 and sha512), so the algorithm is part of the value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileHash(pub String);

/// Whether a server treats two plugin names as equal. It ignores case and reads blanks as underscores.
pub fn is_same_plugin(a: &str, b: &str) -> bool {
    let folded = |name: &str| name.replace(' ', "_").to_lowercase();
    folded(a) == folded(b)
}

/// One file that a server needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// Its path, relative to the server's directory: `plugins/ViaVersion-5.7.1.jar`, `cache/mojang_1.21.10.jar`.
    pub path: String,
    /// The expected hash of its content.
    pub hash: FileHash,
    /// Its size in bytes, if the source publishes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The URL at the source, used if no store answers at a first start.
    pub url: String,
    /// For a plugin: the name in its plugin.yml. `None` for server files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// For a plugin: additional names that satisfy the `depend` of other plugins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
}

/// All files of one lock, to which the server directory is made equal. Stored under the key `files.json` of the lock ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSet {
    /// The digest of the lock of these files: 64 hex digits.
    pub lock: String,
    /// The Minecraft version that will open the world.
    pub minecraft: String,
    /// Paper's build of that version.
    pub build: u32,
    /// Minecraft's own number for the world format (`world_version` of `version.json` in the server's JAR), if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<u32>,
    /// The server's JAR. `PAPER_CUSTOM_JAR` points at its `path`.
    pub server: File,
    /// Other files that a start would otherwise download from the Internet (Mojang's JAR, libraries).
    #[serde(default)]
    pub support: Vec<File>,
    /// The managed plugins, ordered by path.
    #[serde(default)]
    pub plugins: Vec<File>,
}

impl FileSet {
    /// The digest of all these files with their addresses and names: 64 hex digits. The pod template names it, so a `ConfigMap` with other files
    /// does not count. It includes [`FileSet::lock`], and so the lock.
    #[expect(clippy::missing_panics_doc, reason = "no field of it can fail to serialise")]
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(serde_json::to_vec(self).expect("a file set has string keys only")))
    }

    /// Whether it can open worlds of this data version, which the lock with this digest ran last. Worlds cannot be converted back. If a number is
    /// missing, it opens only worlds that it ran itself.
    pub fn can_open(&self, data_version: Option<u32>, lock: Option<&str>) -> bool {
        match (data_version, self.data_version) {
            (Some(world_version), Some(own_version)) => world_version <= own_version,
            _ => lock == Some(&self.lock),
        }
    }
}

/// The agent's report. No part of it is older than `at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// When the report was created, by the clock of the pod's node.
    pub at: Timestamp,
    /// The UID of the agent's pod.
    pub pod_uid: String,
    /// The server's process.
    pub server: Server,
    /// The players online, by the last server-list ping.
    pub players: PlayerCount,
    /// Since when the server has been empty, by pings without a gap. `None`: players are online, the count is unknown, or the agent does not
    /// track it.
    #[serde(default)]
    pub empty_since: Option<Timestamp>,
    /// The digest of the lock that the plugin directory was made equal to at this pod's start (from the volume's manifest).
    pub lock: Option<String>,
    /// Managed files whose content differs from the lock, and files that declare a managed plugin's name.
    #[serde(default)]
    pub drift: Vec<String>,
    /// Unmanaged JARs in `plugins/`, by file name.
    #[serde(default)]
    pub unmanaged: Vec<String>,
    /// The same JARs with their descriptions. Empty from an agent that does not read them.
    #[serde(default)]
    pub unmanaged_jars: Vec<UnmanagedJar>,
    /// Unmanaged JARs that were displaced by managed plugins and still exist at their new path, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedJar>,
    /// Locks whose files are all on the volume, verified.
    #[serde(default)]
    pub staged: Vec<String>,
    /// The staging in progress, or the last one that failed.
    #[serde(default)]
    pub staging: Option<Staging>,
    /// The world on the volume.
    pub world: WorldReport,
    /// The worlds and datapacks that this start has opened. `None` until they were checked, or if the agent does not support it.
    #[serde(default)]
    pub loaded: Option<Loaded>,
    /// The damage to worlds that the server's log reports. `None`: no damage, or the agent does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<DamageReport>,
    /// The server's last stop.
    #[serde(default)]
    pub last_stop: Option<LastStop>,
    /// True if RCON answered on the pod's own address, where it must not.
    #[serde(default)]
    pub rcon_exposed: bool,
    /// The announcement that is running or has ended.
    #[serde(default)]
    pub announced: Option<Announce>,
    /// The backups of this server. `None` from a server without backups.
    #[serde(default)]
    pub backups: Option<BackupsReport>,
    /// The plugins' data that was saved before the last change of the version set. `None`: no data was saved, or the agent does not support it.
    #[serde(default)]
    pub plugin_data: Option<PluginData>,
    /// The result of the restore request for a volume without a world. `None`: no start had one, or the agent does not support it.
    #[serde(default)]
    pub new_volume: Option<SeedResult>,
}

/// A request to revert the changes of a failed version set, for the init container. Stored under the key `restore.json` of a `ConfigMap` that it
/// mounts.
///
/// It is executed by the version set it names. The worlds are restored only if that version set cannot open them as they are. The plugins' data
/// is restored only if nobody may have played since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreRequest {
    /// The digest of the lock to return to: 64 hex digits.
    pub to: String,
    /// The digest of the lock that failed. The backup that was taken before it is restored.
    pub failed: String,
    /// Whether players may have been online when the request was written. The init container then checks itself, and keeps the worlds if players
    /// were online. For the plugins' data it always checks.
    pub unless_played: bool,
    /// False: the worlds stay as they are in any case. Not written when true, because agents from before plugin data was supported do not know
    /// the field.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub worlds: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

/// An unmanaged JAR in `plugins/`. All fields are untrusted text, cut to the length that a status allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedJar {
    /// Its file name in `plugins/`.
    pub file: String,
    /// The SHA-256 of its bytes: 64 hex digits.
    pub sha256: String,
    /// The same in sha512, 128 hex digits. `None`: the agent is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// The plugin name in its description. `None`: it contains no readable plugin.
    #[serde(default)]
    pub name: Option<String>,
    /// The version in its description.
    #[serde(default)]
    pub version: Option<String>,
    /// Additional names that satisfy the `depend` of other plugins.
    #[serde(default)]
    pub provides: Vec<String>,
    /// Names without which it does not load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depend: Vec<String>,
    /// The `api-version` in its description, as the server reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Whether its description is a `paper-plugin.yml`. Other rules apply to its `api-version`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paper_plugin: bool,
    /// The Java version for which its main class was compiled. `None`: that class is missing, or the agent is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
}

/// An unmanaged JAR that was displaced by a managed plugin. Both paths are relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedJar {
    /// The original path.
    pub file: String,
    /// The current path.
    pub place: String,
}

/// The server's process, as the agent observes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Server {
    /// No process holds the world's `session.lock`, and the game port does not answer.
    Absent,
    /// The process is running and has not answered a ping since its start.
    Starting {
        /// When the log or the world last changed: a start with progress is not stuck.
        progress_at: Timestamp,
    },
    /// It has answered a ping since its start.
    Up {
        /// When it first answered.
        since: Timestamp,
        /// When it last answered. A long silence is a tick stall or a hang.
        answered_at: Timestamp,
        /// Since when its console has not answered, although it still answers pings: its main thread hangs. `None` while the console answers, and
        /// for a server without RCON.
        hangs_since: Option<Timestamp>,
        /// The Minecraft version in the ping (`Paper 1.21.10` is cut to `1.21.10`).
        minecraft: String,
        /// Paper's build from the server's own log, once it is read.
        build: Option<u32>,
        /// The plugins of this start from the log and `bukkit:plugins`. `None` until both were read.
        plugins: Option<BTreeMap<String, PluginReport>>,
    },
    /// The preStop hook has prepared its stop, or SIGTERM was received, and it has not ended yet.
    Stopping {
        /// When it began to stop.
        since: Timestamp,
    },
}

/// One plugin, as the server reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginReport {
    /// From the line `Loading server plugin NAME vVERSION`.
    pub version: Option<String>,
    /// From `bukkit:plugins` (green).
    pub enabled: bool,
}

/// The players online.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PlayerCount {
    /// The server cannot be asked. Counts as players online.
    Unknown {
        /// When the last answer arrived.
        since: Timestamp,
    },
    /// The server reported zero.
    Nobody,
    /// The server reported this many.
    Some {
        /// At least 1.
        count: u32,
    },
}

impl PlayerCount {
    /// The number of players, if it is known.
    pub const fn count(self) -> Option<u32> {
        match self {
            Self::Unknown { since: _ } => None,
            Self::Nobody => Some(0),
            Self::Some { count } => Some(count),
        }
    }
}

/// A download of one lock's files to the volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Staging {
    /// The digest of the lock.
    pub lock: String,
    /// The number of files that are already on the volume.
    pub done: u32,
    /// The total number of files.
    pub of: u32,
    /// Why it stopped, as text for the user. `None` while it runs.
    pub error: Option<String>,
}

/// The world folders on the volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorldReport {
    /// The highest Minecraft version in any `level.dat`. `None` before the first start.
    pub floor: Option<Floor>,
    /// False: the old and new layout exist side by side, because a move did not finish.
    pub whole: bool,
}

/// The newest Minecraft that opened a world. No older one can open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Floor {
    /// `Data.Version.Name` of `level.dat`.
    pub minecraft: String,
    /// `Data.Version.Id` of `level.dat`.
    pub data_version: u32,
}

/// The content of `last-stop.json` on the volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastStop {
    /// When the process had ended, or when it was last observed if its end was not.
    pub at: Timestamp,
    /// Whether all worlds were saved. Either `save-all flush` was confirmed by its answer, or the log shows a save in a stop that was requested
    /// or not observed.
    pub saved: bool,
    /// The reason as text: who requested the stop, and any error.
    pub why: String,
    /// How many players were online when it was requested. `None`: no stop was requested from this agent, or the number was unknown.
    #[serde(default)]
    pub players: Option<u32>,
    /// The last known save of all worlds: the server does not log its automatic saves. `None` also from an older agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
    /// When the process was first observed, which is unique to it. `None`: no agent had observed it, or the agent is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// A request to save the world to disk now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Save {
    /// The timeout in seconds. It is longer than the worst tick stall.
    pub timeout_seconds: u32,
}

/// The result of a save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Whether the answer contained `Saved the game`.
    pub confirmed: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The server's other answer, or why it could not be asked.
    pub problem: Option<String>,
}

/// The body of every response that is not 2xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRefusal {
    /// The error and its fix, for the operator's log and the user's condition.
    pub error: String,
    /// If the clocks differ by more than is accepted: how many seconds the agent's clock is ahead of the operator's. Below 0 it is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<i64>,
    /// The fence with which the sender's was compared: the highest one received if the sender's is lower, else the highest one that is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// No error: the same request succeeds when it is repeated shortly after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_now: bool,
}

impl RequestRefusal {
    /// A refusal with only a reason.
    pub fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), clock_ahead: None, fence: None, not_now: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_names_ignore_case_and_spaces() {
        assert!(is_same_plugin("My Plugin", "my_plugin"));
        assert!(!is_same_plugin("ViaVersion", "ViaBackwards"));
    }
}
