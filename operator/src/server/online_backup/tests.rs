use std::sync::Arc;

use crds::paper_mc_server::PolicyKind;
use jiff::SignedDuration;
use scheduler::backup::Trigger;
use scheduler::observation::{
    AgentMemory, Announced, DataVersion, Disruption, EvictionSeen, NodeState, Partition, PlayerPolicy, Players, PodUid,
    RecordedFacts, Revision, StableSet, StatefulSetView, Verification, WorldState,
};
use scheduler::rollout::next_step;
use serde_json::{Value, json};

use super::*;
use crate::server::check::check;
use crate::server::check::tests::server;
use crate::server::render::init_orders::InitOrders;

/// 2026-11-22T12:00:00Z, an instant of a schedule of every six hours.
const NOON: i64 = 1_795_348_800;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(NOON).unwrap() + SignedDuration::from_mins(minutes)
}

fn asks(backup: &Value, value: &str) -> PaperMCServer {
    let mut server = server(json!({"backup": backup}));
    server.metadata.annotations = Some([(BACKUP_NOW.to_owned(), value.to_owned())].into());
    server
}

fn scheduled() -> Value {
    json!({"schedule": {"cron": "0 */6 * * *", "contents": "Worlds"}})
}

/// A pod whose agent may write to the backup repository or not, and reports these backups.
pub(crate) fn seen(writes: bool, backups: &Value) -> Observed {
    let pod = serde_json::from_value(json!({"spec": {"containers": [], "initContainers": [
        {"name": "prepare", "volumeMounts": [{"name": "nightshift-backup", "mountPath": "/backups"}]},
        {"name": "agent", "volumeMounts": [{"name": "nightshift-backup", "mountPath": "/backups", "readOnly": !writes}]},
    ]}}));
    let report: AgentReport = serde_json::from_value(json!({
        "at": "2026-11-22T12:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
    }))
    .unwrap();
    Observed {
        set: None,
        pod: Some(pod.unwrap()),
        facts: RecordedFacts::default(),
        shape: None,
        pod_revision: None,
        pod_lock: None,
        settled: None,
        settled_lock: None,
        key: None,
        report: Some(Arc::new(report)),
        heard: None,
        silent_since: Timestamp::UNIX_EPOCH,
        refusal: None,
        orders: InitOrders::default(),
    }
}

fn before(status: &Value) -> PaperMCServerStatus {
    serde_json::from_value(status.clone()).unwrap()
}

fn promised_noon() -> PaperMCServerStatus {
    before(&json!({"backup": {"backupCount": 0, "nextBackup": at(0).to_string()}}))
}

fn of(server: &PaperMCServer, seen: &Observed, before: &PaperMCServerStatus, now: Timestamp) -> OnlineBackups {
    OnlineBackups::of(server, &check(server).unwrap(), seen, before, false, now)
}

fn request(copies: &OnlineBackups) -> Option<&str> {
    copies.due.as_ref().map(|due| due.request.as_str())
}

#[test]
fn backup_schedule_promises_next_instant_and_serves_it() {
    let scheduled = server(json!({"backup": scheduled()}));
    let fresh = of(&scheduled, &seen(true, &json!({})), &before(&json!({})), at(60));
    assert_eq!((request(&fresh), fresh.next), (None, Some(at(360))), "nothing from before it was there");
    let on_time = of(&scheduled, &seen(true, &json!({})), &promised_noon(), at(60));
    let due = on_time.due.clone().unwrap();
    assert_eq!((due.request.as_str(), due.trigger), ("scheduled-2026-11-22T12:00:00Z", Trigger::Scheduled));
    assert_eq!((due.contents, on_time.next, on_time.upcoming), (Contents::Worlds, Some(at(0)), Some(at(360))));
    let too_late = of(&scheduled, &seen(true, &json!({})), &promised_noon(), at(180));
    assert_eq!((request(&too_late), too_late.next), (None, Some(at(360))));
    let hot = json!({"hot": {"request": due.request, "at": at(60).to_string(), "outcome": {"state": "running"}}});
    let running = of(&scheduled, &seen(true, &hot), &promised_noon(), at(61));
    assert_eq!((request(&running), running.is_running, running.next), (None, true, Some(at(360))));
}

#[test]
fn backup_serves_scheduled_instant_if_contents_suffice() {
    let copy = |contents: &str| {
        json!({"last": {
            "id": "a", "startedAt": at(1).to_string(), "completedAt": at(2).to_string(), "trigger": "beforeUpdate",
            "contents": contents, "bytes": 1, "archiveBytes": 1,
        }})
    };
    let due = |backup: Value, holds: &str| {
        of(&server(json!({"backup": backup})), &seen(true, &copy(holds)), &promised_noon(), at(5)).due.is_some()
    };
    let everything = || json!({"schedule": {"cron": "0 */6 * * *"}});
    assert_eq!(["worlds", "serverFiles", "everything"].map(|holds| due(scheduled(), holds)), [false, true, false]);
    assert_eq!(["worlds", "serverFiles", "everything"].map(|holds| due(everything(), holds)), [true, true, false]);
}

