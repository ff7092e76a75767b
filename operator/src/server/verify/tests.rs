use std::collections::BTreeMap;

use scheduler::protocol::damage::DamageTold;
use scheduler::protocol::loaded::AtStart::{ClosedBefore, NotAnyMore, NotOpened, Opened};
use scheduler::protocol::loaded::{AtStart, Loaded};
use scheduler::protocol::{File, FileHash, PlayerCount, PluginSeen, WorldSeen};

use super::*;

mod slow_start;

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

fn report(enabled: &[(&str, bool)]) -> AgentReport {
    let plugins: BTreeMap<_, _> = enabled
        .iter()
        .map(|(name, enabled)| ((*name).to_owned(), PluginSeen { version: None, enabled: *enabled }))
        .collect();
    AgentReport {
        at: at(100),
        pod_uid: "u".to_owned(),
        server: Server::Up {
            since: at(100),
            answered_at: at(100),
            minecraft: "1.21.10".to_owned(),
            build: Some(130),
            plugins: Some(plugins),
        },
        players: PlayerCount::Nobody,
        empty_since: None,
        lock: Some("abc".to_owned()),
        drift: Vec::new(),
        unmanaged: Vec::new(),
        unmanaged_jars: Vec::new(),
        replaced: Vec::new(),
        staged: Vec::new(),
        staging: None,
        world: WorldSeen { floor: None, whole: true },
        loaded: None,
        damage: None,
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
    Baseline { enabled: owned(enabled), unread: owned(unread), worlds: None, datapacks: None }
}

fn against(
    report: Option<&AgentReport>,
    before: Option<&FileSet>,
    baseline: &Baseline,
    now: i64,
) -> VerificationResult {
    let files = files(&["ViaVersion", "Shop"]);
    let expected = VerificationTarget {
        files: &files,
        before,
        baseline,
        settle: SignedDuration::from_secs(60),
        began: at(90),
        asked_from: at(90),
        process: ProcessExit::Stays,
        other_image: None,
    };
    prove(report.map(|report| said(report, now)).as_ref(), &expected, at(now))
}

/// The report of an agent whose clock equals the operator's.
fn said(report: &AgentReport, now: i64) -> AgentReport {
    AgentReport { at: at(now), ..report.clone() }
}

fn verdict(
    report: Option<&AgentReport>,
    before: Option<&FileSet>,
    enabled_before: &[&str],
    now: i64,
) -> VerificationResult {
    against(report, before, &baseline(enabled_before, &[]), now)
}

/// A report after an unreadable log.
fn without_names(mut report: AgentReport) -> AgentReport {
    if let Server::Up { plugins, .. } = &mut report.server {
        *plugins = None;
    }
    report
}

#[test]
fn verification_passes_after_settle_time() {
    // All other data is readable, so only the time is missing.
    let loaded = Loaded { worlds: Some(BTreeMap::new()), datapacks: Some(BTreeMap::new()), ..Loaded::default() };
    let good = AgentReport { loaded: Some(loaded), ..report(&[("ViaVersion", true), ("Shop", true)]) };
    assert_eq!(verdict(Some(&good), None, &[], 159).verdict, Verification::Pending { until: at(160) });
    assert_eq!(verdict(Some(&good), None, &[], 160).verdict, Verification::Passed);
    // A node's clock that is 20 seconds behind shortens nothing, and one that is ahead extends nothing.
    let (files, known) = (files(&["ViaVersion", "Shop"]), baseline(&[], &[]));
    let (settle, process) = (SignedDuration::from_secs(60), ProcessExit::Stays);
    let (began, other_image) = (at(90), None);
    let asked_from = began;
    let expected = VerificationTarget {
        files: &files,
        before: None,
        baseline: &known,
        settle,
        began,
        asked_from,
        process,
        other_image,
    };
    let seen = |ahead: i64, now: i64| prove(Some(&said(&good, now + ahead)), &expected, at(now)).verdict;
    assert_eq!([179, 180].map(|now| seen(-20, now)), [Verification::Pending { until: at(180) }, Verification::Passed]);
    assert_eq!([139, 140].map(|now| seen(20, now)), [Verification::Pending { until: at(140) }, Verification::Passed]);
}

#[test]
fn verification_fails_for_plugin_that_does_not_enable() {
    let bad = report(&[("ViaVersion", true), ("Shop", false)]);
    let proof = verdict(Some(&bad), None, &[], 160);
    assert_eq!(proof.verdict, Verification::Failed);
    assert_eq!(proof.problem, "Shop did not enable");
}

#[test]
fn verification_stays_unverified_for_new_damage_only() {
    let first = "Chunk [1, 2] is allocated, but stream is missing".to_owned();
    let told = |since| Some(DamageTold { since: at(since), last: at(120), lines: 2, first: first.clone() });
    let of = |since, shop| {
        let report = AgentReport { damage: told(since), ..report(&[("ViaVersion", true), ("Shop", shop)]) };
        verdict(Some(&report), None, &[], 160)
    };
    let proof = of(120, true);
    assert_eq!(proof.verdict, Verification::Unproven);
    assert_eq!(
        proof.problem,
        "the server's log tells of damage to its worlds: Chunk [1, 2] is allocated, but stream is missing"
    );
    assert_eq!(of(89, true).verdict, Verification::Passed, "the set is not to blame");
    assert_eq!(of(120, false).verdict, Verification::Failed, "what going back mends comes first");
}

#[test]
fn verification_tolerates_plugin_that_failed_before() {
    let bad = report(&[("ViaVersion", true), ("Shop", false)]);
    let with_shop = files(&["ViaVersion", "Shop"]);
    assert_eq!(verdict(Some(&bad), Some(&with_shop), &["ViaVersion"], 160).verdict, Verification::Passed);
    let without_shop = files(&["ViaVersion"]);
    assert_eq!(verdict(Some(&bad), Some(&without_shop), &["ViaVersion"], 160).verdict, Verification::Failed);
}

#[test]
fn verification_fails_at_once_for_other_version() {
    let mut other = report(&[("ViaVersion", true), ("Shop", true)]);
    if let Server::Up { minecraft, .. } = &mut other.server {
        "1.21.8".clone_into(minecraft);
    }
    assert_eq!(verdict(Some(&other), None, &[], 101).verdict, Verification::Failed);
}

#[test]
fn verification_ends_unverified_if_data_is_unreadable() {
    let unread = without_names(report(&[]));
    assert_eq!(verdict(Some(&unread), None, &[], 159).verdict, Verification::Pending { until: at(160) });
    assert_eq!(verdict(Some(&unread), None, &[], 160).verdict, Verification::Unproven);
    assert_eq!(verdict(None, None, &[], 90 + 15 * 60).verdict, Verification::Unproven);
    let mut down = report(&[]);
    down.server = Server::Absent;
    assert_eq!(verdict(Some(&down), None, &[], 90 + 15 * 60).verdict, Verification::Failed);
}

#[test]
fn baseline_survives_unreadable_log() {
    let (via, both) = (files(&["ViaVersion"]), files(&["ViaVersion", "Shop"]));
    let unread = without_names(report(&[]));
    let first = Baseline::default().next(Some(&report(&[("ViaVersion", true)])), Some(&via), None);
    assert_eq!(first, baseline(&["ViaVersion"], &[]));
    // The update with Shop is kept unverified, twice. The earlier state of ViaVersion remains valid.
    let kept = first.next(Some(&unread), Some(&both), Some(&via)).next(None, Some(&both), Some(&both));
    assert_eq!(kept, baseline(&["ViaVersion"], &["Shop"]));

    let red_via = report(&[("ViaVersion", false), ("Shop", true)]);
    let proof = against(Some(&red_via), Some(&both), &kept, 160);
    assert_eq!((proof.verdict, proof.problem.as_str()), (Verification::Failed, "ViaVersion did not enable"));
    let red_shop = report(&[("ViaVersion", true), ("Shop", false)]);
    assert_eq!(against(Some(&red_shop), Some(&both), &kept, 159).verdict, Verification::Pending { until: at(160) });
    let proof = against(Some(&red_shop), Some(&both), &kept, 160);
    assert_eq!(proof.verdict, Verification::Unproven);
    assert_eq!(proof.problem, "Shop did not enable, and nobody knows whether it did before");
    let read = kept.next(Some(&red_shop), Some(&both), Some(&both));
    assert_eq!(read, baseline(&["ViaVersion"], &[]), "as soon as it is read, all is known");
}

#[test]
fn verification_without_baseline_is_unverified_for_failed_plugin() {
    let both = files(&["ViaVersion", "Shop"]);
    let unread = Baseline::default().next(None, Some(&both), None);
    let red = report(&[("ViaVersion", true), ("Shop", false)]);
    // The record of an earlier operator after an unreadable log.
    for nothing in [Baseline::default(), unread] {
        assert_eq!(against(Some(&red), Some(&both), &nothing, 160).verdict, Verification::Unproven, "{nothing:?}");
    }
    let green = report(&[("ViaVersion", true), ("Shop", true)]);
    assert_eq!(against(Some(&green), Some(&both), &Baseline::default(), 160).verdict, Verification::Passed);
}

#[test]
fn verification_is_unverified_for_failed_unmanaged_jar() {
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
    assert_eq!(of(Some(true), true).verdict, Verification::Passed);
    for proof in [of(Some(false), true), of(None, true), of(Some(false), false)] {
        let problem = "My_Quests is no managed plugin, and is not enabled any more";
        assert_eq!((proof.verdict, proof.problem.as_str()), (Verification::Unproven, problem));
    }
    assert_eq!(of(None, false).verdict, Verification::Passed, "whoever takes their own JAR away means it");
    let red_before = baseline(&["Shop", "ViaVersion"], &[]);
    let still_red = report(&[good.as_slice(), &[("My_Quests", false)]].concat());
    assert_eq!(against(Some(&still_red), Some(&both), &red_before, 160).verdict, Verification::Passed);
}

#[test]
fn verification_never_passes_with_drifted_files() {
    let mut drifted = report(&[("ViaVersion", true), ("Shop", true)]);
    drifted.drift = vec!["plugins/Shop.jar".to_owned()];
    assert_eq!(verdict(Some(&drifted), None, &[], 159).verdict, Verification::Pending { until: at(160) });
    let proof = verdict(Some(&drifted), None, &[], 160);
    assert_eq!((proof.verdict, proof.problem.as_str()), (Verification::Unproven, "not as locked: plugins/Shop.jar"));
    let mut red = drifted.clone();
    if let Server::Up { plugins: Some(plugins), .. } = &mut red.server {
        plugins.insert("Shop".to_owned(), PluginSeen { version: None, enabled: false });
    }
    assert_eq!(verdict(Some(&red), None, &[], 160).verdict, Verification::Failed, "what is worse goes first");
}

#[test]
fn verification_never_passes_with_changed_image() {
    let (both, known) = (files(&["ViaVersion", "Shop"]), baseline(&["ViaVersion", "Shop"], &[]));
    let of = |other_image, shop, now| {
        let (before, settle, process) = (Some(&both), SignedDuration::from_secs(60), ProcessExit::Stays);
        let (began, asked_from) = (at(90), at(90));
        let expected = VerificationTarget {
            files: &both,
            before,
            baseline: &known,
            settle,
            began,
            asked_from,
            process,
            other_image,
        };
        let VerificationResult { verdict, problem } =
            prove(Some(&said(&report(&[("ViaVersion", true), ("Shop", shop)]), now)), &expected, at(now));
        (verdict, problem)
    };
    let other = "the pod runs image `game:2`, not `game:1`";
    assert_eq!(of(None, true, 160).0, Verification::Passed);
    assert_eq!(of(Some(other), true, 159).0, Verification::Pending { until: at(160) }, "it may be put right");
    assert_eq!(of(Some(other), true, 160), (Verification::Unproven, other.to_owned()));
    assert_eq!(of(Some(other), false, 160).0, Verification::Failed, "what is worse goes first");
}

const GOOD: [(&str, bool); 2] = [("ViaVersion", true), ("Shop", true)];

#[expect(clippy::unnecessary_wraps, reason = "as the report has it")]
fn at_start(names: &[(&str, AtStart)]) -> Option<BTreeMap<String, AtStart>> {
    Some(names.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect())
}

fn opened(names: &[&str]) -> Option<BTreeMap<String, AtStart>> {
    at_start(&names.iter().map(|name| (*name, Opened)).collect::<Vec<_>>())
}

fn with_loaded(
    plugins: &[(&str, bool)],
    worlds: Option<BTreeMap<String, AtStart>>,
    datapacks: Option<BTreeMap<String, AtStart>>,
) -> AgentReport {
    AgentReport { loaded: Some(Loaded { worlds, datapacks, ..Loaded::default() }), ..report(plugins) }
}

/// The baseline after a start that opened these.
fn known(worlds: &[&str], datapacks: &[&str]) -> Baseline {
    let before = with_loaded(&GOOD, opened(worlds), opened(datapacks));
    Baseline::default().next(Some(&before), None, None)
}

fn held_against(report: &AgentReport, known: &Baseline, now: i64) -> (Verification, String) {
    let both = files(&["ViaVersion", "Shop"]);
    let VerificationResult { verdict, problem } = against(Some(report), Some(&both), known, now);
    (verdict, problem)
}

#[test]
fn verification_fails_for_world_no_longer_opened() {
    let known = known(&["overworld", "creative", "hub"], &[]);
    let missing = |now: &[(&str, AtStart)], at| {
        let report = with_loaded(&GOOD, at_start(&[&[("overworld", Opened)], now].concat()), opened(&[]));
        held_against(&report, &known, at)
    };
    let one = [("creative", NotAnyMore), ("hub", Opened), ("new", Opened)];
    assert_eq!(missing(&one, 159).0, Verification::Pending { until: at(160) }, "a plugin may open it still");
    let (verdict, problem) = missing(&one, 160);
    assert_eq!(verdict, Verification::Failed);
    assert_eq!(
        problem,
        "world `creative` is not open any more although the files are there; \
         if that is meant, close what is to be closed while the server runs"
    );
    let (verdict, problem) = missing(&[("creative", NotAnyMore), ("hub", NotAnyMore)], 160);
    assert_eq!(verdict, Verification::Failed);
    assert!(problem.starts_with("worlds `creative`, `hub` are not open any more"), "{problem}");
    assert_eq!(missing(&[("creative", Opened), ("hub", Opened), ("new", Opened)], 160).0, Verification::Passed);
}

#[test]
fn verification_is_unverified_for_world_opened_by_one_start() {
    let known = known(&["overworld", "map7"], &["file/terrain.zip"]);
    let other_map = at_start(&[("overworld", Opened), ("map7", NotOpened), ("map8", Opened)]);
    let packs = at_start(&[("file/terrain.zip", NotOpened)]);
    let but = "any more, and no three starts in a row before are known to have had as much";
    let (verdict, problem) = held_against(&with_loaded(&GOOD, other_map, packs), &known, 160);
    assert_eq!(verdict, Verification::Unproven);
    assert_eq!(problem, format!("world `map7` is not open {but}; datapack `file/terrain.zip` is not enabled {but}"));
}

#[test]
fn verification_skips_too_many_worlds() {
    let known = known(&["overworld", "creative"], &["file/terrain.zip"]);
    let loaded = Loaded { too_many_worlds: true, too_many_datapacks: true, ..Loaded::default() };
    let many = AgentReport { loaded: Some(loaded), ..report(&GOOD) };
    assert_eq!(held_against(&many, &known, 160), (Verification::Passed, String::new()));
    let next = known.next(Some(&many), None, None);
    assert_eq!((&next.worlds, &next.datapacks), (&None, &None));
    assert_eq!(held_against(&report(&GOOD), &next, 160).0, Verification::Passed);
}

#[test]
fn verification_accepts_closed_or_renamed_world() {
    let known = known(&["overworld", "creative", "hub"], &[]);
    let now = [("overworld", Opened), ("creative", ClosedBefore), ("myplugin:hub", Opened)];
    let report = with_loaded(&GOOD, at_start(&now), opened(&[]));
    assert_eq!(held_against(&report, &known, 160), (Verification::Passed, String::new()));
}

#[test]
fn verification_is_unverified_for_world_rollback_cannot_restore() {
    let gone = with_loaded(&GOOD, opened(&["overworld"]), opened(&[]));
    let (verdict, problem) = held_against(&gone, &known(&["overworld", "creative"], &[]), 160);
    assert_eq!(verdict, Verification::Unproven);
    assert_eq!(
        problem,
        "world `creative` is not open any more and the files are not on the volume; a copy may have them"
    );
    let known = known(&["overworld", "the_nether"], &[]);
    let switched = with_loaded(&GOOD, at_start(&[("overworld", Opened), ("the_nether", NotAnyMore)]), opened(&[]));
    let (verdict, problem) = held_against(&switched, &known, 160);
    assert_eq!(verdict, Verification::Unproven);
    assert!(problem.starts_with("world `the_nether` is not open any more; see `allow-nether`"), "{problem}");
}

#[test]
fn verification_is_unverified_for_world_of_removed_plugin() {
    let mut known = known(&["overworld", "creative"], &[]);
    known.enabled.push("Multiverse-Core".to_owned());
    let now = at_start(&[("overworld", Opened), ("creative", NotAnyMore)]);
    let (verdict, problem) = held_against(&with_loaded(&GOOD, now.clone(), opened(&[])), &known, 160);
    assert_eq!(verdict, Verification::Unproven);
    assert_eq!(
        problem,
        "world `creative` is not open any more, and neither is Multiverse-Core there, which may have opened it"
    );
    let with_it = [&GOOD[..], &[("Multiverse-Core", true)]].concat();
    assert_eq!(held_against(&with_loaded(&with_it, now, opened(&[])), &known, 160).0, Verification::Failed);
}

#[test]
fn verification_fails_for_datapack_no_longer_enabled() {
    let known = known(&[], &["file/skylands", "file/terrain.zip"]);
    let now = |skylands: &[(&str, AtStart)]| {
        let datapacks = at_start(&[skylands, &[("file/terrain.zip", Opened), ("file/new.zip", Opened)]].concat());
        held_against(&with_loaded(&GOOD, opened(&[]), datapacks), &known, 160)
    };
    let (verdict, problem) = now(&[("file/skylands", NotAnyMore)]);
    assert_eq!(verdict, Verification::Failed);
    assert_eq!(
        problem,
        "datapack `file/skylands` is not enabled any more although the file is there; the server's log says why"
    );
    for fine in [&[("file/skylands", Opened)][..], &[("file/skylands", ClosedBefore)], &[]] {
        assert_eq!(now(fine), (Verification::Passed, String::new()), "{fine:?}");
    }
}

#[test]
fn verification_is_unverified_for_unreadable_known_worlds() {
    let mut unread = report(&GOOD);
    let known = known(&["overworld"], &["file/terrain.zip"]);
    assert_eq!(
        held_against(&unread, &baseline(&["ViaVersion", "Shop"], &[]), 160).0,
        Verification::Passed,
        "as an older agent"
    );
    let both = "which worlds are open could not be read, and which datapacks are enabled could not be read";
    assert_eq!(held_against(&unread, &known, 160), (Verification::Unproven, both.to_owned()));
    unread.loaded = Some(Loaded { worlds: opened(&["overworld"]), ..Loaded::default() });
    assert_eq!(held_against(&unread, &known, 160).0, Verification::Unproven);

    let files = files(&["ViaVersion", "Shop"]);
    let settle = SignedDuration::from_secs(5);
    let expected = VerificationTarget {
        files: &files,
        before: Some(&files),
        baseline: &known,
        settle,
        began: at(90),
        asked_from: at(90),
        process: ProcessExit::Stays,
        other_image: None,
    };
    let soon = prove(Some(&said(&unread, 110)), &expected, at(110));
    assert_eq!(soon.verdict, Verification::Pending { until: at(160) }, "they are read a while after the plugins");
    let nothing = Baseline::default();
    let first = prove(
        Some(&said(&report(&GOOD), 110)),
        &VerificationTarget { baseline: &nothing, before: None, ..expected },
        at(110),
    );
    assert_eq!(first.verdict, Verification::Pending { until: at(160) }, "the next proof is to know of them");
}

#[test]
fn baseline_keeps_worlds_until_read_again() {
    let first = known(&["overworld", "creative"], &["file/terrain.zip"]);
    assert_eq!(first.next(None, None, None), Baseline { enabled: first.enabled.clone(), ..first.clone() });
    let half = with_loaded(&GOOD, at_start(&[("overworld", Opened), ("creative", NotOpened)]), None);
    let second = first.next(Some(&half), None, None);
    assert_eq!(second.worlds, Some(vec!["overworld".to_owned()]), "it was told, and is told once");
    assert_eq!(second.datapacks, first.datapacks);
}

#[test]
fn verification_message_names_few_of_many_worlds() {
    let names: Vec<String> = (1..=8).map(|number| format!("w{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let now = at_start(&names.iter().map(|name| (*name, NotAnyMore)).collect::<Vec<_>>());
    let (_, problem) = held_against(&with_loaded(&GOOD, now, opened(&[])), &known(&names, &[]), 160);
    assert!(problem.starts_with("worlds `w1`, `w2`, `w3`, `w4`, `w5` and 3 more are not open"), "{problem}");
}
