//! Edge (writes). Holds the state that the tasks of the sidecar share.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::console_session::ConsoleSession;
use super::damage_scan::DamageScan;
use super::fetch::Fetcher;
use super::online_backup::running::RunningBackup;
use super::process_record::ProcessRecord;
use super::server_state::ServerMonitor;
use super::volume_report::VolumeReport;
use super::{clock, config};
use crate::rcon::Console;
use crate::staging::Volume;
use crate::staging::drift::Drift;
use crate::staging::unmanaged_jars::UnmanagedJars;
use crate::staging::volume_store::VolumeStore;
use agent_api::backup_size::Sizes;
use agent_api::loaded_content::Loaded;
use agent_api::signature::Guard;
use agent_api::{
    AgentReport, Announce, BackupsReport, LastStop, OnlineBackupReport, PluginReport, ProtectBackup, Server, Staging,
};

/// Shared by all tasks of one sidecar.
#[derive(Debug)]
pub(super) struct SidecarState {
    pub(super) settings: config::SidecarConfig,
    pub(super) volume: Volume,
    pub(super) store: VolumeStore,
    /// The scan results of unmanaged JARs.
    pub(super) unmanaged_jars: UnmanagedJars,
    pub(super) fetcher: Fetcher,
    pub(super) console: Arc<ConsoleSession>,
    /// Wakes the monitor early.
    pub(super) wake: Notify,
    /// Allows one sample at a time: an older sample must not be processed after a newer one.
    pub(super) sample_lock: tokio::sync::Mutex<()>,
    /// Allows one stop at a time.
    pub(super) stop_lock: tokio::sync::Mutex<()>,
    /// Allows one write of the process record at a time.
    pub(super) record_lock: Mutex<()>,
    pub(super) damage: Arc<DamageScan>,
    state: Mutex<MutableState>,
}

/// The mutable part.
#[derive(Debug)]
pub(super) struct MutableState {
    pub(super) monitor: ServerMonitor,
    /// The locks on worlds that existed at the last sample.
    pub(super) session_locks: Vec<PathBuf>,
    pub(super) guard: Guard,
    /// Facts of this start of the server. They are empty until they were read, except for the drift. See [`StartFacts::carry_over`].
    pub(super) start: StartFacts,
    pub(super) staged: Vec<String>,
    pub(super) staging: Option<Staging>,
    pub(super) staging_task: Option<JoinHandle<()>>,
    pub(super) announced: Option<Announce>,
    pub(super) announcing: Option<JoinHandle<()>>,
    /// The stop that was prepared, while the server has not exited.
    pub(super) stop: Option<PreparedStop>,
    pub(super) last_stop: Option<LastStop>,
    /// The current process, as recorded on the volume.
    pub(super) record: ProcessRecord,
    /// When the running server last confirmed to this agent that all worlds are saved.
    pub(super) saved_at: Option<Timestamp>,
    /// Whether a player was seen, and that is recorded on disk.
    pub(super) play_recorded: bool,
    /// Counts changes of the server process: two samples of the same process have the same number.
    pub(super) process_generation: u64,
    /// Whether this agent has observed that no server ran. The current one has started since.
    pub(super) observed_stopped: bool,
    /// The last request for an online backup, as recorded on the volume.
    pub(super) last_online_backup: Option<OnlineBackupReport>,
    /// The online backup in progress.
    pub(super) online_backup: Option<RunningBackup>,
    /// The backup that a user wants to restore. A new agent has no backup in progress that could cause it to be pruned.
    pub(super) retained_backup: Option<ProtectBackup>,
    /// The last measured size of a backup.
    pub(super) sizes: Option<Sizes>,
}

/// Facts that are read once after each start.
#[derive(Debug, Clone, Default)]
pub(super) struct StartFacts {
    pub(super) build: Option<u32>,
    pub(super) plugins: Option<BTreeMap<String, PluginReport>>,
    pub(super) drift: Drift,
    pub(super) rcon_exposed: bool,
    pub(super) loaded: Option<Loaded>,
}

