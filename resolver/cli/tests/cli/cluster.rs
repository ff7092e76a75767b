//! Edge (reads). Tests servers of a cluster, against a fake API server that lists objects and sends real errors.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::facts::FACTS;
use super::{REPLAY, Workspace, assert_snapshot, lobby, output_text, plugin, server};

/// Objects per page, whatever the client requests. It is smaller than the number of objects.
const PAGE_SIZE: usize = 2;

/// State of the fake API server.
#[derive(Clone, Default)]
struct Objects {
    /// By plural.
    by_plural: Arc<BTreeMap<String, Vec<Value>>>,
    /// Requested namespaces, `*` for all.
    requested_namespaces: Arc<Mutex<Vec<String>>>,
    /// The merge patches that it was sent, with their objects.
    patches: Arc<Mutex<Vec<(String, Value)>>>,
}

/// A fake API server with the objects of these manifests.
struct ApiServer {
    url: String,
    requested_namespaces: Arc<Mutex<Vec<String>>>,
    patches: Arc<Mutex<Vec<(String, Value)>>>,
}

impl ApiServer {
    fn start(manifests: &str) -> Self {
        let mut by_plural: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for document in manifests.split("---\n").filter(|document| !document.trim().is_empty()) {
            let mut object: Value = parse_yaml(document);
            let plural = if object["kind"] == "Plugin" { "plugins" } else { "papermcservers" };
            // Fields of every object in a cluster.
            object["metadata"]["uid"] = json!("5a2c");
            object["metadata"]["resourceVersion"] = json!("7");
            by_plural.entry(plural.to_owned()).or_default().push(object);
        }
        let objects = Objects { by_plural: Arc::new(by_plural), ..Objects::default() };
        let (requested_namespaces, patches) = (objects.requested_namespaces.clone(), objects.patches.clone());
        let base = "/apis/nightshift.dev/v1alpha1";
        let router = Router::new()
            .route(&format!("{base}/{{plural}}"), get(list_all))
            .route(&format!("{base}/namespaces/{{namespace}}/{{plural}}"), get(list))
            .route(&format!("{base}/namespaces/{{namespace}}/{{plural}}/{{name}}"), patch(annotate))
            // The API server's response for a missing CRD, which is not a Status object.
            .fallback(|| async { (StatusCode::NOT_FOUND, "404 page not found\n") })
            .with_state(objects);
        let listener = REPLAY.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        REPLAY.runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, requested_namespaces, patches }
    }

    /// A kubeconfig whose context `home` leads to this server, with `games` as its namespace. It has further contexts.
    fn kubeconfig(&self) -> String {
        let Self { url, requested_namespaces: _, patches: _ } = self;
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "home",
            "clusters": [
                {"name": "here", "cluster": {"server": url}},
                // No process can listen there.
                {"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}},
                {"name": "bare", "cluster": {"server": format!("{url}/bare")}},
            ],
            "contexts": [
                {"name": "home", "context": {"cluster": "here", "user": "admin", "namespace": "games"}},
                {"name": "reader", "context": {"cluster": "here", "user": "reader", "namespace": "games"}},
                {"name": "stranger", "context": {"cluster": "here", "user": "stranger"}},
                {"name": "gone", "context": {"cluster": "gone", "user": "admin"}},
                {"name": "bare", "context": {"cluster": "bare", "user": "admin"}},
                {"name": "plugin", "context": {"cluster": "here", "user": "plugin"}},
            ],
            "users": [
                {"name": "admin", "user": {"token": "admin"}},
                {"name": "reader", "user": {"token": "reader"}},
                {"name": "stranger", "user": {"token": "stranger"}},
                {"name": "plugin", "user": {"exec": {
                    "apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login", "interactiveMode": "Never",
                }}},
            ],
        })
        .to_string()
    }

    /// A workspace whose `KUBECONFIG` leads to this server.
    fn workspace(&self) -> ClusterWorkspace {
        ClusterWorkspace(Workspace::new(&[("kubeconfig", &self.kubeconfig())]))
    }
}

/// The object as the API server stores it.
fn parse_yaml(document: &str) -> Value {
    serde_saphyr::from_str(document).unwrap()
}

