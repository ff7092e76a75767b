//! Edge (writes). Defines the file operations of a swap.
//!
//! A test can let each one fail, or simulate a crash there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::Serialize;

#[cfg(test)]
pub(crate) mod faulty;

/// Called before each single operation. An error stops the work at that point, as a crash would.
pub trait FsHook {
    /// The operation `what` is about to be done to `path`.
    fn before(&mut self, what: &'static str, path: &Path) -> io::Result<()>;

    /// The bytes that a user other than root may still write on the file system of `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        free_bytes(path)
    }
}

/// The real disk, without injected faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl FsHook for RealFs {
    fn before(&mut self, _what: &'static str, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A step failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {what} `{path}`")]
pub struct Error {
    /// The operation.
    what: &'static str,
    /// The file.
    path: String,
    /// The cause.
    #[source]
    source: io::Error,
}

/// The disk, through [`FsHook`].
#[derive(Debug)]
pub struct Disk<S> {
    steps: S,
    links: bool,
}

impl<S: FsHook> Disk<S> {
    /// A disk that calls `steps`.
    pub fn new(steps: S) -> Self {
        Self { steps, links: true }
    }

    /// A disk without hard links, as on some network file systems.
    #[cfg(test)]
    pub(super) fn without_links(steps: S) -> Self {
        Self { steps, links: false }
    }

    /// Calls the hook, and then does `act`.
    pub(crate) fn step<T>(
        &mut self,
        what: &'static str,
        path: &Path,
        act: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, Error> {
        let done = self.steps.before(what, path).and_then(|()| act(path));
        done.map_err(|source| Error { what, path: path.display().to_string(), source })
    }

    /// The bytes that may still be written on the file system of `path`.
    pub(crate) fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.steps.free_bytes(path)
    }

    /// Creates a directory and its parents. Does nothing if it exists.
    pub(crate) fn make_directory(&mut self, path: &Path) -> Result<(), Error> {
        if path.is_dir() { Ok(()) } else { self.step("make the directory", path, |path| fs::create_dir_all(path)) }
    }

    /// Removes a file. Succeeds if it does not exist.
    pub(crate) fn remove(&mut self, path: &Path) -> Result<(), Error> {
        self.step("remove", path, |path| match fs::remove_file(path) {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }

    /// Removes a directory with its whole content. Succeeds if it does not exist.
    pub(crate) fn remove_all(&mut self, path: &Path) -> Result<(), Error> {
        self.step("remove", path, |path| match fs::remove_dir_all(path) {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }

    /// Moves a file atomically.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        self.step("move a file to", to, |to| fs::rename(from, to))
    }

    /// Moves a folder or a link, and syncs both of its directories to disk before any other move.
    pub(crate) fn carry(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let parent = to.parent().unwrap_or(to);
        self.make_directory(parent)?;
        self.rename(from, to)?;
        self.sync_directory(parent)?;
        self.sync_directory(from.parent().unwrap_or(from))
    }

    /// Syncs a directory's names to disk.
    pub(crate) fn sync_directory(&mut self, path: &Path) -> Result<(), Error> {
        self.step("bring to the disk", path, |path| File::open(path)?.sync_all())
    }

    /// Replaces `to` with the content of `from`, by a hard link beside it and a rename, so that either the old or the new file exists at each
    /// moment. Copies where links are not possible.
    pub(super) fn place(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let beside = beside(to);
        self.remove(&beside)?;
        let linked = self.links && self.step("link", &beside, |beside| try_link(from, beside))?;
        if !linked {
            self.step("copy to", &beside, |beside| fs::copy(from, beside).map(drop))?;
            self.step("bring to the disk", &beside, |beside| File::open(beside)?.sync_all())?;
        }
        self.rename(&beside, to)?;
        // Renaming a link onto another link of the same file does nothing and leaves both names.
        self.remove(&beside)
    }

    /// Writes a record atomically: to a file beside it, synced to disk, then renamed over it.
    pub(crate) fn write_record(&mut self, path: &Path, record: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec_pretty(record).expect("our records have string keys");
        text.push(b'\n');
        let directory = path.parent().expect("records lie in a directory");
        self.make_directory(directory)?;
        let beside = beside(path);
        let (half, rest) = text.split_at(text.len() / 2);
        let mut file = self.step("write", &beside, |beside| File::create(beside))?;
        self.step("write", &beside, |_| file.write_all(half))?;
        self.step("write", &beside, |_| file.write_all(rest))?;
        self.step("bring to the disk", &beside, |_| file.sync_all())?;
        self.rename(&beside, path)?;
        self.sync_directory(directory)
    }
}

/// The bytes that a user other than root may still write on the file system of `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(path)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// The direct entries of a directory, in no order. Empty if it does not exist.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.collect(),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(other) => Err(other),
    }
}

/// Whether the path exists. A link to nothing counts too.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The temporary name beside `path` for new content. It is not a `.jar`, so no server loads it.
pub(super) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.nightshift"))
}

fn try_link(from: &Path, to: &Path) -> io::Result<bool> {
    // The errors of a file system without hard links, of another mount of the same volume, and of a full link count.
    let not_here = [Errno::XDEV, Errno::PERM, Errno::NOTSUP, Errno::NOSYS, Errno::MLINK, Errno::ACCESS];
    match fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if Errno::from_io_error(&error).is_some_and(|errno| not_here.contains(&errno)) => Ok(false),
        Err(error) => Err(error),
    }
}
