//! Edge (reads). Reads a Minecraft server's entry in the server list with a ping, which causes no line in the server's log.
//!
//! It is the status exchange of the protocol since 1.7 (<https://minecraft.wiki/w/Java_Edition_protocol/Server_List_Ping>): one connection, a
//! handshake that announces it, an empty request, a JSON answer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More than any server sends, in bytes: the JSON has at most 32767 characters, including a favicon.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// The content of a server's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusResponse {
    /// The Minecraft version alone: `Paper 1.21.10` is cut to `1.21.10`.
    pub minecraft: String,
    /// The number of players online. `None` if the server hides it. A plugin may fake it, so it may delay an update but proves nothing.
    pub online: Option<u32>,
    /// The maximum number of players.
    pub max: Option<u32>,
}

/// Why no answer is available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is closed: no server, or one that is starting or stopping.
    #[error("nothing listens at {address}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// The error of the socket.
        #[source]
        source: io::Error,
    },
    /// The port is open and silent: a server that is starting, a tick stall, or a hang.
    #[error("no answer to the server-list ping within {milliseconds} ms")]
    Silent {
        /// The timeout in milliseconds.
        milliseconds: u128,
    },
    /// The connection ended early.
    #[error("the server-list ping was cut off")]
    Cut(#[source] io::Error),
    /// The peer is not a Minecraft server, or does not answer like one.
    #[error("could not read the answer to the server-list ping: {problem}")]
    Garbled {
        /// The invalid part.
        problem: &'static str,
    },
}

impl Error {
    /// Whether the port is closed.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

/// Pings the server at `address`. `within` limits the whole exchange.
pub async fn ping(address: SocketAddr, within: Duration) -> Result<StatusResponse, Error> {
    let silent = |_| Error::Silent { milliseconds: within.as_millis() };
    tokio::time::timeout(within, exchange(address)).await.map_err(silent)?
}

async fn exchange(address: SocketAddr) -> Result<StatusResponse, Error> {
    let stream = TcpStream::connect(address).await;
    let mut stream = stream.map_err(|source| Error::Refused { address, source })?;
    let mut handshake = vec![0x00];
    // -1: the client does not know the version yet, and requests it.
    push_varint(&mut handshake, -1);
    let host = address.ip().to_string();
    push_length(&mut handshake, host.len());
    handshake.extend_from_slice(host.as_bytes());
    handshake.extend_from_slice(&address.port().to_be_bytes());
    push_varint(&mut handshake, 1);
    let mut bytes = Vec::new();
    push_length(&mut bytes, handshake.len());
    bytes.extend_from_slice(&handshake);
    bytes.extend_from_slice(&[1, 0x00]);
    stream.write_all(&bytes).await.map_err(Error::Cut)?;
    read_answer(&mut stream).await
}

/// Reads the packet with the answer.
pub(crate) async fn read_answer(stream: &mut (impl AsyncReadExt + Unpin)) -> Result<StatusResponse, Error> {
    let garbled = |problem| Error::Garbled { problem };
    let length = read_length(stream).await?;
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await.map_err(Error::Cut)?;
    let body = packet.strip_prefix(&[0x00]).ok_or(garbled("it is not a status packet"))?;
    let mut rest = body;
    let json_length = read_length(&mut rest).await?;
    let json = rest.get(..json_length).ok_or(garbled("its text is shorter than it says"))?;
    read_status(json).ok_or(garbled("its JSON has no version"))
}

#[derive(Deserialize)]
struct Status {
    version: StatusVersion,
    players: Option<StatusPlayers>,
}

#[derive(Deserialize)]
struct StatusVersion {
    name: String,
}

#[derive(Deserialize)]
struct StatusPlayers {
    online: i64,
    max: i64,
}

/// Reads the JSON of an answer.
fn read_status(json: &[u8]) -> Option<StatusResponse> {
    let Status { version, players } = serde_json::from_slice(json).ok()?;
    let number = |read: fn(&StatusPlayers) -> i64| players.as_ref().and_then(|players| read(players).try_into().ok());
    Some(StatusResponse {
        minecraft: minecraft_version(&version.name).to_owned(),
        online: number(|players| players.online),
        max: number(|players| players.max),
    })
}

/// The last word that starts with a digit: `Paper 1.21.10` and `1.21.10` become `1.21.10`. Other names stay whole.
fn minecraft_version(name: &str) -> &str {
    let mut versions = name.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    versions.next_back().unwrap_or(name)
}

/// Reads the protocol's variable-length number, of at most 5 bytes, for a length within the limits.
async fn read_length(stream: &mut (impl AsyncReadExt + Unpin)) -> Result<usize, Error> {
    let mut value = 0_usize;
    for index in 0..5 {
        let byte = stream.read_u8().await.map_err(Error::Cut)?;
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return if value <= MAX_RESPONSE_BYTES {
                Ok(value)
            } else {
                Err(Error::Garbled { problem: "it is too long" })
            };
        }
    }
    Err(Error::Garbled { problem: "its length has no end" })
}

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    push_varint(bytes, i32::try_from(length).expect("host names and packets are short"));
}

fn push_varint(bytes: &mut Vec<u8>, value: i32) {
    let mut value = value.cast_unsigned();
    while value > 0x7f {
        bytes.push(0x80 | value.to_le_bytes()[0] & 0x7f);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests;
