//! Edge (writes). Tests the agent's port against other pods in the cluster, which have no key.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use agent::clock;
use agent_api::signature::{Key, MAX_FENCE_STEP, Parts, sign};
use jiff::SignedDuration;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::countdown::shown;
use crate::fake_server::Paper;
use crate::harness::{KEY, POD, Pod, restart_in, until};

/// The connections that the attacker keeps open.
const CONNECTIONS: usize = 2_000;
/// The memory that the agent may use meanwhile, in KiB. Its container has 256 MiB, and 138 bodies of 2 MB have filled them.
const MAX_MEMORY: u64 = 24 << 10;
/// The size of a body, which used to be read before its signature was verified.
const BODY: usize = 2_000_000;

/// Sends the start of a request without a signature: no headers, unfinished headers, or most of a body.
async fn attack(agent: SocketAddr, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(agent).await.unwrap();
    let headers = format!("POST /v1/stage HTTP/1.1\r\nhost: agent\r\ncontent-length: {BODY}\r\n");
    let filler = format!("{headers}x-filler: {}\r\n", "x".repeat(7_000));
    // The agent may have closed the connection already.
    let _ = match number % 4 {
        0 => Ok(()),
        1 => stream.write_all(filler.as_bytes()).await,
        _ => stream.write_all(format!("{headers}\r\n").as_bytes()).await,
    };
    if number % 4 > 1 {
        let mut left = BODY - 1;
        while let Ok(count @ 1..) = stream.try_write(&vec![b'x'; left.min(64 << 10)]) {
            left -= count;
        }
    }
    stream
}

/// The most memory that the process has used so far, in KiB.
fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn countdown_continues_under_two_thousand_hostile_connections() {
    let pod = Pod::without_agent(tempfile::tempdir().unwrap());
    pod.write_log();
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    let agent = pod.start_process().await;
    let announce = restart_in(SignedDuration::from_secs(15), "update-1");
    assert_eq!(pod.send("POST", "/v1/announce", &announce).await.status(), 202);

    let mut hostile = Vec::new();
    for number in 0..CONNECTIONS {
        hostile.push(attack(pod.agent, number).await);
    }
    let address = pod.agent;
    let attacker = tokio::spawn(async move {
        for number in 0.. {
            hostile[number % CONNECTIONS] = attack(address, number).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    until("the countdown is over", async || {
        assert_eq!(pod.probe("/ready").await, 200);
        // A signed request, which must be answered.
        pod.report().await;
        shown(&paper).last() == Some(&1)
    })
    .await;
    assert!(!attacker.is_finished(), "the attack goes on");
    attacker.abort();
    assert!(shown(&paper).contains(&10), "{:?}", shown(&paper));
    let memory = peak_memory(agent.0.id());
    assert!(memory < MAX_MEMORY, "the agent has used {memory} KiB");
}

#[tokio::test]
async fn unsigned_request_is_refused_before_its_body() {
    let pod = Pod::new("").await;
    let mut stream = TcpStream::connect(pod.agent).await.unwrap();
    let headers = format!("POST /v1/stage HTTP/1.1\r\nhost: agent\r\ncontent-length: {BODY}\r\n\r\n");
    stream.write_all(headers.as_bytes()).await.unwrap();
    // No byte of the body is sent.
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 Unauthorized"), "{answer}");
}

#[tokio::test]
async fn signed_body_is_bounded_for_each_request_and_must_match() {
    let pod = Pod::new("").await;
    let key = Key::from_hex(KEY).unwrap();
    let send = async |nonce: &str, path: &str, signed: &[u8], sent: Vec<u8>| {
        let parts = Parts { method: "POST", path, body: signed, pod_uid: POD, at: clock::now(), nonce, fence: 1 };
        let mut request = pod.client.request(Method::POST, format!("http://{}{path}", pod.agent)).body(sent);
        let headers = sign(&key, &parts);
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        // The agent may close the connection before the whole body is sent.
        request.send().await.map_or(0, |answer| answer.status().as_u16())
    };
    let long = vec![b' '; 20_000];
    assert_eq!(send("aaaaaaaaaaaaaaaa", "/v1/players", b"{}", b"{ }".to_vec()).await, 401, "another body");
    assert!([0, 413].contains(&send("bbbbbbbbbbbbbbbb", "/v1/players", &long, long.clone()).await));
    assert_eq!(
        send("cccccccccccccccc", "/v1/stage", &long, long.clone()).await,
        400,
        "it was read, and is no version set"
    );
    let longer = vec![b' '; (1 << 20) + 1];
    assert!([0, 413].contains(&send("dddddddddddddddd", "/v1/stage", &longer, longer.clone()).await));
    assert_eq!(send("eeeeeeeeeeeeeeee", "/v1/players", b"{}", b"{}".to_vec()).await, 200, "the agent goes on");
}

#[tokio::test]
async fn fence_far_above_earlier_ones_is_refused_with_limit() {
    let pod = Pod::new("").await;
    let key = Key::from_hex(KEY).unwrap();
    let send = async |nonce: &str, fence: u64| {
        let path = "/v1/report";
        let parts = Parts { method: "GET", path, body: b"", pod_uid: POD, at: clock::now(), nonce, fence };
        let mut request = pod.client.get(format!("http://{}{path}", pod.agent));
        let headers = sign(&key, &parts);
        for (name, value) in headers.pairs() {
            request = request.header(name, value);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<serde_json::Value>().await.unwrap()["fence"].as_u64())
    };
    assert_eq!(send("aaaaaaaaaaaaaaaa", 5).await, (200, None));
    assert_eq!(send("bbbbbbbbbbbbbbbb", u64::MAX).await, (409, Some(5 + MAX_FENCE_STEP)));
    assert_eq!(send("cccccccccccccccc", 6).await, (200, None), "the next leader is obeyed");
}
