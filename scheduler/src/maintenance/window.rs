//! Pure. Defines one maintenance window: a schedule, a time zone and a length.

use chrono_tz::{TZ_VARIANTS, Tz};
use cron::Schedule;
use jiff::{SignedDuration, Timestamp};

use super::cron_expr::{self, CronError, InvalidField};
use super::time_zone::{first_reached, local_time_at, scheduled_after, scheduled_by};

/// A window in which a server may be taken down.
///
/// It opens when the clocks of its zone reach the scheduled local time. If they are set forward over it, it opens
/// at the end of the gap. If they are set back over it, it opens only the first time. It stays open for a length of
/// real time: two hours are two hours also in the night in which the clocks change.
#[derive(Debug, Clone)]
pub struct Window {
    /// One schedule, or two that are united: a restricted day of the month OR a restricted day of the week.
    schedules: Vec<Schedule>,
    zone: Tz,
    length: SignedDuration,
    /// The last part of the window, in which no update begins.
    last_part: SignedDuration,
}

/// Why a text is not a window, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Not five fields.
    #[error(
        "`{text}` has {found} fields, a schedule has five: minute, hour, day of month, month, day of week. `0 4 * * \
        0` is Sundays at 04:00"
    )]
    Fields {
        /// The expression.
        text: String,
        /// The number of its fields.
        found: usize,
    },
    /// Six or seven fields, as in Quartz.
    #[error("`{text}` has {found} fields, a schedule has five and no seconds: try `{suggestion}`")]
    Seconds {
        /// The expression.
        text: String,
        /// The number of its fields.
        found: usize,
        /// The five fields that are probably meant.
        suggestion: String,
    },
    /// A word with `@` that is not supported.
    #[error("`{text}` is unknown: write `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` or five fields")]
    Nickname {
        /// The word.
        text: String,
    },
    /// A time zone before the five fields, as some programs write it.
    #[error("`{prefix}` is not part of a schedule: write `{rest}`, and `timeZone: {zone}` beside it")]
    ZonePrefix {
        /// `CRON_TZ=Europe/Berlin`
        prefix: String,
        /// The zone.
        zone: String,
        /// The schedule without it.
        rest: String,
    },
    /// Some of the five fields are invalid.
    #[error("{}", .fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    InvalidFields {
        /// Each invalid field, at least one.
        fields: Vec<InvalidField>,
    },
    /// A date that does not exist, such as 30 February.
    #[error("`{text}` never occurs: no month that it names has such a day")]
    NeverOccurs {
        /// The expression.
        text: String,
    },
    /// Not a time zone, or a zone in different letters.
    #[error("`{name}` is not a time zone: write {}", .nearest.map_or_else(
        || "an IANA name such as `Europe/Berlin` or `UTC`".to_owned(), |zone| format!("`{zone}`")))]
    Zone {
        /// The text as written.
        name: String,
        /// The most similar zone, if it is similar enough.
        nearest: Option<&'static str>,
    },
    /// An offset, such as `GMT+2` or `+02:00`.
    #[error(
        "`{name}` is an offset and not a time zone: write the place, such as `Europe/Berlin`, whose clocks also change in summer{}",
        .fixed.as_ref().map(|zone| format!(", or `{zone}` for exactly this offset (its sign is reversed)")).unwrap_or_default()
    )]
    Offset {
        /// The text as written.
        name: String,
        /// The zone with this offset throughout the year. `None` if no zone has it.
        fixed: Option<String>,
    },
    /// Too short for any update, or longer than a week.
    #[error("a window of {length:#} is too {}: write 15m to 168h", if *.length < Window::SHORTEST { "short" } else { "long" })]
    Length {
        /// The requested length.
        length: SignedDuration,
    },
    /// A blackout that is too short or never ends.
    #[error("a blackout of {length:#} is too {}: write 1m to 366d", if *.length < Window::SHORTEST_BLACKOUT { "short" } else { "long" })]
    BlackoutLength {
        /// The requested length.
        length: SignedDuration,
    },
    /// No update could ever begin.
    #[error(
        "no update could start in a window of {length:#} whose last {last_part:#} are closed: write less than the \
        length, by a minute at least"
    )]
    LatestStart {
        /// The length of the window.
        length: SignedDuration,
        /// The requested last part.
        last_part: SignedDuration,
    },
}

