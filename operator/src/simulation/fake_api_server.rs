//! Edge (writes). Simulates the API server: it answers `kube`'s requests from [`Objects`].
//!
//! Requests and answers may be lost, and the operator may sleep.

use std::sync::Arc;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::cluster::Written;
use super::cluster_handle::{ClusterHandle, RequestFault};
use super::objects::{Key, Objects, Patch, Refused};
use crate::clock::now;
use crate::k8s::labels::SERVER;

/// The only namespace.
pub(super) const NAMESPACE: &str = "games";

/// A request or its answer was lost.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the API server is lost")]
struct Lost;

/// A client of this cluster.
pub(super) fn client(shared: &Arc<ClusterHandle>) -> Client {
    client_of_all(std::slice::from_ref(shared))
}

/// A client of a cluster with the servers of all these simulated clusters.
pub(super) fn client_of_all(worlds: &[Arc<ClusterHandle>]) -> Client {
    let worlds: Arc<[Arc<ClusterHandle>]> = worlds.into();
    let service = tower::service_fn(move |request: Request<Body>| {
        let worlds = Arc::clone(&worlds);
        async move { answer(&worlds, request).await }
    });
    Client::new(service, NAMESPACE)
}

async fn answer(worlds: &[Arc<ClusterHandle>], request: Request<Body>) -> Result<Response<Body>, tower::BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let asked = Asked::read(&parts.method, &parts.uri, parts.headers.get("content-type"), &body);
    let shared = whose(worlds, asked.name());
    let mishap = shared.meet(asked.stops_servers()).await;
    if mishap == Some(RequestFault::RequestLost) {
        if let Some(reason) = asked.tells() {
            shared.world().ends.note_lost(reason);
        }
        return Err(Lost.into());
    }
    let mut outcome = carry_out(shared, &asked);
    if mishap == Some(RequestFault::Twice) {
        outcome = carry_out(shared, &asked);
    }
    match mishap {
        Some(RequestFault::DeathAfter) => shared.die().await,
        Some(RequestFault::AnswerLost) => return Err(Lost.into()),
        Some(RequestFault::RequestLost | RequestFault::DeathBefore | RequestFault::Twice) | None => {}
    }
    let (code, answer) = match outcome {
        Ok(answer) => (200, answer),
        Err(Refused { code, reason, message }) => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": reason, "message": message,
            });
            (code, status)
        }
    };
    Ok(Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()))?)
}

/// The simulated cluster that owns an object, whose name starts with that of the server. Objects of no server are the
/// same in all of them.
fn whose<'w>(worlds: &'w [Arc<ClusterHandle>], name: &str) -> &'w Arc<ClusterHandle> {
    let is_of =
        |server: &str| name.strip_prefix(server).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']));
    worlds.iter().find(|shared| is_of(shared.world().scenario.seat.name)).unwrap_or(&worlds[0])
}

fn carry_out(shared: &ClusterHandle, asked: &Asked) -> Result<Value, Refused> {
    let mut world = shared.world();
    let before = asked.looks_at(&world.objects);
    let outcome = asked.carry_out(&mut world.objects);
    if let (Ok(_), Some(writes)) = (&outcome, asked.writes()) {
        // A write without a change notifies no watch.
        if asked.looks_at(&world.objects) != before {
            world.notice(&asked.key, writes, before.as_ref());
        }
    }
    if let (Ok(made), Verb::Create(_)) = (&outcome, &asked.verb) {
        world.relate_created(&asked.key.plural, made);
    }
    outcome
}

/// A parsed request.
struct Asked {
    key: Key,
    verb: Verb,
}

enum Verb {
    Get,
    List { labels: Vec<(String, String)> },
    Create(Value),
    Patch { patch: Patch, of_status: bool, dry: bool },
    Delete { uid: Option<String>, version: Option<String> },
}

