//! Pure. Computes partial updates that need no window of the server: urgent Plugins (`spec.urgent`), and Plugins with
//! their own windows (`spec.windows`).
//!
//! The rule is the operator's. The running versions come from the server's status or a lock.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::changes::{self, RenderedChange, changes};
use super::from_status::Schedule;
use super::hotfix_note::HotfixListing;
use super::running::RunningSet;
use super::when::When;
use crate::catalog::{Catalog, ProjectKey};
use crate::explain::{Explanation, SolvedExplanation};
use crate::lock::{Lock, LockReason};
use crate::partial::{Delays, Present, PresentPlugin, Scope, narrow};
use crate::request::{Request, Running};
use crate::{Resolution, groups, resolve};

/// A partial update.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Alone {
    /// When it is applied.
    when: When,
    /// Its changes.
    changes: Vec<RenderedChange>,
    /// Plugins of it that run because their list contains the hotfix sibling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) counts_as_listed: Vec<HotfixListing>,
}

impl Alone {
    /// A table row: the changes, and when they are applied.
    pub(super) fn row(&self) -> Vec<String> {
        let Self { when, changes, counts_as_listed: _ } = self;
        let what = changes.iter().map(|change| format!("{} {}", change.name, changes::in_words(change)));
        vec![what.collect::<Vec<_>>().join(", "), when.in_words()]
    }
}

/// A server with its chosen version set.
pub(super) struct FullSelection<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) requests: &'a [Request],
    pub(super) server: &'a str,
    /// `None`: no version set meets all requirements.
    pub(super) chosen: Option<PartialChoice<'a>>,
    pub(super) runs: &'a RunningSet,
    /// The lock of the running version set, if it is known file by file.
    pub(super) lock: Option<&'a Lock>,
}

/// The version set that meets all requirements.
#[derive(Clone, Copy)]
pub(super) struct PartialChoice<'a> {
    pub(super) resolution: &'a Resolution,
    pub(super) solved: &'a SolvedExplanation,
    /// All its changes.
    pub(super) changes: &'a [RenderedChange],
}

/// Returns when the full update is applied, and its partial updates. `when` applies to changes without a way of their
/// own.
pub(super) fn alone(
    whole: &FullSelection<'_>,
    schedule: Option<&Schedule>,
    when: When,
    now: Timestamp,
    at: Timestamp,
) -> (When, Vec<Alone>) {
    let mut all = parts(whole, schedule, &when, now, at);
    // If there are no other changes, the partial update is the full update.
    let is_all = |it: &Alone| {
        let changes = whole.chosen.map(|chosen| chosen.changes);
        changes == Some(it.changes.as_slice()) && it.when.is_known()
    };
    match all.iter().position(is_all) {
        Some(place) => (all.remove(place).when, all),
        None => (when, all),
    }
}

/// Partial updates where no full update is applied: no version set meets all requirements, or the chosen one is
/// stopped.
pub(super) fn alone_only(
    whole: &FullSelection<'_>,
    schedule: Option<&Schedule>,
    now: Timestamp,
    at: Timestamp,
) -> Vec<Alone> {
    parts(whole, schedule, &When::of((false, false), schedule, now, at), now, at)
}

/// Partial updates, given that the full update is applied at `when`.
fn parts(
    whole: &FullSelection<'_>,
    schedule: Option<&Schedule>,
    when: &When,
    now: Timestamp,
    at: Timestamp,
) -> Vec<Alone> {
    let Some((schedule, question)) = schedule.filter(|_| when.is_by_itself_later()).zip(PartialQuery::of(whole, at))
    else {
        return Vec::new();
    };
    let tell = |own: Option<&[String]>, PartialOutcome { changes, counts_as_listed }: PartialOutcome| {
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let when = When::of_what_comes_alone(own, &schedule.about(&names), now, at);
        Alone { when, changes, counts_as_listed }
    };
    let urgent = Scope::of_plugins(question.due(&schedule.urgent));
    let urgent = urgent.and_then(|scope| question.newer(&scope, Delays::Skipped)).map(|newer| tell(None, newer));
    let mut by_windows: BTreeMap<&[String], BTreeSet<String>> = BTreeMap::new();
    for object in question.due(schedule.own_windows.keys()) {
        by_windows.entry(schedule.own_windows[&object].as_slice()).or_default().insert(object);
    }
    let own = by_windows.into_iter().filter_map(|(windows, plugins)| {
        let newer = question.newer(&Scope::of_plugins(plugins)?, Delays::AsWritten)?;
        Some(tell(Some(windows), newer))
    });
    urgent.into_iter().chain(own).collect()
}

