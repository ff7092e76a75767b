//! Pure. Parses durations as users write them: `90s`, `5m`, `72h`, `7d`, `1h30m`. The API, the CLI and the documentation share this parser.

use std::fmt;

use jiff::SignedDuration;

/// The format of a duration. The schema of every duration field uses it.
pub const PATTERN: &str = "^([0-9]+(d|h|m|s))+$";

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseDurationError {
    text: String,
}

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a duration: write numbers with d, h, m or s, such as `72h` or `1h30m`", self.text)
    }
}

impl std::error::Error for ParseDurationError {}

/// The longest accepted duration: a hundred years, far below any overflow in date arithmetic.
const LONGEST_SECONDS: i64 = 100 * 366 * 86_400;

/// Parses a duration.
///
/// # Errors
/// If the text does not match [`PATTERN`], or the duration is longer than a hundred years.
pub fn parse(text: &str) -> Result<SignedDuration, ParseDurationError> {
    let wrong = || ParseDurationError { text: text.to_owned() };
    let mut seconds: i64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: i64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = match rest.as_bytes()[digits] {
            b'd' => 86_400,
            b'h' => 3_600,
            b'm' => 60,
            b's' => 1,
            _ => return Err(wrong()),
        };
        seconds = number.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
        rest = &rest[digits + 1..];
    }
    if seconds > LONGEST_SECONDS {
        return Err(wrong());
    }
    Ok(SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_units_add_up() {
        assert_eq!(parse("1h30m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(parse("7d"), Ok(SignedDuration::from_hours(168)));
        assert_eq!(parse("0s"), Ok(SignedDuration::ZERO));
    }

    #[test]
    fn invalid_duration_is_refused_with_example() {
        for wrong in ["", "5", "m", "-5m", "5 m", "1.5h", "99999999999999999999s", "5M", "200000d"] {
            let error = parse(wrong).unwrap_err();
            assert!(error.to_string().contains("such as `72h`"), "{wrong}");
        }
    }
}
