//! Pure. Converts between instants and local times of a time zone.
//!
//! The only file that uses both `chrono` and `jiff`.
//!
//! `cron` and `chrono-tz` use chrono, everything else here uses jiff. chrono-tz includes its own copy of the time zone
//! database, so the result does not depend on the operator's image.

use chrono::{DateTime, LocalResult, TimeZone, Timelike, Utc};
use chrono_tz::{GapInfo, Tz};
use cron::Schedule;
use jiff::Timestamp;

/// A local time, to the second, written as if it were UTC. In that form each local time exists exactly once, so the
/// `cron` crate never meets a change of the clocks.
pub(super) type LocalTime = DateTime<Utc>;

/// The local time of a zone at an instant.
pub(super) fn local_time_at(zone: Tz, instant: Timestamp) -> LocalTime {
    let utc = DateTime::from_timestamp(instant.as_second(), 0).expect("chrono's range includes jiff's");
    let shown = utc.with_timezone(&zone).naive_local().and_utc();
    shown.with_nanosecond(0).expect("zero is a valid nanosecond")
}

/// The first instant at which the clocks of a zone have reached a local time. If they are set back over it, the first of
/// two instants. If they are set forward over it, the end of the gap.
pub(super) fn first_reached(zone: Tz, local: LocalTime) -> Option<Timestamp> {
    let naive = local.naive_utc();
    let reached = match zone.from_local_datetime(&naive) {
        LocalResult::Single(single) => single,
        LocalResult::Ambiguous(one, other) => one.min(other),
        LocalResult::None => GapInfo::new(&naive, &zone)?.end?,
    };
    Timestamp::from_second(reached.timestamp()).ok()
}

/// The last local time of a schedule up to and including this one.
pub(super) fn scheduled_by(schedule: &Schedule, local: LocalTime) -> Option<LocalTime> {
    schedule.after(&(local + chrono::Duration::seconds(1))).next_back()
}

/// The local times of a schedule after this one, in order.
pub(super) fn scheduled_after(schedule: &Schedule, local: LocalTime) -> impl Iterator<Item = LocalTime> {
    schedule.after(&local)
}
