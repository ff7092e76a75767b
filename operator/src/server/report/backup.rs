//! Pure. Reports the backups of a server in status, condition and Events.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{BackupContents, BackupStatus, BackupTrigger, LastBackup, LastRestore};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::backup::{Contents, Trigger};
use scheduler::protocol::restore::{ListedCopy, NEW_VOLUME};
use scheduler::protocol::{self, BackupSeen, BackupsSeen, FileSet, HotCopyOutcome, NO_BACKUP, Restored};

use super::PassReport;
use super::conditions::refusal;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::backups::{cold_copy, copies};
use crate::server::check::CheckedServer;
use crate::server::online_backup::{OnlineBackups, WITH_THE_NEXT_RESTART};

/// Type of the condition.
pub(super) const BACKUP_READY: &str = "BackupReady";
/// The reason if the pod cannot take the wanted backups. That is not a failure and causes no alert.
pub(super) const NEEDS_RESTART: &str = "NeedsRestart";

/// Prefix of a positive message if the schedule is invalid. Otherwise the last good backup could be taken for the last scheduled one.
const NONE_BY_THE_CLOCK: &str = "none is taken by the clock, see `BackupCronValid`";

/// The backups for the status. While the agent or the repository is unreachable, the last values remain. `None` without `spec.backup`.
pub(super) fn build_status(
    server: &CheckedServer,
    agent: Option<&protocol::AgentReport>,
    before: &PaperMCServerStatus,
    next: Option<Timestamp>,
) -> Option<BackupStatus> {
    server.backup.as_ref()?;
    let seen = agent.and_then(|agent| agent.backups.as_ref());
    // The last restore is recorded on the server's own volume, so it is known even if the backups cannot be read.
    let restored = seen.and_then(|seen| seen.restored.as_ref()).map(last_restore);
    let Some(seen) = seen.filter(|seen| seen.problem.is_none()) else {
        let said = before.backup.clone();
        // The operator knows the next instant even if the agent has reported nothing yet.
        let said = said.or_else(|| (next.is_some() || restored.is_some()).then(BackupStatus::default));
        return said.map(|said| BackupStatus {
            last_restore: restored.or(said.last_restore),
            next_backup: next,
            ..said
        });
    };
    Some(BackupStatus {
        last_backup: seen.last.as_ref().map(last_backup),
        backup_count: seen.good,
        damaged_count: seen.damaged,
        last_restore: restored,
        next_backup: next,
    })
}

fn last_backup(seen: &BackupSeen) -> LastBackup {
    LastBackup {
        name: cut(&seen.id, 64),
        started_at: seen.started_at,
        completed_at: seen.completed_at,
        trigger: match seen.trigger {
            Trigger::BeforeUpdate => BackupTrigger::BeforeUpdate,
            Trigger::Scheduled => BackupTrigger::Scheduled,
            Trigger::OnDemand => BackupTrigger::OnDemand,
        },
        contents: match seen.contents {
            Contents::Worlds => BackupContents::Worlds,
            Contents::ServerFiles => BackupContents::ServerFiles,
            Contents::Everything => BackupContents::Everything,
        },
        lock: seen.lock.as_ref().map(|lock| cut(lock, 64)),
        size_bytes: i64::try_from(seen.archive_bytes).unwrap_or(i64::MAX),
        after_damage: seen.after_damage,
    }
}

fn last_restore(restored: &Restored) -> LastRestore {
    LastRestore { at: restored.at, name: cut(&restored.id, 64), set_aside: cut(&restored.set_aside, 253) }
}

/// Whether a due backup would be taken: status, reason, message. `None` if backups are not configured.
pub(super) fn ready(server: &CheckedServer, report: &PassReport<'_>) -> Option<(Option<bool>, &'static str, String)> {
    let backup = server.backup.as_ref()?;
    if let Some(why) = refused(report) {
        return Some((Some(false), "BackupFailed", why));
    }
    let Some(agent) = report.seen.report.as_deref() else {
        return Some((None, "AgentUnreachable", "nobody can be asked for the copies now".to_owned()));
    };
    let (holds, reason, message) = of_the_agent(agent.backups.as_ref(), &report.plan.copies);
    let message = match &backup.schedule_problem {
        Some(_) if holds == Some(true) => cut(&format!("{NONE_BY_THE_CLOCK}; {message}"), 1_024),
        Some(_) | None => message,
    };
    Some((holds, reason, message))
}

