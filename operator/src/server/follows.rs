//! Pure. Determines whether a server has to wait for the server that it follows (`spec.follows`). The followed server must have run the
//! changes of an update for long enough. [`followed_server`] reads its state.

use std::sync::Arc;

use jiff::Timestamp;
use resolver::model::lock::{Lock, LockedPlugin};
use scheduler::announcement;

use super::changes::{is_same_paper, is_same_project, is_same_release};
use super::model::records::LockRecord;
use validate::CheckedFollows;

pub(crate) mod followed_server;

/// The followed server and its state.
pub(crate) struct FollowState {
    pub(crate) spec: CheckedFollows,
    pub(crate) state: LeaderState,
    /// Its last update was rolled back. The running set counts all the same, because the failed one does not run.
    pub(crate) was_rolled_back: bool,
    /// The sets in its history, with the running one in front. Sets from before the soak time may be missing.
    pub(crate) history: Vec<RanSet>,
}

/// A set that ran on the followed server.
pub(crate) struct RanSet {
    /// When it was verified, or kept without verification.
    pub(crate) since: Timestamp,
    /// It was kept without verification.
    pub(crate) unverified: bool,
    pub(crate) record: Arc<LockRecord>,
}

/// The state of the followed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaderState {
    /// It runs its stable revision.
    Stable,
    /// It does not exist.
    Missing,
    /// It follows the follower by way of these servers. The follower is first and last.
    Cycle(Vec<String>),
    /// `spec.suspend`.
    Suspended,
    /// `spec.replicas` is 0.
    ScaledToZero,
    /// It is down, for the reason of its condition `Ready`.
    Down(String),
    /// It runs another set than its stable one: an update or a roll-back is in progress.
    RolloutInProgress,
}

/// Why no automatic update begins yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowWait {
    /// The followed server.
    pub(crate) server: String,
    pub(crate) why: FollowBlocker,
    /// Whether an update waits. `false` if there is none, and only the problem is reported.
    pub(crate) blocks_update: bool,
}

/// The condition that the followed server does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FollowBlocker {
    /// Its state forbids it, whatever it runs.
    State(LeaderState),
    /// It has no verified set yet.
    NothingVerified,
    /// It runs another release.
    OtherRelease {
        /// Name of the package, such as `ViaVersion`.
        package: String,
        /// The version that this server would run.
        wanted: String,
        /// The version that the followed server runs.
        runs: String,
        /// The followed server runs the same version as this one.
        same_as_follower: bool,
        /// Its last update was rolled back.
        was_rolled_back: bool,
    },
    /// It runs the release, but never verified it.
    NotVerified {
        /// Package and version, such as `ViaVersion 5.6.0`.
        release: String,
    },
    /// It has not run the release for long enough.
    Soaking {
        /// Package and version, such as `ViaVersion 5.6.0`.
        release: String,
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
    fn find_in<'l>(&self, lock: &'l Lock) -> Option<ChangedRelease<'l>> {
        match self {
            Self::Paper(_) => Some(ChangedRelease::Paper(lock)),
            Self::Plugin(plugin) => {
                lock.plugins.iter().find(|other| is_same_project(other, plugin)).map(ChangedRelease::Plugin)
            }
        }
    }

    fn is_same(&self, other: &ChangedRelease<'_>) -> bool {
        match (self, other) {
            (Self::Paper(one), ChangedRelease::Paper(other)) => is_same_paper(one, other),
            (Self::Plugin(one), ChangedRelease::Plugin(other)) => is_same_release(one, other),
            (Self::Paper(_), ChangedRelease::Plugin(_)) | (Self::Plugin(_), ChangedRelease::Paper(_)) => false,
        }
    }

    fn is_in(&self, lock: &Lock) -> bool {
        self.find_in(lock).is_some_and(|other| self.is_same(&other))
    }
}

impl FollowState {
    /// The reason for which an update from one lock to another has to wait. A missing server or a circle is reported even without an
    /// update. All other reasons concern only packages that both servers have.
    pub(crate) fn wait_for_update(&self, from: &Lock, to: &Lock, now: Timestamp) -> Option<FollowWait> {
        let changes = changed_releases(from, to);
        let blocks_update = !changes.is_empty();
        let waits = |why| Some(FollowWait { server: self.spec.server.clone(), why, blocks_update });
        if let LeaderState::Missing | LeaderState::Cycle(_) = &self.state {
            return waits(FollowBlocker::State(self.state.clone()));
        }
        let Some(RanSet { record: newest, .. }) = self.history.first() else {
            return if blocks_update { waits(FollowBlocker::NothingVerified) } else { None };
        };
        let common: Vec<&ChangedRelease<'_>> =
            changes.iter().filter(|part| part.find_in(&newest.lock).is_some()).collect();
        if common.is_empty() {
            return None;
        }
        if self.state != LeaderState::Stable {
            return waits(FollowBlocker::State(self.state.clone()));
        }
        let other =
            common.iter().find_map(|part| Some((part, part.find_in(&newest.lock).filter(|runs| !part.is_same(runs))?)));
        if let Some((part, runs)) = other {
            let same_as_follower = part.find_in(from).is_some_and(|current| current.is_same(&runs));
            let (package, wanted) = (part.name().to_owned(), part.version());
            return waits(FollowBlocker::OtherRelease {
                package,
                wanted,
                runs: runs.version(),
                same_as_follower,
                was_rolled_back: self.was_rolled_back,
            });
        }
        let named = |part: &ChangedRelease<'_>| format!("{} {}", part.name(), part.version());
        if let Some(part) = common.iter().find(|part| self.verified_since(part).is_none()) {
            return waits(FollowBlocker::NotVerified { release: named(part) });
        }
        let since = |part: &ChangedRelease<'_>| self.verified_since(part).unwrap_or(Timestamp::MAX);
        let (part, since) = common.iter().map(|part| (part, since(part))).max_by_key(|(_, since)| *since)?;
        let until = since.checked_add(self.spec.soak).unwrap_or(Timestamp::MAX);
        if now < until {
            waits(FollowBlocker::Soaking {
                release: named(part),
                since,
                soak: announcement::format_duration(self.spec.soak),
                until,
            })
        } else {
            None
        }
    }

