//! Pure. Estimates the downtime of an update: the restart, and the backup before it.

use agent_api::{BackupReport, BackupsReport};
use agent_api::{Contents, Trigger};
use crds::PaperMCServerStatus;
use crds::paper_mc_server::BeforeUpdate;
use jiff::SignedDuration;

use super::context::PassReport;
use super::format::format_short_duration;
use super::stop_times::downtime;
use crate::server::backups::current_backups;
use crate::server::observe::Observed;
use crate::server::plan::Plan;
use validate::CheckedServer;

/// Assumed bytes per second of a backup, including its verification, if none was timed yet: one processor and a slow disk. A too long
/// estimate does no harm.
const ASSUMED_BYTES_PER_SECOND: u64 = 25_000_000;
/// Minimum size of a backup for a measurement. A smaller one measures how long files take to open, and not the disk.
const MIN_TIMED_BYTES: u64 = 10_000_000;

/// Message about a step that cannot be undone and has no backup before it.
const NO_BACKUP: &str = "No backup of the worlds is taken before it (`spec.backup`), and they cannot be downgraded";

/// The expected downtime of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DowntimeEstimate {
    /// Downtime of this server's last update, without the backup.
    down: Option<SignedDuration>,
    backup: Option<PreUpdateBackup>,
    /// The worlds cannot be downgraded afterwards, and no backup of them is taken before.
    is_irreversible: bool,
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
    duration: SignedDuration,
    /// No backup has been timed on this server yet.
    is_guess: bool,
}

/// The planned change relative to the running set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpcomingChange {
    /// The running set with changed pod settings.
    Same,
    /// The set that ran before: a roll-back.
    Previous,
    /// Another set, or one that was rolled back and is tried again.
    Other,
}

impl UpcomingChange {
    /// The agent does not report which set ran before. On a server with a backup before each change, the backup from before the running set
    /// names both.
    fn new(goal: &str, stable: Option<&str>, backups: Option<&BackupsReport>) -> Self {
        if stable == Some(goal) {
            return Self::Same;
        }
        let last = backups.and_then(|backups| backups.last_of_worlds.as_ref());
        let is_previous =
            |backup: &BackupReport| backup.lock.as_deref() == Some(goal) && backup.before.as_deref() == stable;
        if stable.is_some() && last.is_some_and(is_previous) { Self::Previous } else { Self::Other }
    }
}

impl DowntimeEstimate {
    /// The estimate for the planned update. `before` is the last status.
    pub(super) fn new(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Self {
        let down = before.history.iter().find_map(|past| past.down_seconds);
        let contents = due_backup(server, report.plan, report.pass.observed);
        Self {
            down: down.map(|seconds| SignedDuration::from_secs(seconds.into())),
            backup: contents.map(|contents| PreUpdateBackup {
                contents,
                size: current_backups(report.pass.observed).and_then(|backups| transfer_size(backups, contents)),
            }),
            is_irreversible: is_irreversible(is_one_way(report.plan), contents),
        }
    }

    /// For example `about 25 s, plus about 3 min 10 s for the backup of the worlds (41.0 GB)`. `None` if no estimate is possible.
    pub(super) fn message(self) -> Option<String> {
        let Self { down, backup, is_irreversible } = self;
        let down = down.map(|down| format!("about {}", format_short_duration(down)));
        if is_irreversible {
            let down = down.unwrap_or_else(|| "the restart".to_owned());
            return Some(format!("{down}. {NO_BACKUP}"));
        }
        let Some(PreUpdateBackup { contents, size }) = backup else { return down };
        let down = down.unwrap_or_else(|| "the restart".to_owned());
        let of = contents_text(contents);
        let backup = match size {
            Some(TransferSize { bytes, duration, is_guess }) => {
                let (duration, bytes) = (format_short_duration(duration), format_bytes(bytes));
                let guess = if is_guess { ", estimated without an earlier backup" } else { "" };
                format!("about {duration} for the backup of {of} ({bytes}{guess})")
            }
            None => format!("the backup of {of}"),
        };
        Some(format!("{down}, plus {backup}"))
    }
}

/// Estimated time of the backup before the planned update, from the agent's last report. `None` if none is due, or the size is unknown.
pub(crate) fn backup_estimate(server: &CheckedServer, plan: &Plan, observed: &Observed) -> Option<SignedDuration> {
    let contents = due_backup(server, plan, observed)?;
    let backups = observed.last_report()?.backups.as_ref()?;
    transfer_size(backups, contents).map(|size| size.duration)
}

/// The backup that is due before the planned update.
pub(crate) fn due_backup(server: &CheckedServer, plan: &Plan, observed: &Observed) -> Option<Contents> {
    let when = server.data.backup.as_ref().map(|backup| backup.before_update);
    backup_contents(when, is_one_way(plan), upcoming_change(plan, observed))
}

/// The contents of a backup, for messages.
pub(crate) fn contents_text(contents: Contents) -> &'static str {
    match contents {
        Contents::Worlds => "the worlds",
        Contents::ServerFiles => "settings and plugins",
        Contents::Everything => "worlds, settings and plugins",
    }
}

