use std::sync::Arc;

use agent_api::Trigger;
use crds::paper_mc_server::PolicyKind;
use jiff::SignedDuration;
use scheduler::observation::{
    AgentMemory, Announced, DataVersion, Disruption, EvictionPolicy, NodeState, Partition, PlayerPolicy, Players,
    PodUid, RecordedFacts, Revision, StableSet, StatefulSetView, Verification, WorldState,
};
use scheduler::rollout::next_step;
use serde_json::{Value, json};

use super::*;
use crate::server::observe::AgentReply;
use crate::server::render::init_requests::InitRequests;
use crate::server::test_server::server;
use validate::check;

/// 2026-11-22T12:00:00Z, an instant of a schedule of every six hours.
const NOON: i64 = 1_795_348_800;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(NOON).unwrap() + SignedDuration::from_mins(minutes)
}

fn requesting(backup: &Value, value: &str) -> PaperMCServer {
    let mut server = server(json!({"backup": backup}));
    server.metadata.annotations = Some([(BACKUP_NOW.to_owned(), value.to_owned())].into());
    server
}

fn scheduled() -> Value {
    json!({"schedule": {"cron": "0 */6 * * *", "contents": "Worlds"}})
}

/// A pod whose agent can take backups or not, and reports these backups.
pub(crate) fn observed(writes: bool, backups: &Value) -> Observed {
    let env = if writes { json!([{"name": "NIGHTSHIFT_BACKUPS", "value": "/backups/lobby"}]) } else { json!([]) };
    let pod = serde_json::from_value(
        json!({"spec": {"containers": [], "initContainers": [{"name": "prepare"}, {"name": "agent", "env": env}]}}),
    );
    let report: AgentReport = serde_json::from_value(json!({
        "at": "2026-11-22T12:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
    }))
    .unwrap();
    Observed {
        stateful_set: None,
        pod: Some(pod.unwrap()),
        facts: RecordedFacts::default(),
        stateful_set_view: None,
        pod_revision: None,
        pod_lock: None,
        stable: None,
        stable_lock: None,
        init_requests: InitRequests::default(),
        rejected_maps: Vec::new(),
        reply: AgentReply { report: Some(Arc::new(report)), ..AgentReply::unreachable(Timestamp::UNIX_EPOCH) },
    }
}

fn before(status: &Value) -> PaperMCServerStatus {
    serde_json::from_value(status.clone()).unwrap()
}

fn scheduled_noon() -> PaperMCServerStatus {
    before(&json!({"backup": {"backupCount": 0, "nextBackup": at(0).to_string()}}))
}

fn evaluate(
    server: &PaperMCServer,
    observed: &Observed,
    before: &PaperMCServerStatus,
    now: Timestamp,
) -> OnlineBackups {
    OnlineBackups::new(server, &check(server).unwrap(), observed, before, false, now)
}

fn request(backups: &OnlineBackups) -> Option<&str> {
    backups.due.as_ref().map(|due| due.request.as_str())
}

#[test]
fn backup_schedule_promises_next_instant_and_serves_it() {
    let scheduled = server(json!({"backup": scheduled()}));
    let fresh = evaluate(&scheduled, &observed(true, &json!({})), &before(&json!({})), at(60));
    assert_eq!((request(&fresh), fresh.next), (None, Some(at(360))), "instants before the schedule do not count");
    let on_time = evaluate(&scheduled, &observed(true, &json!({})), &scheduled_noon(), at(60));
    let due = on_time.due.clone().unwrap();
    assert_eq!((due.request.as_str(), due.trigger), ("scheduled-2026-11-22T12:00:00Z", Trigger::Scheduled));
    assert_eq!((due.contents, on_time.next, on_time.upcoming), (Contents::Worlds, Some(at(0)), Some(at(360))));
    let too_late = evaluate(&scheduled, &observed(true, &json!({})), &scheduled_noon(), at(180));
    assert_eq!((request(&too_late), too_late.next), (None, Some(at(360))));
    let online = json!({"online": {"request": due.request, "at": at(60).to_string(), "outcome": {"state": "running"}}});
    let running = evaluate(&scheduled, &observed(true, &online), &scheduled_noon(), at(61));
    assert_eq!((request(&running), running.is_running, running.next), (None, true, Some(at(360))));
}

