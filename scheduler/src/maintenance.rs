//! Pure. Computes whether a server may be taken down now, until when, and if not, when it may be.
//!
//! The gate is level-triggered: it is computed from `now` alone. A late, early or repeated wake-up therefore gets the same answer. Only this
//! module decides it. The alarm clock only wakes callers that ask.
//!
//! **Several windows unite.** Windows that overlap or touch are one opening, from the start of the first to the end of the last. An announcement
//! made in the first minutes of a night therefore still counts when the next window joins. An opening that would never end is cut: if it began
//! before yesterday, counted in UTC, it begins anew at each midnight UTC. So no opening is longer than 48 hours, no announcement stays valid for
//! weeks, and two openings never overlap. For a server without windows, each day UTC is one opening. The deadline of `WaitForEmpty` counts from
//! the opening, so it is over soon after midnight there. Users who want to wait for players set a window.
//!
//! **Blackouts win**, over windows and over a user's request. The start of a blackout ends the opening. The rest of the window after the blackout
//! is another opening, and earlier announcements do not count in it.
//!
//! **The last part of a window** may be closed to updates that have not begun (`latestStart`). Each window has its own. Where windows overlap, an
//! update may begin while one of them allows it.
//!
//! **Outside of windows**, urgent updates and updates that no player would notice may run. See [`Windows::without_windows`] and
//! `crate::rollout::opportunistic`.
//!
//! **Scheduled restarts** need no window. See [`RestartSchedule`]. Online backups need no window either. See [`BackupTimes`].

use jiff::{SignedDuration, Timestamp};

mod backup_schedule;
mod blackout;
mod check_times;
mod cron_expr;
mod format_time;
mod restart_schedule;
mod time_zone;
mod window;

pub use backup_schedule::{BackupHistory, BackupRequest, BackupTimes, DueBackup, next_backup};
pub use blackout::{Blackout, InvertedRange};
pub use check_times::CheckTimes;
pub use cron_expr::{Field, FieldProblem, InvalidField};
pub use format_time::format_time;
pub use restart_schedule::{DueRestart, RestartSchedule};
pub use window::{Window, WindowError, check_cron, check_zone};

/// How old a request to apply now, or for a backup, may be when it is first observed. It is longer than a request takes to arrive, also through
/// git. It is short enough that an annotation found in a restored cluster backup starts nothing.
const REQUEST_VALID_FOR: SignedDuration = SignedDuration::from_mins(5);

/// How far in the future such a request may seem to be, because the author's clock may differ from the operator's.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// How long the gate stays open after a request: countdown (5 minutes), save, stop, and one more try.
const REQUESTED_OPENING: SignedDuration = SignedDuration::from_mins(30);

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How many openings and ends of blackouts are examined to find an instant at which an update may begin. Windows that blackouts leave any part of
/// are found after a few. A schedule whose every window is covered costs this many lookups per call, which takes milliseconds.
const MAX_EXAMINED: usize = 500;

/// Whether a server may be taken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may be taken down, from the first instant up to, and not at, the last.
    Open {
        /// When this opening began. It identifies the opening: announcements made in another opening do not count.
        opened_at: Timestamp,
        /// When this opening ends.
        until: Timestamp,
    },
    /// An update that has begun in this opening may finish. No other update may begin.
    NoNewStarts {
        /// When this opening began, as in [`Self::Open`].
        opened_at: Timestamp,
        /// When this opening ends.
        until: Timestamp,
        /// When an update may begin again, always in the future. `None` as in [`Self::Shut`].
        opens: Option<Timestamp>,
    },
    /// It may not be taken down.
    Shut {
        /// When an update may begin, always in the future. `None`: no window follows, or blackouts cover the next 250 and more.
        opens: Option<Timestamp>,
    },
}

