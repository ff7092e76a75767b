//! Edge (writes). Players are told of a stop that comes, and that they were is recorded.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Announced, Disruption, PodUid, RecordedFacts};

use super::{ActError, StepExecutor, StepOutcome};
use crate::agent_client::AgentError;
use crate::clock::now;
use crate::error_chain::ErrorChain;

impl StepExecutor<'_> {
    /// Said first, recorded then: the other way round a crash in between stops players nobody told. After such a crash nothing is said again.
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
                // Nobody was told anything: the next pass begins it with the whole notice.
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

    /// With the end that was recorded. What cannot be said holds nothing up: players were told once, and the next pass tries again.
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
