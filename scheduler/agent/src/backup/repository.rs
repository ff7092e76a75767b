//! Edge (writes). Manages the repository of one server's backups: one directory with a subdirectory per backup, named after it.
//!
//! A backup is added atomically: it is written under a name that begins with a point, verified, and renamed. It is removed the same way in
//! reverse.

use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::archive::{self, ARCHIVE, Damaged, DiscardTarget};
use super::{Backup, FORMAT};
use crate::plain_fs::{self, exists};
use crate::staging::fs_ops::{self, Disk, FsHook};
use agent_api::Trigger;
use agent_api::restore::{FREE_FOR_WORLDS, RESERVED_BYTES};
use scheduler::backup_retention::{BackupState, Retention, RetentionCandidate, to_remove};

/// The file name of the record.
pub(super) const RECORD: &str = "backup.json";
/// A file with this name states that the backup was found to be damaged, and how.
const DAMAGED: &str = "damaged.txt";
/// A file with this name states that the disk could not read the backup last time, and why. A bad sector is permanent, a loose cable is not. So
/// the file is removed the first time that the whole backup is read.
const UNREAD: &str = "unread.txt";
/// The largest record and note that are read, in bytes. A record names a few files and some world folders.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;
/// The prefix of unfinished backups.
pub(super) const PARTIAL: &str = ".partial-";
/// The prefix of backups that are being removed.
const REMOVING: &str = ".removing-";

/// The repository could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system returned an error.
    #[error("could not list the backups in `{path}`")]
    Read {
        /// The directory.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
}

/// Creates the directory of a repository. Does nothing if it exists.
pub fn create(directory: &Path) -> io::Result<()> {
    plain_fs::create_directories(directory)
}

/// One backup in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBackup {
    /// Its name.
    pub id: String,
    /// Its record, if it counts.
    pub state: Result<Backup, IgnoredBackup>,
}

impl StoredBackup {
    /// Its record, also for a backup that does not count and may still be good.
    pub fn record(&self) -> Option<&Backup> {
        match &self.state {
            Ok(backup) => Some(backup),
            Err(IgnoredBackup { why: _, unread }) => unread.as_deref(),
        }
    }
}

/// Why a backup does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredBackup {
    /// The reason as text.
    pub why: String,
    /// Its record, if the only fault is that the disk could not read it last time. A user who names it may try it.
    pub unread: Option<Box<Backup>>,
}

impl IgnoredBackup {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), unread: None }
    }
}

/// The rollback backup for `lock`: the newest of these backups (oldest first) with worlds that was taken before `lock` was applied. The lock in
/// the record outranks the time in the name: while a clock was ahead, an older update may have left a backup with a later date.
pub fn rollback_backup<'a>(lock: &str, candidates: impl DoubleEndedIterator<Item = &'a Backup>) -> Option<&'a Backup> {
    candidates.rev().find(|backup| backup.is_rollback_backup() && backup.before.as_deref() == Some(lock))
}

/// The volume that a repository is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryVolume {
    /// The server's own, without `spec.backup`.
    Server,
    /// A volume for backups.
    Backups,
}

impl RepositoryVolume {
    /// The bytes that must stay free on it: on the server's own volume for its worlds, which a newer Minecraft rewrites, and on any other for
    /// the list of files and the record, and because a full file system harms others.
    pub const fn reserved_bytes(self) -> u64 {
        match self {
            Self::Server => FREE_FOR_WORLDS,
            Self::Backups => RESERVED_BYTES,
        }
    }

    /// For messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Server => "the server's volume",
            Self::Backups => "the backup volume",
        }
    }

    /// What an admin can do if it has too little space.
    pub(super) const fn ways_out(self) -> &'static str {
        match self {
            Self::Server => {
                "Make room, increase `spec.storage.size`, if the storage class allows volume expansion, name another \
                volume in `spec.backup.storage`, or go without a backup with `spec.backup.beforeUpdate: Never`"
            }
            Self::Backups => {
                "Increase `spec.backup.storage.size`, if the storage class allows volume expansion, or lower \
                `spec.backup.retention.maxCount`, which applies from the server's next start. Some backups are never \
                pruned"
            }
        }
    }

    /// Whether backups of older Minecraft versions are kept besides the others.
    pub const fn keeps_older(self) -> bool {
        match self {
            Self::Server => false,
            Self::Backups => true,
        }
    }
}

/// The backups of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupRepository {
    root: PathBuf,
}

