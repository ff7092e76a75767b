//! Pure. Provides a pass for tests of reports, and tests reports that several files contribute to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::paper_mc_server::HandledRequests;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use resolver::{BudgetExceeded, Limit};
use scheduler::maintenance::Gate;
use scheduler::observation::{
    DataVersion, ImagesOnNode, Partition, PlayerPolicy, Players, Revision, StableSet, StatefulSetView, Verification,
};
use scheduler::rollout::{Step, WaitingOn};
use serde_json::{Value, json};

use super::*;
use crate::caches::Rendered;
use crate::server::approval::ApprovalState;
use crate::server::changes::TemplateChange;
use crate::server::constraints::crash_loop::CrashLoop;
use crate::server::drain::Drain;
use crate::server::model::image_pull::state::{Pull, PullError};
use crate::server::model::records::LockRecord;
use crate::server::online_backup::tests::observed as observed_with;
use crate::server::partial::PartialSelection;
use crate::server::plan::{ApplyRequest, ConstraintStates, OtherTasks, PassInput, Plan, Selection, Target};
use crate::server::scheduled_restart::ScheduledRestarts;
use crate::server::test_server::server;
use crate::server::verify::VerificationResult;
use validate::{CheckedServer, check};

const REVISION: Revision = Revision(2);

/// A server that runs its goal, in a pass without a step.
pub(crate) struct Pass {
    pub(crate) server: PaperMCServer,
    pub(crate) checked: CheckedServer,
    pub(crate) observed: Observed,
    pub(crate) plan: Plan,
    pub(crate) step: Step,
    pub(crate) done: StepOutcome,
    pub(crate) before: PaperMCServerStatus,
}

fn at(minutes: i64) -> Timestamp {
    Timestamp::constant(1_795_348_800, 0) + SignedDuration::from_mins(minutes)
}

/// Paper 1.21.10 of this build.
pub(crate) fn record(build: u32) -> Arc<LockRecord> {
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
    pub(crate) fn new() -> Self {
        let server = server(json!({}));
        let checked = check(&server).unwrap();
        let mut observed = observed_with(true, &json!({}));
        let world = DataVersion(4556);
        observed.facts.settled = Some(StableSet { revision: REVISION, world });
        observed.stateful_set_view = Some(StatefulSetView {
            template: REVISION,
            current: REVISION,
            update: REVISION,
            observed: true,
            partition: Partition::Closed,
            scaled_to_zero: false,
        });
        observed.pod =
            Some(serde_json::from_value(json!({"metadata": {"uid": "6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e"}})).unwrap());
        (observed.pod_revision, observed.pod_lock, observed.stable_lock) =
            (Some(REVISION), Some(record(130)), Some(record(130)));
        let selection = Selection {
            explanation: Explanation::GaveUp(BudgetExceeded { steps: 9, limit: Limit::Steps, clashing: Vec::new() }),
            solved: true,
            deciding: BTreeMap::new(),
            pinned_set: None,
            partial: PartialSelection::Nothing,
            partial_until: None,
        };
        let rendered = Rendered { revision: REVISION, template: Arc::new(PodTemplateSpec::default()), source: None };
        let approval = ApprovalState { needs_approval: false, apply_since: None, requests_other_set: None };
        let shut = Gate::Shut { opens: None };
        let [settle, start, first_start] = [1, 10, 30].map(SignedDuration::from_mins);
        let start_timeout = plan::StartTimeout { settle, start, first_start };
        let template_change = TemplateChange::Settings;
        let target =
            Target { record: record(130), rendered, changes: Vec::new(), template_change, files_problem: None };
        let states = ConstraintStates::new(approval, ApplyRequest::default(), Drain::unknown());
        let before = PaperMCServerStatus::default();
        let pass = PassInput { server: &server, checked: &checked, observed: &observed, before: &before, now: at(0) };
        let mut plan = Plan::new(&pass, target, selection, states, OtherTasks::default(), shut, start_timeout);
        plan.verification = VerificationResult { result: Verification::Passed, problem: String::new() };
        Self { server, checked, observed, plan, step: Step::UpToDate, done: StepOutcome::Nothing, before }
    }

    /// Adds fields to the agent's report.
    pub(crate) fn extend_agent_report(&mut self, more: &Value) {
        let agent = self.observed.reply.report.as_deref().unwrap();
        let mut agent = serde_json::to_value(agent).unwrap();
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.observed.reply.report = Some(Arc::new(serde_json::from_value(agent).unwrap()));
    }

    pub(crate) fn report(&self) -> PassReport<'_> {
        let Self { server, checked, observed, before, .. } = self;
        let pass = PassInput { server, checked, observed, before, now: at(0) };
        PassReport { pass, plan: &self.plan, step: self.step, done: &self.done }
    }

    pub(crate) fn status(&self) -> PaperMCServerStatus {
        let report = self.report();
        let mut status = status::build_status(&self.server, &self.checked, &report, &self.before);
        status.conditions = conditions::build_conditions(&report);
        status
    }

    /// The texts of the Events with this reason.
    pub(crate) fn event_texts(&self, reason: &str) -> Vec<String> {
        let events = events::build_events(&self.checked, &self.report(), &self.before);
        events.into_iter().filter(|event| event.reason == reason).map(|event| event.text).collect()
    }

    /// The next pass, which sees the status of this one.
    pub(crate) fn next(mut self) -> Self {
        (self.before, self.step, self.done) = (self.status(), Step::UpToDate, StepOutcome::Nothing);
        self
    }
}

