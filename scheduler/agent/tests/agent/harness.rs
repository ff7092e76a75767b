//! Edge (writes). Provides a pod for tests: the sidecar in this process, on its own ports and directories, and an operator that signs.

use std::cell::Cell;
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use agent::sidecar::Sidecar;
use agent::{clock, config};
use agent_api::signature::{Key, Parts, sign};
use agent_api::{AgentReport, Announce, LastStop, in_the_chat};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fake_server::PASSWORD;
use crate::volume::{Running, broken_by_mutation};

pub(crate) const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
pub(crate) const POD: &str = "3f0c7a52-0000-4000-8000-000000000001";
/// Longer than any test takes, on a machine that runs eight builds.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) const LOG: &str = "\
[12:00:04] [Server thread/INFO]: Starting minecraft server version 1.21.10
[12:00:05] [Server thread/INFO]: This server is running Paper version 1.21.10-130-main@8043efd (2025-12-01T00:00:00Z)
[12:00:05] [Server thread/INFO]: [Demo] Loading server plugin Demo v2.0
[12:00:05] [Server thread/INFO]: [Red] Loading server plugin Red v1
[12:00:06] [Server thread/INFO]: [Demo] Enabling Demo v2.0
[12:00:09] [Server thread/INFO]: Done (5.331s)! For help, type \"help\"
";

pub(crate) struct Pod {
    pub(crate) data: TempDir,
    pub(crate) shared: TempDir,
    pub(crate) game: SocketAddr,
    pub(crate) rcon: SocketAddr,
    pub(crate) agent: SocketAddr,
    pub(crate) terminate: Option<oneshot::Sender<()>>,
    pub(crate) running: JoinHandle<()>,
    pub(crate) client: reqwest::Client,
    nonce: Cell<u64>,
}

/// An unused port, which is returned only once in this process. It is not chosen by the kernel, because another test could get it before its use.
/// It is below the ranges of the kernel and Kubernetes.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Another test process on this machine begins elsewhere.
    let first = u16::try_from(std::process::id() % 16_000).unwrap();
    loop {
        let port = 12_000 + NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(first) % 16_000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if is_free(address) {
            return address;
        }
    }
}

/// Checks without listening. A process that another test starts at this moment inherits open sockets until it is loaded. A client of the port
/// would then connect to it.
fn is_free(address: SocketAddr) -> bool {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).is_ok()
}

impl Pod {
    pub(crate) async fn new(store_url: &str) -> Self {
        Self::with_volume(tempfile::tempdir().unwrap(), store_url).await
    }

    /// A pod on a volume.
    pub(crate) async fn with_volume(data: TempDir, store_url: &str) -> Self {
        let mut pod = Self::without_agent(data);
        pod.start(config::SidecarConfig { store_url: store_url.to_owned(), ..pod.settings() }).await;
        pod
    }

    /// A pod without a running agent.
    pub(crate) fn without_agent(data: TempDir) -> Self {
        let shared = tempfile::tempdir().unwrap();
        let (game, rcon, agent) = (free_address(), free_address(), free_address());
        let client = artifacts::http_client::client(None, reqwest::ClientBuilder::no_proxy).unwrap();
        let (running, nonce) = (tokio::spawn(async {}), Cell::new(0));
        Self { data, shared, game, rcon, agent, terminate: None, running, client, nonce }
    }

    /// The settings of its agent.
    pub(crate) fn settings(&self) -> config::SidecarConfig {
        config::SidecarConfig {
            data: self.data.path().to_owned(),
            shared: self.shared.path().to_owned(),
            store_url: String::new(),
            agent_key: Key::from_hex(KEY).unwrap(),
            rcon_password: PASSWORD.into(),
            rcon_port: self.rcon.port(),
            rcon_enabled: true,
            game_port: self.game.port(),
            pod_uid: POD.to_owned(),
            pod_ip: String::new(),
            backups: Some(self.backups_dir()),
            backup_max_count: Some(10),
            backup_max_age: None,
            stop_timeout: 60,
            kick_text: "The server stops now. Please join again in a few minutes.".to_owned(),
            stop_text: "This server stops in a moment.".to_owned(),
            called_off_text: "The restart is cancelled.".to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
        }
    }

