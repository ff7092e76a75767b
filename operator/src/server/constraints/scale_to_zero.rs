//! Pure. Delays the update of a server that a user has scaled to zero: it stops as it is (`server/scale_down.rs`).

use crate::server::plan::Plan;
use crate::server::plan::constraint::{Constraint, ConstraintInput, Wait};
use crate::server::report::context::PassReport;

pub(super) struct ScaleToZero;

impl Constraint for ScaleToZero {
    fn evaluate(&self, plan: &mut Plan, _input: &ConstraintInput<'_>) -> bool {
        plan.tasks.scale_down.is_some()
    }

    fn wait(&self, report: &PassReport<'_>) -> Option<Wait> {
        report.plan.tasks.scale_down.map(|_| Wait {
            reason: "ScalingToZero",
            message: "The server stops, as `spec.replicas: 0` says. No update is applied before.".to_owned(),
            short: Some("scaled to zero".to_owned()),
        })
    }
}
