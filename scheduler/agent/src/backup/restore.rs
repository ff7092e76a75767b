//! Edge (writes). Restores a backup: unpacks it into a new directory, then moves it into place by renames.
//!
//! No existing file is overwritten. No link is followed, because a new directory contains none: each file is created anew below it. The renames
//! are journalled. After the first rename no server starts before the last one: any process that finds the journal continues it.

use std::collections::BTreeSet;
use std::fs::{File, FileTimes, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Backup;
use super::archive::{self, ArchiveTarget, Damaged, safe_path};
use super::contents::{is_left_in_place, is_removed};
use super::repository::BackupRepository;
use crate::plain_fs::{self, Walk, exists};
use crate::staging::fs_ops::{self, Disk, FsHook};
use crate::staging::{RecordError, Volume, is_direct_child, read_record};
use crate::world::{Worlds, damage};
use agent_api::restore::{RESERVED_BYTES, space_needed};
use agent_api::{NIGHTSHIFT_DIR, Restored};

/// The backup was not restored. No file of the server was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// The backup must not be used.
    #[error("the backup `{id}` is damaged and cannot be used")]
    Damaged {
        /// Its name.
        id: String,
        /// The damage.
        #[source]
        source: Damaged,
    },
    /// The backup may be good, and could not be read.
    #[error(
        "the backup `{id}` cannot be read from the disk at the moment. If this persists, move its directory away: the \
        backup then counts as missing"
    )]
    Unread {
        /// Its name.
        id: String,
        /// The cause.
        #[source]
        source: Damaged,
    },
    /// The volume has no space for both the existing files and the backup, and a restore deletes no file.
    #[error(
        "the backup `{id}` has {needed} bytes, but the volume has {free} free, of which {RESERVED_BYTES} must stay: \
        enlarge `spec.storage.size`, or delete unneeded files"
    )]
    Full {
        /// The backup's name.
        id: String,
        /// The free bytes.
        free: u64,
        /// The size of the backup in bytes.
        needed: u64,
    },
    /// The free space could not be determined.
    #[error("could not read the free space of the volume")]
    Space(#[source] io::Error),
    /// A record on the volume cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file was created at this path after the original was displaced.
    #[error("`{name}` is at the path of a part of the backup: move it away")]
    Occupied {
        /// The name relative to the server's directory.
        name: String,
    },
    /// The journal of an earlier restore contains a path that is not allowed.
    #[error("the journal of a restore names `{name}`, which is not allowed")]
    Journal {
        /// The name as written in the journal.
        name: String,
    },
}

/// Floodgate's key, relative to the server's directory. The proxy and all servers behind it share one key, and recognize Bedrock players by it.
/// An existing key is never replaced by one from a backup.
const FLOODGATE_KEY: &str = "plugins/floodgate/key.pem";

/// The directory of displaced files, below Nightshift's own.
const SET_ASIDE: &str = "set-aside";

/// The part of the server's files that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePart {
    /// All worlds. Settings, plugins and their data stay.
    Worlds,
    /// All content of the backup replaces all content that such a backup would have.
    Everything,
}

/// The part to restore, and the request.
#[derive(Debug, Clone, Copy)]
pub struct RestoreTarget<'a> {
    /// The part of the backup.
    pub part: RestorePart,
    /// The request that it is done for, if any.
    pub request: Option<&'a str>,
}

/// `restore.json`: worlds, or all files, are being exchanged. All paths are relative to the server's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RestoreJournal {
    done: Restored,
    /// The paths that are displaced.
    #[serde(rename = "aside")]
    displaced: Vec<PathBuf>,
    /// The restored paths, moved from the unpacked directory.
    #[serde(rename = "comes")]
    restored: Vec<PathBuf>,
}

