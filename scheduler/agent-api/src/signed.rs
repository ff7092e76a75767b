//! Pure. Signs the documents that the operator leaves in `ConfigMap`s for a later start, and verifies them.
//!
//! Others may write `ConfigMap`s. A document therefore counts only with the operator's Ed25519 signature. The private key is in the server's
//! Secret, which no pod mounts. The pod template names the public key ([`Verifier`]), so `prepare` needs no secret.
//!
//! The signature covers the kind of the document and the server. A document of another server or of another kind is refused, even if both
//! servers have the same key.

use std::fmt;
use std::str::FromStr;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest, Sha256};

/// Separates these signatures from all other uses of the key.
const CONTEXT: &str = "nightshift document 1";

/// The key of a document's signature, beside the document in its `ConfigMap`.
pub fn signature_key(key: &str) -> String {
    format!("{key}.sig")
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Document {
    /// The files of a lock.
    Lock,
    /// The record of a stable revision, with its pod template.
    StableRevision,
    /// A [`RestoreRequest`](crate::RestoreRequest).
    Rollback,
    /// A [`RequestedRestore`](crate::restore::RequestedRestore).
    UserRestore,
    /// A [`SeedRequest`](crate::restore::SeedRequest).
    NewVolume,
}

impl Document {
    fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::StableRevision => "stable-revision",
            Self::Rollback => "rollback",
            Self::UserRestore => "user-restore",
            Self::NewVolume => "new-volume",
        }
    }
}

/// The document is missing its signature, or the signature is not the operator's for this server and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has no valid signature of the operator for this server")]
pub struct NotSigned;

/// The text is not a key. The error does not repeat the text, because it may be part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing key must be 64 hex digits, and a verifier `NAMESPACE/SERVER:KEY`")]
pub struct KeyError;

/// The private key of one server. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Signer {
    server: String,
    seed: [u8; 32],
}

impl Signer {
    /// Reads 64 hex digits. White space around them is ignored (Secrets often end in a line feed). `server` is `namespace/name`.
    pub fn from_hex(server: &str, text: &str) -> Result<Self, KeyError> {
        Ok(Self { server: server.to_owned(), seed: decode(text.trim())? })
    }

    /// The signature of a document, as hex digits.
    pub fn sign(&self, kind: Document, content: &[u8]) -> String {
        hex::encode(self.key_pair().sign(&signed_text(&self.server, kind, content)))
    }

    /// Verifies the documents that this key signs.
    pub fn verifier(&self) -> Verifier {
        let mut key = [0; 32];
        key.copy_from_slice(self.key_pair().public_key().as_ref());
        Verifier { server: self.server.clone(), key }
    }

    fn key_pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&self.seed).expect("every 32 bytes are an Ed25519 seed")
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The public key of one server. As text it is `namespace/name:<64 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifier {
    server: String,
    key: [u8; 32],
}

impl Verifier {
    /// Checks that the operator signed this document for this server. `None`: it has no signature.
    pub fn verify(&self, kind: Document, content: &[u8], signature: Option<&str>) -> Result<(), NotSigned> {
        let signature = hex::decode(signature.ok_or(NotSigned)?.trim()).map_err(|_| NotSigned)?;
        let key = UnparsedPublicKey::new(&ED25519, &self.key);
        key.verify(&signed_text(&self.server, kind, content), &signature).map_err(|_| NotSigned)
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, key } = self;
        write!(f, "{server}:{}", hex::encode(key))
    }
}

impl FromStr for Verifier {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (server, key) = text.rsplit_once(':').ok_or(KeyError)?;
        Ok(Self { server: server.to_owned(), key: decode(key)? })
    }
}

fn decode(text: &str) -> Result<[u8; 32], KeyError> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError)?;
    Ok(bytes)
}

/// Names contain no line feed, and the digest has a fixed length, so two documents never have the same text.
fn signed_text(server: &str, kind: Document, content: &[u8]) -> Vec<u8> {
    format!("{CONTEXT}\n{}\n{server}\n{}", kind.as_str(), hex::encode(Sha256::digest(content))).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn signer() -> Signer {
        Signer::from_hex("games/lobby", SEED).unwrap()
    }

    #[test]
    fn signed_document_is_accepted_after_verifier_was_text() {
        let signature = signer().sign(Document::Rollback, b"{}");
        let verifier: Verifier = signer().verifier().to_string().parse().unwrap();
        assert_eq!(verifier.verify(Document::Rollback, b"{}", Some(&signature)), Ok(()));
        assert_eq!(verifier.verify(Document::Rollback, b"{}", Some(&format!("{signature}\n"))), Ok(()));
    }

    #[test]
    fn every_changed_byte_is_refused() {
        let (content, verifier) = (b"{\"to\": \"a\"}".to_vec(), signer().verifier());
        let signature = signer().sign(Document::Rollback, &content);
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            assert_eq!(verifier.verify(Document::Rollback, &changed, Some(&signature)), Err(NotSigned), "byte {at}");
        }
        let bytes = hex::decode(&signature).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let changed = hex::encode(changed);
            assert_eq!(verifier.verify(Document::Rollback, &content, Some(&changed)), Err(NotSigned), "byte {at}");
        }
    }

    #[test]
    fn missing_or_malformed_signature_is_refused() {
        let verifier = signer().verifier();
        let zeros = "0".repeat(128);
        for signature in [None, Some(""), Some("no hex"), Some("00"), Some(zeros.as_str())] {
            assert_eq!(verifier.verify(Document::Lock, b"{}", signature), Err(NotSigned), "{signature:?}");
        }
    }

    #[test]
    fn document_of_other_kind_server_or_key_is_refused() {
        let verifier = signer().verifier();
        let all =
            [Document::Lock, Document::StableRevision, Document::Rollback, Document::UserRestore, Document::NewVolume];
        for kind in all {
            let accepted = all.map(|of| verifier.verify(of, b"{}", Some(&signer().sign(kind, b"{}"))).is_ok());
            assert_eq!(accepted, all.map(|of| of == kind), "{kind:?}");
        }
        let other_server = Signer::from_hex("games/lobby2", SEED).unwrap();
        let other_key = Signer::from_hex("games/lobby", &SEED.replace('0', "1")).unwrap();
        for other in [other_server, other_key] {
            let signature = other.sign(Document::Lock, b"{}");
            assert_eq!(verifier.verify(Document::Lock, b"{}", Some(&signature)), Err(NotSigned), "{other:?}");
            assert_eq!(other.verifier().verify(Document::Lock, b"{}", Some(&signature)), Ok(()));
        }
    }

    #[test]
    fn wrong_key_is_refused_without_its_text() {
        let (long, no_hex) = (format!("{SEED}00"), SEED.replace('0', "x"));
        for text in ["", "00", &SEED[1..], long.as_str(), no_hex.as_str()] {
            let error = Signer::from_hex("games/lobby", text).unwrap_err().to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        assert!("games/lobby".parse::<Verifier>().is_err() && format!("lobby:{SEED}x").parse::<Verifier>().is_err());
    }

    #[test]
    fn private_key_is_never_printed() {
        assert!(!format!("{:?}", signer()).contains("0001"));
        assert!(!signer().verifier().to_string().contains(SEED));
    }
}
