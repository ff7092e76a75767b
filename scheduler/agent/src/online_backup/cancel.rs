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
    reason: watch::Sender<Option<String>>,
    current_file: Arc<Mutex<PathBuf>>,
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self { reason: watch::Sender::new(None), current_file: Arc::default() }
    }
}

impl CancellationToken {
    /// Cancels the backup: no further step is taken.
    pub(super) fn cancel(&self, why: &str) {
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(why.to_owned());
            }
            first
        });
    }

    /// The reason for the cancellation, if any.
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// Waits until the backup is cancelled. Waits for ever if it is not.
    pub(super) async fn cancelled(&self) -> String {
        let mut why = self.reason.subscribe();
        // This cannot fail, because the sender is part of `self`.
        why.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()).unwrap_or_default()
    }

    /// The file that was read last.
    pub(super) fn last_file(&self) -> PathBuf {
        self.current_file.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FsHook for CancellationToken {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        if operation == "read" {
            let mut reading = self.current_file.lock().unwrap_or_else(PoisonError::into_inner);
            if *reading != path {
                path.clone_into(&mut reading);
            }
        }
        match &*self.reason.borrow() {
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
        let token = CancellationToken::default();
        let mut steps = token.clone();
        steps.before_operation("read", Path::new("/data/a")).unwrap();
        steps.before_operation("write", Path::new("/backups/b")).unwrap();
        assert_eq!(token.last_file(), Path::new("/data/a"));
        token.cancel("too late");
        token.cancel("the server was stopped");
        assert_eq!(token.cancelled().await, "too late");
        assert_eq!(steps.before_operation("write", Path::new("/backups/b")).unwrap_err().to_string(), "too late");
    }
}
