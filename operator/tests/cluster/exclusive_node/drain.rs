//! Edge (writes). Tests a server that must never be evicted, and a node that is uncordoned before the server has left
//! it.

use serde_json::json;

use crate::cluster::cordon::{Cordoned, HARBOUR, REFUSED, Rights, harbour, wait_for_budget, wait_until_not_draining};
use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::manifests::{BEFORE_RELEASE, viabackwards};
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::Server;
use crate::cluster::test_env::{in_exclusive_test_env, uid_of};

#[tokio::test(flavor = "multi_thread")]
async fn drain_with_eviction_never_waits_for_pod_deletion() {
    in_exclusive_test_env("never", BEFORE_RELEASE, &["watchNodes=true"], async |env| {
        let _rights = Rights::new(env);
        env.apply(&[harbour(&json!({"eviction": "Never"})), viabackwards()]).await;
        let server = Server::new(env, HARBOUR);
        server.wait_until_stable().await;
        wait_for_budget(env, Some(0)).await;
        let before = server.pod().await.unwrap();

        let cordoned = Cordoned::cordon_node_of(&before).await;
        let message = server.wait_for_condition("Draining", "True", "EvictionNever").await;
        let manual_command = format!("`kubectl -n {} delete pod harbour-0`.", env.namespace);
        assert!(message.ends_with(&manual_command), "{message}");
        assert!(env.wait_for_event_note(HARBOUR, "EvictionRefused").await.ends_with(&manual_command));
        let (drained, output) = cordoned.drain("8s").await;
        assert!(!drained && output.contains(REFUSED), "{output}");
        assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&before));
        // The budget does not block the command from the condition.
        env.kubectl(&["delete", "pod", "harbour-0", "--wait=false"], "").await;
        drop(cordoned);
        let after = server.wait_for_new_pod(&before).await;
        wait_until_not_draining(&server).await;

        // The user changes the eviction policy.
        server.patch_spec(json!({"eviction": "OnUpgrade", "players": {"notice": "10m"}})).await;
        server.wait_until_stable().await;
        server.join_seven_counted_players().await;
        let observer = ServerObserver::start(&server).await;
        let cordoned = Cordoned::cordon_node_of(&after).await;
        server.wait_for_condition("Draining", "True", "Countdown").await;
        drop(cordoned);
        env.wait_for_event_note(HARBOUR, "DrainEnded").await;
        wait_until("players read that the move is cancelled", SHORT_LIMIT, async || {
            let is_cancelled = observer.lines().iter().any(|line| line.text.contains("The move is cancelled"));
            if is_cancelled { Ok(()) } else { Err(observer.console()) }
        })
        .await;
        wait_until_not_draining(&server).await;
        wait_for_budget(env, Some(0)).await;
        assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&after));

        server.patch_spec(json!({"eviction": "Always"})).await;
        wait_for_budget(env, None).await;
    })
    .await;
}
