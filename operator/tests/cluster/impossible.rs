//! Edge (writes). A request that nothing can meet: what runs goes on running, and everybody says the same.

use serde_json::json;

use super::kubectl::ask;
use super::manifests::{FAR, LOBBY, OLDER_MINECRAFT, server, viabackwards};
use super::server::Server;
use super::world::{RELEASE, in_a_world};

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_request_leaves_the_running_server_alone_and_condition_event_and_explain_say_the_same() {
    in_a_world("impossible", OLDER_MINECRAFT, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (pod, set) = (lobby.pod().await.unwrap(), lobby.set().await);
        let template = lobby.stateful_set().await.spec.unwrap().template;

        // Paper 1.21.11 is there, and no release of ViaBackwards is listed for it yet.
        let mut object = server(LOBBY, FAR);
        object["spec"]["updateStrategy"] = json!("pin");
        object["spec"]["version"] = json!("1.21.11");
        world.apply(&[object]).await;
        let message = lobby.condition_is("Resolved", "False", "NoSolution").await;
        assert!(message.contains("1.21.11") && message.to_lowercase().contains("viabackwards"), "{message}");
        let noted = world.note(LOBBY, "NoSolution").await;
        assert_eq!(whenever_read(&noted), whenever_read(&message), "the Event says what the condition says");

        let explained = whenever_read(&explain(&world.namespace, false).await);
        let message = whenever_read(&message);
        assert!(reasons(&message).count() > 1, "{message}");
        for line in reasons(&message) {
            assert!(explained.contains(line), "`{line}` is not in:\n{explained}");
        }

        world.look_again(LOBBY).await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, pod.metadata.uid);
        assert_eq!(lobby.stateful_set().await.spec.unwrap().template, template);
        assert_eq!(lobby.set().await, set);
        assert_eq!(lobby.condition("Ready").await.unwrap().status, "True");
    })
    .await;
}

/// What runs, and the lines that say why. What can be done about it may be cut off in a condition.
fn reasons(message: &str) -> impl Iterator<Item = &str> {
    let why = message.lines().map(str::trim).take_while(|line| *line != "what you can do");
    why.filter(|line| !line.is_empty() && !line.starts_with("lists as read"))
}

/// The words without the minute of the reading. Every reader reads for itself, and says when: two truths a minute apart.
fn whenever_read(words: &str) -> String {
    let mut parts = words.split("(read today ");
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |told, part| {
        let (minute, rest) = part.split_once(" UTC)").expect("a minute ends with UTC");
        assert!(minute.len() == 5 && minute.contains(':'), "{words}");
        told + "(read)" + rest
    })
}

/// `resolver explain`, from the same image; the pod's service account leads it to the same objects, and the operator's
/// environment to the same upstream. The exit code has to say whether there is a solution.
pub(super) async fn explain(namespace: &str, solvable: bool) -> String {
    let deployment = format!("deployment/{RELEASE}");
    let server = format!("server/{LOBBY}");
    let arguments = ["-n", namespace, "exec", &deployment, "--", "/resolver", "explain", &server, "-n", namespace];
    let output = ask("kubectl", &arguments, "").await;
    let said = String::from_utf8_lossy(&output.stderr);
    let answer = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.success(), solvable, "{said}{answer}");
    assert_eq!(said.contains("exit code 1"), !solvable, "1 is for no solution alone: {said}{answer}");
    answer
}
