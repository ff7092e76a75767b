//! Pure. Copies of a server that goes on running: which one is due, by the clock or because a person asked for it.
//!
//! **An instant of the schedule counts if it was promised**: somebody was told that it, or one before it, comes next. So a schedule that
//! is new, or was changed, begins with its next instant and makes nothing good from before it was there.
//!
//! **One that was missed is made good once**: the latest, while it is younger than half of the time to the instant after it. Nobody was
//! there, the server slept, or an update was under way: all the same. What is older is left out, because the next one is nearer.
//!
//! **It is served** when the agent was given its request, whatever came of that, or when a good copy of such contents was begun since:
//! also one that a person asked for, or that was taken before an update. One that failed is not tried again before the next instant.
//!
//! **Where only what was played is copied**, an instant before which nobody has played since the newest copy is left out. The next one is
//! promised then: who comes in between is in that.
//!
//! **A person's request comes first**, and is as old as a request to apply now may be; see [`Gate::by_hand`].

use jiff::Timestamp;

use super::Gate;
use super::window::{Window, WindowError};
use crate::backup::Trigger;
use crate::protocol::{HotCopyOutcome, HotCopySeen};

/// When a running server is copied, again and again.
#[derive(Debug, Clone)]
pub struct BackupTimes {
    schedule: Window,
    /// An instant is left out while nobody has played since the newest copy.
    only_played: bool,
}

/// What is known of the copies that were taken, and of what was promised.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackupHistory<'a> {
    /// The instant that was named last as the next one; None: none was.
    pub promised: Option<Timestamp>,
    /// The agent's last request.
    pub hot: Option<&'a HotCopySeen>,
    /// When the newest good copy was begun that holds what a scheduled one would.
    pub newest: Option<Timestamp>,
    /// Nobody can have played since that one was begun.
    pub is_unplayed: bool,
}

/// A person's request for a copy, which nobody has noted as served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupRequest {
    /// The instant that was written.
    pub at: Timestamp,
    /// It was young enough when it was first seen.
    pub accepted: bool,
}

/// A copy that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueBackup {
    /// Of this instant of the schedule.
    Scheduled(Timestamp),
    /// Of a request with this instant.
    Asked(Timestamp),
}

impl DueBackup {
    /// The name of its request. It follows from the instant, so nobody has to keep it: who asks twice asks for the same one.
    pub fn request(self) -> String {
        match self {
            Self::Scheduled(instant) => format!("scheduled-{instant}"),
            Self::Asked(at) => format!("asked-{}", at.as_second()),
        }
    }

    /// Why it would be taken.
    pub const fn trigger(self) -> Trigger {
        match self {
            Self::Scheduled(_) => Trigger::Scheduled,
            Self::Asked(_) => Trigger::OnDemand,
        }
    }
}

impl BackupHistory<'_> {
    /// The agent was given this request.
    fn was_given(&self, due: DueBackup) -> bool {
        self.hot.is_some_and(|hot| hot.request == due.request())
    }

    fn is_taking_one(&self) -> bool {
        self.hot.is_some_and(|hot| hot.outcome == HotCopyOutcome::Running)
    }
}

impl BackupRequest {
    /// Whether it is young enough to be served.
    pub fn counts(self, now: Timestamp) -> bool {
        Gate::by_hand(self.at, self.accepted, now).is_some()
    }

    /// Whether the agent was given it, whatever came of that.
    pub fn was_given(self, past: &BackupHistory<'_>) -> bool {
        past.was_given(DueBackup::Asked(self.at))
    }
}

impl BackupTimes {
    /// Reads a five-field cron expression and an IANA time zone, as [`Window::parse`] does. In the nights in which the clocks change an
    /// instant comes when a window would open.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, WindowError> {
        Ok(Self { schedule: Window::parse_instants(cron, zone)?, only_played: false })
    }

    /// The same, with the instants left out before which nobody has played since the newest copy.
    #[must_use]
    pub fn of_a_server_that_was_played(self) -> Self {
        Self { only_played: true, ..self }
    }

    /// The next instant after now.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.schedule.opens_after(now)
    }

    /// The instant that is still to be served now.
    pub fn owed(&self, past: &BackupHistory<'_>, now: Timestamp) -> Option<Timestamp> {
        let promised = past.promised?;
        let instant = self.schedule.opened_by(now).filter(|instant| promised <= *instant)?;
        let is_too_late = |next: Timestamp| now.duration_since(instant) >= next.duration_since(instant) / 2;
        let is_served = past.was_given(DueBackup::Scheduled(instant)) || past.newest.is_some_and(|at| instant <= at);
        let is_of_no_use = self.only_played && past.is_unplayed;
        (!is_served && !is_of_no_use && !self.next(now).is_some_and(is_too_late)).then_some(instant)
    }
}

/// The copy to ask the agent for now, if the server is up and nothing else is under way there. `asked` is a request that was not noted as
/// served.
pub fn next_copy(
    schedule: Option<&BackupTimes>,
    asked: Option<BackupRequest>,
    past: &BackupHistory<'_>,
    now: Timestamp,
) -> Option<DueBackup> {
    if past.is_taking_one() {
        return None;
    }
    match asked {
        // The agent remembers one request: it is noted that this one was served before another takes its place.
        Some(asked) if asked.was_given(past) => None,
        Some(asked) if asked.counts(now) => Some(DueBackup::Asked(asked.at)),
        Some(_) | None => schedule?.owed(past, now).map(DueBackup::Scheduled),
    }
}

#[cfg(test)]
mod tests;