impl Asked {
    /// `/api/v1/namespaces/NS/PLURAL[/NAME[/SUBRESOURCE]]`, or the same below `/apis/GROUP/VERSION`.
    fn read(method: &Method, uri: &http::Uri, content_type: Option<&http::HeaderValue>, body: &[u8]) -> Self {
        let (_, rest) = uri.path().split_once(&format!("/namespaces/{NAMESPACE}/")).expect("all is in the namespace");
        let mut path = rest.split('/');
        let mut next = || path.next().unwrap_or_default();
        let (plural, name, below) = (next(), next(), next());
        let query: Vec<(String, String)> =
            url_of(uri).query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let parameter = |name: &str| query.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        let json = || -> Value { serde_json::from_slice(body).expect("a body of JSON") };
        let verb = match *method {
            Method::GET if name.is_empty() => {
                let selector = parameter("labelSelector").unwrap_or_default();
                let labels = selector.split(',').filter_map(|label| label.split_once('='));
                Verb::List { labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
            }
            Method::GET => Verb::Get,
            Method::POST => Verb::Create(json()),
            Method::PATCH => {
                let change = match content_type.and_then(|of| of.to_str().ok()) {
                    Some("application/apply-patch+yaml") => {
                        Patch::Apply { manager: parameter("fieldManager").unwrap_or_default(), object: json() }
                    }
                    Some("application/merge-patch+json") => Patch::Merge(json()),
                    Some("application/json-patch+json") => {
                        Patch::Json(serde_json::from_slice(body).expect("operations"))
                    }
                    other => panic!("nobody sends a patch of {other:?}"),
                };
                Verb::Patch { patch: change, of_status: below == "status", dry: parameter("dryRun").is_some() }
            }
            Method::DELETE => {
                let options: Value = serde_json::from_slice(body).unwrap_or_default();
                let only = |what: &str| options["preconditions"][what].as_str().map(str::to_owned);
                Verb::Delete { uid: only("uid"), version: only("resourceVersion") }
            }
            ref other => panic!("nobody sends {other}"),
        };
        Self { key: Key::new(plural, name), verb }
    }

    /// The name of the object. For a list, the name of the server.
    fn name(&self) -> &str {
        match &self.verb {
            Verb::Get | Verb::Patch { .. } | Verb::Delete { .. } => &self.key.name,
            Verb::List { labels } => {
                labels.iter().find(|(name, _)| name == SERVER).map_or("", |(_, server)| server.as_str())
            }
            Verb::Create(object) => object["metadata"]["name"].as_str().unwrap_or_default(),
        }
    }

    /// The object before the request.
    fn looks_at(&self, objects: &Objects) -> Option<Value> {
        objects.get(&self.key).ok().cloned()
    }

    fn writes(&self) -> Option<Written> {
        match &self.verb {
            Verb::Get | Verb::List { .. } | Verb::Patch { dry: true, .. } => None,
            Verb::Create(_) | Verb::Patch { dry: false, .. } => Some(Written::Changed),
            Verb::Delete { .. } => Some(Written::Deleted),
        }
    }

    /// The reason of the Event that the request creates.
    fn tells(&self) -> Option<&str> {
        match &self.verb {
            Verb::Create(object) if self.key.plural == "events" => object["reason"].as_str(),
            Verb::Create(_) | Verb::Get | Verb::List { .. } | Verb::Patch { .. } | Verb::Delete { .. } => None,
        }
    }

    /// Whether the request can stop a server. Between the operator's last check of a clock and such a request there is
    /// no other request.
    fn stops_servers(&self) -> bool {
        let stops = ["statefulsets", "pods", "poddisruptionbudgets"].contains(&self.key.plural.as_str());
        stops && self.writes().is_some()
    }

    fn carry_out(&self, objects: &mut Objects) -> Result<Value, Refused> {
        let Self { key, verb } = self;
        match verb {
            Verb::Get => objects.get(key).cloned(),
            Verb::List { labels } => {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                let items = objects.list(&key.plural, &labels);
                Ok(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
            }
            Verb::Create(object) => objects.create(&key.plural, object.clone(), now()).cloned(),
            Verb::Patch { patch, of_status, dry } => objects.patch(key, *of_status, patch, *dry, now()),
            Verb::Delete { uid, version } => objects.delete(key, (uid.as_deref(), version.as_deref()), now()),
        }
    }
}

fn url_of(uri: &http::Uri) -> reqwest::Url {
    let below = uri.path_and_query().map_or("/", |path| path.as_str());
    reqwest::Url::parse(&format!("http://api{below}")).expect("a path is a path")
}
