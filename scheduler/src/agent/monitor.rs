//! Edge (reads). Samples the state of the server repeatedly, reads the result of each start once, and records each end.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tracing::{info, warn};

use super::server_log::SavesTold;
use super::server_state::{PingResult, Sample, Transition};
use super::state::{SidecarState, StopSent};
use super::{
    Chain, backup_size, clock, damage_scan, loaded_content, online_backup, pre_update_backup, process_record,
    server_log,
};
use crate::protocol::{LastStop, NOBODY_ASKED, PluginSeen};
use crate::server_list_ping::{self, ping};
use crate::staging::drift::{Drift, drift};
use crate::world::Worlds;
use crate::world::session_lock::held_by_another;

/// The timeout of a ping. A network thread answers it, so a slower answer is a stall.
const PING: Duration = Duration::from_secs(3);
/// The pauses between two samples: while the server is down, while it is healthy, and while it stops.
const STARTING: Duration = Duration::from_secs(2);
const STEADY: Duration = Duration::from_secs(5);
pub(super) const ENDING: Duration = Duration::from_millis(250);
/// The timeout of `bukkit:plugins`, which waits for the server's main thread.
const COMMAND: Duration = Duration::from_secs(20);
/// RCON opens a moment after the first ping. These are the number of attempts and the pause between them.
const PLUGIN_TRIES: u32 = 12;
const PLUGIN_PAUSE: Duration = Duration::from_secs(5);
/// The timeout of the check that RCON refuses connections on the pod's address.
const EXPOSED: Duration = Duration::from_secs(2);

/// Samples for ever.
pub(super) async fn watch(shared: Arc<SidecarState>) {
    loop {
        look_once(&shared).await;
        let pause = {
            let state = shared.state();
            match (state.witness.is_stopping(), state.witness.is_up()) {
                (true, _) => ENDING,
                (false, true) => STEADY,
                (false, false) => STARTING,
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.wake.notified() => {}
        }
    }
}

/// Takes one sample and handles its consequences.
pub(super) async fn look_once(shared: &Arc<SidecarState>) {
    let _turn = shared.look_turn.lock().await;
    let look = look(shared).await;
    let change = {
        let mut state = shared.state();
        let change = state.witness.look(&look);
        state.life += u64::from(change.is_some());
        // A lagging server does not answer either, so silence proves nothing.
        state.saw_none |=
            look.pinged == PingResult::Refused || matches!(change, Some(Transition::Ended | Transition::Replaced));
        change
    };
    note_players(shared, &look).await;
    match change {
        None => {}
        Some(Transition::Up) => began(shared),
        Some(Transition::Ended) => ended(shared, &look).await,
        Some(Transition::Replaced) => {
            ended(shared, &look).await;
            began(shared);
        }
    }
    process_record::keep(shared, &look).await;
}

/// Records on the volume that this pod had a player: restoring worlds or plugins' data would lose that player's progress.
async fn note_players(shared: &Arc<SidecarState>, look: &Sample) {
    let somebody = matches!(&look.pinged, PingResult::Answered(answer) if answer.online != Some(0));
    if !somebody || shared.state().played {
        return;
    }
    let volume = shared.volume.clone();
    match tokio::task::spawn_blocking(move || pre_update_backup::note_players(&volume)).await {
        Ok(Ok(())) => shared.state().played = true,
        Ok(Err(error)) => warn!("{}", Chain(&error)),
        Err(error) => warn!("{error}"),
    }
}

async fn look(shared: &Arc<SidecarState>) -> Sample {
    let game = SocketAddr::from((Ipv4Addr::LOCALHOST, shared.settings.game_port));
    let pinged = match ping(game, PING).await {
        Ok(answer) => PingResult::Answered(answer),
        Err(error) if error.is_refused() => PingResult::Refused,
        Err(
            server_list_ping::Error::Refused { .. }
            | server_list_ping::Error::Silent { .. }
            | server_list_ping::Error::Cut(_)
            | server_list_ping::Error::Garbled { .. },
        ) => PingResult::Silent,
    };
    let steady = shared.state().witness.is_up() && matches!(pinged, PingResult::Answered(_));
    let data = shared.settings.data.clone();
    let known = shared.state().session_locks.clone();
    let seen = tokio::task::spawn_blocking(move || {
        let mark = || server_log::read(&data).unwrap_or_default().map(|log| log.mark);
        if steady {
            return (None, mark(), None, known);
        }
        // Files appear and disappear while a server saves, so reading may fail. The worlds of the sample before then still exist.
        let worlds = Worlds::read(&data);
        let locks = worlds.as_ref().map_or(known, Worlds::session_locks);
        let locked = is_held(&locks);
        // Read after the locks: a server begins its log before it takes its locks. So a process that holds them is never paired with the log of
        // another.
        let progress_at = worlds.map_or(None, |worlds| worlds.changed_at()).max(server_log::changed_at(&data));
        (locked, mark(), progress_at, locks)
    });
    // The join fails only while the process ends.
    let (locked, log, progress_at, locks) = seen.await.unwrap_or_default();
    shared.state().session_locks = locks;
    Sample { at: clock::now(), pinged, locked, log, progress_at }
}

/// Whether one of these locks is held. `None`: no lock file exists.
fn is_held(locks: &[PathBuf]) -> Option<bool> {
    let files: Vec<_> = locks.iter().filter(|lock| lock.exists()).collect();
    (!files.is_empty()).then(|| files.iter().any(|lock| held_by_another(lock).unwrap_or(true)))
}

fn began(shared: &Arc<SidecarState>) {
    info!("the server answers");
    {
        let mut state = shared.state();
        // A stop that was requested before this process started has stopped another one.
        (state.start, state.stop) = (state.start.left(), None);
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::join!(online_backup::server_began(&shared), read_start(&shared));
        // Last, because no task waits for it, and the disk is busy with the start.
        backup_size::keep(&shared).await;
    });
}

