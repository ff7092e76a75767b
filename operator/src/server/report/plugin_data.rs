//! Pure. Reports saved and restored plugin data and server settings in status and Events.

use agent_api::plugin_data::{DataPiece, PluginData, PluginDataRestored, Settings};
use crds::PaperMCServerStatus;
use crds::paper_mc_server::{PluginDataStatus, SettingsSaved};

use super::context::PassReport;
use crate::error_chain::cut;
use crate::k8s::events::EventText;

/// The maximum of the CRD schema.
const MAX_SAVED: usize = 100;
const MAX_NOT_SAVED: usize = 20;
/// Maximum length of a path and of a reason, in bytes.
const MAX_LENGTH: usize = 253;
/// Maximum length of an entry that was not saved. It contains a directory twice, and ends with the path of its settings.
const MAX_NOT_SAVED_LENGTH: usize = 340;

/// The plugin data for the status. While the agent is unreachable, the last value remains.
pub(super) fn build_status(
    agent: Option<&agent_api::AgentReport>,
    before: &PaperMCServerStatus,
) -> Option<PluginDataStatus> {
    match agent {
        Some(agent) => agent.plugin_data.as_ref().map(status),
        None => before.plugin_data.clone(),
    }
}

fn status(data: &PluginData) -> PluginDataStatus {
    let PluginData { at, lock: _, before: _, place, kept, absent: _, not_kept, left_out: _, settings, back } = data;
    let (put_back_at, set_aside, not_put_back) = match back {
        None => (None, None, None),
        Some(PluginDataRestored::Done { at, set_aside }) => (Some(*at), set_aside.as_ref(), None),
        Some(PluginDataRestored::SomebodyPlayed { at: _ }) => (None, None, Some("somebody may have played since")),
        Some(PluginDataRestored::Impossible { at: _, problem }) => (None, None, Some(problem.as_str())),
    };
    PluginDataStatus {
        kept_at: *at,
        place: place.as_ref().filter(|_| put_back_at.is_none()).map(|place| cut(place, MAX_LENGTH)),
        kept: kept.iter().take(MAX_SAVED).map(|piece| cut(&piece.to_string(), 64)).collect(),
        not_kept: not_kept
            .iter()
            .take(MAX_NOT_SAVED)
            .map(|not_kept| cut(&not_kept.to_string(), MAX_NOT_SAVED_LENGTH))
            .collect(),
        settings_kept: settings.as_ref().map(saved_settings),
        put_back_at,
        set_aside: set_aside.map(|place| cut(place, MAX_LENGTH)),
        not_put_back: not_put_back.map(|why| cut(why, MAX_LENGTH)),
    }
}

fn saved_settings(Settings { files, of, place }: &Settings) -> SettingsSaved {
    let number = |files: &usize| u32::try_from(*files).unwrap_or(u32::MAX);
    SettingsSaved { place: cut(place, MAX_LENGTH), files: number(files), found: number(of) }
}

