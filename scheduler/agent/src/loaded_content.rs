//! Edge (writes). Records which worlds and datapacks a start of the server opens, and which of them are closed while it runs.
//!
//! Starts are compared only with starts: no start is expected to open a world that is created and deleted while the server runs (an arena). The
//! content that a start opened is checked again when the server is saved and stopped. If it is no longer open then, a user closed it, and its
//! absence after the next start is not a failure. The volume keeps this record, because the next pod needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use history::{ALWAYS_OPEN, LoadedRecord, Now, StartId};

use super::console_session::ConsoleLease;
use super::state::SidecarState;
use super::{ErrorChain, server_log};
use crate::rcon::responses;
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::read_record;
use crate::world::Worlds;
use crate::world::loaded_worlds::{self, OpenEvidence};
use crate::world::session_lock;
use agent_api::Server;
use agent_api::loaded_content::{AtStart, Loaded, MAX_TRACKED};

mod history;

/// How long after a server's first answer its plugins may still open worlds. A world that is not open at a later check was not opened.
const OPENS_WITHIN: Duration = Duration::from_secs(20);
/// The same for worlds that earlier starts opened, and for a check that failed: another check begins within this time.
const CHECKS_WITHIN: Duration = Duration::from_secs(45);
/// The end of the last check. The operator waits for the report a little longer.
const ENDS_WITHIN: Duration = Duration::from_secs(55);
/// The pause between two checks in that time.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a new world may stay without a save. Paper saves by itself every five minutes.
const FIRST_SAVE_WITHIN: Duration = Duration::from_mins(10);
/// The timeout of a command that waits for the server's main thread.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of each part of the check while the server is saved for a stop: players wait for the next step.
const STOP_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads what the start has opened. The first check uses `lease`. A new world has no `level.dat` until its first save, so it is saved once, which
/// also shows its size to the estimate of a backup. If it cannot be saved, it is read after the server's own save.
pub(super) async fn read(shared: &Arc<SidecarState>, began: Instant, lease: ConsoleLease) {
    if !is_unsaved(shared).await || save(shared).await && !is_unsaved(shared).await {
        return read_opened(shared, began, lease).await;
    }
    drop(lease);
    if wait_for_first_save(shared).await {
        read_opened(shared, Instant::now(), shared.console.lease()).await;
    }
}

async fn is_unsaved(shared: &SidecarState) -> bool {
    let data = shared.settings.data.clone();
    tokio::task::spawn_blocking(move || loaded_worlds::is_unsaved(&data)).await.unwrap_or_default()
}

