//! Edge (writes). Provides a minimal fake server that answers pings and RCON, and records its commands.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) const PASSWORD: &str = "right";

#[derive(Default)]
pub(crate) struct FakeServerState {
    pub(crate) players: u32,
    pub(crate) connections: usize,
    pub(crate) commands: Vec<String>,
    /// How long a ping waits for an answer.
    pub(crate) ping_delay: Duration,
    /// Its answers to `save-off` and `save-all flush`, if they differ from a normal server's.
    pub(crate) odd_answers: BTreeMap<&'static str, &'static str>,
    /// Commands at which it closes the connection without an answer.
    pub(crate) unanswered: BTreeSet<&'static str>,
}

pub(crate) struct Paper {
    pub(crate) state: Arc<Mutex<FakeServerState>>,
    game: JoinHandle<()>,
    rcon: JoinHandle<()>,
}

impl Paper {
    pub(crate) async fn start(game: SocketAddr, rcon: SocketAddr, players: u32) -> Self {
        let state = Arc::new(Mutex::new(FakeServerState { players, ..FakeServerState::default() }));
        let (game, rcon) = (TcpListener::bind(game).await.unwrap(), TcpListener::bind(rcon).await.unwrap());
        let shared = Arc::clone(&state);
        let game = tokio::spawn(async move {
            loop {
                let (stream, _) = game.accept().await.unwrap();
                let (players, thinks) = {
                    let state = shared.lock().unwrap();
                    (state.players, state.ping_delay)
                };
                tokio::spawn(async move {
                    tokio::time::sleep(thinks).await;
                    status(stream, players).await;
                });
            }
        });
        let shared = Arc::clone(&state);
        let rcon = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            loop {
                let (stream, _) = rcon.accept().await.unwrap();
                shared.lock().unwrap().connections += 1;
                let shared = Arc::clone(&shared);
                clients.spawn(async move { console(stream, &shared).await });
            }
        });
        Self { state, game, rcon }
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        self.state.lock().unwrap().commands.clone()
    }

    /// Its process ends.
    pub(crate) fn end(&self) {
        self.game.abort();
        self.rcon.abort();
    }
}

async fn status(mut stream: TcpStream, players: u32) {
    let mut request = [0; 22];
    let _ = stream.read_exact(&mut request).await;
    let json = format!(
        r#"{{"version":{{"name":"Paper 1.21.10","protocol":773}},"players":{{"max":20,"online":{players:02}}}}}"#
    )
    .replace(":0", ":");
    let length = u8::try_from(json.len()).expect("the answer is short");
    assert!(length < 126, "the length must fit into one byte");
    let _ = stream.write_all(&[&[length + 2, 0, length], json.as_bytes()].concat()).await;
}

/// Serves one connection.
async fn console(mut stream: TcpStream, state: &Mutex<FakeServerState>) {
    let mut bytes = vec![0; 4096];
    loop {
        let count = stream.read(&mut bytes).await.unwrap_or(0);
        if count < 14 {
            return;
        }
        let field = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (id, kind) = (field(4), field(8));
        let body = String::from_utf8(bytes[12..count - 2].to_vec()).unwrap();
        if kind == 3 {
            let id = if body == PASSWORD { id } else { -1 };
            stream.write_all(&packet(id, 2, "")).await.unwrap();
            continue;
        }
        let odd = state.lock().unwrap().odd_answers.get(body.as_str()).map(|text| (*text).to_owned());
        let reply = match body.as_str() {
            _ if odd.is_some() => odd.unwrap_or_default(),
            "minecraft:save-off" => "Automatic saving is now disabled".to_owned(),
            "minecraft:save-on" => "Automatic saving is now enabled".to_owned(),
            "minecraft:list" => {
                format!("There are {} of a max of 20 players online: ", state.lock().unwrap().players)
            }
            "minecraft:save-all flush" => "Saving the game (this may take a moment!)Saved the game".to_owned(),
            "bukkit:plugins" => {
                "§fServer Plugins (2):\n§x§e§d§8§1§0§6Bukkit Plugins (2):\n §8- §aDemo§f, §cRed\n".to_owned()
            }
            _ => String::new(),
        };
        let is_unanswered = state.lock().unwrap().unanswered.contains(body.as_str());
        state.lock().unwrap().commands.push(body);
        if is_unanswered {
            return;
        }
        stream.write_all(&packet(id, 0, &reply)).await.unwrap();
    }
}

fn packet(id: i32, kind: i32, body: &str) -> Vec<u8> {
    let length = i32::try_from(10 + body.len()).unwrap();
    [&length.to_le_bytes()[..], &id.to_le_bytes(), &kind.to_le_bytes(), body.as_bytes(), &[0, 0]].concat()
}
