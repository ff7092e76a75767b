//! Pure. Builds the Events of a pass.

use crds::PaperMCServerStatus;
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Disruption, Players};
use scheduler::rollout::Step;

use super::agent_rejection::{AGENT_REJECTS, agent_rejection};
use super::context::PassReport;
use super::downtime_estimate::{DowntimeEstimate, downtime_suffix};
use super::failure::failure_reason;
use super::format::format_time;
use super::plugins_enabled::RunningPlugins;
use super::stop_times::{disconnected_players, downtime};
use super::waiting::COUNTDOWN_WHILE_EMPTY;
use super::{
    backup, backup_schedule, displaced_jars, last_stop, lock_rejection, pending, plugin_data, responsiveness,
    seed_volume, short_reason, status, update_blocked, volume_rejected, world_damage,
};
use crate::k8s::events::EventText;
use crate::server::act::outcome::{MarkedStable, StepOutcome};
use crate::server::constraints;
use crate::server::pinned_set::PinnedSet;
use crate::server::requested_restore::PendingRestore;
use validate::CheckedServer;

/// All Events of a complete pass.
pub(super) fn build_events(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Vec<EventText> {
    let mut events = Vec::new();
    let plan = report.plan;
    let available_update = before
        .available_update
        .as_ref()
        .filter(|available_update| available_update.digest == plan.target.record.files.lock);
    if plan.is_update() && !matches!(report.step, Step::Wait(scheduler::rollout::WaitingOn::Blocked { .. })) {
        if available_update.is_none() {
            events.push(normal("UpdatePlanned", planned_message(server, report, before)));
        }
        if plan.observation.staged && available_update.is_some_and(|available_update| !available_update.staged) {
            events.push(normal("UpdateStaged", staged_message(report)));
        }
    }
    events.extend(update_blocked::event(plan, before));
    events.extend(refused_requests(server, report));
    events.extend(constraints::events(report));
    events.extend(cancelled(report, before));
    events.extend(seed_volume::event(server, report, before));
    events.extend(backup_schedule::event(server, before));
    events.extend(server_events(server, report, before));
    events
}

/// Events about the running server and the step, independent of the plan.
pub(super) fn server_events(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Vec<EventText> {
    let mut events: Vec<EventText> = agent_rejection_event(report).into_iter().collect();
    events.extend(lock_rejection::event(report, &before.conditions));
    events.extend(responsiveness::event(report));
    events.extend(pending::event(report));
    events.extend(volume_rejected::event(report, before));
    events.extend(backup::events(server, report, before));
    events.extend(world_damage::event(server, report, before));
    events.extend(plugin_data::events(report, before));
    events.extend(displaced_jars::event(report.pass.observed.reply.report.as_deref(), &before.conditions));
    events.extend(last_stop::event(report, before));
    events.extend(verified_later(report, before));
    events.extend(step_event(server, report, before));
    events
}

/// Users' requests that have no effect.
fn refused_requests(server: &CheckedServer, report: &PassReport<'_>) -> impl Iterator<Item = EventText> + use<> {
    let plan = report.plan;
    let refused = plan.constraints.apply_request.rejected_at.map(|rejected_at| {
        let format_time = |at| format_time(at, &server.updates.zone, report.pass.now);
        let requested_at = format_time(rejected_at);
        let text = match &plan.next_window.blackout {
            Some((name, until)) => format!(
                "The request of {requested_at} to apply now is refused, because blackout `{name}` lasts until {}. \
                Repeat it then, or change `spec.updateSchedule.blackouts` and repeat it.",
                format_time(*until)
            ),
            None => format!(
                "A blackout was active after the request of {requested_at} to apply now. Repeat the \
            request."
            ),
        };
        warning("RequestRefused", text)
    });
    let another = plan.constraints.approval.requests_other_set.as_ref().map(|digest| {
        let planned = &plan.target.record.files.lock;
        let text = format!("`nightshift.dev/apply` names the version set {digest}, but {planned} is planned.");
        warning("RequestRefused", text)
    });
    let partial_refused = plan.selection.partial.refusal().map(|text| warning("RequestRefused", text.to_owned()));
    let backup_refused = plan.tasks.backups.refused.clone().map(|text| warning("RequestRefused", text));
    let restart_refused = plan.tasks.restart_request.refused.clone().map(|text| warning("RequestRefused", text));
    refused.or(partial_refused).or(another).or(backup_refused).into_iter().chain(restart_refused)
}

/// The operator can neither count nor warn players until a user has fixed the problem.
fn agent_rejection_event(report: &PassReport<'_>) -> Option<EventText> {
    agent_rejection(report).map(|(_, message)| warning(AGENT_REJECTS, message.to_owned()))
}

/// A player joined during the countdown of an empty server, or an announced stop was cancelled.
fn cancelled(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let was_counting = before
        .conditions
        .iter()
        .any(|condition| condition.type_ == "Updating" && condition.reason == COUNTDOWN_WHILE_EMPTY);
    let plan = report.plan;
    let is_cancelled = was_counting && plan.is_update() && !plan.gate.is_open();
    let is_delayed = !plan.constraints.delaying.is_empty() || plan.next_window.blackout.is_some();
    let why = if is_cancelled && !is_delayed {
        "a player joined, or the players could not be counted"
    } else if is_cancelled || *report.done == StepOutcome::AnnouncementCancelled {
        "the announced stop does not take place now"
    } else {
        return None;
    };
    let is_restart = matches!(report.step, Step::CancelAnnouncement { disruption: Disruption::Restart { .. }, .. });
    let reason = if is_restart { "RestartCancelled" } else { "UpdateCancelled" };
    let at = report.pass.now;
    Some(normal(reason, format!("Cancelled in its countdown at {at}: {why}. No change was made.")))
}

fn planned_message(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> String {
    let downtime = downtime_suffix(DowntimeEstimate::new(server, report, before).message().as_deref());
    let changes = format!("{}{downtime}", report.plan.target.describe_changes());
    if matches!(report.plan.selection.pinned_set, Some(PinnedSet::RollbackTo { .. }))
        && !report.plan.constraints.approval.needs_approval
    {
        return format!("Requested: {changes}");
    }
    if let Some(wait_reason) = short_reason::wait_reason(report) {
        return format!("{wait_reason}: {changes}");
    }
    let opens =
        report.plan.next_window.next_opening.map(|opens| format_time(opens, &server.updates.zone, report.pass.now));
    match report.plan.opportunistic.format_when(opens) {
        _ if report.plan.gate.is_open() => format!("Now: {changes}"),
        Some(when) => format!("{when}: {changes}"),
        None if report.plan.next_window.is_suspended => format!("Suspended: {changes}"),
        None => format!("No window opens automatically: {changes}"),
    }
}

fn staged_message(report: &PassReport<'_>) -> String {
    let files = &report.plan.target.record.files;
    let all = || std::iter::once(&files.server).chain(&files.support).chain(&files.plugins);
    let bytes: u64 = all().filter_map(|file| file.size).sum();
    format!("Staged and verified {} files ({} kB).", all().count(), bytes.div_ceil(1_000))
}

fn step_event(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    Some(match report.done {
        StepOutcome::Created => normal("ServerCreated", "Created the StatefulSet. The server starts.".to_owned()),
        StepOutcome::Announced { notice, is_cut_short } => {
            normal("PlayersWarned", warned_message(report, *notice, *is_cut_short))
        }
        StepOutcome::Reannounced { left } => {
            let left = scheduler::announcement::format_duration(*left);
            normal(
                "CountdownResumed",
                format!("The agent restarted during the countdown and continues it. Time left: {left}."),
            )
        }
        StepOutcome::Saved { confirmed: true, took_ms, problem: _ } => {
            normal("WorldSaved", format!("Saved the world in {}.{} s.", took_ms / 1_000, took_ms % 1_000 / 100))
        }
        StepOutcome::Saved { confirmed: false, took_ms: _, problem } => {
            // The condition says that the save is retried. A further refusal is not reported again.
            if before.conditions.iter().any(|condition| condition.reason == "SaveRefused") {
                return None;
            }
            warning("SaveRefused", problem.clone().unwrap_or_else(|| "The server did not confirm its save.".to_owned()))
        }
        StepOutcome::Committed { agent_unreachable } => {
            let agent_note = if *agent_unreachable { "The agent was unreachable. " } else { "" };
            let why_now = report.plan.opportunistic.changes_prefix();
            normal("UpdateStarted", format!("{agent_note}{why_now}{}", report.plan.target.describe_changes()))
        }
        StepOutcome::MarkedFailed => warning("UpdateFailed", failure_reason(report)),
        StepOutcome::RestoreScheduled => warning("RestoreScheduled", restore_requested_message(report)),
        StepOutcome::PluginDataRestoreRequested => normal("RestoreScheduled", plugin_data::restore_effect()),
        StepOutcome::RolledBack { .. } => warning("UpdateRolledBack", rolled_back_message(report, before)),
        // A set that is kept without verification is reported as such. A first start has no roll-back, whatever the result of its
        // verification is.
        StepOutcome::MarkedStable(MarkedStable::First | MarkedStable::Update) | StepOutcome::Restarted if report.plan.verification.unverified_reason().is_some() => {
            unverified(report)
        }
        StepOutcome::MarkedStable(MarkedStable::First) => normal("ServerReady", running_message(report, true)),
        StepOutcome::MarkedStable(MarkedStable::Update) => normal("UpdateApplied", running_message(report, false)),
        StepOutcome::MarkedStable(MarkedStable::Previous) => {
            normal("ServerReady", format!("The previous version set runs again. {}", running_message(report, false)))
        }
        StepOutcome::Restarting { due, agent_unreachable } => {
            normal("RestartStarted", restart_message(server, report, *due, *agent_unreachable))
        }
        StepOutcome::Restarted => normal("Restarted", running_message(report, false)),
        StepOutcome::ScaledToZero { agent_unreachable } => {
            let agent_note = if *agent_unreachable { " The agent was unreachable." } else { "" };
            normal("ScaledToZero", format!("The server stops, as `spec.replicas: 0` says.{agent_note}"))
        }
        // `constraints::drain` builds these Events.
        StepOutcome::DrainBegun
        | StepOutcome::DrainEnded
        // `cancelled` builds this Event, because it needs the previous status.
        | StepOutcome::AnnouncementCancelled
        | StepOutcome::StagingRequested
        | StepOutcome::TemplateWritten
        | StepOutcome::Restored
        | StepOutcome::Nothing => return None,
    })
}

fn warned_message(report: &PassReport<'_>, notice: SignedDuration, is_cut_short: bool) -> String {
    let left = scheduler::announcement::format_duration(notice);
    let is_drain = matches!(report.step, Step::Announce { disruption: Disruption::Drain { .. }, .. });
    let subject = match &report.plan.tasks.scale_down {
        _ if is_drain => "the server may be evicted",
        Some(_) => "the server stops",
        None => "restart",
    };
    match report.plan.observation.players {
        _ if is_cut_short => format!("The last player has left: {subject} in {left}."),
        Players::Some(1) => format!("Warned 1 player: {subject} in {left}."),
        Players::Some(count) => format!("Warned {count} players: {subject} in {left}."),
        Players::Nobody => format!("No players are online: {subject} in {left}."),
        Players::Unknown { .. } | Players::Hidden => format!("Players could not be counted: {subject} in {left}."),
    }
}

fn restart_message(server: &CheckedServer, report: &PassReport<'_>, due: Timestamp, agent_unreachable: bool) -> String {
    let agent_note = if agent_unreachable { ". The agent was unreachable" } else { "" };
    let restore = report.plan.tasks.restores.due.as_ref().filter(|restore| restore.restart.due == due);
    let is_requested = report.plan.tasks.restart_request.due.is_some_and(|restart| restart.due == due);
    let origin = if is_requested { "requested at" } else { "scheduled for" };
    let hang = report.plan.constraints.hang.filter(|hang| hang.due == Some(due));
    let purpose = match (restore, hang) {
        (Some(restore), _) => restore_purpose(restore),
        (None, Some(hang)) => format!("the server hangs since {}. Its players could not be warned", hang.since),
        (None, None) => {
            format!("{origin} {}, without changes", format_time(due, &server.updates.zone, report.pass.now))
        }
    };
    format!("Restart: {purpose}{agent_note}.")
}

/// The Event for a set that was kept without verification.
fn unverified(report: &PassReport<'_>) -> EventText {
    let first = matches!(report.done, StepOutcome::MarkedStable(MarkedStable::First));
    let problem = report.plan.verification.unverified_reason().unwrap_or_default();
    warning("UpdateUnverified", format!("Kept without verification: {problem}. {}", running_message(report, first)))
}

/// The Event for a set that is verified after it was kept unverified.
fn verified_later(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let waited = before.history.first().is_some_and(|newest| newest.unverified);
    let is_verified_now = waited && status::passes_verification(report);
    is_verified_now.then(|| {
        normal(
            "UpdateVerified",
            format!("Verified after it was kept without verification. {}", running_message(report, true)),
        )
    })
}

fn rolled_back_message(report: &PassReport<'_>, before: &PaperMCServerStatus) -> String {
    let update = before.update.as_deref().unwrap_or("the update");
    let is_on_request = matches!(report.step, Step::RollBack { requested_by_user: true, .. });
    let restore = report.plan.tasks.restores.due.as_ref().filter(|_| is_on_request);
    let restore_text =
        restore.map_or_else(String::new, |restore| format!(", {}, as requested", restore_purpose(restore)));
    format!(
        "Rolling back to the previous version set{restore_text}. This update failed: {update}. It is not tried \
    again until it changes."
    )
}

/// The restore that was requested, as text.
fn restore_requested_message(report: &PassReport<'_>) -> String {
    let is_on_request = matches!(report.step, Step::RequestRestore { requested_by_user: true, .. });
    match report.plan.tasks.restores.due.as_ref().filter(|_| is_on_request) {
        Some(restore) => {
            format!("The init container tries again within minutes, {}, as requested.", restore_purpose(restore))
        }
        None => backup::restore_effect(report),
    }
}

/// For example `to restore the worlds of the backup …`.
fn restore_purpose(restore: &PendingRestore) -> String {
    let backup = &restore.request.backup;
    if restore.request.everything {
        format!("to restore all contents of the backup {backup}")
    } else {
        format!("to restore the worlds of the backup {backup}")
    }
}

/// For example `Running 1.21.11-132 with 6 plugins enabled. Downtime: 21 s, 7 players were online.`.
fn running_message(report: &PassReport<'_>, first: bool) -> String {
    let agent = report.pass.observed.reply.report.as_deref();
    let version =
        report.pass.observed.pod_lock.as_ref().map(|record| format!("{}-{}", record.lock.minecraft, record.lock.build));
    let plugins = RunningPlugins::of_pod(report.pass.observed);
    let plugins = plugins.map_or_else(String::new, |plugins| format!(" with {}", plugins.count_text()));
    let text = format!("Running {}{plugins}.", version.unwrap_or_default());
    match downtime(agent) {
        Some(down) if !first => {
            format!("{text} Downtime: {} s{}.", down.as_secs(), players_text(disconnected_players(agent)))
        }
        Some(_) | None => text,
    }
}

fn players_text(players: Option<u32>) -> String {
    match players {
        None => String::new(),
        Some(0) => ", no players were online".to_owned(),
        Some(1) => ", 1 player was online".to_owned(),
        Some(count) => format!(", {count} players were online"),
    }
}

fn normal(reason: &'static str, text: String) -> EventText {
    EventText { reason, warning: false, text }
}

fn warning(reason: &'static str, text: String) -> EventText {
    EventText { reason, warning: true, text }
}

#[cfg(test)]
mod tests;
