//! Edge (writes). Tests stops that differ from the announcement, or happen without RCON.

use std::time::Duration;

use agent::{config, pre_stop_hook};
use agent_api::{AgentReport, PlayerCount, Server};
use jiff::SignedDuration;

use crate::bad_exits::{SAVED_BY_LOG, TIMEOUT, prepared_with_rcon, server};
use crate::fake_server::Paper;
use crate::harness::{Pod, free_address, restart_in};

async fn stop_by_hook(pod: &Pod) {
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: TIMEOUT };
    pre_stop_hook::run(&config).await;
}

/// Whether the hook warns players this long before (or after) the announced end of the countdown.
async fn is_warned(left: SignedDuration) -> bool {
    let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.start(pod.settings()).await;
    pod.report_when("up", |report| matches!(report.server, Server::Up { .. })).await;
    let announce = restart_in(left, "update-1");
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);
    stop_by_hook(&pod).await;
    let commands = paper.commands();
    assert!(commands.iter().any(|command| command.contains("save-all")), "{commands:?}");
    commands.iter().any(|command| command.contains("This server stops in a moment."))
}

#[tokio::test(flavor = "multi_thread")]
async fn early_stop_warns_players_unless_announced_time_is_over() {
    assert!(is_warned(SignedDuration::from_mins(4)).await, "the pod is deleted during the countdown");
    assert!(!is_warned(SignedDuration::from_secs(3)).await, "the countdown is about to end");
    assert!(!is_warned(SignedDuration::from_secs(-60)).await, "the countdown has just ended");
    assert!(is_warned(SignedDuration::from_mins(-6)).await, "the countdown ended long ago");
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_without_rcon_is_no_crash_and_read_from_log() {
    let (mut pod, set) = prepared_with_rcon().await;
    let deaf = server(&pod, &set);
    // A firewall between the agent and the console.
    pod.start(config::SidecarConfig { rcon_port: free_address().port(), stop_timeout: TIMEOUT, ..pod.settings() })
        .await;
    pod.report_when("up", |report| matches!(report.server, Server::Up { .. })).await;
    stop_by_hook(&pod).await;
    deaf.terminate();
    assert_eq!(deaf.wait().await, 143);
    let is_reported = |report: &AgentReport| report.server == Server::Absent && report.last_stop.is_some();
    let last_stop = pod.report_when("exited", is_reported).await.last_stop.unwrap();
    assert_eq!(last_stop.why, format!("stopped by SIGTERM, because RCON did not answer{SAVED_BY_LOG}"));
    assert!(last_stop.saved, "{last_stop:?}");
    assert_eq!(last_stop.players, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_agent_observes_server_before_reporting_or_stopping_it() {
    for report_first in [true, false] {
        let mut pod = Pod::without_agent(tempfile::tempdir().unwrap());
        pod.write_log();
        let paper = Paper::start(pod.game, pod.rcon, 3).await;
        paper.state.lock().unwrap().ping_delay = Duration::from_millis(500);
        pod.start(pod.settings()).await;
        if report_first {
            let report = pod.report().await;
            assert!(matches!(report.server, Server::Up { .. }), "{report:?}");
            assert_eq!(report.players, PlayerCount::Some { count: 3 });
        }
        stop_by_hook(&pod).await;
        let commands = paper.commands();
        assert!(commands.iter().any(|command| command.contains("save-all")), "{commands:?}");
    }
}
