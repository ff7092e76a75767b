use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::SignedDuration;
use scheduler::observation::{Announced, Disruption, PodUid, RecordedFacts, Revision, StatefulSetView};
use serde_json::{Value, json};

use super::followed_server::{circle_of, state_of};
use super::*;
use crate::server::check::check;
use crate::server::check::tests::server;
use crate::server::online_backup::tests::at_rest;

const HOUR: i64 = 3_600;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(hours * HOUR).unwrap()
}

/// A lock with this build of Paper, and plugins as `name version`.
fn lock(build: u32, plugins: &[&str]) -> Lock {
    let plugin = |text: &&str| {
        let (name, version) = text.split_once(' ').unwrap();
        json!({
            "name": name, "key": {"source": "modrinth", "project": name}, "projectId": name, "releaseId": text,
            "version": version, "file": {"name": format!("{name}.jar"), "url": "", "hash": format!("sha256:{text}")},
            "reason": {"requestedBy": [name]},
        })
    };
    serde_json::from_value(json!({
        "server": "games/lobby", "minecraft": "1.21.10", "build": build, "java": 21,
        "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"},
        "plugins": plugins.iter().map(plugin).collect::<Vec<_>>(), "facts": [],
    }))
    .unwrap()
}

fn record(lock: Lock) -> Arc<LockRecord> {
    let file = json!({"path": "paper.jar", "hash": "sha256:00", "url": ""});
    let files = json!({"lock": "00", "minecraft": "1.21.10", "build": 1, "server": file, "support": [], "plugins": []});
    Arc::new(LockRecord { lock, files: serde_json::from_value(files).unwrap() })
}

/// A staging server with a soak time of 48 hours. It has run these sets since these hours, the running one first.
fn staging(state: LeaderState, sets: Vec<(i64, Lock)>) -> FollowState {
    let wish = CheckedFollows { server: "staging".to_owned(), soak: SignedDuration::from_hours(48) };
    let ran = |(since, lock)| RanSet { since: at(since), unproven: false, record: record(lock) };
    let sets = sets.into_iter().map(ran).collect();
    FollowState { wish, state, went_back: false, sets }
}

fn well(sets: Vec<(i64, Lock)>) -> FollowState {
    staging(LeaderState::Well, sets)
}

/// The message in hour 100 about an update from Paper 1 with Via 1 and Chat 1 to this set.
fn said(follows: &FollowState, to: &Lock) -> Option<String> {
    let waits = follows.waits(&lock(1, &["Via 1", "Chat 1"]), to, at(100))?;
    Some(waits.in_words(|at| format!("hour {}", at.as_second() / HOUR)))
}

#[test]
fn follower_waits_until_followed_server_has_soaked_update() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let since = |hour| well(vec![(hour, lock(1, &["Via 2", "Chat 1"]))]);
    let words = "waits for staging, which has run Via 2 since hour 53 and has to until hour 101 (48 hours)";
    assert_eq!(said(&since(53), &to).as_deref(), Some(words));
    assert_eq!(said(&since(52), &to), None, "to the second");
    let waits = since(53).waits(&lock(1, &["Via 1"]), &to, at(100)).unwrap();
    assert_eq!((waits.until(), waits.reason(), waits.is_a_mistake()), (Some(at(101)), "Soaking", false));
    let at_once = FollowState { wish: CheckedFollows { soak: SignedDuration::ZERO, ..since(0).wish }, ..since(100) };
    assert_eq!(said(&at_once, &to), None);
}

#[test]
fn soak_continues_across_unrelated_updates() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let nightly = |middle: &[&str]| {
        well(vec![
            (90, lock(3, &["Via 2"])),
            (60, lock(2, middle)),
            (40, lock(1, &["Via 2"])),
            (9, lock(1, &["Via 1"])),
        ])
    };
    assert_eq!(said(&nightly(&["Via 2"]), &to), None, "since hour 40");
    let came_back = said(&nightly(&["Via 1"]), &to).unwrap();
    assert!(came_back.contains("since hour 90"), "{came_back}");
    let both = lock(3, &["Via 2", "Chat 1"]);
    let youngest = said(&nightly(&["Via 2"]), &both).unwrap();
    assert!(youngest.contains("Paper 1.21.10-3 since hour 90"), "{youngest}");
}

