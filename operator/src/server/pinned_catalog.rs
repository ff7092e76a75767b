//! Edge (reads). What a pass plans from: what upstreams have published, and as of when. Once players were told of an update, that is what it was
//! planned from: a release of the last minutes is no reason to tell them of another stop, or of none. What people change counts at once.
//!
//! Not the goal is kept but what it was solved from: all else that makes a goal is asked anew in each pass, so nothing that a person says has to be
//! listed here for it to count.

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

/// An update that players or the cluster wait for, and what it was planned from.
#[derive(Clone)]
pub(crate) struct PinnedCatalog {
    goal: Revision,
    record: Arc<LockRecord>,
    snapshot: Arc<Snapshot>,
    /// As of when: delays and soaks that end in a countdown bring nothing into it either.
    at: Timestamp,
}

impl PinnedCatalog {
    /// Whether something of its set was published when it was planned, and is not any more: what its makers took back is not brought in.
    fn is_taken_back(&self, newest: &Snapshot) -> bool {
        let lock = &self.record.lock;
        !missing(lock, &newest.catalog).is_subset(&missing(lock, &self.snapshot.catalog))
    }
}

/// What a pass plans from.
pub(super) struct PinnedInputs {
    /// What upstreams have published; None: nothing has been read yet.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// As of when it counts how old a release is, and for how long another server has run it.
    pub(super) at: Timestamp,
    /// As of when everything else counts.
    pub(super) now: Timestamp,
    /// The goal for whose sake it is not what is newest.
    promised: Option<Revision>,
}

/// What becomes of a promise in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PinDecision {
    /// There is none.
    Absent,
    /// From now on somebody waits for the goal, or it is found that somebody does.
    Made,
    /// The goal is still what is waited for.
    Stands,
    /// Something else is planned by now, or for another reason.
    Broken,
}

impl PinnedInputs {
    /// What is newest; or what an update was planned from that is waited for.
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
            // Also because it holds a whole catalog.
            ctx.memory.promises.remove(&key);
        }
        from
    }

    /// What is newest, as of now.
    pub(super) fn of_now(newest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        Self { snapshot: newest, at: now, now, promised: None }
    }

    fn of(standing: Option<PinnedCatalog>, newest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        let counts = |promise: &PinnedCatalog| newest.as_deref().is_none_or(|newest| !promise.is_taken_back(newest));
        let Some(PinnedCatalog { goal, record: _, snapshot, at }) = standing.filter(counts) else {
            return Self::of_now(newest, now);
        };
        // Read again and found to be the same, it is the same to the solver, and shared with all servers.
        let same = newest.filter(|newest| newest.content == snapshot.content);
        Self { snapshot: Some(same.unwrap_or(snapshot)), at, now, promised: Some(goal) }
    }

    /// What upstreams have published.
    pub(super) fn catalog(&self) -> Option<&Catalog> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.catalog)
    }

    /// Keeps what the plan was made from, once somebody waits for what is planned. False: it was made from what is kept for another one, and is
    /// to be made again from what is newest: whoever changes a goal gets what there is now.
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

    /// A set that a person asks for by its name may be the newest one. Then nothing is promised in either way: a promise that is broken and made
    /// again in turns would be looked at for ever.
    fn fate(&self, goal: &Goal, seen: &Observation, gate: Gate, step: Step, asks_for_another: bool) -> PinDecision {
        let pod = seen.pod.map(|pod| (pod.uid, pod.revision));
        let template = seen.set.map(|set| set.template);
        // Told in another opening than this one, as before a request to apply now: that is about what is newest.
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

/// Whether players on this pod, who were told lately, wait for this goal, or the cluster does, in which its template is written. Until a pod of it
/// is there: what becomes of that one is not a matter of the goal, and a release of then may be the way forward from it.
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

/// Whether this step is the one from which on somebody waits for the goal.
fn begins(goal: Revision, step: Step) -> bool {
    let tells = matches!(
        step,
        Step::Announce { act: Disruption::Update { goal: of, window_opened_at: _ }, .. } if of == goal
    );
    tells || matches!(step, Step::WriteTemplate { revision, .. } if revision == goal)
}

/// What of a set is known not to be published: of what could not be read nothing is known.
fn missing<'l>(lock: &'l Lock, catalog: &Catalog) -> BTreeSet<&'l str> {
    let versions = catalog.versions(lock.software);
    let has_build = versions
        .iter()
        .filter(|version| version.minecraft == lock.minecraft)
        .any(|version| version.builds.iter().any(|build| build.number == lock.build));
    // A version whose builds could not be read has none.
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
