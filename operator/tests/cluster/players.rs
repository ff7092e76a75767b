//! Edge (writes). Tests players at the opening of a window: the operator waits for them until the deadline and warns
//! them, also if the server hides them.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::{a_minute_from_now, first_stop, updated};
use super::witness::ServerObserver;
use super::world::{World, in_a_world};

/// A server with other times for players.
fn server_for(players: &Value) -> Value {
    let mut object = server(LOBBY, FAR);
    object["spec"]["players"] = players.clone();
    object
}

/// A server that waits for its players, until this deadline after the opening of its window.
fn patient(deadline: &str) -> Value {
    server_for(&json!({"policy": "WaitForEmpty", "deadline": deadline, "notice": "20s", "emptyNotice": "3s"}))
}

/// A server with the player Alice, and an update that waits for its window.
async fn with_alice_and_an_update(world: &World, object: Value) -> Server<'_> {
    world.apply(&[object, viabackwards()]).await;
    let lobby = Server::new(world, LOBBY);
    lobby.settled().await;
    lobby.order("join Alice").await;
    world.upstream.set_now(AFTER).await;
    lobby.planned(&TO_AFTER).await;
    lobby
}

/// Alice had 20 seconds, and the messages stated them and the reason for the disconnection. The server was stopped
/// once.
fn assert_alice_was_told(witness: &ServerObserver) {
    witness.assert_order(&[
        (0, "Alice was shown: The server restarts in 10 seconds for an update"),
        (0, "Alice was shown: The server restarts in 1 second for an update"),
        (0, "All dimensions are saved"),
        (0, "Alice lost connection: The server stops now."),
        (0, "Stopping server"),
        (1, "Done ("),
    ]);
    let took = witness.between((0, "Alice was shown: "), (0, "Stopping server"));
    assert!(took >= SignedDuration::from_secs(15), "{took:?}:\n{}", witness.console());
    assert_eq!((witness.pods(), witness.runs()), (2, 2), "{}", witness.console());
}

#[tokio::test(flavor = "multi_thread")]
async fn update_waits_for_players_to_leave() {
    in_a_world("wait-for-empty", BEFORE, async |world| {
        let lobby = with_alice_and_an_update(world, patient("30m")).await;
        let (set, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);
        let (cron, opens) = a_minute_from_now();
        lobby.set_window(&cron).await;
        let said = lobby.condition_is("Updating", "True", "WaitingForPlayers").await;
        let deadline = opens + SignedDuration::from_mins(30);
        assert!(said.contains(&format!("somebody is on; waiting until {deadline} at most")), "{said}");
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (set, 1), "{}", witness.console());
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await, Vec::<String>::new());
        let is_told = witness.lines().iter().any(|line| line.text.contains("was shown"));
        assert!(!is_told, "nothing comes while Alice plays:\n{}", witness.console());

        lobby.order("leave Alice").await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await, ["nobody is on: restart in 3 seconds"]);
        witness.assert_order(&[
            (0, "Alice left the game"),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (1, "Done ("),
        ]);
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "{}", witness.console());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_players_are_warned_at_deadline() {
    in_a_world("wait-deadline", BEFORE, async |world| {
        let lobby = with_alice_and_an_update(world, patient("1m")).await;
        let witness = ServerObserver::of(&lobby).await;
        let (cron, opens) = a_minute_from_now();
        lobby.set_window(&cron).await;
        lobby.condition_is("Updating", "True", "WaitingForPlayers").await;
        updated(world, &lobby).await;

        let (told, deadline) = (first_stop(world).await, opens + SignedDuration::from_mins(1));
        assert!(told >= deadline, "told at {told}, and waited for until {deadline}");
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await, ["1 player warned: restart in 20 seconds"]);
        assert_alice_was_told(&witness);
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_players_get_full_notice() {
    in_a_world("hidden-players", BEFORE, async |world| {
        let object = server_for(&json!({"notice": "20s", "emptyNotice": "3s"}));
        let lobby = with_alice_and_an_update(world, object).await;
        lobby.has_counted(Some(1)).await;
        lobby.order("fault hides-players").await;
        lobby.has_counted(None).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;

        let warned = world.notes(LOBBY, "PlayersWarned").await;
        assert_eq!(warned, ["1 player warned: restart in 20 seconds"], "by the server's own list");
        assert_alice_was_told(&witness);
        let started = world.note(LOBBY, "UpdateStarted").await;
        assert!(!started.contains("nobody could be asked"), "{started}");
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}
