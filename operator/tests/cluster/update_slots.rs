//! Edge (writes). Tests that servers whose windows open together are updated one after the other if that is the limit.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::eventually::{UPDATE_LIMIT, wait_until};
use super::manifests::{AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards};
use super::server::Server;
use super::test_env::{TestEnv, in_test_env_with};

#[tokio::test(flavor = "multi_thread")]
async fn update_slot_limit_of_one_serializes_updates() {
    in_test_env_with("turns", BEFORE_RELEASE, &["maxConcurrentUpdates=1"], async |env| {
        update_one_by_one(env, &["a", "b", "c"], "`maxConcurrentUpdates`").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_slot_limit_per_node_serializes_its_servers() {
    in_test_env_with("turns-of-a-node", BEFORE_RELEASE, &["maxConcurrentUpdatesPerNode=1"], async |env| {
        update_one_by_one(env, &["a", "b"], "on its node (`maxConcurrentUpdatesPerNode`)").await;
    })
    .await;
}

/// Opens the windows of these servers together. They are warned and updated one after the other, and the waiting ones
/// name the limit meanwhile.
async fn update_one_by_one(env: &TestEnv, names: &[&str], bound: &str) {
    let servers: Vec<_> = names.iter().map(|name| Server::new(env, name)).collect();
    env.apply(&[viabackwards()]).await;
    env.apply(&servers.iter().map(|entry| server(&entry.name, NEVER_OPEN)).collect::<Vec<_>>()).await;
    for server in &servers {
        server.wait_until_stable().await;
    }
    env.upstream.set_now(AFTER_RELEASE).await;
    for server in &servers {
        server.wait_until_planned(&RELEASE_CHANGES).await;
    }
    for server in &servers {
        server.set_window(ALWAYS_OPEN).await;
    }

    let (mut waited, mut order) = (BTreeSet::new(), Vec::new());
    wait_until("all of them are updated", UPDATE_LIMIT + UPDATE_LIMIT, async || {
        let unavailable = unavailable_servers(env, names).await;
        assert!(unavailable.len() <= 1, "{unavailable:?} are stopped at the same time");
        let mut updating = Vec::new();
        for server in &servers {
            if !env.event_notes(&server.name, "PlayersWarned").await.is_empty() {
                updating.push(server.name.clone());
            }
        }
        // A server that is not verified now was being updated when the last server was read.
        for server in &servers {
            if !env.event_notes(&server.name, "UpdateApplied").await.is_empty() {
                updating.retain(|name| *name != server.name);
                if !order.contains(&server.name) {
                    order.push(server.name.clone());
                }
            }
            if let Some(found) =
                server.condition("Updating").await.filter(|condition| condition.reason == "WaitingForUpdateSlot")
            {
                assert!(found.message.contains(bound), "{}", found.message);
                waited.insert(server.name.clone());
            }
        }
        assert!(updating.len() <= 1, "{updating:?} are warned at the same time");
        if order.len() == servers.len() { Ok(()) } else { Err(format!("{order:?}; {waited:?} waited")) }
    })
    .await;
    // The first pass determines the first update slot. From then on there is a waiting list.
    let waiting = &order[1..];
    assert!(waiting.is_sorted(), "{order:?}: servers with equal windows are ordered by name");
    assert!(waiting.iter().all(|name| waited.contains(name)), "{order:?}, and only {waited:?} reported a wait");
}

/// The servers whose pod does not exist, is being deleted, or has no running process. "Not ready" does not count,
/// because the kubelet reports a server as ready some seconds after the agent's report allows its verification.
async fn unavailable_servers(env: &TestEnv, names: &[&str]) -> Vec<String> {
    let of_servers = ListParams::default().labels("app.kubernetes.io/name=papermc,nightshift.dev/server");
    let pods = env.api::<Pod>().list(&of_servers).await.unwrap().items;
    let is_available = |name: &&str| {
        let name = format!("{name}-0");
        pods.iter().any(|pod| pod.name_any() == name && pod.metadata.deletion_timestamp.is_none() && is_running(pod))
    };
    names.iter().filter(|name| !is_available(name)).map(|name| (*name).to_owned()).collect()
}

fn is_running(pod: &Pod) -> bool {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let papermc = containers.filter(|container| container.name == "papermc");
    papermc.flat_map(|container| &container.state).any(|state| state.running.is_some())
}
