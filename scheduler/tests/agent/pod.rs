//! Edge (writes). A pod for tests: the sidecar in this process, on ports and directories of its own, and an operator that signs.

use std::cell::Cell;
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use scheduler::agent::sidecar::Sidecar;
use scheduler::agent::{clock, settings};
use scheduler::protocol::signature::{Key, Parts, sign};
use scheduler::protocol::{LastStop, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::paper::PASSWORD;

pub(crate) const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
pub(crate) const POD: &str = "3f0c7a52-0000-4000-8000-000000000001";
/// Longer than anything here takes, on a machine that is busy with eight builds.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

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

/// A port that nobody uses at this moment.
pub(crate) fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Pod {
    pub(crate) async fn new(store_url: &str) -> Self {
        Self::on(tempfile::tempdir().unwrap(), store_url).await
    }

    /// A pod on a volume.
    pub(crate) async fn on(data: TempDir, store_url: &str) -> Self {
        let shared = tempfile::tempdir().unwrap();
        let (game, rcon) = (free_address(), free_address());
        let settings = settings::Sidecar {
            data: data.path().to_owned(),
            shared: shared.path().to_owned(),
            store_url: store_url.to_owned(),
            agent_key: Key::from_hex(KEY).unwrap(),
            rcon_password: PASSWORD.into(),
            rcon_port: rcon.port(),
            game_port: game.port(),
            pod_uid: POD.to_owned(),
            pod_ip: String::new(),
            backups: Some(shared.path().join("copies")),
            stop_timeout: 60,
            listen: "127.0.0.1:0".parse().unwrap(),
        };
        let sidecar = Sidecar::bind(settings).await.unwrap();
        let agent = sidecar.address().unwrap();
        let (terminate, terminated) = oneshot::channel::<()>();
        let running = tokio::spawn(sidecar.run(async move {
            let _ = terminated.await;
        }));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let (terminate, nonce) = (Some(terminate), Cell::new(0));
        Self { data, shared, game, rcon, agent, terminate, running, client, nonce }
    }

    pub(crate) fn write_log(&self) {
        fs::create_dir_all(self.data.path().join("logs")).unwrap();
        fs::write(self.data.path().join("logs/latest.log"), LOG).unwrap();
    }

    pub(crate) async fn probe(&self, path: &str) -> u16 {
        self.client.get(format!("http://{}{path}", self.agent)).send().await.unwrap().status().as_u16()
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: &impl Serialize) -> reqwest::Response {
        let body = serde_json::to_vec(body).unwrap();
        self.nonce.set(self.nonce.get() + 1);
        let nonce = format!("{:016}", self.nonce.get());
        let key = Key::from_hex(KEY).unwrap();
        let parts = Parts { method, path, body: &body, pod_uid: POD, at: clock::now(), nonce: &nonce, fence: 1 };
        let headers = sign(&key, &parts);
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("http://{}{path}", self.agent)).body(body);
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        request.send().await.unwrap()
    }

    pub(crate) async fn json<T: DeserializeOwned>(&self, method: &str, path: &str, body: &impl Serialize) -> T {
        let answer = self.ask(method, path, body).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    pub(crate) async fn report(&self) -> Report {
        self.json("GET", "/v1/report", &()).await
    }

    /// The first report that fits.
    pub(crate) async fn report_when(&self, what: &str, fits: impl Fn(&Report) -> bool) -> Report {
        let begun = Instant::now();
        loop {
            let report = self.report().await;
            if fits(&report) {
                return report;
            }
            assert!(begun.elapsed() < PATIENCE, "not seen in time: {what}: {report:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut fits: impl FnMut() -> F) {
    let begun = Instant::now();
    while !fits().await {
        assert!(begun.elapsed() < PATIENCE, "not seen in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) fn read_last_stop(data: &Path) -> LastStop {
    serde_json::from_slice(&fs::read(data.join(".nightshift/last-stop.json")).unwrap()).unwrap()
}
