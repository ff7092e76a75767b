//! Edge (writes). Which worlds and datapacks a start of the server opens, read once after it, and which of them somebody closes while it runs.
//!
//! A start is compared with starts: a world that is made and thrown away while the server runs (an arena) is expected of none. What a start has
//! opened is looked at again when the server is saved and stopped; what is not open any more then was closed by somebody, and its
//! absence after the next start is nobody's fault. That is remembered on the volume, since another pod will be asked for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::{info, warn};

use super::desk::Act;
use super::shared::Shared;
use super::{Chain, log};
use crate::protocol::Server;
use crate::protocol::loaded::{AtStart, Loaded, MOST};
use crate::rcon::text;
use crate::staging::disk::{Disk, Unhindered};
use crate::staging::read_record;
use crate::world::Worlds;
use crate::world::lock::held_by_another;
use crate::world::opened::{self, Tells};

/// How long after a server's first answer its plugins may go on opening worlds. What an operator waits for a report at least is longer.
const OPENS_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks in that time.
const PAUSE: Duration = Duration::from_secs(10);
/// For a command that waits for the server's main thread.
const COMMAND: Duration = Duration::from_secs(20);
/// For the look at a server that is being saved: players wait for what comes next.
const AGAIN: Duration = Duration::from_secs(2);
/// Worlds that nobody closes while the server runs.
const OWN: [&str; 3] = ["overworld", "the_nether", "the_end"];

/// What the volume remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    /// The mark in the log of the start that `opened` is about.
    start: Option<String>,
    /// What that start has opened.
    opened: Names,
    /// What was closed while a server ran, and no start has opened since.
    closed: Names,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Names {
    worlds: BTreeSet<String>,
    datapacks: BTreeSet<String>,
}

/// What lies on the volume, true where it is open; None: it could not be read.
type Now = Option<BTreeMap<String, bool>>;

/// Reads what the start has opened. A look at what is not open yet is repeated, because plugins open worlds when they like. The first look is part
/// of `act`.
pub(super) async fn read(shared: &Arc<Shared>, began: Instant, act: Act) {
    let mut act = Some(act);
    let (life, since) = {
        let state = shared.state();
        let Server::Up { since, .. } = state.witness.server() else { return };
        (state.life, since)
    };
    let (mut worlds, mut datapacks): (Now, Now) = (None, None);
    loop {
        let open = worlds.iter().flatten().filter(|(_, open)| **open);
        let seen: BTreeSet<String> = open.map(|(name, _)| name.clone()).collect();
        worlds = united(worlds, look_at_worlds(shared, |name| !seen.contains(name)).await);
        datapacks = united(datapacks, look_at_datapacks(shared, since, true).await);
        drop(act.take());
        let is_all_open = worlds.as_ref().is_some_and(|worlds| worlds.values().all(|open| *open));
        if began.elapsed() >= OPENS_WITHIN || (is_all_open && datapacks.is_some()) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        if shared.state().life != life {
            return;
        }
    }
    let mark = mark(shared).await;
    let loaded = change_record(shared, move |record| {
        record.begin(mark, worlds.as_ref(), datapacks.as_ref());
        Loaded { worlds: record.of_worlds(worlds.as_ref()), datapacks: record.of_datapacks(datapacks.as_ref()) }
    });
    let loaded = loaded.await;
    let mut state = shared.state();
    if state.life == life {
        say(&loaded);
        state.start.loaded = Some(loaded);
    }
}

/// Looks again at what the start has opened, right after the server was saved: its `level.dat` tells what is enabled now.
pub(super) async fn look_again(shared: &Arc<Shared>) {
    let Some(Loaded { worlds, datapacks: _ }) = shared.state().start.loaded.clone() else { return };
    let Server::Up { since, .. } = shared.state().witness.server() else { return };
    let asks = |name: &str| {
        let is_opened = worlds.iter().flatten().any(|(known, at)| known == name && *at == AtStart::Opened);
        is_opened && !OWN.contains(&name)
    };
    let look = async { (look_at_worlds(shared, asks).await, look_at_datapacks(shared, since, false).await) };
    let Ok((worlds, datapacks)) = tokio::time::timeout(AGAIN, look).await else {
        warn!("which worlds are open still is not known: the server took too long to say");
        return;
    };
    change_record(shared, move |record| record.close(worlds.as_ref(), datapacks.as_ref())).await;
}

