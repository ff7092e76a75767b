//! Edge (writes). Tests the update to a newer Minecraft in the maintenance window.

use std::collections::BTreeSet;

use fixtures::jar::{self, PluginYml};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::eventually::{UPDATE_LIMIT, wait_until};
use crate::cluster::kubectl::run;
use crate::cluster::manifests::{LOBBY, NEVER_OPEN, NEWER_MINECRAFT, OLDER_MINECRAFT, server, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::notify::{CLUSTER_CHANNEL, all_messages, messages};
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::Server;
use crate::cluster::test_env::{RELEASE, TestEnv, in_test_env_with};
use crate::cluster::update::{first_minute_after, first_stop_warning, wait_until_updated};
use crate::cluster::upstream::base_url;

/// An unmanaged JAR: the user copied it to the volume.
const UNMANAGED: &str = "by-hand-1.0.jar";
/// A settings file that the user wrote.
const SETTINGS: &str = "/data/plugins/ViaVersion/by-hand.yml";
/// The longest notice that fits into this test. The test kills the agent after its first announcement, and it runs
/// again long before the last ten seconds.
const NOTICE: &str = "45s";

/// Declares that a JAR works with this Minecraft, by the command that `resolver trust` prints in the operator's image.
async fn trust(env: &TestEnv, jar: &str, minecraft: &str) {
    let deployment = format!("deployment/{RELEASE}");
    let trust = ["/resolver", "trust", LOBBY, jar, "--minecraft", minecraft, "-n", &env.namespace];
    let output = env.kubectl(&[&["exec", &deployment, "--"], &trust[..]].concat(), "").await;
    let command = output.lines().find(|line| line.starts_with("kubectl ")).expect("a command is printed");
    run("sh", &["-c", command], "").await;
}

/// A server with a channel of its own, whose Secret does not exist yet.
fn lobby_with_channel() -> Value {
    let mut object = server(LOBBY, NEVER_OPEN);
    object["spec"]["players"]["notice"] = json!(NOTICE);
    object["spec"]["notify"] = json!([{"name": "team", "type": "Slack", "secret": {"name": "chat", "key": "address"}}]);
    object
}

/// The Secrets of both channels.
fn secrets(env: &TestEnv) -> [Value; 2] {
    let address = format!("{}/chat/hooks/geheimnis", base_url(&env.namespace));
    ["chat", "staff"].map(|name| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"nightshift.dev/allow-use": "true"}}, "stringData": {"address": address}})
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn minecraft_update_waits_for_window_warns_players_and_saves() {
    in_test_env_with("update", OLDER_MINECRAFT, &CLUSTER_CHANNEL, async |env| {
        env.apply(&[lobby_with_channel(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        assert!(lobby.version_set().await.paper.starts_with("1.21.10-"));
        assert_missing_secrets_are_reported(env, &lobby).await;
        lobby.join_seven_counted_players().await;
        lobby.send_command("build 1000").await;
        lobby.put_file(SETTINGS, b"check: true\n").await;
        let unmanaged = jar::plugin(&PluginYml::new("ByHand", "1.0"));
        lobby.put_file(&format!("/data/plugins/{UNMANAGED}"), &unmanaged).await;

        env.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.wait_for_blocker(UNMANAGED).await;
        trust(env, UNMANAGED, "1.21.11").await;
        lobby
            .wait_until_planned(&[
                "Paper 1.21.10",
                "-> 1.21.11",
                "ViaVersion 5.5.1 -> 5.6.0",
                "ViaBackwards 5.5.1 -> 5.6.0",
            ])
            .await;
        assert_eq!(messages(env).await, [""; 0], "neither the first start nor the plan could be sent");
        env.apply(&secrets(env)).await;
        let before = lobby.pod().await.unwrap();
        let observer = ServerObserver::start(&lobby).await;
        let (cron, opens) = first_minute_after(SignedDuration::from_secs(10));
        lobby.set_window(&cron).await;
        wait_until("players are warned", UPDATE_LIMIT, async || match warnings(&observer, "45 seconds") {
            0 => Err(observer.console()),
            _ => Ok(()),
        })
        .await;
        kill_9(&before, "/agent");
        let note = wait_until_updated(env, &lobby).await;

        assert!(note.contains("2 plugins") || note.contains("3 plugins"), "{note}");
        assert!(first_stop_warning(env).await >= opens, "no warning before the window opens");
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "{}", observer.console());
        assert_countdown_survives_agent(env, &observer).await;
        assert_each_event_is_written_once(env).await;
        assert_unmanaged_files_and_world_are_retained(&lobby).await;
        assert_channels_are_notified_once(env, &lobby).await;
    })
    .await;
}

async fn assert_missing_secrets_are_reported(env: &TestEnv, lobby: &Server<'_>) {
    let why = lobby.wait_for_condition("NotifyFailed", "True", "SecretMissing").await;
    assert!(why.contains("there is no Secret `chat`"), "{why}");
    let of_the_cluster = format!("there is no Secret `staff` in namespace `{}`", env.namespace);
    assert!(why.contains("channel `cluster/team`") && why.contains(&of_the_cluster), "{why}");
    env.wait_for_event_note(LOBBY, "NotifyFailed").await;
}

/// How many times the players read that this time is left.
fn warnings(observer: &ServerObserver, left: &str) -> usize {
    let text = format!("restarts in {left} for an update");
    observer.lines().iter().filter(|line| line.run == 0 && line.text.contains(&text)).count()
}

/// The next agent continues the countdown: it announces each later step, and none twice.
async fn assert_countdown_survives_agent(env: &TestEnv, observer: &ServerObserver) {
    observer.assert_order(&[
        (0, "shown: "),
        (0, "restarts in 10 seconds"),
        (0, "restarts in 1 second for"),
        (0, "All dimensions are saved"),
        (0, "lost connection: The server stops now."),
        (0, "Stopping server"),
        (0, "Closing Server"),
        (1, "Starting minecraft server version 1.21.11"),
        (1, "Enabling ViaVersion v5.6.0"),
        (1, "Done ("),
    ]);
    for left in ["45 seconds", "10 seconds"] {
        assert_eq!(warnings(observer, left), 1, "in {left}:\n{}", observer.console());
    }
    assert!(warnings(observer, "30 seconds") <= 1, "{}", observer.console());
    let resumed = env.wait_for_event_note(LOBBY, "CountdownResumed").await;
    assert!(resumed.contains("Time left: "), "{resumed}");
    let announced = observer.lines().iter().any(|line| line.text.contains("The server is stopping now."));
    assert!(!announced, "the countdown has announced this stop:\n{}", observer.console());
}

async fn assert_each_event_is_written_once(env: &TestEnv) {
    for reason in ["PlayersWarned", "WorldSaved", "UpdateStarted", "UpdateApplied"] {
        assert_eq!(env.event_notes(LOBBY, reason).await.len(), 1, "Event {reason}");
    }
    // While the upstreams change, the operator may plan a smaller update first. It reports each plan once.
    let (plans, staged) = (env.event_notes(LOBBY, "UpdatePlanned").await, env.event_notes(LOBBY, "UpdateStaged").await);
    assert_eq!(plans.iter().collect::<BTreeSet<_>>().len(), plans.len(), "{plans:?}");
    assert!((1..=plans.len()).contains(&staged.len()), "{staged:?} of {plans:?}");
    assert!(env.wait_for_event_note(LOBBY, "PlayersWarned").await.starts_with("Warned 7 players"));
}

async fn assert_unmanaged_files_and_world_are_retained(lobby: &Server<'_>) {
    let version_set = lobby.version_set().await;
    assert!(version_set.paper.starts_with("1.21.11-"), "{version_set:?}");
    assert_eq!(
        (version_set.plugins["ViaVersion"].as_str(), version_set.plugins["ViaBackwards"].as_str()),
        ("5.6.0", "5.6.0")
    );
    assert_eq!(version_set.plugins["ByHand"], "1.0", "the unmanaged JAR stays");
    assert_eq!(lobby.shell(&format!("cat {SETTINGS}")).await, "check: true\n");
    assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
    let last = lobby.object().await.status.unwrap().last_update.unwrap();
    assert!(last.successful && last.version == version_set.paper, "{last:?}");
}

/// The server's channel gets the plan and the result, and the cluster's channel gets the result with its own text.
async fn assert_channels_are_notified_once(env: &TestEnv, lobby: &Server<'_>) {
    let sent = all_messages(env, lobby, 3).await;
    let of_lobby = |begins: &str| -> Vec<&String> {
        let begins = format!("{}/{LOBBY}: {begins}", env.namespace);
        sent.iter().filter(|text| text.starts_with(&begins)).collect()
    };
    let planned = of_lobby("update planned, ");
    assert!(planned.iter().any(|text| text.contains("ViaVersion 5.5.1 -&gt; 5.6.0")), "{sent:?}");
    assert_eq!(planned.iter().collect::<BTreeSet<_>>().len(), planned.len(), "{sent:?}");
    let updated = of_lobby("updated in ");
    assert!(updated.len() == 1 && updated[0].contains("ViaVersion 5.5.1 -&gt; 5.6.0"), "{sent:?}");
    let to_staff = sent.iter().filter(|text| **text == format!("staff hear of {LOBBY}")).count();
    assert_eq!(to_staff, 1, "{sent:?}");
    let object = serde_json::to_string(&lobby.object().await).unwrap();
    assert!(!object.contains("geheimnis"), "the address of a channel is secret: {object}");
}
