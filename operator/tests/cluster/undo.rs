//! Edge (writes). Tests a rollback at a user's request: to an earlier version set, announced, and the server stays
//! there until the pin is removed.

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{AN_UPDATE, SOON, until};
use super::witness::ServerObserver;
use super::world::{World, in_a_world};

async fn roll_back_to(world: &World, set: &str) {
    let annotation = format!("nightshift.dev/rollback-to{set}");
    world.annotate(LOBBY, &annotation).await;
}

/// Waits until an earlier version set runs again, verified.
async fn runs_again(lobby: &Server<'_>, lock: &String) {
    until("that set runs again", AN_UPDATE, async || {
        let runs = lobby.object().await.status.unwrap_or_default().lock;
        if runs.as_ref() == Some(lock) { Ok(()) } else { Err(format!("{runs:?}")) }
    })
    .await;
    lobby.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_to_previous_lock_holds_until_released() {
    in_a_world("undo", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        world.upstream.set_now(AFTER).await;
        // With a window that is always open, the update could start when the page of only one plugin has been read.
        lobby.planned(&TO_AFTER).await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        let after = lobby.set().await;
        assert_ne!(before.lock, after.lock);

        roll_back_to(world, "=0123456789abcdef").await;
        let refused = lobby.condition_is("PinnedToSet", "True", "UnknownSet").await;
        assert!(refused.contains(&before.lock[..16]) && refused.contains(&after.lock[..16]), "{refused}");

        let witness = ServerObserver::of(&lobby).await;
        let runs = witness.runs();
        roll_back_to(world, "=previous").await;
        runs_again(&lobby, &before.lock).await;
        assert_eq!(lobby.set().await, before);
        assert_eq!(witness.runs(), runs + 1, "one restart:\n{}", witness.console());
        world.note(LOBBY, "PlayersWarned").await;

        // A window is open all the time, and the solver still chooses the newer version set.
        let held = lobby.condition_is("PinnedToSet", "True", "RollbackTo").await;
        assert!(held.contains(&before.lock[..16]) && held.contains("nightshift.dev/rollback-to-"), "{held}");
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (before, runs + 1), "it stays");
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("held"));

        roll_back_to(world, "-").await;
        runs_again(&lobby, &after.lock).await;
        assert_eq!(lobby.set().await, after);
        until("the condition goes", SOON, async || match lobby.condition("PinnedToSet").await {
            None => Ok(()),
            Some(held) => Err(held.message),
        })
        .await;
    })
    .await;
}
