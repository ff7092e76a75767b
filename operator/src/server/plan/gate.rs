//! Pure. Determines the gate of a pass: windows, blackouts, requests and urgent updates.

use crds::PaperMCServer;
use crds::paper_mc_server::{AvailableUpdate, HandledRequests};
use jiff::Timestamp;
use kube::ResourceExt;
use scheduler::maintenance::{Gate, Windows};
use scheduler::observation::{Announced, Disruption};

use crate::clock::truncate_to_second;
use crate::k8s::labels;
use crate::server::observe::Observed;
use crate::server::partial::PartialSelection;
use crate::server::request_time::parse_time;
use validate::CheckedServer;

/// The gate that an apply-now request opens, if the server has one that is valid. Blackouts override it.
///
/// A request is valid if it is at most five minutes old when first observed. The same pass records its acceptance in the status, so it
/// survives a restart of the operator.
pub(crate) fn manual_gate(
    server: &PaperMCServer,
    handled: Option<&HandledRequests>,
    windows: &Windows,
    now: Timestamp,
) -> Option<Gate> {
    let (requested_at, accepted) = manual_request(server, handled)?;
    windows.on_request(requested_at, accepted, now)
}

/// The instant of a request to apply an update now that would be valid without a blackout that is active now or has been since.
/// `set_requested_at` is the instant of a request for exactly the planned set.
pub(crate) fn refused_by_blackout(
    server: &PaperMCServer,
    handled: Option<&HandledRequests>,
    set_requested_at: Option<Timestamp>,
    windows: &Windows,
    now: Timestamp,
) -> Option<Timestamp> {
    let set_request = set_requested_at.map(|since| (since, true));
    let mut requests = manual_request(server, handled).into_iter().chain(set_request);
    let is_refused = |&(requested_at, accepted): &(Timestamp, bool)| {
        let counts = Gate::on_request(requested_at, accepted, now).is_some();
        counts && windows.on_request(requested_at, accepted, now).is_none()
    };
    requests.find(is_refused).map(|(requested_at, _)| requested_at)
}

/// The apply-now request that has not been handled yet, and whether it was accepted.
pub(crate) fn manual_request(server: &PaperMCServer, handled: Option<&HandledRequests>) -> Option<(Timestamp, bool)> {
    let value = server.annotations().get(labels::APPLY_NOW)?;
    if handled.and_then(|handled| handled.apply_now.as_ref()) == Some(value) {
        return None;
    }
    let accepted = handled.and_then(|handled| handled.apply_now_accepted.as_ref()) == Some(value);
    Some((requested_at(value)?, accepted))
}

/// Whether this request opens the gate. `opened_by` is the instant of the request that does, or `None` if a window does.
pub(crate) fn request_opens_gate(request: &str, gate: Gate, opened_by: Option<Timestamp>) -> bool {
    gate.is_open() && opened_by.is_some() && requested_at(request) == opened_by
}

/// Whether players count down to an update that was announced in the current window. A request then skips no delay: that could choose another
/// version set, whose countdown would begin anew.
pub(crate) fn is_announced_in_window(observed: &Observed, windows: &Windows, now: Timestamp) -> bool {
    let running = |announced: &Announced| Some(announced.pod) == observed.pod_uid() && !announced.is_expired(now);
    match observed.facts.announced.filter(running).map(|announced| announced.act) {
        Some(Disruption::Update { goal: _, window_opened_at }) => {
            windows.gate(now).opened_at() == Some(window_opened_at)
        }
        Some(Disruption::RollBack { .. } | Disruption::Restart { .. } | Disruption::Drain { .. }) | None => false,
    }
}

/// The instant of a request: unix seconds, followed by an optional scope.
pub(crate) fn requested_at(request: &str) -> Option<Timestamp> {
    let instant = request.split_once(';').map_or(request, |(instant, _)| instant);
    parse_time(instant)
}

/// The gate of this pass. `overriding_gate` is that of a user's request or of an urgent update. A request also overrides `spec.suspend`, which stops
/// automatic changes only.
pub(crate) fn gate(server: &CheckedServer, overriding_gate: Option<Gate>, now: Timestamp) -> Gate {
    if let Some(gate) = overriding_gate {
        return gate;
    }
    if !server.updates_automatically() {
        return Gate::Shut { opens: None };
    }
    server.updates.windows.gate(now)
}

/// The gate for an update that may start outside the server's windows. An urgent update may start from the instant it was found (`AvailableUpdate::found_at`).
/// While another revision is in rollout, the gate of that revision counts. A revision that was committed in a window is rolled back when
/// the window closes.
pub(crate) fn urgent_gate(
    windows: &Windows,
    partial: &PartialSelection,
    available_update: Option<&AvailableUpdate>,
    rolls_out_other: bool,
    now: Timestamp,
) -> Option<Gate> {
    let found_at = available_update.and_then(|available_update| available_update.found_at);
    let urgent = partial.urgent().filter(|_| !rolls_out_other)?;
    Some(urgent.gate(windows, truncate_to_second(found_at.unwrap_or(now)), now))
}

#[cfg(test)]
mod tests;
