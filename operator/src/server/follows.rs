//! Pure. Whether a server has to wait for the one that it follows (`spec.follows`): that one must have run what an update changes here, for
//! long enough. What is known of that one is read by [`look`].

use std::sync::Arc;

use jiff::Timestamp;
use resolver::lock::{Lock, LockedPlugin};
use scheduler::announcement;
use scheduler::maintenance::Gate;
use scheduler::observation::{Goal, Observation};
use scheduler::rollout::has_goal_begun;

use super::changes::{is_same_release, same_paper, same_project};
use super::check::CheckedFollows;
use super::observe::Observed;
use super::plan::Plan;
use super::records::LockRecord;
use crate::requeue::Outcome;

pub(crate) mod followed_server;

/// What a server follows, and how that one fares.
pub(crate) struct FollowState {
    pub(crate) wish: CheckedFollows,
    pub(crate) state: LeaderState,
    /// Its last update was taken back. What runs there counts all the same; what was tried does not run.
    pub(crate) went_back: bool,
    /// The sets that were kept there, the one that runs in front. Those from before the soak are not all there.
    pub(crate) sets: Vec<RanSet>,
}

/// A set that ran somewhere.
pub(crate) struct RanSet {
    /// When it was proven, or kept without.
    pub(crate) since: Timestamp,
    /// It was kept, and nobody knows whether it works.
    pub(crate) unproven: bool,
    pub(crate) record: Arc<LockRecord>,
}

/// How the followed server fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaderState {
    /// It runs what has settled there.
    Well,
    /// There is none of that name.
    Missing,
    /// It follows the follower, by way of these; both ends are the follower.
    Circle(Vec<String>),
    /// `spec.suspend`.
    Suspended,
    /// `spec.replicas` is 0.
    Asleep,
    /// It does not run, for the reason of its condition `Ready`.
    Down(String),
    /// It runs another set than the one that settled: a new one is tried, or taken back.
    OnTrial,
}

/// Why nothing begins yet by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowWait {
    /// For whom.
    pub(crate) server: String,
    pub(crate) why: FollowBlocker,
    /// An update waits. False: there is none, and it is only told that one would.
    pub(crate) holds: bool,
}

/// What the followed server lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FollowBlocker {
    /// It is not as it must be, whatever it runs.
    State(LeaderState),
    /// Nothing has ever been proven there.
    Unproven,
    /// It runs another release.
    Runs {
        /// `ViaVersion`.
        what: String,
        /// What this server would run.
        wanted: String,
        /// What that one runs.
        runs: String,
        /// It runs what this server runs.
        still: bool,
        /// Its last update was taken back.
        went_back: bool,
    },
    /// It runs it, and it was never proven there.
    NotVerified {
        /// `ViaVersion 5.6.0`.
        what: String,
    },
    /// It has not run it for long enough.
    Soaks {
        /// `ViaVersion 5.6.0`.
        what: String,
        since: Timestamp,
        /// For how long, in words.
        soak: String,
        until: Timestamp,
    },
}

/// One release that an update brings.
enum ChangedRelease<'a> {
    Paper(&'a Lock),
    Plugin(&'a LockedPlugin),
}

impl ChangedRelease<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Paper(_) => "Paper",
            Self::Plugin(plugin) => &plugin.name,
        }
    }

    fn version(&self) -> String {
        match self {
            Self::Paper(lock) => format!("{}-{}", lock.minecraft, lock.build),
            Self::Plugin(plugin) => plugin.version.clone(),
        }
    }

    /// What a set has in its place.
    fn of<'l>(&self, lock: &'l Lock) -> Option<ChangedRelease<'l>> {
        match self {
            Self::Paper(_) => Some(ChangedRelease::Paper(lock)),
            Self::Plugin(plugin) => {
                lock.plugins.iter().find(|other| same_project(other, plugin)).map(ChangedRelease::Plugin)
            }
        }
    }

    fn is(&self, other: &ChangedRelease<'_>) -> bool {
        match (self, other) {
            (Self::Paper(one), ChangedRelease::Paper(other)) => same_paper(one, other),
            (Self::Plugin(one), ChangedRelease::Plugin(other)) => is_same_release(one, other),
            (Self::Paper(_), ChangedRelease::Plugin(_)) | (Self::Plugin(_), ChangedRelease::Paper(_)) => false,
        }
    }

    fn is_in(&self, lock: &Lock) -> bool {
        self.of(lock).is_some_and(|other| self.is(&other))
    }
}

