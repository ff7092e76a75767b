//! Pure. Tests partial updates of a server that was solved as a whole on Monday and is solved again on Tuesday.

use agent_api::FileSet;
use jiff::{SignedDuration, Timestamp};
use resolver::model::request::Running;
use serde_json::{Value, json};

use super::*;
use crate::catalog::Snapshot;
use crate::server::changes::format_changes;
use crate::server::model::records::LockRecord;
use crate::server::test_server::server;
use crate::telemetry::metrics::Metrics;
use validate::check;

fn monday() -> Timestamp {
    "2026-01-19T12:00:00Z".parse().unwrap()
}

fn tuesday() -> Timestamp {
    monday() + SignedDuration::from_hours(24)
}

fn file(name: &str) -> Value {
    json!({"name": format!("{name}.jar"), "url": "https://example.org/x.jar", "hash": format!("sha256:{}", "ab".repeat(32))})
}

/// A version and its dependencies: `plugin`, or `plugin version`.
type Version = (&'static str, &'static [&'static str]);

/// Versions by plugin: the first is from Sunday, the second from Tuesday.
const PLUGINS: [(&str, [Version; 2]); 6] = [
    ("claims", [("1.0", &["lib"]), ("1.1", &["lib"])]),
    ("lib", [("1.0", &[]), ("1.1", &[])]),
    ("map", [("1.0", &["tiles"]), ("1.1", &["tiles 1.1"])]),
    ("shop", [("1.0", &["vault"]), ("1.1", &["vault 1.1"])]),
    ("tiles", [("1.0", &[]), ("1.1", &[])]),
    ("vault", [("1.0", &[]), ("1.1", &[])]),
];

fn catalog() -> Catalog {
    let published_at = [monday() - SignedDuration::from_hours(24), tuesday() - SignedDuration::from_hours(1)];
    let needs = |needed: &&str| {
        let (project, version) =
            needed.split_once(' ').map_or((*needed, None), |(project, version)| (project, Some(version)));
        json!({"projectId": project, "versionId": version.map(|version| format!("{project}-{version}")), "kind": "required"})
    };
    let projects = PLUGINS.iter().map(|(name, versions)| {
        let releases = versions.iter().zip(published_at).rev().map(|((version, needed), published)| {
            json!({
                "id": format!("{name}-{version}"), "version": version, "published": published, "channel": "release",
                "minecraft": ["1.21.10"], "loaders": ["paper"], "file": file(&format!("{name}-{version}")),
                "dependencies": needed.iter().map(needs).collect::<Vec<_>>(),
            })
        });
        json!({
            "key": {"source": "modrinth", "project": name}, "id": name, "name": name, "readAt": tuesday(),
            "releases": releases.collect::<Vec<_>>(),
        })
    });
    let builds = published_at.iter().enumerate().map(|(number, published)| {
        let number = number + 1;
        json!({"number": number, "channel": "STABLE", "published": published, "file": file(&format!("paper-{number}"))})
    });
    serde_json::from_value(json!({
        "paper": [{"minecraft": "1.21.10", "java": 21, "builds": builds.collect::<Vec<_>>()}],
        "paperReadAt": tuesday(), "projects": projects.collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn request(plugins: &[&str], strategy: &str) -> Request {
    let request_json = |object: &&str| {
        json!({
            "object": object, "key": {"source": "modrinth", "project": object}, "version": {"strategy": strategy},
            "delay": "PT6H", "channel": "release",
        })
    };
    serde_json::from_value(json!({
        "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": "PT6H", "channel": "STABLE",
        "plugins": plugins.iter().map(request_json).collect::<Vec<_>>(),
    }))
    .unwrap()
}

/// A server with the packages of Monday (`ran`) and the plugins that Tuesday's request wants (`wanted`).
struct Scene {
    runs: RunningState,
    request: Request,
    group: Group,
    pinned_set: Option<PinnedSet>,
}

fn scene(ran: &[&str], wanted: &[&str]) -> Scene {
    let lock = resolver::resolve(&catalog(), &request(ran, "auto"), monday()).unwrap().lock;
    let running = Some(Running::from_lock(&lock));
    let files: FileSet = serde_json::from_value(json!({
        "lock": lock.digest(), "minecraft": "1.21.10", "build": 1,
        "server": {"path": "paper.jar", "url": "", "hash": "sha256:00"},
    }))
    .unwrap();
    let request = Request { running, ..request(wanted, "auto") };
    let runs = RunningState {
        lock: Some(Arc::new(LockRecord { lock, files })),
        candidate: None,
        floor: None,
        unmanaged_jars: None,
    };
    Scene { runs, group: Arc::new(vec![request.clone()]), request, pinned_set: None }
}

impl Scene {
    async fn solve_partial(&self, scope: &str) -> (String, PartialSelection) {
        let solver = Solver::start(Metrics::default().solves).unwrap();
        let snapshot = Some(Arc::new(Snapshot::new(catalog(), std::collections::BTreeMap::new())));
        let from = &PinnedInputs::from_newest(snapshot, tuesday());
        let (request, runs) = (&self.request, &self.runs);
        let group = Arc::clone(&self.group);
        let input = ResolveInput { solver: &solver, from, request, group, runs, follows: None };
        let mut resolved = plan::resolved_lock(input.solve_whole().await.unwrap(), runs);
        let annotated = json!({
            "metadata": {"name": "lobby", "annotations": {"nightshift.dev/apply-now": format!("1;only={scope}")}},
            "spec": {"updateStrategy": "auto"},
        });
        let requested_scope = crate::server::partial::requested_scope(&serde_json::from_value(annotated).unwrap());
        let partial = input.solve_partial(requested_scope, self.pinned_set.as_ref(), &mut resolved).await.unwrap();
        let before = runs.lock.as_ref().map(|record| &record.lock);
        (format_changes(&diff_locks(before, &resolved.lock.unwrap())), partial)
    }

    /// The partial update because these Plugins are urgent or in their own windows. `is_meant` is whether a user has requested the planned
    /// set.
    async fn solve_urgent(
        &self,
        plugins: &[Arc<Plugin>],
        spec: &Value,
        is_meant: bool,
    ) -> Option<(&'static str, String)> {
        let solver = Solver::start(Metrics::default().solves).unwrap();
        let snapshot = Some(Arc::new(Snapshot::new(catalog(), std::collections::BTreeMap::new())));
        let from = &PinnedInputs::from_newest(snapshot, tuesday());
        let (request, runs, group) = (&self.request, &self.runs, Arc::clone(&self.group));
        let input = ResolveInput { solver: &solver, from, request, group, runs, follows: None };
        let mut resolved = plan::resolved_lock(input.solve_whole().await.unwrap(), runs);
        let server = check(&server(spec.clone())).unwrap();
        let partial = input.solve_urgent(&server, plugins, false, |_| is_meant, &mut resolved).await.unwrap();
        let before = runs.lock.as_ref().map(|record| &record.lock);
        let changes = format_changes(&diff_locks(before, &resolved.lock.unwrap()));
        Some((partial.urgent()?.reason_and_message().0, changes))
    }

    /// The partial update because this Plugin is urgent.
    async fn urgent_plugin(&self, name: &str, is_meant: bool) -> Option<String> {
        let urgent = self.solve_urgent(&[urgent_object(name)], &sundays(), is_meant).await;
        urgent.map(|(reason, changes)| {
            assert_eq!(reason, "Urgent");
            changes
        })
    }

    async fn changes_for(&self, scope: &str) -> String {
        let (changes, partial) = self.solve_partial(scope).await;
        assert!(matches!(partial, PartialSelection::Requested(_)), "{partial:?}");
        changes
    }

    async fn refusal_for(&self, scope: &str) -> String {
        let (_, partial) = self.solve_partial(scope).await;
        let PartialSelection::Refused(why) = partial else { panic!("{partial:?}") };
        why
    }
}

fn object(name: &str, more: &Value) -> Arc<Plugin> {
    let mut spec = json!({"source": {"type": "modrinth", "project": name}, "instanceSelector": {}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
}

fn urgent_object(name: &str) -> Arc<Plugin> {
    object(name, &json!({"urgent": true}))
}

/// With a window of one hour that opens at this hour each day. It is noon.
fn with_window(name: &str, hour: u32) -> Arc<Plugin> {
    object(name, &json!({"windows": [{"name": "own", "cron": format!("0 {hour} * * *")}]}))
}

fn sundays() -> Value {
    json!({"updateSchedule": {"maintenanceWindow": {"cron": "0 4 * * 0"}}})
}

const ALL: [&str; 4] = ["claims", "map", "shop", "vault"];

#[tokio::test]
async fn partial_update_skips_delay_and_keeps_other_plugins() {
    let scene = scene(&ALL, &ALL);
    assert_eq!(scene.changes_for("plugin/vault").await, "vault 1.0 -> 1.1");
    assert_eq!(scene.changes_for("plugin/shop,plugin/vault").await, "shop 1.0 -> 1.1, vault 1.0 -> 1.1");
    assert_eq!(scene.changes_for("paper").await, "Paper 1.21.10-1 -> 1.21.10-2");
}

#[tokio::test]
async fn partial_update_includes_exclusive_dependency() {
    assert_eq!(scene(&ALL, &ALL).changes_for("plugin/map").await, "map 1.0 -> 1.1, tiles 1.0 -> 1.1");
    let two = scene(&["claims", "shop"], &["claims", "shop"]);
    assert_eq!(two.changes_for("plugin/claims").await, "claims 1.0 -> 1.1, lib 1.0 -> 1.1");
}

#[tokio::test]
async fn partial_update_refusal_names_minimal_additions() {
    let (planned, partial) = scene(&ALL, &ALL).solve_partial("plugin/shop").await;
    let PartialSelection::Refused(why) = partial else { panic!("{partial:?}") };
    assert!(why.contains("plugin/vault has to change with it"), "{why}");
    assert!(why.contains("`;only=plugin/shop,plugin/vault`"), "{why}");
    assert_eq!(planned, "settings of the pod", "the plan stays, and it has no changes today");
}

#[tokio::test]
async fn partial_install_or_removal_changes_no_other_plugin() {
    assert_eq!(scene(&["claims", "vault"], &ALL).changes_for("plugin/map").await, "map 1.1 (new), tiles 1.1 (new)");
    let removed = scene(&ALL, &["claims", "shop", "vault"]);
    assert_eq!(removed.changes_for("plugin/map").await, "map 1.0 (removed), tiles 1.0 (removed)");
}

#[tokio::test]
async fn partial_update_keeps_unrequested_plugins() {
    let removed = scene(&ALL, &["claims", "shop", "vault"]);
    assert_eq!(removed.changes_for("plugin/vault").await, "vault 1.0 -> 1.1");
}

#[tokio::test]
async fn partial_update_keeps_shared_dependency_and_reason() {
    let mut both = scene(&["claims", "map"], &["claims", "map"]);
    let mut record = (**both.runs.lock.as_ref().unwrap()).clone();
    let lib = record.lock.plugins.iter_mut().find(|plugin| plugin.name == "lib").unwrap();
    lib.reason = LockReason::NeededBy(vec!["claims".to_owned(), "map".to_owned()]);
    both.runs.lock = Some(Arc::new(record));
    assert_eq!(both.changes_for("plugin/claims").await, "claims 1.0 -> 1.1");
    let runs = both.runs.lock.as_ref().unwrap().lock.clone();
    let everything = restrict(&both.request, &Present::from_lock(&runs), &Scope::default(), None, Delays::Skipped);
    assert!(everything.request.plugins.iter().all(|plugin| plugin.hold.is_some()));
    let solved = resolver::resolve(&catalog(), &everything.request, tuesday()).unwrap().lock;
    assert_eq!(everything.complete_lock(&runs, solved).plugins, runs.plugins, "files and reasons are unchanged");
}

#[tokio::test]
async fn partial_install_keeps_dependency_of_unmanaged_jar() {
    let mut scene = scene(&["map", "shop"], &["map", "shop"]);
    let mut record = (**scene.runs.lock.as_ref().unwrap()).clone();
    record.lock.plugins.retain(|plugin| plugin.name != "shop");
    let vault = record.lock.plugins.iter_mut().find(|plugin| plugin.name == "vault").unwrap();
    vault.reason = LockReason::NeededBy(vec!["Kits.jar".to_owned()]);
    scene.request.running = Some(Running::from_lock(&record.lock));
    let kits = json!({"file": "Kits.jar", "name": "Kits", "depend": ["vault"]});
    scene.request.unmanaged = vec![serde_json::from_value(kits).unwrap()];
    scene.group = Arc::new(vec![scene.request.clone()]);
    scene.runs.lock = Some(Arc::new(record));
    assert_eq!(scene.changes_for("plugin/shop").await, "shop 1.0 (new)", "1.1 needs a newer vault");
}

#[tokio::test]
async fn partial_update_uses_release_shared_by_group() {
    let mut grouped = scene(&["claims", "vault"], &["claims", "vault"]);
    for plugin in &mut grouped.request.plugins {
        plugin.version = resolver::model::request::VersionRequest::Latest;
    }
    let other = Request { server: "games/other".to_owned(), ..grouped.request.clone() };
    grouped.group = Arc::new(vec![grouped.request.clone(), other]);
    let (_, partial) = grouped.solve_partial("plugin/vault").await;
    assert!(
        matches!(partial, PartialSelection::Refused(_) | PartialSelection::UpToDate(_)),
        "the group still has a delay: {partial:?}"
    );
    let soon = grouped.group.iter().cloned().map(|mut request| {
        request.plugins.iter_mut().for_each(|plugin| plugin.delay = SignedDuration::ZERO);
        request
    });
    grouped.group = Arc::new(soon.collect());
    assert_eq!(grouped.changes_for("plugin/vault").await, "vault 1.0 -> 1.1");
}

#[tokio::test]
async fn partial_update_refuses_unknown_names() {
    let scene = scene(&ALL, &ALL);
    let why = scene.refusal_for("plugin/clams").await;
    assert!(
        why.contains("plugin/clams, which is not a Plugin of this server: write plugin/claims or plugin/map"),
        "{why}"
    );
    assert!(scene.refusal_for("claims").await.contains("neither `paper` nor"));
    let mut held = scene;
    held.request.plugins.iter_mut().for_each(|plugin| plugin.hold = Some(resolver::model::request::Hold::Plugin));
    let (_, partial) = held.solve_partial("plugin/vault").await;
    assert!(matches!(partial, PartialSelection::UpToDate(_)), "{partial:?}");
}

#[tokio::test]
async fn partial_update_is_refused_for_pinned_set() {
    let mut scene = scene(&ALL, &ALL);
    let digest = scene.runs.lock.as_ref().unwrap().files.lock.clone();
    let unknown = PinnedSet::Unknown { requested: "0123456789abcdef".to_owned() };
    let held = PinnedSet::Held { digest, others: Vec::new() };
    for (pinned_set, word) in [(unknown, "`nightshift.dev/rollback-to`"), (held, "`*` in `spec.hold`")] {
        scene.pinned_set = Some(pinned_set);
        let why = scene.refusal_for("plugin/claims").await;
        assert!(why.starts_with(word), "{why}");
    }
    scene.pinned_set = None;
    scene.runs.lock = None;
    let solver = Solver::start(Metrics::default().solves).unwrap();
    let (request, runs, group) = (&scene.request, &scene.runs, Arc::clone(&scene.group));
    let from = &PinnedInputs::from_newest(None, tuesday());
    let input = ResolveInput { solver: &solver, from, request, group, runs, follows: None };
    let mut resolved = plan::resolved_lock(input.solve_whole().await.unwrap(), runs);
    let requested_scope = Some(Err("not read on a first start".to_owned()));
    assert_eq!(input.solve_partial(requested_scope, None, &mut resolved).await.unwrap(), PartialSelection::Nothing);
}

/// Removes the delay of this Plugin, as `spec.urgent` does.
fn skip_delay(scene: &mut Scene, object: &str) {
    let plugins = scene.request.plugins.iter_mut().filter(|plugin| plugin.object == object);
    plugins.for_each(|plugin| plugin.delay = SignedDuration::ZERO);
    scene.group = Arc::new(vec![scene.request.clone()]);
}

#[tokio::test]
async fn urgent_plugin_updates_alone_or_waits() {
    let mut scene = scene(&ALL, &ALL);
    skip_delay(&mut scene, "vault");
    assert_eq!(scene.urgent_plugin("vault", false).await.as_deref(), Some("vault 1.0 -> 1.1"));
    assert_eq!(scene.urgent_plugin("vault", true).await, None, "a user has requested the whole set");
    assert_eq!(scene.urgent_plugin("shop", false).await, None, "shop 1.1 needs a newer vault");
}

#[tokio::test]
async fn urgent_plugin_without_newer_release_plans_no_update() {
    let scene = scene(&ALL, &ALL);
    assert_eq!(scene.urgent_plugin("vault", false).await, None, "the newer release is still within its delay");
}

#[tokio::test]
async fn urgent_plugin_updates_although_rest_is_unsolvable() {
    let mut scene = scene(&ALL, &ALL);
    let other = scene.request.plugins.iter_mut().find(|plugin| plugin.object == "claims").unwrap();
    other.version = resolver::model::request::VersionRequest::Pin { version: "9.9".to_owned() };
    skip_delay(&mut scene, "vault");
    assert_eq!(scene.urgent_plugin("vault", false).await.as_deref(), Some("vault 1.0 -> 1.1"));
}

/// Removes all delays: on Tuesday every newer version is due.
fn skip_delays(scene: &mut Scene) {
    scene.request.delay = SignedDuration::ZERO;
    scene.request.plugins.iter_mut().for_each(|plugin| plugin.delay = SignedDuration::ZERO);
    scene.group = Arc::new(vec![scene.request.clone()]);
}

#[tokio::test]
async fn plugin_updates_alone_in_its_own_window() {
    let mut scene = scene(&ALL, &ALL);
    skip_delays(&mut scene);
    let partial = Some(("OwnWindow", "vault 1.0 -> 1.1".to_owned()));
    for hour in [12, 15] {
        assert_eq!(scene.solve_urgent(&[with_window("vault", hour)], &sundays(), false).await, partial, "{hour}");
    }
    assert_eq!(
        scene.solve_urgent(&[with_window("vault", 12)], &sundays(), true).await,
        None,
        "a user has requested the whole set"
    );
    let two = scene.solve_urgent(&[with_window("shop", 12), with_window("vault", 15)], &sundays(), false).await;
    assert_eq!(two, partial, "shop needs vault, whose window opens later");
}

#[tokio::test]
async fn delay_counts_in_plugin_window() {
    let mut scene = scene(&ALL, &ALL);
    assert_eq!(scene.solve_urgent(&[with_window("vault", 12)], &sundays(), false).await, None, "no delay has passed");
    skip_delay(&mut scene, "claims");
    assert_eq!(scene.solve_urgent(&[with_window("vault", 12)], &sundays(), false).await, None, "vault is not due yet");
    let spared = scene.solve_urgent(&[with_window("claims", 12)], &sundays(), false).await;
    assert_eq!(spared.unwrap().1, "claims 1.0 -> 1.1, lib 1.0 -> 1.1", "claims has no delay, and it alone needs lib");
}

#[tokio::test]
async fn plugin_window_picks_newest_release_past_delay() {
    let mut scene = scene(&ALL, &ALL);
    let mut record = (**scene.runs.lock.as_ref().unwrap()).clone();
    let vault = record.lock.plugins.iter_mut().find(|plugin| plugin.name == "vault").unwrap();
    (vault.release_id, vault.version) = ("vault-0.9".to_owned(), "0.9".to_owned());
    scene.request.running = Some(Running::from_lock(&record.lock));
    scene.group = Arc::new(vec![scene.request.clone()]);
    scene.runs.lock = Some(Arc::new(record));
    let changes = scene.solve_urgent(&[with_window("vault", 12)], &sundays(), false).await;
    assert_eq!(changes.unwrap().1, "vault 0.9 -> 1.0");
}

#[tokio::test]
async fn urgent_plugin_and_open_plugin_window_update_together() {
    let mut scene = scene(&ALL, &ALL);
    skip_delays(&mut scene);
    let changes = async |hour| {
        scene.solve_urgent(&[urgent_object("claims"), with_window("vault", hour)], &sundays(), false).await.unwrap().1
    };
    assert_eq!(changes(12).await, "claims 1.0 -> 1.1, lib 1.0 -> 1.1, vault 1.0 -> 1.1");
    assert_eq!(changes(15).await, "claims 1.0 -> 1.1, lib 1.0 -> 1.1");
}

#[tokio::test]
async fn opportunistic_server_plans_all_before_later_plugin_window() {
    let mut scene = scene(&ALL, &ALL);
    skip_delays(&mut scene);
    let mut spec = sundays();
    spec["updateSchedule"]["opportunistic"] = json!({});
    assert_eq!(scene.solve_urgent(&[with_window("vault", 15)], &spec, false).await, None);
    assert!(scene.solve_urgent(&[with_window("vault", 12)], &spec, false).await.is_some(), "its window is open");
}
