//! Edge (writes). Simulates the agent as the operator meets it: over HTTP, with signatures, and with the real agent's
//! readings of the volume.
//!
//! The simulated cluster provides the state that the real agent gets by ping and console, in its own time.

use std::sync::Arc;

use agent::fetch::Fetcher;
use agent::process_record::ProcessRecord;
use agent::server_list_ping::StatusResponse;
use agent::server_state::{PingResult, Sample, ServerMonitor, Transition};
use agent::staging::Volume;
use agent::staging::hash_cache::HashCache;
use agent::staging::volume_store::VolumeStore;
use agent::volume_report::VolumeReport;
use agent_api::backup_size::Sizes;
use agent_api::loaded_content::Loaded;
use agent_api::signature::{Guard, Headers, Key, Received, SignatureError, verify};
use agent_api::{
    AgentReport, Announce, BackupsReport, CancelAnnouncement, File, FileSet, OnlineBackupOutcome, OnlineBackupReport,
    OnlineBackupRequest, PORT, PlayerCount, PluginReport, ProtectBackup, RequestRefusal, Save, Saved, Server, Staging,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::net::TcpListener;

use super::catalog::Releases;
use super::cluster::SimCluster;
use super::cluster_handle::{ClusterHandle, RequestFault};
use super::fake_kubelet::{Phase, Pod};
use super::invariants::MAX_WRITE_DELAY;
use super::process_exits::RequestedStop;
use super::scenario::{Ping, SetBehaviour};
use crate::agent_client::REPLY_TIMEOUT;
use crate::clock::{now, simulated};

/// How long the start of an online backup blocks the console for other commands.
const FLUSH_DURATION: SignedDuration = SignedDuration::from_secs(10);

/// The reported size of the worlds, which are some kilobytes here: a backup of ten seconds at the estimated speed.
const WORLDS_BYTES: u64 = 249_000_000;

/// The reported room for a backup.
const BACKUP_ROOM: u64 = 20_000_000_000;

/// The memory of a pod's agent, and what it announced to players.
#[derive(Debug)]
pub(super) struct AgentState {
    key: Key,
    guard: Guard,
    pub(super) monitor: ServerMonitor,
    /// The server process, as recorded on the volume. `None` if the agent has not read the record yet.
    pub(super) record: Option<ProcessRecord>,
    /// How far its clock is ahead of the operator's.
    clock_offset: SignedDuration,
    /// It answers from then on. `None` if it has not been started.
    pub(super) reachable_from: Option<Timestamp>,
    /// When its process began, by the clock of that time.
    began_at: Timestamp,
    /// Until `reachable_from` it accepts requests and never answers them.
    pub(super) is_hanging: bool,
    /// When its last answer arrived.
    pub(super) answered_at: Option<Timestamp>,
    announced: Option<Announce>,
    staged: Vec<String>,
    pub(super) staging: Option<(FileSet, Timestamp)>,
    /// The announcements to players, also those of an earlier agent process.
    pub(super) announcements: Vec<FakeAnnouncement>,
    /// When the last save was confirmed.
    pub(super) saved_at: Option<Timestamp>,
    /// Its request to stop the server, which has not exited yet.
    pub(super) pending_stop: Option<RequestedStop>,
    online_backup: Option<FakeOnlineBackup>,
    /// The backup that the online backup in progress must not prune.
    retained_backup: Option<ProtectBackup>,
}

/// The last online backup.
#[derive(Debug, Clone)]
struct FakeOnlineBackup {
    report: OnlineBackupReport,
    /// The console is busy until then.
    flush_ends_at: Timestamp,
    /// The backup is in progress until then.
    ends_at: Timestamp,
}

/// An announcement of a stop.
#[derive(Debug, Clone)]
pub(super) struct FakeAnnouncement {
    pub(super) act: String,
    pub(super) at: Timestamp,
    pub(super) ends: Timestamp,
    /// How many players received it, as far as that can be known.
    pub(super) players: u32,
}

impl AgentState {
    pub(super) fn new(key: Key, clock_offset: SignedDuration) -> Self {
        Self {
            key,
            guard: Guard::new(now() + clock_offset),
            monitor: ServerMonitor::new(now() + clock_offset),
            record: None,
            clock_offset,
            reachable_from: None,
            began_at: now(),
            is_hanging: false,
            answered_at: None,
            announced: None,
            staged: Vec::new(),
            staging: None,
            announcements: Vec::new(),
            saved_at: None,
            pending_stop: None,
            online_backup: None,
            retained_backup: None,
        }
    }

    /// Sets how far the clock of its node is ahead.
    pub(super) fn set_clock_offset(&mut self, clock_offset: SignedDuration) {
        self.clock_offset = clock_offset;
    }

    /// A player has joined, which cancels a countdown that requires an empty server.
    pub(super) fn cancel_for_players(&mut self) -> bool {
        let cancelled = self.announced.take_if(|announced| announced.only_empty && now() < announced.ends);
        if let Some(cancelled) = &cancelled {
            self.announcements.retain(|announcement| announcement.act != cancelled.act);
        }
        cancelled.is_some()
    }

    /// The time by its own clock.
    pub(super) fn clock(&self) -> Timestamp {
        now() + self.clock_offset
    }

    /// Whether a process of it runs that can be reached.
    pub(super) fn is_reachable(&self) -> bool {
        self.reachable_from.is_some_and(|from| from <= now())
    }

    /// The clocks were set back to before its start. Requests signed by then could be replayed, so the agent refuses
    /// all requests until that time.
    pub(super) fn refuses_requests(&self) -> bool {
        now() < self.began_at + MAX_WRITE_DELAY
    }

    /// The agent is lost with its node.
    pub(super) fn lose_with_node(&mut self) {
        (self.reachable_from, self.announced, self.staging, self.pending_stop) = (None, None, None, None);
        self.record = None;
    }

    /// A process of the agent begins, and has only the state on the volume.
    pub(super) fn start(&mut self, at: Timestamp) {
        let agent_time = at + self.clock_offset;
        (self.guard, self.monitor) = (Guard::new(agent_time), ServerMonitor::new(agent_time));
        (self.reachable_from, self.began_at) = (Some(at), at);
        self.is_hanging = false;
        (self.announced, self.staging, self.pending_stop, self.record) = (None, None, None, None);
        self.retained_backup = None;
        self.online_backup.iter_mut().for_each(|backup| backup.flush_ends_at = at);
    }
}

/// Listens for the operator while the runtime exists.
pub(super) async fn listen(handle: &Arc<ClusterHandle>) {
    let address = (handle.cluster().scenario.address, PORT);
    let listener = TcpListener::bind(address).await.expect("an unused loopback address");
    let handle = Arc::clone(handle);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let handle = Arc::clone(&handle);
            let service = hyper::service::service_fn(move |request| serve_request(Arc::clone(&handle), request));
            // A client without an answer is disconnected, which is a normal error of the connection.
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service),
            );
        }
    });
}

