//! Pure. Reports saved and restored plugin data and server settings in status and Events.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{PluginDataStatus, SettingsKept};
use scheduler::protocol;
use scheduler::protocol::plugin_data::{DataPiece, PluginData, PluginDataRestored, Settings};

use super::PassReport;
use crate::error_chain::cut;
use crate::k8s::events::EventText;

/// The maximum of the CRD schema.
const MOST_KEPT: usize = 100;
const MOST_NOT_KEPT: usize = 20;
/// Maximum length of a path and of a reason, in bytes.
const LONGEST: usize = 253;
/// Maximum length of an entry that was not saved. It contains a directory twice, and ends with the path of its settings.
const LONGEST_NOT_KEPT: usize = 340;

/// The plugin data for the status. While the agent is unreachable, the last value remains.
pub(super) fn build_status(
    agent: Option<&protocol::AgentReport>,
    before: &PaperMCServerStatus,
) -> Option<PluginDataStatus> {
    match agent {
        Some(agent) => agent.plugin_data.as_ref().map(status),
        None => before.plugin_data.clone(),
    }
}

fn status(seen: &PluginData) -> PluginDataStatus {
    let PluginData { at, lock: _, before: _, place, kept, absent: _, not_kept, left_out: _, settings, back } = seen;
    let (put_back_at, set_aside, not_put_back) = match back {
        None => (None, None, None),
        Some(PluginDataRestored::Done { at, set_aside }) => (Some(*at), set_aside.as_ref(), None),
        Some(PluginDataRestored::SomebodyPlayed { at: _ }) => (None, None, Some("somebody may have played since")),
        Some(PluginDataRestored::Impossible { at: _, problem }) => (None, None, Some(problem.as_str())),
    };
    PluginDataStatus {
        kept_at: *at,
        place: place.as_ref().filter(|_| put_back_at.is_none()).map(|place| cut(place, LONGEST)),
        kept: kept.iter().take(MOST_KEPT).map(|piece| cut(&piece.to_string(), 64)).collect(),
        not_kept: not_kept
            .iter()
            .take(MOST_NOT_KEPT)
            .map(|not_kept| cut(&not_kept.to_string(), LONGEST_NOT_KEPT))
            .collect(),
        settings_kept: settings.as_ref().map(settings_kept),
        put_back_at,
        set_aside: set_aside.map(|place| cut(place, LONGEST)),
        not_put_back: not_put_back.map(|why| cut(why, LONGEST)),
    }
}

fn settings_kept(Settings { files, of, place }: &Settings) -> SettingsKept {
    let number = |files: &usize| u32::try_from(*files).unwrap_or(u32::MAX);
    SettingsKept { place: cut(place, LONGEST), files: number(files), found: number(of) }
}

