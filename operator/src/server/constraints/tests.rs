//! Pure. Tests the order of the constraints, and how one is added.

use scheduler::observation::EvictionPolicy;
use serde_json::json;

use super::*;
use crate::node_watch::{DrainMark, NodeObservation};
use crate::server::drain::Drain;
use crate::server::follows::{FollowBlocker, FollowWait};
use crate::server::model::image_pull::request::PullRequest;
use crate::server::model::image_pull::request::tests::{goal, pod};
use crate::server::model::image_pull::state::{Pull, PullError};
use crate::server::partial::PartialSelection;
use crate::server::pinned_set::PinnedSet;
use crate::server::plan::{MissingRoom, PassInput};
use crate::server::report::tests::Pass;
use crate::update_slots::SlotUnavailable;

/// An update that only a window delays.
fn open_pass() -> Pass {
    let mut pass = Pass::new();
    pass.plan.gate = Gate::Open { opened_at: Timestamp::UNIX_EPOCH, until: Timestamp::MAX };
    pass
}

fn evaluate(constraints: &[&'static dyn Constraint], pass: &mut Pass) -> Gate {
    let Pass { server, checked, observed, plan, before, .. } = pass;
    let pass = PassInput { server, checked, observed, before, now: Timestamp::UNIX_EPOCH };
    evaluate_all(constraints, plan, &ConstraintInput { pass, followed: None, is_automatic: true });
    plan.gate
}

fn reported_reason(pass: &Pass) -> Option<&'static str> {
    wait(&pass.report()).map(|wait| wait.reason)
}

#[test]
fn first_constraint_in_the_list_is_reported() {
    let mut pass = open_pass();
    pass.plan.constraints.delaying = CONSTRAINTS.to_vec();
    let why = FollowBlocker::NothingVerified;
    pass.plan.constraints.follow_wait = Some(FollowWait { server: "lobby".to_owned(), why, blocks_update: true });
    pass.plan.constraints.slot_unavailable =
        Some(SlotUnavailable { updating: 1, updating_on_node: None, queued_before: Vec::new() });
    pass.plan.constraints.missing_room =
        Some(MissingRoom::TooLittle { contents: agent_api::Contents::Worlds, needed: 2, room: 1 });
    for reason in [
        "ApprovalNeeded",
        "CrashLoop",
        "NotResponding",
        "WaitingForLeaderServer",
        "WaitingForBackups",
        "NoRoomForBackup",
        "WaitingForUpdateSlot",
    ] {
        assert_eq!(reported_reason(&pass), Some(reason));
        pass.plan.constraints.delaying.remove(0);
    }
    assert_eq!(reported_reason(&pass), None);
}

/// A pass in which every constraint with a condition or an Event has one.
fn reporting_pass() -> Pass {
    let mut pass = open_pass();
    let constraints = &mut pass.plan.constraints;
    constraints.approval.needs_approval = true;
    let stopped = json!({"at": "2026-11-22T03:30:00Z", "generation": 1, "last": "exit code 1"});
    let crashes = json!({"pod": "a", "at": ["2026-11-22T03:00:00Z"], "stopped": stopped});
    constraints.crashes = Some(serde_json::from_value(crashes).unwrap());
    let why = FollowBlocker::NothingVerified;
    constraints.follow_wait = Some(FollowWait { server: "lobby".to_owned(), why, blocks_update: true });
    constraints.missing_room =
        Some(MissingRoom::TooLittle { contents: agent_api::Contents::Worlds, needed: 2, room: 1 });
    let current = serde_json::from_value(pod("game:1")).unwrap();
    let mut pull = Pull::new(PullRequest::from_goal(&goal(("game:2", "IfNotPresent"), "agent:1"), &current).unwrap());
    let (subject, why) = ("The image `game:2`".to_owned(), "not found".to_owned());
    pull.problem = Some(PullError { is_image_error: true, subject, why });
    constraints.images = Some(pull);
    let observation = NodeObservation::Marked(DrainMark::Cordoned);
    constraints.drain = Drain { eviction: EvictionPolicy::Never, node: Some("a".to_owned()), observation };
    pass.plan.selection.pinned_set = Some(PinnedSet::Unknown { requested: "abc".to_owned() });
    pass.plan.selection.partial = PartialSelection::Refused("no such plugin".to_owned());
    let restore = json!({"asked": "latest", "seenAt": "2026-11-22T03:00:00Z"});
    pass.plan.tasks.restores.record = Some(serde_json::from_value(restore).unwrap());
    (pass.plan.next_window.is_suspended, pass.plan.next_window.has_no_usable_window) = (true, true);
    pass
}