#[test]
fn unverified_lock_does_not_soak_or_reset_soak() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let ran = |sets: Vec<(i64, bool, Lock)>| FollowState {
        sets: sets
            .into_iter()
            .map(|(since, unproven, lock)| RanSet { since: at(since), unproven, record: record(lock) })
            .collect(),
        ..well(Vec::new())
    };
    let via = |build| lock(build, &["Via 2"]);
    let never = ran(vec![(0, true, via(1)), (0, false, lock(1, &["Via 1"]))]);
    let words =
        "waits for staging, which runs Via 2, kept although it could not be proven: see its `status.lastUpdate`";
    assert_eq!(said(&never, &to).as_deref(), Some(words));
    let waits = never.waits(&lock(1, &["Via 1"]), &to, at(100)).unwrap();
    assert_eq!((waits.until(), waits.reason(), waits.is_a_mistake()), (None, "NotVerified", false));
    let proven_before = ran(vec![(90, true, via(2)), (40, false, via(1))]);
    assert_eq!(said(&proven_before, &to), None, "since hour 40, and what came then was another plugin's");
    let proven_after = ran(vec![(90, false, via(2)), (40, true, via(1))]);
    assert!(said(&proven_after, &to).unwrap().contains("since hour 90"));
}

#[test]
fn follower_names_release_of_followed_server() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let runs = |build, plugins: &[&str]| well(vec![(0, lock(build, plugins))]);
    let still = runs(1, &["Via 1"]);
    assert_eq!(said(&still, &to).as_deref(), Some("waits for staging, which runs Via 1 still"));
    let back = FollowState { went_back: true, ..still };
    let words = "waits for staging, which runs Via 1 still; its last update was taken back";
    assert_eq!(said(&back, &to).as_deref(), Some(words));
    let other = said(&runs(1, &["Via 3"]), &to);
    assert_eq!(other.as_deref(), Some("waits for staging, which runs Via 3 and not 2"));
    let mut files = lock(1, &["Via 2"]);
    files.plugins[0].file.hash = "sha256:other".to_owned();
    let files = said(&well(vec![(0, files)]), &to);
    assert_eq!(files.as_deref(), Some("waits for staging, which runs other files of Via 2"));
    let paper = said(&runs(1, &["Via 2"]), &lock(2, &["Via 2", "Chat 1"]));
    assert_eq!(paper.as_deref(), Some("waits for staging, which runs Paper 1.21.10-1 still"));
    let waits = runs(1, &["Via 1"]).waits(&lock(1, &["Via 1"]), &to, at(100)).unwrap();
    assert_eq!((waits.until(), waits.reason()), (None, "OtherRelease"));
}

#[test]
fn follower_waits_only_for_shared_changed_plugins() {
    let staging = well(vec![(99, lock(9, &["Via 9"]))]);
    for (plugins, what) in [
        (["Via 1", "Chat 2"].as_slice(), "a plugin that staging does not have"),
        (&["Via 1", "Chat 1", "Map 1"], "the same, new here"),
        (&["Chat 1"], "one that goes away"),
        (&["Via 1", "Chat 1"], "settings of the pod"),
    ] {
        assert_eq!(said(&staging, &lock(1, plugins)), None, "{what}");
    }
    let new_here = well(vec![(0, lock(1, &["Map 1"]))]);
    assert_eq!(said(&new_here, &lock(1, &["Via 1", "Chat 1", "Map 1"])), None);
    assert!(said(&new_here, &lock(1, &["Via 1", "Chat 1", "Map 2"])).unwrap().contains("Map 1 and not 2"));
}

#[test]
fn follower_waits_while_followed_server_is_unhealthy() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let circle = LeaderState::Circle(vec!["lobby".to_owned(), "staging".to_owned(), "lobby".to_owned()]);
    for (state, reason, words) in [
        (LeaderState::Suspended, "Suspended", "is suspended: take its `spec.suspend` away"),
        (LeaderState::Asleep, "NotRunning", "`spec.replicas` is 0"),
        (LeaderState::Down("Down".to_owned()), "NotRunning", "its condition `Ready` says Down"),
        (LeaderState::OnTrial, "BeingUpdated", "is being updated, or goes back"),
        (LeaderState::Missing, "NoSuchServer", "make it, or correct `spec.follows.server`"),
        (circle, "Circle", "in a circle (lobby -> staging -> lobby): take `spec.follows` of one of them away"),
    ] {
        let staging = staging(state.clone(), vec![(0, lock(1, &["Via 2"]))]);
        let waits = staging.waits(&lock(1, &["Via 1", "Chat 1"]), &to, at(100)).unwrap();
        let said = waits.in_words(|at| at.to_string());
        assert!(said.starts_with("waits for staging, which ") && said.contains(words), "{said}");
        assert_eq!((waits.reason(), waits.until()), (reason, None));
        assert!(waits.holds);
        let nothing_to_come = said_of_nothing(&staging);
        let is_a_mistake = matches!(state, LeaderState::Missing | LeaderState::Circle(_));
        assert_eq!((waits.is_a_mistake(), nothing_to_come), (is_a_mistake, is_a_mistake), "{state:?}");
    }
    let unproven = staging(LeaderState::Well, Vec::new());
    assert_eq!(said(&unproven, &to).as_deref(), Some("waits for staging, where no set is proven yet"));
    assert!(!said_of_nothing(&unproven));
}

