//! Pure. Renders the `ConfigMap` of a lock: immutable, named by its digest, mounted into the pod and read back from there.

use std::collections::BTreeMap;

use agent_api::FileSet;
use k8s_openapi::api::core::v1::ConfigMap;
use resolver::model::lock::Lock;

use super::child_meta;
use crate::k8s::labels;
use validate::CheckedServer;

/// The key of the lock, for users and for the next solve.
pub(crate) const LOCK_KEY: &str = "lock.json";
/// The key of the file list for the agent.
pub(crate) const FILES_KEY: &str = "files.json";

/// The name of the `ConfigMap` for a server's lock with this digest.
pub(crate) fn lock_map_name(server: &str, digest: &str) -> String {
    format!("{server}-lock-{}", &digest[..16.min(digest.len())])
}

/// The lock as an object. It is immutable, because the data that a running pod mounts must never change.
pub(crate) fn build_lock_map(server: &CheckedServer, lock: &Lock, files: &FileSet) -> ConfigMap {
    let mut metadata = child_meta(server, lock_map_name(&server.name, &files.lock));
    metadata.annotations = Some(BTreeMap::from([(labels::LOCK_DIGEST.to_owned(), files.lock.clone())]));
    let files = serde_json::to_string_pretty(files).expect("a file set has string keys only");
    ConfigMap {
        metadata,
        immutable: Some(true),
        data: Some(BTreeMap::from([(LOCK_KEY.to_owned(), lock.to_json()), (FILES_KEY.to_owned(), files)])),
        ..ConfigMap::default()
    }
}
