//! Edge (writes). Tests that deleted objects disappear at once, because Nightshift uses no finalizers, and that the
//! operator does not create them again.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;

use super::eventually::{SHORT_LIMIT, START_LIMIT, wait_until};
use super::manifests::{BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};

/// Enough for a deletion that waits for the API server only.
pub(super) const SHORT_TIMEOUT: &str = "--timeout=30s";

#[tokio::test(flavor = "multi_thread")]
async fn deletion_under_operator_leaves_no_objects_behind() {
    in_test_env("deletes-heard", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), server("second", NEVER_OPEN), viabackwards()]).await;
        let (lobby, second) = (Server::new(env, LOBBY), Server::new(env, "second"));
        lobby.wait_until_stable().await;
        second.wait_until_stable().await;
        env.kubectl(&["delete", "papermcserver", LOBBY, SHORT_TIMEOUT], "").await;
        env.kubectl(&["delete", "plugin", "viabackwards", SHORT_TIMEOUT], "").await;
        lobby.wait_until_pod_is_deleted().await;
        wait_until_lobby_is_deleted(env).await;
        // The operator has noticed both: the other server loses the plugin in its next window.
        second.wait_until_planned(&["ViaBackwards"]).await;
        assert!(second.pod().await.is_some());
        wait_until_lobby_is_deleted(env).await;

        env.kubectl(&["delete", "namespace", &env.namespace, "--wait=false"], "").await;
        wait_until_namespace_is_deleted(env).await;
    })
    .await;
}

pub(super) async fn wait_until_lobby_is_deleted(env: &TestEnv) {
    let of_lobby = ["get", "statefulset,service,configmap,secret", "-l", "nightshift.dev/server=lobby", "-o", "name"];
    wait_until("all objects of the server are gone", SHORT_LIMIT, async || {
        let left = env.kubectl(&of_lobby, "").await;
        if left.trim().is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

pub(super) async fn wait_until_namespace_is_deleted(env: &TestEnv) {
    let namespaces = Api::<Namespace>::all(env.client.clone());
    wait_until("the namespace is gone", START_LIMIT, async || {
        match namespaces.get_opt(&env.namespace).await.unwrap() {
            None => Ok(()),
            Some(namespace) => Err(format!("{:?}", namespace.status.and_then(|status| status.conditions))),
        }
    })
    .await;
}
