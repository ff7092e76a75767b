//! Pure. What operator and agent say to each other: HTTP on the pod's port [`PORT`], JSON bodies, each request signed.
//!
//! | request | who asks | answer |
//! |---|---|---|
//! | `GET /started`, `GET /ready` | kubelet, unsigned | 200, or 503 and a sentence |
//! | `GET /v1/report` | operator | [`AgentReport`] |
//! | `POST /v1/stage` with [`FileSet`] | operator | 202; progress is in the next report |
//! | `POST /v1/announce` with [`Announce`] | operator | 202; idempotent for the same act and end. 409 with `not_now` during the flush of a copy |
//! | `POST /v1/call-off` with [`CancelAnnouncement`] | operator | 204; another act, or none, is left alone |
//! | `POST /v1/save` with [`Save`] | operator | [`Saved`] |
//! | `POST /v1/backup` with [`HotCopy`] | operator | 202; idempotent for the same request; progress is in the next report |
//! | `POST /v1/keep` with [`KeepCopy`] | operator | 204; what was said last counts |
//! | `POST /v1/players` | operator | [`PlayerCount`], asked over RCON now |
//!
//! The operator pulls nothing else; the agent pulls files from the operator's store (`GET <store>/files/<algorithm>/<hex>`).

pub mod announce;
mod backups;
pub mod damage;
pub mod hot_copy;
pub mod last_words;
pub mod loaded;
pub mod plugin_data;
pub mod restore;
#[cfg(feature = "edge")]
pub mod signature;
pub mod sizes;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use announce::{Announce, CancelAnnouncement, Place, in_the_chat};
pub use backups::{BackupFailed, BackupSeen, BackupsSeen};
use damage::DamageTold;
pub use hot_copy::{HotCopy, HotCopyOutcome, HotCopySeen, KeepCopy};
use loaded::Loaded;
use plugin_data::PluginData;
use restore::NewVolume;
pub use restore::Restored;

/// The first words of what the init container leaves behind when a volume without a world is to get that of a copy, and does not.
pub const NOT_RESTORED: &str = "NOT RESTORED: ";

/// The first words of what the init container leaves behind when it does not go on because there is no copy.
pub const NO_BACKUP: &str = "NO BACKUP: ";

/// The first words of a [`LastStop::why`] of an end that nobody asked for: a crash, a kill, or `/stop` in the game. How the process ended
/// tells which; the kubelet knows that.
pub const NOBODY_ASKED: &str = "the process ended and nobody had asked this agent";

/// The first words of a [`LastStop::why`] of an end that no agent was there to see.
pub const NOBODY_SAW: &str = "nobody saw the process end";

/// The port of the agent in each server pod; start-up and readiness probes of the server container ask here too.
pub const PORT: u16 = 8470;

/// How long a stop with its save may take where nothing else is said, in seconds: that of `agent stop` and of `spec.gracefulShutdown.timeout`.
pub const STOP_TIMEOUT_SECONDS: u64 = 300;

/// The directory on the volume that belongs to Nightshift; everything we remember there is below it.
pub const OUR_DIR: &str = ".nightshift";

/// A file's hash with the name of its algorithm, as `sha256:<hex>`, `sha512:<hex>` or `sha1:<hex>`.
///
/// Sources publish different ones (Fill and Hangar sha256, Modrinth sha1 and sha512), so the algorithm is part of the value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileHash(pub String);

/// One file that a server needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// Where it lies, relative to the server's directory: `plugins/ViaVersion-5.7.1.jar`, `cache/mojang_1.21.10.jar`.
    pub path: String,
    /// What its content must hash to.
    pub hash: FileHash,
    /// Size in bytes, when the source says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The source's own address, asked directly when no store answers at a first start.
    pub url: String,
    /// For a plugin: the name in its plugin.yml. None for server files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// For a plugin: further names that it satisfies the `depend` of others with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
}

/// All files of one lock: what the server directory is made equal to. The key `files.json` of the lock ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSet {
    /// The digest of the lock these files belong to: 64 hex digits.
    pub lock: String,
    /// The Minecraft version that will open the world.
    pub minecraft: String,
    /// Paper's build of it.
    pub build: u32,
    /// Minecraft's own number for the world format (`world_version` of `version.json` in the server's JAR), where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<u32>,
    /// The server's JAR; `PAPER_CUSTOM_JAR` points at its `path`.
    pub server: File,
    /// Files beside it that a start would otherwise fetch from the Internet (Mojang's JAR, libraries).
    #[serde(default)]
    pub support: Vec<File>,
    /// The managed plugins, ordered by path.
    #[serde(default)]
    pub plugins: Vec<File>,
}

