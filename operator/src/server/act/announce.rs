//! Edge (writes). Warns players of an upcoming stop and records the announcement.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Announced, Disruption, PodUid, RecordedFacts};

use super::StepExecutor;
use super::error::ActError;
use super::outcome::StepOutcome;
use crate::agent_client::AgentError;
use crate::clock::now;
use crate::error_chain::ErrorChain;

impl StepExecutor<'_> {
    /// Announces first and records second. In the other order a crash in between would stop players without a warning. After a crash
    /// between the two, the announcement is not repeated.
    pub(super) async fn announce(
        &self,
        disruption: Disruption,
        pod: PodUid,
        notice: SignedDuration,
        not_after: Timestamp,
    ) -> Result<StepOutcome, ActError> {
        self.ensure_fresh("announce", not_after)?;
        let now = now();
        let is_cut_short = self.observed.facts.is_counting_down(disruption, pod, now);
        let announced = self.observed.reply.report.as_ref().and_then(|report| report.announced.as_ref());
        let announced_end = announced.and_then(|announced| announced.ends_within(&disruption.to_string(), notice, now));
        let ends = announced_end.unwrap_or(now + notice);
        if announced_end.is_none() {
            match self.agent()?.announce(&self.announcement(disruption, ends)).await {
                Ok(()) => self.pending.yield_to_first_steps().await,
                // No player was warned. The next pass starts the announcement again with the whole notice.
                Err(error @ AgentError::NotReady { .. }) => {
                    tracing::info!(error = %ErrorChain(&error), "the announcement is delayed for a moment");
                    return Ok(StepOutcome::Nothing);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let facts =
            RecordedFacts { announced: Some(Announced { act: disruption, pod, ends }), ..self.observed.facts.clone() };
        self.write("record the announcement on", &facts, Vec::new()).await?;
        Ok(StepOutcome::Announced { notice: ends.duration_since(now), is_cut_short })
    }

    /// Announces again with the recorded end. A failure delays nothing: players were warned once, and the next pass tries again.
    pub(super) async fn reannounce(
        &self,
        disruption: Disruption,
        ends: Timestamp,
        not_after: Timestamp,
    ) -> Result<StepOutcome, ActError> {
        self.ensure_fresh("announce again", not_after)?;
        Ok(match self.agent()?.announce(&self.announcement(disruption, ends)).await {
            Ok(()) => StepOutcome::Reannounced { left: ends.duration_since(now()) },
            Err(error) => {
                tracing::info!(error = %ErrorChain(&error), "the agent does not continue the countdown yet");
                StepOutcome::Nothing
            }
        })
    }
}