fn unverified(problem: &str) -> VerificationResult {
    VerificationResult { result: Verification::Inconclusive, problem: problem.to_owned() }
}

pub(crate) fn message<'a>(status: &'a PaperMCServerStatus, of: &str) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == of);
    found.map(|condition| (condition.reason.as_str(), condition.message.as_str()))
}

#[test]
fn drift_condition_names_files_and_clears() {
    let mut pass = Pass::new();
    pass.extend_agent_report(&json!({"drift": ["plugins/Shop.jar", "plugins/Via.jar"]}));
    let status = pass.status();
    assert_eq!(
        message(&status, "Drifted"),
        Some((
            "FilesDiffer",
            "These files differ from the lock: plugins/Shop.jar, \
    plugins/Via.jar"
        ))
    );
    pass.extend_agent_report(&json!({"drift": []}));
    assert_eq!(message(&pass.status(), "Drifted"), None);
}

#[test]
fn unverified_update_is_reported_until_verified_later() {
    let mut pass = Pass::new();
    pass.before.update = Some("Paper 129 -> 130".to_owned());
    pass.observed.stable_lock = Some(record(129));
    (pass.step, pass.done) = (Step::MarkStable { revision: REVISION }, StepOutcome::MarkedStable(MarkedStable::Update));
    pass.plan.verification = unverified("the server's log could not be read");
    assert_eq!(pass.event_texts("UpdateApplied"), Vec::<String>::new());
    let message = pass.event_texts("UpdateUnverified").pop().unwrap();
    assert!(
        message.starts_with("Kept without verification: the server's log could not be read. Running 1.21.10-130"),
        "{message}"
    );
    let last = pass.status().last_update.unwrap();
    assert!(last.successful && last.unverified);
    assert_eq!(last.message, "not verified: the server's log could not be read. Paper 129 -> 130");

    // The next pass sees the record that was written.
    let mut pass = pass.next();
    pass.observed.stable_lock = Some(record(130));
    pass.observed.stable = Some(Arc::new(crate::server::model::records::StableRecord {
        template: PodTemplateSpec::default(),
        baseline: crate::server::model::baseline::Baseline::default(),
        unverified: Some("the server's log could not be read".to_owned()),
        source: None,
    }));
    let mut pass = pass.next();
    assert!(pass.before.history[0].unverified, "{:?}", pass.before.history);
    assert_eq!(pass.event_texts("UpdateVerified"), Vec::<String>::new());

    pass.plan.verification = VerificationResult { result: Verification::Passed, problem: String::new() };
    assert_eq!(pass.event_texts("UpdateVerified").len(), 1);
    let mut pass = pass.next();
    assert!(!pass.before.history[0].unverified);
    assert_eq!(pass.event_texts("UpdateVerified"), Vec::<String>::new(), "the Event is sent once");

    (pass.step, pass.done) = (Step::MarkStable { revision: REVISION }, StepOutcome::MarkedStable(MarkedStable::Update));
    assert_eq!((pass.event_texts("UpdateApplied").len(), pass.event_texts("UpdateUnverified").len()), (1, 0));
    assert!(!pass.status().last_update.unwrap().unverified);
}

