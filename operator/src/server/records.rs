//! Edge (writes). Reads locks and stable revisions from immutable `ConfigMap`s, and writes stable revisions.
//!
//! A `ControllerRevision` is deleted with its `StatefulSet`, or pruned after ten newer ones. The template for a roll-back must survive
//! both, so each stable template is stored whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use scheduler::observation::Revision;

use super::model::baseline::Baseline;
use super::model::records::{LockRecord, StableRecord};
use super::render::lock_config_map::{FILES_KEY, LOCK_KEY};
use crate::caches::{Caches, Key};
use crate::context::Context;

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

/// The `ConfigMap` of the lock that a template mounts.
pub(crate) fn lock_map_of(template: &PodTemplateSpec) -> Option<&str> {
    let volumes = template.spec.as_ref()?.volumes.as_ref()?;
    let lock = volumes.iter().find(|volume| volume.name == "lock")?;
    lock.config_map.as_ref().map(|map| map.name.as_str())
}

/// Reads a lock. `None` if its `ConfigMap` does not exist.
pub(crate) async fn read_lock(
    client: &Client,
    caches: &Caches,
    namespace: &str,
    name: &str,
) -> Result<Option<Arc<LockRecord>>, RecordError> {
    let key: Key = (namespace.to_owned(), name.to_owned());
    if let Some(cached) = caches.locks.get(&key) {
        return Ok(Some(cached));
    }
    let Some(data) = read_map(client, namespace, name).await? else { return Ok(None) };
    let garbled = |source| RecordError::Garbled { name: name.to_owned(), source };
    let text = |of: &str| data.get(of).map_or("", String::as_str);
    let record = Arc::new(LockRecord {
        lock: serde_json::from_str(text(LOCK_KEY)).map_err(garbled)?,
        files: serde_json::from_str(text(FILES_KEY)).map_err(garbled)?,
    });
    caches.locks.put(key, record.clone());
    Ok(Some(record))
}

/// Reads a stable revision. `None` if its `ConfigMap` does not exist.
pub(crate) async fn read_stable(
    client: &Client,
    caches: &Caches,
    namespace: &str,
    server: &str,
    revision: Revision,
) -> Result<Option<Arc<StableRecord>>, RecordError> {
    let name = stable_map_name(server, revision);
    let key: Key = (namespace.to_owned(), name.clone());
    if let Some(cached) = caches.stable.get(&key) {
        return Ok(Some(cached));
    }
    let Some(data) = read_map(client, namespace, &name).await? else { return Ok(None) };
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
pub(crate) async fn write_stable(ctx: &Context, mut map: ConfigMap, record: StableRecord) -> Result<(), RecordError> {
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
    let namespace = map.metadata.namespace.clone().unwrap_or_default();
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &namespace);
    match api.create(&PostParams::default(), &map).await {
        Ok(_) => {
            ctx.caches.stable.put((namespace, name), Arc::new(record));
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(source) => Err(RecordError::Write { name, source }),
    }
}

async fn read_map(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, RecordError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let read = api.get_opt(name).await.map_err(|source| RecordError::Read { name: name.to_owned(), source })?;
    Ok(read.map(|map| map.data.unwrap_or_default()))
}