#[test]
fn backup_with_only_if_played_waits_for_player() {
    let copy = |holds: &str| {
        json!({
            "id": "a", "startedAt": at(-360).to_string(), "completedAt": at(-359).to_string(), "trigger": "scheduled",
            "contents": holds, "bytes": 1, "archiveBytes": 1,
        })
    };
    let scheduled = |contents: &str| {
        let schedule = json!({"cron": "0 */6 * * *", "contents": contents, "onlyIf": {"played": true}});
        server(json!({"backup": {"schedule": schedule}}))
    };
    let due = |holds: &str, contents: &str, played: bool| {
        let said = json!({"last": copy(holds), "unplayedSinceLast": !played});
        of(&scheduled(contents), &seen(true, &said), &promised_noon(), at(5)).due.is_some()
    };
    assert!(!due("worlds", "Worlds", false) && due("worlds", "Worlds", true));
    assert!(!due("everything", "Everything", false));
    assert!(due("worlds", "Everything", false), "settings and plugins were never copied");
    let put_back = json!({
        "last": copy("worlds"), "unplayedSinceLast": true, "restored": {"at": at(-60).to_string(), "id": "b", "setAside": "x"},
    });
    assert!(
        of(&scheduled("Worlds"), &seen(true, &put_back), &promised_noon(), at(5)).due.is_some(),
        "other worlds lie there"
    );
    let none = of(&scheduled("Worlds"), &seen(true, &json!({"unplayedSinceLast": true})), &promised_noon(), at(5));
    assert!(none.due.is_some(), "there is none yet");
}

#[test]
fn backup_request_is_accepted_for_half_an_hour_once() {
    let value = NOON.to_string();
    let asks = asks(&json!({}), &value);
    let nothing = seen(true, &json!({}));
    let fresh = of(&asks, &nothing, &before(&json!({})), at(4));
    assert_eq!((request(&fresh), fresh.accepted.as_deref()), (Some("asked-1795348800"), Some(value.as_str())));
    assert_eq!(fresh.due.unwrap().contents, Contents::Everything, "no schedule says less");
    let late = of(&asks, &nothing, &before(&json!({})), at(5));
    assert_eq!((late.due, late.accepted, late.refused), (None, None, None));
    let accepted = before(&json!({"lastHandled": {"backupNowAccepted": value}}));
    assert!(
        of(&asks, &nothing, &accepted, at(29)).due.is_some() && of(&asks, &nothing, &accepted, at(30)).due.is_none()
    );
    for outcome in [json!({"state": "taken", "id": "a"}), json!({"state": "failed", "why": "no room"})] {
        let hot = json!({"hot": {"request": "asked-1795348800", "at": at(5).to_string(), "outcome": outcome}});
        let served = of(&asks, &seen(true, &hot), &accepted, at(6));
        assert_eq!((served.due, served.accepted, served.served.as_deref()), (None, None, Some(value.as_str())));
    }
    let noted = before(&json!({"lastHandled": {"backupNow": value}}));
    assert_eq!(of(&asks, &nothing, &noted, at(6)), OnlineBackups::default());
}

#[test]
fn backup_request_refusal_gives_reason() {
    let refused = |backup: &Value, value: &str, writes: bool| {
        of(&asks(backup, value), &seen(writes, &json!({})), &before(&json!({})), at(1)).refused.unwrap_or_default()
    };
    let now = NOON.to_string();
    assert!(refused(&json!({}), "soon", true).contains("unix seconds"));
    assert!(refused(&json!(null), &now, true).contains("write `spec.backup` first"));
    assert!(refused(&json!({}), &now, false).contains("next restart"));
    let mut mute = asks(&json!({}), &now);
    (mute.spec.rcon.enabled, mute.spec.players.policy) = (false, PolicyKind::Ignore);
    let mute = of(&mute, &seen(true, &json!({})), &before(&json!({})), at(1));
    assert!(mute.due.is_none() && mute.refused.unwrap().contains("which needs RCON: set `spec.rcon.enabled: true`"));
    assert_eq!((refused(&json!({}), &now, true), refused(&json!(null), "1", true)), (String::new(), String::new()));
}

