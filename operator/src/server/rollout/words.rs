//! Pure. What players read before a stop, and where.

use jiff::Timestamp;
use scheduler::countdown::places::has_languages;
use scheduler::protocol::{Announce, in_the_chat};
use scheduler::seen::Act;

use super::Hand;
use crate::server::check::Announcement;

impl Hand<'_> {
    /// What players read before this act, and where.
    pub(super) fn announcement(&self, act: Act, ends: Timestamp) -> Announce {
        let announcement = match (act, &self.server.restart) {
            (Act::Restart { due }, Some(restart)) if self.restore_at(due).is_none() => &restart.announcement,
            (Act::Drain { .. }, _) => &self.server.drain_announcement,
            (Act::Restart { .. } | Act::Update { .. } | Act::RollBack { .. }, _) => &self.server.announcement,
        };
        let Announcement { text, short } = announcement.clone();
        let show = self.server.show.clone();
        // Only who shows it elsewhere than in the chat is asked for something that older agents do not know.
        let short = (show != in_the_chat()).then_some(short);
        let only_empty = self.only_empty && matches!(act, Act::Update { .. });
        let in_languages = has_languages(&text) || short.as_deref().is_some_and(has_languages);
        Announce { act: act.to_string(), ends, text, short, show, only_empty, in_languages }
    }
}
