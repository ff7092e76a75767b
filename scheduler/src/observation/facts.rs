//! Pure. Defines the facts of a rollout as they are stored in annotations, and their number types.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::AgentMemory;
use crate::maintenance::saturating_add;
use agent_api::Announce;

/// The hash of a whole rendered pod template. It has 16 hex digits in names, labels and annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A text that is not a [`Revision`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a revision: write its 16 hex digits, lower case")]
pub struct ParseRevisionError(String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Revision {
    type Err = ParseRevisionError;

    /// Accepts only the spelling that `Display` writes, because revisions are compared as text.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(text, 16) {
            Ok(number) if hex => Ok(Self(number)),
            _ => Err(ParseRevisionError(text.to_owned())),
        }
    }
}

/// The UID that Kubernetes gave a pod. Two pods with the same name have different UIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodUid(pub u128);

/// A text that is not a [`PodUid`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the UID of a pod: expected a UUID such as `6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e`")]
pub struct ParsePodUidError(String);

impl fmt::Display for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl FromStr for PodUid {
    type Err = ParsePodUidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParsePodUidError(text.to_owned());
        let groups: Vec<&str> = text.split('-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        if lengths != [8, 4, 4, 4, 12] || !text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u128::from_str_radix(&groups.concat(), 16).map(Self).map_err(|_| wrong())
    }
}

/// Serializes a type as the text of its `Display` and `FromStr`. JSON numbers above 2^53 do not survive other tools.
macro_rules! as_text {
    ($($name:ty),+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )+};
}
as_text!(Revision, PodUid);

/// Minecraft's own number for the format of a world (`world_version` in the server's JAR, `Data.DataVersion` in `level.dat`). It only grows: a
/// world is never converted back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DataVersion(pub u32);

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The state that must survive a restart of the operator.
///
/// It is stored as one annotation of the `StatefulSet` (not of its template), so that one resourceVersion guards decision and facts. `settled` and
/// `failed` are also copied to the status of Nightshift's own resource, in case the `StatefulSet` is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedFacts {
    /// The last revision that was kept: verified, kept unverified, or a first start. A lost server is recreated with it, and a rollback returns to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<StableSet>,
    /// Revisions that failed here, oldest first. Each is followed by its form without Nightshift's own parts. See [`RecordedFacts::mark_failed`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Revision>,
    /// The last announcement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced: Option<Announced>,
    /// The last save.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedWorld>,
    /// The scheduled restart in progress. Its pod was deleted, or is about to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted: Option<RestartStarted>,
    /// A pod's node was found to be marked for draining. The pod is being prepared for eviction, or waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draining: Option<ObservedDrain>,
    /// The estimate for the backup that is taken before the last update, or restored at the last restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_estimate: Option<BackupEstimate>,
}

impl RecordedFacts {
    /// The facts with the end that the players of this pod were told, as their agent reports it. A crash between the announcement and its record
    /// leaves an older end here.
    #[must_use]
    pub fn with_announced_end(self, reported: &Announce, pod: PodUid) -> Self {
        let is_same = |recorded: &Announced| recorded.pod == pod && recorded.act.to_string() == reported.act;
        let announced = self
            .announced
            .map(|recorded| if is_same(&recorded) { Announced { ends: reported.ends, ..recorded } } else { recorded });
        Self { announced, ..self }
    }

    /// Whether a countdown for this disruption is running on this pod.
    pub fn is_counting_down(&self, disruption: Disruption, pod: PodUid, now: Timestamp) -> bool {
        self.announced.is_some_and(|reported| (reported.act, reported.pod) == (disruption, pod) && now < reported.ends)
    }

    /// Whether an agent that counts down this announcement, or none, knows the recorded one.
    pub fn agent_memory(&self, reported: Option<&Announce>) -> AgentMemory {
        let is_another = |recorded: Announced| reported.is_none_or(|reported| reported.act != recorded.act.to_string());
        if self.announced.is_some_and(is_another) { AgentMemory::Forgotten } else { AgentMemory::Known }
    }

    /// The estimated time that a pod of this revision spends on a backup before its server starts. An update takes the backup, and a rollback may
    /// restore it.
    pub fn backup_duration(&self, runs: Revision) -> Option<SignedDuration> {
        let is_for_revision = |estimate: &BackupEstimate| estimate.goal == runs || self.failed.contains(&estimate.goal);
        self.backup_estimate.filter(is_for_revision).map(|estimate| SignedDuration::from_secs(estimate.seconds.into()))
    }