impl Gate {
    /// The gate that a user opens with the annotation `nightshift.dev/apply-now: <unix seconds>`, or `None` if the request does not count. The
    /// request skips the windows for 30 minutes from the instant that the user wrote.
    ///
    /// A request must be at most 5 minutes old when it is first observed. `accepted` states that it was. The caller keeps the value it accepted,
    /// because the countdown alone takes longer than that. The request outranks the windows, also an open one. Otherwise its `opened_at`, and
    /// with it the countdown, would begin again when a window opens.
    pub fn on_request(requested_at: Timestamp, accepted: bool, now: Timestamp) -> Option<Self> {
        let age = now.duration_since(requested_at);
        let counts = if accepted { REQUESTED_OPENING } else { REQUEST_VALID_FOR };
        if age < -MAX_CLOCK_SKEW || age >= counts {
            return None;
        }
        Some(Self::Open { opened_at: requested_at, until: requested_at + REQUESTED_OPENING })
    }

    /// Whether an update may begin now.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// When this opening began. `None`: the gate is shut.
    pub fn opened_at(self) -> Option<Timestamp> {
        match self {
            Self::Open { opened_at, .. } | Self::NoNewStarts { opened_at, .. } => Some(opened_at),
            Self::Shut { .. } => None,
        }
    }

    /// When this opening ends. `None`: the gate is shut.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Open { until, .. } | Self::NoNewStarts { until, .. } => Some(until),
            Self::Shut { .. } => None,
        }
    }

    /// When an update may begin next, while none may now. `None`: an update may begin now, or never again by itself.
    pub fn opens(self) -> Option<Timestamp> {
        match self {
            Self::Open { .. } => None,
            Self::NoNewStarts { opens, .. } | Self::Shut { opens } => opens,
        }
    }

    /// Whether the gate is shut at some time before this instant.
    pub fn shuts_before(self, instant: Timestamp) -> bool {
        match self {
            Self::Open { until, .. } | Self::NoNewStarts { until, .. } => until < instant,
            Self::Shut { .. } => true,
        }
    }
}

/// All windows of one server, and its blackouts.
#[derive(Debug, Clone)]
pub struct Windows {
    /// The windows. They unite: the gate is open when one of them is.
    pub windows: Vec<Window>,
    /// False: the windows are ignored, and the server may be changed at any time, as if it had no windows.
    pub enabled: bool,
    /// While one of these is active, the gate is shut.
    pub blackouts: Vec<Blackout>,
}

impl Windows {
    /// The gate at one instant.
    pub fn gate(&self, now: Timestamp) -> Gate {
        let today = midnight(now);
        let yesterday = today - DAY;
        let run = if self.blackout_at(now).is_some() { None } else { self.run_began(now, yesterday) };
        let Some(began) = run else {
            return Gate::Shut { opens: self.begins_after(now) };
        };
        // The rest of a window after a blackout is another opening.
        let began = self.blackouts.iter().filter_map(|blackout| blackout.ended_by(now)).fold(began, Ord::max);
        // Both cuts are the instants at which this computation begins to return another `opened_at`.
        let (opened_at, cut) =
            if began < yesterday { (today, today + DAY) } else { (began, midnight(began) + DAY + DAY) };
        let blackouts = self.blackouts.iter().filter_map(|blackout| blackout.begins_after(now));
        let until = blackouts.fold(self.run_ends(now, cut), Ord::min);
        if self.may_begin(now) {
            Gate::Open { opened_at, until }
        } else {
            Gate::NoNewStarts { opened_at, until, opens: self.begins_after(now) }
        }
    }

    /// The gate that a user opens, as in [`Gate::on_request`]. `None` also when a blackout is active, or was active since the request. The user must
    /// then repeat the request.
    pub fn on_request(&self, requested_at: Timestamp, accepted: bool, now: Timestamp) -> Option<Gate> {
        let Gate::Open { opened_at, until } = Gate::on_request(requested_at, accepted, now)? else { return None };
        let is_between = |blackout: &Blackout| {
            blackout.until(now).is_some() || blackout.ended_by(now).is_some_and(|ended| requested_at < ended)
        };
        if self.blackouts.iter().any(is_between) {
            return None;
        }
        let until = self.blackouts.iter().filter_map(|blackout| blackout.begins_after(now)).fold(until, Ord::min);
        Some(Gate::Open { opened_at, until })
    }

