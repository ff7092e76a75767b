//! Pure. What players are told before their server stops, and where.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::announcement::placeholder;
use crate::observation::Disruption;

/// Tell the players, with true times, until `ends`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Announce {
    /// The act this belongs to, as the operator names it. The same act with the same end is announced once.
    pub act: String,
    /// When the server will be stopped.
    pub ends: Timestamp,
    /// `{in}` is replaced by the time that is really left: `5 minutes`, `30 seconds`. So is `{in:de}`, in its language.
    pub text: String,
    /// The same for where a line has less room than in the chat. None: the first line of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// Where they read it. Left out where it is the chat alone: an agent that knows of nothing else refuses the word.
    #[serde(default = "in_the_chat", skip_serializing_if = "is_the_chat")]
    pub show: BTreeSet<Place>,
    /// The server stops only if nobody joins until then: the countdown ends when somebody does, who is told that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_empty: bool,
    /// The text has places such as `{in:de}`. Nothing follows from it but that an agent which would say them as they stand refuses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_languages: bool,
}

impl Announce {
    /// When the countdown for this act is over, if it is one that has not run out and leaves players no more than `notice`.
    pub fn ends_within(&self, act: Disruption, notice: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        let left = self.ends.duration_since(now);
        (self.act == act.to_string() && left.is_positive() && left <= notice).then_some(self.ends)
    }

    /// The same for an agent that knows English only.
    #[must_use]
    pub fn in_english(self) -> Self {
        let Self { act, ends, text, short, show, only_empty, in_languages: _ } = self;
        let (text, short) = (placeholder::in_english(&text), short.as_deref().map(placeholder::in_english));
        Self { act, ends, text, short, show, only_empty, in_languages: false }
    }
}

/// End the countdown of an act that does not come, and tell whoever may have read of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelAnnouncement {
    /// The act that was announced.
    pub act: String,
    /// What players read.
    pub text: String,
}

/// Where players read a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The chat.
    Chat,
    /// Above the hotbar.
    ActionBar,
    /// Across the screen.
    Title,
}

/// The chat alone.
pub fn in_the_chat() -> BTreeSet<Place> {
    BTreeSet::from([Place::Chat])
}

fn is_the_chat(show: &BTreeSet<Place>) -> bool {
    *show == in_the_chat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Revision;

    #[test]
    fn what_players_were_told_is_found_again_as_long_as_it_is_true_and_no_longer_than_what_would_be_told() {
        let ends = Timestamp::constant(1_000_000, 0);
        let (act, other) = (Disruption::RollBack { failed: Revision(1) }, Disruption::RollBack { failed: Revision(2) });
        let told = Announce {
            act: act.to_string(),
            ends,
            text: String::new(),
            short: None,
            show: in_the_chat(),
            only_empty: false,
            in_languages: false,
        };
        let minutes = SignedDuration::from_mins;
        let found = |act, left: i64| told.ends_within(act, minutes(5), ends - minutes(left));
        assert_eq!([5, 1, 0, -1, 6].map(|left| found(act, left).is_some()), [true, true, false, false, false]);
        assert_eq!(found(act, 1), Some(ends));
        assert_eq!(found(other, 1), None);
    }
}
