//! Edge (writes). Checks processes that end unobserved, with the records of a volume in a temporary directory.

use std::fs;

use super::*;
use crate::server_list_ping;

/// The log of this process.
const LOG: &str = "7 [12:00:00]";
/// The log of the next process.
const NEXT_LOG: &str = "8 [12:31:00]";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn answered() -> PingResult {
    PingResult::Answered(server_list_ping::StatusResponse {
        minecraft: "1.21.10".to_owned(),
        online: Some(0),
        max: Some(20),
    })
}

/// An agent, from its start on.
struct Agent {
    monitor: ServerMonitor,
    record: ProcessRecord,
}

impl Agent {
    fn with_record(running: Option<Running>) -> Self {
        Self { monitor: ServerMonitor::new(at(0)), record: ProcessRecord::inherit(running) }
    }

    fn observe(&mut self, second: i64, pinged: PingResult, locked: Option<bool>, log: Option<&str>) -> FollowUp {
        let sample = Sample { at: at(second), pinged, locked, log: log.map(str::to_owned), progress_at: None };
        self.monitor.observe(&sample);
        self.record.observe(&sample, &self.monitor)
    }
}

fn running() -> Running {
    Running { since: at(1_000), seen_at: at(2_000), log: Some(LOG.to_owned()) }
}

fn no_follow_up() -> FollowUp {
    FollowUp::default()
}

fn record_written() -> FollowUp {
    FollowUp { ended: None, needs_write: true }
}

fn missed(is_to_write: bool) -> FollowUp {
    FollowUp { ended: Some(running()), needs_write: is_to_write }
}

/// A volume with a world, on which this was the last process.
fn volume_with_record(log: Option<(&str, i64)>) -> (tempfile::TempDir, Volume) {
    let directory = tempfile::tempdir().unwrap();
    let volume = Volume::new(directory.path());
    fs::create_dir_all(directory.path().join("world")).unwrap();
    fs::write(directory.path().join("world/level.dat"), "").unwrap();
    write_running(&volume, &running());
    if let Some((lines, written_at)) = log {
        let path = directory.path().join("logs/latest.log");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(at(written_at).into()).unwrap();
    }
    (directory, volume)
}

fn recorded_stop(volume: &Volume) -> Option<LastStop> {
    record_previous_end(volume, &Worlds::read(volume.root()).unwrap());
    read_record(&volume.last_stop_path()).unwrap()
}

#[test]
fn process_is_recorded_when_seen_and_then_every_minute() {
    let mut agent = Agent::with_record(None);
    assert_eq!(agent.observe(10, PingResult::Refused, Some(false), None), no_follow_up(), "no process runs");
    assert_eq!(agent.observe(20, PingResult::Refused, Some(true), None), record_written());
    assert_eq!(agent.observe(22, PingResult::Refused, Some(true), None), no_follow_up());
    assert_eq!(agent.observe(24, answered(), Some(true), Some(LOG)), record_written(), "its log has begun");
    assert_eq!(agent.observe(83, answered(), None, Some(LOG)), no_follow_up());
    assert_eq!(agent.observe(84, answered(), None, None), record_written(), "a minute has passed");
    let expected = Running { since: at(20), seen_at: at(84), log: Some(LOG.to_owned()) };
    assert_eq!(agent.record.running(), Some(&expected));
    assert_eq!(agent.record.end(), Some(at(20)));
    assert_eq!(agent.observe(90, answered(), None, Some(NEXT_LOG)), record_written(), "the next process");
    assert_eq!(agent.record.running().map(|running| running.since), Some(at(90)));
}

#[test]
fn restarted_agent_continues_same_process_and_detects_new_one() {
    let mut same = Agent::with_record(Some(running()));
    assert_eq!(same.observe(2_010, answered(), None, Some(LOG)), no_follow_up());
    assert_eq!(same.record.end(), Some(at(1_000)), "it is the same process");

    let mut starting = Agent::with_record(Some(running()));
    assert_eq!(starting.observe(2_900, PingResult::Refused, Some(true), None), no_follow_up(), "it has no log yet");
    assert_eq!(starting.observe(2_902, PingResult::Refused, Some(true), Some(NEXT_LOG)), missed(true));
    assert_eq!(starting.record.running().map(|running| running.since), Some(at(2_902)));
    assert_eq!(starting.observe(2_904, answered(), Some(true), Some(NEXT_LOG)), no_follow_up(), "reported once");

    let mut old = Agent::with_record(Some(running()));
    assert_eq!(old.observe(2_010, answered(), None, None), no_follow_up(), "its log was rotated at midnight");
    assert_eq!(old.record.end(), Some(at(1_000)));
}

