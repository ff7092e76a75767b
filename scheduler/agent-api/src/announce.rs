//! Pure. Defines the announcement that players get before their server stops, and where it is shown.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A request to announce the stop to players, with true times, until `ends`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Announce {
    /// The disruption's name, as the operator sets it. The same disruption with the same end is announced once.
    pub act: String,
    /// When the server will be stopped.
    pub ends: Timestamp,
    /// The text. `{in}` is replaced by the time that is really left: `5 minutes`, `30 seconds`. `{in:de}` is replaced by the time in its
    /// language.
    pub text: String,
    /// A shorter text for places with less space than the chat. `None`: the first line of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// Where players see it. Not written for the chat alone, because an agent that supports no other place refuses the field.
    #[serde(default = "in_the_chat", skip_serializing_if = "is_the_chat")]
    pub show: BTreeSet<AnnouncementTarget>,
    /// Whether the server stops only if nobody joins until then. When a player joins, the countdown ends and the player is told so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_empty: bool,
    /// Whether the text has placeholders such as `{in:de}`. Its only effect is that an agent without support for them refuses the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_languages: bool,
}

impl Announce {
    /// The end of this disruption's countdown, if it is still running and leaves players no more than `notice`.
    pub fn ends_within(&self, disruption: &str, notice: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        let left = self.ends.duration_since(now);
        (self.act == disruption && left.is_positive() && left <= notice).then_some(self.ends)
    }
}

/// A request to end the countdown of a disruption that does not happen, and to inform the players who may have read about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelAnnouncement {
    /// The announced disruption.
    pub act: String,
    /// The text for players.
    pub text: String,
}

/// Where players see a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnnouncementTarget {
    /// The chat.
    Chat,
    /// Above the hotbar.
    ActionBar,
    /// Across the screen.
    Title,
}

/// Only the chat.
pub fn in_the_chat() -> BTreeSet<AnnouncementTarget> {
    BTreeSet::from([AnnouncementTarget::Chat])
}

fn is_the_chat(show: &BTreeSet<AnnouncementTarget>) -> bool {
    *show == in_the_chat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcement_is_recovered_only_while_its_text_still_holds() {
        let ends = Timestamp::constant(1_000_000, 0);
        let (disruption, other) = ("rollback 1", "rollback 2");
        let announce = Announce {
            act: disruption.to_owned(),
            ends,
            text: String::new(),
            short: None,
            show: in_the_chat(),
            only_empty: false,
            in_languages: false,
        };
        let minutes = SignedDuration::from_mins;
        let found = |disruption: &str, left: i64| announce.ends_within(disruption, minutes(5), ends - minutes(left));
        assert_eq!([5, 1, 0, -1, 6].map(|left| found(disruption, left).is_some()), [true, true, false, false, false]);
        assert_eq!(found(disruption, 1), Some(ends));
        assert_eq!(found(other, 1), None);
    }
}
