//! Edge (writes). Drains the node as an admin does: the server is evicted after its players were warned and its world
//! is saved.

use serde_json::json;

use crate::cluster::cordon::{Cordoned, HARBOUR, REFUSED, Rights, budget_is, harbour, no_longer_draining};
use crate::cluster::manifests::{BEFORE, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::server::Server;
use crate::cluster::witness::ServerObserver;
use crate::cluster::world::{in_a_world_with, uid_of};

#[tokio::test(flavor = "multi_thread")]
async fn drain_warns_players_saves_world_and_moves_server() {
    in_a_world_with("drain", BEFORE, &["watchNodes=true"], async |world| {
        let _rights = Rights::of(world);
        let players = json!({"notice": "40s", "emptyNotice": "3s"});
        world.apply(&[harbour(&json!({"eviction": "OnUpgrade", "players": players})), viabackwards()]).await;
        let server = Server::new(world, HARBOUR);
        server.settled().await;
        server.seven_join_and_are_counted().await;
        server.order("build 1000").await;
        budget_is(world, Some(0)).await;
        let (set, before) = (server.set().await, server.pod().await.unwrap());
        let witness = ServerObserver::of(&server).await;

        let cordoned = Cordoned::of(&before).await;
        let in_between = async {
            let message = server.condition_is("Draining", "True", "Countdown").await;
            assert!(
                message.starts_with(&format!("node `{}` is cordoned: players are warned; evictions", cordoned.node)),
                "{message}"
            );
            assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&before), "the pod is not evicted yet");
            budget_is(world, Some(0)).await;
            // The next operator takes over the Lease and continues the countdown.
            kill_9(&world.operator().await, "/operator");
        };
        let ((drained, said), ()) = futures::join!(cordoned.drain("5m"), in_between);
        assert!(drained && said.contains(REFUSED), "{said}");
        let told = witness.assert_order(&[
            (0, "shown: "),
            (0, "emptied: in 30 seconds, or later"),
            (0, "emptied: in 1 second, or later"),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (0, "Closing Server"),
        ]);
        assert!(told[0].contains("The machine of this server is being emptied: in 40 seconds, or later"), "{told:?}");
        let first_lines =
            witness.lines().iter().filter(|line| line.text.contains("emptied: in 40 seconds, or later")).count();
        assert_eq!(first_lines, 1, "players read it once:\n{}", witness.console());

        drop(cordoned);
        server.back_after(&before).await;
        assert_eq!(server.set().await, set);
        assert!(server.saved_blocks().await >= 1000, "it is the same world");
        budget_is(world, Some(0)).await;
        no_longer_draining(&server).await;
        assert_eq!(witness.pods(), 2);
        let warned = world.note(HARBOUR, "PlayersWarned").await;
        assert_eq!(warned, "7 players warned: the server may be evicted in 40 seconds");
        for reason in ["DrainBegun", "PlayersWarned", "WorldSaved", "EvictionAllowed"] {
            assert_eq!(world.notes(HARBOUR, reason).await.len(), 1, "Event {reason}");
        }

        server.change(json!({"eviction": "Always"})).await;
        budget_is(world, None).await;
    })
    .await;
}