#[test]
fn backup_serves_scheduled_instant_if_contents_suffice() {
    let backup_json = |contents: &str| {
        json!({"last": {
            "id": "a", "startedAt": at(1).to_string(), "completedAt": at(2).to_string(), "trigger": "beforeUpdate",
            "contents": contents, "bytes": 1, "archiveBytes": 1,
        }})
    };
    let due = |backup: Value, backup_contents: &str| {
        evaluate(
            &server(json!({"backup": backup})),
            &observed(true, &backup_json(backup_contents)),
            &scheduled_noon(),
            at(5),
        )
        .due
        .is_some()
    };
    let everything = || json!({"schedule": {"cron": "0 */6 * * *"}});
    assert_eq!(
        ["worlds", "serverFiles", "everything"].map(|backup_contents| due(scheduled(), backup_contents)),
        [false, true, false]
    );
    assert_eq!(
        ["worlds", "serverFiles", "everything"].map(|backup_contents| due(everything(), backup_contents)),
        [true, true, false]
    );
}

#[test]
fn backup_with_only_if_played_waits_for_player() {
    let backup_json = |backup_contents: &str| {
        json!({
            "id": "a", "startedAt": at(-360).to_string(), "completedAt": at(-359).to_string(), "trigger": "scheduled",
            "contents": backup_contents, "bytes": 1, "archiveBytes": 1,
        })
    };
    let scheduled = |contents: &str| {
        let schedule = json!({"cron": "0 */6 * * *", "contents": contents, "onlyIf": {"played": true}});
        server(json!({"backup": {"schedule": schedule}}))
    };
    let due = |backup_contents: &str, contents: &str, played: bool| {
        let report = json!({"last": backup_json(backup_contents), "unplayedSinceLast": !played});
        evaluate(&scheduled(contents), &observed(true, &report), &scheduled_noon(), at(5)).due.is_some()
    };
    assert!(!due("worlds", "Worlds", false) && due("worlds", "Worlds", true));
    assert!(!due("everything", "Everything", false));
    assert!(due("worlds", "Everything", false), "settings and plugins were never backed up");
    let restored = json!({
        "last": backup_json("worlds"), "unplayedSinceLast": true, "restored": {"at": at(-60).to_string(), "id": "b", "setAside": "x"},
    });
    assert!(
        evaluate(&scheduled("Worlds"), &observed(true, &restored), &scheduled_noon(), at(5)).due.is_some(),
        "a restore has replaced the worlds"
    );
    let none =
        evaluate(&scheduled("Worlds"), &observed(true, &json!({"unplayedSinceLast": true})), &scheduled_noon(), at(5));
    assert!(none.due.is_some(), "no backup exists yet");
}

#[test]
fn backup_request_is_accepted_for_half_an_hour_once() {
    let value = NOON.to_string();
    let requesting = requesting(&json!({}), &value);
    let nothing = observed(true, &json!({}));
    let fresh = evaluate(&requesting, &nothing, &before(&json!({})), at(4));
    assert_eq!((request(&fresh), fresh.accepted.as_deref()), (Some("asked-1795348800"), Some(value.as_str())));
    assert_eq!(fresh.due.unwrap().contents, Contents::Everything, "without a schedule, a backup has everything");
    let late = evaluate(&requesting, &nothing, &before(&json!({})), at(5));
    assert_eq!((late.due, late.accepted, late.refused), (None, None, None));
    let accepted = before(&json!({"lastHandled": {"backupNowAccepted": value}}));
    assert!(
        evaluate(&requesting, &nothing, &accepted, at(29)).due.is_some()
            && evaluate(&requesting, &nothing, &accepted, at(30)).due.is_none()
    );
    for outcome in [json!({"state": "taken", "id": "a"}), json!({"state": "failed", "why": "no room"})] {
        let online = json!({"online": {"request": "asked-1795348800", "at": at(5).to_string(), "outcome": outcome}});
        let served = evaluate(&requesting, &observed(true, &online), &accepted, at(6));
        assert_eq!((served.due, served.accepted, served.served.as_deref()), (None, None, Some(value.as_str())));
    }
    let noted = before(&json!({"lastHandled": {"backupNow": value}}));
    assert_eq!(evaluate(&requesting, &nothing, &noted, at(6)), OnlineBackups::default());
}

