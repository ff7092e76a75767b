//! Pure. Decides which online backup is due, by its schedule or because a user requested it.
//!
//! **An instant of the schedule counts if it was shown**: the status named it, or an instant before it, as the next one. A new or changed
//! schedule therefore begins with its next instant and does not catch up on earlier ones.
//!
//! **A missed instant is made up for once**: only the latest, and only while it is younger than half of the time to the instant after it. The
//! cause does not matter: the operator was down, the server was scaled to zero, or an update was running. An older instant is left out, because
//! the next one is nearer.
//!
//! **An instant is served** when the agent was given its request, whatever the result. It is also served when a successful backup of the same
//! contents was begun since, for example one that a user requested or that was taken before an update. A failed backup is not tried again before
//! the next instant.
//!
//! **Where a server is backed up only after play**, an instant is left out if nobody has played since the newest backup. The next instant is then
//! shown. It also covers players who join in between.
//!
//! **A user's request has priority**, and may be as old as a request to apply now. See [`Gate::on_request`].

use jiff::Timestamp;

use super::Gate;
use super::window::{Window, WindowError};
use agent_api::Trigger;
use agent_api::{OnlineBackupOutcome, OnlineBackupReport};

/// When a running server is backed up, repeatedly.
#[derive(Debug, Clone)]
pub struct BackupTimes {
    schedule: Window,
    /// An instant is left out while nobody has played since the newest backup.
    only_if_played: bool,
}

/// The record of the backups taken so far, and which instant was shown as the next one.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackupHistory<'a> {
    /// The instant that was last shown as the next one. `None`: no instant was shown.
    pub last_shown: Option<Timestamp>,
    /// The agent's last request.
    pub last_request: Option<&'a OnlineBackupReport>,
    /// When the newest successful backup with the contents of a scheduled one was begun.
    pub newest: Option<Timestamp>,
    /// Whether nobody can have played since that backup was begun.
    pub is_unplayed: bool,
}

/// A user's request for a backup that is not yet recorded as served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupRequest {
    /// The instant that the user wrote.
    pub at: Timestamp,
    /// Whether the request was young enough when it was first observed.
    pub accepted: bool,
}

/// A backup that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueBackup {
    /// Due for this instant of the schedule.
    Scheduled(Timestamp),
    /// Due for a user's request with this instant.
    Requested(Timestamp),
}

impl DueBackup {
    /// The name of its request to the agent. It follows from the instant, so it needs no storage: asking twice sends the same request.
    pub fn request(self) -> String {
        match self {
            Self::Scheduled(instant) => format!("scheduled-{instant}"),
            Self::Requested(at) => format!("asked-{}", at.as_second()),
        }
    }

    /// The trigger of the backup.
    pub const fn trigger(self) -> Trigger {
        match self {
            Self::Scheduled(_) => Trigger::Scheduled,
            Self::Requested(_) => Trigger::OnDemand,
        }
    }
}

impl BackupHistory<'_> {
    /// Whether the agent was given this request.
    fn was_given(&self, due: DueBackup) -> bool {
        self.last_request.is_some_and(|last_request| last_request.request == due.request())
    }

    fn is_running(&self) -> bool {
        self.last_request.is_some_and(|last_request| last_request.outcome == OnlineBackupOutcome::Running)
    }
}

impl BackupRequest {
    /// Whether it is young enough to be served.
    pub fn is_valid(self, now: Timestamp) -> bool {
        Gate::on_request(self.at, self.accepted, now).is_some()
    }

    /// Whether the agent was given this request, whatever the result.
    pub fn was_given(self, past: &BackupHistory<'_>) -> bool {
        past.was_given(DueBackup::Requested(self.at))
    }
}

impl BackupTimes {
    /// Reads a five-field cron expression and an IANA time zone, as [`Window::parse`] does. When the clocks change, an instant falls where a
    /// window would open.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, WindowError> {
        Ok(Self { schedule: Window::parse_instants(cron, zone)?, only_if_played: false })
    }

    /// The same schedule, without the instants before which nobody has played since the newest backup.
    #[must_use]
    pub fn only_if_played(self) -> Self {
        Self { only_if_played: true, ..self }
    }

    /// The next instant after now.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.schedule.opens_after(now)
    }

    /// The instant that must still be served now.
    pub fn due_instant(&self, past: &BackupHistory<'_>, now: Timestamp) -> Option<Timestamp> {
        let last_shown = past.last_shown?;
        let instant = self.schedule.opened_by(now).filter(|instant| last_shown <= *instant)?;
        let is_too_late = |next: Timestamp| now.duration_since(instant) >= next.duration_since(instant) / 2;
        let is_served = past.was_given(DueBackup::Scheduled(instant)) || past.newest.is_some_and(|at| instant <= at);
        let is_of_no_use = self.only_if_played && past.is_unplayed;
        (!is_served && !is_of_no_use && !self.next(now).is_some_and(is_too_late)).then_some(instant)
    }
}

/// The backup to request from the agent now, if the server is up and no other work is running there. `request` is one that is not yet
/// recorded as served.
pub fn next_backup(
    schedule: Option<&BackupTimes>,
    request: Option<BackupRequest>,
    past: &BackupHistory<'_>,
    now: Timestamp,
) -> Option<DueBackup> {
    if past.is_running() {
        return None;
    }
    match request {
        // The agent remembers one request. The operator records that this one was served before it sends another.
        Some(request) if request.was_given(past) => None,
        Some(request) if request.is_valid(now) => Some(DueBackup::Requested(request.at)),
        Some(_) | None => schedule?.due_instant(past, now).map(DueBackup::Scheduled),
    }
}

#[cfg(test)]
mod tests;
