//! Pure. Provides a pass for tests of reports, and tests reports that several files contribute to.

use std::sync::Arc;

use crds::paper_mc_server::HandledRequests;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use resolver::{BudgetExceeded, Limit};
use scheduler::observation::{
    DataVersion, ImagesOnNode, Partition, PlayerPolicy, Players, Revision, StableSet, StatefulSetView, Verification,
};
use scheduler::rollout::WaitingOn;
use serde_json::{Value, json};

use super::*;
use crate::caches::Rendered;
use crate::server::approval::ApprovalState;
use crate::server::check::check;
use crate::server::check::tests::server;
use crate::server::image_pull::state::{Pull, PullError};
use crate::server::online_backup::tests::seen as seen_of;
use crate::server::records::LockRecord;
use crate::server::scheduled_restart::Restarts;
use crate::server::verify::VerificationResult;

const REVISION: Revision = Revision(2);

/// A server that runs its goal, in a pass without a step.
pub(super) struct Pass {
    pub(super) server: PaperMCServer,
    pub(super) checked: CheckedServer,
    pub(super) seen: Observed,
    pub(super) plan: Plan,
    pub(super) step: Step,
    pub(super) done: StepOutcome,
    pub(super) before: PaperMCServerStatus,
}

fn at(minutes: i64) -> Timestamp {
    Timestamp::constant(1_795_348_800, 0) + SignedDuration::from_mins(minutes)
}

/// Paper 1.21.10 of this build.
pub(super) fn record(build: u32) -> Arc<LockRecord> {
    let lock = json!({
        "server": "games/lobby", "minecraft": "1.21.10", "build": build, "java": 21,
        "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "plugins": [], "facts": [],
    });
    let files = json!({
        "lock": format!("{build:064}"), "minecraft": "1.21.10", "build": build, "dataVersion": 4556, "support": [], "plugins": [],
        "server": {"path": "paper.jar", "hash": "sha256:00", "url": ""},
    });
    let (lock, files) = (serde_json::from_value(lock).unwrap(), serde_json::from_value(files).unwrap());
    Arc::new(LockRecord { lock, files })
}

impl Pass {
    pub(super) fn new() -> Self {
        let server = server(json!({}));
        let checked = check(&server).unwrap();
        let mut seen = seen_of(true, &json!({}));
        let world = DataVersion(4556);
        seen.facts.settled = Some(StableSet { revision: REVISION, world });
        seen.shape = Some(StatefulSetView {
            template: REVISION,
            current: REVISION,
            update: REVISION,
            observed: true,
            door: Partition::Closed,
            asleep: false,
        });
        seen.pod =
            Some(serde_json::from_value(json!({"metadata": {"uid": "6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e"}})).unwrap());
        (seen.pod_revision, seen.pod_lock, seen.settled_lock) = (Some(REVISION), Some(record(130)), Some(record(130)));
        let answer = plan::ResolvedLock {
            lock: None,
            explanation: Explanation::GaveUp(BudgetExceeded { steps: 9, limit: Limit::Steps, clashing: Vec::new() }),
            solved: true,
        };
        let rendered = Rendered { revision: REVISION, template: Arc::new(PodTemplateSpec::default()) };
        let consent = ApprovalState { needs_approval: false, apply_since: None, applies_another: None };
        let shut = Gate::Shut { opens: None };
        let [settle, start, first_start] = [1, 10, 30].map(SignedDuration::from_mins);
        let pace = plan::StartTimeout { settle, start, first_start };
        let mut plan = Plan::new(&checked, &seen, answer, record(130), rendered, shut, consent, pace, at(0));
        plan.proof = VerificationResult { verdict: Verification::Passed, problem: String::new() };
        let before = PaperMCServerStatus::default();
        Self { server, checked, seen, plan, step: Step::Settled, done: StepOutcome::Nothing, before }
    }

    /// Adds fields to the agent's report.
    pub(super) fn agent_says(&mut self, more: &Value) {
        let agent = self.seen.report.as_deref().unwrap();
        let mut agent = serde_json::to_value(agent).unwrap();
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.seen.report = Some(Arc::new(serde_json::from_value(agent).unwrap()));
    }

