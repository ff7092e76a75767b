//! Edge (writes). Tests that only an approved version set is applied if approval is required, and that a user can
//! request one exact version set.

use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{SOON, until};
use super::witness::ServerObserver;
use super::world::{World, in_a_world};

async fn annotate(world: &World, annotation: &str, digest: &str) {
    let annotation = format!("nightshift.dev/{annotation}={digest}");
    world.annotate(LOBBY, &annotation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unapproved_update_waits_in_open_window() {
    in_a_world("approval", BEFORE, async |world| {
        let mut object = server(LOBBY, ALWAYS);
        object["spec"]["approval"] = json!("Required");
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let said = lobby.condition_is("ApprovalNeeded", "True", "NotApproved").await;
        let status = lobby.object().await.status.unwrap();
        let digest = status.available_update.unwrap().digest;
        assert!(said.contains(&format!("nightshift.dev/approve={digest}")), "{said}");
        assert_eq!(status.next_window.as_deref(), Some("needs approval"));
        world.note(LOBBY, "ApprovalNeeded").await;

        annotate(world, "approve", &set.lock).await;
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (set, 1), "that was the set before");

        annotate(world, "approve", &digest).await;
        updated(world, &lobby).await;
        let now = lobby.set().await;
        assert_eq!((now.lock, now.plugins["ViaVersion"].as_str()), (digest, "5.7.1"));
        assert!(lobby.condition("ApprovalNeeded").await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_request_for_exact_digest_needs_no_window() {
    in_a_world("apply", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let digest = lobby.object().await.status.unwrap().available_update.unwrap().digest;

        annotate(world, "apply", "0123456789abcdef").await;
        let refused = world.note(LOBBY, "RequestRefused").await;
        assert!(refused.contains("0123456789abcdef") && refused.contains(&digest), "{refused}");

        let witness = ServerObserver::of(&lobby).await;
        annotate(world, "apply", &digest[..16]).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.lock, digest);
        until("the request is noted", SOON, async || {
            let handled = lobby.object().await.status.unwrap().last_handled.unwrap_or_default();
            if handled.apply.as_deref() == Some(&digest[..16]) { Ok(()) } else { Err(format!("{handled:?}")) }
        })
        .await;
        world.look_again(LOBBY).await;
        assert_eq!(witness.runs(), 2, "once:\n{}", witness.console());
    })
    .await;
}
