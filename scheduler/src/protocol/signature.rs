//! Pure. How a request from operator to agent is signed, and what an agent accepts.
//!
//! HMAC-SHA256 over `method \n path \n sha256hex(body) \n pod UID \n unix seconds \n nonce \n fence`. Nothing secret is on the wire; a
//! request recorded here cannot be played again: not later (skew and nonce), not at the next pod (UID), and not by an operator that
//! has lost its lease (fence).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use hmac::{Hmac, Mac};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::RequestRefusal;

/// Header with the time of signing, in seconds since 1970.
pub const TIME_HEADER: &str = "x-nightshift-time";
/// Header with a value that the signer uses once: 16 to 64 letters or digits.
pub const NONCE_HEADER: &str = "x-nightshift-nonce";
/// Header with the fence: the number of the lease under which the operator acts.
pub const FENCE_HEADER: &str = "x-nightshift-fence";
/// Header with the signature: 64 hex digits.
pub const SIGNATURE_HEADER: &str = "x-nightshift-signature";

/// How far the clocks of operator and node may differ, in seconds. Nodes run NTP, so this is generous; it also bounds the memory for
/// nonces.
pub const SKEW_SECONDS: i64 = 30;

/// Of so many requests the one that looks youngest says how far the clocks differ: being on the way makes each look older.
const COMPARED: usize = 8;

/// So many requests have to agree that our clock is ahead: one may have been on its way for as long.
const AGREE: usize = 3;

/// Times of signing are whole seconds, so two clocks of one time may look this far apart.
const ONE_TIME: i64 = 1;

/// The secret that one server's agent and the operator share. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Reads 64 hex digits; white space around them is ignored (Secrets often end in a line feed).
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

/// The text is not a key. Does not repeat the text: it may be half of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent key must be 64 hex digits")]
pub struct KeyError;

/// Everything that a signature covers.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path, from the slash on, as it stands in the request line.
    pub path: &'a str,
    /// The body's bytes; empty for none.
    pub body: &'a [u8],
    /// The pod that is meant.
    pub pod_uid: &'a str,
    /// When the request is signed.
    pub at: Timestamp,
    /// Used once: 16 to 64 letters or digits.
    pub nonce: &'a str,
    /// The operator's lease number (`leaseTransitions`).
    pub fence: u64,
}

/// The headers of a signed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Value of [`TIME_HEADER`].
    pub time: String,
    /// Value of [`NONCE_HEADER`].
    pub nonce: String,
    /// Value of [`FENCE_HEADER`].
    pub fence: String,
    /// Value of [`SIGNATURE_HEADER`].
    pub signature: String,
}

impl Headers {
    /// Name and value of each header, ready to be put on a request.
    pub fn pairs(&self) -> [(&'static str, &str); 4] {
        let Self { time, nonce, fence, signature } = self;
        [(TIME_HEADER, time), (NONCE_HEADER, nonce), (FENCE_HEADER, fence), (SIGNATURE_HEADER, signature)]
    }

    /// Collects the headers by asking `get` for each name; None if one is missing.
    pub fn collect<'a>(get: impl Fn(&'static str) -> Option<&'a str>) -> Option<Self> {
        Some(Self {
            time: get(TIME_HEADER)?.to_owned(),
            nonce: get(NONCE_HEADER)?.to_owned(),
            fence: get(FENCE_HEADER)?.to_owned(),
            signature: get(SIGNATURE_HEADER)?.to_owned(),
        })
    }
}

/// Signs a request.
pub fn sign(key: &Key, parts: &Parts<'_>) -> Headers {
    let time = parts.at.as_second();
    let code = code(key, &text(parts, time, parts.fence)).finalize().into_bytes();
    Headers {
        time: time.to_string(),
        nonce: parts.nonce.to_owned(),
        fence: parts.fence.to_string(),
        signature: hex::encode(code),
    }
}

/// What an agent received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// The path of the request line.
    pub path: &'a str,
    /// The body's bytes.
    pub body: &'a [u8],
    /// The four headers.
    pub headers: &'a Headers,
}

/// What an agent remembers between requests.
#[derive(Debug)]
pub struct Guard {
    started: i64,
    fence: u64,
    nonces: BTreeMap<String, i64>,
    /// How many seconds after its signing each of the last requests came, by our clock.
    away: VecDeque<i64>,
}

impl Guard {
    /// Starts to remember at `now`. Requests signed before that are refused, because a nonce of theirs may have been used while the
    /// agent's former process lived.
    pub fn new(now: Timestamp) -> Self {
        Self { started: now.as_second(), fence: 0, nonces: BTreeMap::new(), away: VecDeque::new() }
    }

