//! Pure. Closes the gate of a server in a crash loop, and decides whether the server is stopped.

use crds::paper_mc_server::{CrashLoopStop, CrashStatus, OnCrashLoop};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::rollout::{Step, is_blocked_by_crash_loop, is_in_progress};

use super::Plan;
use crate::clock::truncate_to_second;
use crate::error_chain::cut;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::stopped::{
    active_stop, allows_stop, generation_of, is_up_since, unrestarted_crash, user_requests,
};
use crate::server::crash_loop::{format_exit, is_crash_loop, next_crashes};
use crate::server::observe::Observed;

impl Plan {
    /// Counts the crashes. In a crash loop it closes the gate for automatic changes. On a stopped server it closes the gate for every
    /// request from before the stop, because a new one starts the server. A rollout in progress has a deadline of its own.
    pub(crate) fn hold_on_crash_loop(
        &mut self,
        before: &PaperMCServerStatus,
        observed: &Observed,
        by_itself: bool,
        now: Timestamp,
    ) {
        let stopped = active_stop(before, observed);
        let is_stopped = stopped.is_some();
        let stable_pod = observed
            .pod
            .as_ref()
            .filter(|_| observed.facts.settled.is_some() && !Self::is_rollout_in_progress(observed));
        self.crashes = stopped.or_else(|| stable_pod.and_then(|pod| next_crashes(before.crashes.as_ref(), pod, now)));
        let is_loop = self.crashes.as_ref().is_some_and(|crashes| is_crash_loop(crashes, &before.conditions));
        self.observation.crash_loop = is_loop;
        self.held_by_crashes =
            (by_itself || is_stopped) && is_blocked_by_crash_loop(&self.goal, &self.observation, self.gate);
        if self.held_by_crashes {
            self.gate = Gate::Shut { opens: None };
        }
    }

    /// Whether the server is stopped for its crashes.
    pub(crate) fn is_stopped(&self) -> bool {
        self.crash_stopped_at().is_some()
    }

    /// Since when it is stopped.
    pub(crate) fn crash_stopped_at(&self) -> Option<Timestamp> {
        self.crashes.as_ref().and_then(|crashes| crashes.stopped.as_ref()).map(|stopped| stopped.at)
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
        let is_wanted = checked.on_crash_loop == OnCrashLoop::Stop && checked.replicas > 0;
        let crashes = self.crashes.clone().filter(|_| is_wanted && self.observation.crash_loop)?;
        let ended = observed.pod.as_ref().and_then(unrestarted_crash)?;
        // The kubelet may have restarted the process and not reported it yet.
        let is_back = observed.report.as_deref().is_some_and(|report| is_up_since(report, ended));
        let takes_precedence = is_back
            || is_in_progress(&self.goal, &self.observation, self.gate)
            || self.backups.is_running
            || self.restores.is_open();
        let stopped = CrashLoopStop {
            at: truncate_to_second(now),
            generation: generation_of(server),
            last: cut(&format_exit(ended), 64),
            requests: user_requests(server),
        };
        (allows_stop(step) && !takes_precedence).then_some(CrashStatus { stopped: Some(stopped), ..crashes })
    }
}
