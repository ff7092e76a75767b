//! Pure. Selects the backup that a user requests, and checks that the stable set can open its worlds. Invalid requests are rejected here,
//! before a server is stopped.

use agent_api::Contents;
use agent_api::restore::{LATEST, ListedBackup};
use agent_api::termination_message::WorldRefused;
use agent_api::{AgentReport, BackupsReport};
use crds::annotations::RESTORE_FROM;

use crate::server::model::records::LockRecord;
use crate::server::observe::{Observed, supports_backups};
use validate::{CheckedServer, is_backup_reference};

/// The option that permits replacing existing worlds.
pub(super) const OVERWRITE: &str = "overwrite";
/// The option that also restores settings, plugins and their data.
const EVERYTHING: &str = "contents=Everything";
/// Number of backups that the message lists if the requested one does not exist.
const MAX_NAMED: usize = 5;

/// Why no backup is selected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoBackupReason {
    /// The agent has to be reached first.
    NotReady,
    /// The request is rejected for good, with a message.
    Refused(String),
}

/// The requested backup, if all available information allows its restore.
pub(super) fn choose_backup(
    requested: &str,
    server: &CheckedServer,
    observed: &Observed,
) -> Result<String, NoBackupReason> {
    let refused = |why: String| NoBackupReason::Refused(format!("`{RESTORE_FROM}`: {why}"));
    let RestoreQuery { backup, overwrite, everything } = parse_query(requested).map_err(refused)?;
    if server.data.backup.is_none() {
        return Err(refused("this server takes no backups: `spec.backup.enabled` is `false`".to_owned()));
    }
    let Some(stable) = &observed.stable_lock else { return Err(NoBackupReason::NotReady) };
    if observed.stable.as_ref().is_some_and(|record| !supports_backups(&record.template)) {
        return Err(refused(no_volume_message(stable)));
    }
    let missing_overwrite = || {
        let hint = format!("if you write `{requested};{OVERWRITE}`");
        refused(format!("the server has worlds. They are moved away and no longer used {hint}"))
    };
    if let Some(refusal) = observed.world_refused() {
        return if overwrite {
            find_without_list(backup, everything, &refusal).map_err(refused)
        } else {
            Err(missing_overwrite())
        };
    }
    let Some(report) = observed.reply.report.as_deref() else { return Err(NoBackupReason::NotReady) };
    let listed = listed_backups(report, everything).map_err(refused)?;
    if !overwrite {
        return Err(missing_overwrite());
    }
    find_backup(backup, everything, listed, observed, stable).map_err(refused)
}

fn no_volume_message(stable: &LockRecord) -> String {
    format!(
        "the version set that would start ({}-{}) is older than `spec.backup`, and its pod has no backup volume. The \
        next restart after which the server is healthy adds it. Until then, restore a backup manually \
        (docs/guides/backup.md)",
        stable.lock.minecraft, stable.lock.build
    )
}

/// The newest backup whose worlds the stable set can open, according to a reachable agent.
pub(crate) fn newest_backup(observed: &Observed) -> Option<String> {
    let supports_requests = observed.stable.as_ref().is_none_or(|record| supports_backups(&record.template));
    let stable = observed.stable_lock.as_ref().filter(|_| supports_requests)?;
    find_backup(LATEST, false, listed_backups(observed.reply.report.as_deref()?, false).ok()?, observed, stable).ok()
}

/// Selects a backup while the init container refuses the worlds and no agent can list the backups. The init container inspects a named
/// backup before it changes any file, and no running server would be stopped in vain.
fn find_without_list(wanted: &str, everything: bool, refusal: &WorldRefused) -> Result<String, String> {
    if wanted != LATEST {
        return Ok(wanted.to_owned());
    }
    match (&refusal.backups, everything) {
        (Some(backups), false) => backups
            .first()
            .cloned()
            .ok_or_else(|| "there is no good backup with worlds that the version set could open".to_owned()),
        (Some(backups), true) => Err(format!(
            "the agent is unreachable, so it is unknown which backups have settings and plugins: write the name of \
            one. Backups with worlds: {}",
            backups.join(", ")
        )),
        (None, _) => Err("the agent is unreachable, so the backups are unknown: write the name of one from an Event \
        `BackupTaken`"
            .to_owned()),
    }
}

/// The listed backups, if the agent supports the request.
fn listed_backups(report: &AgentReport, everything: bool) -> Result<&[ListedBackup], String> {
    match &report.backups {
        Some(BackupsReport { problem: Some(problem), .. }) => Err(problem.clone()),
        Some(BackupsReport { listed: Some(listed), puts_back_everything, .. })
            if *puts_back_everything || !everything =>
        {
            Ok(listed)
        }
        Some(_) | None => {
            Err("the pod is too old for this request: write the request again after the next restart of the server"
                .to_owned())
        }
    }
}

