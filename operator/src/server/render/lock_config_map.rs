//! Pure. Renders the `ConfigMap` of a lock: immutable, named by its digest, mounted into the pod and read back from there.

use std::collections::BTreeMap;

use agent_api::signed::{Document, Signer};
use agent_api::{FILES_KEY, FileSet};
use k8s_openapi::api::core::v1::ConfigMap;
use resolver::model::lock::Lock;

use super::child_meta;
use crate::k8s::labels;
use validate::CheckedServer;

/// The key of the lock, for users and for the next solve.
pub(crate) const LOCK_KEY: &str = "lock.json";

/// The name of the `ConfigMap` for a server's lock with this digest.
pub(crate) fn lock_map_name(server: &str, digest: &str) -> String {
    format!("{server}-lock-{}", &digest[..16.min(digest.len())])
}

/// The lock as an object. It is immutable, because the data that a running pod mounts must never change.
///
/// The signature is for the operator, which reads it back. It is an annotation, so that it may follow the server's key. The init container
/// compares the files with the digest in the pod template.
pub(crate) fn build_lock_map(server: &CheckedServer, lock: &Lock, files: &FileSet, signer: &Signer) -> ConfigMap {
    let mut metadata = child_meta(server, lock_map_name(&server.name, &files.lock));
    let text = lock.to_json();
    metadata.annotations = Some(BTreeMap::from([
        (labels::LOCK_DIGEST.to_owned(), files.lock.clone()),
        (labels::SIGNATURE.to_owned(), signer.sign(Document::Lock, signed_text(&text, files).as_bytes())),
    ]));
    let files = serde_json::to_string_pretty(files).expect("a file set has string keys only");
    ConfigMap {
        metadata,
        immutable: Some(true),
        data: Some(BTreeMap::from([(LOCK_KEY.to_owned(), text), (FILES_KEY.to_owned(), files)])),
        ..ConfigMap::default()
    }
}

/// What the signature of a lock covers. The digest of a lock leaves out fields that count for a start, such as the flags of the JVM.
pub(crate) fn signed_text(lock: &str, files: &FileSet) -> String {
    format!("{}\n{lock}", files.digest())
}
