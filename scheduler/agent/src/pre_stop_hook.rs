//! Edge (writes). `agent stop`: the preStop hook of the server's container.
//!
//! It only sends a request, and it never fails. SIGTERM stops the server when the hook has returned. Without a sidecar that answers within 2 s it
//! returns at once.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::config;

/// The timeout for the sidecar's first line.
const FIRST_LINE_TIMEOUT: Duration = Duration::from_secs(2);

/// The result of the hook, used only for the log.
#[derive(Debug, PartialEq, Eq)]
pub enum HookResult {
    /// The sidecar has prepared the stop, or no server was running. Contains the sidecar's answer.
    Done(String),
    /// No answer arrived in time, or the connection ended.
    NoAnswer(String),
}

/// Asks the sidecar to prepare the stop of the server.
pub async fn run(settings: &config::StopConfig) -> HookResult {
    let socket = settings.shared.join(config::SOCKET);
    let no_answer = |error: io::Error| HookResult::NoAnswer(format!("{}: {error}", socket.display()));
    let hello = async {
        let mut stream = UnixStream::connect(&socket).await?;
        stream.write_all(b"stop\n").await?;
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok::<_, io::Error>((lines, first))
    };
    let (mut lines, first) =
        match timeout(FIRST_LINE_TIMEOUT, hello).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(answer) => answer,
            Err(error) => return no_answer(error),
        };
    if first != "heard" {
        return HookResult::Done(first);
    }
    match timeout(Duration::from_secs(settings.stop_timeout), lines.next_line()).await {
        Ok(Ok(Some(line))) => HookResult::Done(line),
        Ok(Ok(None)) => no_answer(io::ErrorKind::UnexpectedEof.into()),
        Ok(Err(error)) => no_answer(error),
        Err(_) => no_answer(io::ErrorKind::TimedOut.into()),
    }
}
