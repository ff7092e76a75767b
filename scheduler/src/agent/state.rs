//! Edge (writes). Holds the state that the tasks of the sidecar share.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::warn;

use super::console_session::ConsoleSession;
use super::fetch::Fetcher;
use super::online_backup::Copying;
use super::process_record::ProcessRecord;
use super::server_state::ServerMonitor;
use super::volume_report::VolumeReport;
use super::{Chain, clock, config, damage_scan};
use crate::protocol::damage::DamageTold;
use crate::protocol::loaded::Loaded;
use crate::protocol::signature::Guard;
use crate::protocol::sizes::Sizes;
use crate::protocol::{
    AgentReport, Announce, BackupsSeen, HotCopySeen, KeepCopy, LastStop, PluginSeen, Server, Staging,
};
use crate::rcon::Console;
use crate::staging::Volume;
use crate::staging::content_store::ContentStore;
use crate::staging::drift::Drift;
use crate::staging::unmanaged_jars::UnmanagedJars;
use crate::world::damage::DamageLog;

/// Shared by all tasks of one sidecar.
#[derive(Debug)]
pub(super) struct SidecarState {
    pub(super) settings: config::SidecarConfig,
    pub(super) volume: Volume,
    pub(super) store: ContentStore,
    /// The scan results of unmanaged JARs.
    pub(super) strangers: UnmanagedJars,
    pub(super) fetcher: Fetcher,
    pub(super) desk: Arc<ConsoleSession>,
    /// Wakes the monitor early.
    pub(super) wake: Notify,
    /// Allows one sample at a time: an older sample must not be processed after a newer one.
    pub(super) look_turn: tokio::sync::Mutex<()>,
    /// Allows one stop at a time.
    pub(super) stop_turn: tokio::sync::Mutex<()>,
    /// Allows one write of the process record at a time.
    pub(super) record_turn: Mutex<()>,
    damage: Mutex<DamageLog>,
    state: Mutex<MutableState>,
}

/// The mutable part.
#[derive(Debug)]
pub(super) struct MutableState {
    pub(super) witness: ServerMonitor,
    /// The locks on worlds that existed at the last sample.
    pub(super) session_locks: Vec<PathBuf>,
    pub(super) guard: Guard,
    /// Facts of this start of the server. They are empty until they were read, except for the drift. See [`StartFacts::left`].
    pub(super) start: StartFacts,
    pub(super) staged: Vec<String>,
    pub(super) staging: Option<Staging>,
    pub(super) staging_task: Option<JoinHandle<()>>,
    pub(super) announced: Option<Announce>,
    pub(super) announcing: Option<JoinHandle<()>>,
    /// The stop that was sent and whose end has not been observed.
    pub(super) stop: Option<StopSent>,
    pub(super) last_stop: Option<LastStop>,
    /// The current process, as recorded on the volume.
    pub(super) record: ProcessRecord,
    /// When the running server last confirmed to this agent that all worlds are saved.
    pub(super) saved_at: Option<Timestamp>,
    /// Whether a player was seen, and that is recorded on disk.
    pub(super) played: bool,
    /// Counts changes of the server process: two samples of the same process have the same number.
    pub(super) life: u64,
    /// Whether this agent has observed that no server ran. The current one has started since.
    pub(super) saw_none: bool,
    /// The last request for an online backup, as recorded on the volume.
    pub(super) hot: Option<HotCopySeen>,
    /// The online backup in progress.
    pub(super) copying: Option<Copying>,
    /// The backup that a user wants to restore. A new agent has no backup in progress that could cause it to be pruned.
    pub(super) kept: Option<KeepCopy>,
    /// The last measured size of a backup.
    pub(super) sizes: Option<Sizes>,
}

/// Facts that are read once after each start.
#[derive(Debug, Clone, Default)]
pub(super) struct StartFacts {
    pub(super) build: Option<u32>,
    pub(super) plugins: Option<BTreeMap<String, PluginSeen>>,
    pub(super) drift: Drift,
    pub(super) rcon_exposed: bool,
    pub(super) loaded: Option<Loaded>,
}

impl StartFacts {
    /// The part that remains when a process ends, and when another one has answered: the drift, until the next start is read. A start that dies
    /// before its first answer is never read. Without this, a server that is down because of a changed file would not report that file.
    pub(super) fn left(&mut self) -> Self {
        Self { drift: std::mem::take(&mut self.drift), ..Self::default() }
    }
}

