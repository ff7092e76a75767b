//! Pure. Reads whether a server is stopped for its crashes (`spec.onCrashLoop: Stop`), and what starts it again.
//!
//! The stop is recorded in the status before the operator acts on it. If the operator crashes in between, the next pass finds it. Only a
//! user's request ends the stop. It does not end with time, nor because of the scale to 0 itself, which deletes the pod.

use agent_api::{AgentReport, Server};
use crds::annotations::{APPLY, RESTORE_FROM, ROLLBACK_TO};
use crds::paper_mc_server::{CrashLoopStop, CrashStatus};
use crds::{PaperMCServer, PaperMCServerStatus};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::ResourceExt;
use scheduler::rollout::{Step, WaitingOn};

use super::{format_crashes, last_crash};
use crate::error_chain::cut;
use crate::k8s::labels::APPLY_NOW;
use crate::server::hang::{Hang, RESTART_AFTER};
use crate::server::observe::{Observed, server_status};
use validate::CheckedServer;

/// The annotations by which a user requests something that needs a running server.
const REQUESTS: [&str; 4] = [APPLY_NOW, APPLY, ROLLBACK_TO, RESTORE_FROM];
/// Maximum length of a request in the status.
const MAX_REQUEST_LENGTH: usize = 128;

/// The crash status of a stopped server. If it has not been scaled down yet, the stop is valid only as long as nothing has changed since.
/// The operator may have died before it deleted the pod, and the server may have run for days. A user may also have scaled the
/// `StatefulSet`. In these cases crashes are counted as usual.
pub(crate) fn active_stop(before: &PaperMCServerStatus, observed: &Observed) -> Option<CrashStatus> {
    let crashes = before.crashes.clone().filter(|crashes| crashes.stopped.is_some())?;
    // A `StatefulSet` that has to be recreated is created without a pod.
    let is_scaled =
        observed.stateful_set_view.map_or(observed.pod.is_none(), |stateful_set| stateful_set.scaled_to_zero);
    let is_unchanged = || {
        observed.pod.as_ref().is_some_and(|pod| is_waiting_since(pod, &crashes) || still_hangs(pod, observed, &crashes))
    };
    (is_scaled || is_unchanged()).then_some(crashes)
}

/// Whether this is the pod of these crashes and has not been started since the last of them.
fn is_waiting_since(pod: &Pod, crashes: &CrashStatus) -> bool {
    let ended = unrestarted_crash(pod).and_then(|ended| ended.finished_at.as_ref()).map(|ended| ended.0);
    pod.metadata.uid.as_ref() == Some(&crashes.pod) && ended.is_some() && ended == crashes.at.last().copied()
}

/// Whether this is the pod of these crashes, and its server hangs.
fn still_hangs(pod: &Pod, observed: &Observed, crashes: &CrashStatus) -> bool {
    let hang = observed.reply.report.as_deref().and_then(Hang::from_report);
    pod.metadata.uid.as_ref() == Some(&crashes.pod) && hang.is_some_and(|hang| RESTART_AFTER <= hang.lasts)
}

/// The server with 0 replicas while it is stopped.
pub(crate) fn scaled_down_if_stopped(
    mut server: CheckedServer,
    before: &PaperMCServerStatus,
    observed: &Observed,
) -> CheckedServer {
    if active_stop(before, observed).is_some() {
        server.pod.replicas = 0;
    }
    server
}

/// Whether a user has started the server since the stop: by a changed spec, or by a request that was not there before. The clocks of users
/// and operator do not matter for that.
pub(crate) fn is_restart_requested(server: &PaperMCServer, before: &PaperMCServerStatus) -> bool {
    let Some(stopped) = before.crashes.as_ref().and_then(|crashes| crashes.stopped.as_ref()) else { return false };
    let is_new = |request: &String| !stopped.requests.contains(request);
    generation_of(server) != stopped.generation || user_requests(server).iter().any(is_new)
}

pub(crate) fn generation_of(server: &PaperMCServer) -> i64 {
    server.metadata.generation.unwrap_or_default()
}

/// The requests as written, without empty ones.
pub(crate) fn user_requests(server: &PaperMCServer) -> Vec<String> {
    let written = |name: &&str| {
        let value = server.annotations().get(*name)?.trim();
        (!value.is_empty()).then(|| cut(&format!("{name}={value}"), MAX_REQUEST_LENGTH))
    };
    REQUESTS.iter().filter_map(written).collect()
}

/// How the process exited, if it crashed and the kubelet has not restarted it yet. No player can be online.
pub(crate) fn unrestarted_crash(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let state = server_status(pod)?.state.as_ref()?;
    let is_down = state.running.is_none() && (state.waiting.is_some() || state.terminated.is_some());
    last_crash(pod).filter(|_| is_down)
}

/// Whether the agent has seen the server answer after this exit. Both instants are from the clock of one node.
pub(crate) fn is_up_since(report: &AgentReport, ended: &ContainerStateTerminated) -> bool {
    let Server::Up { since, .. } = &report.server else { return false };
    ended.finished_at.as_ref().is_some_and(|at| at.0 < *since)
}

/// Whether nothing is in progress that the stop would interrupt. A user's request and an urgent update go first, because they may be the
/// fix. The kubelet knows before the agent that the process has exited, so a server that is at rest according to the agent counts, too.
pub(crate) fn allows_stop(step: Step) -> bool {
    matches!(
        step,
        Step::UpToDate
            | Step::Wait(
                WaitingOn::Window { .. }
                    | WaitingOn::Blocked { .. }
                    | WaitingOn::BelowFloor { .. }
                    | WaitingOn::NoImage
                    | WaitingOn::ServerDown
            )
    )
}

/// The message: since when and why the server is stopped, and how to start it again. `None` if it is not stopped.
pub(crate) fn stopped_message(server: &CheckedServer, crashes: &CrashStatus) -> Option<String> {
    let CrashLoopStop { at, last, generation: _, requests: _ } = crashes.stopped.as_ref()?;
    let CheckedServer { namespace, name, .. } = server;
    let ends = format_crashes(crashes);
    Some(format!(
        "{ends} within an hour, last with {last}. It has been stopped since {at} (`spec.onCrashLoop: Stop`). Its \
        volume is unchanged: see `logs` and `crash-reports` there. It starts again when its spec changes, also by \
        `kubectl scale` to 0 and to 1. `kubectl -n {namespace} annotate papermcserver {name} --overwrite \
        {APPLY_NOW}=\"$(date +%s)\"` starts it with the update that waits."
    ))
}

#[cfg(test)]
mod tests;
