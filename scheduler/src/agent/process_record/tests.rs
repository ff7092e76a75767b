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

fn answers() -> PingResult {
    PingResult::Answered(server_list_ping::StatusResponse {
        minecraft: "1.21.10".to_owned(),
        online: Some(0),
        max: Some(20),
    })
}

/// An agent, from its start on.
struct Agent {
    witness: ServerMonitor,
    record: ProcessRecord,
}

impl Agent {
    fn beside(running: Option<Running>) -> Self {
        Self { witness: ServerMonitor::new(at(0)), record: ProcessRecord::inherit(running) }
    }

    fn look(&mut self, second: i64, pinged: PingResult, locked: Option<bool>, log: Option<&str>) -> FollowUp {
        let look = Sample { at: at(second), pinged, locked, log: log.map(str::to_owned), progress_at: None };
        self.witness.look(&look);
        self.record.look(&look, &self.witness)
    }
}

fn running() -> Running {
    Running { since: at(1_000), seen_at: at(2_000), log: Some(LOG.to_owned()) }
}

fn nothing() -> FollowUp {
    FollowUp::default()
}

fn written() -> FollowUp {
    FollowUp { ended: None, is_to_write: true }
}

fn missed(is_to_write: bool) -> FollowUp {
    FollowUp { ended: Some(running()), is_to_write }
}

/// A volume with a world, on which this was the last process.
fn left_with(log: Option<(&str, i64)>) -> (tempfile::TempDir, Volume) {
    let directory = tempfile::tempdir().unwrap();
    let volume = Volume::new(directory.path());
    fs::create_dir_all(directory.path().join("world")).unwrap();
    fs::write(directory.path().join("world/level.dat"), "").unwrap();
    note(&volume, &running());
    if let Some((lines, written_at)) = log {
        let path = directory.path().join("logs/latest.log");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(at(written_at).into()).unwrap();
    }
    (directory, volume)
}

fn told(volume: &Volume) -> Option<LastStop> {
    tell_of_before(volume, &Worlds::read(volume.root()).unwrap());
    read_record(&volume.last_stop_path()).unwrap()
}

#[test]
fn process_is_recorded_when_seen_and_then_every_minute() {
    let mut agent = Agent::beside(None);
    assert_eq!(agent.look(10, PingResult::Refused, Some(false), None), nothing(), "there is none");
    assert_eq!(agent.look(20, PingResult::Refused, Some(true), None), written());
    assert_eq!(agent.look(22, PingResult::Refused, Some(true), None), nothing());
    assert_eq!(agent.look(24, answers(), Some(true), Some(LOG)), written(), "its log has begun");
    assert_eq!(agent.look(83, answers(), None, Some(LOG)), nothing());
    assert_eq!(agent.look(84, answers(), None, None), written(), "a minute");
    let known = Running { since: at(20), seen_at: at(84), log: Some(LOG.to_owned()) };
    assert_eq!(agent.record.running(), Some(&known));
    assert_eq!(agent.record.end(), Some(at(20)));
    assert_eq!(agent.look(90, answers(), None, Some(NEXT_LOG)), written(), "the next one");
    assert_eq!(agent.record.running().map(|running| running.since), Some(at(90)));
}

#[test]
fn restarted_agent_continues_same_process_and_detects_new_one() {
    let mut same = Agent::beside(Some(running()));
    assert_eq!(same.look(2_010, answers(), None, Some(LOG)), nothing());
    assert_eq!(same.record.end(), Some(at(1_000)), "its end is that of the same");

    let mut starting = Agent::beside(Some(running()));
    assert_eq!(starting.look(2_900, PingResult::Refused, Some(true), None), nothing(), "it has no log yet");
    assert_eq!(starting.look(2_902, PingResult::Refused, Some(true), Some(NEXT_LOG)), missed(true));
    assert_eq!(starting.record.running().map(|running| running.since), Some(at(2_902)));
    assert_eq!(starting.look(2_904, answers(), Some(true), Some(NEXT_LOG)), nothing(), "once");

    let mut old = Agent::beside(Some(running()));
    assert_eq!(old.look(2_010, answers(), None, None), nothing(), "its log was put away at midnight");
    assert_eq!(old.record.end(), Some(at(1_000)));
}

