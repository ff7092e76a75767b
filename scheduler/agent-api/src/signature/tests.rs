//! Pure. Checks accepted requests, and each reason for refusal.

use super::*;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NONCE: &str = "a1b2c3d4e5f60718";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key() -> Key {
    Key::from_hex(KEY).unwrap()
}

fn parts(fence: u64) -> Parts<'static> {
    Parts { method: "POST", path: "/v1/save", body: b"{}", pod_uid: "uid-1", at: at(1000), nonce: NONCE, fence }
}

fn accept(headers: &Headers, body: &[u8], pod: &str, now: i64, guard: &mut Guard) -> Result<(), SignatureError> {
    let received = Received { method: "POST", path: "/v1/save", headers };
    verify(&key(), &received, pod, at(now), guard)?;
    headers.check_body(body)
}

#[test]
fn signature_is_hmac_over_the_seven_lines() {
    // Computed independently: printf 'POST\n/v1/save\n<sha256 of {}>\nuid-1\n1000\na1b2c3d4e5f60718\n7' | openssl dgst -sha256 -mac hmac
    let headers = sign(&key(), &parts(7));
    assert_eq!(headers.signature, "5f24717aebf12d7a6f620ead2f6cfca1b097ed8ecc1921e2239def9dd83c0d17");
    assert_eq!((headers.time.as_str(), headers.nonce.as_str(), headers.fence.as_str()), ("1000", NONCE, "7"));
    assert_eq!(headers.body, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "sha256sum of {{}}");
}

#[test]
fn signed_request_is_accepted_once() {
    let headers = sign(&key(), &parts(7));
    let mut guard = Guard::new(at(900));
    assert_eq!(accept(&headers, b"{}", "uid-1", 1010, &mut guard), Ok(()));
    assert_eq!(accept(&headers, b"{}", "uid-1", 1029, &mut guard), Err(SignatureError::Replayed));
}

#[test]
fn clock_difference_is_derived_from_fastest_requests() {
    let mut guard = Guard::new(at(900));
    let mut nonce = 0;
    let mut clock_ahead_after = |seconds: i64, guard: &mut Guard| {
        nonce += 1;
        let nonce = format!("a1b2c3d4e5f6{nonce:04}");
        let headers = sign(&key(), &Parts { nonce: &nonce, ..parts(7) });
        accept(&headers, b"{}", "uid-1", 1000 + seconds, guard).unwrap();
        guard.clock_ahead().as_secs()
    };
    assert_eq!(Guard::new(at(900)).clock_ahead(), SignedDuration::ZERO, "no request was received yet");
    // Twenty seconds ahead, and the first requests were in transit for a while.
    assert_eq!([29, 22, 20, 24].map(|seconds| clock_ahead_after(seconds, &mut guard)), [0, 0, 20, 20]);
    // Equal clocks: the seconds are whole, and a request may hang.
    assert_eq!([1, 0, 9].map(|seconds| clock_ahead_after(seconds, &mut guard)), [0, 0, 0]);
    // The clock is set back, which counts at once. Then it is corrected, which counts when the earlier requests are dropped.
    assert_eq!(clock_ahead_after(-15, &mut guard), -15);
    assert_eq!([0; 8].map(|seconds| clock_ahead_after(seconds, &mut guard)), [-15, -15, -15, -15, -15, -15, -15, 0]);
    // A refused request does not count.
    let refused = sign(&key(), &Parts { fence: 3, nonce: "ffffffffffffffff", ..parts(3) });
    accept(&refused, b"{}", "uid-1", 990, &mut guard).unwrap_err();
    assert_eq!(guard.clock_ahead(), SignedDuration::ZERO);
    // Another operator has another clock, so the previous operator's requests do not count.
    let next = sign(&key(), &Parts { fence: 8, nonce: "eeeeeeeeeeeeeeee", ..parts(8) });
    accept(&next, b"{}", "uid-1", 985, &mut guard).unwrap();
    assert_eq!(guard.clock_ahead(), SignedDuration::from_secs(-15));
}

#[test]
fn request_with_other_body_pod_path_or_key_fails() {
    let headers = sign(&key(), &parts(7));
    let mut guard = Guard::new(at(900));
    assert_eq!(accept(&headers, b"{ }", "uid-1", 1000, &mut Guard::new(at(900))), Err(SignatureError::Body));
    assert_eq!(accept(&headers, b"{}", "uid-2", 1000, &mut guard), Err(SignatureError::Signature));
    let elsewhere = Received { method: "POST", path: "/v1/stage", headers: &headers };
    assert_eq!(verify(&key(), &elsewhere, "uid-1", at(1000), &mut guard), Err(SignatureError::Signature));
    let other = Key::from_hex(&KEY.replace("00", "ff")).unwrap();
    let received = Received { method: "POST", path: "/v1/save", headers: &headers };
    assert_eq!(verify(&other, &received, "uid-1", at(1000), &mut guard), Err(SignatureError::Signature));
    assert_eq!(accept(&headers, b"{}", "uid-1", 1000, &mut guard), Ok(()), "a refusal changes no state");
}

