//! Edge (writes). Takes one copy: measured, written, read back, and only then put on the shelf.
//!
//! [`take`] does all of it, of a server that does not run. Of one that runs the parts are done one by one, because something else has to be
//! done in between: [`prepare`], [`write()`], [`UnverifiedBackup::read_back`], [`UnverifiedBackup::publish`].

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::archive::{self, Damaged, DiscardTarget, WriteError};
use super::contents::{self, BackupSource, text_of};
use super::repository::{BackupRepository, PARTIAL, RECORD};
use super::{Backup, Contents, FORMAT, LiveReads, Trigger, id_of, repository};
use crate::staging::fs_ops::{self, Disk, FsHook};
use crate::world::{Role, WorldFolder, Worlds};

/// What must stay free where the copies lie, in bytes: the list of files and the record need a little, a full file system harms others.
const SPARE: u64 = 64 * 1024 * 1024;

/// What an archive needs at most for one entry beside its content, in bytes: header, padding, a long name.
const PER_ENTRY: u64 = 2560;

/// There is no new copy. Those that were there are untouched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing to take a copy of: say so, and do not call it a copy.
    #[error("there is nothing on the volume that such a copy holds")]
    Nothing,
    /// It would not fit.
    #[error(
        "the copy may need {needed} bytes and there are {free} free where copies are kept (copies there now: {there}). \
         Give it more room with `spec.backup.storage.size`, where the storage class lets a volume grow, or lower \
         `spec.backup.retention.maxCount`, which counts from the server's next start on. Some copies stay whatever it says: \
         docs/guides/backup.md{apart}"
    )]
    Full {
        /// Bytes free now, less what must stay free.
        free: u64,
        /// Bytes at most.
        needed: u64,
        /// How many copies lie there: what may go has gone before.
        there: usize,
        /// Which worlds take the room that the server did not have open, in words. Empty: none.
        apart: String,
    },
    /// Nobody could say how much room there is.
    #[error("could not ask for the free space where copies are kept")]
    Space(#[source] io::Error),
    /// What should be copied cannot be read.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// The shelf cannot be used.
    #[error(transparent)]
    Shelf(#[from] repository::Error),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// The archive was not made.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was written is not what comes back.
    #[error("the copy was written, and does not read back as it was written")]
    Unverified(#[source] Damaged),
}

/// Which copy is taken.
#[derive(Debug)]
pub struct BackupSpec<'a> {
    /// The server's directory.
    pub data: &'a Path,
    /// Its worlds. Nobody may write to them meanwhile.
    pub worlds: &'a Worlds,
    /// Whether somebody may write to other files meanwhile.
    pub reading: LiveReads,
    /// What of.
    pub contents: Contents,
    /// Why.
    pub trigger: Trigger,
    /// The digest of the lock that ran.
    pub lock: Option<&'a str>,
    /// The digest of the lock that comes; None: none does.
    pub before: Option<&'a str>,
    /// The request that it is taken for; None: nobody's.
    pub request: Option<&'a str>,
    /// The server's log has told of damage to its worlds.
    pub after_damage: bool,
}

impl BackupSpec<'_> {
    fn source(&self) -> BackupSource<'_> {
        BackupSource { data: self.data, worlds: self.worlds, contents: self.contents, reading: self.reading }
    }
}

/// Takes the copy. `clock` is asked when it begins and when it has been read back.
pub fn take<S: FsHook>(
    order: &BackupSpec<'_>,
    shelf: &BackupRepository,
    disk: &mut Disk<S>,
    clock: impl Fn() -> Timestamp,
) -> Result<Backup, Error> {
    let started_at = clock();
    prepare(order, shelf, disk)?;
    let written = write(order, shelf, disk, started_at)?;
    written.read_back(disk)?;
    written.publish(shelf, disk, clock())
}

