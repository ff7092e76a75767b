//! Pure. Determines which scheduled restart is due for the running server, and the next one.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use scheduler::observation::{Goal, Observation, RestartDue};
use scheduler::rollout::will_replace_restart;

use super::observe::server_status;
use validate::CheckedServer;

/// The scheduled restarts of one server at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ScheduledRestarts {
    /// The restart that is due.
    pub(crate) due: Option<RestartDue>,
    /// The next scheduled restart. `None` if there is none, `spec.suspend` is true or no server runs.
    pub(crate) next: Option<Timestamp>,
    /// An update that begins no later than this replaces that restart.
    pub(crate) next_gives_way_until: Option<Timestamp>,
}

impl ScheduledRestarts {
    /// The restarts of this server in this pod. Approval does not matter, because no version changes.
    pub(crate) fn new(server: &CheckedServer, pod: Option<&Pod>, now: Timestamp) -> Self {
        let Some(restart) = server.players.restart.as_ref().filter(|_| !server.updates.suspended) else {
            return Self::default();
        };
        let Some(started) = pod.and_then(process_started_at) else { return Self::default() };
        let windows = &server.updates.windows;
        let due = windows.due_restart(&restart.restarts, started, now).map(|found| RestartDue {
            due: found.due,
            until: found.until,
            policy: restart.policy,
            only_empty: restart.only_empty,
            yields_until: found.yields_until,
        });
        let next = windows.next_restart(&restart.restarts, started, now);
        Self { due, next, next_gives_way_until: next.map(|next| restart.restarts.yields_until(started, next)) }
    }

    /// When the server restarts next: with the update that waits for a window opening at `opens`, or on schedule.
    pub(crate) fn next_restart(
        &self,
        goal: &Goal,
        observation: &Observation,
        opens: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let due = self.due.map(|due| (due.due, due.yields_until));
        let (scheduled, until) = due.or_else(|| self.next.zip(self.next_gives_way_until))?;
        let with_the_update =
            opens.filter(|opens| scheduled <= *opens && will_replace_restart(goal, observation, Some(*opens), until));
        with_the_update.or(Some(scheduled))
    }
}

/// When the server's process started. A server that was restarted in the game is as fresh as a new pod. The instant is not before the
/// creation of the pod, which the API server sets, because the clock of a node may be wrong. `None` if it does not run.
pub(super) fn process_started_at(pod: &Pod) -> Option<Timestamp> {
    let made = pod.metadata.creation_timestamp.as_ref()?.0;
    let running = server_status(pod)?.state.as_ref()?.running.as_ref()?;
    Some(running.started_at.as_ref()?.0.max(made))
}

#[cfg(test)]
mod tests;
