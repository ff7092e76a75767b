//! Edge (writes). Tests an update that needs another image: the node pulls it before players are warned, and without it
//! the server is not stopped.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::cluster::images::{PULL, THERE};
use crate::cluster::manifests::{ALWAYS, BEFORE, FAR, LOBBY, server, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::update::updated;
use crate::cluster::wait::{SOON, until};
use crate::cluster::world::{World, in_a_world, uid_of};

/// Names below `.invalid` never resolve (RFC 2606).
const UNPULLABLE: &str = "registry.invalid/none:1";

#[tokio::test(flavor = "multi_thread")]
async fn unpullable_image_stops_no_server() {
    in_a_world("image", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join_and_are_counted().await;
        unpullable_image_is_reported_and_stops_nobody(world, &lobby).await;
        image_on_the_node_lets_the_update_through(world, &lobby).await;
    })
    .await;
}

async fn unpullable_image_is_reported_and_stops_nobody(world: &World, lobby: &Server<'_>) {
    let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
    let node = before.spec.as_ref().unwrap().node_name.clone().unwrap();
    lobby.change(json!({"image": UNPULLABLE})).await;
    let said = lobby.condition_is("ImagesPulled", "False", "PullFailed").await;
    let what = format!("the image `{UNPULLABLE}` cannot be pulled on node `{node}`: ");
    assert!(said.starts_with(&what), "long before the window: {said}");
    assert!(["ErrImagePull", "ImagePullBackOff"].iter().any(|word| said.contains(word)), "{said}");
    assert!(said.contains("registry.invalid") && said.contains("it is tried again by itself"), "{said}");
    let planned = lobby.object().await.status.unwrap().available_update.unwrap();
    assert!(planned.image_problem.is_some_and(|problem| problem.starts_with(&what)));

    lobby.set_window(ALWAYS).await;
    lobby.condition_is("Updating", "False", "NoImage").await;
    // The operator tries again after half a minute.
    until("the image was tried twice", SOON, async || match pull_pods(world).await {
        tried if tried >= 2 => Ok(()),
        tried => Err(format!("{tried} times")),
    })
    .await;
    world.look_again(LOBBY).await;
    assert_eq!(world.notes(LOBBY, "PlayersWarned").await, [""; 0]);
    assert_eq!(world.notes(LOBBY, "UpdateStarted").await, [""; 0]);
    assert_eq!(world.notes(LOBBY, "PullFailed").await.len(), 1, "reported once, however often it is tried");
    assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
    assert_eq!(lobby.set().await, set);

    lobby.change(json!({"image": null, "updateSchedule": {"maintenanceWindow": {"cron": FAR}}})).await;
    lobby.settled().await;
    assert!(lobby.condition("ImagesPulled").await.is_none());
    assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
    pull_pod_is_gone(world).await;
}

async fn image_on_the_node_lets_the_update_through(world: &World, lobby: &Server<'_>) {
    let (before, pods) = (lobby.pod().await.unwrap(), pull_pods(world).await);
    let checks = json!({"name": "checks", "image": THERE, "command": ["/bin/true"]});
    lobby.change(json!({"podTemplate": {"spec": {"initContainers": [checks]}}})).await;
    let found = until("the kubelet says that the node has the image", SOON, async || {
        world.notes(PULL, "Pulled").await.pop().ok_or_else(|| "it says nothing".to_owned())
    })
    .await;
    assert!(found.contains(THERE), "{found}");
    pull_pod_is_gone(world).await;
    assert!(lobby.condition("ImagesPulled").await.is_none());
    assert_eq!(world.notes(LOBBY, "PlayersWarned").await, [""; 0], "the window is far");
    let asked = pull_pods(world).await;

    lobby.set_window(ALWAYS).await;
    updated(world, lobby).await;
    let after = lobby.pod().await.unwrap();
    assert_ne!(after.uid(), before.uid());
    assert!(after.spec.unwrap().init_containers.unwrap().iter().any(|container| container.name == "checks"));
    assert!(world.note(LOBBY, "PlayersWarned").await.starts_with("7 players warned"));
    assert_eq!((asked, pull_pods(world).await), (pods + 1, pods + 1), "an answer of the node is valid for an hour");
}

async fn pull_pod_is_gone(world: &World) {
    let api = world.api::<Pod>();
    until("the pod that pulls is gone", SOON, async || match api.get_opt(PULL).await.unwrap() {
        None => Ok(()),
        Some(pod) => Err(format!("{:?}", pod.status)),
    })
    .await;
}

/// The number of pods that the operator has created to pull images. Each has another UID.
async fn pull_pods(world: &World) -> usize {
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let regarding = events.into_iter().filter_map(|event| event.regarding);
    let uids = regarding.filter(|of| of.name.as_deref() == Some(PULL)).filter_map(|of| of.uid);
    uids.collect::<BTreeSet<_>>().len()
}
