//! Edge (writes). The directory where the copies of one server lie, each in a directory of its own that has the copy's name.
//!
//! A copy comes here whole or not at all: it is made under a name that begins with a point, read back, and renamed. It goes the same way
//! backwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::archive::{self, ARCHIVE, Damaged, Nowhere};
use super::retention::{Candidate, Retention, to_remove};
use super::{Backup, FORMAT, Trigger};
use crate::staging::disk::{self, Disk, Steps};

/// The name of the record.
pub(super) const RECORD: &str = "backup.json";
/// A file with this name says that the copy was found to be damaged, and how.
const DAMAGED: &str = "damaged.txt";
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
    Disk(#[from] disk::Error),
}

/// One copy on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelved {
    /// Its name.
    pub id: String,
    /// Its record; or why it does not count, in words.
    pub state: Result<Backup, String>,
}

/// The copies of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    root: PathBuf,
}

impl Shelf {
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
        let is_free = |id: &str| !disk::is_there(&self.directory(id));
        if is_free(id) { id.to_owned() } else { numbered.find(|id| is_free(id)).unwrap_or_else(|| id.to_owned()) }
    }

    /// All copies, oldest first. Reads the records, not the archives; see [`Shelf::verify`].
    pub fn list(&self) -> Result<Vec<Shelved>, Error> {
        let names = self.names(|name| !name.starts_with('.'))?;
        Ok(names.into_iter().map(|id| Shelved { state: self.state(&id), id }).collect())
    }

    /// Reads a copy from beginning to end. One that turns out to be damaged is marked as such.
    pub fn verify<S: Steps>(&self, backup: &Backup, disk: &mut Disk<S>) -> Result<Result<(), Damaged>, Error> {
        let read = archive::read(&self.directory(&backup.id), &backup.seal, &mut Nowhere { disk });
        if let Err(damaged) = &read
            && damaged.is_about_the_archive()
        {
            self.mark_damaged(&backup.id, damaged, disk)?;
        }
        Ok(read)
    }

    /// Removes what was left half made or half removed. Only for the one process that makes copies here.
    pub fn tidy<S: Steps>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        for name in self.names(|name| name.starts_with(PARTIAL) || name.starts_with(REMOVING))? {
            disk.step("remove", &self.root.join(&name), |path| fs::remove_dir_all(path))?;
        }
        Ok(())
    }

    /// Removes what `retention` does not keep. `needed` are copies that an update may have to come back to. Answers which went.
    pub fn prune<S: Steps>(
        &self,
        retention: Retention,
        needed: &[&str],
        now: Timestamp,
        disk: &mut Disk<S>,
    ) -> Result<Vec<String>, Error> {
        let candidate = |copy: Shelved| Candidate {
            taken_at: copy.state.as_ref().map_or_else(|_| self.instant_of(&copy.id), |backup| backup.started_at),
            contents: copy.state.as_ref().ok().map(|backup| backup.contents),
            before_update: copy.state.as_ref().is_ok_and(|backup| backup.trigger == Trigger::BeforeUpdate),
            good: copy.state.is_ok(),
            needed: needed.contains(&copy.id.as_str()),
            id: copy.id,
        };
        let copies: Vec<Candidate> = self.list()?.into_iter().map(candidate).collect();
        let removed = to_remove(&copies, retention, now);
        for id in &removed {
            self.remove(id, disk)?;
        }
        Ok(removed)
    }

    fn remove<S: Steps>(&self, id: &str, disk: &mut Disk<S>) -> Result<(), Error> {
        let going = self.root.join(format!("{REMOVING}{id}"));
        disk.rename(&self.directory(id), &going)?;
        disk.sync_directory(&self.root)?;
        disk.step("remove", &going, |path| fs::remove_dir_all(path))?;
        Ok(())
    }

    pub(super) fn mark_damaged<S: Steps>(&self, id: &str, why: &Damaged, disk: &mut Disk<S>) -> Result<(), Error> {
        let path = self.directory(id).join(DAMAGED);
        disk.step("write", &path, |path| fs::write(path, format!("{why}\n")))?;
        Ok(())
    }

    fn state(&self, id: &str) -> Result<Backup, String> {
        let directory = self.directory(id);
        if let Ok(why) = fs::read_to_string(directory.join(DAMAGED)) {
            return Err(why.trim().to_owned());
        }
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
        for entry in disk::entries(&self.root).map_err(error)? {
            let name = entry.file_name().into_string().ok();
            // `lost+found` of a fresh volume is no copy.
            let ours = |name: &String| wanted(name) && name != "lost+found";
            names.extend(name.filter(|name| entry.path().is_dir() && ours(name)));
        }
        names.sort();
        Ok(names)
    }
}
