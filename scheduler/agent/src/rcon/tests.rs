//! Edge (writes). Checks the console against a small fake server, which misbehaves in each way that real ones were observed to.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The fake server's reply to one command.
enum Reply {
    Text(String),
    Nothing,
    Close,
}

fn packet(id: i32, kind: i32, body: &str) -> Vec<u8> {
    let length = i32::try_from(10 + body.len()).unwrap();
    let mut bytes = Vec::new();
    for number in [length, id, kind] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(body.as_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes
}

/// Serves connection after connection. Each command is sent to the test and answered with the next reply.
async fn serve(mut replies: Vec<Reply>) -> (SocketAddr, mpsc::UnboundedReceiver<(usize, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, commands) = mpsc::unbounded_channel();
    replies.reverse();
    tokio::spawn(async move {
        let mut open_streams = Vec::new();
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            loop {
                // As in a real server, one read must contain exactly one packet.
                let count = stream.read(&mut bytes).await.unwrap_or(0);
                if count < 14 {
                    break;
                }
                let field = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                assert_eq!(usize::try_from(field(0)).unwrap() + 4, count, "one packet per read");
                let (id, kind) = (field(4), field(8));
                let body = String::from_utf8(bytes[12..count - 2].to_vec()).unwrap();
                if kind == 3 {
                    let id = if body == "right" { id } else { -1 };
                    stream.write_all(&packet(id, 2, "")).await.unwrap();
                    continue;
                }
                sender.send((number, body)).unwrap();
                match replies.pop() {
                    Some(Reply::Text(text)) => stream.write_all(&packet(id, 0, &text)).await.unwrap(),
                    Some(Reply::Nothing) => {
                        open_streams.push(stream);
                        break;
                    }
                    Some(Reply::Close) | None => break,
                }
            }
        }
    });
    (address, commands)
}

fn console(address: SocketAddr) -> Console {
    Console::new(address, RconPassword::new("right"))
}

#[tokio::test]
async fn commands_of_one_session_share_connection_and_carry_namespaces() {
    let saved = "Saving the game (this may take a moment!)Saved the game";
    let (address, mut commands) = serve(vec![
        Reply::Text("There are 2 of a max of 20 players online: A, B".into()),
        Reply::Text(String::new()),
        Reply::Text(saved.into()),
        Reply::Text("§fServer Plugins (1):\n§x§e§d§8§1§0§6Bukkit Plugins:\n §8- §aDemo\n".into()),
    ])
    .await;
    let mut console = console(address);
    assert_eq!(console.list(TIMEOUT).await.unwrap(), Online::Known { count: 2, max: 20 });
    console.tellraw_all("The server restarts", TIMEOUT).await.unwrap();
    assert!(responses::confirms_save(&console.save_flush(TIMEOUT).await.unwrap()));
    assert_eq!(console.plugins(TIMEOUT).await.unwrap(), Some(BTreeMap::from([("Demo".into(), true)])));
    for expected in [
        "minecraft:list",
        r#"minecraft:tellraw @a {"color":"yellow","text":"The server restarts"}"#,
        "minecraft:save-all flush",
        "bukkit:plugins",
    ] {
        assert_eq!(commands.recv().await.unwrap(), (0, expected.to_owned()));
    }
}

#[tokio::test]
async fn wrong_password_closed_connection_and_no_listener_are_distinguished() {
    let (address, _commands) = serve(vec![]).await;
    let error = Console::new(address, RconPassword::new("wrong")).open().await.unwrap_err();
    assert!(matches!(error, Error::WrongPassword { .. }), "{error:?}");

    let closing = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closing.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = closing.accept().await.unwrap();
        let mut bytes = [0; 64];
        let _ = stream.read(&mut bytes).await;
    });
    let error = console(address).open().await.unwrap_err();
    assert!(matches!(error, Error::ClosedBeforeAnswer { .. }), "{error:?}");
    server.await.unwrap();

    let error = console(address).open().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn late_response_is_never_taken_for_next_one() {
    let (address, mut commands) =
        serve(vec![Reply::Nothing, Reply::Text("There are 0 of a max of 20 players online: ".into())]).await;
    let mut console = console(address);
    let error = console.save_flush(Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { command: "minecraft:save-all", .. }), "{error:?}");
    assert!(!console.is_open());
    assert_eq!(console.list(TIMEOUT).await.unwrap(), Online::Known { count: 0, max: 20 });
    assert_eq!(commands.recv().await.unwrap().0, 0);
    assert_eq!(commands.recv().await.unwrap(), (1, "minecraft:list".to_owned()), "on a new connection");
}

#[tokio::test]
async fn cancelled_caller_leaves_no_connection_behind() {
    let (address, mut commands) = serve(vec![Reply::Nothing]).await;
    let mut console = console(address);
    tokio::select! {
        _ = console.save_flush(TIMEOUT) => panic!("the server must not answer"),
        command = commands.recv() => assert_eq!(command.unwrap().1, "minecraft:save-all flush"),
    }
    assert!(!console.is_open());
}

#[tokio::test]
async fn response_of_exactly_4096_units_counts_as_incomplete() {
    for (length, whole) in [(4095, true), (4096, false)] {
        let (address, _commands) = serve(vec![Reply::Text("☃".repeat(length))]).await;
        let mut console = console(address);
        let answer = console.save_flush(TIMEOUT).await;
        assert_eq!(answer.is_ok(), whole, "{length}");
        assert_eq!(console.is_open(), whole, "{length}");
    }
}

#[tokio::test]
async fn command_too_long_for_server_is_refused_before_sending() {
    let (address, mut commands) = serve(vec![Reply::Text(String::new())]).await;
    let mut console = console(address);
    let around = format!("minecraft:tellraw{}", responses::tellraw_arguments("")).len();
    let error = console.tellraw_all(&"x".repeat(MAX_COMMAND_BYTES - around + 1), TIMEOUT).await.unwrap_err();
    assert!(matches!(error, Error::TooLong { bytes: 1447, .. }), "{error:?}");
    console.tellraw_all(&"x".repeat(MAX_COMMAND_BYTES - around), TIMEOUT).await.unwrap();
    assert_eq!(commands.recv().await.unwrap().1.len(), MAX_COMMAND_BYTES);
}

#[tokio::test]
async fn connection_closed_without_response_is_error() {
    let (address, _commands) = serve(vec![Reply::Close]).await;
    let error = console(address).save_flush(TIMEOUT).await.unwrap_err();
    assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
}

#[test]
fn password_is_never_printed() {
    let console = Console::new("127.0.0.1:1".parse().unwrap(), RconPassword::new("hunter2"));
    assert!(!format!("{console:?} {:?}", RconPassword::new("hunter2")).contains("hunter2"));
}
