//! Edge (writes). Stores the files of the next and current locks on the volume, below `.nightshift/store`.
//!
//! Before a file is added, its hash is compared with the lock and, if it is a JAR, it is opened. A start links stored files into place. A plugin
//! that writes into its own JAR therefore changes the store too, so every use hashes again.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use super::fs_ops::{self, Disk, RealFs};
use super::hash_cache::{self, HashCache};
use super::{RecordError, Volume, WantedFile, jar_descriptor, read_record, validate};
use agent_api::restore::RESERVED_BYTES;
use agent_api::{File, FileSet};
use artifacts::{FactsError, Hash};

use crate::plain_fs;
pub use content::{CompleteFile, UnfinishedFile};

mod content;
mod previous_sets;

/// The size limit for a file whose source publishes no size. The largest server JAR has about 60 MB, the largest plugins some hundred.
pub const MAX_UNSIZED_BYTES: u64 = 512 * 1024 * 1024;

const MIB: u64 = 1024 * 1024;

/// A file could not be added to the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A lock or a record is not usable.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// The file system returned an error.
    #[error("could not {operation} `{path}` in the store on the volume")]
    File {
        /// The operation.
        operation: &'static str,
        /// The file: for a file of a lock its path in the server's directory, otherwise its own path.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The free space could not be determined.
    #[error("could not read the free space of the volume")]
    Space(#[source] io::Error),
    /// The content differs from the lock. Final for this address.
    #[error("the download of `{path}` has the hash {found}, but the lock says {wanted}")]
    Mismatch {
        /// Its path in the server's directory.
        path: String,
        /// The hash in the lock.
        wanted: Hash,
        /// The hash of the received content.
        found: Hash,
    },
    /// The content is as published, and still not a JAR.
    #[error("`{path}` cannot be loaded by a server")]
    NotAJar {
        /// Its path in the server's directory.
        path: String,
        /// The cause.
        #[source]
        source: FactsError,
    },
    /// The JAR contains another plugin than the lock names.
    #[error("`{path}` is the plugin {found}, but the lock says {wanted}")]
    OtherPlugin {
        /// Its path in the server's directory.
        path: String,
        /// The name in the lock.
        wanted: String,
        /// The name in its plugin.yml.
        found: String,
    },
    /// It would fill the volume.
    #[error(
        "the volume has {} MiB free, these files need {} MiB, and {} MiB must stay free for the worlds",
        free / MIB, needed.div_ceil(MIB), RESERVED_BYTES / MIB
    )]
    Full {
        /// The free bytes.
        free: u64,
        /// The sum of the missing files in bytes.
        needed: u64,
    },
}

/// The store of one volume.
#[derive(Debug, Clone)]
pub struct VolumeStore {
    volume: Volume,
}

impl VolumeStore {
    /// The store on `volume`.
    pub fn new(volume: Volume) -> Self {
        Self { volume }
    }

    /// The files of `set` that are not complete in the store. A file that is already in place is linked into the store and not returned. A stored
    /// file whose content has changed is removed. Files in `hashes` are not read again.
    pub fn missing(&self, set: &FileSet, hashes: &mut HashCache) -> Result<Vec<File>, Error> {
        let mut missing = Vec::new();
        for WantedFile { file, path, hash } in validate(&self.volume, set)? {
            if self.verify(&hash, hashes)? {
                continue;
            }
            let is_in_place = hashes.matches_file(&hash, &path).map_err(failed("read", &file.path))?;
            if is_in_place && check_jar(&file, &path).is_ok() {
                self.link_into_store(&path, &hash)?;
            } else {
                missing.push(file);
            }
        }
        Ok(missing)
    }

    /// Refuses `files` if they would not leave [`RESERVED_BYTES`] bytes. Files of unknown size count as zero. Their limit is checked during the
    /// download.
    pub fn check_space(&self, files: &[File]) -> Result<(), Error> {
        let free = self.free_bytes()?;
        let needed = files.iter().filter_map(|file| file.size).sum::<u64>();
        if free < needed.saturating_add(RESERVED_BYTES) { Err(Error::Full { free, needed }) } else { Ok(()) }
    }

    /// Begins to receive `file`. [`keep`] ends it.
    pub fn begin(&self, file: &File) -> Result<UnfinishedFile, Error> {
        let hash = parse_hash(file)?;
        let room = self.free_bytes()?.saturating_sub(RESERVED_BYTES);
        let limit = file.size.unwrap_or(MAX_UNSIZED_BYTES).min(room);
        content::begin(&self.volume.store_dir(), hash.algorithm(), limit).map_err(failed("begin", &file.path))
    }