#[test]
fn conditions_of_constraints_are_shown_in_order_of_sections() {
    let order = [
        "ImagesPulled",
        "PinnedToSet",
        "PartialUpdate",
        "RestoreRequested",
        "ApprovalNeeded",
        "CrashLoop",
        "WaitingForLeaderServer",
        "Draining",
        "Suspended",
        "NoUsableWindow",
    ];
    let status = reporting_pass().status();
    let types: Vec<_> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    let of_constraints: Vec<_> = types.iter().copied().filter(|type_| order.contains(type_)).collect();
    assert_eq!(of_constraints, order, "{types:?}");
    let between = |before: &str, after: &str| types.windows(2).any(|pair| pair == [before, after]);
    assert!(between("NoUsableWindow", "Updating"), "{types:?}");
}

#[test]
fn events_of_constraints_have_order_of_list() {
    let pass = reporting_pass();
    let reasons: Vec<_> = events(&pass.report()).map(|event| event.reason).collect();
    let order = [
        "ApprovalNeeded",
        "CrashLoop",
        "WaitingForLeaderServer",
        "NoRoomForBackup",
        "RequestRefused",
        "Suspended",
        "NoUsableWindow",
        "PullFailed",
        "EvictionRefused",
    ];
    assert_eq!(reasons, order);
}

#[test]
fn missing_approval_shuts_open_gate() {
    let mut pass = open_pass();
    assert!(evaluate(CONSTRAINTS, &mut pass).is_open());
    assert_eq!(reported_reason(&pass), None);
    pass.plan.constraints.approval.needs_approval = true;
    assert_eq!(evaluate(CONSTRAINTS, &mut pass), Gate::Shut { opens: None });
    assert_eq!(reported_reason(&pass), Some("ApprovalNeeded"));
}

#[test]
fn end_of_crash_loop_wakes_server() {
    let mut pass = open_pass();
    let crashes = json!({"pod": "a", "at": ["2026-11-22T03:00:00Z", "2026-11-22T03:20:00Z"]});
    pass.plan.constraints.crashes = Some(serde_json::from_value(crashes).unwrap());
    assert_eq!(wake_ups(&pass.plan).next(), None, "two crashes are no crash loop");
    pass.plan.observation.crash_loop = true;
    assert_eq!(wake_ups(&pass.plan).next(), Some("2026-11-22T04:20:00Z".parse().unwrap()));
}

/// The example of docs/CONTRIBUTING.md: no update starts while the server reports damage in its worlds.
struct WorldDamage;

impl Constraint for WorldDamage {
    fn evaluate(&self, _plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        input.is_automatic && input.pass.observed.reply.report.as_deref().is_some_and(|agent| agent.damage.is_some())
    }

    fn wait(&self, _report: &PassReport<'_>) -> Option<Wait> {
        let message = "The worlds are damaged. Restore a backup, or annotate nightshift.dev/apply-now.".to_owned();
        Some(Wait { reason: "WorldDamaged", message, short: Some("world damage".to_owned()) })
    }
}

#[test]
fn new_constraint_needs_one_file_and_one_line() {
    let mut with_example: Vec<&'static dyn Constraint> = CONSTRAINTS.to_vec();
    with_example.push(&WorldDamage);
    let mut pass = open_pass();
    assert!(evaluate(&with_example, &mut pass).is_open());
    pass.extend_agent_report(&json!({"damage": {
        "since": "2026-11-22T10:00:00Z", "last": "2026-11-22T10:00:00Z", "lines": 1, "first": "Failed to load chunk",
    }}));
    assert_eq!(evaluate(&with_example, &mut pass), Gate::Shut { opens: None });
    assert_eq!(reported_reason(&pass), Some("WorldDamaged"));
}
