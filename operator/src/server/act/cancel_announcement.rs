//! Edge (writes). Players who were told of a stop that does not come are told so, and the record goes.

use scheduler::observation::{Announced, Disruption, RecordedFacts};
use scheduler::protocol::CancelAnnouncement;

use super::{ActError, StepExecutor};
use crate::error_chain::ErrorChain;

/// What players read whose server may not go after all.
const STAYS: &str = "The move is called off: the server stays where it is.";
/// And those whose server is not restarted after all.
const GOES_ON: &str = "The restart is called off: the server goes on.";

impl StepExecutor<'_> {
    /// The node of the server is not emptied any more.
    pub(super) async fn end_drain(&self) -> Result<(), ActError> {
        let facts = self.take_back(|act| matches!(act, Disruption::Drain { .. }), STAYS).await;
        self.write("record the end of the drain on", &RecordedFacts { draining: None, ..facts }, Vec::new()).await
    }

    /// What they count down to does not come.
    pub(super) async fn call_off(&self, act: Disruption) -> Result<(), ActError> {
        let facts = self.take_back(|of| of == act, GOES_ON).await;
        self.write("record the end of the countdown on", &facts, Vec::new()).await
    }

    /// Tells whoever was told of it, and answers what is remembered without it. An agent that cannot be asked keeps nobody from ending it.
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