async fn read_start(shared: &Arc<SidecarState>) {
    let began = Instant::now();
    let drift = find_drift(shared).await;
    let rcon_exposed = rcon_answers_outside(shared).await;
    if rcon_exposed {
        warn!("RCON answers on {}: `rcon.ip` has no effect on this server", shared.settings.pod_ip);
    }
    {
        let mut state = shared.state();
        state.start.drift = drift;
        state.start.rcon_exposed = rcon_exposed;
    }
    for _ in 0..PLUGIN_TRIES {
        // The next commands use the same connection.
        let act = shared.desk.act();
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
                return loaded_content::read(shared, began, act).await;
            }
            Err(error) => warn!("could not read the plugins yet: {error}"),
        }
        drop(act);
        tokio::time::sleep(PLUGIN_PAUSE).await;
        if !shared.state().witness.is_up() {
            return;
        }
    }
}

/// How the files differ from the manifest now.
async fn find_drift(shared: &SidecarState) -> Drift {
    let volume = shared.volume.clone();
    let drift = tokio::task::spawn_blocking(move || match volume.manifest() {
        Ok(Some(manifest)) => drift(&volume, &manifest).map_err(|error| Chain(&error).to_string()),
        Ok(None) => Ok(Drift::default()),
        Err(error) => Err(Chain(&error).to_string()),
    });
    let drift = drift.await.unwrap_or_else(|error| Err(error.to_string())).unwrap_or_else(|error| {
        warn!("could not compare the files with the manifest: {error}");
        // Unknown, so it is not reported as unchanged.
        Drift { changed: vec![format!("unknown: {error}")], unmanaged: vec![] }
    });
    for path in &drift.changed {
        warn!("{path} is not what the lock says");
    }
    drift
}

/// Checks the files of a server that is down, because the files of a start that dies before its first answer are not checked.
fn look_at_files_left(shared: &Arc<SidecarState>) {
    let life = {
        let state = shared.state();
        // A server that has answered since is checked separately.
        if !state.witness.is_absent() {
            return;
        }
        state.life
    };
    let shared = Arc::clone(shared);
    // A separate task, because hashing all JARs takes longer than a sample may.
    tokio::spawn(async move {
        let drift = find_drift(&shared).await;
        let mut state = shared.state();
        if state.life == life {
            state.start.drift = drift;
        }
    });
}

