//! Pure. Builds the conditions of a server after a pass without a plan.

use crds::PaperMCServer;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::build_conditions;
use crate::error_chain::cut;
use crate::k8s::ownership::NameConflict;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::plan::PassInput;
use crate::server::report::PassBlocked;
use crate::server::report::agent_rejection::AGENT_REJECTS;
use crate::server::report::context::{MAX_MESSAGE_LENGTH, PassReport, condition};
use crate::server::report::displaced_jars::JARS_DISPLACED;
use crate::server::report::lock_rejection::LOCK_REJECTED;
use crate::server::report::plugins_enabled::PLUGINS_ENABLED;
use crate::server::report::status::is_update_done;
use crate::server::report::world_damage::WORLD_DAMAGED;

/// The conditions if no plan was possible. The running server is unchanged, and `Ready` keeps its last value.
pub(in super::super) fn build_blocked(
    server: &PaperMCServer,
    why: &PassBlocked,
    is_rolling_out: bool,
    now: Timestamp,
    before: &[Condition],
) -> Vec<Condition> {
    // The pass has found no conflict before it ended.
    let is_replaced = |of: &str| of == why.condition_type || of == NAME_CONFLICT || is_rolling_out && of == "Updating";
    let is_old = |old: &&Condition| !is_replaced(&old.type_);
    let mut conditions: Vec<Condition> = before.iter().filter(is_old).cloned().collect();
    if !conditions.iter().any(|old| old.type_ == "Ready") {
        let message = cut(&why.message, MAX_MESSAGE_LENGTH);
        conditions.push(condition(server, "Ready", Some(false), why.reason, message, now, before));
    }
    conditions.push(why.condition(server, now, before));
    if is_rolling_out {
        // The last message contains an instant that will pass without any effect.
        let reason =
            "A rollout is in progress. Its verification, and a roll-back if it fails, wait until this is fixed";
        let rollout_message = cut(&format!("{reason}: {}", why.message), MAX_MESSAGE_LENGTH);
        conditions.push(condition(server, "Updating", Some(true), "RolloutPaused", rollout_message, now, before));
    }
    conditions
}

/// Conditions that describe the running server, and are updated even without a plan.
const SERVER_CONDITIONS: [&str; 10] = [
    "Ready",
    "Updating",
    "Drifted",
    "RconExposed",
    LOCK_REJECTED,
    AGENT_REJECTS,
    PLUGINS_ENABLED,
    JARS_DISPLACED,
    CRASH_LOOP,
    WORLD_DAMAGED,
];

/// The conditions if no plan was possible and a rollout continues. Conditions of the running server are updated, and those of the plan
/// remain.
pub(in super::super) fn build_rollout(report: &PassReport<'_>, why: &PassBlocked) -> Vec<Condition> {
    let PassInput { server, before, now, .. } = report.pass;
    let is_of_the_server = |condition: &Condition| SERVER_CONDITIONS.contains(&condition.type_.as_str());
    let is_done = is_update_done(report, before);
    // Whether there are more updates is unknown now.
    let kept_conditions = |condition: &&Condition| {
        !is_of_the_server(condition)
            && condition.type_ != why.condition_type
            && !(is_done && condition.type_ == "UpdateAvailable")
    };
    let mut conditions: Vec<Condition> = before.conditions.iter().filter(kept_conditions).cloned().collect();
    conditions.extend(build_conditions(report).into_iter().filter(is_of_the_server));
    conditions.push(why.condition(server, now, &before.conditions));
    conditions
}

/// Whether an object of somebody else has the name of an object of the server. The reason is its kind.
pub(in super::super) const NAME_CONFLICT: &str = "NameConflict";

/// The conditions after a failed pass. Only `Reconciled` and `NameConflict` change.
pub(in super::super) fn build_failure(
    server: &PaperMCServer,
    message: &str,
    name_conflict: Option<&NameConflict>,
    now: Timestamp,
    before: &[Condition],
) -> Vec<Condition> {
    let is_kept =
        |old: &&Condition| old.type_ != "Reconciled" && !(name_conflict.is_some() && old.type_ == NAME_CONFLICT);
    let mut conditions: Vec<Condition> = before.iter().filter(is_kept).cloned().collect();
    let new = |type_, status, reason: &str, text: &str| {
        condition(server, type_, Some(status), reason, text.to_owned(), now, before)
    };
    conditions.push(new("Reconciled", false, "Failed", message));
    if let Some(conflict) = name_conflict {
        let text = cut(&conflict.message, MAX_MESSAGE_LENGTH);
        conditions.push(new(NAME_CONFLICT, true, &conflict.kind, &text));
        if !conditions.iter().any(|old| old.type_ == "Ready") {
            conditions.push(new("Ready", false, NAME_CONFLICT, &text));
        }
    }
    conditions
}