/// Makes the shelf ready, and looks at each file's size before one is read: a copy that breaks off in the middle was down time for nothing.
/// Removes no copy. What retention does not keep is to be removed before: it may have the room that is asked for here.
pub fn prepare<S: FsHook>(order: &BackupSpec<'_>, shelf: &BackupRepository, disk: &mut Disk<S>) -> Result<(), Error> {
    disk.make_directory(shelf.root())?;
    shelf.tidy(disk)?;
    check_room(order, shelf, disk)
}

/// A copy that is whole and not yet read back. It does not count before it is on the shelf.
#[derive(Debug)]
pub struct UnverifiedBackup {
    /// The record that it gets.
    record: Backup,
    partial: PathBuf,
}

/// Reads all files into an archive beside the copies that count. Nothing of the server is read after this.
pub fn write<S: FsHook>(
    order: &BackupSpec<'_>,
    shelf: &BackupRepository,
    disk: &mut Disk<S>,
    started_at: Timestamp,
) -> Result<UnverifiedBackup, Error> {
    let BackupSpec { data: _, worlds, reading: _, contents, trigger, lock, before, request, after_damage } = *order;
    let source = order.source();
    let id = shelf.free_id(&id_of(started_at, lock));
    let partial = shelf.root().join(format!("{PARTIAL}{id}"));
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
        folders: source.folders().iter().map(|folder| text_of(folder.as_os_str().as_bytes())).collect(),
        left_out,
        changed,
        after_damage,
        seal,
    };
    Ok(UnverifiedBackup { record, partial })
}

impl UnverifiedBackup {
    /// What will be said of it.
    pub fn record(&self) -> &Backup {
        &self.record
    }

    /// Reads the archive from beginning to end.
    pub fn read_back<S: FsHook>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        archive::read(&self.partial, &self.record.seal, &mut DiscardTarget { disk }).map_err(Error::Unverified)
    }

    /// Marks it: the server's log has told of damage while it was taken.
    #[must_use]
    pub fn after_damage(mut self) -> Self {
        self.record.after_damage = true;
        self
    }

    /// Puts it among the copies that count. `now` is when it had been read back.
    pub fn publish<S: FsHook>(
        self,
        among: &BackupRepository,
        disk: &mut Disk<S>,
        now: Timestamp,
    ) -> Result<Backup, Error> {
        let Self { record, partial } = self;
        let backup = Backup { completed_at: now, ..record };
        disk.write_record(&partial.join(RECORD), &backup)?;
        disk.rename(&partial, &among.directory(&backup.id))?;
        disk.sync_directory(among.root())?;
        Ok(backup)
    }
}

fn check_room<S: FsHook>(order: &BackupSpec<'_>, shelf: &BackupRepository, disk: &Disk<S>) -> Result<(), Error> {
    let source = order.source();
    let (mut items, mut needed) = (0_u64, 0_u64);
    source.each::<Error>(|item| {
        items += 1;
        needed = needed.saturating_add(item.content.size()).saturating_add(PER_ENTRY);
        Ok(())
    })?;
    if items == 0 {
        return Err(Error::Nothing);
    }
    let free = disk.free_bytes(shelf.root()).map_err(Error::Space)?.saturating_sub(SPARE);
    if free >= needed {
        return Ok(());
    }
    Err(Error::Full { free, needed, there: shelf.list()?.len(), apart: apart(order) })
}

/// An unpacked copy that somebody keeps in the server's directory is a world like others, and is copied each time.
fn apart(order: &BackupSpec<'_>) -> String {
    let lies = |folder: &&WorldFolder| folder.role == Role::Lies && folder.level.is_some();
    let apart: Vec<_> = order.worlds.folders.iter().filter(lies).collect();
    match apart.first() {
        Some(first) if order.contents.has_worlds() && order.worlds.are_in_use() => format!(
            ". Worlds that the server did not have open are copied too ({}, the first is `{}`): move what is not wanted out of its directory",
            apart.len(),
            first.path.strip_prefix(order.data).unwrap_or(&first.path).display()
        ),
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests;