    /// How far our clock is ahead of that of whoever signed the last requests; below 0, behind. Within a second or so, and zero where that would
    /// explain it.
    pub fn clock_ahead(&self) -> SignedDuration {
        let ahead = self.away.iter().copied().min().filter(|away| away.abs() > ONE_TIME);
        let ahead = ahead.filter(|away| away.is_negative() || self.away.len() >= AGREE);
        SignedDuration::from_secs(ahead.unwrap_or(0))
    }
}

/// Why a request is not obeyed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A header has no meaning.
    #[error("the header `{0}` cannot be read")]
    Malformed(&'static str),
    /// Wrong key, wrong pod, or changed on the way.
    #[error("the signature does not fit: the key, the pod UID or the content differs")]
    Signature,
    /// Too old or too far ahead.
    #[error("signed {away} s away from this node's clock, at most {SKEW_SECONDS} s are accepted: check the clocks")]
    Skew {
        /// Seconds between the two clocks.
        away: i64,
    },
    /// Signed before this process of the agent began.
    #[error("signed before this agent started: sign it again")]
    BeforeStart,
    /// The same nonce again.
    #[error("this request was received before")]
    Replayed,
    /// An operator with a newer lease has spoken.
    #[error("fence {got} is behind {seen}: another operator has taken over")]
    Fenced {
        /// In the request.
        got: u64,
        /// The highest that was seen.
        seen: u64,
    },
}

impl SignatureError {
    /// As it is answered.
    pub fn told(&self) -> RequestRefusal {
        let clock_ahead = if let Self::Skew { away } = self { Some(*away) } else { None };
        let fence = if let Self::Fenced { got: _, seen } = self { Some(*seen) } else { None };
        RequestRefusal { error: self.to_string(), clock_ahead, fence, not_now: false }
    }
}

/// Accepts a request for the pod `pod_uid`, or says why not. Only an accepted request changes `guard`.
pub fn verify(
    key: &Key,
    received: &Received<'_>,
    pod_uid: &str,
    now: Timestamp,
    guard: &mut Guard,
) -> Result<(), SignatureError> {
    let Headers { time, nonce, fence, signature } = received.headers;
    let time: i64 = time.parse().map_err(|_| SignatureError::Malformed(TIME_HEADER))?;
    let fence: u64 = fence.parse().map_err(|_| SignatureError::Malformed(FENCE_HEADER))?;
    if !(16..=64).contains(&nonce.len()) || !nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(SignatureError::Malformed(NONCE_HEADER));
    }
    let signature = hex::decode(signature).map_err(|_| SignatureError::Malformed(SIGNATURE_HEADER))?;
    let parts =
        Parts { method: received.method, path: received.path, body: received.body, pod_uid, at: now, nonce, fence };
    // Constant time. Nothing below is answered to somebody without the key.
    code(key, &text(&parts, time, fence)).verify_slice(&signature).map_err(|_| SignatureError::Signature)?;

    let away = now.as_second().saturating_sub(time);
    if away.saturating_abs() > SKEW_SECONDS {
        return Err(SignatureError::Skew { away });
    }
    if time < guard.started {
        return Err(SignatureError::BeforeStart);
    }
    if fence < guard.fence {
        return Err(SignatureError::Fenced { got: fence, seen: guard.fence });
    }
    // A request stays within the skew of our clock for at most twice the skew.
    guard.nonces.retain(|_, signed| now.as_second() - *signed <= 2 * SKEW_SECONDS);
    if guard.nonces.contains_key(nonce) {
        return Err(SignatureError::Replayed);
    }
    guard.nonces.insert(nonce.clone(), time);
    if fence > guard.fence {
        // Another operator, whose clock may be another.
        guard.away.clear();
    }
    guard.fence = fence;
    guard.away.push_back(away);
    if guard.away.len() > COMPARED {
        guard.away.pop_front();
    }
    Ok(())
}

fn text(parts: &Parts<'_>, time: i64, fence: u64) -> String {
    let Parts { method, path, body, pod_uid, at: _, nonce, fence: _ } = parts;
    let body = hex::encode(Sha256::digest(body));
    format!("{method}\n{path}\n{body}\n{pod_uid}\n{time}\n{nonce}\n{fence}")
}

fn code(key: &Key, text: &str) -> Hmac<Sha256> {
    let mut code = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
    code.update(text.as_bytes());
    code
}

#[cfg(test)]
mod tests;
