//! Edge (writes). What the parts of the sidecar know together.

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
    /// What was found in JARs of people's own.
    pub(super) strangers: UnmanagedJars,
    pub(super) fetcher: Fetcher,
    pub(super) desk: Arc<ConsoleSession>,
    /// Wakes the watcher before its time.
    pub(super) wake: Notify,
    /// One look at a time: an older one must not be believed after a newer one.
    pub(super) look_turn: tokio::sync::Mutex<()>,
    /// One stop at a time.
    pub(super) stop_turn: tokio::sync::Mutex<()>,
    /// One write of what is remembered of the process at a time.
    pub(super) record_turn: Mutex<()>,
    damage: Mutex<DamageLog>,
    state: Mutex<MutableState>,
}

/// What changes.
#[derive(Debug)]
pub(super) struct MutableState {
    pub(super) witness: ServerMonitor,
    /// The locks on worlds that were there at the last look.
    pub(super) session_locks: Vec<PathBuf>,
    pub(super) guard: Guard,
    /// Of this start of the server; empty until they were read, but for how the files differ: see [`StartFacts::left`].
    pub(super) start: StartFacts,
    pub(super) staged: Vec<String>,
    pub(super) staging: Option<Staging>,
    pub(super) staging_task: Option<JoinHandle<()>>,
    pub(super) announced: Option<Announce>,
    pub(super) announcing: Option<JoinHandle<()>>,
    /// The stop that was sent and whose end has not been seen.
    pub(super) stop: Option<StopSent>,
    pub(super) last_stop: Option<LastStop>,
    /// The process that is there, as the volume remembers it.
    pub(super) record: ProcessRecord,
    /// When the server that runs has confirmed last to this agent that all is saved.
    pub(super) saved_at: Option<Timestamp>,
    /// Somebody was seen, and that is on the disk.
    pub(super) played: bool,
    /// Counts what becomes of the server's process: two looks at the same process find the same number.
    pub(super) life: u64,
    /// This agent has seen that no server ran: what runs now has started since.
    pub(super) saw_none: bool,
    /// The last request for a copy of the running server, as it stands on the volume.
    pub(super) hot: Option<HotCopySeen>,
    /// The copy of the running server that is being taken.
    pub(super) copying: Option<Copying>,
    /// The copy that a person wants put in place. An agent that begins anew has none under way that could push it out.
    pub(super) kept: Option<KeepCopy>,
    /// What a copy would hold, as it was measured last.
    pub(super) sizes: Option<Sizes>,
}

/// What is read once after each start.
#[derive(Debug, Clone, Default)]
pub(super) struct StartFacts {
    pub(super) build: Option<u32>,
    pub(super) plugins: Option<BTreeMap<String, PluginSeen>>,
    pub(super) drift: Drift,
    pub(super) rcon_exposed: bool,
    pub(super) loaded: Option<Loaded>,
}

impl StartFacts {
    /// What is left of them when a process ends, and when another one has answered: how the files differ, until the next start is read. A start
    /// that dies before its first answer is never read, and a server that is down for such a file would not name it.
    pub(super) fn left(&mut self) -> Self {
        Self { drift: std::mem::take(&mut self.drift), ..Self::default() }
    }
}

/// A stop on its way.
#[derive(Debug, Clone)]
pub(super) struct StopSent {
    pub(super) saved: bool,
    pub(super) why: String,
    /// How many it disconnects.
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

    /// The state, for a moment: never held over a wait.
    pub(super) fn state(&self) -> MutexGuard<'_, MutableState> {
        // A thread that panicked with it in hand left nothing half-written: every field is set at once.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, by the operator's clock: what it told the players ends by that.
    pub(super) fn operators_now(&self) -> Timestamp {
        let ahead = self.state().guard.clock_ahead();
        clock::now().checked_sub(ahead).unwrap_or_else(|_| clock::now())
    }

    /// The server has just confirmed `save-all flush`. Without `flush` it is confirmed before the disk has all of it.
    pub(super) fn note_saved(&self) {
        self.state().saved_at = Some(clock::now());
    }

    /// Whether the server's log has told of damage to its worlds, read on now; also where nobody knows, since a copy that is marked takes the
    /// place of none that is not. Waits for the disk.
    pub(super) fn may_be_damaged(&self) -> bool {
        damage_scan::is_told(&mut self.damage.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What it has told, read on now. Waits for the disk.
    pub(super) fn damage(&self) -> Option<DamageTold> {
        let mut log = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        log.look(clock::now()).unwrap_or_else(|error| {
            warn!("{}", Chain(&error));
            log.told()
        })
    }

    /// What only the agent knows of its copies.
    pub(super) fn beside_copies(&self) -> (Option<HotCopySeen>, Option<Sizes>) {
        let state = self.state();
        (state.hot.clone(), state.sizes)
    }

    /// The report, with what was just read from the volume. Waits for the disk.
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
