//! Pure. Converts between instants and wall-clock readings of a time zone.
//!
//! The only file that uses both `chrono` and `jiff`.
//!
//! `cron` and `chrono-tz` use chrono, everything else here uses jiff. chrono-tz includes its own copy of the time zone
//! database, so the result does not depend on the operator's image.

use chrono::{DateTime, LocalResult, TimeZone, Timelike, Utc};
use chrono_tz::{GapInfo, Tz};
use cron::Schedule;
use jiff::Timestamp;

/// The reading of a wall clock, to the second, written as if it were UTC. In that form each reading exists exactly
/// once, so the `cron` crate never meets a change of the clocks.
pub(super) type WallClock = DateTime<Utc>;

/// The reading of a zone's clocks at an instant.
pub(super) fn reading_at(zone: Tz, instant: Timestamp) -> WallClock {
    let utc = DateTime::from_timestamp(instant.as_second(), 0).expect("chrono's range includes jiff's");
    let shown = utc.with_timezone(&zone).naive_local().and_utc();
    shown.with_nanosecond(0).expect("zero is a valid nanosecond")
}

/// The first instant at which the clocks of a zone have reached a reading. If they are set back over it, the first of
/// two instants. If they are set forward over it, the end of the gap.
pub(super) fn first_reached(zone: Tz, reading: WallClock) -> Option<Timestamp> {
    let naive = reading.naive_utc();
    let reached = match zone.from_local_datetime(&naive) {
        LocalResult::Single(single) => single,
        LocalResult::Ambiguous(one, other) => one.min(other),
        LocalResult::None => GapInfo::new(&naive, &zone)?.end?,
    };
    Timestamp::from_second(reached.timestamp()).ok()
}

/// The last reading of a schedule up to and including this one.
pub(super) fn scheduled_by(schedule: &Schedule, reading: WallClock) -> Option<WallClock> {
    schedule.after(&(reading + chrono::Duration::seconds(1))).next_back()
}

/// The readings of a schedule after this one, in order.
pub(super) fn scheduled_after(schedule: &Schedule, reading: WallClock) -> impl Iterator<Item = WallClock> {
    schedule.after(&reading)
}
