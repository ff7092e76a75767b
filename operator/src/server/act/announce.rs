//! Edge (writes). Warns players of an upcoming stop and records the announcement.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Announced, Disruption, PodUid, RecordedFacts};

use super::{ActError, StepExecutor, StepOutcome};
use crate::agent_client::AgentError;
use crate::clock::now;
use crate::error_chain::ErrorChain;

impl StepExecutor<'_> {
    /// Announces first and records second. In the other order a crash in between would stop players without a warning. After a crash
    /// between the two, the announcement is not repeated.
    pub(super) async fn announce(
        &self,
        act: Disruption,
        pod: PodUid,
        notice: SignedDuration,
    ) -> Result<StepOutcome, ActError> {
        let now = now();
        let is_cut_short = self.seen.facts.are_counting_down(act, pod, now);
        let told = self.seen.report.as_ref().and_then(|report| report.announced.as_ref());
        let promised = told.and_then(|told| told.ends_within(act, notice, now));
        let ends = promised.unwrap_or(now + notice);
        if promised.is_none() {
            match self.agent()?.announce(&self.announcement(act, ends)).await {
                Ok(()) => self.ahead.lets_others_go_first().await,
                // No player was warned. The next pass starts the announcement again with the whole notice.
                Err(error @ AgentError::NotNow { .. }) => {
                    tracing::info!(error = %ErrorChain(&error), "players are told a moment later");
                    return Ok(StepOutcome::Nothing);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let facts = RecordedFacts { announced: Some(Announced { act, pod, ends }), ..self.seen.facts.clone() };
        self.write("record the announcement on", &facts, Vec::new()).await?;
        Ok(StepOutcome::Announced { notice: ends.duration_since(now), is_cut_short })
    }

    /// Announces again with the recorded end. A failure delays nothing: players were warned once, and the next pass tries again.
    pub(super) async fn tell_again(&self, act: Disruption, ends: Timestamp) -> Result<StepOutcome, ActError> {
        Ok(match self.agent()?.announce(&self.announcement(act, ends)).await {
            Ok(()) => StepOutcome::ToldAgain { left: ends.duration_since(now()) },
            Err(error) => {
                tracing::info!(error = %ErrorChain(&error), "the agent does not go on with the countdown yet");
                StepOutcome::Nothing
            }
        })
    }
}