    pub(super) fn report(&self) -> PassReport<'_> {
        PassReport { seen: &self.seen, plan: &self.plan, step: self.step, done: &self.done, now: at(0) }
    }

    pub(super) fn status(&self) -> PaperMCServerStatus {
        let report = self.report();
        let mut status = status::build_status(&self.server, &self.checked, &report, &self.before);
        status.conditions = conditions::build_conditions(&self.server, &self.checked, &report, &self.before);
        status
    }

    /// The texts of the Events with this reason.
    pub(super) fn said(&self, reason: &str) -> Vec<String> {
        let notes = events::build_notes(&self.checked, &self.report(), &self.before);
        notes.into_iter().filter(|note| note.reason == reason).map(|note| note.text).collect()
    }

    /// The next pass, which sees the status of this one.
    pub(super) fn next(mut self) -> Self {
        (self.before, self.step, self.done) = (self.status(), Step::Settled, StepOutcome::Nothing);
        self
    }
}

fn unproven(problem: &str) -> VerificationResult {
    VerificationResult { verdict: Verification::Unproven, problem: problem.to_owned() }
}

fn message<'a>(status: &'a PaperMCServerStatus, of: &str) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == of);
    found.map(|condition| (condition.reason.as_str(), condition.message.as_str()))
}

#[test]
fn drift_condition_names_files_and_clears() {
    let mut pass = Pass::new();
    pass.agent_says(&json!({"drift": ["plugins/Shop.jar", "plugins/Via.jar"]}));
    let status = pass.status();
    assert_eq!(message(&status, "Drifted"), Some(("FilesDiffer", "not as locked: plugins/Shop.jar, plugins/Via.jar")));
    pass.agent_says(&json!({"drift": []}));
    assert_eq!(message(&pass.status(), "Drifted"), None);
}

#[test]
fn unverified_update_is_reported_until_verified_later() {
    let mut pass = Pass::new();
    pass.before.update = Some("Paper 129 -> 130".to_owned());
    pass.seen.settled_lock = Some(record(129));
    (pass.step, pass.done) = (Step::MarkStable { settled: REVISION }, StepOutcome::Closed(MarkedStable::Update));
    pass.plan.proof = unproven("the server's log could not be read");
    assert_eq!(pass.said("UpdateApplied"), Vec::<String>::new());
    let told = pass.said("UpdateUnverified").pop().unwrap();
    assert!(
        told.starts_with("kept, and not proven: the server's log could not be read; running 1.21.10-130"),
        "{told}"
    );
    let last = pass.status().last_update.unwrap();
    assert!(last.successful && last.unproven);
    assert_eq!(last.message, "not proven: the server's log could not be read; Paper 129 -> 130");

    // The next pass sees the record that was written.
    let mut pass = pass.next();
    pass.seen.settled_lock = Some(record(130));
    pass.seen.settled = Some(Arc::new(crate::server::records::SettledRecord {
        template: PodTemplateSpec::default(),
        baseline: crate::server::verify::Baseline::default(),
        unproven: Some("the server's log could not be read".to_owned()),
    }));
    let mut pass = pass.next();
    assert!(pass.before.history[0].unproven, "{:?}", pass.before.history);
    assert_eq!(pass.said("UpdateVerified"), Vec::<String>::new());

    pass.plan.proof = VerificationResult { verdict: Verification::Passed, problem: String::new() };
    assert_eq!(pass.said("UpdateVerified").len(), 1);
    let mut pass = pass.next();
    assert!(!pass.before.history[0].unproven);
    assert_eq!(pass.said("UpdateVerified"), Vec::<String>::new(), "once");

    (pass.step, pass.done) = (Step::MarkStable { settled: REVISION }, StepOutcome::Closed(MarkedStable::Update));
    assert_eq!((pass.said("UpdateApplied").len(), pass.said("UpdateUnverified").len()), (1, 0));
    assert!(!pass.status().last_update.unwrap().unproven);
}

#[test]
fn failed_start_has_reason_in_event_and_status() {
    let mut pass = Pass::new();
    let late = scheduler::observation::PodPhase::Starting { gives_up_at: at(-1) };
    pass.plan.seen.pod = pass.plan.seen.pod.map(|pod| scheduler::observation::PodView { life: late, ..pod });
    pass.plan.proof = VerificationResult { verdict: Verification::Pending { until: at(9) }, problem: String::new() };
    pass.done = StepOutcome::MarkedFailed;
    let why = "the server did not come up by its deadline; see the log of container `papermc`";
    assert_eq!(pass.said("UpdateFailed"), [why]);
    pass.done = StepOutcome::RolledBack { unasked: false };
    assert_eq!(pass.status().last_update.unwrap().message, why);
}