impl StartFacts {
    /// The part that remains when a process ends, and when another one has answered: the drift, until the next start is read. A start that dies
    /// before its first answer is never read. Without this, a server that is down because of a changed file would not report that file.
    pub(super) fn carry_over(&mut self) -> Self {
        Self { drift: std::mem::take(&mut self.drift), ..Self::default() }
    }
}

/// A stop in progress.
#[derive(Debug, Clone)]
pub(super) struct PreparedStop {
    pub(super) saved: bool,
    pub(super) why: String,
    /// How many players it disconnects.
    pub(super) players: Option<u32>,
}

/// A closed console of the server, with a connection of its own.
pub(super) fn new_console(settings: &config::SidecarConfig) -> Console {
    Console::new(SocketAddr::from((Ipv4Addr::LOCALHOST, settings.rcon_port)), settings.rcon_password.clone())
}

impl SidecarState {
    pub(super) fn new(settings: config::SidecarConfig, fetcher: Fetcher, now: Timestamp) -> Self {
        let volume = Volume::new(&settings.data);
        let console = ConsoleSession::new(new_console(&settings));
        let state = MutableState {
            monitor: ServerMonitor::new(now),
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
            play_recorded: false,
            process_generation: 0,
            observed_stopped: false,
            last_online_backup: None,
            online_backup: None,
            retained_backup: None,
            sizes: None,
        };
        Self {
            store: VolumeStore::new(volume.clone()),
            unmanaged_jars: UnmanagedJars::default(),
            damage: Arc::new(DamageScan::new(volume.clone())),
            settings,
            volume,
            fetcher,
            console,
            wake: Notify::new(),
            sample_lock: tokio::sync::Mutex::new(()),
            stop_lock: tokio::sync::Mutex::new(()),
            record_lock: Mutex::new(()),
            state: Mutex::new(state),
        }
    }

    /// The state, for a short time. It is never held across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, MutableState> {
        // A thread that panicked while holding it left no partial update, because every field is set at once.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, by the operator's clock. Announced countdowns end by that clock.
    pub(super) fn operator_now(&self) -> Timestamp {
        let ahead = self.state().guard.clock_ahead();
        clock::now().checked_sub(ahead).unwrap_or_else(|_| clock::now())
    }

    /// Records that the server has just confirmed `save-all flush`. Without `flush` a save is confirmed before all of it is on disk.
    pub(super) fn record_saved(&self) {
        self.state().saved_at = Some(clock::now());
    }

    /// The part of the backup report that only the agent knows.
    pub(super) fn online_backup_and_sizes(&self) -> (Option<OnlineBackupReport>, Option<Sizes>) {
        let state = self.state();
        (state.last_online_backup.clone(), state.sizes)
    }

    /// The report, with the data that was just read from the volume. Blocks on the disk.
    pub(super) fn report(
        &self,
        now: Timestamp,
        found: VolumeReport,
        (last_online_backup, sizes): (Option<OnlineBackupReport>, Option<Sizes>),
    ) -> AgentReport {
        let unmanaged_jars = self.unmanaged_jars.describe(&self.volume, &found.unmanaged);
        let damage = self.damage.damage();
        let VolumeReport { world, lock, unmanaged, replaced, backups, plugin_data, new_volume } = found;
        let state = self.state();
        let server = match state.monitor.server() {
            Server::Up { since, answered_at, hangs_since, minecraft, build: _, plugins: _ } => {
                let StartFacts { build, plugins, drift: _, rcon_exposed: _, loaded: _ } = state.start.clone();
                Server::Up { since, answered_at, hangs_since, minecraft, build, plugins }
            }
            other @ (Server::Absent | Server::Starting { .. } | Server::Stopping { .. }) => other,
        };
        AgentReport {
            at: now,
            pod_uid: self.settings.pod_uid.clone(),
            server,
            players: state.monitor.players(now),
            empty_since: state.monitor.empty_since(now),
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
            backups: backups.map(|backups| BackupsReport { online: last_online_backup, sizes, ..backups }),
            plugin_data,
            new_volume,
        }
    }
}
