//! Pure. Holds whether the planned update may start outside of windows (`spec.updateSchedule.opportunistic`), and its texts. The rule is
//! [`scheduler::rollout::opportunity`], and `plan/opportunistic.rs` applies it.

use jiff::{SignedDuration, Timestamp};
use scheduler::announcement::format_duration;
use scheduler::maintenance::Gate;
use scheduler::rollout::OpportunityReason;

use super::changes::ServerChange;
use validate::CheckedServer;

/// Minimum interval between two passes that only check whether players have left.
const MIN_CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Whether the planned update may be applied outside of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpportunisticState {
    /// How long the server must have been empty. `None` if the update is applied in windows only.
    pub(crate) empty_for: Option<SignedDuration>,
    /// Whether that is because it contains a newer Minecraft version.
    pub(crate) is_one_way: bool,
    /// Why the gate is open now without an open window.
    pub(crate) reason: Option<OpportunityReason>,
    /// The gate without the opportunity.
    pub(crate) normal_gate: Gate,
}

impl OpportunisticState {
    /// For a plan that waits for its gate.
    pub(crate) fn none(gate: Gate) -> Self {
        Self { empty_for: None, is_one_way: false, reason: None, normal_gate: gate }
    }

    /// For the plan of this server. `gate` is the gate without an opportunity.
    pub(crate) fn new(server: &CheckedServer, changes: &[ServerChange], gate: Gate) -> Self {
        let empty_for = server.updates.opportunistic.filter(|_| server.updates_automatically());
        let is_one_way = changes.iter().any(|change| change.one_way);
        let is_restricted = empty_for.is_some() && is_one_way;
        Self { empty_for: empty_for.filter(|_| !is_one_way), is_one_way: is_restricted, ..Self::none(gate) }
    }

    /// When the server may have been empty for long enough, or the next check is due. `None` if the update does not wait for an empty
    /// server.
    pub(crate) fn next_check(&self, empty_since: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let empty_for = self.empty_for.filter(|_| self.reason.is_none())?;
        let from = empty_since.unwrap_or(now).checked_add(empty_for).unwrap_or(Timestamp::MAX);
        // The server seemed empty for long enough, but its player list disagreed. The list is requested again after the same time.
        let from = if from > now { from } else { now.checked_add(empty_for).unwrap_or(Timestamp::MAX) };
        Some(from.max(now + MIN_CHECK_INTERVAL))
    }

    /// When an update is applied, as text: in the given window, or when the server is empty.
    pub(crate) fn format_when(&self, window: Option<String>) -> Option<String> {
        match (self.empty_for, window) {
            (None, window) => window,
            (Some(_), Some(window)) => Some(format!("{window} or when empty")),
            (Some(_), None) => Some("when empty".to_owned()),
        }
    }

    /// Text to append to the message about the window.
    pub(crate) fn window_suffix(&self) -> String {
        match self.empty_for {
            Some(empty_for) => {
                format!(" It is also applied when no players have been online for {}.", format_duration(empty_for))
            }
            None if self.is_one_way => {
                " A newer Minecraft is applied in a window only (`updateSchedule.opportunistic`).".to_owned()
            }
            None => String::new(),
        }
    }

    /// Why an update is applied outside of windows, as a prefix of its changes.
    pub(crate) fn changes_prefix(&self) -> String {
        match self.reason {
            Some(OpportunityReason::ScaledToZero) => "While the server is scaled to zero: ".to_owned(),
            Some(OpportunityReason::Empty) => {
                format!("No players have been online for {}: ", format_duration(self.empty_for.unwrap_or_default()))
            }
            Some(OpportunityReason::Restart) => "With the scheduled restart: ".to_owned(),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
