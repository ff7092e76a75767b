use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::Server;
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Partition, PodPhase, Revision, StatefulSetView, Verification};
use scheduler::rollout::{Step, WaitingOn, next_step};
use serde_json::json;

use super::*;
use crate::server::observe::AgentReply;
use crate::server::requested_restore::tests::after_failed_update::{FAILED, STABLE, rolling_out};
use crate::server::test_server::server;

const START_TIMEOUT: StartTimeout = StartTimeout {
    settle: SignedDuration::from_secs(60),
    start: SignedDuration::from_mins(10),
    first_start: SignedDuration::from_mins(40),
};

/// A spec with a window that is always open and a restart that is always due. Both are ignored.
fn invalid_spec() -> PaperMCServer {
    server(json!({
        "updateSchedule": {"maintenanceWindow": {"cron": "* * * * *"}}, "restart": {"cron": "* * * * *"},
        "players": {"policy": "Ignore"}, "jvm": {"heap": "lots"},
    }))
}

fn now() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

/// A rollout in progress whose agent answers.
fn rollout_in_progress() -> Observed {
    let mut observed = rolling_out(&json!(null));
    let stateful_set = json!({"metadata": {"name": "lobby"}, "spec": {
        "selector": {}, "serviceName": "lobby", "template": {"spec": {"containers": [{"name": "papermc"}]}},
    }});
    observed.stateful_set = Some(serde_json::from_value(stateful_set).unwrap());
    observed.pod_revision = Some(FAILED);
    observed
}

/// The plan for a server with an invalid spec.
fn plan(observed: &Observed) -> Plan {
    let (server, before) = (invalid_spec(), PaperMCServerStatus::default());
    let checked = check_leniently(&server).unwrap();
    let pass = PassInput { server: &server, checked: &checked, observed, before: &before, now: now() };
    build_plan(&pass, START_TIMEOUT).unwrap()
}

/// The step of a server with an invalid spec, after `of` has changed the plan.
fn step(observed: &Observed, of: impl Fn(&mut Plan)) -> Step {
    let mut plan = plan(observed);
    of(&mut plan);
    next_step(&plan.goal, &plan.observation, plan.gate, now())
}

fn with_result(result: Verification) -> impl Fn(&mut Plan) {
    move |plan| {
        plan.observation.verification = result;
        plan.observation.pod =
            plan.observation.pod.map(|pod| scheduler::observation::PodView { phase: PodPhase::Up, ..pod });
        plan.observation.world.whole = true;
    }
}

fn with_view(observed: Observed, of: impl Fn(StatefulSetView) -> StatefulSetView) -> Observed {
    Observed { stateful_set_view: observed.stateful_set_view.map(of), ..observed }
}

#[test]
fn rollout_is_marked_stable_while_spec_is_invalid() {
    let until = now() + SignedDuration::from_secs(9);
    assert_eq!(
        step(&rollout_in_progress(), with_result(Verification::Pending { until })),
        Step::Wait(WaitingOn::Verification { until })
    );
    let observed = with_view(rollout_in_progress(), |stateful_set| StatefulSetView { current: FAILED, ..stateful_set });
    for result in [Verification::Passed, Verification::Inconclusive] {
        assert_eq!(step(&observed, with_result(result)), Step::MarkStable { revision: FAILED });
    }
}

#[test]
fn rollout_with_changed_pod_image_stays_unverified() {
    let containers = |image: &str| json!({"containers": [{"name": "papermc", "image": image}]});
    let mut report = rolling_out(&json!({})).reply.report.unwrap();
    let agent = Arc::make_mut(&mut report);
    agent.lock = Some("b".repeat(64));
    agent.server = Server::Up {
        since: now() - SignedDuration::from_mins(5),
        answered_at: now(),
        hangs_since: None,
        minecraft: "1.21.11".to_owned(),
        build: Some(129),
        plugins: Some(BTreeMap::new()),
    };
    let verification = |image: &str| {
        let mut observed = rollout_in_progress();
        observed.reply.report = Some(report.clone());
        let stateful_set = observed.stateful_set.as_mut().and_then(|stateful_set| stateful_set.spec.as_mut()).unwrap();
        stateful_set.template.spec = Some(serde_json::from_value(containers("game:1")).unwrap());
        let pod = json!({"metadata": {"name": "lobby-0"}, "spec": containers(image)});
        observed.pod = Some(serde_json::from_value(pod).unwrap());
        plan(&observed).verification
    };
    assert_eq!(verification("game:1").result, Verification::Passed);
    let other = verification("game:2");
    let why = "the pod runs image `game:2`, not `game:1`";
    assert_eq!((other.result, other.problem.as_str()), (Verification::Inconclusive, why));
}

