//! Pure. Signs requests from operator to agent, and verifies them.
//!
//! The signature is HMAC-SHA256 over `method \n path \n sha256hex(body) \n pod UID \n unix seconds \n nonce \n fence`. No secret is sent. A
//! recorded request cannot be replayed: not later (skew and nonce), not to the next pod (UID), and not by an operator that has lost its lease
//! (fence).
//!
//! The digest of the body is a header. So the agent verifies the signature before it reads a body, and a sender without the key cannot fill its
//! memory.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use hmac::{Hmac, Mac};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::RequestRefusal;

/// The header with the time of signing, in seconds since 1970.
pub const TIME_HEADER: &str = "x-nightshift-time";
/// The header with a value that the signer uses once: 16 to 64 letters or digits.
pub const NONCE_HEADER: &str = "x-nightshift-nonce";
/// The header with the fence: the number of the lease under which the operator acts.
pub const FENCE_HEADER: &str = "x-nightshift-fence";
/// The header with the SHA-256 of the body: 64 hex digits.
pub const BODY_HEADER: &str = "x-nightshift-body";
/// The header with the signature: 64 hex digits.
pub const SIGNATURE_HEADER: &str = "x-nightshift-signature";

/// How far the clocks of operator and node may differ, in seconds. Nodes run NTP, so this is generous. It also limits the memory for nonces.
pub const SKEW_SECONDS: i64 = 30;

/// The highest fence that an agent accepts from the first operator that it hears. A Lease changes its holder every 15 seconds at most, so this takes
/// half a year of takeovers.
pub const MAX_FIRST_FENCE: u64 = 1_000_000;

/// By how much a fence may exceed the highest one that the agent has accepted. The operator asks every few minutes, so a leader that follows is at most
/// tens ahead.
pub const MAX_FENCE_STEP: u64 = 1_000;

/// The smallest delay of this many last requests is taken as the clock difference: transit only adds to it.
const SKEW_SAMPLES: usize = 8;

/// A positive difference (the agent's clock is ahead) needs this many requests, because a single one may have been in transit for as long.
const MIN_SKEW_SAMPLES: usize = 3;

/// Times of signing are whole seconds, so two equal clocks may seem to differ by this much.
const MIN_SKEW_SECONDS: i64 = 1;

/// The secret that one server's agent and the operator share. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Reads 64 hex digits. White space around them is ignored (Secrets often end in a line feed).
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes).map_err(|_| KeyError)?;
        Ok(Self(bytes))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// The text is not a key. The error does not repeat the text, because it may be part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent key must be 64 hex digits")]
pub struct KeyError;

/// All parts that a signature covers.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path, from the slash on, as in the request line.
    pub path: &'a str,
    /// The body's bytes, or empty without a body.
    pub body: &'a [u8],
    /// The UID of the target pod.
    pub pod_uid: &'a str,
    /// When the request is signed.
    pub at: Timestamp,
    /// A value that is used once: 16 to 64 letters or digits.
    pub nonce: &'a str,
    /// The operator's lease number (`leaseTransitions`).
    pub fence: u64,
}

/// The headers of a signed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// The value of [`TIME_HEADER`].
    pub time: String,
    /// The value of [`NONCE_HEADER`].
    pub nonce: String,
    /// The value of [`FENCE_HEADER`].
    pub fence: String,
    /// The value of [`BODY_HEADER`].
    pub body: String,
    /// The value of [`SIGNATURE_HEADER`].
    pub signature: String,
}

