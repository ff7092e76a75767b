//! Pure. What one look at a server finds, and what should run there instead. Decided upon in [`crate::rollout`].
//!
//! Nothing in here is a phase. What must survive a restart of the operator is a fact (see [`RecordedFacts`]), and a fact names
//! everything that makes it true.

use jiff::{SignedDuration, Timestamp};

mod facts;

pub use facts::{
    Announced, BackupEstimate, DataVersion, Disruption, DrainSeen, ParsePodUidError, ParseRevisionError, PodUid,
    RecordedFacts, RestartStarted, Revision, SavedWorld, StableSet,
};

use crate::protocol;

/// What should run, and how politely we get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// The rendered pod template that should run.
    pub revision: Revision,
    /// The world format of the goal's Minecraft.
    pub world: DataVersion,
    /// How much the players have a say.
    pub policy: PlayerPolicy,
    /// How long players are warned before their server stops.
    pub notice: SignedDuration,
    /// How long the countdown is with nobody on (`players.emptyNotice`), and how much is left of a longer one when nobody has been on for as
    /// long. Not zero: between the look and the stop somebody may join, and a few lines in the chat are better than none.
    /// Whoever joins when it is over is warned by the hook that stops the server.
    pub empty_notice: SignedDuration,
    /// `gracefulShutdown.timeout`: how long we keep asking an agent or a server that does not answer.
    pub patience: SignedDuration,
    /// A restart of what runs, by the clock, where one is due.
    pub restart: Option<RestartDue>,
    /// Whether the pod may be evicted from a node that is to be emptied.
    pub eviction: EvictionSeen,
}

/// Whether a pod may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionSeen {
    /// At any time. The hook that stops the server warns and saves.
    Always,
    /// When players were told, in the time that they have before an update, and the world is on the disk.
    Announced,
    /// Not at all.
    Never,
}

/// A restart without an update that is due for the server that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartDue {
    /// The instant of its schedule.
    pub due: Timestamp,
    /// When it is too late to stop the server for it.
    pub until: Timestamp,
    /// How much the players have a say in it; a deadline counts from `due`.
    pub policy: PlayerPolicy,
    /// It is begun only while nobody is on, and left out if that does not come.
    pub only_empty: bool,
    /// An update that begins no later than this is this restart. Not after `due`: none is.
    pub gives_way_until: Timestamp,
}

/// How much the players have a say in when their server restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayerPolicy {
    /// They are told, and then it happens.
    Announce,
    /// Wait until nobody is on; then, or when the deadline is over, announce all the same.
    WaitForEmpty {
        /// Counted from the instant the window opened.
        deadline: SignedDuration,
    },
    /// Nobody is asked or told by us. What the stopping hook does is its own matter.
    Ignore,
}

/// One look at the world. Before a step that cannot be undone the edge reads it live, never from a cache.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each of them is a fact of its own, and any of them goes with any other"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// None: there is no `StatefulSet` of ours.
    pub set: Option<StatefulSetView>,
    /// None: there is no pod.
    pub pod: Option<PodView>,
    /// Who is on, by the agent of this pod.
    pub players: Players,
    /// Since when the server of this pod has said, without a gap, that nobody is on. None: somebody is, or nobody knows.
    pub empty_since: Option<Timestamp>,
    /// The proof of this pod.
    pub verdict: Verification,
    /// The world on the volume.
    pub world: WorldState,
    /// The node that the pod is on.
    pub node: NodeState,
    /// The files of the goal lie on the volume, verified.
    pub staged: bool,
    /// The images of the goal, on the node of the pod of now.
    pub images: ImagesOnNode,
    /// The order under which the settled revision puts the plugins' data back stands. Whoever kept none says true: there is nothing to
    /// order, and nothing to wait for.
    pub data_ordered: bool,
    /// A person wants the worlds of a copy in the place of those on the volume. What is settled can open them, and the order for it is still
    /// to be given.
    pub copy_asked: bool,
    /// The process of what settled has ended with an error again and again, and still may.
    pub crash_loop: bool,
    /// Whether the agent of this pod knows what was announced.
    pub agent_memory: AgentMemory,
    /// What is remembered.
    pub facts: RecordedFacts,
}

impl Observation {
    /// What was announced to the pod of now about this act.
    pub fn told(&self, act: Disruption) -> Option<Announced> {
        let pod = self.pod?;
        self.facts.announced.filter(|it| it.act == act && it.pod == pod.uid)
    }

    /// The format that the worlds have, or may be brought to at any moment by the server that is there: nothing older can open them.
    pub fn least_world(&self) -> DataVersion {
        self.pod.map_or(self.world.floor, |pod| self.world.floor.max(pod.world))
    }

    /// Since when the node of the pod of now has been marked, as far as that is recorded.
    pub fn draining_since(&self) -> Option<Timestamp> {
        let pod = self.pod?;
        self.facts.draining.filter(|it| it.pod == pod.uid).map(|it| it.since)
    }

