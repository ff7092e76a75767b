//! Edge (writes). Simulates the agent as the operator meets it: over HTTP, with signatures, and with the real agent's
//! readings of the volume.
//!
//! The simulated cluster provides the state that the real agent gets by ping and console, in its own time.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use scheduler::agent::fetch::Fetcher;
use scheduler::agent::process_record::ProcessRecord;
use scheduler::agent::server_state::{PingResult, Sample, ServerMonitor, Transition};
use scheduler::agent::volume_report::VolumeReport;
use scheduler::protocol::loaded::Loaded;
use scheduler::protocol::signature::{Guard, Headers, Key, Received, SignatureError, verify};
use scheduler::protocol::sizes::Sizes;
use scheduler::protocol::{
    AgentReport, Announce, BackupsSeen, CancelAnnouncement, File, FileSet, HotCopy, HotCopyOutcome, HotCopySeen,
    KeepCopy, PORT, PlayerCount, PluginSeen, RequestRefusal, Save, Saved, Server, Staging,
};
use scheduler::server_list_ping::StatusResponse;
use scheduler::staging::Volume;
use scheduler::staging::content_store::ContentStore;
use scheduler::staging::hash_cache::HashCache;
use serde::Serialize;
use tokio::net::TcpListener;

use super::cluster::SimCluster;
use super::cluster_handle::{ClusterHandle, RequestFault};
use super::fake_kubelet::{Phase, Pod};
use super::invariants::ON_ITS_WAY;
use super::process_exits::Sent;
use super::scenario::{Ping, SetBehaviour};
use crate::agent_client::ANSWER_WITHIN;
use crate::clock::{now, simulated};

/// How long the start of an online backup blocks the console for other commands.
const FLUSHES_FOR: SignedDuration = SignedDuration::from_secs(10);

/// The reported size of the worlds, which are some kilobytes here: a backup of ten seconds at the estimated speed.
const WORLDS_BYTES: u64 = 249_000_000;

/// The memory of a pod's agent, and what it announced to players.
#[derive(Debug)]
pub(super) struct AgentState {
    key: Key,
    guard: Guard,
    pub(super) witness: ServerMonitor,
    /// The server process, as recorded on the volume. `None` if the agent has not read the record yet.
    pub(super) record: Option<ProcessRecord>,
    /// How far its clock is ahead of the operator's.
    ahead: SignedDuration,
    /// It answers from then on. `None` if it has not been started.
    pub(super) answers_from: Option<Timestamp>,
    /// When its process began, by the clock of that time.
    began_at: Timestamp,
    /// Until `answers_from` it accepts requests and never answers them.
    pub(super) hangs: bool,
    /// When its last answer arrived.
    pub(super) answered_at: Option<Timestamp>,
    announced: Option<Announce>,
    staged: Vec<String>,
    pub(super) staging: Option<(FileSet, Timestamp)>,
    /// The announcements to players, also those of an earlier agent process.
    pub(super) told: Vec<Told>,
    /// When the last save was confirmed.
    pub(super) saved_at: Option<Timestamp>,
    /// Its request to stop the server, which has not exited yet.
    pub(super) stop: Option<Sent>,
    hot: Option<Hot>,
    /// The backup that the online backup in progress must not prune.
    kept: Option<KeepCopy>,
}

/// The last online backup.
#[derive(Debug, Clone)]
struct Hot {
    taken: HotCopySeen,
    /// The console is busy until then.
    flushes_until: Timestamp,
    /// The backup is in progress until then.
    until: Timestamp,
}

/// An announcement of a stop.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) act: String,
    pub(super) at: Timestamp,
    pub(super) ends: Timestamp,
    /// How many players received it, as far as that can be known.
    pub(super) players: u32,
}

impl AgentState {
    pub(super) fn new(key: Key, ahead: SignedDuration) -> Self {
        Self {
            key,
            guard: Guard::new(now() + ahead),
            witness: ServerMonitor::new(now() + ahead),
            record: None,
            ahead,
            answers_from: None,
            began_at: now(),
            hangs: false,
            answered_at: None,
            announced: None,
            staged: Vec::new(),
            staging: None,
            told: Vec::new(),
            saved_at: None,
            stop: None,
            hot: None,
            kept: None,
        }
    }