/// Events about changes, once each.
pub(super) fn events(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Vec<EventText> {
    let data = report.pass.observed.reply.report.as_ref().and_then(|agent| agent.plugin_data.as_ref());
    data.map(|data| change_events(data, before.plugin_data.as_ref())).unwrap_or_default()
}

fn change_events(data: &PluginData, previous: Option<&PluginDataStatus>) -> Vec<EventText> {
    let now = status(data);
    let previous = previous.filter(|previous| previous.kept_at == now.kept_at);
    let mut events = Vec::new();
    if previous.is_none() {
        events.extend(saved_events(data, &now));
    }
    let was = previous.map(|previous| (previous.put_back_at, &previous.not_put_back));
    if data.back.is_some() && was != Some((now.put_back_at, &now.not_put_back)) {
        events.push(restored_event(data, &now));
    }
    events
}

/// The Events about data that was saved before a change of the version set.
fn saved_events(data: &PluginData, now: &PluginDataStatus) -> Vec<EventText> {
    let pieces = now.place.as_ref().map(|place| format!("{} are in {place}", format_pieces(&data.kept)));
    let settings = now.settings_kept.as_ref().map(|SettingsSaved { place, files, found }| {
        let how_many = if files == found { files.to_string() } else { format!("{files} of {found}") };
        format!("the settings of the plugins that do not change ({how_many} files) are in {place}")
    });
    let parts: Vec<String> = pieces.into_iter().chain(settings).collect();
    let saved = (!parts.is_empty()).then(|| EventText {
        reason: "PluginDataSaved",
        warning: false,
        text: format!("Saved before this change: {} on the volume.", parts.join(", and ")),
    });
    let not_saved = (!now.not_kept.is_empty()).then(|| EventText {
        reason: "PluginDataSaveFailed",
        warning: true,
        text: format!("Not saved before this change, so not restored if it fails: {}", now.not_kept.join("; ")),
    });
    saved.into_iter().chain(not_saved).collect()
}

/// For example `the data of LuckPerms, Essentials and the server's settings (bukkit.yml, config)`.
fn format_pieces(pieces: &[DataPiece]) -> String {
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
fn restored_event(data: &PluginData, now: &PluginDataStatus) -> EventText {
    let saved = format_pieces(&data.kept);
    let place = now.place.as_deref().unwrap_or("no place");
    if let Some(why) = &now.not_put_back {
        let text = format!(
            "The data and settings that the failed version set wrote stay: {why}. Their earlier state is in {place} \
            on the volume: {saved}"
        );
        return EventText { reason: "PluginDataNotRestored", warning: true, text };
    }
    let mut parts = vec![if data.kept.is_empty() {
        "No data had to be restored".to_owned()
    } else {
        format!("Restored to their state before the failed version set: {saved}")
    }];
    parts.extend(now.set_aside.as_ref().map(|place| format!("The files that it wrote are in {place} on the volume")));
    if !data.not_kept.is_empty() {
        let left: Vec<String> = data.not_kept.iter().map(|entry| entry.piece.path()).collect();
        parts.push(format!("Not restored: {}", left.join(", ")));
    }
    let text = parts.join(". ");
    EventText { reason: "PluginDataRestored", warning: true, text }
}

/// The effect of the roll-back on plugin data, as text.
pub(super) fn restore_effect() -> String {
    "The data of the changed plugins, and the server's settings if Paper changed, are restored unless players have \
    joined since the update."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plugin_data(restored: &serde_json::Value) -> PluginData {
        serde_json::from_value(json!({
            "at": "2026-11-22T03:00:00Z", "lock": "aa", "before": "bb", "place": ".nightshift/kept/20261122T030000Z-aaaaaaaa",
            "kept": ["LuckPerms", "Essentials", "./bukkit.yml"], "absent": ["Fresh"],
            "notKept": [{"folder": "dynmap", "why": "tooLarge", "bytes": 20_000_000_000_u64, "limit": 536_870_912}],
            "back": restored,
        }))
        .unwrap()
    }

    fn event_texts(data: &PluginData, previous: Option<&PluginDataStatus>) -> Vec<(&'static str, String)> {
        change_events(data, previous).into_iter().map(|event| (event.reason, event.text)).collect()
    }

    #[test]
    fn plugin_data_save_is_reported_once() {
        let saved = plugin_data(&json!(null));
        let events = event_texts(&saved, None);
        assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), ["PluginDataSaved", "PluginDataSaveFailed"]);
        let saved_settings_text =
            "the data of LuckPerms, Essentials and the server's settings (bukkit.yml) are in .nightshift/kept/";
        assert!(events[0].1.contains(saved_settings_text), "{events:?}");
        assert!(events[1].1.contains("plugins/dynmap has 20000 MB"), "{events:?}");
        assert_eq!(event_texts(&saved, Some(&status(&saved))), []);
    }

    #[test]
    fn plugin_data_event_names_location_of_settings() {
        let place = ".nightshift/kept-settings/20261122T030000Z-aaaaaaaa";
        let settings = |files| Some(Settings { files, of: 12, place: place.to_owned() });
        let both = PluginData { settings: settings(12), ..plugin_data(&json!(null)) };
        let events = event_texts(&both, None);
        let text = &events[0].1;
        assert!(
            text.contains("the data of LuckPerms, Essentials and the server's settings (bukkit.yml) are in"),
            "{text}"
        );
        let settings_text =
            format!(", and the settings of the plugins that do not change (12 files) are in {place} on the volume.");
        assert!(text.ends_with(&settings_text), "{text}");

        let partial = PluginData {
            settings: settings(7),
            place: None,
            kept: vec![],
            not_kept: vec![],
            ..plugin_data(&json!(null))
        };
        let settings_text = format!("the settings of the plugins that do not change (7 of 12 files) are in {place}");
        assert_eq!(
            event_texts(&partial, None),
            [("PluginDataSaved", format!("Saved before this change: {settings_text} on the volume."))]
        );
        let previous = status(&partial);
        let saved = SettingsSaved { place: place.to_owned(), files: 7, found: 12 };
        assert_eq!((previous.settings_kept.as_ref(), previous.place.as_ref()), (Some(&saved), None));
        assert_eq!(event_texts(&partial, Some(&previous)), []);

        let done = json!({"outcome": "done", "at": "2026-11-22T03:05:00Z", "setAside": null});
        let restored = status(&PluginData { settings: settings(7), ..plugin_data(&done) });
        assert_eq!((restored.settings_kept, restored.place), (Some(saved), None), "settings are not restored");
    }

    #[test]
    fn plugin_data_rollback_reports_restored_and_missing_parts() {
        let previous = status(&plugin_data(&json!(null)));
        let done =
            plugin_data(&json!({"outcome": "done", "at": "2026-11-22T03:05:00Z", "setAside": ".nightshift/failed/bb"}));
        let events = event_texts(&done, Some(&previous));
        assert_eq!(
            events,
            [(
                "PluginDataRestored",
                "Restored to their state before the failed version set: the data of LuckPerms, Essentials and the \
                server's settings (bukkit.yml). The files that it wrote are in .nightshift/failed/bb on the volume. \
                Not restored: plugins/dynmap"
                    .to_owned()
            )]
        );
        let now = status(&done);
        assert_eq!((now.place, now.set_aside.as_deref()), (None, Some(".nightshift/failed/bb")));
        assert_eq!(event_texts(&done, Some(&status(&done))), []);
    }

    #[test]
    fn plugin_data_not_restored_is_reported_with_reason() {
        let previous = status(&plugin_data(&json!(null)));
        for (restored, why) in [
            (json!({"outcome": "somebodyPlayed", "at": "2026-11-22T03:05:00Z"}), "somebody may have played since"),
            (json!({"outcome": "impossible", "at": "2026-11-22T03:05:00Z", "problem": "a link"}), "a link"),
        ] {
            let left = plugin_data(&restored);
            let events = event_texts(&left, Some(&previous));
            let [("PluginDataNotRestored", text)] = events.as_slice() else { panic!("{events:?}") };
            assert!(text.contains(why) && text.contains("is in .nightshift/kept/"), "{text}");
            assert_eq!(status(&left).not_put_back.as_deref(), Some(why));
            assert_eq!(event_texts(&left, Some(&status(&left))), []);
        }
    }

    #[test]
    fn plugin_data_status_stands_while_agent_is_silent() {
        let previous = Some(status(&plugin_data(&json!(null))));
        let before = PaperMCServerStatus { plugin_data: previous.clone(), ..PaperMCServerStatus::default() };
        assert_eq!(build_status(None, &before), previous);
    }
}
