//! Pure. Decides which instant of a restart schedule must still be served, and until when.
//!
//! The operator stores no state for this. The due instant follows from the schedule, from the start time of the running server, and from `now`. A
//! server that started after an instant has served it, whoever restarted it and whether or not the operator was running. An operator that crashes
//! in between therefore neither restarts a server twice nor forgets a restart.

use jiff::{SignedDuration, Timestamp};

use super::window::{Window, WindowError};
use super::{LOOKS, Windows, later};

/// How long a server must have run where the spec does not set it: a server that was updated in the same night has had its restart. It is also
/// how long before an update a restart is left to that update.
const ONE_NIGHT: SignedDuration = SignedDuration::from_hours(6);

/// When a server is restarted, repeatedly.
#[derive(Debug, Clone)]
pub struct Restarts {
    schedule: Window,
    /// How long the server must have run at the instant. `None`: see `must_have_run`.
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
    /// See [`Restarts::gives_way_until`].
    pub gives_way_until: Timestamp,
}

impl Restarts {
    /// Reads a five-field cron expression and an IANA time zone, as [`Window::parse`] does. When the clocks change, an instant falls where a
    /// window would open. `served_within` is how long after its instant a restart may still stop the server. A restart that was missed because
    /// the operator was down is left out after that.
    pub fn parse(cron: &str, zone: &str, served_within: SignedDuration) -> Result<Self, WindowError> {
        Ok(Self { schedule: Window::parse_instants(cron, zone)?, least_uptime: None, served_within })
    }

    /// The same schedule, only for a server that has run for this long at the instant.
    #[must_use]
    pub fn of_a_server_up_for(self, least: SignedDuration) -> Self {
        Self { least_uptime: Some(least), ..self }
    }

    /// The first instant after `after` that `counts` and that a server started at `started` has not served. `None`: no such instant among the
    /// next few hundred.
    fn first(&self, started: Timestamp, after: Timestamp, counts: impl Fn(Timestamp) -> bool) -> Option<Timestamp> {
        let mut at = after.max(started);
        if let Some(least) = self.least_uptime {
            // The instant itself may be the first that counts.
            at = at.max(just_before(later(started, least)));
        }
        for _ in 0..LOOKS {
            let next = self.schedule.opens_after(at)?;
            if next >= later(started, self.must_have_run(at, next)) && counts(next) {
                return Some(next);
            }
            at = next;
        }
        None
    }

    /// An update that is sure to begin no later than this replaces the restart of the instant `due`, so that the night has one stop. The result
    /// is six hours after `due`, and at most half of the time to the next instant. If the instant before was already left out, for any reason, no
    /// update replaces this one. So a server whose update never begins is restarted every other time.
    pub fn gives_way_until(&self, started: Timestamp, due: Timestamp) -> Timestamp {
        let was_left_out = self
            .schedule
            .opened_by(just_before(due))
            .is_some_and(|before| before >= later(started, self.must_have_run(just_before(before), before)));
        if was_left_out {
            return due;
        }
        let to_the_next = self.schedule.opens_after(due).map(|next| next.duration_since(due) / 2);
        later(due, to_the_next.map_or(ONE_NIGHT, |half| half.min(ONE_NIGHT)))
    }

    /// How long the server must have run at the instant `next` where the spec does not set it. It is six hours, and at most half of the time
    /// since the instant before, which is the last one up to `at`. A schedule of every four hours therefore works as written.
    fn must_have_run(&self, at: Timestamp, next: Timestamp) -> SignedDuration {
        self.least_uptime.unwrap_or_else(|| match self.schedule.opened_by(at) {
            Some(before) => ONE_NIGHT.min(next.duration_since(before) / 2),
            None => ONE_NIGHT,
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
    pub fn due_restart(&self, restarts: &Restarts, started: Timestamp, now: Timestamp) -> Option<DueRestart> {
        let is_void = |due: Timestamp| {
            let blackouts = self.blackouts.iter();
            blackouts.map(|it| (it.until(now).is_some(), it.ended_by(now))).any(|(is_on, ended)| {
                // The blackout was active at the instant, or followed it.
                is_on || ended.is_some_and(|ended| due < ended)
            })
        };
        let counts_since = now.checked_sub(restarts.served_within).unwrap_or(Timestamp::MIN);
        let due = restarts.first(started, counts_since, |at| at > now || !is_void(at)).filter(|due| *due <= now)?;
        let until = later(due, restarts.served_within);
        let until = self.blackouts.iter().filter_map(|blackout| blackout.begins_after(now)).fold(until, Ord::min);
        Some(DueRestart { due, until, gives_way_until: restarts.gives_way_until(started, due) })
    }

    /// The next instant, after now, at which such a server is restarted if it is not restarted before.
    pub fn next_restart(&self, restarts: &Restarts, started: Timestamp, now: Timestamp) -> Option<Timestamp> {
        restarts.first(started, now, |at| self.blackout_at(at).is_none())
    }
}

#[cfg(test)]
mod tests;
