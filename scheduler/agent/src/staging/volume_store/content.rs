//! Edge (writes). Keeps files below `.nightshift/store`, each under its hash, as `artifacts::content_store` does for the operator.
//!
//! The server may write there, so its directories may be links. That is why the operator's store is not used here.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use artifacts::content_store::{IncomingContent, StoreWriteError};
use artifacts::{Algorithm, Hash};

use crate::plain_fs;

/// The directory for incomplete files, beside those of the algorithms. No algorithm has this name.
const UNFINISHED: &str = "unfinished";

/// The server reads the files, whatever its user and group are.
const MODE: u32 = 0o644;

/// The number in the name of the next incomplete file of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// All complete files below this directory, in no order.
pub(super) fn list(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for algorithm in Algorithm::ALL {
        let entries = plain_fs::entries(&store.join(algorithm.as_str()))?.into_iter();
        files.extend(entries.filter(|entry| !entry.is_directory()).map(|entry| entry.path().to_owned()));
    }
    Ok(files)
}

/// Removes all unfinished files, which a killed process leaves.
pub(super) fn remove_unfinished(store: &Path) -> io::Result<()> {
    match plain_fs::remove_tree(&store.join(UNFINISHED)) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Begins to receive a file of at most `limit` bytes, to be stored under its hash by `algorithm`.
pub(super) fn begin(store: &Path, algorithm: Algorithm, limit: u64) -> io::Result<UnfinishedFile> {
    let directory = store.join(UNFINISHED);
    plain_fs::create_directories(&directory)?;
    loop {
        let path = directory.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        match plain_fs::create_new(&path, MODE) {
            // Left by an earlier process.
            Err(existing) if existing.kind() == io::ErrorKind::AlreadyExists => {}
            created => {
                let content = IncomingContent::new(created?, algorithm, limit);
                return Ok(UnfinishedFile { content, path: Temporary(path), store: store.to_owned() });
            }
        }
    }
}

/// A file that is being received. Dropping it removes it.
#[derive(Debug)]
pub struct UnfinishedFile {
    content: IncomingContent,
    path: Temporary,
    store: PathBuf,
}

impl UnfinishedFile {
    /// Ends the content.
    pub async fn finish(self) -> Result<CompleteFile, StoreWriteError> {
        let Self { content, path, store } = self;
        let (file, hash, _) = content.finish().await?;
        Ok(CompleteFile { file, hash, path, store })
    }
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

/// A file whose content is complete, and which is not in the store yet. Dropping it removes it.
#[derive(Debug)]
pub struct CompleteFile {
    file: File,
    hash: Hash,
    path: Temporary,
    store: PathBuf,
}

impl CompleteFile {
    /// The hash of its content.
    pub(super) fn hash(&self) -> &Hash {
        &self.hash
    }

    /// Its path until it is kept.
    pub(super) fn path(&self) -> &Path {
        &self.path.0
    }

    /// Syncs the content to the disk and then names the file by its hash, so that after a crash it either exists completely or does not exist.
    pub(super) fn keep(self) -> io::Result<()> {
        self.file.sync_all()?;
        let folder = self.store.join(self.hash.algorithm().as_str());
        plain_fs::create_directories(&folder)?;
        plain_fs::rename(self.path(), &folder.join(self.hash.hex()))?;
        plain_fs::sync_directory(&folder)
    }
}

/// A file that is removed when this is dropped. It no longer exists if it was kept.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = plain_fs::remove_file(&self.0);
    }
}