async fn list(
    State(objects): State<Objects>,
    Path((namespace, plural)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    respond(&objects, Some(&namespace), &plural, &query, &headers)
}

async fn list_all(
    State(objects): State<Objects>,
    Path(plural): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    respond(&objects, None, &plural, &query, &headers)
}

fn respond(
    objects: &Objects,
    namespace: Option<&str>,
    plural: &str,
    query: &BTreeMap<String, String>,
    headers: &HeaderMap,
) -> Response {
    let scope =
        namespace.map_or_else(|| "at the cluster scope".to_owned(), |name| format!("in the namespace \"{name}\""));
    let refused = |code: StatusCode, reason: &str, message: String| {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code.as_u16(),
        });
        (code, axum::Json(status)).into_response()
    };
    match headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        Some("Bearer admin") => {}
        Some("Bearer reader") if namespace == Some("games") && plural == "papermcservers" => {}
        Some("Bearer reader") => {
            let message = format!(
                "{plural}.nightshift.dev is forbidden: User \"reader\" cannot list resource \"{plural}\" in API group \"nightshift.dev\" {scope}"
            );
            return refused(StatusCode::FORBIDDEN, "Forbidden", message);
        }
        _ => return refused(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized".to_owned()),
    }
    objects.requested_namespaces.lock().unwrap().push(namespace.unwrap_or("*").to_owned());
    let all = objects.by_plural.get(plural).map_or(&[][..], Vec::as_slice);
    let all: Vec<&Value> =
        all.iter().filter(|object| namespace.is_none_or(|name| object["metadata"]["namespace"] == name)).collect();
    let from: usize = query.get("continue").map_or(0, |token| token.parse().unwrap());
    let next = (from + PAGE_SIZE < all.len()).then(|| (from + PAGE_SIZE).to_string());
    let items: Vec<&Value> = all.into_iter().skip(from).take(PAGE_SIZE).collect();
    axum::Json(json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "List",
        "metadata": {"resourceVersion": "9", "continue": next}, "items": items,
    }))
    .into_response()
}

async fn annotate(
    State(objects): State<Objects>,
    Path((namespace, plural, name)): Path<(String, String, String)>,
    headers: HeaderMap,
    axum::Json(patch): axum::Json<Value>,
) -> Response {
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer admin") {
        let message = format!("{plural}.nightshift.dev \"{name}\" is forbidden: User \"reader\" cannot patch it");
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "Forbidden", "code": 403,
        });
        return (StatusCode::FORBIDDEN, axum::Json(status)).into_response();
    }
    objects.patches.lock().unwrap().push((format!("{namespace}/{name}"), patch));
    let metadata = json!({"name": name, "namespace": namespace});
    axum::Json(json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}))
        .into_response()
}

struct ClusterWorkspace(Workspace);

impl ClusterWorkspace {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.env("KUBECONFIG", self.0.path().join("kubeconfig"));
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        output_text(&self.command(arguments).output().unwrap())
    }
}

/// The lobby's status as an operator writes it.
pub(super) const STATUS: &str = "status:\n  currentVersion: 1.21.10\n  currentBuild: 100\n  basis:\n    floor: 1.21.10\n    \
                      version: 1.21.10\n    build: 100\n    releases: [wPbEtTr8]\n";

/// The lobby as it is in a cluster, with its Plugins.
pub(super) fn lobby_in_cluster() -> String {
    let (lobby, plugins) = {
        let all = lobby();
        let (lobby, plugins) = all.split_once("---\n").unwrap();
        (lobby.to_owned(), plugins.to_owned())
    };
    format!("{}{STATUS}---\n{plugins}", with_eula(&lobby))
}

fn with_eula(server: &str) -> String {
    server.replace("spec:\n", "spec:\n  eula: Accepted\n")
}

fn arena() -> String {
    with_eula(&server("  updateStrategy: pin\n  version: 1.21.8\n")).replace("name: lobby", "name: arena")
}

