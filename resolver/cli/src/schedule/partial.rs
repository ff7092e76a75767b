//! Pure. Computes partial updates that need no window of the server: urgent Plugins (`spec.urgent`), and Plugins with
//! their own windows (`spec.windows`).
//!
//! The rule is the operator's. The running versions come from the server's status or a lock.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::when::RestartTime;
use super::written::WrittenWindow;
use crate::input::from_status::Schedule;
use crate::input::running::RunningSet;
use crate::output::changes;
use crate::output::changes::{RenderedChange, changes};
use crate::output::hotfix_note::HotfixListing;
use resolver::explanation::{Explanation, SolvedExplanation};
use resolver::model::catalog::{Catalog, ProjectKey};
use resolver::model::lock::{Lock, LockReason};
use resolver::model::request::{Request, Running};
use resolver::partial::{Delays, Present, PresentPlugin, Scope, restrict};
use resolver::{Resolution, groups, resolve};

/// A partial update.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialUpdate {
    /// When it is applied.
    when: RestartTime,
    /// Its changes.
    changes: Vec<RenderedChange>,
    /// Plugins of it that run because their list contains the hotfix sibling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) counts_as_listed: Vec<HotfixListing>,
}

impl PartialUpdate {
    /// A table row: the changes, and when they are applied.
    pub(crate) fn row(&self) -> Vec<String> {
        let Self { when, changes, counts_as_listed: _ } = self;
        let phrases = changes.iter().map(|change| format!("{} {}", change.name, changes::phrase(change)));
        vec![phrases.collect::<Vec<_>>().join(", "), when.phrase()]
    }
}

/// A server with its chosen version set.
pub(crate) struct FullSelection<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) requests: &'a [Request],
    pub(crate) server: &'a str,
    /// `None`: no version set meets all requirements.
    pub(crate) chosen: Option<ChosenSet<'a>>,
    pub(crate) runs: &'a RunningSet,
    /// The lock of the running version set, if it is known file by file.
    pub(crate) lock: Option<&'a Lock>,
}

/// The version set that meets all requirements.
#[derive(Clone, Copy)]
pub(crate) struct ChosenSet<'a> {
    pub(crate) resolution: &'a Resolution,
    pub(crate) solved: &'a SolvedExplanation,
    /// All its changes.
    pub(crate) changes: &'a [RenderedChange],
}

/// Returns when the full update is applied, and its partial updates. `when` applies to changes that are in no
/// partial update.
pub(crate) fn split_partial(
    full: &FullSelection<'_>,
    schedule: Option<&Schedule>,
    when: RestartTime,
    now: Timestamp,
    at: Timestamp,
) -> (RestartTime, Vec<PartialUpdate>) {
    let mut all = partial_updates(full, schedule, &when, now, at);
    // If there are no other changes, the partial update is the full update.
    let is_all = |partial: &PartialUpdate| {
        let changes = full.chosen.map(|chosen| chosen.changes);
        changes == Some(partial.changes.as_slice()) && partial.when.is_definite()
    };
    match all.iter().position(is_all) {
        Some(index) => (all.remove(index).when, all),
        None => (when, all),
    }
}

/// Partial updates where no full update is applied: no version set meets all requirements, or the chosen one
/// cannot be applied.
pub(crate) fn partial_only(
    full: &FullSelection<'_>,
    schedule: Option<&Schedule>,
    now: Timestamp,
    at: Timestamp,
) -> Vec<PartialUpdate> {
    partial_updates(full, schedule, &RestartTime::full_update((false, false), schedule, now, at), now, at)
}

/// Partial updates, given that the full update is applied at `when`.
fn partial_updates(
    full: &FullSelection<'_>,
    schedule: Option<&Schedule>,
    when: &RestartTime,
    now: Timestamp,
    at: Timestamp,
) -> Vec<PartialUpdate> {
    let Some((schedule, query)) = schedule.filter(|_| when.is_deferred()).zip(PartialQuery::new(full, at)) else {
        return Vec::new();
    };
    let partial_update = |windows: Option<&[WrittenWindow]>,
                          PartialOutcome { changes, counts_as_listed }: PartialOutcome| {
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let when = RestartTime::partial_update(windows, &schedule.for_partial_update(&names), now, at);
        PartialUpdate { when, changes, counts_as_listed }
    };
    let urgent = Scope::from_plugins(query.changed_objects(&schedule.urgent));
    let urgent = urgent
        .and_then(|scope| query.partial_outcome(&scope, Delays::Skipped))
        .map(|outcome| partial_update(None, outcome));
    let mut by_windows: BTreeMap<&[WrittenWindow], BTreeSet<String>> = BTreeMap::new();
    for object in query.changed_objects(schedule.own_windows.keys()) {
        by_windows.entry(schedule.own_windows[&object].as_slice()).or_default().insert(object);
    }
    let in_own_windows = by_windows.into_iter().filter_map(|(windows, plugins)| {
        let outcome = query.partial_outcome(&Scope::from_plugins(plugins)?, Delays::AsWritten)?;
        Some(partial_update(Some(windows), outcome))
    });
    urgent.into_iter().chain(in_own_windows).collect()
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
    full: &'a FullSelection<'a>,
    request: &'a Request,
    present: Present,
    at: Timestamp,
}

