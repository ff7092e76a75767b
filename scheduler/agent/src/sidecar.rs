//! Edge (writes). `agent sidecar`: runs beside the server for as long as the pod does, and ends shortly after the server.

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tracing::{info, warn};

use super::fetch::Fetcher;
use super::process_record::{self, ProcessRecord};
use super::state::{PreparedStop, SidecarState};
use super::{ErrorChain, api, clock, config, graceful_stop, monitor, online_backup, stage};
use crate::staging::read_record;
use artifacts::http_client::ClientError;
use artifacts::http_server;

/// The sidecar cannot start. Later failures are only logged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The port or the socket cannot be opened.
    #[error("could not listen at {address}")]
    Listen {
        /// The address or path.
        address: String,
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
        let fetcher = Fetcher::new(&settings.store_url)?;
        let listen = |address: String| move |source| Error::Listen { address, source };
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
        let sample_lock = shared.sample_lock.lock().await;
        let hooks = tokio::spawn(graceful_stop::serve(Arc::clone(&shared), socket));
        load_records(&shared).await;
        drop(sample_lock);
        // When a server is already running, a request before the first sample would be answered as if no server ran and no player were online.
        monitor::sample_once(&shared).await;
        let serving = tokio::spawn(http_server::serve(http, api::routes(Arc::clone(&shared)), api::LIMITS));
        let watching = tokio::spawn(monitor::watch(Arc::clone(&shared)));
        let reading = tokio::spawn(Arc::clone(&shared.damage).scan_periodically());
        terminated.await;
        online_backup::on_server_stopping(&shared);

        // The kubelet ends the sidecar after the server, or together with it when the grace period is over.
        {
            let mut state = shared.state();
            if !state.monitor.is_absent() && state.stop.is_none() {
                let why = "stopped by SIGTERM, without a save request from the hook".to_owned();
                let players = state.monitor.players(clock::now()).count();
                state.stop = Some(PreparedStop { saved: false, why, players });
            }
            state.monitor.stop_requested(clock::now());
        }
        shared.wake.notify_one();
        // The next pod starts when this one has ended, so there is no pause once the server has ended.
        let has_exited = || shared.state().monitor.is_absent();
        while !has_exited() {
            monitor::sample_once(&shared).await;
            if !has_exited() {
                tokio::time::sleep(monitor::STOPPING_PAUSE).await;
            }
        }
        // The task that observed the end has also recorded it when it releases this lock.
        let _lock = shared.sample_lock.lock().await;
        info!("server exited; shutting down");
        online_backup::on_agent_exit(&shared);
        for task in [watching, hooks, reading] {
            task.abort();
        }
        serving.abort();
    }
}

/// Reads the records on the volume, and cleans the store.
async fn load_records(shared: &Arc<SidecarState>) {
    let task = Arc::clone(shared);
    let read = tokio::task::spawn_blocking(move || {
        let last_stop = read_record(&task.volume.last_stop_path()).unwrap_or_default();
        let record = ProcessRecord::inherit(process_record::unended(&task.volume));
        let pruned = task.store.record_run().and_then(|()| task.store.prune_for_worlds());
        match pruned {
            Ok(dropped) => stage::log_dropped(&dropped),
            Err(error) => warn!("{}", ErrorChain(&error)),
        }
        let staged = task.store.staged(None).and_then(|staged| task.store.prune().map(|_| staged));
        let backups = task.settings.backups.as_ref();
        let last_online_backup =
            backups.and_then(|backups| online_backup::load_last(&task.volume, backups, clock::now()));
        (last_stop, record, staged, last_online_backup)
    });
    match read.await {
        Ok((last_stop, record, staged, last_online_backup)) => {
            let staged = staged.unwrap_or_else(|error| {
                warn!("{}", ErrorChain(&error));
                Vec::new()
            });
            let mut state = shared.state();
            (state.last_stop, state.record) = (last_stop, record);
            state.staged = staged;
            state.last_online_backup = last_online_backup;
        }
        Err(error) => warn!("{error}"),
    }
}
