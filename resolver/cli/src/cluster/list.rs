//! Edge (reads). Lists all objects of one kind in pages, and classifies the errors of the API server.

use std::fmt::Display;

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Error, Resource};
use serde_json::Value;

use super::error::ClusterError;

/// Objects per page, as in kubectl.
const PAGE_SIZE: u32 = 500;

/// All objects of this kind in the namespace, or in all namespaces. They are untyped, because one unreadable object
/// must not hide the others.
pub(super) async fn list<K: Resource<DynamicType = ()>>(
    client: &Client,
    namespace: Option<&str>,
    url: &str,
) -> Result<Vec<Value>, ClusterError> {
    let kind = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let mut objects = Vec::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let list = api.list(&page).await.map_err(|error| classify_error(error, &kind, namespace, url))?;
        objects.extend(list.items.into_iter().filter_map(|object| serde_json::to_value(object).ok()));
        match list.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => page = page.continue_token(&next),
            None => return Ok(objects),
        }
    }
}

/// Converts the objects that this command can read, and adds a note for each of the others.
pub(super) fn deserialize_all<T, E: Display>(
    objects: Vec<Value>,
    read: impl Fn(Value) -> Result<T, E>,
    notes: &mut Vec<String>,
) -> Vec<T> {
    let mut typed = Vec::new();
    for object in objects {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        let name = format!("{} {}/{}", object["kind"].as_str().unwrap_or("object"), text("namespace"), text("name"));
        match read(object) {
            Ok(object) => typed.push(object),
            Err(error) => notes.push(format!("{name} is ignored: this command cannot read it ({error})")),
        }
    }
    typed
}

fn classify_error(error: Error, kind: &ApiResource, namespace: Option<&str>, url: &str) -> ClusterError {
    let url = url.to_owned();
    let resource = format!("{}.{}", kind.plural, kind.group);
    let scope = namespace.map_or_else(|| "all namespaces".to_owned(), |name| format!("namespace `{name}`"));
    if let Error::Api(status) = &error {
        let message = status.message.clone();
        return match status.code {
            401 => ClusterError::Unauthorized { url, message },
            403 => ClusterError::Forbidden { resource, scope, message },
            404 => ClusterError::NotInstalled { url, resource },
            _ => ClusterError::Refused { url, resource, message },
        };
    }
    let is_unreadable = matches!(error, Error::SerdeError(_) | Error::FromUtf8(_));
    let source = Box::new(error);
    let mut causes = std::iter::successors(Some(&*source as &dyn std::error::Error), |error| error.source());
    if causes.any(<dyn std::error::Error>::is::<kube::client::AuthError>) {
        ClusterError::Credentials { url, source }
    } else if is_unreadable {
        ClusterError::Unreadable { url, source }
    } else {
        ClusterError::Unreachable { url, source }
    }
}
