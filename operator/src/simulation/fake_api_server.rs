//! Edge (writes). Simulates the API server: it answers `kube`'s requests from [`Objects`].
//!
//! Requests and answers may be lost, and the operator may sleep.

use std::sync::Arc;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::cluster::ObjectChange;
use super::cluster_handle::{ClusterHandle, RequestFault};
use super::objects::{Key, Objects, Patch, Rejection};
use crate::clock::now;
use crate::k8s::labels::SERVER;

/// The only namespace.
pub(super) const NAMESPACE: &str = "games";

/// A request or its answer was lost.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the API server is lost")]
struct RequestLost;

/// A client of this cluster.
pub(super) fn client(handle: &Arc<ClusterHandle>) -> Client {
    client_for_all(std::slice::from_ref(handle))
}

/// A client of a cluster with the servers of all these simulated clusters.
pub(super) fn client_for_all(handles: &[Arc<ClusterHandle>]) -> Client {
    let handles: Arc<[Arc<ClusterHandle>]> = handles.into();
    let service = tower::service_fn(move |request: Request<Body>| {
        let handles = Arc::clone(&handles);
        async move { serve_request(&handles, request).await }
    });
    Client::new(service, NAMESPACE)
}

async fn serve_request(
    handles: &[Arc<ClusterHandle>],
    request: Request<Body>,
) -> Result<Response<Body>, tower::BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let parsed = ParsedRequest::parse(&parts.method, &parts.uri, parts.headers.get("content-type"), &body);
    let handle = handle_of(handles, parsed.name());
    let fault = handle.draw_fault(parsed.can_stop_server()).await;
    if fault == Some(RequestFault::RequestLost) {
        if let Some(reason) = parsed.event_reason() {
            handle.cluster().stops.record_lost_event(reason);
        }
        return Err(RequestLost.into());
    }
    let mut outcome = execute(handle, &parsed);
    if fault == Some(RequestFault::Duplicated) {
        outcome = execute(handle, &parsed);
    }
    match fault {
        Some(RequestFault::CrashAfter) => handle.crash_operator().await,
        Some(RequestFault::AnswerLost) => return Err(RequestLost.into()),
        Some(RequestFault::RequestLost | RequestFault::CrashBefore | RequestFault::Duplicated) | None => {}
    }
    let (code, answer) = match outcome {
        Ok(answer) => (200, answer),
        Err(Rejection { code, reason, message }) => {
            // Only a namespace that is being deleted is forbidden here.
            let causes = if code == 403 { json!([{"reason": "NamespaceTerminating"}]) } else { json!([]) };
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure",
                "code": code, "reason": reason, "message": message, "details": {"causes": causes},
            });
            (code, status)
        }
    };
    Ok(Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()))?)
}

/// The simulated cluster that owns an object, whose name starts with that of the server. Objects of no server are the
/// same in all of them.
fn handle_of<'w>(handles: &'w [Arc<ClusterHandle>], name: &str) -> &'w Arc<ClusterHandle> {
    let owns =
        |server: &str| name.strip_prefix(server).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']));
    handles.iter().find(|handle| owns(handle.cluster().scenario.server_index.name)).unwrap_or(&handles[0])
}

fn execute(handle: &ClusterHandle, parsed: &ParsedRequest) -> Result<Value, Rejection> {
    let mut cluster = handle.cluster();
    cluster.requests.record(parsed.verb_name(), &parsed.key.plural);
    let before = parsed.object(&cluster.objects);
    let outcome = parsed.execute(&mut cluster.objects);
    if let (Ok(_), Some(write_kind)) = (&outcome, parsed.write_kind())
        && !parsed.creates_pod_or_event()
    {
        // A write without a change notifies no watch.
        if parsed.object(&cluster.objects) != before {
            cluster.observe_write(&parsed.key, write_kind, before.as_ref());
        }
    }
    if let (Ok(made), Verb::Create { .. }) = (&outcome, &parsed.verb) {
        cluster.trace_created(&parsed.key.plural, made);
    }
    outcome
}

/// A parsed request.
struct ParsedRequest {
    key: Key,
    verb: Verb,
}

enum Verb {
    Get,
    List { labels: Vec<(String, String)> },
    Create { object: Value, manager: Option<String> },
    Patch { patch: Patch, is_status: bool, is_dry_run: bool },
    Delete { uid: Option<String>, version: Option<String> },
}