#[test]
fn failed_start_has_reason_in_event_and_status() {
    let mut pass = Pass::new();
    let late = scheduler::observation::PodPhase::Starting { deadline: at(-1) };
    pass.plan.observation.pod =
        pass.plan.observation.pod.map(|pod| scheduler::observation::PodView { phase: late, ..pod });
    pass.plan.verification =
        VerificationResult { result: Verification::Pending { until: at(9) }, problem: String::new() };
    pass.done = StepOutcome::MarkedFailed;
    let why = "the server did not start by its deadline. See the log of container `papermc`";
    assert_eq!(pass.event_texts("UpdateFailed"), [why]);
    pass.done = StepOutcome::RolledBack { agent_unreachable: false };
    assert_eq!(pass.status().last_update.unwrap().message, why);
}

#[test]
fn failed_update_downtime_sums_both_stops() {
    let up = |since| json!({"state": "up", "since": at(since).to_string(), "answeredAt": at(since).to_string(), "minecraft": "1.21.10"});
    let stop_at = |minute| json!({"at": at(minute).to_string(), "saved": true, "why": "asked"});
    // Either it never came up, and the stop before is the last one, or it was up for eight minutes and was stopped again.
    for (started_at, last_stop, rollback_at, down) in [(None, -10, 1, 11 * 60), (Some(-8), 2, 5, 5 * 60)] {
        let mut pass = Pass::new();
        let server = started_at.map_or_else(|| json!({"state": "starting", "progressAt": at(-1).to_string()}), up);
        pass.extend_agent_report(&json!({"lastStop": stop_at(-10), "server": server}));
        pass.done = StepOutcome::RolledBack { agent_unreachable: false };
        let mut pass = pass.next();
        pass.extend_agent_report(&json!({"lastStop": stop_at(last_stop), "server": up(rollback_at)}));
        assert!(pass.before.last_update.as_ref().unwrap().going_back);
        pass.done = StepOutcome::MarkedStable(MarkedStable::Previous);
        let stop = started_at.map(|_| "rollBack");
        assert_eq!(
            stop_reason(&pass.report(), &pass.before),
            stop,
            "a set that never started was not stopped a second time"
        );
        let over = pass.status().last_update.unwrap();
        assert_eq!((over.down_seconds, over.going_back), (Some(down), false), "{started_at:?}");
        // Later another pod becomes stable again, after a commit that was reverted at the last moment.
        let mut pass = pass.next();
        pass.extend_agent_report(&json!({"lastStop": stop_at(700), "server": up(701)}));
        pass.done = StepOutcome::MarkedStable(MarkedStable::Previous);
        assert_eq!(pass.status().last_update.unwrap().down_seconds, Some(down), "the later stop does not count");
        assert_eq!(stop_reason(&pass.report(), &pass.before), None);
    }
}

#[test]
fn next_restart_is_window_of_update_it_yields_to() {
    let mut pass = Pass::new();
    let (next, next_gives_way_until) = (Some(at(60)), Some(at(420)));
    pass.plan.tasks.restarts = ScheduledRestarts { due: None, next, next_gives_way_until };
    pass.plan.next_window.next_opening = Some(at(420));
    let next_restart = |pass: &Pass| (pass.status().next_restart, pass.status().next_restart_at);
    let shown = |minute| Some(format::format_time(at(minute), &Pass::new().checked.updates.zone, at(0)));
    assert_eq!(next_restart(&pass), (shown(60), next), "no update is planned");
    (pass.plan.goal.revision, pass.plan.observation.staged) = (Revision(3), true);
    assert_eq!(next_restart(&pass), (shown(420), Some(at(420))));
    pass.plan.next_window.next_opening = Some(at(421));
    assert_eq!(next_restart(&pass), (shown(60), next), "the window opens too late");
    pass.plan.next_window.next_opening = Some(at(59));
    assert_eq!(next_restart(&pass), (shown(60), next), "the window opens before the restart");
    let policy = PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_hours(1) };
    (pass.plan.goal.policy, pass.plan.next_window.next_opening) = (policy, Some(at(420)));
    assert_eq!(next_restart(&pass), (shown(60), next), "the update may wait for players");
}

