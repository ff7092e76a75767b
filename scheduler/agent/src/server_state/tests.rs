//! Pure. Checks the state of server processes, sample by sample.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn answered(online: u32) -> PingResult {
    PingResult::Answered(server_list_ping::StatusResponse {
        minecraft: "1.21.10".into(),
        online: Some(online),
        max: Some(20),
    })
}

struct Story {
    monitor: ServerMonitor,
    log: Option<String>,
}

impl Story {
    fn new() -> Self {
        Self { monitor: ServerMonitor::new(at(0)), log: None }
    }

    fn observe(&mut self, second: i64, pinged: PingResult, locked: Option<bool>) -> Option<Transition> {
        let progress_at = Some(at(second - 1));
        self.monitor.observe(&Sample { at: at(second), pinged, locked, log: self.log.clone(), progress_at })
    }
}

#[test]
fn server_starts_answers_stops_and_exits() {
    let mut scenario = Story::new();
    assert_eq!(scenario.observe(1, PingResult::Refused, Some(false)), None);
    assert!(scenario.monitor.is_absent());
    assert_eq!(scenario.observe(3, PingResult::Refused, Some(true)), None);
    assert_eq!(scenario.monitor.server(), Server::Starting { progress_at: at(2) });
    assert_eq!(scenario.observe(5, PingResult::Silent, Some(true)), None);
    assert_eq!(scenario.observe(7, answered(0), Some(true)), Some(Transition::Up));
    assert!(scenario.monitor.is_ready(at(7)));
    assert_eq!(scenario.monitor.players(at(7)), PlayerCount::Nobody);
    assert_eq!(scenario.observe(12, answered(3), Some(true)), None);
    assert_eq!(scenario.monitor.players(at(12)), PlayerCount::Some { count: 3 });
    scenario.monitor.stop_requested(at(13));
    assert!(!scenario.monitor.is_ready(at(13)));
    assert_eq!(scenario.monitor.server(), Server::Stopping { since: at(13) });
    assert_eq!(scenario.observe(14, PingResult::Refused, Some(true)), None, "the worlds are still open");
    assert_eq!(scenario.observe(15, PingResult::Refused, Some(false)), Some(Transition::Ended));
    assert_eq!(scenario.monitor.server(), Server::Absent);
    assert_eq!(scenario.observe(16, PingResult::Refused, Some(false)), None);
}

#[test]
fn hanging_main_thread_makes_server_unready_after_a_minute() {
    let mut scenario = Story::new();
    scenario.observe(0, answered(5), Some(true));
    for asked_at in [20, 80] {
        scenario.monitor.observe_console(at(asked_at), false);
    }
    let hangs_since = |scenario: &Story| {
        let Server::Up { hangs_since, .. } = scenario.monitor.server() else { panic!("it is not up") };
        hangs_since
    };
    scenario.observe(75, answered(5), Some(true));
    assert!(scenario.monitor.is_ready(at(79)), "a long tick stall is tolerated");
    assert!(!scenario.monitor.is_ready(at(80)));
    assert_eq!(hangs_since(&scenario), Some(at(20)), "the first command without an answer counts");
    scenario.monitor.observe_console(at(85), true);
    assert_eq!((hangs_since(&scenario), scenario.monitor.is_ready(at(80))), (None, true));
}

#[test]
fn tick_stall_makes_server_unready_and_players_unknown() {
    let mut scenario = Story::new();
    scenario.observe(0, answered(5), Some(true));
    for second in [5, 10, 15, 25, 60] {
        assert_eq!(scenario.observe(second, PingResult::Silent, Some(true)), None);
    }
    assert!(scenario.monitor.is_ready(at(19)) && !scenario.monitor.is_ready(at(20)));
    assert_eq!(scenario.monitor.players(at(60)), PlayerCount::Unknown { since: at(0) });
    assert!(matches!(scenario.monitor.server(), Server::Up { answered_at, .. } if answered_at == at(0)));
    assert_eq!(scenario.observe(65, answered(5), Some(true)), None, "it is the same process");
    assert!(scenario.monitor.is_ready(at(65)));
}

#[test]
fn closed_port_means_exit_unlike_silence_without_lock() {
    let mut scenario = Story::new();
    scenario.observe(0, answered(5), Some(false));
    assert_eq!(scenario.observe(5, PingResult::Silent, Some(false)), None);
    assert_eq!(scenario.observe(6, PingResult::Refused, Some(false)), Some(Transition::Ended));
}

