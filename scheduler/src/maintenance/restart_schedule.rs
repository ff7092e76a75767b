//! Pure. Decides which instant of a restart schedule must still be served, and until when.
//!
//! The operator stores no state for this. The due instant follows from the schedule, from the start time of the running server, and from `now`. A
//! server that started after an instant has served it, whoever restarted it and whether or not the operator was running. An operator that crashes
//! in between therefore neither restarts a server twice nor forgets a restart.

use jiff::{SignedDuration, Timestamp};

use super::window::{Window, WindowError};
use super::{MAX_EXAMINED, Windows, saturating_add};

/// How long a server must have run where the spec does not set it: a server that was updated in the same night has had its restart. It is also
/// how long before an update a restart is left to that update.
const DEFAULT_LEAST_UPTIME: SignedDuration = SignedDuration::from_hours(6);

/// When a server is restarted, repeatedly.
#[derive(Debug, Clone)]
pub struct RestartSchedule {
    schedule: Window,
    /// How long the server must have run at the instant. `None`: see `required_uptime`.
    least_uptime: Option<SignedDuration>,
    /// For how long after its instant a restart may stop the server.
    served_within: SignedDuration,
}

/// A restart that is due and may begin now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRestart {
    /// The instant of the schedule. It identifies the restart: announcements of another one do not count.
    pub due: Timestamp,
    /// When it is too late. The next instant is awaited then.
    pub until: Timestamp,
    /// See [`RestartSchedule::yields_until`].
    pub yields_until: Timestamp,
}

impl RestartSchedule {
    /// Reads a five-field cron expression and an IANA time zone, as [`Window::parse`] does. When the clocks change, an instant falls where a
    /// window would open. `served_within` is how long after its instant a restart may still stop the server. A restart that was missed because
    /// the operator was down is left out after that.
    pub fn parse(cron: &str, zone: &str, served_within: SignedDuration) -> Result<Self, WindowError> {
        Ok(Self { schedule: Window::parse_instants(cron, zone)?, least_uptime: None, served_within })
    }

    /// The same schedule, only for a server that has run for this long at the instant.
    #[must_use]
    pub fn with_least_uptime(self, least: SignedDuration) -> Self {
        Self { least_uptime: Some(least), ..self }
    }

    /// The first instant after `after` that `is_counted` accepts and that a server started at `started` has not served. `None`: no such instant among the
    /// next few hundred.
    fn first_unserved(
        &self,
        started: Timestamp,
        after: Timestamp,
        is_counted: impl Fn(Timestamp) -> bool,
    ) -> Option<Timestamp> {
        let mut at = after.max(started);
        if let Some(least) = self.least_uptime {
            // The instant itself may be the first that counts.
            at = at.max(just_before(saturating_add(started, least)));
        }
        for _ in 0..MAX_EXAMINED {
            let next = self.schedule.opens_after(at)?;
            if next >= saturating_add(started, self.required_uptime(at, next)) && is_counted(next) {
                return Some(next);
            }
            at = next;
        }
        None
    }

    /// An update that is sure to begin no later than this replaces the restart of the instant `due`, so that the night has one stop. The result
    /// is six hours after `due`, and at most half of the time to the next instant. If the instant before was already left out, for any reason, no
    /// update replaces this one. So a server whose update never begins is restarted every other time.
    pub fn yields_until(&self, started: Timestamp, due: Timestamp) -> Timestamp {
        let is_skipped = self
            .schedule
            .opened_by(just_before(due))
            .is_some_and(|before| before >= saturating_add(started, self.required_uptime(just_before(before), before)));
        if is_skipped {
            return due;
        }
        let to_the_next = self.schedule.opens_after(due).map(|next| next.duration_since(due) / 2);
        saturating_add(due, to_the_next.map_or(DEFAULT_LEAST_UPTIME, |half| half.min(DEFAULT_LEAST_UPTIME)))
    }

    /// How long the server must have run at the instant `next` where the spec does not set it. It is six hours, and at most half of the time
    /// since the instant before, which is the last one up to `at`. A schedule of every four hours therefore works as written.
    fn required_uptime(&self, at: Timestamp, next: Timestamp) -> SignedDuration {
        self.least_uptime.unwrap_or_else(|| match self.schedule.opened_by(at) {
            Some(before) => DEFAULT_LEAST_UPTIME.min(next.duration_since(before) / 2),
            None => DEFAULT_LEAST_UPTIME,
        })
    }
}

fn just_before(instant: Timestamp) -> Timestamp {
    instant.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(Timestamp::MIN)
}

impl Windows {
    /// The restart that is due for a server that started at `started`, if any. It needs no window. A blackout wins over it: an instant within a
    /// blackout is left out, and so is one that was not served before the next blackout began. Of several instants the result is the first, so
    /// that a countdown that has begun stays the same one.
    pub fn due_restart(&self, restarts: &RestartSchedule, started: Timestamp, now: Timestamp) -> Option<DueRestart> {
        let is_void = |due: Timestamp| {
            let blackouts = self.blackouts.iter();
            blackouts.map(|blackout| (blackout.until(now).is_some(), blackout.ended_by(now))).any(|(is_on, ended)| {
                // The blackout was active at the instant, or followed it.
                is_on || ended.is_some_and(|ended| due < ended)
            })
        };
        let counts_since = now.checked_sub(restarts.served_within).unwrap_or(Timestamp::MIN);
        let due =
            restarts.first_unserved(started, counts_since, |at| at > now || !is_void(at)).filter(|due| *due <= now)?;
        let until = saturating_add(due, restarts.served_within);
        let until = self.blackouts.iter().filter_map(|blackout| blackout.begins_after(now)).fold(until, Ord::min);
        Some(DueRestart { due, until, yields_until: restarts.yields_until(started, due) })
    }

    /// The next instant, after now, at which such a server is restarted if it is not restarted before.
    pub fn next_restart(&self, restarts: &RestartSchedule, started: Timestamp, now: Timestamp) -> Option<Timestamp> {
        restarts.first_unserved(started, now, |at| self.blackout_at(at).is_none())
    }
}

#[cfg(test)]
mod tests;
