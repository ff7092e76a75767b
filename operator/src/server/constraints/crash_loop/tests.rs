//! Pure. Tests when a crash loop leads to a stop, and how it is reported.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{CrashLoopStop, NotificationEvent, OnCrashLoop};
use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::Gate;
use scheduler::observation::{Announced, Disruption, Partition, Revision, StatefulSetView};
use scheduler::rollout::{Step, WaitingOn};
use serde_json::json;

use super::CrashLoop;
use crate::server::crash_loop::stopped::{active_stop, is_restart_requested};
use crate::server::hang::RestartedHang;
use crate::server::plan::PassInput;
use crate::server::plan::constraint::{Constraint as _, ConstraintInput};
use crate::server::report::notifications::NotificationInput;
use crate::server::report::tests::{Pass, message};
use crate::server::test_server::server;
use validate::check;

const DOWN: Step = Step::Wait(WaitingOn::ServerDown);

fn at(minutes: i64) -> Timestamp {
    Timestamp::constant(1_795_348_800, 0) + SignedDuration::from_mins(minutes)
}

/// A stable server with this number of crashes and this `onCrashLoop`, whose container waits in the kubelet's back-off.
fn crashing(count: i64, reaction: &str) -> Pass {
    let mut pass = Pass::new();
    pass.server = server(json!({"onCrashLoop": reaction}));
    pass.server.metadata.generation = Some(3);
    pass.server.metadata.annotations = Some([("nightshift.dev/apply-now".to_owned(), "1795340000".to_owned())].into());
    pass.checked = check(&pass.server).unwrap();
    let uid = pass.observed.pod.as_ref().unwrap().metadata.uid.clone();
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": at(-1).to_string()}});
    let pod = json!({
        "metadata": {"uid": uid},
        "status": {"containerStatuses": [{
            "name": "papermc", "ready": false, "restartCount": count, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": killed,
        }]},
    });
    pass.observed.pod = Some(serde_json::from_value(pod).unwrap());
    let ends: Vec<String> = (1..=count).map(|ago| at(-ago).to_string()).collect();
    pass.before = serde_json::from_value(json!({"crashes": {"pod": uid, "at": ends}})).unwrap();
    evaluate_automatic(&mut pass);
    pass
}

fn evaluate_automatic(pass: &mut Pass) -> bool {
    evaluate(pass, true)
}

fn evaluate(pass: &mut Pass, is_automatic: bool) -> bool {
    let Pass { server, checked, observed, plan, before, .. } = pass;
    let pass = PassInput { server, checked, observed, before, now: at(0) };
    CrashLoop.evaluate(plan, &ConstraintInput { pass, followed: None, is_automatic })
}

fn stops(pass: &Pass, step: Step) -> bool {
    pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.observed, step, at(0)).is_some()
}

/// The same server after its pod was deleted.
fn stopped() -> Pass {
    let mut pass = crashing(3, "Stop");
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.observed, DOWN, at(0));
    pass.before.crashes = crashes;
    pass.checked.pod.replicas = 0;
    pass.observed.pod = None;
    pass.observed.stateful_set_view =
        pass.observed.stateful_set_view.map(|stateful_set| StatefulSetView { scaled_to_zero: true, ..stateful_set });
    (pass.plan.observation.stateful_set, pass.plan.observation.pod) = (pass.observed.stateful_set_view, None);
    pass.step = Step::Wait(WaitingOn::ScaledToZero);
    evaluate_automatic(&mut pass);
    pass
}

#[test]
fn crash_loop_stops_server_only_if_configured() {
    assert!(stops(&crashing(3, "Stop"), DOWN));
    assert!(stops(&crashing(3, "Stop"), Step::UpToDate), "the agent has not noticed the exit yet");
    assert!(!stops(&crashing(2, "Stop"), DOWN));
    assert!(!stops(&crashing(3, "Continue"), DOWN));
    assert_eq!(check(&server(json!({}))).unwrap().pod.on_crash_loop, OnCrashLoop::Continue, "the default");

    let mut runs = crashing(3, "Stop");
    let status = runs.observed.pod.as_mut().unwrap().status.as_mut().unwrap();
    let state = json!({"running": {"startedAt": at(0).to_string()}});
    status.container_statuses.as_mut().unwrap()[0].state = Some(serde_json::from_value(state).unwrap());
    evaluate_automatic(&mut runs);
    assert!(runs.plan.observation.crash_loop && !stops(&runs, DOWN), "players may be online until the next exit");

    let mut scaled_to_zero = crashing(3, "Stop");
    scaled_to_zero.checked.pod.replicas = 0;
    assert!(!stops(&scaled_to_zero, DOWN), "it is already being scaled down");
}

