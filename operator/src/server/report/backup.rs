//! Pure. What is said of the copies of a server: status, condition, Events.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{BackupContents, BackupStatus, BackupTrigger, BeforeUpdate, LastBackup, LastRestore};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::backup::{Contents, Trigger};
use scheduler::protocol::{self, BackupSeen, BackupsSeen, NO_BACKUP, Restored};

use super::Report;
use super::conditions::refusal;
use crate::chain::cut;
use crate::k8s::events::Note;
use crate::server::check::CheckedServer;
use crate::server::copies::cold_copy;

/// The condition's name.
pub(super) const BACKUP_READY: &str = "BackupReady";

/// What lies there. While the agent is silent its last word stands; without `spec.backup` there is nothing to say.
pub(super) fn build_status(
    server: &CheckedServer,
    agent: Option<&protocol::Report>,
    before: &PaperMCServerStatus,
) -> Option<BackupStatus> {
    server.backup.as_ref()?;
    let Some(seen) = agent.and_then(|agent| agent.backups.as_ref()) else { return before.backup.clone() };
    Some(BackupStatus {
        last_backup: seen.last.as_ref().map(last_backup),
        backup_count: seen.good,
        damaged_count: seen.damaged,
        last_restore: seen.restored.as_ref().map(last_restore),
    })
}

fn last_backup(seen: &BackupSeen) -> LastBackup {
    LastBackup {
        name: cut(&seen.id, 64),
        started_at: seen.started_at,
        completed_at: seen.completed_at,
        trigger: match seen.trigger {
            Trigger::BeforeUpdate => BackupTrigger::BeforeUpdate,
        },
        contents: match seen.contents {
            Contents::Worlds => BackupContents::Worlds,
            Contents::ServerFiles => BackupContents::ServerFiles,
            Contents::Everything => BackupContents::Everything,
        },
        lock: seen.lock.as_ref().map(|lock| cut(lock, 64)),
        size_bytes: i64::try_from(seen.archive_bytes).unwrap_or(i64::MAX),
    }
}

fn last_restore(restored: &Restored) -> LastRestore {
    LastRestore { at: restored.at, name: cut(&restored.id, 64), set_aside: cut(&restored.set_aside, 253) }
}

/// Whether a copy would be taken, if one were due: status, reason, message. None: nobody wants one.
pub(super) fn ready(server: &CheckedServer, report: &Report<'_>) -> Option<(Option<bool>, &'static str, String)> {
    server.backup.as_ref()?;
    if let Some(why) = refused(report) {
        return Some((Some(false), "BackupFailed", why));
    }
    let Some(agent) = report.seen.report.as_deref() else {
        return Some((None, "AgentSilent", "nobody can be asked for the copies now".to_owned()));
    };
    Some(of_the_agent(agent.backups.as_ref()))
}

fn of_the_agent(seen: Option<&BackupsSeen>) -> (Option<bool>, &'static str, String) {
    let Some(seen) = seen else {
        return (None, "NotMounted", "the volume for copies comes with the next restart of the server".to_owned());
    };
    if let Some(problem) = &seen.problem {
        return (Some(false), "Unreadable", cut(problem, 1_024));
    }
    if let Some(failed) = &seen.failed {
        return (Some(false), "BackupFailed", cut(&failed.why, 1_024));
    }
    let message = match &seen.last {
        Some(last) => format!("the last copy is {}, read back when it was taken", last.id),
        None => "no copy has been due yet".to_owned(),
    };
    (Some(true), "Ready", message)
}

/// What the init container wrote when it did not go on for want of a copy.
pub(super) fn refused(report: &Report<'_>) -> Option<String> {
    let words = refusal(report)?;
    words.strip_prefix(NO_BACKUP).map(|why| cut(why, 1_024))
}

/// Why the set that is planned had no copy, if that is what it failed for.
pub(super) fn failed_for(report: &Report<'_>) -> Option<String> {
    let failed = report.seen.report.as_ref()?.backups.as_ref()?.failed.as_ref()?;
    (failed.before == report.plan.record.files.lock).then(|| cut(&failed.why, 512))
}

/// A copy that is new, and one that should be there and is not. Each once, however often it is looked at.
pub(super) fn notes(server: &CheckedServer, report: &Report<'_>, before: &PaperMCServerStatus) -> Vec<Note> {
    let agent = report.seen.report.as_deref();
    let mut notes = Vec::new();
    let known = before.backup.as_ref().and_then(|backup| backup.last_backup.as_ref()).map(|last| last.name.as_str());
    let last = agent.and_then(|agent| agent.backups.as_ref()).and_then(|seen| seen.last.as_ref());
    if let Some(last) = last.filter(|last| server.backup.is_some() && known != Some(last.id.as_str())) {
        notes.push(Note { reason: "BackupTaken", warning: false, text: taken(last) });
    }
    let restored = agent.and_then(|agent| agent.backups.as_ref()).and_then(|seen| seen.restored.as_ref());
    let known = before.backup.as_ref().and_then(|backup| backup.last_restore.as_ref());
    if let Some(restored) = restored.filter(|restored| known != Some(&last_restore(restored))) {
        let Restored { at: _, id, set_aside } = restored;
        let text =
            format!("the worlds are those of the copy {id}; the ones that were here lie in {set_aside} on the volume");
        notes.push(Note { reason: "WorldRestored", warning: true, text });
    }
    if let Some((Some(false), reason, text)) = ready(server, report) {
        let same = |condition: &Condition| {
            condition.type_ == BACKUP_READY && condition.reason == reason && condition.message == text
        };
        if !before.conditions.iter().any(same) {
            notes.push(Note { reason: "BackupFailed", warning: true, text });
        }
    }
    notes
}