impl FollowState {
    /// What an update from one set to another has to wait for. A server that is not there, or a circle, is told also when nothing is to come;
    /// all else only of what both servers have.
    pub(crate) fn waits(&self, from: &Lock, to: &Lock, now: Timestamp) -> Option<FollowWait> {
        let brought = brought(from, to);
        let holds = !brought.is_empty();
        let waits = |why| Some(FollowWait { server: self.wish.server.clone(), why, holds });
        if let LeaderState::Missing | LeaderState::Circle(_) = &self.state {
            return waits(FollowBlocker::State(self.state.clone()));
        }
        let Some(RanSet { record: newest, .. }) = self.sets.first() else {
            return if holds { waits(FollowBlocker::Unproven) } else { None };
        };
        let common: Vec<&ChangedRelease<'_>> = brought.iter().filter(|part| part.of(&newest.lock).is_some()).collect();
        if common.is_empty() {
            return None;
        }
        if self.state != LeaderState::Well {
            return waits(FollowBlocker::State(self.state.clone()));
        }
        let other = common.iter().find_map(|part| Some((part, part.of(&newest.lock).filter(|runs| !part.is(runs))?)));
        if let Some((part, runs)) = other {
            let still = part.of(from).is_some_and(|here| here.is(&runs));
            let (what, wanted) = (part.name().to_owned(), part.version());
            return waits(FollowBlocker::Runs { what, wanted, runs: runs.version(), still, went_back: self.went_back });
        }
        let named = |part: &ChangedRelease<'_>| format!("{} {}", part.name(), part.version());
        if let Some(part) = common.iter().find(|part| self.proven_since(part).is_none()) {
            return waits(FollowBlocker::NotVerified { what: named(part) });
        }
        let since = |part: &ChangedRelease<'_>| self.proven_since(part).unwrap_or(Timestamp::MAX);
        let (part, since) = common.iter().map(|part| (part, since(part))).max_by_key(|(_, since)| *since)?;
        let until = since.checked_add(self.wish.soak).unwrap_or(Timestamp::MAX);
        if now < until {
            waits(FollowBlocker::Soaks {
                what: named(part),
                since,
                soak: announcement::in_words(self.wish.soak),
                until,
            })
        } else {
            None
        }
    }

    /// Since when the followed server has run a release without another in between and known to work, as far as is known: it may be longer.
    /// A set that was kept unproven begins nothing, and ends nothing that was proven before. None: it was never proven there.
    fn proven_since(&self, part: &ChangedRelease<'_>) -> Option<Timestamp> {
        let with_it = self.sets.iter().take_while(|ran| part.is_in(&ran.record.lock));
        with_it.filter(|ran| !ran.unproven).last().map(|ran| ran.since)
    }
}

/// What is new or another in `to`. What goes away needs nobody to have tried it, and neither do settings of the pod.
fn brought<'a>(from: &Lock, to: &'a Lock) -> Vec<ChangedRelease<'a>> {
    let all = std::iter::once(ChangedRelease::Paper(to)).chain(to.plugins.iter().map(ChangedRelease::Plugin));
    all.filter(|part| !part.is_in(from)).collect()
}

