//! Edge (writes). Serves HTTP to clients that may be hostile: bounds the connections, their headers and their time.
//!
//! A connection carries one request. When all connections are in use, the server drops the oldest one of the address that has the
//! most, so that a client with few connections is still served. A handler can exempt its connection ([`Connection::trust`]).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tracing::{debug, warn};

/// Limit of a request's headers in bytes. Each connection has a buffer of this size, the smallest that the HTTP library allows.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// Pause after a connection could not be accepted, usually because the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The bounds of one port.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at the same time.
    pub connections: usize,
    /// From the start of a connection until its headers are complete.
    pub header_time: Duration,
    /// From the start of a connection until the response is sent.
    pub total_time: Duration,
}

/// The connection of a request, for its handler: an extension of the request.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    trusted: Arc<AtomicBool>,
}

impl Connection {
    /// Exempts the connection from being dropped for another one. Call it when the client has proved who it is.
    pub fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }

    fn is_trusted(&self) -> bool {
        self.trusted.load(Ordering::Relaxed)
    }
}

/// Serves `service` until the future is dropped. Connections that are open then are completed.
pub async fn serve<S, B>(listener: TcpListener, service: S, limits: Limits) -> Infallible
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = TowerToHyperService::new(service);
    let mut open = OpenConnections::default();
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if !open.make_room(limits.connections) {
            continue;
        }
        let connection = Connection::default();
        let served = serve_connection(stream, service.clone(), connection.clone(), limits);
        open.add(client.ip(), connection, tokio::spawn(served).abort_handle());
    }
}

/// Whether the client caused the error, so that the next connection can be accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

async fn serve_connection<S, B>(
    stream: TcpStream,
    service: TowerToHyperService<S>,
    connection: Connection,
    limits: Limits,
) where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        service.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(MAX_HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(limits.total_time, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection failed"),
        Err(_) => debug!("dropped a connection that took too long"),
    }
}

struct OpenConnection {
    client: IpAddr,
    connection: Connection,
    task: AbortHandle,
}

/// The open connections, in the order in which they were accepted. Some may have ended.
#[derive(Default)]
struct OpenConnections(Vec<OpenConnection>);

impl OpenConnections {
    fn add(&mut self, client: IpAddr, connection: Connection, task: AbortHandle) {
        self.0.push(OpenConnection { client, connection, task });
    }

    /// Makes room for one more of `limit` connections. False if all are in use and trusted.
    fn make_room(&mut self, limit: usize) -> bool {
        if self.0.len() >= limit {
            self.0.retain(|open| !open.task.is_finished());
        }
        if self.0.len() < limit {
            return true;
        }
        let Some(position) = self.oldest_of_largest_client() else { return false };
        self.0.remove(position).task.abort();
        true
    }

    /// The oldest connection that is not trusted, of the address that has the most of them.
    fn oldest_of_largest_client(&self) -> Option<usize> {
        let untrusted = || self.0.iter().filter(|open| !open.connection.is_trusted());
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        untrusted().for_each(|open| *counts.entry(open.client).or_default() += 1);
        let most = counts.values().max()?;
        self.0.iter().position(|open| !open.connection.is_trusted() && counts[&open.client] == *most)
    }
}

#[cfg(test)]
mod tests;