#[test]
fn backup_request_refusal_gives_reason() {
    let refused = |backup: &Value, value: &str, writes: bool| {
        evaluate(&requesting(backup, value), &observed(writes, &json!({})), &before(&json!({})), at(1))
            .refused
            .unwrap_or_default()
    };
    let now = NOON.to_string();
    assert!(refused(&json!({}), "soon", true).contains("unix seconds"));
    assert!(refused(&json!({"enabled": false}), &now, true).contains("`spec.backup.enabled` is `false`"));
    assert!(refused(&json!({}), &now, false).contains("next restart"));
    let mut mute = requesting(&json!({}), &now);
    (mute.spec.rcon.enabled, mute.spec.players.policy) = (false, PolicyKind::Ignore);
    let mute = evaluate(&mute, &observed(true, &json!({})), &before(&json!({})), at(1));
    assert!(mute.due.is_none() && mute.refused.unwrap().contains("which requires RCON: set `spec.rcon.enabled: true`"));
    let disabled = json!({"enabled": false});
    assert_eq!((refused(&json!({}), &now, true), refused(&disabled, "1", true)), (String::new(), String::new()));
    assert_eq!(refused(&json!(null), &now, true), "", "a server without `spec.backup` has backups on its own volume");
}

#[test]
fn invalid_backup_schedule_takes_no_backup_except_on_request() {
    let backup = json!({"schedule": {"cron": "0 0 30 2 *", "contents": "Worlds"}});
    let wrong = server(json!({"backup": backup}));
    for writes in [true, false] {
        let backups = evaluate(&wrong, &observed(writes, &json!({})), &scheduled_noon(), at(1));
        assert_eq!(backups, OnlineBackups::default(), "{writes}");
    }
    let on_request =
        evaluate(&requesting(&backup, &NOON.to_string()), &observed(true, &json!({})), &scheduled_noon(), at(1));
    assert_eq!((request(&on_request), on_request.next), (Some("asked-1795348800"), None));
    assert_eq!(on_request.due.unwrap().contents, Contents::Worlds);
}

#[test]
fn pod_without_backup_support_needs_restart_if_backups_wanted() {
    let needs = |backup: Value, writes: bool, is_too_old: bool| {
        let server = server(json!({"backup": backup}));
        let observed = observed(writes, &json!({}));
        OnlineBackups::new(&server, &check(&server).unwrap(), &observed, &scheduled_noon(), is_too_old, at(1))
            .needs_restart
    };
    assert!(needs(scheduled(), false, false) && needs(scheduled(), true, true) && !needs(scheduled(), true, false));
    assert!(!needs(json!({}), false, false), "no backup is requested");
}

