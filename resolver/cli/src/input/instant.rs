//! Pure. Parses times that users type.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Parses a date, which means 00:00 UTC, or an RFC 3339 time.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    let wrong = || "write a date such as `2026-12-24`, or a time such as `2026-12-24T18:00:00Z`".to_owned();
    // Only ten characters are a date: from a time without an offset, jiff would take the date and ignore the time.
    if text.len() == 10 {
        let date: Date = text.parse().map_err(|_| wrong())?;
        return date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| wrong());
    }
    text.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_its_first_instant_and_timestamp_is_kept() {
        let read = |text| parse(text).map(|instant| instant.to_string());
        assert_eq!(read("2026-12-24"), Ok("2026-12-24T00:00:00Z".to_owned()));
        assert_eq!(read("2026-12-24T18:00:00+01:00"), Ok("2026-12-24T17:00:00Z".to_owned()));
        for wrong in ["", "tomorrow", "2026-13-01", "2026-12-24T18:00", "24.12.2026"] {
            assert!(read(wrong).unwrap_err().contains("2026-12-24"), "{wrong}");
        }
    }
}
