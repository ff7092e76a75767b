//! Pure. The next safe step, and why there is none yet. Rendered into text by whoever shows it.

use jiff::{SignedDuration, Timestamp};

use crate::observation::{DataVersion, Disruption, Partition, PodUid, Revision};

/// One step, done by the edge with what was seen (uid, resourceVersion, pod UID) and never after `not_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is no `StatefulSet`: make it.
    Create {
        /// What it runs.
        revision: Revision,
        /// `Open` only for a server that has never been settled.
        door: Partition,
    },
    /// The agent brings the files of the goal to the volume.
    Stage,
    /// Tell the players, then record it. The other way round, a crash between the two restarts a server whose players
    /// nobody told. If the agent reports an announcement of this act that ends within `notice`, that end is recorded and nothing is said.
    /// One that is recorded already is cut short by this: the last player has left.
    Announce {
        /// What is announced.
        act: Disruption,
        /// To whom.
        pod: PodUid,
        /// How long the countdown is, from the moment it is said.
        notice: SignedDuration,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// What was recorded is told once more, with the same end: the agent that was told has died in the countdown, and the one of now would
    /// leave players without another word until their server stops. Nothing is recorded.
    Reannounce {
        /// What was announced.
        act: Disruption,
        /// To whom.
        pod: PodUid,
        /// The end that they were told.
        ends: Timestamp,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// Bring the world to the disk, then record what the server answered.
    Save {
        /// For which act.
        act: Disruption,
        /// Where.
        pod: PodUid,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The goal's template, behind a closed door: changes nothing yet. Ends an order to restore.
    WriteTemplate {
        /// The goal.
        revision: Revision,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The door opens: the one write that stops a server for an update.
    Commit {
        /// Nobody could be asked. Goes into the report.
        unasked: bool,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The settled template, and the door in the same write. Open while [`crate::observation::Set::current`] is something else
    /// (history was lost): the pod is of this revision already, so nothing is stopped, and a pod that is lost comes back
    /// as this one.
    Restore {
        /// What is settled.
        revision: Revision,
        /// Closed as soon as the controller agrees.
        door: Partition,
    },
    /// Remember, for good, that a revision did not make it.
    MarkFailed {
        /// Which one.
        revision: Revision,
    },
    /// Tells the init container of `to` to set the world aside and bring the cold copy back, if it cannot open the world as
    /// it is. The order ends with that, with the next `Close` and with the next `WriteTemplate`: found weeks later it would
    /// be a disaster.
    RequestRestore {
        /// What is settled.
        to: Revision,
        /// The copy is the one that a person asked for. The pod is there already, and its init container tries again by itself.
        asked: bool,
    },
    /// Tells the init container of `to` to put back what plugins' data folders held before the update, if nobody may have played since.
    /// The worlds stay as they are. Ends as [`Step::RequestRestore`] does, which says the same and more.
    RequestPluginDataRestore {
        /// What is settled.
        to: Revision,
    },
    /// Template and open door in one write, ready once or never: the controller replaces the pod by itself.
    RollBack {
        /// What is settled; for a first start that failed, the corrected goal.
        to: Revision,
        /// The order of a person who wants the worlds of a copy goes with it, before the write.
        asked: bool,
        /// Nobody could be asked. Goes into the report.
        unasked: bool,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The same with another goal than what failed, where going back is a person's to decide, or than what settled and cannot open the worlds. Ends an
    /// order to restore.
    RollForward {
        /// The goal.
        to: Revision,
        /// Nobody could be asked. Goes into the report.
        unasked: bool,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The door closes and the revision is settled, in one write.
    MarkStable {
        /// What runs, proven.
        settled: Revision,
    },
    /// The pod is deleted, and comes back as what is settled: nothing else stands behind the closed door. Which pod it was is
    /// recorded first, on the `StatefulSet` that was seen.
    Restart {
        /// The instant of the schedule.
        due: Timestamp,
        /// This pod and no other.
        pod: PodUid,
        /// Nobody could be asked. Goes into the report.
        unasked: bool,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The pod that came after a restart has proven itself, or has not, which is told: the record of the restart goes.
    EndRestart,
    /// The node of this pod is marked: when that was first seen is recorded.
    BeginDrain {
        /// This pod and no other.
        pod: PodUid,
        /// Now.
        since: Timestamp,
    },
    /// The mark is taken away, or nobody asks any more: whoever was told is told so, and the record goes.
    EndDrain,
    /// What the players of this pod were told of does not come now: they are told so, and the record goes.
    CancelAnnouncement {
        /// What they were told of.
        act: Disruption,
        /// When this decision is void.
        not_after: Timestamp,
    },
    /// The goal runs behind a closed door. Nothing to do.
    Settled,
    /// Nothing can be done yet.
    Wait(WaitingOn),
}

impl Step {
    /// One word for metrics and transcripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Stage => "stage",
            Self::Announce { .. } => "announce",
            Self::Reannounce { .. } => "reannounce",
            Self::Save { .. } => "save",
            Self::WriteTemplate { .. } => "writeTemplate",
            Self::Commit { .. } => "commit",
            Self::Restore { .. } => "restore",
            Self::MarkFailed { .. } => "markFailed",
            Self::RequestRestore { .. } => "requestRestore",
            Self::RequestPluginDataRestore { .. } => "requestPluginDataRestore",
            Self::RollBack { .. } => "rollBack",
            Self::RollForward { .. } => "rollForward",
            Self::MarkStable { .. } => "markStable",
            Self::Restart { .. } => "restart",
            Self::EndRestart => "endRestart",
            Self::BeginDrain { .. } => "beginDrain",
            Self::EndDrain => "endDrain",
            Self::CancelAnnouncement { .. } => "cancelAnnouncement",
            Self::Settled => "settled",
            Self::Wait(_) => "wait",
        }
    }
}

/// Why there is no step. Waiting is an answer, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitingOn {
    /// The gate is shut, or too little is left of this opening to begin.
    Window {
        /// When it opens. None: never again, or it is open and too late; [`crate::maintenance::Windows::next_opening`] knows.
        opens: Option<Timestamp>,
    },
    /// Players were told, and have this long.
    Countdown {
        /// The end that they were told.
        ends: Timestamp,
    },
    /// Somebody is on, and the policy is to wait.
    Players {
        /// Then we announce all the same, or leave it out.
        until: Timestamp,
    },
    /// Nobody can be asked.
    Agent {
        /// Then we go on, and say so.
        until: Timestamp,
    },
    /// The `StatefulSet` controller has not acted on what stands in the object.
    Controller,
    /// The controller has not made the pod yet.
    PodMissing,
    /// The pod is being deleted.
    PodStopping {
        /// Then its node is lost.
        until: Timestamp,
    },
    /// The server is starting.
    Start {
        /// Moves on as long as the start does.
        until: Timestamp,
    },
    /// The node of the server has not got all images of the goal yet: it is being asked, or pulls them.
    Images,
    /// The revision on trial is being proven, or what is settled after a restart.
    Proof {
        /// Then it is decided.
        until: Timestamp,
    },
    /// Players were told and the world is saved: whoever empties the node may evict the pod. Elsewhere this is what opens the
    /// `PodDisruptionBudget`.
    Eviction,
    // From here on a person (or whoever put the server to sleep) must act; see `needs_a_person`.
    /// Scaled to 0.
    Asleep,
    /// The pod does not go away: its node does not answer, and only a person knows that the machine is off.
    NodeLost,
    /// The server refuses to save: disk, permissions.
    SaveRefused {
        /// It is asked again by itself.
        again: Timestamp,
    },
    /// An image of the goal could not be pulled on the node of the server, which runs on. It is tried again by itself.
    NoImage,
    /// The goal failed here and waits for a change in it. The server runs what it ran before.
    Held {
        /// The goal.
        failed: Revision,
    },
    /// The goal's Minecraft is older than the world.
    BelowFloor {
        /// What the world needs.
        floor: DataVersion,
    },
    /// The settled revision cannot open the world.
    WorldRefused,
    /// The world was changed by what failed, and there is no copy to go back to.
    NoBackup,
    /// Going back would lose what players built since.
    RollbackWouldLoseProgress,
    /// The settled revision does not come up.
    ServerDown,
    /// The first start ever did not make it, so there is nothing to go back to.
    FirstStartFailed,
}

impl WaitingOn {
    /// Will it stay like this until a person acts? Then it is worth a warning.
    pub const fn needs_a_person(self) -> bool {
        match self {
            Self::Window { .. }
            | Self::Countdown { .. }
            | Self::Players { .. }
            | Self::Agent { .. }
            | Self::Controller
            | Self::PodMissing
            | Self::PodStopping { .. }
            | Self::Start { .. }
            | Self::Images
            | Self::Proof { .. }
            | Self::Eviction => false,
            Self::Asleep
            | Self::NodeLost
            | Self::SaveRefused { .. }
            | Self::NoImage
            | Self::Held { .. }
            | Self::BelowFloor { .. }
            | Self::WorldRefused
            | Self::NoBackup
            | Self::RollbackWouldLoseProgress
            | Self::ServerDown
            | Self::FirstStartFailed => true,
        }
    }

    /// Is it a person's to decide about the way back from a set that failed?
    pub const fn is_about_the_way_back(self) -> bool {
        matches!(self, Self::NoBackup | Self::RollbackWouldLoseProgress)
    }

    /// When to look again, if the clock alone can change the answer. Everything else is an event.
    pub const fn until(self) -> Option<Timestamp> {
        match self {
            Self::Window { opens } => opens,
            Self::Countdown { ends: until }
            | Self::Players { until }
            | Self::Agent { until }
            | Self::PodStopping { until }
            | Self::Start { until }
            | Self::Proof { until }
            | Self::SaveRefused { again: until } => Some(until),
            Self::Controller
            | Self::PodMissing
            | Self::Images
            | Self::Eviction
            | Self::Asleep
            | Self::NodeLost
            | Self::NoImage
            | Self::Held { .. }
            | Self::BelowFloor { .. }
            | Self::WorldRefused
            | Self::NoBackup
            | Self::RollbackWouldLoseProgress
            | Self::ServerDown
            | Self::FirstStartFailed => None,
        }
    }

    /// One word for metrics, reasons of conditions and transcripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Window { .. } => "window",
            Self::Countdown { .. } => "countdown",
            Self::Players { .. } => "players",
            Self::Agent { .. } => "agent",
            Self::Controller => "controller",
            Self::PodMissing => "podMissing",
            Self::PodStopping { .. } => "podStopping",
            Self::Start { .. } => "start",
            Self::Images => "images",
            Self::Proof { .. } => "proof",
            Self::Eviction => "eviction",
            Self::Asleep => "asleep",
            Self::NodeLost => "nodeLost",
            Self::SaveRefused { .. } => "saveRefused",
            Self::NoImage => "noImage",
            Self::Held { .. } => "held",
            Self::BelowFloor { .. } => "belowFloor",
            Self::WorldRefused => "worldRefused",
            Self::NoBackup => "noBackup",
            Self::RollbackWouldLoseProgress => "undoWouldLose",
            Self::ServerDown => "serverDown",
            Self::FirstStartFailed => "firstStartFailed",
        }
    }
}
