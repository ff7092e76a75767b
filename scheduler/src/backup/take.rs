//! Edge (writes). Takes one copy: measured, written, read back, and only then put on the shelf.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::Timestamp;

use super::archive::{self, Damaged, Nowhere, WriteError};
use super::contents::{self, Source, text_of};
use super::shelf::{PARTIAL, RECORD, Shelf};
use super::{Backup, Contents, FORMAT, Trigger, id_of, shelf};
use crate::staging::disk::{self, Disk, Steps};
use crate::world::Worlds;

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
        "the copy may need {needed} bytes and there are {free} free where copies are kept. \
         Give it more room with `spec.backup.storage.size`, or keep fewer with `spec.backup.retention.maxCount`"
    )]
    Full {
        /// Bytes free now, less what must stay free.
        free: u64,
        /// Bytes at most.
        needed: u64,
    },
    /// Nobody could say how much room there is.
    #[error("could not ask for the free space where copies are kept")]
    Space(#[source] io::Error),
    /// What should be copied cannot be read.
    #[error(transparent)]
    Contents(#[from] contents::Error),
    /// The shelf cannot be used.
    #[error(transparent)]
    Shelf(#[from] shelf::Error),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// The archive was not made.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was written is not what comes back.
    #[error("the copy was written, and does not read back as it was written")]
    Unverified(#[source] Damaged),
}

/// Which copy is taken.
#[derive(Debug)]
pub struct Order<'a> {
    /// The server's directory.
    pub data: &'a Path,
    /// Its worlds. Nobody may write to them meanwhile.
    pub worlds: &'a Worlds,
    /// What of.
    pub contents: Contents,
    /// Why.
    pub trigger: Trigger,
    /// The digest of the lock that ran.
    pub lock: Option<&'a str>,
    /// The digest of the lock that comes.
    pub before: &'a str,
}

/// Takes the copy. `clock` is asked when it begins and when it has been read back.
pub fn take<S: Steps>(
    order: &Order<'_>,
    shelf: &Shelf,
    disk: &mut Disk<S>,
    clock: impl Fn() -> Timestamp,
) -> Result<Backup, Error> {
    let Order { data, worlds, contents, trigger, lock, before } = *order;
    let started_at = clock();
    disk.make_directory(shelf.root())?;
    shelf.tidy(disk)?;
    let source = Source { data, worlds, contents };
    check_room(&source, shelf)?;

    let id = id_of(started_at, lock);
    let partial = shelf.root().join(format!("{PARTIAL}{id}"));
    disk.make_directory(&partial)?;
    let (seal, left_out) = archive::write(&source, &partial, disk)?;
    archive::read(&partial, &seal, &mut Nowhere).map_err(Error::Unverified)?;
    let floor = worlds.floor();
    let backup = Backup {
        format: FORMAT,
        id: id.clone(),
        started_at,
        completed_at: clock(),
        trigger,
        contents,
        lock: lock.map(str::to_owned),
        before: before.to_owned(),
        minecraft: floor.as_ref().map(|floor| floor.minecraft.clone()),
        data_version: floor.map(|floor| floor.data_version),
        folders: source.folders().iter().map(|folder| text_of(folder.as_os_str().as_bytes())).collect(),
        left_out,
        seal,
    };
    disk.write_record(&partial.join(RECORD), &backup)?;
    disk.rename(&partial, &shelf.directory(&id))?;
    disk.sync_directory(shelf.root())?;
    Ok(backup)
}

/// Looks at each file's size before one is read: a copy that breaks off in the middle was down time for nothing.
fn check_room(source: &Source<'_>, shelf: &Shelf) -> Result<(), Error> {
    let (mut items, mut needed) = (0_u64, 0_u64);
    source.each::<Error>(|item| {
        items += 1;
        needed = needed.saturating_add(item.content.size()).saturating_add(PER_ENTRY);
        Ok(())
    })?;
    if items == 0 {
        return Err(Error::Nothing);
    }
    let space = rustix::fs::statvfs(shelf.root()).map_err(|errno| Error::Space(errno.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize).saturating_sub(SPARE);
    if free < needed { Err(Error::Full { free, needed }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
