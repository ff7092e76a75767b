//! Edge (writes). Tests the first start of a server, its idle state afterwards, and a pin that no version set can
//! satisfy.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use resolver::explanation::Explanation;
use serde_json::{Value, json};

use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::manifests::{
    AFTER_RELEASE, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use crate::cluster::server::Server;
use crate::cluster::test_env::{TestEnv, in_test_env_with};
use crate::cluster::unsolvable::explain;

/// A compatibility fact of the cluster. It is about a release of the day [`AFTER_RELEASE`] and allows the first start.
const FACT: [&str; 6] = [
    "facts[0].plugin=ViaBackwards",
    "facts[0].releases=5.7.1",
    "facts[0].requires.plugin=ViaVersion",
    "facts[0].requires.version=<5.7.1",
    "facts[0].source=the staff channel",
    "facts[0].date=2026-01-18",
];
/// This number of equal readings in a row, about three seconds, shows that there are no writes.
const EQUAL_READINGS: usize = 10;
/// The same fact in an explanation.
const FACT_TEXT: &str =
    "ViaBackwards 5.7.1 needs ViaVersion <5.7.1 (a fact of your cluster, recorded 2026-01-18 from the staff channel)";

#[tokio::test(flavor = "multi_thread")]
async fn first_start_is_verified_and_survives_impossible_pin() {
    in_test_env_with("first-start", BEFORE_RELEASE, &FACT, async |env| {
        let objects = [server(LOBBY, NEVER_OPEN), viabackwards()];
        env.apply(&objects).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        assert_server_runs_its_lock(env, &lobby).await;
        assert_idle_server_causes_no_write(env, &objects).await;
        assert_rcon_listens_on_loopback_only(&lobby).await;
        assert_fact_limits_plan_until_overridden(env, &lobby).await;
        assert_impossible_pin_changes_nothing(env, &lobby).await;
    })
    .await;
}

async fn assert_server_runs_its_lock(env: &TestEnv, lobby: &Server<'_>) {
    let locked = locked_plugins(lobby).await;
    let expected = ["ViaBackwards", "ViaVersion"].map(|name| (name.to_owned(), "5.7.0".to_owned()));
    assert_eq!(locked, BTreeMap::from(expected), "ViaBackwards needs ViaVersion");
    let version_set = lobby.version_set().await;
    assert_eq!(version_set.plugins, locked);
    let status = lobby.object().await.status.unwrap();
    assert_eq!(status.version.unwrap(), version_set.paper);
    assert_eq!(status.lock.unwrap(), version_set.lock);
    let via = status.plugins.iter().find(|plugin| plugin.name == "ViaVersion").unwrap();
    assert_eq!((via.plugin.as_deref(), via.needed_by.as_deref()), (None, Some("ViaBackwards")));
    let ready = env.wait_for_event_note(LOBBY, "ServerReady").await;
    assert!(ready.contains("2 plugins"), "{ready}");
}

/// The plugins of the lock that the pod mounts.
async fn locked_plugins(server: &Server<'_>) -> BTreeMap<String, String> {
    let pod = server.pod().await.unwrap();
    let volumes = pod.spec.unwrap().volumes.unwrap();
    let map = volumes.into_iter().find(|volume| volume.name == "lock").unwrap().config_map.unwrap();
    let map: ConfigMap = server.env.api().get(&map.name).await.unwrap();
    let text = map.data.as_ref().unwrap().get("lock.json").unwrap();
    let lock: Value = serde_json::from_str(text).unwrap();
    let plugins = lock["plugins"].as_array().unwrap_or_else(|| panic!("{} has no plugins: {lock}", map.name_any()));
    let pair =
        |plugin: &Value| (plugin["name"].as_str().unwrap().to_owned(), plugin["version"].as_str().unwrap().to_owned());
    plugins.iter().map(pair).collect()
}

async fn assert_idle_server_causes_no_write(env: &TestEnv, objects: &[Value]) {
    let before = wait_for_idle_versions(env).await;
    env.apply(objects).await;
    assert_eq!(env.versions().await, before, "applying the same manifests writes nothing");
    env.trigger_passes(LOBBY).await;
    let of_operator = |versions: Vec<String>| -> Vec<String> {
        versions.into_iter().filter(|line| !line.starts_with("PaperMCServer ")).collect() // `trigger_passes` annotates it
    };
    assert_eq!(of_operator(env.versions().await), of_operator(before), "a pass without a change writes nothing");
}

/// The versions of all objects after the last write. The operator writes the status of the Plugin after that of the
/// server.
async fn wait_for_idle_versions(env: &TestEnv) -> Vec<String> {
    let mut last = env.versions().await;
    let mut same = 0;
    wait_until("no object is written any more", SHORT_LIMIT, async || {
        let now = env.versions().await;
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same >= EQUAL_READINGS { Ok(last.clone()) } else { Err(format!("{same} equal readings in a row")) }
    })
    .await
}

async fn assert_rcon_listens_on_loopback_only(lobby: &Server<'_>) {
    let rcon = |host: &str| format!("nc -w 2 {host} 25575 </dev/null >/dev/null 2>&1 && echo open || echo refused");
    assert_eq!(lobby.shell(&rcon("127.0.0.1")).await.trim(), "open");
    let address = lobby.pod().await.unwrap().status.unwrap().pod_ip.unwrap();
    assert_eq!(lobby.shell(&rcon(&address)).await.trim(), "refused");
}

/// Paper 1.21.12 does not exist.
async fn assert_impossible_pin_changes_nothing(env: &TestEnv, lobby: &Server<'_>) {
    let (pod, version_set) = (lobby.pod().await.unwrap(), lobby.version_set().await);
    let template = lobby.stateful_set().await.spec.unwrap().template;
    let mut pinned = server(LOBBY, NEVER_OPEN);
    pinned["spec"]["updateStrategy"] = json!("pin");
    pinned["spec"]["version"] = json!("1.21.12");
    env.apply(&[pinned]).await;
    let message = lobby.wait_for_condition("Resolved", "False", "NoSolution").await;
    assert!(message.contains("1.21.12"), "{message}");
    let command = format!("`resolver explain server/{LOBBY} -n {}`", env.namespace);
    assert!(message.contains(&command), "{message}");
    assert_eq!(env.wait_for_event_note(LOBBY, "NoSolution").await, message);
    let explained: Explanation =
        serde_json::from_str(&explain(&env.namespace, &["--format", "json"], false).await).unwrap();
    assert_eq!(explained.summary(), message, "condition and command say the same");

    env.trigger_passes(LOBBY).await;
    assert_eq!(lobby.pod().await.unwrap().metadata.uid, pod.metadata.uid);
    assert_eq!(lobby.stateful_set().await.spec.unwrap().template, template);
    assert_eq!(lobby.version_set().await, version_set);
    assert_eq!(lobby.condition("Ready").await.unwrap().status, "True");
}

/// Both plugins have newer releases, which the fact does not allow together.
async fn assert_fact_limits_plan_until_overridden(env: &TestEnv, lobby: &Server<'_>) {
    env.upstream.set_now(AFTER_RELEASE).await;
    lobby.wait_until_planned(&RELEASE_CHANGES[..1]).await;
    let explained = explain(&env.namespace, &[], true).await;
    assert!(explained.contains(FACT_TEXT), "{explained}");

    let mut overriding = viabackwards();
    overriding["spec"]["requires"] = json!([{"plugin": "ViaVersion", "version": ">=5.7.1"}]);
    env.apply(&[overriding]).await;
    lobby.wait_until_planned(&RELEASE_CHANGES).await;
    let explained = explain(&env.namespace, &[], true).await;
    assert!(explained.contains("needs ViaVersion 5.7.1 or newer (stated by your Plugin viabackwards)"), "{explained}");
    assert!(!explained.contains("the staff channel"), "{explained}");
}
