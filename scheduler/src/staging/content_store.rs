//! Edge (writes). The content store on the volume: files of coming and running locks by their hash, below `.nightshift/store`.
//!
//! A file is in the store only under its hash, and only after it was hashed on its way in, brought to the disk and, if it is a JAR,
//! opened. What lies there is linked into place at a start, so a plugin that writes into its own JAR writes here too: every use hashes
//! again.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::fs_ops::{self, Disk, RealFs};
use super::hash_cache::{Hash, HashCache, Hasher};
use super::{RecordError, Volume, WantedSet, checked, jar_descriptor, read_record};
use crate::protocol::{File, FileSet};

mod previous_sets;

/// Cap for a file whose source says no size. The largest server JAR has about 60 MB, the largest plugins some hundred.
pub const LARGEST_WITHOUT_SIZE: u64 = 512 * 1024 * 1024;

/// What must stay free on the volume, in bytes: a server that cannot save its world is worse than one that is not updated.
pub const SPARE: u64 = 64 * MIB;
const MIB: u64 = 1024 * 1024;

/// A file did not come into the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A lock or a record of ours is not usable.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// The file system said no.
    #[error("could not {what} `{path}` in the store on the volume")]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file: of a lock its place in the server's directory, else where it lies.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nobody could say how much room there is.
    #[error("could not ask for the free space of the volume")]
    Space(#[source] io::Error),
    /// More came than the source said there is, or than we take.
    #[error("`{path}` is larger than the {limit} bytes it may have")]
    TooLarge {
        /// Its place in the server's directory.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// Not the content that the lock names. Final for this address.
    #[error("what was received for `{path}` hashes to {found}, the lock says {wanted}")]
    Mismatch {
        /// Its place in the server's directory.
        path: String,
        /// By the lock.
        wanted: Hash,
        /// As received.
        found: Hash,
    },
    /// The content is as published and yet no JAR.
    #[error("`{path}` cannot be loaded by a server")]
    NotAJar {
        /// Its place in the server's directory.
        path: String,
        /// Why.
        #[source]
        source: jar_descriptor::Error,
    },
    /// Another plugin than the lock means.
    #[error("`{path}` is the plugin {found}, the lock means {wanted}")]
    OtherPlugin {
        /// Its place in the server's directory.
        path: String,
        /// By the lock.
        wanted: String,
        /// By its plugin.yml.
        found: String,
    },
    /// It would fill the volume.
    #[error(
        "the volume has {} MiB free, these files need {} MiB, and {} MiB must stay free for the worlds",
        free / MIB, needed.div_ceil(MIB), SPARE / MIB
    )]
    Full {
        /// Free now.
        free: u64,
        /// Sum of what is missing.
        needed: u64,
    },
}

/// The store of one volume.
#[derive(Debug, Clone)]
pub struct ContentStore {
    volume: Volume,
}

impl ContentStore {
    /// The store on `volume`.
    pub fn new(volume: Volume) -> Self {
        Self { volume }
    }

    /// The files of `set` that do not lie in the store whole. One that lies in its place already is linked in instead of named; one in
    /// the store whose content has changed is removed. What is `known` of them is not read again.
    pub fn missing(&self, set: &FileSet, known: &mut HashCache) -> Result<Vec<File>, Error> {
        let mut missing = Vec::new();
        for WantedSet { file, place, hash } in checked(&self.volume, set)? {
            if self.verify(&hash, known)? {
                continue;
            }
            let there = known.fits(&hash, &place).map_err(failed("read", &file.path))?;
            if there && admit(&file, &place).is_ok() {
                self.link_in(&place, &hash)?;
            } else {
                missing.push(file);
            }
        }
        Ok(missing)
    }

    /// Refuses `files` if they would not leave [`SPARE`] bytes. Files of unknown size count nothing; their cap is checked as they come.
    pub fn check_space(&self, files: &[File]) -> Result<(), Error> {
        let free = self.free()?;
        let needed = files.iter().filter_map(|file| file.size).sum::<u64>();
        if free < needed.saturating_add(SPARE) { Err(Error::Full { free, needed }) } else { Ok(()) }
    }

    /// Begins to receive `file`.
    pub fn receive(&self, file: &File) -> Result<PartialFile, Error> {
        let hash = Hash::parse(&file.hash).map_err(|source| RecordError::Hash { path: file.path.clone(), source })?;
        let (target, directory) = (self.volume.stored(&hash), self.volume.store_of(&hash));
        fs::create_dir_all(&directory).map_err(failed("begin", &file.path))?;
        // Readable for the server, whatever group it runs in.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        let temporary = tempfile::Builder::new().prefix(".incoming.").permissions(mode).tempfile_in(&directory);
        let room = self.free()?.saturating_sub(SPARE);
        let limit = file.size.unwrap_or(LARGEST_WITHOUT_SIZE).min(room);
        Ok(PartialFile {
            file: file.clone(),
            hasher: Hasher::new(hash.algorithm()),
            hash,
            target,
            directory,
            temporary: temporary.map_err(failed("begin", &file.path))?,
            received: 0,
            limit,
        })
    }

