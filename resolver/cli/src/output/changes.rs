//! Pure. Lists the differences between the running version set and the chosen one, as lines of a plan.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::diff;
use crate::input::running::RunningSet;
use resolver::Resolution;
use resolver::explanation::SolvedExplanation;
use resolver::model::lock::Lock;

/// Name of a change of the server's image.
const IMAGE: &str = "image";

/// One change.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RenderedChange {
    /// `Paper`, `Java`, `image`, or the display name of a plugin.
    pub(crate) name: String,
    /// The running version. Absent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The chosen version. Absent when it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The world cannot be opened by the old version afterwards.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) one_way: bool,
    /// No backup of the worlds is taken before it: `spec.backup` disables it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_backup: bool,
}

/// All changes, Paper first. `lock` is the lock of the running version set, if it is known file by file.
pub(crate) fn changes(
    solved: &SolvedExplanation,
    resolution: &Resolution,
    runs: &RunningSet,
    lock: Option<&Lock>,
) -> Vec<RenderedChange> {
    let paper = &solved.paper;
    let mut changes = Vec::new();
    let to = format!("{}-{}", paper.minecraft, paper.build);
    // The status of an older operator names the running version, but the explanation does not contain it.
    let from = match &paper.instead_of {
        Some(before) if before.software != solved.software => {
            Some(format!("{} {}-{}", before.software, before.minecraft, before.build))
        }
        Some(before) => Some(format!("{}-{}", before.minecraft, before.build)),
        None => runs.paper.clone().filter(|_| !paper.runs_now),
    };
    if !paper.runs_now && from.as_ref() != Some(&to) {
        let minecraft = |text: &String| text.split('-').next().and_then(|text| text.parse().ok());
        let before = paper.instead_of.as_ref().map(|before| before.minecraft.clone());
        let before = before.or_else(|| from.as_ref().and_then(minecraft));
        let newer = solved.software.is_minecraft() && before.is_some_and(|before| before < paper.minecraft);
        let moves = paper.instead_of.as_ref().is_some_and(|before| before.software != solved.software);
        let name = solved.software.to_string();
        changes.push(RenderedChange { name, from, to: Some(to), one_way: newer || moves, no_backup: false });
    }
    let change = |name: &str, from: Option<&str>, to: Option<&str>| RenderedChange {
        name: name.to_owned(),
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
        one_way: false,
        no_backup: false,
    };
    if let Some(difference) = lock.map(|lock| lock.difference(&resolution.lock)) {
        let java = difference.java.map(|java| (java.from.to_string(), java.to.to_string()));
        changes.extend(java.map(|(from, to)| change("Java", Some(&from), Some(&to))));
        changes.extend(difference.image.map(|image| change(IMAGE, image.from.as_deref(), image.to.as_deref())));
    }
    for plugin in &solved.plugins {
        let before = match &plugin.instead_of {
            Some(before) => Some(before),
            None if plugin.runs_now => Some(&plugin.version),
            None => runs.plugins.get(&plugin.name),
        };
        if plugin.instead_of.is_some() || before != Some(&plugin.version) {
            changes.push(change(&plugin.name, before.map(String::as_str), Some(&plugin.version)));
        }
    }
    let mut removed: BTreeMap<&str, &str> =
        solved.removed.iter().map(|(name, version)| (name.as_str(), version.as_str())).collect();
    // The project of a plugin that is no longer requested may not be in the catalog.
    match lock {
        Some(lock) => removed.extend(lock.plugins.iter().map(|plugin| (plugin.name.as_str(), plugin.version.as_str()))),
        None => removed.extend(runs.plugins.iter().map(|(name, version)| (name.as_str(), version.as_str()))),
    }
    removed.retain(|name, _| !solved.plugins.iter().any(|plugin| plugin.name == *name));
    changes.extend(removed.into_iter().map(|(name, version)| change(name, Some(version), None)));
    changes
}

/// `5.7.0 -> 5.7.1`
pub(crate) fn phrase(change: &RenderedChange) -> String {
    let RenderedChange { name, from, to, one_way, no_backup } = change;
    match (from, to) {
        _ if name == IMAGE => diff::image_phrase(from.as_deref(), to.as_deref()),
        (Some(from), Some(to)) => {
            let one_way = match (one_way, no_backup) {
                (false, _) => "",
                (true, false) => ". One-way: the world cannot be downgraded",
                (true, true) => {
                    ". One-way: the world cannot be downgraded, and no backup of it is taken before (`spec.backup`)"
                }
            };
            format!("{from} -> {to}{one_way}")
        }
        (None, Some(to)) => format!("new: {to}"),
        (Some(from), None) => format!("removed: was {from}"),
        (None, None) => String::new(),
    }
}
