//! Pure. Reads the time in an annotation by which a user requests something, for example `nightshift.dev/restart-now`.

use jiff::Timestamp;

use crate::error_chain::cut;

/// Maximum length of an annotation's value in the status, and in a message.
pub(super) const MAX_VALUE_LENGTH: usize = 64;

/// Parses unix seconds. `None` if the value is no time.
pub(super) fn parse_time(value: &str) -> Option<Timestamp> {
    Timestamp::from_second(value.trim().parse().ok()?).ok()
}

/// Says that the value of this annotation is no time, and what to write.
pub(super) fn not_a_time(annotation: &str, value: &str) -> String {
    let value = cut(value, MAX_VALUE_LENGTH);
    format!(
        "`{annotation}` is `{value}`, which is not a time: write the current time in unix seconds, as `date +%s` prints it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_request_is_unix_seconds() {
        assert_eq!(parse_time(" 1767225600 "), Some("2026-01-01T00:00:00Z".parse().unwrap()));
        for value in ["", "soon", "2026-01-01T00:00:00Z", "1767225600.5", "99999999999999"] {
            assert_eq!(parse_time(value), None, "{value}");
        }
    }

    #[test]
    fn message_about_wrong_time_is_bounded() {
        let text = not_a_time("nightshift.dev/restart-now", &"9".repeat(2_000));
        assert!(text.starts_with("`nightshift.dev/restart-now` is `999") && text.len() < 250, "{text}");
    }
}
