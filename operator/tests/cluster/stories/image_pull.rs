//! Edge (writes). Tests an update that needs another image: the node pulls it before players are warned, and without it
//! the server is not stopped.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::images::{PRESENT_IMAGE, PULL_POD};
use crate::cluster::manifests::{ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::test_env::{TestEnv, in_test_env, uid_of};
use crate::cluster::update::wait_until_updated;

/// Names below `.invalid` never resolve (RFC 2606).
const UNPULLABLE: &str = "registry.invalid/none:1";

#[tokio::test(flavor = "multi_thread")]
async fn unpullable_image_stops_no_server() {
    in_test_env("image", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.join_seven_counted_players().await;
        assert_unpullable_image_blocks_update(env, &lobby).await;
        assert_present_image_allows_update(env, &lobby).await;
    })
    .await;
}

async fn assert_unpullable_image_blocks_update(env: &TestEnv, lobby: &Server<'_>) {
    let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
    let node = before.spec.as_ref().unwrap().node_name.clone().unwrap();
    lobby.patch_spec(json!({"image": UNPULLABLE})).await;
    let message = lobby.wait_for_condition("ImagesPulled", "False", "PullFailed").await;
    let prefix = format!("The image `{UNPULLABLE}` cannot be pulled on node `{node}`: ");
    assert!(message.starts_with(&prefix), "long before the window: {message}");
    assert!(["ErrImagePull", "ImagePullBackOff"].iter().any(|text| message.contains(text)), "{message}");
    assert!(message.contains("registry.invalid") && message.contains("The pull is retried automatically"), "{message}");
    let planned = lobby.object().await.status.unwrap().available_update.unwrap();
    assert!(planned.image_problem.is_some_and(|problem| problem.starts_with(&prefix)));

    lobby.set_window(ALWAYS_OPEN).await;
    lobby.wait_for_condition("Updating", "False", "NoImage").await;
    // The operator tries again after half a minute.
    wait_until("the image was tried twice", SHORT_LIMIT, async || match pull_pods(env).await {
        tried if tried >= 2 => Ok(()),
        tried => Err(format!("{tried} times")),
    })
    .await;
    env.trigger_passes(LOBBY).await;
    assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await, [""; 0]);
    assert_eq!(env.event_notes(LOBBY, "UpdateStarted").await, [""; 0]);
    assert_eq!(env.event_notes(LOBBY, "PullFailed").await.len(), 1, "the failure is reported once");
    assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
    assert_eq!(lobby.version_set().await, version_set);

    lobby.patch_spec(json!({"image": null, "updateSchedule": {"maintenanceWindow": {"cron": NEVER_OPEN}}})).await;
    lobby.wait_until_stable().await;
    assert!(lobby.condition("ImagesPulled").await.is_none());
    assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
    wait_until_pull_pod_is_deleted(env).await;
}

async fn assert_present_image_allows_update(env: &TestEnv, lobby: &Server<'_>) {
    let (before, pods) = (lobby.pod().await.unwrap(), pull_pods(env).await);
    let checks = json!({"name": "checks", "image": PRESENT_IMAGE, "command": ["/bin/true"]});
    lobby.patch_spec(json!({"podTemplate": {"spec": {"initContainers": [checks]}}})).await;
    let found = wait_until("the kubelet says that the node has the image", SHORT_LIMIT, async || {
        env.event_notes(PULL_POD, "Pulled").await.pop().ok_or_else(|| "no Event Pulled".to_owned())
    })
    .await;
    assert!(found.contains(PRESENT_IMAGE), "{found}");
    wait_until_pull_pod_is_deleted(env).await;
    assert!(lobby.condition("ImagesPulled").await.is_none());
    assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await, [""; 0], "the window is closed");
    let requested = pull_pods(env).await;

    lobby.set_window(ALWAYS_OPEN).await;
    wait_until_updated(env, lobby).await;
    let after = lobby.pod().await.unwrap();
    assert_ne!(after.uid(), before.uid());
    assert!(after.spec.unwrap().init_containers.unwrap().iter().any(|container| container.name == "checks"));
    assert!(env.wait_for_event_note(LOBBY, "PlayersWarned").await.starts_with("Warned 7 players"));
    assert_eq!((requested, pull_pods(env).await), (pods + 1, pods + 1), "the result is valid for an hour");
}

async fn wait_until_pull_pod_is_deleted(env: &TestEnv) {
    let api = env.api::<Pod>();
    wait_until("the pull pod is gone", SHORT_LIMIT, async || match api.get_opt(PULL_POD).await.unwrap() {
        None => Ok(()),
        Some(pod) => Err(format!("{:?}", pod.status)),
    })
    .await;
}

/// The number of pods that the operator has created to pull images. Each has another UID.
async fn pull_pods(env: &TestEnv) -> usize {
    let events = env.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let regarding = events.into_iter().filter_map(|event| event.regarding);
    let uids = regarding.filter(|of| of.name.as_deref() == Some(PULL_POD)).filter_map(|of| of.uid);
    uids.collect::<BTreeSet<_>>().len()
}
