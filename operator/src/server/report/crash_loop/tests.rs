//! Pure. Tests when a crash loop leads to a stop, and how it is reported.

use crds::paper_mc_server::{OnCrashLoop, StoppedByCrashes};
use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::Gate;
use scheduler::observation::{Announced, Disruption, Partition, Revision, StatefulSetView};
use scheduler::rollout::{Step, WaitingOn};
use serde_json::json;

use crate::server::check::check;
use crate::server::check::tests::server;
use crate::server::crash_loop::stopped::starts_again;
use crate::server::report::notifications::NotificationInput;
use crate::server::report::tests::Pass;

const DOWN: Step = Step::Wait(WaitingOn::ServerDown);

fn at(minutes: i64) -> Timestamp {
    Timestamp::constant(1_795_348_800, 0) + SignedDuration::from_mins(minutes)
}

/// A stable server with this number of crashes and this `onCrashLoop`, whose container waits in the kubelet's back-off.
fn crashing(count: i64, wish: &str) -> Pass {
    let mut pass = Pass::new();
    pass.server = server(json!({"onCrashLoop": wish}));
    pass.server.metadata.generation = Some(3);
    pass.server.metadata.annotations = Some([("nightshift.dev/apply-now".to_owned(), "1795340000".to_owned())].into());
    pass.checked = check(&pass.server).unwrap();
    let uid = pass.seen.pod.as_ref().unwrap().metadata.uid.clone();
    let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": at(-1).to_string()}});
    let pod = json!({
        "metadata": {"uid": uid},
        "status": {"containerStatuses": [{
            "name": "papermc", "ready": false, "restartCount": count, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": killed,
        }]},
    });
    pass.seen.pod = Some(serde_json::from_value(pod).unwrap());
    let ends: Vec<String> = (1..=count).map(|ago| at(-ago).to_string()).collect();
    pass.before = serde_json::from_value(json!({"crashes": {"pod": uid, "at": ends}})).unwrap();
    hold(&mut pass);
    pass
}

fn hold(pass: &mut Pass) {
    pass.plan.hold_while_it_crashes(&pass.before, &pass.seen, true, at(0));
}

fn stops(pass: &Pass, step: Step) -> bool {
    pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.seen, step, at(0)).is_some()
}

/// The same server after its pod was deleted.
fn stopped() -> Pass {
    let mut pass = crashing(3, "Stop");
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.seen, DOWN, at(0));
    pass.before.crashes = crashes;
    pass.checked.replicas = 0;
    pass.seen.pod = None;
    pass.seen.shape = pass.seen.shape.map(|set| StatefulSetView { asleep: true, ..set });
    (pass.plan.seen.set, pass.plan.seen.pod) = (pass.seen.shape, None);
    pass.step = Step::Wait(WaitingOn::Asleep);
    hold(&mut pass);
    pass
}

#[test]
fn crash_loop_stops_server_only_if_configured() {
    assert!(stops(&crashing(3, "Stop"), DOWN));
    assert!(stops(&crashing(3, "Stop"), Step::Settled), "the agent has not seen the end yet");
    assert!(!stops(&crashing(2, "Stop"), DOWN));
    assert!(!stops(&crashing(3, "Continue"), DOWN));
    assert_eq!(check(&server(json!({}))).unwrap().on_crash_loop, OnCrashLoop::Continue, "the default");

    let mut runs = crashing(3, "Stop");
    let status = runs.seen.pod.as_mut().unwrap().status.as_mut().unwrap();
    let state = json!({"running": {"startedAt": at(0).to_string()}});
    status.container_statuses.as_mut().unwrap()[0].state = Some(serde_json::from_value(state).unwrap());
    hold(&mut runs);
    assert!(runs.plan.seen.crash_loop && !stops(&runs, DOWN), "somebody may be on: it waits for the next end");

    let mut asleep = crashing(3, "Stop");
    asleep.checked.replicas = 0;
    assert!(!stops(&asleep, DOWN), "it is on its way down already");
}