impl BackupRepository {
    /// The repository in the directory `root`, which may not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The volume of the repository of a server with this directory.
    pub fn volume(&self, data: &Path) -> RepositoryVolume {
        if self.root.starts_with(data) { RepositoryVolume::Server } else { RepositoryVolume::Backups }
    }

    /// The bytes that the next backup of the server with this directory may use, while all backups stay.
    pub fn free_bytes<S: FsHook>(&self, data: &Path, disk: &Disk<S>) -> io::Result<u64> {
        // The first backup creates the directory.
        let existing = self.root.ancestors().find(|path| exists(path)).unwrap_or(&self.root);
        Ok(disk.free_bytes(existing)?.saturating_sub(self.volume(data).reserved_bytes()))
    }

    /// The directory of a backup.
    pub fn directory(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// The name for a new backup: `id`, or `id` with a number if a backup of the same second has that name.
    pub(super) fn free_id(&self, id: &str) -> String {
        let mut numbered = (2..100).map(|number| format!("{id}-{number}"));
        let is_free = |id: &str| !exists(&self.directory(id));
        if is_free(id) { id.to_owned() } else { numbered.find(|id| is_free(id)).unwrap_or_else(|| id.to_owned()) }
    }

    /// All backups, oldest first. Reads the records, not the archives. See [`BackupRepository::verify`].
    pub fn list(&self) -> Result<Vec<StoredBackup>, Error> {
        let names = self.names(|name| !name.starts_with('.'))?;
        Ok(names.into_iter().map(|id| StoredBackup { state: self.state(&id), id }).collect())
    }

    /// Reads a backup from beginning to end. A damaged backup is marked as such, and so is one that the disk cannot read.
    pub fn verify<S: FsHook>(&self, backup: &Backup, disk: &mut Disk<S>) -> Result<Result<(), Damaged>, Error> {
        let read = archive::read(&self.directory(&backup.id), &backup.seal, &mut DiscardTarget { disk });
        match &read {
            Ok(()) => self.mark_read(&backup.id, disk),
            Err(Damaged::Target(_)) => {}
            Err(damaged) if damaged.is_archive_fault() => self.mark_damaged(&backup.id, damaged, disk)?,
            Err(unread) => self.mark_unread(&backup.id, unread, disk),
        }
        Ok(read)
    }

    /// Removes unfinished and half removed backups. Only the one process that takes backups here may call it.
    pub fn remove_unfinished<S: FsHook>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        for name in self.names(|name| name.starts_with(PARTIAL) || name.starts_with(REMOVING))? {
            disk.remove_all(&self.root.join(&name))?;
        }
        Ok(())
    }

    /// Removes backups that `retention` does not keep. `needed` are backups that a rollback may need. Returns the names of removed backups.
    pub fn prune<S: FsHook>(
        &self,
        retention: Retention,
        needed: &[&str],
        now: Timestamp,
        disk: &mut Disk<S>,
    ) -> Result<Vec<String>, Error> {
        let removed = self.removable(retention, needed, now)?;
        for id in &removed {
            self.remove(id, disk)?;
        }
        Ok(removed)
    }

    /// The size of the backups that [`BackupRepository::prune`] would remove, in bytes.
    pub fn removable_bytes(&self, retention: Retention, needed: &[&str], now: Timestamp) -> Result<u64, Error> {
        let removed = self.removable(retention, needed, now)?;
        let files = removed.iter().flat_map(|id| plain_fs::entries(&self.directory(id)).unwrap_or_default());
        Ok(files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum())
    }

    /// The names of the backups that `retention` does not keep.
    fn removable(&self, retention: Retention, needed: &[&str], now: Timestamp) -> Result<Vec<String>, Error> {
        let candidate = |stored: StoredBackup| RetentionCandidate {
            taken_at: stored.record().map_or_else(|| self.added_at(&stored.id), |backup| backup.started_at),
            contents: stored.record().map(|backup| backup.contents),
            before_update: stored.record().is_some_and(|backup| backup.trigger == Trigger::BeforeUpdate),
            data_version: stored.record().and_then(|backup| backup.data_version),
            after_damage: stored.record().is_some_and(|backup| backup.after_damage),
            state: match &stored.state {
                Ok(_) => BackupState::Good,
                Err(IgnoredBackup { why: _, unread: Some(_) }) => BackupState::Unread,
                Err(IgnoredBackup { why: _, unread: None }) => BackupState::Bad,
            },
            needed: needed.contains(&stored.id.as_str()),
            id: stored.id,
        };
        let candidates: Vec<RetentionCandidate> = self.list()?.into_iter().map(candidate).collect();
        Ok(to_remove(&candidates, retention, now))
    }