/// Replaces the existing files, including all `worlds`, with the content of `backup`, and displaces them. The caller holds the locks on the
/// worlds, and starts no server before this has succeeded.
pub fn restore<S: FsHook>(
    repository: &BackupRepository,
    backup: &Backup,
    volume: &Volume,
    worlds: &Worlds,
    target: RestoreTarget<'_>,
    disk: &mut Disk<S>,
    now: Timestamp,
) -> Result<Restored, Error> {
    // Remove files of an earlier attempt, of this or another backup, so that they take no space.
    disk.remove_all(&volume.restoring_dir())?;
    let (free, needed) = (available_space(volume).map_err(Error::Space)?, backup.seal.bytes);
    if free < space_needed(needed) {
        return Err(Error::Full { id: backup.id.clone(), free, needed });
    }
    let unpacked = volume.restoring_dir();
    unpack(repository, backup, &unpacked, disk)?;
    let (existing, restored) = match target.part {
        // Worlds are detected by content again, as when they were backed up. A backup of everything contains other files too, which are not used.
        RestorePart::Worlds => {
            let read = |source| RecordError::Read { path: unpacked.display().to_string(), source };
            (folders(volume.root(), worlds), folders(&unpacked, &Worlds::read(&unpacked).map_err(read)?))
        }
        RestorePart::Everything => {
            let existing = entries_to_displace(volume.root())?;
            // Plugins behind a link stay, including the key, unless the backup contains plugins.
            let plugins = PathBuf::from("plugins");
            if existing.contains(&plugins) || exists(&unpacked.join(&plugins)) {
                keep_floodgate_key(volume, &unpacked, disk)?;
            }
            (existing, restorable_entries(&unpacked)?)
        }
    };
    // Also displace items in the way that are no longer worlds: a newer Minecraft leaves emptied folders behind.
    let conflicting = restored.iter().filter(|path| exists(&volume.root().join(path)));
    let displaced: BTreeSet<PathBuf> = existing.into_iter().chain(conflicting.cloned()).collect();
    let done = Restored {
        at: now,
        id: backup.id.clone(),
        set_aside: if displaced.is_empty() { String::new() } else { unused_path(volume, now) },
        request: target.request.map(str::to_owned),
        everything: target.part == RestorePart::Everything,
        after_damage: backup.after_damage,
    };
    let journal = RestoreJournal { done, displaced: displaced.into_iter().collect(), restored };
    disk.write_record(&volume.restore_journal_path(), &journal)?;
    apply_journal(volume, &journal, disk)
}

/// The free bytes for a restore. Files of an earlier attempt count as free, because they are removed first.
pub(crate) fn available_space(volume: &Volume) -> io::Result<u64> {
    let left = Walk::new(&volume.restoring_dir()).filter_map(Result::ok);
    let files = left.map(|walked| walked.metadata).filter(Metadata::is_file);
    let leftover_bytes: u64 = files.map(|file| file.len()).sum();
    Ok(fs_ops::free_bytes(volume.root())?.saturating_add(leftover_bytes))
}

/// The folders of these worlds, relative to `root`.
fn folders(root: &Path, worlds: &Worlds) -> Vec<PathBuf> {
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
    worlds.folders.iter().map(|folder| relative(&folder.path)).collect()
}

/// The top-level items of a server's directory that belong in a backup of everything, in order.
fn restorable_entries(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |source| RecordError::Read { path: root.display().to_string(), source };
    let names = plain_fs::entries(root).map_err(read)?.into_iter().map(|entry| PathBuf::from(entry.name()));
    let mut names: Vec<PathBuf> = names.filter(|name| !is_left_in_place(name)).collect();
    names.sort();
    Ok(names)
}

/// The items that are displaced. A link stays: no backup contains it, so it would not be replaced.
fn entries_to_displace(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let is_link = |path: &Path| plain_fs::metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let mut names = restorable_entries(root)?;
    names.retain(|name| !is_link(&root.join(name)));
    Ok(names)
}

/// Replaces the Floodgate key in the unpacked backup with the existing one, if any.
fn keep_floodgate_key<S: FsHook>(volume: &Volume, unpacked: &Path, disk: &mut Disk<S>) -> Result<(), Error> {
    let (current_key, new_key) = (volume.root().join(FLOODGATE_KEY), unpacked.join(FLOODGATE_KEY));
    match plain_fs::metadata(&current_key) {
        Ok(key) if key.is_file() && key.len() > 0 => {}
        Ok(_) => return Ok(()),
        Err(missing) if is_removed(&missing) => return Ok(()),
        Err(source) => return Err(RecordError::Read { path: current_key.display().to_string(), source }.into()),
    }
    let folder = new_key.parent().unwrap_or(unpacked);
    disk.make_directory(folder)?;
    disk.copy(&current_key, &new_key)?;
    for directory in folder.ancestors().take_while(|directory| directory.starts_with(unpacked)) {
        disk.sync_directory(directory)?;
    }
    Ok(())
}

