//! Edge (writes). Handles a world's `session.lock`, the file that a running server locks.
//!
//! Java locks it with a POSIX (fcntl) record lock, so the same kind is used here. flock would not detect it. POSIX locks belong to the process
//! and are dropped when **any** descriptor of that file is closed in it. No other code in a process that holds them may open the files, and
//! [`is_held_by_another`] is for processes that hold none.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, c_short};
use rustix::fs::{FlockOperation, fcntl_lock};

use crate::plain_fs;

/// A `session.lock` could not be opened or checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder belongs to another user. It is not skipped: a world that is not locked may be open, and its backup may be inconsistent.
    #[error(
        "could not lock `{path}`, because user {user} may not write it. Each folder with a `level.dat` is a world and \
        is locked before a server starts: change its owner (`chown -R {user} {folder}`), or move it out of the \
        server's directory"
    )]
    Denied {
        /// The path.
        path: String,
        /// Its folder.
        folder: String,
        /// The current user.
        user: u32,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Any other failure.
    #[error("could not lock `{path}`")]
    Query {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Error {
    fn new(lock: &Path, source: io::Error) -> Self {
        let path = lock.display().to_string();
        if source.kind() != io::ErrorKind::PermissionDenied {
            return Self::Query { path, source };
        }
        let folder = lock.parent().unwrap_or(lock).display().to_string();
        Self::Denied { path, folder, user: rustix::process::geteuid().as_raw(), source }
    }
}

/// Locks that this process holds until it ends.
#[derive(Debug, Default)]
pub struct SessionLocks {
    held: Vec<(PathBuf, File)>,
}

impl SessionLocks {
    /// Takes the locks of `paths` that are not held yet, without waiting. Returns the paths that another process holds.
    pub fn acquire(&mut self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let mut busy = Vec::new();
        for path in paths {
            // A second descriptor would drop the lock when it is closed.
            if self.held.iter().any(|(held, _)| held == path) {
                continue;
            }
            let error = |source| Error::new(path, source);
            let file = plain_fs::open_or_create(path).map_err(error)?;
            match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => self.held.push((path.clone(), file)),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => busy.push(path.clone()),
                Err(errno) => return Err(error(errno.into())),
            }
        }
        Ok(busy)
    }
}

/// Whether another process holds the lock. False for a missing file.
pub fn is_held_by_another(path: &Path) -> Result<bool, Error> {
    let error = |source| Error::new(path, source);
    // Checking needs no write permission. A failed disk grants none, and a server that has ended would seem to run.
    let file = match plain_fs::open(path) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(other) => return Err(error(other)),
    };
    let mut query = whole_file(libc::F_WRLCK);
    fcntl(&file, FcntlArg::F_GETLK(&mut query)).map_err(|errno| error(errno.into()))?;
    Ok(query.l_type != whole_file(libc::F_UNLCK).l_type)
}

fn whole_file(kind: i32) -> libc::flock {
    let short = |value: i32| c_short::try_from(value).expect("lock constants fit into `c_short`");
    libc::flock { l_type: short(kind), l_whence: short(libc::SEEK_SET), l_start: 0, l_len: 0, l_pid: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritable_world_is_named_with_remedy() {
        let lock = Path::new("/data/world_old/session.lock");
        let denied = Error::new(lock, io::ErrorKind::PermissionDenied.into()).to_string();
        let user = rustix::process::geteuid().as_raw();
        assert!(denied.starts_with("could not lock `/data/world_old/session.lock`"), "{denied}");
        assert!(
            denied.contains(&format!("`chown -R {user} /data/world_old`")) && denied.contains("move it out"),
            "{denied}"
        );
        let other = Error::new(lock, io::Error::from_raw_os_error(30)).to_string();
        assert_eq!(other, "could not lock `/data/world_old/session.lock`");
    }
}