    /// Sets how far the clock of its node is ahead.
    pub(super) fn set_ahead(&mut self, ahead: SignedDuration) {
        self.ahead = ahead;
    }

    /// A player has joined, which cancels a countdown that requires an empty server.
    pub(super) fn cancels_for_players(&mut self) -> bool {
        let cancelled = self.announced.take_if(|announced| announced.only_empty && now() < announced.ends);
        if let Some(cancelled) = &cancelled {
            self.told.retain(|told| told.act != cancelled.act);
        }
        cancelled.is_some()
    }

    /// The time by its own clock.
    pub(super) fn clock(&self) -> Timestamp {
        now() + self.ahead
    }

    /// Whether a process of it runs that can be reached.
    pub(super) fn answers(&self) -> bool {
        self.answers_from.is_some_and(|from| from <= now())
    }

    /// The clocks were set back to before its start. Requests signed by then could be replayed, so the agent refuses
    /// all requests until that time.
    pub(super) fn refuses_all(&self) -> bool {
        now() < self.began_at + ON_ITS_WAY
    }

    /// The agent is lost with its node.
    pub(super) fn vanish(&mut self) {
        (self.answers_from, self.announced, self.staging, self.stop) = (None, None, None, None);
        self.record = None;
    }

    /// A process of the agent begins, and has only the state on the volume.
    pub(super) fn begin(&mut self, at: Timestamp) {
        let by_its_clock = at + self.ahead;
        (self.guard, self.witness) = (Guard::new(by_its_clock), ServerMonitor::new(by_its_clock));
        (self.answers_from, self.began_at) = (Some(at), at);
        self.hangs = false;
        (self.announced, self.staging, self.stop, self.record) = (None, None, None, None);
        self.kept = None;
        self.hot.iter_mut().for_each(|hot| hot.flushes_until = at);
    }
}

/// Listens for the operator while the runtime exists.
pub(super) async fn listen(shared: &Arc<ClusterHandle>) {
    let address = (shared.world().scenario.address, PORT);
    let listener = TcpListener::bind(address).await.expect("an address of the loopback that nobody has");
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            let service = hyper::service::service_fn(move |request| answer(Arc::clone(&shared), request));
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

async fn answer(
    shared: Arc<ClusterHandle>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ConnectionClosed> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| ConnectionClosed)?.to_bytes();
    // A signature is valid for half a minute, including the delay of the request.
    let mishap = shared.meet(false).await;
    if mishap == Some(RequestFault::RequestLost) {
        return Err(ConnectionClosed);
    }
    let headers = Headers::collect(|name| parts.headers.get(name)?.to_str().ok()).ok_or(ConnectionClosed)?;
    let arrives = || {
        let mut world = shared.world();
        world.check_signature(parts.method.as_str(), parts.uri.path(), &body, &headers).map(|checked| match checked {
            Ok(()) => world.obey(parts.uri.path(), &body),
            Err(refused @ (SignatureError::Fenced { .. } | SignatureError::Replayed)) => {
                json(StatusCode::CONFLICT, &refused.told())
            }
            Err(refused) => json(StatusCode::UNAUTHORIZED, &refused.told()),
        })
    };
    let (mut status, mut body) = arrives()?;
    if mishap == Some(RequestFault::Twice) {
        (status, body) = arrives()?;
    }
    match mishap {
        Some(RequestFault::DeathAfter) => shared.die().await,
        Some(RequestFault::AnswerLost) => return Err(ConnectionClosed),
        Some(RequestFault::RequestLost | RequestFault::DeathBefore | RequestFault::Twice) | None => {}
    }
    if let Some(pod) = &mut shared.world().pod {
        pod.agent.answered_at = Some(now());
    }
    let answer = Response::builder().status(status).header("connection", "close");
    Ok(answer.body(Full::new(body.into())).expect("an answer"))
}

fn json(status: StatusCode, body: &impl Serialize) -> (StatusCode, Vec<u8>) {
    (status, serde_json::to_vec(body).expect("protocol types serialise"))
}