/// No agent answers, so the connection is closed.
#[derive(Debug, thiserror::Error)]
#[error("nothing answers")]
struct ConnectionClosed;

async fn serve_request(
    handle: Arc<ClusterHandle>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ConnectionClosed> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| ConnectionClosed)?.to_bytes();
    // A signature is valid for half a minute, including the delay of the request.
    let fault = handle.draw_fault(false).await;
    if fault == Some(RequestFault::RequestLost) {
        return Err(ConnectionClosed);
    }
    let headers = Headers::collect(|name| parts.headers.get(name)?.to_str().ok()).ok_or(ConnectionClosed)?;
    let deliver = || {
        let mut cluster = handle.cluster();
        cluster.check_signature(parts.method.as_str(), parts.uri.path(), &body, &headers).map(|checked| match checked {
            Ok(()) => cluster.handle_request(parts.uri.path(), &body),
            Err(
                refused @ (SignatureError::Fenced { .. }
                | SignatureError::FenceTooHigh { .. }
                | SignatureError::Replayed),
            ) => json(StatusCode::CONFLICT, &refused.to_refusal()),
            Err(refused) => json(StatusCode::UNAUTHORIZED, &refused.to_refusal()),
        })
    };
    let (mut status, mut body) = deliver()?;
    if fault == Some(RequestFault::Duplicated) {
        (status, body) = deliver()?;
    }
    match fault {
        Some(RequestFault::CrashAfter) => handle.crash_operator().await,
        Some(RequestFault::AnswerLost) => return Err(ConnectionClosed),
        Some(RequestFault::RequestLost | RequestFault::CrashBefore | RequestFault::Duplicated) | None => {}
    }
    if let Some(pod) = &mut handle.cluster().pod {
        pod.agent.answered_at = Some(now());
    }
    let response = Response::builder().status(status).header("connection", "close");
    Ok(response.body(Full::new(body.into())).expect("an answer"))
}

