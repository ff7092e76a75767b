//! Pure. Determines when the server's node has to pull the images of the next set.

use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, Goal, Observation, Partition, Players, PodPhase};
use scheduler::rollout::{can_roll_forward, is_in_progress, needs_admin};

/// How long before a window an old result is checked again. The requeue ahead of the window falls into this time, and a node with all
/// images answers within seconds.
const RECHECK_BEFORE_WINDOW: SignedDuration = SignedDuration::from_mins(2);

/// Whether the running server will be stopped for this goal. A rollout in progress has stopped it already, unless it failed and a newer set
/// replaces it. A server without a pod pulls the images where it starts.
pub(crate) fn would_be_stopped(goal: &Goal, observation: &Observation) -> bool {
    let (Some(stateful_set), Some(pod), Some(stable)) =
        (observation.stateful_set, observation.pod, observation.facts.settled)
    else {
        return false;
    };
    let rolls_forward = needs_admin(observation) && can_roll_forward(goal, observation);
    let is_rolling_out =
        (stateful_set.partition == Partition::Open || pod.revision != stable.revision) && !rolls_forward;
    let is_blocked = observation.facts.failed.contains(&goal.revision) || goal.world < observation.world_floor();
    let is_up = match pod.phase {
        PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down => true,
        PodPhase::Pending | PodPhase::Refused | PodPhase::Stopping { .. } => false,
    };
    is_up && goal.revision != stable.revision && !is_blocked && !is_rolling_out
}

/// Whether the update was announced to the players of the current pod.
pub(crate) fn is_announced(goal: &Goal, observation: &Observation) -> bool {
    let announced =
        observation.facts.announced.filter(|announced| observation.pod.is_some_and(|pod| pod.uid == announced.pod));
    announced.is_some_and(
        |announced| matches!(announced.act, Disruption::Update { goal: of, window_opened_at: _ } if of == goal.revision),
    )
}

/// Whether the update may begin within moments. Once it has begun, the result is recent enough.
pub(crate) fn is_near(
    goal: &Goal,
    observation: &Observation,
    gate: Gate,
    waits_for_empty: bool,
    now: Timestamp,
) -> bool {
    if is_in_progress(goal, observation, gate) {
        return false;
    }
    match gate {
        Gate::Open { .. } | Gate::NoNewStarts { .. } => true,
        Gate::Shut { opens: Some(opens) } if opens <= now + RECHECK_BEFORE_WINDOW => true,
        Gate::Shut { .. } => waits_for_empty && observation.players == Players::Nobody,
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
        let (goal, observation, _) = at_rest();
        (Goal { revision: NEW, ..goal }, observation)
    }

    #[test]
    fn image_pull_runs_only_for_updates_that_stop_server() {
        let (goal, observation) = planned();
        let pod = observation.pod.unwrap();
        let with_phase = |phase| Observation { pod: Some(PodView { phase, ..pod }), ..observation.clone() };
        assert!(would_be_stopped(&goal, &observation));
        assert!(
            would_be_stopped(&goal, &with_phase(PodPhase::Down))
                && would_be_stopped(&goal, &with_phase(PodPhase::Starting { deadline: at(0) }))
        );
        assert!(!would_be_stopped(&Goal { revision: pod.revision, ..goal }, &observation), "the goal is running");
        assert!(!would_be_stopped(&Goal { world: DataVersion(1), ..goal }, &observation), "too old for the world");
        let mut failed = observation.clone();
        failed.facts.failed = vec![NEW];
        assert!(!would_be_stopped(&goal, &failed), "the goal failed on this server");
        for phase in [PodPhase::Refused, PodPhase::Stopping { overdue_at: at(9) }] {
            assert!(!would_be_stopped(&goal, &with_phase(phase)), "{phase:?}");
        }
        let open =
            observation.stateful_set.map(|stateful_set| StatefulSetView { partition: Partition::Open, ..stateful_set });
        let candidate_pod = Some(PodView { revision: NEW, ..pod });
        for other in [
            Observation { stateful_set: open, ..observation.clone() },
            Observation { pod: candidate_pod, ..observation.clone() },
            Observation { pod: None, ..observation.clone() },
            Observation { stateful_set: None, ..observation.clone() },
        ] {
            assert!(!would_be_stopped(&goal, &other), "{other:?}");
        }
    }

    #[test]
    fn image_pull_precedes_roll_forward_announcement() {
        let (goal, observation) = planned();
        let stable = observation.facts.settled.unwrap();
        let pod = observation.pod.map(|pod| PodView { revision: Revision(3), ..pod });
        let stateful_set = observation.stateful_set.map(|stateful_set| StatefulSetView {
            template: Revision(3),
            partition: Partition::Open,
            ..stateful_set
        });
        let mut failed = Observation { pod, stateful_set, ..observation };
        failed.facts.failed = vec![Revision(3)];
        let newer = DataVersion(stable.world.0 + 1);
        failed.world.floor = newer;
        let roll_forward = Goal { world: newer, ..goal };
        assert!(would_be_stopped(&roll_forward, &failed));
        assert!(!would_be_stopped(&Goal { revision: Revision(3), ..roll_forward }, &failed), "the goal has failed");
        failed.world.floor = stable.world;
        assert!(!would_be_stopped(&roll_forward, &failed), "the rollout rolls back automatically");
    }

    #[test]
    fn image_pull_starts_two_minutes_before_window() {
        let (goal, observation) = planned();
        let near =
            |observation: &Observation, gate, opportunistic| is_near(&goal, observation, gate, opportunistic, at(0));
        let opens = |second| Gate::Shut { opens: Some(at(second)) };
        let open = Gate::Open { opened_at: at(-60), until: at(3_600) };
        assert!(near(&observation, open, false) && near(&observation, opens(120), false));
        assert!(!near(&observation, opens(121), false) && !near(&observation, Gate::Shut { opens: None }, false));
        assert!(near(&observation, Gate::Shut { opens: None }, true), "an opportunity may occur at any time");
        assert!(!near(&Observation { players: Players::Some(1), ..observation.clone() }, opens(121), true));
        let disruption = Disruption::Update { goal: NEW, window_opened_at: at(-60) };
        let mut announced = observation.clone();
        announced.facts.announced = Some(Announced { act: disruption, pod: PodUid(7), ends: at(300) });
        assert!(!near(&announced, open, false), "players were warned");
        assert!(is_announced(&goal, &announced) && !is_announced(&goal, &observation));
        assert!(!is_announced(&Goal { revision: Revision(3), ..goal }, &announced), "another set was announced");
        let elsewhere = Observation { pod: observation.pod.map(|pod| PodView { uid: PodUid(8), ..pod }), ..announced };
        assert!(!is_announced(&goal, &elsewhere), "players of another pod were warned");
    }
}
