//! Edge (writes). Carries out the next step, and stages files while it waits.

use scheduler::rollout::{Step, WaitingOn};
use tracing::info;

use super::act::StepExecutor;
use super::act::outcome::StepOutcome;
use super::error::PassError;
use crate::error_chain::ErrorChain;
use crate::telemetry::metrics::StepLabels;

/// Carries out the step. While the step waits for a window, the agent is asked to stage the files, hours before they are needed.
pub(crate) async fn execute_step(executor: &StepExecutor<'_>, step: Step) -> Result<StepOutcome, PassError> {
    let plan = executor.plan;
    let failed = |source| PassError::Act { step: step.name(), source };
    let labels = |outcome| StepLabels { step: step.name(), outcome };
    let waits = matches!(step, Step::Wait(WaitingOn::Window { .. })) || plan.is_waiting_to_roll_forward(step);
    if !matches!(step, Step::Announce { .. }) {
        executor.pending.mark_acted();
    }
    let done = if waits && plan.needs_staging(executor.observed) {
        // A server that does not run stages later. Staging is not required before the window opens.
        match executor.stage().await {
            Ok(done) => done,
            Err(error) => {
                info!(error = %ErrorChain(&error), "staging is delayed");
                StepOutcome::Nothing
            }
        }
    } else {
        executor.execute(step).await.map_err(|source| {
            executor.ctx.metrics.step_total.get_or_create(&labels("failed")).inc();
            failed(source)
        })?
    };
    if done != StepOutcome::Nothing {
        info!(step = step.name(), ?done, "executed a step");
        executor.ctx.metrics.step_total.get_or_create(&labels("done")).inc();
    }
    Ok(done)
}
