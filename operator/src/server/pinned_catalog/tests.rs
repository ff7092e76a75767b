//! Pure. Tests with build 1 and plugin 1.0 from yesterday. Build 2 becomes eligible a minute after an update was announced. Build 3 is read
//! during the countdown, and has been eligible for long.

use crate::server::model::records::LockRecord;
use jiff::SignedDuration;
use resolver::model::request::Request;
use scheduler::observation::{Announced, PodView};
use scheduler::rollout::WaitingOn;
use serde_json::{Value, json};

use super::*;
use crate::server::online_backup::tests::at_rest;
use crate::server::plan::RunningState;
use crate::server::resolve::ResolveInput;
use crate::solver::Solver;
use crate::telemetry::metrics::Metrics;

const NEW: Revision = Revision(2);
const OTHER: Revision = Revision(3);
const ANNOUNCED_NEW: Disruption = Disruption::Update { goal: NEW, window_opened_at: Timestamp::UNIX_EPOCH };

/// This many seconds after the announcement.
fn at(seconds: i64) -> Timestamp {
    "2026-01-21T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn file(name: &str) -> Value {
    json!({"name": format!("{name}.jar"), "url": "https://example.org/x.jar", "size": 1, "hash": format!("sha256:{}", "ab".repeat(32))})
}

/// A snapshot with these builds, and these releases of the plugin.
fn snapshot(builds: &[u32], releases: &[&str]) -> Snapshot {
    let yesterday = at(-86_400);
    let builds = builds.iter().map(|number| {
        let published = if *number == 2 { at(60) - SignedDuration::from_hours(1) } else { yesterday };
        json!({"number": number, "channel": "STABLE", "published": published, "file": file(&format!("paper-{number}"))})
    });
    let releases = releases.iter().map(|version| {
        json!({
            "id": format!("warps-{version}"), "version": version, "published": yesterday, "channel": "release",
            "minecraft": ["1.21.10"], "loaders": ["paper"], "file": file("warps"), "dependencies": [],
        })
    });
    let catalog = json!({
        "paper": [{"minecraft": "1.21.10", "java": 21, "builds": builds.collect::<Vec<_>>()}],
        "paperReadAt": at(0),
        "projects": [{
            "key": {"source": "modrinth", "project": "warps"}, "id": "warps", "name": "Warps", "readAt": at(0),
            "releases": releases.collect::<Vec<_>>(),
        }],
    });
    Snapshot::new(serde_json::from_value(catalog).unwrap(), std::collections::BTreeMap::new())
}

/// The request of a server with this delay.
fn request(delay: &str) -> Request {
    serde_json::from_value(json!({
        "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": delay, "channel": "STABLE",
        "plugins": [{
            "object": "warps", "key": {"source": "modrinth", "project": "warps"}, "version": {"strategy": "auto"},
            "delay": delay, "channel": "release",
        }],
    }))
    .unwrap()
}

/// The announced update of second 0, with its pinned catalog of builds 1 and 2.
fn pinned_catalog() -> PinnedCatalog {
    let snapshot = Arc::new(snapshot(&[1, 2], &["1.0"]));
    let lock = resolver::resolve(&snapshot.catalog, &request("PT1H"), at(0)).unwrap().lock;
    let files = serde_json::from_value(json!({
        "lock": lock.digest(), "minecraft": "1.21.10", "build": 1,
        "server": {"path": "paper.jar", "url": "", "hash": "sha256:00"},
    }));
    let record = Arc::new(LockRecord { lock, files: files.unwrap() });
    PinnedCatalog { goal: NEW, record, snapshot, at: at(0) }
}

/// The build that a pass selects.
async fn selected_build(from: &PinnedInputs, delay: &str) -> u32 {
    let solver = Solver::start(Metrics::default().solves).unwrap();
    let request = &request(delay);
    let together = Arc::new(vec![request.clone()]);
    let runs = &RunningState { lock: None, candidate: None, floor: None, unmanaged_jars: None };
    let question = ResolveInput { solver: &solver, from, request, group: together, runs, follows: None };
    question.solve_whole().await.unwrap().unwrap().lock.build
}

