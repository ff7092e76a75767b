//! Pure. Windows and blackouts as they are written in a spec, and when an update may begin by the operator's own rules.

use std::fmt;

use crds::duration;
use crds::paper_mc_server::NamedWindow;
use jiff::Timestamp;
use scheduler::maintenance::{Blackout, Gate, Window, Windows};
use serde::{Deserialize, Serialize};

/// A window, displayed as `0 4 * * 0 Europe/Berlin, for 2h`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WrittenWindow {
    /// Five cron fields.
    pub(crate) cron: String,
    /// Its own time zone, or that of the server.
    pub(crate) zone: String,
    /// Its length.
    pub(crate) duration: String,
    /// The last part, in which no update begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latest_start: Option<String>,
}

impl fmt::Display for WrittenWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cron, zone, duration, latest_start } = self;
        write!(f, "{cron} {zone}, for {duration}")?;
        latest_start.as_ref().map_or(Ok(()), |part| write!(f, ", no start in its last {part}"))
    }
}

impl WrittenWindow {
    /// A named window of a server or a Plugin. `zone` is that of the server.
    pub(crate) fn from_named(window: &NamedWindow, zone: &str) -> Self {
        let NamedWindow { name: _, cron, duration, latest_start, time_zone } = window;
        Self {
            cron: cron.clone(),
            zone: time_zone.as_deref().unwrap_or(zone).to_owned(),
            duration: duration.clone(),
            latest_start: latest_start.clone(),
        }
    }

    fn parse(&self) -> Option<Window> {
        let window = Window::parse(&self.cron, &self.zone, duration::parse(&self.duration).ok()?).ok()?;
        match &self.latest_start {
            None => Some(window),
            Some(part) => window.with_last_part(duration::parse(part).ok()?).ok(),
        }
    }
}

/// A blackout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum WrittenBlackout {
    /// Displayed as `2026-12-20T00:00:00Z to 2027-01-07T00:00:00Z`.
    Once {
        /// Its first instant.
        from: String,
        /// The first instant after it.
        to: String,
    },
    /// Displayed as a window.
    Recurring(WrittenWindow),
}

impl fmt::Display for WrittenBlackout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once { from, to } => write!(f, "{from} to {to}"),
            Self::Recurring(window) => window.fmt(f),
        }
    }
}

impl WrittenBlackout {
    fn parse(&self) -> Option<Blackout> {
        match self {
            Self::Once { from, to } => Blackout::once("", from.parse().ok()?, to.parse().ok()?).ok(),
            Self::Recurring(WrittenWindow { cron, zone, duration, latest_start: _ }) => {
                Blackout::recurring("", cron, zone, duration::parse(duration).ok()?).ok()
            }
        }
    }
}

/// When an update may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// At the instant of the question.
    Now,
    /// Later.
    At(Timestamp),
}

/// When an update may begin, at `at` or later. `None`: never, or one of the texts is invalid.
pub(crate) fn next_opening<'w>(
    windows: impl IntoIterator<Item = &'w WrittenWindow>,
    blackouts: &[WrittenBlackout],
    at: Timestamp,
) -> Option<Opening> {
    let windows: Vec<Window> = windows.into_iter().map(WrittenWindow::parse).collect::<Option<_>>()?;
    if windows.is_empty() {
        return None;
    }
    let blackouts = blackouts.iter().map(WrittenBlackout::parse).collect::<Option<_>>()?;
    match (Windows { windows, enabled: true, blackouts }).gate(at) {
        Gate::Open { .. } => Some(Opening::Now),
        Gate::NoNewStarts { opens, .. } | Gate::Shut { opens } => opens.map(Opening::At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(latest_start: Option<&str>) -> WrittenWindow {
        WrittenWindow {
            cron: "0 4 * * 0".to_owned(),
            zone: "Europe/Berlin".to_owned(),
            duration: "2h".to_owned(),
            latest_start: latest_start.map(str::to_owned),
        }
    }

    #[test]
    fn next_opening_follows_window_latest_start_and_blackout() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let sunday = |day: u8| Some(Opening::At(at(&format!("2026-01-{day:02}T03:00:00Z"))));
        let whole = [window(None)];
        assert_eq!(next_opening(&whole, &[], at("2026-01-21T12:00:00Z")), sunday(25));
        assert_eq!(next_opening(&whole, &[], at("2026-01-25T04:30:00Z")), Some(Opening::Now));
        let short = [window(Some("90m"))];
        assert_eq!(
            next_opening(&short, &[], at("2026-01-25T04:30:00Z")),
            Some(Opening::At(at("2026-02-01T03:00:00Z")))
        );
        let event = WrittenBlackout::Once { from: "2026-01-11T00:00:00Z".into(), to: "2026-01-12T00:00:00Z".into() };
        assert_eq!(next_opening(&whole, &[event], at("2026-01-10T12:00:00Z")), sunday(18));
        assert_eq!(next_opening(&[], &[], at("2026-01-10T12:00:00Z")), None);
        let invalid = WrittenWindow { cron: "soon".to_owned(), ..window(None) };
        assert_eq!(next_opening(&[invalid], &[], at("2026-01-10T12:00:00Z")), None);
        assert_eq!(window(Some("90m")).to_string(), "0 4 * * 0 Europe/Berlin, for 2h, no start in its last 90m");
    }
}
