//! Edge (writes). Samples the state of the server repeatedly, reads the result of each start once, and records each end.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tracing::{info, warn};

use super::process_record::{self, FollowUp};
use super::retry::Backoff;
use super::server_log::{self, LoggedSaves};
use super::server_state::{PingResult, Sample, Transition};
use super::state::{PreparedStop, SidecarState};
use super::{ErrorChain, backup_size, clock, heartbeat, loaded_content, online_backup, play_record};
use crate::plain_fs;
use crate::server_list_ping::{self, ping};
use crate::staging::drift::{Drift, drift};
use crate::world::Worlds;
use crate::world::session_lock::is_held_by_another;
use agent_api::{LastStop, PluginReport, UNREQUESTED_STOP};

/// The timeout of a ping. A network thread answers it, so a slower answer is a stall.
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// The pauses between two samples: while the server is down, while it is healthy, and while it stops.
const DOWN_PAUSE: Duration = Duration::from_secs(2);
const HEALTHY_PAUSE: Duration = Duration::from_secs(5);
pub(super) const STOPPING_PAUSE: Duration = Duration::from_millis(250);
/// The timeout of `bukkit:plugins`, which waits for the server's main thread.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of the check that RCON refuses connections on the pod's address.
const EXPOSED_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Samples for ever.
pub(super) async fn watch(shared: Arc<SidecarState>) {
    loop {
        sample_once(&shared).await;
        let pause = {
            let state = shared.state();
            match (state.monitor.is_stopping(), state.monitor.is_up()) {
                (true, _) => STOPPING_PAUSE,
                (false, true) => HEALTHY_PAUSE,
                (false, false) => DOWN_PAUSE,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.wake.notified() => {}
        }
    }
}

/// Takes one sample and handles its consequences.
pub(super) async fn sample_once(shared: &Arc<SidecarState>) {
    let _lock = shared.sample_lock.lock().await;
    let sample = sample(shared).await;
    let change = {
        let mut state = shared.state();
        let change = state.monitor.observe(&sample);
        state.process_generation += u64::from(change.is_some());
        // A lagging server does not answer either, so silence proves nothing.
        state.observed_stopped |=
            sample.pinged == PingResult::Refused || matches!(change, Some(Transition::Ended | Transition::Replaced));
        change
    };
    record_players(shared, &sample).await;
    match change {
        None => {}
        Some(Transition::Up) => handle_start(shared),
        Some(Transition::Ended) => handle_exit(shared, &sample).await,
        Some(Transition::Replaced) => {
            handle_exit(shared, &sample).await;
            handle_start(shared);
        }
    }
    update_process_record(shared, &sample).await;
}

/// Updates the record of the process that a sample has found, and reports one whose end this agent has missed.
async fn update_process_record(shared: &Arc<SidecarState>, sample: &Sample) {
    let (FollowUp { ended, needs_write }, is_absent) = {
        let mut guard = shared.state();
        let state = &mut *guard;
        (state.record.observe(sample, &state.monitor), state.monitor.is_absent())
    };
    if let Some(running) = ended {
        let volume = shared.volume.clone();
        match tokio::task::spawn_blocking(move || process_record::record_missed_end(&volume, &running, is_absent)).await
        {
            // Reported after it is on disk, not before.
            Ok(end) => shared.state().last_stop = Some(end),
            Err(error) => warn!("{error}"),
        }
    }
    if needs_write {
        // A separate task, because a slow disk must not delay the samples.
        let task = Arc::clone(shared);
        tokio::task::spawn_blocking(move || write_process_record(&task));
    }
}

/// Writes the current record to disk. Of two concurrent calls, the later one does not write older data.
fn write_process_record(shared: &SidecarState) {
    let _lock = shared.record_lock.lock().unwrap_or_else(PoisonError::into_inner);
    let running = shared.state().record.running().cloned();
    if let Some(running) = running {
        process_record::write_running_unless_newer(&shared.volume, &running);
    }
}

/// Records on the volume that this pod had a player: restoring worlds or plugins' data would lose that player's progress.
async fn record_players(shared: &Arc<SidecarState>, sample: &Sample) {
    let has_player = matches!(&sample.pinged, PingResult::Answered(answer) if answer.online != Some(0));
    if !has_player || shared.state().play_recorded {
        return;
    }
    let volume = shared.volume.clone();
    match tokio::task::spawn_blocking(move || play_record::record_players(&volume)).await {
        Ok(Ok(())) => shared.state().play_recorded = true,
        Ok(Err(error)) => warn!("{}", ErrorChain(&error)),
        Err(error) => warn!("{error}"),
    }
}

async fn sample(shared: &Arc<SidecarState>) -> Sample {
    let game = SocketAddr::from((Ipv4Addr::LOCALHOST, shared.settings.game_port));
    let pinged = match ping(game, PING_TIMEOUT).await {
        Ok(answer) => PingResult::Answered(answer),
        Err(error) if error.is_refused() => PingResult::Refused,
        Err(
            server_list_ping::Error::Refused { .. }
            | server_list_ping::Error::Silent { .. }
            | server_list_ping::Error::Cut(_)
            | server_list_ping::Error::Garbled { .. },
        ) => PingResult::Silent,
    };
    let steady = shared.state().monitor.is_up() && matches!(pinged, PingResult::Answered(_));
    let data = shared.settings.data.clone();
    let previous_locks = shared.state().session_locks.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mark = || server_log::read(&data).unwrap_or_default().map(|log| log.mark);
        if steady {
            return (None, mark(), None, previous_locks);
        }
        // Files appear and disappear while a server saves, so reading may fail. The worlds of the sample before then still exist.
        let worlds = Worlds::read(&data);
        let locks = worlds.as_ref().map_or(previous_locks, Worlds::session_locks);
        let locked = is_held(&locks);
        // Read after the locks: a server begins its log before it takes its locks. So a process that holds them is never paired with the log of
        // another.
        let progress_at = worlds.map_or(None, |worlds| worlds.changed_at()).max(server_log::changed_at(&data));
        (locked, mark(), progress_at, locks)
    });
    // The join fails only while the process ends.
    let (locked, log, progress_at, locks) = read.await.unwrap_or_default();
    shared.state().session_locks = locks;
    Sample { at: clock::now(), pinged, locked, log, progress_at }
}

