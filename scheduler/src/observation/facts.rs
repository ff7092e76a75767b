//! Pure. The facts of a rollout, as they are kept in annotations, and the numbers they are made of.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::AgentMemory;
use crate::maintenance::later;
use crate::protocol::Announce;

/// The hash of a whole rendered pod template: 16 hex digits in names, labels and annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A text that is no [`Revision`].
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

    /// Only the one spelling that `Display` writes: a name that is compared as text must have no second form.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(text, 16) {
            Ok(number) if hex => Ok(Self(number)),
            _ => Err(ParseRevisionError(text.to_owned())),
        }
    }
}

/// The UID that Kubernetes gave a pod: two pods of one name have two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodUid(pub u128);

/// A text that is no [`PodUid`].
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

/// Writes and reads a type as the text of its `Display` and `FromStr`. JSON numbers above 2^53 do not survive other tools.
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

/// Minecraft's own number for the format of a world (`world_version` in the server's JAR, `Data.DataVersion` in
/// `level.dat`). It grows, and a world never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DataVersion(pub u32);

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What must survive a restart of the operator.
///
/// Kept as annotations of the `StatefulSet` (not of its template), so that one resourceVersion guards decision and facts.
/// `settled` and `failed` are copied to our own status, for a `StatefulSet` that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedFacts {
    /// The last revision that passed its proof: what a lost server comes back as, and where a roll-back goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<StableSet>,
    /// Revisions that were tried here and did not make it, oldest first, and what is left of each without what is ours; see
    /// [`RecordedFacts::mark_failed`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Revision>,
    /// The last announcement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced: Option<Announced>,
    /// The last save.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedWorld>,
    /// The restart by the clock that is under way: the pod was deleted for it, or is just about to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted: Option<RestartStarted>,
    /// The node of a pod was found to be marked: the pod is being made ready to be evicted, or waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draining: Option<DrainSeen>,
    /// The copy that is taken before what was brought in last, or that is put in place at the last restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying: Option<BackupEstimate>,
}

impl RecordedFacts {
    /// With the end that the players of this pod were told, by the agent who tells them: a crash between a word and its record leaves an
    /// older one here.
    #[must_use]
    pub fn as_told(self, told: &Announce, pod: PodUid) -> Self {
        let of_it = |known: &Announced| known.pod == pod && known.act.to_string() == told.act;
        let announced =
            self.announced.map(|known| if of_it(&known) { Announced { ends: told.ends, ..known } } else { known });
        Self { announced, ..self }
    }

    /// Whether players on this pod are being told of this act: their time is not over.
    pub fn are_counting_down(&self, act: Disruption, pod: PodUid, now: Timestamp) -> bool {
        self.announced.is_some_and(|told| (told.act, told.pod) == (act, pod) && now < told.ends)
    }

    /// What an agent that counts down this, or nothing, knows of the announcement that is remembered.
    pub fn as_known_to(&self, told: Option<&Announce>) -> AgentMemory {
        let is_another = |known: Announced| told.is_none_or(|told| told.act != known.act.to_string());
        if self.announced.is_some_and(is_another) { AgentMemory::Lost } else { AgentMemory::Kept }
    }

    /// How long a pod of this revision may be about a copy before its server starts, as it was estimated: what was brought in takes it, and what
    /// goes back from there may put it in place.
    pub fn copy_takes(&self, runs: Revision) -> Option<SignedDuration> {
        let is_of_it = |copying: &BackupEstimate| copying.goal == runs || self.failed.contains(&copying.goal);
        self.copying.filter(is_of_it).map(|copying| SignedDuration::from_secs(copying.seconds.into()))
    }

    /// How many failed revisions are remembered: more than anybody tries on one server between two that work, and small
    /// enough for an annotation. What is forgotten could be tried once more.
    pub const FAILED_KEPT: usize = 20;

    /// Remembers that a revision failed; the oldest one is forgotten when there are too many. `set` names what is left of it without the parts
    /// that come with a version of ours: another version is no reason to try the same set again.
    pub fn mark_failed(&mut self, revision: Revision, set: Option<Revision>) {
        for failed in set.into_iter().chain([revision]) {
            self.failed.retain(|known| *known != failed);
            self.failed.push(failed);
        }
        let too_many = self.failed.len().saturating_sub(Self::FAILED_KEPT);
        self.failed.drain(..too_many);
    }
}

/// The last revision that passed its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StableSet {
    /// Its template is kept in an immutable `ConfigMap` of ours: the `ControllerRevision`s die with their `StatefulSet`.
    pub revision: Revision,
    /// The world format of its Minecraft.
    pub world: DataVersion,
}

/// Why a server is stopped. A fact about one act says nothing about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Disruption {
    /// To bring in a goal.
    Update {
        /// What is brought in.
        goal: Revision,
        /// In which opening of the gate: what was said last Sunday counts for nothing today.
        window_opened_at: Timestamp,
    },
    /// To go back to what is settled. Needs no window, so it cannot be keyed by one.
    RollBack {
        /// What did not make it.
        failed: Revision,
    },
    /// To start again what is settled, by the clock. Needs no window either.
    Restart {
        /// The instant of its schedule: what was said for another one counts for nothing.
        due: Timestamp,
    },
    /// To let it be evicted from a node that is to be emptied. It needs no window, and it is not us who stop the server.
    Drain {
        /// When the node's mark was first seen: what was said for one that was taken away counts for nothing.
        since: Timestamp,
    },
}

/// The name of the act in requests to the agent, which announces no act twice.
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

/// Players were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announced {
    /// What was announced.
    pub act: Disruption,
    /// To whom: the players on this pod.
    pub pod: PodUid,
    /// When the countdown is over, as the players were told. Not computed again from the spec: its length depends on who
    /// was on when it began, and a changed spec must not change what was promised. It only ever comes nearer; once it is long ago, another
    /// countdown may begin.
    pub ends: Timestamp,
}

impl Announced {
    /// How long after the end of a countdown what it was for may still happen, as players were told. Longer than a save, two writes and a slow API
    /// server need.
    pub const COUNTS: SignedDuration = SignedDuration::from_mins(10);

    /// Whether it came so long ago that nobody waits for it any more, and that whoever has joined since has never read it. Who empties a node
    /// comes when they like, which players were told too.
    pub fn is_long_ago(self, now: Timestamp) -> bool {
        !matches!(self.act, Disruption::Drain { .. }) && later(self.ends, Self::COUNTS) <= now
    }
}

/// The world was brought to the disk, or the server refused to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedWorld {
    /// For which act.
    pub act: Disruption,
    /// On which pod.
    pub pod: PodUid,
    /// When the answer came.
    pub at: Timestamp,
    /// The server said that it saved. A refusal is a fact too: without it we would ask without end.
    pub confirmed: bool,
}

/// A pod was deleted for a restart. Decides nothing: it says which pod has to prove itself, and to whom that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartStarted {
    /// The instant of its schedule.
    pub due: Timestamp,
    /// The pod that went. Another one is the one that came.
    pub pod: PodUid,
}

/// The mark of a node was seen while this pod was on it. Another pod is on another node, or on this one after the mark was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainSeen {
    /// When it was first seen. The patience with players counts from here.
    pub since: Timestamp,
    /// The pod.
    pub pod: PodUid,
}

/// How long the copy before an update was estimated to take, or to be put in place, when it could still be asked how much there is. Nobody can be
/// asked meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupEstimate {
    /// What it is taken before.
    pub goal: Revision,
    /// How long it takes.
    pub seconds: u32,
}

#[cfg(test)]
mod tests;
