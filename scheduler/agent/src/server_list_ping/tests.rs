//! Edge (reads). Checks the ping against small fake servers.

use tokio::net::TcpListener;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A listener that reads the request (22 bytes for this address) and answers `bytes` in pieces of `piece` bytes.
async fn serve_bytes(bytes: Vec<u8>, piece: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 22];
        stream.read_exact(&mut request).await.unwrap();
        assert_eq!(&request[..8], &[19, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 9], "length, id, version -1, host length");
        assert_eq!(&request[8..17], b"127.0.0.1");
        assert_eq!(u16::from_be_bytes([request[17], request[18]]), address.port());
        assert_eq!(&request[19..], &[1, 1, 0][..], "next state 1, then the empty request");
        for piece in bytes.chunks(piece) {
            if stream.write_all(piece).await.is_err() {
                return;
            }
        }
    });
    address
}

fn status(json: &str) -> Vec<u8> {
    let mut body = vec![0x00];
    push_length(&mut body, json.len());
    body.extend_from_slice(json.as_bytes());
    let mut bytes = Vec::new();
    push_length(&mut bytes, body.len());
    bytes.extend_from_slice(&body);
    bytes
}

#[tokio::test]
async fn ping_version_and_players_survive_any_fragmentation() {
    let json = format!(
        r#"{{"description":"{}","players":{{"max":60,"online":7,"sample":[]}},"version":{{"name":"Paper 1.21.10","protocol":773}}}}"#,
        "x".repeat(300)
    );
    for piece in [1, 7, 4096] {
        let address = serve_bytes(status(&json), piece).await;
        let answer = ping(address, TIMEOUT).await.unwrap();
        assert_eq!(answer, StatusResponse { minecraft: "1.21.10".into(), online: Some(7), max: Some(60) });
    }
}

#[tokio::test]
async fn ping_with_hidden_players_reports_no_count() {
    let address = serve_bytes(status(r#"{"version":{"name":"26.1","protocol":1}}"#), 4096).await;
    assert_eq!(
        ping(address, TIMEOUT).await.unwrap(),
        StatusResponse { minecraft: "26.1".into(), online: None, max: None }
    );
}

#[tokio::test]
async fn ping_distinguishes_refusal_silence_and_garbage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let error = ping(address, Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, Error::Silent { milliseconds: 50 }), "{error:?}");
    drop(listener);
    let error = ping(address, TIMEOUT).await.unwrap_err();
    assert!(error.is_refused(), "{error:?}");
    for rubbish in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        vec![0xff; 8],
        vec![3, 0, 1, b'{'],
        status("{}"),
        vec![0xff, 0xff, 0xff, 0x7f],
    ] {
        let address = serve_bytes(rubbish, 4096).await;
        let error = ping(address, TIMEOUT).await.unwrap_err();
        assert!(matches!(error, Error::Garbled { .. } | Error::Cut(_)), "{error:?}");
    }
}

#[test]
fn ping_version_is_extracted_from_server_name() {
    for (name, minecraft) in
        [("Paper 1.21.10", "1.21.10"), ("1.5.2", "1.5.2"), ("Purpur 26.1.1", "26.1.1"), ("Maintenance", "Maintenance")]
    {
        assert_eq!(minecraft_version(name), minecraft);
    }
}