fn json(status: StatusCode, body: &impl Serialize) -> (StatusCode, Vec<u8>) {
    (status, serde_json::to_vec(body).expect("protocol types serialise"))
}

/// Downloads the files of a version set to the volume, as the agent does while the server runs.
pub(super) async fn stage(handle: &ClusterHandle, file_set: &FileSet) {
    let store = VolumeStore::new(Volume::new(handle.cluster().disks.data()));
    let fetcher = Fetcher::new(&Releases::get().config.store_url).expect("a client");
    let missing = store.missing(file_set, &mut HashCache::default()).expect("a store on the volume");
    for file in &missing {
        fetcher.fetch(&store, file).await.expect("the replayed upstream has all files");
    }
    store.mark_staged(file_set).expect("a record on the volume");
    let staged = store.staged(Some(&file_set.lock)).expect("a store on the volume");
    if let Some(pod) = &mut handle.cluster().pod {
        pod.agent.staged = staged;
    }
}

impl SimCluster {
    fn check_signature(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        headers: &Headers,
    ) -> Result<Result<(), SignatureError>, ConnectionClosed> {
        let pod = self.pod.as_mut().ok_or(ConnectionClosed)?;
        if !pod.agent.is_reachable() {
            if pod.agent.is_hanging {
                // The operator closes the connection.
                simulated::advance_to(now() + REPLY_TIMEOUT);
            }
            return Err(ConnectionClosed);
        }
        let received = Received { method, path, headers };
        let agent = &mut pod.agent;
        let clock = agent.clock();
        let verified = verify(&agent.key, &received, &pod.uid, clock, &mut agent.guard);
        Ok(verified.and_then(|()| headers.check_body(body)))
    }

