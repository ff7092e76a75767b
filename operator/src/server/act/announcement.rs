//! Pure. Builds the announcement that players read before a stop.

use agent_api::{Announce, in_the_chat};
use jiff::Timestamp;
use scheduler::announcement::placeholder::has_languages;
use scheduler::observation::Disruption;
use scheduler::rollout::OpportunityReason;

use super::StepExecutor;
use validate::Announcement;

impl StepExecutor<'_> {
    /// The announcement for this disruption, with where it is shown.
    pub(super) fn announcement(&self, disruption: Disruption, ends: Timestamp) -> Announce {
        let players = &self.server.players;
        let announcement = match disruption {
            Disruption::Restart { due } if self.restore_due_at(due).is_some() => &players.restore_announcement,
            Disruption::Restart { due } if self.is_scale_down(due) => &players.scale_down_announcement,
            Disruption::Restart { .. } => &players.restart_announcement,
            Disruption::Drain { .. } => &players.drain_announcement,
            Disruption::Update { .. } | Disruption::RollBack { .. } => &players.announcement,
        };
        let Announcement { text, short } = announcement.clone();
        let show = self.server.players.show.clone();
        // The short text is sent only if it is shown outside the chat, because older agents do not know the field.
        let short = (show != in_the_chat()).then_some(short);
        let only_empty = self.plan.opportunistic.reason == Some(OpportunityReason::Empty)
            && matches!(disruption, Disruption::Update { .. });
        let in_languages = has_languages(&text) || short.as_deref().is_some_and(has_languages);
        Announce { act: disruption.to_string(), ends, text, short, show, only_empty, in_languages }
    }
}
