use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::followed_server::{find_cycle, leader_state};
use super::*;
use crate::server::test_server::server;
use validate::check;

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
fn staging(state: LeaderState, history: Vec<(i64, Lock)>) -> FollowState {
    let spec = CheckedFollows { server: "staging".to_owned(), soak: SignedDuration::from_hours(48) };
    let ran = |(since, lock)| RanSet { since: at(since), unverified: false, record: record(lock) };
    let history = history.into_iter().map(ran).collect();
    FollowState { spec, state, was_rolled_back: false, history }
}

fn stable(history: Vec<(i64, Lock)>) -> FollowState {
    staging(LeaderState::Stable, history)
}

/// The message in hour 100 about an update from Paper 1 with Via 1 and Chat 1 to this set.
fn wait_message(follows: &FollowState, to: &Lock) -> Option<String> {
    let waits = follows.wait_for_update(&lock(1, &["Via 1", "Chat 1"]), to, at(100))?;
    Some(waits.message(|at| format!("hour {}", at.as_second() / HOUR)))
}

#[test]
fn follower_waits_until_followed_server_has_soaked_update() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let since = |hour| stable(vec![(hour, lock(1, &["Via 2", "Chat 1"]))]);
    let expected = "This server waits for staging, which has run Via 2 since hour 53 and must run it until hour 101 \
    (48 hours).";
    assert_eq!(wait_message(&since(53), &to).as_deref(), Some(expected));
    assert_eq!(wait_message(&since(52), &to), None, "a soak of exactly 48 hours is enough");
    let waits = since(53).wait_for_update(&lock(1, &["Via 1"]), &to, at(100)).unwrap();
    assert_eq!((waits.until(), waits.reason(), waits.is_spec_error()), (Some(at(101)), "Soaking", false));
    let at_once = FollowState { spec: CheckedFollows { soak: SignedDuration::ZERO, ..since(0).spec }, ..since(100) };
    assert_eq!(wait_message(&at_once, &to), None);
}

#[test]
fn soak_continues_across_unrelated_updates() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let nightly = |middle: &[&str]| {
        stable(vec![
            (90, lock(3, &["Via 2"])),
            (60, lock(2, middle)),
            (40, lock(1, &["Via 2"])),
            (9, lock(1, &["Via 1"])),
        ])
    };
    assert_eq!(wait_message(&nightly(&["Via 2"]), &to), None, "the soak began in hour 40");
    let message = wait_message(&nightly(&["Via 1"]), &to).unwrap();
    assert!(message.contains("since hour 90"), "{message}");
    let both = lock(3, &["Via 2", "Chat 1"]);
    let youngest = wait_message(&nightly(&["Via 2"]), &both).unwrap();
    assert!(youngest.contains("Paper 1.21.10-3 since hour 90"), "{youngest}");
}

#[test]
fn unverified_lock_does_not_soak_or_reset_soak() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let ran = |history: Vec<(i64, bool, Lock)>| FollowState {
        history: history
            .into_iter()
            .map(|(since, unverified, lock)| RanSet { since: at(since), unverified, record: record(lock) })
            .collect(),
        ..stable(Vec::new())
    };
    let via = |build| lock(build, &["Via 2"]);
    let never_verified = ran(vec![(0, true, via(1)), (0, false, lock(1, &["Via 1"]))]);
    let expected = "This server waits for staging, which runs Via 2 without verification. See its `status.lastUpdate`.";
    assert_eq!(wait_message(&never_verified, &to).as_deref(), Some(expected));
    let waits = never_verified.wait_for_update(&lock(1, &["Via 1"]), &to, at(100)).unwrap();
    assert_eq!((waits.until(), waits.reason(), waits.is_spec_error()), (None, "NotVerified", false));
    let verified_before = ran(vec![(90, true, via(2)), (40, false, via(1))]);
    assert_eq!(wait_message(&verified_before, &to), None, "a later unverified set does not reset the soak");
    let verified_after = ran(vec![(90, false, via(2)), (40, true, via(1))]);
    assert!(wait_message(&verified_after, &to).unwrap().contains("since hour 90"));
}

#[test]
fn follower_names_release_of_followed_server() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let runs = |build, plugins: &[&str]| stable(vec![(0, lock(build, plugins))]);
    let still = runs(1, &["Via 1"]);
    assert_eq!(wait_message(&still, &to).as_deref(), Some("This server waits for staging, which runs Via 1 still."));
    let rolled_back = FollowState { was_rolled_back: true, ..still };
    let expected = "This server waits for staging, which runs Via 1 still. Its last update was rolled back.";
    assert_eq!(wait_message(&rolled_back, &to).as_deref(), Some(expected));
    let other = wait_message(&runs(1, &["Via 3"]), &to);
    assert_eq!(other.as_deref(), Some("This server waits for staging, which runs Via 3 and not 2."));
    let mut files = lock(1, &["Via 2"]);
    files.plugins[0].file.hash = "sha256:other".to_owned();
    let files = wait_message(&stable(vec![(0, files)]), &to);
    assert_eq!(files.as_deref(), Some("This server waits for staging, which runs other files of Via 2."));
    let paper = wait_message(&runs(1, &["Via 2"]), &lock(2, &["Via 2", "Chat 1"]));
    assert_eq!(paper.as_deref(), Some("This server waits for staging, which runs Paper 1.21.10-1 still."));
    let waits = runs(1, &["Via 1"]).wait_for_update(&lock(1, &["Via 1"]), &to, at(100)).unwrap();
    assert_eq!((waits.until(), waits.reason()), (None, "OtherRelease"));
}

