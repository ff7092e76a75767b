//! Pure. Builds the Events of a pass.

use crds::PaperMCServerStatus;
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Disruption, Players};
use scheduler::protocol;
use scheduler::rollout::Step;

use super::conditions::{AGENT_REFUSES, COUNTDOWN_WHILE_EMPTY, agent_refuses};
use super::downtime_estimate::{DowntimeEstimate, behind};
use super::failure::why_it_failed;
use super::status::for_people;
use super::{
    PassReport, backup, backup_schedule, crash_loop, displaced_jars, drain, image_pull, is_open, last_stop,
    plugin_data, seed_volume, short_reason, status, update_blocked, world_damage,
};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::act::{MarkedStable, StepOutcome};
use crate::server::changes;
use crate::server::check::CheckedServer;
use crate::server::follows::FollowWait;
use crate::server::next_window::{SPOILT, SUSPENDED};
use crate::server::pinned_set::PinnedSet;
use crate::server::plan::Plan;
use crate::server::requested_restore::PendingRestore;
use crate::server::verify::count_enabled;

/// All Events of a complete pass.
pub(super) fn build_notes(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Vec<EventText> {
    let mut notes = Vec::new();
    let plan = report.plan;
    let known = before.available_update.as_ref().filter(|known| known.digest == plan.record.files.lock);
    if plan.is_update() && !matches!(report.step, Step::Wait(scheduler::rollout::WaitingOn::Held { .. })) {
        if known.is_none() {
            notes.push(normal("UpdatePlanned", planned(server, report, before)));
        }
        if plan.seen.staged && known.is_some_and(|known| !known.staged) {
            notes.push(normal("UpdateStaged", staged(report)));
        }
    }
    notes.extend(update_blocked::note(plan, before));
    notes.extend(of_the_schedule(server, report, before));
    notes.extend(called_off(report, before));
    notes.extend(seed_volume::notes(server, report, before));
    notes.extend(image_pull::note(report, before));
    notes.extend(drain::notes(server, report, before));
    notes.extend(crash_loop::note(server, report, before));
    notes.extend(backup_schedule::note(server, before));
    notes.extend(of_the_server(server, report, before));
    notes
}

/// Events about the running server and the step, independent of the plan.
pub(super) fn of_the_server(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Vec<EventText> {
    let mut notes: Vec<EventText> = refused_by_agent(report).into_iter().collect();
    notes.extend(backup::notes(server, report, before));
    notes.extend(world_damage::note(server, report, before));
    notes.extend(plugin_data::notes(report, before));
    notes.extend(displaced_jars::notes(report.seen.report.as_deref(), &before.conditions));
    notes.extend(last_stop::note(report, before));
    notes.extend(proven_later(report, before));
    notes.extend(of_step(server, report, before));
    notes
}

/// Events about the reasons for which an update waits.
fn of_the_schedule(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> impl Iterator<Item = EventText> {
    let outlook = &report.plan.outlook;
    let refused = report.plan.refused.map(|asked_at| {
        let people = |at| for_people(at, &server.zone, report.now);
        let asked = people(asked_at);
        let text = match &outlook.blackout {
            Some((name, until)) => format!(
                "the request of {asked} to apply now does not pass blackout `{name}`, which is on until {}: ask again \
                 then, or change `spec.updateSchedule.blackouts` and ask again",
                people(*until)
            ),
            None => format!("a blackout was on after the request of {asked} to apply now: ask again"),
        };
        warning("RequestRefused", text)
    });
    let plan = report.plan;
    let another = plan.consent.applies_another.as_ref().map(|digest| {
        let planned = &plan.record.files.lock;
        let text = format!("`nightshift.dev/apply` names the set {digest}, and what is planned is {planned}");
        warning("RequestRefused", text)
    });
    let unapproved = plan.consent.needs_approval.then(|| normal("ApprovalNeeded", approval_needed(server, plan)));
    let waits = plan.waits.as_ref().map(|waits| {
        let text = waits_in_words(waits, server, report.now);
        EventText { reason: "WaitingForLeaderServer", warning: waits.is_a_mistake(), text }
    });
    let was_suspended = before.conditions.iter().any(|condition| condition.type_ == "Suspended");
    let suspended = match (was_suspended, outlook.is_suspended) {
        (false, true) => Some(normal("Suspended", SUSPENDED.to_owned())),
        (true, false) => Some(resumed()),
        (true, true) | (false, false) => None,
    };
    let undone = of_the_way_back(server, report, before);
    let spoilt = outlook.is_spoilt.then(|| warning("NoUsableWindow", SPOILT.to_owned()));
    let not_alone = plan.alone.refusal().map(|text| warning("RequestRefused", text.to_owned()));
    let no_copy = plan.copies.refused.clone().map(|text| warning("RequestRefused", text));
    // Only one of them: the publisher remembers one text per reason, so two texts would alternate and be published in each pass.
    refused
        .or(not_alone)
        .or(another)
        .or(no_copy)
        .into_iter()
        .chain(unapproved)
        .chain(waits)
        .chain(undone)
        .chain(suspended)
        .chain(spoilt)
}

/// A suspension or pinned set has ended.
fn resumed() -> EventText {
    normal("Resumed", "updates are applied in their windows again".to_owned())
}

/// The operator can neither count nor warn players until a user has fixed the problem.
fn refused_by_agent(report: &PassReport<'_>) -> Option<EventText> {
    agent_refuses(report).map(|(_, words)| warning(AGENT_REFUSES, words.to_owned()))
}

/// A player joined during the countdown of an empty server, or an announced stop was cancelled.
fn called_off(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let was_counting = before.conditions.iter().any(|it| it.type_ == "Updating" && it.reason == COUNTDOWN_WHILE_EMPTY);
    let plan = report.plan;
    let is_called_off = was_counting && plan.is_update() && !is_open(plan.gate);
    let why = if is_called_off {
        "somebody joined, or nobody could say who is on"
    } else if *report.done == StepOutcome::CalledOff {
        "what players were told of does not come now"
    } else {
        return None;
    };
    let is_restart = matches!(report.step, Step::CancelAnnouncement { act: Disruption::Restart { .. }, .. });
    let reason = if is_restart { "RestartCancelled" } else { "UpdateCancelled" };
    let at = report.now;
    Some(normal(reason, format!("called off in its countdown at {at}: {why}. Nothing was changed")))
}

/// Begin and end of a pinned set.
fn of_the_way_back(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let was_held = before.conditions.iter().any(|condition| condition.type_ == "PinnedToSet");
    let CheckedServer { name, namespace, .. } = server;
    match &report.plan.undo {
        Some(undo @ (PinnedSet::To { .. } | PinnedSet::Held { .. })) => {
            Some(normal("PinnedToSet", undo.in_words(namespace, name, &before.history)))
        }
        Some(undo @ PinnedSet::Unknown { .. }) => {
            Some(warning("RequestRefused", undo.in_words(namespace, name, &before.history)))
        }
        None => was_held.then(resumed),
    }
}

/// The changes that need approval, with the command.
pub(super) fn approval_needed(server: &CheckedServer, plan: &Plan) -> String {
    let CheckedServer { name, namespace, .. } = server;
    format!(
        "{}: approve it with `kubectl -n {namespace} annotate papermcserver {name} --overwrite {}={}`",
        cut(&changes::in_words(&plan.changes), 640),
        crds::annotations::APPROVE,
        plan.record.files.lock
    )
}

/// The followed server and the missing condition.
pub(super) fn waits_in_words(waits: &FollowWait, server: &CheckedServer, now: Timestamp) -> String {
    waits.in_words(|at| for_people(at, &server.zone, now))
}

fn planned(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> String {
    let cost = behind(DowntimeEstimate::of(server, report, before).in_words().as_deref());
    let what = format!("{}{cost}", changes::in_words(&report.plan.changes));
    if matches!(report.plan.undo, Some(PinnedSet::To { .. })) && !report.plan.consent.needs_approval {
        return format!("asked for: {what}");
    }
    if let Some(held_back) = short_reason::in_short(report) {
        return format!("{held_back}: {what}");
    }
    let opens = report.plan.outlook.next_opening.map(|opens| for_people(opens, &server.zone, report.now));
    match report.plan.opportunistic.beside(opens) {
        _ if is_open(report.plan.gate) => format!("now: {what}"),
        Some(when) => format!("{when}: {what}"),
        None if report.plan.outlook.is_suspended => format!("suspended: {what}"),
        None => format!("no window opens by itself: {what}"),
    }
}

fn staged(report: &PassReport<'_>) -> String {
    let files = &report.plan.record.files;
    let all = || std::iter::once(&files.server).chain(&files.support).chain(&files.plugins);
    let bytes: u64 = all().filter_map(|file| file.size).sum();
    format!("{} files ({} kB) staged and verified", all().count(), bytes.div_ceil(1_000))
}

fn of_step(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    Some(match report.done {
        StepOutcome::Created => normal("ServerCreated", "the StatefulSet is made; the server starts".to_owned()),
        StepOutcome::Announced { notice, is_cut_short } => {
            let left = scheduler::announcement::in_words(*notice);
            let is_drain = matches!(report.step, Step::Announce { act: Disruption::Drain { .. }, .. });
            let what = if is_drain { "the server may be evicted" } else { "restart" };
            normal(
                "PlayersWarned",
                match report.plan.seen.players {
                    _ if *is_cut_short => format!("the last player has left: {what} in {left}"),
                    Players::Some(1) => format!("1 player warned: {what} in {left}"),
                    Players::Some(count) => format!("{count} players warned: {what} in {left}"),
                    Players::Nobody => format!("nobody is on: {what} in {left}"),
                    Players::Unknown { .. } | Players::Hidden => {
                        format!("{what} in {left}; nobody could be counted")
                    }
                },
            )
        }
        StepOutcome::ToldAgain { left } => {
            let left = scheduler::announcement::in_words(*left);
            normal(
                "CountdownResumed",
                format!("the agent has started anew in the countdown and goes on with it: {left} are left"),
            )
        }
        StepOutcome::Saved { confirmed: true, took_ms, problem: _ } => {
            normal("WorldSaved", format!("saved in {}.{} s", took_ms / 1_000, took_ms % 1_000 / 100))
        }
        StepOutcome::Saved { confirmed: false, took_ms: _, problem } => {
            warning("SaveRefused", problem.clone().unwrap_or_else(|| "the server did not confirm its save".to_owned()))
        }
        StepOutcome::Committed { unasked } => {
            let asked = if *unasked { "nobody could be asked; " } else { "" };
            let why_now = report.plan.opportunistic.why_now();
            normal("UpdateStarted", format!("{asked}{why_now}{}", changes::in_words(&report.plan.changes)))
        }
        StepOutcome::MarkedFailed => warning("UpdateFailed", why_it_failed(report)),
        StepOutcome::RestoreScheduled => warning("RestoreScheduled", restore_ordered(report)),
        StepOutcome::DataOrdered => normal("RestoreScheduled", plugin_data::ordered()),
        StepOutcome::RolledBack { .. } => warning("UpdateRolledBack", rolled_back(report, before)),
        // A set that is kept without verification is reported as such. A first start has no roll-back, whatever the result of its
        // verification is.
        StepOutcome::Closed(MarkedStable::First | MarkedStable::Update) | StepOutcome::Restarted if report.plan.proof.unproven().is_some() => {
            unproven(report)
        }
        StepOutcome::Closed(MarkedStable::First) => normal("ServerReady", running(report, true)),
        StepOutcome::Closed(MarkedStable::Update) => normal("UpdateApplied", running(report, false)),
        StepOutcome::Closed(MarkedStable::Before) => {
            normal("ServerReady", format!("what ran before runs again: {}", running(report, false)))
        }
        StepOutcome::Restarting { due, unasked } => {
            let asked = if *unasked { "; nobody could be asked" } else { "" };
            let restore = report.plan.restores.due.as_ref().filter(|restore| restore.restart.due == *due);
            let what = match restore {
                Some(restore) => what_for(restore),
                None => format!("the restart of {}, as it is", for_people(*due, &server.zone, report.now)),
            };
            normal("RestartStarted", format!("{what}{asked}"))
        }
        StepOutcome::Restarted => normal("Restarted", running(report, false)),
        // `report::drain` builds these Events.
        StepOutcome::DrainBegun
        | StepOutcome::DrainEnded
        // `called_off` builds this Event, because it needs the previous status.
        | StepOutcome::CalledOff
        | StepOutcome::StagingAsked
        | StepOutcome::TemplateWritten
        | StepOutcome::Restored
        | StepOutcome::Nothing => return None,
    })
}

/// The Event for a set that was kept without verification.
fn unproven(report: &PassReport<'_>) -> EventText {
    let first = matches!(report.done, StepOutcome::Closed(MarkedStable::First));
    let problem = report.plan.proof.unproven().unwrap_or_default();
    warning("UpdateUnverified", format!("kept, and not proven: {problem}; {}", running(report, first)))
}

/// The Event for a set that is verified after it was kept unverified.
fn proven_later(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let waited = before.history.first().is_some_and(|newest| newest.unproven);
    let is_it = waited && status::proves_what_settled(report);
    is_it
        .then(|| normal("UpdateVerified", format!("proven now, after it was kept unproven: {}", running(report, true))))
}

fn rolled_back(report: &PassReport<'_>, before: &PaperMCServerStatus) -> String {
    let what = before.update.as_deref().unwrap_or("the update");
    let is_asked = matches!(report.step, Step::RollBack { asked: true, .. });
    let restore = report.plan.restores.due.as_ref().filter(|_| is_asked);
    let copy = restore.map_or_else(String::new, |restore| format!(", {}, as a person asked", what_for(restore)));
    format!("going back to what ran before{copy}: {what} did not work here. Not tried again until it changes")
}

/// The restore that was requested, as text.
fn restore_ordered(report: &PassReport<'_>) -> String {
    let is_asked = matches!(report.step, Step::RequestRestore { asked: true, .. });
    match report.plan.restores.due.as_ref().filter(|_| is_asked) {
        Some(restore) => {
            format!("the init container tries again within minutes, {}, as a person asked", what_for(restore))
        }
        None => backup::restore_ordered(report),
    }
}

/// For example `to put the worlds of the copy … in place`.
fn what_for(restore: &PendingRestore) -> String {
    let copy = &restore.order.copy;
    if restore.order.everything {
        format!("to put all that the copy {copy} holds in place")
    } else {
        format!("to put the worlds of the copy {copy} in place")
    }
}

/// For example `running 1.21.11-132 with 6 plugins enabled; down for 21 s, 7 players were on`.
fn running(report: &PassReport<'_>, first: bool) -> String {
    let agent = report.seen.report.as_deref();
    let version =
        report.seen.pod_lock.as_ref().map(|record| format!("{}-{}", record.lock.minecraft, record.lock.build));
    let count = count_enabled(agent);
    let plugins = if count == 1 { "1 plugin".to_owned() } else { format!("{count} plugins") };
    let text = format!("running {} with {plugins} enabled", version.unwrap_or_default());
    match downtime(agent) {
        Some(down) if !first => format!("{text}; down for {} s{}", down.as_secs(), who_was_on(interrupted(agent))),
        Some(_) | None => text,
    }
}

fn who_was_on(players: Option<u32>) -> String {
    match players {
        None => String::new(),
        Some(0) => ", nobody was on".to_owned(),
        Some(1) => ", 1 player was on".to_owned(),
        Some(count) => format!(", {count} players were on"),
    }
}

/// The number of players that the last stop disconnected.
pub(super) fn interrupted(agent: Option<&protocol::AgentReport>) -> Option<u32> {
    agent?.last_stop.as_ref()?.players
}

/// When the previous process exited.
pub(super) fn stopped_at(agent: Option<&protocol::AgentReport>) -> Option<Timestamp> {
    Some(agent?.last_stop.as_ref()?.at)
}

/// Time from the exit of the old process to the first answer of the new one, both by the agent's clock.
pub(super) fn downtime(agent: Option<&protocol::AgentReport>) -> Option<SignedDuration> {
    let stopped = stopped_at(agent)?;
    match &agent?.server {
        protocol::Server::Up { since, .. } if *since > stopped => Some(since.duration_since(stopped)),
        protocol::Server::Up { .. }
        | protocol::Server::Absent
        | protocol::Server::Starting { .. }
        | protocol::Server::Stopping { .. } => None,
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
