//! Edge (writes). A request that nothing can meet: what runs goes on running, and everybody says the same.

use serde_json::json;

use super::kubectl::ask;
use super::manifests::{FAR, LOBBY, OLDER_MINECRAFT, server, viabackwards};
use super::server::Server;
use super::wait::{SOON, until};
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
        world.apply(&[object.clone()]).await;
        let message = lobby.condition_is("Resolved", "False", "NoSolution").await;
        assert!(message.contains("1.21.11") && message.to_lowercase().contains("viabackwards"), "{message}");
        assert_eq!(world.note(LOBBY, "NoSolution").await, message, "the Event says what the condition says");

        let mut objects = [object, viabackwards()];
        for object in &mut objects {
            object["metadata"]["namespace"] = json!(world.namespace);
        }
        let explained = explain(&world.namespace, &objects.map(|object| object.to_string()).join("\n---\n")).await;
        assert!(reasons(&message).count() > 0, "{message}");
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

/// The lines that say why. The first says what runs, which files alone cannot know; and so does what can be done about it.
fn reasons(message: &str) -> impl Iterator<Item = &str> {
    let why = message.lines().skip(1).map(str::trim).take_while(|line| *line != "what you can do");
    why.filter(|line| !line.is_empty() && !line.starts_with("lists as read"))
}

/// `resolver explain`, from the same image; the operator's environment leads it to the same upstream.
async fn explain(namespace: &str, manifests: &str) -> String {
    let deployment = format!("deployment/{RELEASE}");
    let arguments = ["--namespace", namespace, "exec", "-i", &deployment, "--", "/resolver", "explain", "-f", "-"];
    // The standard input of `kubectl exec` gets lost now and then; then there is nothing to explain, and it is asked again.
    let output = until("the manifests reach the command", SOON, async || {
        let output = ask("kubectl", &arguments, manifests).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("there is no PaperMCServer here") { Err(said) } else { Ok(output) }
    })
    .await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty() || output.status.code() == Some(1), "{said}");
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("exit code 1"), "there is no solution, and the exit code says so: {said}{answer}");
    answer
}
