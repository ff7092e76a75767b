//! Edge (writes). Tests that channels of a server and of the cluster get each notification once, also if the operator
//! restarts.
//!
//! A missing Secret is reported before.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::node::kill_9;
use super::server::{Server, is_ready};
use super::update::updated;
use super::upstream::base_url;
use super::wait::{A_START, until};
use super::world::{World, in_a_world_with};

/// The operator looks for a missing Secret every minute.
const A_MESSAGE: Duration = Duration::from_mins(3);

/// A channel that is notified about all servers. Its Secret is in the server's namespace here, because the operator is
/// in the same one.
pub(super) const OF_THE_CLUSTER: [&str; 6] = [
    "notify.channels[0].name=team",
    "notify.channels[0].type=Slack",
    "notify.channels[0].secret.name=staff",
    "notify.channels[0].secret.key=address",
    "notify.channels[0].occasions={Done}",
    r"notify.channels[0].texts.done=staff hear of \{server\}",
];

/// The messages to the channels so far.
pub(super) async fn said(world: &World) -> Vec<String> {
    let answer = reqwest::get(format!("{}/chat", world.upstream.url)).await.unwrap();
    let said: Vec<Value> = answer.error_for_status().unwrap().json().await.unwrap();
    said.into_iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// Waits until no notification is pending, and returns all messages.
pub(super) async fn all_said(world: &World, lobby: &Server<'_>, count: usize) -> Vec<String> {
    until(&format!("{count} messages are told and noted"), A_MESSAGE, async || {
        let notices = lobby.object().await.status.unwrap().notices;
        let waits = notices.iter().any(|notice| !notice.pending.is_empty());
        let said = said(world).await;
        if !waits && said.len() >= count { Ok(said) } else { Err(format!("{said:?} {notices:?}")) }
    })
    .await
}

fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).sum()
}

/// Kills the operator, and waits until the next one leads and has had a pass over the server.
pub(super) async fn another_operator(world: &World, lobby: &Server<'_>) {
    let before = world.operator().await;
    kill_9(&before, "/operator");
    until("another operator is ready", A_START, async || {
        let pod = world.operator().await;
        if restarts(&pod) > restarts(&before) && is_ready(&pod) { Ok(()) } else { Err(format!("{:?}", pod.status)) }
    })
    .await;
    world.look_again(&lobby.name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_is_sent_once_despite_killed_operator() {
    in_a_world_with("notify", BEFORE, &OF_THE_CLUSTER, async |world| {
        let mut object = server(LOBBY, FAR);
        object["spec"]["notify"] =
            json!([{"name": "team", "type": "Slack", "secret": {"name": "chat", "key": "address"}}]);
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let why = lobby.condition_is("NotifyFailed", "True", "SecretMissing").await;
        assert!(why.contains("there is no Secret `chat`"), "{why}");
        let of_the_cluster = format!("there is no Secret `staff` in namespace `{}`", world.namespace);
        assert!(why.contains("channel `cluster/team`") && why.contains(&of_the_cluster), "{why}");
        world.note(LOBBY, "NotifyFailed").await;

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        assert_eq!(
            said(world).await,
            Vec::<String>::new(),
            "a first start is no update, and a plan cannot be told yet"
        );
        let address = format!("{}/chat/hooks/geheimnis", base_url(&world.namespace));
        let secret = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"address": address}})
        };
        world.apply(&[secret("chat"), secret("staff")]).await;
        let planned = all_said(world, &lobby, 1).await;
        let begins = format!("{}/{LOBBY}: update planned, ", world.namespace);
        assert!(planned[0].starts_with(&begins) && planned[0].contains("29 Feb"), "{planned:?}");
        assert!(planned[0].contains("ViaVersion 5.7.0 -&gt; 5.7.1"), "{planned:?}");

        another_operator(world, &lobby).await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        let done = all_said(world, &lobby, 3).await;
        let own = done.iter().rfind(|text| text.starts_with(&format!("{}/{LOBBY}: ", world.namespace))).unwrap();
        assert!(own.contains(": updated, down for ") && own.contains("ViaVersion 5.7.0 -&gt; 5.7.1"), "{done:?}");
        let to_staff = done[1..].iter().filter(|text| **text == format!("staff hear of {LOBBY}")).count();
        assert_eq!(to_staff, 1, "{done:?}");

        another_operator(world, &lobby).await;
        assert_eq!(said(world).await, done, "nothing is told again");
        let status = serde_json::to_string(&lobby.object().await).unwrap();
        assert!(!status.contains("geheimnis"), "{status}");
    })
    .await;
}