    /// Records that all files of `set` are stored. Removes records of locks that were staged and never ran, or ran too long ago.
    pub fn mark_staged(&self, set: &FileSet) -> Result<(), Error> {
        self.volume.resolve_path(&set.lock)?;
        Disk::new(RealFs).write_record(&self.volume.staged_path(&set.lock), set)?;
        let mut retained = self.needed()?;
        retained.extend(self.earlier_sets()?);
        for (lock, path) in self.records()? {
            if lock != set.lock && !retained.contains(&lock) {
                Disk::new(RealFs).remove(&path)?;
            }
        }
        Ok(())
    }

    /// The locks whose files are all stored, each hashed now. A record with missing files is removed. Of version sets that ran long ago, only the
    /// `requested` one is checked: they have hundreds of megabytes, and a server starts meanwhile.
    pub fn staged(&self, requested: Option<&str>) -> Result<Vec<String>, Error> {
        let earlier = self.earlier_sets()?;
        let (mut whole, mut hashes) = (Vec::new(), HashCache::default());
        for (lock, path) in self.records()? {
            if earlier.contains(&lock) && requested != Some(&lock) {
                continue;
            }
            let set: Option<FileSet> = read_record(&path).unwrap_or(None);
            let complete = match &set {
                Some(set) => set.lock == lock && self.missing(set, &mut hashes)?.is_empty(),
                None => false,
            };
            if complete {
                whole.push(lock);
            } else {
                Disk::new(RealFs).remove(&path)?;
            }
        }
        Ok(whole)
    }

    /// Removes unfinished files and files that no record names. Files of the current lock, of earlier locks that are kept, and of staged locks
    /// stay. Returns the number of removed complete files.
    pub fn prune(&self) -> Result<usize, Error> {
        let named = self.files_without(&[])?;
        let store = self.volume.store_dir();
        content::remove_unfinished(&store).map_err(failed("remove unfinished files of", &store.display()))?;
        let mut removed = 0;
        for file in content::list(&store).map_err(failed("list", &store.display()))? {
            if !named.contains(&file) {
                Disk::new(RealFs).remove(&file)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Whether the content is stored and matches its hash. A mismatch is removed, because every later check would fail too.
    fn verify(&self, hash: &Hash, hashes: &mut HashCache) -> Result<bool, Error> {
        let stored = self.volume.stored_path(hash);
        let fits = hashes.matches_file(hash, &stored).map_err(failed("read", &stored.display()))?;
        if !fits {
            Disk::new(RealFs).remove(&stored)?;
        }
        Ok(fits)
    }

    fn link_into_store(&self, path: &Path, hash: &Hash) -> Result<(), Error> {
        let mut disk = Disk::new(RealFs);
        let stored = self.volume.stored_path(hash);
        let directory = stored.parent().unwrap_or(&stored);
        disk.make_directory(directory)?;
        disk.replace_with(path, &stored)?;
        disk.sync_directory(directory)?;
        Ok(())
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        fs_ops::free_bytes(self.volume.root()).map_err(Error::Space)
    }

    /// The records of staged locks, in the order of their digests.
    fn records(&self) -> Result<Vec<(String, PathBuf)>, Error> {
        let directory = self.volume.staged_dir();
        let mut records = Vec::new();
        for entry in plain_fs::entries(&directory).map_err(failed("list", &directory.display()))? {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(lock) = path.file_stem().and_then(|stem| stem.to_str())
            {
                records.push((lock.to_owned(), path.to_owned()));
            }
        }
        records.sort();
        Ok(records)
    }
}

/// Keeps a received file in its store: the content must match the lock and, for JARs, be loadable by a server. Otherwise it is removed. Blocks
/// until it is on disk.
pub fn keep(file: &File, received: CompleteFile) -> Result<(), Error> {
    let wanted = parse_hash(file)?;
    let found = received.hash();
    if *found != wanted {
        return Err(Error::Mismatch { path: file.path.clone(), wanted, found: found.clone() });
    }
    check_jar(file, received.path())?;
    received.keep().map_err(failed("keep", &file.path))
}

fn parse_hash(file: &File) -> Result<Hash, RecordError> {
    hash_cache::parse(&file.hash).map_err(|source| RecordError::Hash { path: file.path.clone(), source })
}

fn failed(operation: &'static str, path: &dyn Display) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_string();
    move |source| Error::File { operation, path, source }
}

/// A JAR must open, and a plugin's JAR must contain the expected plugin.
fn check_jar(file: &File, content: &Path) -> Result<(), Error> {
    let is_jar = Path::new(&file.path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jar"));
    if !is_jar {
        return Ok(());
    }
    let found = jar_descriptor::plugin(content).map_err(|source| Error::NotAJar { path: file.path.clone(), source })?;
    let found = found.map(|plugin| plugin.name);
    match (&file.plugin, found) {
        (Some(wanted), found) if found.as_deref() != Some(wanted) => Err(Error::OtherPlugin {
            path: file.path.clone(),
            wanted: wanted.clone(),
            found: found.unwrap_or_else(|| "no plugin that the server loads".to_owned()),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
