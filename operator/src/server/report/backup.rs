//! Pure. What is said of the copies of a server: status, condition, Events.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::{BackupContents, BackupStatus, BackupTrigger, LastBackup, LastRestore};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::backup::{Contents, Trigger};
use scheduler::protocol::restore::NEW_VOLUME;
use scheduler::protocol::{self, BackupSeen, BackupsSeen, HotCopyOutcome, NO_BACKUP, Restored};
use scheduler::seen::DataVersion;

use super::Report;
use super::conditions::refusal;
use crate::chain::cut;
use crate::k8s::events::Note;
use crate::server::check::CheckedServer;
use crate::server::copies::{cold_copy, copies};
use crate::server::hot_copies::{HotCopies, WITH_THE_NEXT_RESTART};

/// The condition's name.
pub(super) const BACKUP_READY: &str = "BackupReady";
/// Its reason when copies are wanted that the pod cannot take. Nothing has failed: nobody is alarmed.
pub(super) const NEEDS_RESTART: &str = "NeedsRestart";

/// What lies there. While the agent is silent its last word stands; without `spec.backup` there is nothing to say.
pub(super) fn build_status(
    server: &CheckedServer,
    agent: Option<&protocol::Report>,
    before: &PaperMCServerStatus,
    next: Option<Timestamp>,
) -> Option<BackupStatus> {
    server.backup.as_ref()?;
    let Some(seen) = agent.and_then(|agent| agent.backups.as_ref()) else {
        let said = before.backup.clone();
        // The instant is ours to say, also where nobody has said anything yet.
        let said = said.or_else(|| next.map(|_| BackupStatus::default()));
        return said.map(|said| BackupStatus { next_backup: next, ..said });
    };
    Some(BackupStatus {
        last_backup: seen.last.as_ref().map(last_backup),
        backup_count: seen.good,
        damaged_count: seen.damaged,
        last_restore: seen.restored.as_ref().map(last_restore),
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

/// Whether a copy would be taken, if one were due: status, reason, message. None: nobody wants one.
pub(super) fn ready(server: &CheckedServer, report: &Report<'_>) -> Option<(Option<bool>, &'static str, String)> {
    server.backup.as_ref()?;
    if let Some(why) = refused(report) {
        return Some((Some(false), "BackupFailed", why));
    }
    let Some(agent) = report.seen.report.as_deref() else {
        return Some((None, "AgentSilent", "nobody can be asked for the copies now".to_owned()));
    };
    Some(of_the_agent(agent.backups.as_ref(), &report.plan.copies))
}

/// What was said of a copy that failed stands while the next one is being taken.
pub(super) fn stands(old: &Condition, report: &Report<'_>) -> bool {
    report.plan.copies.is_running && old.status == "False" && old.reason == "BackupFailed"
}

fn of_the_agent(seen: Option<&BackupsSeen>, hot: &HotCopies) -> (Option<bool>, &'static str, String) {
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

/// Why the last request for a copy of the running server brought none, unless a good one was taken since. It names the request, so that
/// each is told once.
fn not_taken(seen: &BackupsSeen) -> Option<String> {
    let hot = seen.hot.as_ref()?;
    match &hot.outcome {
        HotCopyOutcome::Failed { why } if seen.last.as_ref().is_none_or(|last| last.completed_at <= hot.at) => {
            Some(format!("the copy `{}` of the running server was not taken: {why}", hot.request))
        }
        HotCopyOutcome::Running | HotCopyOutcome::Taken { .. } | HotCopyOutcome::Failed { .. } => None,
    }
}

/// What the init container wrote when it did not go on for want of a copy.
pub(super) fn refused(report: &Report<'_>) -> Option<String> {
    let words = refusal(report)?;
    words.strip_prefix(NO_BACKUP).map(|why| cut(why, 1_024))
}

/// Why the set that is planned had no copy, if that is what it failed for.
pub(super) fn failed_for(report: &Report<'_>) -> Option<String> {
    let failed = copies(report.seen)?.failed.as_ref()?;
    (failed.before == report.plan.record.files.lock).then(|| cut(&failed.why, 512))
}

/// A copy that is new, and one that should be there and is not. Each once, however often it is looked at.
pub(super) fn notes(server: &CheckedServer, report: &Report<'_>, before: &PaperMCServerStatus) -> Vec<Note> {
    let seen = copies(report.seen);
    let mut notes = Vec::new();
    let known = before.backup.as_ref().and_then(|backup| backup.last_backup.as_ref()).map(|last| last.name.as_str());
    let last = seen.and_then(|seen| seen.last.as_ref());
    if let Some(last) = last.filter(|last| server.backup.is_some() && known != Some(last.id.as_str())) {
        notes.push(Note { reason: "BackupTaken", warning: false, text: taken(last) });
    }
    let restored = seen.and_then(|seen| seen.restored.as_ref());
    let known = before.backup.as_ref().and_then(|backup| backup.last_restore.as_ref());
    // What a new volume got is told with its condition, also of a server that takes no copies.
    let is_told = |restored: &&Restored| restored.request.as_deref() != Some(NEW_VOLUME);
    if let Some(restored) = restored.filter(is_told).filter(|restored| known != Some(&last_restore(restored))) {
        notes.push(Note { reason: "WorldRestored", warning: true, text: restored_in_words(restored) });
    }
    if let Some((Some(false), reason, text)) = ready(server, report).filter(|(_, reason, _)| *reason != NEEDS_RESTART) {
        let same = |condition: &Condition| {
            condition.type_ == BACKUP_READY && condition.reason == reason && condition.message == text
        };
        if !before.conditions.iter().any(same) {
            notes.push(Note { reason: "BackupFailed", warning: true, text });
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

/// What the roll-back may do to the worlds.
pub(super) fn restore_ordered(report: &Report<'_>) -> String {
    let copy = match cold_copy(report.seen) {
        Some(copy) => format!("the copy {}", copy.id),
        None => "the copy from before".to_owned(),
    };
    format!("if what ran before cannot open the worlds as they are, they are set aside and {copy} is put back")
}

/// How a set that is too old for the worlds could run all the same.
pub(super) fn way_below(backups: Option<&BackupsSeen>, world: DataVersion) -> String {
    let copy = backups.and_then(|backups| backups.last_of_worlds.as_ref());
    let opens = |copy: &&BackupSeen| copy.data_version.is_some_and(|copied| DataVersion(copied) <= world);
    match copy.filter(opens) {
        Some(copy) => format!(
            "the copy `{}` could be put back by hand (docs/guides/backup.md), and what was built since {} would be lost",
            copy.id, copy.started_at
        ),
        None => "and no copy is known that it could open".to_owned(),
    }
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
        let status = build_status(&with_copies(), Some(&said), &PaperMCServerStatus::default(), None).unwrap();
        let last = status.last_backup.as_ref().unwrap();
        assert_eq!((last.name.as_str(), last.size_bytes), ("20261122T030000Z-aaaaaaaa", 39_000_000_001));
        assert_eq!((last.contents, status.backup_count, status.damaged_count), (BackupContents::Worlds, 3, 1));
        let before = PaperMCServerStatus { backup: Some(status), ..PaperMCServerStatus::default() };
        assert_eq!(build_status(&with_copies(), None, &before, None), before.backup);
        let without = check(&server(json!({}))).unwrap();
        assert_eq!(build_status(&without, Some(&said), &before, None), None);
    }

    #[test]
    fn a_copy_from_after_damage_is_marked_in_status_and_event() {
        let mut marked = copy();
        marked["afterDamage"] = json!(true);
        let of = |copy: serde_json::Value| {
            let said = agent(&json!({"last": copy, "good": 1}));
            let status = build_status(&with_copies(), Some(&said), &PaperMCServerStatus::default(), None).unwrap();
            let event = taken(&said.backups.unwrap().last.unwrap());
            (status.last_backup.unwrap().after_damage, event.ends_with("the log had told of damage to the worlds"))
        };
        assert_eq!((of(copy()), of(marked)), ((false, false), (true, true)));
    }

    #[test]
    fn the_next_instant_is_said_whether_or_not_anybody_can_be_asked() {
        let next: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let nothing = PaperMCServerStatus::default();
        for agent in [None, Some(&agent(&json!(null))), Some(&agent(&json!({"good": 1})))] {
            let status = build_status(&with_copies(), agent, &nothing, Some(next)).unwrap();
            assert_eq!(status.next_backup, Some(next));
        }
        assert_eq!(build_status(&with_copies(), None, &nothing, None), None);
        let promised = BackupStatus { next_backup: Some(next), backup_count: 2, ..BackupStatus::default() };
        let before = PaperMCServerStatus { backup: Some(promised), ..nothing };
        let status = build_status(&with_copies(), None, &before, None).unwrap();
        assert_eq!((status.next_backup, status.backup_count), (None, 2), "the schedule is gone");
    }

    #[test]
    fn a_failed_copy_outranks_the_good_ones_and_a_pod_without_the_volume_is_neither() {
        let said = agent(&json!({
            "last": copy(), "good": 1, "damaged": 0,
            "failed": {"at": "2026-11-22T04:00:00Z", "before": "bb", "why": "no room"},
        }));
        let (holds, reason, message) = of_the_agent(said.backups.as_ref(), &HotCopies::default());
        assert_eq!((holds, reason, message.as_str()), (Some(false), "BackupFailed", "no room"));
        let (holds, reason, _) = of_the_agent(agent(&json!(null)).backups.as_ref(), &HotCopies::default());
        assert_eq!((holds, reason), (None, "NotMounted"));
        let good = agent(&json!({"last": copy(), "good": 1}));
        let (holds, _, message) = of_the_agent(good.backups.as_ref(), &HotCopies::default());
        assert_eq!(holds, Some(true));
        assert_eq!(message, "the last copy is 20261122T030000Z-aaaaaaaa, read back when it was taken");
    }

    /// What is said where the copy of 03:00 is the last one, of this last request.
    fn of_request(outcome: &serde_json::Value, at: &str, hot: &HotCopies) -> (Option<bool>, &'static str, String) {
        let request = json!({"request": "asked-1", "at": at, "outcome": outcome});
        of_the_agent(agent(&json!({"last": copy(), "good": 1, "hot": request})).backups.as_ref(), hot)
    }

    #[test]
    fn a_copy_of_the_running_server_that_failed_is_told_by_its_request_until_a_good_one_is_taken() {
        let failed = json!({"state": "failed", "why": "no room"});
        let of = |at: &str| of_request(&failed, at, &HotCopies::default());
        let (holds, reason, message) = of("2026-11-22T03:03:10Z");
        assert_eq!((holds, reason), (Some(false), "BackupFailed"));
        assert_eq!(message, "the copy `asked-1` of the running server was not taken: no room");
        assert_eq!(of("2026-11-22T03:03:09Z").0, Some(true), "the last one is newer");
    }

    #[test]
    fn what_is_due_or_taken_or_has_to_wait_changes_the_words_and_neither_status_nor_reason() {
        let taken = json!({"state": "taken", "id": "a"});
        let of = |hot: HotCopies| {
            let (holds, reason, message) = of_request(&taken, "2026-11-22T03:03:10Z", &hot);
            assert_eq!((holds, reason), (Some(true), "Ready"));
            message.split_once("; the last copy is 20261122T030000Z-aaaaaaaa").unwrap().0.to_owned()
        };
        let running = HotCopies { is_running: true, ..HotCopies::default() };
        assert_eq!(of(running), "a copy of the running server is being taken");
        let refusal = Some("it is busy".to_owned());
        assert_eq!(of(HotCopies { refusal, ..HotCopies::default() }), "a copy is due and has to wait: it is busy");
        let from_before = HotCopies { needs_restart: true, ..HotCopies::default() };
        let (holds, reason, message) = of_request(&taken, "2026-11-22T03:03:10Z", &from_before);
        assert_eq!((holds, reason), (Some(false), NEEDS_RESTART));
        assert!(message.contains("next restart"), "{message}");
    }

    #[test]
    fn an_event_says_what_was_copied_and_what_it_cost() {
        let last: BackupSeen = serde_json::from_value(copy()).unwrap();
        assert_eq!(taken(&last), "20261122T030000Z-aaaaaaaa: the worlds, 39001 MB, taken and read back in 190 s");
    }

    #[test]
    fn a_set_below_the_world_is_told_which_copy_it_would_need_and_what_that_would_lose() {
        let said = agent(&json!({"lastOfWorlds": copy(), "good": 1}));
        let way = |format: u32| way_below(said.backups.as_ref(), DataVersion(format));
        assert_eq!(
            way(4556),
            "the copy `20261122T030000Z-aaaaaaaa` could be put back by hand (docs/guides/backup.md), and what was built \
             since 2026-11-22T03:00:00Z would be lost"
        );
        assert_eq!(way(4555), "and no copy is known that it could open");
        assert_eq!(way_below(None, DataVersion(4556)), "and no copy is known that it could open");
    }
}