/// Result of a partial update.
struct PartialOutcome {
    /// Its changes.
    changes: Vec<RenderedChange>,
    /// Plugins of it that run because their list contains the hotfix sibling.
    counts_as_listed: Vec<HotfixListing>,
}

/// A query about partial updates of one server.
struct PartialQuery<'a> {
    whole: &'a FullSelection<'a>,
    request: &'a Request,
    present: Present,
    at: Timestamp,
}

impl<'a> PartialQuery<'a> {
    /// `None`: there are no changes, or the running version set is unknown.
    fn of(whole: &'a FullSelection<'a>, at: Timestamp) -> Option<Self> {
        let request = whole.requests.iter().find(|request| request.server == whole.server)?;
        let is_news = whole.chosen.is_none_or(|chosen| !chosen.changes.is_empty());
        let running = request.running.as_ref().filter(|_| is_news)?;
        let present = match whole.lock {
            Some(lock) => Present::of(lock),
            None => Present {
                minecraft: running.minecraft.clone(),
                build: running.build,
                plugins: present(whole, request, running),
            },
        };
        Some(Self { whole, request, present, at })
    }

    /// The given Plugins that would get another release. Without a full version set, each of them may.
    fn due<'o>(&self, objects: impl IntoIterator<Item = &'o String>) -> BTreeSet<String> {
        let is_due = |object: &&String| {
            self.whole.chosen.is_none_or(|PartialChoice { solved, changes, .. }| {
                let is_changed = |name: &String| changes.iter().any(|change| change.name == *name);
                solved.plugins.iter().any(|plugin| plugin.objects.contains(object) && is_changed(&plugin.name))
            })
        };
        objects.into_iter().filter(is_due).cloned().collect()
    }

    /// The changes if only `scope` may change. `None` if there are none, no such version set exists, or it is stopped.
    fn newer(&self, scope: &Scope, delays: Delays) -> Option<PartialOutcome> {
        let FullSelection { catalog, requests, chosen, runs, lock, .. } = *self.whole;
        let together = |group: &Vec<usize>| group.iter().any(|&place| requests[place].server == self.request.server);
        let is_shared = groups(requests).iter().find(|group| together(group)).is_some_and(|group| group.len() > 1);
        let shared = chosen.filter(|_| is_shared).map(|chosen| &chosen.resolution.lock);
        let narrowed = narrow(self.request, &self.present, scope, shared, delays);
        let resolution = resolve(catalog, &narrowed.request, self.at).ok()?;
        let Explanation::Solved(solved) = &resolution.explanation else { return None };
        if solved.stopped_by().is_some() {
            return None;
        }
        let mut changes = changes(solved, &resolution, runs, lock);
        // Plugins that are no longer requested are not part of a partial query, and stay.
        changes.retain(|change| change.to.is_some() || narrowed.may_change(&self.present, &change.name));
        let mut counts_as_listed = HotfixListing::of(solved);
        counts_as_listed.retain(|counted| changes.iter().any(|change| change.name == counted.name));
        (!changes.is_empty()).then_some(PartialOutcome { changes, counts_as_listed })
    }
}

/// The running plugins according to the status. A plugin whose Plugin object was deleted is not part of a query about
/// others.
fn present(whole: &FullSelection<'_>, request: &Request, running: &Running) -> Vec<PresentPlugin> {
    let key_of = |name: &str, reason: &LockReason| -> Option<ProjectKey> {
        match reason {
            LockReason::RequestedBy(objects) => {
                let wish = request.plugins.iter().find(|wish| objects.contains(&wish.object))?;
                Some(wish.key.clone())
            }
            LockReason::NeededBy(_) => {
                let is_it = |key: &&ProjectKey| whole.catalog.project(key).is_some_and(|project| project.name == name);
                running.unasked.iter().find(is_it).cloned()
            }
        }
    };
    let plugins = whole.runs.plugins.iter().filter_map(|(name, version)| {
        let reason = whole.runs.reasons.get(name)?.clone();
        Some(PresentPlugin { name: name.clone(), key: key_of(name, &reason)?, version: version.clone(), reason })
    });
    plugins.collect()
}