#[test]
fn restarted_agent_infers_missed_exit_from_free_world_lock() {
    let mut exited = Agent::with_record(Some(running()));
    assert_eq!(exited.observe(2_900, PingResult::Refused, Some(false), Some(LOG)), missed(false));
    assert_eq!(exited.observe(2_902, PingResult::Refused, Some(false), Some(LOG)), no_follow_up(), "reported once");

    let mut unknown = Agent::with_record(Some(running()));
    assert_eq!(unknown.observe(2_900, PingResult::Refused, None, None), no_follow_up());
    assert_eq!(unknown.observe(2_902, answered(), None, Some(LOG)), record_written(), "it was running all the time");
    assert_eq!(unknown.record.end(), Some(at(1_000)));
}

#[test]
fn init_container_reports_unrecorded_exit_once() {
    let (_directory, volume) = volume_with_record(None);
    let end = recorded_stop(&volume).unwrap();
    assert_eq!((end.at, end.saved, end.saved_at), (at(2_000), false, None));
    assert_eq!((end.players, end.started_at), (None, Some(at(1_000))));
    assert_eq!(
        end.why,
        "the exit of the process was not observed: its pod was force-deleted, or its node failed or was restarted"
    );
    assert_eq!(unended(&volume), None);
    fs::remove_file(volume.last_stop_path()).unwrap();
    write_end(&volume, end.clone());
    let later = LastStop { at: at(3_000), why: "ended by SIGTERM".to_owned(), ..end.clone() };
    assert_eq!(write_end(&volume, later), end);
    assert_eq!(recorded_stop(&volume), Some(end), "a later observation must not change the record");
}

#[test]
fn recorded_exit_is_not_reported_again_despite_clock_changes() {
    let end = |more: serde_json::Value| {
        let mut end = serde_json::json!({"at": at(1), "saved": true, "why": "asked"});
        end.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        end
    };
    let same = end(serde_json::json!({"startedAt": at(1_000)}));
    let other = end(serde_json::json!({"startedAt": at(999), "at": at(9_000)}));
    let of_older_agent = end(serde_json::json!({"at": at(2_000)}));
    let from_before = end(serde_json::json!({"at": at(999)}));
    for (last, is_reported) in [(same, false), (other, true), (of_older_agent, false), (from_before, true)] {
        let (_directory, volume) = volume_with_record(None);
        fs::write(volume.last_stop_path(), last.to_string()).unwrap();
        let why = recorded_stop(&volume).unwrap().why;
        assert_eq!(why.starts_with(UNOBSERVED_STOP), is_reported, "{last}: {why}");
    }
}

#[test]
fn exit_of_unseen_process_clears_all_seen_processes() {
    let (_directory, volume) = volume_with_record(None);
    // The clock was set back.
    let end =
        LastStop { at: at(5), started_at: None, ..unobserved_end(&running(), AGENT_AWAY, LoggedSaves::default()) };
    assert_eq!(write_end(&volume, end).started_at, Some(at(1_000)));
    assert_eq!(unended(&volume), None);
}

#[test]
fn exit_is_not_reported_at_first_start_or_without_world() {
    let (directory, volume) = volume_with_record(None);
    fs::remove_file(volume.running_path()).unwrap();
    assert_eq!(recorded_stop(&volume), None, "no process is recorded");

    write_running(&volume, &running());
    remove_running(&volume);
    assert_eq!(recorded_stop(&volume), None, "a removed record reports no exit");

    write_running(&volume, &running());
    fs::remove_dir_all(directory.path().join("world")).unwrap();
    assert_eq!(recorded_stop(&volume), None, "without a world there was no data to save");
    assert_eq!(unended(&volume), None, "it is not reported later either");

    fs::write(volume.running_path(), "{").unwrap();
    assert_eq!(recorded_stop(&volume), None);
}

#[test]
fn shutdown_save_in_log_counts_only_for_same_process() {
    const STOPPED: &str = "[12:00:00] [Server thread/INFO]: Stopping server\n\
                           [12:00:02] [Server thread/INFO]: ThreadedAnvilChunkStorage: All dimensions are saved\n";
    const SAVED: &str = "[12:00:00] [Server thread/INFO]: ThreadedAnvilChunkStorage: All dimensions are saved\n\
                         [12:05:00] [Server thread/INFO]: Bob joined the game\n";
    let of = |lines, written_at| {
        let (_directory, volume) = volume_with_record(Some((lines, written_at)));
        let end = recorded_stop(&volume).unwrap();
        (end.at, end.saved, end.saved_at)
    };
    assert_eq!(of(STOPPED, 2_030), (at(2_030), true, Some(at(2_030))));
    assert_eq!(of(SAVED, 1_900), (at(2_000), false, Some(at(1_600))));
    assert_eq!(of(STOPPED, 999), (at(2_000), false, None), "the log belongs to an earlier process");

    let (_directory, volume) = volume_with_record(Some((STOPPED, 2_030)));
    let end = record_missed_end(&volume, &running(), false);
    assert!(!end.saved && end.saved_at.is_none(), "another process has begun and may own the log: {end:?}");
    assert_eq!(read_record(&volume.last_stop_path()).unwrap(), Some(end));
}
