//! Pure. Fuzz tests for what operator and agent read from each other, and from files that others can write.
#![expect(clippy::unwrap_used, reason = "a failed setup must fail the test")]

use agent_api::signature::{BODY_HEADER, FENCE_HEADER, Guard, Headers, Key, NONCE_HEADER, Parts, Received};
use agent_api::signature::{SIGNATURE_HEADER, TIME_HEADER, sign, verify};
use agent_api::termination_message::WorldRefused;
use agent_api::{AgentReport, Announce, FileSet, LastStop, RequestRefusal, RestoreRequest};
use jiff::Timestamp;
use mutate::fuzz_targets;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[path = "../../../resolver/tests/support/mutate.rs"]
mod mutate;

// One line for each parser. `dev/fuzz` runs each for a minute and more.
fuzz_targets! {
    fuzz_signature_headers([signed_headers()], signature_headers);
    fuzz_termination_message([TERMINATION_MESSAGE.into()], termination_message);
    fuzz_file_set([FILE_SET.into()], json::<FileSet>);
    fuzz_agent_report([REPORT.into()], json::<AgentReport>);
    fuzz_announce([ANNOUNCE.into()], json::<Announce>);
    fuzz_restore_request([RESTORE_REQUEST.into()], json::<RestoreRequest>);
    fuzz_last_stop([LAST_STOP.into()], json::<LastStop>);
    fuzz_request_refusal([REFUSAL.into()], json::<RequestRefusal>);
}

const TERMINATION_MESSAGE: &str = "REFUSED: Minecraft 26.1 has opened it, and a world cannot go back\n\
    Format of the worlds (DataVersion): 4556\nBackups that it could open, newest first: a, b";
const FILE_SET: &str = r#"{"lock": "aa", "minecraft": "1.21.10", "build": 130, "dataVersion": 4556, "server": {"path": "a.jar", "hash":
    "sha256:00", "size": 7, "url": "https://a.example/a"}, "support": [], "plugins": [{"path": "plugins/b.jar", "hash": "sha1:00", "url":
    "https://b.example", "plugin": "B", "provides": ["C"]}]}"#;
const REPORT: &str = r#"{"at": "2026-01-01T00:00:00Z", "podUid": "u", "server": {"state": "up", "since": "2026-01-01T00:00:00Z", "answeredAt":
    "2026-01-01T00:00:00Z", "hangsSince": null, "minecraft": "1.21.10", "build": 130, "plugins": {"B": {"version": "1", "enabled": true}}},
    "players": {"who": "some", "count": 2}, "lock": "aa", "world": {"floor": {"minecraft": "1.21.10", "dataVersion": 4556}, "whole": true}}"#;
const ANNOUNCE: &str =
    r#"{"act": "update-1", "ends": "2026-01-01T00:00:00Z", "text": "Restart in {in}", "show": ["chat", "title"]}"#;
const RESTORE_REQUEST: &str = r#"{"to": "aa", "failed": "bb", "unlessPlayed": true, "worlds": false}"#;
const LAST_STOP: &str = r#"{"at": "2026-01-01T00:00:00Z", "saved": true, "why": "a stop", "players": 3}"#;
const REFUSAL: &str = r#"{"error": "no", "clock_ahead": -90, "fence": 8, "not_now": true}"#;

const NAMES: [&str; 5] = [TIME_HEADER, NONCE_HEADER, FENCE_HEADER, BODY_HEADER, SIGNATURE_HEADER];

fn key() -> Key {
    Key::from_hex(&"0f".repeat(32)).unwrap()
}

fn at() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

/// The values of the headers, a line each, in the order of [`NAMES`].
fn signed_headers() -> Vec<u8> {
    let nonce = "a1b2c3d4e5f60718";
    let parts = Parts { method: "POST", path: "/v1/save", body: b"{}", pod_uid: "u", at: at(), nonce, fence: 7 };
    let headers = sign(&key(), &parts);
    headers.pairs().map(|(_, value)| value).join("\n").into_bytes()
}

/// Only the original is accepted.
fn signature_headers(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let line = |name| text.split('\n').nth(NAMES.iter().position(|other| *other == name)?);
    let Some(headers) = Headers::collect(line) else { return false };
    let received = Received { method: "POST", path: "/v1/save", headers: &headers };
    let accepted = verify(&key(), &received, "u", at(), &mut Guard::new(at())).is_ok();
    let original = String::from_utf8(signed_headers()).unwrap();
    let is_original = headers.pairs().map(|(_, value)| value).join("\n").eq_ignore_ascii_case(&original);
    assert!(!accepted || is_original, "{text:?}");
    accepted
}

fn termination_message(bytes: &[u8]) -> bool {
    let Some(read) = WorldRefused::parse(&String::from_utf8_lossy(bytes)) else { return false };
    assert!(WorldRefused::parse(&read.to_string()).is_some(), "{read:?}");
    true
}

/// An accepted value is the same after it is written and read.
fn json<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return false };
    let text = serde_json::to_string(&value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    true
}