/// Estimated time of a restore. The backup is assumed to be as large as the current data, and writing takes no longer than reading and
/// packing. `None` if the size is unknown.
pub(crate) fn restore_estimate(observed: &Observed) -> Option<SignedDuration> {
    let backups = observed.last_report()?.backups.as_ref()?;
    transfer_size(backups, Contents::Everything)
        .or_else(|| transfer_size(backups, Contents::Worlds))
        .map(|size| size.duration)
}

fn is_one_way(plan: &Plan) -> bool {
    plan.target.changes.iter().any(|change| change.one_way)
}

fn upcoming_change(plan: &Plan, observed: &Observed) -> UpcomingChange {
    let stable = observed.stable_lock.as_ref().map(|stable| stable.files.lock.as_str());
    UpcomingChange::new(&plan.target.record.files.lock, stable, current_backups(observed))
}

/// Text to append to the changes of a plan.
pub(super) fn downtime_suffix(downtime: Option<&str>) -> String {
    downtime.map(|downtime| format!(". Expected downtime: {downtime}")).unwrap_or_default()
}

/// Contents of the backup before the update. The rules are those of the agent, `agent::backup::due`. There is none for changed pod
/// settings of the running set, nor before a roll-back.
fn backup_contents(before: Option<BeforeUpdate>, one_way: bool, change: UpcomingChange) -> Option<Contents> {
    if change == UpcomingChange::Same {
        return None;
    }
    match (before?, one_way) {
        (BeforeUpdate::OneWay, true) => Some(Contents::Worlds),
        (BeforeUpdate::Always, true) => Some(Contents::Everything),
        (BeforeUpdate::Always, false) => (change != UpcomingChange::Previous).then_some(Contents::Everything),
        (BeforeUpdate::OneWay, false) | (BeforeUpdate::Never, _) => None,
    }
}

/// Whether the worlds cannot be downgraded and the backup, if any, lacks them.
fn is_irreversible(one_way: bool, contents: Option<Contents>) -> bool {
    one_way && !contents.is_some_and(Contents::has_worlds)
}

/// Size and time of a backup. `None` if the size was never measured and no such backup exists.
fn transfer_size(backups: &BackupsReport, contents: Contents) -> Option<TransferSize> {
    let candidates = || [&backups.last_of_worlds, &backups.last].into_iter().flatten();
    let measured = || candidates().find(|backup| backup.contents == contents).map(|backup| backup.bytes);
    let bytes = backups.sizes.map(|sizes| sizes.total(contents)).or_else(measured)?;
    // An offline backup is preferred, because the server did not use the disk then.
    let timed = candidates().find_map(rate);
    let duration = u128::from(bytes) * 1_000 / u128::from(timed.unwrap_or(ASSUMED_BYTES_PER_SECOND));
    let duration = SignedDuration::from_secs(i64::try_from(duration.div_ceil(1_000)).unwrap_or(i64::MAX));
    Some(TransferSize { bytes, duration: duration.max(SignedDuration::from_secs(1)), is_guess: timed.is_none() })
}

/// Bytes per second.
fn rate(backup: &BackupReport) -> Option<u64> {
    let took = backup.completed_at.duration_since(backup.started_at).as_millis();
    let took = u64::try_from(took).ok().filter(|took| *took > 0)?;
    (backup.bytes >= MIN_TIMED_BYTES).then(|| (backup.bytes.saturating_mul(1_000) / took).max(1))
}

/// For example `41.0 GB`, `12 MB`, `less than 1 MB`.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => "less than 1 MB".to_owned(),
        1_000_000..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes % 1_000_000_000 / 100_000_000),
    }
}