impl<'a> PartialQuery<'a> {
    /// `None`: there are no changes, or the running version set is unknown.
    fn new(full: &'a FullSelection<'a>, at: Timestamp) -> Option<Self> {
        let request = full.requests.iter().find(|request| request.server == full.server)?;
        let has_changes = full.chosen.is_none_or(|chosen| !chosen.changes.is_empty());
        let running = request.running.as_ref().filter(|_| has_changes)?;
        let present = match full.lock {
            Some(lock) => Present::from_lock(lock),
            None => Present {
                minecraft: running.minecraft.clone(),
                build: running.build,
                plugins: present_plugins(full, request, running),
            },
        };
        Some(Self { full, request, present, at })
    }

    /// The given Plugins that would get another release. Without a full version set, each of them may.
    fn changed_objects<'o>(&self, objects: impl IntoIterator<Item = &'o String>) -> BTreeSet<String> {
        let is_due = |object: &&String| {
            self.full.chosen.is_none_or(|ChosenSet { solved, changes, .. }| {
                let is_changed = |name: &String| changes.iter().any(|change| change.name == *name);
                solved.plugins.iter().any(|plugin| plugin.objects.contains(object) && is_changed(&plugin.name))
            })
        };
        objects.into_iter().filter(is_due).cloned().collect()
    }

    /// The changes if only `scope` may change. `None` if there are none, no such version set exists, or it cannot be applied.
    fn partial_outcome(&self, scope: &Scope, delays: Delays) -> Option<PartialOutcome> {
        let FullSelection { catalog, requests, chosen, runs, lock, .. } = *self.full;
        let contains_server =
            |group: &Vec<usize>| group.iter().any(|&index| requests[index].server == self.request.server);
        let has_peers =
            groups(requests).iter().find(|group| contains_server(group)).is_some_and(|group| group.len() > 1);
        let group_lock = chosen.filter(|_| has_peers).map(|chosen| &chosen.resolution.lock);
        let narrowed = restrict(self.request, &self.present, scope, group_lock, delays);
        let resolution = resolve(catalog, &narrowed.request, self.at).ok()?;
        let Explanation::Solved(solved) = &resolution.explanation else { return None };
        if solved.deploy_blocker().is_some() {
            return None;
        }
        let mut changes = changes(solved, &resolution, runs, lock);
        // Plugins that are no longer requested are not part of a partial query, and stay.
        changes.retain(|change| change.to.is_some() || narrowed.can_change(&self.present, &change.name));
        let mut counts_as_listed = HotfixListing::from_solved(solved);
        counts_as_listed.retain(|listing| changes.iter().any(|change| change.name == listing.name));
        (!changes.is_empty()).then_some(PartialOutcome { changes, counts_as_listed })
    }
}

/// The running plugins according to the status. A plugin whose Plugin object was deleted is not part of a query about
/// others.
fn present_plugins(full: &FullSelection<'_>, request: &Request, running: &Running) -> Vec<PresentPlugin> {
    let key_of = |name: &str, reason: &LockReason| -> Option<ProjectKey> {
        match reason {
            LockReason::RequestedBy(objects) => {
                let plugin_request =
                    request.plugins.iter().find(|plugin_request| objects.contains(&plugin_request.object))?;
                Some(plugin_request.key.clone())
            }
            LockReason::NeededBy(_) => {
                let has_name =
                    |key: &&ProjectKey| full.catalog.project(key).is_some_and(|project| project.name == name);
                running.unrequested.iter().find(has_name).cloned()
            }
        }
    };
    let plugins = full.runs.plugins.iter().filter_map(|(name, version)| {
        let reason = full.runs.reasons.get(name)?.clone();
        Some(PresentPlugin { name: name.clone(), key: key_of(name, &reason)?, version: version.clone(), reason })
    });
    plugins.collect()
}
