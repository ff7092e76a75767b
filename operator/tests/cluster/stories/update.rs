//! Edge (writes). Tests the update to a newer Minecraft in the maintenance window.

use std::collections::BTreeSet;

use fixtures::jar::{self, PluginYml};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::kubectl::run;
use crate::cluster::manifests::{FAR, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::notify::{OF_THE_CLUSTER, all_said, said};
use crate::cluster::server::Server;
use crate::cluster::update::{first_stop, minute_after, updated};
use crate::cluster::upstream::base_url;
use crate::cluster::wait::{AN_UPDATE, until};
use crate::cluster::witness::ServerObserver;
use crate::cluster::world::{RELEASE, World, in_a_world_with};

/// An unmanaged JAR: the user copied it to the volume.
const UNMANAGED: &str = "by-hand-1.0.jar";
/// A settings file that the user wrote.
const SETTINGS: &str = "/data/plugins/ViaVersion/by-hand.yml";
/// The longest notice that fits into this test. The test kills the agent after its first announcement, and it runs
/// again long before the last ten seconds.
const NOTICE: &str = "45s";

/// Declares that a JAR works with this Minecraft, by the command that `resolver trust` prints in the operator's image.
async fn trust(world: &World, jar: &str, minecraft: &str) {
    let deployment = format!("deployment/{RELEASE}");
    let trust = ["/resolver", "trust", LOBBY, jar, "--minecraft", minecraft, "-n", &world.namespace];
    let said = world.kubectl(&[&["exec", &deployment, "--"], &trust[..]].concat(), "").await;
    let command = said.lines().find(|line| line.starts_with("kubectl ")).expect("a command is printed");
    run("sh", &["-c", command], "").await;
}

/// A server with a channel of its own, whose Secret does not exist yet.
fn lobby_with_channel() -> Value {
    let mut object = server(LOBBY, FAR);
    object["spec"]["players"]["notice"] = json!(NOTICE);
    object["spec"]["notify"] = json!([{"name": "team", "type": "Slack", "secret": {"name": "chat", "key": "address"}}]);
    object
}

/// The Secrets of both channels.
fn secrets(world: &World) -> [Value; 2] {
    let address = format!("{}/chat/hooks/geheimnis", base_url(&world.namespace));
    ["chat", "staff"].map(|name| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"address": address}})
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn minecraft_update_waits_for_window_warns_players_and_saves() {
    in_a_world_with("update", OLDER_MINECRAFT, &OF_THE_CLUSTER, async |world| {
        world.apply(&[lobby_with_channel(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        assert!(lobby.set().await.paper.starts_with("1.21.10-"));
        missing_secrets_are_reported(world, &lobby).await;
        lobby.seven_join_and_are_counted().await;
        lobby.order("build 1000").await;
        lobby.put_file(SETTINGS, b"check: true\n").await;
        let own = jar::plugin(&PluginYml::new("ByHand", "1.0"));
        lobby.put_file(&format!("/data/plugins/{UNMANAGED}"), &own).await;

        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.held_by(UNMANAGED).await;
        trust(world, UNMANAGED, "1.21.11").await;
        lobby
            .planned(&["Paper 1.21.10", "-> 1.21.11", "ViaVersion 5.5.1 -> 5.6.0", "ViaBackwards 5.5.1 -> 5.6.0"])
            .await;
        assert_eq!(said(world).await, [""; 0], "neither the first start nor the plan could be sent");
        world.apply(&secrets(world)).await;
        let before = lobby.pod().await.unwrap();
        let witness = ServerObserver::of(&lobby).await;
        let (cron, opens) = minute_after(SignedDuration::from_secs(10));
        lobby.set_window(&cron).await;
        until("players are warned", AN_UPDATE, async || match warnings(&witness, "45 seconds") {
            0 => Err(witness.console()),
            _ => Ok(()),
        })
        .await;
        kill_9(&before, "/agent");
        let note = updated(world, &lobby).await;

        assert!(note.contains("2 plugins") || note.contains("3 plugins"), "{note}");
        assert!(first_stop(world).await >= opens, "nothing happens before the window opens");
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "{}", witness.console());
        countdown_survives_the_agent(world, &witness).await;
        each_event_is_written_once(world).await;
        own_files_and_world_are_kept(&lobby).await;
        channels_are_told_once(world, &lobby).await;
    })
    .await;
}

async fn missing_secrets_are_reported(world: &World, lobby: &Server<'_>) {
    let why = lobby.condition_is("NotifyFailed", "True", "SecretMissing").await;
    assert!(why.contains("there is no Secret `chat`"), "{why}");
    let of_the_cluster = format!("there is no Secret `staff` in namespace `{}`", world.namespace);
    assert!(why.contains("channel `cluster/team`") && why.contains(&of_the_cluster), "{why}");
    world.note(LOBBY, "NotifyFailed").await;
}

/// How many times the players read that this time is left.
fn warnings(witness: &ServerObserver, left: &str) -> usize {
    let text = format!("restarts in {left} for an update");
    witness.lines().iter().filter(|line| line.run == 0 && line.text.contains(&text)).count()
}

/// The next agent continues the countdown: it announces each later step, and none twice.
async fn countdown_survives_the_agent(world: &World, witness: &ServerObserver) {
    witness.assert_order(&[
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
        assert_eq!(warnings(witness, left), 1, "in {left}:\n{}", witness.console());
    }
    assert!(warnings(witness, "30 seconds") <= 1, "{}", witness.console());
    let resumed = world.note(LOBBY, "CountdownResumed").await;
    assert!(resumed.ends_with(" are left"), "{resumed}");
    let announced = witness.lines().iter().any(|line| line.text.contains("The server is stopping now."));
    assert!(!announced, "the countdown has announced this stop:\n{}", witness.console());
}

async fn each_event_is_written_once(world: &World) {
    for reason in ["PlayersWarned", "WorldSaved", "UpdateStarted", "UpdateApplied"] {
        assert_eq!(world.notes(LOBBY, reason).await.len(), 1, "Event {reason}");
    }
    // While the upstreams change, the operator may plan a smaller update first. It reports each plan once.
    let (plans, staged) = (world.notes(LOBBY, "UpdatePlanned").await, world.notes(LOBBY, "UpdateStaged").await);
    assert_eq!(plans.iter().collect::<BTreeSet<_>>().len(), plans.len(), "{plans:?}");
    assert!((1..=plans.len()).contains(&staged.len()), "{staged:?} of {plans:?}");
    assert!(world.note(LOBBY, "PlayersWarned").await.starts_with("7 players warned"));
}

async fn own_files_and_world_are_kept(lobby: &Server<'_>) {
    let set = lobby.set().await;
    assert!(set.paper.starts_with("1.21.11-"), "{set:?}");
    assert_eq!((set.plugins["ViaVersion"].as_str(), set.plugins["ViaBackwards"].as_str()), ("5.6.0", "5.6.0"));
    assert_eq!(set.plugins["ByHand"], "1.0", "the unmanaged JAR stays");
    assert_eq!(lobby.shell(&format!("cat {SETTINGS}")).await, "check: true\n");
    assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
    let last = lobby.object().await.status.unwrap().last_update.unwrap();
    assert!(last.successful && last.version == set.paper, "{last:?}");
}

/// The server's channel gets the plan and the result, and the cluster's channel gets the result with its own text.
async fn channels_are_told_once(world: &World, lobby: &Server<'_>) {
    let sent = all_said(world, lobby, 3).await;
    let of_lobby = |begins: &str| -> Vec<&String> {
        let begins = format!("{}/{LOBBY}: {begins}", world.namespace);
        sent.iter().filter(|text| text.starts_with(&begins)).collect()
    };
    let planned = of_lobby("update planned, ");
    assert!(planned.iter().any(|text| text.contains("ViaVersion 5.5.1 -&gt; 5.6.0")), "{sent:?}");
    assert_eq!(planned.iter().collect::<BTreeSet<_>>().len(), planned.len(), "{sent:?}");
    let updated = of_lobby("updated, down for ");
    assert!(updated.len() == 1 && updated[0].contains("ViaVersion 5.5.1 -&gt; 5.6.0"), "{sent:?}");
    let to_staff = sent.iter().filter(|text| **text == format!("staff hear of {LOBBY}")).count();
    assert_eq!(to_staff, 1, "{sent:?}");
    let object = serde_json::to_string(&lobby.object().await).unwrap();
    assert!(!object.contains("geheimnis"), "the address of a channel is secret: {object}");
}
