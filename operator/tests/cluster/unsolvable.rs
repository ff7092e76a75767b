//! Edge (writes). Tests an impossible request: the running server stays, and condition, Event and `explain` agree.

use resolver::explanation::Explanation;
use serde_json::json;

use super::kubectl::try_run;
use super::manifests::{LOBBY, NEVER_OPEN, OLDER_MINECRAFT, server, viabackwards};
use super::server::Server;
use super::test_env::{RELEASE, in_test_env};

#[tokio::test(flavor = "multi_thread")]
async fn impossible_request_leaves_server_running_and_is_explained() {
    in_test_env("impossible", OLDER_MINECRAFT, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (pod, version_set) = (lobby.pod().await.unwrap(), lobby.version_set().await);
        let template = lobby.stateful_set().await.spec.unwrap().template;

        // Paper 1.21.11 is released, and no release of ViaBackwards is listed for it yet.
        let mut object = server(LOBBY, NEVER_OPEN);
        object["spec"]["updateStrategy"] = json!("pin");
        object["spec"]["version"] = json!("1.21.11");
        env.apply(&[object]).await;
        let message = lobby.wait_for_condition("Resolved", "False", "NoSolution").await;
        assert!(message.contains("1.21.11") && message.to_lowercase().contains("viabackwards"), "{message}");
        let noted = env.wait_for_event_note(LOBBY, "NoSolution").await;
        assert_eq!(noted, message, "Event and condition say the same");

        let explained = explain(&env.namespace, &["--format", "json"], false).await;
        let explained: Explanation = serde_json::from_str(&explained).unwrap();
        assert_eq!(explained.summary(), message, "the command gives the same summary");
        let command = format!("`resolver explain server/{LOBBY} -n {}`", env.namespace);
        assert!(message.contains(&command), "{message}");

        env.trigger_passes(LOBBY).await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, pod.metadata.uid);
        assert_eq!(lobby.stateful_set().await.spec.unwrap().template, template);
        assert_eq!(lobby.version_set().await, version_set);
        assert_eq!(lobby.condition("Ready").await.unwrap().status, "True");
    })
    .await;
}

/// Runs `resolver explain` in the operator's pod, which has the permissions and the upstreams of the operator, and
/// checks its exit code.
pub(super) async fn explain(namespace: &str, options: &[&str], solvable: bool) -> String {
    let deployment = format!("deployment/{RELEASE}");
    let server = format!("server/{LOBBY}");
    let arguments = ["-n", namespace, "exec", &deployment, "--", "/resolver", "explain", &server, "-n", namespace];
    let output = try_run("kubectl", &[&arguments, options].concat(), "").await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let explanation = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.success(), solvable, "{stderr}{explanation}");
    assert_eq!(stderr.contains("exit code 1"), !solvable, "exit code 1 means no solution: {stderr}{explanation}");
    explanation
}
