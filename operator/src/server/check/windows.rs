//! Pure. The schedule of a server -> its windows and what wins over them, or complaints.

use std::fmt;

use crds::PaperMCServer;
use crds::paper_mc_server::{self, MaintenanceWindow, NamedWindow};
use jiff::Timestamp;
use scheduler::gate::{Blackout, Window, WindowError, Windows};

use super::Complaints;
use crate::chain::Chain;

/// All windows of a server, and its blackouts. No window written: updates are never applied by themselves, because nobody
/// said when.
pub(super) fn check_windows(server: &PaperMCServer, complaints: &mut Complaints) -> Windows {
    let schedule = &server.spec.update_schedule;
    let mut desk = Desk { of_server: &server.spec.time_zone, complaints };
    let mut windows = Vec::new();
    if let Some(MaintenanceWindow { enabled: _, cron, duration, latest_start, time_zone }) = &schedule.maintenance_window
        // Only a window that is switched off may say no time.
        && !cron.is_empty()
    {
        let written = Written { cron, duration, latest_start: latest_start.as_deref(), zone: time_zone.as_deref() };
        windows.extend(desk.window("spec.updateSchedule.maintenanceWindow", &written));
    }
    for NamedWindow { name, cron, duration, latest_start, time_zone } in &schedule.windows {
        let written = Written { cron, duration, latest_start: latest_start.as_deref(), zone: time_zone.as_deref() };
        windows.extend(desk.window(&format!("spec.updateSchedule.windows[{name}]"), &written));
    }
    let blackouts = schedule.blackouts.iter().filter_map(|written| desk.blackout(written)).collect();
    Windows { windows, enabled: true, blackouts }
}

/// A window as both kinds of it are written.
struct Written<'a> {
    cron: &'a str,
    duration: &'a str,
    latest_start: Option<&'a str>,
    zone: Option<&'a str>,
}

struct Desk<'a> {
    of_server: &'a str,
    complaints: &'a mut Complaints,
}

impl Desk<'_> {
    fn window(&mut self, path: &str, written: &Written<'_>) -> Option<Window> {
        let length = self.complaints.duration(&format!("{path}.duration"), written.duration);
        let window = Window::parse(written.cron, written.zone.unwrap_or(self.of_server), length);
        let window = self.kept(path, window.map_err(Told))?;
        let Some(text) = written.latest_start else { return Some(window) };
        let path = format!("{path}.latestStart");
        let last_part = self.complaints.duration(&path, text);
        self.kept(&path, window.closed_before_its_end(last_part).map_err(Told))
    }

    fn blackout(&mut self, written: &paper_mc_server::Blackout) -> Option<Blackout> {
        let paper_mc_server::Blackout { name, from, to, cron, duration, time_zone } = written;
        let path = format!("spec.updateSchedule.blackouts[{name}]");
        match (from, to, cron, duration) {
            (Some(from), Some(to), None, None) if time_zone.is_none() => {
                let (from, to) = (self.instant(&format!("{path}.from"), from), self.instant(&format!("{path}.to"), to));
                self.kept(&path, Blackout::once(name, from?, to?))
            }
            (None, None, Some(cron), Some(duration)) => {
                let length = self.complaints.duration(&format!("{path}.duration"), duration);
                let zone = time_zone.as_deref().unwrap_or(self.of_server);
                self.kept(&path, Blackout::again(name, cron, zone, length).map_err(Told))
            }
            _ => {
                self.complaints.add(&path, "write `from` and `to`, or `cron` and `duration` (and `timeZone`)");
                None
            }
        }
    }

    fn instant(&mut self, path: &str, text: &str) -> Option<Timestamp> {
        let read = text.parse();
        if read.is_err() {
            let problem = "is no instant: write it with its offset, such as `2026-12-20T00:00:00+01:00`";
            self.complaints.add(path, format_args!("`{text}` {problem}"));
        }
        read.ok()
    }

    fn kept<T>(&mut self, path: &str, read: Result<T, impl fmt::Display>) -> Option<T> {
        read.map_err(|error| self.complaints.add(path, error)).ok()
    }
}

/// A window's error with its causes.
struct Told(WindowError);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Chain(&self.0).fmt(f)
    }
}