impl FileSet {
    /// Whether it can open worlds of this data version, which the lock of this digest ran last: a world cannot go back. Where a number is
    /// missing, only those that it ran itself.
    pub fn opens(&self, data_version: Option<u32>, lock: Option<&str>) -> bool {
        match (data_version, self.data_version) {
            (Some(theirs), Some(ours)) => theirs <= ours,
            _ => lock == Some(&self.lock),
        }
    }
}

/// What the agent has seen. Nothing in it is older than `at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// When this was put together, by the clock of the pod's node.
    pub at: Timestamp,
    /// The pod this agent lives in.
    pub pod_uid: String,
    /// The server's process.
    pub server: Server,
    /// Who is on, by the last server-list ping.
    pub players: PlayerCount,
    /// Since when nobody has been on, by pings that leave no gap. None: somebody is on, nobody knows, or the agent does not count it.
    #[serde(default)]
    pub empty_since: Option<Timestamp>,
    /// The digest of the lock that the plugin directory was made equal to at this pod's start (from the volume's manifest).
    pub lock: Option<String>,
    /// Managed files whose content is not what the lock says, and files that declare a managed plugin's name.
    #[serde(default)]
    pub drift: Vec<String>,
    /// JARs in `plugins/` that are not ours, by file name.
    #[serde(default)]
    pub unmanaged: Vec<String>,
    /// The same JARs with what they are; empty from an agent that does not look into them.
    #[serde(default)]
    pub unmanaged_jars: Vec<UnmanagedJar>,
    /// JARs of people that made room for managed plugins and lie where they were moved still, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedJar>,
    /// Locks whose files all lie on the volume, verified.
    #[serde(default)]
    pub staged: Vec<String>,
    /// The staging that is under way or failed last.
    #[serde(default)]
    pub staging: Option<Staging>,
    /// The world on the volume.
    pub world: WorldSeen,
    /// The worlds and datapacks that this start has opened; None until they were looked at, or the agent does not know of them.
    #[serde(default)]
    pub loaded: Option<Loaded>,
    /// What the server's log has told of damage to the worlds; None: nothing, or the agent does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<DamageTold>,
    /// How the server stopped last.
    #[serde(default)]
    pub last_stop: Option<LastStop>,
    /// True if RCON answered on the pod's own address, where it must not.
    #[serde(default)]
    pub rcon_exposed: bool,
    /// The announcement that is running or has ended.
    #[serde(default)]
    pub announced: Option<Announce>,
    /// The copies of this server; None from one that takes none.
    #[serde(default)]
    pub backups: Option<BackupsSeen>,
    /// The plugins' data that were kept before the set changed last; None: none were, or the agent does not know of it.
    #[serde(default)]
    pub plugin_data: Option<PluginData>,
    /// What came of the order for a volume without a world; None: there was none at any start, or the agent does not know of it.
    #[serde(default)]
    pub new_volume: Option<NewVolume>,
}

/// An order to put back what a failed set has changed, for the init container. The key `restore.json` of a `ConfigMap` that it mounts.
///
/// It is obeyed by the set it names: for the worlds only if that cannot open them as they are, for the plugins' data only if nobody may
/// have played since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreOrder {
    /// The digest of the lock that comes back: 64 hex digits.
    pub to: String,
    /// The digest of the lock that failed. The copy that was taken before it is meant.
    pub failed: String,
    /// Somebody may have played since when it was ordered: the init container looks for itself, and leaves the worlds alone then. For the
    /// plugins' data it always does.
    pub unless_played: bool,
    /// False: the worlds stay as they are in any case. Not written when true: agents from before the plugins' data were kept do not
    /// know the field.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub worlds: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_true(it: &bool) -> bool {
    *it
}

/// A JAR in `plugins/` that is not ours. All of it is somebody's own text, cut to what a status takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedJar {
    /// Its name in `plugins/`.
    pub file: String,
    /// Of its bytes: 64 hex digits.
    pub sha256: String,
    /// The same in sha512, 128 hex digits; None: the agent is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// What its description calls it; None: it holds no plugin that can be read.
    #[serde(default)]
    pub name: Option<String>,
    /// The version that its description states.
    #[serde(default)]
    pub version: Option<String>,
    /// Further names that it satisfies the `depend` of others with.
    #[serde(default)]
    pub provides: Vec<String>,
    /// Names without which it does not load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depend: Vec<String>,
    /// The `api-version` that its description states: an older server refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The Java that its main class was compiled for; None: that class is not there, or the agent is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub java: Option<u32>,
}

