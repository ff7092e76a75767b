//! Pure. Lists the features that can delay an update. Each has one file that decides and reports. Their states are in
//! `ConstraintStates` (`plan.rs`).

use jiff::Timestamp;
use scheduler::maintenance::Gate;

use super::plan::constraint::{ConditionText, Constraint, ConstraintInput, Wait};
use super::plan::{PassInput, Plan};
use crate::k8s::events::EventText;
use approval::Approval;
use backup_room::BackupRoom;
use crash_loop::CrashLoop;
use leader_server::LeaderServer;
use manual_recovery::ManualRecovery;
use update_slot::UpdateSlot;

pub(crate) mod approval;
mod backup_room;
pub(crate) mod crash_loop;
pub(crate) mod leader_server;
pub(crate) mod manual_recovery;
pub(crate) mod update_slot;

/// All constraints. They are evaluated in this order, and if an update waits for several, the first one is reported.
const CONSTRAINTS: [&dyn Constraint; 6] =
    [&Approval, &CrashLoop, &LeaderServer, &ManualRecovery, &BackupRoom, &UpdateSlot];

/// Evaluates all constraints, and shuts the gate of the plan if the update has to wait for one of them.
pub(crate) fn evaluate(plan: &mut Plan, input: &ConstraintInput<'_>) {
    evaluate_all(&CONSTRAINTS, plan, input);
}

fn evaluate_all(constraints: &[&'static dyn Constraint], plan: &mut Plan, input: &ConstraintInput<'_>) {
    for constraint in constraints {
        if constraint.evaluate(plan, input) {
            plan.gate = Gate::Shut { opens: None };
            plan.constraints.delaying.push(*constraint);
        }
    }
}

/// Why the update waits, if it waits for a constraint.
pub(crate) fn wait(plan: &Plan, pass: &PassInput<'_>) -> Option<Wait> {
    plan.constraints.delaying.iter().find_map(|constraint| constraint.wait(plan, pass))
}

/// The instants at which a constraint may change its answer by itself.
pub(crate) fn wake_ups(plan: &Plan) -> impl Iterator<Item = Timestamp> {
    CONSTRAINTS.iter().filter_map(|constraint| constraint.wake_at(plan))
}

/// The conditions of the constraints.
pub(crate) fn conditions(plan: &Plan, pass: &PassInput<'_>) -> impl Iterator<Item = ConditionText> {
    CONSTRAINTS.iter().filter_map(|constraint| constraint.condition(plan, pass))
}

/// The Events of the constraints.
pub(crate) fn events(plan: &Plan, pass: &PassInput<'_>) -> impl Iterator<Item = EventText> {
    CONSTRAINTS.iter().filter_map(|constraint| constraint.event(plan, pass))
}

#[cfg(test)]
mod tests;
