//! Pure. Defines the observation of a server and the goal it is compared with.
//!
//! [`crate::rollout`] decides from them.
//!
//! No type here is a stored phase. State that must survive a restart of the operator is a fact (see [`RecordedFacts`]), and a fact names every
//! condition that makes it true.

use jiff::{SignedDuration, Timestamp};

mod facts;

pub use facts::{
    Announced, BackupEstimate, DataVersion, Disruption, ObservedDrain, ParsePodUidError, ParseRevisionError, PodUid,
    RecordedFacts, RestartStarted, Revision, SavedWorld, StableSet,
};

/// The revision that should run, and how the operator may get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// The rendered pod template that should run.
    pub revision: Revision,
    /// The world format of the goal's Minecraft.
    pub world: DataVersion,
    /// How far players can delay the stop.
    pub policy: PlayerPolicy,
    /// How long players are warned before their server stops.
    pub notice: SignedDuration,
    /// The length of the countdown with no players online (`players.emptyNotice`). A longer countdown is also cut to this when nobody has been
    /// online for as long. It is not zero: a player may join between the observation and the stop, and a few chat lines are better than none. The
    /// pre-stop hook warns players who join after the countdown.
    pub empty_notice: SignedDuration,
    /// `gracefulShutdown.timeout`: how long the operator retries an agent or a server that does not answer.
    pub stop_timeout: SignedDuration,
    /// The scheduled restart of the running revision, if one is due.
    pub restart: Option<RestartDue>,
    /// Whether the pod may be evicted from a node that is drained.
    pub eviction: EvictionPolicy,
}

/// Whether a pod may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// At any time. The pre-stop hook warns players and saves the world.
    Always,
    /// After players were warned, with the same notice as before an update, and after the world was saved to disk.
    Announced,
    /// Never.
    Never,
}

/// A restart without an update that is due for the running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartDue {
    /// The instant of its schedule.
    pub due: Timestamp,
    /// After this instant, it is too late to stop the server for it.
    pub until: Timestamp,
    /// How far players can delay the restart. A deadline counts from `due`.
    pub policy: PlayerPolicy,
    /// The restart begins only while nobody is online, and is left out if that never happens.
    pub only_empty: bool,
    /// An update that begins no later than this replaces the restart. If it is not after `due`, no update does.
    pub yields_until: Timestamp,
}

/// How far players can delay a restart of their server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayerPolicy {
    /// Players are warned, and then the server stops.
    Announce,
    /// The operator waits until nobody is online. Then, or when the deadline is over, it announces the stop all the same.
    WaitForEmpty {
        /// Counted from the instant at which the window opened.
        deadline: SignedDuration,
    },
    /// The operator neither waits for players nor warns them. The pre-stop hook behaves as usual.
    Ignore,
}

/// One observation of the cluster and the server. Before a step that cannot be undone, the edge reads it live, never from a cache.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent observations")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The `StatefulSet`. `None`: Nightshift's `StatefulSet` does not exist.
    pub stateful_set: Option<StatefulSetView>,
    /// The pod. `None`: no pod exists.
    pub pod: Option<PodView>,
    /// The players online, as the agent of this pod reports them.
    pub players: Players,
    /// Since when the server of this pod has reported, without a gap, that nobody is online. `None`: somebody is, or it is not known.
    pub empty_since: Option<Timestamp>,
    /// The verification of this pod.
    pub verification: Verification,
    /// The world on the volume.
    pub world: WorldState,
    /// The node that the pod is on.
    pub node: NodeState,
    /// The files of the goal are on the volume, verified.
    pub staged: bool,
    /// The images of the goal, on the node of the current pod.
    pub images: ImagesOnNode,
    /// The request that makes the stable revision restore the plugins' data is written. Callers that keep no plugin data set this to true: they
    /// have no request to write and no reason to wait.
    pub data_restore_requested: bool,
    /// A user requested to replace the worlds on the volume with those of a backup. The stable revision can open them, and the restore request is
    /// not written yet.
    pub user_restore_requested: bool,
    /// The process of the stable revision has ended with an error repeatedly, and may do so again.
    pub crash_loop: bool,
    /// Whether the agent of this pod knows the recorded announcement.
    pub agent_memory: AgentMemory,
    /// The recorded facts.
    pub facts: RecordedFacts,
}

impl Observation {
    /// The announcement of this disruption to the current pod, if any.
    pub fn announced(&self, disruption: Disruption) -> Option<Announced> {
        let pod = self.pod?;
        self.facts.announced.filter(|recorded| recorded.act == disruption && recorded.pod == pod.uid)
    }

    /// The format that the worlds have, or that the current pod's server may convert them to at any moment. No older Minecraft can open them.
    pub fn world_floor(&self) -> DataVersion {
        self.pod.map_or(self.world.floor, |pod| self.world.floor.max(pod.world))
    }

    /// Since when the node of the current pod has been marked for draining, if that is recorded.
    pub fn draining_since(&self) -> Option<Timestamp> {
        let pod = self.pod?;
        self.facts.draining.filter(|recorded| recorded.pod == pod.uid).map(|recorded| recorded.since)
    }

