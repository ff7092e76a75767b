//! Edge (writes). Events for the object's owner: one per distinct cause, and a failure to publish changes nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource, ResourceExt};
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::chain::{Chain, cut};

/// The API server refuses longer notes.
const LONGEST_NOTE: usize = 1_024;

/// What an Event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// Closed set, in CamelCase: users write alerts on it.
    pub(crate) reason: &'static str,
    /// A person should look.
    pub(crate) warning: bool,
    /// For people.
    pub(crate) text: String,
}

/// Publishes Events. kube's own recorder folds Events that differ only in their note, so a changed cause would hide
/// behind the first one; this one names each Event by its cause.
pub(crate) struct Publisher {
    client: Client,
    instance: String,
    /// The last note per object and reason: said once, until something else is said.
    said: Mutex<BTreeMap<(String, &'static str), String>>,
}

impl Publisher {
    pub(crate) fn new(client: Client, instance: String) -> Self {
        Self { client, instance, said: Mutex::new(BTreeMap::new()) }
    }

    /// Publishes `note` about `object` unless it was the last thing said for that reason.
    pub(crate) async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, note: &Note, now: Timestamp) {
        let uid = object.uid().unwrap_or_default();
        let key = (uid.clone(), note.reason);
        {
            let mut said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if said.insert(key, note.text.clone()).as_ref() == Some(&note.text) {
                return;
            }
        }
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{}", object.name_any(), cause(&uid, note, now))),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            action: Some(note.reason.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(&note.text, LONGEST_NOTE)),
            reason: Some(note.reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(object.name_any()),
                namespace: Some(namespace.clone()),
                uid: object.uid(),
                ..ObjectReference::default()
            }),
            reporting_controller: Some("nightshift.dev/operator".to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        if let Err(error) = api.create(&PostParams::default(), &event).await {
            warn!(reason = note.reason, error = %Chain(&error), "could not publish an Event");
        }
    }

    /// Forgets what was said about an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        let mut said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        said.retain(|(of, _), _| of != uid);
    }
}

/// 16 hex digits that differ for different causes, and for the same cause said again later.
fn cause(uid: &str, note: &Note, now: Timestamp) -> String {
    let mut hash = Sha256::new();
    hash.update(uid);
    hash.update(note.reason);
    hash.update(&note.text);
    hash.update(now.as_millisecond().to_be_bytes());
    hex::encode(&hash.finalize()[..8])
}
