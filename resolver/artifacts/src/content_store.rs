//! Edge (writes). Keeps files in a directory, each under its hash: `<algorithm>/<hex>`.
//!
//! A file gets its name when it is complete and on the disk, and the name is the hash of the received bytes. So no
//! content is ever stored under the hash of another one. Until then the file is in a directory of its own.

use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempPath;
use tokio::io::AsyncWriteExt;

use crate::{Algorithm, Hash, Hasher};

#[cfg(test)]
mod tests;

/// The directory for incomplete files, next to those of the algorithms. No algorithm has this name.
const UNFINISHED: &str = "unfinished";

/// A directory of files, each under its hash. Several instances may share the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentStore {
    dir: PathBuf,
}

/// The content at the path of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredContent {
    /// It has this hash.
    Intact,
    /// It has another hash.
    Damaged,
    /// There is no file.
    Missing,
}

/// A file in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its path.
    pub path: PathBuf,
    /// The hash that names it. `None`: the name is no hash, so the store has not written it.
    pub hash: Option<Hash>,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was written.
    pub written: SystemTime,
}

/// Bytes could not be added to a file.
#[derive(Debug, thiserror::Error)]
pub enum StoreWriteError {
    /// The file exceeds its limit.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The disk returned an error.
    #[error("could not write the file to the disk")]
    Disk(#[source] io::Error),
}

impl ContentStore {
    /// The store in this directory, which is created with the first file. Only the current user can read the files.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of the file with this hash, whether it exists or not.
    pub fn path(&self, hash: &Hash) -> PathBuf {
        self.folder(hash.algorithm()).join(hash.hex())
    }

    /// The directory of the files with hashes of this algorithm.
    pub fn folder(&self, algorithm: Algorithm) -> PathBuf {
        self.dir.join(algorithm.as_str())
    }

    /// Creates the directory, which shows whether files can be added. Blocks.
    pub fn create(&self) -> io::Result<()> {
        fs::create_dir_all(self.unfinished())
    }

    /// Reads the file with this hash completely and compares its content. Blocks.
    pub fn verify(&self, hash: &Hash) -> io::Result<StoredContent> {
        Ok(match unless_missing(hash.matches_file(&self.path(hash)))? {
            Some(true) => StoredContent::Intact,
            Some(false) => StoredContent::Damaged,
            None => StoredContent::Missing,
        })
    }

    /// Removes the file with this hash. Succeeds if it does not exist.
    pub fn remove(&self, hash: &Hash) -> io::Result<()> {
        unless_missing(fs::remove_file(self.path(hash))).map(drop)
    }

    /// All complete files, in no order. Blocks.
    pub fn list(&self) -> io::Result<Vec<StoredFile>> {
        let mut files = Vec::new();
        for algorithm in Algorithm::ALL {
            let folder = self.folder(algorithm);
            // A link could lead out of the store.
            if !unless_missing(fs::symlink_metadata(&folder))?.is_some_and(|metadata| metadata.is_dir()) {
                continue;
            }
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                // Another thread may have removed it meanwhile.
                let Some(metadata) = unless_missing(entry.metadata())? else { continue };
                if metadata.is_dir() {
                    continue;
                }
                let name = entry.file_name();
                let hash = name.to_str().and_then(|name| Hash::from_parts(algorithm.as_str(), name));
                let hash = hash.filter(|hash| name == hash.hex());
                files.push(StoredFile {
                    path: entry.path(),
                    hash,
                    size: metadata.len(),
                    written: metadata.modified()?,
                });
            }
        }
        Ok(files)
    }

    /// Removes all unfinished files, which a killed process leaves. A file that is being received is lost, too. Blocks.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        unless_missing(fs::remove_dir_all(self.unfinished())).map(drop)
    }

    /// Begins to receive a file of at most `limit` bytes, to be stored under its hash by `algorithm`.
    pub fn begin(&self, algorithm: Algorithm, limit: u64) -> io::Result<UnfinishedFile> {
        self.create()?;
        let temporary = tempfile::NamedTempFile::new_in(self.unfinished())?;
        let (file, path) = temporary.into_parts();
        Ok(UnfinishedFile { target: self.clone(), content: IncomingContent::new(file, algorithm, limit), path })
    }

    fn unfinished(&self) -> PathBuf {
        self.dir.join(UNFINISHED)
    }
}

/// The content of a file that is being received: limited, counted and hashed.
#[derive(Debug)]
pub struct IncomingContent {
    file: tokio::fs::File,
    hasher: Hasher,
    size: u64,
    limit: u64,
}

impl IncomingContent {
    /// Writes to `file`, which is empty, at most `limit` bytes.
    pub fn new(file: fs::File, algorithm: Algorithm, limit: u64) -> Self {
        Self { file: tokio::fs::File::from_std(file), hasher: Hasher::new(algorithm), size: 0, limit }
    }

    /// Refuses a file of this size in bytes, if it exceeds the limit. For a size that is known before the content is.
    pub fn check_size(&self, size: u64) -> Result<(), StoreWriteError> {
        if size > self.limit { Err(StoreWriteError::TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// Adds the next bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StoreWriteError> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        self.check_size(self.size)?;
        self.hasher.update(bytes);
        self.file.write_all(bytes).await.map_err(StoreWriteError::Disk)
    }

    /// Ends the content. Returns the file, the hash and the size in bytes.
    pub async fn finish(mut self) -> Result<(fs::File, Hash, u64), StoreWriteError> {
        self.file.flush().await.map_err(StoreWriteError::Disk)?;
        Ok((self.file.into_std().await, self.hasher.finish(), self.size))
    }
}

/// A file that is being received. Dropping it removes it.
#[derive(Debug)]
pub struct UnfinishedFile {
    target: ContentStore,
    content: IncomingContent,
    path: TempPath,
}

impl Deref for UnfinishedFile {
    type Target = IncomingContent;

    fn deref(&self) -> &IncomingContent {
        &self.content
    }
}

impl DerefMut for UnfinishedFile {
    fn deref_mut(&mut self) -> &mut IncomingContent {
        &mut self.content
    }
}

impl UnfinishedFile {
    /// Ends the content.
    pub async fn finish(self) -> Result<CompleteFile, StoreWriteError> {
        let Self { target, content, path } = self;
        let (file, hash, size) = content.finish().await?;
        Ok(CompleteFile { target, file, path, hash, size })
    }
}

/// A file whose content is complete, and which is not in the store yet. Dropping it removes it.
#[derive(Debug)]
pub struct CompleteFile {
    target: ContentStore,
    file: fs::File,
    path: TempPath,
    hash: Hash,
    size: u64,
}

impl CompleteFile {
    /// The hash of its content.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its path until it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the content to the disk and then names the file by its hash, so that after a crash it either exists
    /// completely or does not exist. Replaces an existing file. Blocks.
    pub fn keep(self) -> io::Result<()> {
        let Self { target, file, path, hash, size: _ } = self;
        file.sync_all()?;
        let folder = target.folder(hash.algorithm());
        fs::create_dir_all(&folder)?;
        path.persist(target.path(&hash))?;
        fs::File::open(folder)?.sync_all()
    }
}

/// `None` if the file does not exist.
fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
