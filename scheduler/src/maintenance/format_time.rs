//! Pure. Formats an instant for users.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How long a date without its year is unambiguous.
const YEAR_OMITTED_FOR: SignedDuration = SignedDuration::from_hours(180 * 24);

/// For example `Sun 22 Nov 04:00 CET`. The zone is included because the reader's may differ, and the year if it is not clear.
pub fn format_time(at: Timestamp, zone: &str, now: Timestamp) -> String {
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let format = if at > now + YEAR_OMITTED_FOR { "%a %-d %b %Y %H:%M %Z" } else { "%a %-d %b %H:%M %Z" };
    at.to_zoned(zone).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_shown_with_zone_across_clock_change() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let text = |window, now| format_time(at(window), "Europe/Berlin", at(now));
        assert_eq!(text("2026-11-22T03:00:00Z", "2026-11-21T12:00:00Z"), "Sun 22 Nov 04:00 CET");
        assert_eq!(text("2026-07-05T02:00:00Z", "2026-07-01T12:00:00Z"), "Sun 5 Jul 04:00 CEST");
        assert_eq!(text("2028-02-29T03:00:00Z", "2026-11-21T12:00:00Z"), "Tue 29 Feb 2028 04:00 CET");
    }
}
