//! Edge (writes). Tells players that an announced stop is cancelled, and removes the record of the announcement.

use scheduler::observation::{Announced, Disruption, RecordedFacts};
use scheduler::protocol::CancelAnnouncement;

use super::{ActError, StepExecutor};
use crate::error_chain::ErrorChain;

/// Default text for a cancelled move to another node.
const STAYS: &str = "The move is called off: the server stays where it is.";
/// Default text for a cancelled restart or update.
const GOES_ON: &str = "The restart is called off: the server goes on.";

impl StepExecutor<'_> {
    /// Records that the server's node is no longer being drained.
    pub(super) async fn end_drain(&self) -> Result<(), ActError> {
        let facts = self.take_back(|act| matches!(act, Disruption::Drain { .. }), STAYS).await;
        self.write("record the end of the drain on", &RecordedFacts { draining: None, ..facts }, Vec::new()).await
    }

    /// Cancels the announced disruption.
    pub(super) async fn call_off(&self, act: Disruption) -> Result<(), ActError> {
        let facts = self.take_back(|of| of == act, GOES_ON).await;
        self.write("record the end of the countdown on", &facts, Vec::new()).await
    }

    /// Tells players that the announcement is cancelled and returns the facts without it. An unreachable agent does not block the
    /// cancellation.
    async fn take_back(&self, of_it: impl Fn(Disruption) -> bool, by_default: &str) -> RecordedFacts {
        let facts = self.seen.facts.clone();
        let told = facts.announced.filter(|told: &Announced| of_it(told.act));
        if let (Some(told), Some(agent)) = (told, self.seen.agent(self.ctx)) {
            let text = self.server.texts.called_off.as_deref().unwrap_or(by_default);
            let call_off = CancelAnnouncement { act: told.act.to_string(), text: text.to_owned() };
            if let Err(error) = agent.call_off(&call_off).await {
                tracing::info!(error = %ErrorChain(&error), "players were not told that it is called off");
            }
        }
        RecordedFacts {
            announced: facts.announced.filter(|told| !of_it(told.act)),
            saved: facts.saved.filter(|saved| !of_it(saved.act)),
            ..facts
        }
    }
}