impl Headers {
    /// The name and value of each header, ready to be set on a request.
    pub fn pairs(&self) -> [(&'static str, &str); 5] {
        let Self { time, nonce, fence, body, signature } = self;
        [
            (TIME_HEADER, time),
            (NONCE_HEADER, nonce),
            (FENCE_HEADER, fence),
            (BODY_HEADER, body),
            (SIGNATURE_HEADER, signature),
        ]
    }

    /// Collects the headers by calling `get` for each name. `None` if one is missing.
    pub fn collect<'a>(get: impl Fn(&'static str) -> Option<&'a str>) -> Option<Self> {
        Some(Self {
            time: get(TIME_HEADER)?.to_owned(),
            nonce: get(NONCE_HEADER)?.to_owned(),
            fence: get(FENCE_HEADER)?.to_owned(),
            body: get(BODY_HEADER)?.to_owned(),
            signature: get(SIGNATURE_HEADER)?.to_owned(),
        })
    }

    /// Checks the body of a request whose headers were accepted by [`verify`].
    pub fn check_body(&self, body: &[u8]) -> Result<(), SignatureError> {
        if self.body == digest(body) { Ok(()) } else { Err(SignatureError::Body) }
    }

    /// The text that the signature covers.
    fn signed_text(&self, method: &str, path: &str, pod_uid: &str) -> String {
        let Self { time, nonce, fence, body, signature: _ } = self;
        format!("{method}\n{path}\n{body}\n{pod_uid}\n{time}\n{nonce}\n{fence}")
    }
}

/// Signs a request.
pub fn sign(key: &Key, parts: &Parts<'_>) -> Headers {
    let Parts { method, path, body, pod_uid, at, nonce, fence } = *parts;
    let mut headers = Headers {
        time: at.as_second().to_string(),
        nonce: nonce.to_owned(),
        fence: fence.to_string(),
        body: digest(body),
        signature: String::new(),
    };
    headers.signature = hex::encode(mac(key, &headers.signed_text(method, path, pod_uid)).finalize().into_bytes());
    headers
}

/// A request whose headers an agent has received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path of the request line.
    pub path: &'a str,
    /// The headers of the signature.
    pub headers: &'a Headers,
}

/// The agent's state between requests.
#[derive(Debug)]
pub struct Guard {
    started: i64,
    /// The highest fence of an accepted request.
    fence: Option<u64>,
    nonces: BTreeMap<String, i64>,
    /// The delay between signing and arrival of each recent request, in seconds by the agent's clock.
    delays: VecDeque<i64>,
}

impl Guard {
    /// A guard that starts at `now`. Requests signed before that are refused, because their nonces may have been used with the agent's previous
    /// process.
    pub fn new(now: Timestamp) -> Self {
        Self { started: now.as_second(), fence: None, nonces: BTreeMap::new(), delays: VecDeque::new() }
    }

    /// Refuses the fence of an operator that lost its lease, and a fence that no number of takeovers explains.
    fn check_fence(&self, got: u64) -> Result<(), SignatureError> {
        let limit = self.fence.map_or(MAX_FIRST_FENCE, |highest| highest.saturating_add(MAX_FENCE_STEP));
        match self.fence {
            Some(highest) if got < highest => Err(SignatureError::Fenced { got, highest }),
            _ if got > limit => Err(SignatureError::FenceTooHigh { got, limit }),
            _ => Ok(()),
        }
    }

    /// How far the agent's clock is ahead of the clock of the last requests' signer. Below 0 it is behind. It is accurate to about a second, and
    /// zero for differences within that.
    pub fn clock_ahead(&self) -> SignedDuration {
        let ahead = self.delays.iter().copied().min().filter(|difference| difference.abs() > MIN_SKEW_SECONDS);
        let ahead = ahead.filter(|difference| difference.is_negative() || self.delays.len() >= MIN_SKEW_SAMPLES);
        SignedDuration::from_secs(ahead.unwrap_or(0))
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A header is malformed.
    #[error("could not read the header `{0}`")]
    Malformed(&'static str),
    /// The body is not the one that was signed.
    #[error("the body differs from the signed one")]
    Body,
    /// Wrong key, wrong pod, or changed in transit.
    #[error("the signature does not fit: the key, the pod UID or the content differs")]
    Signature,
    /// Too old or too far ahead.
    #[error(
        "signed {difference} s away from this node's clock, at most {SKEW_SECONDS} s are accepted: check the clocks"
    )]
    Skew {
        /// How far the agent's clock is ahead, in seconds. Negative: it is behind.
        difference: i64,
    },
    /// Signed before this process of the agent began.
    #[error("signed before this agent started: sign it again")]
    BeforeStart,
    /// The nonce was used before.
    #[error("this request was already received")]
    Replayed,
    /// An operator with a newer lease has sent requests.
    #[error("fence {got} is behind {highest}: another operator has taken over")]
    Fenced {
        /// The fence in the request.
        got: u64,
        /// The highest fence received.
        highest: u64,
    },
    /// The fence is too far above those of earlier requests, so it is no count of takeovers.
    #[error("fence {got} is too high: at most {limit} is accepted")]
    FenceTooHigh {
        /// The fence in the request.
        got: u64,
        /// The highest fence that is accepted.
        limit: u64,
    },
}

