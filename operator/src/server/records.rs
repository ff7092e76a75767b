//! Edge (writes). Reads locks and stable revisions from immutable `ConfigMap`s, and writes stable revisions.
//!
//! A `ControllerRevision` is deleted with its `StatefulSet`, or pruned after ten newer ones. The template for a roll-back must survive
//! both, so each stable template is stored whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::FILES_KEY;
use agent_api::signed::{Document, Signer, Verifier};
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec, PodTemplateSpec};
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use scheduler::observation::Revision;
use tracing::warn;
use validate::image_contract::{FILES_DIGEST, PREPARE_CONTAINER};

use super::model::baseline::Baseline;
use super::model::records::{LockRecord, MountedLock, StableRecord};
use super::render::lock_config_map::{LOCK_KEY, lock_map_name, signed_text};
use super::server_keys::{KeysError, read_verifier};
use super::template_variable::variable_of;
use crate::caches::{Caches, Key};
use crate::clock::now;
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::owned_api::{Creation, OwnedApi, OwnedError};
use crate::k8s::ownership::{NameConflict, Owner};
use crate::k8s::server_side_apply::FieldManager;
use validate::CheckedServer;

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("could not read ConfigMap `{name}`")]
    Read {
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("could not create ConfigMap `{name}`")]
    Write {
        name: String,
        #[source]
        source: kube::Error,
    },
    /// It counts as missing, and is reported.
    #[error("ConfigMap `{name}` was not written by the operator")]
    NotSigned { name: String },
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("an object of the server has the name of another object")]
    NameConflict(#[from] NameConflict),
    #[error(
        "ConfigMap `{name}` was changed by another program: read docs/guides/troubleshooting.md before you delete the \
        server"
    )]
    Garbled {
        name: String,
        #[source]
        source: serde_json::Error,
    },
}

const TEMPLATE_KEY: &str = "template.json";
const ENABLED_KEY: &str = "enabled.json";
const UNREAD_KEY: &str = "unread.json";
const WORLDS_KEY: &str = "worlds.json";
const DATAPACKS_KEY: &str = "datapacks.json";
const UNVERIFIED_KEY: &str = "unverified.txt";
const SOURCE_KEY: &str = "source.sha256";

/// The name of the `ConfigMap` that stores a stable template.
pub(crate) fn stable_map_name(server: &str, revision: Revision) -> String {
    format!("{server}-stable-{revision}")
}

/// The `ConfigMap` of the lock that a pod mounts.
pub(crate) fn lock_map_of(pod: &PodSpec) -> Option<&str> {
    let volumes = pod.volumes.as_ref()?;
    let lock = volumes.iter().find(|volume| volume.name == "lock")?;
    lock.config_map.as_ref().map(|map| map.name.as_str())
}

/// The lock that a template mounts, with the digest of its files.
pub(crate) fn mounted_lock_of(template: &PodTemplateSpec) -> Option<MountedLock> {
    let spec = template.spec.as_ref()?;
    let files_digest = variable_of(spec, PREPARE_CONTAINER, FILES_DIGEST)?.to_owned();
    Some(MountedLock { map: lock_map_of(spec)?.to_owned(), files_digest })
}

/// Reads the lock that a pod template mounts. `None` if its `ConfigMap` does not exist. Others may write it, so it counts only with the files
/// that the template names, and with the operator's signature.
pub(crate) async fn read_mounted_lock(
    client: &Client,
    caches: &Caches,
    namespace: &str,
    lock: &MountedLock,
    verifier: Option<&Verifier>,
) -> Result<Option<Arc<LockRecord>>, RecordError> {
    let key: Key = (namespace.to_owned(), lock.map.clone());
    if let Some(cached) = caches.locks.get(&key).filter(|cached| cached.files.digest() == lock.files_digest) {
        return Ok(Some(cached));
    }
    let Some(map) = read_map(client, namespace, &lock.map).await? else { return Ok(None) };
    let record = parse_lock(&map, &lock.map, verifier)?;
    if record.files.digest() != lock.files_digest {
        return Err(RecordError::NotSigned { name: lock.map.clone() });
    }
    caches.locks.put(key, record.clone());
    Ok(Some(record))
}

/// Reads a lock of a server by its digest. `None` if it is not kept. It counts only with the operator's signature.
pub(crate) async fn read_signed_lock(
    ctx: &Context,
    owner: &Owner,
    digest: &str,
) -> Result<Option<Arc<LockRecord>>, RecordError> {
    let name = lock_map_name(&owner.name, digest);
    let key: Key = (owner.namespace.clone(), name.clone());
    if let Some(cached) = ctx.caches.locks.get(&key) {
        return Ok(Some(cached));
    }
    let Some(map) = read_map(&ctx.client, &owner.namespace, &name).await? else { return Ok(None) };
    let verifier = read_verifier(ctx, owner, now()).await?;
    let record = parse_lock(&map, &name, verifier.as_ref())?;
    if !record.files.lock.starts_with(digest) {
        // A lock of this server, but another one.
        return Err(RecordError::NotSigned { name });
    }
    ctx.caches.locks.put(key, record.clone());
    Ok(Some(record))
}

