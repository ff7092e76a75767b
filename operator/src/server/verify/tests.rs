use std::collections::BTreeMap;

use agent_api::loaded_content::AtStart::{ClosedBefore, NotAnyMore, NotOpened, Opened};
use agent_api::loaded_content::{AtStart, Loaded};
use agent_api::world_damage::DamageReport;
use agent_api::{File, FileHash, PlayerCount, PluginReport, WorldReport};

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
        .map(|(name, enabled)| ((*name).to_owned(), PluginReport { version: None, enabled: *enabled }))
        .collect();
    AgentReport {
        at: at(100),
        pod_uid: "u".to_owned(),
        server: Server::Up {
            since: at(100),
            answered_at: at(100),
            hangs_since: None,
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
        world: WorldReport { floor: None, whole: true },
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

fn verify_against(
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
        reachable_from: at(90),
        process: ProcessState::Running,
        other_image: None,
        bundled: &[],
    };
    verify(report.map(|report| at_operator_clock(report, now)).as_ref(), &expected, at(now))
}

/// The report of an agent whose clock equals the operator's.
fn at_operator_clock(report: &AgentReport, now: i64) -> AgentReport {
    AgentReport { at: at(now), ..report.clone() }
}

fn result_for(
    report: Option<&AgentReport>,
    before: Option<&FileSet>,
    enabled_before: &[&str],
    now: i64,
) -> VerificationResult {
    verify_against(report, before, &baseline(enabled_before, &[]), now)
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
    assert_eq!(result_for(Some(&good), None, &[], 159).result, Verification::Pending { until: at(160) });
    assert_eq!(result_for(Some(&good), None, &[], 160).result, Verification::Passed);
    // A node's clock that is 20 seconds behind shortens nothing, and one that is ahead extends nothing.
    let (files, earlier_baseline) = (files(&["ViaVersion", "Shop"]), baseline(&[], &[]));
    let (settle, process) = (SignedDuration::from_secs(60), ProcessState::Running);
    let (began, other_image) = (at(90), None);
    let reachable_from = began;
    let expected = VerificationTarget {
        files: &files,
        before: None,
        baseline: &earlier_baseline,
        settle,
        began,
        reachable_from,
        process,
        other_image,
        bundled: &[],
    };
    let result_at =
        |ahead: i64, now: i64| verify(Some(&at_operator_clock(&good, now + ahead)), &expected, at(now)).result;
    assert_eq!(
        [179, 180].map(|now| result_at(-20, now)),
        [Verification::Pending { until: at(180) }, Verification::Passed]
    );
    assert_eq!(
        [139, 140].map(|now| result_at(20, now)),
        [Verification::Pending { until: at(140) }, Verification::Passed]
    );
}

#[test]
fn verification_fails_for_plugin_that_does_not_enable() {
    let bad = report(&[("ViaVersion", true), ("Shop", false)]);
    let result = result_for(Some(&bad), Some(&files(&["ViaVersion"])), &["ViaVersion"], 160);
    assert_eq!(result.result, Verification::Failed);
    assert_eq!(result.problem, "Shop did not enable");
}

#[test]
fn first_start_with_failed_plugin_is_kept_and_never_verified() {
    let both = files(&["ViaVersion", "Shop"]);
    // The list of Paper has no plugin that it did not load.
    for plugins in [vec![("ViaVersion", true), ("Shop", false)], vec![("ViaVersion", true)]] {
        let bad = report(&plugins);
        let first = result_for(Some(&bad), None, &[], 160);
        assert_eq!((first.result, first.problem.as_str()), (Verification::Inconclusive, "Shop did not enable"));
        // The set is stable now, and its own baseline is all that the next passes and restarts compare with.
        let stable = Baseline::default().next(Some(&bad), Some(&both), None);
        for now in [161, 100_000] {
            let later = verify_against(Some(&bad), Some(&both), &stable, now);
            assert_eq!(later, first, "{now}");
        }
        let good = report(&[("ViaVersion", true), ("Shop", true)]);
        assert_eq!(verify_against(Some(&good), Some(&both), &stable, 161).result, Verification::Passed);
    }
}

#[test]
fn verification_stays_unverified_for_new_damage_only() {
    let first = "Chunk [1, 2] is allocated, but stream is missing".to_owned();
    let damage = |since| Some(DamageReport { since: at(since), last: at(120), lines: 2, first: first.clone() });
    let of = |since, shop| {
        let report = AgentReport { damage: damage(since), ..report(&[("ViaVersion", true), ("Shop", shop)]) };
        result_for(Some(&report), Some(&files(&["ViaVersion"])), &["ViaVersion"], 160)
    };
    let result = of(120, true);
    assert_eq!(result.result, Verification::Inconclusive);
    assert_eq!(
        result.problem,
        "the server's log reports damage to its worlds: Chunk [1, 2] is allocated, but stream is missing"
    );
    assert_eq!(of(89, true).result, Verification::Passed, "damage from before this start does not count");
    assert_eq!(of(120, false).result, Verification::Failed, "a failure that a roll-back fixes has priority");
}

#[test]
fn update_is_kept_unverified_for_plugin_that_failed_before() {
    let bad = report(&[("ViaVersion", true), ("Shop", false)]);
    let with_shop = files(&["ViaVersion", "Shop"]);
    let kept = result_for(Some(&bad), Some(&with_shop), &["ViaVersion"], 160);
    assert_eq!((kept.result, kept.problem.as_str()), (Verification::Inconclusive, "Shop did not enable"));
    let without_shop = files(&["ViaVersion"]);
    assert_eq!(result_for(Some(&bad), Some(&without_shop), &["ViaVersion"], 160).result, Verification::Failed);
}

#[test]
fn verification_fails_at_once_for_other_version() {
    let mut other = report(&[("ViaVersion", true), ("Shop", true)]);
    if let Server::Up { minecraft, .. } = &mut other.server {
        "1.21.8".clone_into(minecraft);
    }
    assert_eq!(result_for(Some(&other), None, &[], 101).result, Verification::Failed);
}

#[test]
fn verification_ends_unverified_if_data_is_unreadable() {
    let unread = without_names(report(&[]));
    assert_eq!(result_for(Some(&unread), None, &[], 159).result, Verification::Pending { until: at(160) });
    assert_eq!(result_for(Some(&unread), None, &[], 160).result, Verification::Inconclusive);
    assert_eq!(result_for(None, None, &[], 90 + 15 * 60).result, Verification::Inconclusive);
    let mut down = report(&[]);
    down.server = Server::Absent;
    assert_eq!(result_for(Some(&down), None, &[], 90 + 15 * 60).result, Verification::Failed);
}

#[test]
fn baseline_survives_unreadable_log() {
    let (via, both) = (files(&["ViaVersion"]), files(&["ViaVersion", "Shop"]));
    let unread = without_names(report(&[]));
    let first = Baseline::default().next(Some(&report(&[("ViaVersion", true)])), Some(&via), None);
    assert_eq!(first, baseline(&["ViaVersion"], &[]));
    // The update with Shop is kept unverified, twice. The earlier state of ViaVersion remains valid.
    let next = first.next(Some(&unread), Some(&both), Some(&via)).next(None, Some(&both), Some(&both));
    assert_eq!(next, baseline(&["ViaVersion"], &["Shop"]));

    let red_via = report(&[("ViaVersion", false), ("Shop", true)]);
    let result = verify_against(Some(&red_via), Some(&both), &next, 160);
    assert_eq!((result.result, result.problem.as_str()), (Verification::Failed, "ViaVersion did not enable"));
    let red_shop = report(&[("ViaVersion", true), ("Shop", false)]);
    assert_eq!(
        verify_against(Some(&red_shop), Some(&both), &next, 159).result,
        Verification::Pending { until: at(160) }
    );
    let result = verify_against(Some(&red_shop), Some(&both), &next, 160);
    assert_eq!(result.result, Verification::Inconclusive);
    assert_eq!(result.problem, "Shop did not enable, and it is unknown whether it did before");
    let read = next.next(Some(&red_shop), Some(&both), Some(&both));
    assert_eq!(read, baseline(&["ViaVersion"], &[]), "a readable report completes the baseline");
}

#[test]
fn verification_without_baseline_is_unverified_for_failed_plugin() {
    let both = files(&["ViaVersion", "Shop"]);
    let unread = Baseline::default().next(None, Some(&both), None);
    let red = report(&[("ViaVersion", true), ("Shop", false)]);
    // The record of an earlier operator after an unreadable log.
    for nothing in [Baseline::default(), unread] {
        assert_eq!(
            verify_against(Some(&red), Some(&both), &nothing, 160).result,
            Verification::Inconclusive,
            "{nothing:?}"
        );
    }
    let green = report(&[("ViaVersion", true), ("Shop", true)]);
    assert_eq!(verify_against(Some(&green), Some(&both), &Baseline::default(), 160).result, Verification::Passed);
}

#[test]
fn verification_is_unverified_for_failed_unmanaged_jar() {
    let both = files(&["ViaVersion", "Shop"]);
    let earlier_baseline = baseline(&["My_Quests", "Shop", "ViaVersion"], &[]);
    let good = [("ViaVersion", true), ("Shop", true)];
    let of = |quests: Option<bool>, is_present: bool| {
        let mut report = report(&[good.as_slice(), quests.map(|on| ("My_Quests", on)).as_slice()].concat());
        let jar =
            || serde_json::from_value(serde_json::json!({"file": "quests.jar", "sha256": "00", "name": "my quests"}));
        report.unmanaged_jars = is_present.then(|| jar().unwrap()).into_iter().collect();
        verify_against(Some(&report), Some(&both), &earlier_baseline, 160)
    };
    assert_eq!(of(Some(true), true).result, Verification::Passed);
    for result in [of(Some(false), true), of(None, true), of(Some(false), false)] {
        let problem = "My_Quests is unmanaged and no longer enabled";
        assert_eq!((result.result, result.problem.as_str()), (Verification::Inconclusive, problem));
    }
    assert_eq!(of(None, false).result, Verification::Passed, "a removed unmanaged JAR is intended");
    let red_before = baseline(&["Shop", "ViaVersion"], &[]);
    let still_red = report(&[good.as_slice(), &[("My_Quests", false)]].concat());
    assert_eq!(verify_against(Some(&still_red), Some(&both), &red_before, 160).result, Verification::Passed);
}

#[test]
fn verification_never_passes_with_drifted_files() {
    let mut drifted = report(&[("ViaVersion", true), ("Shop", true)]);
    drifted.drift = vec!["plugins/Shop.jar".to_owned()];
    assert_eq!(result_for(Some(&drifted), None, &[], 159).result, Verification::Pending { until: at(160) });
    let result = result_for(Some(&drifted), None, &[], 160);
    assert_eq!(
        (result.result, result.problem.as_str()),
        (Verification::Inconclusive, "these files differ from the lock: plugins/Shop.jar")
    );
    let mut red = drifted.clone();
    if let Server::Up { plugins: Some(plugins), .. } = &mut red.server {
        plugins.insert("Shop".to_owned(), PluginReport { version: None, enabled: false });
    }
    let before = files(&["ViaVersion"]);
    let failed = result_for(Some(&red), Some(&before), &["ViaVersion"], 160);
    assert_eq!(failed.result, Verification::Failed, "a failure has priority");
}

#[test]
fn verification_never_passes_with_changed_image() {
    let (both, earlier_baseline) = (files(&["ViaVersion", "Shop"]), baseline(&["ViaVersion", "Shop"], &[]));
    let of = |other_image, shop, now| {
        let (before, settle, process) = (Some(&both), SignedDuration::from_secs(60), ProcessState::Running);
        let (began, reachable_from) = (at(90), at(90));
        let expected = VerificationTarget {
            files: &both,
            before,
            baseline: &earlier_baseline,
            settle,
            began,
            reachable_from,
            process,
            other_image,
            bundled: &[],
        };
        let VerificationResult { result, problem } =
            verify(Some(&at_operator_clock(&report(&[("ViaVersion", true), ("Shop", shop)]), now)), &expected, at(now));
        (result, problem)
    };
    let other = "the pod runs image `game:2`, not `game:1`";
    assert_eq!(of(None, true, 160).0, Verification::Passed);
    assert_eq!(of(Some(other), true, 159).0, Verification::Pending { until: at(160) }, "the image may be corrected");
    assert_eq!(of(Some(other), true, 160), (Verification::Inconclusive, other.to_owned()));
    assert_eq!(of(Some(other), false, 160).0, Verification::Failed, "a failure has priority");
}

const GOOD: [(&str, bool); 2] = [("ViaVersion", true), ("Shop", true)];

#[expect(clippy::unnecessary_wraps, reason = "the report has an `Option`")]
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
fn opened_before(worlds: &[&str], datapacks: &[&str]) -> Baseline {
    let before = with_loaded(&GOOD, opened(worlds), opened(datapacks));
    Baseline::default().next(Some(&before), None, None)
}

fn result_against(report: &AgentReport, earlier_baseline: &Baseline, now: i64) -> (Verification, String) {
    let both = files(&["ViaVersion", "Shop"]);
    let VerificationResult { result, problem } = verify_against(Some(report), Some(&both), earlier_baseline, now);
    (result, problem)
}

#[test]
fn verification_fails_for_world_no_longer_opened() {
    let earlier_baseline = opened_before(&["overworld", "creative", "hub"], &[]);
    let missing = |now: &[(&str, AtStart)], at| {
        let report = with_loaded(&GOOD, at_start(&[&[("overworld", Opened)], now].concat()), opened(&[]));
        result_against(&report, &earlier_baseline, at)
    };
    let one = [("creative", NotAnyMore), ("hub", Opened), ("new", Opened)];
    assert_eq!(missing(&one, 159).0, Verification::Pending { until: at(160) }, "a plugin may still open it");
    let (result, problem) = missing(&one, 160);
    assert_eq!(result, Verification::Failed);
    assert_eq!(
        problem,
        "world `creative` is no longer open although the files exist. If that is intended, close them while the \
        server runs"
    );
    let (result, problem) = missing(&[("creative", NotAnyMore), ("hub", NotAnyMore)], 160);
    assert_eq!(result, Verification::Failed);
    assert!(problem.starts_with("worlds `creative`, `hub` are no longer open"), "{problem}");
    assert_eq!(missing(&[("creative", Opened), ("hub", Opened), ("new", Opened)], 160).0, Verification::Passed);
}

#[test]
fn verification_is_unverified_for_world_opened_by_one_start() {
    let earlier_baseline = opened_before(&["overworld", "map7"], &["file/terrain.zip"]);
    let other_map = at_start(&[("overworld", Opened), ("map7", NotOpened), ("map8", Opened)]);
    let packs = at_start(&[("file/terrain.zip", NotOpened)]);
    let but = "but no three earlier starts in a row are known to have had it";
    let (result, problem) = result_against(&with_loaded(&GOOD, other_map, packs), &earlier_baseline, 160);
    assert_eq!(result, Verification::Inconclusive);
    assert_eq!(
        problem,
        format!(
            "world `map7` is no longer open, {but}; datapack `file/terrain.zip` is no longer \
    enabled, {but}"
        )
    );
}

#[test]
fn verification_skips_too_many_worlds() {
    let earlier_baseline = opened_before(&["overworld", "creative"], &["file/terrain.zip"]);
    let loaded = Loaded { too_many_worlds: true, too_many_datapacks: true, ..Loaded::default() };
    let many = AgentReport { loaded: Some(loaded), ..report(&GOOD) };
    assert_eq!(result_against(&many, &earlier_baseline, 160), (Verification::Passed, String::new()));
    let next = earlier_baseline.next(Some(&many), None, None);
    assert_eq!((&next.worlds, &next.datapacks), (&None, &None));
    assert_eq!(result_against(&report(&GOOD), &next, 160).0, Verification::Passed);
}

#[test]
fn verification_accepts_closed_or_renamed_world() {
    let earlier_baseline = opened_before(&["overworld", "creative", "hub"], &[]);
    let now = [("overworld", Opened), ("creative", ClosedBefore), ("myplugin:hub", Opened)];
    let report = with_loaded(&GOOD, at_start(&now), opened(&[]));
    assert_eq!(result_against(&report, &earlier_baseline, 160), (Verification::Passed, String::new()));
}

#[test]
fn verification_is_unverified_for_world_rollback_cannot_restore() {
    let missing = with_loaded(&GOOD, opened(&["overworld"]), opened(&[]));
    let (result, problem) = result_against(&missing, &opened_before(&["overworld", "creative"], &[]), 160);
    assert_eq!(result, Verification::Inconclusive);
    assert_eq!(
        problem,
        "world `creative` is no longer open, and the files are not on the volume. A backup may have them"
    );
    let earlier_baseline = opened_before(&["overworld", "the_nether"], &[]);
    let switched = with_loaded(&GOOD, at_start(&[("overworld", Opened), ("the_nether", NotAnyMore)]), opened(&[]));
    let (result, problem) = result_against(&switched, &earlier_baseline, 160);
    assert_eq!(result, Verification::Inconclusive);
    assert!(problem.starts_with("world `the_nether` is no longer open. See `allow-nether`"), "{problem}");
}

#[test]
fn verification_is_unverified_for_world_of_removed_plugin() {
    let mut earlier_baseline = opened_before(&["overworld", "creative"], &[]);
    earlier_baseline.enabled.push("Multiverse-Core".to_owned());
    let now = at_start(&[("overworld", Opened), ("creative", NotAnyMore)]);
    let (result, problem) = result_against(&with_loaded(&GOOD, now.clone(), opened(&[])), &earlier_baseline, 160);
    assert_eq!(result, Verification::Inconclusive);
    assert_eq!(
        problem,
        "world `creative` is no longer open, and Multiverse-Core, which may have opened it, is not installed"
    );
    let with_plugin = [&GOOD[..], &[("Multiverse-Core", true)]].concat();
    assert_eq!(
        result_against(&with_loaded(&with_plugin, now, opened(&[])), &earlier_baseline, 160).0,
        Verification::Failed
    );
}

#[test]
fn verification_fails_for_datapack_no_longer_enabled() {
    let earlier_baseline = opened_before(&[], &["file/skylands", "file/terrain.zip"]);
    let now = |skylands: &[(&str, AtStart)]| {
        let datapacks = at_start(&[skylands, &[("file/terrain.zip", Opened), ("file/new.zip", Opened)]].concat());
        result_against(&with_loaded(&GOOD, opened(&[]), datapacks), &earlier_baseline, 160)
    };
    let (result, problem) = now(&[("file/skylands", NotAnyMore)]);
    assert_eq!(result, Verification::Failed);
    assert_eq!(problem, "datapack `file/skylands` is no longer enabled although the file exists. See the server's log");
    for fine in [&[("file/skylands", Opened)][..], &[("file/skylands", ClosedBefore)], &[]] {
        assert_eq!(now(fine), (Verification::Passed, String::new()), "{fine:?}");
    }
}

#[test]
fn verification_is_unverified_for_unreadable_known_worlds() {
    let mut unread = report(&GOOD);
    let earlier_baseline = opened_before(&["overworld"], &["file/terrain.zip"]);
    assert_eq!(
        result_against(&unread, &baseline(&["ViaVersion", "Shop"], &[]), 160).0,
        Verification::Passed,
        "older agents do not report worlds"
    );
    let both = "the open worlds could not be read, and the enabled datapacks could not be read";
    assert_eq!(result_against(&unread, &earlier_baseline, 160), (Verification::Inconclusive, both.to_owned()));
    unread.loaded = Some(Loaded { worlds: opened(&["overworld"]), ..Loaded::default() });
    assert_eq!(result_against(&unread, &earlier_baseline, 160).0, Verification::Inconclusive);

    let files = files(&["ViaVersion", "Shop"]);
    let settle = SignedDuration::from_secs(5);
    let expected = VerificationTarget {
        files: &files,
        before: Some(&files),
        baseline: &earlier_baseline,
        settle,
        began: at(90),
        reachable_from: at(90),
        process: ProcessState::Running,
        other_image: None,
        bundled: &[],
    };
    let soon = verify(Some(&at_operator_clock(&unread, 110)), &expected, at(110));
    assert_eq!(soon.result, Verification::Pending { until: at(160) }, "worlds may become readable after the plugins");
    let nothing = Baseline::default();
    let first = verify(
        Some(&at_operator_clock(&report(&GOOD), 110)),
        &VerificationTarget { baseline: &nothing, before: None, ..expected },
        at(110),
    );
    assert_eq!(first.result, Verification::Pending { until: at(160) }, "the next verification needs the worlds");
}

#[test]
fn baseline_keeps_worlds_until_read_again() {
    let first = opened_before(&["overworld", "creative"], &["file/terrain.zip"]);
    assert_eq!(first.next(None, None, None), Baseline { enabled: first.enabled.clone(), ..first.clone() });
    let half = with_loaded(&GOOD, at_start(&[("overworld", Opened), ("creative", NotOpened)]), None);
    let second = first.next(Some(&half), None, None);
    assert_eq!(second.worlds, Some(vec!["overworld".to_owned()]), "a missing world is reported only once");
    assert_eq!(second.datapacks, first.datapacks);
}

#[test]
fn verification_message_names_few_of_many_worlds() {
    let names: Vec<String> = (1..=8).map(|number| format!("w{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let now = at_start(&names.iter().map(|name| (*name, NotAnyMore)).collect::<Vec<_>>());
    let (_, problem) = result_against(&with_loaded(&GOOD, now, opened(&[])), &opened_before(&names, &[]), 160);
    assert!(problem.starts_with("worlds `w1`, `w2`, `w3`, `w4`, `w5` and 3 more are no longer open"), "{problem}");
}

#[test]
fn plugin_that_the_server_contains_is_not_a_failed_plugin() {
    let (now, before) = (files(&["spark", "Vault"]), files(&["spark", "Vault"]));
    let (baseline, report) = (baseline(&["Vault", "spark"], &[]), report(&[("Vault", true)]));
    let result = |bundled: &[&'static str]| {
        let expected = VerificationTarget {
            files: &now,
            before: Some(&before),
            baseline: &baseline,
            settle: SignedDuration::from_secs(30),
            began: at(0),
            reachable_from: at(0),
            process: ProcessState::Running,
            other_image: None,
            bundled,
        };
        verify(Some(&at_operator_clock(&report, 600)), &expected, at(600))
    };
    assert_eq!(result(&[]), failed("spark did not enable".to_owned()));
    assert_eq!(result(&["spark"]).result, Verification::Passed);
}
