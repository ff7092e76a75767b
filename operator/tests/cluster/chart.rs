//! Edge (writes). Renders the chart with Helm, and runs the checks that need Helm.

use super::kubectl::{ask, run};
use super::upstream;
use super::world::RELEASE;

pub(super) const CHART: &str = "charts/nightshift";

/// The operator's manifests for these tests: quick, small, and with the upstream of its own namespace.
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
    let said = run("helm", &["lint", "--strict", CHART], "").await;
    assert!(said.contains("0 chart(s) failed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_grants_only_secrets_of_cluster_channels() {
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
async fn chart_rejects_unknown_value_by_name() {
    let output = ask("helm", &["template", RELEASE, CHART, "--set", "watchNamespaces=games"], "").await;
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("watchNamespaces"), "{said}");
    let misspelt =
        ask("helm", &["template", RELEASE, CHART, "--set", r"notify.channels[0].texts.done=\{sever\}"], "").await;
    let said = String::from_utf8_lossy(&misspelt.stderr);
    assert!(!misspelt.status.success() && said.contains("texts") && said.contains("sever"), "{said}");
}