/// A server whose first set is stable and running, without a pending step.
pub(crate) fn at_rest() -> (Goal, Observation, AgentReport) {
    let (revision, world) = (Revision(1), DataVersion(4556));
    let goal = Goal {
        revision,
        world,
        policy: PlayerPolicy::Announce,
        notice: SignedDuration::from_mins(5),
        empty_notice: SignedDuration::from_secs(10),
        stop_timeout: SignedDuration::from_mins(5),
        restart: None,
        eviction: EvictionPolicy::Always,
    };
    let observation = Observation {
        stateful_set: Some(StatefulSetView {
            template: revision,
            current: revision,
            update: revision,
            observed: true,
            partition: Partition::Closed,
            scaled_to_zero: false,
        }),
        pod: Some(scheduler::observation::PodView { uid: PodUid(7), revision, world, phase: PodPhase::Up }),
        players: Players::Nobody,
        empty_since: None,
        verification: Verification::Passed,
        world: WorldState { floor: world, whole: true, backup: None, played_since: true, restore_requested: true },
        node: NodeState::NotDraining,
        staged: true,
        images: scheduler::observation::ImagesOnNode::Present,
        data_restore_requested: true,
        user_restore_requested: false,
        crash_loop: false,
        agent_memory: AgentMemory::Known,
        facts: RecordedFacts { settled: Some(StableSet { revision, world }), ..RecordedFacts::default() },
    };
    let report = serde_json::from_value(json!({
        "at": "2026-11-22T12:00:00Z", "podUid": "u", "players": {"who": "nobody"}, "lock": null,
        "world": {"floor": null, "whole": true},
        "server": {"state": "up", "since": "2026-11-22T11:00:00Z", "answeredAt": "2026-11-22T12:00:00Z",
            "minecraft": "1.21.10", "build": 1, "plugins": {}},
    }));
    (goal, observation, report.unwrap())
}

#[test]
fn online_backup_runs_at_rest_and_yields_to_rollout() {
    let (goal, observation, report) = at_rest();
    let shut = Gate::Shut { opens: None };
    let may = |observation: &Observation, step| may_be_taken(&goal, observation, Some(&report), shut, step);
    for step in [
        Step::UpToDate,
        Step::Wait(WaitingOn::Window { opens: Some(at(9)) }),
        Step::Wait(WaitingOn::Players { until: at(9) }),
        Step::Wait(WaitingOn::Blocked { failed: Revision(2) }),
        Step::Wait(WaitingOn::NoImage),
        Step::Wait(WaitingOn::Eviction),
    ] {
        assert!(may(&observation, step), "{step:?}");
    }
    let disruption = Disruption::Update { goal: goal.revision, window_opened_at: at(0) };
    for step in [
        Step::Announce { disruption, pod: PodUid(7), notice: goal.notice, not_after: at(1) },
        Step::Stage,
        Step::Wait(WaitingOn::Images),
        Step::EndRestart,
        Step::Wait(WaitingOn::Countdown { ends: at(5) }),
        Step::Wait(WaitingOn::Verification { until: at(5) }),
    ] {
        assert!(!may(&observation, step), "{step:?}");
    }
    let announced = Announced { act: disruption, pod: PodUid(7), ends: at(5) };
    let announced = Observation {
        facts: RecordedFacts { announced: Some(announced), ..observation.facts.clone() },
        ..observation.clone()
    };
    let open = Gate::Open { opened_at: at(0), until: at(60) };
    assert!(!may_be_taken(&goal, &announced, Some(&report), open, Step::UpToDate), "players were warned");
    let candidate = StatefulSetView { partition: Partition::Open, ..observation.stateful_set.unwrap() };
    assert!(!may(&Observation { stateful_set: Some(candidate), ..observation.clone() }, Step::UpToDate));
    let down = scheduler::observation::PodView { phase: PodPhase::Down, ..observation.pod.unwrap() };
    assert!(!may(&Observation { pod: Some(down), ..observation.clone() }, Step::UpToDate));
    assert!(!may(&Observation { pod: None, ..observation.clone() }, Step::UpToDate));
    assert!(!may_be_taken(&goal, &observation, None, shut, Step::UpToDate), "the agent is unreachable");
    let absent = AgentReport { server: Server::Absent, ..report.clone() };
    assert!(!may_be_taken(&goal, &observation, Some(&absent), shut, Step::UpToDate));
}

