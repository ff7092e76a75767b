//! Pure. Tests the order of the constraints, and how one is added.

use super::*;
use crate::server::follows::{FollowBlocker, FollowWait};
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
    let crashes = serde_json::json!({"pod": "a", "at": ["2026-11-22T03:00:00Z", "2026-11-22T03:20:00Z"]});
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
    pass.extend_agent_report(&serde_json::json!({"damage": {
        "since": "2026-11-22T10:00:00Z", "last": "2026-11-22T10:00:00Z", "lines": 1, "first": "Failed to load chunk",
    }}));
    assert_eq!(evaluate(&with_example, &mut pass), Gate::Shut { opens: None });
    assert_eq!(reported_reason(&pass), Some("WorldDamaged"));
}
