//! Pure. Reports the backups of a server in status, condition and Events.

use agent_api::restore::{ListedBackup, NEW_VOLUME_REQUEST};
use agent_api::{BackupReport, BackupsReport, FileSet, NO_BACKUP, OnlineBackupOutcome, Restored};
use agent_api::{Contents, Trigger};
use crds::PaperMCServerStatus;
use crds::paper_mc_server::{BackupContents, BackupStatus, BackupTrigger, LastBackup, LastRestore};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::context::PassReport;
use super::refusal::init_message;
use super::responsiveness::AGENT_UNREACHABLE;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::backups::{current_backups, offline_backup};
use crate::server::online_backup::{AFTER_NEXT_RESTART, OnlineBackups};
use validate::CheckedServer;

/// Type of the condition.
pub(super) const BACKUP_READY: &str = "BackupReady";
/// The reason if the pod cannot take the wanted backups. That is not a failure and causes no alert.
pub(super) const NEEDS_RESTART: &str = "NeedsRestart";

/// Prefix of a positive message if the schedule is invalid. Otherwise the last good backup could be taken for the last scheduled one.
const NONE_SCHEDULED: &str = "No scheduled backups are taken. See `BackupCronValid`.";

/// The backups for the status. While the agent or the repository is unreachable, the last values remain. `None` without `spec.backup`.
pub(super) fn build_status(
    server: &CheckedServer,
    agent: Option<&agent_api::AgentReport>,
    before: &PaperMCServerStatus,
    next: Option<Timestamp>,
) -> Option<BackupStatus> {
    server.data.backup.as_ref()?;
    let backups = agent.and_then(|agent| agent.backups.as_ref());
    // The last restore is recorded on the server's own volume, so it is known even if the backups cannot be read.
    let restored = backups.and_then(|backups| backups.restored.as_ref()).map(last_restore);
    let Some(backups) = backups.filter(|backups| backups.problem.is_none()) else {
        let status = before.backup.clone();
        // The operator knows the next instant even if the agent has reported nothing yet.
        let status = status.or_else(|| (next.is_some() || restored.is_some()).then(BackupStatus::default));
        return status.map(|status| BackupStatus {
            last_restore: restored.or(status.last_restore),
            next_backup: next,
            ..status
        });
    };
    Some(BackupStatus {
        last_backup: backups.last.as_ref().map(last_backup),
        backup_count: backups.good,
        damaged_count: backups.damaged,
        last_restore: restored,
        next_backup: next,
    })
}

fn last_backup(backup: &BackupReport) -> LastBackup {
    LastBackup {
        name: cut(&backup.id, 64),
        started_at: backup.started_at,
        completed_at: backup.completed_at,
        trigger: match backup.trigger {
            Trigger::BeforeUpdate => BackupTrigger::BeforeUpdate,
            Trigger::Scheduled => BackupTrigger::Scheduled,
            Trigger::OnDemand => BackupTrigger::OnDemand,
        },
        contents: match backup.contents {
            Contents::Worlds => BackupContents::Worlds,
            Contents::ServerFiles => BackupContents::ServerFiles,
            Contents::Everything => BackupContents::Everything,
        },
        lock: backup.lock.as_ref().map(|lock| cut(lock, 64)),
        size_bytes: i64::try_from(backup.archive_bytes).unwrap_or(i64::MAX),
        after_damage: backup.after_damage,
    }
}

fn last_restore(restored: &Restored) -> LastRestore {
    LastRestore { at: restored.at, name: cut(&restored.id, 64), set_aside: cut(&restored.set_aside, 253) }
}

/// Whether a due backup would be taken: status, reason, message. `None` if backups are not configured.
pub(super) fn condition_parts(
    server: &CheckedServer,
    report: &PassReport<'_>,
) -> Option<(Option<bool>, &'static str, String)> {
    let backup = server.data.backup.as_ref()?;
    if let Some(why) = start_refusal(report) {
        return Some((Some(false), "BackupFailed", why));
    }
    let Some(agent) = report.pass.observed.reply.report.as_deref() else {
        return Some((None, AGENT_UNREACHABLE, "The agent is unreachable, so the backups are unknown.".to_owned()));
    };
    let (status, reason, message) = reported_condition(agent.backups.as_ref(), &report.plan.tasks.backups);
    let message = match &backup.schedule_problem {
        Some(_) if status == Some(true) => cut(&format!("{NONE_SCHEDULED} {message}"), 1_024),
        Some(_) | None => message,
    };
    Some((status, reason, message))
}

