//! Pure. Selects the backup that a user requests, and checks that the stable set can open its worlds. Invalid requests are rejected here,
//! before a server is stopped.

use crds::annotations::RESTORE_FROM;
use scheduler::backup::Contents;
use scheduler::protocol::last_words::WorldRefused;
use scheduler::protocol::restore::{LATEST, ListedCopy};
use scheduler::protocol::{AgentReport, BackupsSeen};

use crate::server::check::{CheckedServer, is_copy};
use crate::server::observe::{Observed, has_copies};
use crate::server::records::LockRecord;

/// The option that permits replacing existing worlds.
pub(super) const OVERWRITE: &str = "overwrite";
/// The option that also restores settings, plugins and their data.
const EVERYTHING: &str = "contents=Everything";
/// Number of backups that the message lists if the requested one does not exist.
const NAMED: usize = 5;

/// Why no backup is selected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoBackupReason {
    /// The agent has to be reached first.
    NotYet,
    /// The request is rejected for good, with a message.
    Refused(String),
}

/// The requested backup, if all available information allows its restore.
pub(super) fn choose(asked: &str, server: &CheckedServer, seen: &Observed) -> Result<String, NoBackupReason> {
    let refused = |why: String| NoBackupReason::Refused(format!("`{RESTORE_FROM}`: {why}"));
    let RestoreQuery { copy, overwrite, everything } = read(asked).map_err(refused)?;
    if server.backup.is_none() {
        return Err(refused("this server has no copies: write `spec.backup` first".to_owned()));
    }
    let Some(settled) = &seen.settled_lock else { return Err(NoBackupReason::NotYet) };
    if seen.settled.as_ref().is_some_and(|record| !has_copies(&record.template)) {
        return Err(refused(no_volume(settled)));
    }
    let without_the_word = || {
        let way = format!("if you write `{asked};{OVERWRITE}`");
        refused(format!("the server has worlds. They are set aside, and nobody plays them any more, {way}"))
    };
    if let Some(said) = seen.world_refused() {
        return if overwrite { find_unseen(copy, everything, &said).map_err(refused) } else { Err(without_the_word()) };
    }
    let Some(report) = seen.report.as_deref() else { return Err(NoBackupReason::NotYet) };
    let listed = listed(report, everything).map_err(refused)?;
    if !overwrite {
        return Err(without_the_word());
    }
    find(copy, everything, listed, seen, settled).map_err(refused)
}

fn no_volume(settled: &LockRecord) -> String {
    format!(
        "the set that would start ({}-{}) settled before `spec.backup`, and its pod has no volume for copies: that comes with the next restart \
         after which the server is well. Until then docs/guides/backup.md says how to put a copy in its place by hand",
        settled.lock.minecraft, settled.lock.build
    )
}

/// The newest backup whose worlds the stable set can open, according to a reachable agent.
pub(crate) fn newest(seen: &Observed) -> Option<String> {
    let can_obey = seen.settled.as_ref().is_none_or(|record| has_copies(&record.template));
    let settled = seen.settled_lock.as_ref().filter(|_| can_obey)?;
    find(LATEST, false, listed(seen.report.as_deref()?, false).ok()?, seen, settled).ok()
}

/// Selects a backup while the init container refuses the worlds and no agent can list the backups. The init container inspects a named
/// backup before it changes any file, and no running server would be stopped in vain.
fn find_unseen(wanted: &str, everything: bool, said: &WorldRefused) -> Result<String, String> {
    if wanted != LATEST {
        return Ok(wanted.to_owned());
    }
    match (&said.copies, everything) {
        (Some(copies), false) => copies
            .first()
            .cloned()
            .ok_or_else(|| "there is no good copy with worlds that the set could open".to_owned()),
        (Some(copies), true) => Err(format!(
            "nobody can be asked now which copies hold settings and plugins too: write the name of one. With worlds there are: {}",
            copies.join(", ")
        )),
        (None, _) => Err("nobody can be asked now which copies there are: write the name of one, as the Events `BackupTaken` have it".to_owned()),
    }
}

/// The listed backups, if the agent supports the request.
fn listed(report: &AgentReport, everything: bool) -> Result<&[ListedCopy], String> {
    match &report.backups {
        Some(BackupsSeen { problem: Some(problem), .. }) => Err(problem.clone()),
        Some(BackupsSeen { listed: Some(listed), puts_back_everything, .. })
            if *puts_back_everything || !everything =>
        {
            Ok(listed)
        }
        Some(_) | None => {
            Err("the pod is from before the copies or the request were known: that comes with its next restart. \
                               Write it again after that"
                .to_owned())
        }
    }
}