    /// Since when the followed server has run a release without interruption and verified, as far as the history shows. An unverified set
    /// starts no period, and does not end one that was verified before. `None` if the release was never verified there.
    fn verified_since(&self, part: &ChangedRelease<'_>) -> Option<Timestamp> {
        let containing = self.history.iter().take_while(|ran| part.is_in(&ran.record.lock));
        containing.filter(|ran| !ran.unverified).last().map(|ran| ran.since)
    }
}

/// The releases that are new or different in `to`. Removed packages and pod settings need no soak.
fn changed_releases<'a>(from: &Lock, to: &'a Lock) -> Vec<ChangedRelease<'a>> {
    let all = std::iter::once(ChangedRelease::Paper(to)).chain(to.plugins.iter().map(ChangedRelease::Plugin));
    all.filter(|part| !part.is_in(from)).collect()
}

impl FollowWait {
    /// When the wait ends by itself, if it does.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match &self.why {
            FollowBlocker::Soaking { until, .. } => Some(*until),
            FollowBlocker::State(_)
            | FollowBlocker::NothingVerified
            | FollowBlocker::NotVerified { .. }
            | FollowBlocker::OtherRelease { .. } => None,
        }
    }

    /// Whether the spec is wrong.
    pub(crate) fn is_spec_error(&self) -> bool {
        matches!(self.why, FollowBlocker::State(LeaderState::Missing | LeaderState::Cycle(_)))
    }

    /// The reason of the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match &self.why {
            FollowBlocker::State(LeaderState::Missing) => "NoSuchServer",
            FollowBlocker::State(LeaderState::Cycle(_)) => "Circle",
            FollowBlocker::State(LeaderState::Suspended) => "Suspended",
            FollowBlocker::State(LeaderState::ScaledToZero | LeaderState::Down(_)) => "NotRunning",
            FollowBlocker::State(LeaderState::RolloutInProgress | LeaderState::Stable) => "BeingUpdated",
            FollowBlocker::NothingVerified => "NothingVerified",
            FollowBlocker::NotVerified { .. } => "NotVerified",
            FollowBlocker::OtherRelease { .. } => "OtherRelease",
            FollowBlocker::Soaking { .. } => "Soaking",
        }
    }

    /// For a printer column, such as `waits for staging`.
    pub(crate) fn short(&self) -> String {
        format!("waits for {}", self.server)
    }

    /// The message: the reason for the wait, and the action for a user if it does not end by itself. `format_time` formats an instant. The text
    /// does not change with the clock, because each change would be another write and another Event.
    pub(crate) fn message(&self, format_time: impl Fn(Timestamp) -> String) -> String {
        let why = match &self.why {
            FollowBlocker::State(LeaderState::Missing) => {
                "which does not exist in this namespace. Create it, or correct `spec.follows.server`".to_owned()
            }
            FollowBlocker::State(LeaderState::Cycle(path)) => format!(
                "which waits for this server in a circle ({}). Remove `spec.follows` of one of them",
                path.join(" -> ")
            ),
            FollowBlocker::State(LeaderState::Suspended) => "which is suspended. Remove its `spec.suspend`".to_owned(),
            FollowBlocker::State(LeaderState::ScaledToZero) => {
                "which does not run: its `spec.replicas` is 0".to_owned()
            }
            FollowBlocker::State(LeaderState::Down(reason)) => {
                format!("which does not run: its condition `Ready` says {reason}")
            }
            FollowBlocker::State(LeaderState::RolloutInProgress | LeaderState::Stable) => {
                "which is being updated or rolled back".to_owned()
            }
            FollowBlocker::NothingVerified => "which has no verified version set yet".to_owned(),
            FollowBlocker::NotVerified { release } => {
                format!("which runs {release} without verification. See its `status.lastUpdate`")
            }
            FollowBlocker::OtherRelease { package, wanted, runs, same_as_follower, was_rolled_back } => {
                let runs = match same_as_follower {
                    _ if wanted == runs => format!("other files of {package} {runs}"),
                    true => format!("{package} {runs} still"),
                    false => format!("{package} {runs} and not {wanted}"),
                };
                format!("which runs {runs}{}", if *was_rolled_back { ". Its last update was rolled back" } else { "" })
            }
            FollowBlocker::Soaking { release, since, soak, until } => {
                format!(
                    "which has run {release} since {} and must run it until {} ({soak})",
                    format_time(*since),
                    format_time(*until)
                )
            }
        };
        format!("This server {}, {why}.", self.short())
    }
}

#[cfg(test)]
mod tests;