    fn remove<S: FsHook>(&self, id: &str, disk: &mut Disk<S>) -> Result<(), Error> {
        let removing = self.root.join(format!("{REMOVING}{id}"));
        disk.rename(&self.directory(id), &removing)?;
        disk.sync_directory(&self.root)?;
        disk.remove_all(&removing)?;
        Ok(())
    }

    pub(super) fn mark_damaged<S: FsHook>(&self, id: &str, why: &Damaged, disk: &mut Disk<S>) -> Result<(), Error> {
        let path = self.directory(id).join(DAMAGED);
        disk.step("write", &path, |path| plain_fs::write_anew(path, format!("{why}\n").as_bytes()))?;
        Ok(())
    }

    /// Best effort, like [`BackupRepository::mark_read`]: a failing disk is often remounted read-only, and no other step may fail for that.
    pub(super) fn mark_unread<S: FsHook>(&self, id: &str, why: &Damaged, disk: &mut Disk<S>) {
        let causes = iter::successors(Some(why as &dyn std::error::Error), |cause| cause.source());
        let why: Vec<String> = causes.map(ToString::to_string).collect();
        let path = self.directory(id).join(UNREAD);
        let text = format!("{}\n", why.join(": "));
        drop(disk.step("write", &path, |path| plain_fs::write_anew(path, text.as_bytes())));
    }

    /// Records that the whole backup was read from the disk and matches its record.
    pub(super) fn mark_read<S: FsHook>(&self, id: &str, disk: &mut Disk<S>) {
        let path = self.directory(id).join(UNREAD);
        if exists(&path) {
            drop(disk.remove(&path));
        }
    }

    fn state(&self, id: &str) -> Result<Backup, IgnoredBackup> {
        let directory = self.directory(id);
        if let Some(why) = read_note(&directory.join(DAMAGED)) {
            return Err(IgnoredBackup::new(why.trim()));
        }
        let backup = self.recorded(id).map_err(IgnoredBackup::new)?;
        let unread = directory.join(UNREAD);
        if !exists(&unread) {
            return Ok(backup);
        }
        let noted = read_note(&unread).unwrap_or_default();
        let why = format!("could not be read at the last attempt: {}", noted.trim());
        Err(IgnoredBackup { why: why.trim_end_matches(": ").to_owned(), unread: Some(Box::new(backup)) })
    }

    /// The record, if the archive may be the one that it describes.
    fn recorded(&self, id: &str) -> Result<Backup, String> {
        let directory = self.directory(id);
        let read = plain_fs::read(&directory.join(RECORD), MAX_RECORD_BYTES);
        let bytes = read.map_err(|error| format!("`{RECORD}` cannot be read: {error}"))?;
        let backup: Backup =
            serde_json::from_slice(&bytes).map_err(|error| format!("`{RECORD}` is not a valid record: {error}"))?;
        if backup.format != FORMAT || backup.id != id {
            return Err(format!("`{RECORD}` belongs to `{}` in format {}", backup.id, backup.format));
        }
        match plain_fs::metadata(&directory.join(ARCHIVE)) {
            Ok(archive) if archive.len() == backup.seal.archive_bytes => Ok(backup),
            Ok(archive) => {
                Err(format!("`{ARCHIVE}` has {} bytes, its record says {}", archive.len(), backup.seal.archive_bytes))
            }
            Err(error) => Err(format!("`{ARCHIVE}` cannot be read: {error}")),
        }
    }

    /// When a backup without a record was added.
    fn added_at(&self, id: &str) -> Timestamp {
        let modified = plain_fs::metadata(&self.directory(id)).and_then(|metadata| metadata.modified());
        modified.ok().and_then(|modified| modified.try_into().ok()).unwrap_or(Timestamp::MIN)
    }

    /// The directories here, in order.
    fn names(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        let error = |source| Error::Read { path: self.root.display().to_string(), source };
        let mut names = Vec::new();
        for entry in plain_fs::entries(&self.root).map_err(error)? {
            let name = entry.name().to_str().map(str::to_owned);
            // `lost+found` of a new volume is not a backup.
            let is_backup = |name: &String| wanted(name) && name != "lost+found";
            names.extend(name.filter(|name| is_backup(name) && entry.is_directory()));
        }
        names.sort();
        Ok(names)
    }
}

fn read_note(path: &Path) -> Option<String> {
    let bytes = plain_fs::read(path, MAX_RECORD_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
