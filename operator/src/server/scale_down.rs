//! Pure. Plans the stop of a running server that a user has scaled to zero: as before a restart, its players are warned or awaited, and its
//! worlds are saved.
//!
//! Only the stable revision is stopped in this way. A server that starts, has crashed or is being updated is scaled at once: nobody is online,
//! or an admin may scale it down because it never becomes stable.

use crds::paper_mc_server::HandledRequests;
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Partition, PodPhase, RestartDue};

use super::observe::Observed;
use crate::clock::truncate_to_second;
use validate::CheckedServer;

/// Whether a user has scaled this server to zero, and players are warned before it stops.
pub(crate) fn is_announced(server: &PaperMCServer, observed: &Observed) -> bool {
    let Some((stateful_set, stable)) = observed.stateful_set_view.zip(observed.facts.settled) else { return false };
    let runs_stable = stateful_set.partition == Partition::Closed && observed.pod_revision == Some(stable.revision);
    // Only the phase counts here, and a pod that has been Ready has no deadline for its start.
    let is_up = observed.pod_view(SignedDuration::ZERO).is_some_and(|pod| pod.phase == PodPhase::Up);
    server.spec.replicas == 0 && !stateful_set.scaled_to_zero && runs_stable && is_up
}

/// The stop that is due. It counts as a restart, so that the rules for players are the same.
pub(crate) fn scale_down(
    server: &PaperMCServer,
    checked: &CheckedServer,
    observed: &Observed,
    before: &PaperMCServerStatus,
) -> Option<RestartDue> {
    let due = before.last_handled.as_ref()?.scaled_down_at.filter(|_| is_announced(server, observed))?;
    let policy = checked.players.policy;
    // It happens at some time, and no update replaces it.
    Some(RestartDue { due, until: Timestamp::MAX, policy, only_empty: false, yields_until: due })
}

/// The record of a new request. `None` if there is none, or if it is recorded.
pub(crate) fn to_record(
    server: &PaperMCServer,
    observed: &Observed,
    before: &PaperMCServerStatus,
    now: Timestamp,
) -> Option<HandledRequests> {
    let handled = before.last_handled.clone().unwrap_or_default();
    let is_new = is_announced(server, observed) && handled.scaled_down_at.is_none();
    is_new.then(|| HandledRequests { scaled_down_at: Some(truncate_to_second(now)), ..handled })
}
