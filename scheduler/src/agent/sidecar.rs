//! Edge (writes). `agent sidecar`: runs beside the server for as long as the pod does, and ends shortly after the server.

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tracing::{info, warn};

use super::fetch::Fetcher;
use super::process_record::{self, ProcessRecord};
use super::state::{SidecarState, StopSent};
use super::{Chain, api, clock, config, damage_scan, graceful_stop, monitor, online_backup, stage};

/// The sidecar cannot start. Later failures are only logged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client cannot be created.
    #[error("could not make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// The port or the socket cannot be opened.
    #[error("could not listen at {place}")]
    Listen {
        /// The address or path.
        place: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A sidecar that is listening.
#[derive(Debug)]
pub struct Sidecar {
    shared: Arc<SidecarState>,
    http: TcpListener,
    socket: tokio::net::UnixListener,
}

impl Sidecar {
    /// Opens the port and the socket.
    pub async fn bind(settings: config::SidecarConfig) -> Result<Self, Error> {
        let fetcher = Fetcher::new(&settings.store_url).map_err(Error::Client)?;
        let listen = |place: String| move |source| Error::Listen { place, source };
        let http = TcpListener::bind(settings.listen).await.map_err(listen(settings.listen.to_string()))?;
        let path = settings.shared.join(config::SOCKET);
        let socket = graceful_stop::listen(&path).map_err(listen(path.display().to_string()))?;
        Ok(Self { shared: Arc::new(SidecarState::new(settings, fetcher, clock::now())), http, socket })
    }

    /// The address on which requests are served.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.http.local_addr()
    }

    /// Runs until `terminated` completes, and then until the server has ended.
    pub async fn run(self, terminated: impl Future<Output = ()>) {
        let Self { shared, http, socket } = self;
        // An early hook waits before it takes its sample. Otherwise the restored state would overwrite what the hook has observed.
        let turn = shared.look_turn.lock().await;
        let hooks = tokio::spawn(graceful_stop::serve(Arc::clone(&shared), socket));
        remember(&shared).await;
        drop(turn);
        // When a server is already running, a request before the first sample would be told that none runs and that nobody is online.
        monitor::look_once(&shared).await;
        let serving = tokio::spawn(axum::serve(http, api::routes(Arc::clone(&shared))).into_future());
        let watching = tokio::spawn(monitor::watch(Arc::clone(&shared)));
        let reading = tokio::spawn(damage_scan::keep(Arc::clone(&shared)));
        terminated.await;
        online_backup::server_stops(&shared);

        // The kubelet ends the sidecar after the server, or together with it when the grace period is over.
        {
            let mut state = shared.state();
            if !state.witness.is_absent() && state.stop.is_none() {
                let why = "ended by SIGTERM; the hook had not asked this agent to save".to_owned();
                let players = state.witness.players(clock::now()).count();
                state.stop = Some(StopSent { saved: false, why, players });
            }
            state.witness.stop_sent(clock::now());
        }
        shared.wake.notify_one();
        // The next pod starts when this one has ended, so there is no pause once the server has ended.
        let is_gone = || shared.state().witness.is_absent();
        while !is_gone() {
            monitor::look_once(&shared).await;
            if !is_gone() {
                tokio::time::sleep(monitor::ENDING).await;
            }
        }
        // The task that observed the end has also recorded it when it releases this lock.
        let _turn = shared.look_turn.lock().await;
        info!("the server is gone, and so am I");
        online_backup::agent_ends(&shared);
        for task in [watching, hooks, reading] {
            task.abort();
        }
        serving.abort();
    }
}

/// Reads the records on the volume, and cleans the store.
async fn remember(shared: &Arc<SidecarState>) {
    let task = Arc::clone(shared);
    let read = tokio::task::spawn_blocking(move || {
        let last_stop = std::fs::read(task.volume.last_stop_path()).ok();
        let last_stop = last_stop.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let record = ProcessRecord::inherit(process_record::unended(&task.volume));
        let kept = task.store.note_run().and_then(|()| task.store.thin_out());
        match kept {
            Ok(dropped) => stage::say_dropped(&dropped),
            Err(error) => warn!("{}", Chain(&error)),
        }
        let staged = task.store.staged(None).and_then(|staged| task.store.prune().map(|_| staged));
        let backups = task.settings.backups.as_ref();
        let hot = backups.and_then(|backups| online_backup::remembered(&task.volume, backups, clock::now()));
        (last_stop, record, staged, hot)
    });
    match read.await {
        Ok((last_stop, record, staged, hot)) => {
            let staged = staged.unwrap_or_else(|error| {
                warn!("{}", Chain(&error));
                Vec::new()
            });
            let mut state = shared.state();
            (state.last_stop, state.record) = (last_stop, record);
            state.staged = staged;
            state.hot = hot;
        }
        Err(error) => warn!("{error}"),
    }
}
