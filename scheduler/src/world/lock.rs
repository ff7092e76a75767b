//! Edge (writes). A world's `session.lock`: the file that a running server holds.
//!
//! Java locks it with a POSIX (fcntl) record lock, so the same kind is used here; flock would see nothing. POSIX locks belong to the
//! process and are dropped when **any** descriptor of that file is closed in it: nothing else in a process that holds them may open the
//! files, and [`held_by_another`] is for processes that hold none.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, fcntl_getlk};

/// A `session.lock` could not be opened or asked.
#[derive(Debug, thiserror::Error)]
#[error("could not ask for the lock on `{path}`")]
pub struct Error {
    /// Which.
    path: String,
    /// Why.
    #[source]
    source: io::Error,
}

/// Locks that this process holds until it ends.
#[derive(Debug, Default)]
pub struct SessionLocks {
    held: Vec<(PathBuf, File)>,
}

impl SessionLocks {
    /// Takes those of `paths` that are not held yet, without waiting. Answers the paths that another process holds.
    pub fn take(&mut self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
        let mut busy = Vec::new();
        for path in paths {
            // A second descriptor would drop the lock when it is closed.
            if self.held.iter().any(|(held, _)| held == path) {
                continue;
            }
            let error = |source| Error { path: path.display().to_string(), source };
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(error)?;
            match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => self.held.push((path.clone(), file)),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => busy.push(path.clone()),
                Err(errno) => return Err(error(errno.into())),
            }
        }
        Ok(busy)
    }
}

/// Whether another process holds the lock. A file that is not there is held by nobody.
pub fn held_by_another(path: &Path) -> Result<bool, Error> {
    let error = |source| Error { path: path.display().to_string(), source };
    // To ask takes no right to write: on a disk that has failed there is none, and a server that ended would seem to run.
    let file = match File::open(path) {
        Ok(file) => file,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(other) => return Err(error(other)),
    };
    let holder = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).map_err(|errno| error(errno.into()))?;
    Ok(holder.is_some())
}
