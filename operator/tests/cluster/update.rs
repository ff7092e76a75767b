//! Edge (writes). The update in its window, as the players and the world see it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fixtures::jar::{self, PluginYml};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::kubectl::run;
use super::manifests::{
    AFTER, ALWAYS, BEFORE, FAR, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, TO_AFTER, server, viabackwards,
};
use super::server::Server;
use super::wait::{AN_UPDATE, SOON, until};
use super::witness::Witness;
use super::world::{RELEASE, World, in_a_world};

/// The cron of a minute that begins in 25 to 85 seconds, in UTC, and that minute.
pub(super) fn a_minute_from_now() -> (String, Timestamp) {
    #[expect(clippy::disallowed_methods, reason = "the window is to open while the test runs, by the cluster's clock")]
    let at = Timestamp::now() + SignedDuration::from_secs(85);
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let minute = at.clone().with().second(0).subsec_nanosecond(0).build().unwrap();
    let mut cron = String::new();
    write!(cron, "{} {} {} {} *", minute.minute(), minute.hour(), minute.day(), minute.month()).unwrap();
    (cron, minute.timestamp())
}

/// Waits until an update is proven, and the server is settled on it.
pub(super) async fn updated(world: &World, server: &Server<'_>) -> String {
    let note = until("the update is applied", AN_UPDATE, async || {
        world.notes(&server.name, "UpdateApplied").await.pop().ok_or_else(|| "no Event UpdateApplied".to_owned())
    })
    .await;
    server.settled().await;
    note
}

/// A JAR that a person put there.
const BY_HAND: &str = "by-hand-1.0.jar";

/// Says that a JAR was checked on this Minecraft: `resolver trust`, from the operator's image, prints what to write.
async fn vouch_for(world: &World, jar: &str, minecraft: &str) {
    let deployment = format!("deployment/{RELEASE}");
    let trust = ["/resolver", "trust", LOBBY, jar, "--minecraft", minecraft, "-n", &world.namespace];
    let said = world.kubectl(&[&["exec", &deployment, "--"], &trust[..]].concat(), "").await;
    let command = said.lines().find(|line| line.starts_with("kubectl ")).expect("a command is printed");
    run("sh", &["-c", command], "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_window_players_are_told_the_world_is_saved_and_the_new_set_starts_beside_what_people_put_there() {
    in_a_world("update", OLDER_MINECRAFT, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        assert!(lobby.set().await.paper.starts_with("1.21.10-"));
        lobby.seven_join().await;
        lobby.order("build 1000").await;
        lobby.put_file("/data/plugins/ViaVersion/by-hand.yml", b"check: true\n").await;
        lobby.put_file(&format!("/data/plugins/{BY_HAND}"), &jar::plugin(&PluginYml::new("ByHand", "1.0"))).await;

        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.held_by(BY_HAND).await;
        vouch_for(world, BY_HAND, "1.21.11").await;
        let (cron, opens) = a_minute_from_now();
        lobby.set_window(&cron).await;
        lobby
            .planned(&["Paper 1.21.10", "-> 1.21.11", "ViaVersion 5.5.1 -> 5.6.0", "ViaBackwards 5.5.1 -> 5.6.0"])
            .await;
        let witness = Witness::of(&lobby).await;
        let note = updated(world, &lobby).await;

        assert!(note.contains("2 plugins") || note.contains("3 plugins"), "{note}");
        witness.assert_order(&[
            (0, "shown: "),
            (0, "All dimensions are saved"),
            (0, "lost connection: The server stops now."),
            (0, "Stopping server"),
            (0, "Closing Server"),
            (1, "Starting minecraft server version 1.21.11"),
            (1, "Enabling ViaVersion v5.6.0"),
            (1, "Done ("),
        ]);
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "{}", witness.console());
        for reason in ["PlayersWarned", "WorldSaved", "UpdateStarted", "UpdateApplied"] {
            assert_eq!(world.notes(LOBBY, reason).await.len(), 1, "Event {reason}");
        }
        // While the upstreams change a smaller plan may come first; each is told of once.
        let (plans, staged) = (world.notes(LOBBY, "UpdatePlanned").await, world.notes(LOBBY, "UpdateStaged").await);
        assert_eq!(plans.iter().collect::<BTreeSet<_>>().len(), plans.len(), "{plans:?}");
        assert!((1..=plans.len()).contains(&staged.len()), "{staged:?} of {plans:?}");
        assert!(world.note(LOBBY, "PlayersWarned").await.starts_with("7 players warned"));
        assert!(first_stop(world).await >= opens, "nothing happens before the window opens");

        let set = lobby.set().await;
        assert!(set.paper.starts_with("1.21.11-"), "{set:?}");
        assert_eq!((set.plugins["ViaVersion"].as_str(), set.plugins["ViaBackwards"].as_str()), ("5.6.0", "5.6.0"));
        assert_eq!(set.plugins["ByHand"], "1.0", "a JAR that a person put there stays");
        assert_eq!(lobby.shell("cat /data/plugins/ViaVersion/by-hand.yml").await, "check: true\n");
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        let last = lobby.object().await.status.unwrap().last_update.unwrap();
        assert!(last.successful && last.version == set.paper, "{last:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_countdown_is_cut_short_when_the_last_player_leaves() {
    in_a_world("cut-short", BEFORE, async |world| {
        let mut patient = server(LOBBY, FAR);
        patient["spec"]["players"] = json!({"notice": "10m", "emptyNotice": "5s"});
        world.apply(&[patient, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = Witness::of(&lobby).await;
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
async fn who_asks_for_an_update_now_gets_it_once_and_an_old_request_starts_nothing() {
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
        let witness = Witness::of(&lobby).await;
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
async fn a_ping_that_comes_and_goes_never_leads_to_a_stop_that_nobody_was_told_of() {
    in_a_world("flapping", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = Witness::of(&lobby).await;
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
