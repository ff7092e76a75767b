//! Edge (reads). Observes a server some seconds before its window opens and then waits at a barrier, so that its players are warned on
//! time. Windows of hundreds of servers may open at one instant, and their reads would delay each other's announcements.

use crds::PaperMCServer;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use scheduler::observation::Players;
use scheduler::rollout::Step;

use super::last_status::status_before;
use super::observe::Observed;
use crate::clock::{Stopwatch, now, sleep};
use crate::context::Context;
use crate::controller::user_input_fingerprint;
use crate::requeue::BARRIER_BEFORE;
use validate::CheckedServer;

/// Ages of the data on which a pass decides. The pass may sleep between any two of its requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedSince {
    /// Since the observation. After a wait at the barrier, since the opening of the window. The deadline of a step counts from here.
    pub(super) decided: Stopwatch,
    /// Since the observation.
    observed: Stopwatch,
    /// Whether the pass waited at the barrier.
    waited: bool,
}

impl ObservedSince {
    /// Whether a step may use an observation of this age. An announcement may, because the agent rejects one that is meant for another pod.
    /// Any step that changes the server needs a new observation.
    pub(super) fn allows(self, step: Step) -> bool {
        !self.waited || matches!(step, Step::Announce { .. } | Step::Wait(_))
    }

    /// Whether the observation is too old for any decision.
    pub(super) fn is_too_old(self, counts: SignedDuration) -> bool {
        self.observed.is_older_than(counts)
    }
}

/// Waits for the window if it opens within seconds and there are players to warn. `None` if the spec has changed meanwhile or the clock was
/// set back: the server has to be observed again.
pub(super) async fn wait_at_barrier(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &CheckedServer,
    observed: &Observed,
    since_observation: Stopwatch,
) -> Option<ObservedSince> {
    let looked_at = since_observation.started_at();
    let is_planned = status_before(ctx, server).available_update.is_some();
    let opens = checked.updates.windows.next_opening(looked_at).filter(|_| is_planned);
    let Some((opens, _place)) = opening_to_wait_for(opens, observed, looked_at).zip(ctx.priority.try_enter_barrier())
    else {
        return Some(ObservedSince { decided: since_observation, observed: since_observation, waited: false });
    };
    let mut at = now();
    while at < opens {
        let left = opens.duration_since(at);
        if left > BARRIER_BEFORE {
            // The clock was set back. The barrier must not block for an hour.
            return None;
        }
        sleep(left.unsigned_abs()).await;
        at = now();
    }
    let current = ctx.servers.get(&ObjectRef::from_obj(server));
    let is_the_same = current.is_some_and(|newest| {
        newest.metadata.uid == server.metadata.uid && user_input_fingerprint(&*newest) == user_input_fingerprint(server)
    });
    is_the_same.then(|| ObservedSince { decided: Stopwatch::start(), observed: since_observation, waited: true })
}

/// The opening to wait for. `None` while a rollout is in progress, and without players to warn.
fn opening_to_wait_for(opens: Option<Timestamp>, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    let has_players = matches!(observed.players(), Players::Some(_) | Players::Hidden);
    let is_near = |opens: &Timestamp| (SignedDuration::ZERO..=BARRIER_BEFORE).contains(&opens.duration_since(now));
    let is_at_rest =
        !observed.is_rollout_in_progress() && observed.facts.announced.is_none() && observed.facts.draining.is_none();
    opens.filter(is_near).filter(|_| has_players && is_at_rest)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::observation::{
        Announced, DataVersion, Disruption, Partition, PodUid, Revision, StableSet, StatefulSetView,
    };
    use serde_json::json;

    use super::*;
    use crate::server::online_backup;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn update() -> Disruption {
        Disruption::Update { goal: Revision(2), window_opened_at: at(105) }
    }

    /// A server without a rollout, with a player online.
    fn server_with_player() -> Observed {
        let mut observed = online_backup::tests::observed(false, &json!({}));
        let report = Arc::make_mut(observed.reply.report.as_mut().unwrap());
        report.players = agent_api::PlayerCount::Some { count: 1 };
        observed.facts.settled = Some(StableSet { revision: Revision(1), world: DataVersion(4_000) });
        observed.pod_revision = Some(Revision(1));
        observed
    }

    #[test]
    fn barrier_holds_server_with_players_just_before_window() {
        let waits = |opens| opening_to_wait_for(Some(at(opens)), &server_with_player(), at(100));
        assert_eq!(waits(105), Some(at(105)));
        assert_eq!(waits(106), None, "the window opens too late for this pass");
        assert_eq!(waits(99), None, "the window is already open");
        assert_eq!(opening_to_wait_for(None, &server_with_player(), at(100)), None);
    }

    #[test]
    fn barrier_skips_empty_server_and_running_rollout() {
        let waits = |observed: &Observed| opening_to_wait_for(Some(at(105)), observed, at(100)).is_some();
        let mut empty = server_with_player();
        Arc::make_mut(empty.reply.report.as_mut().unwrap()).players = agent_api::PlayerCount::Nobody;
        assert!(!waits(&empty));
        assert!(!waits(&Observed { pod_revision: Some(Revision(2)), ..server_with_player() }), "rollout in progress");
        let stateful_set = StatefulSetView {
            template: Revision(2),
            current: Revision(1),
            update: Revision(2),
            observed: true,
            partition: Partition::Open,
            scaled_to_zero: false,
        };
        assert!(
            !waits(&Observed { stateful_set_view: Some(stateful_set), ..server_with_player() }),
            "the partition is open"
        );
        let mut announced = server_with_player();
        announced.facts.announced = Some(Announced { act: update(), pod: PodUid(7), ends: at(130) });
        assert!(!waits(&announced), "a countdown is in progress");
    }

    #[test]
    fn observation_before_barrier_allows_only_announcement() {
        let announce =
            Step::Announce { disruption: update(), pod: PodUid(7), notice: SignedDuration::ZERO, not_after: at(9) };
        let write = Step::WriteTemplate { revision: Revision(2), not_after: at(9) };
        let start = |waited| ObservedSince { decided: Stopwatch::start(), observed: Stopwatch::start(), waited };
        let waited = start(true);
        assert!(waited.allows(announce) && !waited.allows(write) && !waited.allows(Step::UpToDate));
        let at_once = start(false);
        assert!(at_once.allows(announce) && at_once.allows(write));
    }
}