/// Events about changes, once each.
pub(super) fn notes(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Vec<EventText> {
    let seen = report.seen.report.as_ref().and_then(|agent| agent.plugin_data.as_ref());
    seen.map(|seen| news(seen, before.plugin_data.as_ref())).unwrap_or_default()
}

fn news(seen: &PluginData, known: Option<&PluginDataStatus>) -> Vec<EventText> {
    let now = status(seen);
    let known = known.filter(|known| known.kept_at == now.kept_at);
    let mut notes = Vec::new();
    if known.is_none() {
        notes.extend(kept(seen, &now));
    }
    let was = known.map(|known| (known.put_back_at, &known.not_put_back));
    if seen.back.is_some() && was != Some((now.put_back_at, &now.not_put_back)) {
        notes.push(put_back(seen, &now));
    }
    notes
}

/// The Events about data that was saved before a change of the version set.
fn kept(seen: &PluginData, now: &PluginDataStatus) -> Vec<EventText> {
    let pieces = now.place.as_ref().map(|place| format!("{} lie in {place}", in_words(&seen.kept)));
    let settings = now.settings_kept.as_ref().map(|SettingsKept { place, files, found }| {
        let how_many = if files == found { files.to_string() } else { format!("{files} of {found}") };
        format!("the settings of the plugins that do not change ({how_many} files) lie in {place}")
    });
    let lie: Vec<String> = pieces.into_iter().chain(settings).collect();
    let kept = (!lie.is_empty()).then(|| EventText {
        reason: "PluginDataSaved",
        warning: false,
        text: format!("as they were before this change, {} on the volume", lie.join(", and ")),
    });
    let not_kept = (!now.not_kept.is_empty()).then(|| EventText {
        reason: "PluginDataSaveFailed",
        warning: true,
        text: format!("should this change fail, these stay as it leaves them: {}", now.not_kept.join("; ")),
    });
    kept.into_iter().chain(not_kept).collect()
}

/// For example `the data of LuckPerms, Essentials and the server's settings (bukkit.yml, config)`.
fn in_words(pieces: &[DataPiece]) -> String {
    let (mut of_plugins, mut of_server) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            DataPiece::OfPlugin(folder) => of_plugins.push(folder.as_str()),
            DataPiece::OfServer(name) => of_server.push(name.as_str()),
        }
    }
    let of_plugins = (!of_plugins.is_empty()).then(|| format!("the data of {}", of_plugins.join(", ")));
    let of_server = (!of_server.is_empty()).then(|| format!("the server's settings ({})", of_server.join(", ")));
    of_plugins.into_iter().chain(of_server).collect::<Vec<_>>().join(" and ")
}

/// The Event about the restore after a failed set.
fn put_back(seen: &PluginData, now: &PluginDataStatus) -> EventText {
    let kept = in_words(&seen.kept);
    let place = now.place.as_deref().unwrap_or("no place");
    if let Some(why) = &now.not_put_back {
        let text = format!(
            "what the failed set wrote into data and settings stays: {why}. As they were before it, {kept} lie in {place} on the volume"
        );
        return EventText { reason: "PluginDataNotRestored", warning: true, text };
    }
    let mut parts = vec![if seen.kept.is_empty() {
        "there was nothing to put back".to_owned()
    } else {
        format!("{kept} are what they were before the set that failed")
    }];
    parts.extend(now.set_aside.as_ref().map(|place| format!("what that set wrote lies in {place} on the volume")));
    if !seen.not_kept.is_empty() {
        let left: Vec<String> = seen.not_kept.iter().map(|not_kept| not_kept.piece.path()).collect();
        parts.push(format!("as that set left them: {}", left.join(", ")));
    }
    let text = parts.join("; ");
    EventText { reason: "PluginDataRestored", warning: true, text }
}