/// The lock in a `ConfigMap` that the operator has signed.
fn parse_lock(map: &ConfigMap, name: &str, verifier: Option<&Verifier>) -> Result<Arc<LockRecord>, RecordError> {
    let garbled = |source| RecordError::Garbled { name: name.to_owned(), source };
    let text = |of: &str| map.data.as_ref().and_then(|data| data.get(of)).map_or("", String::as_str);
    let record = LockRecord {
        lock: serde_json::from_str(text(LOCK_KEY)).map_err(garbled)?,
        files: serde_json::from_str(text(FILES_KEY)).map_err(garbled)?,
    };
    check_signature(verifier, Document::Lock, map, &signed_text(text(LOCK_KEY), &record.files))?;
    Ok(Arc::new(record))
}

fn check_signature(
    verifier: Option<&Verifier>,
    kind: Document,
    map: &ConfigMap,
    content: &str,
) -> Result<(), RecordError> {
    let signature = map.annotations().get(labels::SIGNATURE).map(String::as_str);
    let is_signed = verifier.is_some_and(|verifier| verifier.verify(kind, content.as_bytes(), signature).is_ok());
    if is_signed { Ok(()) } else { Err(RecordError::NotSigned { name: map.name_any() }) }
}

/// A record that the operator did not write counts as missing, and its `ConfigMap` is added to `rejected`.
pub(crate) fn unless_rejected<T>(
    read: Result<Option<T>, RecordError>,
    rejected: &mut Vec<String>,
) -> Result<Option<T>, RecordError> {
    match read {
        Err(RecordError::NotSigned { name }) => {
            warn!(name, "a ConfigMap was not written by the operator; it is ignored");
            if !rejected.contains(&name) {
                rejected.push(name);
            }
            Ok(None)
        }
        read => read,
    }
}

/// Reads a stable revision. `None` if its `ConfigMap` does not exist. It counts only with the operator's signature, because its template is
/// written to the `StatefulSet`.
pub(crate) async fn read_stable(
    client: &Client,
    caches: &Caches,
    namespace: &str,
    server: &str,
    revision: Revision,
    verifier: Option<&Verifier>,
) -> Result<Option<Arc<StableRecord>>, RecordError> {
    let name = stable_map_name(server, revision);
    let key: Key = (namespace.to_owned(), name.clone());
    if let Some(cached) = caches.stable.get(&key) {
        return Ok(Some(cached));
    }
    let Some(map) = read_map(client, namespace, &name).await? else { return Ok(None) };
    check_signature(verifier, Document::StableRevision, &map, &stable_text(&map))?;
    let data = map.data.unwrap_or_default();
    let garbled = |source| RecordError::Garbled { name: name.clone(), source };
    let text = |of: &str| data.get(of).map_or("", String::as_str);
    // Older operators store none of these keys. They are also missing if the worlds or datapacks could not be read.
    let names = |of: &str| data.get(of).map(|text| serde_json::from_str(text)).transpose().map_err(garbled);
    let record = Arc::new(StableRecord {
        template: serde_json::from_str(text(TEMPLATE_KEY)).map_err(garbled)?,
        baseline: Baseline {
            enabled: serde_json::from_str(text(ENABLED_KEY)).map_err(garbled)?,
            unread: names(UNREAD_KEY)?.unwrap_or_default(),
            worlds: names(WORLDS_KEY)?,
            datapacks: names(DATAPACKS_KEY)?,
        },
        unverified: data.get(UNVERIFIED_KEY).cloned(),
        source: data.get(SOURCE_KEY).and_then(|text| hex::decode(text).ok()?.try_into().ok()),
    });
    caches.stable.put(key, record.clone());
    Ok(Some(record))
}

