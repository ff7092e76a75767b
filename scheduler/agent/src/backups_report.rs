//! Edge (reads). Reports on the backups in the repository of a server.

use std::path::Path;

use super::play_record::may_have_played_since;
use super::{ErrorChain, clock, requested_restore};
use crate::backup::repository::{BackupRepository, rollback_backup};
use crate::backup::{Backup, restore};
use crate::staging::{Volume, read_record};
use crate::world::Worlds;
use agent_api::{BackupReport, BackupsReport};

/// The report on the existing backups. `backups` is the server's own directory. `lock` and `worlds` describe its volume.
pub(super) fn report(backups: &Path, volume: &Volume, lock: Option<&str>, worlds: &Worlds) -> BackupsReport {
    let failed = read_record(&volume.backup_failed_path()).unwrap_or(None);
    let restored = read_record(&volume.restored_path()).unwrap_or(None);
    let restore_refused = read_record(&volume.restore_refused_path()).unwrap_or(None);
    let listed = match BackupRepository::new(backups).list() {
        Ok(listed) => listed,
        Err(error) => {
            let problem = Some(ErrorChain(&error).to_string());
            // Without a list of backups, it is unknown whether players were online since.
            let played_since = true;
            // The result of a restore request is stored on the server's own volume.
            return BackupsReport {
                failed,
                played_since,
                restored,
                restore_refused,
                problem,
                ..BackupsReport::default()
            };
        }
    };
    let count = |good: bool| listed.iter().filter(|stored| stored.state.is_ok() == good).count();
    let good = || listed.iter().filter_map(|stored| stored.state.as_ref().ok());
    let newest = |wanted: fn(&Backup) -> bool| good().rev().find(|backup| wanted(backup)).map(summarize);
    let is_from_before_damage = |backup: &Backup| backup.contents.has_worlds() && !backup.after_damage;
    // If a clock was ahead once, the newest backup by name may belong to another update.
    let for_current_lock = lock.and_then(|lock| rollback_backup(lock, good())).map(summarize);
    let (last, last_of_worlds) = (newest(|_| true), for_current_lock.or_else(|| newest(Backup::is_rollback_backup)));
    // The free space matters only if a backup can be unpacked.
    let free = last_of_worlds.as_ref().and_then(|_| restore::available_space(volume).ok());
    let was_played = |backup: &BackupReport| may_have_played_since(volume, worlds, backup.started_at);
    let since_last = last.as_ref().map(was_played);
    // Play since the newest backup is also play since older ones, so all player files are read only once if possible. A backup dated in the
    // future gives no information about others.
    let is_dated = last.as_ref().is_some_and(|last| last.started_at <= clock::now());
    let since = |backup: &BackupReport| match &last {
        Some(last) if last.id == backup.id => since_last == Some(true),
        _ => is_dated && since_last == Some(true) || was_played(backup),
    };
    BackupsReport {
        unplayed_since_last: since_last == Some(false),
        played_since: last_of_worlds.as_ref().is_some_and(since),
        last,
        last_of_worlds,
        last_before_damage: newest(is_from_before_damage),
        // These come from the agent, not from the repository.
        online: None,
        sizes: None,
        room: None,
        free,
        restored,
        restore_refused,
        listed: Some(requested_restore::list_newest(&listed)),
        puts_back_everything: true,
        good: u32::try_from(count(true)).unwrap_or(u32::MAX),
        damaged: u32::try_from(count(false)).unwrap_or(u32::MAX),
        failed,
        problem: None,
    }
}

fn summarize(backup: &Backup) -> BackupReport {
    BackupReport {
        id: backup.id.clone(),
        started_at: backup.started_at,
        completed_at: backup.completed_at,
        trigger: backup.trigger,
        contents: backup.contents,
        lock: backup.lock.clone(),
        before: backup.before.clone(),
        data_version: backup.data_version,
        bytes: backup.seal.bytes,
        archive_bytes: backup.seal.archive_bytes,
        after_damage: backup.after_damage,
    }
}