/// Whether one of these locks is held. `None`: no lock file exists.
fn is_held(locks: &[PathBuf]) -> Option<bool> {
    let files: Vec<_> = locks.iter().filter(|lock| plain_fs::exists(lock)).collect();
    (!files.is_empty()).then(|| files.iter().any(|lock| is_held_by_another(lock).unwrap_or(true)))
}

fn handle_start(shared: &Arc<SidecarState>) {
    info!("the server answers");
    {
        let mut state = shared.state();
        // A stop that was requested before this process started has stopped another one.
        (state.start, state.stop) = (state.start.carry_over(), None);
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let read = async {
            tokio::join!(online_backup::on_server_start(&shared), read_start(&shared));
            // Last, because no task waits for it, and the disk is busy with the start.
            backup_size::measure_periodically(&shared).await;
        };
        tokio::join!(read, heartbeat::watch(&shared));
    });
}

async fn read_start(shared: &Arc<SidecarState>) {
    let began = Instant::now();
    let process_generation = shared.state().process_generation;
    let drift = find_drift(shared).await;
    let rcon_exposed = is_rcon_exposed(shared).await;
    if rcon_exposed {
        warn!("RCON answers on {}: `rcon.ip` has no effect on this server", shared.settings.pod_ip);
    }
    {
        let mut state = shared.state();
        state.start.drift = drift;
        state.start.rcon_exposed = rcon_exposed;
    }
    // RCON opens seconds after the first ping, and `Done` may be logged minutes after it.
    let mut backoff = Backoff::default();
    loop {
        // The next commands use the same connection.
        let lease = shared.console.lease();
        match plugins(shared).await {
            Ok((build, plugins)) => {
                info!(
                    "{} plugins, {} enabled",
                    plugins.len(),
                    plugins.values().filter(|plugin| plugin.enabled).count()
                );
                {
                    let mut state = shared.state();
                    state.start.build = build;
                    state.start.plugins = Some(plugins);
                }
                // Only now, because plugins open worlds too.
                return loaded_content::read(shared, began, lease).await;
            }
            Err(error) => warn!("could not read the plugins yet: {error}"),
        }
        drop(lease);
        tokio::time::sleep(backoff.next()).await;
        if shared.state().process_generation != process_generation {
            return;
        }
    }
}

/// How the files differ from the manifest now.
async fn find_drift(shared: &SidecarState) -> Drift {
    let volume = shared.volume.clone();
    let drift = tokio::task::spawn_blocking(move || match volume.manifest() {
        Ok(Some(manifest)) => drift(&volume, &manifest).map_err(|error| ErrorChain(&error).to_string()),
        Ok(None) => Ok(Drift::default()),
        Err(error) => Err(ErrorChain(&error).to_string()),
    });
    let drift = drift.await.unwrap_or_else(|error| Err(error.to_string())).unwrap_or_else(|error| {
        warn!("could not compare the files with the manifest: {error}");
        // Unknown, so it is not reported as unchanged.
        Drift { changed: vec![format!("unknown: {error}")], unmanaged: vec![] }
    });
    for path in &drift.changed {
        warn!("{path} differs from the lock");
    }
    drift
}

/// Checks the files of a server that is down, because the files of a start that dies before its first answer are not checked.
fn check_files_after_exit(shared: &Arc<SidecarState>) {
    let process_generation = {
        let state = shared.state();
        // A server that has answered since is checked separately.
        if !state.monitor.is_absent() {
            return;
        }
        state.process_generation
    };
    let shared = Arc::clone(shared);
    // A separate task, because hashing all JARs takes longer than a sample may.
    tokio::spawn(async move {
        let drift = find_drift(&shared).await;
        let mut state = shared.state();
        if state.process_generation == process_generation {
            state.start.drift = drift;
        }
    });
}

