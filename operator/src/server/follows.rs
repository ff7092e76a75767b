//! Pure. Determines whether a server has to wait for the server that it follows (`spec.follows`). The followed server must have run the
//! changes of an update for long enough. [`followed_server`] reads its state.

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

/// The followed server and its state.
pub(crate) struct FollowState {
    pub(crate) wish: CheckedFollows,
    pub(crate) state: LeaderState,
    /// Its last update was rolled back. The running set counts all the same, because the failed one does not run.
    pub(crate) went_back: bool,
    /// The sets in its history, with the running one in front. Sets from before the soak time may be missing.
    pub(crate) sets: Vec<RanSet>,
}

/// A set that ran on the followed server.
pub(crate) struct RanSet {
    /// When it was verified, or kept without verification.
    pub(crate) since: Timestamp,
    /// It was kept without verification.
    pub(crate) unproven: bool,
    pub(crate) record: Arc<LockRecord>,
}

/// The state of the followed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaderState {
    /// It runs its stable revision.
    Well,
    /// It does not exist.
    Missing,
    /// It follows the follower by way of these servers. The follower is first and last.
    Circle(Vec<String>),
    /// `spec.suspend`.
    Suspended,
    /// `spec.replicas` is 0.
    Asleep,
    /// It is down, for the reason of its condition `Ready`.
    Down(String),
    /// It runs another set than its stable one: an update or a roll-back is in progress.
    OnTrial,
}

/// Why no automatic update begins yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowWait {
    /// The followed server.
    pub(crate) server: String,
    pub(crate) why: FollowBlocker,
    /// Whether an update waits. `false` if there is none, and only the problem is reported.
    pub(crate) holds: bool,
}

/// The condition that the followed server does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FollowBlocker {
    /// Its state forbids it, whatever it runs.
    State(LeaderState),
    /// It has no verified set yet.
    Unproven,
    /// It runs another release.
    Runs {
        /// Name of the package, such as `ViaVersion`.
        what: String,
        /// The version that this server would run.
        wanted: String,
        /// The version that the followed server runs.
        runs: String,
        /// The followed server runs the same version as this one.
        still: bool,
        /// Its last update was rolled back.
        went_back: bool,
    },
    /// It runs the release, but never verified it.
    NotVerified {
        /// Package and version, such as `ViaVersion 5.6.0`.
        what: String,
    },
    /// It has not run the release for long enough.
    Soaks {
        /// Package and version, such as `ViaVersion 5.6.0`.
        what: String,
        since: Timestamp,
        /// The soak time as text.
        soak: String,
        until: Timestamp,
    },
}

/// One release that an update changes.
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

    /// The same package in another lock.
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
    /// The reason for which an update from one lock to another has to wait. A missing server or a circle is reported even without an
    /// update. All other reasons concern only packages that both servers have.
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

    /// Since when the followed server has run a release without interruption and verified, as far as the history shows. An unverified set
    /// starts no period, and does not end one that was verified before. `None` if the release was never verified there.
    fn proven_since(&self, part: &ChangedRelease<'_>) -> Option<Timestamp> {
        let with_it = self.sets.iter().take_while(|ran| part.is_in(&ran.record.lock));
        with_it.filter(|ran| !ran.unproven).last().map(|ran| ran.since)
    }
}

/// The releases that are new or different in `to`. Removed packages and pod settings need no trial on another server.
fn brought<'a>(from: &Lock, to: &'a Lock) -> Vec<ChangedRelease<'a>> {
    let all = std::iter::once(ChangedRelease::Paper(to)).chain(to.plugins.iter().map(ChangedRelease::Plugin));
    all.filter(|part| !part.is_in(from)).collect()
}

impl FollowWait {
    /// When the wait ends by itself, if it does.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match &self.why {
            FollowBlocker::Soaks { until, .. } => Some(*until),
            FollowBlocker::State(_)
            | FollowBlocker::Unproven
            | FollowBlocker::NotVerified { .. }
            | FollowBlocker::Runs { .. } => None,
        }
    }

    /// Whether the spec is wrong.
    pub(crate) fn is_a_mistake(&self) -> bool {
        matches!(self.why, FollowBlocker::State(LeaderState::Missing | LeaderState::Circle(_)))
    }

    /// The reason of the condition.
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

    /// For a printer column, such as `waits for staging`.
    pub(crate) fn in_short(&self) -> String {
        format!("waits for {}", self.server)
    }

    /// The message: the reason for the wait, and the action for a user if it does not end by itself. `people` formats an instant. The text
    /// does not change with the clock, because each change would be another write and another Event.
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

/// The remaining wait for this plan. An announced update and one that has begun otherwise continue.
fn unless_begun(waits: FollowWait, goal: &Goal, seen: &Observation, gate: Gate) -> Option<FollowWait> {
    let holds = waits.holds && !has_goal_begun(goal, seen, gate);
    (holds || waits.is_a_mistake()).then_some(FollowWait { holds, ..waits })
}

impl Plan {
    /// Closes the gate if the plan has to wait for the followed server. A first start never waits.
    pub(crate) fn wait_for_followed(&mut self, follows: Option<&FollowState>, seen: &Observed, now: Timestamp) {
        let waits = follows.zip(seen.settled_lock.as_ref());
        let waits = waits.and_then(|(follows, from)| follows.waits(&from.lock, &self.record.lock, now));
        self.waits = waits.and_then(|waits| unless_begun(waits, &self.goal, &self.seen, self.gate));
        if self.held_by_followed().is_some() {
            self.gate = Gate::Shut { opens: None };
        }
    }

    /// The wait that blocks the planned update, if any.
    pub(crate) fn held_by_followed(&self) -> Option<&FollowWait> {
        self.waits.as_ref().filter(|waits| waits.holds)
    }

    /// When the wait for the followed server ends, if that depends on the clock only.
    pub(crate) fn waits_until(&self) -> Option<Timestamp> {
        self.waits.as_ref().and_then(FollowWait::until)
    }

    /// Requeues the server when its wait is over, and not only at its next window.
    pub(crate) fn in_time_for_followed(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        self.waits_until().map_or(outcome, |until| outcome.no_later_than(until, now))
    }
}

#[cfg(test)]
mod tests;
