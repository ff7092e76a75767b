//! Pure. Finds worlds and datapacks that are missing after an update.
//!
//! An update is rolled back only if that would help: for content whose files are unchanged, and that was not closed on purpose.

use std::collections::BTreeMap;

use scheduler::protocol::loaded::{AtStart, Loaded, is_same_world};
use scheduler::protocol::{AgentReport, Server};
use scheduler::staging::jar_descriptor::same_plugin;

use super::{Baseline, VerificationTarget};

/// Worlds that settings switch on and off: `allow-nether` in server.properties, `allow-end` in bukkit.yml.
const SWITCHED: [&str; 2] = ["the_nether", "the_end"];

/// Maximum number of names in a sentence.
const NAMED: usize = 5;

/// The missing content as sentences. Empty if nothing is missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MissingContent {
    /// The new set is the cause.
    pub(super) to_blame: Vec<String>,
    /// The cause is unknown, or a roll-back would not help.
    pub(super) told: Vec<String>,
    /// Known before and unreadable now.
    pub(super) unread: Vec<&'static str>,
}

impl MissingContent {
    pub(super) fn of(report: &AgentReport, expected: &VerificationTarget<'_>) -> Self {
        let mut missing = Self::default();
        let nothing_read = Loaded::default();
        let loaded = report.loaded.as_ref().unwrap_or(&nothing_read);
        if let Some(before) = &expected.baseline.worlds {
            match &loaded.worlds {
                Some(now) => missing.look_for_worlds(before, now, removed_plugin(report, expected.baseline)),
                None if loaded.too_many_worlds => {}
                None => missing.unread.push("which worlds are open could not be read"),
            }
        }
        if let Some(before) = &expected.baseline.datapacks {
            match &loaded.datapacks {
                Some(now) => missing.look_for_datapacks(before, now),
                None if loaded.too_many_datapacks => {}
                None => missing.unread.push("which datapacks are enabled could not be read"),
            }
        }
        missing
    }

    fn look_for_worlds(&mut self, before: &[String], now: &BTreeMap<String, AtStart>, removed: Option<&str>) {
        let (mut blamed, mut switched, mut orphaned, mut unsure, mut gone) = (vec![], vec![], vec![], vec![], vec![]);
        for name in before {
            let same: Vec<AtStart> =
                now.iter().filter(|(now, _)| is_same_world(name, now)).map(|(_, at)| *at).collect();
            if same.iter().any(|at| matches!(at, AtStart::Opened | AtStart::ClosedBefore)) {
                continue;
            }
            let is_likely = same.contains(&AtStart::NotAnyMore);
            let of = match (SWITCHED.contains(&name.as_str()), same.is_empty(), removed) {
                (true, _, _) => &mut switched,
                (false, true, _) => &mut gone,
                (false, false, Some(_)) => &mut orphaned,
                (false, false, None) if is_likely => &mut blamed,
                (false, false, None) => &mut unsure,
            };
            of.push(name.as_str());
        }
        say(&mut self.to_blame, "world", &blamed, |are| {
            format!(
                "{are} not open any more although the files are there; if that is meant, close what is to be closed while the server runs"
            )
        });
        say(&mut self.told, "world", &switched, |are| {
            format!("{are} not open any more; see `allow-nether` in server.properties and `allow-end` in bukkit.yml")
        });
        say(&mut self.told, "world", &unsure, |are| not_sure(are, "open"));
        let removed = removed.unwrap_or_default();
        say(&mut self.told, "world", &orphaned, |are| {
            format!("{are} not open any more, and neither is {removed} there, which may have opened it")
        });
        say(&mut self.told, "world", &gone, |are| {
            format!("{are} not open any more and the files are not on the volume; a copy may have them")
        });
    }

    /// A removed file does not count: a user removes it on purpose, and Nightshift does not write to that directory.
    fn look_for_datapacks(&mut self, before: &[String], now: &BTreeMap<String, AtStart>) {
        let that = |at| {
            let names = before.iter().map(String::as_str);
            names.filter(|name| now.get(*name) == Some(&at)).collect::<Vec<_>>()
        };
        say(&mut self.to_blame, "datapack", &that(AtStart::NotAnyMore), |are| {
            format!("{are} not enabled any more although the file is there; the server's log says why")
        });
        say(&mut self.told, "datapack", &that(AtStart::NotOpened), |are| not_sure(are, "enabled"));
    }
}

/// A plugin that was enabled before and is not installed now. A user has removed it, with this update or earlier.
fn removed_plugin<'a>(report: &AgentReport, baseline: &'a Baseline) -> Option<&'a str> {
    let Server::Up { plugins: Some(plugins), .. } = &report.server else { return None };
    let is_there = |name: &&String| plugins.keys().any(|seen| same_plugin(seen, name));
    baseline.enabled.iter().find(|name| !is_there(name)).map(String::as_str)
}

/// One start proves little: a plugin may choose another map each time.
fn not_sure(are: &str, open: &str) -> String {
    format!("{are} not {open} any more, and no three starts in a row before are known to have had as much")
}

/// For example ``world `creative` is …``, ``worlds `a`, `b` and 3 more are …``.
fn say(sentences: &mut Vec<String>, what: &str, names: &[&str], rest: impl Fn(&str) -> String) {
    if names.is_empty() {
        return;
    }
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (plural, are) = if names.len() == 1 { ("", "is") } else { ("s", "are") };
    sentences.push(rest(&format!("{what}{plural} {}{more} {are}", shown.join(", "))));
}
