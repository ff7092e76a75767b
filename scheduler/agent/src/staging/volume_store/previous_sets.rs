//! Edge (writes). Keeps the version sets from before the previous one for manual rollbacks, and removes them first when space is short.
//!
//! The current version set and the previous one are never removed here, because a rollback needs them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::super::fs_ops::{Disk, RealFs};
use super::super::{all_files, read_record};
use super::{Error, RESERVED_BYTES, VolumeStore};
use agent_api::restore::FREE_FOR_WORLDS;
use agent_api::{File, FileHash, FileSet};
use artifacts::Hash;

use crate::plain_fs;

/// The current version set and five earlier ones. A failed version set counts too, because it ran.
const MAX_SETS: usize = 6;

/// `ran.json`: the digests of the locks that ran here, the newest first.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviousLocks {
    locks: Vec<String>,
}

impl VolumeStore {
    /// Records the current lock, and the previous one if no record existed. Locks beyond `MAX_SETS` are dropped.
    pub fn record_run(&self) -> Result<(), Error> {
        let Some(manifest) = self.volume.manifest()? else { return Ok(()) };
        let before = self.history();
        let mut locks = vec![manifest.lock];
        let earlier = manifest.previous.into_iter().chain(before.iter().cloned());
        for lock in earlier {
            if !locks.contains(&lock) {
                locks.push(lock);
            }
        }
        let excess = locks.split_off(MAX_SETS.min(locks.len()));
        if locks != before {
            Disk::new(RealFs).write_record(&self.volume.ran_path(), &PreviousLocks { locks })?;
        }
        let recorded = self.recorded()?;
        let excess: Vec<String> = excess.into_iter().filter(|lock| recorded.contains(lock)).collect();
        self.remove_sets(&excess, None)
    }

    /// Makes space for the missing files of `set` by removing version sets that ran long ago, oldest first. If that is not enough, they stay, and
    /// no file is downloaded. Returns the removed ones.
    pub fn free_space_for(&self, set: &FileSet, missing: &[File]) -> Result<Vec<String>, Error> {
        let Err(Error::Full { free, needed }) = self.check_space(missing) else { return Ok(Vec::new()) };
        let removed = self
            .fewest_that_free(needed.saturating_add(RESERVED_BYTES).saturating_sub(free), Some(set))?
            .unwrap_or_default();
        self.remove_sets(&removed, Some(set))?;
        self.check_space(missing)?;
        Ok(removed)
    }

    /// Removes version sets that ran long ago, oldest first, until the worlds have space again or none is left. Returns the removed ones.
    pub fn prune_for_worlds(&self) -> Result<Vec<String>, Error> {
        self.prune_to_free(FREE_FOR_WORLDS.saturating_sub(self.free_bytes()?))
    }

    pub(super) fn prune_to_free(&self, missing_bytes: u64) -> Result<Vec<String>, Error> {
        let removed = match self.fewest_that_free(missing_bytes, None)? {
            Some(enough) => enough,
            None => self.earlier_sets()?,
        };
        self.remove_sets(&removed, None)?;
        Ok(removed)
    }

    /// The fewest version sets that free this many bytes, oldest first. `None`: all of them together would not.
    pub(super) fn fewest_that_free(
        &self,
        missing_bytes: u64,
        incoming: Option<&FileSet>,
    ) -> Result<Option<Vec<String>>, Error> {
        let mut oldest = self.earlier_sets()?;
        oldest.reverse();
        oldest.retain(|lock| incoming.is_none_or(|incoming| incoming.lock != *lock));
        for count in 0..=oldest.len() {
            if self.freed_by(&oldest[..count], incoming)? >= missing_bytes {
                oldest.truncate(count);
                return Ok(Some(oldest));
            }
        }
        Ok(None)
    }

    /// How many bytes are used only by these version sets.
    fn freed_by(&self, removed: &[String], incoming: Option<&FileSet>) -> Result<u64, Error> {
        let staying = self.files_without_or_incoming(removed, incoming)?;
        let mut freed = BTreeSet::new();
        for lock in removed {
            let set: Option<FileSet> = read_record(&self.volume.staged_path(lock)).unwrap_or(None);
            let files = set.iter().flat_map(all_files).filter_map(|file| self.stored_path(&file.hash));
            freed.extend(files.filter(|path| !staying.contains(path)));
        }
        Ok(freed.iter().filter_map(|path| plain_fs::metadata(path).ok()).map(|file| file.len()).sum())
    }

    /// Removes the records of these version sets, and then files that no record names any more. Files of a version set that is being downloaded,
    /// which has no record yet, stay.
    pub(super) fn remove_sets(&self, locks: &[String], incoming: Option<&FileSet>) -> Result<(), Error> {
        if locks.is_empty() {
            return Ok(());
        }
        let staying = self.files_without_or_incoming(locks, incoming)?;
        for lock in locks {
            let path = self.volume.staged_path(lock);
            let set: Option<FileSet> = read_record(&path).unwrap_or(None);
            // The record is removed first. Without it the files no longer count as complete.
            Disk::new(RealFs).remove(&path)?;
            for stored in set.iter().flat_map(all_files).filter_map(|file| self.stored_path(&file.hash)) {
                if !staying.contains(&stored) {
                    Disk::new(RealFs).remove(&stored)?;
                }
            }
        }
        Ok(())
    }

    /// The kept version sets that no rollback depends on, the newest first.
    pub(super) fn earlier_sets(&self) -> Result<Vec<String>, Error> {
        let needed = self.needed()?;
        let recorded = self.recorded()?;
        Ok(self.history().into_iter().filter(|lock| recorded.contains(lock) && !needed.contains(lock)).collect())
    }

    /// The current version set and the previous one.
    pub(super) fn needed(&self) -> Result<BTreeSet<String>, Error> {
        let manifest = self.volume.manifest()?;
        Ok(manifest.into_iter().flat_map(|manifest| [Some(manifest.lock), manifest.previous]).flatten().collect())
    }

    fn recorded(&self) -> Result<BTreeSet<String>, Error> {
        Ok(self.records()?.into_iter().map(|(lock, _)| lock).collect())
    }

    /// The files that would be kept in the store without the records of `removed`.
    pub(super) fn files_without(&self, removed: &[String]) -> Result<BTreeSet<PathBuf>, Error> {
        let mut named = BTreeSet::new();
        for (lock, path) in self.records()? {
            if !removed.contains(&lock) {
                let set: Option<FileSet> = read_record(&path).unwrap_or(None);
                named.extend(set.iter().flat_map(all_files).filter_map(|file| self.stored_path(&file.hash)));
            }
        }
        if let Some(manifest) = self.volume.manifest()? {
            named.extend(manifest.files.values().filter_map(|managed| self.stored_path(&managed.hash)));
        }
        Ok(named)
    }

    fn files_without_or_incoming(
        &self,
        removed: &[String],
        incoming: Option<&FileSet>,
    ) -> Result<BTreeSet<PathBuf>, Error> {
        let mut named = self.files_without(removed)?;
        named.extend(incoming.into_iter().flat_map(all_files).filter_map(|file| self.stored_path(&file.hash)));
        Ok(named)
    }

    fn stored_path(&self, hash: &FileHash) -> Option<PathBuf> {
        Hash::parse(&hash.0).map(|hash| self.volume.stored_path(&hash))
    }

    /// An unreadable record counts as empty, because it only determines how many old version sets are kept.
    fn history(&self) -> Vec<String> {
        let ran: Option<PreviousLocks> = read_record(&self.volume.ran_path()).unwrap_or(None);
        ran.unwrap_or_default().locks
    }
}
