//! Edge (reads). Reads the operator's requests for this start from their `ConfigMap`. A request without its signature does not count.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tracing::warn;

use super::{ErrorChain, config};
use crate::plain_fs::{self, MAX_CONFIG_MAP_BYTES};
use crate::staging::RecordError;
use agent_api::restore::{NEW_VOLUME_KEY, USER_RESTORE_KEY};
use agent_api::signed::{Document, Verifier, signature_key};

/// All kinds of requests.
const REQUESTS: [Document; 3] = [Document::Rollback, Document::UserRestore, Document::NewVolume];

/// The mounted requests, and the key with which they are verified.
#[derive(Debug, Clone)]
pub(super) struct SignedRequests {
    /// The path of the request of a rollback. The others are beside it.
    pub(super) rollback: PathBuf,
    pub(super) verifier: Verifier,
}

impl SignedRequests {
    /// `None`: this pod has no requests.
    pub(super) fn from_config(config: &config::BackupConfig) -> Option<Self> {
        let (rollback, verifier) = config.restore_request.clone().zip(config.signed_by.clone())?;
        Some(Self { rollback, verifier })
    }

    /// The request. `None`: there is none, or it has no valid signature. Such a request must not prevent a start.
    pub(super) fn read<T: DeserializeOwned>(&self, kind: Document) -> Result<Option<T>, RecordError> {
        match self.read_strictly(kind) {
            Err(error @ RecordError::NotSigned { .. }) => {
                warn!("ignored a request: {}", ErrorChain(&error));
                Ok(None)
            }
            read => read,
        }
    }

    /// The request. A request without a valid signature is an error.
    pub(super) fn read_strictly<T: DeserializeOwned>(&self, kind: Document) -> Result<Option<T>, RecordError> {
        let Some(bytes) = self.verified(kind)? else { return Ok(None) };
        let content = |source| RecordError::Content { path: self.path(kind).display().to_string(), source };
        serde_json::from_slice(&bytes).map(Some).map_err(content)
    }

    /// The names of the requests without a valid signature.
    pub(super) fn rejected(&self) -> Vec<String> {
        let is_rejected = |kind: &Document| matches!(self.verified(*kind), Err(RecordError::NotSigned { .. }));
        let names = REQUESTS.into_iter().filter(is_rejected).map(|kind| self.path(kind));
        names.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect()
    }

    /// The bytes of a request with a valid signature.
    fn verified(&self, kind: Document) -> Result<Option<Vec<u8>>, RecordError> {
        let path = self.path(kind);
        let Some(bytes) = read_mounted(&path)? else { return Ok(None) };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let signature = read_mounted(&path.with_file_name(signature_key(&name)))?;
        let signature = signature.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let not_signed = |source| RecordError::NotSigned { path: path.display().to_string(), source };
        self.verifier.verify(kind, &bytes, signature).map_err(not_signed)?;
        Ok(Some(bytes))
    }

    fn path(&self, kind: Document) -> PathBuf {
        match kind {
            Document::UserRestore => self.rollback.with_file_name(USER_RESTORE_KEY),
            Document::NewVolume => self.rollback.with_file_name(NEW_VOLUME_KEY),
            Document::Rollback | Document::Lock | Document::StableRevision => self.rollback.clone(),
        }
    }
}

/// A file of a `ConfigMap`. `None`: it does not exist.
fn read_mounted(path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    match plain_fs::read_provided(path, MAX_CONFIG_MAP_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Read { path: path.display().to_string(), source }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;
    use agent_api::signed::Signer;

    fn signer(server: &str) -> Signer {
        Signer::from_hex(server, &"1f".repeat(32)).unwrap()
    }

    impl SignedRequests {
        /// The requests for server `lobby`.
        pub(crate) fn at(rollback: PathBuf) -> Self {
            Self { rollback, verifier: signer("games/lobby").verifier() }
        }

        /// Writes a request as the operator does.
        pub(crate) fn write(&self, kind: Document, request: &impl Serialize) {
            self.write_of("games/lobby", kind, request);
        }

        fn write_of(&self, server: &str, kind: Document, request: &impl Serialize) {
            let (path, content) = (self.path(kind), serde_json::to_vec(request).unwrap());
            let signature = signer(server).sign(kind, &content);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            fs::write(path.with_file_name(signature_key(&name)), signature).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn unsigned_foreign_or_changed_request_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let requests = SignedRequests::at(directory.path().join("restore.json"));
        let read = |kind| requests.read::<Value>(kind).unwrap();
        assert_eq!((read(Document::Rollback), requests.rejected()), (None, vec![]));

        requests.write(Document::Rollback, &json!({"to": "a"}));
        requests.write(Document::UserRestore, &json!({"to": "b"}));
        assert_eq!(read(Document::Rollback), Some(json!({"to": "a"})));
        assert_eq!((read(Document::UserRestore), requests.rejected()), (Some(json!({"to": "b"})), vec![]));

        requests.write_of("games/other", Document::UserRestore, &json!({"to": "b"}));
        fs::write(directory.path().join("restore.json"), br#"{"to":"c"}"#).unwrap();
        assert_eq!((read(Document::Rollback), read(Document::UserRestore)), (None, None));
        assert_eq!(requests.rejected(), ["restore.json", "restore-from.json"]);

        requests.write(Document::NewVolume, &json!({}));
        fs::remove_file(directory.path().join("new-volume.json.sig")).unwrap();
        let error = requests.read_strictly::<Value>(Document::NewVolume).unwrap_err();
        assert!(matches!(error, RecordError::NotSigned { .. }), "{error}");
    }

    #[test]
    fn request_of_another_kind_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let requests = SignedRequests::at(directory.path().join("restore.json"));
        requests.write(Document::Rollback, &json!({"to": "a"}));
        for name in ["restore.json", "restore.json.sig"] {
            let other = name.replace("restore", "restore-from");
            fs::copy(directory.path().join(name), directory.path().join(other)).unwrap();
        }
        assert_eq!(requests.read::<Value>(Document::UserRestore).unwrap(), None);
    }
}