#[test]
fn restarted_agent_infers_missed_exit_from_free_world_lock() {
    let mut gone = Agent::beside(Some(running()));
    assert_eq!(gone.look(2_900, PingResult::Refused, Some(false), Some(LOG)), missed(false));
    assert_eq!(gone.look(2_902, PingResult::Refused, Some(false), Some(LOG)), nothing(), "once");

    let mut unknown = Agent::beside(Some(running()));
    assert_eq!(unknown.look(2_900, PingResult::Refused, None, None), nothing());
    assert_eq!(unknown.look(2_902, answers(), None, Some(LOG)), written(), "it was there all the time");
    assert_eq!(unknown.record.end(), Some(at(1_000)));
}

#[test]
fn init_container_reports_unrecorded_exit_once() {
    let (_directory, volume) = left_with(None);
    let end = told(&volume).unwrap();
    assert_eq!((end.at, end.saved, end.saved_at), (at(2_000), false, None));
    assert_eq!((end.players, end.started_at), (None, Some(at(1_000))));
    assert_eq!(
        end.why,
        "nobody saw the process end: its pod was deleted by force, or its node was lost or started anew"
    );
    assert_eq!(unended(&volume), None);
    fs::remove_file(volume.last_stop_path()).unwrap();
    write_end(&volume, end.clone());
    let later = LastStop { at: at(3_000), why: "ended by SIGTERM".to_owned(), ..end.clone() };
    assert_eq!(write_end(&volume, later), end);
    assert_eq!(told(&volume), Some(end), "neither again, nor by an agent that saw it later");
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
    for (last, is_told) in [(same, false), (other, true), (of_older_agent, false), (from_before, true)] {
        let (_directory, volume) = left_with(None);
        fs::write(volume.last_stop_path(), last.to_string()).unwrap();
        let why = told(&volume).unwrap().why;
        assert_eq!(why.starts_with(NOBODY_SAW), is_told, "{last}: {why}");
    }
}

#[test]
fn exit_of_unseen_process_clears_all_seen_processes() {
    let (_directory, volume) = left_with(None);
    // The clock was set back.
    let end = LastStop { at: at(5), started_at: None, ..unseen(&running(), AGENT_AWAY, SavesTold::default()) };
    assert_eq!(write_end(&volume, end).started_at, Some(at(1_000)));
    assert_eq!(unended(&volume), None);
}

#[test]
fn exit_is_not_reported_at_first_start_or_without_world() {
    let (directory, volume) = left_with(None);
    fs::remove_file(volume.running_path()).unwrap();
    assert_eq!(told(&volume), None, "nobody wrote down what ran");

    note(&volume, &running());
    forget(&volume);
    assert_eq!(told(&volume), None, "it was no server");

    note(&volume, &running());
    fs::remove_dir_all(directory.path().join("world")).unwrap();
    assert_eq!(told(&volume), None, "there is nothing that could have been saved");
    assert_eq!(unended(&volume), None, "nor is it told when there is a world");

    fs::write(volume.running_path(), "{").unwrap();
    assert_eq!(told(&volume), None);
}

#[test]
fn shutdown_save_in_log_counts_only_for_same_process() {
    const STOPPED: &str = "[12:00:00] [Server thread/INFO]: Stopping server\n\
                           [12:00:02] [Server thread/INFO]: ThreadedAnvilChunkStorage: All dimensions are saved\n";
    const SAVED: &str = "[12:00:00] [Server thread/INFO]: ThreadedAnvilChunkStorage: All dimensions are saved\n\
                         [12:05:00] [Server thread/INFO]: Bob joined the game\n";
    let of = |lines, written_at| {
        let (_directory, volume) = left_with(Some((lines, written_at)));
        let end = told(&volume).unwrap();
        (end.at, end.saved, end.saved_at)
    };
    assert_eq!(of(STOPPED, 2_030), (at(2_030), true, Some(at(2_030))));
    assert_eq!(of(SAVED, 1_900), (at(2_000), false, Some(at(1_600))));
    assert_eq!(of(STOPPED, 999), (at(2_000), false, None), "that of a process before it");

    let (_directory, volume) = left_with(Some((STOPPED, 2_030)));
    let end = tell_of_missed(&volume, &running(), false);
    assert!(!end.saved && end.saved_at.is_none(), "another has begun, and the log may be its own: {end:?}");
    assert_eq!(read_record(&volume.last_stop_path()).unwrap(), Some(end));
}
