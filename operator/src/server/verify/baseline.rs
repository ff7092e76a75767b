//! Pure. What is known of plugins, worlds and datapacks before an update: its proof holds them against it.

use std::collections::BTreeMap;

use scheduler::protocol::loaded::{AtStart, Loaded};
use scheduler::protocol::{AgentReport, FileSet, Server};
use scheduler::staging::jar_descriptor::same_plugin;

/// What the server said about its plugins when it was read last, and what its start had opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Baseline {
    /// Those that were enabled, JARs of people's own among them, sorted. Empty: nobody knows of any. A server all of whose plugins are
    /// red is not worth telling apart from that: both are told, and neither is gone back from.
    pub(crate) enabled: Vec<String>,
    /// Those of the settled set that came with an update that could not be read: they may be either.
    pub(crate) unread: Vec<String>,
    /// The worlds that its start had opened, sorted. None: nobody has read them. Never more than the agent tells apart.
    pub(crate) worlds: Option<Vec<String>>,
    /// The same of the datapacks.
    pub(crate) datapacks: Option<Vec<String>>,
}

/// How a plugin of a set fared before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlierState {
    /// It was not there.
    New,
    Enabled,
    Red,
    /// Nobody has read it.
    Unread,
}

impl Baseline {
    /// The baseline for the proof after this one. A report that names no plugins says nothing about them, so what was known before goes on
    /// counting: else one log that could not be read would let every later update pass with every plugin red.
    pub(crate) fn next(&self, report: Option<&AgentReport>, runs: Option<&FileSet>, before: Option<&FileSet>) -> Self {
        let loaded = report.and_then(|report| report.loaded.as_ref());
        let known = |now: Option<&BTreeMap<String, AtStart>>, too_many: bool, before: Option<&Vec<String>>| {
            // Those that are too many to be told apart would leave every later update unproven.
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

    /// How a plugin of `before`, the settled set, fared there.
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

    /// JARs of people's own that were enabled, are still there and are not enabled now. One whose file was taken away is no loss.
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
            // What could not even be loaded stands in no list of the server's.
            None => lies_there(name),
        })
        .collect()
    }
}

fn opened(at_start: &BTreeMap<String, AtStart>) -> Vec<String> {
    at_start.iter().filter(|(_, at)| **at == AtStart::Opened).map(|(name, _)| name.clone()).collect()
}

/// The plugins that a report shows as enabled, sorted. None: it names no plugins.
fn named(report: Option<&AgentReport>) -> Option<Vec<String>> {
    match &report?.server {
        Server::Up { plugins: Some(plugins), .. } => {
            Some(plugins.iter().filter(|(_, seen)| seen.enabled).map(|(name, _)| name.clone()).collect())
        }
        Server::Up { .. } | Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => None,
    }
}

/// The same, for people: how many of them.
pub(crate) fn count_enabled(report: Option<&AgentReport>) -> usize {
    named(report).map_or(0, |enabled| enabled.len())
}

pub(super) fn names(files: &FileSet) -> impl Iterator<Item = &str> {
    files.plugins.iter().filter_map(|file| file.plugin.as_deref())
}

fn has(files: &FileSet, name: &str) -> bool {
    names(files).any(|known| known == name)
}
