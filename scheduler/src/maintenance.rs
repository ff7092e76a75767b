//! Pure. May a server be taken down now, until when, and if not, when?
//!
//! The gate is level-triggered: it is computed from `now` alone, so a late, early or repeated wake-up asks again and gets
//! the same answer. Nothing but this module decides it; the alarm clock only wakes somebody who asks.
//!
//! **Several windows unite.** Windows that overlap or touch are one opening: it begins with the first and ends with the
//! last of them, so an announcement made in the first minutes of a night still counts when the next window joins in. An
//! opening that would last for ever is cut: one that began before yesterday, counted in UTC, begins anew at each midnight
//! UTC. So no opening is longer than 48 hours, nothing that was announced in one lives on for weeks, and two openings never
//! overlap. A server without windows is the same case: each day UTC is one opening (so the deadline of `WaitForEmpty`, which
//! counts from the opening, is over soon after midnight there: whoever wants to wait for players sets a window).
//!
//! **Blackouts win**, over windows and over a person's request. One that begins ends the opening, and what is left of the
//! window after it is another opening: nothing that was announced before counts behind it.
//!
//! **The last part of a window** may be closed to what has not begun (`latestStart`). Each window has its own: where they
//! overlap, something may begin while one of them allows it.
//!
//! **Outside of windows** may come what is urgent, and what nobody would notice; see [`Windows::without_windows`] and
//! [`crate::rollout::opportunistic`].
//!
//! **Restarts by the clock** need no window; see [`Restarts`]. Neither do copies of a server that goes on running; see [`BackupTimes`].

use jiff::{SignedDuration, Timestamp};

mod backup_schedule;
mod blackout;
mod cron_expr;
mod restart_schedule;
mod time_zone;
mod window;

pub use backup_schedule::{BackupHistory, BackupRequest, BackupTimes, DueBackup, next_copy};
pub use blackout::{Blackout, InvertedRange};
pub use cron_expr::{Field, FieldProblem};
pub use restart_schedule::{DueRestart, Restarts};
pub use window::{Window, WindowError, WindowField};

/// How old a request to apply now, or for a copy, may be when it is first seen. Longer than it takes to arrive, also by way of git; short
/// enough that an annotation found in a restored backup starts nothing.
const REQUEST_COUNTS: SignedDuration = SignedDuration::from_mins(5);

/// How far in the future such a request may seem to be: the clock of whoever wrote it is not ours.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(1);

/// How long the gate stays open after a request: countdown (5 minutes), save, stop, and one more try.
const OPEN_BY_HAND: SignedDuration = SignedDuration::from_mins(30);

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How many openings and ends of blackouts are looked at for one that the other does not spoil. Windows that blackouts leave
/// anything of are found after a few; a schedule whose every window is spoilt costs this many looks at each question, which
/// is milliseconds.
const LOOKS: usize = 500;

/// Whether a server may be taken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may, from the first instant up to, and not at, the last.
    Open {
        /// When this opening began. Names it: what was announced in another one counts for nothing.
        opened_at: Timestamp,
        /// When it is over.
        until: Timestamp,
    },
    /// What has begun in this opening may end; nothing else begins.
    NoNewStarts {
        /// When this opening began, as of [`Self::Open`].
        opened_at: Timestamp,
        /// When it is over.
        until: Timestamp,
        /// When something may begin again, always in the future. None as of [`Self::Shut`].
        opens: Option<Timestamp>,
    },
    /// It may not.
    Shut {
        /// When something may begin, always in the future. None: no window comes again, or blackouts spoil the next
        /// 250 and more.
        opens: Option<Timestamp>,
    },
}

impl Gate {
    /// The gate that a person opens with the annotation `nightshift.dev/apply-now: <unix seconds>`, or None if the request
    /// counts for nothing. It skips the windows, for 30 minutes from the instant that was written.
    ///
    /// A request must be at most 5 minutes old when it is first seen. `accepted` says that it was: the caller keeps the
    /// value it accepted, because the countdown alone takes longer than that. It outranks
    /// the windows, also one that is open: otherwise its `opened_at`, and with it the countdown, would begin again with them.
    pub fn by_hand(asked_at: Timestamp, accepted: bool, now: Timestamp) -> Option<Self> {
        let age = now.duration_since(asked_at);
        let counts = if accepted { OPEN_BY_HAND } else { REQUEST_COUNTS };
        if age < -CLOCKS_DIFFER || age >= counts {
            return None;
        }
        Some(Self::Open { opened_at: asked_at, until: asked_at + OPEN_BY_HAND })
    }

    /// When this opening is over. None: the gate is shut.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Open { until, .. } | Self::NoNewStarts { until, .. } => Some(until),
            Self::Shut { .. } => None,
        }
    }

    /// When something may begin next, while nothing may now. None: something may, or never again by itself.
    pub fn opens(self) -> Option<Timestamp> {
        match self {
            Self::Open { .. } => None,
            Self::NoNewStarts { opens, .. } | Self::Shut { opens } => opens,
        }
    }

    /// Is the gate shut at some time before this instant?
    pub fn shuts_before(self, instant: Timestamp) -> bool {
        match self {
            Self::Open { until, .. } | Self::NoNewStarts { until, .. } => until < instant,
            Self::Shut { .. } => true,
        }
    }
}

