//! Pure. Estimates the downtime of an update: the restart, and the backup before it.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::BeforeUpdate;
use jiff::SignedDuration;
use scheduler::backup::{Contents, Trigger};
use scheduler::protocol::{self, BackupSeen, BackupsSeen};

use super::PassReport;
use super::events::downtime;
use super::notifications::duration_in_words;
use crate::server::backups::copies;
use crate::server::check::CheckedServer;
use crate::server::observe::Observed;
use crate::server::plan::Plan;

/// Assumed bytes per second of a backup, including its verification, if none was timed yet: one processor and a slow disk. A too long
/// estimate does no harm.
const GUESSED: u64 = 25_000_000;
/// Minimum size of a backup for a measurement. A smaller one measures how long files take to open, and not the disk.
const WORTH_TIMING: u64 = 10_000_000;

/// Message about a step that cannot be undone and has no backup before it.
const NO_COPY: &str = "no copy of the worlds is taken before it (`spec.backup`), and they cannot go back";

/// The expected downtime of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DowntimeEstimate {
    /// Downtime of this server's last update, without the backup.
    down: Option<SignedDuration>,
    copy: Option<PreUpdateBackup>,
    /// The worlds cannot be downgraded afterwards, and no backup of them is taken before.
    is_leap: bool,
}

/// The backup before an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PreUpdateBackup {
    contents: Contents,
    size: Option<TransferSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TransferSize {
    bytes: u64,
    takes: SignedDuration,
    /// No backup has been timed on this server yet.
    is_guess: bool,
}

/// The planned change relative to the running set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpcomingChange {
    /// The running set with changed pod settings.
    Same,
    /// The set that ran before: a roll-back.
    Before,
    /// Another set, or one that was rolled back and is tried again.
    Other,
}

impl UpcomingChange {
    /// The agent does not report which set ran before. On a server with a backup before each change, the backup from before the running set
    /// names both.
    fn of(goal: &str, settled: Option<&str>, seen: Option<&BackupsSeen>) -> Self {
        if settled == Some(goal) {
            return Self::Same;
        }
        let last = seen.and_then(|seen| seen.last_of_worlds.as_ref());
        let leads_back = |copy: &BackupSeen| copy.lock.as_deref() == Some(goal) && copy.before.as_deref() == settled;
        if settled.is_some() && last.is_some_and(leads_back) { Self::Before } else { Self::Other }
    }
}