#[test]
fn online_backup_runs_while_recovery_is_manual() {
    let (stable_goal, observation, report) = at_rest();
    let (failed, newer) = (Revision(2), DataVersion(4671));
    let stateful_set = StatefulSetView {
        template: failed,
        current: failed,
        update: failed,
        partition: Partition::Open,
        ..observation.stateful_set.unwrap()
    };
    let pod = scheduler::observation::PodView { revision: failed, world: newer, ..observation.pod.unwrap() };
    let facts = RecordedFacts { failed: vec![failed], ..observation.facts.clone() };
    let observation = Observation {
        stateful_set: Some(stateful_set),
        pod: Some(pod),
        world: WorldState { floor: newer, ..observation.world },
        facts,
        ..observation
    };
    let goal = Goal { revision: failed, world: newer, ..stable_goal };
    let (shut, open) = (Gate::Shut { opens: None }, Gate::Open { opened_at: at(0), until: at(60) });
    let decide = |goal: &Goal, observation: &Observation, gate: Gate| {
        let step = next_step(goal, observation, gate, at(1));
        (step, may_be_taken(goal, observation, Some(&report), gate, step))
    };
    assert_eq!(decide(&goal, &observation, shut), (Step::Wait(WaitingOn::NoBackup), true));
    assert_eq!(
        decide(&goal, &observation, open),
        (Step::Wait(WaitingOn::NoBackup), true),
        "a failed set is not tried again"
    );
    let built_on = Observation {
        world: WorldState { backup: Some(DataVersion(4556)), ..observation.world },
        ..observation.clone()
    };
    assert_eq!(decide(&goal, &built_on, shut), (Step::Wait(WaitingOn::RollbackWouldLoseProgress), true));
    let mixed = Observation { world: WorldState { whole: false, ..observation.world }, ..observation.clone() };
    assert_eq!(decide(&goal, &mixed, shut), (Step::Wait(WaitingOn::NoBackup), false));
    let down = Observation {
        pod: Some(scheduler::observation::PodView { phase: PodPhase::Down, ..pod }),
        ..observation.clone()
    };
    assert_eq!(decide(&goal, &down, shut), (Step::Wait(WaitingOn::NoBackup), false));

    // A corrected set replaces it: no backup from its announcement on.
    let corrected = Goal { revision: Revision(3), ..goal };
    assert_eq!(decide(&corrected, &observation, shut), (Step::Wait(WaitingOn::NoBackup), true), "its window is shut");
    let begins = decide(&corrected, &observation, open);
    assert!(matches!(begins, (Step::Announce { disruption: Disruption::Update { .. }, .. }, false)), "{begins:?}");
    let announced = |disruption| {
        let announced = Some(Announced { act: disruption, pod: pod.uid, ends: at(5) });
        Observation { facts: RecordedFacts { announced, ..observation.facts.clone() }, ..observation.clone() }
    };
    let counting = (Step::Wait(WaitingOn::Countdown { ends: at(5) }), false);
    let roll_forward = announced(Disruption::Update { goal: corrected.revision, window_opened_at: at(0) });
    assert_eq!(decide(&corrected, &roll_forward, open), counting);
    let cancelled = decide(&corrected, &roll_forward, shut);
    assert!(matches!(cancelled, (Step::CancelAnnouncement { .. }, false)), "{cancelled:?}");

    // A user names a backup: no backup from the announcement of the roll-back on.
    let on_request = Observation { user_restore_requested: true, ..observation.clone() };
    let begins = decide(&goal, &on_request, shut);
    assert!(matches!(begins, (Step::Announce { disruption: Disruption::RollBack { .. }, .. }, false)), "{begins:?}");
    let rollback = Observation { user_restore_requested: true, ..announced(Disruption::RollBack { failed }) };
    assert_eq!(decide(&goal, &rollback, shut), counting);
}

#[test]
fn running_online_backup_is_observed_soon() {
    let waiting = Outcome::Waiting { until: Some(at(60)) };
    assert_eq!(OnlineBackups::default().requeue_while_running(waiting), waiting);
    let running = OnlineBackups { is_running: true, ..OnlineBackups::default() };
    assert_eq!(running.requeue_while_running(waiting), Outcome::Polling { until: None });
    assert_eq!(running.requeue_while_running(Outcome::Acted), Outcome::Acted);
}