/// A free path for displaced files, relative to the server's directory. Displaced worlds must never conflict, which would keep the server down
/// for ever. Conflicts arise from two restores in one second, or from a clock that was set back.
fn unused_path(volume: &Volume, now: Timestamp) -> String {
    let path = format!("{NIGHTSHIFT_DIR}/{SET_ASIDE}/{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let is_free = |path: &String| !exists(&volume.root().join(path));
    let mut numbered = (2..100).map(|number| format!("{path}-{number}"));
    if is_free(&path) { path } else { numbered.find(is_free).unwrap_or(path) }
}

/// Finishes a restore that has begun, if any.
pub fn finish<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<Option<Restored>, Error> {
    match read_record(&volume.restore_journal_path())? {
        Some(journal) => apply_journal(volume, &journal, disk).map(Some),
        None => Ok(None),
    }
}

fn apply_journal<S: FsHook>(volume: &Volume, journal: &RestoreJournal, disk: &mut Disk<S>) -> Result<Restored, Error> {
    use std::os::unix::ffi::OsStrExt;
    let RestoreJournal { done, displaced, restored } = journal;
    for folder in displaced.iter().chain(restored) {
        safe_path(folder.as_os_str().as_bytes()).map_err(|_| Error::Journal { name: folder.display().to_string() })?;
    }
    let own_dir = Path::new(NIGHTSHIFT_DIR).join(SET_ASIDE);
    if !displaced.is_empty() && !is_direct_child(&done.set_aside, &own_dir) {
        return Err(Error::Journal { name: done.set_aside.clone() });
    }
    let displaced_dir = volume.root().join(&done.set_aside);
    // All are displaced before the first is moved in. An item that is already displaced was moved before a crash, and its replacement may be in
    // place.
    for folder in displaced {
        let (from, to) = (volume.root().join(folder), displaced_dir.join(folder));
        if exists(&from) && !exists(&to) {
            disk.move_and_sync(&from, &to)?;
        }
    }
    for folder in restored {
        let (from, to) = (volume.restoring_dir().join(folder), volume.root().join(folder));
        if exists(&from) {
            if exists(&to) {
                return Err(Error::Occupied { name: folder.display().to_string() });
            }
            disk.move_and_sync(&from, &to)?;
        }
    }
    if !done.after_damage {
        damage::reset(volume, disk)?;
    }
    disk.write_record(&volume.restored_path(), done)?;
    disk.remove(&volume.restore_journal_path())?;
    let own_dir = volume.displaced_dir();
    disk.sync_directory(own_dir.parent().unwrap_or(volume.root()))?;
    disk.remove_all(&volume.restoring_dir())?;
    Ok(done.clone())
}

/// Unpacks all of `backup` into the directory `into`, which is created anew. An existing one is removed first. On success, all files were
/// compared with the record and are on disk.
pub fn unpack<S: FsHook>(
    repository: &BackupRepository,
    backup: &Backup,
    into: &Path,
    disk: &mut Disk<S>,
) -> Result<(), Error> {
    disk.remove_all(into)?;
    disk.make_directory(into)?;
    let mut unpacking = Unpacking { into, disk, open: None };
    match archive::read(&repository.directory(&backup.id), &backup.seal, &mut unpacking) {
        Ok(()) => repository.mark_read(&backup.id, disk),
        Err(Damaged::Target(error)) => return Err(error.into()),
        Err(source) if !source.is_archive_fault() => {
            repository.mark_unread(&backup.id, &source, disk);
            return Err(Error::Unread { id: backup.id.clone(), source });
        }
        Err(source) => {
            // A failed mark, on a volume that is mounted read-only, matters less than the damage itself.
            drop(repository.mark_damaged(&backup.id, &source, disk));
            return Err(Error::Damaged { id: backup.id.clone(), source });
        }
    }
    // Names last, because each file's content is already on disk.
    Ok(disk.step("flush all of", into, plain_fs::sync_file_system)?)
}

struct Unpacking<'a, S> {
    into: &'a Path,
    disk: &'a mut Disk<S>,
    open: Option<(PathBuf, File, u32, u64)>,
}

impl<S: FsHook> ArchiveTarget for Unpacking<'_, S> {
    fn directory(&mut self, path: &Path) -> Result<(), fs_ops::Error> {
        self.disk.make_directory(&self.into.join(path))
    }

    fn begin(&mut self, path: &Path, mode: u32, modified: u64) -> Result<(), fs_ops::Error> {
        let path = self.into.join(path);
        if let Some(parent) = path.parent() {
            self.disk.make_directory(parent)?;
        }
        let file = self.disk.step("create", &path, |path| plain_fs::create_new(path, 0o600))?;
        self.open = Some((path, file, mode, modified));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), fs_ops::Error> {
        match &mut self.open {
            Some((path, file, _, _)) => self.disk.step("write", path, |_| file.write_all(bytes)),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), fs_ops::Error> {
        let Some((path, file, mode, modified)) = self.open.take() else { return Ok(()) };
        self.disk.step("flush", &path, |_| {
            file.set_permissions(Permissions::from_mode(mode))?;
            file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(modified)))?;
            file.sync_all()
        })
    }
}

#[cfg(test)]
mod tests;
