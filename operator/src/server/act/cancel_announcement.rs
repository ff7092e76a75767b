//! Edge (writes). Tells players that an announced stop is cancelled, and removes the record of the announcement.

use agent_api::CancelAnnouncement;
use scheduler::observation::{Announced, Disruption, RecordedFacts};

use super::StepExecutor;
use super::error::ActError;
use crate::error_chain::ErrorChain;

/// Default text for a cancelled move to another node.
const DEFAULT_MOVE_CANCELLED: &str = "The move is cancelled: the server stays where it is.";
/// Default text for a cancelled restart or update.
const DEFAULT_STOP_CANCELLED: &str = "The restart is cancelled: the server keeps running.";

impl StepExecutor<'_> {
    /// Records that the server's node is no longer being drained.
    pub(super) async fn end_drain(&self) -> Result<(), ActError> {
        let facts = self
            .announce_cancellation(|disruption| matches!(disruption, Disruption::Drain { .. }), DEFAULT_MOVE_CANCELLED)
            .await;
        self.write("record the end of the drain on", &RecordedFacts { draining: None, ..facts }, Vec::new()).await
    }

    /// Cancels the announced disruption.
    pub(super) async fn cancel_announcement(&self, disruption: Disruption) -> Result<(), ActError> {
        let facts = self.announce_cancellation(|of| of == disruption, DEFAULT_STOP_CANCELLED).await;
        self.write("record the end of the countdown on", &facts, Vec::new()).await
    }

    /// Tells players that the announcement is cancelled and returns the facts without it. An unreachable agent does not block the
    /// cancellation.
    async fn announce_cancellation(
        &self,
        is_cancelled: impl Fn(Disruption) -> bool,
        by_default: &str,
    ) -> RecordedFacts {
        let facts = self.observed.facts.clone();
        let announced = facts.announced.filter(|announced: &Announced| is_cancelled(announced.act));
        if let (Some(announced), Some(agent)) = (announced, self.observed.agent(self.ctx)) {
            let text = self.server.players.texts.cancelled.as_deref().unwrap_or(by_default);
            let call_off = CancelAnnouncement { act: announced.act.to_string(), text: text.to_owned() };
            if let Err(error) = agent.cancel_announcement(&call_off).await {
                tracing::info!(error = %ErrorChain(&error), "could not tell players about the cancellation");
            }
        }
        RecordedFacts {
            announced: facts.announced.filter(|announced| !is_cancelled(announced.act)),
            saved: facts.saved.filter(|saved| !is_cancelled(saved.act)),
            ..facts
        }
    }
}