/// Waits for the first save of a new world. False if the process ends before, or saves nothing for a long time.
async fn wait_for_first_save(shared: &SidecarState) -> bool {
    let process_generation = shared.state().process_generation;
    info!("the new world has no `level.dat` yet: it is read after the first save");
    let ends = Instant::now() + FIRST_SAVE_WITHIN;
    while is_unsaved(shared).await {
        if ends <= Instant::now() {
            warn!("the server has not saved its new world: its worlds are unknown");
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        if shared.state().process_generation != process_generation {
            return false;
        }
    }
    true
}

/// Reads what the start has opened. It repeats the check for content that is not open yet, because plugins open worlds at any time.
async fn read_opened(shared: &Arc<SidecarState>, began: Instant, lease: ConsoleLease) {
    let mut lease = Some(lease);
    let (process_generation, since, observed_stopped) = {
        let state = shared.state();
        let Server::Up { since, .. } = state.monitor.server() else { return };
        (state.process_generation, since, state.observed_stopped)
    };
    // Read now, because the log is rotated at midnight.
    let start = StartId { observed_stopped, ..read_start_id(shared).await };
    let expected = change_record(shared, |record| record.expected_worlds()).await;
    let ends = (began + ENDS_WITHIN).max(Instant::now() + COMMAND_TIMEOUT);
    let (mut worlds, mut datapacks): (Now, Now) = (None, None);
    // Once all worlds are known, no later check can add to it.
    let mut are_worlds_read = false;
    loop {
        let check_began = began.elapsed();
        let is_open = |worlds: &Now, name: &str| worlds.as_ref().is_some_and(|all| all.get(name) == Some(&Some(true)));
        let at_worlds =
            async { if are_worlds_read { None } else { check_worlds(shared, |name| !is_open(&worlds, name)).await } };
        let (checked, packs) =
            tokio::join!(timeout_at(ends, at_worlds), timeout_at(ends, check_datapacks(shared, since, true)));
        let checked = checked.unwrap_or_default();
        let is_conclusive = checked.is_some() && check_began >= OPENS_WITHIN;
        worlds = merge(worlds, checked);
        datapacks = merge(datapacks, packs.unwrap_or_default());
        drop(lease.take());
        are_worlds_read |= is_complete(worlds.as_ref(), is_conclusive, &expected);
        if are_worlds_read && datapacks.is_some() {
            break;
        }
        let Some(pause) = pause_after(check_began, began.elapsed(), ends.duration_since(began)) else {
            // Results that the last check could not read are unknown.
            worlds = worlds.filter(|_| is_conclusive || are_worlds_read);
            break;
        };
        tokio::time::sleep(pause).await;
        if shared.state().process_generation != process_generation {
            return;
        }
    }
    let loaded = change_record(shared, move |record| record.begin(&start, &worlds, &datapacks)).await;
    let mut state = shared.state();
    if state.process_generation == process_generation {
        log_loaded(&loaded);
        state.start.loaded = Some(loaded);
    }
}

/// How long to wait after a check before the next one begins, which must end within `ends`. All times count from the first answer. `None`: it was
/// the last check.
fn pause_after(check_began: Duration, now: Duration, ends: Duration) -> Option<Duration> {
    let is_last = check_began >= CHECKS_WITHIN || now >= ends;
    // A check that took long leaves little time for another, so the next one begins at once.
    (!is_last).then(|| PAUSE.min(CHECKS_WITHIN.saturating_sub(now)))
}

/// Whether no further check is needed. That is so if all worlds are open, or too many exist. It is also so if the last check was late enough and
/// no world is missing that earlier starts opened.
fn is_complete(
    worlds: Option<&BTreeMap<String, Option<bool>>>,
    is_conclusive: bool,
    expected: &BTreeSet<String>,
) -> bool {
    let Some(worlds) = worlds else { return false };
    let mut shut = worlds.iter().filter(|(_, open)| **open != Some(true)).map(|(name, _)| name);
    worlds.len() > MAX_TRACKED
        || if is_conclusive { !shut.any(|name| expected.contains(name)) } else { shut.next().is_none() }
}

/// Checks again what the start has opened, right after the server was saved: its `level.dat` shows which datapacks are enabled now.
pub(super) async fn recheck(shared: &Arc<SidecarState>) {
    let Some(Loaded { worlds, .. }) = shared.state().start.loaded.clone() else { return };
    let Server::Up { since, .. } = shared.state().monitor.server() else { return };
    let is_queried = |name: &str| {
        let is_opened = worlds.iter().flatten().any(|(world, at)| world == name && *at == AtStart::Opened);
        is_opened && !ALWAYS_OPEN.contains(&name)
    };
    let until = Instant::now() + STOP_CHECK_TIMEOUT;
    // If one of them takes too long, the result of the other still counts.
    let (worlds, datapacks) = tokio::join!(
        timeout_at(until, check_worlds(shared, is_queried)),
        timeout_at(until, check_datapacks(shared, since, false)),
    );
    if worlds.is_err() || datapacks.is_err() {
        warn!("it is unknown whether all is still open: the server took too long to answer");
    }
    let (worlds, datapacks) = (worlds.unwrap_or_default(), datapacks.unwrap_or_default());
    let update = change_record(shared, move |record| record.close(&worlds, &datapacks));
    if timeout_at(until, update).await.is_err() {
        info!("the closed worlds are still being recorded");
    }
}

/// The worlds on the volume, without those in the layout since 26.1 for which `is_queried` is false.
async fn check_worlds(shared: &Arc<SidecarState>, is_queried: impl Fn(&str) -> bool) -> Now {
    let data = shared.settings.data.clone();
    let found = tokio::task::spawn_blocking(move || {
        let worlds = Worlds::read(&data).map_err(|error| error.to_string())?;
        let Some(level) = loaded_worlds::level_folder(&data, &worlds) else {
            return Err("the server has no level yet".to_owned());
        };
        let found = loaded_worlds::open_evidence(&level, &worlds).map_err(|error| error.to_string())?;
        let resolve = |(name, evidence)| match evidence {
            OpenEvidence::Locks(locks) => is_any_held(&locks).map(|held| (name, Ok(held))),
            OpenEvidence::Console(key) => Ok((name, Err(key))),
        };
        let by_locks = found.values().any(|evidence| matches!(evidence, OpenEvidence::Locks(_)));
        let found: Result<BTreeMap<String, Result<bool, String>>, _> = found.into_iter().map(resolve).collect();
        let found = found.map_err(|error| ErrorChain(&error).to_string())?;
        let level_lock = [level.join("session.lock")];
        // Checked last: a lock that was released during the check is released now.
        if by_locks && !is_any_held(&level_lock).map_err(|error| ErrorChain(&error).to_string())? {
            // A plugin has opened and closed the file in the server's process, which drops the lock, or the volume does not support locks.
            return Err("the server runs without holding the `session.lock` of its own level".to_owned());
        }
        Ok(found)
    });
    let found = found.await.unwrap_or_else(|error| Err(error.to_string()));
    let found = found.inspect_err(|error| warn!("could not read the worlds: {error}")).ok()?;
    if found.len() > MAX_TRACKED {
        return Some(found.into_keys().map(|name| (name, None)).collect());
    }
    let lease = shared.console.lease();
    let mut now = BTreeMap::new();
    for (name, evidence) in found {
        let is_open = match evidence {
            Ok(held) => Some(held),
            Err(_) if !is_queried(&name) => None,
            Err(key) => match lease.console().await.has_dimension(&key, COMMAND_TIMEOUT).await {
                Ok(answer) => Some(answer?),
                Err(error) => {
                    warn!("could not ask the server for `{key}`: {}", ErrorChain(&error));
                    return None;
                }
            },
        };
        now.insert(name, is_open);
    }
    Some(now)
}

/// The datapacks in the level's folder. If some exist and the server has written no `level.dat` since it answered, it `may_save` once, so that
/// `level.dat` shows which are enabled. Without that, the server writes it only within five minutes.
async fn check_datapacks(shared: &Arc<SidecarState>, since: Timestamp, may_save: bool) -> Now {
    let read = async || {
        let data = shared.settings.data.clone();
        let read = tokio::task::spawn_blocking(move || {
            let worlds = Worlds::read(&data).map_err(|error| error.to_string())?;
            let Some(level) = loaded_worlds::level_folder(&data, &worlds) else {
                return Err("the server has no level yet".to_owned());
            };
            let existing = loaded_worlds::datapacks_present(&level).map_err(|error| error.to_string())?;
            if existing.is_empty() {
                return Ok(Some(BTreeMap::new()));
            }
            let Some(enabled) = loaded_worlds::datapacks_enabled(&level, since)? else { return Ok(None) };
            let open = enabled.iter().map(|name| (name.clone(), Some(true)));
            Ok(Some(existing.iter().map(|name| (name.clone(), Some(enabled.contains(name)))).chain(open).collect()))
        });
        let read: Result<Now, String> = read.await.unwrap_or_else(|error| Err(error.to_string()));
        read.inspect_err(|error| warn!("could not read the datapacks: {error}"))
    };
    // A save does not help with an unreadable file.
    let Ok(now) = read().await else { return None };
    if now.is_some() || !may_save {
        return now;
    }
    if save(shared).await { read().await.unwrap_or_default() } else { None }
}

/// Saves the server once, so that `level.dat` shows its state. False if the server does not confirm it.
async fn save(shared: &SidecarState) -> bool {
    if !shared.settings.rcon_enabled {
        return false;
    }
    let answer = {
        let lease = shared.console.lease();
        let mut console = lease.console().await;
        // The files of an online backup must not be written while they are read. This is checked while holding the console: a backup that begins
        // from now on gets the console after this save.
        if shared.state().online_backup.is_some() {
            return false;
        }
        console.save(COMMAND_TIMEOUT).await
    };
    match answer {
        Ok(response) if responses::confirms_save(&response) => true,
        Ok(response) => {
            warn!("the server was asked to save for its `level.dat` and answered `{}`", response.trim());
            false
        }
        Err(error) => {
            warn!("could not ask the server to save for its `level.dat`: {}", ErrorChain(&error));
            false
        }
    }
}

/// Content that was open at either check counts as opened.
fn merge(before: Now, now: Now) -> Now {
    match (before, now) {
        (Some(mut all), Some(now)) => {
            for (name, open) in now {
                let merged = all.entry(name).or_default();
                *merged = if *merged == Some(true) { *merged } else { open };
            }
            Some(all)
        }
        (before, now) => now.or(before),
    }
}

async fn read_start_id(shared: &Arc<SidecarState>) -> StartId {
    let volume = shared.volume.clone();
    let data = shared.settings.data.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mark = server_log::read(&data).unwrap_or_default().map(|log| log.mark);
        let manifest = volume.manifest().inspect_err(|error| warn!("{}", ErrorChain(error))).unwrap_or_default();
        StartId { mark, lock: manifest.map(|manifest| manifest.lock), observed_stopped: false }
    });
    read.await.unwrap_or_default()
}

