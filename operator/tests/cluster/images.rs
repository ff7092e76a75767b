//! Edge (writes). Tests that an update is applied although the operator cannot check whether the node has an image.

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use super::manifests::{ALWAYS, BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{SOON, until};
use super::world::in_a_world;

/// The pod that makes the server's node pull images.
pub(super) const PULL: &str = "lobby-images";
/// An image that every node of these tests has, and that no server runs.
pub(super) const THERE: &str = "nightshift.dev/busybox:dev";

#[tokio::test(flavor = "multi_thread")]
async fn full_pod_quota_does_not_block_update() {
    in_a_world("image-quota", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.pod().await.unwrap();
        let pods = world.api::<Pod>().list(&ListParams::default()).await.unwrap().items.len().to_string();
        let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": {"pods": pods}}});
        let quotas = world.api::<ResourceQuota>();
        quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
        until("the pods are counted", SOON, async || {
            let used = quotas.get("full").await.unwrap().status.and_then(|status| status.used).unwrap_or_default();
            let counted = used.get("pods").is_some_and(|used| used.0 == pods);
            counted.then_some(()).ok_or_else(|| format!("{used:?}"))
        })
        .await;

        let checks = json!({"name": "checks", "image": THERE, "command": ["/bin/true"]});
        lobby.change(json!({"podTemplate": {"spec": {"initContainers": [checks]}}})).await;
        let said = lobby.condition_is("ImagesPulled", "Unknown", "NodeUnavailable").await;
        assert!(said.contains("exceeded quota: full") && said.contains("it is asked again by itself"), "{said}");
        assert_eq!(world.notes(LOBBY, "NodeUnavailable").await.len(), 1);

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        assert_ne!(lobby.pod().await.unwrap().uid(), before.uid());
        assert!(lobby.condition("ImagesPulled").await.is_none(), "it runs them");
    })
    .await;
}
