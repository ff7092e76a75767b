//! Edge (writes). Tests that channels of a server and of the cluster get each notification once, also if the operator
//! restarts.
//!
//! A missing Secret is reported before.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::eventually::{START_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::node::kill_9;
use super::server::{Server, is_ready};
use super::test_env::{TestEnv, in_test_env_with};
use super::update::wait_until_updated;
use super::upstream::base_url;

/// The operator looks for a missing Secret every minute.
const MESSAGE_LIMIT: Duration = Duration::from_mins(3);

/// A channel that is notified about all servers. Its Secret is in the server's namespace here, because the operator is
/// in the same one.
pub(super) const CLUSTER_CHANNEL: [&str; 6] = [
    "notify.channels[0].name=team",
    "notify.channels[0].type=Slack",
    "notify.channels[0].secret.name=staff",
    "notify.channels[0].secret.key=address",
    "notify.channels[0].events={Done}",
    r"notify.channels[0].texts.done=staff hear of \{server\}",
];

/// The messages to the channels so far.
pub(super) async fn messages(env: &TestEnv) -> Vec<String> {
    let answer = reqwest::get(format!("{}/chat", env.upstream.url)).await.unwrap();
    let messages: Vec<Value> = answer.error_for_status().unwrap().json().await.unwrap();
    messages.into_iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// Waits until no notification is pending, and returns all messages.
pub(super) async fn all_messages(env: &TestEnv, lobby: &Server<'_>, count: usize) -> Vec<String> {
    wait_until(&format!("{count} messages are sent and recorded"), MESSAGE_LIMIT, async || {
        let notifications = lobby.object().await.status.unwrap().notices;
        let is_pending = notifications.iter().any(|notification| !notification.pending.is_empty());
        let messages = messages(env).await;
        if !is_pending && messages.len() >= count {
            Ok(messages)
        } else {
            Err(format!("{messages:?} {notifications:?}"))
        }
    })
    .await
}

fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).sum()
}

/// Kills the operator, and waits until the next one leads and has had a pass over the server.
pub(super) async fn replace_operator(env: &TestEnv, lobby: &Server<'_>) {
    let before = env.operator().await;
    kill_9(&before, "/operator");
    wait_until("another operator is ready", START_LIMIT, async || {
        let pod = env.operator().await;
        if restarts(&pod) > restarts(&before) && is_ready(&pod) { Ok(()) } else { Err(format!("{:?}", pod.status)) }
    })
    .await;
    env.trigger_passes(&lobby.name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_is_sent_once_despite_killed_operator() {
    in_test_env_with("notify", BEFORE_RELEASE, &CLUSTER_CHANNEL, async |env| {
        let mut object = server(LOBBY, NEVER_OPEN);
        object["spec"]["notify"] =
            json!([{"name": "team", "type": "Slack", "secret": {"name": "chat", "key": "address"}}]);
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let why = lobby.wait_for_condition("NotifyFailed", "True", "SecretMissing").await;
        assert!(why.contains("there is no Secret `chat`"), "{why}");
        let of_the_cluster = format!("there is no Secret `staff` in namespace `{}`", env.namespace);
        assert!(why.contains("channel `cluster/team`") && why.contains(&of_the_cluster), "{why}");
        env.wait_for_event_note(LOBBY, "NotifyFailed").await;

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        assert_eq!(
            messages(env).await,
            Vec::<String>::new(),
            "a first start is not reported, and the plan needs the Secret"
        );
        let address = format!("{}/chat/hooks/geheimnis", base_url(&env.namespace));
        let secret = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"nightshift.dev/allow-use": "true"}}, "stringData": {"address": address}})
        };
        env.apply(&[secret("chat"), secret("staff")]).await;
        let planned = all_messages(env, &lobby, 1).await;
        let begins = format!("{}/{LOBBY}: update planned, ", env.namespace);
        assert!(planned[0].starts_with(&begins) && planned[0].contains("29 Feb"), "{planned:?}");
        assert!(planned[0].contains("ViaVersion 5.7.0 -&gt; 5.7.1"), "{planned:?}");

        replace_operator(env, &lobby).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        let done = all_messages(env, &lobby, 3).await;
        let server_message = done.iter().rfind(|text| text.starts_with(&format!("{}/{LOBBY}: ", env.namespace))).unwrap();
        assert!(server_message.contains(": updated in ") && server_message.contains("ViaVersion 5.7.0 -&gt; 5.7.1"), "{done:?}");
        let to_staff = done[1..].iter().filter(|text| **text == format!("staff hear of {LOBBY}")).count();
        assert_eq!(to_staff, 1, "{done:?}");

        replace_operator(env, &lobby).await;
        assert_eq!(messages(env).await, done, "no message is sent again");
        let status = serde_json::to_string(&lobby.object().await).unwrap();
        assert!(!status.contains("geheimnis"), "{status}");
    })
    .await;
}