/// The parsed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RestoreQuery<'a> {
    /// The name of a backup, or `latest`.
    pub(super) copy: &'a str,
    /// Whether existing worlds may be replaced.
    pub(super) overwrite: bool,
    /// Whether settings, plugins and their data are restored, too.
    pub(super) everything: bool,
}

/// Parses the annotation.
pub(super) fn read(asked: &str) -> Result<RestoreQuery<'_>, String> {
    let (copy, words) = asked.split_once(';').unwrap_or((asked, ""));
    let copy = copy.trim_end();
    let split: Vec<&str> = words.split(';').map(str::trim).collect();
    let (overwrite, everything) = match split.as_slice() {
        [""] if !asked.contains(';') => (false, false),
        [OVERWRITE] => (true, false),
        [EVERYTHING] => (false, true),
        [OVERWRITE, EVERYTHING] | [EVERYTHING, OVERWRITE] => (true, true),
        _ => {
            let way = format!("write `;{OVERWRITE}`, or `;{OVERWRITE};{EVERYTHING}`");
            return Err(format!("`;{words}` behind the copy's name is not known: {way}"));
        }
    };
    if is_copy(copy) {
        return Ok(RestoreQuery { copy, overwrite, everything });
    }
    if let Some((server, of_another)) = copy.split_once('/').filter(|(_, copy)| is_copy(copy)) {
        return Err(format!(
            "`{copy}` is a copy of another server, and only those of this one are put in the place of a world that is there. For a new volume write \
             `spec.restoreFrom: {{server: {server}, copy: {of_another}}}`; else docs/guides/backup.md says how it is done by hand"
        ));
    }
    Err(format!("`{copy}` is no copy's name: write `{LATEST}`, or a name such as `20261122T030000Z-1a2b3c4d`"))
}

/// The name of the backup, if it has the requested contents and the stable set can open its worlds. The stable set starts after the
/// restore, even if another one is in rollout now.
fn find(
    wanted: &str,
    everything: bool,
    listed: &[ListedCopy],
    seen: &Observed,
    settled: &LockRecord,
) -> Result<String, String> {
    let has_worlds = |copy: &&ListedCopy| copy.contents.is_some_and(Contents::has_worlds);
    let has_all = |copy: &&ListedCopy| has_worlds(copy) && copy.contents.is_some_and(Contents::has_server_files);
    let will_do = |copy: &&ListedCopy| if everything { has_all(copy) } else { has_worlds(copy) };
    let what = if everything { "worlds, settings and plugins" } else { "worlds" };
    let set = &settled.files;
    let opens = |copy: &&ListedCopy| set.opens(copy.data_version, copy.lock.as_deref());
    let is_good = |copy: &&ListedCopy| copy.problem.is_none();
    let found = match wanted {
        LATEST => listed.iter().filter(will_do).filter(is_good).find(opens),
        name => listed.iter().find(|copy| copy.id == name),
    };
    let newest = || {
        let all = listed.iter().filter(will_do).filter(is_good).filter(opens);
        let mark = |copy: &ListedCopy| if copy.after_damage { " (after damage)" } else { "" };
        let names: Vec<_> = all.take(NAMED).map(|copy| format!("{}{}", copy.id, mark(copy))).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("the newest ones with {what} are: {names}")
    };
    let Some(found) = found else { return Err(format!("there is no copy `{wanted}`; {}", newest())) };
    let id = &found.id;
    // A listed backup with known contents had only a read error. The user's explicit choice is then tried.
    if let Some(problem) = found.problem.as_ref().filter(|_| found.contents.is_none()) {
        return Err(format!("the copy `{id}` cannot be used: {problem}"));
    }
    if !has_worlds(&found) {
        return Err(format!("the copy `{id}` holds no worlds"));
    }
    if !will_do(&found) {
        let way = format!("leave `;{EVERYTHING}` out for its worlds alone");
        return Err(format!("the copy `{id}` holds worlds and nothing else: {way}; {}", newest()));
    }
    if !opens(&found) {
        let is_another = seen.pod_lock.is_some() && !seen.runs_settled_files();
        let what = if is_another { "would come back" } else { "runs" };
        return Err(format!(
            "the copy `{id}` is of a newer Minecraft than {}, which {what}, and a world cannot go back; {}",
            set.minecraft,
            newest()
        ));
    }
    Ok(id.clone())
}