/// A stop in progress.
#[derive(Debug, Clone)]
pub(super) struct StopSent {
    pub(super) saved: bool,
    pub(super) why: String,
    /// How many players it disconnects.
    pub(super) players: Option<u32>,
}

impl SidecarState {
    pub(super) fn new(settings: config::SidecarConfig, fetcher: Fetcher, now: Timestamp) -> Self {
        let volume = Volume::new(&settings.data);
        let rcon = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.rcon_port));
        let desk = ConsoleSession::new(Console::new(rcon, settings.rcon_password.clone()));
        let state = MutableState {
            witness: ServerMonitor::new(now),
            session_locks: Vec::new(),
            guard: Guard::new(now),
            start: StartFacts::default(),
            staged: Vec::new(),
            staging: None,
            staging_task: None,
            announced: None,
            announcing: None,
            stop: None,
            last_stop: None,
            record: ProcessRecord::default(),
            saved_at: None,
            played: false,
            life: 0,
            saw_none: false,
            hot: None,
            copying: None,
            kept: None,
            sizes: None,
        };
        Self {
            store: ContentStore::new(volume.clone()),
            strangers: UnmanagedJars::default(),
            damage: Mutex::new(DamageLog::new(volume.clone())),
            settings,
            volume,
            fetcher,
            desk,
            wake: Notify::new(),
            look_turn: tokio::sync::Mutex::new(()),
            stop_turn: tokio::sync::Mutex::new(()),
            record_turn: Mutex::new(()),
            state: Mutex::new(state),
        }
    }

    /// The state, for a short time. It is never held across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, MutableState> {
        // A thread that panicked while holding it left no partial update, because every field is set at once.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, by the operator's clock. Announced countdowns end by that clock.
    pub(super) fn operators_now(&self) -> Timestamp {
        let ahead = self.state().guard.clock_ahead();
        clock::now().checked_sub(ahead).unwrap_or_else(|_| clock::now())
    }

    /// Records that the server has just confirmed `save-all flush`. Without `flush` a save is confirmed before all of it is on disk.
    pub(super) fn note_saved(&self) {
        self.state().saved_at = Some(clock::now());
    }

    /// Whether the server's log reports damage to its worlds, after reading its new lines. Unknown counts as yes, because a backup with this mark
    /// replaces none without it. Blocks on the disk.
    pub(super) fn may_be_damaged(&self) -> bool {
        damage_scan::is_told(&mut self.damage.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The damage that the log reports, after reading its new lines. Blocks on the disk.
    pub(super) fn damage(&self) -> Option<DamageTold> {
        let mut log = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        log.look(clock::now()).unwrap_or_else(|error| {
            warn!("{}", Chain(&error));
            log.told()
        })
    }

    /// The part of the backup report that only the agent knows.
    pub(super) fn beside_copies(&self) -> (Option<HotCopySeen>, Option<Sizes>) {
        let state = self.state();
        (state.hot.clone(), state.sizes)
    }

    /// The report, with the data that was just read from the volume. Blocks on the disk.
    pub(super) fn report(
        &self,
        now: Timestamp,
        found: VolumeReport,
        (hot, sizes): (Option<HotCopySeen>, Option<Sizes>),
    ) -> AgentReport {
        let unmanaged_jars = self.strangers.look(&self.volume, &found.unmanaged);
        let damage = self.damage();
        let VolumeReport { world, lock, unmanaged, replaced, backups, plugin_data, new_volume } = found;
        let state = self.state();
        let server = match state.witness.server() {
            Server::Up { since, answered_at, minecraft, build: _, plugins: _ } => {
                let StartFacts { build, plugins, drift: _, rcon_exposed: _, loaded: _ } = state.start.clone();
                Server::Up { since, answered_at, minecraft, build, plugins }
            }
            other @ (Server::Absent | Server::Starting { .. } | Server::Stopping { .. }) => other,
        };
        AgentReport {
            at: now,
            pod_uid: self.settings.pod_uid.clone(),
            server,
            players: state.witness.players(now),
            empty_since: state.witness.empty_since(now),
            lock,
            drift: state.start.drift.changed.clone(),
            unmanaged,
            unmanaged_jars,
            replaced,
            staged: state.staged.clone(),
            staging: state.staging.clone(),
            world,
            loaded: state.start.loaded.clone(),
            damage,
            last_stop: state.last_stop.clone(),
            rcon_exposed: state.start.rcon_exposed,
            announced: state.announced.clone(),
            backups: backups.map(|backups| BackupsSeen { hot, sizes, ..backups }),
            plugin_data,
            new_volume,
        }
    }
}
