//! Edge (writes). Deletes servers, with and without an operator: retained claims stay, and everything else is deleted.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

use crate::cluster::deletes::{SHORT_TIMEOUT, wait_until_lobby_is_deleted, wait_until_namespace_is_deleted};
use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::manifests::{BEFORE_RELEASE, LOBBY, small_server, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::test_env::{RELEASE, TestEnv, in_test_env};

/// A file in the world that identifies it.
const MARKER: &str = "/data/world/marker.txt";
/// The claim of the server `before`.
const CLAIM: &str = "data-before-0";

#[tokio::test(flavor = "multi_thread")]
async fn deleted_servers_keep_only_retained_and_adopted_claims() {
    in_test_env("deletes", BEFORE_RELEASE, async |env| {
        let mut before = small_server("before");
        before["spec"]["storage"]["retain"] = json!(true);
        env.apply(&[before, small_server("second"), viabackwards()]).await;
        let (before, second) = (Server::new(env, "before"), Server::new(env, "second"));
        before.wait_until_stable().await;
        before.send_command("build 1000").await;
        before.put_file(MARKER, b"years").await;
        delete(env, &before).await;

        let lobby = Server::new(env, LOBBY);
        assert_lobby_adopts_claim(env, &lobby).await;
        delete(env, &lobby).await;
        assert_claim_is_retained(env).await;

        assert_lobby_adopts_claim(env, &lobby).await;
        second.wait_until_stable().await;
        wait_until_operator_is_deleted(env).await;
        env.kubectl(&["delete", "plugin", "viabackwards", SHORT_TIMEOUT], "").await;
        delete(env, &lobby).await;
        assert_claim_is_retained(env).await;
        wait_until_lobby_is_deleted(env).await;

        assert!(second.pod().await.is_some(), "a server runs in the namespace");
        env.kubectl(&["delete", "namespace", &env.namespace, "--wait=false"], "").await;
        wait_until_namespace_is_deleted(env).await;
    })
    .await;
}

/// Deletes a server and waits until its pod has released the volume. `kubectl` waits for the deletion of the server.
async fn delete(env: &TestEnv, server: &Server<'_>) {
    env.kubectl(&["delete", "papermcserver", &server.name, SHORT_TIMEOUT], "").await;
    server.wait_until_pod_is_deleted().await;
}

/// `retain: false` applies to a claim of the server's own, not to an existing one.
async fn assert_lobby_adopts_claim(env: &TestEnv, lobby: &Server<'_>) {
    let mut adopting = small_server(LOBBY);
    adopting["spec"]["storage"] = json!({"existingClaim": CLAIM, "retain": false});
    env.apply(&[adopting]).await;
    lobby.wait_until_stable().await;
    assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "years");
    assert!(lobby.saved_blocks().await >= 1000, "the world is opened, not created again");
    let created_claim = env.api::<PersistentVolumeClaim>().get_opt("data-lobby-0").await.unwrap();
    assert!(created_claim.is_none(), "the server needs no claim of its own");
}

async fn assert_claim_is_retained(env: &TestEnv) {
    let claim = env.api::<PersistentVolumeClaim>().get(CLAIM).await.unwrap();
    assert_eq!((claim.metadata.owner_references, claim.metadata.deletion_timestamp), (None, None));
}

async fn wait_until_operator_is_deleted(env: &TestEnv) {
    env.kubectl(&["scale", "deployment", RELEASE, "--replicas=0"], "").await;
    wait_until("there is no operator", SHORT_LIMIT, async || match env.try_operator().await {
        None => Ok(()),
        Some(pod) => Err(format!("{:?}", pod.metadata.name)),
    })
    .await;
}
