//! Edge (writes). The directory where the copies of one server lie, each in a directory of its own that has the copy's name.
//!
//! A copy comes here whole or not at all: it is made under a name that begins with a point, read back, and renamed. It goes the same way
//! backwards.

use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::archive::{self, ARCHIVE, Damaged, DiscardTarget};
use super::retention::{Retention, RetentionCandidate, Standing, to_remove};
use super::{Backup, FORMAT, Trigger};
use crate::staging::fs_ops::{self, Disk, FsHook};

/// The name of the record.
pub(super) const RECORD: &str = "backup.json";
/// A file with this name says that the copy was found to be damaged, and how.
const DAMAGED: &str = "damaged.txt";
/// A file with this name says that the disk did not give the copy when it was read last, and why. A bad sector stays, a cable that is loose
/// does not: so it goes again with the first time that all of the copy is read.
const UNREAD: &str = "unread.txt";
/// What is being made.
pub(super) const PARTIAL: &str = ".partial-";
/// What is being removed.
const REMOVING: &str = ".removing-";

/// The copies could not be looked at or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("could not look through the copies in `{path}`")]
    Read {
        /// Which directory.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
}

/// One copy on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBackup {
    /// Its name.
    pub id: String,
    /// Its record, if it counts.
    pub state: Result<Backup, IgnoredBackup>,
}

impl StoredBackup {
    /// Its record, also of one that does not count and may be good all the same.
    pub fn record(&self) -> Option<&Backup> {
        match &self.state {
            Ok(backup) => Some(backup),
            Err(IgnoredBackup { why: _, unread }) => unread.as_deref(),
        }
    }
}

/// Why a copy does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredBackup {
    /// In words.
    pub why: String,
    /// Its record, if nothing is known against it but that the disk did not give it when it was read last. Whoever names it may try it.
    pub unread: Option<Box<Backup>>,
}

impl IgnoredBackup {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), unread: None }
    }
}

/// The way back from `lock`: of these, oldest first, the newest with worlds that was taken before that came. What the lock says goes before the
/// time in a name: while a clock was ahead, an older update may have left one that is dated later.
pub fn way_back_from<'a>(lock: &str, copies: impl DoubleEndedIterator<Item = &'a Backup>) -> Option<&'a Backup> {
    copies.rev().find(|backup| backup.is_way_back() && backup.before.as_deref() == Some(lock))
}

/// The copies of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupRepository {
    root: PathBuf,
}

impl BackupRepository {
    /// The shelf in the directory `root`, which may not be there yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a copy lies.
    pub fn directory(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// The name for a new copy: `id`, or with a number behind it if a copy has that name, of the same second.
    pub(super) fn free_id(&self, id: &str) -> String {
        let mut numbered = (2..100).map(|number| format!("{id}-{number}"));
        let is_free = |id: &str| !fs_ops::is_there(&self.directory(id));
        if is_free(id) { id.to_owned() } else { numbered.find(|id| is_free(id)).unwrap_or_else(|| id.to_owned()) }
    }

    /// All copies, oldest first. Reads the records, not the archives; see [`BackupRepository::verify`].
    pub fn list(&self) -> Result<Vec<StoredBackup>, Error> {
        let names = self.names(|name| !name.starts_with('.'))?;
        Ok(names.into_iter().map(|id| StoredBackup { state: self.state(&id), id }).collect())
    }

    /// Reads a copy from beginning to end. One that turns out to be damaged is marked as such, and so is one that the disk does not give.
    pub fn verify<S: FsHook>(&self, backup: &Backup, disk: &mut Disk<S>) -> Result<Result<(), Damaged>, Error> {
        let read = archive::read(&self.directory(&backup.id), &backup.seal, &mut DiscardTarget { disk });
        match &read {
            Ok(()) => self.mark_read(&backup.id, disk),
            Err(Damaged::Target(_)) => {}
            Err(damaged) if damaged.is_about_the_archive() => self.mark_damaged(&backup.id, damaged, disk)?,
            Err(unread) => self.mark_unread(&backup.id, unread, disk),
        }
        Ok(read)
    }

    /// Removes what was left half made or half removed. Only for the one process that makes copies here.
    pub fn tidy<S: FsHook>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        for name in self.names(|name| name.starts_with(PARTIAL) || name.starts_with(REMOVING))? {
            disk.step("remove", &self.root.join(&name), |path| fs::remove_dir_all(path))?;
        }
        Ok(())
    }

