//! Pure. Delays an update until the followed server (`spec.follows`) has run the same releases for long enough.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::observation::{Goal, Observation};
use scheduler::rollout::has_goal_begun;

use crate::k8s::events::EventText;
use crate::server::follows::FollowWait;
use crate::server::plan::Plan;
use crate::server::plan::constraint::{APPLY_NOW_HINT, ConditionText, Constraint, ConstraintInput, Wait};
use crate::server::report::context::PassReport;
use crate::server::report::format::format_time;

pub(super) struct LeaderServer;

/// Type of the condition, and reason of `Updating` and of the Event.
const WAITING_FOR_LEADER: &str = "WaitingForLeaderServer";

impl Constraint for LeaderServer {
    /// A first start never waits.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        let followed = input.followed.filter(|_| input.is_automatic).zip(input.pass.observed.stable_lock.as_ref());
        let waits = followed
            .and_then(|(follows, from)| follows.wait_for_update(&from.lock, &plan.target.record.lock, input.pass.now));
        plan.constraints.follow_wait =
            waits.and_then(|waits| remaining_wait(waits, &plan.goal, &plan.observation, plan.gate));
        blocking_wait(plan).is_some()
    }

    fn wait(&self, report: &PassReport<'_>) -> Option<Wait> {
        blocking_wait(report.plan).map(|waits| Wait {
            reason: WAITING_FOR_LEADER,
            message: format!("{} {APPLY_NOW_HINT}", message(waits, report)),
            short: Some(waits.short()),
        })
    }

    fn wake_at(&self, plan: &Plan) -> Option<Timestamp> {
        plan.constraints.follow_wait.as_ref().and_then(FollowWait::until)
    }

    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let waits = report.plan.constraints.follow_wait.as_ref()?;
        let (reason, message) = (waits.reason(), message(waits, report));
        Some(ConditionText { type_: WAITING_FOR_LEADER, status: Some(true), reason, message })
    }

    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let waits = report.plan.constraints.follow_wait.iter();
        let event = |waits: &FollowWait| {
            let text = message(waits, report);
            EventText { reason: WAITING_FOR_LEADER, warning: waits.is_spec_error(), text }
        };
        waits.map(event).collect()
    }
}

/// The wait that blocks the planned update, if any.
fn blocking_wait(plan: &Plan) -> Option<&FollowWait> {
    plan.constraints.follow_wait.as_ref().filter(|waits| waits.blocks_update)
}

/// The followed server and the missing condition.
fn message(waits: &FollowWait, report: &PassReport<'_>) -> String {
    waits.message(|at| format_time(at, &report.pass.checked.updates.zone, report.pass.now))
}

/// The remaining wait for this plan. An announced update and one that has begun otherwise continue.
pub(crate) fn remaining_wait(
    waits: FollowWait,
    goal: &Goal,
    observation: &Observation,
    gate: Gate,
) -> Option<FollowWait> {
    let blocks_update = waits.blocks_update && !has_goal_begun(goal, observation, gate);
    (blocks_update || waits.is_spec_error()).then_some(FollowWait { blocks_update, ..waits })
}

#[cfg(test)]
mod tests {
    use scheduler::observation::{Announced, Disruption, PodUid, RecordedFacts, Revision, StatefulSetView};

    use super::*;
    use crate::server::follows::{FollowBlocker, LeaderState};
    use crate::server::online_backup::tests::at_rest;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(hours * 3_600).unwrap()
    }

    #[test]
    fn follower_does_not_wait_after_announcement_or_start() {
        let (goal, observation, _) = at_rest();
        let goal = Goal { revision: Revision(2), ..goal };
        let open = Gate::Open { opened_at: at(0), until: at(9) };
        let waits =
            |state| FollowWait { server: "staging".to_owned(), why: FollowBlocker::State(state), blocks_update: true };
        let may_wait = |goal: &Goal, observation: &Observation, gate| {
            remaining_wait(waits(LeaderState::ScaledToZero), goal, observation, gate).is_some()
        };
        assert!(may_wait(&goal, &observation, open));
        let announced = |window_opened_at| {
            let disruption = Disruption::Update { goal: goal.revision, window_opened_at };
            let announced = Some(Announced { act: disruption, pod: PodUid(7), ends: at(1) });
            Observation { facts: RecordedFacts { announced, ..observation.facts.clone() }, ..observation.clone() }
        };
        assert!(!may_wait(&goal, &announced(at(0)), open));
        let remaining = remaining_wait(waits(LeaderState::Missing), &goal, &announced(at(0)), open).unwrap();
        assert!(!remaining.blocks_update, "a spec error does not delay an update that has begun");
        assert!(may_wait(&goal, &announced(at(-9)), open), "announced in an earlier opening");
        let written = StatefulSetView { template: goal.revision, ..observation.stateful_set.unwrap() };
        assert!(!may_wait(&goal, &Observation { stateful_set: Some(written), ..observation.clone() }, open));
        let manual = StatefulSetView { template: Revision(9), ..written };
        assert!(
            may_wait(&goal, &Observation { stateful_set: Some(manual), ..observation.clone() }, open),
            "a template written by a user does not count"
        );
    }
}