fn said_of_nothing(follows: &FollowState) -> bool {
    let set = lock(1, &["Via 1", "Chat 1"]);
    follows.waits(&set, &set, at(100)).is_some_and(|waits| !waits.holds)
}

#[test]
fn follow_cycle_is_reported_only_to_its_members() {
    let follows = |name: &str| {
        let of = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "a"), ("p", "q")];
        of.iter().find(|(from, _)| *from == name).map(|(_, to)| (*to).to_owned())
    };
    assert_eq!(circle_of("a", "b", follows).unwrap(), ["a", "b", "c", "a"]);
    assert_eq!(circle_of("x", "a", follows), None, "it only looks into one");
    assert_eq!(circle_of("p", "q", follows), None);
}

#[test]
fn followed_server_state_comes_from_its_own_status() {
    let state = |spec: Value, ready: &str, runs: &str, settled: &Value| {
        let server: PaperMCServer = server(spec);
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "Why", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status: PaperMCServerStatus =
            serde_json::from_value(json!({"conditions": [condition], "lock": runs, "history": settled})).unwrap();
        state_of(&server, &status)
    };
    let settled = json!([{"lock": "1", "version": "1.21.10-1", "settledAt": "2026-01-01T00:00:00Z"}]);
    assert_eq!(state(json!({}), "True", "1", &settled), LeaderState::Well);
    assert_eq!(state(json!({}), "True", "2", &settled), LeaderState::OnTrial);
    assert_eq!(state(json!({}), "False", "1", &settled), LeaderState::Down("Why".to_owned()));
    assert_eq!(state(json!({"replicas": 0}), "False", "1", &settled), LeaderState::Asleep);
    assert_eq!(state(json!({"suspend": true}), "True", "1", &settled), LeaderState::Suspended);
}

#[test]
fn spec_rejects_following_itself_or_negative_soak() {
    let paths = |follows: Value| {
        let complaints = check(&server(json!({"follows": follows}))).err().unwrap_or_default();
        complaints.into_iter().map(|complaint| complaint.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(json!({"server": "lobby"})), ["spec.follows.server"]);
    assert_eq!(paths(json!({"server": "staging", "soak": "-48h"})), ["spec.follows.soak"]);
    let checked = check(&server(json!({"follows": {"server": "staging"}}))).unwrap();
    assert_eq!(checked.follows.unwrap().soak, SignedDuration::from_hours(24));
}

#[test]
fn follower_does_not_wait_after_announcement_or_start() {
    let (goal, seen, _) = at_rest();
    let goal = Goal { revision: Revision(2), ..goal };
    let open = Gate::Open { opened_at: at(0), until: at(9) };
    let waits = |state| FollowWait { server: "staging".to_owned(), why: FollowBlocker::State(state), holds: true };
    let may_wait =
        |goal: &Goal, seen: &Observation, gate| unless_begun(waits(LeaderState::Asleep), goal, seen, gate).is_some();
    assert!(may_wait(&goal, &seen, open));
    let told = |window_opened_at| {
        let act = Disruption::Update { goal: goal.revision, window_opened_at };
        let announced = Some(Announced { act, pod: PodUid(7), ends: at(1) });
        Observation { facts: RecordedFacts { announced, ..seen.facts.clone() }, ..seen.clone() }
    };
    assert!(!may_wait(&goal, &told(at(0)), open));
    let told_on = unless_begun(waits(LeaderState::Missing), &goal, &told(at(0)), open).unwrap();
    assert!(!told_on.holds, "a mistake is told, and holds nothing that has begun");
    assert!(may_wait(&goal, &told(at(-9)), open), "that was another opening");
    let written = StatefulSetView { template: goal.revision, ..seen.set.unwrap() };
    assert!(!may_wait(&goal, &Observation { set: Some(written), ..seen.clone() }, open));
    let by_hand = StatefulSetView { template: Revision(9), ..written };
    assert!(
        may_wait(&goal, &Observation { set: Some(by_hand), ..seen.clone() }, open),
        "what a person wrote is another thing"
    );
}