#[test]
fn closed_port_is_not_ready_at_once() {
    let mut scenario = Story::new();
    scenario.observe(0, answered(0), Some(true));
    scenario.observe(5, PingResult::Refused, Some(true));
    assert!(!scenario.monitor.is_ready(at(5)));
}

#[test]
fn restart_between_observations_is_detected_by_log() {
    let mut scenario = Story::new();
    scenario.log = Some("first".into());
    scenario.observe(0, answered(0), Some(true));
    scenario.observe(5, PingResult::Silent, Some(true));
    scenario.log = Some("second".into());
    assert_eq!(scenario.observe(10, answered(0), Some(true)), Some(Transition::Replaced));
    assert!(matches!(scenario.monitor.server(), Server::Up { since, .. } if since == at(10)));
}

#[test]
fn log_rotation_at_midnight_is_no_restart() {
    let mut scenario = Story::new();
    scenario.log = Some("first".into());
    scenario.observe(0, answered(0), Some(true));
    scenario.log = None;
    scenario.observe(5, PingResult::Silent, Some(true));
    assert_eq!(scenario.observe(10, answered(0), Some(true)), None);
    scenario.log = Some("second".into());
    assert_eq!(scenario.observe(15, answered(0), Some(true)), None, "the server missed no ping");
    scenario.observe(20, PingResult::Silent, Some(true));
    assert_eq!(
        scenario.observe(25, answered(0), Some(true)),
        Some(Transition::Replaced),
        "the first mark is still known"
    );
}

#[test]
fn first_start_is_detected_by_log_alone() {
    let mut scenario = Story::new();
    assert_eq!(scenario.observe(10, PingResult::Refused, None), None);
    assert_eq!(scenario.monitor.server(), Server::Starting { progress_at: at(9) });
    let stale = Sample { at: at(500), pinged: PingResult::Refused, locked: None, log: None, progress_at: Some(at(9)) };
    assert_eq!(scenario.monitor.observe(&stale), None, "a server that never ran cannot end");
    assert!(scenario.monitor.is_absent());
}

#[test]
fn hidden_players_are_unknown() {
    let mut scenario = Story::new();
    let hidden =
        PingResult::Answered(server_list_ping::StatusResponse { minecraft: "1.21.10".into(), online: None, max: None });
    scenario.observe(4, hidden, Some(true));
    assert_eq!(scenario.monitor.players(at(4)), PlayerCount::Unknown { since: at(0) });
    assert!(scenario.monitor.is_ready(at(4)));
}

#[test]
fn stop_before_any_observation_is_not_stopping() {
    let mut scenario = Story::new();
    scenario.monitor.stop_requested(at(1));
    scenario.observe(2, answered(0), Some(true));
    assert!(matches!(scenario.monitor.server(), Server::Up { .. }));
}

#[test]
fn server_running_again_after_stop_is_up() {
    let mut scenario = Story::new();
    scenario.observe(0, answered(0), Some(true));
    scenario.monitor.stop_requested(at(1));
    scenario.observe(2, PingResult::Refused, Some(false));
    assert_eq!(scenario.observe(9, answered(0), Some(true)), Some(Transition::Up));
    assert!(matches!(scenario.monitor.server(), Server::Up { .. }));
}

#[test]
fn server_is_empty_since_first_of_gapless_answers() {
    let mut scenario = Story::new();
    let since = |scenario: &Story, second| scenario.monitor.empty_since(at(second));
    scenario.observe(5, answered(2), Some(true));
    assert_eq!(since(&scenario, 5), None);
    for second in [10, 15, 20] {
        scenario.observe(second, answered(0), Some(true));
    }
    assert_eq!(since(&scenario, 21), Some(at(10)));
    assert_eq!(since(&scenario, 29), None, "a player may have joined since");
    scenario.observe(30, answered(0), Some(true));
    assert_eq!(since(&scenario, 30), Some(at(30)), "players in between are unknown");
    scenario.observe(35, answered(1), Some(true));
    scenario.observe(40, answered(0), Some(true));
    assert_eq!(since(&scenario, 41), Some(at(40)));
    scenario.monitor.observe_console_count(0);
    assert_eq!(since(&scenario, 41), Some(at(40)));
    scenario.monitor.observe_console_count(3);
    assert_eq!(since(&scenario, 41), None, "the ping may hide players");
    scenario.observe(45, answered(0), Some(true));
    assert_eq!(since(&scenario, 45), Some(at(45)));
    scenario.observe(46, PingResult::Refused, Some(false));
    scenario.observe(47, answered(0), Some(true));
    assert_eq!(since(&scenario, 47), Some(at(47)), "another process has begun");
}