#[tokio::test]
async fn pinned_catalog_excludes_releases_published_during_countdown() {
    let newest = || Some(Arc::new(snapshot(&[1, 2, 3], &["1.0"])));
    let pinned = PinnedInputs::from_pinned(Some(pinned_catalog()), newest(), at(120));
    assert_eq!((pinned.pinned_goal, pinned.now), (Some(NEW), at(120)));
    assert_eq!(selected_build(&pinned, "PT1H").await, 1, "the announced update stays planned");
    assert_eq!(
        selected_build(&PinnedInputs::from_pinned(None, newest(), at(120)), "PT1H").await,
        3,
        "without a pin, the newest catalog counts"
    );
    // One pass detects that another goal is requested, and the next one plans from the newest catalog.
    assert_eq!(selected_build(&pinned, "PT0S").await, 2);
    let (goal, observation) = awaited();
    let of_another = Goal { revision: OTHER, ..goal };
    assert_eq!(pinned.decide(&of_another, &observation, open(0), Step::Stage, false), PinDecision::Release);
    assert_eq!(selected_build(&PinnedInputs::from_pinned(None, newest(), at(121)), "PT0S").await, 3);
}

#[test]
fn pinned_catalog_shares_equal_snapshot_across_servers() {
    let again = Arc::new(snapshot(&[1, 2], &["1.0"]));
    let from = PinnedInputs::from_pinned(Some(pinned_catalog()), Some(Arc::clone(&again)), at(120));
    assert!(from.snapshot.is_some_and(|snapshot| Arc::ptr_eq(&snapshot, &again)));
    assert_eq!((from.pinned_goal, from.at), (Some(NEW), at(0)));
}

#[test]
fn pinned_catalog_drops_delisted_releases_but_not_unread_ones() {
    let pinned = pinned_catalog();
    let is_delisted = |builds: &[u32], releases: &[&str]| pinned.is_delisted_in(&snapshot(builds, releases));
    assert!(!is_delisted(&[1, 2, 3], &["1.0", "1.1"]), "newer releases delist nothing");
    assert!(!is_delisted(&[1], &["1.0"]), "build 2 is not in the set");
    assert!(is_delisted(&[2], &["1.0"]) && is_delisted(&[1, 2], &["1.1"]));
    let mut unread = snapshot(&[], &[]);
    (unread.catalog.paper, unread.catalog.projects) = (Vec::new(), Vec::new());
    assert!(!pinned.is_delisted_in(&unread));
    let stored = PinnedCatalog { snapshot: Arc::new(snapshot(&[1, 2], &["1.1"])), ..pinned.clone() };
    assert!(!stored.is_delisted_in(&snapshot(&[1, 2, 3], &["1.1"])), "a release that was already delisted may stay");
    let newest = Some(Arc::new(snapshot(&[2], &["1.0"])));
    assert_eq!(PinnedInputs::from_pinned(Some(pinned), newest, at(120)).pinned_goal, None);
}

fn open(opened_at: i64) -> Gate {
    let opened_at = Timestamp::from_second(opened_at).unwrap();
    Gate::Open { opened_at, until: at(3_600) }
}

/// An update that was announced in the opening of second 0, five minutes before its end.
fn awaited() -> (Goal, Observation) {
    let (goal, mut observation, _) = at_rest();
    let pod = observation.pod.unwrap().uid;
    observation.facts.announced = Some(Announced { act: ANNOUNCED_NEW, pod, ends: at(300) });
    (Goal { revision: NEW, ..goal }, observation)
}

/// A pass with the newest catalog, or with one that is pinned for this goal.
fn inputs(pinned_goal: Option<Revision>) -> PinnedInputs {
    PinnedInputs { pinned_goal, ..PinnedInputs::from_newest(None, at(120)) }
}

