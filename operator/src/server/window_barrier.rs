//! Edge (reads). Observes a server some seconds before its window opens and then waits at a barrier, so that its players are warned on
//! time. Windows of hundreds of servers may open at one instant, and their reads would delay each other's announcements.

use crds::PaperMCServer;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use scheduler::observation::Players;
use scheduler::rollout::Step;

use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use super::report::status_before;
use crate::clock::{Stopwatch, now, sleep};
use crate::context::Context;
use crate::controller::what_is_asked;
use crate::requeue::AT_THE_LINE;

/// Ages of the data on which a pass decides. The pass may sleep between any two of its requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedSince {
    /// Since the observation. After a wait at the barrier, since the opening of the window. The deadline of a step counts from here.
    pub(super) decided: Stopwatch,
    /// Since the observation.
    looked: Stopwatch,
    /// Whether the pass waited at the barrier.
    stood: bool,
}

impl ObservedSince {
    /// Whether a step may use an observation of this age. An announcement may, because the agent rejects one that is meant for another pod.
    /// Any step that changes the server needs a new observation.
    pub(super) fn allows(self, step: Step) -> bool {
        !self.stood || matches!(step, Step::Announce { .. } | Step::Wait(_))
    }

    /// Whether the observation is too old for any decision.
    pub(super) fn is_too_old(self, counts: SignedDuration) -> bool {
        self.looked.is_older_than(counts)
    }
}

/// Waits for the window if it opens within seconds and there are players to warn. `None` if the spec has changed meanwhile or the clock was
/// set back: the server has to be observed again.
pub(super) async fn stand(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &CheckedServer,
    seen: &Observed,
    looked: Stopwatch,
) -> Option<ObservedSince> {
    let looked_at = looked.started_at();
    let is_planned = status_before(ctx, server).available_update.is_some();
    let opens = checked.windows.next_opening(looked_at).filter(|_| is_planned);
    let Some((opens, _place)) = waits_for(opens, seen, looked_at).zip(ctx.rush.place_at_the_line()) else {
        return Some(ObservedSince { decided: looked, looked, stood: false });
    };
    let mut at = now();
    while at < opens {
        let left = opens.duration_since(at);
        if left > AT_THE_LINE {
            // The clock was set back. The barrier must not block for an hour.
            return None;
        }
        sleep(left.unsigned_abs()).await;
        at = now();
    }
    let asked_now = ctx.servers.get(&ObjectRef::from_obj(server));
    let is_the_same = asked_now.is_some_and(|asked| {
        asked.metadata.uid == server.metadata.uid && what_is_asked(&*asked) == what_is_asked(server)
    });
    is_the_same.then(|| ObservedSince { decided: Stopwatch::start(), looked, stood: true })
}

/// The opening to wait for. `None` while a rollout is in progress, and without players to warn.
fn waits_for(opens: Option<Timestamp>, seen: &Observed, now: Timestamp) -> Option<Timestamp> {
    let somebody_is_on = matches!(seen.players(), Players::Some(_) | Players::Hidden);
    let is_near = |opens: &Timestamp| (SignedDuration::ZERO..=AT_THE_LINE).contains(&opens.duration_since(now));
    let is_at_rest = !Plan::is_on_trial(seen) && seen.facts.announced.is_none() && seen.facts.draining.is_none();
    opens.filter(is_near).filter(|_| somebody_is_on && is_at_rest)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::observation::{
        Announced, DataVersion, Disruption, Partition, PodUid, Revision, StableSet, StatefulSetView,
    };
    use scheduler::protocol;
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
    fn played_on() -> Observed {
        let mut seen = online_backup::tests::seen(false, &json!({}));
        let report = Arc::make_mut(seen.report.as_mut().unwrap());
        report.players = protocol::PlayerCount::Some { count: 1 };
        seen.facts.settled = Some(StableSet { revision: Revision(1), world: DataVersion(4_000) });
        seen.pod_revision = Some(Revision(1));
        seen
    }

    #[test]
    fn barrier_holds_server_with_players_just_before_window() {
        let waits = |opens| waits_for(Some(at(opens)), &played_on(), at(100));
        assert_eq!(waits(105), Some(at(105)));
        assert_eq!(waits(106), None, "that is a look of its own");
        assert_eq!(waits(99), None, "it is open");
        assert_eq!(waits_for(None, &played_on(), at(100)), None);
    }

    #[test]
    fn barrier_skips_empty_server_and_running_rollout() {
        let waits = |seen: &Observed| waits_for(Some(at(105)), seen, at(100)).is_some();
        let mut empty = played_on();
        Arc::make_mut(empty.report.as_mut().unwrap()).players = protocol::PlayerCount::Nobody;
        assert!(!waits(&empty));
        assert!(!waits(&Observed { pod_revision: Some(Revision(2)), ..played_on() }), "on trial");
        let set = StatefulSetView {
            template: Revision(2),
            current: Revision(1),
            update: Revision(2),
            observed: true,
            door: Partition::Open,
            asleep: false,
        };
        assert!(!waits(&Observed { shape: Some(set), ..played_on() }), "the door is open");
        let mut told = played_on();
        told.facts.announced = Some(Announced { act: update(), pod: PodUid(7), ends: at(130) });
        assert!(!waits(&told), "a countdown that was begun by hand");
    }

    #[test]
    fn observation_before_barrier_allows_only_announcement() {
        let announce = Step::Announce { act: update(), pod: PodUid(7), notice: SignedDuration::ZERO, not_after: at(9) };
        let write = Step::WriteTemplate { revision: Revision(2), not_after: at(9) };
        let start = |stood| ObservedSince { decided: Stopwatch::start(), looked: Stopwatch::start(), stood };
        let waited = start(true);
        assert!(waited.allows(announce) && !waited.allows(write) && !waited.allows(Step::Settled));
        let at_once = start(false);
        assert!(at_once.allows(announce) && at_once.allows(write));
    }
}