/// Whether the report of a failed backup remains while the next one is in progress.
pub(super) fn failure_remains(old: &Condition, report: &PassReport<'_>) -> bool {
    report.plan.tasks.backups.is_running && old.status == "False" && old.reason == "BackupFailed"
}

fn reported_condition(backups: Option<&BackupsReport>, online: &OnlineBackups) -> (Option<bool>, &'static str, String) {
    let Some(backups) = backups else {
        return (None, "NotMounted", "Backups begin with the next restart of the server.".to_owned());
    };
    if let Some(problem) = &backups.problem {
        return (Some(false), "Unreadable", cut(problem, 1_024));
    }
    if let Some(failed) = &backups.failed {
        return (Some(false), "BackupFailed", cut(&failed.why, 1_024));
    }
    if online.needs_restart {
        return (Some(false), NEEDS_RESTART, AFTER_NEXT_RESTART.to_owned());
    }
    if let Some(why) = online_failure(backups) {
        return (Some(false), "BackupFailed", cut(&why, 1_024));
    }
    let last = match &backups.last {
        Some(last) => format!("The last backup is {}. It was read back when it was taken.", last.id),
        None => "There is no backup yet.".to_owned(),
    };
    let message = match &online.refusal {
        _ if online.is_running => format!("An online backup is being taken. {last}"),
        Some(why) => format!("A backup is due and has to wait: {why}. {last}"),
        None if online.due.is_some() => format!(
            "A backup is due. It is taken when no other change is in progress. \
        {last}"
        ),
        None if backups.last.is_none() && online.next.is_none() => "No backup has been due yet.".to_owned(),
        None => last,
    };
    (Some(true), "Ready", cut(&message, 1_024))
}

/// Why the last request for an online backup failed, unless a good backup was taken since. The message names the request, so that each is
/// reported once.
fn online_failure(backups: &BackupsReport) -> Option<String> {
    let online = backups.online.as_ref()?;
    match &online.outcome {
        OnlineBackupOutcome::Failed { why }
            if backups.last.as_ref().is_none_or(|last| last.completed_at <= online.at) =>
        {
            Some(format!("The online backup `{}` was not taken: {why}", online.request))
        }
        OnlineBackupOutcome::Running | OnlineBackupOutcome::Taken { .. } | OnlineBackupOutcome::Failed { .. } => None,
    }
}

/// The init container's message if it refused the start because of a missing backup.
pub(super) fn start_refusal(report: &PassReport<'_>) -> Option<String> {
    let message = init_message(report)?;
    message.strip_prefix(NO_BACKUP).map(|why| cut(why, 1_024))
}

/// Why the planned set had no backup, if it failed for that reason.
pub(super) fn missing_backup_reason(report: &PassReport<'_>) -> Option<String> {
    let failed = current_backups(report.pass.observed)?.failed.as_ref()?;
    (failed.before == report.plan.target.record.files.lock).then(|| cut(&failed.why, 512))
}

/// Events for a new backup and for a missing one, once each.
pub(super) fn events(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Vec<EventText> {
    let backups = current_backups(report.pass.observed);
    let mut events = Vec::new();
    let last_known =
        before.backup.as_ref().and_then(|backup| backup.last_backup.as_ref()).map(|last| last.name.as_str());
    let last = backups.and_then(|backups| backups.last.as_ref());
    if let Some(last) = last.filter(|last| server.data.backup.is_some() && last_known != Some(last.id.as_str())) {
        events.push(EventText { reason: "BackupTaken", warning: false, text: taken_message(last) });
    }
    let restored = backups.and_then(|backups| backups.restored.as_ref());
    let last_known = before.backup.as_ref().and_then(|backup| backup.last_restore.as_ref());
    // A restore to a new volume is reported with its own condition, even for a server without backups.
    let is_user_restore = |restored: &&Restored| restored.request.as_deref() != Some(NEW_VOLUME_REQUEST);
    if let Some(restored) =
        restored.filter(is_user_restore).filter(|restored| last_known != Some(&last_restore(restored)))
    {
        events.push(EventText { reason: "WorldRestored", warning: true, text: restored_message(restored) });
    }
    if let Some((Some(false), reason, text)) =
        condition_parts(server, report).filter(|(_, reason, _)| *reason != NEEDS_RESTART)
    {
        let same = |condition: &Condition| {
            condition.type_ == BACKUP_READY && condition.reason == reason && condition.message == text
        };
        if !before.conditions.iter().any(same) {
            events.push(EventText { reason: "BackupFailed", warning: true, text });
        }
    }
    events
}

fn restored_message(restored: &Restored) -> String {
    let Restored { at: _, id, set_aside, request: _, everything, after_damage: _ } = restored;
    if *everything {
        format!(
            "Restored worlds, settings, plugins and their data from the backup {id}. The previous files are in \
            {set_aside} on the volume."
        )
    } else {
        format!("Restored the worlds from the backup {id}. The previous worlds are in {set_aside} on the volume.")
    }
}

/// The effect of the roll-back on the worlds, as text.
pub(super) fn restore_effect(report: &PassReport<'_>) -> String {
    let backup = match offline_backup(report.pass.observed) {
        Some(backup) => format!("the backup {}", backup.id),
        None => "the backup from before the update".to_owned(),
    };
    format!(
        "If the previous version set cannot open the worlds as they are, they are moved away and {backup} is \
    restored."
    )
}

/// Why the backups are unknown although the agent answers.
pub(super) fn unreadable<'a>(report: &PassReport<'a>) -> Option<&'a str> {
    current_backups(report.pass.observed)?.problem.as_deref()
}

