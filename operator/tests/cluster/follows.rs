//! Edge (writes). Tests that a server that follows another one waits in its open window until that one has run the
//! update long enough.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{SOON, all_the_while, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

const STAGING: &str = "staging";

/// A lobby whose window is open, and that follows the staging server with this waiting time.
fn follower(soak: &str) -> Value {
    let mut object = server(LOBBY, ALWAYS);
    object["spec"]["follows"] = json!({"server": STAGING, "soak": soak});
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_updates_after_soak_of_followed_server() {
    in_a_world("follows", BEFORE, async |world| {
        world.apply(&[server(STAGING, FAR), follower("90s"), viabackwards()]).await;
        let (staging, lobby) = (Server::new(world, STAGING), Server::new(world, LOBBY));
        staging.settled().await;
        lobby.settled().await;
        let (set, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let said = lobby.condition_is("WaitingForLeaderServer", "True", "OtherRelease").await;
        assert!(said.starts_with("waits for staging, which runs Via") && said.ends_with(" 5.7.0 still"), "{said}");
        lobby.condition_is("Updating", "False", "WaitingForLeaderServer").await;
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("waits for staging"));
        world.note(LOBBY, "WaitingForLeaderServer").await;
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (set.clone(), 1), "its window is open");

        staging.set_window(ALWAYS).await;
        updated(world, &staging).await;
        let said = lobby.condition_is("WaitingForLeaderServer", "True", "Soaking").await;
        assert!(said.contains("5.7.1 since ") && said.ends_with("(1 minute 30 seconds)"), "{said}");
        let settled_at = staging.object().await.status.unwrap().history[0].settled_at;
        all_the_while(Duration::from_secs(30), async || {
            assert_eq!(witness.runs(), 1, "{}", witness.console());
        })
        .await;
        assert_eq!(lobby.set().await, set);

        // No event signals the end of the waiting time: the operator requeues the server.
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        let applied_at = lobby.object().await.status.unwrap().last_update.unwrap().applied_at;
        assert!(applied_at.duration_since(settled_at).as_secs() > 90, "{settled_at} and {applied_at}");
        assert!(lobby.condition("WaitingForLeaderServer").await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_errors_are_reported_and_apply_request_overrides() {
    in_a_world("follows-nobody", BEFORE, async |world| {
        world.apply(&[follower("48h"), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        // A first start does not wait for the other server.
        lobby.settled().await;
        let said = lobby.condition_is("WaitingForLeaderServer", "True", "NoSuchServer").await;
        assert!(said.contains("make it, or correct `spec.follows.server`"), "{said}");

        let mut staging = server(STAGING, FAR);
        staging["spec"]["follows"] = json!({"server": LOBBY});
        world.apply(&[staging]).await;
        let said = lobby.condition_is("WaitingForLeaderServer", "True", "Circle").await;
        assert!(said.contains("lobby -> staging -> lobby"), "{said}");
        let staging = Server::new(world, STAGING);
        staging.change(json!({"follows": null})).await;
        until("the circle is open", SOON, async || match lobby.condition("WaitingForLeaderServer").await {
            None => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
        staging.settled().await;

        let witness = ServerObserver::of(&lobby).await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        lobby.condition_is("WaitingForLeaderServer", "True", "OtherRelease").await;
        assert_eq!(witness.runs(), 1, "{}", witness.console());
        let digest = lobby.object().await.status.unwrap().available_update.unwrap().digest;
        world.annotate(LOBBY, &format!("nightshift.dev/apply={digest}")).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}
