//! Edge (writes). The one console of the agent. Commands of several acts go over one connection, one after the other; it is closed when
//! the last act ends, so that an idle agent leaves no line in the server's log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use crate::rcon::Console;

/// Where acts queue for the console.
#[derive(Debug)]
pub(super) struct Desk {
    console: Mutex<Console>,
    acts: AtomicUsize,
}

impl Desk {
    pub(super) fn new(console: Console) -> Arc<Self> {
        Arc::new(Self { console: Mutex::new(console), acts: AtomicUsize::new(0) })
    }

    /// Begins an act.
    pub(super) fn act(self: &Arc<Self>) -> Act {
        self.acts.fetch_add(1, Ordering::SeqCst);
        Act { desk: Arc::clone(self) }
    }
}

/// Some commands that belong together. Dropping the last one that lives closes the connection.
#[derive(Debug)]
pub(super) struct Act {
    desk: Arc<Desk>,
}

impl Act {
    /// The console, for one command.
    pub(super) async fn console(&self) -> MutexGuard<'_, Console> {
        self.desk.console.lock().await
    }
}

impl Drop for Act {
    fn drop(&mut self) {
        if self.desk.acts.fetch_sub(1, Ordering::SeqCst) == 1
            && let Ok(mut console) = self.desk.console.try_lock()
        {
            console.close();
        }
    }
}
