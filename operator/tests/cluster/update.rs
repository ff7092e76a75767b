//! Edge (writes). Tests the update in its window, as the players and the world experience it.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::eventually::{SHORT_LIMIT, UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};

/// The cron of a minute that begins in 25 to 85 seconds, in UTC, and that minute.
pub(super) fn next_minute() -> (String, Timestamp) {
    first_minute_after(SignedDuration::from_secs(25))
}

/// The cron of the first minute that begins at least this much later, in UTC, and that minute.
pub(super) fn first_minute_after(least: SignedDuration) -> (String, Timestamp) {
    #[expect(clippy::disallowed_methods, reason = "the window must open while the test runs")]
    let at = Timestamp::now() + least + SignedDuration::from_mins(1);
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let minute = at.clone().with().second(0).subsec_nanosecond(0).build().unwrap();
    let mut cron = String::new();
    write!(cron, "{} {} {} {} *", minute.minute(), minute.hour(), minute.day(), minute.month()).unwrap();
    (cron, minute.timestamp())
}

/// Waits until an update is verified, and the server is stable on it.
pub(super) async fn wait_until_updated(env: &TestEnv, server: &Server<'_>) -> String {
    let note = wait_until("the update is applied", UPDATE_LIMIT, async || {
        env.event_notes(&server.name, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
    })
    .await;
    server.wait_until_stable().await;
    note
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_is_shortened_when_last_player_leaves() {
    in_test_env("cut-short", BEFORE_RELEASE, async |env| {
        let mut patient = server(LOBBY, NEVER_OPEN);
        patient["spec"]["players"] = json!({"notice": "10m", "emptyNotice": "5s"});
        env.apply(&[patient, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.send_command("join Alice").await;
        lobby.send_command("join Bob").await;
        lobby.wait_for_player_count(Some(2)).await;
        lobby.set_window(ALWAYS_OPEN).await;
        assert_eq!(env.wait_for_event_note(LOBBY, "PlayersWarned").await, "Warned 2 players: restart in 10 minutes.");

        lobby.send_command("leave Alice").await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await.len(), 1, "the notice for Bob is unchanged");
        lobby.send_command("leave Bob").await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(
            env.wait_for_event_note(LOBBY, "PlayersWarned").await,
            "The last player has left: restart in 5 seconds."
        );
        observer.assert_order(&[
            (0, "shown: "),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (1, "Done ("),
        ]);
        let took = observer.time_between((0, "shown: "), (0, "Stopping server"));
        assert!(took < SignedDuration::from_mins(9), "{took:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_request_runs_once_and_expires() {
    in_test_env("now", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let version_set = lobby.version_set().await;
        let request_now = async |ago: SignedDuration| {
            #[expect(clippy::disallowed_methods, reason = "the request needs the cluster's time")]
            let at = (Timestamp::now() - ago).as_second().to_string();
            let annotation = format!("nightshift.dev/apply-now={at}");
            env.annotate(LOBBY, &annotation).await;
            at
        };

        request_now(SignedDuration::from_mins(10)).await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(lobby.version_set().await, version_set, "an old request has no effect");

        let request = request_now(SignedDuration::ZERO).await;
        let observer = ServerObserver::start(&lobby).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
        let served = wait_until("the request is reported as handled", SHORT_LIMIT, async || {
            let handled = lobby.object().await.status.unwrap().last_handled.unwrap_or_default();
            handled.apply_now.clone().ok_or_else(|| format!("{handled:?}"))
        })
        .await;
        assert_eq!(served, request);
        env.trigger_passes(LOBBY).await;
        assert_eq!(observer.runs(), 2, "one restart:\n{}", observer.console());
    })
    .await;
}

/// When players were first told of a stop.
pub(super) async fn first_stop_warning(env: &TestEnv) -> Timestamp {
    let events =
        env.api::<k8s_openapi::api::events::v1::Event>().list(&kube::api::ListParams::default()).await.unwrap();
    let warned = events.items.into_iter().find(|event| event.reason.as_deref() == Some("PlayersWarned")).unwrap();
    warned.event_time.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn flapping_ping_never_leads_to_unannounced_stop() {
    in_test_env("flapping", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.join_seven_players().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.send_command("flap-ping 10").await;
        lobby.set_window(ALWAYS_OPEN).await;
        // The next process is known before its first line is read.
        let next =
            || observer.lines().iter().any(|line| line.run == 1 && line.text.contains("Starting minecraft server"));
        wait_until(
            "the server starts again",
            UPDATE_LIMIT,
            async || if next() { Ok(()) } else { Err(observer.console()) },
        )
        .await;
        observer.assert_order(&[(0, "shown: "), (0, "Stopping server"), (1, "Starting minecraft server")]);
        let warnings = observer.lines().iter().filter(|line| line.run == 0 && line.text.contains("shown: ")).count();
        assert!(warnings >= 3, "the last seconds are announced:\n{}", observer.console());
        lobby.send_command("fault none").await;
        wait_until_updated(env, &lobby).await;
    })
    .await;
}
