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
    acts: AtomicUsize,
}

impl ConsoleSession {
    pub(super) fn new(console: Console) -> Arc<Self> {
        Arc::new(Self { console: Mutex::new(console), acts: AtomicUsize::new(0) })
    }

    /// Begins a task.
    pub(super) fn act(self: &Arc<Self>) -> ConsoleLease {
        self.acts.fetch_add(1, Ordering::SeqCst);
        ConsoleLease { desk: Arc::clone(self) }
    }
}

/// A lease for commands that belong together. Dropping the last lease closes the connection.
#[derive(Debug)]
pub(super) struct ConsoleLease {
    desk: Arc<ConsoleSession>,
}

impl ConsoleLease {
    /// The console, for one command.
    pub(super) async fn console(&self) -> MutexGuard<'_, Console> {
        self.desk.console.lock().await
    }
}

impl Drop for ConsoleLease {
    fn drop(&mut self) {
        if self.desk.acts.fetch_sub(1, Ordering::SeqCst) == 1
            && let Ok(mut console) = self.desk.console.try_lock()
        {
            console.close();
        }
    }
}
