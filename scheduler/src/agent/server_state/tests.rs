//! Pure. Checks the state of server processes, sample by sample.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn answer(online: u32) -> PingResult {
    PingResult::Answered(server_list_ping::StatusResponse {
        minecraft: "1.21.10".into(),
        online: Some(online),
        max: Some(20),
    })
}

struct Story {
    witness: ServerMonitor,
    log: Option<String>,
}

impl Story {
    fn new() -> Self {
        Self { witness: ServerMonitor::new(at(0)), log: None }
    }

    fn look(&mut self, second: i64, pinged: PingResult, locked: Option<bool>) -> Option<Transition> {
        let progress_at = Some(at(second - 1));
        self.witness.look(&Sample { at: at(second), pinged, locked, log: self.log.clone(), progress_at })
    }
}

#[test]
fn server_starts_answers_stops_and_exits() {
    let mut story = Story::new();
    assert_eq!(story.look(1, PingResult::Refused, Some(false)), None);
    assert!(story.witness.is_absent());
    assert_eq!(story.look(3, PingResult::Refused, Some(true)), None);
    assert_eq!(story.witness.server(), Server::Starting { progress_at: at(2) });
    assert_eq!(story.look(5, PingResult::Silent, Some(true)), None);
    assert_eq!(story.look(7, answer(0), Some(true)), Some(Transition::Up));
    assert!(story.witness.is_ready(at(7)));
    assert_eq!(story.witness.players(at(7)), PlayerCount::Nobody);
    assert_eq!(story.look(12, answer(3), Some(true)), None);
    assert_eq!(story.witness.players(at(12)), PlayerCount::Some { count: 3 });
    story.witness.stop_sent(at(13));
    assert!(!story.witness.is_ready(at(13)));
    assert_eq!(story.witness.server(), Server::Stopping { since: at(13) });
    assert_eq!(story.look(14, PingResult::Refused, Some(true)), None, "the worlds are still open");
    assert_eq!(story.look(15, PingResult::Refused, Some(false)), Some(Transition::Ended));
    assert_eq!(story.witness.server(), Server::Absent);
    assert_eq!(story.look(16, PingResult::Refused, Some(false)), None);
}

#[test]
fn tick_stall_makes_server_unready_and_players_unknown() {
    let mut story = Story::new();
    story.look(0, answer(5), Some(true));
    for second in [5, 10, 15, 25, 60] {
        assert_eq!(story.look(second, PingResult::Silent, Some(true)), None);
    }
    assert!(story.witness.is_ready(at(19)) && !story.witness.is_ready(at(20)));
    assert_eq!(story.witness.players(at(60)), PlayerCount::Unknown { since: at(0) });
    assert!(matches!(story.witness.server(), Server::Up { answered_at, .. } if answered_at == at(0)));
    assert_eq!(story.look(65, answer(5), Some(true)), None, "it is the same process");
    assert!(story.witness.is_ready(at(65)));
}

#[test]
fn closed_port_means_exit_unlike_silence_without_lock() {
    let mut story = Story::new();
    story.look(0, answer(5), Some(false));
    assert_eq!(story.look(5, PingResult::Silent, Some(false)), None);
    assert_eq!(story.look(6, PingResult::Refused, Some(false)), Some(Transition::Ended));
}

#[test]
fn closed_port_is_not_ready_at_once() {
    let mut story = Story::new();
    story.look(0, answer(0), Some(true));
    story.look(5, PingResult::Refused, Some(true));
    assert!(!story.witness.is_ready(at(5)));
}

#[test]
fn restart_between_observations_is_detected_by_log() {
    let mut story = Story::new();
    story.log = Some("first".into());
    story.look(0, answer(0), Some(true));
    story.look(5, PingResult::Silent, Some(true));
    story.log = Some("second".into());
    assert_eq!(story.look(10, answer(0), Some(true)), Some(Transition::Replaced));
    assert!(matches!(story.witness.server(), Server::Up { since, .. } if since == at(10)));
}

#[test]
fn log_rotation_at_midnight_is_no_restart() {
    let mut story = Story::new();
    story.log = Some("first".into());
    story.look(0, answer(0), Some(true));
    story.log = None;
    story.look(5, PingResult::Silent, Some(true));
    assert_eq!(story.look(10, answer(0), Some(true)), None);
    story.log = Some("second".into());
    assert_eq!(story.look(15, answer(0), Some(true)), None, "it never missed a ping");
    story.look(20, PingResult::Silent, Some(true));
    assert_eq!(story.look(25, answer(0), Some(true)), Some(Transition::Replaced), "the first mark is still known");
}

#[test]
fn first_start_is_detected_by_log_alone() {
    let mut story = Story::new();
    assert_eq!(story.look(10, PingResult::Refused, None), None);
    assert_eq!(story.witness.server(), Server::Starting { progress_at: at(9) });
    let stale = Sample { at: at(500), pinged: PingResult::Refused, locked: None, log: None, progress_at: Some(at(9)) };
    assert_eq!(story.witness.look(&stale), None, "who never was here cannot have ended");
    assert!(story.witness.is_absent());
}

#[test]
fn hidden_players_are_unknown() {
    let mut story = Story::new();
    let hidden =
        PingResult::Answered(server_list_ping::StatusResponse { minecraft: "1.21.10".into(), online: None, max: None });
    story.look(4, hidden, Some(true));
    assert_eq!(story.witness.players(at(4)), PlayerCount::Unknown { since: at(0) });
    assert!(story.witness.is_ready(at(4)));
}

#[test]
fn stop_before_any_observation_is_not_stopping() {
    let mut story = Story::new();
    story.witness.stop_sent(at(1));
    story.look(2, answer(0), Some(true));
    assert!(matches!(story.witness.server(), Server::Up { .. }));
}

#[test]
fn server_running_again_after_stop_is_up() {
    let mut story = Story::new();
    story.look(0, answer(0), Some(true));
    story.witness.stop_sent(at(1));
    story.look(2, PingResult::Refused, Some(false));
    assert_eq!(story.look(9, answer(0), Some(true)), Some(Transition::Up));
    assert!(matches!(story.witness.server(), Server::Up { .. }));
}

#[test]
fn server_is_empty_since_first_of_gapless_answers() {
    let mut story = Story::new();
    let since = |story: &Story, second| story.witness.empty_since(at(second));
    story.look(5, answer(2), Some(true));
    assert_eq!(since(&story, 5), None);
    for second in [10, 15, 20] {
        story.look(second, answer(0), Some(true));
    }
    assert_eq!(since(&story, 21), Some(at(10)));
    assert_eq!(since(&story, 29), None, "nobody knows who came since");
    story.look(30, answer(0), Some(true));
    assert_eq!(since(&story, 30), Some(at(30)), "who was there in between is not known");
    story.look(35, answer(1), Some(true));
    story.look(40, answer(0), Some(true));
    assert_eq!(since(&story, 41), Some(at(40)));
    story.witness.listed(0);
    assert_eq!(since(&story, 41), Some(at(40)));
    story.witness.listed(3);
    assert_eq!(since(&story, 41), None, "the ping does not show everybody");
    story.look(45, answer(0), Some(true));
    assert_eq!(since(&story, 45), Some(at(45)));
    story.look(46, PingResult::Refused, Some(false));
    story.look(47, answer(0), Some(true));
    assert_eq!(since(&story, 47), Some(at(47)), "another life of the server");
}
