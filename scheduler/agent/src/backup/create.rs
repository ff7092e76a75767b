//! Edge (writes). Takes one backup: measures, writes, verifies, and only then adds it to the repository.
//!
//! [`create_backup`] does all of it, for a stopped server. For a running server the parts are called one by one, because other work is needed in
//! between: [`prepare`], [`write()`], [`UnverifiedBackup::verify`], [`UnverifiedBackup::publish`].

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tracing::info;

use super::archive::{self, Damaged, DiscardTarget, WriteError};
use super::contents::{self, BackupSource};
use super::repository::{self, BackupRepository, PARTIAL, RECORD, RepositoryVolume};
use super::{Backup, FORMAT, LiveReads, new_id};
use crate::plain_fs::escape_path;
use crate::staging::fs_ops::{self, Disk, FsHook};
use crate::world::{Role, WorldFolder, Worlds};
use agent_api::backup_size::space_for_backup;
use agent_api::{Contents, Trigger};

/// No new backup was taken. Existing backups are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The volume has no content for this kind of backup, so no backup is recorded.
    #[error("the volume has no files for such a backup")]
    Empty,
    /// It would not fit.
    #[error(
        "the backup may need {needed} bytes, but {} has {free} free (backups there now: {existing_backups}). \
        {}: docs/guides/backup.md{unloaded_worlds}",
        .volume.name(),
        .volume.ways_out()
    )]
    Full {
        /// The volume of the repository.
        volume: RepositoryVolume,
        /// The free bytes, less the reserve.
        free: u64,
        /// The maximum number of bytes needed.
        needed: u64,
        /// How many backups exist, after pruning.
        existing_backups: usize,
        /// The worlds that use space although the server did not have them open, as text. Empty: none.
        unloaded_worlds: String,
    },
    /// The free space could not be determined.
    #[error("could not read the free space of the backup volume")]
    Space(#[source] io::Error),
    /// The content cannot be read.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] repository::Error),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// The archive was not written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The archive does not match what was written.
    #[error("the backup was written, but reading it back gave other contents")]
    Unverified(#[source] Damaged),
}

/// The backup to take.
#[derive(Debug)]
pub struct BackupSpec<'a> {
    /// The server's directory.
    pub data: &'a Path,
    /// Its worlds. No process may write to them meanwhile.
    pub worlds: &'a Worlds,
    /// Whether other files may be written to meanwhile.
    pub reading: LiveReads,
    /// The part to back up.
    pub contents: Contents,
    /// Why it is taken.
    pub trigger: Trigger,
    /// The digest of the lock that ran.
    pub lock: Option<&'a str>,
    /// The digest of the lock that starts next. `None`: no lock does.
    pub before: Option<&'a str>,
    /// The request that it is taken for, if any.
    pub request: Option<&'a str>,
    /// Whether the server's log has reported damage to its worlds.
    pub after_damage: bool,
}

impl BackupSpec<'_> {
    fn source(&self) -> BackupSource<'_> {
        BackupSource { data: self.data, worlds: self.worlds, contents: self.contents, reading: self.reading }
    }
}

/// Takes the backup. Reads `clock` when it begins and when it has been verified.
pub fn create_backup<S: FsHook>(
    spec: &BackupSpec<'_>,
    repository: &BackupRepository,
    disk: &mut Disk<S>,
    clock: impl Fn() -> Timestamp,
) -> Result<Backup, Error> {
    let started_at = clock();
    prepare(spec, repository, disk)?;
    let written = write(spec, repository, disk, started_at)?;
    written.verify(disk)?;
    written.publish(repository, disk, clock())
}

/// Prepares the repository, and reads each file's size before reading any file: a backup that fails halfway would be wasted downtime. It removes
/// no backup. The caller must prune before, because expired backups may use the space that is needed here.
pub fn prepare<S: FsHook>(
    spec: &BackupSpec<'_>,
    repository: &BackupRepository,
    disk: &mut Disk<S>,
) -> Result<(), Error> {
    disk.make_directory(repository.root())?;
    repository.remove_unfinished(disk)?;
    check_space(spec, repository, disk)
}

/// A complete backup that is not verified yet. It does not count before it is published to the repository.
#[derive(Debug)]
pub struct UnverifiedBackup {
    /// Its future record.
    record: Backup,
    partial: PathBuf,
}