/// What a plan says of the copy that comes before it; nothing, if there is nothing to come back from or nobody wants copies.
pub(super) fn cost(server: &CheckedServer, report: &Report<'_>) -> String {
    let one_way = report.plan.changes.iter().any(|change| change.one_way);
    match server.backup.as_ref().map(|backup| backup.before_update) {
        Some(BeforeUpdate::OneWay | BeforeUpdate::Always) if one_way => {
            let agent = report.seen.report.as_ref().and_then(|agent| agent.backups.as_ref());
            cost_of_worlds(agent.and_then(|seen| seen.last_of_worlds.as_ref()))
        }
        Some(BeforeUpdate::Always) => "; settings and plugins are copied first".to_owned(),
        Some(BeforeUpdate::OneWay | BeforeUpdate::Never) | None => String::new(),
    }
}

fn cost_of_worlds(last: Option<&BackupSeen>) -> String {
    let first = "; the worlds are copied first, while the server is down";
    match last {
        Some(last) => {
            let took = last.completed_at.duration_since(last.started_at).as_secs();
            format!("{first} (last time {} MB in {took} s)", last.bytes.div_ceil(1_000_000))
        }
        None => first.to_owned(),
    }
}

/// What the roll-back may do to the worlds.
pub(super) fn restore_ordered(report: &Report<'_>) -> String {
    let copy = match cold_copy(report.seen) {
        Some(copy) => format!("the copy {}", copy.id),
        None => "the copy from before".to_owned(),
    };
    format!("if what ran before cannot open the worlds as they are, they are set aside and {copy} is put back")
}

fn taken(last: &BackupSeen) -> String {
    let what = match last.contents {
        Contents::Worlds => "the worlds",
        Contents::ServerFiles => "settings and plugins",
        Contents::Everything => "worlds, settings and plugins",
    };
    let took = last.completed_at.duration_since(last.started_at).as_secs();
    let megabytes = last.archive_bytes.div_ceil(1_000_000);
    format!("{}: {what}, {megabytes} MB, taken and read back in {took} s", last.id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;

    fn with_copies() -> CheckedServer {
        check(&server(json!({"backup": {}}))).unwrap()
    }

    fn agent(backups: &serde_json::Value) -> protocol::Report {
        serde_json::from_value(json!({
            "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
            "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
        }))
        .unwrap()
    }

    fn copy() -> serde_json::Value {
        json!({
            "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
            "trigger": "beforeUpdate", "contents": "worlds", "lock": "aa", "before": "bb", "dataVersion": 4556,
            "bytes": 41_000_000_000_u64, "archiveBytes": 39_000_000_001_u64,
        })
    }

    #[test]
    fn the_status_names_the_last_good_copy_and_keeps_it_while_the_agent_is_silent() {
        let said = agent(&json!({"last": copy(), "good": 3, "damaged": 1}));
        let status = build_status(&with_copies(), Some(&said), &PaperMCServerStatus::default()).unwrap();
        let last = status.last_backup.as_ref().unwrap();
        assert_eq!((last.name.as_str(), last.size_bytes), ("20261122T030000Z-aaaaaaaa", 39_000_000_001));
        assert_eq!((last.contents, status.backup_count, status.damaged_count), (BackupContents::Worlds, 3, 1));
        let before = PaperMCServerStatus { backup: Some(status), ..PaperMCServerStatus::default() };
        assert_eq!(build_status(&with_copies(), None, &before), before.backup);
        let without = check(&server(json!({}))).unwrap();
        assert_eq!(build_status(&without, Some(&said), &before), None);
    }

    #[test]
    fn a_failed_copy_outranks_the_good_ones_and_a_pod_without_the_volume_is_neither() {
        let said = agent(&json!({
            "last": copy(), "good": 1, "damaged": 0,
            "failed": {"at": "2026-11-22T04:00:00Z", "before": "bb", "why": "no room"},
        }));
        let (holds, reason, message) = of_the_agent(said.backups.as_ref());
        assert_eq!((holds, reason, message.as_str()), (Some(false), "BackupFailed", "no room"));
        let (holds, reason, _) = of_the_agent(agent(&json!(null)).backups.as_ref());
        assert_eq!((holds, reason), (None, "NotMounted"));
        let (holds, _, message) = of_the_agent(agent(&json!({"last": copy(), "good": 1})).backups.as_ref());
        assert_eq!(holds, Some(true));
        assert_eq!(message, "the last copy is 20261122T030000Z-aaaaaaaa, read back when it was taken");
    }

    #[test]
    fn a_plan_says_what_the_copy_of_the_worlds_cost_the_last_time() {
        let last: BackupSeen = serde_json::from_value(copy()).unwrap();
        let first = "; the worlds are copied first, while the server is down";
        assert_eq!(cost_of_worlds(None), first);
        assert_eq!(cost_of_worlds(Some(&last)), format!("{first} (last time 41000 MB in 190 s)"));
    }

    #[test]
    fn an_event_says_what_was_copied_and_what_it_cost() {
        let last: BackupSeen = serde_json::from_value(copy()).unwrap();
        assert_eq!(taken(&last), "20261122T030000Z-aaaaaaaa: the worlds, 39001 MB, taken and read back in 190 s");
    }
}