/// Whether the report of a failed backup remains while the next one is in progress.
pub(super) fn stands(old: &Condition, report: &PassReport<'_>) -> bool {
    report.plan.copies.is_running && old.status == "False" && old.reason == "BackupFailed"
}

fn of_the_agent(seen: Option<&BackupsSeen>, hot: &OnlineBackups) -> (Option<bool>, &'static str, String) {
    let Some(seen) = seen else {
        return (None, "NotMounted", "the volume for copies comes with the next restart of the server".to_owned());
    };
    if let Some(problem) = &seen.problem {
        return (Some(false), "Unreadable", cut(problem, 1_024));
    }
    if let Some(failed) = &seen.failed {
        return (Some(false), "BackupFailed", cut(&failed.why, 1_024));
    }
    if hot.needs_restart {
        return (Some(false), NEEDS_RESTART, WITH_THE_NEXT_RESTART.to_owned());
    }
    if let Some(why) = not_taken(seen) {
        return (Some(false), "BackupFailed", cut(&why, 1_024));
    }
    let last = match &seen.last {
        Some(last) => format!("the last copy is {}, read back when it was taken", last.id),
        None => "there is no copy yet".to_owned(),
    };
    let message = match &hot.refusal {
        _ if hot.is_running => format!("a copy of the running server is being taken; {last}"),
        Some(why) => format!("a copy is due and has to wait: {why}; {last}"),
        None if hot.due.is_some() => format!("a copy is due and taken when nothing else is under way; {last}"),
        None if seen.last.is_none() && hot.next.is_none() => "no copy has been due yet".to_owned(),
        None => last,
    };
    (Some(true), "Ready", cut(&message, 1_024))
}

/// Why the last request for an online backup failed, unless a good backup was taken since. The message names the request, so that each is
/// reported once.
fn not_taken(seen: &BackupsSeen) -> Option<String> {
    let hot = seen.hot.as_ref()?;
    match &hot.outcome {
        HotCopyOutcome::Failed { why } if seen.last.as_ref().is_none_or(|last| last.completed_at <= hot.at) => {
            Some(format!("the copy `{}` of the running server was not taken: {why}", hot.request))
        }
        HotCopyOutcome::Running | HotCopyOutcome::Taken { .. } | HotCopyOutcome::Failed { .. } => None,
    }
}

/// The init container's message if it refused the start because of a missing backup.
pub(super) fn refused(report: &PassReport<'_>) -> Option<String> {
    let words = refusal(report)?;
    words.strip_prefix(NO_BACKUP).map(|why| cut(why, 1_024))
}

/// Why the planned set had no backup, if it failed for that reason.
pub(super) fn failed_for(report: &PassReport<'_>) -> Option<String> {
    let failed = copies(report.seen)?.failed.as_ref()?;
    (failed.before == report.plan.record.files.lock).then(|| cut(&failed.why, 512))
}

/// Events for a new backup and for a missing one, once each.
pub(super) fn notes(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Vec<EventText> {
    let seen = copies(report.seen);
    let mut notes = Vec::new();
    let known = before.backup.as_ref().and_then(|backup| backup.last_backup.as_ref()).map(|last| last.name.as_str());
    let last = seen.and_then(|seen| seen.last.as_ref());
    if let Some(last) = last.filter(|last| server.backup.is_some() && known != Some(last.id.as_str())) {
        notes.push(EventText { reason: "BackupTaken", warning: false, text: taken(last) });
    }
    let restored = seen.and_then(|seen| seen.restored.as_ref());
    let known = before.backup.as_ref().and_then(|backup| backup.last_restore.as_ref());
    // A restore to a new volume is reported with its own condition, even for a server without backups.
    let is_told = |restored: &&Restored| restored.request.as_deref() != Some(NEW_VOLUME);
    if let Some(restored) = restored.filter(is_told).filter(|restored| known != Some(&last_restore(restored))) {
        notes.push(EventText { reason: "WorldRestored", warning: true, text: restored_in_words(restored) });
    }
    if let Some((Some(false), reason, text)) = ready(server, report).filter(|(_, reason, _)| *reason != NEEDS_RESTART) {
        let same = |condition: &Condition| {
            condition.type_ == BACKUP_READY && condition.reason == reason && condition.message == text
        };
        if !before.conditions.iter().any(same) {
            notes.push(EventText { reason: "BackupFailed", warning: true, text });
        }
    }
    notes
}

fn restored_in_words(restored: &Restored) -> String {
    let Restored { at: _, id, set_aside, request: _, everything, after_damage: _ } = restored;
    if *everything {
        format!(
            "worlds, settings, plugins and their data are those of the copy {id}; what was here lies in {set_aside} on the volume"
        )
    } else {
        format!("the worlds are those of the copy {id}; the ones that were here lie in {set_aside} on the volume")
    }
}

/// The effect of the roll-back on the worlds, as text.
pub(super) fn restore_ordered(report: &PassReport<'_>) -> String {
    let copy = match cold_copy(report.seen) {
        Some(copy) => format!("the copy {}", copy.id),
        None => "the copy from before".to_owned(),
    };
    format!("if what ran before cannot open the worlds as they are, they are set aside and {copy} is put back")
}

/// Why the backups are unknown although the agent answers.
pub(super) fn unreadable<'a>(report: &PassReport<'a>) -> Option<&'a str> {
    copies(report.seen)?.problem.as_deref()
}