/// A JAR of somebody's own that made room for a managed plugin. Both relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedJar {
    /// Where it lay.
    pub file: String,
    /// Where it lies now.
    pub place: String,
}

/// The server's process as the agent sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Server {
    /// No process holds the world's `session.lock` and nothing answers on the game port.
    Absent,
    /// The process lives and has not answered a ping since its start.
    Starting {
        /// When the log or the world last changed: a start that moves is not stuck.
        progress_at: Timestamp,
    },
    /// It has answered a ping since its start.
    Up {
        /// When it first answered.
        since: Timestamp,
        /// When it last answered; silence here is a tick stall or a hang.
        answered_at: Timestamp,
        /// The Minecraft version in the ping, as the server says it (`Paper 1.21.10` is cut to `1.21.10`).
        minecraft: String,
        /// Paper's build as the server's own log says it, once read.
        build: Option<u32>,
        /// Plugins of this start from the log and `bukkit:plugins`; None until both were read.
        plugins: Option<BTreeMap<String, PluginSeen>>,
    },
    /// `stop` was sent or SIGTERM seen; it has not ended yet.
    Stopping {
        /// Since when.
        since: Timestamp,
    },
}

/// One plugin as the server itself says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginSeen {
    /// From the line `Loading server plugin NAME vVERSION`.
    pub version: Option<String>,
    /// From `bukkit:plugins` (green).
    pub enabled: bool,
}

/// Who is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PlayerCount {
    /// Nobody can be asked, since then. Counts as somebody.
    Unknown {
        /// The last time an answer came.
        since: Timestamp,
    },
    /// The server said zero.
    Nobody,
    /// The server said this many.
    Some {
        /// At least 1.
        count: u32,
    },
}

impl PlayerCount {
    /// How many, if that is known.
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
    /// Which lock.
    pub lock: String,
    /// Files that lie on the volume already.
    pub done: u32,
    /// Files in all.
    pub of: u32,
    /// Why it stopped, in words for the user; None while it runs.
    pub error: Option<String>,
}

/// The world folders on the volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorldSeen {
    /// The highest Minecraft version that any `level.dat` names; None before the first start.
    pub floor: Option<Floor>,
    /// False: old and new layout side by side, a move that did not end.
    pub whole: bool,
}

/// The newest Minecraft that opened a world: it can never go below this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Floor {
    /// `Data.Version.Name` of `level.dat`.
    pub minecraft: String,
    /// `Data.Version.Id` of `level.dat`.
    pub data_version: u32,
}

/// What `last-stop.json` on the volume says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastStop {
    /// When the process was gone, or was there last if nobody saw it go.
    pub at: Timestamp,
    /// Whether `save-all flush` was confirmed by its text, or the log says that all was saved in a stop that was asked for, or that nobody saw.
    pub saved: bool,
    /// In words: what asked for the stop, and what went wrong if anything did.
    pub why: String,
    /// How many were on when it was asked for; None: nobody asked this agent, or it could not be known.
    #[serde(default)]
    pub players: Option<u32>,
    /// When all was saved last, as far as is known: the server says nothing of what it saves by itself. None also from an older agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
    /// When the process was seen first: no two have the same. None: no agent had seen it, or it is an older agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// Bring the world to the disk now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Save {
    /// How long the server may take, in seconds: longer than the worst tick stall.
    pub timeout_seconds: u32,
}

/// What came of a save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// The answer held `Saved the game`.
    pub confirmed: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What the server said instead, or why it could not be asked.
    pub problem: Option<String>,
}

/// The body of every answer that is not 2xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRefusal {
    /// What is wrong and what to do, for the operator's log and the user's condition.
    pub error: String,
    /// Where the two clocks differ by more than is accepted: by how many seconds the agent's is ahead of the operator's; below 0, behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<i64>,
    /// The fence of another operator that has taken over from the one who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Nothing is wrong: the same is done when it is asked again in a moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_now: bool,
}

impl RequestRefusal {
    /// One for a reason that is only told.
    pub fn because(error: impl Into<String>) -> Self {
        Self { error: error.into(), clock_ahead: None, fence: None, not_now: false }
    }
}
