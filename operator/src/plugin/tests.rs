//! Pure. Tests the status of a Plugin.

use std::collections::BTreeMap;

use resolver::model::catalog::Release;

use super::*;

const NOW: &str = "2026-01-21T12:00:00Z";

fn at() -> Timestamp {
    NOW.parse().unwrap()
}

fn key() -> ProjectKey {
    ProjectKey::from_file("https://example.org/dl/HouseRules.jar", &"ab".repeat(32))
}

fn plugin(source: &serde_json::Value) -> Plugin {
    let object = json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "rules", "namespace": "games"},
        "spec": {"source": source, "instanceSelector": {}},
    });
    serde_json::from_value(object).unwrap()
}

/// A matched server, and the Plugin that decides there if there are several.
fn instance(name: &str, decided_by: Option<&str>) -> MatchedInstance {
    let decided_by = decided_by.map(str::to_owned);
    MatchedInstance { name: name.to_owned(), version: None, compatible: None, not_enabled: false, decided_by }
}

fn url_plugin() -> Plugin {
    plugin(&json!({"type": "url", "url": "https://example.org/dl/HouseRules.jar", "checksum": "AB".repeat(32)}))
}

fn snapshot_with(version: &str) -> Snapshot {
    let release = Release {
        id: format!("sha256:{}", "ab".repeat(32)),
        version: version.to_owned(),
        published: None,
        channel: Channel::Release,
        minecraft: Vec::new(),
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        loaders: Vec::new(),
        dependencies: Vec::new(),
        file: None,
        further: Vec::new(),
    };
    let (key, name) = (key(), "HouseRules".to_owned());
    let project = Project { id: key.project.clone(), key, name, read_at: at(), releases: vec![release] };
    let catalog = Catalog { projects: vec![project], ..Catalog::empty(at()) };
    Snapshot::new(catalog, BTreeMap::new())
}

fn snapshot_with_error(category: &'static str) -> Snapshot {
    let error = CatalogSourceError { category, message: "it went wrong".to_owned() };
    Snapshot::new(Catalog::empty(at()), BTreeMap::from([(key().to_string(), error)]))
}

fn matched(name: &str) -> MatchedInstance {
    instance(name, None)
}

/// Project, newest, whether ready, reason and message.
fn reported(plugin: &Plugin, snapshot: &Snapshot) -> (Option<String>, Option<String>, String, String, String) {
    let matched = vec![matched("lobby")];
    let status = build_status(plugin, Some(snapshot), matched, at(), &PluginStatus::default());
    let [Condition { status: ready, reason, message, .. }] = status.conditions.try_into().unwrap();
    (status.project, status.newest, ready, reason, message)
}

fn report_text(report: (Option<String>, Option<String>, String, String, String)) -> String {
    let (project, newest, ready, reason, message) = report;
    format!("{} {} {ready} {reason}: {message}", project.unwrap_or_default(), newest.unwrap_or_default())
}

#[test]
fn plugin_status_of_earlier_process_stays_until_source_is_read() {
    let matched = |name: &str| vec![matched(name)];
    let unread = Snapshot::new(Catalog::empty(at()), BTreeMap::new());
    let mut plugin = url_plugin();
    plugin.metadata.generation = Some(1);
    let before = build_status(&plugin, Some(&snapshot_with("2.1")), matched("lobby"), at(), &PluginStatus::default());
    for snapshot in [None, Some(&unread)] {
        let after = build_status(&plugin, snapshot, matched("survival"), at(), &before);
        assert_eq!(after, PluginStatus { matched_instances: matched("survival"), ..before.clone() });
    }
    plugin.metadata.generation = Some(2);
    let changed = build_status(&plugin, None, matched("lobby"), at(), &before);
    assert_eq!(changed.conditions[0].reason, "NotRead", "another source may be meant");
}

#[test]
fn plugin_status_shows_version_from_jar() {
    let status = build_status(&url_plugin(), Some(&snapshot_with("2.1")), Vec::new(), at(), &PluginStatus::default());
    assert_eq!(status.available_versions[0].released_at, None, "a JAR has no release date");
    assert_eq!(
        report_text(reported(&url_plugin(), &snapshot_with("2.1"))),
        "HouseRules 2.1 True Available: HouseRules 2.1, according to its JAR."
    );
    assert_eq!(
        report_text(reported(&url_plugin(), &snapshot_with("0.0.0"))),
        "HouseRules 0.0.0 True FallbackVersion: HouseRules is shown as 0.0.0, because its JAR states no version."
    );
}

