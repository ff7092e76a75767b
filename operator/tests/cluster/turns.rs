//! Edge (writes). Servers whose windows open together are updated one after the other where that is the bound.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::wait::{AN_UPDATE, until};
use super::world::{World, in_a_world_with};

#[tokio::test(flavor = "multi_thread")]
async fn with_a_bound_of_one_servers_are_updated_one_after_the_other_and_the_others_say_whose_turn_it_is() {
    in_a_world_with("turns", BEFORE, &["maxConcurrentUpdates=1"], async |world| {
        let servers = ["a", "b", "c"].map(|name| Server::new(world, name));
        world.apply(&[viabackwards()]).await;
        world.apply(&servers.iter().map(|it| server(&it.name, FAR)).collect::<Vec<_>>()).await;
        for server in &servers {
            server.settled().await;
        }
        world.upstream.set_now(AFTER).await;
        for server in &servers {
            server.planned(&TO_AFTER).await;
        }
        for server in &servers {
            server.set_window(ALWAYS).await;
        }

        let (mut waited, mut order) = (BTreeSet::new(), Vec::new());
        until("all three are updated", AN_UPDATE + AN_UPDATE, async || {
            let away = away(world).await;
            assert!(away.len() <= 1, "{away:?} are stopped at the same time");
            for server in &servers {
                if let Some(found) = server.condition("Updating").await.filter(|it| it.reason == "WaitingForTurn") {
                    assert!(found.message.contains("`maxConcurrentUpdates`"), "{}", found.message);
                    waited.insert(server.name.clone());
                }
                if !order.contains(&server.name) && !world.notes(&server.name, "UpdateApplied").await.is_empty() {
                    order.push(server.name.clone());
                }
            }
            if order.len() == servers.len() { Ok(()) } else { Err(format!("{order:?}; {waited:?} waited")) }
        })
        .await;
        // Whose turn is first is a matter of who is looked at first; from then on there is a queue.
        let behind = &order[1..];
        assert!(behind.is_sorted(), "{order:?}: windows that open together go by name");
        assert!(behind.iter().all(|it| waited.contains(it)), "{order:?}, and only {waited:?} said that they wait");
    })
    .await;
}

/// The servers whose pod is not there, or on its way out, or whose process does not run. Not "not ready": the kubelet says that a server is
/// ready some seconds after its agent has proven it.
async fn away(world: &World) -> Vec<String> {
    let of_servers = ListParams::default().labels("app.kubernetes.io/name=papermc,nightshift.dev/server");
    let pods = world.api::<Pod>().list(&of_servers).await.unwrap().items;
    let here = |name: &&str| {
        let name = format!("{name}-0");
        pods.iter().any(|pod| pod.name_any() == name && pod.metadata.deletion_timestamp.is_none() && runs(pod))
    };
    ["a", "b", "c"].iter().filter(|name| !here(name)).map(|name| (*name).to_owned()).collect()
}

fn runs(pod: &Pod) -> bool {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let papermc = containers.filter(|container| container.name == "papermc");
    papermc.flat_map(|container| &container.state).any(|state| state.running.is_some())
}