/// Downloads the files of a version set to the volume, as the agent does while the server runs.
pub(super) async fn stage(shared: &ClusterHandle, set: &FileSet) {
    let store = ContentStore::new(Volume::new(shared.world().disks.data()));
    let fetcher = Fetcher::new("").expect("a client");
    let missing = store.missing(set, &mut HashCache::default()).expect("a store on the volume");
    for file in &missing {
        fetcher.fetch(&store, file).await.expect("the replayed upstream gives all files");
    }
    store.mark_staged(set).expect("a record on the volume");
    let staged = store.staged(Some(&set.lock)).expect("a store on the volume");
    if let Some(pod) = &mut shared.world().pod {
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
        if !pod.agent.answers() {
            if pod.agent.hangs {
                // The operator closes the connection.
                simulated::pass_until(now() + ANSWER_WITHIN);
            }
            return Err(ConnectionClosed);
        }
        let received = Received { method, path, body, headers };
        let agent = &mut pod.agent;
        let clock = agent.clock();
        Ok(verify(&agent.key, &received, &pod.uid, clock, &mut agent.guard))
    }

    fn obey(&mut self, path: &str, body: &[u8]) -> (StatusCode, Vec<u8>) {
        let done = (StatusCode::ACCEPTED, Vec::new());
        match path {
            "/v1/report" => return json(StatusCode::OK, &self.report()),
            "/v1/stage" => {
                let set: FileSet = serde_json::from_slice(body).expect("a set");
                let takes = self.seconds(2, 90);
                if self.refuses_files(&set) {
                    return done;
                }
                let agent = &mut self.pod.as_mut().expect("it was asked").agent;
                let is_at_it = agent.staging.as_ref().is_some_and(|(under_way, _)| under_way.lock == set.lock);
                if !is_at_it {
                    agent.staging = Some((set, now() + takes));
                    self.relate("agent: makes sure that the files of the update are on the volume");
                }
            }
            "/v1/announce" => {
                if self.flushes() {
                    self.tell("agent: refuses the announcement while a backup flushes the world");
                    let refusal = RequestRefusal { not_now: true, ..RequestRefusal::because("a copy is flushed") };
                    return json(StatusCode::CONFLICT, &refusal);
                }
                self.announce(serde_json::from_slice(body).expect("an announcement"));
            }
            "/v1/call-off" => {
                let CancelAnnouncement { act, text } = serde_json::from_slice(body).expect("a call");
                let agent = &mut self.pod.as_mut().expect("it was asked").agent;
                agent.told.retain(|told| told.act != act);
                agent.announced.take_if(|known| known.act == act);
                let heard = text.replace('\n', " / ");
                self.tell(format!("players: are told that the restart is called off: {heard}"));
            }
            "/v1/save" => {
                let Save { timeout_seconds } = serde_json::from_slice(body).expect("a save");
                return json(StatusCode::OK, &self.save(timeout_seconds));
            }
            "/v1/backup" => {
                let asked: HotCopy = serde_json::from_slice(body).expect("a copy");
                let Some(taken) = self.copy_running(&asked) else { return (StatusCode::CONFLICT, b"not now".to_vec()) };
                let until = now() + self.seconds(5, 200);
                let hot = Hot { taken, flushes_until: until.min(now() + FLUSHES_FOR), until };
                self.pod.as_mut().expect("it was asked").agent.hot = Some(hot);
            }
            "/v1/keep" => {
                let kept = serde_json::from_slice(body).expect("a copy");
                self.pod.as_mut().expect("it was asked").agent.kept = Some(kept);
            }
            "/v1/players" => {
                self.agent_looks();
                return json(StatusCode::OK, &self.list());
            }
            other => self.must(false, &format!("nobody asks for {other}")),
        }
        done
    }

    /// A new process of the agent reads which files are on the volume.
    pub(super) fn agent_finds_staged(&mut self) {
        let staged = ContentStore::new(Volume::new(self.disks.data())).staged(None).expect("a store on the volume");
        if let Some(pod) = &mut self.pod {
            pod.agent.staged = staged;
        }
    }

    fn flushes(&self) -> bool {
        let hot = self.pod.as_ref().and_then(|pod| pod.agent.hot.as_ref());
        hot.is_some_and(|hot| now() < hot.flushes_until)
    }

    fn hot(&mut self) -> &mut Hot {
        let agent = self.pod.as_mut().map(|pod| &mut pod.agent);
        agent.and_then(|agent| agent.hot.as_mut()).expect("the running server is copied")
    }

    /// Whether an online backup is in progress.
    pub(super) fn is_copying(&self) -> bool {
        let hot = self.pod.as_ref().and_then(|pod| pod.agent.hot.as_ref());
        hot.is_some_and(|hot| now() < hot.until)
    }

    /// Sets the end of the backup in progress.
    pub(super) fn copy_goes_on_until(&mut self, ends: Timestamp) {
        self.hot().until = ends;
    }

    /// Sets the end of the flush of the backup in progress. The backup ends a moment later.
    pub(super) fn flush_goes_on_until(&mut self, ends: Timestamp) {
        let hot = self.hot();
        (hot.flushes_until, hot.until) = (ends, ends + FLUSHES_FOR);
    }

    /// The backup in the last restore request, and the backup that the agent has to keep.
    pub(super) fn named_and_kept(&self) -> (String, Option<String>) {
        let kept = self.pod.as_ref().and_then(|pod| pod.agent.kept.as_ref());
        (self.copy_asked_for().expect("a person asked for one").to_owned(), kept.map(|kept| kept.copy.clone()))
    }

    /// How long before the stop players got the last announcement. `None` if they got none.
    pub(super) fn notice_given(&self) -> Option<SignedDuration> {
        let told = self.pod.as_ref().and_then(|pod| pod.agent.told.last());
        told.map(|told| told.ends.duration_since(told.at))
    }

    fn announce(&mut self, announce: Announce) {
        let players = self.players;
        let left = announce.ends.duration_since(now());
        let left = if left.as_mins() > 0 {
            format!("{} minutes", left.as_mins())
        } else {
            format!("{} seconds", left.as_secs())
        };
        let heard = announce.text.replace('\n', " / ").replace("{in}", &left);
        let is_going_on = self.pod.as_ref().is_some_and(|pod| {
            pod.agent.told.iter().any(|told| (&told.act, told.ends) == (&announce.act, announce.ends))
        });
        if is_going_on && self.is_scripted() {
            self.tell("agent: goes on with the countdown");
        } else if players == 0 && self.is_scripted() {
            self.tell(format!("agent: announces {} at {}, to nobody", announce.act, announce.ends));
        } else {
            self.tell(format!("players: {players} are told of {} at {}: {heard}", announce.act, announce.ends));
        }
        self.check_announcement(&announce);
        let pod = self.pod.as_mut().expect("it was asked");
        // If the list cannot be read, only the ping is left. A server whose ping reports no players counts as empty.
        let is_hidden = self.scenario.ping == Ping::SaysNobody && !pod.obeys();
        let players = if is_hidden { 0 } else { players };
        let agent = &mut pod.agent;
        let told = Told { act: announce.act.clone(), at: now(), ends: announce.ends, players };
        let is_said = |known: &Told| (&known.act, known.ends) == (&told.act, told.ends);
        if !agent.told.iter().any(is_said) {
            agent.told.push(told);
        }
        agent.announced = Some(announce);
    }

    fn save(&mut self, within: u32) -> Saved {
        if self.pod.as_ref().is_some_and(Pod::obeys) {
            let takes = self.seconds(0, 4);
            simulated::pass_until(now() + takes);
            self.save_world();
            self.pod.as_mut().expect("it is up").agent.saved_at = Some(now());
            self.tell("agent: save-all flush is confirmed");
            return Saved { confirmed: true, took_ms: 1, problem: None };
        }
        simulated::pass_until(now() + SignedDuration::from_secs(within.into()));
        self.tell("agent: save-all flush is not confirmed");
        Saved { confirmed: false, took_ms: 1, problem: Some("the server does not answer".to_owned()) }
    }

    /// The agent checks the server's process, by ping and by the lock on the world.
    pub(super) fn agent_looks(&mut self) {
        self.by_script.looked_at = Some(now());
        let (players, ping, no_ping) = (self.players, self.scenario.ping, self.by_script.is_ping_silent());
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers()) else { return };
        let runs = pod.runs();
        let pinged = match pod.phase {
            Phase::Up if pod.hangs() || no_ping => PingResult::Silent,
            Phase::Up => PingResult::Answered(StatusResponse {
                minecraft: pod.files.minecraft.clone(),
                online: match ping {
                    Ping::Counts => Some(players),
                    Ping::Hides => None,
                    Ping::SaysNobody => Some(0),
                },
                max: Some(20),
            }),
            Phase::Pending
            | Phase::Lost
            | Phase::Preparing
            | Phase::Refused(_)
            | Phase::Booting
            | Phase::Ended
            | Phase::Stopping => PingResult::Refused,
        };
        let clock = pod.agent.clock();
        let progress_at = if pod.fate == SetBehaviour::NeverUp { pod.started_at + pod.agent.ahead } else { clock };
        let log = Some(pod.started_at.to_string());
        let look = Sample { at: clock, pinged, locked: Some(runs), log, progress_at: Some(progress_at) };
        let change = pod.agent.witness.look(&look);
        if pod.phase == Phase::Stopping {
            pod.agent.witness.stop_sent(clock);
        }
        match change {
            Some(Transition::Ended | Transition::Replaced) => self.write_end(),
            Some(Transition::Up) | None => {}
        }
        self.keep_record(&look);
    }

    /// The players by the server's list, or by its ping if the list is unavailable.
    fn list(&mut self) -> PlayerCount {
        let players = self.players;
        let pod = self.pod.as_mut().expect("it was asked");
        if pod.obeys() {
            pod.agent.witness.listed(players);
            return if players == 0 { PlayerCount::Nobody } else { PlayerCount::Some { count: players } };
        }
        match self.who_is_on() {
            PlayerCount::Nobody => PlayerCount::Unknown { since: now() + self.scenario.node_ahead },
            said @ (PlayerCount::Some { .. } | PlayerCount::Unknown { .. }) => said,
        }
    }

    fn who_is_on(&self) -> PlayerCount {
        let agent = &self.pod.as_ref().expect("it was asked").agent;
        agent.witness.players(agent.clock())
    }

    fn report(&mut self) -> AgentReport {
        self.agent_looks();
        let pod = self.pod.as_ref().expect("it was asked");
        let found = VolumeReport::read(&Volume::new(self.disks.data()), self.shelf().as_deref()).expect("a volume");
        let hot = pod.agent.hot.clone().map(|Hot { taken, until, .. }| {
            if now() < until { HotCopySeen { outcome: HotCopyOutcome::Running, ..taken } } else { taken }
        });
        let staging = pod.agent.staging.as_ref();
        let sizes = Sizes { at: pod.agent.clock(), worlds: WORLDS_BYTES, server_files: 1_000_000 };
        AgentReport {
            at: pod.agent.clock(),
            pod_uid: pod.uid.clone(),
            server: Self::process(pod),
            players: self.who_is_on(),
            empty_since: pod.agent.witness.empty_since(pod.agent.clock()),
            lock: found.lock,
            drift: if pod.phase == Phase::Up { self.drifted() } else { Vec::new() },
            unmanaged_jars: self.unmanaged_jars(&found.unmanaged),
            unmanaged: found.unmanaged,
            replaced: found.replaced,
            staged: pod.agent.staged.clone(),
            staging: staging
                .map(|(set, _)| Staging { lock: set.lock.clone(), done: 0, of: 4, error: None })
                .or_else(|| self.staging_refused()),
            world: found.world,
            loaded: (pod.phase == Phase::Up).then(|| Loaded {
                worlds: Some(self.by_script.worlds(pod.fate)),
                datapacks: Some(self.by_script.datapacks(pod.fate)),
                ..Loaded::default()
            }),
            damage: self.by_script.damage.clone(),
            last_stop: self.last_end(),
            rcon_exposed: false,
            announced: pod.agent.announced.clone(),
            backups: found.backups.map(|backups| BackupsSeen { hot, sizes: Some(sizes), ..backups }),
            plugin_data: found.plugin_data,
            new_volume: found.new_volume,
        }
    }

    /// The process as the agent sees it, with the agent's readings of a start that is up.
    fn process(pod: &Pod) -> Server {
        let enabled = |file: &File| {
            let name = file.plugin.clone().expect("a plugin's file");
            let enabled = pod.fate != SetBehaviour::Red || name != "ViaVersion";
            (name, PluginSeen { version: None, enabled })
        };
        match pod.agent.witness.server() {
            Server::Up { since, answered_at, minecraft, build: _, plugins: _ } => Server::Up {
                since,
                answered_at,
                minecraft,
                build: Some(pod.files.build),
                plugins: Some(pod.files.plugins.iter().map(enabled).collect()),
            },
            other @ (Server::Absent | Server::Starting { .. } | Server::Stopping { .. }) => other,
        }
    }
}
