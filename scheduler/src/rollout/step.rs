//! Pure. Defines the next safe step and the reasons for waiting.
//!
//! The callers that display them render the text.

use jiff::{SignedDuration, Timestamp};

use crate::observation::{DataVersion, Disruption, Partition, PodUid, Revision};

/// One step. The edge executes it with what it observed (uid, resourceVersion, pod UID) and never after `not_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Create the missing `StatefulSet`.
    Create {
        /// The revision it runs.
        revision: Revision,
        /// `Open` only for a server that has never had a stable revision.
        partition: Partition,
    },
    /// The agent stages the files of the goal on the volume.
    Stage,
    /// Warn the players, then record the announcement. In the other order, a crash between the two would restart a server without a warning. If
    /// the agent reports an announcement of this disruption that ends within `notice`, that end is recorded and no line is sent. A recorded
    /// announcement is cut short by this step, when the last player has left.
    Announce {
        /// The disruption to announce.
        disruption: Disruption,
        /// The pod whose players are warned.
        pod: PodUid,
        /// The length of the countdown, from the moment it is announced.
        notice: SignedDuration,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Repeat the recorded announcement with the same end. The agent that received it has restarted during the countdown, and the new one would
    /// send no further line before the server stops. No fact is recorded.
    Reannounce {
        /// The announced disruption.
        disruption: Disruption,
        /// The pod whose players are warned.
        pod: PodUid,
        /// The end that the players were told.
        ends: Timestamp,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Save the world to disk, then record the server's answer.
    Save {
        /// The disruption that the save is made for.
        disruption: Disruption,
        /// The pod.
        pod: PodUid,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Write the goal's template with a closed partition, which changes no pod yet. Removes a restore request.
    WriteTemplate {
        /// The goal.
        revision: Revision,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Open the partition. This one write stops a server for an update.
    Commit {
        /// The agent could not be reached. The report states it.
        agent_unreachable: bool,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Write the stable template and the partition in the same write. The partition stays open while
    /// [`crate::observation::StatefulSetView::current`] differs (history was lost). The pod already has this revision, so it is not stopped, and
    /// a lost pod is recreated with it.
    Restore {
        /// The stable revision.
        revision: Revision,
        /// Closed as soon as the controller agrees.
        partition: Partition,
    },
    /// Record permanently that a revision failed.
    MarkFailed {
        /// The failed revision.
        revision: Revision,
    },
    /// Request that the init container of `to` displaces the world and restores the offline backup if it cannot open the world as it is. The
    /// request ends with the restore, with the next [`Step::MarkStable`] and with the next [`Step::WriteTemplate`]. A request found weeks later
    /// would be a disaster.
    RequestRestore {
        /// The stable revision.
        to: Revision,
        /// The backup is the one that a user chose. The pod already exists, and its init container retries by itself.
        requested_by_user: bool,
    },
    /// Request that the init container of `to` restores plugins' data folders to their state before the update, if nobody may have played since.
    /// The worlds stay unchanged. It ends as [`Step::RequestRestore`] does, which includes this and more.
    RequestPluginDataRestore {
        /// The stable revision.
        to: Revision,
    },
    /// Write the template and open the partition in one atomic write. The controller then replaces the pod by itself.
    RollBack {
        /// The stable revision. For a first start that failed, the corrected goal.
        to: Revision,
        /// The restore request of a user who chose a backup is written first.
        requested_by_user: bool,
        /// The agent could not be reached. The report states it.
        agent_unreachable: bool,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// The same with a goal other than the pod's revision, which cannot become stable: it has failed and an admin must decide about a rollback, it
    /// cannot open the worlds, or the cluster does not run it. Removes a restore request.
    RollForward {
        /// The goal.
        to: Revision,
        /// The agent could not be reached. The report states it.
        agent_unreachable: bool,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Close the partition and mark the revision as stable, in one write.
    MarkStable {
        /// The running revision: verified, kept unverified, or a first start.
        revision: Revision,
    },
    /// Delete the pod. It is recreated with the stable revision, because no other template is written and the partition is closed. The UID of the
    /// deleted pod is recorded first, on the observed `StatefulSet`.
    Restart {
        /// The instant of the schedule.
        due: Timestamp,
        /// The exact pod to delete.
        pod: PodUid,
        /// The agent could not be reached. The report states it.
        agent_unreachable: bool,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// Remove the record of the restart. The pod that followed it has passed its verification, or has failed it, which is reported.
    EndRestart,
    /// Record when the mark on the pod's node was first observed.
    BeginDrain {
        /// The pod on that node.
        pod: PodUid,
        /// Now.
        since: Timestamp,
    },
    /// Remove the record of the drain, because the node's mark was removed or drains are not handled any more. Warned players are informed.
    EndDrain,
    /// Tell the players of this pod that an announced disruption does not happen, and remove its record.
    CancelAnnouncement {
        /// The announced disruption.
        disruption: Disruption,
        /// This decision must not be executed after this instant.
        not_after: Timestamp,
    },
    /// The goal runs with a closed partition. No step is due.
    UpToDate,
    /// No step is possible yet.
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
            Self::UpToDate => "settled",
            Self::Wait(_) => "wait",
        }
    }
}

/// Why no step is possible. Waiting is an answer, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitingOn {
    /// The gate is shut, or too little is left of this opening to begin.
    Window {
        /// When it opens. `None`: never again, or it is open and it is too late to begin. See [`crate::maintenance::Windows::next_opening`].
        opens: Option<Timestamp>,
    },
    /// Players were warned, and the countdown is running.
    Countdown {
        /// The end that the players were told.
        ends: Timestamp,
    },
    /// Players are online, and the policy is to wait for them.
    Players {
        /// The operator then announces the stop all the same, or leaves it out.
        until: Timestamp,
    },
    /// The agent cannot be reached.
    Agent {
        /// The operator then continues without it, and reports that.
        until: Timestamp,
    },
    /// The `StatefulSet` controller has not yet acted on the object.
    Controller,
    /// The controller has not created the pod yet.
    PodMissing,
    /// The pod is being deleted.
    PodStopping {
        /// After this instant its node is considered lost.
        until: Timestamp,
    },
    /// The cluster does not run the server: its pod has no node, no volume or no image. No time limit applies.
    Cluster,
    /// The server is starting.
    Start {
        /// Moves on as long as the start makes progress.
        until: Timestamp,
    },
    /// The server's node does not have all images of the goal yet. It is being asked, or is pulling them.
    Images,
    /// The candidate revision is being verified, or the stable one after a restart.
    Verification {
        /// When the verification is decided at the latest.
        until: Timestamp,
    },
    /// Players were warned and the world is saved, so the pod may be evicted. For other code, this opens the `PodDisruptionBudget`.
    Eviction,
    // From here on an admin (or the author of the scale to zero) must act. See `needs_admin`.
    /// Scaled to 0.
    ScaledToZero,
    /// The pod is not removed because its node does not answer. Only an admin can tell that the machine is off.
    NodeLost,
    /// The server refuses to save: disk, permissions.
    SaveRefused {
        /// When the operator retries.
        retry_at: Timestamp,
    },
    /// An image of the goal could not be pulled on the node of the server, which keeps running. The pull is retried automatically.
    NoImage,
    /// The goal failed here and stays blocked until it changes. The server runs the revision it ran before.
    Blocked {
        /// The goal.
        failed: Revision,
    },
    /// The goal's Minecraft is older than the world.
    BelowFloor {
        /// The format that the world needs.
        floor: DataVersion,
    },
    /// The stable revision cannot open the world.
    WorldRefused,
    /// The failed revision changed the world, and no backup from before exists.
    NoBackup,
    /// A rollback would lose what players have built since.
    RollbackWouldLoseProgress,
    /// The stable revision does not start.
    ServerDown,
    /// The first start ever failed, so there is no revision to roll back to.
    FirstStartFailed,
}

impl WaitingOn {
    /// Whether this state stays until an admin acts. It is then worth a warning.
    pub const fn needs_admin(self) -> bool {
        match self {
            Self::Window { .. }
            | Self::Countdown { .. }
            | Self::Players { .. }
            | Self::Agent { .. }
            | Self::Controller
            | Self::PodMissing
            | Self::PodStopping { .. }
            | Self::Cluster
            | Self::Start { .. }
            | Self::Images
            | Self::Verification { .. }
            | Self::Eviction => false,
            Self::ScaledToZero
            | Self::NodeLost
            | Self::SaveRefused { .. }
            | Self::NoImage
            | Self::Blocked { .. }
            | Self::BelowFloor { .. }
            | Self::WorldRefused
            | Self::NoBackup
            | Self::RollbackWouldLoseProgress
            | Self::ServerDown
            | Self::FirstStartFailed => true,
        }
    }

    /// Whether an admin must decide about the rollback of a failed version set.
    pub const fn is_rollback_decision(self) -> bool {
        matches!(self, Self::NoBackup | Self::RollbackWouldLoseProgress)
    }

    /// When to requeue, if time alone can change the answer. All other changes are events.
    pub const fn until(self) -> Option<Timestamp> {
        match self {
            Self::Window { opens } => opens,
            Self::Countdown { ends: until }
            | Self::Players { until }
            | Self::Agent { until }
            | Self::PodStopping { until }
            | Self::Start { until }
            | Self::Verification { until }
            | Self::SaveRefused { retry_at: until } => Some(until),
            Self::Controller
            | Self::PodMissing
            | Self::Cluster
            | Self::Images
            | Self::Eviction
            | Self::ScaledToZero
            | Self::NodeLost
            | Self::NoImage
            | Self::Blocked { .. }
            | Self::BelowFloor { .. }
            | Self::WorldRefused
            | Self::NoBackup
            | Self::RollbackWouldLoseProgress
            | Self::ServerDown
            | Self::FirstStartFailed => None,
        }
    }

    /// One word for the transcripts of the rollout model.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Window { .. } => "window",
            Self::Countdown { .. } => "countdown",
            Self::Players { .. } => "players",
            Self::Agent { .. } => "agent",
            Self::Controller => "controller",
            Self::PodMissing => "podMissing",
            Self::PodStopping { .. } => "podStopping",
            Self::Cluster => "cluster",
            Self::Start { .. } => "start",
            Self::Images => "images",
            Self::Verification { .. } => "verification",
            Self::Eviction => "eviction",
            Self::ScaledToZero => "scaledToZero",
            Self::NodeLost => "nodeLost",
            Self::SaveRefused { .. } => "saveRefused",
            Self::NoImage => "noImage",
            Self::Blocked { .. } => "blocked",
            Self::BelowFloor { .. } => "belowFloor",
            Self::WorldRefused => "worldRefused",
            Self::NoBackup => "noBackup",
            Self::RollbackWouldLoseProgress => "rollbackWouldLoseProgress",
            Self::ServerDown => "serverDown",
            Self::FirstStartFailed => "firstStartFailed",
        }
    }
}
