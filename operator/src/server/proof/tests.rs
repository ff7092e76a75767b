use std::collections::BTreeMap;

use scheduler::protocol::{File, FileHash, Players, WorldSeen};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn files(plugins: &[&str]) -> FileSet {
    let file = |path: &str, plugin: Option<&str>| File {
        path: path.to_owned(),
        hash: FileHash("sha256:00".to_owned()),
        size: None,
        url: String::new(),
        plugin: plugin.map(str::to_owned),
        provides: Vec::new(),
    };
    FileSet {
        lock: "abc".to_owned(),
        minecraft: "1.21.10".to_owned(),
        build: 130,
        data_version: Some(4556),
        server: file("paper.jar", None),
        support: Vec::new(),
        plugins: plugins.iter().map(|name| file(&format!("plugins/{name}.jar"), Some(name))).collect(),
    }
}

fn report(enabled: &[(&str, bool)]) -> Report {
    let plugins: BTreeMap<_, _> = enabled
        .iter()
        .map(|(name, enabled)| ((*name).to_owned(), PluginSeen { version: None, enabled: *enabled }))
        .collect();
    Report {
        at: at(100),
        pod_uid: "u".to_owned(),
        server: Server::Up {
            since: at(100),
            answered_at: at(100),
            minecraft: "1.21.10".to_owned(),
            build: Some(130),
            plugins: Some(plugins),
        },
        players: Players::Nobody,
        empty_since: None,
        lock: Some("abc".to_owned()),
        drift: Vec::new(),
        unmanaged: Vec::new(),
        unmanaged_jars: Vec::new(),
        replaced: Vec::new(),
        staged: Vec::new(),
        staging: None,
        world: WorldSeen { floor: None, whole: true },
        last_stop: None,
        rcon_exposed: false,
        announced: None,
        backups: None,
        plugin_data: None,
        new_volume: None,
    }
}

fn verdict(report: Option<&Report>, before: Option<&FileSet>, enabled_before: &[&str], now: i64) -> Proof {
    let enabled_before: Vec<String> = enabled_before.iter().map(|name| (*name).to_owned()).collect();
    let files = files(&["ViaVersion", "Shop"]);
    let expected = Expected {
        files: &files,
        before,
        enabled_before: &enabled_before,
        settle: SignedDuration::from_secs(60),
        began: at(90),
    };
    prove(report, &expected, at(now))
}

#[test]
fn a_server_that_runs_the_set_for_the_settling_time_has_passed_and_not_earlier() {
    let good = report(&[("ViaVersion", true), ("Shop", true)]);
    assert_eq!(verdict(Some(&good), None, &[], 159).verdict, Verdict::Pending { until: at(160) });
    assert_eq!(verdict(Some(&good), None, &[], 160).verdict, Verdict::Passed);
}

#[test]
fn a_plugin_that_does_not_enable_fails_the_proof_and_is_named() {
    let bad = report(&[("ViaVersion", true), ("Shop", false)]);
    let proof = verdict(Some(&bad), None, &[], 160);
    assert_eq!(proof.verdict, Verdict::Failed);
    assert_eq!(proof.problem, "Shop did not enable");
}

#[test]
fn a_plugin_that_was_red_before_stays_a_warning_and_a_new_one_must_be_green() {
    let bad = report(&[("ViaVersion", true), ("Shop", false)]);
    let with_shop = files(&["ViaVersion", "Shop"]);
    assert_eq!(verdict(Some(&bad), Some(&with_shop), &["ViaVersion"], 160).verdict, Verdict::Passed);
    let without_shop = files(&["ViaVersion"]);
    assert_eq!(verdict(Some(&bad), Some(&without_shop), &["ViaVersion"], 160).verdict, Verdict::Failed);
}

#[test]
fn another_version_than_the_lock_fails_at_once() {
    let mut other = report(&[("ViaVersion", true), ("Shop", true)]);
    if let Server::Up { minecraft, .. } = &mut other.server {
        "1.21.8".clone_into(minecraft);
    }
    assert_eq!(verdict(Some(&other), None, &[], 101).verdict, Verdict::Failed);
}

#[test]
fn what_cannot_be_read_is_unproven_and_every_proof_ends() {
    let mut unread = report(&[]);
    if let Server::Up { plugins, .. } = &mut unread.server {
        *plugins = None;
    }
    assert_eq!(verdict(Some(&unread), None, &[], 159).verdict, Verdict::Pending { until: at(160) });
    assert_eq!(verdict(Some(&unread), None, &[], 160).verdict, Verdict::Unproven);
    assert_eq!(verdict(None, None, &[], 90 + 15 * 60).verdict, Verdict::Unproven);
    let mut down = report(&[]);
    down.server = Server::Absent;
    assert_eq!(verdict(Some(&down), None, &[], 90 + 15 * 60).verdict, Verdict::Failed);
}