    fn handle_request(&mut self, path: &str, body: &[u8]) -> (StatusCode, Vec<u8>) {
        let done = (StatusCode::ACCEPTED, Vec::new());
        match path {
            "/v1/report" => {
                return match self.report() {
                    Ok(report) => json(StatusCode::OK, &report),
                    Err(why) => {
                        let why = format!("the volume cannot be read: {why}");
                        json(StatusCode::INTERNAL_SERVER_ERROR, &RequestRefusal::new(why))
                    }
                };
            }
            "/v1/stage" => {
                let file_set: FileSet = serde_json::from_slice(body).expect("a version set");
                let duration = self.seconds(2, 90);
                if self.refuse_if_full(&file_set) {
                    return done;
                }
                let agent = &mut self.pod.as_mut().expect("the pod exists").agent;
                let is_staging = agent.staging.as_ref().is_some_and(|(staging, _)| staging.lock == file_set.lock);
                if !is_staging {
                    agent.staging = Some((file_set, now() + duration));
                    self.trace_if_scripted("agent: checks that the files of the update are on the volume");
                }
            }
            "/v1/announce" => {
                if self.is_flushing() {
                    self.trace("agent: refuses the announcement while a backup flushes the world");
                    let refusal = RequestRefusal { not_now: true, ..RequestRefusal::new("a backup is flushed") };
                    return json(StatusCode::CONFLICT, &refusal);
                }
                self.announce(serde_json::from_slice(body).expect("an announcement"));
            }
            "/v1/cancel-announcement" => {
                let CancelAnnouncement { act, text } = serde_json::from_slice(body).expect("a cancellation");
                let agent = &mut self.pod.as_mut().expect("the pod exists").agent;
                agent.announcements.retain(|announcement| announcement.act != act);
                agent.announced.take_if(|announced| announced.act == act);
                let message = text.replace('\n', " / ");
                self.trace(format!("players: are told that the restart is cancelled: {message}"));
            }
            "/v1/save" => {
                let Save { timeout_seconds } = serde_json::from_slice(body).expect("a save request");
                return json(StatusCode::OK, &self.save(timeout_seconds));
            }
            "/v1/backup" => {
                let request: OnlineBackupRequest = serde_json::from_slice(body).expect("a backup request");
                let Some(report) = self.take_online_backup(&request) else {
                    return (StatusCode::CONFLICT, b"not now".to_vec());
                };
                let ends_at = now() + self.seconds(5, 200);
                let backup = FakeOnlineBackup { report, flush_ends_at: ends_at.min(now() + FLUSH_DURATION), ends_at };
                self.pod.as_mut().expect("the pod exists").agent.online_backup = Some(backup);
            }
            "/v1/protect-backup" => {
                let retained = serde_json::from_slice(body).expect("a backup to keep");
                self.pod.as_mut().expect("the pod exists").agent.retained_backup = Some(retained);
            }
            "/v1/players" => {
                self.agent_observe();
                return json(StatusCode::OK, &self.list_players());
            }
            other => self.check(false, &format!("the operator requests only known paths: {other}")),
        }
        done
    }

    /// A new process of the agent reads which files are on the volume.
    pub(super) fn load_staged(&mut self) {
        let staged = VolumeStore::new(Volume::new(self.disks.data())).staged(None).expect("a store on the volume");
        if let Some(pod) = &mut self.pod {
            pod.agent.staged = staged;
        }
    }

    fn is_flushing(&self) -> bool {
        let backup = self.pod.as_ref().and_then(|pod| pod.agent.online_backup.as_ref());
        backup.is_some_and(|backup| now() < backup.flush_ends_at)
    }

    fn online_backup_mut(&mut self) -> &mut FakeOnlineBackup {
        let agent = self.pod.as_mut().map(|pod| &mut pod.agent);
        agent.and_then(|agent| agent.online_backup.as_mut()).expect("an online backup is in progress")
    }

    /// Whether an online backup is in progress.
    pub(super) fn is_backing_up(&self) -> bool {
        let backup = self.pod.as_ref().and_then(|pod| pod.agent.online_backup.as_ref());
        backup.is_some_and(|backup| now() < backup.ends_at)
    }

    /// Sets the end of the backup in progress.
    pub(super) fn set_backup_end(&mut self, ends: Timestamp) {
        self.online_backup_mut().ends_at = ends;
    }

    /// Sets the end of the flush of the backup in progress. The backup ends a moment later.
    pub(super) fn set_flush_end(&mut self, ends: Timestamp) {
        let backup = self.online_backup_mut();
        (backup.flush_ends_at, backup.ends_at) = (ends, ends + FLUSH_DURATION);
    }

    /// The backup in the last restore request, and the backup that the agent has to keep.
    pub(super) fn requested_and_retained_backup(&self) -> (String, Option<String>) {
        let retained = self.pod.as_ref().and_then(|pod| pod.agent.retained_backup.as_ref());
        (
            self.backup_to_restore().expect("a user requested a restore").to_owned(),
            retained.map(|retained| retained.backup.clone()),
        )
    }

    /// How long before the stop players got the last announcement. `None` if they got none.
    pub(super) fn last_notice(&self) -> Option<SignedDuration> {
        let announcement = self.pod.as_ref().and_then(|pod| pod.agent.announcements.last());
        announcement.map(|announcement| announcement.ends.duration_since(announcement.at))
    }