    /// How many failed revisions are remembered. It is more than anybody tries on one server between two working ones, and small enough for an
    /// annotation. A forgotten revision could be tried once more.
    pub const MAX_FAILED: usize = 20;

    /// Records that a revision failed. When there are too many, the oldest one is removed. `set` identifies the revision without the parts that
    /// depend on Nightshift's version: a new Nightshift version is no reason to try the same version set again.
    pub fn mark_failed(&mut self, revision: Revision, set: Option<Revision>) {
        for failed in set.into_iter().chain([revision]) {
            self.failed.retain(|recorded| *recorded != failed);
            self.failed.push(failed);
        }
        let too_many = self.failed.len().saturating_sub(Self::MAX_FAILED);
        self.failed.drain(..too_many);
    }
}

/// The last revision that was kept: verified, kept unverified, or a first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StableSet {
    /// The revision. Its template is kept in an immutable `ConfigMap` of Nightshift, because `ControllerRevision`s are deleted with their
    /// `StatefulSet`.
    pub revision: Revision,
    /// The world format of its Minecraft.
    pub world: DataVersion,
}

/// Why a server is stopped. A fact about one disruption does not apply to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Disruption {
    /// To apply an update.
    Update {
        /// The goal of the update.
        goal: Revision,
        /// The opening of the gate. An announcement made in last Sunday's opening does not count today.
        window_opened_at: Timestamp,
    },
    /// To roll back to the stable revision. It needs no window, so its key contains none.
    RollBack {
        /// The revision that failed.
        failed: Revision,
    },
    /// To restart the stable revision on schedule. It needs no window either.
    Restart {
        /// The instant of its schedule. An announcement for another instant does not count.
        due: Timestamp,
    },
    /// To allow an eviction from a node that is drained. It needs no window, and the operator does not stop the server itself.
    Drain {
        /// When the node's mark was first observed. An announcement for a mark that was removed does not count.
        since: Timestamp,
    },
}

/// The name of the disruption in requests to the agent, which announces no disruption twice.
impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Update { goal, window_opened_at } => write!(f, "update/{goal}/{window_opened_at}"),
            Self::RollBack { failed } => write!(f, "roll-back/{failed}"),
            Self::Restart { due } => write!(f, "restart/{due}"),
            Self::Drain { since } => write!(f, "drain/{since}"),
        }
    }
}

/// An announcement to players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announced {
    /// The announced disruption.
    pub act: Disruption,
    /// The pod whose players were warned.
    pub pod: PodUid,
    /// When the countdown ends, as announced to the players. It is not computed again from the spec. Its length depends on who was online when it
    /// began, and a changed spec must not change the announced end. It can only move closer. Once it is long past, another countdown may begin.
    pub ends: Timestamp,
}

impl Announced {
    /// How long after the end of a countdown the announced disruption may still happen. It is longer than a save, two writes and a slow API
    /// server need.
    pub const VALID_FOR: SignedDuration = SignedDuration::from_mins(10);

    /// Whether the announcement is so old that players no longer expect the stop, and players who joined since have not read it. Drains are
    /// exempt: an admin drains the node at any time, and the announcement states that.
    pub fn is_expired(self, now: Timestamp) -> bool {
        !matches!(self.act, Disruption::Drain { .. }) && saturating_add(self.ends, Self::VALID_FOR) <= now
    }
}

/// A save of the world to disk, or the server's refusal to save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedWorld {
    /// The disruption it was made for.
    pub act: Disruption,
    /// The pod.
    pub pod: PodUid,
    /// When the answer arrived.
    pub at: Timestamp,
    /// Whether the server confirmed the save. A refusal is also a fact: without it the operator would retry endlessly.
    pub confirmed: bool,
}

/// A pod was deleted for a restart. No decision depends on it. It identifies the pod that must be verified, and who is notified of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartStarted {
    /// The instant of its schedule.
    pub due: Timestamp,
    /// The pod that was deleted. A pod with another UID is its replacement.
    pub pod: PodUid,
}

/// A node's mark was observed while this pod was on it. Any other pod is on another node, or on this one after the mark was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedDrain {
    /// When it was first observed. The limit for waiting on players counts from here.
    pub since: Timestamp,
    /// The pod.
    pub pod: PodUid,
}

/// The estimated time to take the backup before an update, or to restore it, from the last measured size. The size cannot be measured while the
/// backup runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEstimate {
    /// The goal that the backup is taken before.
    pub goal: Revision,
    /// The estimated time, in seconds.
    pub seconds: u32,
}

#[cfg(test)]
mod tests;
