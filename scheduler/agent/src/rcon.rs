//! Edge (writes). Controls a Minecraft server's console over RCON: typed commands, a timeout for every wait, one command in flight.
//!
//! The `rcon` crate implements the protocol. It is used in the mode that expects one packet per reply and sends no end marker. Real servers lose
//! or refuse a second packet that arrives together with the first, even 100 ms later (`rcon-facts.md`, 2.3). Commands always include their
//! namespace, because plugins replace the bare names. An unanswered command may have run.

pub(crate) mod frame_validator;
pub mod responses;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use frame_validator::PacketGuard;
pub use responses::Online;
use responses::TitleKind;

/// The longest body that a server reads, in bytes. It drops a longer one silently (measured: 1446 works, 1447 does not).
pub const MAX_COMMAND_BYTES: usize = 1446;

/// A server splits replies at this many UTF-16 units. A reply of exactly this length may continue in another packet.
const FULL_PACKET: usize = 4096;

/// The timeout for connecting and for the password. A separate thread of the server answers both, so a tick stall does not matter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The password of RCON. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct RconPassword(String);

impl RconPassword {
    /// Takes the text from the Secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, only for the server's own file and for the connection.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RconPassword {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for RconPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// Why a command has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is closed, or the network blocks the connection.
    #[error("RCON at {address} cannot be reached")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The server refused the password. Retrying does not help.
    #[error(
        "RCON at {address} refuses the password: another program may have changed `rcon.password` in \
    server.properties"
    )]
    WrongPassword {
        /// The address.
        address: SocketAddr,
    },
    /// The connection ended before the password was answered: a server that is starting, stopping or very old. The password may be right.
    #[error("RCON at {address} closed the connection before it answered the password")]
    ClosedBeforeAnswer {
        /// The address.
        address: SocketAddr,
        /// The error of the socket.
        #[source]
        source: io::Error,
    },
    /// No answer arrived in time. The command may have run. Its answer may still arrive, so the connection is closed.
    #[error("no answer to `{command}` within {seconds} s. The command may have run")]
    Timeout {
        /// The command without its arguments.
        command: &'static str,
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The connection ended between command and answer. The command may have run.
    #[error("the connection closed before `{command}` was answered. The command may have run")]
    Disconnected {
        /// The command without its arguments.
        command: &'static str,
        /// The error of the socket.
        #[source]
        source: io::Error,
    },
    /// The command was not sent.
    #[error("`{command}` with its text has {bytes} bytes, a server reads at most {MAX_COMMAND_BYTES}")]
    TooLong {
        /// The command without its arguments.
        command: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The answer is longer than one packet, and the rest was not awaited.
    #[error("the answer to `{command}` does not fit into one packet, so it is not complete")]
    Incomplete {
        /// The command without its arguments.
        command: &'static str,
    },
}

/// A console that the first command opens. [`Console::close`] or dropping it closes it.
///
/// A real server logs two lines for each connection, so one task uses one console.
pub struct Console {
    address: SocketAddr,
    password: RconPassword,
    connection: Option<rcon::Connection<PacketGuard<TcpStream>>>,
}

impl Console {
    /// A console at `address`. No data is sent yet.
    pub fn new(address: SocketAddr, password: RconPassword) -> Self {
        Self { address, password, connection: None }
    }

    /// Closes the connection, if one is open. The next command opens a new one.
    pub fn close(&mut self) {
        self.connection = None;
    }

    /// Whether a connection is open.
    pub fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Connects and sends the password, if this has not been done yet.
    pub async fn open(&mut self) -> Result<(), Error> {
        if self.connection.is_none() {
            self.connection = Some(self.connect().await?);
        }
        Ok(())
    }

    /// The players online, by `minecraft:list`. A text without the two numbers is [`Online::Unknown`].
    pub async fn list(&mut self, within: Duration) -> Result<Online, Error> {
        Ok(responses::online(&self.execute("minecraft:list", "", within).await?))
    }

    /// Saves the world to disk and returns the server's answer. It succeeded only if [`responses::confirms_save`] finds the confirmation in it.
    pub async fn save_flush(&mut self, within: Duration) -> Result<String, Error> {
        self.execute("minecraft:save-all", " flush", within).await
    }

    /// Has the server write its world: changed data, and data that it has written before. Returns the server's answer, as [`Self::save_flush`]
    /// does.
    pub async fn save(&mut self, within: Duration) -> Result<String, Error> {
        self.execute("minecraft:save-all", "", within).await
    }

    /// Whether the server has this dimension (`minecraft:creative`) open. `None`: the answer confirms neither.
    pub async fn has_dimension(&mut self, key: &str, within: Duration) -> Result<Option<bool>, Error> {
        let answer = self.execute("minecraft:execute", &responses::in_dimension_arguments(key), within).await?;
        Ok(responses::has_dimension(&answer))
    }

    /// Switches autosave off and returns the server's answer, for [`responses::saving`].
    pub async fn save_off(&mut self, within: Duration) -> Result<String, Error> {
        self.execute("minecraft:save-off", "", within).await
    }

    /// Switches autosave on and returns the server's answer, for [`responses::saving`].
    pub async fn save_on(&mut self, within: Duration) -> Result<String, Error> {
        self.execute("minecraft:save-on", "", within).await
    }

    /// The plugins by name, true for enabled (green) ones. `None` if the text is not such a list.
    pub async fn plugins(&mut self, within: Duration) -> Result<Option<BTreeMap<String, bool>>, Error> {
        Ok(responses::plugins(&self.execute("bukkit:plugins", "", within).await?))
    }

    /// Shows a text in the chat to all players.
    pub async fn tellraw_all(&mut self, text: &str, within: Duration) -> Result<(), Error> {
        self.execute("minecraft:tellraw", &responses::tellraw_arguments(text), within).await.map(drop)
    }

    /// Shows the first line of a text above the hotbar to all players. It fades after three seconds.
    pub async fn action_bar_all(&mut self, text: &str, within: Duration) -> Result<(), Error> {
        self.execute("minecraft:title", &responses::title_arguments(TitleKind::ActionBar, text), within).await.map(drop)
    }

    /// Shows `title` in large letters to all players, with the first line of `below` beneath it. The duration follows the players' own setting or
    /// that of another plugin, and is not changed.
    pub async fn title_all(&mut self, title: &str, below: &str, within: Duration) -> Result<(), Error> {
        // The subtitle waits for its title.
        self.execute("minecraft:title", &responses::title_arguments(TitleKind::Subtitle, below), within).await?;
        self.execute("minecraft:title", &responses::title_arguments(TitleKind::Title, title), within).await.map(drop)
    }

    /// Disconnects all players, with a reason that they read. It also succeeds without players.
    pub async fn kick_all(&mut self, reason: &str, within: Duration) -> Result<(), Error> {
        self.execute("minecraft:kick", &responses::kick_arguments(reason), within).await.map(drop)
    }

    async fn connect(&self) -> Result<rcon::Connection<PacketGuard<TcpStream>>, Error> {
        let address = self.address;
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        let stream =
            tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.unwrap_or_else(|_| Err(late()));
        let stream = stream.map_err(|source| Error::Unreachable { address, source })?;
        // A packet must arrive in one read, and at once.
        stream.set_nodelay(true).map_err(|source| Error::Unreachable { address, source })?;
        let handshake = rcon::Connection::builder()
            .enable_factorio_quirks(true)
            .handshake(PacketGuard::new(stream), self.password.expose());
        match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(rcon::Error::Auth)) => Err(Error::WrongPassword { address }),
            Ok(Err(other)) => Err(Error::ClosedBeforeAnswer { address, source: into_io(other) }),
            Err(_) => Err(Error::ClosedBeforeAnswer { address, source: late() }),
        }
    }

    /// Sends one command and reads one answer. The connection is kept only if the whole answer arrived in time.
    async fn execute(&mut self, command: &'static str, arguments: &str, within: Duration) -> Result<String, Error> {
        let body = format!("{command}{arguments}");
        if body.len() > MAX_COMMAND_BYTES {
            return Err(Error::TooLong { command, bytes: body.len() });
        }
        self.open().await?;
        // Taken out, so that a cancelled caller (a select, an abort) leaves no connection with a late answer behind.
        let mut connection = self.connection.take().expect("`open` has set the connection");
        let answer = with_timeout(command, within, connection.cmd(&body)).await?;
        if answer.encode_utf16().count() == FULL_PACKET {
            return Err(Error::Incomplete { command });
        }
        self.connection = Some(connection);
        Ok(answer)
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("address", &self.address).field("open", &self.is_open()).finish_non_exhaustive()
    }
}

async fn with_timeout(
    command: &'static str,
    within: Duration,
    answer: impl Future<Output = rcon::Result<String>>,
) -> Result<String, Error> {
    match tokio::time::timeout(within, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::Disconnected { command, source: into_io(source) }),
        Err(_) => Err(Error::Timeout { command, seconds: within.as_secs() }),
    }
}

fn into_io(error: rcon::Error) -> io::Error {
    match error {
        rcon::Error::Io(error) => error,
        other @ (rcon::Error::Auth | rcon::Error::CommandTooLong) => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