/// The build and plugins as the server reports them. Versions come from its log. Enabled plugins come from RCON, or from the log of a server
/// without RCON.
async fn plugins(shared: &Arc<SidecarState>) -> Result<(Option<u32>, BTreeMap<String, PluginReport>), String> {
    let by_rcon = if shared.settings.rcon_enabled { Some(enabled_plugins(shared).await?) } else { None };
    let data = shared.settings.data.clone();
    let log = tokio::task::spawn_blocking(move || server_log::read(&data)).await.map_err(|error| error.to_string())?;
    // The log was rotated at midnight. The versions are unknown, which is different from having no plugins.
    let (build, versions, enabled) = match (log.map_err(|error| error.to_string())?, by_rcon) {
        (Some(log), _) if !log.done => return Err("the log has no `Done` yet".to_owned()),
        (Some(log), by_rcon) => {
            let by_log = || log.enabled.into_iter().map(|name| (name, true)).collect();
            (log.build, log.versions, by_rcon.unwrap_or_else(by_log))
        }
        (None, Some(by_rcon)) => (None, BTreeMap::new(), by_rcon),
        (None, None) => return Err("there is no log of this start, and RCON is disabled".to_owned()),
    };
    let mut plugins: BTreeMap<String, PluginReport> = BTreeMap::new();
    for (name, version) in versions {
        plugins.insert(name, PluginReport { version: Some(version), enabled: false });
    }
    for (name, enabled) in enabled {
        plugins.entry(name).or_insert(PluginReport { version: None, enabled: false }).enabled = enabled;
    }
    Ok((build, plugins))
}

async fn enabled_plugins(shared: &Arc<SidecarState>) -> Result<BTreeMap<String, bool>, String> {
    let lease = shared.console.lease();
    let answer = lease.console().await.plugins(COMMAND_TIMEOUT).await;
    let enabled = answer.map_err(|error| ErrorChain(&error).to_string())?;
    enabled.ok_or_else(|| "the answer to `bukkit:plugins` is not a list of plugins".to_owned())
}

async fn is_rcon_exposed(shared: &SidecarState) -> bool {
    let Ok(address) = shared.settings.pod_ip.parse::<IpAddr>() else { return false };
    let outside = SocketAddr::from((address, shared.settings.rcon_port));
    matches!(tokio::time::timeout(EXPOSED_CHECK_TIMEOUT, TcpStream::connect(outside)).await, Ok(Ok(_)))
}

/// The saves that appear in the log of a server whose stop had no confirmed save.
async fn read_logged_saves(shared: &SidecarState) -> LoggedSaves {
    let data = shared.settings.data.clone();
    let logged_saves = tokio::task::spawn_blocking(move || server_log::logged_saves(&data)).await;
    logged_saves.unwrap_or_else(|error| Err(error.into())).unwrap_or_else(|error| {
        warn!("it is unknown whether the server has saved: {error}");
        LoggedSaves::default()
    })
}

/// How the server stopped. It combines the requested stop (`None`: no stop was requested), the last save that it confirmed to this agent, and its
/// log. The record knows when it was first observed.
fn last_stop(
    at: Timestamp,
    stop: Option<PreparedStop>,
    confirmed_at: Option<Timestamp>,
    logged_saves: LoggedSaves,
) -> LastStop {
    let saved_at = confirmed_at.max(logged_saves.last);
    let PreparedStop { saved, why, players } = stop.unwrap_or_else(|| PreparedStop {
        saved: false,
        why: format!("{UNREQUESTED_STOP}: a crash, a kill, or /stop"),
        players: None,
    });
    let (saved, why) = if !saved && logged_saves.in_stop {
        (true, format!("{why}. Its log says that all was saved as it stopped"))
    } else {
        (saved, why)
    };
    LastStop { at, saved, why, players, saved_at, started_at: None }
}

async fn handle_exit(shared: &Arc<SidecarState>, sample: &Sample) {
    // First, because its next start, which may have begun, rotates the log.
    shared.damage.scan_to_end().await;
    let is_confirmed = shared.state().stop.as_ref().is_some_and(|stop| stop.saved);
    let logged_saves = if is_confirmed { LoggedSaves::default() } else { read_logged_saves(shared).await };
    let (record, was_requested) = {
        let mut state = shared.state();
        state.start = state.start.carry_over();
        let (stop, confirmed_at, started_at) = (state.stop.take(), state.saved_at.take(), state.record.end());
        let was_requested = stop.is_some();
        (LastStop { started_at, ..last_stop(sample.at, stop, confirmed_at, logged_saves) }, was_requested)
    };
    info!("the server exited, saved: {}: {}", record.saved, record.why);
    let (volume, end) = (shared.volume.clone(), record.clone());
    let written = tokio::task::spawn_blocking(move || process_record::write_end(&volume, end)).await;
    let record = written.inspect_err(|error| warn!("{error}")).unwrap_or(record);
    // Reported after it is on disk, not before.
    shared.state().last_stop = Some(record);
    online_backup::on_server_exit(shared).await;
    // After a requested stop the pod usually ends, and must not wait for this. The next pod corrects the files.
    if !was_requested {
        check_files_after_exit(shared);
    }
}
