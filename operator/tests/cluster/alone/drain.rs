//! Edge (writes). Tests a server that must never be evicted, and a node that is uncordoned before the server has left
//! it.

use serde_json::json;

use crate::cluster::cordon::{Cordoned, HARBOUR, REFUSED, Rights, budget_is, harbour, no_longer_draining};
use crate::cluster::manifests::{BEFORE, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::wait::{SOON, until};
use crate::cluster::witness::ServerObserver;
use crate::cluster::world::{alone_in_a_world, uid_of};

#[tokio::test(flavor = "multi_thread")]
async fn drain_with_eviction_never_waits_for_pod_deletion() {
    alone_in_a_world("never", BEFORE, &["watchNodes=true"], async |world| {
        let _rights = Rights::of(world);
        world.apply(&[harbour(&json!({"eviction": "Never"})), viabackwards()]).await;
        let server = Server::new(world, HARBOUR);
        server.settled().await;
        budget_is(world, Some(0)).await;
        let before = server.pod().await.unwrap();

        let cordoned = Cordoned::of(&before).await;
        let message = server.condition_is("Draining", "True", "EvictionNever").await;
        let way_out = format!("`kubectl -n {} delete pod harbour-0`", world.namespace);
        assert!(message.ends_with(&way_out), "{message}");
        assert!(world.note(HARBOUR, "EvictionRefused").await.ends_with(&way_out));
        let (drained, said) = cordoned.drain("8s").await;
        assert!(!drained && said.contains(REFUSED), "{said}");
        assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&before));
        // The budget does not block the command from the condition.
        world.kubectl(&["delete", "pod", "harbour-0", "--wait=false"], "").await;
        drop(cordoned);
        let after = server.back_after(&before).await;
        no_longer_draining(&server).await;

        // The user changes the eviction policy.
        server.change(json!({"eviction": "OnUpgrade", "players": {"notice": "10m"}})).await;
        server.settled().await;
        server.seven_join_and_are_counted().await;
        let witness = ServerObserver::of(&server).await;
        let cordoned = Cordoned::of(&after).await;
        server.condition_is("Draining", "True", "Countdown").await;
        drop(cordoned);
        world.note(HARBOUR, "DrainEnded").await;
        until("players were told that it stays", SOON, async || {
            let told = witness.lines().iter().any(|line| line.text.contains("The move is called off"));
            if told { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        no_longer_draining(&server).await;
        budget_is(world, Some(0)).await;
        assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&after));

        server.change(json!({"eviction": "Always"})).await;
        budget_is(world, None).await;
    })
    .await;
}
