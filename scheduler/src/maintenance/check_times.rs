//! Pure. Holds the instants at which the operator looks for new releases of a server (`checkCron`).

use jiff::Timestamp;

use super::window::{Window, WindowError};

/// The instants of a schedule.
#[derive(Debug, Clone)]
pub struct CheckTimes(Window);

impl CheckTimes {
    /// Reads a five-field cron expression and an IANA time zone, as [`Window::parse`] does. When the clocks change, an instant falls where a
    /// window would open.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, WindowError> {
        Ok(Self(Window::parse_instants(cron, zone)?))
    }

    /// The last instant at or before now.
    pub fn last(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.opened_by(now)
    }

    /// The next instant after now.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.opens_after(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_times_follow_zone_and_include_present() {
        let checks = CheckTimes::parse("0 3 * * *", "Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let around = |now| (checks.last(at(now)).unwrap(), checks.next(at(now)).unwrap());
        let (first, second) = (at("2026-01-11T02:00:00Z"), at("2026-01-12T02:00:00Z"));
        assert_eq!(around("2026-01-11T02:00:00Z"), (first, second));
        assert_eq!(around("2026-01-12T01:59:59Z"), (first, second));
        assert!(CheckTimes::parse("0 0 30 2 *", "UTC").is_err(), "it never occurs");
    }
}