#[test]
fn failed_update_downtime_sums_both_stops() {
    let up = |since| json!({"state": "up", "since": at(since).to_string(), "answeredAt": at(since).to_string(), "minecraft": "1.21.10"});
    let stop_at = |minute| json!({"at": at(minute).to_string(), "saved": true, "why": "asked"});
    // Either it never came up, and the stop before is the last one, or it was up for eight minutes and was stopped again.
    for (came_up, last_stop, back, down) in [(None, -10, 1, 11 * 60), (Some(-8), 2, 5, 5 * 60)] {
        let mut pass = Pass::new();
        let server = came_up.map_or_else(|| json!({"state": "starting", "progressAt": at(-1).to_string()}), up);
        pass.agent_says(&json!({"lastStop": stop_at(-10), "server": server}));
        pass.done = StepOutcome::RolledBack { unasked: false };
        let mut pass = pass.next();
        pass.agent_says(&json!({"lastStop": stop_at(last_stop), "server": up(back)}));
        assert!(pass.before.last_update.as_ref().unwrap().going_back);
        pass.done = StepOutcome::Closed(MarkedStable::Before);
        let stop = came_up.map(|_| "rollBack");
        assert_eq!(
            counted_stop(&pass.report(), &pass.before),
            stop,
            "a set that never came up was not stopped once more"
        );
        let over = pass.status().last_update.unwrap();
        assert_eq!((over.down_seconds, over.going_back), (Some(down), false), "{came_up:?}");
        // Later another pod becomes stable again, after a commit that was reverted at the last moment.
        let mut pass = pass.next();
        pass.agent_says(&json!({"lastStop": stop_at(700), "server": up(701)}));
        pass.done = StepOutcome::Closed(MarkedStable::Before);
        assert_eq!(pass.status().last_update.unwrap().down_seconds, Some(down), "that is another matter");
        assert_eq!(counted_stop(&pass.report(), &pass.before), None);
    }
}

#[test]
fn next_restart_is_window_of_update_it_yields_to() {
    let mut pass = Pass::new();
    let (next, next_gives_way_until) = (Some(at(60)), Some(at(420)));
    pass.plan.restarts = Restarts { due: None, next, next_gives_way_until };
    pass.plan.outlook.next_opening = Some(at(420));
    let next_restart = |pass: &Pass| (pass.status().next_restart, pass.status().next_restart_at);
    let shown = |minute| Some(status::for_people(at(minute), &Pass::new().checked.zone, at(0)));
    assert_eq!(next_restart(&pass), (shown(60), next), "nothing is planned");
    (pass.plan.goal.revision, pass.plan.seen.staged) = (Revision(3), true);
    assert_eq!(next_restart(&pass), (shown(420), Some(at(420))));
    pass.plan.outlook.next_opening = Some(at(421));
    assert_eq!(next_restart(&pass), (shown(60), next), "another night");
    pass.plan.outlook.next_opening = Some(at(59));
    assert_eq!(next_restart(&pass), (shown(60), next), "the update comes first");
    let policy = PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_hours(1) };
    (pass.plan.goal.policy, pass.plan.outlook.next_opening) = (policy, Some(at(420)));
    assert_eq!(next_restart(&pass), (shown(60), next), "players may stay all night");
}

#[test]
fn unreachable_agent_is_reported_with_start_time() {
    let mut pass = Pass::new();
    pass.step = Step::Wait(WaitingOn::Agent { until: at(9) });
    pass.plan.seen.players = Players::Unknown { since: at(-3) };
    let wanted = format!("going on at {}; nobody can be asked since {}", at(9), at(-3));
    assert_eq!(message(&pass.status(), "Updating"), Some(("AgentUnreachable", wanted.as_str())));
    pass.step = Step::Wait(WaitingOn::NodeLost);
    let ended =
        json!({"metadata": {"deletionTimestamp": at(-2).to_string()}, "spec": {"nodeName": "a", "containers": []}});
    pass.seen.pod = Some(serde_json::from_value(ended).unwrap());
    let status = pass.status();
    let (reason, words) = message(&status, "Updating").unwrap();
    assert_eq!(reason, "NodeLost");
    assert!(words.starts_with(&format!("node `a` does not answer; its pod had to end by {}. Make", at(-2))), "{words}");
}

