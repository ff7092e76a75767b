//! Edge (writes). Renders the chart with Helm, and runs the checks that need Helm.

use super::kubectl::{kubectl, run, try_run};
use super::test_env::{RELEASE, client};
use super::upstream;

pub(super) const CHART: &str = "charts/nightshift";

/// The operator's manifests for these tests: quick, small, and with the upstream of its own namespace.
pub(super) async fn render(namespace: &str, values: &[&str]) -> String {
    let base = upstream::base_url(namespace);
    let test_values = [
        "image.repository=nightshift.dev/nightshift".to_owned(),
        "image.tag=dev".to_owned(),
        "gameImage=nightshift.dev/fake-paper:dev".to_owned(),
        format!("watchNamespaces={{{namespace}}}"),
        // The tests install the CRDs once, and cluster-wide roles would remain after a test.
        "crds.install=false".to_owned(),
        "rbac.aggregate=false".to_owned(),
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
    let all: Vec<&str> = test_values.iter().map(String::as_str).chain(values.iter().copied()).collect();
    template(namespace, &all).await
}

/// The chart with these values, as Helm renders it.
pub(super) async fn template(namespace: &str, values: &[&str]) -> String {
    let mut arguments = vec!["template", RELEASE, CHART, "--namespace", namespace];
    for value in values {
        arguments.extend(["--set", value]);
    }
    run("helm", &arguments, "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_passes_helm_lint() {
    let output = run("helm", &["lint", "--strict", CHART], "").await;
    assert!(output.contains("0 chart(s) failed"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_grants_only_secrets_of_cluster_channels() {
    let channel = |at: usize| {
        ["name=team", "type=Slack", "secret.name=chat", "secret.key=address"]
            .map(|value| format!("notify.channels[{at}].{value}"))
    };
    let values = [channel(0), channel(1)].concat();
    let values: Vec<&str> = values.iter().map(String::as_str).chain(["watchNamespaces={games}"]).collect();
    let objects = template("home", &values).await;
    let role =
        objects.split("\n---\n").find(|object| object.contains("kind: Role\n") && object.contains("nightshift-notify"));
    let role = role.expect("the chart has a Role for the Secrets");
    assert!(role.contains("namespace: home") && role.contains("verbs: [get]"), "{role}");
    assert_eq!(role.matches("- \"chat\"").count(), 1, "each Secret is listed once:\n{role}");
    let none = template("home", &["watchNamespaces={games}"]).await;
    assert!(!none.contains("nightshift-notify") && !none.contains("NIGHTSHIFT_NOTIFY"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_rejects_unknown_value_by_name() {
    let output = try_run("helm", &["template", RELEASE, CHART, "--set", "watchedNamespaces=games"], "").await;
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("watchedNamespaces"), "{stderr}");
    let misspelt =
        try_run("helm", &["template", RELEASE, CHART, "--set", r"notify.channels[0].texts.done=\{sever\}"], "").await;
    let stderr = String::from_utf8_lossy(&misspelt.stderr);
    assert!(!misspelt.status.success() && stderr.contains("texts") && stderr.contains("sever"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_accepts_each_case_of_the_chart() {
    client().await;
    // These need the Prometheus operator, or namespaces of servers.
    let skipped = ["service-monitor.yaml", "namespaces.yaml", "one-namespace-only.yaml"];
    for file in std::fs::read_dir("../charts/cases").unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if file.extension().is_none_or(|extension| extension != "yaml") || skipped.contains(&name.as_str()) {
            continue;
        }
        let file = format!("charts/cases/{name}");
        let render = ["template", RELEASE, CHART, "--namespace", "default", "--set", "crds.install=false", "-f", &file];
        let objects = run("helm", &render, "").await;
        kubectl("default", &["apply", "--server-side", "--dry-run=server", "-f", "-"], &objects).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_manifests_apply_without_helm() {
    client().await;
    // A dry run creates no namespace, and the other objects are in it.
    let namespace = "nightshift-system";
    kubectl("default", &["create", "namespace", namespace], "").await;
    let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", "deploy"];
    let output = try_run("kubectl", &apply, "").await;
    kubectl("default", &["delete", "namespace", namespace], "").await;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.contains("deployment.apps/nightshift serverside-applied"), "{stdout}");
}
