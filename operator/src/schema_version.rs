//! Edge (reads). Checks that the CRDs in the cluster are not older than this operator needs.
//!
//! The API server would drop fields that an older CRD does not have. It publishes the schemas to every authenticated client, so the operator needs no
//! right on CRDs for this, also if it watches one namespace only.

use crds::crd::{SCHEMA_VERSION, schema_version};
use http::Request;
use kube::{Client, CustomResourceExt as _};
use serde_json::Value;
use tracing::warn;

use crds::{PaperMCServer, Plugin};

/// Where the API server publishes the schemas of the group.
const SCHEMAS: &str = "/openapi/v3/apis/nightshift.dev/v1alpha1";

/// Why this operator cannot lead with the CRDs of the cluster, and what to do. `None` if they are new enough.
///
/// # Errors
/// When the API server does not answer. An API server that refuses the request stops no operator.
pub(crate) async fn outdated_crds(client: &Client) -> Result<Option<String>, kube::Error> {
    let request = Request::get(SCHEMAS).body(Vec::new()).expect("the path is a URL");
    match client.request::<Value>(request).await {
        Ok(published) => Ok(describe_outdated(&published)),
        Err(kube::Error::Api(answer)) => {
            warn!(
                code = answer.code,
                path = SCHEMAS,
                "could not read the schemas, so the age of the CRDs is not checked"
            );
            Ok(None)
        }
        Err(problem) => Err(problem),
    }
}

fn describe_outdated(published: &Value) -> Option<String> {
    let kinds = [("PaperMCServer", PaperMCServer::crd_name()), ("Plugin", Plugin::crd_name())];
    let outdated: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, name)| Some((name, published_version(published, kind)?)))
        .filter(|(_, version)| *version < SCHEMA_VERSION)
        .map(|(name, version)| format!("CRD `{name}` has schema version {version}"))
        .collect();
    (!outdated.is_empty()).then(|| {
        format!(
            "{}, and this operator needs {SCHEMA_VERSION}: let the chart install them (`crds.install: true`), or apply \
            `nightshift-VERSION-crds.yaml` of its release. It leads as soon as they are served",
            outdated.join(", ")
        )
    })
}

/// The version of the schema of this kind. `None` if it is not published yet: the kind itself is served.
fn published_version(published: &Value, kind: &str) -> Option<u32> {
    let schemas = published["components"]["schemas"].as_object()?;
    let is_kind = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
        kinds.into_iter().any(|of| of["group"] == "nightshift.dev" && of["kind"] == kind)
    };
    let schema = schemas.values().find(is_kind)?;
    Some(schema_version(schema["description"].as_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(kind: &str, description: &str) -> Value {
        json!({
            "description": description,
            "x-kubernetes-group-version-kind": [{"group": "nightshift.dev", "kind": kind, "version": "v1alpha1"}],
        })
    }

    #[test]
    fn operator_names_crd_that_is_too_old() {
        let published = |server: &str, plugin: &str| {
            json!({"components": {"schemas": {
                "io.k8s.ObjectMeta": {"type": "object"},
                "dev.nightshift.v1alpha1.PaperMCServer": schema("PaperMCServer", server),
                "dev.nightshift.v1alpha1.Plugin": schema("Plugin", plugin),
            }}})
        };
        let current = format!("It. Schema version {SCHEMA_VERSION}.");
        let newer = format!("It. Schema version {}.", SCHEMA_VERSION + 1);
        assert_eq!(describe_outdated(&published(&current, &newer)), None);
        let outdated = describe_outdated(&published("It.", &current)).unwrap();
        let expected = format!(
            "CRD `papermcservers.nightshift.dev` has schema version 0, and this operator needs {SCHEMA_VERSION}"
        );
        assert!(outdated.starts_with(&expected) && outdated.contains("nightshift-VERSION-crds.yaml"), "{outdated}");
        assert!(!outdated.contains("plugins.nightshift.dev"), "{outdated}");
        assert_eq!(describe_outdated(&json!({})), None, "an API server that has not published them yet");
    }
}
