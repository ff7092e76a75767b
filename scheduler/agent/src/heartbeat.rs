//! Edge (reads). Notices that the server's main thread hangs: a network thread still answers pings, but no command is answered.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::clock;
use super::state::{SidecarState, new_console};
use crate::rcon::Error;

/// The pause between two commands.
const PAUSE: Duration = Duration::from_secs(15);
/// The timeout of a command. With the pause it is shorter than the two minutes within which a hang is reported.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a harmless command periodically until the process ends. Its connection is separate, because an unanswered command must not delay those of
/// a stop. It stays open, because a server logs two lines for each connection.
pub(super) async fn watch(shared: &Arc<SidecarState>) {
    if !shared.settings.rcon_enabled {
        return;
    }
    let mut console = new_console(&shared.settings);
    let process_generation = shared.state().process_generation;
    loop {
        tokio::time::sleep(PAUSE).await;
        // While another command runs, for example a long save, the main thread is busy with it.
        let is_busy = || shared.console.is_busy();
        if is_busy() {
            continue;
        }
        let asked_at = clock::now();
        let answer = console.list(TIMEOUT).await;
        let mut state = shared.state();
        if state.process_generation != process_generation || state.monitor.is_stopping() {
            return;
        }
        match answer {
            Ok(_) => state.monitor.observe_console(asked_at, true),
            Err(Error::Timeout { .. }) if !is_busy() => {
                warn!("no command was answered for {} s: the server's main thread hangs", TIMEOUT.as_secs());
                state.monitor.observe_console(asked_at, false);
            }
            // A closed port or a wrong password says nothing about the main thread.
            Err(_) => {}
        }
    }
}