#[test]
fn invalid_backup_schedule_takes_no_backup_except_on_request() {
    let backup = json!({"schedule": {"cron": "0 0 30 2 *", "contents": "Worlds"}});
    let wrong = server(json!({"backup": backup}));
    for writes in [true, false] {
        let copies = of(&wrong, &seen(writes, &json!({})), &promised_noon(), at(1));
        assert_eq!(copies, OnlineBackups::default(), "{writes}");
    }
    let asked = of(&asks(&backup, &NOON.to_string()), &seen(true, &json!({})), &promised_noon(), at(1));
    assert_eq!((request(&asked), asked.next), (Some("asked-1795348800"), None));
    assert_eq!(asked.due.unwrap().contents, Contents::Worlds);
}

#[test]
fn pod_without_backup_support_needs_restart_if_backups_wanted() {
    let needs = |backup: Value, writes: bool, is_too_old: bool| {
        let server = server(json!({"backup": backup}));
        let seen = seen(writes, &json!({}));
        OnlineBackups::of(&server, &check(&server).unwrap(), &seen, &promised_noon(), is_too_old, at(1)).needs_restart
    };
    assert!(needs(scheduled(), false, false) && needs(scheduled(), true, true) && !needs(scheduled(), true, false));
    assert!(!needs(json!({}), false, false), "nobody asks for one");
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
        patience: SignedDuration::from_mins(5),
        restart: None,
        eviction: EvictionSeen::Always,
    };
    let seen = Observation {
        set: Some(StatefulSetView {
            template: revision,
            current: revision,
            update: revision,
            observed: true,
            door: Partition::Closed,
            asleep: false,
        }),
        pod: Some(scheduler::observation::PodView { uid: PodUid(7), revision, world, life: PodPhase::Up }),
        players: Players::Nobody,
        empty_since: None,
        verdict: Verification::Passed,
        world: WorldState { floor: world, whole: true, backup: None, played_since: true, restore_ordered: true },
        node: NodeState::Stays,
        staged: true,
        images: scheduler::observation::ImagesOnNode::Here,
        data_ordered: true,
        copy_asked: false,
        crash_loop: false,
        agent_memory: AgentMemory::Kept,
        facts: RecordedFacts { settled: Some(StableSet { revision, world }), ..RecordedFacts::default() },
    };
    let report = serde_json::from_value(json!({
        "at": "2026-11-22T12:00:00Z", "podUid": "u", "players": {"who": "nobody"}, "lock": null,
        "world": {"floor": null, "whole": true},
        "server": {"state": "up", "since": "2026-11-22T11:00:00Z", "answeredAt": "2026-11-22T12:00:00Z",
            "minecraft": "1.21.10", "build": 1, "plugins": {}},
    }));
    (goal, seen, report.unwrap())
}

#[test]
fn online_backup_runs_at_rest_and_yields_to_rollout() {
    let (goal, seen, report) = at_rest();
    let shut = Gate::Shut { opens: None };
    let may = |seen: &Observation, step| may_be_taken(&goal, seen, Some(&report), shut, step);
    for step in [
        Step::Settled,
        Step::Wait(WaitingOn::Window { opens: Some(at(9)) }),
        Step::Wait(WaitingOn::Players { until: at(9) }),
        Step::Wait(WaitingOn::Held { failed: Revision(2) }),
        Step::Wait(WaitingOn::NoImage),
        Step::Wait(WaitingOn::Eviction),
    ] {
        assert!(may(&seen, step), "{step:?}");
    }
    let act = Disruption::Update { goal: goal.revision, window_opened_at: at(0) };
    for step in [
        Step::Announce { act, pod: PodUid(7), notice: goal.notice, not_after: at(1) },
        Step::Stage,
        Step::Wait(WaitingOn::Images),
        Step::EndRestart,
        Step::Wait(WaitingOn::Countdown { ends: at(5) }),
        Step::Wait(WaitingOn::Proof { until: at(5) }),
    ] {
        assert!(!may(&seen, step), "{step:?}");
    }
    let told = Announced { act, pod: PodUid(7), ends: at(5) };
    let told = Observation { facts: RecordedFacts { announced: Some(told), ..seen.facts.clone() }, ..seen.clone() };
    let open = Gate::Open { opened_at: at(0), until: at(60) };
    assert!(!may_be_taken(&goal, &told, Some(&report), open, Step::Settled), "players were told");
    let on_trial = StatefulSetView { door: Partition::Open, ..seen.set.unwrap() };
    assert!(!may(&Observation { set: Some(on_trial), ..seen.clone() }, Step::Settled));
    let down = scheduler::observation::PodView { life: PodPhase::Down, ..seen.pod.unwrap() };
    assert!(!may(&Observation { pod: Some(down), ..seen.clone() }, Step::Settled));
    assert!(!may(&Observation { pod: None, ..seen.clone() }, Step::Settled));
    assert!(!may_be_taken(&goal, &seen, None, shut, Step::Settled), "nobody can be asked");
    let absent = AgentReport { server: Server::Absent, ..report.clone() };
    assert!(!may_be_taken(&goal, &seen, Some(&absent), shut, Step::Settled));
}