    /// The gate for updates that do not wait for a window and have been pending `since` this instant. It is open except during blackouts, and cut
    /// at each midnight as without windows. On the first day, the wait for players counts from `since`.
    pub fn without_windows(&self, since: Timestamp, now: Timestamp) -> Gate {
        let at_any_time = Self { windows: Vec::new(), enabled: false, blackouts: self.blackouts.clone() };
        match at_any_time.gate(now) {
            Gate::Open { opened_at, until } => Gate::Open { opened_at: opened_at.max(since.min(now)), until },
            gate @ (Gate::NoNewStarts { .. } | Gate::Shut { .. }) => gate,
        }
    }

    /// The active blackout and its end. Of several, the one that ends last.
    pub fn blackout_at(&self, now: Timestamp) -> Option<(&Blackout, Timestamp)> {
        let on = self.blackouts.iter().filter_map(|blackout| Some((blackout, blackout.until(now)?)));
        on.max_by_key(|(_, until)| *until)
    }

    /// When an update may begin next. If the gate is open, this is in the opening after it. Users see this instant, and the alarm is set to it.
    /// `None` as in [`Gate::Shut`].
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        match self.gate(now) {
            Gate::Shut { opens } | Gate::NoNewStarts { opens, .. } => opens,
            Gate::Open { until, .. } => match self.gate(until) {
                Gate::Open { opened_at, .. } => Some(opened_at),
                Gate::Shut { opens } | Gate::NoNewStarts { opens, .. } => opens,
            },
        }
    }

    /// Whether an update may begin at this instant.
    fn may_begin(&self, now: Timestamp) -> bool {
        let allowed = self.is_always_open() || self.effective_windows().iter().any(|window| window.may_begin(now));
        allowed && self.blackouts.iter().all(|blackout| blackout.until(now).is_none())
    }

    /// When an update may begin next, if it may not now. Only the start of a window or the end of a blackout can be that instant.
    fn begins_after(&self, now: Timestamp) -> Option<Timestamp> {
        let mut at = now;
        for _ in 0..MAX_EXAMINED {
            at = match self.blackout_at(at) {
                Some((_, until)) => until,
                None => self.effective_windows().iter().filter_map(|window| window.opens_after(at)).min()?,
            };
            if self.may_begin(at) {
                return Some(at);
            }
        }
        None
    }

    fn effective_windows(&self) -> &[Window] {
        if self.enabled { &self.windows } else { &[] }
    }

    fn is_always_open(&self) -> bool {
        self.effective_windows().is_empty()
    }

    /// When the windows that are open now, and those that they overlap or touch, began. The result may be any instant before `enough` if they
    /// began earlier than that. `None`: no window is open.
    fn run_began(&self, now: Timestamp, enough: Timestamp) -> Option<Timestamp> {
        if self.is_always_open() {
            return Some(Timestamp::MIN);
        }
        let open = |window: &Window| window.opened_by(now).filter(|opened| now < *opened + window.length());
        let mut began = self.effective_windows().iter().filter_map(open).min()?;
        loop {
            let earlier = |window: &Window| {
                // The first opening of this window that lasts until `began` at least.
                window.opens_at_or_after(began - window.length()).filter(|opened| *opened < began)
            };
            match self.effective_windows().iter().filter_map(earlier).min() {
                Some(earlier) if began >= enough => began = earlier,
                _ => return Some(began),
            }
        }
    }

    /// When the windows that are open now, and those that they overlap or touch, end. The result is `cut` at the latest.
    fn run_ends(&self, now: Timestamp, cut: Timestamp) -> Timestamp {
        if self.is_always_open() {
            return cut;
        }
        let mut ends = now;
        loop {
            let later = |window: &Window| Some(window.opened_by(ends)? + window.length());
            match self.effective_windows().iter().filter_map(later).max() {
                Some(later) if later > ends && ends < cut => ends = later,
                _ => return ends.min(cut),
            }
        }
    }
}

/// `at + duration`, or the end of time if the sum is beyond it. Facts, specs and answers of servers are external input, so any value must have a
/// result.
pub(crate) fn saturating_add(at: Timestamp, duration: SignedDuration) -> Timestamp {
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// The last midnight UTC.
fn midnight(now: Timestamp) -> Timestamp {
    let day = DAY.as_secs();
    Timestamp::from_second(now.as_second().div_euclid(day) * day).expect("midnight before a valid instant is valid")
}

#[cfg(test)]
mod tests;
