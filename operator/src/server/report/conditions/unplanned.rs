//! Pure. Builds the conditions of a server after a pass without a plan.

use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{AGENT_REFUSES, build_conditions};
use crate::error_chain::cut;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::report::displaced_jars::JARS_SET_ASIDE;
use crate::server::report::status::has_come;
use crate::server::report::world_damage::WORLD_DAMAGED;
use crate::server::report::{LONGEST_MESSAGE, PassBlocked, PassReport, condition};

/// The conditions if no plan was possible. The running server is unchanged, and `Ready` keeps its last value.
pub(in super::super) fn build_trouble(
    server: &PaperMCServer,
    why: &PassBlocked,
    on_trial: bool,
    now: Timestamp,
    before: &[Condition],
) -> Vec<Condition> {
    let is_old = |old: &&Condition| old.type_ != why.of && !(on_trial && old.type_ == "Updating");
    let mut conditions: Vec<Condition> = before.iter().filter(is_old).cloned().collect();
    if !conditions.iter().any(|old| old.type_ == "Ready") {
        let message = cut(&why.message, LONGEST_MESSAGE);
        conditions.push(condition(server, "Ready", Some(false), why.reason, message, now, before));
    }
    conditions.push(why.condition(server, now, before));
    if on_trial {
        // The last message contains an instant that will pass without any effect.
        let what = "a set is on trial: its proof, and a roll-back if it fails, wait until this is mended";
        let words = cut(&format!("{what}: {}", why.message), LONGEST_MESSAGE);
        conditions.push(condition(server, "Updating", Some(true), "RolloutPaused", words, now, before));
    }
    conditions
}

/// Conditions that describe the running server, and are updated even without a plan.
const OF_THE_SERVER: [&str; 8] =
    ["Ready", "Updating", "Drifted", "RconExposed", AGENT_REFUSES, JARS_SET_ASIDE, CRASH_LOOP, WORLD_DAMAGED];

/// The conditions if no plan was possible and a rollout continues. Conditions of the running server are updated, and those of the plan
/// remain.
pub(in super::super) fn build_on_trial(
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    why: &PassBlocked,
    before: &PaperMCServerStatus,
) -> Vec<Condition> {
    let is_of_the_server = |it: &Condition| OF_THE_SERVER.contains(&it.type_.as_str());
    let has_come = has_come(report, before);
    // Whether there are more updates is unknown now.
    let stands =
        |it: &&Condition| !is_of_the_server(it) && it.type_ != why.of && !(has_come && it.type_ == "UpdateAvailable");
    let mut conditions: Vec<Condition> = before.conditions.iter().filter(stands).cloned().collect();
    conditions.extend(build_conditions(server, checked, report, before).into_iter().filter(is_of_the_server));
    conditions.push(why.condition(server, report.now, &before.conditions));
    conditions
}

/// The conditions after a failed pass. Only `Reconciled` changes.
pub(in super::super) fn build_failure(
    server: &PaperMCServer,
    message: &str,
    now: Timestamp,
    before: &[Condition],
) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = before.iter().filter(|old| old.type_ != "Reconciled").cloned().collect();
    conditions.push(condition(server, "Reconciled", Some(false), "Failed", message.to_owned(), now, before));
    conditions
}