#[test]
fn pinned_catalog_is_made_on_announcement_or_first_write() {
    let (goal, waited_for) = awaited();
    let (_, at_rest, _) = at_rest();
    let decide = |observation: &Observation, step| inputs(None).decide(&goal, observation, open(0), step, false);
    let not_after = at(165);
    let (pod, notice) = (at_rest.pod.unwrap().uid, goal.notice);
    let announce = |disruption| Step::Announce { disruption, pod, notice, not_after };
    assert_eq!(decide(&at_rest, announce(ANNOUNCED_NEW)), PinDecision::Pin);
    assert_eq!(decide(&at_rest, Step::WriteTemplate { revision: NEW, not_after }), PinDecision::Pin, "not announced");
    for step in [announce(Disruption::Restart { due: at(0) }), Step::Stage, Step::Wait(WaitingOn::Images)] {
        assert_eq!(decide(&at_rest, step), PinDecision::Absent, "{step:?}");
    }
    assert_eq!(decide(&waited_for, Step::Wait(WaitingOn::Countdown { ends: at(300) })), PinDecision::Pin);
}

#[test]
fn pinned_catalog_ends_with_new_goal_or_closed_gate() {
    let (goal, observation) = awaited();
    let wait = Step::Wait(WaitingOn::Countdown { ends: at(300) });
    let decide = |observation: &Observation, gate, requests_other| {
        inputs(Some(NEW)).decide(&goal, observation, gate, wait, requests_other)
    };
    let shut = Gate::Shut { opens: None };
    let ending = Gate::NoNewStarts { opened_at: Timestamp::UNIX_EPOCH, until: at(3_600), opens: None };
    assert_eq!(decide(&observation, open(0), false), PinDecision::Keep);
    assert_eq!(decide(&observation, ending, false), PinDecision::Keep, "an update that has begun continues");
    assert_eq!(decide(&observation, shut, false), PinDecision::Release);
    assert_eq!(
        decide(&observation, open(60), false),
        PinDecision::Release,
        "an apply-now request is about the newest releases"
    );
    assert_eq!(decide(&observation, open(0), true), PinDecision::Release);
    assert_eq!(inputs(Some(OTHER)).decide(&goal, &observation, open(0), wait, false), PinDecision::Release);
    // The next pass does not pin it again either.
    assert_eq!(inputs(None).decide(&goal, &observation, open(0), wait, true), PinDecision::Absent);
    let written = Observation {
        stateful_set: observation
            .stateful_set
            .map(|stateful_set| scheduler::observation::StatefulSetView { template: NEW, ..stateful_set }),
        ..observation
    };
    assert_eq!(decide(&written, shut, false), PinDecision::Keep, "a shut gate reverts the template");
}

#[test]
fn pinned_goal_is_awaited_until_its_pod_or_timeout() {
    let (_, observation) = awaited();
    let PodView { uid, revision: runs, .. } = observation.pod.unwrap();
    let waits = |facts: &RecordedFacts, template, pod, second| is_awaited(NEW, facts, Some(template), pod, at(second));
    let announced = observation.facts.clone();
    let pod = Some((uid, runs));
    assert!(waits(&announced, runs, pod, 0) && waits(&announced, runs, pod, 899), "valid for 10 minutes after its end");
    assert!(!waits(&announced, runs, pod, 900));
    assert!(!waits(&announced, runs, Some((PodUid(8), runs)), 0), "players on this pod were not warned");
    assert!(!waits(&announced, runs, None, 0));
    let unannounced = RecordedFacts { announced: None, ..announced.clone() };
    assert!(!waits(&unannounced, runs, pod, 0) && waits(&unannounced, NEW, pod, 5_000), "written but not committed");
    assert!(!waits(&announced, NEW, Some((uid, NEW)), 0), "a pod of the goal exists");
    assert!(!waits(&RecordedFacts { failed: vec![NEW], ..announced.clone() }, runs, pod, 0));
    assert!(!is_awaited(OTHER, &announced, Some(runs), pod, at(0)), "players were warned of another set");
    assert!(!waits(&RecordedFacts { settled: None, ..announced }, runs, pod, 0), "a first start");
}