impl WindowError {
    /// The API's name of the field that is invalid.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Fields { .. }
            | Self::Seconds { .. }
            | Self::Nickname { .. }
            | Self::ZonePrefix { .. }
            | Self::InvalidFields { .. }
            | Self::NeverOccurs { .. } => "cron",
            Self::Zone { .. } | Self::Offset { .. } => "timeZone",
            Self::Length { .. } | Self::BlackoutLength { .. } => "duration",
            Self::LatestStart { .. } => "latestStart",
        }
    }
}

impl Window {
    /// The shortest window: countdown (5 minutes), save, stop and start must fit.
    pub const SHORTEST: SignedDuration = SignedDuration::from_mins(15);

    /// The longest window: a week, which with a weekly schedule is always open.
    pub const LONGEST: SignedDuration = SignedDuration::from_hours(168);

    /// The shortest blackout: a shorter one is assumed to be a mistake.
    pub const SHORTEST_BLACKOUT: SignedDuration = SignedDuration::from_mins(1);

    /// The longest recurring blackout: a leap year, which with a yearly schedule is always active.
    pub const LONGEST_BLACKOUT: SignedDuration = SignedDuration::from_hours(366 * 24);

    /// The shortest part of a window before its closed last part: a late alarm must not miss it.
    const MIN_START_SPAN: SignedDuration = SignedDuration::from_mins(1);

    /// Reads a five-field cron expression as Vixie's cron does, an IANA time zone and a length.
    pub fn parse(cron: &str, zone: &str, duration: SignedDuration) -> Result<Self, WindowError> {
        let window = Self::read(cron, zone, duration)?;
        if duration < Self::SHORTEST || duration > Self::LONGEST {
            return Err(WindowError::Length { length: duration });
        }
        Ok(window)
    }

    /// The same window, in whose last part no update begins (`latestStart`).
    pub fn with_last_part(self, last_part: SignedDuration) -> Result<Self, WindowError> {
        if last_part > self.length - Self::MIN_START_SPAN {
            return Err(WindowError::LatestStart { length: self.length, last_part });
        }
        Ok(Self { last_part, ..self })
    }

    /// The same as [`Self::parse`], for a blackout.
    pub(super) fn parse_blackout(cron: &str, zone: &str, duration: SignedDuration) -> Result<Self, WindowError> {
        let window = Self::read(cron, zone, duration)?;
        if duration < Self::SHORTEST_BLACKOUT || duration > Self::LONGEST_BLACKOUT {
            return Err(WindowError::BlackoutLength { length: duration });
        }
        Ok(window)
    }

    /// The same as [`Self::parse`], for single instants, which are the openings of the window.
    pub(super) fn parse_instants(cron: &str, zone: &str) -> Result<Self, WindowError> {
        Self::read(cron, zone, SignedDuration::ZERO)
    }

    fn read(cron: &str, zone: &str, length: SignedDuration) -> Result<Self, WindowError> {
        let schedules = cron_expr::schedules(cron).map_err(|error| match error {
            CronError::Count { found } => wrong_count(cron, found),
            CronError::Nickname => WindowError::Nickname { text: cron.trim().to_owned() },
            CronError::ZonePrefix { zone, rest } => {
                let prefix = cron.split_whitespace().next().unwrap_or_default().to_owned();
                WindowError::ZonePrefix { prefix, zone, rest }
            }
            CronError::Fields(fields) => WindowError::InvalidFields { fields },
        })?;
        let window = Self { schedules, zone: parse_zone(zone)?, length, last_part: SignedDuration::ZERO };
        // The Gregorian calendar repeats after 400 years, but a date that exists at all exists within 8 (29 February).
        if window.opens_after(Timestamp::UNIX_EPOCH).is_none() {
            return Err(WindowError::NeverOccurs { text: cron.trim().to_owned() });
        }
        Ok(window)
    }

    /// How long it stays open, in real time.
    pub const fn length(&self) -> SignedDuration {
        self.length
    }