impl DowntimeEstimate {
    /// The estimate for the planned update. `before` is the last status.
    pub(super) fn of(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Self {
        let down = before.history.iter().find_map(|past| past.down_seconds);
        let one_way = is_one_way(report.plan);
        let when = server.backup.as_ref().map(|backup| backup.before_update);
        let comes = comes(report.plan, report.seen);
        let contents = contents(when, one_way, comes);
        Self {
            down: down.map(|seconds| SignedDuration::from_secs(seconds.into())),
            copy: contents.map(|contents| PreUpdateBackup {
                contents,
                size: copies(report.seen).and_then(|seen| size(seen, contents)),
            }),
            is_leap: is_leap(when, one_way, comes),
        }
    }

    /// For example `about 25 s, plus about 3 min 10 s for the copy of the worlds (41.0 GB)`. `None` if no estimate is possible.
    pub(super) fn in_words(self) -> Option<String> {
        let Self { down, copy, is_leap } = self;
        let down = down.map(|down| format!("about {}", duration_in_words(down)));
        if is_leap {
            let down = down.unwrap_or_else(|| "the restart".to_owned());
            return Some(format!("{down}; {NO_COPY}"));
        }
        let Some(PreUpdateBackup { contents, size }) = copy else { return down };
        let down = down.unwrap_or_else(|| "the restart".to_owned());
        let of = match contents {
            Contents::Worlds => "the worlds",
            Contents::ServerFiles => "settings and plugins",
            Contents::Everything => "worlds, settings and plugins",
        };
        let copy = match size {
            Some(TransferSize { bytes, takes, is_guess }) => {
                let (takes, bytes) = (duration_in_words(takes), bytes_in_words(bytes));
                let guess = if is_guess { "; a guess, no copy was timed here yet" } else { "" };
                format!("about {takes} for the copy of {of} ({bytes}{guess})")
            }
            None => format!("the copy of {of}"),
        };
        Some(format!("{down}, plus {copy}"))
    }
}

/// Estimated time of the backup before the planned update, from the agent's last report. `None` if none is due, or the size is unknown.
pub(crate) fn copy_takes(server: &CheckedServer, plan: &Plan, seen: &Observed) -> Option<SignedDuration> {
    let when = server.backup.as_ref().map(|backup| backup.before_update);
    let contents = contents(when, is_one_way(plan), comes(plan, seen))?;
    let copies = seen.last_report()?.backups.as_ref()?;
    size(copies, contents).map(|size| size.takes)
}

/// Estimated time of a restore. The backup is assumed to be as large as the current data, and writing takes no longer than reading and
/// packing. `None` if the size is unknown.
pub(crate) fn restore_takes(seen: &Observed) -> Option<SignedDuration> {
    let copies = seen.last_report()?.backups.as_ref()?;
    size(copies, Contents::Everything).or_else(|| size(copies, Contents::Worlds)).map(|size| size.takes)
}

fn is_one_way(plan: &Plan) -> bool {
    plan.changes.iter().any(|change| change.one_way)
}

fn comes(plan: &Plan, seen: &Observed) -> UpcomingChange {
    let settled = seen.settled_lock.as_ref().map(|settled| settled.files.lock.as_str());
    UpcomingChange::of(&plan.record.files.lock, settled, copies(seen))
}

/// Text to append to the changes of a plan.
pub(super) fn behind(cost: Option<&str>) -> String {
    cost.map(|cost| format!("; down for {cost}")).unwrap_or_default()
}

/// Contents of the backup before the update. The rules are those of the agent, `scheduler::backup::due`. There is none for changed pod
/// settings of the running set, nor before a roll-back.
fn contents(before: Option<BeforeUpdate>, one_way: bool, comes: UpcomingChange) -> Option<Contents> {
    if comes == UpcomingChange::Same {
        return None;
    }
    match (before?, one_way) {
        (BeforeUpdate::OneWay, true) => Some(Contents::Worlds),
        (BeforeUpdate::Always, true) => Some(Contents::Everything),
        (BeforeUpdate::Always, false) => (comes != UpcomingChange::Before).then_some(Contents::Everything),
        (BeforeUpdate::OneWay, false) | (BeforeUpdate::Never, _) => None,
    }
}

/// Whether the worlds cannot be downgraded and are not backed up.
fn is_leap(before: Option<BeforeUpdate>, one_way: bool, comes: UpcomingChange) -> bool {
    one_way && !contents(before, one_way, comes).is_some_and(Contents::has_worlds)
}

/// Size and time of a backup. `None` if the size was never measured and no such backup exists.
fn size(seen: &BackupsSeen, contents: Contents) -> Option<TransferSize> {
    let known = || [&seen.last_of_worlds, &seen.last].into_iter().flatten();
    let copied = || known().find(|copy| copy.contents == contents).map(|copy| copy.bytes);
    let bytes = seen.sizes.map(|sizes| sizes.of(contents)).or_else(copied)?;
    // An offline backup is preferred, because the server did not use the disk then.
    let timed = known().find_map(rate);
    let takes = u128::from(bytes) * 1_000 / u128::from(timed.unwrap_or(GUESSED));
    let takes = SignedDuration::from_secs(i64::try_from(takes.div_ceil(1_000)).unwrap_or(i64::MAX));
    Some(TransferSize { bytes, takes: takes.max(SignedDuration::from_secs(1)), is_guess: timed.is_none() })
}

/// Bytes per second.
fn rate(copy: &BackupSeen) -> Option<u64> {
    let took = copy.completed_at.duration_since(copy.started_at).as_millis();
    let took = u64::try_from(took).ok().filter(|took| *took > 0)?;
    (copy.bytes >= WORTH_TIMING).then(|| (copy.bytes.saturating_mul(1_000) / took).max(1))
}

/// For example `41.0 GB`, `12 MB`, `less than 1 MB`.
fn bytes_in_words(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => "less than 1 MB".to_owned(),
        1_000_000..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes % 1_000_000_000 / 100_000_000),
    }
}

