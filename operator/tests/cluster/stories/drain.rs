//! Edge (writes). Drains the node as an admin does: the server is evicted after its players were warned and its world
//! is saved.

use serde_json::json;

use crate::cluster::cordon::{Cordoned, HARBOUR, REFUSED, Rights, harbour, wait_for_budget, wait_until_not_draining};
use crate::cluster::manifests::{BEFORE_RELEASE, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::Server;
use crate::cluster::test_env::{in_test_env_with, uid_of};

#[tokio::test(flavor = "multi_thread")]
async fn drain_warns_players_saves_world_and_moves_server() {
    in_test_env_with("drain", BEFORE_RELEASE, &["watchNodes=true"], async |env| {
        let _rights = Rights::new(env);
        let players = json!({"notice": "40s", "emptyNotice": "3s"});
        env.apply(&[harbour(&json!({"eviction": "OnUpgrade", "players": players})), viabackwards()]).await;
        let server = Server::new(env, HARBOUR);
        server.wait_until_stable().await;
        server.join_seven_counted_players().await;
        server.send_command("build 1000").await;
        wait_for_budget(env, Some(0)).await;
        let (version_set, before) = (server.version_set().await, server.pod().await.unwrap());
        let observer = ServerObserver::start(&server).await;

        let cordoned = Cordoned::cordon_node_of(&before).await;
        let in_between = async {
            let message = server.wait_for_condition("Draining", "True", "Countdown").await;
            assert!(
                message.starts_with(&format!("Node `{}` is cordoned. Players are warned. Evictions", cordoned.node)),
                "{message}"
            );
            assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&before), "the pod is not evicted yet");
            wait_for_budget(env, Some(0)).await;
            // The next operator takes over the Lease and continues the countdown.
            kill_9(&env.operator().await, "/operator");
        };
        let ((drained, output), ()) = futures::join!(cordoned.drain("5m"), in_between);
        assert!(drained && output.contains(REFUSED), "{output}");
        let shown = observer.assert_order(&[
            (0, "shown: "),
            (0, "emptied: in 30 seconds, or later"),
            (0, "emptied: in 1 second, or later"),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (0, "Closing Server"),
        ]);
        assert!(shown[0].contains("The machine of this server is being emptied: in 40 seconds, or later"), "{shown:?}");
        let first_lines =
            observer.lines().iter().filter(|line| line.text.contains("emptied: in 40 seconds, or later")).count();
        assert_eq!(first_lines, 1, "players read it once:\n{}", observer.console());

        drop(cordoned);
        server.wait_for_new_pod(&before).await;
        assert_eq!(server.version_set().await, version_set);
        assert!(server.saved_blocks().await >= 1000, "it is the same world");
        wait_for_budget(env, Some(0)).await;
        wait_until_not_draining(&server).await;
        assert_eq!(observer.pods(), 2);
        let warned = env.wait_for_event_note(HARBOUR, "PlayersWarned").await;
        assert_eq!(warned, "Warned 7 players: the server may be evicted in 40 seconds.");
        for reason in ["DrainBegun", "PlayersWarned", "WorldSaved", "EvictionAllowed"] {
            assert_eq!(env.event_notes(HARBOUR, reason).await.len(), 1, "Event {reason}");
        }

        server.patch_spec(json!({"eviction": "Always"})).await;
        wait_for_budget(env, None).await;
    })
    .await;
}
