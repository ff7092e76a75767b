//! Pure. Lists the features that can delay an update, or compete with it for the next step. Each has one file that decides and reports. Their
//! states are in `ConstraintStates` (`plan.rs`).

use jiff::Timestamp;
use scheduler::maintenance::Gate;

use super::plan::Plan;
use super::plan::constraint::{ConditionSection, ConditionText, Constraint, ConstraintInput, Wait};
use super::report::context::PassReport;
use crate::k8s::events::EventText;
use approval::RequiredApproval;
use backup_room::BackupRoom;
use crash_loop::CrashLoop;
use drain::NodeDrain;
use hung_server::HungServer;
use image_pull::ImagePull;
use leader_server::LeaderServer;
use manual_recovery::ManualRecovery;
use no_usable_window::NoUsableWindow;
use partial_update::PartialUpdateRequested;
use pinned_set::PinnedToSet;
use requested_restore::RestoreRequested;
use scale_to_zero::ScaleToZero;
use suspension::Suspension;
use update_slot::UpdateSlot;

mod approval;
mod backup_room;
pub(crate) mod crash_loop;
mod drain;
mod hung_server;
pub(crate) mod image_pull;
pub(crate) mod leader_server;
pub(crate) mod manual_recovery;
mod no_usable_window;
mod partial_update;
pub(crate) mod pinned_set;
mod requested_restore;
mod scale_to_zero;
mod suspension;
pub(crate) mod update_slot;

/// All constraints. They are evaluated in this order, and their conditions and Events have it. If an update waits for several of those that
/// shut the gate, the first one is reported.
const CONSTRAINTS: &[&dyn Constraint] = &[
    &RequiredApproval,
    &CrashLoop,
    &HungServer,
    &LeaderServer,
    &ManualRecovery,
    &BackupRoom,
    &UpdateSlot,
    &ScaleToZero,
    &PinnedToSet,
    &PartialUpdateRequested,
    &RestoreRequested,
    &Suspension,
    &NoUsableWindow,
    &ImagePull,
    &NodeDrain,
];

/// Evaluates all constraints, and shuts the gate of the plan if the update has to wait for one of them.
pub(crate) fn evaluate(plan: &mut Plan, input: &ConstraintInput<'_>) {
    evaluate_all(CONSTRAINTS, plan, input);
}

fn evaluate_all(constraints: &[&'static dyn Constraint], plan: &mut Plan, input: &ConstraintInput<'_>) {
    for constraint in constraints {
        if constraint.evaluate(plan, input) {
            plan.gate = Gate::Shut { opens: None };
            plan.constraints.delaying.push(*constraint);
        }
    }
}

/// Why the update waits, if it waits for a constraint that has shut the gate.
pub(crate) fn wait(report: &PassReport<'_>) -> Option<Wait> {
    report.plan.constraints.delaying.iter().find_map(|constraint| constraint.wait(report))
}

/// The instants at which a constraint may change its answer by itself.
pub(crate) fn wake_ups(plan: &Plan) -> impl Iterator<Item = Timestamp> {
    CONSTRAINTS.iter().filter_map(|constraint| constraint.wake_at(plan))
}

/// The instants at which a constraint acts again by itself.
pub(crate) fn next_checks(plan: &Plan, now: Timestamp) -> impl Iterator<Item = Timestamp> {
    CONSTRAINTS.iter().filter_map(move |constraint| constraint.next_check(plan, now))
}

/// The conditions of the constraints in this part of all conditions.
pub(crate) fn conditions(section: ConditionSection, report: &PassReport<'_>) -> impl Iterator<Item = ConditionText> {
    let of_section = CONSTRAINTS.iter().filter(move |constraint| constraint.section() == section);
    of_section.filter_map(|constraint| constraint.condition(report))
}

/// The Events of the constraints.
pub(crate) fn events(report: &PassReport<'_>) -> impl Iterator<Item = EventText> {
    CONSTRAINTS.iter().flat_map(|constraint| constraint.events(report))
}

#[cfg(test)]
mod tests;