/// Downtime of the update to the running set in seconds, without the backup before it.
pub(super) fn downtime_without_backup(agent: Option<&agent_api::AgentReport>) -> Option<u32> {
    let down = downtime(agent)?;
    let backups = agent.and_then(|agent| agent.backups.as_ref());
    let lock = agent.and_then(|agent| agent.lock.as_ref());
    let backup = backups.and_then(|backups| backups.last.as_ref()).filter(|backup| {
        backup.trigger == Trigger::BeforeUpdate && backup.before.as_ref() == lock && backup.before.is_some()
    });
    let stopped = agent.and_then(|agent| agent.last_stop.as_ref()).map(|stop| stop.at);
    // Only the backup of this stop counts: the same set may have been backed up before an earlier attempt.
    let backup = backup.filter(|backup| stopped.is_some_and(|stopped| stopped <= backup.started_at));
    let took = backup.map(|backup| backup.completed_at.duration_since(backup.started_at)).unwrap_or_default();
    u32::try_from((down - took).as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::report::tests::{Pass, record};
    use crate::server::test_server::server;
    use validate::check;

    fn backups(more: &Value) -> BackupsReport {
        serde_json::from_value(more.clone()).unwrap()
    }

    fn backup(contents: &str, bytes: u64) -> Value {
        json!({
            "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
            "trigger": "beforeUpdate", "contents": contents, "before": "bb", "bytes": bytes, "archiveBytes": bytes,
        })
    }

    fn sizes(worlds: u64, server_files: u64) -> Value {
        json!({"at": "2026-11-22T04:00:00Z", "worlds": worlds, "serverFiles": server_files})
    }

    fn message_for(backups: &BackupsReport, contents: Contents, down: Option<i64>) -> String {
        let backup = Some(PreUpdateBackup { contents, size: transfer_size(backups, contents) });
        DowntimeEstimate { down: down.map(SignedDuration::from_secs), backup, is_irreversible: false }
            .message()
            .unwrap()
    }

    #[test]
    fn downtime_estimate_includes_restart_and_backup() {
        let backups =
            backups(&json!({"lastOfWorlds": backup("worlds", 20_500_000_000), "sizes": sizes(41_000_000_000, 0)}));
        let message = "about 25 s, plus about 6 min 20 s for the backup of the worlds (41.0 GB)";
        assert_eq!(message_for(&backups, Contents::Worlds, Some(25)), message);
        let without_backup =
            DowntimeEstimate { down: Some(SignedDuration::from_secs(25)), backup: None, is_irreversible: false };
        assert_eq!(downtime_suffix(without_backup.message().as_deref()), ". Expected downtime: about 25 s");
        let nothing = DowntimeEstimate { down: None, backup: None, is_irreversible: false };
        assert_eq!((nothing.message(), downtime_suffix(None)), (None, String::new()));
    }

    #[test]
    fn downtime_estimate_warns_of_one_way_without_backup() {
        let is_final =
            |before, one_way| is_irreversible(one_way, backup_contents(before, one_way, UpcomingChange::Other));
        let without = [None, Some(BeforeUpdate::Never)];
        assert!(without.into_iter().all(|before| is_final(before, true) && !is_final(before, false)));
        assert!(![BeforeUpdate::OneWay, BeforeUpdate::Always].into_iter().any(|before| is_final(Some(before), true)));
        let estimate = |down: Option<i64>| DowntimeEstimate {
            down: down.map(SignedDuration::from_secs),
            backup: None,
            is_irreversible: true,
        };
        let message = "No backup of the worlds is taken before it (`spec.backup`), and they cannot be downgraded";
        assert_eq!(estimate(Some(25)).message().unwrap(), format!("about 25 s. {message}"));
        assert_eq!(
            downtime_suffix(estimate(None).message().as_deref()),
            format!(
                ". Expected downtime: the restart. \
        {message}"
            )
        );
    }

    #[test]
    fn downtime_estimate_has_no_backup_for_pod_settings() {
        let always = |change| backup_contents(Some(BeforeUpdate::Always), false, change);
        assert_eq!((always(UpcomingChange::Same), always(UpcomingChange::Other)), (None, Some(Contents::Everything)));
        let mut pass = Pass::new();
        pass.checked = check(&server(json!({"backup": {"beforeUpdate": "Always"}}))).unwrap();
        let estimated = |pass: &Pass| {
            DowntimeEstimate::new(&pass.checked, &pass.report(), &pass.before).backup.map(|backup| backup.contents)
        };
        assert_eq!(estimated(&pass), None, "the running set needs no backup");
        pass.plan.target.record = record(131);
        assert!(pass.plan.target.changes.is_empty());
        assert_eq!(estimated(&pass), Some(Contents::Everything), "another digest needs a backup");
    }

    #[test]
    fn backup_estimate_survives_silent_agent() {
        let mut pass = Pass::new();
        pass.checked = check(&server(json!({"backup": {"beforeUpdate": "Always"}}))).unwrap();
        pass.extend_agent_report(&json!({"backups": {"sizes": sizes(300_000_000_000, 0)}}));
        let duration =
            |pass: &Pass| backup_estimate(&pass.checked, &pass.plan, &pass.observed).map(|duration| duration.as_secs());
        assert_eq!(duration(&pass), None, "the running set needs no backup");
        pass.plan.target.record = record(131);
        assert_eq!(duration(&pass), Some(12_000));
        pass.observed.reply.cached_report = pass.observed.reply.report.take();
        assert_eq!(duration(&pass), Some(12_000), "the last report counts");
        pass.observed.reply.cached_report = None;
        assert_eq!(duration(&pass), None);
    }

    #[test]
    fn backup_estimate_is_marked_as_guess_without_history() {
        let first = backups(&json!({"sizes": sizes(41_000_000_000, 300_000_000)}));
        assert_eq!(
            message_for(&first, Contents::Everything, None),
            "the restart, plus about 27 min 32 s for the backup of worlds, settings and plugins (41.3 GB, estimated \
            without an earlier backup)"
        );
        let tiny = backups(&json!({"last": backup("worlds", 5_000_000), "sizes": sizes(5_000_000, 1)}));
        assert!(
            message_for(&tiny, Contents::Worlds, None)
                .contains("about 1 s for the backup of the worlds (5 MB, estimated")
        );
        assert!(
            message_for(&tiny, Contents::ServerFiles, None)
                .contains("about 1 s for the backup of settings and plugins (less than 1 MB")
        );
    }

    #[test]
    fn backup_estimate_uses_last_size_without_measurement() {
        let old = backups(&json!({"last": backup("worlds", 41_000_000_000)}));
        assert_eq!(
            message_for(&old, Contents::Worlds, None),
            "the restart, plus about 3 min 10 s for the backup of the worlds (41.0 GB)"
        );
        assert_eq!(
            message_for(&old, Contents::ServerFiles, None),
            "the restart, plus the backup of settings and plugins"
        );
    }

    #[test]
    fn backup_estimate_matches_agent_contents() {
        let of = |before| [true, false].map(|one_way| backup_contents(before, one_way, UpcomingChange::Other));
        assert_eq!(of(Some(BeforeUpdate::OneWay)), [Some(Contents::Worlds), None]);
        assert_eq!(of(Some(BeforeUpdate::Always)), [Some(Contents::Everything); 2]);
        assert_eq!([of(Some(BeforeUpdate::Never)), of(None)], [[None; 2]; 2]);
    }

    #[test]
    fn downtime_estimate_has_no_backup_for_rollback() {
        let of = |goal, stable, backup: Value| {
            UpcomingChange::new(goal, stable, Some(&backups(&json!({"lastOfWorlds": backup}))))
        };
        let mut before_b = backup("everything", 41_000_000_000);
        before_b["lock"] = json!("aa");
        assert_eq!(of("aa", Some("bb"), before_b.clone()), UpcomingChange::Previous);
        assert_eq!(of("bb", Some("aa"), before_b.clone()), UpcomingChange::Other, "a failed update is tried again");
        assert_eq!(of("aa", Some("cc"), before_b.clone()), UpcomingChange::Other, "the backup is of another update");
        assert_eq!(of("bb", Some("bb"), before_b), UpcomingChange::Same);
        assert_eq!(
            (UpcomingChange::new("aa", None, None), of("aa", None, json!(null))),
            (UpcomingChange::Other, UpcomingChange::Other)
        );
        let previous = |before, one_way| backup_contents(Some(before), one_way, UpcomingChange::Previous);
        assert_eq!(previous(BeforeUpdate::Always, false), None);
        assert_eq!(
            previous(BeforeUpdate::Always, true),
            Some(Contents::Everything),
            "a newer Minecraft always needs a backup"
        );
    }

    #[test]
    fn restart_estimate_excludes_backup_time() {
        let agent = |stopped: &str, before: &str| -> agent_api::AgentReport {
            let mut last = backup("worlds", 41_000_000_000);
            last["before"] = json!(before);
            serde_json::from_value(json!({
                "at": "2026-11-22T04:00:00Z", "podUid": "u", "players": {"who": "nobody"}, "lock": "bb",
                "server": {"state": "up", "since": "2026-11-22T03:03:40Z", "answeredAt": "2026-11-22T04:00:00Z", "minecraft": "1.21.11"},
                "world": {"floor": null, "whole": true}, "backups": {"last": last},
                "lastStop": {"at": stopped, "saved": true, "why": "asked"},
            }))
            .unwrap()
        };
        let of = |stopped, before| downtime_without_backup(Some(&agent(stopped, before)));
        assert_eq!(of("2026-11-22T02:59:55Z", "bb"), Some(35), "190 s of 225 s were the backup");
        assert_eq!(of("2026-11-22T02:59:55Z", "cc"), Some(225), "the backup of another update");
        assert_eq!(of("2026-11-22T03:03:20Z", "bb"), Some(20), "the backup of an earlier stop");
        assert_eq!(downtime_without_backup(None), None);
    }
}