/// How a set that is too old for the worlds could run nevertheless.
pub(super) fn way_below(backups: Option<&BackupsSeen>, set: &FileSet) -> String {
    if let Some(why) = backups.and_then(|backups| backups.problem.as_deref()) {
        return format!("and whether a copy is there that it could open is not known now: {}", cut(why, 512));
    }
    let found = backups.and_then(|backups| Some((backups, newest_below(backups, set)?)));
    let Some((backups, id)) = found else { return "and no copy is known that it could open".to_owned() };
    let of_whom_more_is_said = [&backups.last_of_worlds, &backups.last, &backups.last_before_damage];
    let copy = of_whom_more_is_said.into_iter().flatten().find(|copy| copy.id == id);
    let how = match copy.map(|copy| copy.trigger) {
        Some(Trigger::BeforeUpdate) => "",
        Some(Trigger::Scheduled | Trigger::OnDemand) => ", which was taken of a running server,",
        None => ", which may have been taken of a running server,",
    };
    let since = copy.map(|copy| copy.started_at).or_else(|| begun_at(id));
    let since = since.map_or_else(|| "it was taken".to_owned(), |at| at.to_string());
    let is_marked = |copy: &ListedCopy| copy.id == id && copy.after_damage;
    let is_after_damage = backups.listed.iter().flatten().any(is_marked) || copy.is_some_and(|copy| copy.after_damage);
    let mark = if is_after_damage { ". It was taken after the log had told of damage to the worlds" } else { "" };
    format!(
        "the copy `{id}`{how} could be put back by hand (docs/guides/backup.md), and what was built since {since} would be lost{mark}"
    )
}

/// The newest good backup with worlds that this set could open.
fn newest_below<'a>(backups: &'a BackupsSeen, set: &FileSet) -> Option<&'a str> {
    let is_good = |copy: &&ListedCopy| copy.problem.is_none() && copy.contents.is_some_and(Contents::has_worlds);
    let mut listed = backups.listed.iter().flatten().filter(is_good);
    let listed = listed.find(|copy| set.opens(copy.data_version, copy.lock.as_deref())).map(|copy| copy.id.as_str());
    // An agent that does not list backups may still report the last one before an update.
    let last = backups.last_of_worlds.as_ref();
    let last = last.filter(|copy| set.opens(copy.data_version, copy.lock.as_deref())).map(|copy| copy.id.as_str());
    listed.or(last)
}

/// When a backup was started, according to its name.
fn begun_at(id: &str) -> Option<Timestamp> {
    let (instant, _) = id.split_once('-')?;
    let begun = DateTime::strptime("%Y%m%dT%H%M%SZ", instant).ok()?;
    begun.to_zoned(TimeZone::UTC).ok().map(|begun| begun.timestamp())
}

fn taken(last: &BackupSeen) -> String {
    let what = match last.contents {
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
    let mark = if last.after_damage { "; taken after the log had told of damage to the worlds" } else { "" };
    format!("{}: {what}, {megabytes} MB, taken{how} and read back in {took} s{mark}", last.id)
}

#[cfg(test)]
mod tests;
