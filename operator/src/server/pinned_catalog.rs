//! Pure. Selects the catalog from which a pass plans, and its instant. Once players have been warned of an update, the catalog of
//! that update is pinned. A newer release must not cause another announcement or a cancellation. Changes by users count at once.
//!
//! The inputs of the solve are pinned, not the goal. All other inputs are evaluated again in each pass, so user changes need no list of
//! exceptions here.

use std::sync::Arc;

use jiff::Timestamp;
use resolver::model::catalog::Catalog;
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, Goal, Observation, PodUid, RecordedFacts, Revision};
use scheduler::rollout::{Step, has_goal_begun};

use super::model::pinned_catalog::PinnedCatalog;
use super::observe::Observed;
use super::plan::Plan;
use crate::caches::Key;
use crate::catalog::Snapshot;
use crate::context::Context;
use validate::CheckedServer;

/// The inputs from which a pass plans.
pub(super) struct PinnedInputs {
    /// The catalog. `None` if no catalog has been read yet.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// The instant for the age of a release and for the soak time on another server.
    pub(super) at: Timestamp,
    /// The instant for everything else.
    pub(super) now: Timestamp,
    /// The goal for which an older catalog is pinned.
    pinned_goal: Option<Revision>,
}

/// The decision of a pass about the pinned catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PinDecision {
    /// No catalog is pinned.
    Absent,
    /// The goal is awaited from now on, or it turns out to be awaited.
    Pin,
    /// The goal is still awaited.
    Keep,
    /// Another goal is planned by now, or the same one for another reason.
    Release,
}

impl PinnedInputs {
    /// Takes the newest catalog, or the pinned one of an update that is awaited.
    pub(super) fn select(ctx: &Context, server: &CheckedServer, observed: &Observed, now: Timestamp) -> Self {
        let newest = ctx.catalog.newest();
        if let Some(newest) = &newest {
            ctx.metrics.catalog_read_at.set(newest.read_at.as_second());
        }
        let key = key_of(server);
        let template = observed.stateful_set_view.map(|stateful_set| stateful_set.template);
        let pod = observed.pod_uid().zip(observed.pod_revision);
        let cached = ctx.caches.pinned_catalogs.get(&key);
        let pinned = cached.filter(|pinned| is_awaited(pinned.goal, &observed.facts, template, pod, now));
        let from = Self::from_pinned(pinned, newest, now);
        if from.pinned_goal.is_none() {
            // This also frees the memory of a whole catalog.
            ctx.caches.pinned_catalogs.remove(&key);
        }
        from
    }

    /// The newest catalog, at the current time.
    pub(super) fn from_newest(newest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        Self { snapshot: newest, at: now, now, pinned_goal: None }
    }

    fn from_pinned(pinned: Option<PinnedCatalog>, newest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        let counts = |pinned: &PinnedCatalog| newest.as_deref().is_none_or(|newest| !pinned.is_delisted_in(newest));
        let Some(PinnedCatalog { goal, record: _, snapshot, at }) = pinned.filter(counts) else {
            return Self::from_newest(newest, now);
        };
        // A catalog with equal content is replaced by the newest one, which the solver shares among all servers.
        let same = newest.filter(|newest| newest.content == snapshot.content);
        Self { snapshot: Some(same.unwrap_or(snapshot)), at, now, pinned_goal: Some(goal) }
    }

    /// The catalog, if one has been read.
    pub(super) fn catalog(&self) -> Option<&Catalog> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.catalog)
    }

    /// Pins the catalog of the plan once its goal is awaited. Returns `false` if the plan was made from a catalog that was pinned for
    /// another goal. It is then planned again from the newest one: a changed goal uses the newest releases.
    pub(super) fn update_pin(&self, ctx: &Context, server: &CheckedServer, plan: &Plan, step: Step) -> bool {
        let requests_other_set = plan.constraints.approval.requests_other_set.is_some();
        let decision = self.decide(&plan.goal, &plan.observation, plan.gate, step, requests_other_set);
        match (decision, &self.snapshot) {
            (PinDecision::Release, _) => {
                ctx.caches.pinned_catalogs.remove(&key_of(server));
            }
            (PinDecision::Pin, Some(snapshot)) => {
                let (record, snapshot) = (plan.target.record.clone(), snapshot.clone());
                let pinned = PinnedCatalog { goal: plan.goal.revision, record, snapshot, at: self.at };
                ctx.caches.pinned_catalogs.put(key_of(server), pinned);
            }
            (PinDecision::Pin, None) | (PinDecision::Absent | PinDecision::Keep, _) => {}
        }
        decision != PinDecision::Release
    }

    /// Decides about the pinned catalog. While a user requests another set by its digest, which may be the newest one, nothing is pinned.
    /// Otherwise pinning and releasing could alternate, and the server would be requeued for ever.
    fn decide(
        &self,
        goal: &Goal,
        observation: &Observation,
        gate: Gate,
        step: Step,
        requests_other_set: bool,
    ) -> PinDecision {
        let pod = observation.pod.map(|pod| (pod.uid, pod.revision));
        let template = observation.stateful_set.map(|stateful_set| stateful_set.template);
        // An announcement in an earlier opening than this one does not count. An apply-now request, for example, is about the newest
        // releases.
        let is_still_awaited = has_goal_begun(goal, observation, gate)
            && is_awaited(goal.revision, &observation.facts, template, pod, self.now)
            && !requests_other_set;
        match self.pinned_goal {
            Some(pinned_goal) if is_still_awaited && pinned_goal == goal.revision => PinDecision::Keep,
            Some(_) => PinDecision::Release,
            None if is_still_awaited || starts_goal(goal.revision, step) && !requests_other_set => PinDecision::Pin,
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
    let (Some(stable), Some((pod, runs))) = (facts.settled, pod) else { return false };
    let counts = |disruption: Disruption| matches!(disruption, Disruption::Update { goal: of, window_opened_at: _ } if of == goal);
    let is_announced = facts
        .announced
        .is_some_and(|announced| announced.pod == pod && counts(announced.act) && !announced.is_expired(now));
    let is_ahead = stable.revision != goal && runs != goal && !facts.failed.contains(&goal);
    is_ahead && (is_announced || template == Some(goal))
}

/// Whether the goal is awaited from this step on.
fn starts_goal(goal: Revision, step: Step) -> bool {
    let announces = matches!(
        step,
        Step::Announce { disruption: Disruption::Update { goal: of, window_opened_at: _ }, .. } if of == goal
    );
    announces || matches!(step, Step::WriteTemplate { revision, .. } if revision == goal)
}

#[cfg(test)]
mod tests;