    /// Records that all files of `set` lie here, and forgets locks that were staged and never ran, or ran too long ago.
    pub fn mark_staged(&self, set: &FileSet) -> Result<(), Error> {
        self.volume.place(&set.lock)?;
        Disk::new(RealFs).write_record(&self.volume.staged_path(&set.lock), set)?;
        let mut kept = self.needed()?;
        kept.extend(self.earlier()?);
        for (lock, path) in self.records()? {
            if lock != set.lock && !kept.contains(&lock) {
                fs::remove_file(&path).map_err(failed("remove", &path.display()))?;
            }
        }
        Ok(())
    }

    /// The locks whose files all lie here, each hashed now. A record whose files do not is removed. Of sets that ran long ago only the one that is
    /// `asked` for is looked at: they have hundreds of megabytes, and a server starts meanwhile.
    pub fn staged(&self, asked: Option<&str>) -> Result<Vec<String>, Error> {
        let earlier = self.earlier()?;
        let (mut whole, mut known) = (Vec::new(), HashCache::default());
        for (lock, path) in self.records()? {
            if earlier.contains(&lock) && asked != Some(&lock) {
                continue;
            }
            let set: Option<FileSet> = read_record(&path).unwrap_or(None);
            let complete = match &set {
                Some(set) => set.lock == lock && self.missing(set, &mut known)?.is_empty(),
                None => false,
            };
            if complete {
                whole.push(lock);
            } else {
                fs::remove_file(&path).map_err(failed("remove", &path.display()))?;
            }
        }
        Ok(whole)
    }

    /// Removes what no record names: not the lock that runs, not those that ran before it and are kept, not one that is staged. Answers how
    /// many files went.
    pub fn prune(&self) -> Result<usize, Error> {
        let named = self.named_without(&[])?;
        let mut removed = 0;
        for entry in walkdir::WalkDir::new(self.volume.store_dir()).min_depth(1) {
            let Ok(entry) = entry else { continue };
            if entry.file_type().is_file() && !named.contains(entry.path()) {
                fs::remove_file(entry.path()).map_err(failed("remove", &entry.path().display()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Whether the content is here and is what its name says. What is not, is removed: it would be found wanting at each look.
    fn verify(&self, hash: &Hash, known: &mut HashCache) -> Result<bool, Error> {
        let stored = self.volume.stored(hash);
        let fits = known.fits(hash, &stored).map_err(failed("read", &stored.display()))?;
        if !fits && stored.exists() {
            fs::remove_file(&stored).map_err(failed("remove the damaged", &stored.display()))?;
        }
        Ok(fits)
    }

    fn link_in(&self, place: &Path, hash: &Hash) -> Result<(), Error> {
        let mut disk = Disk::new(RealFs);
        let directory = self.volume.store_of(hash);
        disk.make_directory(&directory)?;
        disk.place(place, &self.volume.stored(hash))?;
        disk.sync_directory(&directory)?;
        Ok(())
    }

    fn free(&self) -> Result<u64, Error> {
        fs_ops::free_bytes(self.volume.root()).map_err(Error::Space)
    }

    /// The records of staged locks, in the order of their digests.
    fn records(&self) -> Result<Vec<(String, PathBuf)>, Error> {
        let directory = self.volume.staged_dir();
        let error = |source| failed("list", &directory.display())(source);
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(other) => return Err(error(other)),
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry.map_err(error)?.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(lock) = path.file_stem().and_then(|stem| stem.to_str())
            {
                records.push((lock.to_owned(), path.clone()));
            }
        }
        records.sort();
        Ok(records)
    }
}

/// A file on its way into the store. Dropped before [`PartialFile::keep`], it leaves nothing behind.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    hash: Hash,
    hasher: Hasher,
    target: PathBuf,
    directory: PathBuf,
    temporary: NamedTempFile,
    received: u64,
    limit: u64,
}

impl PartialFile {
    /// Takes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.received = self.received.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.received > self.limit {
            return Err(Error::TooLarge { path: self.file.path.clone(), limit: self.limit });
        }
        self.hasher.update(bytes);
        self.temporary.write_all(bytes).map_err(failed("write", &self.file.path))
    }

    /// Ends: the content must be what the lock names and, for JARs, what a server can load. Blocks until it is on the disk.
    pub fn keep(self) -> Result<(), Error> {
        let found = self.hasher.finish();
        if found != self.hash {
            return Err(Error::Mismatch { path: self.file.path, wanted: self.hash, found });
        }
        admit(&self.file, self.temporary.path())?;
        let error = |source| failed("keep", &self.file.path)(source);
        self.temporary.as_file().sync_all().map_err(error)?;
        self.temporary.persist(&self.target).map_err(|failed| error(failed.error))?;
        fs::File::open(self.directory).and_then(|directory| directory.sync_all()).map_err(error)
    }
}

fn failed(what: &'static str, path: &dyn Display) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_string();
    move |source| Error::File { what, path, source }
}

/// A JAR must open, and a plugin's must be the plugin that is meant.
fn admit(file: &File, content: &Path) -> Result<(), Error> {
    let is_jar = Path::new(&file.path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jar"));
    if !is_jar {
        return Ok(());
    }
    let found =
        jar_descriptor::plugin_name(content).map_err(|source| Error::NotAJar { path: file.path.clone(), source })?;
    match (&file.plugin, found) {
        (Some(wanted), found) if found.as_deref() != Some(wanted) => Err(Error::OtherPlugin {
            path: file.path.clone(),
            wanted: wanted.clone(),
            found: found.unwrap_or_else(|| "nothing (it has no plugin.yml)".to_owned()),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
