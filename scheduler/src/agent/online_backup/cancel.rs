//! Pure. Defines the token that cancels a backup.
//!
//! It is checked before each step on the disk, and can be awaited.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::staging::fs_ops::FsHook;

/// A token shared by the task that takes a backup and the tasks that may cancel it. The first reason is kept.
#[derive(Debug, Clone)]
pub(super) struct CancellationToken {
    why: watch::Sender<Option<String>>,
    reading: Arc<Mutex<PathBuf>>,
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self { why: watch::Sender::new(None), reading: Arc::default() }
    }
}

impl CancellationToken {
    /// Cancels the backup: no further step is taken.
    pub(super) fn tell(&self, why: &str) {
        self.why.send_if_modified(|told| {
            let first = told.is_none();
            if first {
                *told = Some(why.to_owned());
            }
            first
        });
    }

    /// The reason for the cancellation, if any.
    pub(super) fn why(&self) -> Option<String> {
        self.why.borrow().clone()
    }

    /// Waits until the backup is cancelled. Waits for ever if it is not.
    pub(super) async fn told(&self) -> String {
        let mut why = self.why.subscribe();
        // This cannot fail, because the sender is part of `self`.
        why.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()).unwrap_or_default()
    }

    /// The file that was read last.
    pub(super) fn reached(&self) -> PathBuf {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FsHook for CancellationToken {
    fn before(&mut self, what: &'static str, path: &Path) -> io::Result<()> {
        if what == "read" {
            let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            if *reading != path {
                path.clone_into(&mut reading);
            }
        }
        match &*self.why.borrow() {
            Some(why) => Err(io::Error::other(why.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cancellation_keeps_first_reason_and_blocks_later_steps() {
        let halt = CancellationToken::default();
        let mut steps = halt.clone();
        steps.before("read", Path::new("/data/a")).unwrap();
        steps.before("write", Path::new("/backups/b")).unwrap();
        assert_eq!(halt.reached(), Path::new("/data/a"));
        halt.tell("too late");
        halt.tell("the server was stopped");
        assert_eq!(halt.told().await, "too late");
        assert_eq!(steps.before("write", Path::new("/backups/b")).unwrap_err().to_string(), "too late");
    }
}
