//! Pure. Parses the schedule of a server into its windows and blackouts, or reports violations.

use crds::paper_mc_server::{self, BackupSchedule, MaintenanceWindow, NamedWindow, RestartOnlyIf};
use crds::{PaperMCServer, Plugin, duration};
use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::{BackupTimes, Blackout, RestartSchedule, Window, WindowError, Windows};
use scheduler::observation::PlayerPolicy;

use super::{CheckedRestart, Violation, Violations, player_policy};

/// How late a restart may begin, on top of its countdown and of a wait for players. It is longer than another operator needs to take over,
/// and short enough that players in the morning are not affected.
const MAX_START_DELAY: SignedDuration = SignedDuration::from_mins(30);

/// All windows and blackouts of a server. Without a window, updates are never applied automatically, because the spec does not say when.
/// `maintenanceWindow.enabled` is applied by [`super::CheckedServer::updates_automatically`].
pub(super) fn check_windows(server: &PaperMCServer, zone: &str, violations: &mut Violations) -> Windows {
    let schedule = &server.spec.update_schedule;
    let mut collector = WindowViolations { default_zone: zone, violations };
    let mut windows = Vec::new();
    if let Some(MaintenanceWindow { enabled: _, cron, duration, latest_start, time_zone }) = &schedule.maintenance_window
        // Only a disabled window may have an empty cron expression.
        && !cron.is_empty()
    {
        let written = RawWindow { cron, duration, latest_start: latest_start.as_deref(), zone: time_zone.as_deref() };
        windows.extend(collector.parse_window("spec.updateSchedule.maintenanceWindow", &written));
    }
    windows.extend(collector.named_windows("spec.updateSchedule.windows", &schedule.windows));
    let blackouts = schedule.blackouts.iter().filter_map(|written| collector.parse_blackout(written)).collect();
    Windows { windows, enabled: true, blackouts }
}

/// The windows of a single Plugin on a server in this zone, and the violations of the others. Invalid windows are ignored, and the Plugin
/// then waits for the windows of its servers.
pub fn check_plugin_windows(plugin: &Plugin, zone: &str) -> (Vec<Window>, Vec<Violation>) {
    let mut violations = Violations::default();
    let windows = WindowViolations { default_zone: zone, violations: &mut violations }
        .named_windows("spec.windows", &plugin.spec.windows);
    (windows, violations.0)
}

/// Parses the scheduled restarts. `deadline` and `notice` are those of `players`.
pub(super) fn check_restart(
    server: &PaperMCServer,
    zone: &str,
    (deadline, notice): (SignedDuration, SignedDuration),
    violations: &mut Violations,
) -> Option<CheckedRestart> {
    let spec = &server.spec;
    let paper_mc_server::Restart { cron, time_zone, policy, only_if, text: _ } = spec.restart.as_ref()?;
    let policy = player_policy(policy.unwrap_or(spec.players.policy), deadline);
    let wait = match policy {
        PlayerPolicy::WaitForEmpty { deadline } => deadline,
        PlayerPolicy::Announce | PlayerPolicy::Ignore => SignedDuration::ZERO,
    };
    let RestartOnlyIf { uptime_at_least, empty } = only_if.clone().unwrap_or_default();
    let uptime = uptime_at_least.map(|text| violations.parse_duration("spec.restart.onlyIf.uptimeAtLeast", &text));
    let mut collector = WindowViolations { default_zone: zone, violations };
    let served_within = MAX_START_DELAY.saturating_add(notice).saturating_add(wait);
    let restarts = RestartSchedule::parse(cron, time_zone.as_deref().unwrap_or(collector.default_zone), served_within);
    let restarts = collector.window_or_report("spec.restart", restarts)?;
    Some(CheckedRestart {
        restarts: match uptime {
            Some(least) => restarts.with_least_uptime(least),
            None => restarts,
        },
        policy,
        only_empty: empty,
    })
}

