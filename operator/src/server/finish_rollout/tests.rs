use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use scheduler::observation::{Partition, PodPhase, Revision, StatefulSetView, Verification};
use scheduler::protocol::Server;
use scheduler::rollout::{Step, WaitingOn, next_step};
use serde_json::json;

use super::*;
use crate::server::check::tests::server;
use crate::server::requested_restore::tests::way_back::{FAILED, SETTLED, on_trial};

const PACE: StartTimeout = StartTimeout {
    settle: SignedDuration::from_secs(60),
    start: SignedDuration::from_mins(10),
    first_start: SignedDuration::from_mins(40),
};

/// A spec with a window that is always open and a restart that is always due. Both are ignored.
fn wrong_spec() -> PaperMCServer {
    server(json!({
        "updateSchedule": {"maintenanceWindow": {"cron": "* * * * *"}}, "restart": {"cron": "* * * * *"},
        "players": {"policy": "Ignore"}, "jvm": {"heap": "lots"},
    }))
}

fn now() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

/// A rollout in progress whose agent answers.
fn trial() -> Observed {
    let mut seen = on_trial(&json!(null));
    let set = json!({"metadata": {"name": "lobby"}, "spec": {
        "selector": {}, "serviceName": "lobby", "template": {"spec": {"containers": [{"name": "papermc"}]}},
    }});
    seen.set = Some(serde_json::from_value(set).unwrap());
    seen.pod_revision = Some(FAILED);
    seen
}

/// The step of a server with an invalid spec, after `of` has changed the plan.
fn step(seen: &Observed, of: impl Fn(&mut Plan)) -> Step {
    let checked = check_on_trial(&wrong_spec()).unwrap();
    let mut plan = build_plan(&checked, seen, PACE, now()).unwrap();
    of(&mut plan);
    next_step(&plan.goal, &plan.seen, plan.gate, now())
}

fn with(verdict: Verification) -> impl Fn(&mut Plan) {
    move |plan| {
        plan.seen.verdict = verdict;
        plan.seen.pod = plan.seen.pod.map(|pod| scheduler::observation::PodView { life: PodPhase::Up, ..pod });
        plan.seen.world.whole = true;
    }
}

fn shaped(seen: Observed, of: impl Fn(StatefulSetView) -> StatefulSetView) -> Observed {
    Observed { shape: seen.shape.map(of), ..seen }
}

#[test]
fn rollout_is_marked_stable_while_spec_is_invalid() {
    let until = now() + SignedDuration::from_secs(9);
    assert_eq!(step(&trial(), with(Verification::Pending { until })), Step::Wait(WaitingOn::Proof { until }));
    let seen = shaped(trial(), |set| StatefulSetView { current: FAILED, ..set });
    for verdict in [Verification::Passed, Verification::Unproven] {
        assert_eq!(step(&seen, with(verdict)), Step::MarkStable { settled: FAILED });
    }
}

#[test]
fn rollout_with_changed_pod_image_stays_unverified() {
    let containers = |image: &str| json!({"containers": [{"name": "papermc", "image": image}]});
    let mut said = on_trial(&json!({})).report.unwrap();
    let agent = Arc::make_mut(&mut said);
    agent.lock = Some("b".repeat(64));
    agent.server = Server::Up {
        since: now() - SignedDuration::from_mins(5),
        answered_at: now(),
        minecraft: "1.21.11".to_owned(),
        build: Some(129),
        plugins: Some(BTreeMap::new()),
    };
    let proof = |image: &str| {
        let mut seen = Observed { report: Some(said.clone()), ..trial() };
        let set = seen.set.as_mut().and_then(|set| set.spec.as_mut()).unwrap();
        set.template.spec = Some(serde_json::from_value(containers("game:1")).unwrap());
        let pod = json!({"metadata": {"name": "lobby-0"}, "spec": containers(image)});
        seen.pod = Some(serde_json::from_value(pod).unwrap());
        build_plan(&check_on_trial(&wrong_spec()).unwrap(), &seen, PACE, now()).unwrap().proof
    };
    assert_eq!(proof("game:1").verdict, Verification::Passed);
    let other = proof("game:2");
    let why = "the pod runs image `game:2`, not `game:1`";
    assert_eq!((other.verdict, other.problem.as_str()), (Verification::Unproven, why));
}

#[test]
fn verification_is_not_shortened_by_slow_node_clock() {
    let behind = SignedDuration::from_mins(20);
    let mut said = on_trial(&json!({})).report.unwrap();
    Arc::make_mut(&mut said).at = now() - behind;
    // By the operator's clock the pod is one minute old.
    let started = now() - behind - SignedDuration::from_mins(1);
    let verdict = |heard| {
        let mut seen = Observed { report: None, heard, silent_since: now(), ..trial() };
        let pod = json!({"metadata": {"name": "lobby-0"}, "status": {"startTime": started.to_string()}});
        seen.pod = Some(serde_json::from_value(pod).unwrap());
        build_plan(&check_on_trial(&wrong_spec()).unwrap(), &seen, PACE, now()).unwrap().proof.verdict
    };
    let until = now() + SignedDuration::from_mins(14);
    assert_eq!(verdict(Some(said)), Verification::Pending { until });
    assert_eq!(verdict(None), Verification::Unproven, "nobody knows which clock is wrong");
}