#[test]
fn unreachable_agent_is_reported_with_start_time() {
    let mut pass = Pass::new();
    pass.step = Step::Wait(WaitingOn::Agent { until: at(9) });
    pass.plan.observation.players = Players::Unknown { since: at(-3) };
    let wanted = format!(
        "The server has not answered a ping since {}, so its players are unknown. Nightshift continues at {}.",
        at(-3),
        at(9)
    );
    assert_eq!(message(&pass.status(), "Updating"), Some(("PlayersUnknown", wanted.as_str())));
    pass.observed.reply.report = None;
    let wanted = format!("The agent is unreachable since {}. Nightshift continues at {}.", at(-3), at(9));
    assert_eq!(message(&pass.status(), "Updating"), Some(("AgentUnreachable", wanted.as_str())));
    pass.step = Step::Wait(WaitingOn::NodeLost);
    let ended =
        json!({"metadata": {"deletionTimestamp": at(-2).to_string()}, "spec": {"nodeName": "a", "containers": []}});
    pass.observed.pod = Some(serde_json::from_value(ended).unwrap());
    let status = pass.status();
    let (reason, text) = message(&status, "Updating").unwrap();
    assert_eq!(reason, "NodeLost");
    assert!(
        text.starts_with(&format!("Node `a` does not answer, and its pod should have exited by {}. Make", at(-2))),
        "{text}"
    );
}

#[test]
fn unsaved_stop_is_reported_once_and_kept_in_status() {
    let mut pass = Pass::new();
    let stopped = at(-1).to_string();
    pass.extend_agent_report(&json!({"lastStop": {"at": stopped, "saved": false, "why": "it hung", "players": 3}}));
    assert_eq!(pass.event_texts("StoppedUnsaved").len(), 1);
    let pass = pass.next();
    assert_eq!(pass.before.last_stop.as_ref().map(|stop| (stop.saved, stop.players)), Some((false, Some(3))));
    assert_eq!(pass.event_texts("StoppedUnsaved"), Vec::<String>::new());
    let mut pass = pass.next();
    pass.extend_agent_report(&json!({"lastStop": {"at": at(0).to_string(), "saved": false, "why": "it hung"}}));
    assert_eq!(pass.event_texts("StoppedUnsaved").len(), 1, "another stop is reported");
}

#[test]
fn damage_condition_names_backup_before_damage() {
    let stopped = json!({
        "since": at(-9).to_string(), "last": at(-1).to_string(), "lines": 7, "first": "Chunk [1, 2] is allocated, but stream is missing",
    });
    let backup = json!({
        "id": "20261122T030000Z-aaaaaaaa", "startedAt": at(-60).to_string(), "completedAt": at(-59).to_string(),
        "trigger": "onDemand", "contents": "worlds", "bytes": 1, "archiveBytes": 1,
    });
    let mut pass = Pass::new();
    pass.extend_agent_report(&json!({"damage": stopped}));
    pass.checked = check(&server(json!({"backup": {"enabled": false}}))).unwrap();
    let without = pass.event_texts("WorldDamaged").pop().unwrap();
    assert!(without.contains("This server takes no backups"), "{without}");
    pass.extend_agent_report(&json!({"backups": {"lastBeforeDamage": backup}}));
    let status = pass.status();
    let (reason, text) = message(&status, "WorldDamaged").unwrap();
    assert_eq!(reason, "ReportedByLog");
    assert!(
        text.contains(
            "`Chunk [1, 2] is allocated, but stream is missing`. The newest backup from before that line is of "
        ),
        "{text}"
    );
    assert!(text.contains("restore-from=\"20261122T030000Z-aaaaaaaa;overwrite\"`"), "{text}");

    let mut pass = pass.next();
    assert_eq!(pass.event_texts("WorldDamaged"), Vec::<String>::new(), "the Event is sent once");
    let agent = pass.observed.reply.report.take();
    assert!(message(&pass.status(), "WorldDamaged").is_some(), "the last condition stays without an agent");
    pass.observed.reply.report = agent;
    pass.extend_agent_report(&json!({"damage": null}));
    assert_eq!(message(&pass.status(), "WorldDamaged"), None);
}