/// The worlds on the volume, less those of the layout since 26.1 for which `asks` is false.
async fn look_at_worlds(shared: &Arc<Shared>, asks: impl Fn(&str) -> bool) -> Now {
    let data = shared.settings.data.clone();
    let found = tokio::task::spawn_blocking(move || {
        let worlds = Worlds::read(&data).map_err(|error| error.to_string())?;
        let Some(level) = opened::level_folder(&data, &worlds) else { return Err("there is no level yet".to_owned()) };
        let found = opened::worlds(&level, &worlds).map_err(|error| error.to_string())?;
        let look = |(name, tells)| match tells {
            Tells::Lock(lock) => held_by_another(&lock).map(|held| (name, Ok(held))),
            Tells::Console(key) => Ok((name, Err(key))),
        };
        let found: Result<BTreeMap<String, Result<bool, String>>, _> = found.into_iter().map(look).collect();
        found.map_err(|error| Chain(&error).to_string())
    });
    let found = found.await.unwrap_or_else(|error| Err(error.to_string()));
    let found = found.inspect_err(|error| warn!("the worlds could not be read: {error}")).ok()?;
    if found.len() > MOST {
        return None;
    }
    let act = shared.desk.act();
    let mut now = BTreeMap::new();
    for (name, known) in found {
        let is_open = match known {
            Ok(held) => held,
            Err(_) if !asks(&name) => continue,
            Err(key) => match act.console().await.has_dimension(&key, COMMAND).await {
                Ok(answer) => answer?,
                Err(error) => {
                    warn!("the server could not be asked for `{key}`: {}", Chain(&error));
                    return None;
                }
            },
        };
        now.insert(name, is_open);
    }
    Some(now)
}

/// The datapacks in the level's folder. Where there are any and the server has written no `level.dat` since it answered, it `may_save` once to say
/// which are enabled: by itself it does that within five minutes only.
async fn look_at_datapacks(shared: &Arc<Shared>, since: Timestamp, may_save: bool) -> Now {
    let read = async || {
        let data = shared.settings.data.clone();
        let read = tokio::task::spawn_blocking(move || {
            let worlds = Worlds::read(&data).map_err(|error| error.to_string())?;
            let Some(level) = opened::level_folder(&data, &worlds) else {
                return Err("there is no level yet".to_owned());
            };
            let there = opened::datapacks_there(&level).map_err(|error| error.to_string())?;
            if there.is_empty() {
                return Ok(Some(BTreeMap::new()));
            }
            let Some(enabled) = opened::datapacks_enabled(&level, since)? else { return Ok(None) };
            let open = enabled.iter().map(|name| (name.clone(), true));
            Ok(Some(there.iter().map(|name| (name.clone(), enabled.contains(name))).chain(open).collect()))
        });
        let read: Result<Option<BTreeMap<String, bool>>, String> =
            read.await.unwrap_or_else(|error| Err(error.to_string()));
        read.inspect_err(|error| warn!("the datapacks could not be read: {error}")).unwrap_or(None)
    };
    let now = read().await;
    // What is copied from a running server must not be written while it is read.
    if now.is_some() || !may_save || shared.state().copying.is_some() {
        return now;
    }
    let act = shared.desk.act();
    let answer = act.console().await.save(COMMAND).await;
    match answer {
        Ok(words) if text::says_saved(&words) => read().await,
        Ok(words) => {
            warn!("the server was to say which datapacks are enabled and answered `save-all` with `{}`", words.trim());
            None
        }
        Err(error) => {
            warn!("the server could not be asked which datapacks are enabled: {}", Chain(&error));
            None
        }
    }
}

/// What was open at either look counts as opened.
fn united(before: Now, now: Now) -> Now {
    match (before, now) {
        (Some(mut all), Some(now)) => {
            for (name, open) in now {
                *all.entry(name).or_default() |= open;
            }
            Some(all)
        }
        (before, now) => now.or(before),
    }
}

async fn mark(shared: &Arc<Shared>) -> Option<String> {
    let data = shared.settings.data.clone();
    let read = tokio::task::spawn_blocking(move || log::read(&data).unwrap_or_default().map(|log| log.mark));
    read.await.unwrap_or_default()
}