#[test]
fn unsaved_stop_is_reported_once_and_kept_in_status() {
    let mut pass = Pass::new();
    let stopped = at(-1).to_string();
    pass.agent_says(&json!({"lastStop": {"at": stopped, "saved": false, "why": "it hung", "players": 3}}));
    assert_eq!(pass.said("StoppedUnsaved").len(), 1);
    let pass = pass.next();
    assert_eq!(pass.before.last_stop.as_ref().map(|stop| (stop.saved, stop.players)), Some((false, Some(3))));
    assert_eq!(pass.said("StoppedUnsaved"), Vec::<String>::new());
    let mut pass = pass.next();
    pass.agent_says(&json!({"lastStop": {"at": at(0).to_string(), "saved": false, "why": "it hung"}}));
    assert_eq!(pass.said("StoppedUnsaved").len(), 1, "another stop");
}

#[test]
fn crash_looping_server_starts_no_update_and_reports_once() {
    let mut pass = Pass::new();
    let uid = pass.seen.pod.as_ref().unwrap().metadata.uid.clone().unwrap();
    let crashes = |count: i64| (1..=count).map(|ago| at(-ago).to_string()).collect::<Vec<_>>();
    let before = |count| -> PaperMCServerStatus {
        serde_json::from_value(json!({"crashes": {"pod": uid, "at": crashes(count)}})).unwrap()
    };
    let open = Gate::Open { opened_at: at(-9), until: at(60) };
    let shut = Gate::Shut { opens: None };
    for (count, by_itself, gate) in [(2, true, open), (3, true, shut), (3, false, open)] {
        pass.plan.gate = open;
        pass.plan.hold_while_it_crashes(&before(count), &pass.seen, by_itself, at(0));
        assert_eq!(pass.plan.gate, gate, "{count} {by_itself}");
    }
    assert_eq!(pass.said("CrashLoop").len(), 1);
    let status = pass.status();
    assert_eq!(status.crashes.as_ref().map(|crashes| crashes.at.len()), Some(3));
    assert_eq!(message(&status, "CrashLoop").unwrap().0, "ProcessEnds");
    let mut pass = pass.next();
    assert_eq!(pass.said("CrashLoop"), Vec::<String>::new());

    // A rollout in progress has its own deadline.
    pass.seen.shape = pass.seen.shape.map(|set| StatefulSetView { door: Partition::Open, ..set });
    pass.plan.hold_while_it_crashes(&before(3), &pass.seen, true, at(0));
    assert_eq!((pass.plan.crashes.clone(), pass.plan.held_by_crashes), (None, false));
}

#[test]
fn damage_condition_names_backup_before_damage() {
    let told = json!({
        "since": at(-9).to_string(), "last": at(-1).to_string(), "lines": 7, "first": "Chunk [1, 2] is allocated, but stream is missing",
    });
    let copy = json!({
        "id": "20261122T030000Z-aaaaaaaa", "startedAt": at(-60).to_string(), "completedAt": at(-59).to_string(),
        "trigger": "onDemand", "contents": "worlds", "bytes": 1, "archiveBytes": 1,
    });
    let mut pass = Pass::new();
    pass.agent_says(&json!({"damage": told}));
    let without = pass.said("WorldDamaged").pop().unwrap();
    assert!(without.contains("This server takes no copies"), "{without}");
    pass.agent_says(&json!({"backups": {"lastBeforeDamage": copy}}));
    let status = pass.status();
    let (reason, text) = message(&status, "WorldDamaged").unwrap();
    assert_eq!(reason, "ReportedByLog");
    assert!(
        text.contains(
            "`Chunk [1, 2] is allocated, but stream is missing`. The newest copy from before that line is of "
        ),
        "{text}"
    );
    assert!(text.contains("restore-from=\"20261122T030000Z-aaaaaaaa;overwrite\"`"), "{text}");

    let mut pass = pass.next();
    assert_eq!(pass.said("WorldDamaged"), Vec::<String>::new(), "once");
    let agent = pass.seen.report.take();
    assert!(message(&pass.status(), "WorldDamaged").is_some(), "while nobody can be asked, what was said last stands");
    pass.seen.report = agent;
    pass.agent_says(&json!({"damage": null}));
    assert_eq!(message(&pass.status(), "WorldDamaged"), None);
}