#[test]
fn blocked_update_gets_no_window_in_status() {
    let mut pass = Pass::new();
    pass.plan.next_window.next_opening = Some(at(5));
    let condition_of = |pass: &Pass| {
        let status = pass.status();
        let situation = NotificationInput::new(&pass.checked, &pass.report(), &pass.before, &status);
        (status.next_window_at, situation.planned.and_then(|planned| planned.opens), status.next_window.unwrap())
    };
    let opens = Some(at(5));
    assert_eq!((condition_of(&pass).0, condition_of(&pass).1), (opens, None), "no update is planned");
    pass.plan.constraints.delaying = vec![&CrashLoop];
    assert_eq!(condition_of(&pass).0, opens, "there is no update to delay");

    pass.plan.goal.revision = Revision(3);
    assert_eq!(condition_of(&pass), (None, None, "crash loop".to_owned()));
    let planned = pass.event_texts("UpdatePlanned").pop().unwrap();
    assert!(planned.starts_with("crash loop: "), "{planned}");
    pass.plan.constraints.delaying.clear();
    assert_eq!((condition_of(&pass).0, condition_of(&pass).1), (opens, opens));

    pass.plan.observation.images = ImagesOnNode::Failed;
    assert_eq!(condition_of(&pass), (None, None, "waits for an image".to_owned()));
    for images in [ImagesOnNode::Pulling, ImagesOnNode::Unknown] {
        pass.plan.observation.images = images;
        assert_eq!(condition_of(&pass).1, opens, "the pull may still succeed: {images:?}");
    }
    pass.plan.observation.staged = false;
    assert_eq!(condition_of(&pass).1, opens, "the files may be staged until then");
    let lock = &pass.plan.target.record.files.lock;
    pass.extend_agent_report(&json!({"staging": {"lock": lock, "done": 0, "of": 1, "error": "no room"}}));
    assert_eq!(condition_of(&pass), (None, None, "waits for files".to_owned()));
}

#[test]
fn unanswered_image_pull_is_reported_once_without_blocking() {
    let mut pass = Pass::new();
    pass.plan.goal.revision = Revision(3);
    let goal = crate::server::model::image_pull::request::tests::goal(("game:2", "IfNotPresent"), "agent:1");
    let pod = serde_json::from_value(crate::server::model::image_pull::request::tests::pod("game:1")).unwrap();
    let question = crate::server::model::image_pull::request::PullRequest::from_goal(&goal, &pod).unwrap();
    let problem = |is_of_an_image| PullError {
        is_image_error: is_of_an_image,
        subject: "node `a`".to_owned(),
        why: "full".to_owned(),
    };
    let of = |is_of_an_image| {
        let mut pull = Pull::new(question.clone());
        pull.problem = Some(problem(is_of_an_image));
        pull
    };
    pass.plan.constraints.images = Some(of(false));
    let status = pass.status();
    let (reason, text) = message(&status, "ImagesPulled").unwrap();
    assert_eq!(reason, "NodeUnavailable");
    assert!(text.starts_with("node `a`: full. The update is applied anyway"), "{text}");
    let condition = status.conditions.iter().find(|condition| condition.type_ == "ImagesPulled").unwrap();
    assert_eq!(condition.status, "Unknown");
    assert_eq!(status.available_update.unwrap().image_problem, None, "the update waits for no image");
    assert_eq!((pass.event_texts("NodeUnavailable").len(), pass.event_texts("PullFailed").len()), (1, 0));
    let mut pass = pass.next();
    assert_eq!(pass.event_texts("NodeUnavailable"), Vec::<String>::new(), "the Event is sent once");

    pass.plan.constraints.images = Some(of(true));
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
    let planned_for = |change: &dyn Fn(&mut Plan)| {
        let mut pass = opportunistic();
        change(&mut pass.plan);
        pass.plan.waits_for_empty_server(&pass.checked)
    };
    assert!(planned_for(&|_| {}));
    assert!(!planned_for(&|plan| plan.constraints.delaying.push(&CrashLoop)));
    assert!(!planned_for(&|plan| plan.next_window.blackout = Some(("event".to_owned(), at(9)))));
    let windows_only = Pass::new();
    assert!(!windows_only.plan.waits_for_empty_server(&windows_only.checked));
}

