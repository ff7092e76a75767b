//! Pure. Delays automatic updates of a server in a crash loop, and decides whether the server is stopped.

use crds::PaperMCServer;
use crds::paper_mc_server::{CrashLoopStop, CrashStatus, OnCrashLoop};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::rollout::{Step, is_blocked_by_crash_loop, is_in_progress};

use crate::clock::truncate_to_second;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::crash_loop::stopped::{
    active_stop, allows_stop, generation_of, is_up_since, stopped_message, unrestarted_crash, user_requests,
};
use crate::server::crash_loop::{
    CRASH_LOOP, CRASH_WINDOW, crashes_without_pod, format_exit, is_crash_loop, loop_message, next_crashes,
};
use crate::server::observe::Observed;
use crate::server::plan::Plan;
use crate::server::plan::constraint::{APPLY_NOW_HINT, ConditionText, Constraint, ConstraintInput, Wait};
use crate::server::report::context::PassReport;
use validate::CheckedServer;

pub(crate) struct CrashLoop;

/// The reason while the kubelet restarts the process.
const PROCESS_EXITS: &str = "ProcessEnds";
/// The reason while the server is stopped for its crashes.
const STOPPED: &str = "Stopped";

impl Constraint for CrashLoop {
    /// Counts the crashes. A crash loop delays automatic updates. A server that is stopped also ignores every request from before the stop,
    /// because a new one starts the server. A rollout in progress has a deadline of its own.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        let (observed, before) = (input.pass.observed, input.pass.before);
        let stopped = active_stop(before, observed);
        let is_stopped = stopped.is_some();
        let is_stable = observed.facts.settled.is_some() && !observed.is_rollout_in_progress();
        let count = || match observed.pod.as_ref() {
            _ if !is_stable => None,
            Some(pod) => next_crashes(before.crashes.as_ref(), pod, input.pass.now),
            None => crashes_without_pod(before.crashes.as_ref(), input.pass.now),
        };
        let crashes = stopped.or_else(count);
        plan.observation.crash_loop =
            crashes.as_ref().is_some_and(|crashes| is_crash_loop(crashes, &before.conditions));
        plan.constraints.crashes = crashes;
        (input.is_automatic || is_stopped) && is_blocked_by_crash_loop(&plan.goal, &plan.observation, plan.gate)
    }

    fn wait(&self, _report: &PassReport<'_>) -> Option<Wait> {
        let message = format!("The server is in a crash loop. See {CRASH_LOOP}. {APPLY_NOW_HINT}");
        Some(Wait { reason: CRASH_LOOP, message, short: Some("crash loop".to_owned()) })
    }

    /// The loop ends when its last crash is an hour old.
    fn wake_at(&self, plan: &Plan) -> Option<Timestamp> {
        let crashes =
            plan.constraints.crashes.as_ref().filter(|_| plan.observation.crash_loop && !plan.is_stopped())?;
        crashes.at.iter().chain(&crashes.hangs).max().map(|last| *last + CRASH_WINDOW)
    }

    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let (reason, message) = reason_and_message(report)?;
        Some(ConditionText { type_: CRASH_LOOP, status: Some(true), reason, message })
    }

    /// One Event for the loop, and one for the stop. The condition reports all later changes.
    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let Some((reason, text)) = reason_and_message(report) else { return Vec::new() };
        let is_reported = |condition: &Condition| {
            condition.type_ == CRASH_LOOP && (reason == PROCESS_EXITS || condition.reason == reason)
        };
        if report.pass.before.conditions.iter().any(is_reported) {
            return Vec::new();
        }
        vec![EventText { reason: CRASH_LOOP, warning: true, text }]
    }
}

/// The crash loop of the server: reason and message.
fn reason_and_message(report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let pass = &report.pass;
    let crashes = report.plan.constraints.crashes.as_ref();
    if let Some(message) = crashes.and_then(|crashes| stopped_message(pass.checked, crashes)) {
        return Some((STOPPED, message));
    }
    let message = loop_message(crashes, &pass.before.conditions, pass.observed.pod.as_ref())?;
    Some((PROCESS_EXITS, message))
}

impl Plan {
    /// Whether the server is stopped for its crashes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.crash_stopped_at().is_some()
    }

    /// Since when it is stopped.
    pub(crate) fn crash_stopped_at(&self) -> Option<Timestamp> {
        self.constraints.crashes.as_ref().and_then(|crashes| crashes.stopped.as_ref()).map(|stopped| stopped.at)
    }

    /// The record for the status if the server is to be stopped now. `None` otherwise.
    pub(crate) fn stop_for_crashes(
        &self,
        server: &PaperMCServer,
        checked: &CheckedServer,
        observed: &Observed,
        step: Step,
        now: Timestamp,
    ) -> Option<CrashStatus> {
        let is_wanted = checked.pod.on_crash_loop == OnCrashLoop::Stop && checked.pod.replicas > 0;
        let crashes = self.constraints.crashes.clone().filter(|_| is_wanted && self.observation.crash_loop)?;
        // The kubelet may have restarted the process and not reported it yet.
        let is_back = |ended: &ContainerStateTerminated| {
            observed.reply.report.as_deref().is_some_and(|report| is_up_since(report, ended))
        };
        let ended = observed.pod.as_ref().and_then(unrestarted_crash).filter(|ended| !is_back(ended));
        let hangs = self.constraints.hang.is_some_and(|hang| hang.overdue_at.is_none());
        let last = ended.map(format_exit).or_else(|| hangs.then(|| "a hang".to_owned()))?;
        let takes_precedence = is_in_progress(&self.goal, &self.observation, self.gate)
            || self.tasks.backups.is_running
            || self.tasks.restores.is_open();
        let stopped = CrashLoopStop {
            at: truncate_to_second(now),
            generation: generation_of(server),
            last: cut(&last, 64),
            requests: user_requests(server),
        };
        (allows_stop(step) && !takes_precedence).then_some(CrashStatus { stopped: Some(stopped), ..crashes })
    }
}

#[cfg(test)]
mod tests;
