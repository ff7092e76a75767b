//! Edge (writes). Tests players at the opening of a window: the operator waits for them until the deadline and warns
//! them, also if the server hides them.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};
use super::update::{first_stop_warning, next_minute, wait_until_updated};

/// A server with other times for players.
fn server_for(players: &Value) -> Value {
    let mut object = server(LOBBY, NEVER_OPEN);
    object["spec"]["players"] = players.clone();
    object
}

/// A server that waits for its players, until this deadline after the opening of its window.
fn server_waiting_until(deadline: &str) -> Value {
    server_for(&json!({"policy": "WaitForEmpty", "deadline": deadline, "notice": "20s", "emptyNotice": "3s"}))
}

/// A server with the player Alice, and an update that waits for its window.
async fn create_with_alice_and_update(env: &TestEnv, object: Value) -> Server<'_> {
    env.apply(&[object, viabackwards()]).await;
    let lobby = Server::new(env, LOBBY);
    lobby.wait_until_stable().await;
    lobby.send_command("join Alice").await;
    env.upstream.set_now(AFTER_RELEASE).await;
    lobby.wait_until_planned(&RELEASE_CHANGES).await;
    lobby
}

/// Alice had 20 seconds, and the messages stated them and the reason for the disconnection. The server was stopped
/// once.
fn assert_alice_was_warned(observer: &ServerObserver) {
    observer.assert_order(&[
        (0, "Alice was shown: The server restarts in 10 seconds for an update"),
        (0, "Alice was shown: The server restarts in 1 second for an update"),
        (0, "All dimensions are saved"),
        (0, "Alice lost connection: The server stops now."),
        (0, "Stopping server"),
        (1, "Done ("),
    ]);
    let took = observer.time_between((0, "Alice was shown: "), (0, "Stopping server"));
    assert!(took >= SignedDuration::from_secs(15), "{took:?}:\n{}", observer.console());
    assert_eq!((observer.pods(), observer.runs()), (2, 2), "{}", observer.console());
}

#[tokio::test(flavor = "multi_thread")]
async fn update_waits_for_players_to_leave() {
    in_test_env("wait-for-empty", BEFORE_RELEASE, async |env| {
        let lobby = create_with_alice_and_update(env, server_waiting_until("30m")).await;
        let (version_set, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);
        let (cron, opens) = next_minute();
        lobby.set_window(&cron).await;
        let message = lobby.wait_for_condition("Updating", "True", "WaitingForPlayers").await;
        let deadline = opens + SignedDuration::from_mins(30);
        assert!(
            message.contains(&format!("Players are online. Waiting for them until {deadline} at the latest.")),
            "{message}"
        );
        env.trigger_passes(LOBBY).await;
        assert_eq!((lobby.version_set().await, observer.runs()), (version_set, 1), "{}", observer.console());
        assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await, Vec::<String>::new());
        let is_warned = observer.lines().iter().any(|line| line.text.contains("was shown"));
        assert!(!is_warned, "no warning appears while Alice plays:\n{}", observer.console());

        lobby.send_command("leave Alice").await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
        assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await, ["No players are online: restart in 3 seconds."]);
        observer.assert_order(&[
            (0, "Alice left the game"),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (1, "Done ("),
        ]);
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "{}", observer.console());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_players_are_warned_at_deadline() {
    in_test_env("wait-deadline", BEFORE_RELEASE, async |env| {
        let lobby = create_with_alice_and_update(env, server_waiting_until("1m")).await;
        let observer = ServerObserver::start(&lobby).await;
        let (cron, opens) = next_minute();
        lobby.set_window(&cron).await;
        lobby.wait_for_condition("Updating", "True", "WaitingForPlayers").await;
        wait_until_updated(env, &lobby).await;

        let (warned_at, deadline) = (first_stop_warning(env).await, opens + SignedDuration::from_mins(1));
        assert!(warned_at >= deadline, "warned at {warned_at}, before the deadline {deadline}");
        assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await, ["Warned 1 player: restart in 20 seconds."]);
        assert_alice_was_warned(&observer);
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_players_get_full_notice() {
    in_test_env("hidden-players", BEFORE_RELEASE, async |env| {
        let object = server_for(&json!({"notice": "20s", "emptyNotice": "3s"}));
        let lobby = create_with_alice_and_update(env, object).await;
        lobby.wait_for_player_count(Some(1)).await;
        lobby.send_command("fault hides-players").await;
        lobby.wait_for_player_count(None).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;

        let warned = env.event_notes(LOBBY, "PlayersWarned").await;
        assert_eq!(warned, ["Warned 1 player: restart in 20 seconds."], "the server's own list counts");
        assert_alice_was_warned(&observer);
        let started = env.wait_for_event_note(LOBBY, "UpdateStarted").await;
        assert!(!started.contains("The agent was unreachable"), "{started}");
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}