#[test]
fn verification_is_not_shortened_by_slow_node_clock() {
    let behind = SignedDuration::from_mins(20);
    let mut report = rolling_out(&json!({})).reply.report.unwrap();
    Arc::make_mut(&mut report).at = now() - behind;
    // By the operator's clock the pod is one minute old.
    let started = now() - behind - SignedDuration::from_mins(1);
    let result = |cached_report| {
        let mut observed = rollout_in_progress();
        observed.reply = AgentReply { cached_report, ..AgentReply::unreachable(now()) };
        let pod = json!({"metadata": {"name": "lobby-0"}, "status": {"startTime": started.to_string()}});
        observed.pod = Some(serde_json::from_value(pod).unwrap());
        plan(&observed).verification.result
    };
    let until = now() + SignedDuration::from_mins(14);
    assert_eq!(result(Some(report)), Verification::Pending { until });
    assert_eq!(result(None), Verification::Inconclusive, "without a report, the clock offset is unknown");
}

#[test]
fn failed_rollout_rolls_back_while_spec_is_invalid() {
    assert_eq!(step(&rollout_in_progress(), with_result(Verification::Failed)), Step::MarkFailed { revision: FAILED });
    let mut observed = rollout_in_progress();
    observed.facts.mark_failed(FAILED, None);
    let rollback = step(&observed, |plan| {
        with_result(Verification::Failed)(plan);
        plan.observation.world.restore_requested = true;
        (plan.observation.world.backup, plan.observation.world.played_since) =
            (Some(plan.observation.world.floor), false);
        plan.observation.data_restore_requested = true;
    });
    assert!(
        matches!(rollback, Step::RollBack { to: STABLE, requested_by_user: false, agent_unreachable: false, .. }),
        "{rollback:?}"
    );
    let late = step(&rollout_in_progress(), |plan| {
        let phase = PodPhase::Starting { deadline: now() };
        plan.observation.pod = plan.observation.pod.map(|pod| scheduler::observation::PodView { phase, ..pod });
    });
    assert_eq!(late, Step::MarkFailed { revision: FAILED }, "the start deadline applies, too");
}

#[test]
fn first_start_of_newer_minecraft_uses_its_own_deadline() {
    let minutes = |observed: &Observed| {
        let phase = plan(observed).observation.pod.unwrap().phase;
        let PodPhase::Starting { deadline: gives_up_at } = phase else { panic!("not starting: {phase:?}") };
        gives_up_at.duration_since(now()).as_mins()
    };
    let mut observed = rollout_in_progress();
    let metadata =
        json!({"name": "lobby-0", "uid": "00000000-0000-0000-0000-000000000008", "creationTimestamp": now()});
    observed.pod = Some(serde_json::from_value(json!({"metadata": metadata})).unwrap());
    // The 20 minutes for files and an image come first.
    assert_eq!(minutes(&observed), 20 + 40);
    observed.pod_lock = observed.stable_lock.clone();
    assert_eq!(minutes(&observed), 20 + 10, "the Minecraft version is unchanged");
}

