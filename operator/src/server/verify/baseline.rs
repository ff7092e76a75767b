//! Pure. Keeps the state of plugins, worlds and datapacks before an update as the baseline of its verification.

use std::collections::BTreeMap;

use scheduler::protocol::loaded::{AtStart, Loaded};
use scheduler::protocol::{AgentReport, FileSet, Server};
use scheduler::staging::jar_descriptor::same_plugin;

/// The last readable state of the server's plugins, and the worlds and datapacks that its start had opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Baseline {
    /// Enabled plugins, including unmanaged JARs, sorted. Empty if none is known. A server whose plugins have all failed need not be
    /// distinguished from that: both are reported, and neither is rolled back.
    pub(crate) enabled: Vec<String>,
    /// Plugins of the stable set from an update whose plugins could not be read. Their state is unknown.
    pub(crate) unread: Vec<String>,
    /// The worlds that the start had opened, sorted. `None` if they were not read. The number is bounded by the agent's limit.
    pub(crate) worlds: Option<Vec<String>>,
    /// The same for the datapacks.
    pub(crate) datapacks: Option<Vec<String>>,
}

/// The earlier state of a plugin of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlierState {
    /// It was not installed.
    New,
    Enabled,
    Red,
    /// It was never read.
    Unread,
}

impl Baseline {
    /// The baseline for the next verification. A report without plugins gives no information about them, so the earlier state remains
    /// valid. Otherwise one unreadable log would let every later update pass, even with every plugin failed.
    pub(crate) fn next(&self, report: Option<&AgentReport>, runs: Option<&FileSet>, before: Option<&FileSet>) -> Self {
        let loaded = report.and_then(|report| report.loaded.as_ref());
        let known = |now: Option<&BTreeMap<String, AtStart>>, too_many: bool, before: Option<&Vec<String>>| {
            // If there are too many to be tracked, keeping the old list would leave every later update unverified.
            now.map(opened).or_else(|| before.filter(|_| !too_many).cloned())
        };
        let nothing_read = Loaded::default();
        let Loaded { worlds, too_many_worlds, datapacks, too_many_datapacks } = loaded.unwrap_or(&nothing_read);
        let worlds = known(worlds.as_ref(), *too_many_worlds, self.worlds.as_ref());
        let datapacks = known(datapacks.as_ref(), *too_many_datapacks, self.datapacks.as_ref());
        if let Some(enabled) = named(report) {
            return Self { enabled, unread: Vec::new(), worlds, datapacks };
        }
        let is_new = |name: &&str| !before.is_some_and(|before| has(before, name));
        let new = runs.into_iter().flat_map(names).filter(is_new).map(str::to_owned);
        let mut unread: Vec<String> = self.unread.iter().cloned().chain(new).collect();
        unread.sort();
        unread.dedup();
        Self { enabled: self.enabled.clone(), unread, worlds, datapacks }
    }

    /// The earlier state of a plugin, where `before` is the stable set.
    pub(super) fn was(&self, name: &str, before: Option<&FileSet>) -> EarlierState {
        let is_in = |list: &[String]| list.iter().any(|known| known == name);
        if !before.is_some_and(|before| has(before, name)) {
            EarlierState::New
        } else if is_in(&self.enabled) {
            EarlierState::Enabled
        } else if self.enabled.is_empty() || is_in(&self.unread) {
            EarlierState::Unread
        } else {
            EarlierState::Red
        }
    }

    /// Unmanaged JARs that were enabled, still exist and are not enabled now. A removed JAR does not count.
    pub(super) fn lost_of_ones_own<'a>(&'a self, report: &'a AgentReport, files: &FileSet) -> Vec<&'a str> {
        let Server::Up { plugins: Some(plugins), .. } = &report.server else { return Vec::new() };
        let is_ours = |name: &str| names(files).any(|ours| same_plugin(ours, name));
        let lies_there = |name: &str| {
            let mut jars = report.unmanaged_jars.iter().filter_map(|jar| jar.name.as_deref());
            jars.any(|jar| same_plugin(jar, name))
        };
        let own = self.enabled.iter().map(String::as_str).filter(|name| !is_ours(name));
        own.filter(|name| match plugins.iter().find(|(seen, _)| same_plugin(seen, name)) {
            Some((_, seen)) => !seen.enabled,
            // A JAR that could not be loaded is missing in the server's list.
            None => lies_there(name),
        })
        .collect()
    }
}

fn opened(at_start: &BTreeMap<String, AtStart>) -> Vec<String> {
    at_start.iter().filter(|(_, at)| **at == AtStart::Opened).map(|(name, _)| name.clone()).collect()
}

/// The enabled plugins of a report, sorted. `None` if it lists no plugins.
fn named(report: Option<&AgentReport>) -> Option<Vec<String>> {
    match &report?.server {
        Server::Up { plugins: Some(plugins), .. } => {
            Some(plugins.iter().filter(|(_, seen)| seen.enabled).map(|(name, _)| name.clone()).collect())
        }
        Server::Up { .. } | Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => None,
    }
}

/// The number of enabled plugins in a report.
pub(crate) fn count_enabled(report: Option<&AgentReport>) -> usize {
    named(report).map_or(0, |enabled| enabled.len())
}

pub(super) fn names(files: &FileSet) -> impl Iterator<Item = &str> {
    files.plugins.iter().filter_map(|file| file.plugin.as_deref())
}

fn has(files: &FileSet, name: &str) -> bool {
    names(files).any(|known| known == name)
}
