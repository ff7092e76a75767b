//! Pure. Formats times and durations for users.

use jiff::SignedDuration;
pub(crate) use scheduler::maintenance::format_time;

/// For example `21 s`, `2 min 10 s`.
pub(crate) fn format_short_duration(duration: SignedDuration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}