#[test]
fn cluster_server_answer_matches_its_objects_under_any_name() {
    let manifests = lobby_in_cluster();
    let api = ApiServer::start(&manifests);
    let workspace = api.workspace();
    let output = workspace.run(&["explain", "server/lobby", "-n", "games"]);
    assert_snapshot("cluster", &output);
    let arguments: [&[&str]; 6] = [
        &["explain", "lobby"],
        &["explain", "pmc/lobby"],
        &["explain", "papermcserver/lobby", "--namespace=games"],
        &["explain", "papermcservers.nightshift.dev/lobby", "--context", "home"],
        &["explain", "lobby", "-A"],
        &["explain", "--kubeconfig", "kubeconfig"],
    ];
    for arguments in arguments {
        assert_eq!(workspace.run(arguments), output, "{arguments:?}");
    }
    // The output of `kubectl get -o yaml` is the same query.
    assert_eq!(workspace.0.run_with_stdin(&["explain", "-f", "-"], &manifests), output);
    // Without --namespace, the namespace of the context is used.
    let requested_namespaces = api.requested_namespaces.lock().unwrap();
    assert!(
        requested_namespaces.iter().all(|namespace| namespace == "games" || namespace == "*"),
        "{requested_namespaces:?}"
    );
}

#[test]
fn cluster_server_accepts_facts() {
    let manifests = lobby_in_cluster();
    let workspace = ApiServer::start(&manifests).workspace();
    fs::write(workspace.0.path().join("facts.yaml"), FACTS).unwrap();
    let output = workspace.run(&["explain", "lobby", "--facts", "facts.yaml"]);
    assert!(output.contains("the staff channel"), "{output}");
    assert_eq!(workspace.0.run_with_stdin(&["explain", "-f", "-", "--facts", "facts.yaml"], &manifests), output);
}

#[test]
fn cluster_status_is_part_of_query() {
    // Without its basis the server has no world and no running version, so a pin below is allowed.
    let pinned = |status: &str| {
        let server = with_eula(&server("  updateStrategy: pin\n  version: 1.21.8\n"));
        ApiServer::start(&format!("{server}{status}")).workspace().run(&["explain", "lobby"])
    };
    assert!(pinned("").starts_with("exit 0\n"), "{}", pinned(""));
    assert_snapshot("cluster-floor", &pinned(STATUS));
}

#[test]
fn cluster_servers_sharing_plugin_are_resolved_jointly() {
    let shared_manifests = |eula: &str| {
        let arena = arena().replace("1.21.8", "1.20.4").replace("  eula: Accepted\n", eula);
        format!("{}---\n{arena}", with_eula(&lobby()))
    };
    let api = ApiServer::start(&shared_manifests("  eula: Accepted\n"));
    let output = api.workspace().run(&["explain", "lobby"]);
    assert_snapshot("cluster-shared", &output);
    // The saved query gives the same answer.
    let workspace = api.workspace();
    assert_eq!(workspace.run(&["explain", "lobby", "--save-problem", "problem.json"]), output);
    assert_eq!(workspace.run(&["explain", "--problem", "problem.json"]), output);
    // A server that may not be started does not count.
    let single = ApiServer::start(&with_eula(&lobby())).workspace().run(&["explain", "lobby"]);
    assert_ne!(output, single);
    assert_eq!(ApiServer::start(&shared_manifests("")).workspace().run(&["explain", "lobby"]), single);
}

#[test]
fn restart_annotates_server_once() {
    let api = ApiServer::start(&lobby_in_cluster());
    let workspace = api.workspace();
    assert_snapshot("restart", &workspace.run(&["restart", "lobby"]));
    let patches = std::mem::take(&mut *api.patches.lock().unwrap());
    let [(name, patch)] = patches.as_slice() else { panic!("{patches:?}") };
    let requested_at: i64 =
        patch["metadata"]["annotations"]["nightshift.dev/restart-now"].as_str().unwrap().parse().unwrap();
    assert!(name == "games/lobby" && requested_at > 1_700_000_000, "the current time in unix seconds: {patches:?}");

    let refused = [&["restart", "loby"][..], &["restart", "lobby", "--context", "reader"], &["restart"]];
    assert_snapshot("restart-refused", &refused.map(|arguments| workspace.run(arguments)).join("\n"));
    assert!(api.patches.lock().unwrap().is_empty());
}

