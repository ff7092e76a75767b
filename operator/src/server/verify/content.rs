//! Pure. Finds worlds and datapacks that are missing after an update.
//!
//! An update is rolled back only if that would help: for content whose files are unchanged, and that was not closed on purpose.

use std::collections::BTreeMap;

use agent_api::is_same_plugin;
use agent_api::loaded_content::{AtStart, Loaded, is_same_world};
use agent_api::{AgentReport, Server};

use super::{VerificationTarget, is_bundled};

/// Worlds that settings switch on and off: `allow-nether` in server.properties, `allow-end` in bukkit.yml.
const SWITCHABLE_WORLDS: [&str; 2] = ["the_nether", "the_end"];

/// Maximum number of names in a sentence.
const MAX_NAMED: usize = 5;

/// The missing content as sentences. Empty if nothing is missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MissingContent {
    /// The new set is the cause.
    pub(super) at_fault: Vec<String>,
    /// The cause is unknown, or a roll-back would not help.
    pub(super) reported: Vec<String>,
    /// Known before and unreadable now.
    pub(super) unread: Vec<&'static str>,
}

impl MissingContent {
    pub(super) fn new(report: &AgentReport, expected: &VerificationTarget<'_>) -> Self {
        let mut missing = Self::default();
        let nothing_read = Loaded::default();
        let loaded = report.loaded.as_ref().unwrap_or(&nothing_read);
        if let Some(before) = &expected.baseline.worlds {
            match &loaded.worlds {
                Some(now) => missing.find_missing_worlds(before, now, removed_plugin(report, expected)),
                None if loaded.too_many_worlds => {}
                None => missing.unread.push("the open worlds could not be read"),
            }
        }
        if let Some(before) = &expected.baseline.datapacks {
            match &loaded.datapacks {
                Some(now) => missing.find_missing_datapacks(before, now),
                None if loaded.too_many_datapacks => {}
                None => missing.unread.push("the enabled datapacks could not be read"),
            }
        }
        missing
    }

    fn find_missing_worlds(&mut self, before: &[String], now: &BTreeMap<String, AtStart>, removed: Option<&str>) {
        let (mut blamed, mut switched, mut orphaned, mut unsure, mut missing_files) =
            (vec![], vec![], vec![], vec![], vec![]);
        for name in before {
            let same: Vec<AtStart> =
                now.iter().filter(|(now, _)| is_same_world(name, now)).map(|(_, at)| *at).collect();
            if same.iter().any(|at| matches!(at, AtStart::Opened | AtStart::ClosedBefore)) {
                continue;
            }
            let is_likely = same.contains(&AtStart::NotAnyMore);
            let of = match (SWITCHABLE_WORLDS.contains(&name.as_str()), same.is_empty(), removed) {
                (true, _, _) => &mut switched,
                (false, true, _) => &mut missing_files,
                (false, false, Some(_)) => &mut orphaned,
                (false, false, None) if is_likely => &mut blamed,
                (false, false, None) => &mut unsure,
            };
            of.push(name.as_str());
        }
        push_sentence(&mut self.at_fault, "world", &blamed, |are| {
            format!(
                "{are} no longer open although the files exist. If that is intended, close them while the server runs"
            )
        });
        push_sentence(&mut self.reported, "world", &switched, |are| {
            format!("{are} no longer open. See `allow-nether` in server.properties and `allow-end` in bukkit.yml")
        });
        push_sentence(&mut self.reported, "world", &unsure, |are| unsure_message(are, "open"));
        let removed = removed.unwrap_or_default();
        push_sentence(&mut self.reported, "world", &orphaned, |are| {
            format!("{are} no longer open, and {removed}, which may have opened it, is not installed")
        });
        push_sentence(&mut self.reported, "world", &missing_files, |are| {
            format!("{are} no longer open, and the files are not on the volume. A backup may have them")
        });
    }

    /// A removed file does not count: a user removes it on purpose, and Nightshift does not write to that directory.
    fn find_missing_datapacks(&mut self, before: &[String], now: &BTreeMap<String, AtStart>) {
        let that = |at| {
            let names = before.iter().map(String::as_str);
            names.filter(|name| now.get(*name) == Some(&at)).collect::<Vec<_>>()
        };
        push_sentence(&mut self.at_fault, "datapack", &that(AtStart::NotAnyMore), |are| {
            format!("{are} no longer enabled although the file exists. See the server's log")
        });
        push_sentence(&mut self.reported, "datapack", &that(AtStart::NotOpened), |are| unsure_message(are, "enabled"));
    }
}

/// A plugin that was enabled before and is not installed now. A user has removed it, with this update or earlier.
fn removed_plugin<'a>(report: &AgentReport, expected: &'a VerificationTarget<'_>) -> Option<&'a str> {
    let Server::Up { plugins: Some(plugins), .. } = &report.server else { return None };
    let is_installed = |name: &&String| plugins.keys().any(|installed| is_same_plugin(installed, name));
    let mut enabled = expected.baseline.enabled.iter();
    enabled.find(|name| !is_installed(name) && !is_bundled(expected.bundled, name)).map(String::as_str)
}

/// One start proves little: a plugin may choose another map each time.
fn unsure_message(are: &str, open: &str) -> String {
    format!("{are} no longer {open}, but no three earlier starts in a row are known to have had it")
}

/// For example ``world `creative` is …``, ``worlds `a`, `b` and 3 more are …``.
fn push_sentence(sentences: &mut Vec<String>, kind: &str, names: &[&str], rest: impl Fn(&str) -> String) {
    if names.is_empty() {
        return;
    }
    let shown: Vec<String> = names.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (plural, are) = if names.len() == 1 { ("", "is") } else { ("s", "are") };
    sentences.push(rest(&format!("{kind}{plural} {}{more} {are}", shown.join(", "))));
}