/// Parses the schedule of online backups of a server in this zone. A violation of it is returned separately, because it must block nothing else.
pub(super) fn check_backup_schedule(written: &BackupSchedule, zone: &str) -> (Option<BackupTimes>, Option<Violation>) {
    const PATH: &str = "spec.backup.schedule";
    let BackupSchedule { cron, time_zone, contents: _, only_if: _ } = written;
    match BackupTimes::parse(cron, time_zone.as_deref().unwrap_or(zone)) {
        Ok(times) if written.is_skipped_if_unplayed() => (Some(times.only_if_played()), None),
        Ok(times) => (Some(times), None),
        Err(error) => (None, Some(Violation { path: format!("{PATH}.{}", error.field()), problem: error.to_string() })),
    }
}

/// The fields that both kinds of window have in common.
struct RawWindow<'a> {
    cron: &'a str,
    duration: &'a str,
    latest_start: Option<&'a str>,
    zone: Option<&'a str>,
}

struct WindowViolations<'a> {
    default_zone: &'a str,
    violations: &'a mut Violations,
}

impl WindowViolations<'_> {
    fn named_windows(&mut self, path: &str, windows: &[NamedWindow]) -> Vec<Window> {
        let window = |NamedWindow { name, cron, duration, latest_start, time_zone }: &NamedWindow| {
            let written =
                RawWindow { cron, duration, latest_start: latest_start.as_deref(), zone: time_zone.as_deref() };
            self.parse_window(&format!("{path}[{name}]"), &written)
        };
        windows.iter().filter_map(window).collect()
    }

    fn parse_window(&mut self, path: &str, written: &RawWindow<'_>) -> Option<Window> {
        let length = self.parse_length(path, written.duration);
        let window = Window::parse(written.cron, written.zone.unwrap_or(self.default_zone), length);
        let window = self.window_or_report(path, window)?;
        let Some(text) = written.latest_start else { return Some(window) };
        let last_part = self.violations.parse_duration(&format!("{path}.latestStart"), text);
        self.window_or_report(path, window.with_last_part(last_part))
    }

    /// A valid length in place of an unreadable one, so that the field has one violation.
    fn parse_length(&mut self, path: &str, text: &str) -> SignedDuration {
        let read = duration::parse(text).map_err(|error| self.violations.add(&format!("{path}.duration"), error));
        read.unwrap_or(Window::SHORTEST)
    }

    fn parse_blackout(&mut self, written: &paper_mc_server::Blackout) -> Option<Blackout> {
        let paper_mc_server::Blackout { name, from, to, cron, duration, time_zone } = written;
        let path = format!("spec.updateSchedule.blackouts[{name}]");
        match (from, to, cron, duration) {
            (Some(from), Some(to), None, None) if time_zone.is_none() => {
                let (from, to) =
                    (self.parse_instant(&format!("{path}.from"), from), self.parse_instant(&format!("{path}.to"), to));
                let once = Blackout::once(name, from?, to?);
                once.map_err(|error| self.violations.add(&format!("{path}.to"), error)).ok()
            }
            (None, None, Some(cron), Some(duration)) => {
                let length = self.parse_length(&path, duration);
                let zone = time_zone.as_deref().unwrap_or(self.default_zone);
                self.window_or_report(&path, Blackout::recurring(name, cron, zone, length))
            }
            _ => {
                self.violations.add(&path, "write `from` and `to`, or `cron` and `duration` (and `timeZone`)");
                None
            }
        }
    }

    fn parse_instant(&mut self, path: &str, text: &str) -> Option<Timestamp> {
        let read = text.parse();
        if read.is_err() {
            let problem = "is not a time: write it with its offset, such as `2026-12-20T00:00:00+01:00`";
            self.violations.add(path, format_args!("`{text}` {problem}"));
        }
        read.ok()
    }

    fn window_or_report<T>(&mut self, path: &str, read: Result<T, WindowError>) -> Option<T> {
        read.map_err(|error| self.violations.add(&format!("{path}.{}", error.field()), error)).ok()
    }
}