    /// Starts its agent, or the next one.
    pub(crate) async fn start(&mut self, settings: config::SidecarConfig) {
        let sidecar = Sidecar::bind(settings).await.unwrap();
        self.agent = sidecar.address().unwrap();
        let (terminate, terminated) = oneshot::channel::<()>();
        self.running = tokio::spawn(sidecar.run(async move {
            let _ = terminated.await;
        }));
        self.terminate = Some(terminate);
    }

    /// Starts its agent as a separate process, which can be killed, beside a server that is up.
    pub(crate) async fn start_process(&self) -> Running {
        let mut agent = Command::new(env!("CARGO_BIN_EXE_agent"));
        agent.args(["sidecar", "--listen", &self.agent.to_string()]);
        agent.env_clear().envs(broken_by_mutation()).stdout(Stdio::null());
        let key_file = self.shared.path().join("agent-key");
        fs::write(&key_file, KEY).unwrap();
        for (name, path) in [
            ("DATA", self.data.path()),
            ("SHARED", self.shared.path()),
            ("BACKUPS", &self.backups_dir()),
            ("AGENT_KEY_FILE", &key_file),
        ] {
            agent.env(format!("NIGHTSHIFT_{name}"), path);
        }
        for (name, value) in [
            ("POD_UID", POD),
            ("RCON_PASSWORD", PASSWORD),
            ("RCON_PORT", &self.rcon.port().to_string()),
            ("GAME_PORT", &self.game.port().to_string()),
        ] {
            agent.env(format!("NIGHTSHIFT_{name}"), value);
        }
        let agent = Running(agent.spawn().unwrap());
        let url = format!("http://{}/started", self.agent);
        let answers = async || self.client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200);
        until("started", answers).await;
        agent
    }

    /// The backup repository of its server.
    pub(crate) fn backups_dir(&self) -> PathBuf {
        self.shared.path().join("copies")
    }

    pub(crate) fn write_log(&self) {
        fs::create_dir_all(self.data.path().join("logs")).unwrap();
        fs::write(self.data.path().join("logs/latest.log"), LOG).unwrap();
    }

    pub(crate) async fn probe(&self, path: &str) -> u16 {
        self.client.get(format!("http://{}{path}", self.agent)).send().await.unwrap().status().as_u16()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &impl Serialize) -> reqwest::Response {
        self.send_at(clock::now(), method, path, body).await
    }

    /// The same by an operator whose clock shows this time.
    pub(crate) async fn send_at(
        &self,
        at: Timestamp,
        method: &str,
        path: &str,
        body: &impl Serialize,
    ) -> reqwest::Response {
        let body = serde_json::to_vec(body).unwrap();
        self.nonce.set(self.nonce.get() + 1);
        let nonce = format!("{:016}", self.nonce.get());
        let key = Key::from_hex(KEY).unwrap();
        let parts = Parts { method, path, body: &body, pod_uid: POD, at, nonce: &nonce, fence: 1 };
        let headers = sign(&key, &parts);
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("http://{}{path}", self.agent)).body(body);
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        request.send().await.unwrap()
    }

    pub(crate) async fn json<T: DeserializeOwned>(&self, method: &str, path: &str, body: &impl Serialize) -> T {
        let answer = self.send(method, path, body).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    pub(crate) async fn report(&self) -> AgentReport {
        self.json("GET", "/v1/report", &()).await
    }

    /// The first matching report.
    pub(crate) async fn report_when(&self, description: &str, fits: impl Fn(&AgentReport) -> bool) -> AgentReport {
        let begun = Instant::now();
        loop {
            let report = self.report().await;
            if fits(&report) {
                return report;
            }
            assert!(begun.elapsed() < TEST_TIMEOUT, "not seen in time: {description}: {report:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

pub(crate) async fn until<F: Future<Output = bool>>(description: &str, mut fits: impl FnMut() -> F) {
    let begun = Instant::now();
    while !fits().await {
        assert!(begun.elapsed() < TEST_TIMEOUT, "not seen in time: {description}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An announcement of a stop after this time.
pub(crate) fn restart_in(left: SignedDuration, name: &str) -> Announce {
    Announce {
        act: name.to_owned(),
        ends: clock::now() + left,
        text: "Restart in {in}".to_owned(),
        short: None,
        show: in_the_chat(),
        only_empty: false,
        in_languages: false,
    }
}

pub(crate) fn read_last_stop(data: &Path) -> LastStop {
    serde_json::from_slice(&fs::read(data.join(".nightshift/last-stop.json")).unwrap()).unwrap()
}