#[test]
fn follower_waits_only_for_shared_changed_plugins() {
    let staging = stable(vec![(99, lock(9, &["Via 9"]))]);
    for (plugins, case) in [
        (["Via 1", "Chat 2"].as_slice(), "a plugin that staging does not have"),
        (&["Via 1", "Chat 1", "Map 1"], "a new plugin that staging does not have"),
        (&["Chat 1"], "a removed plugin"),
        (&["Via 1", "Chat 1"], "settings of the pod"),
    ] {
        assert_eq!(wait_message(&staging, &lock(1, plugins)), None, "{case}");
    }
    let other_plugins = stable(vec![(0, lock(1, &["Map 1"]))]);
    assert_eq!(wait_message(&other_plugins, &lock(1, &["Via 1", "Chat 1", "Map 1"])), None);
    assert!(wait_message(&other_plugins, &lock(1, &["Via 1", "Chat 1", "Map 2"])).unwrap().contains("Map 1 and not 2"));
}

#[test]
fn follower_waits_while_followed_server_is_unhealthy() {
    let to = lock(1, &["Via 2", "Chat 1"]);
    let circle = LeaderState::Cycle(vec!["lobby".to_owned(), "staging".to_owned(), "lobby".to_owned()]);
    for (state, reason, expected) in [
        (LeaderState::Suspended, "Suspended", "is suspended. Remove its `spec.suspend`"),
        (LeaderState::ScaledToZero, "NotRunning", "`spec.replicas` is 0"),
        (LeaderState::Down("Down".to_owned()), "NotRunning", "its condition `Ready` says Down"),
        (LeaderState::RolloutInProgress, "BeingUpdated", "is being updated or rolled back"),
        (LeaderState::Missing, "NoSuchServer", "Create it, or correct `spec.follows.server`"),
        (circle, "Circle", "in a circle (lobby -> staging -> lobby). Remove `spec.follows` of one of them"),
    ] {
        let staging = staging(state.clone(), vec![(0, lock(1, &["Via 2"]))]);
        let waits = staging.wait_for_update(&lock(1, &["Via 1", "Chat 1"]), &to, at(100)).unwrap();
        let message = waits.message(|at| at.to_string());
        assert!(
            message.starts_with("This server waits for staging, which ") && message.contains(expected),
            "{message}"
        );
        assert_eq!((waits.reason(), waits.until()), (reason, None));
        assert!(waits.blocks_update);
        let nothing_to_come = is_reported_without_update(&staging);
        let is_spec_error = matches!(state, LeaderState::Missing | LeaderState::Cycle(_));
        assert_eq!((waits.is_spec_error(), nothing_to_come), (is_spec_error, is_spec_error), "{state:?}");
    }
    let unverified = staging(LeaderState::Stable, Vec::new());
    assert_eq!(
        wait_message(&unverified, &to).as_deref(),
        Some(
            "This server waits for staging, which has no verified \
    version set yet."
        )
    );
    assert!(!is_reported_without_update(&unverified));
}

fn is_reported_without_update(follows: &FollowState) -> bool {
    let running_lock = lock(1, &["Via 1", "Chat 1"]);
    follows.wait_for_update(&running_lock, &running_lock, at(100)).is_some_and(|waits| !waits.blocks_update)
}

#[test]
fn follow_cycle_is_reported_only_to_its_members() {
    let follows = |name: &str| {
        let of = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "a"), ("p", "q")];
        of.iter().find(|(from, _)| *from == name).map(|(_, to)| (*to).to_owned())
    };
    assert_eq!(find_cycle("a", "b", follows).unwrap(), ["a", "b", "c", "a"]);
    assert_eq!(find_cycle("x", "a", follows), None, "it follows a circle, but is not part of it");
    assert_eq!(find_cycle("p", "q", follows), None);
}

#[test]
fn followed_server_state_comes_from_its_own_status() {
    let state = |spec: Value, ready: &str, runs: &str, history: &Value| {
        let server: PaperMCServer = server(spec);
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "Why", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status: PaperMCServerStatus =
            serde_json::from_value(json!({"conditions": [condition], "lock": runs, "history": history})).unwrap();
        leader_state(&server, &status)
    };
    let history = json!([{"lock": "1", "version": "1.21.10-1", "settledAt": "2026-01-01T00:00:00Z"}]);
    assert_eq!(state(json!({}), "True", "1", &history), LeaderState::Stable);
    assert_eq!(state(json!({}), "True", "2", &history), LeaderState::RolloutInProgress);
    assert_eq!(state(json!({}), "False", "1", &history), LeaderState::Down("Why".to_owned()));
    assert_eq!(state(json!({"replicas": 0}), "False", "1", &history), LeaderState::ScaledToZero);
    assert_eq!(state(json!({"suspend": true}), "True", "1", &history), LeaderState::Suspended);
}

#[test]
fn spec_rejects_following_itself_or_negative_soak() {
    let paths = |follows: Value| {
        let violations = check(&server(json!({"follows": follows}))).err().unwrap_or_default();
        violations.into_iter().map(|violation| violation.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(json!({"server": "lobby"})), ["spec.follows.server"]);
    assert_eq!(paths(json!({"server": "staging", "soak": "-48h"})), ["spec.follows.soak"]);
    let checked = check(&server(json!({"follows": {"server": "staging"}}))).unwrap();
    assert_eq!(checked.updates.follows.unwrap().soak, SignedDuration::from_hours(24));
}
