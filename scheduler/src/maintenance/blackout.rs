//! Pure. Defines one blackout: a single or recurring span of time in which no window counts.

use jiff::{SignedDuration, Timestamp};

use super::window::{Window, WindowError};

/// A time in which a server may not be taken down, whatever its windows allow.
#[derive(Debug, Clone)]
pub struct Blackout {
    name: String,
    when: BlackoutTime,
}

#[derive(Debug, Clone)]
enum BlackoutTime {
    /// From the first instant up to, and not at, the second.
    Once { from: Timestamp, to: Timestamp },
    /// Each opening of this window.
    Recurring(Window),
}

/// Why two instants do not form a blackout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a blackout from {from} to {to} ends before it starts: write the later time as `to`")]
pub struct InvertedRange {
    from: Timestamp,
    to: Timestamp,
}

impl Blackout {
    /// A blackout that occurs once, up to and not at `to`.
    pub fn once(name: &str, from: Timestamp, to: Timestamp) -> Result<Self, InvertedRange> {
        if to <= from {
            return Err(InvertedRange { from, to });
        }
        Ok(Self { name: name.to_owned(), when: BlackoutTime::Once { from, to } })
    }

    /// A recurring blackout, from a cron expression, a zone and a length as for a window. When the clocks change, it begins when a window would.
    pub fn recurring(name: &str, cron: &str, zone: &str, length: SignedDuration) -> Result<Self, WindowError> {
        Ok(Self { name: name.to_owned(), when: BlackoutTime::Recurring(Window::parse_blackout(cron, zone, length)?) })
    }

    /// The name that the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it ends, if it is active.
    pub(super) fn until(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            BlackoutTime::Once { from, to } => (*from <= now && now < *to).then_some(*to),
            BlackoutTime::Recurring(window) => {
                window.opened_by(now).map(|began| began + window.length()).filter(|end| now < *end)
            }
        }
    }

    /// When it last ended, if it is not active.
    pub(super) fn ended_by(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            BlackoutTime::Once { from: _, to } => Some(*to).filter(|end| *end <= now),
            BlackoutTime::Recurring(window) => {
                window.opened_by(now).map(|began| began + window.length()).filter(|end| *end <= now)
            }
        }
    }

    /// When it begins next, after this instant.
    pub(super) fn begins_after(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            BlackoutTime::Once { from, to: _ } => Some(*from).filter(|from| *from > now),
            BlackoutTime::Recurring(window) => window.opens_after(now),
        }
    }
}
