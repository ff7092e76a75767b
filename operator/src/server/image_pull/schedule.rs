//! Pure. Determines when the server's node has to pull the images of the next set.

use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, Goal, Observation, Partition, Players, PodPhase};
use scheduler::rollout::{is_left_to_a_person, is_under_way, is_way_forward};

/// How long before a window an old result is checked again. The requeue ahead of the window falls into this time, and a node with all
/// images answers within seconds.
const NEAR: SignedDuration = SignedDuration::from_mins(2);

/// Whether the running server will be stopped for this goal. A rollout in progress has stopped it already, unless it failed and a newer set
/// replaces it. A server without a pod pulls the images where it starts.
pub(super) fn would_be_stopped(goal: &Goal, seen: &Observation) -> bool {
    let (Some(set), Some(pod), Some(settled)) = (seen.set, seen.pod, seen.facts.settled) else { return false };
    let goes_forward = is_left_to_a_person(seen) && is_way_forward(goal, seen);
    let is_on_trial = (set.door == Partition::Open || pod.revision != settled.revision) && !goes_forward;
    let is_held = seen.facts.failed.contains(&goal.revision) || goal.world < seen.least_world();
    let is_there = match pod.life {
        PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down => true,
        PodPhase::Refused | PodPhase::Stopping { .. } => false,
    };
    is_there && goal.revision != settled.revision && !is_held && !is_on_trial
}

/// Whether the update was announced to the players of the current pod.
pub(super) fn is_announced(goal: &Goal, seen: &Observation) -> bool {
    let told = seen.facts.announced.filter(|told| seen.pod.is_some_and(|pod| pod.uid == told.pod));
    told.is_some_and(
        |told| matches!(told.act, Disruption::Update { goal: of, window_opened_at: _ } if of == goal.revision),
    )
}

/// Whether the update may begin within moments. Once it has begun, the result is recent enough.
pub(super) fn is_near(goal: &Goal, seen: &Observation, gate: Gate, comes_when_empty: bool, now: Timestamp) -> bool {
    if is_under_way(goal, seen, gate) {
        return false;
    }
    match gate {
        Gate::Open { .. } | Gate::NoNewStarts { .. } => true,
        Gate::Shut { opens: Some(opens) } if opens <= now + NEAR => true,
        Gate::Shut { .. } => comes_when_empty && seen.players == Players::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use scheduler::observation::{Announced, DataVersion, PodUid, PodView, Revision, StatefulSetView};

    use super::*;
    use crate::server::online_backup::tests::at_rest;

    const NEW: Revision = Revision(2);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    /// A running server without players, and a planned update.
    fn planned() -> (Goal, Observation) {
        let (goal, seen, _) = at_rest();
        (Goal { revision: NEW, ..goal }, seen)
    }

    #[test]
    fn image_pull_runs_only_for_updates_that_stop_server() {
        let (goal, seen) = planned();
        let pod = seen.pod.unwrap();
        let with_life = |life| Observation { pod: Some(PodView { life, ..pod }), ..seen.clone() };
        assert!(would_be_stopped(&goal, &seen));
        assert!(
            would_be_stopped(&goal, &with_life(PodPhase::Down))
                && would_be_stopped(&goal, &with_life(PodPhase::Starting { gives_up_at: at(0) }))
        );
        assert!(!would_be_stopped(&Goal { revision: pod.revision, ..goal }, &seen), "it runs");
        assert!(!would_be_stopped(&Goal { world: DataVersion(1), ..goal }, &seen), "below the world");
        let mut failed = seen.clone();
        failed.facts.failed = vec![NEW];
        assert!(!would_be_stopped(&goal, &failed), "it failed here");
        for life in [PodPhase::Refused, PodPhase::Stopping { lost_at: at(9) }] {
            assert!(!would_be_stopped(&goal, &with_life(life)), "{life:?}");
        }
        let open = seen.set.map(|set| StatefulSetView { door: Partition::Open, ..set });
        let on_trial = Some(PodView { revision: NEW, ..pod });
        for other in [
            Observation { set: open, ..seen.clone() },
            Observation { pod: on_trial, ..seen.clone() },
            Observation { pod: None, ..seen.clone() },
            Observation { set: None, ..seen.clone() },
        ] {
            assert!(!would_be_stopped(&goal, &other), "{other:?}");
        }
    }

    #[test]
    fn image_pull_precedes_roll_forward_announcement() {
        let (goal, seen) = planned();
        let settled = seen.facts.settled.unwrap();
        let pod = seen.pod.map(|pod| PodView { revision: Revision(3), ..pod });
        let set = seen.set.map(|set| StatefulSetView { template: Revision(3), door: Partition::Open, ..set });
        let mut stuck = Observation { pod, set, ..seen };
        stuck.facts.failed = vec![Revision(3)];
        let newer = DataVersion(settled.world.0 + 1);
        stuck.world.floor = newer;
        let forward = Goal { world: newer, ..goal };
        assert!(would_be_stopped(&forward, &stuck));
        assert!(!would_be_stopped(&Goal { revision: Revision(3), ..forward }, &stuck), "it failed");
        stuck.world.floor = settled.world;
        assert!(!would_be_stopped(&forward, &stuck), "what settled comes back by itself");
    }

    #[test]
    fn image_pull_starts_two_minutes_before_window() {
        let (goal, seen) = planned();
        let near = |seen: &Observation, gate, opportunistic| is_near(&goal, seen, gate, opportunistic, at(0));
        let opens = |second| Gate::Shut { opens: Some(at(second)) };
        let open = Gate::Open { opened_at: at(-60), until: at(3_600) };
        assert!(near(&seen, open, false) && near(&seen, opens(120), false));
        assert!(!near(&seen, opens(121), false) && !near(&seen, Gate::Shut { opens: None }, false));
        assert!(near(&seen, Gate::Shut { opens: None }, true), "it may come at any time");
        assert!(!near(&Observation { players: Players::Some(1), ..seen.clone() }, opens(121), true));
        let act = Disruption::Update { goal: NEW, window_opened_at: at(-60) };
        let mut told = seen.clone();
        told.facts.announced = Some(Announced { act, pod: PodUid(7), ends: at(300) });
        assert!(!near(&told, open, false), "players were told");
        assert!(is_announced(&goal, &told) && !is_announced(&goal, &seen));
        assert!(!is_announced(&Goal { revision: Revision(3), ..goal }, &told), "of another set");
        let elsewhere = Observation { pod: seen.pod.map(|pod| PodView { uid: PodUid(8), ..pod }), ..told };
        assert!(!is_announced(&goal, &elsewhere), "another pod");
    }
}