/// Stores a stable revision. It is written before the fact that names it, so that the name is always valid.
pub(crate) async fn write_stable(
    ctx: &Context,
    server: &CheckedServer,
    mut map: ConfigMap,
    record: StableRecord,
    signer: &Signer,
) -> Result<(), RecordError> {
    let name = map.metadata.name.clone().unwrap_or_default();
    let json = |value: Result<String, serde_json::Error>| {
        value.map_err(|source| RecordError::Garbled { name: name.clone(), source })
    };
    let Baseline { enabled, unread, worlds, datapacks } = &record.baseline;
    let mut data = BTreeMap::from([
        (TEMPLATE_KEY.to_owned(), json(serde_json::to_string(&record.template))?),
        (ENABLED_KEY.to_owned(), json(serde_json::to_string(enabled))?),
        (UNREAD_KEY.to_owned(), json(serde_json::to_string(unread))?),
    ]);
    for (key, names) in [(WORLDS_KEY, worlds), (DATAPACKS_KEY, datapacks)] {
        if let Some(names) = names {
            data.insert(key.to_owned(), json(serde_json::to_string(names))?);
        }
    }
    data.extend(record.unverified.clone().map(|why| (UNVERIFIED_KEY.to_owned(), why)));
    data.extend(record.source.map(|source| (SOURCE_KEY.to_owned(), hex::encode(source))));
    map.immutable = Some(true);
    map.data = Some(data);
    let signature = signer.sign(Document::StableRevision, stable_text(&map).as_bytes());
    map.annotations_mut().insert(labels::SIGNATURE.to_owned(), signature);
    match OwnedApi::new(&ctx.client, server).create(FieldManager::SERVER_CHILDREN, &map).await {
        Ok(Creation::New(_)) => {
            ctx.caches.stable.put((server.namespace.clone(), name), Arc::new(record));
            Ok(())
        }
        Ok(Creation::Existing(_)) => Ok(()),
        Err(OwnedError::NameConflict(conflict)) => Err(conflict.into()),
        Err(OwnedError::Kube(source)) => Err(RecordError::Write { name, source }),
    }
}

/// The signed text of the record of a stable revision: its name, which has the revision, and all its data.
fn stable_text(map: &ConfigMap) -> String {
    let data = serde_json::to_string(&map.data).expect("data has string keys only");
    format!("{}\n{data}", map.name_any())
}

async fn read_map(client: &Client, namespace: &str, name: &str) -> Result<Option<ConfigMap>, RecordError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|source| RecordError::Read { name: name.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::render::lock_config_map::build_lock_map;
    use crate::server::test_server::signer;

    fn map(name: &str, data: &[(&str, &Value)]) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            data: Some(data.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect()),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn stable_record_of_others_does_not_count() {
        let is_ours = |map: &ConfigMap| {
            let verifier = signer().verifier();
            check_signature(Some(&verifier), Document::StableRevision, map, &stable_text(map)).is_ok()
        };
        let template = |image: &str| json!({"spec": {"containers": [{"name": "papermc", "image": image}]}});
        let mut ours = map("lobby-stable-1", &[(TEMPLATE_KEY, &template("paper"))]);
        assert!(!is_ours(&ours), "it has no signature");
        let signature = signer().sign(Document::StableRevision, stable_text(&ours).as_bytes());
        ours.annotations_mut().insert(labels::SIGNATURE.to_owned(), signature);
        assert!(is_ours(&ours));
        let unknown_key = check_signature(None, Document::StableRevision, &ours, &stable_text(&ours));
        assert!(matches!(unknown_key, Err(RecordError::NotSigned { name }) if name == "lobby-stable-1"));
        for other in [
            map("lobby-stable-1", &[(TEMPLATE_KEY, &template("foreign"))]),
            map("lobby-stable-2", &[(TEMPLATE_KEY, &template("paper"))]),
            map("lobby-stable-1", &[(TEMPLATE_KEY, &template("paper")), (UNVERIFIED_KEY, &json!("x"))]),
        ] {
            let metadata = ObjectMeta { annotations: ours.metadata.annotations.clone(), ..other.metadata.clone() };
            assert!(!is_ours(&ConfigMap { metadata, ..other.clone() }), "{other:?}");
        }
    }

    #[test]
    fn changed_lock_does_not_count() {
        let record = crate::server::report::tests::record(130);
        let checked = validate::check(&crate::server::test_server::server(json!({}))).unwrap();
        let ours = build_lock_map(&checked, &record.lock, &record.files, &signer());
        let is_ours = |map: &ConfigMap| match parse_lock(map, &map.name_any(), Some(&signer().verifier())) {
            Ok(found) => found.files == record.files,
            Err(RecordError::NotSigned { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        assert!(is_ours(&ours));
        let paper = json!({"name": "paper.jar", "url": "http://example.com", "hash": "sha256:00"});
        for (key, field, foreign) in [
            (LOCK_KEY, "jvmFlags", json!(["-XX:OnError=sh"])),
            (LOCK_KEY, "paper", paper),
            (FILES_KEY, "minecraft", json!("1.21.9")),
        ] {
            let mut other = ours.clone();
            let text = other.data.as_mut().unwrap().get_mut(key).unwrap();
            let mut value: Value = serde_json::from_str(text).unwrap();
            value[field] = foreign;
            *text = value.to_string();
            assert!(!is_ours(&other), "{value}");
        }
    }

    #[test]
    fn rejected_record_counts_as_missing_and_is_named_once() {
        let mut rejected = Vec::new();
        for _ in 0..2 {
            let read = unless_rejected::<()>(Err(RecordError::NotSigned { name: "a".to_owned() }), &mut rejected);
            assert!(matches!(read, Ok(None)));
        }
        assert_eq!(rejected, ["a"]);
        assert!(matches!(unless_rejected(Ok(Some(1)), &mut rejected), Ok(Some(1))));
    }
}
