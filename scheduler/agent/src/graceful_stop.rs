//! Edge (writes). Prepares the stop of the server for its preStop hook: warns players, saves, and disconnects them.
//!
//! It does not send `stop`. The kubelet sends SIGTERM 20 to 40 ms after the hook has returned, and the image's runner then sends `stop` itself. Paper
//! runs a second `stop` off its main thread, which leaves two stack traces in the log.
//!
//! Requests arrive on a Unix socket in the directory that only this pod's containers share.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tracing::{info, warn};

use super::state::{PreparedStop, SidecarState};
use super::{ErrorChain, clock, loaded_content, monitor, online_backup};
use crate::plain_fs;
use crate::rcon::responses;
use agent_api::Announce;

mod timeouts;

/// The pause after a hook's connection that could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_secs(10);
/// An announcement that ended this recently counts as the warning for this stop.
const RECENTLY_ANNOUNCED: SignedDuration = SignedDuration::from_mins(5);
/// So does one that ends this soon. Players who were promised minutes must be told that the stop happens now.
const ABOUT_TO_END: SignedDuration = SignedDuration::from_secs(10);
/// A whole line has five bytes.
const MAX_LINE_BYTES: u64 = 64;

/// The socket. All users in the pod may open it, because the server's container may run as another user.
pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
    match plain_fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    plain_fs::set_mode(path, 0o666)?;
    Ok(listener)
}

/// Answers hooks for ever.
pub(super) async fn serve(shared: Arc<SidecarState>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    if let Err(error) = handle_hook(&shared, stream).await {
                        // The hook dies with the server's container, often before it has read the last line.
                        info!("the hook has closed its connection: {error}");
                    }
                });
            }
            Err(error) => {
                warn!("could not read the request of a hook: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn handle_hook(shared: &Arc<SidecarState>, mut stream: UnixStream) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    BufReader::new(reader.take(MAX_LINE_BYTES)).read_line(&mut line).await?;
    if line != "stop\n" {
        return writer.write_all(b"the only request is `stop`\n").await;
    }
    writer.write_all(b"heard\n").await?;
    // A separate task, so that the stop continues when the hook is killed.
    let task = Arc::clone(shared);
    let reply = tokio::spawn(async move { prepare_stop(&task).await }).await.map_err(io::Error::other)?;
    writer.write_all(format!("{reply}\n").as_bytes()).await
}

/// Warns players, saves, and disconnects players with a reason, once for each server process. Returns one line of text. The hook has no way to act on
/// a failure.
async fn prepare_stop(shared: &Arc<SidecarState>) -> &'static str {
    let until = Instant::now() + Duration::from_secs(shared.settings.stop_timeout);
    let left = || until.saturating_duration_since(Instant::now());
    let _lock = shared.stop_lock.lock().await;
    if !shared.state().monitor.is_up() {
        // The server may have answered since the last sample, or this agent has just started.
        monitor::sample_once(shared).await;
    }
    {
        let state = shared.state();
        if state.stop.is_some() {
            return "ok";
        }
        if !state.monitor.is_up() {
            drop(state);
            return leave_to_sigterm(shared, "before it had answered", None);
        }
    }
    online_backup::on_server_stopping(shared);
    // Read now, because nobody is online after the kick.
    let players = shared.state().monitor.players(clock::now()).count();
    if !shared.settings.rcon_enabled {
        return leave_to_sigterm(shared, "because RCON is disabled", players);
    }
    let lease = shared.console.lease();
    if let Err(error) = lease.console().await.open().await {
        warn!("could not open RCON, so SIGTERM stops the server: {}", ErrorChain(&error));
        return leave_to_sigterm(shared, "because RCON did not answer", players);
    }
    if needs_warning(shared)
        && let Err(error) = lease.console().await.tellraw_all(&shared.settings.stop_text, timeouts::warn(left())).await
    {
        warn!("players were not warned: {}", ErrorChain(&error));
    }
    let answer = lease.console().await.save_flush(timeouts::save(left())).await;
    let (saved, why) = match answer {
        Ok(response) if responses::confirms_save(&response) => {
            (true, "stopped on request, after `save-all flush` was confirmed".to_owned())
        }
        Ok(response) => {
            (false, format!("stopped on request, but the server answered `save-all flush` with `{}`", response.trim()))
        }
        Err(error) => {
            (false, format!("stopped on request, but `save-all flush` was not confirmed: {}", ErrorChain(&error)))
        }
    };
    if saved {
        shared.record_saved();
        loaded_content::recheck(shared).await;
    }
    // The server itself would disconnect players without a reason, after its plugins have shut down. Players who join from now on are
    // disconnected like that. The player list is not read first: the last sample is seconds old, and both commands are harmless without players.
    if let Err(error) = lease.console().await.kick_all(&shared.settings.kick_text, timeouts::kick(left())).await {
        warn!("players were not told why they are disconnected: {}", ErrorChain(&error));
    }
    record_stop(shared, PreparedStop { saved, why, players });
    shared.wake.notify_one();
    info!("the server is ready for SIGTERM, saved: {saved}");
    "ok"
}

/// RCON cannot be used, and the kubelet sends SIGTERM when the hook has ended. The server's log then shows what it saved.
fn leave_to_sigterm(shared: &SidecarState, because: &str, players: Option<u32>) -> &'static str {
    // Without a server process no end follows, and the record would be kept for the next process.
    if !shared.state().monitor.is_absent() {
        record_stop(shared, PreparedStop { saved: false, why: format!("stopped by SIGTERM, {because}"), players });
        shared.wake.notify_one();
    }
    "SIGTERM stops the server"
}

/// Recorded before the hook is answered, because SIGTERM follows at once.
fn record_stop(shared: &SidecarState, stop: PreparedStop) {
    let mut state = shared.state();
    state.stop = Some(stop);
    state.monitor.stop_requested(clock::now());
}

/// Whether no announcement has warned of this stop. An announcement to an empty server does not count.
fn needs_warning(shared: &SidecarState) -> bool {
    let now = shared.operator_now();
    let state = shared.state();
    let is_near = |ends: Timestamp| ends <= now + ABOUT_TO_END && now <= ends + RECENTLY_ANNOUNCED;
    let has_warned = |announced: &Announce| !announced.only_empty && is_near(announced.ends);
    !state.announced.as_ref().is_some_and(has_warned)
}