impl SignatureError {
    /// The body of the response.
    pub fn to_refusal(&self) -> RequestRefusal {
        let clock_ahead = if let Self::Skew { difference } = self { Some(*difference) } else { None };
        let fence = match self {
            Self::Fenced { got: _, highest } => Some(*highest),
            Self::FenceTooHigh { got: _, limit } => Some(*limit),
            Self::Malformed(_)
            | Self::Body
            | Self::Signature
            | Self::Skew { .. }
            | Self::BeforeStart
            | Self::Replayed => None,
        };
        RequestRefusal { error: self.to_string(), clock_ahead, fence, not_now: false }
    }
}

/// Accepts the headers of a request for the pod `pod_uid`, or returns why not. Only an accepted request changes `guard`. The caller then reads the
/// body and checks it by [`Headers::check_body`].
pub fn verify(
    key: &Key,
    received: &Received<'_>,
    pod_uid: &str,
    now: Timestamp,
    guard: &mut Guard,
) -> Result<(), SignatureError> {
    let Received { method, path, headers } = *received;
    let Headers { time, nonce, fence, body, signature } = headers;
    let time: i64 = time.parse().map_err(|_| SignatureError::Malformed(TIME_HEADER))?;
    let fence: u64 = fence.parse().map_err(|_| SignatureError::Malformed(FENCE_HEADER))?;
    if !(16..=64).contains(&nonce.len()) || !nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(SignatureError::Malformed(NONCE_HEADER));
    }
    if body.len() != 64 || !body.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SignatureError::Malformed(BODY_HEADER));
    }
    let signature = hex::decode(signature).map_err(|_| SignatureError::Malformed(SIGNATURE_HEADER))?;
    // Compared in constant time. A sender without the key gets no response from the checks below.
    mac(key, &headers.signed_text(method, path, pod_uid))
        .verify_slice(&signature)
        .map_err(|_| SignatureError::Signature)?;

    let difference = now.as_second().saturating_sub(time);
    if difference.saturating_abs() > SKEW_SECONDS {
        return Err(SignatureError::Skew { difference });
    }
    if time < guard.started {
        return Err(SignatureError::BeforeStart);
    }
    guard.check_fence(fence)?;
    // A request stays within the skew of the agent's clock for at most twice the skew.
    guard.nonces.retain(|_, signed| now.as_second() - *signed <= 2 * SKEW_SECONDS);
    if guard.nonces.contains_key(nonce) {
        return Err(SignatureError::Replayed);
    }
    guard.nonces.insert(nonce.clone(), time);
    if guard.fence.is_some_and(|highest| fence > highest) {
        // Another operator, whose clock may differ.
        guard.delays.clear();
    }
    guard.fence = Some(fence);
    guard.delays.push_back(difference);
    if guard.delays.len() > SKEW_SAMPLES {
        guard.delays.pop_front();
    }
    Ok(())
}

fn digest(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

fn mac(key: &Key, text: &str) -> Hmac<Sha256> {
    let mut code = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC accepts keys of any length");
    code.update(text.as_bytes());
    code
}

#[cfg(test)]
mod tests;