/// Reads all files into an archive beside the published backups. No file of the server is read after this.
pub fn write<S: FsHook>(
    spec: &BackupSpec<'_>,
    repository: &BackupRepository,
    disk: &mut Disk<S>,
    started_at: Timestamp,
) -> Result<UnverifiedBackup, Error> {
    let BackupSpec { data: _, worlds, reading: _, contents, trigger, lock, before, request, after_damage } = *spec;
    let source = spec.source();
    let id = repository.free_id(&new_id(started_at, lock));
    let partial = repository.root().join(format!("{PARTIAL}{id}"));
    disk.make_directory(&partial)?;
    let archive::ArchiveSummary { seal, left_out, changed } = archive::write(&source, &partial, disk)?;
    let floor = worlds.floor();
    let record = Backup {
        format: FORMAT,
        id,
        started_at,
        completed_at: started_at,
        trigger,
        contents,
        lock: lock.map(str::to_owned),
        before: before.map(str::to_owned),
        request: request.map(str::to_owned),
        minecraft: floor.as_ref().map(|floor| floor.minecraft.clone()),
        data_version: floor.map(|floor| floor.data_version),
        folders: source.folders().iter().map(|folder| escape_path(folder.as_os_str().as_bytes())).collect(),
        left_out,
        changed,
        after_damage,
        seal,
    };
    Ok(UnverifiedBackup { record, partial })
}

impl UnverifiedBackup {
    /// Its future record.
    pub fn record(&self) -> &Backup {
        &self.record
    }

    /// Reads the archive from beginning to end.
    pub fn verify<S: FsHook>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        archive::read(&self.partial, &self.record.seal, &mut DiscardTarget { disk }).map_err(Error::Unverified)
    }

    /// Marks it: the server's log has reported damage while it was taken.
    #[must_use]
    pub fn mark_after_damage(mut self) -> Self {
        self.record.after_damage = true;
        self
    }

    /// Publishes it to the repository. `now` is when it was verified.
    pub fn publish<S: FsHook>(
        self,
        repository: &BackupRepository,
        disk: &mut Disk<S>,
        now: Timestamp,
    ) -> Result<Backup, Error> {
        let Self { record, partial } = self;
        let backup = Backup { completed_at: now, ..record };
        disk.write_record(&partial.join(RECORD), &backup)?;
        disk.rename(&partial, &repository.directory(&backup.id))?;
        disk.sync_directory(repository.root())?;
        Ok(backup)
    }
}

fn check_space<S: FsHook>(spec: &BackupSpec<'_>, repository: &BackupRepository, disk: &Disk<S>) -> Result<(), Error> {
    let source = spec.source();
    let (mut items, mut bytes) = (0_u64, 0_u64);
    source.for_each::<Error>(|item| {
        items += 1;
        bytes = bytes.saturating_add(item.content.size());
        Ok(())
    })?;
    if items == 0 {
        return Err(Error::Empty);
    }
    let needed = space_for_backup(bytes, items);
    let free = repository.free_bytes(spec.data, disk).map_err(Error::Space)?;
    if free >= needed {
        return Ok(());
    }
    Err(Error::Full {
        volume: repository.volume(spec.data),
        free,
        needed,
        existing_backups: repository.list()?.len(),
        unloaded_worlds: describe_unloaded_worlds(spec),
    })
}

/// An unpacked backup that a user keeps in the server's directory is a world like any other, and is backed up each time.
fn describe_unloaded_worlds(spec: &BackupSpec<'_>) -> String {
    let lies = |folder: &&WorldFolder| folder.role == Role::Unused && folder.level.is_some();
    let unloaded: Vec<_> = spec.worlds.folders.iter().filter(lies).collect();
    match unloaded.first() {
        Some(first) if spec.contents.has_worlds() && spec.worlds.is_use_known() => format!(
            ". Worlds that the server did not have open are backed up too ({}, the first is `{}`): move unwanted \
            worlds out of its directory",
            unloaded.len(),
            first.path.strip_prefix(spec.data).unwrap_or(&first.path).display()
        ),
        Some(_) | None => String::new(),
    }
}

/// Logs a finished backup.
pub fn log_backup(backup: &Backup) {
    let took = backup.completed_at.duration_since(backup.started_at);
    info!(
        "the backup {} has {} files ({} bytes, {} in the archive) and was read back; it took {} s",
        backup.id,
        backup.seal.files,
        backup.seal.bytes,
        backup.seal.archive_bytes,
        took.as_secs()
    );
}

#[cfg(test)]
mod tests;
