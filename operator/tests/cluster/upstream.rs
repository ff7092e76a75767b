//! Edge (writes). Runs the replaying upstream of one test: a Deployment, a Service, and the control of its clock.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Name of its Deployment and of its Service.
pub(super) const NAME: &str = "replay";
/// Its port.
pub(super) const PORT: u16 = 8480;

/// Its URL for the pods of this namespace.
pub(super) fn base_url(namespace: &str) -> String {
    format!("http://{NAME}.{namespace}.svc:{PORT}")
}

/// Deployment and Service of an upstream that answers as of `now`.
pub(super) fn build_objects(namespace: &str, now: &str) -> Value {
    let labels = json!({"app": NAME});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": NAME, "image": "nightshift.dev/replaying-upstream:dev",
                    "args": ["--now", now, "--public-url", base_url(namespace)],
                    "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                    "resources": {"requests": {"cpu": "5m", "memory": "32Mi"}},
                }],
            }},
        }},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
            "spec": {"selector": labels, "ports": [{"port": PORT}]}},
    ]})
}

/// The upstream for the test itself.
pub(super) struct Upstream {
    /// From outside the cluster: by the Service's address.
    pub(super) url: String,
}

impl Upstream {
    /// Moves it to another time: releases up to then appear.
    pub(super) async fn set_now(&self, now: &str) {
        let answer =
            reqwest::Client::new().put(format!("{}/control/now", self.url)).json(&json!({"now": now})).send().await;
        answer.unwrap().error_for_status().unwrap();
    }

    /// The bytes of a release of Modrinth.
    pub(super) async fn file(&self, project: &str, version: &str) -> Vec<u8> {
        let get = async |url: String| reqwest::get(url).await.unwrap().error_for_status().unwrap();
        let release = get(format!("{}/modrinth/v2/project/{project}/version/{version}", self.url)).await;
        let release: Value = release.json().await.unwrap();
        // The URL is one for pods.
        let (_, path) = release["files"][0]["url"].as_str().unwrap().split_once("/files/").unwrap();
        get(format!("{}/files/{path}", self.url)).await.bytes().await.unwrap().into()
    }

    /// Requests so far, by upstream.
    pub(super) async fn requests(&self) -> BTreeMap<String, u64> {
        let answer = reqwest::get(format!("{}/control/requests", self.url)).await.unwrap();
        answer.error_for_status().unwrap().json().await.unwrap()
    }
}
