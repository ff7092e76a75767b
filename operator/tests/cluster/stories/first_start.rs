//! Edge (writes). Tests the first start of a server, its idle state afterwards, and a pin that no version set can
//! satisfy.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use resolver::explain::Explanation;
use serde_json::{Value, json};

use crate::cluster::impossible::explain;
use crate::cluster::manifests::{AFTER, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::wait::{SOON, until};
use crate::cluster::world::{World, in_a_world_with};

/// A compatibility fact of the cluster. It is about a release of the day [`AFTER`] and allows the first start.
const FACT: [&str; 6] = [
    "facts[0].plugin=ViaBackwards",
    "facts[0].releases=5.7.1",
    "facts[0].requires.plugin=ViaVersion",
    "facts[0].requires.version=<5.7.1",
    "facts[0].source=the staff channel",
    "facts[0].date=2026-01-18",
];
/// This number of equal readings in a row, about three seconds, shows that there are no writes.
const LOOKS_AT_REST: usize = 10;
/// The same fact in an explanation.
const FACT_TOLD: &str =
    "ViaBackwards 5.7.1 needs ViaVersion <5.7.1 (a fact of your cluster, recorded 2026-01-18 from the staff channel)";

#[tokio::test(flavor = "multi_thread")]
async fn first_start_is_verified_and_survives_impossible_pin() {
    in_a_world_with("first-start", BEFORE, &FACT, async |world| {
        let objects = [server(LOBBY, FAR), viabackwards()];
        world.apply(&objects).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        server_runs_what_its_lock_says(world, &lobby).await;
        server_at_rest_causes_no_write(world, &objects).await;
        rcon_listens_on_loopback_only(&lobby).await;
        fact_limits_the_plan_until_a_plugin_overrides_it(world, &lobby).await;
        impossible_pin_changes_nothing(world, &lobby).await;
    })
    .await;
}

async fn server_runs_what_its_lock_says(world: &World, lobby: &Server<'_>) {
    let locked = locked_plugins(lobby).await;
    let asked_for = ["ViaBackwards", "ViaVersion"].map(|name| (name.to_owned(), "5.7.0".to_owned()));
    assert_eq!(locked, BTreeMap::from(asked_for), "ViaBackwards needs ViaVersion");
    let set = lobby.set().await;
    assert_eq!(set.plugins, locked);
    let status = lobby.object().await.status.unwrap();
    assert_eq!(status.version.unwrap(), set.paper);
    assert_eq!(status.lock.unwrap(), set.lock);
    let via = status.plugins.iter().find(|plugin| plugin.name == "ViaVersion").unwrap();
    assert_eq!((via.plugin.as_deref(), via.needed_by.as_deref()), (None, Some("ViaBackwards")));
    let ready = world.note(LOBBY, "ServerReady").await;
    assert!(ready.contains("2 plugins"), "{ready}");
}

/// The plugins of the lock that the pod mounts.
async fn locked_plugins(server: &Server<'_>) -> BTreeMap<String, String> {
    let pod = server.pod().await.unwrap();
    let volumes = pod.spec.unwrap().volumes.unwrap();
    let map = volumes.into_iter().find(|volume| volume.name == "lock").unwrap().config_map.unwrap();
    let map: ConfigMap = server.world.api().get(&map.name).await.unwrap();
    let text = map.data.as_ref().unwrap().get("lock.json").unwrap();
    let lock: Value = serde_json::from_str(text).unwrap();
    let plugins = lock["plugins"].as_array().unwrap_or_else(|| panic!("{} has no plugins: {lock}", map.name_any()));
    let pair =
        |plugin: &Value| (plugin["name"].as_str().unwrap().to_owned(), plugin["version"].as_str().unwrap().to_owned());
    plugins.iter().map(pair).collect()
}

async fn server_at_rest_causes_no_write(world: &World, objects: &[Value]) {
    let before = versions_at_rest(world).await;
    world.apply(objects).await;
    assert_eq!(world.versions().await, before, "the same objects are applied again");
    world.look_again(LOBBY).await;
    let of_operator = |versions: Vec<String>| -> Vec<String> {
        versions.into_iter().filter(|line| !line.starts_with("PaperMCServer ")).collect() // `look_again` annotates it
    };
    assert_eq!(of_operator(world.versions().await), of_operator(before), "nothing has changed");
}

/// The versions of all objects after the last write. The operator writes the status of the Plugin after that of the
/// server.
async fn versions_at_rest(world: &World) -> Vec<String> {
    let mut last = world.versions().await;
    let mut same = 0;
    until("nothing is written any more", SOON, async || {
        let now = world.versions().await;
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same >= LOOKS_AT_REST { Ok(last.clone()) } else { Err(format!("{same} looks in a row show the same")) }
    })
    .await
}

async fn rcon_listens_on_loopback_only(lobby: &Server<'_>) {
    let rcon = |host: &str| format!("nc -w 2 {host} 25575 </dev/null >/dev/null 2>&1 && echo open || echo refused");
    assert_eq!(lobby.shell(&rcon("127.0.0.1")).await.trim(), "open");
    let address = lobby.pod().await.unwrap().status.unwrap().pod_ip.unwrap();
    assert_eq!(lobby.shell(&rcon(&address)).await.trim(), "refused");
}

/// Paper 1.21.12 does not exist.
async fn impossible_pin_changes_nothing(world: &World, lobby: &Server<'_>) {
    let (pod, set) = (lobby.pod().await.unwrap(), lobby.set().await);
    let template = lobby.stateful_set().await.spec.unwrap().template;
    let mut pinned = server(LOBBY, FAR);
    pinned["spec"]["updateStrategy"] = json!("pin");
    pinned["spec"]["version"] = json!("1.21.12");
    world.apply(&[pinned]).await;
    let message = lobby.condition_is("Resolved", "False", "NoSolution").await;
    assert!(message.contains("1.21.12"), "{message}");
    let command = format!("`resolver explain server/{LOBBY} -n {}`", world.namespace);
    assert!(message.contains(&command), "{message}");
    assert_eq!(world.note(LOBBY, "NoSolution").await, message);
    let explained: Explanation =
        serde_json::from_str(&explain(&world.namespace, &["--format", "json"], false).await).unwrap();
    assert_eq!(explained.summary(), message, "condition and command say the same");

    world.look_again(LOBBY).await;
    assert_eq!(lobby.pod().await.unwrap().metadata.uid, pod.metadata.uid);
    assert_eq!(lobby.stateful_set().await.spec.unwrap().template, template);
    assert_eq!(lobby.set().await, set);
    assert_eq!(lobby.condition("Ready").await.unwrap().status, "True");
}

/// Both plugins have newer releases, which the fact does not allow together.
async fn fact_limits_the_plan_until_a_plugin_overrides_it(world: &World, lobby: &Server<'_>) {
    world.upstream.set_now(AFTER).await;
    lobby.planned(&TO_AFTER[..1]).await;
    let explained = explain(&world.namespace, &[], true).await;
    assert!(explained.contains(FACT_TOLD), "{explained}");

    let mut overriding = viabackwards();
    overriding["spec"]["requires"] = json!([{"plugin": "ViaVersion", "version": ">=5.7.1"}]);
    world.apply(&[overriding]).await;
    lobby.planned(&TO_AFTER).await;
    let explained = explain(&world.namespace, &[], true).await;
    assert!(explained.contains("needs ViaVersion 5.7.1 or newer (says your Plugin viabackwards)"), "{explained}");
    assert!(!explained.contains("the staff channel"), "{explained}");
}
