//! Pure. Formats times and durations for users.

use jiff::SignedDuration;
pub(crate) use scheduler::maintenance::format_time;

/// Bytes that are needed, rounded up, and bytes that are available, rounded down, so that they never appear equal: `4.2 GB` and `2.3 GB`, or
/// `170 MB` and `23 MB`.
pub(crate) fn format_shortage(needed: u64, available: u64) -> (String, String) {
    const MEGABYTE: u64 = 1_000_000;
    const TENTH: u64 = 100 * MEGABYTE;
    if needed < 10 * TENTH {
        return (format!("{} MB", needed.div_ceil(MEGABYTE)), format!("{} MB", available / MEGABYTE));
    }
    let gigabytes = |tenths: u64| format!("{}.{} GB", tenths / 10, tenths % 10);
    (gigabytes(needed.div_ceil(TENTH)), gigabytes(available / TENTH))
}

/// For example `21 s`, `2 min 10 s`.
pub(crate) fn format_short_duration(duration: SignedDuration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}