/// The parsed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RestoreQuery<'a> {
    /// The name of a backup, or `latest`.
    pub(super) backup: &'a str,
    /// Whether existing worlds may be replaced.
    pub(super) overwrite: bool,
    /// Whether settings, plugins and their data are restored, too.
    pub(super) everything: bool,
}

/// Parses the annotation.
pub(super) fn parse_query(requested: &str) -> Result<RestoreQuery<'_>, String> {
    let (backup, options) = requested.split_once(';').unwrap_or((requested, ""));
    let backup = backup.trim_end();
    let split: Vec<&str> = options.split(';').map(str::trim).collect();
    let (overwrite, everything) = match split.as_slice() {
        [""] if !requested.contains(';') => (false, false),
        [OVERWRITE] => (true, false),
        [EVERYTHING] => (false, true),
        [OVERWRITE, EVERYTHING] | [EVERYTHING, OVERWRITE] => (true, true),
        _ => {
            let hint = format!("write `;{OVERWRITE}`, or `;{OVERWRITE};{EVERYTHING}`");
            return Err(format!("`;{options}` after the name of the backup is unknown: {hint}"));
        }
    };
    if is_backup_reference(backup) {
        return Ok(RestoreQuery { backup, overwrite, everything });
    }
    if let Some((server, of_another)) = backup.split_once('/').filter(|(_, backup)| is_backup_reference(backup)) {
        return Err(format!(
            "`{backup}` is a backup of another server. Only backups of this server can replace an existing world. For \
            a new volume write `spec.restoreFrom: {{server: {server}, backup: {of_another}}}`. Otherwise, see \
            docs/guides/backup.md to restore it manually"
        ));
    }
    Err(format!(
        "`{backup}` is not the name of a backup: write `{LATEST}`, or a name such as \
    `20261122T030000Z-1a2b3c4d`"
    ))
}

/// The name of the backup, if it has the requested contents and the stable set can open its worlds. The stable set starts after the
/// restore, even if another one is in rollout now.
fn find_backup(
    wanted: &str,
    everything: bool,
    listed: &[ListedBackup],
    observed: &Observed,
    stable: &LockRecord,
) -> Result<String, String> {
    let has_worlds = |backup: &&ListedBackup| backup.contents.is_some_and(Contents::has_worlds);
    let has_all =
        |backup: &&ListedBackup| has_worlds(backup) && backup.contents.is_some_and(Contents::has_server_files);
    let will_do = |backup: &&ListedBackup| if everything { has_all(backup) } else { has_worlds(backup) };
    let contents = if everything { "worlds, settings and plugins" } else { "worlds" };
    let files = &stable.files;
    let opens = |backup: &&ListedBackup| files.can_open(backup.data_version, backup.lock.as_deref());
    let is_good = |backup: &&ListedBackup| backup.problem.is_none();
    let found = match wanted {
        LATEST => listed.iter().filter(will_do).filter(is_good).find(opens),
        name => listed.iter().find(|backup| backup.id == name),
    };
    let newest = || {
        let all = listed.iter().filter(will_do).filter(is_good).filter(opens);
        let mark = |backup: &ListedBackup| if backup.after_damage { " (after damage)" } else { "" };
        let names: Vec<_> = all.take(MAX_NAMED).map(|backup| format!("{}{}", backup.id, mark(backup))).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("the newest backups with {contents} are: {names}")
    };
    let Some(found) = found else { return Err(format!("there is no backup `{wanted}`: {}", newest())) };
    let id = &found.id;
    // A listed backup with known contents had only a read error. The user's explicit choice is then tried.
    if let Some(problem) = found.problem.as_ref().filter(|_| found.contents.is_none()) {
        return Err(format!("the backup `{id}` cannot be used: {problem}"));
    }
    if !has_worlds(&found) {
        return Err(format!("the backup `{id}` has no worlds"));
    }
    if !will_do(&found) {
        let hint = format!("leave out `;{EVERYTHING}` to restore them");
        return Err(format!("the backup `{id}` has worlds only: {hint}, or choose another one: {}", newest()));
    }
    if !opens(&found) {
        let is_another = observed.pod_lock.is_some() && !observed.runs_stable_files();
        let state = if is_another { "would be restored" } else { "runs" };
        return Err(format!(
            "the backup `{id}` is of a newer Minecraft than {}, which {state}, and a world cannot be downgraded: {}",
            files.minecraft,
            newest()
        ));
    }
    Ok(id.clone())
}
