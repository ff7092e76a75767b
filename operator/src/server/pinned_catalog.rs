//! Edge (reads). Selects the catalog from which a pass plans, and its instant. Once players have been warned of an update, the catalog of
//! that update is pinned. A newer release must not cause another announcement or a cancellation. Changes by users count at once.
//!
//! The inputs of the solve are pinned, not the goal. All other inputs are evaluated again in each pass, so user changes need no list of
//! exceptions here.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use resolver::catalog::Catalog;
use resolver::lock::{Lock, LockedPlugin};
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, Goal, Observation, PodUid, RecordedFacts, Revision};
use scheduler::rollout::{Step, has_goal_begun};

use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use super::records::LockRecord;
use crate::caches::Key;
use crate::catalog::Snapshot;
use crate::context::Context;

/// An update for which players or the cluster wait, with the catalog from which it was planned.
#[derive(Clone)]
pub(crate) struct PinnedCatalog {
    goal: Revision,
    record: Arc<LockRecord>,
    snapshot: Arc<Snapshot>,
    /// The instant of the plan, so that a delay or soak time that ends during a countdown does not change it.
    at: Timestamp,
}

impl PinnedCatalog {
    /// Whether a package of the lock has been delisted since it was planned. Such a package must not be rolled out.
    fn is_taken_back(&self, newest: &Snapshot) -> bool {
        let lock = &self.record.lock;
        !missing(lock, &newest.catalog).is_subset(&missing(lock, &self.snapshot.catalog))
    }
}

/// The inputs from which a pass plans.
pub(super) struct PinnedInputs {
    /// The catalog. `None` if no catalog has been read yet.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// The instant for the age of a release and for the soak time on another server.
    pub(super) at: Timestamp,
    /// The instant for everything else.
    pub(super) now: Timestamp,
    /// The goal for which an older catalog is pinned.
    promised: Option<Revision>,
}

/// The decision of a pass about the pinned catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PinDecision {
    /// No catalog is pinned.
    Absent,
    /// The goal is awaited from now on, or it turns out to be awaited.
    Made,
    /// The goal is still awaited.
    Stands,
    /// Another goal is planned by now, or the same one for another reason.
    Broken,
}

impl PinnedInputs {
    /// Takes the newest catalog, or the pinned one of an update that is awaited.
    pub(super) fn take(ctx: &Context, server: &CheckedServer, seen: &Observed, now: Timestamp) -> Self {
        let newest = ctx.catalog.newest();
        if let Some(newest) = &newest {
            ctx.metrics.catalog_read_at.set(newest.read_at.as_second());
        }
        let key = key_of(server);
        let template = seen.shape.map(|set| set.template);
        let pod = seen.pod_uid().zip(seen.pod_revision);
        let known = ctx.memory.promises.get(&key);
        let standing = known.filter(|promise| is_awaited(promise.goal, &seen.facts, template, pod, now));
        let from = Self::of(standing, newest, now);
        if from.promised.is_none() {
            // This also frees the memory of a whole catalog.
            ctx.memory.promises.remove(&key);
        }
        from
    }

    /// The newest catalog, at the current time.
    pub(super) fn of_now(newest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        Self { snapshot: newest, at: now, now, promised: None }
    }

    fn of(standing: Option<PinnedCatalog>, newest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        let counts = |promise: &PinnedCatalog| newest.as_deref().is_none_or(|newest| !promise.is_taken_back(newest));
        let Some(PinnedCatalog { goal, record: _, snapshot, at }) = standing.filter(counts) else {
            return Self::of_now(newest, now);
        };
        // A catalog with equal content is replaced by the newest one, which the solver shares among all servers.
        let same = newest.filter(|newest| newest.content == snapshot.content);
        Self { snapshot: Some(same.unwrap_or(snapshot)), at, now, promised: Some(goal) }
    }