impl ParsedRequest {
    /// `/api/v1/namespaces/NS/PLURAL[/NAME[/SUBRESOURCE]]`, or the same below `/apis/GROUP/VERSION`.
    fn parse(method: &Method, uri: &http::Uri, content_type: Option<&http::HeaderValue>, body: &[u8]) -> Self {
        let (_, rest) = uri.path().split_once(&format!("/namespaces/{NAMESPACE}/")).expect("a path in the namespace");
        let mut path = rest.split('/');
        let mut next = || path.next().unwrap_or_default();
        let (plural, name, below) = (next(), next(), next());
        let query: Vec<(String, String)> =
            url_of(uri).query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let parameter = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let json = || -> Value { serde_json::from_slice(body).expect("a body of JSON") };
        let verb = match *method {
            Method::GET if name.is_empty() => {
                let selector = parameter("labelSelector").unwrap_or_default();
                let labels = selector.split(',').filter_map(|label| label.split_once('='));
                Verb::List { labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
            }
            Method::GET => Verb::Get,
            Method::POST => Verb::Create { object: json(), manager: parameter("fieldManager") },
            Method::PATCH => {
                let change = match content_type.and_then(|value| value.to_str().ok()) {
                    Some("application/apply-patch+yaml") => {
                        Patch::Apply { manager: parameter("fieldManager").unwrap_or_default(), object: json() }
                    }
                    Some("application/merge-patch+json") => Patch::Merge(json()),
                    Some("application/json-patch+json") => {
                        Patch::Json(serde_json::from_slice(body).expect("JSON Patch operations"))
                    }
                    other => panic!("unsupported patch type {other:?}"),
                };
                Verb::Patch { patch: change, is_status: below == "status", is_dry_run: parameter("dryRun").is_some() }
            }
            Method::DELETE => {
                let options: Value = serde_json::from_slice(body).unwrap_or_default();
                let precondition = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
                Verb::Delete { uid: precondition("uid"), version: precondition("resourceVersion") }
            }
            ref other => panic!("unsupported method {other}"),
        };
        let name = match &verb {
            Verb::Create { object, .. } => object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            Verb::Get | Verb::List { .. } | Verb::Patch { .. } | Verb::Delete { .. } => name.to_owned(),
        };
        Self { key: Key::new(plural, &name), verb }
    }

    /// The name of the object. For a list, the name of the server.
    fn name(&self) -> &str {
        match &self.verb {
            Verb::Get | Verb::Create { .. } | Verb::Patch { .. } | Verb::Delete { .. } => &self.key.name,
            Verb::List { labels } => {
                labels.iter().find(|(name, _)| name == SERVER).map_or("", |(_, server)| server.as_str())
            }
        }
    }

    /// The object before the request.
    fn object(&self, objects: &Objects) -> Option<Value> {
        objects.get(&self.key).ok().cloned()
    }

    /// The verb in the API server's audit log, or `dry run`.
    fn verb_name(&self) -> &'static str {
        match &self.verb {
            Verb::Get => "get",
            Verb::List { .. } => "list",
            Verb::Create { .. } => "create",
            Verb::Patch { is_dry_run: true, .. } => "dry run",
            Verb::Patch { is_dry_run: false, is_status: true, .. } => "patch status",
            Verb::Patch { is_dry_run: false, is_status: false, .. } => "patch",
            Verb::Delete { .. } => "delete",
        }
    }

    fn write_kind(&self) -> Option<ObjectChange> {
        match &self.verb {
            Verb::Get | Verb::List { .. } | Verb::Patch { is_dry_run: true, .. } => None,
            Verb::Create { .. } | Verb::Patch { is_dry_run: false, .. } => Some(ObjectChange::Changed),
            Verb::Delete { .. } => Some(ObjectChange::Deleted),
        }
    }

    /// Whether the request creates an object that only the transcript notices.
    fn creates_pod_or_event(&self) -> bool {
        matches!(self.verb, Verb::Create { .. }) && ["pods", "events"].contains(&self.key.plural.as_str())
    }

    /// The reason of the Event that the request creates.
    fn event_reason(&self) -> Option<&str> {
        match &self.verb {
            Verb::Create { object, .. } if self.key.plural == "events" => object["reason"].as_str(),
            Verb::Create { .. } | Verb::Get | Verb::List { .. } | Verb::Patch { .. } | Verb::Delete { .. } => None,
        }
    }

    /// Whether the request can stop a server. Between the operator's last check of a clock and such a request there is
    /// no other request.
    fn can_stop_server(&self) -> bool {
        let stops = ["statefulsets", "pods", "poddisruptionbudgets"].contains(&self.key.plural.as_str());
        stops && self.write_kind().is_some()
    }

    fn execute(&self, objects: &mut Objects) -> Result<Value, Rejection> {
        let Self { key, verb } = self;
        match verb {
            Verb::Get => objects.get(key).cloned(),
            Verb::List { labels } => {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                let items = objects.list(&key.plural, &labels);
                Ok(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
            }
            Verb::Create { object, manager: Some(manager) } => {
                objects.create_for(manager, &key.plural, object.clone(), now()).cloned()
            }
            Verb::Create { object, .. } => objects.create(&key.plural, object.clone(), now()).cloned(),
            Verb::Patch { patch, is_status, is_dry_run } => objects.patch(key, *is_status, patch, *is_dry_run, now()),
            Verb::Delete { uid, version } => objects.delete(key, (uid.as_deref(), version.as_deref()), now()),
        }
    }
}

fn url_of(uri: &http::Uri) -> reqwest::Url {
    let below = uri.path_and_query().map_or("/", |path| path.as_str());
    reqwest::Url::parse(&format!("http://api{below}")).expect("a valid URL")
}
