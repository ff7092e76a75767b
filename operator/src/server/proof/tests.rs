use std::collections::BTreeMap;

use scheduler::protocol::{File, FileHash, Players, PluginSeen, WorldSeen};

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

fn baseline(enabled: &[&str], unread: &[&str]) -> Baseline {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Baseline { enabled: owned(enabled), unread: owned(unread) }
}

fn against(report: Option<&Report>, before: Option<&FileSet>, baseline: &Baseline, now: i64) -> Proof {
    let files = files(&["ViaVersion", "Shop"]);
    let expected = Expected { files: &files, before, baseline, settle: SignedDuration::from_secs(60), began: at(90) };
    prove(report, &expected, at(now))
}

fn verdict(report: Option<&Report>, before: Option<&FileSet>, enabled_before: &[&str], now: i64) -> Proof {
    against(report, before, &baseline(enabled_before, &[]), now)
}

/// The log could not be read.
fn without_names(mut report: Report) -> Report {
    if let Server::Up { plugins, .. } = &mut report.server {
        *plugins = None;
    }
    report
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
    let unread = without_names(report(&[]));
    assert_eq!(verdict(Some(&unread), None, &[], 159).verdict, Verdict::Pending { until: at(160) });
    assert_eq!(verdict(Some(&unread), None, &[], 160).verdict, Verdict::Unproven);
    assert_eq!(verdict(None, None, &[], 90 + 15 * 60).verdict, Verdict::Unproven);
    let mut down = report(&[]);
    down.server = Server::Absent;
    assert_eq!(verdict(Some(&down), None, &[], 90 + 15 * 60).verdict, Verdict::Failed);
}

#[test]
fn a_log_that_could_not_be_read_once_hides_no_red_plugin_from_the_proofs_after_it() {
    let (via, both) = (files(&["ViaVersion"]), files(&["ViaVersion", "Shop"]));
    let unread = without_names(report(&[]));
    let first = Baseline::default().next(Some(&report(&[("ViaVersion", true)])), Some(&via), None);
    assert_eq!(first, baseline(&["ViaVersion"], &[]));
    // The update that brings Shop is kept unproven, twice: what was known of ViaVersion goes on counting.
    let kept = first.next(Some(&unread), Some(&both), Some(&via)).next(None, Some(&both), Some(&both));
    assert_eq!(kept, baseline(&["ViaVersion"], &["Shop"]));

    let red_via = report(&[("ViaVersion", false), ("Shop", true)]);
    let proof = against(Some(&red_via), Some(&both), &kept, 160);
    assert_eq!((proof.verdict, proof.problem.as_str()), (Verdict::Failed, "ViaVersion did not enable"));
    let red_shop = report(&[("ViaVersion", true), ("Shop", false)]);
    assert_eq!(against(Some(&red_shop), Some(&both), &kept, 159).verdict, Verdict::Pending { until: at(160) });
    let proof = against(Some(&red_shop), Some(&both), &kept, 160);
    assert_eq!(proof.verdict, Verdict::Unproven);
    assert_eq!(proof.problem, "Shop did not enable, and nobody knows whether it did before");
    let read = kept.next(Some(&red_shop), Some(&both), Some(&both));
    assert_eq!(read, baseline(&["ViaVersion"], &[]), "as soon as it is read, all is known");
}

#[test]
fn where_nothing_is_known_of_before_a_red_plugin_leaves_the_set_unproven() {
    let both = files(&["ViaVersion", "Shop"]);
    let unread = Baseline::default().next(None, Some(&both), None);
    let red = report(&[("ViaVersion", true), ("Shop", false)]);
    // What an operator before this one wrote after a log that could not be read.
    for nothing in [Baseline::default(), unread] {
        assert_eq!(against(Some(&red), Some(&both), &nothing, 160).verdict, Verdict::Unproven, "{nothing:?}");
    }
    let green = report(&[("ViaVersion", true), ("Shop", true)]);
    assert_eq!(against(Some(&green), Some(&both), &Baseline::default(), 160).verdict, Verdict::Passed);
}

#[test]
fn a_jar_of_ones_own_that_was_enabled_is_still_there_and_is_red_now_leaves_the_set_unproven() {
    let both = files(&["ViaVersion", "Shop"]);
    let known = baseline(&["My_Quests", "Shop", "ViaVersion"], &[]);
    let good = [("ViaVersion", true), ("Shop", true)];
    let of = |quests: Option<bool>, lies_there: bool| {
        let mut report = report(&[good.as_slice(), quests.map(|on| ("My_Quests", on)).as_slice()].concat());
        let jar =
            || serde_json::from_value(serde_json::json!({"file": "quests.jar", "sha256": "00", "name": "my quests"}));
        report.unmanaged_jars = lies_there.then(|| jar().unwrap()).into_iter().collect();
        against(Some(&report), Some(&both), &known, 160)
    };
    assert_eq!(of(Some(true), true).verdict, Verdict::Passed);
    for proof in [of(Some(false), true), of(None, true), of(Some(false), false)] {
        let problem = "My_Quests is no managed plugin, and is not enabled any more";
        assert_eq!((proof.verdict, proof.problem.as_str()), (Verdict::Unproven, problem));
    }
    assert_eq!(of(None, false).verdict, Verdict::Passed, "whoever takes their own JAR away means it");
    let red_before = baseline(&["Shop", "ViaVersion"], &[]);
    let still_red = report(&[good.as_slice(), &[("My_Quests", false)]].concat());
    assert_eq!(against(Some(&still_red), Some(&both), &red_before, 160).verdict, Verdict::Passed);
}

#[test]
fn files_that_are_not_as_locked_are_never_called_proven() {
    let mut drifted = report(&[("ViaVersion", true), ("Shop", true)]);
    drifted.drift = vec!["plugins/Shop.jar".to_owned()];
    assert_eq!(verdict(Some(&drifted), None, &[], 159).verdict, Verdict::Pending { until: at(160) });
    let proof = verdict(Some(&drifted), None, &[], 160);
    assert_eq!((proof.verdict, proof.problem.as_str()), (Verdict::Unproven, "not as locked: plugins/Shop.jar"));
    let mut red = drifted.clone();
    if let Server::Up { plugins: Some(plugins), .. } = &mut red.server {
        plugins.insert("Shop".to_owned(), PluginSeen { version: None, enabled: false });
    }
    assert_eq!(verdict(Some(&red), None, &[], 160).verdict, Verdict::Failed, "what is worse goes first");
}