#[test]
fn withdrawn_eula_during_rollout_is_reported() {
    let server = server(json!({}));
    let before = condition(&server, "Updating", Some(true), "Verifying", "until 04:10".to_owned(), at(0), &[]);
    let error = PlanningError::Eula("set `spec.eula`".to_owned());
    assert!(!error.allows_finishing_rollout() && !PlanningError::NoCatalog.allows_finishing_rollout());
    assert!(PlanningError::Spec(String::new()).allows_finishing_rollout());
    let condition_of = |is_rolling_out| {
        let before = std::slice::from_ref(&before);
        let conditions = conditions::build_blocked(&server, &error.to_pass_blocked(), is_rolling_out, at(1), before);
        let updating: Vec<_> = conditions.into_iter().filter(|condition| condition.type_ == "Updating").collect();
        let [updating] = updating.as_slice() else { panic!("expected one condition: {updating:?}") };
        (updating.reason.clone(), updating.message.clone())
    };
    assert_eq!(condition_of(false), ("Verifying".to_owned(), "until 04:10".to_owned()));
    let (reason, message) = condition_of(true);
    assert_eq!(reason, "RolloutPaused");
    assert!(message.contains("a roll-back") && message.ends_with("until this is fixed: set `spec.eula`"), "{message}");
}

/// The status after a pass without a plan.
fn unplanned(pass: &Pass) -> PaperMCServerStatus {
    let why = PlanningError::Spec("`spec.jvm.heap` is wrong".to_owned()).to_pass_blocked();
    let report = pass.report();
    let mut status = status::build_rollout(&pass.server, &pass.checked, &report, &pass.before);
    status.conditions = conditions::build_rollout(&report, &why);
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
    pass.observed.stable_lock = Some(record(129));
    (pass.step, pass.done) = (Step::MarkStable { revision: REVISION }, StepOutcome::MarkedStable(MarkedStable::Update));
    let status = unplanned(&pass);
    let last = status.last_update.clone().unwrap();
    assert!(last.successful && last.message == "Paper 129 -> 130", "{last:?}");
    assert_eq!(status.update, pass.before.update, "the next pass notifies the channels");
    assert_eq!(message(&status, "Resolved"), Some(("SpecInvalid", "`spec.jvm.heap` is wrong")));
    assert_eq!(message(&status, "Updating").map(|(reason, _)| reason), Some("StepExecuted"));
    assert_eq!(message(&status, "Ready").map(|(reason, _)| reason), Some("Starting"));
    assert!(message(&status, "UpdateAvailable").is_some());
    assert_eq!(status.last_handled, pass.before.last_handled, "the next pass handles the request");

    (pass.before, pass.step, pass.done) = (status, Step::UpToDate, StepOutcome::Nothing);
    pass.observed.stable_lock = Some(record(130));
    let status = unplanned(&pass);
    assert_eq!((status.update.as_ref(), status.next_window.as_ref()), (None, None));
    let HandledRequests { apply_now, apply_now_accepted, .. } = status.last_handled.clone().unwrap();
    assert_eq!(
        (apply_now.as_deref(), apply_now_accepted),
        (Some("2"), None),
        "a handled request opens the gate for no other update"
    );
    assert_eq!(status.history.first().map(|past| past.version.as_str()), Some("1.21.10-130"));
    assert_eq!(message(&status, "UpdateAvailable"), None, "the next update is unknown");
    assert_eq!(message(&status, "Updating").map(|(reason, _)| reason), Some("Stable"));
    let events = events::server_events(&pass.checked, &pass.report(), &pass.before);
    assert!(events.iter().all(|event| event.reason != "UpdatePlanned"), "no update is planned");
}