    /// Whether the current pod was created after a scheduled restart and is not verified yet.
    pub fn is_restarted(&self) -> bool {
        let another = |pod: PodView| self.facts.restarted.is_some_and(|restarted| restarted.pod != pod.uid);
        self.pod.is_some_and(another)
    }
}

/// The `StatefulSet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatefulSetView {
    /// The hash of the actual `spec.template`, including fields of other managers. It is never read from an annotation.
    pub template: Revision,
    /// The revision behind `status.currentRevision`. A lost pod is recreated with it while the partition is closed.
    pub current: Revision,
    /// The revision behind `status.updateRevision`.
    pub update: Revision,
    /// Whether `status.observedGeneration` is the newest one. Otherwise `current == update` is about the previous template.
    pub observed: bool,
    /// The partition.
    pub partition: Partition,
    /// `replicas: 0`, whoever set it.
    pub scaled_to_zero: bool,
}

/// The partition of the rolling update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partition {
    /// `partition: 1`: a lost pod is recreated with [`StatefulSetView::current`], whatever the template contains.
    Closed,
    /// `partition: 0`: the controller replaces a pod that does not match the template.
    Open,
}

/// The current pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodView {
    /// Its UID. A later pod of the same name has another one.
    pub uid: PodUid,
    /// The template it was created from.
    pub revision: Revision,
    /// The world format of its Minecraft.
    pub world: DataVersion,
    /// The phase of its server.
    pub phase: PodPhase,
}

/// Whether the node of a pod is to be drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Nodes cannot be read, or have not been read yet. In this state no drain begins or ends.
    Unknown,
    /// The node is not to be drained, or the pod is not on a node.
    NotDraining,
    /// The node is cordoned, or an autoscaler has marked it.
    Draining,
}

/// Whether the agent of a pod knows the recorded announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentMemory {
    /// The agent is counting it down, has done so, or cannot be reached. Also when no announcement is recorded.
    Known,
    /// The agent is counting down another announcement or none: the agent that received this one has restarted.
    Forgotten,
}

/// Whether the node of the current pod has the images of the goal. A node without them pulls them while the server is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImagesOnNode {
    /// The node has them all, or no pod is on a node that would need them.
    Present,
    /// The node is being asked, or is pulling them.
    Pulling,
    /// The last attempt to pull one failed. This stays until an attempt succeeds.
    Failed,
    /// The node cannot be asked, for a reason unrelated to the images. Missing images are pulled while the server is down.
    Unknown,
}

/// The phase of the server in a pod. It is independent of players: a server whose ping is late is still [`PodPhase::Up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// The cluster has not run the server yet: its pod has no node, no volume or no image. No process has ever run in this pod, so this says
    /// nothing about its revision, and no deadline counts.
    Pending,
    /// The pod has never been Ready.
    Starting {
        /// Moves on as long as the log or the world folder changes, because a start with progress is not stuck.
        deadline: Timestamp,
    },
    /// The pod has been Ready, and the server process is running.
    Up,
    /// The pod has been Ready, and the server process is not running: it crashed in place.
    Down,
    /// The init container refuses to open the world, and has written the reason.
    Refused,
    /// The pod is being deleted.
    Stopping {
        /// The end of the grace period plus one minute. The node of a pod that stops for longer is considered lost.
        overdue_at: Timestamp,
    },
}

/// The players online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Players {
    /// The agent *or* the server does not answer. Counts as players online.
    Unknown {
        /// When the last answer arrived.
        since: Timestamp,
    },
    /// The server reports zero players.
    Nobody,
    /// The server reports this many players, at least one.
    Some(u32),
    /// The server answers, and its ping does not contain a count. Counts as players online.
    Hidden,
}

impl From<agent_api::PlayerCount> for Players {
    fn from(count: agent_api::PlayerCount) -> Self {
        match count {
            agent_api::PlayerCount::Unknown { since } => Self::Unknown { since },
            agent_api::PlayerCount::Nobody | agent_api::PlayerCount::Some { count: 0 } => Self::Nobody,
            agent_api::PlayerCount::Some { count } => Self::Some(count),
        }
    }
}

/// The verification of the observed pod. It always ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Not decided yet.
    Pending {
        /// When it is decided at the latest. A server that crash-loops after its first Ready has no start deadline any more, so the verification
        /// needs its own.
        until: Timestamp,
    },
    /// Version, plugins, worlds and datapacks matched the expectation for the whole settling time.
    Passed,
    /// Some result could not be read. The revision is kept, and the operator reports it.
    Inconclusive,
    /// Some result is worse than before.
    Failed,
}

/// The world on the volume, and the state of its backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldState {
    /// The newest format of any world on the volume. No Minecraft below it is ever started.
    pub floor: DataVersion,
    /// False: the old and new layout exist side by side, because a move did not finish.
    pub whole: bool,
    /// The format of the offline backup that the init container took before the candidate revision first opened the world.
    pub backup: Option<DataVersion>,
    /// Whether players were online since that backup.
    pub played_since: bool,
    /// A restore is requested for the stable revision. Callers that take no offline backups set this to true: they have no request to write and
    /// no reason to wait.
    pub restore_requested: bool,
}
