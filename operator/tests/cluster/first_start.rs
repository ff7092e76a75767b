//! Edge (writes). From two objects to a server that runs what its lock says.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::Value;

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn applying_the_two_objects_leads_to_a_running_server_whose_own_plugin_list_equals_the_lock() {
    in_a_world("first-start", BEFORE, async |world| {
        let objects = [server(LOBBY, FAR), viabackwards()];
        world.apply(&objects).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;

        let locked = locked_plugins(&lobby).await;
        let asked_for = ["ViaBackwards", "ViaVersion"].map(|name| (name.to_owned(), "5.7.0".to_owned()));
        assert_eq!(locked, BTreeMap::from(asked_for), "ViaVersion comes with ViaBackwards, which needs it");
        let set = lobby.set().await;
        assert_eq!(set.plugins, locked);
        let status = lobby.object().await.status.unwrap();
        assert_eq!(status.version.unwrap(), set.paper);
        assert_eq!(status.lock.unwrap(), set.lock);
        let via = status.plugins.iter().find(|plugin| plugin.name == "ViaVersion").unwrap();
        assert_eq!((via.plugin.as_deref(), via.needed_by.as_deref()), (None, Some("ViaBackwards")));
        let ready = world.note(LOBBY, "ServerReady").await;
        assert!(ready.contains("2 plugins"), "{ready}");

        let before = world.versions().await;
        world.apply(&objects).await;
        assert_eq!(world.versions().await, before, "what is applied again is the same");
        world.look_again(LOBBY).await;
        let ours = |versions: Vec<String>| -> Vec<String> {
            versions.into_iter().filter(|line| !line.starts_with("PaperMCServer ")).collect() // it was annotated just now
        };
        assert_eq!(ours(world.versions().await), ours(before), "nothing is written when nothing has changed");
    })
    .await;
}

/// The plugins of the lock that the pod runs on.
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

#[tokio::test(flavor = "multi_thread")]
async fn without_consent_nothing_starts_and_the_condition_says_what_to_write() {
    in_a_world("no-eula", BEFORE, async |world| {
        let mut object = server(LOBBY, FAR);
        object["spec"].as_object_mut().unwrap().remove("eula");
        world.apply(&[object]).await;
        let lobby = Server::new(world, LOBBY);
        let message = lobby.condition_is("Resolved", "False", "EulaNotAccepted").await;
        assert!(message.contains("spec.eula: Accepted"), "{message}");
        assert!(lobby.pod().await.is_none());
    })
    .await;
}
