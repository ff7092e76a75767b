//! Edge (writes). An image is on the server's node before anybody is warned of the stop that brings it.

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use super::manifests::{ALWAYS, BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{SOON, until};
use super::world::{World, in_a_world, uid_of};

/// The pod that has the node of the server pull.
const PULL: &str = "lobby-images";
/// No name below `.invalid` leads anywhere (RFC 2606).
const NOWHERE: &str = "registry.invalid/none:1";
/// On every node of these tests, and nothing that a server runs.
const THERE: &str = "nightshift.dev/busybox:dev";

async fn pull_is_gone(world: &World) {
    let api = world.api::<Pod>();
    until("the pod that pulls is gone", SOON, async || match api.get_opt(PULL).await.unwrap() {
        None => Ok(()),
        Some(pod) => Err(format!("{:?}", pod.status)),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn for_an_image_that_cannot_be_pulled_nobody_is_warned_and_nothing_stopped_and_its_owner_reads_why() {
    in_a_world("no-image", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join_and_are_counted().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        let node = before.spec.as_ref().unwrap().node_name.clone().unwrap();

        lobby.change(json!({"image": NOWHERE})).await;
        let said = lobby.condition_is("ImagesPulled", "False", "PullFailed").await;
        let what = format!("the image `{NOWHERE}` cannot be pulled on node `{node}`: ");
        assert!(said.starts_with(&what), "long before the window: {said}");
        assert!(["ErrImagePull", "ImagePullBackOff"].iter().any(|word| said.contains(word)), "{said}");
        assert!(said.contains("registry.invalid") && said.contains("it is tried again by itself"), "{said}");
        let planned = lobby.object().await.status.unwrap().available_update.unwrap();
        assert!(planned.image_problem.is_some_and(|problem| problem.starts_with(&what)));

        lobby.set_window(ALWAYS).await;
        lobby.condition_is("Updating", "False", "NoImage").await;
        // It is tried again meanwhile, after half a minute.
        until("it was tried twice", SOON, async || match pulls_of(world).await {
            tried if tried >= 2 => Ok(()),
            tried => Err(format!("{tried} times")),
        })
        .await;
        world.look_again(LOBBY).await;
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await, [""; 0]);
        assert_eq!(world.notes(LOBBY, "UpdateStarted").await, [""; 0]);
        assert_eq!(world.notes(LOBBY, "PullFailed").await.len(), 1, "once, however often it is tried");
        assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
        assert_eq!(lobby.set().await, set);

        lobby.change(json!({"image": null})).await;
        lobby.settled().await;
        assert!(lobby.condition("ImagesPulled").await.is_none());
        assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
        pull_is_gone(world).await;
    })
    .await;
}

/// How many pods were made to pull: each is another one.
async fn pulls_of(world: &World) -> usize {
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let regarding = events.into_iter().filter_map(|event| event.regarding);
    let uids = regarding.filter(|of| of.name.as_deref() == Some(PULL)).filter_map(|of| of.uid);
    uids.collect::<std::collections::BTreeSet<_>>().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_the_node_has_is_found_before_the_window_and_the_update_goes_its_way() {
    in_a_world("image", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join_and_are_counted().await;
        let before = lobby.pod().await.unwrap();

        let checks = json!({"name": "checks", "image": THERE, "command": ["/bin/true"]});
        lobby.change(json!({"podTemplate": {"spec": {"initContainers": [checks]}}})).await;
        let found = until("the node says that it has it", SOON, async || {
            world.notes(PULL, "Pulled").await.pop().ok_or_else(|| "nothing is said of it".to_owned())
        })
        .await;
        assert!(found.contains(THERE), "{found}");
        pull_is_gone(world).await;
        assert!(lobby.condition("ImagesPulled").await.is_none());
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await, [""; 0], "the window is far");
        let asked = pulls_of(world).await;

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        let after = lobby.pod().await.unwrap();
        assert_ne!(after.uid(), before.uid());
        assert!(after.spec.unwrap().init_containers.unwrap().iter().any(|container| container.name == "checks"));
        assert!(world.note(LOBBY, "PlayersWarned").await.starts_with("7 players warned"));
        assert_eq!((asked, pulls_of(world).await), (1, 1), "an answer counts for an hour");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_takes_no_further_pod_gets_its_updates_all_the_same_and_its_owner_reads_why_nobody_asked() {
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
        let said = lobby.condition_is("ImagesPulled", "Unknown", "NodeNotAsked").await;
        assert!(said.contains("exceeded quota: full") && said.contains("it is asked again by itself"), "{said}");
        assert_eq!(world.notes(LOBBY, "NodeNotAsked").await.len(), 1);

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        assert_ne!(lobby.pod().await.unwrap().uid(), before.uid());
        assert!(lobby.condition("ImagesPulled").await.is_none(), "it runs them");
    })
    .await;
}