/// The effect of the roll-back on plugin data, as text.
pub(super) fn ordered() -> String {
    "if nobody has played since the update, the data of the plugins that changed, and the server's settings if Paper did, are put back as they \
     were before it"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(back: &serde_json::Value) -> PluginData {
        serde_json::from_value(json!({
            "at": "2026-11-22T03:00:00Z", "lock": "aa", "before": "bb", "place": ".nightshift/kept/20261122T030000Z-aaaaaaaa",
            "kept": ["LuckPerms", "Essentials", "./bukkit.yml"], "absent": ["Fresh"],
            "notKept": [{"folder": "dynmap", "why": "tooLarge", "bytes": 20_000_000_000_u64, "limit": 536_870_912}],
            "back": back,
        }))
        .unwrap()
    }

    fn said(seen: &PluginData, known: Option<&PluginDataStatus>) -> Vec<(&'static str, String)> {
        news(seen, known).into_iter().map(|note| (note.reason, note.text)).collect()
    }

    #[test]
    fn plugin_data_save_is_reported_once() {
        let kept = seen(&json!(null));
        let notes = said(&kept, None);
        assert_eq!(notes.iter().map(|note| note.0).collect::<Vec<_>>(), ["PluginDataSaved", "PluginDataSaveFailed"]);
        let kept_there =
            "the data of LuckPerms, Essentials and the server's settings (bukkit.yml) lie in .nightshift/kept/";
        assert!(notes[0].1.contains(kept_there), "{notes:?}");
        assert!(notes[1].1.contains("plugins/dynmap has 20000 MB"), "{notes:?}");
        assert_eq!(said(&kept, Some(&status(&kept))), []);
    }

    #[test]
    fn plugin_data_event_names_location_of_settings() {
        let place = ".nightshift/kept-settings/20261122T030000Z-aaaaaaaa";
        let settings = |files| Some(Settings { files, of: 12, place: place.to_owned() });
        let both = PluginData { settings: settings(12), ..seen(&json!(null)) };
        let notes = said(&both, None);
        let text = &notes[0].1;
        assert!(
            text.contains("the data of LuckPerms, Essentials and the server's settings (bukkit.yml) lie in"),
            "{text}"
        );
        let they =
            format!(", and the settings of the plugins that do not change (12 files) lie in {place} on the volume");
        assert!(text.ends_with(&they), "{text}");

        let alone =
            PluginData { settings: settings(7), place: None, kept: vec![], not_kept: vec![], ..seen(&json!(null)) };
        let they = format!("the settings of the plugins that do not change (7 of 12 files) lie in {place}");
        assert_eq!(
            said(&alone, None),
            [("PluginDataSaved", format!("as they were before this change, {they} on the volume"))]
        );
        let known = status(&alone);
        let kept = SettingsKept { place: place.to_owned(), files: 7, found: 12 };
        assert_eq!((known.settings_kept.as_ref(), known.place.as_ref()), (Some(&kept), None));
        assert_eq!(said(&alone, Some(&known)), []);

        let done = json!({"outcome": "done", "at": "2026-11-22T03:05:00Z", "setAside": null});
        let put_back = status(&PluginData { settings: settings(7), ..seen(&done) });
        assert_eq!((put_back.settings_kept, put_back.place), (Some(kept), None), "nothing has put these back");
    }

    #[test]
    fn plugin_data_rollback_reports_restored_and_missing_parts() {
        let known = status(&seen(&json!(null)));
        let done = seen(&json!({"outcome": "done", "at": "2026-11-22T03:05:00Z", "setAside": ".nightshift/failed/bb"}));
        let notes = said(&done, Some(&known));
        assert_eq!(
            notes,
            [(
                "PluginDataRestored",
                "the data of LuckPerms, Essentials and the server's settings (bukkit.yml) are what they were before the set that \
                 failed; what that set wrote lies in .nightshift/failed/bb on the volume; as that set left them: plugins/dynmap"
                    .to_owned()
            )]
        );
        let now = status(&done);
        assert_eq!((now.place, now.set_aside.as_deref()), (None, Some(".nightshift/failed/bb")));
        assert_eq!(said(&done, Some(&status(&done))), []);
    }

    #[test]
    fn plugin_data_not_restored_is_reported_with_reason() {
        let known = status(&seen(&json!(null)));
        for (back, why) in [
            (json!({"outcome": "somebodyPlayed", "at": "2026-11-22T03:05:00Z"}), "somebody may have played since"),
            (json!({"outcome": "impossible", "at": "2026-11-22T03:05:00Z", "problem": "a link"}), "a link"),
        ] {
            let left = seen(&back);
            let notes = said(&left, Some(&known));
            let [("PluginDataNotRestored", text)] = notes.as_slice() else { panic!("{notes:?}") };
            assert!(text.contains(why) && text.contains("lie in .nightshift/kept/"), "{text}");
            assert_eq!(status(&left).not_put_back.as_deref(), Some(why));
            assert_eq!(said(&left, Some(&status(&left))), []);
        }
    }

    #[test]
    fn plugin_data_status_stands_while_agent_is_silent() {
        let known = Some(status(&seen(&json!(null))));
        let before = PaperMCServerStatus { plugin_data: known.clone(), ..PaperMCServerStatus::default() };
        assert_eq!(build_status(None, &before), known);
    }
}