    fn announce(&mut self, announce: Announce) {
        let players = self.players;
        let left = announce.ends.duration_since(now());
        let left = if left.as_mins() > 0 {
            format!("{} minutes", left.as_mins())
        } else {
            format!("{} seconds", left.as_secs())
        };
        let message = announce.text.replace('\n', " / ").replace("{in}", &left);
        let is_repeated = self.pod.as_ref().is_some_and(|pod| {
            pod.agent
                .announcements
                .iter()
                .any(|announcement| (&announcement.act, announcement.ends) == (&announce.act, announce.ends))
        });
        if is_repeated && self.is_scripted() {
            self.trace("agent: continues the countdown");
        } else if players == 0 && self.is_scripted() {
            self.trace(format!("agent: announces {} at {}, to nobody", announce.act, announce.ends));
        } else {
            self.trace(format!("players: {players} are told of {} at {}: {message}", announce.act, announce.ends));
        }
        self.check_announcement(&announce);
        let pod = self.pod.as_mut().expect("the pod exists");
        // If the list cannot be read, only the ping is left. A server whose ping reports no players counts as empty.
        let is_hidden = self.scenario.ping == Ping::ReportsZero && !pod.accepts_commands();
        let players = if is_hidden { 0 } else { players };
        let agent = &mut pod.agent;
        let announcement = FakeAnnouncement { act: announce.act.clone(), at: now(), ends: announce.ends, players };
        let is_same = |other: &FakeAnnouncement| (&other.act, other.ends) == (&announcement.act, announcement.ends);
        if !agent.announcements.iter().any(is_same) {
            agent.announcements.push(announcement);
        }
        agent.announced = Some(announce);
    }

    fn save(&mut self, timeout_seconds: u32) -> Saved {
        if self.pod.as_ref().is_some_and(Pod::accepts_commands) {
            let duration = self.seconds(0, 4);
            simulated::advance_to(now() + duration);
            self.save_world();
            self.pod.as_mut().expect("the pod exists").agent.saved_at = Some(now());
            self.trace("agent: save-all flush is confirmed");
            return Saved { confirmed: true, took_ms: 1, problem: None };
        }
        simulated::advance_to(now() + SignedDuration::from_secs(timeout_seconds.into()));
        self.trace("agent: save-all flush is not confirmed");
        Saved { confirmed: false, took_ms: 1, problem: Some("the server does not answer".to_owned()) }
    }