#[test]
fn commit_without_effect_is_reverted_first() {
    let mut observed = rollout_in_progress();
    (observed.pod_revision, observed.pod_lock) = (Some(STABLE), observed.stable_lock.clone());
    assert_eq!(step(&observed, |_| {}), Step::Restore { revision: STABLE, partition: Partition::Closed });

    // The revision is stable: no further step is taken here, whatever is due.
    let stateful_set = |stateful_set: StatefulSetView| StatefulSetView {
        template: STABLE,
        current: STABLE,
        update: STABLE,
        partition: Partition::Closed,
        ..stateful_set
    };
    let observed = with_view(observed, stateful_set);
    assert_eq!(step(&observed, with_result(Verification::Passed)), Step::UpToDate);
}

#[test]
fn rollout_is_in_progress_until_its_end_is_reported() {
    let status_with = |stable: Revision| -> PaperMCServerStatus {
        serde_json::from_value(json!({"rollout": {"settled": stable.to_string()}})).unwrap()
    };
    assert!(has_unfinished_rollout(&rollout_in_progress(), &status_with(STABLE)));
    let mut observed = with_view(rollout_in_progress(), |stateful_set| StatefulSetView {
        partition: Partition::Closed,
        ..stateful_set
    });
    observed.pod_revision = Some(STABLE);
    assert!(!has_unfinished_rollout(&observed, &status_with(STABLE)));
    assert!(has_unfinished_rollout(&observed, &status_with(FAILED)), "the status has another stable revision");
    assert!(!has_unfinished_rollout(&observed, &PaperMCServerStatus::default()));
    let status_updating = |status: &str| -> PaperMCServerStatus {
        let updating = json!({"type": "Updating", "status": status, "reason": "StepExecuted", "message": "", "lastTransitionTime": now()});
        serde_json::from_value(json!({"conditions": [updating]})).unwrap()
    };
    assert!(has_unfinished_rollout(&observed, &status_updating("True")), "the end of the roll-back is not reported");
    assert!(!has_unfinished_rollout(&observed, &status_updating("False")));
    observed.facts.settled = None;
    assert!(!has_unfinished_rollout(&observed, &status_updating("True")), "a first start is no rollout");
}

#[test]
fn transient_failure_keeps_countdown_and_pending_rollout_end() {
    use scheduler::observation::{Announced, Disruption, PodUid};

    let none = PaperMCServerStatus::default();
    assert!(has_to_continue(&rollout_in_progress(), &none), "another set is running");
    let mut committed = rollout_in_progress();
    committed.pod_revision = Some(STABLE);
    assert!(!has_to_continue(&committed, &none), "the pod has not been stopped yet");
    let rollback = with_view(committed, |stateful_set| StatefulSetView { template: STABLE, ..stateful_set });
    assert!(has_to_continue(&rollback, &none), "the roll-back has to be verified");

    let status_with = |stable: Revision, updating: &str| -> PaperMCServerStatus {
        let updating =
            json!({"type": "Updating", "status": updating, "reason": "", "message": "", "lastTransitionTime": now()});
        serde_json::from_value(json!({"rollout": {"settled": stable.to_string()}, "conditions": [updating]})).unwrap()
    };
    let mut ended =
        with_view(rollback, |stateful_set| StatefulSetView { partition: Partition::Closed, ..stateful_set });
    assert!(has_to_continue(&ended, &status_with(FAILED, "False")), "the new stable revision is not reported yet");
    assert!(has_to_continue(&ended, &status_with(STABLE, "True")), "the end of the update is not reported yet");
    assert!(!has_to_continue(&ended, &status_with(STABLE, "False")), "the end is already reported");
    let disruption = Disruption::Update { goal: FAILED, window_opened_at: now() };
    ended.facts.announced = Some(Announced { act: disruption, pod: PodUid(7), ends: now() });
    assert!(!has_to_continue(&ended, &status_with(STABLE, "True")), "a countdown is in progress");
}

#[test]
fn rollout_needs_eula_even_with_invalid_spec() {
    let mut server = invalid_spec();
    server.spec.eula = Some(crds::paper_mc_server::Eula::Accepted);
    assert!(check_with_eula(&server).is_some());
    server.spec.eula = None;
    assert!(check_with_eula(&server).is_none());
}