#[test]
fn hang_in_crash_loop_stops_server_if_configured() {
    let hanging = |reaction, overdue_at| {
        let mut pass = crashing(3, reaction);
        let status = pass.observed.pod.as_mut().unwrap().status.as_mut().unwrap();
        let state = json!({"running": {"startedAt": at(-50).to_string()}});
        status.container_statuses.as_mut().unwrap()[0].state = Some(serde_json::from_value(state).unwrap());
        evaluate_automatic(&mut pass);
        pass.plan.constraints.hang = Some(RestartedHang { since: at(-3), overdue_at, due: None });
        pass
    };
    let mut pass = hanging("Stop", None);
    assert!(stops(&pass, Step::UpToDate) && !stops(&hanging("Continue", None), Step::UpToDate));
    assert!(!stops(&hanging("Stop", Some(at(1))), Step::UpToDate), "it may still answer");
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.observed, Step::UpToDate, at(0));
    assert_eq!(crashes.as_ref().unwrap().stopped.as_ref().unwrap().last, "a hang");

    // The next pass scales it to zero, unless it answers by then.
    pass.before.crashes = crashes;
    let mut is_stopped_after_answer = |minute| {
        let (since, answered_at) = (at(-50).to_string(), at(minute).to_string());
        let server = json!({"state": "up", "since": since, "answeredAt": answered_at, "minecraft": "1.21.10"});
        pass.extend_agent_report(&json!({"at": at(0).to_string(), "server": server}));
        active_stop(&pass.before, &pass.observed).is_some()
    };
    assert!(is_stopped_after_answer(-3) && !is_stopped_after_answer(0));
}

#[test]
fn crash_loop_stop_waits_for_rollout_or_request() {
    for step in [
        Step::Stage,
        Step::EndRestart,
        Step::Wait(WaitingOn::Images),
        Step::Wait(WaitingOn::Countdown { ends: at(5) }),
        Step::Wait(WaitingOn::Start { until: at(5) }),
        Step::Wait(WaitingOn::Verification { until: at(5) }),
    ] {
        assert!(!stops(&crashing(3, "Stop"), step), "{step:?}");
    }
    let mut rolling_out = crashing(3, "Stop");
    rolling_out.observed.stateful_set_view = rolling_out
        .observed
        .stateful_set_view
        .map(|stateful_set| StatefulSetView { partition: Partition::Open, ..stateful_set });
    rolling_out.plan.observation.stateful_set = rolling_out.observed.stateful_set_view;
    evaluate_automatic(&mut rolling_out);
    assert!(!stops(&rolling_out, DOWN), "a rollout in progress has a deadline of its own");

    let mut announced = crashing(3, "Stop");
    announced.plan.goal.revision = Revision(9);
    announced.plan.gate = Gate::Open { opened_at: at(-1), until: at(60) };
    let disruption = Disruption::Update { goal: Revision(9), window_opened_at: at(-1) };
    let pod = announced.plan.observation.pod.unwrap().uid;
    assert!(stops(&announced, DOWN));
    announced.plan.observation.facts.announced = Some(Announced { act: disruption, pod, ends: at(5) });
    assert!(!stops(&announced, DOWN), "players were warned");

    let mut backing_up = crashing(3, "Stop");
    backing_up.plan.tasks.backups.is_running = true;
    assert!(!stops(&backing_up, DOWN), "a backup is in progress");

    let mut restores = crashing(3, "Stop");
    let mut restoring = |result: Option<&str>| {
        let noted = json!({"asked": "latest", "seenAt": at(-1).to_string(), "result": result});
        restores.plan.tasks.restores.record = Some(serde_json::from_value(noted).unwrap());
        stops(&restores, DOWN)
    };
    assert!(!restoring(None), "a user has requested a restore");
    assert!(restoring(Some("Refused")), "the restore request is finished");
}

#[test]
fn crash_loop_stop_is_remembered_with_its_end() {
    let pass = crashing(3, "Stop");
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.observed, DOWN, at(0)).unwrap();
    let remembered = CrashLoopStop {
        at: at(0),
        generation: 3,
        last: "exit code 137 (OOMKilled)".to_owned(),
        requests: vec!["nightshift.dev/apply-now=1795340000".to_owned()],
    };
    assert_eq!((crashes.at.len(), crashes.stopped), (3, Some(remembered)));

    let mut pass = stopped();
    assert!(!is_restart_requested(&pass.server, &pass.before));
    pass.server.metadata.generation = Some(4);
    assert!(is_restart_requested(&pass.server, &pass.before));
}

