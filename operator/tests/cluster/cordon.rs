//! Edge (writes). Drains a node that has a server.

use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
use tokio::sync::RwLockWriteGuard;

use super::eventually::{SHORT_LIMIT, wait_until};
use super::kubectl::{run, try_run};
use super::manifests::{NEVER_OPEN, server};
use super::server::Server;
use super::test_env::{RELEASE, TestEnv, block_new_envs};

/// No other test has a server of this name, because `kubectl drain` selects its pod in all namespaces.
pub(super) const HARBOUR: &str = "harbour";
pub(super) const REFUSED: &str = "would violate the pod's disruption budget";

/// The objects of the chart outside its namespace. They are deleted when this is dropped.
pub(super) struct Rights {
    name: String,
}

impl Rights {
    /// The operator's permission in this namespace to read nodes.
    pub(super) fn new(env: &TestEnv) -> Self {
        Self { name: format!("{}-{RELEASE}-nodes", env.namespace) }
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        drop(Command::new("kubectl").args(["delete", "clusterrole,clusterrolebinding", &self.name]).output());
    }
}

/// A cordoned node. It is uncordoned when this is dropped, also by a test that fails.
///
/// The cluster has one node, and other tests run beside this one. Their servers tolerate the cordon, and their
/// operators start before or after it.
pub(super) struct Cordoned {
    pub(super) node: String,
    _no_new_envs: RwLockWriteGuard<'static, ()>,
}

impl Cordoned {
    /// The node of a pod.
    pub(super) async fn cordon_node_of(pod: &Pod) -> Self {
        let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap();
        let cordoned = Self { node, _no_new_envs: block_new_envs().await };
        run("kubectl", &["cordon", &cordoned.node], "").await;
        cordoned
    }

    /// Drains the node as an admin does, but only of this server. Returns whether that succeeded, and the output.
    pub(super) async fn drain(&self, timeout: &str) -> (bool, String) {
        let (timeout, selector) =
            (format!("--timeout={timeout}"), format!("--pod-selector=nightshift.dev/server={HARBOUR}"));
        let arguments = ["drain", &self.node, &selector, "--ignore-daemonsets", "--delete-emptydir-data", &timeout];
        let output = try_run("kubectl", &arguments, "").await;
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

impl Drop for Cordoned {
    fn drop(&mut self) {
        let output = Command::new("kubectl").args(["uncordon", &self.node]).output();
        // A test that fails drops this while it panics, and a second panic would hide the first.
        if !output.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("{} stays cordoned: {output:?}", self.node);
        }
    }
}

/// A server without a toleration for the cordon.
pub(super) fn harbour(spec: &Value) -> Value {
    let mut object = server(HARBOUR, NEVER_OPEN);
    object["spec"]["podTemplate"]["spec"].as_object_mut().unwrap().remove("tolerations");
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

/// Waits until the budget allows this number of evictions. `None`: until there is no budget.
pub(super) async fn wait_for_budget(env: &TestEnv, wanted: Option<i32>) {
    wait_until(&format!("the budget is {wanted:?}"), SHORT_LIMIT, async || {
        let budget = env.api::<PodDisruptionBudget>().get_opt(HARBOUR).await.unwrap();
        let found = budget.and_then(|budget| budget.spec?.max_unavailable);
        if found == wanted.map(IntOrString::Int) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Waits until the condition `Draining` is removed.
pub(super) async fn wait_until_not_draining(server: &Server<'_>) {
    wait_until("the condition Draining is gone", SHORT_LIMIT, async || match server.condition("Draining").await {
        None => Ok(()),
        Some(condition) => Err(condition.message),
    })
    .await;
}
