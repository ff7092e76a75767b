//! Edge (writes). Shares one RCON console between several tasks of the agent.
//!
//! Their commands use one connection, one after the other. It is closed when the last task ends, so that an idle agent writes no line to the
//! server's log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use crate::rcon::Console;

/// The queue of tasks for the console.
#[derive(Debug)]
pub(super) struct ConsoleSession {
    console: Mutex<Console>,
    leases: AtomicUsize,
}

impl ConsoleSession {
    pub(super) fn new(console: Console) -> Arc<Self> {
        Arc::new(Self { console: Mutex::new(console), leases: AtomicUsize::new(0) })
    }

    /// Whether a command is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.console.try_lock().is_err()
    }

    /// Begins a task.
    pub(super) fn lease(self: &Arc<Self>) -> ConsoleLease {
        self.leases.fetch_add(1, Ordering::SeqCst);
        ConsoleLease { session: Arc::clone(self) }
    }
}

/// A lease for commands that belong together. Dropping the last lease closes the connection.
#[derive(Debug)]
pub(super) struct ConsoleLease {
    session: Arc<ConsoleSession>,
}

impl ConsoleLease {
    /// The console, for one command.
    pub(super) async fn console(&self) -> MutexGuard<'_, Console> {
        self.session.console.lock().await
    }
}

impl Drop for ConsoleLease {
    fn drop(&mut self) {
        if self.session.leases.fetch_sub(1, Ordering::SeqCst) == 1
            && let Ok(mut console) = self.session.console.try_lock()
        {
            console.close();
        }
    }
}