#[test]
fn stopped_server_event_gives_restart_command_once() {
    let pass = stopped();
    let events = pass.event_texts("CrashLoop");
    let message =
        "3 times within an hour, last with exit code 137 (OOMKilled). It has been stopped since 2026-11-22T12:00:00Z";
    assert!(events.len() == 1 && events[0].contains(message), "{events:?}");
    let command = "kubectl -n games annotate papermcserver lobby --overwrite nightshift.dev/apply-now=\"$(date +%s)\"";
    assert!(events[0].contains(command), "{events:?}");
    assert!(events[0].len() < 512, "a notification must contain the whole text: {}", events[0].len());
    let status = pass.status();
    assert_eq!(status.crashes, pass.before.crashes, "the crash count stays unchanged");
    let reason = |of: &str| {
        status.conditions.iter().find(|condition| condition.type_ == of).map(|condition| condition.reason.as_str())
    };
    assert_eq!(reason("CrashLoop"), Some("Stopped"));
    assert_eq!((reason("Ready"), reason("Updating")), (Some("StoppedByCrashes"), Some("StoppedByCrashes")));

    let mut later = pass.next();
    later.step = Step::Wait(WaitingOn::ScaledToZero);
    evaluate_automatic(&mut later);
    assert_eq!(later.event_texts("CrashLoop"), Vec::<String>::new());
    assert!(later.plan.is_stopped());
}

#[test]
fn crash_loop_is_reported_again_when_stopped() {
    let mut pass = crashing(3, "Stop");
    assert_eq!(pass.event_texts("CrashLoop").len(), 1);
    pass.before = pass.status();
    for condition in &mut pass.before.conditions {
        condition.last_transition_time.0 = at(-30);
    }
    let notified_since = |pass: &Pass| {
        let situation = NotificationInput::new(&pass.checked, &pass.report(), &pass.before, &pass.status());
        situation.lasting.get(&NotificationEvent::CrashLoop).map(|(since, _)| *since)
    };
    assert_eq!((pass.event_texts("CrashLoop").len(), notified_since(&pass)), (0, Some(at(-30))));
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.observed, DOWN, at(0));
    pass.before.crashes = crashes;
    evaluate_automatic(&mut pass);
    assert_eq!((pass.event_texts("CrashLoop").len(), notified_since(&pass)), (1, Some(at(0))));
}

#[test]
fn stopped_server_gate_stays_closed() {
    let mut pass = stopped();
    pass.plan.goal.revision = Revision(9);
    for by_itself in [true, false] {
        pass.plan.gate = Gate::Open { opened_at: at(-1), until: at(60) };
        assert!(evaluate(&mut pass, by_itself), "{by_itself}");
    }
}

#[test]
fn crash_looping_server_starts_no_update_and_reports_once() {
    let mut pass = Pass::new();
    let uid = pass.observed.pod.as_ref().unwrap().metadata.uid.clone().unwrap();
    let crashes = |count: i64| (1..=count).map(|ago| at(-ago).to_string()).collect::<Vec<_>>();
    let before = |count| -> PaperMCServerStatus {
        serde_json::from_value(json!({"crashes": {"pod": uid, "at": crashes(count)}})).unwrap()
    };
    let open = Gate::Open { opened_at: at(-9), until: at(60) };
    for (count, by_itself, is_delayed) in [(2, true, false), (3, true, true), (3, false, false)] {
        pass.plan.gate = open;
        pass.before = before(count);
        assert_eq!(evaluate(&mut pass, by_itself), is_delayed, "{count} {by_itself}");
    }
    assert_eq!(pass.event_texts("CrashLoop").len(), 1);
    let status = pass.status();
    assert_eq!(status.crashes.as_ref().map(|crashes| crashes.at.len()), Some(3));
    assert_eq!(message(&status, "CrashLoop").unwrap().0, "ProcessEnds");
    let mut pass = pass.next();
    assert_eq!(pass.event_texts("CrashLoop"), Vec::<String>::new());

    // A rollout in progress has its own deadline.
    pass.observed.stateful_set_view =
        pass.observed.stateful_set_view.map(|set| StatefulSetView { partition: Partition::Open, ..set });
    pass.before = before(3);
    assert!(!evaluate(&mut pass, true));
    assert_eq!(pass.plan.constraints.crashes, None);
}
