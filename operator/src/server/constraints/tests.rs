//! Pure. Tests the order of the constraints, and how one is added.

use super::*;
use crate::server::follows::{FollowBlocker, FollowWait};
use crate::server::plan::PassInput;
use crate::server::report::tests::Pass;
use crate::update_slots::SlotUnavailable;

/// An update that only a window delays.
fn open_pass() -> Pass {
    let mut pass = Pass::new();
    pass.plan.gate = Gate::Open { opened_at: Timestamp::UNIX_EPOCH, until: Timestamp::MAX };
    pass
}

fn evaluate(constraints: &[&dyn Constraint], pass: &mut Pass) -> Gate {
    let Pass { server, checked, observed, plan, before, .. } = pass;
    let pass = PassInput { server, checked, observed, before, now: Timestamp::UNIX_EPOCH };
    evaluate_all(constraints, plan, &ConstraintInput { pass, followed: None, is_automatic: true });
    plan.gate
}

#[test]
fn first_constraint_in_the_list_is_reported() {
    let mut pass = open_pass();
    let states = &mut pass.plan.constraints;
    states.approval.needs_approval = true;
    states.held_by_crashes = true;
    let why = FollowBlocker::NothingVerified;
    states.follow_wait = Some(FollowWait { server: "lobby".to_owned(), why, blocks_update: true });
    states.slot_unavailable = Some(SlotUnavailable { updating: 1, updating_on_node: None, queued_before: Vec::new() });
    let reported = |pass: &Pass| wait(&pass.report().for_constraints(&pass.checked)).map(|wait| wait.reason);
    assert_eq!(reported(&pass), Some("ApprovalNeeded"));
    pass.plan.constraints.approval.needs_approval = false;
    assert_eq!(reported(&pass), Some("WaitingForServer"));
    pass.plan.constraints.held_by_crashes = false;
    assert_eq!(reported(&pass), Some("WaitingForLeaderServer"));
    pass.plan.constraints.follow_wait = None;
    assert_eq!(reported(&pass), Some("WaitingForUpdateSlot"));
    pass.plan.constraints.slot_unavailable = None;
    assert_eq!(reported(&pass), None);
}

#[test]
fn missing_approval_shuts_open_gate() {
    let mut pass = open_pass();
    assert!(evaluate(&CONSTRAINTS, &mut pass).is_open());
    assert!(!pass.plan.constraints.is_held);
    pass.plan.constraints.approval.needs_approval = true;
    assert_eq!(evaluate(&CONSTRAINTS, &mut pass), Gate::Shut { opens: None });
    assert!(pass.plan.constraints.is_held, "an opportunity does not open the gate either");
}

/// The example of docs/CONTRIBUTING.md: no update starts while the server reports damage in its worlds.
struct WorldDamage;

impl Constraint for WorldDamage {
    fn evaluate(&self, _plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        input.is_automatic && input.pass.observed.reply.report.as_deref().is_some_and(|agent| agent.damage.is_some())
    }

    fn wait(&self, report: &ConstraintReport<'_>) -> Option<Wait> {
        report.observed.reply.report.as_deref()?.damage.as_ref()?;
        let message = "The worlds are damaged. Restore a backup, or annotate nightshift.dev/apply-now.".to_owned();
        Some(Wait { reason: "WorldDamaged", message, short: Some("world damage".to_owned()) })
    }
}

#[test]
fn new_constraint_needs_one_file_and_one_line() {
    let mut with_example = CONSTRAINTS.to_vec();
    with_example.push(&WorldDamage);
    let mut pass = open_pass();
    assert!(evaluate(&with_example, &mut pass).is_open());
    pass.extend_agent_report(&serde_json::json!({"damage": {
        "since": "2026-11-22T10:00:00Z", "last": "2026-11-22T10:00:00Z", "lines": 1, "first": "Failed to load chunk",
    }}));
    assert_eq!(evaluate(&with_example, &mut pass), Gate::Shut { opens: None });
    let wait = WorldDamage.wait(&pass.report().for_constraints(&pass.checked)).unwrap();
    assert_eq!((wait.reason, wait.short.as_deref()), ("WorldDamaged", Some("world damage")));
}