/// How a set that is too old for the worlds could run nevertheless.
pub(super) fn downgrade_hint(backups: Option<&BackupsReport>, files: &FileSet) -> String {
    if let Some(why) = backups.and_then(|backups| backups.problem.as_deref()) {
        return format!("It is unknown whether there is a backup that it could open: {}", cut(why, 512));
    }
    let found = backups.and_then(|backups| Some((backups, newest_openable(backups, files)?)));
    let Some((backups, id)) = found else { return "No backup is known that it could open.".to_owned() };
    let described = [&backups.last_of_worlds, &backups.last, &backups.last_before_damage];
    let backup = described.into_iter().flatten().find(|backup| backup.id == id);
    let how = match backup.map(|backup| backup.trigger) {
        Some(Trigger::BeforeUpdate) => "",
        Some(Trigger::Scheduled | Trigger::OnDemand) => ", an online backup,",
        None => ", possibly an online backup,",
    };
    let since = backup.map(|backup| backup.started_at).or_else(|| started_at(id));
    let since = since.map_or_else(|| "it was taken".to_owned(), |at| at.to_string());
    let is_marked = |backup: &ListedBackup| backup.id == id && backup.after_damage;
    let is_after_damage =
        backups.listed.iter().flatten().any(is_marked) || backup.is_some_and(|backup| backup.after_damage);
    let mark = if is_after_damage { " It was taken after the log had reported damage to the worlds." } else { "" };
    format!(
        "The backup `{id}`{how} could be restored manually (docs/guides/backup.md). All progress since {since} would \
        be lost.{mark}"
    )
}

/// The newest good backup with worlds that this set could open.
fn newest_openable<'a>(backups: &'a BackupsReport, files: &FileSet) -> Option<&'a str> {
    let is_good =
        |backup: &&ListedBackup| backup.problem.is_none() && backup.contents.is_some_and(Contents::has_worlds);
    let mut listed = backups.listed.iter().flatten().filter(is_good);
    let listed = listed
        .find(|backup| files.can_open(backup.data_version, backup.lock.as_deref()))
        .map(|backup| backup.id.as_str());
    // An agent that does not list backups may still report the last one before an update.
    let last = backups.last_of_worlds.as_ref();
    let last = last
        .filter(|backup| files.can_open(backup.data_version, backup.lock.as_deref()))
        .map(|backup| backup.id.as_str());
    listed.or(last)
}

/// When a backup was started, according to its name.
fn started_at(id: &str) -> Option<Timestamp> {
    let (instant, _) = id.split_once('-')?;
    let begun = DateTime::strptime("%Y%m%dT%H%M%SZ", instant).ok()?;
    begun.to_zoned(TimeZone::UTC).ok().map(|begun| begun.timestamp())
}

fn taken_message(last: &BackupReport) -> String {
    let contents = match last.contents {
        Contents::Worlds => "the worlds",
        Contents::ServerFiles => "settings and plugins",
        Contents::Everything => "worlds, settings and plugins",
    };
    let how = match last.trigger {
        Trigger::BeforeUpdate => "",
        Trigger::Scheduled | Trigger::OnDemand => " while the server ran",
    };
    let took = last.completed_at.duration_since(last.started_at).as_secs();
    let megabytes = last.archive_bytes.div_ceil(1_000_000);
    let mark = if last.after_damage { ", taken after the log had reported damage to the worlds" } else { "" };
    format!("{}: {contents}, {megabytes} MB, taken{how} and read back in {took} s{mark}.", last.id)
}

#[cfg(test)]
mod tests;
