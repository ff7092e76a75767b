//! Edge (writes). Defines the file operations of a swap.
//!
//! A test can let each one fail, or simulate a crash there.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::Serialize;

use crate::plain_fs;
pub(crate) use crate::plain_fs::{exists, free_bytes};

#[cfg(test)]
pub(crate) mod faulty;

/// Called before each single operation. An error stops the work at that point, as a crash would.
pub trait FsHook {
    /// The `operation` is about to be done to `path`.
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()>;

    /// The bytes that a user other than root may still write on the file system of `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        free_bytes(path)
    }
}

/// The real disk, without injected faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl FsHook for RealFs {
    fn before_operation(&mut self, _operation: &'static str, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A step failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {operation} `{path}`")]
pub struct Error {
    /// The operation.
    operation: &'static str,
    /// The file.
    path: String,
    /// The cause.
    #[source]
    source: io::Error,
}

/// The disk, through [`FsHook`].
#[derive(Debug)]
pub struct Disk<S> {
    hook: S,
    links: bool,
}

impl<S: FsHook> Disk<S> {
    /// A disk that calls `steps`.
    pub fn new(steps: S) -> Self {
        Self { hook: steps, links: true }
    }

    /// A disk without hard links, as on some network file systems.
    #[cfg(test)]
    pub(super) fn without_links(steps: S) -> Self {
        Self { hook: steps, links: false }
    }

    /// Calls the hook, and then calls `run`.
    pub(crate) fn step<T>(
        &mut self,
        operation: &'static str,
        path: &Path,
        run: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, Error> {
        let done = self.hook.before_operation(operation, path).and_then(|()| run(path));
        done.map_err(|source| Error { operation, path: path.display().to_string(), source })
    }

    /// The bytes that may still be written on the file system of `path`.
    pub(crate) fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.hook.free_bytes(path)
    }

    /// Creates a directory and its parents. Does nothing if it exists.
    pub(crate) fn make_directory(&mut self, path: &Path) -> Result<(), Error> {
        if plain_fs::is_directory(path) {
            Ok(())
        } else {
            self.step("create the directory", path, plain_fs::create_directories)
        }
    }

    /// Removes a file. Succeeds if it does not exist.
    pub(crate) fn remove(&mut self, path: &Path) -> Result<(), Error> {
        self.step("remove", path, |path| match plain_fs::remove_file(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }

    /// Removes a directory with its whole content. Succeeds if it does not exist.
    pub(crate) fn remove_all(&mut self, path: &Path) -> Result<(), Error> {
        self.step("remove", path, |path| match plain_fs::remove_tree(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        })
    }

    /// Moves a file atomically.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        self.step("move a file to", to, |to| plain_fs::rename(from, to))
    }

    /// Moves a folder or a link, and syncs both of its directories to disk before any other move.
    pub(crate) fn move_and_sync(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let parent = to.parent().unwrap_or(to);
        self.make_directory(parent)?;
        self.rename(from, to)?;
        self.sync_directory(parent)?;
        self.sync_directory(from.parent().unwrap_or(from))
    }

    /// Syncs a directory's names to disk.
    pub(crate) fn sync_directory(&mut self, path: &Path) -> Result<(), Error> {
        self.step("flush", path, plain_fs::sync_directory)
    }

    /// Replaces `to` with the content of `from`, by a hard link beside it and a rename, so that either the old or the new file exists at each
    /// moment. Copies where links are not possible.
    pub(super) fn replace_with(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let temporary = temporary_path(to);
        self.remove(&temporary)?;
        let linked = self.links && self.step("link", &temporary, |temporary| try_link(from, temporary))?;
        if !linked {
            self.copy(from, &temporary)?;
        }
        self.rename(&temporary, to)?;
        // Renaming a link onto another link of the same file does nothing and leaves both names.
        self.remove(&temporary)
    }

    /// Copies a file to a temporary name, with its mode, and syncs it to disk.
    pub(crate) fn copy(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        let copy = self.step("copy to", to, |to| {
            let mut source = plain_fs::open(from)?;
            let mut copy = plain_fs::create_anew(to, 0o600)?;
            io::copy(&mut source, &mut copy)?;
            copy.set_permissions(source.metadata()?.permissions())?;
            Ok(copy)
        })?;
        self.step("flush", to, |_| copy.sync_all())
    }

    /// Writes a record atomically: to a file beside it, synced to disk, then renamed over it.
    pub(crate) fn write_record(&mut self, path: &Path, record: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec_pretty(record).expect("all records have string keys");
        text.push(b'\n');
        let directory = path.parent().expect("the path of a record has a parent");
        self.make_directory(directory)?;
        let temporary = temporary_path(path);
        let (half, rest) = text.split_at(text.len() / 2);
        let mut file = self.step("write", &temporary, |temporary| plain_fs::create_anew(temporary, 0o644))?;
        self.step("write", &temporary, |_| file.write_all(half))?;
        self.step("write", &temporary, |_| file.write_all(rest))?;
        self.step("flush", &temporary, |_| file.sync_all())?;
        self.rename(&temporary, path)?;
        self.sync_directory(directory)
    }
}

/// The temporary name beside `path` for new content. It is not a `.jar`, so no server loads it.
pub(super) fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.nightshift"))
}

fn try_link(from: &Path, to: &Path) -> io::Result<bool> {
    // The errors of a file system without hard links, of another mount of the same volume, and of a full link count.
    let no_link_errors = [Errno::XDEV, Errno::PERM, Errno::NOTSUP, Errno::NOSYS, Errno::MLINK, Errno::ACCESS];
    match plain_fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if Errno::from_io_error(&error).is_some_and(|errno| no_link_errors.contains(&errno)) => Ok(false),
        Err(error) => Err(error),
    }
}