#[test]
fn changed_header_is_refused() {
    let signed = sign(&key(), &parts(7));
    let mut guard = Guard::new(at(900));
    for headers in [
        Headers { time: "1001".into(), ..signed.clone() },
        Headers { nonce: "ffffffffffffffff".into(), ..signed.clone() },
        Headers { fence: "8".into(), ..signed.clone() },
        Headers { body: digest(b"other"), ..signed.clone() },
    ] {
        assert_eq!(accept(&headers, b"{}", "uid-1", 1000, &mut guard), Err(SignatureError::Signature));
    }
    let headers = Headers { nonce: "a\nb".into(), ..signed.clone() };
    assert_eq!(accept(&headers, b"{}", "uid-1", 1000, &mut guard), Err(SignatureError::Malformed(NONCE_HEADER)));
    for body in ["", "44136fa3", &"g".repeat(64)] {
        let headers = Headers { body: body.into(), ..signed.clone() };
        assert_eq!(accept(&headers, b"{}", "uid-1", 1000, &mut guard), Err(SignatureError::Malformed(BODY_HEADER)));
    }
    let headers = Headers { signature: "zz".into(), ..signed };
    assert_eq!(accept(&headers, b"{}", "uid-1", 1000, &mut guard), Err(SignatureError::Malformed(SIGNATURE_HEADER)));
}

#[test]
fn clock_skew_of_thirty_seconds_is_accepted_both_ways() {
    let headers = sign(&key(), &parts(7));
    for now in [970, 1030] {
        assert_eq!(accept(&headers, b"{}", "uid-1", now, &mut Guard::new(at(0))), Ok(()), "at {now}");
    }
    for now in [969, 1031] {
        assert_eq!(
            accept(&headers, b"{}", "uid-1", now, &mut Guard::new(at(0))),
            Err(SignatureError::Skew { difference: now - 1000 })
        );
    }
}

#[test]
fn operator_without_lease_is_refused_after_its_successor_connected() {
    let mut guard = Guard::new(at(900));
    let newer = sign(&key(), &Parts { nonce: "bbbbbbbbbbbbbbbb", ..parts(8) });
    assert_eq!(accept(&newer, b"{}", "uid-1", 1000, &mut guard), Ok(()));
    assert_eq!(
        accept(&sign(&key(), &parts(7)), b"{}", "uid-1", 1000, &mut guard),
        Err(SignatureError::Fenced { got: 7, highest: 8 })
    );
}

#[test]
fn fence_that_no_takeovers_explain_is_refused() {
    let mut guard = Guard::new(at(900));
    let mut nonce = 0;
    let mut accepts = |fence: u64, guard: &mut Guard| {
        nonce += 1;
        let nonce = format!("a1b2c3d4e5f6{nonce:04}");
        accept(&sign(&key(), &Parts { nonce: &nonce, ..parts(fence) }), b"{}", "uid-1", 1000, guard)
    };
    let too_high = |got: u64, limit: u64| Err(SignatureError::FenceTooHigh { got, limit });
    assert_eq!(accepts(u64::MAX, &mut guard), too_high(u64::MAX, 1_000_000));
    assert_eq!(accepts(2_147_483_647, &mut guard), too_high(2_147_483_647, 1_000_000), "the highest of a Lease");
    assert_eq!(accepts(12, &mut guard), Ok(()), "the refused ones changed no state");
    assert_eq!(accepts(1_013, &mut guard), too_high(1_013, 1_012));
    assert_eq!(accepts(1_012, &mut guard), Ok(()));
    let refusal = SignatureError::FenceTooHigh { got: 1_013, limit: 1_012 }.to_refusal();
    assert_eq!(refusal.fence, Some(1_012), "the operator compares it with its own");
    assert_eq!(accepts(1_000_000, &mut Guard::new(at(900))), Ok(()));
}

#[test]
fn request_older_than_agent_start_is_refused() {
    let headers = sign(&key(), &parts(7));
    assert_eq!(accept(&headers, b"{}", "uid-1", 1005, &mut Guard::new(at(1001))), Err(SignatureError::BeforeStart));
}

#[test]
fn nonces_are_forgotten_once_their_timestamp_is_refused() {
    let mut guard = Guard::new(at(900));
    assert_eq!(accept(&sign(&key(), &parts(7)), b"{}", "uid-1", 1000, &mut guard), Ok(()));
    let later = sign(&key(), &Parts { at: at(1100), nonce: "bbbbbbbbbbbbbbbb", ..parts(7) });
    assert_eq!(accept(&later, b"{}", "uid-1", 1100, &mut guard), Ok(()));
    assert_eq!(guard.nonces.len(), 1);
}

#[test]
fn signing_key_is_64_hex_digits_and_never_printed() {
    assert_eq!(format!("{:?}", key()), "Key(hidden)");
    assert_eq!(Key::from_hex(&format!("{KEY}\n")), Ok(key()));
    for wrong in ["", "00", &KEY[1..], &KEY.replace('0', "g")] {
        assert_eq!(Key::from_hex(wrong), Err(KeyError));
    }
}
