//! Edge (writes). Publishes an Event each time its cause begins.
//!
//! A failure to publish changes nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, Resource, ResourceExt};
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::error_chain::{ErrorChain, cut};

/// The API server refuses longer notes.
const LONGEST_NOTE: usize = 1_024;

/// Reason, type and text of an Event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventText {
    /// Closed set, in CamelCase: users write alerts on it.
    pub(crate) reason: &'static str,
    /// Whether the Event is a `Warning`, which a user should read.
    pub(crate) warning: bool,
    /// The text for users.
    pub(crate) text: String,
}

/// Publishes Events. kube's own recorder folds Events that differ only in their note, so the first cause would hide a
/// changed one. This publisher names each Event by its cause.
pub(crate) struct EventPublisher {
    client: Client,
    instance: String,
    /// The Events whose causes last, by the UID of their object. They are not published again.
    lasting: Mutex<BTreeMap<String, BTreeSet<EventText>>>,
}

impl EventPublisher {
    pub(crate) fn new(client: Client, instance: String) -> Self {
        Self { client, instance, lasting: Mutex::new(BTreeMap::new()) }
    }

    /// Publishes all Events of a complete pass over `object`, except those of the last pass: their causes last. An Event that was missing in
    /// between is published again.
    pub(crate) async fn publish_all<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        events: &[EventText],
        now: Timestamp,
    ) {
        let uid = object.uid().unwrap_or_default();
        if let Some(lasting) = self.lasting().get_mut(&uid) {
            lasting.retain(|event_text| events.contains(event_text));
        }
        for event_text in events {
            self.publish(object, event_text, now).await;
        }
    }

    /// Publishes an Event of a pass that was not complete, unless its cause lasts.
    pub(crate) async fn publish<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        event_text: &EventText,
        now: Timestamp,
    ) {
        let uid = object.uid().unwrap_or_default();
        if !self.lasting().entry(uid.clone()).or_default().insert(event_text.clone()) {
            return;
        }
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{}", object.name_any(), cause_hash(&uid, event_text, now))),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            action: Some(event_text.reason.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(&event_text.text, LONGEST_NOTE)),
            reason: Some(event_text.reason.to_owned()),
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
            type_: Some(if event_text.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        if let Err(error) = create(&api, &event).await {
            warn!(reason = event_text.reason, error = %ErrorChain(&error), "could not publish an Event");
            if is_retryable(&error) {
                // The Event was not published. If the cause remains, a later pass publishes it.
                if let Some(lasting) = self.lasting().get_mut(&uid) {
                    lasting.remove(event_text);
                }
            }
        }
    }

    /// Removes the texts of a deleted object.
    pub(crate) fn evict(&self, uid: &str) {
        self.lasting().remove(uid);
    }

    /// Locks the lasting Events. The guard is never held over an await.
    fn lasting(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<EventText>>> {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries twice: the cause of an Event is often over in the next pass, so no later pass would publish it.
/// `AlreadyExists` is a success, because the first try created the Event and only its answer was lost.
async fn create(api: &Api<Event>, event: &Event) -> kube::Result<()> {
    let create = async || match api.create(&PostParams::default(), event).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    };
    match create().await {
        Err(error) if is_retryable(&error) => create().await,
        done => done,
    }
}

/// Whether the API server did not process the request. A refusal would be the same on the next try.
fn is_retryable(error: &kube::Error) -> bool {
    !matches!(error, kube::Error::Api(status) if status.code < 500 && status.code != 429)
}

/// 16 hex digits that differ for different causes, and for the same cause at a later time.
fn cause_hash(uid: &str, event_text: &EventText, now: Timestamp) -> String {
    let mut hash = Sha256::new();
    hash.update(uid);
    hash.update(event_text.reason);
    hash.update(&event_text.text);
    hash.update(now.as_millisecond().to_be_bytes());
    hex::encode(&hash.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crds::PaperMCServer;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A publisher on a fake API server that gives these answers in order, and the counter of its requests. An answer
    /// is a status code, or None for a lost connection.
    fn publisher(answers: &'static [Option<u16>]) -> (EventPublisher, Arc<AtomicUsize>) {
        let request_count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&request_count);
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = answers.get(counted.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(Some(201));
            async move {
                let code = answer.ok_or("the connection is lost")?;
                let reason = if code == 409 { "AlreadyExists" } else { "" };
                let status =
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": ""});
                let event = json!({"metadata": {}});
                let body = if code == 201 { event } else { status };
                let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(response?)
            }
        });
        (EventPublisher::new(Client::new(service, "games"), "one".to_owned()), request_count)
    }

    /// The number of requests after each of two identical publications.
    async fn requests(answers: &'static [Option<u16>]) -> [usize; 2] {
        let (publisher, request_count) = publisher(answers);
        let server =
            PaperMCServer::new("lobby", serde_json::from_value(json!({"updateStrategy": "latest"})).expect("a spec"));
        let event_text =
            EventText { reason: "StoppedUnsaved", warning: true, text: "the server was stopped".to_owned() };
        let mut after = [0; 2];
        for count in &mut after {
            publisher.publish(&server, &event_text, Timestamp::UNIX_EPOCH).await;
            *count = request_count.load(Ordering::Relaxed);
        }
        after
    }

    #[tokio::test]
    async fn event_write_is_retried_and_recorded_once() {
        assert_eq!(requests(&[]).await, [1, 1]);
        assert_eq!(requests(&[None]).await, [2, 2], "a lost request is sent again");
        assert_eq!(requests(&[None, Some(409)]).await, [2, 2], "AlreadyExists is a success");
        assert_eq!(requests(&[None, Some(503)]).await, [2, 3], "the next pass tries again");
        assert_eq!(requests(&[Some(403)]).await, [1, 1], "a refused Event is not sent again");
    }

    #[tokio::test]
    async fn event_is_published_again_when_its_cause_returns() {
        let (publisher, request_count) = publisher(&[]);
        let server =
            PaperMCServer::new("lobby", serde_json::from_value(json!({"updateStrategy": "latest"})).expect("a spec"));
        let event_text = |reason, text: &str| EventText { reason, warning: false, text: text.to_owned() };
        let (warned, blocked) = (event_text("PlayersWarned", "in 5 minutes"), event_text("UpdateBlocked", "by A"));
        let mut after = Vec::new();
        for pass in [
            vec![warned.clone(), blocked.clone()],
            vec![warned.clone(), blocked.clone()],
            vec![blocked.clone()],
            vec![blocked, warned],
        ] {
            publisher.publish_all(&server, &pass, Timestamp::UNIX_EPOCH).await;
            after.push(request_count.load(Ordering::Relaxed));
        }
        assert_eq!(after, [2, 2, 2, 3], "only the warning returns");
    }
}
