//! Pure. Keeps the state of plugins, worlds and datapacks before an update as the baseline of its verification.

use std::collections::BTreeMap;

use agent_api::is_same_plugin;
use agent_api::loaded_content::{AtStart, Loaded};
use agent_api::{AgentReport, FileSet, Server};

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
pub(crate) enum EarlierState {
    /// It was not installed.
    New,
    Enabled,
    Failed,
    /// It was never read.
    Unread,
}

impl Baseline {
    /// The baseline for the next verification. A report without plugins gives no information about them, so the earlier state remains
    /// valid. Otherwise one unreadable log would let every later update pass, even with every plugin failed.
    pub(crate) fn next(&self, report: Option<&AgentReport>, runs: Option<&FileSet>, before: Option<&FileSet>) -> Self {
        let loaded = report.and_then(|report| report.loaded.as_ref());
        let next_names = |now: Option<&BTreeMap<String, AtStart>>, too_many: bool, before: Option<&Vec<String>>| {
            // If there are too many to be tracked, keeping the old list would leave every later update unverified.
            now.map(opened_names).or_else(|| before.filter(|_| !too_many).cloned())
        };
        let nothing_read = Loaded::default();
        let Loaded { worlds, too_many_worlds, datapacks, too_many_datapacks } = loaded.unwrap_or(&nothing_read);
        let worlds = next_names(worlds.as_ref(), *too_many_worlds, self.worlds.as_ref());
        let datapacks = next_names(datapacks.as_ref(), *too_many_datapacks, self.datapacks.as_ref());
        if let Some(enabled) = enabled_plugins(report) {
            return Self { enabled, unread: Vec::new(), worlds, datapacks };
        }
        let is_new = |name: &&str| !before.is_some_and(|before| has_plugin(before, name));
        let new = runs.into_iter().flat_map(plugin_names).filter(is_new).map(str::to_owned);
        let mut unread: Vec<String> = self.unread.iter().cloned().chain(new).collect();
        unread.sort();
        unread.dedup();
        Self { enabled: self.enabled.clone(), unread, worlds, datapacks }
    }

    /// The earlier state of a plugin, where `before` is the stable set.
    pub(crate) fn earlier_state(&self, name: &str, before: Option<&FileSet>) -> EarlierState {
        let is_in = |list: &[String]| list.iter().any(|listed| listed == name);
        if !before.is_some_and(|before| has_plugin(before, name)) {
            EarlierState::New
        } else if is_in(&self.enabled) {
            EarlierState::Enabled
        } else if self.enabled.is_empty() || is_in(&self.unread) {
            EarlierState::Unread
        } else {
            EarlierState::Failed
        }
    }

    /// Unmanaged JARs that were enabled, still exist and are not enabled now. A removed JAR does not count.
    pub(crate) fn failed_unmanaged<'a>(&'a self, report: &'a AgentReport, files: &FileSet) -> Vec<&'a str> {
        let Server::Up { plugins: Some(plugins), .. } = &report.server else { return Vec::new() };
        let is_managed = |name: &str| plugin_names(files).any(|managed| is_same_plugin(managed, name));
        let is_present = |name: &str| {
            let mut jars = report.unmanaged_jars.iter().filter_map(|jar| jar.name.as_deref());
            jars.any(|jar| is_same_plugin(jar, name))
        };
        let unmanaged = self.enabled.iter().map(String::as_str).filter(|name| !is_managed(name));
        unmanaged
            .filter(|name| match plugins.iter().find(|(plugin, _)| is_same_plugin(plugin, name)) {
                Some((_, plugin)) => !plugin.enabled,
                // A JAR that could not be loaded is missing in the server's list.
                None => is_present(name),
            })
            .collect()
    }
}

fn opened_names(at_start: &BTreeMap<String, AtStart>) -> Vec<String> {
    at_start.iter().filter(|(_, at)| **at == AtStart::Opened).map(|(name, _)| name.clone()).collect()
}

/// The enabled plugins of a report, sorted. `None` if it lists no plugins.
fn enabled_plugins(report: Option<&AgentReport>) -> Option<Vec<String>> {
    match &report?.server {
        Server::Up { plugins: Some(plugins), .. } => {
            Some(plugins.iter().filter(|(_, plugin)| plugin.enabled).map(|(name, _)| name.clone()).collect())
        }
        Server::Up { .. } | Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => None,
    }
}

/// The number of enabled plugins in a report.
pub(crate) fn count_enabled(report: Option<&AgentReport>) -> usize {
    enabled_plugins(report).map_or(0, |enabled| enabled.len())
}

pub(crate) fn plugin_names(files: &FileSet) -> impl Iterator<Item = &str> {
    files.plugins.iter().filter_map(|file| file.plugin.as_deref())
}

fn has_plugin(files: &FileSet, name: &str) -> bool {
    plugin_names(files).any(|plugin| plugin == name)
}

/// The baseline before any revision is stable.
pub(crate) static EMPTY_BASELINE: Baseline =
    Baseline { enabled: Vec::new(), unread: Vec::new(), worlds: None, datapacks: None };