#[test]
fn crash_loop_stop_waits_for_rollout_or_request() {
    for step in [
        Step::Stage,
        Step::EndRestart,
        Step::Wait(WaitingOn::Images),
        Step::Wait(WaitingOn::Countdown { ends: at(5) }),
        Step::Wait(WaitingOn::Start { until: at(5) }),
        Step::Wait(WaitingOn::Proof { until: at(5) }),
    ] {
        assert!(!stops(&crashing(3, "Stop"), step), "{step:?}");
    }
    let mut on_trial = crashing(3, "Stop");
    on_trial.seen.shape = on_trial.seen.shape.map(|set| StatefulSetView { door: Partition::Open, ..set });
    on_trial.plan.seen.set = on_trial.seen.shape;
    hold(&mut on_trial);
    assert!(!stops(&on_trial, DOWN), "what is on trial has a deadline of its own");

    let mut told = crashing(3, "Stop");
    told.plan.goal.revision = Revision(9);
    told.plan.gate = Gate::Open { opened_at: at(-1), until: at(60) };
    let act = Disruption::Update { goal: Revision(9), window_opened_at: at(-1) };
    let pod = told.plan.seen.pod.unwrap().uid;
    assert!(stops(&told, DOWN));
    told.plan.seen.facts.announced = Some(Announced { act, pod, ends: at(5) });
    assert!(!stops(&told, DOWN), "players were told");

    let mut copies = crashing(3, "Stop");
    copies.plan.copies.is_running = true;
    assert!(!stops(&copies, DOWN), "a copy is being taken");

    let mut restores = crashing(3, "Stop");
    let mut asked = |result: Option<&str>| {
        let noted = json!({"asked": "latest", "seenAt": at(-1).to_string(), "result": result});
        restores.plan.restores.noted = Some(serde_json::from_value(noted).unwrap());
        stops(&restores, DOWN)
    };
    assert!(!asked(None), "a person wants the worlds of a copy");
    assert!(asked(Some("Refused")), "that is over");
}

#[test]
fn crash_loop_stop_is_remembered_with_its_end() {
    let pass = crashing(3, "Stop");
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.seen, DOWN, at(0)).unwrap();
    let remembered = StoppedByCrashes {
        at: at(0),
        generation: 3,
        last: "exit code 137 (OOMKilled)".to_owned(),
        requests: vec!["nightshift.dev/apply-now=1795340000".to_owned()],
    };
    assert_eq!((crashes.at.len(), crashes.stopped), (3, Some(remembered)));

    let mut pass = stopped();
    assert!(!starts_again(&pass.server, &pass.before));
    pass.server.metadata.generation = Some(4);
    assert!(starts_again(&pass.server, &pass.before));
}

#[test]
fn stopped_server_event_gives_restart_command_once() {
    let pass = stopped();
    let told = pass.said("CrashLoop");
    let words = "3 times within an hour, last with exit code 137 (OOMKilled); it is stopped since 2026-11-22T12:00:00Z";
    assert!(told.len() == 1 && told[0].contains(words), "{told:?}");
    let command = "kubectl -n games annotate papermcserver lobby --overwrite nightshift.dev/apply-now=\"$(date +%s)\"";
    assert!(told[0].contains(command), "{told:?}");
    assert!(told[0].len() < 512, "a channel is told all of it: {}", told[0].len());
    let status = pass.status();
    assert_eq!(status.crashes, pass.before.crashes, "nothing is counted on");
    let reason = |of: &str| status.conditions.iter().find(|it| it.type_ == of).map(|it| it.reason.as_str());
    assert_eq!(reason("CrashLoop"), Some("Stopped"));
    assert_eq!((reason("Ready"), reason("Updating")), (Some("StoppedByCrashes"), Some("StoppedByCrashes")));

    let mut later = pass.next();
    later.step = Step::Wait(WaitingOn::Asleep);
    hold(&mut later);
    assert_eq!(later.said("CrashLoop"), Vec::<String>::new());
    assert!(later.plan.is_stopped());
}

#[test]
fn crash_loop_is_reported_again_when_stopped() {
    let mut pass = crashing(3, "Stop");
    assert_eq!(pass.said("CrashLoop").len(), 1);
    pass.before = pass.status();
    for condition in &mut pass.before.conditions {
        condition.last_transition_time.0 = at(-30);
    }
    let told_since = |pass: &Pass| {
        let situation = NotificationInput::of(&pass.checked, &pass.report(), &pass.before, &pass.status());
        situation.crashes.map(|(since, _)| since)
    };
    assert_eq!((pass.said("CrashLoop").len(), told_since(&pass)), (0, Some(at(-30))));
    let crashes = pass.plan.stop_for_crashes(&pass.server, &pass.checked, &pass.seen, DOWN, at(0));
    pass.before.crashes = crashes;
    hold(&mut pass);
    assert_eq!((pass.said("CrashLoop").len(), told_since(&pass)), (1, Some(at(0))));
}

#[test]
fn stopped_server_gate_stays_closed() {
    let mut pass = stopped();
    pass.plan.goal.revision = Revision(9);
    for by_itself in [true, false] {
        pass.plan.gate = Gate::Open { opened_at: at(-1), until: at(60) };
        pass.plan.hold_while_it_crashes(&pass.before, &pass.seen, by_itself, at(0));
        assert_eq!((pass.plan.gate, pass.plan.held_by_crashes), (Gate::Shut { opens: None }, true), "{by_itself}");
    }
}
