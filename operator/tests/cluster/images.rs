//! Edge (writes). Tests that an update is applied although the operator cannot check whether the node has an image.

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use super::eventually::{SHORT_LIMIT, wait_until};
use super::manifests::{ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

/// The pod that makes the server's node pull images.
pub(super) const PULL_POD: &str = "lobby-images";
/// An image that every node of these tests has, and that no server runs.
pub(super) const PRESENT_IMAGE: &str = "nightshift.dev/busybox:dev";

#[tokio::test(flavor = "multi_thread")]
async fn full_pod_quota_does_not_block_update() {
    in_test_env("image-quota", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.pod().await.unwrap();
        let pods = env.api::<Pod>().list(&ListParams::default()).await.unwrap().items.len().to_string();
        let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": {"pods": pods}}});
        let quotas = env.api::<ResourceQuota>();
        quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
        wait_until("the quota counts the pods", SHORT_LIMIT, async || {
            let used = quotas.get("full").await.unwrap().status.and_then(|status| status.used).unwrap_or_default();
            let counted = used.get("pods").is_some_and(|used| used.0 == pods);
            counted.then_some(()).ok_or_else(|| format!("{used:?}"))
        })
        .await;

        let checks = json!({"name": "checks", "image": PRESENT_IMAGE, "command": ["/bin/true"]});
        lobby.patch_spec(json!({"podTemplate": {"spec": {"initContainers": [checks]}}})).await;
        let message = lobby.wait_for_condition("ImagesPulled", "Unknown", "NodeUnavailable").await;
        assert!(
            message.contains("exceeded quota: full") && message.contains("The check is retried automatically"),
            "{message}"
        );
        assert_eq!(env.event_notes(LOBBY, "NodeUnavailable").await.len(), 1);

        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        assert_ne!(lobby.pod().await.unwrap().uid(), before.uid());
        assert!(lobby.condition("ImagesPulled").await.is_none(), "the node has the images");
    })
    .await;
}