    /// Removes what `retention` does not keep. `needed` are copies that an update may have to come back to. Answers which went.
    pub fn prune<S: FsHook>(
        &self,
        retention: Retention,
        needed: &[&str],
        now: Timestamp,
        disk: &mut Disk<S>,
    ) -> Result<Vec<String>, Error> {
        let candidate = |copy: StoredBackup| RetentionCandidate {
            taken_at: copy.record().map_or_else(|| self.instant_of(&copy.id), |backup| backup.started_at),
            contents: copy.record().map(|backup| backup.contents),
            before_update: copy.record().is_some_and(|backup| backup.trigger == Trigger::BeforeUpdate),
            data_version: copy.record().and_then(|backup| backup.data_version),
            after_damage: copy.record().is_some_and(|backup| backup.after_damage),
            standing: match &copy.state {
                Ok(_) => Standing::Good,
                Err(IgnoredBackup { why: _, unread: Some(_) }) => Standing::Unread,
                Err(IgnoredBackup { why: _, unread: None }) => Standing::Bad,
            },
            needed: needed.contains(&copy.id.as_str()),
            id: copy.id,
        };
        let copies: Vec<RetentionCandidate> = self.list()?.into_iter().map(candidate).collect();
        let removed = to_remove(&copies, retention, now);
        for id in &removed {
            self.remove(id, disk)?;
        }
        Ok(removed)
    }

    fn remove<S: FsHook>(&self, id: &str, disk: &mut Disk<S>) -> Result<(), Error> {
        let going = self.root.join(format!("{REMOVING}{id}"));
        disk.rename(&self.directory(id), &going)?;
        disk.sync_directory(&self.root)?;
        disk.step("remove", &going, |path| fs::remove_dir_all(path))?;
        Ok(())
    }

    pub(super) fn mark_damaged<S: FsHook>(&self, id: &str, why: &Damaged, disk: &mut Disk<S>) -> Result<(), Error> {
        let path = self.directory(id).join(DAMAGED);
        disk.step("write", &path, |path| fs::write(path, format!("{why}\n")))?;
        Ok(())
    }

    /// Best effort, as [`BackupRepository::mark_read`] is: a disk that fails is often mounted anew to be read only, and nothing else may fail for that.
    pub(super) fn mark_unread<S: FsHook>(&self, id: &str, why: &Damaged, disk: &mut Disk<S>) {
        let causes = iter::successors(Some(why as &dyn std::error::Error), |cause| cause.source());
        let why: Vec<String> = causes.map(ToString::to_string).collect();
        let path = self.directory(id).join(UNREAD);
        drop(disk.step("write", &path, |path| fs::write(path, format!("{}\n", why.join(": ")))));
    }

    /// All of the copy came from the disk, and is what the record says.
    pub(super) fn mark_read<S: FsHook>(&self, id: &str, disk: &mut Disk<S>) {
        let path = self.directory(id).join(UNREAD);
        if fs_ops::is_there(&path) {
            drop(disk.remove(&path));
        }
    }

    fn state(&self, id: &str) -> Result<Backup, IgnoredBackup> {
        let directory = self.directory(id);
        if let Ok(why) = fs::read_to_string(directory.join(DAMAGED)) {
            return Err(IgnoredBackup::because(why.trim()));
        }
        let backup = self.recorded(id).map_err(IgnoredBackup::because)?;
        let unread = directory.join(UNREAD);
        if !fs_ops::is_there(&unread) {
            return Ok(backup);
        }
        let noted = fs::read_to_string(unread).unwrap_or_default();
        let why = format!("could not be read when it was tried last: {}", noted.trim());
        Err(IgnoredBackup { why: why.trim_end_matches(": ").to_owned(), unread: Some(Box::new(backup)) })
    }

    /// The record, if the archive may be the one that it tells of.
    fn recorded(&self, id: &str) -> Result<Backup, String> {
        let directory = self.directory(id);
        let bytes = fs::read(directory.join(RECORD)).map_err(|error| format!("`{RECORD}` cannot be read: {error}"))?;
        let backup: Backup = serde_json::from_slice(&bytes)
            .map_err(|error| format!("`{RECORD}` is not what is written there: {error}"))?;
        if backup.format != FORMAT || backup.id != id {
            return Err(format!("`{RECORD}` is that of `{}` in format {}", backup.id, backup.format));
        }
        match fs::metadata(directory.join(ARCHIVE)) {
            Ok(archive) if archive.len() == backup.seal.archive_bytes => Ok(backup),
            Ok(archive) => {
                Err(format!("`{ARCHIVE}` has {} bytes, its record says {}", archive.len(), backup.seal.archive_bytes))
            }
            Err(error) => Err(format!("`{ARCHIVE}` cannot be read: {error}")),
        }
    }

    /// When a copy without a record came here.
    fn instant_of(&self, id: &str) -> Timestamp {
        let modified = fs::metadata(self.directory(id)).and_then(|metadata| metadata.modified());
        modified.ok().and_then(|modified| modified.try_into().ok()).unwrap_or(Timestamp::MIN)
    }

    /// The directories here, in order.
    fn names(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        let error = |source| Error::Read { path: self.root.display().to_string(), source };
        let mut names = Vec::new();
        for entry in fs_ops::entries(&self.root).map_err(error)? {
            let name = entry.file_name().into_string().ok();
            // `lost+found` of a fresh volume is no copy.
            let ours = |name: &String| wanted(name) && name != "lost+found";
            names.extend(name.filter(|name| entry.path().is_dir() && ours(name)));
        }
        names.sort();
        Ok(names)
    }
}