    /// Whether an update may begin in it at this instant.
    pub(super) fn may_begin(&self, now: Timestamp) -> bool {
        self.opened_by(now).is_some_and(|opened| now < opened + (self.length - self.last_part))
    }

    /// The IANA name of its zone.
    pub fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// The last opening at or before `now`.
    pub(super) fn opened_by(&self, now: Timestamp) -> Option<Timestamp> {
        let local = local_time_at(self.zone, now);
        let last = |schedule: &Schedule| {
            // In an hour that the clocks repeat, a later local time may already have passed.
            let passed_before = scheduled_after(schedule, local)
                .map_while(|local| first_reached(self.zone, local).filter(|reached| *reached <= now))
                .last();
            passed_before.or_else(|| first_reached(self.zone, scheduled_by(schedule, local)?))
        };
        self.schedules.iter().filter_map(last).max()
    }

    /// The first opening after `now`.
    pub(super) fn opens_after(&self, now: Timestamp) -> Option<Timestamp> {
        let local = local_time_at(self.zone, now);
        let next = |schedule: &Schedule| {
            scheduled_after(schedule, local)
                .filter_map(|local| first_reached(self.zone, local))
                .find(|reached| *reached > now)
        };
        self.schedules.iter().filter_map(next).min()
    }

    /// The first opening at or after `now`.
    pub(super) fn opens_at_or_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.opens_after(now - SignedDuration::from_nanos(1))
    }
}

fn wrong_count(cron: &str, found: usize) -> WindowError {
    let text = cron.trim().to_owned();
    if let 6 | 7 = found {
        // Quartz writes `?` for a day that is not restricted.
        let five = cron.split_whitespace().skip(1).take(5).map(|field| if field == "?" { "*" } else { field });
        let instead = five.collect::<Vec<_>>().join(" ");
        return WindowError::Seconds { text, found, suggestion: instead };
    }
    WindowError::Fields { text, found }
}

/// Checks that a cron expression can be read, and occurs.
pub fn check_cron(cron: &str) -> Result<(), WindowError> {
    Window::parse_instants(cron, "UTC").map(|_| ())
}

/// Checks that a time zone exists.
pub fn check_zone(name: &str) -> Result<(), WindowError> {
    parse_zone(name).map(|_| ())
}

fn parse_zone(name: &str) -> Result<Tz, WindowError> {
    name.parse().map_err(|_| {
        if let Some((hours, minutes)) = parse_offset(name) {
            // The zones of the IANA database with a fixed offset: from `Etc/GMT+12` to `Etc/GMT-14`. Their signs count
            // westwards, as in POSIX.
            let fixed = (minutes == 0 && (-12..=14).contains(&hours)).then(|| match hours {
                0 => "UTC".to_owned(),
                east => format!("Etc/GMT{:+}", -east),
            });
            return WindowError::Offset { name: name.to_owned(), fixed };
        }
        let plain = |name: &str| name.trim().replace(' ', "_").to_ascii_lowercase();
        let similarity = |zone: &str| strsim::jaro_winkler(&plain(zone), &plain(name));
        let nearest = TZ_VARIANTS.iter().map(|zone| zone.name()).max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        WindowError::Zone {
            name: name.to_owned(),
            nearest: nearest.filter(|zone| similarity(zone) > MIN_ZONE_SIMILARITY),
        }
    })
}

/// Hours and minutes ahead of UTC, of `GMT+2`, `UTC-05:00`, `+0200` or `-5`. `None` for any other text.
fn parse_offset(name: &str) -> Option<(i32, i32)> {
    let upper = name.trim().to_ascii_uppercase();
    let offset = ["GMT", "UTC"].iter().find_map(|zone| upper.strip_prefix(zone)).unwrap_or(&upper).trim_start();
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 && digits.is_ascii() => digits.split_at(digits.len() - 2),
        None => (digits, "0"),
    };
    let number = |text: &str| text.parse::<u8>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 23 && minutes <= 59).then(|| (sign * i32::from(hours), sign * i32::from(minutes)))
}

/// The least similarity of a zone that is suggested for an unknown one. `Europe/Berlim` has 0.97, and `CET` has 0.91 for
/// `CET+1`.
const MIN_ZONE_SIMILARITY: f64 = 0.93;