/// Downtime of the update to the running set in seconds, without the backup before it.
pub(super) fn down_without_copy(agent: Option<&protocol::AgentReport>) -> Option<u32> {
    let down = downtime(agent)?;
    let seen = agent.and_then(|agent| agent.backups.as_ref());
    let lock = agent.and_then(|agent| agent.lock.as_ref());
    let copy = seen
        .and_then(|seen| seen.last.as_ref())
        .filter(|copy| copy.trigger == Trigger::BeforeUpdate && copy.before.as_ref() == lock && copy.before.is_some());
    let stopped = agent.and_then(|agent| agent.last_stop.as_ref()).map(|stop| stop.at);
    // Only the backup of this stop counts: the same set may have been backed up before an earlier attempt.
    let copy = copy.filter(|copy| stopped.is_some_and(|stopped| stopped <= copy.started_at));
    let copied = copy.map(|copy| copy.completed_at.duration_since(copy.started_at)).unwrap_or_default();
    u32::try_from((down - copied).as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;
    use crate::server::report::tests::{Pass, record};

    fn seen(more: &Value) -> BackupsSeen {
        serde_json::from_value(more.clone()).unwrap()
    }

    fn copy(contents: &str, bytes: u64) -> Value {
        json!({
            "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
            "trigger": "beforeUpdate", "contents": contents, "before": "bb", "bytes": bytes, "archiveBytes": bytes,
        })
    }

    fn sizes(worlds: u64, server_files: u64) -> Value {
        json!({"at": "2026-11-22T04:00:00Z", "worlds": worlds, "serverFiles": server_files})
    }

    fn words(seen: &BackupsSeen, contents: Contents, down: Option<i64>) -> String {
        let copy = Some(PreUpdateBackup { contents, size: size(seen, contents) });
        DowntimeEstimate { down: down.map(SignedDuration::from_secs), copy, is_leap: false }.in_words().unwrap()
    }

    #[test]
    fn downtime_estimate_includes_restart_and_backup() {
        let known = seen(&json!({"lastOfWorlds": copy("worlds", 20_500_000_000), "sizes": sizes(41_000_000_000, 0)}));
        let said = "about 25 s, plus about 6 min 20 s for the copy of the worlds (41.0 GB)";
        assert_eq!(words(&known, Contents::Worlds, Some(25)), said);
        let only_down = DowntimeEstimate { down: Some(SignedDuration::from_secs(25)), copy: None, is_leap: false };
        assert_eq!(behind(only_down.in_words().as_deref()), "; down for about 25 s");
        let nothing = DowntimeEstimate { down: None, copy: None, is_leap: false };
        assert_eq!((nothing.in_words(), behind(None)), (None, String::new()));
    }

    #[test]
    fn downtime_estimate_warns_of_one_way_without_backup() {
        let is_leap = |before, one_way| is_leap(before, one_way, UpcomingChange::Other);
        let without = [None, Some(BeforeUpdate::Never)];
        assert!(without.into_iter().all(|before| is_leap(before, true) && !is_leap(before, false)));
        assert!(![BeforeUpdate::OneWay, BeforeUpdate::Always].into_iter().any(|before| is_leap(Some(before), true)));
        let leap = |down: Option<i64>| DowntimeEstimate {
            down: down.map(SignedDuration::from_secs),
            copy: None,
            is_leap: true,
        };
        let said = "no copy of the worlds is taken before it (`spec.backup`), and they cannot go back";
        assert_eq!(leap(Some(25)).in_words().unwrap(), format!("about 25 s; {said}"));
        assert_eq!(behind(leap(None).in_words().as_deref()), format!("; down for the restart; {said}"));
    }

    #[test]
    fn downtime_estimate_has_no_backup_for_pod_settings() {
        let always = |comes| contents(Some(BeforeUpdate::Always), false, comes);
        assert_eq!((always(UpcomingChange::Same), always(UpcomingChange::Other)), (None, Some(Contents::Everything)));
        let mut pass = Pass::new();
        pass.checked = check(&server(json!({"backup": {"beforeUpdate": "Always"}}))).unwrap();
        let copied = |pass: &Pass| {
            DowntimeEstimate::of(&pass.checked, &pass.report(), &pass.before).copy.map(|copy| copy.contents)
        };
        assert_eq!(copied(&pass), None, "the set that runs");
        pass.plan.record = record(131);
        assert!(pass.plan.changes.is_empty());
        assert_eq!(copied(&pass), Some(Contents::Everything), "another digest of the same files");
    }

    #[test]
    fn backup_estimate_survives_silent_agent() {
        let mut pass = Pass::new();
        pass.checked = check(&server(json!({"backup": {"beforeUpdate": "Always"}}))).unwrap();
        pass.agent_says(&json!({"backups": {"sizes": sizes(300_000_000_000, 0)}}));
        let takes = |pass: &Pass| copy_takes(&pass.checked, &pass.plan, &pass.seen).map(|takes| takes.as_secs());
        assert_eq!(takes(&pass), None, "the set that runs is not copied");
        pass.plan.record = record(131);
        assert_eq!(takes(&pass), Some(12_000));
        pass.seen.heard = pass.seen.report.take();
        assert_eq!(takes(&pass), Some(12_000), "by its last word");
        pass.seen.heard = None;
        assert_eq!(takes(&pass), None);
    }

    #[test]
    fn backup_estimate_is_marked_as_guess_without_history() {
        let first = seen(&json!({"sizes": sizes(41_000_000_000, 300_000_000)}));
        assert_eq!(
            words(&first, Contents::Everything, None),
            "the restart, plus about 27 min 32 s for the copy of worlds, settings and plugins (41.3 GB; a guess, no copy was timed \
             here yet)"
        );
        let tiny = seen(&json!({"last": copy("worlds", 5_000_000), "sizes": sizes(5_000_000, 1)}));
        assert!(words(&tiny, Contents::Worlds, None).contains("about 1 s for the copy of the worlds (5 MB; a guess"));
        assert!(
            words(&tiny, Contents::ServerFiles, None)
                .contains("about 1 s for the copy of settings and plugins (less than 1 MB")
        );
    }

    #[test]
    fn backup_estimate_uses_last_size_without_measurement() {
        let old = seen(&json!({"last": copy("worlds", 41_000_000_000)}));
        assert_eq!(
            words(&old, Contents::Worlds, None),
            "the restart, plus about 3 min 10 s for the copy of the worlds (41.0 GB)"
        );
        assert_eq!(words(&old, Contents::ServerFiles, None), "the restart, plus the copy of settings and plugins");
    }

    #[test]
    fn backup_estimate_matches_agent_contents() {
        let of = |before| [true, false].map(|one_way| contents(before, one_way, UpcomingChange::Other));
        assert_eq!(of(Some(BeforeUpdate::OneWay)), [Some(Contents::Worlds), None]);
        assert_eq!(of(Some(BeforeUpdate::Always)), [Some(Contents::Everything); 2]);
        assert_eq!([of(Some(BeforeUpdate::Never)), of(None)], [[None; 2]; 2]);
    }

    #[test]
    fn downtime_estimate_has_no_backup_for_rollback() {
        let of =
            |goal, settled, copy: Value| UpcomingChange::of(goal, settled, Some(&seen(&json!({"lastOfWorlds": copy}))));
        let mut before_b = copy("everything", 41_000_000_000);
        before_b["lock"] = json!("aa");
        assert_eq!(of("aa", Some("bb"), before_b.clone()), UpcomingChange::Before);
        assert_eq!(of("bb", Some("aa"), before_b.clone()), UpcomingChange::Other, "it failed, and is tried again");
        assert_eq!(of("aa", Some("cc"), before_b.clone()), UpcomingChange::Other, "the copy is not from right before");
        assert_eq!(of("bb", Some("bb"), before_b), UpcomingChange::Same);
        assert_eq!(
            (UpcomingChange::of("aa", None, None), of("aa", None, json!(null))),
            (UpcomingChange::Other, UpcomingChange::Other)
        );
        let back = |before, one_way| contents(Some(before), one_way, UpcomingChange::Before);
        assert_eq!(back(BeforeUpdate::Always, false), None);
        assert_eq!(back(BeforeUpdate::Always, true), Some(Contents::Everything), "a newer Minecraft cannot go back");
    }

    #[test]
    fn restart_estimate_excludes_backup_time() {
        let agent = |stopped: &str, before: &str| -> protocol::AgentReport {
            let mut last = copy("worlds", 41_000_000_000);
            last["before"] = json!(before);
            serde_json::from_value(json!({
                "at": "2026-11-22T04:00:00Z", "podUid": "u", "players": {"who": "nobody"}, "lock": "bb",
                "server": {"state": "up", "since": "2026-11-22T03:03:40Z", "answeredAt": "2026-11-22T04:00:00Z", "minecraft": "1.21.11"},
                "world": {"floor": null, "whole": true}, "backups": {"last": last},
                "lastStop": {"at": stopped, "saved": true, "why": "asked"},
            }))
            .unwrap()
        };
        let of = |stopped, before| down_without_copy(Some(&agent(stopped, before)));
        assert_eq!(of("2026-11-22T02:59:55Z", "bb"), Some(35), "225 s, and 190 s of them for the copy");
        assert_eq!(of("2026-11-22T02:59:55Z", "cc"), Some(225), "the copy of another step");
        assert_eq!(of("2026-11-22T03:03:20Z", "bb"), Some(20), "an earlier stop's copy");
        assert_eq!(down_without_copy(None), None);
    }
}
