//! Edge (reads). Looks at the server again and again, reads what a start says about itself once, and is the witness of each end.

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

/// A ping is answered by a network thread; one that takes longer is a stall.
const PING: Duration = Duration::from_secs(3);
/// Between two looks while nothing is up, while all is well, and while something ends.
const STARTING: Duration = Duration::from_secs(2);
const STEADY: Duration = Duration::from_secs(5);
pub(super) const ENDING: Duration = Duration::from_millis(250);
/// For `bukkit:plugins`, which waits for the server's main thread.
const COMMAND: Duration = Duration::from_secs(20);
/// RCON opens a moment after the first ping; how often and how long apart it is asked.
const PLUGIN_TRIES: u32 = 12;
const PLUGIN_PAUSE: Duration = Duration::from_secs(5);
/// For the check that RCON refuses on the pod's address.
const EXPOSED: Duration = Duration::from_secs(2);

/// Looks for ever.
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

/// One look and what follows from it.
pub(super) async fn look_once(shared: &Arc<SidecarState>) {
    let _turn = shared.look_turn.lock().await;
    let look = look(shared).await;
    let change = {
        let mut state = shared.state();
        let change = state.witness.look(&look);
        state.life += u64::from(change.is_some());
        // A server that lags does not answer either, so silence tells nothing.
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

/// The first player of this pod is put down on the volume: to put worlds or plugins' data back would lose what they did.
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
        // Files come and go while a server saves, so a look may fail: the worlds of the one before are still there.
        let worlds = Worlds::read(&data);
        let locks = worlds.as_ref().map_or(known, Worlds::session_locks);
        let locked = is_held(&locks);
        // Only now: a server begins its log before it takes its locks, so whoever is seen to hold them is not seen with the log of another one.
        let progress_at = worlds.map_or(None, |worlds| worlds.changed_at()).max(server_log::changed_at(&data));
        (locked, mark(), progress_at, locks)
    });
    // Cannot be joined only while the process ends.
    let (locked, log, progress_at, locks) = seen.await.unwrap_or_default();
    shared.state().session_locks = locks;
    Sample { at: clock::now(), pinged, locked, log, progress_at }
}

/// Whether somebody holds one of these locks; None: there is none.
fn is_held(locks: &[PathBuf]) -> Option<bool> {
    let files: Vec<_> = locks.iter().filter(|lock| lock.exists()).collect();
    (!files.is_empty()).then(|| files.iter().any(|lock| held_by_another(lock).unwrap_or(true)))
}

fn began(shared: &Arc<SidecarState>) {
    info!("the server answers");
    {
        let mut state = shared.state();
        // A stop that was asked for before this process was up has stopped another one.
        (state.start, state.stop) = (state.start.left(), None);
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::join!(online_backup::server_began(&shared), read_start(&shared));
        // Last: nothing waits for it, and the disk is busy with the start.
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
        // What is asked next goes over the same connection.
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
                // Only now: plugins open worlds too.
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
        // Nobody knows, so it is not called settled.
        Drift { changed: vec![format!("unknown: {error}")], unmanaged: vec![] }
    });
    for path in &drift.changed {
        warn!("{path} is not what the lock says");
    }
    drift
}

/// Looks at the files of a server that is down: a start that dies before its first answer is not read.
fn look_at_files_left(shared: &Arc<SidecarState>) {
    let life = {
        let state = shared.state();
        // What has answered since is read by itself.
        if !state.witness.is_absent() {
            return;
        }
        state.life
    };
    let shared = Arc::clone(shared);
    // Beside the looks: to hash all JARs takes longer than one may.
    tokio::spawn(async move {
        let drift = find_drift(&shared).await;
        let mut state = shared.state();
        if state.life == life {
            state.start.drift = drift;
        }
    });
}

/// Build and plugins by the server's own words: versions from its log, which are enabled by RCON, or by the log where there is none.
async fn plugins(shared: &Arc<SidecarState>) -> Result<(Option<u32>, BTreeMap<String, PluginSeen>), String> {
    let by_rcon = if shared.settings.rcon_enabled { Some(enabled_by_rcon(shared).await?) } else { None };
    let data = shared.settings.data.clone();
    let log = tokio::task::spawn_blocking(move || server_log::read(&data)).await.map_err(|error| error.to_string())?;
    // A log that was put away at midnight: the versions are not known, which is not the same as no plugins.
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

/// What a server of which no save was confirmed in its stop has written of saves.
async fn saves_told(shared: &SidecarState) -> SavesTold {
    let data = shared.settings.data.clone();
    let told = tokio::task::spawn_blocking(move || server_log::saves_told(&data)).await;
    told.unwrap_or_else(|error| Err(error.into())).unwrap_or_else(|error| {
        warn!("whether the server has saved is not known: {error}");
        SavesTold::default()
    })
}

/// How the server stopped, by the stop that was asked for (None: nobody asked), the last save that it confirmed to this agent, and its log. When it
/// was seen first the record knows.
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
    // First: its next start, which may be under way, puts the log away.
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
    // Reported when it is on the disk, not before.
    shared.state().last_stop = Some(record);
    online_backup::server_ended(shared).await;
    // With a stop that was asked for the pod ends, mostly, and must not wait for this; the next one makes the files what they should be.
    if !is_asked {
        look_at_files_left(shared);
    }
}
