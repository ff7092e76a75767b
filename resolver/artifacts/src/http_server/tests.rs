//! Edge (writes). Tests the bounds of a port against hostile clients.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::*;

const LIMITS: Limits =
    Limits { connections: 4, header_time: Duration::from_millis(200), total_time: Duration::from_mins(1) };

/// Answers `/` at once, and other paths when it is told to. `/trusted` is an authenticated request.
#[derive(Clone)]
struct Handler {
    received: mpsc::UnboundedSender<String>,
    release: watch::Receiver<bool>,
}

impl tower_service::Service<Request<Incoming>> for Handler {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let path = request.uri().path().to_owned();
        if path == "/trusted" {
            request.extensions().get::<Connection>().unwrap().trust();
        }
        let mut release = self.release.clone();
        self.received.send(path.clone()).unwrap();
        Box::pin(async move {
            if path != "/" {
                release.wait_for(|is_released| *is_released).await.unwrap();
            }
            Ok(Response::new("hello".to_owned()))
        })
    }
}

struct Server {
    address: SocketAddr,
    received: mpsc::UnboundedReceiver<String>,
    release: watch::Sender<bool>,
    task: JoinHandle<Infallible>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn new(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::unbounded_channel();
        let (release, released) = watch::channel(false);
        let task = tokio::spawn(serve(listener, Handler { received: sender, release: released }, limits));
        Self { address, received, release, task }
    }

    /// Connects from this address of the loopback interface, and sends `text`.
    async fn send(&self, from: &str, text: &str) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        let mut stream = socket.connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// A request that the handler has received and does not answer.
    async fn wait(&mut self, from: &str, path: &str) -> TcpStream {
        let stream = self.send(from, &format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        while self.received.recv().await.unwrap() != path {}
        stream
    }
}

/// All that the server sends until it closes the connection.
async fn read_to_end(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    // A server that closes with unread input resets the connection.
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        bytes.extend_from_slice(&part[..count]);
    }
    String::from_utf8(bytes).unwrap()
}

const REQUEST: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn connection_carries_one_request() {
    let server = Server::new(LIMITS).await;
    let answer = read_to_end(server.send("127.0.0.1", &REQUEST.repeat(2)).await).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    assert_eq!(answer.matches("hello").count(), 1, "{answer}");
}

#[tokio::test]
async fn unfinished_headers_end_connection_in_time() {
    let server = Server::new(LIMITS).await;
    for start in ["", "GET / HTTP/1.1\r\nhost: a\r\n"] {
        let answer = read_to_end(server.send("127.0.0.1", start).await).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}

#[tokio::test]
async fn unanswered_request_ends_with_total_time() {
    let mut server = Server::new(Limits { total_time: Duration::from_millis(300), ..LIMITS }).await;
    let stream = server.wait("127.0.0.1", "/slow").await;
    assert_eq!(read_to_end(stream).await, "");
}

#[tokio::test]
async fn long_headers_are_refused() {
    let server = Server::new(LIMITS).await;
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(3 * MAX_HEADER_BYTES));
    let answer = read_to_end(server.send("127.0.0.1", &long).await).await;
    // The answer is lost when the reset overtakes it.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn full_server_drops_oldest_connection_of_largest_client() {
    let mut server = Server::new(LIMITS).await;
    let quiet = server.wait("127.0.0.2", "/slow").await;
    let oldest = server.wait("127.0.0.1", "/slow").await;
    let second = server.wait("127.0.0.1", "/slow").await;
    let third = server.wait("127.0.0.1", "/slow").await;
    let new = server.send("127.0.0.3", REQUEST).await;
    assert_eq!(read_to_end(oldest).await, "");
    assert!(read_to_end(new).await.contains("hello"));
    server.release.send(true).unwrap();
    for kept in [quiet, second, third] {
        assert!(read_to_end(kept).await.contains("hello"), "it was dropped");
    }
}

#[tokio::test]
async fn trusted_connection_is_kept_under_attack() {
    let mut server = Server::new(LIMITS).await;
    let trusted = server.wait("127.0.0.1", "/trusted").await;
    let mut hostile = Vec::new();
    for _ in 0..100 {
        hostile.push(server.wait("127.0.0.1", "/slow").await);
    }
    server.release.send(true).unwrap();
    assert!(read_to_end(trusted).await.contains("hello"), "it was dropped");
    let mut full = Server::new(Limits { connections: 1, ..LIMITS }).await;
    let kept = full.wait("127.0.0.1", "/trusted").await;
    assert_eq!(read_to_end(full.send("127.0.0.2", REQUEST).await).await, "", "all connections are trusted");
    full.release.send(true).unwrap();
    assert!(read_to_end(kept).await.contains("hello"), "it was dropped");
}