#[test]
fn online_backup_runs_while_recovery_is_manual() {
    let (settled, seen, report) = at_rest();
    let (failed, newer) = (Revision(2), DataVersion(4671));
    let set = StatefulSetView {
        template: failed,
        current: failed,
        update: failed,
        door: Partition::Open,
        ..seen.set.unwrap()
    };
    let pod = scheduler::observation::PodView { revision: failed, world: newer, ..seen.pod.unwrap() };
    let facts = RecordedFacts { failed: vec![failed], ..seen.facts.clone() };
    let seen =
        Observation { set: Some(set), pod: Some(pod), world: WorldState { floor: newer, ..seen.world }, facts, ..seen };
    let goal = Goal { revision: failed, world: newer, ..settled };
    let (shut, open) = (Gate::Shut { opens: None }, Gate::Open { opened_at: at(0), until: at(60) });
    let answer = |goal: &Goal, seen: &Observation, gate: Gate| {
        let step = next_step(goal, seen, gate, at(1));
        (step, may_be_taken(goal, seen, Some(&report), gate, step))
    };
    assert_eq!(answer(&goal, &seen, shut), (Step::Wait(WaitingOn::NoBackup), true));
    assert_eq!(answer(&goal, &seen, open), (Step::Wait(WaitingOn::NoBackup), true), "what failed is not tried again");
    let built_on = Observation { world: WorldState { backup: Some(DataVersion(4556)), ..seen.world }, ..seen.clone() };
    assert_eq!(answer(&goal, &built_on, shut), (Step::Wait(WaitingOn::RollbackWouldLoseProgress), true));
    let mixed = Observation { world: WorldState { whole: false, ..seen.world }, ..seen.clone() };
    assert_eq!(answer(&goal, &mixed, shut), (Step::Wait(WaitingOn::NoBackup), false));
    let down =
        Observation { pod: Some(scheduler::observation::PodView { life: PodPhase::Down, ..pod }), ..seen.clone() };
    assert_eq!(answer(&goal, &down, shut), (Step::Wait(WaitingOn::NoBackup), false));

    // A corrected set replaces it: no backup from its announcement on.
    let corrected = Goal { revision: Revision(3), ..goal };
    assert_eq!(answer(&corrected, &seen, shut), (Step::Wait(WaitingOn::NoBackup), true), "its window is shut");
    let begins = answer(&corrected, &seen, open);
    assert!(matches!(begins, (Step::Announce { act: Disruption::Update { .. }, .. }, false)), "{begins:?}");
    let told = |act| {
        let announced = Some(Announced { act, pod: pod.uid, ends: at(5) });
        Observation { facts: RecordedFacts { announced, ..seen.facts.clone() }, ..seen.clone() }
    };
    let counting = (Step::Wait(WaitingOn::Countdown { ends: at(5) }), false);
    let forward = told(Disruption::Update { goal: corrected.revision, window_opened_at: at(0) });
    assert_eq!(answer(&corrected, &forward, open), counting);
    let called_off = answer(&corrected, &forward, shut);
    assert!(matches!(called_off, (Step::CancelAnnouncement { .. }, false)), "{called_off:?}");

    // A user names a backup: no backup from the announcement of the roll-back on.
    let asked = Observation { copy_asked: true, ..seen.clone() };
    let begins = answer(&goal, &asked, shut);
    assert!(matches!(begins, (Step::Announce { act: Disruption::RollBack { .. }, .. }, false)), "{begins:?}");
    let back = Observation { copy_asked: true, ..told(Disruption::RollBack { failed }) };
    assert_eq!(answer(&goal, &back, shut), counting);
}

#[test]
fn online_backup_requeues_at_next_instant() {
    let copies = OnlineBackups { upcoming: Some(at(3)), ..OnlineBackups::default() };
    assert_eq!(copies.in_time(Outcome::Settled, at(0)), Outcome::Waiting { until: Some(at(3)) });
    assert_eq!(copies.in_time(Outcome::Acted, at(0)), Outcome::Acted);
    let running = OnlineBackups { is_running: true, ..copies };
    assert_eq!(running.in_time(Outcome::Waiting { until: Some(at(60)) }, at(0)), Outcome::Under { until: None });
    assert_eq!(running.in_time(Outcome::Acted, at(0)), Outcome::Acted);
}