/// The build and plugins as the server reports them. Versions come from its log. Enabled plugins come from RCON, or from the log of a server
/// without RCON.
async fn plugins(shared: &Arc<SidecarState>) -> Result<(Option<u32>, BTreeMap<String, PluginSeen>), String> {
    let by_rcon = if shared.settings.rcon_enabled { Some(enabled_by_rcon(shared).await?) } else { None };
    let data = shared.settings.data.clone();
    let log = tokio::task::spawn_blocking(move || server_log::read(&data)).await.map_err(|error| error.to_string())?;
    // The log was rotated at midnight. The versions are unknown, which is different from having no plugins.
    let (build, versions, enabled) = match (log.map_err(|error| error.to_string())?, by_rcon) {
        (Some(log), _) if !log.done => return Err("the log does not say `Done` yet".to_owned()),
        (Some(log), by_rcon) => {
            let by_log = || log.enabled.into_iter().map(|name| (name, true)).collect();
            (log.build, log.versions, by_rcon.unwrap_or_else(by_log))
        }
        (None, Some(by_rcon)) => (None, BTreeMap::new(), by_rcon),
        (None, None) => return Err("there is no log of this start, and no RCON to ask by".to_owned()),
    };
    let mut plugins: BTreeMap<String, PluginSeen> = BTreeMap::new();
    for (name, version) in versions {
        plugins.insert(name, PluginSeen { version: Some(version), enabled: false });
    }
    for (name, enabled) in enabled {
        plugins.entry(name).or_insert(PluginSeen { version: None, enabled: false }).enabled = enabled;
    }
    Ok((build, plugins))
}

async fn enabled_by_rcon(shared: &Arc<SidecarState>) -> Result<BTreeMap<String, bool>, String> {
    let act = shared.desk.act();
    let answer = act.console().await.plugins(COMMAND).await;
    let enabled = answer.map_err(|error| Chain(&error).to_string())?;
    enabled.ok_or_else(|| "the answer to `bukkit:plugins` is no list of plugins".to_owned())
}

async fn rcon_answers_outside(shared: &SidecarState) -> bool {
    let Ok(address) = shared.settings.pod_ip.parse::<IpAddr>() else { return false };
    let outside = SocketAddr::from((address, shared.settings.rcon_port));
    matches!(tokio::time::timeout(EXPOSED, TcpStream::connect(outside)).await, Ok(Ok(_)))
}

/// The saves that appear in the log of a server whose stop had no confirmed save.
async fn saves_told(shared: &SidecarState) -> SavesTold {
    let data = shared.settings.data.clone();
    let told = tokio::task::spawn_blocking(move || server_log::saves_told(&data)).await;
    told.unwrap_or_else(|error| Err(error.into())).unwrap_or_else(|error| {
        warn!("whether the server has saved is not known: {error}");
        SavesTold::default()
    })
}

/// How the server stopped. It combines the requested stop (`None`: no stop was requested), the last save that it confirmed to this agent, and its
/// log. The record knows when it was first observed.
fn last_stop(at: Timestamp, stop: Option<StopSent>, confirmed_at: Option<Timestamp>, told: SavesTold) -> LastStop {
    let saved_at = confirmed_at.max(told.last);
    let (saved, why, players) = match stop {
        None => (false, format!("{NOBODY_ASKED}: a crash, a kill, or /stop"), None),
        Some(StopSent { saved: false, why, players }) if told.in_stop => {
            (true, format!("{why}; its log says that all was saved as it stopped"), players)
        }
        Some(StopSent { saved, why, players }) => (saved, why, players),
    };
    LastStop { at, saved, why, players, saved_at, started_at: None }
}

async fn ended(shared: &Arc<SidecarState>, look: &Sample) {
    // First, because its next start, which may have begun, rotates the log.
    damage_scan::read_to_the_end(shared).await;
    let is_confirmed = shared.state().stop.as_ref().is_some_and(|stop| stop.saved);
    let told = if is_confirmed { SavesTold::default() } else { saves_told(shared).await };
    let (record, is_asked) = {
        let mut state = shared.state();
        state.start = state.start.left();
        let (stop, confirmed_at, started_at) = (state.stop.take(), state.saved_at.take(), state.record.end());
        let is_asked = stop.is_some();
        (LastStop { started_at, ..last_stop(look.at, stop, confirmed_at, told) }, is_asked)
    };
    info!("the server is gone, saved: {}: {}", record.saved, record.why);
    let (volume, end) = (shared.volume.clone(), record.clone());
    let written = tokio::task::spawn_blocking(move || process_record::write_end(&volume, end)).await;
    let record = written.inspect_err(|error| warn!("{error}")).unwrap_or(record);
    // Reported after it is on disk, not before.
    shared.state().last_stop = Some(record);
    online_backup::server_ended(shared).await;
    // After a requested stop the pod usually ends, and must not wait for this. The next pod corrects the files.
    if !is_asked {
        look_at_files_left(shared);
    }
}
