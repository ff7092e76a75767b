//! Edge (writes). Tests that servers whose windows open together are updated one after the other if that is the limit.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::wait::{AN_UPDATE, until};
use super::world::{World, in_a_world_with};

#[tokio::test(flavor = "multi_thread")]
async fn update_slot_limit_of_one_serializes_updates() {
    in_a_world_with("turns", BEFORE, &["maxConcurrentUpdates=1"], async |world| {
        update_in_turn(world, &["a", "b", "c"], "`maxConcurrentUpdates`").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_slot_limit_per_node_serializes_its_servers() {
    in_a_world_with("turns-of-a-node", BEFORE, &["maxConcurrentUpdatesPerNode=1"], async |world| {
        update_in_turn(world, &["a", "b"], "on its node (`maxConcurrentUpdatesPerNode`)").await;
    })
    .await;
}

/// Opens the windows of these servers together. They are warned and updated one after the other, and the waiting ones
/// name the limit meanwhile.
async fn update_in_turn(world: &World, names: &[&str], bound: &str) {
    let servers: Vec<_> = names.iter().map(|name| Server::new(world, name)).collect();
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
    until("all of them are updated", AN_UPDATE + AN_UPDATE, async || {
        let away = away(world, names).await;
        assert!(away.len() <= 1, "{away:?} are stopped at the same time");
        let mut at_it = Vec::new();
        for server in &servers {
            if !world.notes(&server.name, "PlayersWarned").await.is_empty() {
                at_it.push(server.name.clone());
            }
        }
        // A server that is not verified now was being updated when the last server was read.
        for server in &servers {
            if !world.notes(&server.name, "UpdateApplied").await.is_empty() {
                at_it.retain(|name| *name != server.name);
                if !order.contains(&server.name) {
                    order.push(server.name.clone());
                }
            }
            if let Some(found) = server.condition("Updating").await.filter(|it| it.reason == "WaitingForUpdateSlot") {
                assert!(found.message.contains(bound), "{}", found.message);
                waited.insert(server.name.clone());
            }
        }
        assert!(at_it.len() <= 1, "{at_it:?} are told before the one before is proven");
        if order.len() == servers.len() { Ok(()) } else { Err(format!("{order:?}; {waited:?} waited")) }
    })
    .await;
    // The first pass determines the first update slot. From then on there is a waiting list.
    let behind = &order[1..];
    assert!(behind.is_sorted(), "{order:?}: windows that open together go by name");
    assert!(behind.iter().all(|it| waited.contains(it)), "{order:?}, and only {waited:?} said that they wait");
}

/// The servers whose pod does not exist, is being deleted, or has no running process. "Not ready" does not count,
/// because the kubelet reports a server as ready some seconds after the agent's report allows its verification.
async fn away(world: &World, names: &[&str]) -> Vec<String> {
    let of_servers = ListParams::default().labels("app.kubernetes.io/name=papermc,nightshift.dev/server");
    let pods = world.api::<Pod>().list(&of_servers).await.unwrap().items;
    let here = |name: &&str| {
        let name = format!("{name}-0");
        pods.iter().any(|pod| pod.name_any() == name && pod.metadata.deletion_timestamp.is_none() && runs(pod))
    };
    names.iter().filter(|name| !here(name)).map(|name| (*name).to_owned()).collect()
}

fn runs(pod: &Pod) -> bool {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let papermc = containers.filter(|container| container.name == "papermc");
    papermc.flat_map(|container| &container.state).any(|state| state.running.is_some())
}