impl FollowWait {
    /// When that is over by itself.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match &self.why {
            FollowBlocker::Soaks { until, .. } => Some(*until),
            FollowBlocker::State(_)
            | FollowBlocker::Unproven
            | FollowBlocker::NotVerified { .. }
            | FollowBlocker::Runs { .. } => None,
        }
    }

    /// Whether it is the spec that is wrong.
    pub(crate) fn is_a_mistake(&self) -> bool {
        matches!(self.why, FollowBlocker::State(LeaderState::Missing | LeaderState::Circle(_)))
    }

    /// One word for the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match &self.why {
            FollowBlocker::State(LeaderState::Missing) => "NoSuchServer",
            FollowBlocker::State(LeaderState::Circle(_)) => "Circle",
            FollowBlocker::State(LeaderState::Suspended) => "Suspended",
            FollowBlocker::State(LeaderState::Asleep | LeaderState::Down(_)) => "NotRunning",
            FollowBlocker::State(LeaderState::OnTrial | LeaderState::Well) => "BeingUpdated",
            FollowBlocker::Unproven => "NothingVerified",
            FollowBlocker::NotVerified { .. } => "NotVerified",
            FollowBlocker::Runs { .. } => "OtherRelease",
            FollowBlocker::Soaks { .. } => "Soaking",
        }
    }

    /// For the column: `waits for staging`.
    pub(crate) fn in_short(&self) -> String {
        format!("waits for {}", self.server)
    }

    /// What is waited for, and what a person can do where it does not come by itself; `people` writes an instant. Nothing in it changes with the
    /// clock: each change would be another write and another Event.
    pub(crate) fn in_words(&self, people: impl Fn(Timestamp) -> String) -> String {
        let why = match &self.why {
            FollowBlocker::State(LeaderState::Missing) => {
                "which is no server of this namespace: make it, or correct `spec.follows.server`".to_owned()
            }
            FollowBlocker::State(LeaderState::Circle(path)) => format!(
                "which waits for this server itself, in a circle ({}): take `spec.follows` of one of them away",
                path.join(" -> ")
            ),
            FollowBlocker::State(LeaderState::Suspended) => {
                "which is suspended: take its `spec.suspend` away".to_owned()
            }
            FollowBlocker::State(LeaderState::Asleep) => "which does not run: its `spec.replicas` is 0".to_owned(),
            FollowBlocker::State(LeaderState::Down(reason)) => {
                format!("which does not run: its condition `Ready` says {reason}")
            }
            FollowBlocker::State(LeaderState::OnTrial | LeaderState::Well) => {
                "which is being updated, or goes back".to_owned()
            }
            FollowBlocker::Unproven => "where no set is proven yet".to_owned(),
            FollowBlocker::NotVerified { what } => {
                format!("which runs {what}, kept although it could not be proven: see its `status.lastUpdate`")
            }
            FollowBlocker::Runs { what, wanted, runs, still, went_back } => {
                let runs = match still {
                    _ if wanted == runs => format!("other files of {what} {runs}"),
                    true => format!("{what} {runs} still"),
                    false => format!("{what} {runs} and not {wanted}"),
                };
                format!("which runs {runs}{}", if *went_back { "; its last update was taken back" } else { "" })
            }
            FollowBlocker::Soaks { what, since, soak, until } => {
                format!("which has run {what} since {} and has to until {} ({soak})", people(*since), people(*until))
            }
        };
        format!("{}, {why}", self.in_short())
    }
}

/// What is left to wait for where this is planned. What players were told of, and what has begun otherwise, goes on.
fn unless_begun(waits: FollowWait, goal: &Goal, seen: &Observation, gate: Gate) -> Option<FollowWait> {
    let holds = waits.holds && !has_goal_begun(goal, seen, gate);
    (holds || waits.is_a_mistake()).then_some(FollowWait { holds, ..waits })
}

impl Plan {
    /// Shuts the gate for what has to wait for another server. A first start needs nobody to have gone first.
    pub(crate) fn wait_for_followed(&mut self, follows: Option<&FollowState>, seen: &Observed, now: Timestamp) {
        let waits = follows.zip(seen.settled_lock.as_ref());
        let waits = waits.and_then(|(follows, from)| follows.waits(&from.lock, &self.record.lock, now));
        self.waits = waits.and_then(|waits| unless_begun(waits, &self.goal, &self.seen, self.gate));
        if self.held_by_followed().is_some() {
            self.gate = Gate::Shut { opens: None };
        }
    }

    /// What keeps the update that is planned from coming by itself.
    pub(crate) fn held_by_followed(&self) -> Option<&FollowWait> {
        self.waits.as_ref().filter(|waits| waits.holds)
    }

    /// When the update need not wait any longer, if a clock says so.
    pub(crate) fn waits_until(&self) -> Option<Timestamp> {
        self.waits.as_ref().and_then(FollowWait::until)
    }

    /// A server is looked at when its wait is over, not at its next window only.
    pub(crate) fn in_time_for_followed(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        self.waits_until().map_or(outcome, |until| outcome.no_later_than(until, now))
    }
}

#[cfg(test)]
mod tests;
