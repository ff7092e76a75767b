//! Edge (writes). The chart, rendered by Helm; and what has to hold for it as a whole.

use super::kubectl::{ask, kubectl, run};
use super::manifests::{FAR, server};
use super::upstream;
use super::wait::{SOON, until};
use super::world::{RELEASE, client};

const CHART: &str = "charts/nightshift";

/// The operator as these tests want it: quick, small, and with the upstream of its own namespace.
pub(super) async fn render(namespace: &str, values: &[&str]) -> String {
    let base = upstream::base_url(namespace);
    let own = [
        "image.repository=nightshift.dev/nightshift".to_owned(),
        "image.tag=dev".to_owned(),
        "gameImage=nightshift.dev/paper-stand-in:dev".to_owned(),
        format!("watchNamespace={namespace}"),
        format!("upstreams.fill={base}/fill/v3"),
        format!("upstreams.hangar={base}/hangar/api/v1"),
        format!("upstreams.modrinth={base}/modrinth/v2"),
        format!("upstreams.dockerHub={base}/docker-hub/v2"),
        format!("notify.origins={{{base}}}"),
        "refreshSeconds=2".to_owned(),
        "settleSeconds=3".to_owned(),
        "log.format=text".to_owned(),
        "resources.requests.cpu=10m".to_owned(),
    ];
    let all: Vec<&str> = own.iter().map(String::as_str).chain(values.iter().copied()).collect();
    template(namespace, &all).await
}

async fn template(namespace: &str, values: &[&str]) -> String {
    let mut arguments = vec!["template", RELEASE, CHART, "--namespace", namespace];
    for value in values {
        arguments.extend(["--set", value]);
    }
    run("helm", &arguments, "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_finds_nothing_wrong_with_the_chart() {
    let said = run("helm", &["lint", "--strict", CHART], "").await;
    assert!(said.contains("0 chart(s) failed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_the_chart_as_it_is_for_one_namespace_and_with_a_standby() {
    client().await;
    for values in
        [&[][..], &["watchNamespace=default"], &["watchNamespace=default", "watchNodes=true"], &["replicas=2"]]
    {
        let objects = template("default", values).await;
        let said = kubectl("default", &["apply", "--server-side", "--dry-run=server", "-f", "-"], &objects).await;
        assert!(said.contains("deployment.apps/nightshift serverside-applied"), "{values:?}: {said}");
        let has_role = |name: &str| said.contains(&format!("clusterrole.rbac.authorization.k8s.io/{name} "));
        let is_for_one = values.contains(&"watchNamespace=default");
        assert_eq!(has_role("default-nightshift"), !is_for_one, "{said}");
        let reads_nodes = !is_for_one || values.contains(&"watchNodes=true");
        assert_eq!(has_role("default-nightshift-nodes"), reads_nodes, "{said}");
        let warns =
            said.contains("validatingadmissionpolicy.admissionregistration.k8s.io/default-nightshift-warnings ");
        assert_eq!(warns, !is_for_one, "{said}");
    }
}

/// The policy of the chart that warns. Of the whole cluster, so it goes when this is dropped; meanwhile others read warnings, too.
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
        let of = "validatingadmissionpolicy,validatingadmissionpolicybinding";
        let name = format!("warns-{RELEASE}-warnings");
        drop(std::process::Command::new("kubectl").args(["delete", "--ignore-not-found", of, &name]).output());
    }
}

const RENDERED: [&str; 5] = ["template", RELEASE, CHART, "--namespace", "warns"];

#[tokio::test(flavor = "multi_thread")]
async fn whoever_applies_a_server_that_is_never_updated_or_stopped_unwarned_reads_a_warning_and_it_is_accepted() {
    client().await;
    let _warnings = Warnings::install().await;
    let apply = async |window: serde_json::Value, rcon: bool| {
        let mut object = server("never", FAR);
        object["spec"]["updateSchedule"]["maintenanceWindow"] = window;
        object["spec"]["rcon"] = serde_json::json!({"enabled": rcon});
        object["spec"]["players"]["policy"] = serde_json::json!("Ignore");
        let output =
            ask("kubectl", &["--namespace", "default", "apply", "--dry-run=server", "-f", "-"], &object.to_string())
                .await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    };
    // The API server learns of a policy some seconds after it is made.
    let said = until("there is a warning", SOON, async || {
        let said = apply(serde_json::json!({"enabled": false}), true).await;
        if said.contains("Warning: ") { Ok(said) } else { Err(said) }
    })
    .await;
    assert!(said.contains("spec.updateSchedule.maintenanceWindow.enabled is false"), "{said}");
    for window in [serde_json::json!({"cron": FAR}), serde_json::json!({"enabled": true, "cron": FAR})] {
        let said = apply(window, true).await;
        assert!(!said.contains("Warning: "), "{said}");
    }
    let said = apply(serde_json::json!({"cron": FAR}), false).await;
    assert!(said.contains("spec.rcon.enabled is false: SIGTERM stops the server"), "{said}");
    let name = format!("warns-{RELEASE}-warnings");
    let problems =
        ["get", "validatingadmissionpolicy", &name, "-o", "jsonpath={.status.typeChecking.expressionWarnings}"];
    assert_eq!(run("kubectl", &problems, "").await, "", "the API server understands the expression");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_may_read_the_secrets_of_the_clusters_channels_where_it_is_itself_and_no_other_there() {
    let channel = |at: usize| {
        ["name=team", "type=Slack", "secret.name=chat", "secret.key=address"]
            .map(|value| format!("notify.channels[{at}].{value}"))
    };
    let values = [channel(0), channel(1)].concat();
    let values: Vec<&str> = values.iter().map(String::as_str).chain(["watchNamespace=games"]).collect();
    let objects = template("home", &values).await;
    let role =
        objects.split("\n---\n").find(|object| object.contains("kind: Role\n") && object.contains("nightshift-notify"));
    let role = role.expect("there is a role of its own");
    assert!(role.contains("namespace: home") && role.contains("verbs: [get]"), "{role}");
    assert_eq!(role.matches("- \"chat\"").count(), 1, "each Secret once:\n{role}");
    let none = template("home", &["watchNamespace=games"]).await;
    assert!(!none.contains("nightshift-notify") && !none.contains("NIGHTSHIFT_NOTIFY"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_the_chart_does_not_know_is_refused_with_its_name() {
    let output = ask("helm", &["template", RELEASE, CHART, "--set", "watchNamespaces=games"], "").await;
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("watchNamespaces"), "{said}");
    let misspelt =
        ask("helm", &["template", RELEASE, CHART, "--set", r"notify.channels[0].texts.done=\{sever\}"], "").await;
    let said = String::from_utf8_lossy(&misspelt.stderr);
    assert!(!misspelt.status.success() && said.contains("texts") && said.contains("sever"), "{said}");
}
