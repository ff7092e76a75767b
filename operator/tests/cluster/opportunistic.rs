//! Edge (writes). Tests updates outside of windows: on an empty server, cancelled when a player joins, at zero
//! replicas, and never to a newer Minecraft.

use serde_json::{Value, json};

use super::manifests::{AFTER, BEFORE, FAR, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{A_START, AN_UPDATE, SOON, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

/// A server whose window is far away, and that is updated after it was empty for 15 seconds.
fn opportunistic() -> Value {
    let mut object = server(LOBBY, FAR);
    object["spec"]["updateSchedule"]["opportunistic"] = json!({"emptyFor": "15s"});
    // Long enough for a player to join in between.
    object["spec"]["players"]["emptyNotice"] = json!("20s");
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn opportunistic_update_is_called_off_by_joining_player() {
    in_a_world("opportunistic", BEFORE, async |world| {
        world.apply(&[opportunistic(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.order("join Alice").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let (set, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);
        let said = lobby.condition_is("Updating", "False", "WaitingForWindow").await;
        assert!(said.contains("it also comes when nobody has been on for 15 seconds"), "{said}");
        let next = lobby.object().await.status.unwrap().next_window.unwrap_or_default();
        assert!(next.ends_with("or when empty"), "{next}");
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (set.clone(), 1), "somebody is on");

        lobby.order("leave Alice").await;
        lobby.condition_is("Updating", "True", "CountdownWhileEmpty").await;
        lobby.order("join Bob").await;
        world.note(LOBBY, "UpdateCancelled").await;
        until("Bob is told that it is called off", SOON, async || {
            let is_told =
                witness.lines().iter().any(|line| line.text.contains("Bob was shown: The restart is called off"));
            if is_told { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (set, 1), "{}", witness.console());
        assert_eq!(world.notes(LOBBY, "UpdateStarted").await, Vec::<String>::new());

        lobby.order("leave Bob").await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        let started = world.note(LOBBY, "UpdateStarted").await;
        assert!(started.starts_with("nobody has been on for 15 seconds: "), "{started}");
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "once:\n{}", witness.console());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scaled_to_zero_server_starts_with_opportunistic_update() {
    in_a_world("opportunistic-asleep", BEFORE, async |world| {
        world.apply(&[opportunistic(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.change(json!({"replicas": 0})).await;
        lobby.condition_is("Ready", "False", "Asleep").await;
        world.upstream.set_now(AFTER).await;
        let started = until("the update is begun while the server sleeps", AN_UPDATE, async || {
            world.notes(LOBBY, "UpdateStarted").await.pop().ok_or_else(|| "no Event UpdateStarted".to_owned())
        })
        .await;
        assert!(started.starts_with("while the server sleeps: "), "{started}");
        until("it says that it wakes with it", A_START, async || match lobby.condition("Updating").await {
            Some(found) if found.message.contains("what has begun comes when the server wakes") => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        assert!(lobby.pod().await.is_none(), "nobody has woken it");

        lobby.change(json!({"replicas": 1})).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_minecraft_waits_for_window_on_empty_server() {
    in_a_world("opportunistic-one-way", OLDER_MINECRAFT, async |world| {
        world.apply(&[opportunistic(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let witness = ServerObserver::of(&lobby).await;
        // A player is on the server until the whole update is planned, because ViaVersion alone would not be a newer
        // Minecraft.
        lobby.order("join Alice").await;
        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.planned(&["Paper 1.21.10", "-> 1.21.11"]).await;
        let plans = world.notes(LOBBY, "UpdatePlanned").await;
        let says_both =
            |plan: &String| plan.contains("(one-way)") && plan.contains("no copy of the worlds is taken before it");
        assert!(plans.iter().any(says_both), "{plans:?}");
        lobby.order("leave Alice").await;
        until("it says why it waits", SOON, async || match lobby.condition("Updating").await {
            Some(found) if found.message.contains("a newer Minecraft comes in a window only") => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        let next = lobby.object().await.status.unwrap().next_window.unwrap_or_default();
        assert!(!next.contains("when empty"), "{next}");
        world.look_again(LOBBY).await;
        assert_eq!(witness.runs(), 1, "{}", witness.console());
        assert!(lobby.set().await.paper.starts_with("1.21.10-"));
    })
    .await;
}
