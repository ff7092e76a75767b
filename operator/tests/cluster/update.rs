//! Edge (writes). Tests the update in its window, as the players and the world experience it.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::wait::{AN_UPDATE, SOON, until};
use super::witness::ServerObserver;
use super::world::{World, in_a_world};

/// The cron of a minute that begins in 25 to 85 seconds, in UTC, and that minute.
pub(super) fn a_minute_from_now() -> (String, Timestamp) {
    minute_after(SignedDuration::from_secs(25))
}

/// The cron of the first minute that begins at least this much later, in UTC, and that minute.
pub(super) fn minute_after(least: SignedDuration) -> (String, Timestamp) {
    #[expect(clippy::disallowed_methods, reason = "the window is to open while the test runs, by the cluster's clock")]
    let at = Timestamp::now() + least + SignedDuration::from_mins(1);
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let minute = at.clone().with().second(0).subsec_nanosecond(0).build().unwrap();
    let mut cron = String::new();
    write!(cron, "{} {} {} {} *", minute.minute(), minute.hour(), minute.day(), minute.month()).unwrap();
    (cron, minute.timestamp())
}

/// Waits until an update is verified, and the server is stable on it.
pub(super) async fn updated(world: &World, server: &Server<'_>) -> String {
    let note = until("the update is applied", AN_UPDATE, async || {
        world.notes(&server.name, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
    })
    .await;
    server.settled().await;
    note
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_is_shortened_when_last_player_leaves() {
    in_a_world("cut-short", BEFORE, async |world| {
        let mut patient = server(LOBBY, FAR);
        patient["spec"]["players"] = json!({"notice": "10m", "emptyNotice": "5s"});
        world.apply(&[patient, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.order("join Alice").await;
        lobby.order("join Bob").await;
        lobby.has_counted(Some(2)).await;
        lobby.set_window(ALWAYS).await;
        assert_eq!(world.note(LOBBY, "PlayersWarned").await, "2 players warned: restart in 10 minutes");

        lobby.order("leave Alice").await;
        world.look_again(LOBBY).await;
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await.len(), 1, "Bob was promised ten minutes");
        lobby.order("leave Bob").await;
        updated(world, &lobby).await;
        assert_eq!(world.note(LOBBY, "PlayersWarned").await, "the last player has left: restart in 5 seconds");
        witness.assert_order(&[(0, "shown: "), (0, "All dimensions are saved"), (0, "Stopping server"), (1, "Done (")]);
        let took = witness.between((0, "shown: "), (0, "Stopping server"));
        assert!(took < SignedDuration::from_mins(9), "{took:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_request_runs_once_and_expires() {
    in_a_world("now", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let set = lobby.set().await;
        let ask = async |ago: SignedDuration| {
            #[expect(clippy::disallowed_methods, reason = "a person asks by the cluster's clock")]
            let at = (Timestamp::now() - ago).as_second().to_string();
            let annotation = format!("nightshift.dev/apply-now={at}");
            world.annotate(LOBBY, &annotation).await;
            at
        };

        ask(SignedDuration::from_mins(10)).await;
        world.look_again(LOBBY).await;
        assert_eq!(lobby.set().await, set, "who asked so long ago may not want it any more");

        let asked = ask(SignedDuration::ZERO).await;
        let witness = ServerObserver::of(&lobby).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        let served = until("the request is noted as served", SOON, async || {
            let handled = lobby.object().await.status.unwrap().last_handled.unwrap_or_default();
            handled.apply_now.clone().ok_or_else(|| format!("{handled:?}"))
        })
        .await;
        assert_eq!(served, asked);
        world.look_again(LOBBY).await;
        assert_eq!(witness.runs(), 2, "once:\n{}", witness.console());
    })
    .await;
}

/// When players were first told of a stop.
pub(super) async fn first_stop(world: &World) -> Timestamp {
    let events =
        world.api::<k8s_openapi::api::events::v1::Event>().list(&kube::api::ListParams::default()).await.unwrap();
    let warned = events.items.into_iter().find(|event| event.reason.as_deref() == Some("PlayersWarned")).unwrap();
    warned.event_time.unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn flapping_ping_never_leads_to_unannounced_stop() {
    in_a_world("flapping", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.order("flap-ping 10").await;
        lobby.set_window(ALWAYS).await;
        // The next process is known before its first line is read.
        let next =
            || witness.lines().iter().any(|line| line.run == 1 && line.text.contains("Starting minecraft server"));
        until("the server starts again", AN_UPDATE, async || if next() { Ok(()) } else { Err(witness.console()) })
            .await;
        witness.assert_order(&[(0, "shown: "), (0, "Stopping server"), (1, "Starting minecraft server")]);
        let told = witness.lines().iter().filter(|line| line.run == 0 && line.text.contains("shown: ")).count();
        assert!(told >= 3, "the last seconds are counted for the players:\n{}", witness.console());
        lobby.order("fault none").await;
        updated(world, &lobby).await;
    })
    .await;
}