#[test]
fn failed_rollout_rolls_back_while_spec_is_invalid() {
    assert_eq!(step(&trial(), with(Verification::Failed)), Step::MarkFailed { revision: FAILED });
    let mut seen = trial();
    seen.facts.mark_failed(FAILED, None);
    let back = step(&seen, |plan| {
        with(Verification::Failed)(plan);
        plan.seen.world.restore_ordered = true;
        (plan.seen.world.backup, plan.seen.world.played_since) = (Some(plan.seen.world.floor), false);
        plan.seen.data_ordered = true;
    });
    assert!(matches!(back, Step::RollBack { to: SETTLED, asked: false, unasked: false, .. }), "{back:?}");
    let late = step(&trial(), |plan| {
        let life = PodPhase::Starting { gives_up_at: now() };
        plan.seen.pod = plan.seen.pod.map(|pod| scheduler::observation::PodView { life, ..pod });
    });
    assert_eq!(late, Step::MarkFailed { revision: FAILED }, "the deadlines of a start hold too");
}

#[test]
fn first_start_of_newer_minecraft_uses_its_own_deadline() {
    let minutes = |seen: &Observed| {
        let checked = check_on_trial(&wrong_spec()).unwrap();
        let life = build_plan(&checked, seen, PACE, now()).unwrap().seen.pod.unwrap().life;
        let PodPhase::Starting { gives_up_at } = life else { panic!("it starts: {life:?}") };
        gives_up_at.duration_since(now()).as_mins()
    };
    let mut seen = trial();
    let metadata =
        json!({"name": "lobby-0", "uid": "00000000-0000-0000-0000-000000000008", "creationTimestamp": now()});
    seen.pod = Some(serde_json::from_value(json!({"metadata": metadata})).unwrap());
    // The 20 minutes for files and an image come first.
    assert_eq!(minutes(&seen), 20 + 40);
    seen.pod_lock = seen.settled_lock.clone();
    assert_eq!(minutes(&seen), 20 + 10, "of the same Minecraft");
}

#[test]
fn commit_without_effect_is_reverted_first() {
    let mut seen = trial();
    (seen.pod_revision, seen.pod_lock) = (Some(SETTLED), seen.settled_lock.clone());
    assert_eq!(step(&seen, |_| {}), Step::Restore { revision: SETTLED, door: Partition::Closed });

    // The revision is stable: no further step is taken here, whatever is due.
    let set = |set: StatefulSetView| StatefulSetView {
        template: SETTLED,
        current: SETTLED,
        update: SETTLED,
        door: Partition::Closed,
        ..set
    };
    let seen = shaped(seen, set);
    assert_eq!(step(&seen, with(Verification::Passed)), Step::Settled);
}

#[test]
fn rollout_is_in_progress_until_its_end_is_reported() {
    let told = |settled: Revision| -> PaperMCServerStatus {
        serde_json::from_value(json!({"rollout": {"settled": settled.to_string()}})).unwrap()
    };
    assert!(is_under_way(&trial(), &told(SETTLED)));
    let mut seen = shaped(trial(), |set| StatefulSetView { door: Partition::Closed, ..set });
    seen.pod_revision = Some(SETTLED);
    assert!(!is_under_way(&seen, &told(SETTLED)));
    assert!(is_under_way(&seen, &told(FAILED)), "another one was told of last");
    assert!(!is_under_way(&seen, &PaperMCServerStatus::default()));
    let says = |status: &str| -> PaperMCServerStatus {
        let updating = json!({"type": "Updating", "status": status, "reason": "StepExecuted", "message": "", "lastTransitionTime": now()});
        serde_json::from_value(json!({"conditions": [updating]})).unwrap()
    };
    assert!(is_under_way(&seen, &says("True")), "what it went back to runs, and nobody knows");
    assert!(!is_under_way(&seen, &says("False")));
    seen.facts.settled = None;
    assert!(!is_under_way(&seen, &says("True")), "a first start");
}

#[test]
fn transient_failure_keeps_countdown_and_pending_rollout_end() {
    use scheduler::observation::{Announced, Disruption, PodUid};

    let none = PaperMCServerStatus::default();
    assert!(has_to_end(&trial(), &none), "another set runs");
    let mut committed = trial();
    committed.pod_revision = Some(SETTLED);
    assert!(!has_to_end(&committed, &none), "the pod is still to be stopped");
    let back = shaped(committed, |set| StatefulSetView { template: SETTLED, ..set });
    assert!(has_to_end(&back, &none), "it comes back, and is to be proven");

    let told = |settled: Revision, updating: &str| -> PaperMCServerStatus {
        let updating =
            json!({"type": "Updating", "status": updating, "reason": "", "message": "", "lastTransitionTime": now()});
        serde_json::from_value(json!({"rollout": {"settled": settled.to_string()}, "conditions": [updating]})).unwrap()
    };
    let mut ended = shaped(back, |set| StatefulSetView { door: Partition::Closed, ..set });
    assert!(has_to_end(&ended, &told(FAILED, "False")), "what has settled is news");
    assert!(has_to_end(&ended, &told(SETTLED, "True")), "so is that it runs again");
    assert!(!has_to_end(&ended, &told(SETTLED, "False")), "all is told");
    let act = Disruption::Update { goal: FAILED, window_opened_at: now() };
    ended.facts.announced = Some(Announced { act, pod: PodUid(7), ends: now() });
    assert!(!has_to_end(&ended, &told(SETTLED, "True")), "a countdown");
}

#[test]
fn rollout_needs_eula_even_with_invalid_spec() {
    let mut server = wrong_spec();
    server.spec.eula = Some(crds::paper_mc_server::Eula::Accepted);
    assert!(read_with_consent(&server).is_some());
    server.spec.eula = None;
    assert!(read_with_consent(&server).is_none());
}
