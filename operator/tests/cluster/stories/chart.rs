//! Edge (writes). Tests that the API server accepts the objects of the chart, and that its admission policy warns about
//! risky servers.

use crate::cluster::chart::{CHART, template};
use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::kubectl::{kubectl, run, try_run};
use crate::cluster::manifests::{NEVER_OPEN, server};
use crate::cluster::test_env::{RELEASE, client};

#[tokio::test(flavor = "multi_thread")]
async fn api_server_accepts_the_chart_in_four_configurations() {
    client().await;
    for values in
        [&[][..], &["watchNamespaces={default}"], &["watchNamespaces={default}", "watchNodes=true"], &["replicas=2"]]
    {
        let objects = template("default", values).await;
        let output = kubectl("default", &["apply", "--server-side", "--dry-run=server", "-f", "-"], &objects).await;
        assert!(output.contains("deployment.apps/nightshift serverside-applied"), "{values:?}: {output}");
        let has_role = |name: &str| output.contains(&format!("clusterrole.rbac.authorization.k8s.io/{name} "));
        let is_for_one = values.contains(&"watchNamespaces={default}");
        assert_eq!(has_role("default-nightshift"), !is_for_one, "{output}");
        let reads_nodes = !is_for_one || values.contains(&"watchNodes=true");
        assert_eq!(has_role("default-nightshift-nodes"), reads_nodes, "{output}");
        let warns =
            output.contains("validatingadmissionpolicy.admissionregistration.k8s.io/default-nightshift-warnings ");
        assert_eq!(warns, !is_for_one, "{output}");
    }
}

/// The admission policy of the chart. It applies to the whole cluster and is deleted when this is dropped. Until then
/// other tests get its warnings too.
struct Warnings;

impl Warnings {
    async fn install() -> Self {
        let warnings = Self;
        let objects = run("helm", &[&RENDERED[..], &["--show-only", "templates/admission.yaml"]].concat(), "").await;
        kubectl("default", &["apply", "--server-side", "-f", "-"], &objects).await;
        warnings
    }
}

impl Drop for Warnings {
    fn drop(&mut self) {
        let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
        let name = format!("warns-{RELEASE}-warnings");
        drop(std::process::Command::new("kubectl").args(["delete", "--ignore-not-found", kinds, &name]).output());
    }
}

const RENDERED: [&str; 5] = ["template", RELEASE, CHART, "--namespace", "warns"];

#[tokio::test(flavor = "multi_thread")]
async fn apply_warns_about_server_without_updates_or_rcon() {
    client().await;
    let _warnings = Warnings::install().await;
    let apply = async |window: serde_json::Value, rcon: bool| {
        let mut object = server("never", NEVER_OPEN);
        object["spec"]["updateSchedule"]["maintenanceWindow"] = window;
        object["spec"]["rcon"] = serde_json::json!({"enabled": rcon});
        object["spec"]["players"]["policy"] = serde_json::json!("Ignore");
        let output = try_run(
            "kubectl",
            &["--namespace", "default", "apply", "--dry-run=server", "-f", "-"],
            &object.to_string(),
        )
        .await;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        stderr
    };
    // The API server enforces a new policy only some seconds after its creation.
    let stderr = wait_until("there is a warning", SHORT_LIMIT, async || {
        let stderr = apply(serde_json::json!({"enabled": false}), true).await;
        if stderr.contains("Warning: ") { Ok(stderr) } else { Err(stderr) }
    })
    .await;
    assert!(stderr.contains("spec.updateSchedule.maintenanceWindow.enabled is false"), "{stderr}");
    for window in [serde_json::json!({"cron": NEVER_OPEN}), serde_json::json!({"enabled": true, "cron": NEVER_OPEN})] {
        let stderr = apply(window, true).await;
        assert!(!stderr.contains("Warning: "), "{stderr}");
    }
    let stderr = apply(serde_json::json!({"cron": NEVER_OPEN}), false).await;
    assert!(stderr.contains("spec.rcon.enabled is false: SIGTERM stops the server"), "{stderr}");
    let name = format!("warns-{RELEASE}-warnings");
    let problems =
        ["get", "validatingadmissionpolicy", &name, "-o", "jsonpath={.status.typeChecking.expressionWarnings}"];
    assert_eq!(run("kubectl", &problems, "").await, "", "the API server understands the expression");
}

/// The policy of the chart for pod templates. It applies to the whole cluster, so no server of another test breaks it.
struct PodTemplatePolicy;

impl PodTemplatePolicy {
    const NAME: &str = "pods-nightshift-pod-template";

    async fn install() -> Self {
        let policy = Self;
        let template = "templates/pod-template-policy.yaml";
        let render = ["template", RELEASE, CHART, "--namespace", "pods", "--show-only", template];
        let objects = run("helm", &render, "").await;
        kubectl("default", &["apply", "--server-side", "-f", "-"], &objects).await;
        policy
    }
}

impl Drop for PodTemplatePolicy {
    fn drop(&mut self) {
        let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
        drop(std::process::Command::new("kubectl").args(["delete", "--ignore-not-found", kinds, Self::NAME]).output());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_refuses_pod_template_with_host_path() {
    client().await;
    let _policy = PodTemplatePolicy::install().await;
    let apply = async |pod: serde_json::Value| {
        let mut object = server("host", NEVER_OPEN);
        object["spec"]["podTemplate"] = serde_json::json!({"spec": pod});
        let arguments = ["--namespace", "default", "apply", "--dry-run=server", "-f", "-"];
        let output = try_run("kubectl", &arguments, &object.to_string()).await;
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let host_path = serde_json::json!({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]});
    let stderr = wait_until("the policy is enforced", SHORT_LIMIT, async || {
        let stderr = apply(host_path.clone()).await;
        if stderr.contains("podTemplate") { Ok(stderr) } else { Err(stderr) }
    })
    .await;
    assert!(stderr.contains("spec.podTemplate: hostPath volumes are not allowed: use a claim"), "{stderr}");
    for (pod, words) in [
        (serde_json::json!({"hostPID": true}), "host namespaces"),
        (serde_json::json!({"serviceAccountName": "admin"}), "a service account other than default"),
        (
            serde_json::json!({"containers": [{"name": "a", "securityContext": {"privileged": true}}]}),
            "privileged containers",
        ),
    ] {
        let stderr = apply(pod).await;
        assert!(stderr.contains(words), "{stderr}");
    }
    let usual = serde_json::json!({
        "nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "papermc", "resources": {"limits": {"memory": "2Gi"}}}],
    });
    let stderr = apply(usual).await;
    assert!(!stderr.contains("denied"), "{stderr}");
}