#[test]
fn refresh_annotates_server_with_current_time() {
    let api = ApiServer::start(&lobby_in_cluster());
    let output = api.workspace().run(&["refresh", "lobby"]);
    assert!(output.starts_with("exit 0\n") && output.contains("new releases of games/lobby."), "{output}");
    let patches = std::mem::take(&mut *api.patches.lock().unwrap());
    let [(name, patch)] = patches.as_slice() else { panic!("{patches:?}") };
    let value = patch["metadata"]["annotations"]["nightshift.dev/reconcile"].as_str().unwrap();
    assert!(name == "games/lobby" && value.parse::<i64>().unwrap() > 1_700_000_000, "{patches:?}");
}

#[test]
fn trust_in_cluster_names_jar_by_hash() {
    let sha256 = "ab".repeat(32);
    let unmanaged = format!("  unmanaged: [{{file: Shop.jar, sha256: {sha256}}}]\n");
    let api = ApiServer::start(&lobby_in_cluster().replacen("  basis:", &format!("{unmanaged}  basis:"), 1));
    let workspace = api.workspace();
    let trust = |server: &[&str]| workspace.run(&[&["trust", "--minecraft", "1.21.11"], server].concat());
    let output = trust(&["lobby", "Shop.jar"]);
    let writes = format!(
        r#"{{"spec":{{"unmanaged":[{{"file":"Shop.jar","minecraftVersions":["1.21.11"],"sha256":"{sha256}"}}]}}}}"#
    );
    assert!(
        output.starts_with("exit 0\n")
            && output.contains(&format!("kubectl -n games patch papermcserver lobby --type merge -p '{writes}'\n")),
        "{output}"
    );
    assert_eq!(trust(&["server/lobby", "Shop.jar", "-n", "games"]), output);
    assert_eq!(trust(&["games/lobby", "plugins/Shop.jar"]), output);
    assert!(trust(&["test/lobby", "Shop.jar"]).contains("there is no PaperMCServer `lobby` in namespace `test`"));
}

#[test]
fn cluster_query_without_name_covers_all_servers() {
    let elsewhere = arena().replace("namespace: games", "namespace: test");
    let unaccepted = server("  updateStrategy: auto\n").replace("name: lobby", "name: waiting");
    let api = ApiServer::start(&[lobby_in_cluster(), arena(), elsewhere, unaccepted].join("---\n"));
    let workspace = api.workspace();
    assert_snapshot("cluster-outdated", &workspace.run(&["outdated", "-n", "games"]));
    assert_snapshot("cluster-ready", &workspace.run(&["ready", "1.21.11", "--all-namespaces"]));
    assert_snapshot("cluster-ready-one", &workspace.run(&["ready", "1.21.11", "arena", "-n", "test"]));
    let lock = workspace.command(&["lock", "server/lobby"]).output().unwrap();
    fs::write(workspace.0.path().join("lobby.lock.json"), lock.stdout).unwrap();
    assert_snapshot("cluster-verify", &workspace.run(&["verify", "lobby.lock.json"]));
    assert_snapshot("cluster-fetch", &workspace.run(&["catalog", "fetch", "server/lobby", "--catalog", "kept"]));
}

#[test]
fn cluster_object_unreadable_is_named_and_hides_no_server() {
    let newer = arena().replace("updateStrategy: pin", "updateStrategy: dream");
    let api = ApiServer::start(&[lobby_in_cluster(), newer].join("---\n"));
    assert_snapshot("cluster-newer", &api.workspace().run(&["outdated"]));
}

