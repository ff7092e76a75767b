//! Pure. What a newer agent says in words that this operator does not know: an operator that was put back to an earlier version reads the
//! reports of agents that stay as they are until their pods restart.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Word<T> {
    Known(T),
    Unknown(IgnoredAny),
}

/// A part of a report, or None, as from an agent that does not know of it. Without the whole report nobody would know who is on.
pub(super) fn known<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(match Option::deserialize(deserializer)? {
        Some(Word::Known(said)) => Some(said),
        Some(Word::Unknown(IgnoredAny)) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::protocol::{Players, Report};

    #[test]
    fn a_word_of_a_newer_agent_hides_nothing_but_the_part_of_the_report_that_it_stands_in() {
        let said = |parts: Value| {
            let mut report = json!({
                "at": "2026-11-26T04:00:00Z", "podUid": "a", "server": {"state": "absent"},
                "players": {"who": "some", "count": 3}, "lock": null, "world": {"floor": null, "whole": true},
            });
            report.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
            serde_json::from_value::<Report>(report).unwrap()
        };
        let report = said(json!({
            "loaded": {"worlds": {"world": "opened"}, "datapacks": {}},
            "backups": {"good": 2},
            "pluginData": null,
        }));
        assert!(report.loaded.is_some() && report.backups.is_some_and(|backups| backups.good == 2));
        let report = said(json!({
            "loaded": {"worlds": {"world": "dreamtOf"}, "datapacks": {}},
            "backups": {"good": "all"},
            "pluginData": {"kept": 1},
            "newVolume": "maybe",
        }));
        assert_eq!(report.players, Players::Some { count: 3 });
        assert!(report.loaded.is_none() && report.backups.is_none());
        assert!(report.plugin_data.is_none() && report.new_volume.is_none());
    }
}