#[test]
fn blocked_update_gets_no_window_in_status() {
    let mut pass = Pass::new();
    pass.plan.outlook.next_opening = Some(at(5));
    let said = |pass: &Pass| {
        let status = pass.status();
        let situation = NotificationInput::of(&pass.checked, &pass.report(), &pass.before, &status);
        (status.next_window_at, situation.planned.and_then(|planned| planned.opens), status.next_window.unwrap())
    };
    let opens = Some(at(5));
    assert_eq!((said(&pass).0, said(&pass).1), (opens, None), "there is nothing to come");
    pass.plan.held_by_crashes = true;
    assert_eq!(said(&pass).0, opens, "nothing is kept back");

    pass.plan.goal.revision = Revision(3);
    assert_eq!(said(&pass), (None, None, "crash loop".to_owned()));
    let planned = pass.said("UpdatePlanned").pop().unwrap();
    assert!(planned.starts_with("crash loop: "), "{planned}");
    pass.plan.held_by_crashes = false;
    assert_eq!((said(&pass).0, said(&pass).1), (opens, opens));

    pass.plan.seen.images = ImagesOnNode::Failed;
    assert_eq!(said(&pass), (None, None, "waits for an image".to_owned()));
    for images in [ImagesOnNode::OnTheirWay, ImagesOnNode::Unknown] {
        pass.plan.seen.images = images;
        assert_eq!(said(&pass).1, opens, "it may come: {images:?}");
    }
    pass.plan.seen.staged = false;
    assert_eq!(said(&pass).1, opens, "they may be brought until then");
    let lock = &pass.plan.record.files.lock;
    pass.agent_says(&json!({"staging": {"lock": lock, "done": 0, "of": 1, "error": "no room"}}));
    assert_eq!(said(&pass), (None, None, "waits for its files".to_owned()));
}

#[test]
fn unanswered_image_pull_is_reported_once_without_blocking() {
    let mut pass = Pass::new();
    pass.plan.goal.revision = Revision(3);
    let goal = crate::server::image_pull::request::tests::goal(("game:2", "IfNotPresent"), "agent:1");
    let pod = serde_json::from_value(crate::server::image_pull::request::tests::pod("game:1")).unwrap();
    let question = crate::server::image_pull::request::PullRequest::of(&goal, &pod).unwrap();
    let problem = |is_of_an_image| PullError { is_of_an_image, what: "node `a`".to_owned(), why: "full".to_owned() };
    let of = |is_of_an_image| {
        let mut pull = Pull::new(question.clone());
        pull.problem = Some(problem(is_of_an_image));
        pull
    };
    pass.plan.images = Some(of(false));
    let status = pass.status();
    let (reason, words) = message(&status, "ImagesPulled").unwrap();
    assert_eq!(reason, "NodeUnavailable");
    assert!(words.starts_with("node `a`: full. The update comes all the same"), "{words}");
    let condition = status.conditions.iter().find(|condition| condition.type_ == "ImagesPulled").unwrap();
    assert_eq!(condition.status, "Unknown");
    assert_eq!(status.available_update.unwrap().image_problem, None, "it waits for none");
    assert_eq!((pass.said("NodeUnavailable").len(), pass.said("PullFailed").len()), (1, 0));
    let mut pass = pass.next();
    assert_eq!(pass.said("NodeUnavailable"), Vec::<String>::new(), "once");

    pass.plan.images = Some(of(true));
    let status = pass.status();
    assert_eq!(message(&status, "ImagesPulled").unwrap().0, "PullFailed");
    assert!(status.available_update.unwrap().image_problem.is_some());
}

/// A server that is also updated when it is empty.
fn opportunistic() -> Pass {
    let mut pass = Pass::new();
    let schedule = json!({"maintenanceWindow": {"cron": "0 4 * * 0"}, "opportunistic": {}});
    pass.server = server(json!({"updateSchedule": schedule}));
    pass.checked = check(&pass.server).unwrap();
    pass
}

#[test]
fn opportunistic_update_applies_unless_otherwise_blocked() {
    let comes = |change: &dyn Fn(&mut Plan)| {
        let mut pass = opportunistic();
        change(&mut pass.plan);
        pass.plan.comes_when_empty(&pass.checked)
    };
    assert!(comes(&|_| {}));
    assert!(!comes(&|plan| plan.held_by_crashes = true));
    assert!(!comes(&|plan| plan.consent.needs_approval = true));
    assert!(!comes(&|plan| plan.outlook.blackout = Some(("event".to_owned(), at(9)))));
    let in_windows_only = Pass::new();
    assert!(!in_windows_only.plan.comes_when_empty(&in_windows_only.checked));
}