fn is_any_held(locks: &[PathBuf]) -> Result<bool, session_lock::Error> {
    locks.iter().try_fold(false, |held, path| Ok(held || session_lock::is_held_by_another(path)?))
}

/// Changes the record on the volume. A failed write is logged: a world that a user closed is then reported missing once.
async fn change_record<T: Default + Send + 'static>(
    shared: &Arc<SidecarState>,
    change: impl FnOnce(&mut LoadedRecord) -> T + Send + 'static,
) -> T {
    let path = shared.volume.loaded_content_path();
    let changed = tokio::task::spawn_blocking(move || {
        let before: LoadedRecord = read_record(&path)
            .inspect_err(|error| warn!("{}", ErrorChain(error)))
            .unwrap_or_default()
            .unwrap_or_default();
        let mut record = before.clone();
        let answer = change(&mut record);
        if record != before
            && let Err(error) = Disk::new(RealFs).write_record(&path, &record)
        {
            warn!("{}", ErrorChain(&error));
        }
        answer
    });
    changed.await.unwrap_or_default()
}

fn log_loaded(loaded: &Loaded) {
    let count = |all: Option<&BTreeMap<String, AtStart>>| match all {
        Some(all) => all.values().filter(|at| **at == AtStart::Opened).count().to_string(),
        None => "an unknown number of".to_owned(),
    };
    info!(
        "{} worlds are open, {} added datapacks are enabled",
        count(loaded.worlds.as_ref()),
        count(loaded.datapacks.as_ref())
    );
}

#[cfg(test)]
mod tests;