/// All windows of one server, and what wins over them.
#[derive(Debug, Clone)]
pub struct Windows {
    /// They unite: the gate is open when one of them is.
    pub windows: Vec<Window>,
    /// False: the windows are written down but not used, and the server may be changed at any time. The same as no windows.
    pub enabled: bool,
    /// While one of them is on, the gate is shut.
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
        // What is left of a window behind a blackout is another opening.
        let began = self.blackouts.iter().filter_map(|blackout| blackout.ended_by(now)).fold(began, Ord::max);
        // Both cuts are the instant at which this very computation begins to answer with another `opened_at`.
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

    /// The gate that a person opens, as [`Gate::by_hand`] has it. None also when a blackout is on, or was on since the
    /// request: it would have to be asked again.
    pub fn by_hand(&self, asked_at: Timestamp, accepted: bool, now: Timestamp) -> Option<Gate> {
        let Gate::Open { opened_at, until } = Gate::by_hand(asked_at, accepted, now)? else { return None };
        let came_between = |blackout: &Blackout| {
            blackout.until(now).is_some() || blackout.ended_by(now).is_some_and(|ended| asked_at < ended)
        };
        if self.blackouts.iter().any(came_between) {
            return None;
        }
        let until = self.blackouts.iter().filter_map(|blackout| blackout.begins_after(now)).fold(until, Ord::min);
        Some(Gate::Open { opened_at, until })
    }

    /// The gate for what waits for no window and is there `since` this instant: open but for blackouts, cut at each midnight
    /// as without windows. What waits for players counts from `since` on the first day.
    pub fn without_windows(&self, since: Timestamp, now: Timestamp) -> Gate {
        let at_any_time = Self { windows: Vec::new(), enabled: false, blackouts: self.blackouts.clone() };
        match at_any_time.gate(now) {
            Gate::Open { opened_at, until } => Gate::Open { opened_at: opened_at.max(since.min(now)), until },
            gate @ (Gate::NoNewStarts { .. } | Gate::Shut { .. }) => gate,
        }
    }

    /// The blackout that is on, and when it is over: of several, the one that lasts longest.
    pub fn blackout_at(&self, now: Timestamp) -> Option<(&Blackout, Timestamp)> {
        let on = self.blackouts.iter().filter_map(|blackout| Some((blackout, blackout.until(now)?)));
        on.max_by_key(|(_, until)| *until)
    }

    /// When something may begin next: in another opening if the gate is open. What a user wants to know, and what the alarm
    /// is set to. None as of [`Gate::Shut`].
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        match self.gate(now) {
            Gate::Shut { opens } | Gate::NoNewStarts { opens, .. } => opens,
            Gate::Open { until, .. } => match self.gate(until) {
                Gate::Open { opened_at, .. } => Some(opened_at),
                Gate::Shut { opens } | Gate::NoNewStarts { opens, .. } => opens,
            },
        }
    }

    /// Whether something may begin at this instant.
    fn may_begin(&self, now: Timestamp) -> bool {
        let allowed = self.at_any_time() || self.used().iter().any(|window| window.may_begin(now));
        allowed && self.blackouts.iter().all(|blackout| blackout.until(now).is_none())
    }

    /// When something may begin next, if it may not now. That can only be where a window opens or a blackout is over.
    fn begins_after(&self, now: Timestamp) -> Option<Timestamp> {
        let mut at = now;
        for _ in 0..LOOKS {
            at = match self.blackout_at(at) {
                Some((_, until)) => until,
                None => self.used().iter().filter_map(|window| window.opens_after(at)).min()?,
            };
            if self.may_begin(at) {
                return Some(at);
            }
        }
        None
    }

    fn used(&self) -> &[Window] {
        if self.enabled { &self.windows } else { &[] }
    }

    fn at_any_time(&self) -> bool {
        self.used().is_empty()
    }

    /// When the windows that are open now, and those that they overlap or touch, began. Anything before `enough` means
    /// "earlier than that". None: no window is open.
    fn run_began(&self, now: Timestamp, enough: Timestamp) -> Option<Timestamp> {
        if self.at_any_time() {
            return Some(Timestamp::MIN);
        }
        let open = |window: &Window| window.opened_by(now).filter(|opened| now < *opened + window.length());
        let mut began = self.used().iter().filter_map(open).min()?;
        loop {
            let earlier = |window: &Window| {
                // The first opening of this window that lasts until `began` at least.
                window.opens_at_or_after(began - window.length()).filter(|opened| *opened < began)
            };
            match self.used().iter().filter_map(earlier).min() {
                Some(earlier) if began >= enough => began = earlier,
                _ => return Some(began),
            }
        }
    }

    /// When the windows that are open now, and those that they overlap or touch, are over; `cut` at the latest.
    fn run_ends(&self, now: Timestamp, cut: Timestamp) -> Timestamp {
        if self.at_any_time() {
            return cut;
        }
        let mut ends = now;
        loop {
            let later = |window: &Window| Some(window.opened_by(ends)? + window.length());
            match self.used().iter().filter_map(later).max() {
                Some(later) if later > ends && ends < cut => ends = later,
                _ => return ends.min(cut),
            }
        }
    }
}

/// `at + by`, at the end of time if it is beyond it: facts, specs and what a server says of itself come from outside, and any
/// text has an answer.
pub(crate) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The last midnight UTC.
fn midnight(now: Timestamp) -> Timestamp {
    let day = DAY.as_secs();
    Timestamp::from_second(now.as_second().div_euclid(day) * day).expect("the midnight before an instant is near it")
}

#[cfg(test)]
mod tests;