#[test]
fn plugin_status_gives_reason_for_unavailable_file() {
    for (category, reason) in [
        ("wrong-hash", "ChecksumMismatch"),
        ("not-a-plugin", "NotAPlugin"),
        ("private-address", "UrlRefused"),
        ("unreachable", "RepositoryUnavailable"),
    ] {
        let expected = format!("HouseRules.jar  False {reason}: it went wrong");
        assert_eq!(report_text(reported(&url_plugin(), &snapshot_with_error(category))), expected);
    }
}

#[test]
fn plugin_spec_older_than_schema_is_reported_invalid() {
    let without = plugin(&json!({"type": "url", "url": "https://example.org/x.jar"}));
    let reported = report_text(reported(&without, &snapshot_with("2.1")));
    assert!(reported.starts_with("x.jar  False Invalid: `spec.source.checksum` is missing"), "{reported}");
    let site = plugin(&json!({"type": "modrinth", "project": "warps"}));
    assert!(report_text(super::tests::reported(&site, &snapshot_with("2.1"))).starts_with("warps  False NotRead: "));
}

#[test]
fn plugin_window_that_never_opens_is_reported() {
    let with = |cron: &str| {
        let mut plugin = url_plugin();
        plugin.spec.windows = serde_json::from_value(json!([{"name": "night", "cron": cron}])).unwrap();
        report_text(reported(&plugin, &snapshot_with("2.1")))
    };
    assert!(with("0 3 * * 3").contains(" True "), "{}", with("0 3 * * 3"));
    let wrong = with("0 3 30 2 *");
    assert!(wrong.contains(" False Invalid: spec.windows[night].cron: `0 3 30 2 *` never occurs"), "{wrong}");
    assert!(wrong.ends_with("it uses its other windows and those of its servers"), "{wrong}");
}

#[test]
fn plugin_is_not_ready_while_servers_did_not_enable_it() {
    let of = |failed: usize| {
        let names = ["a", "b", "c", "d", "e", "f", "g"].into_iter().enumerate();
        let matched = names.map(|(at, name)| MatchedInstance { not_enabled: at < failed, ..matched(name) }).collect();
        let status = build_status(&url_plugin(), Some(&snapshot_with("2.1")), matched, at(), &PluginStatus::default());
        let condition = &status.conditions[0];
        format!("{} {}: {}", condition.status, condition.reason, condition.message)
    };
    assert_eq!(of(0), "True Available: HouseRules 2.1, according to its JAR.");
    assert_eq!(of(1), "False NotEnabled: Not enabled on a. See the log of the server.");
    assert_eq!(of(7), "False NotEnabled: Not enabled on a, b, c, d, e and 2 more. See the logs of the servers.");
}

#[test]
fn plugins_of_one_project_have_condition_that_names_which_applies() {
    let outranked = |matched: Vec<MatchedInstance>, snapshot: Option<&Snapshot>, before: &PluginStatus| {
        let status = build_status(&url_plugin(), snapshot, matched, at(), before);
        let found = status.conditions.into_iter().find(|condition| condition.type_ == "Outranked");
        found.map(|condition| format!("{} {}: {}", condition.status, condition.reason, condition.message))
    };
    let read = |matched| outranked(matched, Some(&snapshot_with("2.1")), &PluginStatus::default());
    assert_eq!(read(vec![instance("lobby", None)]), None);
    let own = "On lobby, this Plugin applies instead of others for the same project.";
    let shared = vec![instance("lobby", Some("rules"))];
    assert_eq!(read(shared), Some(format!("False AppliesInsteadOfOthers: {own}")));
    let other = "On arena and games, Plugin rules-arena applies instead of this one, for the same project.";
    let shared = || {
        let arena = Some("rules-arena");
        vec![
            instance("arena", arena),
            instance("games", arena),
            instance("hub", None),
            instance("lobby", Some("rules")),
        ]
    };
    assert_eq!(read(shared()), Some(format!("True OtherPluginApplies: {other} {own}")));
    // The status of an earlier process stays, but not what the servers say now.
    let before = build_status(&url_plugin(), Some(&snapshot_with("2.1")), shared(), at(), &PluginStatus::default());
    assert_eq!(outranked(vec![instance("lobby", None)], None, &before), None);
    let unread = outranked(vec![instance("arena", Some("rules-arena"))], None, &before).unwrap();
    assert!(unread.starts_with("True OtherPluginApplies: On arena, Plugin rules-arena"), "{unread}");
}