#[test]
fn cluster_errors_explain_how_to_fix_them() {
    let api = ApiServer::start(&[lobby_in_cluster(), arena()].join("---\n"));
    let workspace = api.workspace();
    let cases: [(&str, &[&str]); 12] = [
        ("no such server", &["explain", "server/loby"]),
        ("no server in a namespace", &["explain", "lobby", "-n", "gmaes"]),
        ("a plugin", &["explain", "plugin/viabackwards"]),
        ("a namespace before the name", &["explain", "games/lobby"]),
        ("an unknown context", &["explain", "lobby", "--context", "hoem"]),
        ("no kubeconfig there", &["explain", "lobby", "--kubeconfig", "nowhere"]),
        ("forbidden", &["explain", "lobby", "--context", "reader"]),
        ("unknown to the API server", &["explain", "lobby", "--context", "stranger"]),
        ("no connection", &["explain", "lobby", "--context", "gone"]),
        ("no definitions", &["explain", "lobby", "--context", "bare"]),
        ("no login", &["explain", "lobby", "--context", "plugin"]),
        ("files and a cluster", &["explain", "-f", "lobby.yaml", "-n", "games"]),
    ];
    let all: Vec<String> =
        cases.iter().map(|(label, arguments)| format!("== {label}\n{}", workspace.run(arguments))).collect();
    let all = all.join("\n").replace(&api.url, "[api]");
    let nowhere = workspace.0.command(&["outdated"]).env("HOME", "/nonexistent").output().unwrap();
    let no_context = json!({"contexts": [{"name": "a", "context": {"cluster": "a"}}]}).to_string();
    let bare = Workspace::new(&[("kubeconfig", &no_context)]);
    let bare = bare.run(&["outdated", "--kubeconfig", "kubeconfig"]);
    assert_snapshot(
        "cluster-mistakes",
        &format!("{all}\n== no kubeconfig at all\n{}\n== no current context\n{bare}", output_text(&nowhere)),
    );
}

#[test]
fn cluster_plugin_misspelt_is_named_without_file() {
    let api = ApiServer::start(&[lobby_in_cluster(), plugin("viaversoin", "").replace("---\n", "")].join("---\n"));
    assert_snapshot("cluster-misspelt", &api.workspace().run(&["explain", "lobby"]));
}

#[test]
fn cluster_plan_reports_partial_update_of_operator() {
    let status_fields = "  nextWindow: Thu 22 Jan 03:00 UTC\n  nextWindowAt: 2026-01-22T03:00:00Z\n  plugins:\n  \
                - {name: ViaVersion, neededBy: ViaBackwards, currentVersion: 5.7.0, state: PendingUpdate}\n  \
                availableUpdate: {digest: \"22\", version: 1.21.10, build: 100, oneWay: false, summary: x, staged: true, \
                plugins: [{name: ViaBackwards, version: 5.7.1}, {name: ViaVersion, version: 5.7.1}]}\n  \
                conditions:\n  - {type: PartialUpdate, status: \"True\", reason: OwnWindow, message: x, \
                lastTransitionTime: \"2026-01-21T12:00:00Z\"}\n";
    let status = STATUS.replace("basis:\n", "basis:\n    unasked: [modrinth/viaversion]\n");
    let windows = "project: viabackwards}, windows: [{name: own, cron: \"0 3 * * *\"}]";
    let lobby = lobby_in_cluster()
        .replace(STATUS, &format!("{status}{status_fields}"))
        .replace("project: viabackwards}", windows);
    let api = ApiServer::start(&lobby);
    assert_snapshot("cluster-plan-alone", &api.workspace().run(&["plan"]));
}

#[test]
fn cluster_plan_shows_running_versions_and_next_window() {
    let status_fields = "  nextWindow: Sun 25 Jan 04:00 UTC\n  nextWindowAt: 2026-01-25T04:00:00Z\n  plugins:\n  \
                - {name: ViaVersion, currentVersion: 5.7.0, state: PendingUpdate}\n  \
                availableUpdate: {digest: \"22\", version: 1.21.10, build: 129, oneWay: false, summary: x, cost: about 25 s}\n";
    let manual = arena().replace("{cron: \"0 4 * * 0\"}", "{enabled: false}");
    // The status of an older operator, without a basis.
    let status = "status:\n  currentVersion: 1.21.7\n  currentBuild: 32\n";
    let manifests = lobby_in_cluster().replace(STATUS, &format!("{STATUS}{status_fields}"));
    let api = ApiServer::start(&[manifests, format!("{manual}{status}")].join("---\n"));
    assert_snapshot("cluster-plan", &api.workspace().run(&["plan"]));
    assert_snapshot("cluster-plan-json", &api.workspace().run(&["plan", "server/lobby", "--format", "json"]));
}