/// One change of what the volume remembers. What cannot be written is told: a world that somebody has closed will be missed once.
async fn change_record<T: Default + Send + 'static>(
    shared: &Arc<Shared>,
    change: impl FnOnce(&mut Record) -> T + Send + 'static,
) -> T {
    let path = shared.volume.opened_path();
    let changed = tokio::task::spawn_blocking(move || {
        let before: Record =
            read_record(&path).inspect_err(|error| warn!("{}", Chain(error))).unwrap_or_default().unwrap_or_default();
        let mut record = before.clone();
        let answer = change(&mut record);
        if record != before
            && let Err(error) = Disk::new(Unhindered).write_record(&path, &record)
        {
            warn!("{}", Chain(&error));
        }
        answer
    });
    changed.await.unwrap_or_default()
}

impl Record {
    /// A start has opened this. An agent that was started again beside the server finds its own start here, and what was closed in between.
    fn begin(
        &mut self,
        mark: Option<String>,
        worlds: Option<&BTreeMap<String, bool>>,
        datapacks: Option<&BTreeMap<String, bool>>,
    ) {
        // A log that was put away at midnight tells of no start, so it is none that has just been.
        let is_same = self.start.is_some() && (mark.is_none() || mark == self.start);
        if is_same {
            self.close(worlds, datapacks);
        } else {
            (self.start, self.opened) = (mark, Names::default());
        }
        for (now, opened, closed) in [
            (worlds, &mut self.opened.worlds, &mut self.closed.worlds),
            (datapacks, &mut self.opened.datapacks, &mut self.closed.datapacks),
        ] {
            for (name, _) in now.into_iter().flatten().filter(|(_, open)| **open) {
                opened.insert(name.clone());
                closed.remove(name);
            }
        }
    }

    /// What the start has opened and is not open now was closed by somebody.
    fn close(&mut self, worlds: Option<&BTreeMap<String, bool>>, datapacks: Option<&BTreeMap<String, bool>>) {
        for (now, opened, closed, own) in [
            (worlds, &self.opened.worlds, &mut self.closed.worlds, OWN.as_slice()),
            (datapacks, &self.opened.datapacks, &mut self.closed.datapacks, &[]),
        ] {
            let Some(now) = now else { continue };
            for name in opened.iter().filter(|name| !own.contains(&name.as_str())) {
                if now.get(name).copied().unwrap_or_default() {
                    closed.remove(name);
                } else {
                    closed.insert(name.clone());
                }
            }
            // Bounded: names of worlds that are made by the dozen and closed for good.
            while closed.len() > MOST {
                closed.pop_first();
            }
        }
    }

    fn of_worlds(&self, now: Option<&BTreeMap<String, bool>>) -> Option<BTreeMap<String, AtStart>> {
        told(now?, &self.opened.worlds, &self.closed.worlds)
    }

    fn of_datapacks(&self, now: Option<&BTreeMap<String, bool>>) -> Option<BTreeMap<String, AtStart>> {
        told(now?, &self.opened.datapacks, &self.closed.datapacks)
    }
}

/// For the report; None where there are more than are told apart.
fn told(
    now: &BTreeMap<String, bool>,
    opened: &BTreeSet<String>,
    closed: &BTreeSet<String>,
) -> Option<BTreeMap<String, AtStart>> {
    let there = now.keys().map(|name| (name.clone(), AtStart::NotOpened));
    let closed = closed.iter().map(|name| (name.clone(), AtStart::ClosedBefore));
    let opened = opened.iter().map(|name| (name.clone(), AtStart::Opened));
    Some(there.chain(closed).chain(opened).collect::<BTreeMap<_, _>>()).filter(|told| told.len() <= MOST)
}

fn say(loaded: &Loaded) {
    let count = |all: Option<&BTreeMap<String, AtStart>>| match all {
        Some(all) => all.values().filter(|at| **at == AtStart::Opened).count().to_string(),
        None => "an unknown number of".to_owned(),
    };
    info!(
        "{} worlds open, {} datapacks of your own enabled",
        count(loaded.worlds.as_ref()),
        count(loaded.datapacks.as_ref())
    );
}

#[cfg(test)]
mod tests;