    /// The catalog, if one has been read.
    pub(super) fn catalog(&self) -> Option<&Catalog> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.catalog)
    }

    /// Pins the catalog of the plan once its goal is awaited. Returns `false` if the plan was made from a catalog that was pinned for
    /// another goal. It is then planned again from the newest one: a changed goal uses the newest releases.
    pub(super) fn keep(&self, ctx: &Context, server: &CheckedServer, plan: &Plan, step: Step) -> bool {
        let asks_for_another = plan.consent.applies_another.is_some();
        let fate = self.fate(&plan.goal, &plan.seen, plan.gate, step, asks_for_another);
        match (fate, &self.snapshot) {
            (PinDecision::Broken, _) => {
                ctx.memory.promises.remove(&key_of(server));
            }
            (PinDecision::Made, Some(snapshot)) => {
                let (record, snapshot) = (plan.record.clone(), snapshot.clone());
                let promise = PinnedCatalog { goal: plan.goal.revision, record, snapshot, at: self.at };
                ctx.memory.promises.put(key_of(server), promise);
            }
            (PinDecision::Made, None) | (PinDecision::Absent | PinDecision::Stands, _) => {}
        }
        fate != PinDecision::Broken
    }

    /// Decides about the pinned catalog. While a user requests another set by its digest, which may be the newest one, nothing is pinned.
    /// Otherwise pinning and releasing could alternate, and the server would be requeued for ever.
    fn fate(&self, goal: &Goal, seen: &Observation, gate: Gate, step: Step, asks_for_another: bool) -> PinDecision {
        let pod = seen.pod.map(|pod| (pod.uid, pod.revision));
        let template = seen.set.map(|set| set.template);
        // An announcement in an earlier opening than this one does not count. An apply-now request, for example, is about the newest
        // releases.
        let goes_on = has_goal_begun(goal, seen, gate)
            && is_awaited(goal.revision, &seen.facts, template, pod, self.now)
            && !asks_for_another;
        match self.promised {
            Some(promised) if goes_on && promised == goal.revision => PinDecision::Stands,
            Some(_) => PinDecision::Broken,
            None if goes_on || begins(goal.revision, step) && !asks_for_another => PinDecision::Made,
            None => PinDecision::Absent,
        }
    }
}

fn key_of(server: &CheckedServer) -> Key {
    (server.namespace.clone(), server.name.clone())
}

/// Whether the goal is awaited: by recently warned players on this pod, or by the cluster, in which its template is written. The wait ends
/// once a pod of the goal exists. Its result no longer depends on the plan, and a newer release may be the roll-forward from it.
fn is_awaited(
    goal: Revision,
    facts: &RecordedFacts,
    template: Option<Revision>,
    pod: Option<(PodUid, Revision)>,
    now: Timestamp,
) -> bool {
    let (Some(settled), Some((pod, runs))) = (facts.settled, pod) else { return false };
    let counts = |act: Disruption| matches!(act, Disruption::Update { goal: of, window_opened_at: _ } if of == goal);
    let is_told = facts.announced.is_some_and(|told| told.pod == pod && counts(told.act) && !told.is_long_ago(now));
    let is_ahead = settled.revision != goal && runs != goal && !facts.failed.contains(&goal);
    is_ahead && (is_told || template == Some(goal))
}

/// Whether the goal is awaited from this step on.
fn begins(goal: Revision, step: Step) -> bool {
    let tells = matches!(
        step,
        Step::Announce { act: Disruption::Update { goal: of, window_opened_at: _ }, .. } if of == goal
    );
    tells || matches!(step, Step::WriteTemplate { revision, .. } if revision == goal)
}

/// The packages of a lock that are known to be unpublished. Pages that could not be read tell nothing.
fn missing<'l>(lock: &'l Lock, catalog: &Catalog) -> BTreeSet<&'l str> {
    let versions = catalog.versions(lock.software);
    let has_build = versions
        .iter()
        .filter(|version| version.minecraft == lock.minecraft)
        .any(|version| version.builds.iter().any(|build| build.number == lock.build));
    // A version whose builds could not be read has an empty list of builds.
    let is_read = versions.iter().any(|version| version.minecraft == lock.minecraft && !version.builds.is_empty());
    let server = (is_read && !has_build).then_some(lock.paper.hash.as_str());
    let is_missing = |plugin: &&LockedPlugin| {
        let project = catalog.project(&plugin.key);
        project.is_some_and(|project| !project.releases.iter().any(|release| release.id == plugin.release_id))
    };
    let plugins = lock.plugins.iter().filter(is_missing);
    server.into_iter().chain(plugins.map(|plugin| plugin.release_id.as_str())).collect()
}

#[cfg(test)]
mod tests;