#[test]
fn withdrawn_eula_during_rollout_is_reported() {
    let server = server(json!({}));
    let before = condition(&server, "Updating", Some(true), "Proving", "until 04:10".to_owned(), at(0), &[]);
    let trouble = PlanningError::Eula("set `spec.eula`".to_owned());
    assert!(!trouble.lets_a_trial_end() && !PlanningError::NoCatalog.lets_a_trial_end());
    assert!(PlanningError::Spec(String::new()).lets_a_trial_end());
    let said = |on_trial| {
        let before = std::slice::from_ref(&before);
        let conditions = conditions::build_trouble(&server, &trouble.in_the_way(), on_trial, at(1), before);
        let updating: Vec<_> = conditions.into_iter().filter(|condition| condition.type_ == "Updating").collect();
        let [updating] = updating.as_slice() else { panic!("one of them: {updating:?}") };
        (updating.reason.clone(), updating.message.clone())
    };
    assert_eq!(said(false), ("Proving".to_owned(), "until 04:10".to_owned()));
    let (reason, message) = said(true);
    assert_eq!(reason, "RolloutPaused");
    assert!(message.contains("a roll-back") && message.ends_with("mended: set `spec.eula`"), "{message}");
}

/// The status after a pass without a plan.
fn unplanned(pass: &Pass) -> PaperMCServerStatus {
    let why = PlanningError::Spec("`spec.jvm.heap` is wrong".to_owned()).in_the_way();
    let report = pass.report();
    let mut status = status::build_on_trial(&pass.server, &pass.checked, &report, &pass.before);
    status.conditions = conditions::build_on_trial(&pass.server, &pass.checked, &report, &why, &pass.before);
    status
}

#[test]
fn rollout_end_under_invalid_spec_clears_plan() {
    let mut pass = Pass::new();
    pass.before = serde_json::from_value(json!({
        "update": "Paper 129 -> 130", "nextWindow": "now", "lastHandled": {"applyNow": "1", "applyNowAccepted": "2"},
        "availableUpdate": {"digest": format!("{:064}", 130), "version": "1.21.10", "build": 130, "summary": "", "staged": true},
    }))
    .unwrap();
    let old = |of, reason: &str| condition(&pass.server, of, Some(true), reason, String::new(), at(0), &[]);
    pass.before.conditions = vec![old("UpdateAvailable", "UpdatePlanned"), old("Resolved", "Solved")];
    pass.seen.settled_lock = Some(record(129));
    (pass.step, pass.done) = (Step::MarkStable { settled: REVISION }, StepOutcome::Closed(MarkedStable::Update));
    let status = unplanned(&pass);
    let last = status.last_update.clone().unwrap();
    assert!(last.successful && last.message == "Paper 129 -> 130", "{last:?}");
    assert_eq!(status.update, pass.before.update, "the channels say it in the next pass");
    assert_eq!(message(&status, "Resolved"), Some(("SpecInvalid", "`spec.jvm.heap` is wrong")));
    assert_eq!(message(&status, "Updating").map(|(reason, _)| reason), Some("StepExecuted"));
    assert_eq!(message(&status, "Ready").map(|(reason, _)| reason), Some("Starting"));
    assert!(message(&status, "UpdateAvailable").is_some());
    assert_eq!(status.last_handled, pass.before.last_handled, "that is said with it");

    (pass.before, pass.step, pass.done) = (status, Step::Settled, StepOutcome::Nothing);
    pass.seen.settled_lock = Some(record(130));
    let status = unplanned(&pass);
    assert_eq!((status.update.as_ref(), status.next_window.as_ref()), (None, None));
    let HandledRequests { apply_now, apply_now_accepted, .. } = status.last_handled.clone().unwrap();
    assert_eq!(
        (apply_now.as_deref(), apply_now_accepted),
        (Some("2"), None),
        "served, and opens the gate for nothing else"
    );
    assert_eq!(status.history.first().map(|past| past.version.as_str()), Some("1.21.10-130"));
    assert_eq!(message(&status, "UpdateAvailable"), None, "nobody knows");
    assert_eq!(message(&status, "Updating").map(|(reason, _)| reason), Some("Stable"));
    let notes = events::of_the_server(&pass.checked, &pass.report(), &pass.before);
    assert!(notes.iter().all(|note| note.reason != "UpdatePlanned"), "nothing is planned");
}
