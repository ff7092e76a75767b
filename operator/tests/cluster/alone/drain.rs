//! Edge (writes). A node that is emptied: `kubectl drain` waits until players know and the world is saved, or until a person acts.

use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use crate::cluster::kubectl::{ask, run};
use crate::cluster::manifests::{BEFORE, FAR, server, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::server::Server;
use crate::cluster::wait::{SOON, until};
use crate::cluster::witness::Witness;
use crate::cluster::world::{RELEASE, World, alone_in_a_world, uid_of};

/// No other test has a server of this name: `kubectl drain` looks for its pod in all namespaces.
const HARBOUR: &str = "harbour";
const REFUSED: &str = "would violate the pod's disruption budget";

/// With the node for itself, and an operator that may read nodes.
async fn beside_a_node(name: &str, test: impl AsyncFnOnce(&World)) {
    alone_in_a_world(name, BEFORE, &["watchNodes=true"], async |world| {
        let _rights = Rights { name: format!("{}-{RELEASE}-nodes", world.namespace) };
        test(world).await;
    })
    .await;
}

/// What the chart makes outside of its namespace. Goes when this is dropped.
struct Rights {
    name: String,
}

impl Drop for Rights {
    fn drop(&mut self) {
        drop(Command::new("kubectl").args(["delete", "clusterrole,clusterrolebinding", &self.name]).output());
    }
}

/// A node on which nothing new is placed. Uncordoned when this is dropped, also by a test that fails.
struct Cordoned {
    node: String,
}

impl Cordoned {
    async fn of(pod: &Pod) -> Self {
        let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap();
        run("kubectl", &["cordon", &node], "").await;
        Self { node }
    }

    /// As an admin empties it, but of this one server.
    async fn drain(&self, timeout: &str) -> (bool, String) {
        let (timeout, selector) =
            (format!("--timeout={timeout}"), format!("--pod-selector=nightshift.dev/server={HARBOUR}"));
        let arguments = ["drain", &self.node, &selector, "--ignore-daemonsets", "--delete-emptydir-data", &timeout];
        let said = ask("kubectl", &arguments, "").await;
        (said.status.success(), String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
    }
}

impl Drop for Cordoned {
    fn drop(&mut self) {
        let said = Command::new("kubectl").args(["uncordon", &self.node]).output();
        // A test that fails drops this while it panics, and a second panic would hide the first.
        if !said.as_ref().is_ok_and(|said| said.status.success()) {
            eprintln!("{} stays cordoned: {said:?}", self.node);
        }
    }
}

fn harbour(spec: &Value) -> Value {
    let mut object = server(HARBOUR, FAR);
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

/// Waits until so many pods of the server may be evicted; None: until there is no budget.
async fn budget_is(world: &World, wanted: Option<i32>) {
    until(&format!("the budget is {wanted:?}"), SOON, async || {
        let budget = world.api::<PodDisruptionBudget>().get_opt(HARBOUR).await.unwrap();
        let found = budget.and_then(|budget| budget.spec?.max_unavailable);
        if found == wanted.map(IntOrString::Int) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Waits until the condition is not there any more.
async fn no_longer_draining(server: &Server<'_>) {
    until("the node is not left any more", SOON, async || match server.condition("Draining").await {
        None => Ok(()),
        Some(condition) => Err(condition.message),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_waits_until_players_were_told_and_the_world_is_saved_and_then_the_server_moves_with_the_same_world() {
    beside_a_node("drain", async |world| {
        let players = json!({"notice": "40s", "emptyNotice": "3s"});
        world.apply(&[harbour(&json!({"eviction": "OnUpgrade", "players": players})), viabackwards()]).await;
        let server = Server::new(world, HARBOUR);
        server.settled().await;
        server.seven_join_and_are_counted().await;
        server.order("build 1000").await;
        budget_is(world, Some(0)).await;
        let (set, before) = (server.set().await, server.pod().await.unwrap());
        let witness = Witness::of(&server).await;

        let cordoned = Cordoned::of(&before).await;
        let in_between = async {
            let message = server.condition_is("Draining", "True", "Countdown").await;
            assert!(
                message.starts_with(&format!("node `{}` is cordoned: players are warned; evictions", cordoned.node)),
                "{message}"
            );
            assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&before), "nobody is evicted yet");
            budget_is(world, Some(0)).await;
            // Another process goes on with the countdown that this one began.
            kill_9(&world.operator().await, "/operator");
        };
        let ((drained, said), ()) = futures::join!(cordoned.drain("5m"), in_between);
        assert!(drained && said.contains(REFUSED), "{said}");
        let told = witness.assert_order(&[
            (0, "shown: "),
            (0, "emptied: in 30 seconds, or later"),
            (0, "emptied: in 1 second, or later"),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (0, "Closing Server"),
        ]);
        assert!(told[0].contains("The machine of this server is being emptied: in 40 seconds, or later"), "{told:?}");
        let first_lines =
            witness.lines().iter().filter(|line| line.text.contains("emptied: in 40 seconds, or later")).count();
        assert_eq!(first_lines, 1, "told once:\n{}", witness.console());

        drop(cordoned);
        server.back_after(&before).await;
        assert_eq!(server.set().await, set);
        assert!(server.saved_blocks().await >= 1000, "it is the same world");
        budget_is(world, Some(0)).await;
        no_longer_draining(&server).await;
        assert_eq!(witness.pods(), 2);
        let warned = world.note(HARBOUR, "PlayersWarned").await;
        assert_eq!(warned, "7 players warned: the server may be evicted in 40 seconds");
        for reason in ["DrainBegun", "PlayersWarned", "WorldSaved", "EvictionAllowed"] {
            assert_eq!(world.notes(HARBOUR, reason).await.len(), 1, "Event {reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn never_is_never_until_a_person_does_what_the_condition_says_and_a_node_that_is_uncordoned_keeps_its_server() {
    beside_a_node("never", async |world| {
        world.apply(&[harbour(&json!({"eviction": "Never"})), viabackwards()]).await;
        let server = Server::new(world, HARBOUR);
        server.settled().await;
        budget_is(world, Some(0)).await;
        let before = server.pod().await.unwrap();

        let cordoned = Cordoned::of(&before).await;
        let message = server.condition_is("Draining", "True", "EvictionNever").await;
        let way_out = format!("`kubectl -n {} delete pod harbour-0`", world.namespace);
        assert!(message.ends_with(&way_out), "{message}");
        assert!(world.note(HARBOUR, "EvictionRefused").await.ends_with(&way_out));
        let (drained, said) = cordoned.drain("8s").await;
        assert!(!drained && said.contains(REFUSED), "{said}");
        assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&before));
        // The word for word way out is not held up by the budget.
        world.kubectl(&["delete", "pod", "harbour-0", "--wait=false"], "").await;
        drop(cordoned);
        let after = server.back_after(&before).await;
        no_longer_draining(&server).await;

        // Somebody thinks better of it.
        server.change(json!({"eviction": "OnUpgrade", "players": {"notice": "10m"}})).await;
        server.settled().await;
        server.seven_join_and_are_counted().await;
        let witness = Witness::of(&server).await;
        let cordoned = Cordoned::of(&after).await;
        server.condition_is("Draining", "True", "Countdown").await;
        drop(cordoned);
        world.note(HARBOUR, "DrainEnded").await;
        until("players were told that it stays", SOON, async || {
            let told = witness.lines().iter().any(|line| line.text.contains("The move is called off"));
            if told { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        no_longer_draining(&server).await;
        budget_is(world, Some(0)).await;
        assert_eq!(uid_of(&server.pod().await.unwrap()), uid_of(&after));

        server.change(json!({"eviction": "Always"})).await;
        budget_is(world, None).await;
    })
    .await;
}