    /// The agent checks the server's process, by ping and by the lock on the world.
    pub(super) fn agent_observe(&mut self) {
        self.scripted.checked_at = Some(now());
        let (players, ping, no_ping) = (self.players, self.scenario.ping, self.scripted.is_ping_silent());
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.is_reachable()) else { return };
        let is_running = pod.is_running();
        let pinged = match pod.phase {
            Phase::Up if pod.is_hanging() || no_ping => PingResult::Silent,
            Phase::Up => PingResult::Answered(StatusResponse {
                minecraft: pod.files.minecraft.clone(),
                online: match ping {
                    Ping::ReportsCount => Some(players),
                    Ping::HidesCount => None,
                    Ping::ReportsZero => Some(0),
                },
                max: Some(20),
            }),
            Phase::Pending
            | Phase::NodeLost
            | Phase::Preparing
            | Phase::Refused(_)
            | Phase::Booting
            | Phase::Exited
            | Phase::Stopping => PingResult::Refused,
        };
        let clock = pod.agent.clock();
        let progress_at =
            if pod.behaviour == SetBehaviour::NeverReady { pod.started_at + pod.agent.clock_offset } else { clock };
        let log = Some(pod.started_at.to_string());
        let sample = Sample { at: clock, pinged, locked: Some(is_running), log, progress_at: Some(progress_at) };
        let change = pod.agent.monitor.observe(&sample);
        if pod.has_rcon() {
            pod.agent.monitor.observe_console(clock, pod.accepts_commands());
        }
        if pod.phase == Phase::Stopping {
            pod.agent.monitor.stop_requested(clock);
        }
        match change {
            Some(Transition::Ended | Transition::Replaced) => self.record_stop(),
            Some(Transition::Up) | None => {}
        }
        self.update_process_record(&sample);
    }

    /// The players by the server's list, or by its ping if the list is unavailable.
    fn list_players(&mut self) -> PlayerCount {
        let players = self.players;
        let pod = self.pod.as_mut().expect("the pod exists");
        if pod.accepts_commands() {
            pod.agent.monitor.observe_console_count(players);
            return if players == 0 { PlayerCount::Nobody } else { PlayerCount::Some { count: players } };
        }
        match self.online_players() {
            PlayerCount::Nobody => PlayerCount::Unknown { since: now() + self.scenario.node_clock_offset },
            reported @ (PlayerCount::Some { .. } | PlayerCount::Unknown { .. }) => reported,
        }
    }

    fn online_players(&self) -> PlayerCount {
        let agent = &self.pod.as_ref().expect("the pod exists").agent;
        agent.monitor.players(agent.clock())
    }

    fn report(&mut self) -> Result<AgentReport, String> {
        self.agent_observe();
        let pod = self.pod.as_ref().expect("the pod exists");
        let found = VolumeReport::read(&Volume::new(self.disks.data()), self.backup_repository().as_deref())?;
        let online = pod.agent.online_backup.clone().map(|FakeOnlineBackup { report, ends_at, .. }| {
            if now() < ends_at {
                OnlineBackupReport { outcome: OnlineBackupOutcome::Running, ..report }
            } else {
                report
            }
        });
        let staging = pod.agent.staging.as_ref();
        let sizes = Sizes {
            at: pod.agent.clock(),
            worlds: WORLDS_BYTES,
            server_files: 1_000_000,
            world_entries: 100,
            server_file_entries: 10,
        };
        let room = Some(self.scripted.backup_room.unwrap_or(BACKUP_ROOM));
        Ok(AgentReport {
            at: pod.agent.clock(),
            pod_uid: pod.uid.clone(),
            server: Self::process_state(pod),
            players: self.online_players(),
            empty_since: pod.agent.monitor.empty_since(pod.agent.clock()),
            lock: found.lock,
            drift: if pod.phase == Phase::Up { self.drifted_files() } else { Vec::new() },
            unmanaged_jars: self.unmanaged_jars(&found.unmanaged),
            unmanaged: found.unmanaged,
            replaced: found.replaced,
            staged: pod.agent.staged.clone(),
            staging: staging
                .map(|(file_set, _)| Staging { lock: file_set.lock.clone(), done: 0, of: 4, error: None })
                .or_else(|| self.staging_error()),
            world: found.world,
            loaded: (pod.phase == Phase::Up).then(|| Loaded {
                worlds: Some(self.scripted.worlds(pod.behaviour)),
                datapacks: Some(self.scripted.datapacks(pod.behaviour)),
                ..Loaded::default()
            }),
            damage: self.scripted.damage.clone(),
            last_stop: self.last_stop(),
            rcon_exposed: false,
            announced: pod.agent.announced.clone(),
            backups: found.backups.map(|backups| BackupsReport { online, sizes: Some(sizes), room, ..backups }),
            plugin_data: found.plugin_data,
            new_volume: found.new_volume,
        })
    }

    /// The process as the agent sees it, with the agent's readings of a start that is up.
    fn process_state(pod: &Pod) -> Server {
        let enabled = |file: &File| {
            let name = file.plugin.clone().expect("a plugin's file");
            let enabled = pod.behaviour != SetBehaviour::PluginDisabled || name != "ViaVersion";
            (name, PluginReport { version: None, enabled })
        };
        match pod.agent.monitor.server() {
            Server::Up { since, answered_at, hangs_since, minecraft, build: _, plugins: _ } => Server::Up {
                since,
                answered_at,
                hangs_since,
                minecraft,
                build: Some(pod.files.build),
                plugins: Some(pod.files.plugins.iter().map(enabled).collect()),
            },
            other @ (Server::Absent | Server::Starting { .. } | Server::Stopping { .. }) => other,
        }
    }
}