    /// The pod of now came after a restart by the clock, and has not proven itself yet.
    pub fn is_restarted(&self) -> bool {
        let another = |pod: PodView| self.facts.restarted.is_some_and(|restarted| restarted.pod != pod.uid);
        self.pod.is_some_and(another)
    }
}

/// The `StatefulSet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatefulSetView {
    /// The hash of what *stands* in `spec.template`, foreign fields included; never an annotation of ours.
    pub template: Revision,
    /// The revision behind `status.currentRevision`: what a lost pod comes back as while the door is closed.
    pub current: Revision,
    /// The revision behind `status.updateRevision`.
    pub update: Revision,
    /// `status.observedGeneration` is the newest one. Without it, `current == update` speaks about the template before.
    pub observed: bool,
    /// The partition.
    pub door: Partition,
    /// `replicas: 0`, whoever did it.
    pub asleep: bool,
}

/// The partition of the rolling update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partition {
    /// `partition: 1`: a lost pod comes back at [`StatefulSetView::current`], whatever the template says.
    Closed,
    /// `partition: 0`: the controller replaces a pod that is not of the template.
    Open,
}

/// The pod that exists now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodView {
    /// Its UID: another pod of the same name is another pod.
    pub uid: PodUid,
    /// The template it was made from.
    pub revision: Revision,
    /// The world format of its Minecraft.
    pub world: DataVersion,
    /// How far it got.
    pub life: PodPhase,
}

/// Whether the node of a pod is to be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// Nodes cannot be read, or have not been read yet. Nothing is begun and nothing is ended on that.
    Unknown,
    /// It is not, or there is no pod on one.
    Stays,
    /// It is cordoned, or an autoscaler has marked it.
    Leaves,
}

/// What the agent of a pod knows of the announcement that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentMemory {
    /// It counts it down, has done so, or cannot be asked; or nothing was announced.
    Kept,
    /// It counts down something else, or nothing: the one that was told has died.
    Lost,
}

/// Whether the node of the pod of now has the images that the goal runs. Whoever does not, pulls them while the server is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImagesOnNode {
    /// It has them all, or there is no pod on a node that would have to.
    Here,
    /// It is being asked, or pulls them.
    OnTheirWay,
    /// It could not pull one when it was tried last. Stands until it could.
    Failed,
    /// It cannot be asked, for a reason that says nothing about them: whatever is missing is pulled while the server is down.
    Unknown,
}

/// How far a pod got. Says nothing about players: a server whose ping is late is still [`PodPhase::Up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// Has never been Ready.
    Starting {
        /// Moves on as long as the log or the world folder changes: a start that moves is not stuck.
        gives_up_at: Timestamp,
    },
    /// Has been Ready, and the server's process runs.
    Up,
    /// Has been Ready, and the server's process is not there: a crash in place.
    Down,
    /// The init container refuses to open the world, and has written why.
    Refused,
    /// Is being deleted.
    Stopping {
        /// The end of the grace period and a minute on top. Who stops longer is on a node that is gone.
        lost_at: Timestamp,
    },
}

/// Who is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Players {
    /// Agent *or* server does not answer. Counts as somebody.
    Unknown {
        /// When the last answer came.
        since: Timestamp,
    },
    /// The server says zero.
    Nobody,
    /// The server says this many, at least one.
    Some(u32),
    /// The server answers, and its ping does not say how many. Counts as somebody.
    Hidden,
}

impl From<protocol::PlayerCount> for Players {
    fn from(said: protocol::PlayerCount) -> Self {
        match said {
            protocol::PlayerCount::Unknown { since } => Self::Unknown { since },
            protocol::PlayerCount::Nobody | protocol::PlayerCount::Some { count: 0 } => Self::Nobody,
            protocol::PlayerCount::Some { count } => Self::Some(count),
        }
    }
}

/// The proof of the pod that is seen now. It always ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Not decided yet.
    Pending {
        /// When it is decided at the latest. A server that crash-loops after its first Ready has no start deadline any
        /// more, so the proof needs one of its own.
        until: Timestamp,
    },
    /// Version, plugins, worlds and datapacks are what they should be, for the settling time.
    Passed,
    /// Something could not be read. Kept, and told.
    Unproven,
    /// Something is worse than before.
    Failed,
}

/// The world on the volume, and what could bring it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorldState {
    /// The newest format that any world on the volume has: no Minecraft below it is ever started.
    pub floor: DataVersion,
    /// False: old and new layout side by side, a move that did not end.
    pub whole: bool,
    /// The format of the cold copy that the init container took before the revision on trial first opened the world.
    pub backup: Option<DataVersion>,
    /// Somebody was on since that copy.
    pub played_since: bool,
    /// A restore is ordered for the settled revision. Whoever takes no cold copies says true: there is nothing to order, and
    /// nothing to wait for.
    pub restore_ordered: bool,
}
