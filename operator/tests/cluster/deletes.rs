//! Edge (writes). Tests that deleted objects disappear at once, because Nightshift uses no finalizers, and that the
//! operator does not create them again.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::wait::{A_START, SOON, until};
use super::world::{World, in_a_world};

/// Enough for a deletion that waits for the API server only.
pub(super) const AT_ONCE: &str = "--timeout=30s";

#[tokio::test(flavor = "multi_thread")]
async fn deletion_under_operator_leaves_no_objects_behind() {
    in_a_world("deletes-heard", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), server("second", FAR), viabackwards()]).await;
        let (lobby, second) = (Server::new(world, LOBBY), Server::new(world, "second"));
        lobby.settled().await;
        second.settled().await;
        world.kubectl(&["delete", "papermcserver", LOBBY, AT_ONCE], "").await;
        world.kubectl(&["delete", "plugin", "viabackwards", AT_ONCE], "").await;
        lobby.gone().await;
        nothing_is_left_of_lobby(world).await;
        // The operator has noticed both: the other server loses the plugin in its next window.
        second.planned(&["ViaBackwards"]).await;
        assert!(second.pod().await.is_some());
        nothing_is_left_of_lobby(world).await;

        world.kubectl(&["delete", "namespace", &world.namespace, "--wait=false"], "").await;
        namespace_is_gone(world).await;
    })
    .await;
}

pub(super) async fn nothing_is_left_of_lobby(world: &World) {
    let of_lobby = ["get", "statefulset,service,configmap,secret", "-l", "nightshift.dev/server=lobby", "-o", "name"];
    until("all that the server had is gone", SOON, async || {
        let left = world.kubectl(&of_lobby, "").await;
        if left.trim().is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

pub(super) async fn namespace_is_gone(world: &World) {
    let namespaces = Api::<Namespace>::all(world.client.clone());
    until("the namespace is gone", A_START, async || match namespaces.get_opt(&world.namespace).await.unwrap() {
        None => Ok(()),
        Some(namespace) => Err(format!("{:?}", namespace.status.and_then(|status| status.conditions))),
    })
    .await;
}
