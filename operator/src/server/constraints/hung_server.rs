//! Pure. Restarts a server that hangs, if its spec says so (`spec.onHang: Restart`).
//!
//! The restart is the one of `nightshift.dev/restart-now`, without a countdown: a server that hangs can neither warn its players nor save. An
//! update waits for it. Each restart counts as a crash, and a crash loop prevents further ones.

use crds::paper_mc_server::OnHang;
use jiff::Timestamp;
use scheduler::observation::{PlayerPolicy, PodPhase, RestartDue};

use crate::server::hang::{Hang, RESTART_AFTER, RestartedHang, TOLERATED};
use crate::server::plan::constraint::{Constraint, ConstraintInput, Wait};
use crate::server::plan::{PassInput, Plan};
use crate::server::report::context::PassReport;

pub(super) struct HungServer;

impl Constraint for HungServer {
    /// A rollout in progress has a verification of its own. If a user waits for a restore, the restart includes it.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        let PassInput { checked, observed, now, .. } = input.pass;
        let is_stable = observed.facts.settled.is_some() && !observed.is_rollout_in_progress();
        let is_up = plan.observation.pod.is_some_and(|pod| pod.phase == PodPhase::Up);
        let report = observed.reply.report.as_deref().filter(|_| is_stable && is_up);
        let hang = report.and_then(Hang::from_report).filter(|hang| TOLERATED <= hang.lasts);
        let Some(hang) = hang.filter(|_| checked.pod.on_hang == OnHang::Restart) else { return false };
        let overdue_at = (hang.lasts < RESTART_AFTER).then(|| now + (RESTART_AFTER - hang.lasts));
        let restore = plan.tasks.restores.due.as_ref().map(|restore| restore.restart.due);
        let is_due = overdue_at.is_none() && !plan.observation.crash_loop;
        let due = is_due.then(|| restore.unwrap_or(hang.since));
        plan.constraints.hang = Some(RestartedHang { since: hang.since, overdue_at, due });
        let Some(due) = due else { return false };
        plan.goal.restart = Some(RestartDue {
            due,
            until: Timestamp::MAX,
            policy: PlayerPolicy::Ignore,
            only_empty: false,
            yields_until: due,
        });
        true
    }

    fn wait(&self, _report: &PassReport<'_>) -> Option<Wait> {
        let message = "The server hangs and is restarted first.".to_owned();
        Some(Wait { reason: "NotResponding", message, short: None })
    }

    fn wake_at(&self, plan: &Plan) -> Option<Timestamp> {
        plan.constraints.hang?.overdue_at
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use scheduler::maintenance::Gate;
    use scheduler::observation::{Partition, PodView, StatefulSetView};
    use scheduler::rollout::{Step, next_step};
    use serde_json::json;

    use super::*;
    use crate::server::act::outcome::StepOutcome;
    use crate::server::report::tests::Pass;
    use crate::server::test_server::server;
    use validate::check;

    fn at(second: i64) -> Timestamp {
        Timestamp::constant(1_795_348_800, 0) + SignedDuration::from_secs(second)
    }

    /// A server that last answered this many seconds ago.
    fn silent_for(seconds: i64, reaction: &str) -> Pass {
        let mut pass = Pass::new();
        pass.server = server(json!({"onHang": reaction}));
        pass.checked = check(&pass.server).unwrap();
        let (since, answered_at) = (at(-9_000).to_string(), at(-seconds).to_string());
        let server = json!({"state": "up", "since": since, "answeredAt": answered_at, "minecraft": "1.21.10"});
        pass.extend_agent_report(&json!({"at": at(0).to_string(), "server": server}));
        pass.plan.observation.pod = pass.plan.observation.pod.map(|pod| PodView { phase: PodPhase::Up, ..pod });
        pass
    }

    /// Whether an update would wait, and whether the next step restarts the server.
    fn evaluate(pass: &mut Pass) -> (bool, bool) {
        let Pass { server, checked, observed, plan, before, .. } = pass;
        let input = PassInput { server, checked, observed, before, now: at(0) };
        let waits = HungServer.evaluate(plan, &ConstraintInput { pass: input, followed: None, is_automatic: true });
        let step = next_step(&plan.goal, &plan.observation, Gate::Shut { opens: None }, at(0));
        (waits, matches!(step, Step::Restart { .. }))
    }

    #[test]
    fn hanging_server_is_restarted_after_two_minutes_if_configured() {
        assert_eq!(evaluate(&mut silent_for(119, "Restart")), (false, false));
        assert_eq!(evaluate(&mut silent_for(120, "Restart")), (true, true));
        assert_eq!(evaluate(&mut silent_for(9_000, "Report")), (false, false));
        let wakes_at = |seconds| {
            let mut pass = silent_for(seconds, "Restart");
            evaluate(&mut pass);
            HungServer.wake_at(&pass.plan)
        };
        assert_eq!(wakes_at(59), None, "a server that answers its pings is not looked at again and again");
        assert_eq!((wakes_at(60), wakes_at(120)), (Some(at(60)), None));
    }

    #[test]
    fn restart_of_hanging_server_needs_no_crash_loop_and_no_rollout() {
        let mut crashing = silent_for(120, "Restart");
        crashing.plan.observation.crash_loop = true;
        assert_eq!(evaluate(&mut crashing), (false, false));
        let mut rolling_out = silent_for(120, "Restart");
        rolling_out.observed.stateful_set_view = rolling_out
            .observed
            .stateful_set_view
            .map(|stateful_set| StatefulSetView { partition: Partition::Open, ..stateful_set });
        assert_eq!(evaluate(&mut rolling_out), (false, false));
    }

    #[test]
    fn restart_of_hanging_server_counts_as_crash() {
        let mut pass = silent_for(120, "Restart");
        evaluate(&mut pass);
        let due = pass.plan.constraints.hang.unwrap().due.unwrap();
        assert_eq!(pass.status().crashes, None, "it has not been restarted yet");
        pass.done = StepOutcome::Restarting { due, agent_unreachable: false };
        let crashes = pass.status().crashes.unwrap();
        assert_eq!((crashes.at, crashes.hangs), (Vec::new(), vec![at(-120)]));
        let text = pass.event_texts("RestartStarted").pop().unwrap();
        assert!(text.contains("hangs since") && text.contains("could not be warned"), "{text}");
    }
}
