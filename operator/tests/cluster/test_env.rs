//! Edge (writes). Sets up the environment of each test: a namespace with an upstream and an operator that watches this
//! namespace only.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::sync::{OnceCell, RwLock, RwLockWriteGuard};

use super::eventually::{SHORT_LIMIT, wait_until};
use super::kubectl::{kubectl, run, try_run};
use super::upstream::{self, Upstream};
use super::{chart, dump};

/// The Helm release of the operator, which is also the name of its Deployment.
pub(super) const RELEASE: &str = "nightshift";

/// Locked exclusively by tests that measure or disturb the whole node.
static NODE: RwLock<()> = RwLock::const_new(());
/// Locked shared while the pods of an environment start, because a cordoned node does not take them.
static CREATING: RwLock<()> = RwLock::const_new(());
static DEFINITIONS: OnceCell<()> = OnceCell::const_new();

/// A namespace and its contents.
pub(super) struct TestEnv {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) upstream: Upstream,
}

/// Runs a test in an environment of its own, as of `now`.
pub(super) async fn in_test_env(name: &str, now: &str, test: impl AsyncFnOnce(&TestEnv)) {
    in_test_env_with(name, now, &[], test).await;
}

/// The same with other values for the chart.
pub(super) async fn in_test_env_with(name: &str, now: &str, values: &[&str], test: impl AsyncFnOnce(&TestEnv)) {
    let _shared_node = NODE.read().await;
    run_in_env(name, now, values, test).await;
}

/// The same with the node for itself, and other values for the chart.
pub(super) async fn in_exclusive_test_env(name: &str, now: &str, values: &[&str], test: impl AsyncFnOnce(&TestEnv)) {
    let _exclusive = NODE.write().await;
    run_in_env(name, now, values, test).await;
}

/// Waits until the environments in creation are ready. No other one is created until the guard is dropped.
pub(super) async fn block_new_envs() -> RwLockWriteGuard<'static, ()> {
    CREATING.write().await
}

async fn run_in_env(name: &str, now: &str, values: &[&str], test: impl AsyncFnOnce(&TestEnv)) {
    let client = client().await;
    // Another run may still be deleting its namespaces.
    let namespace = format!("{name}-{:x}", std::process::id());
    let outcome = AssertUnwindSafe(async {
        let env = TestEnv::create(client.clone(), &namespace, now, values).await;
        test(&env).await;
    })
    .catch_unwind()
    .await;
    match outcome {
        Ok(()) => delete_namespace(&client, &namespace).await,
        Err(panic) => fail(&client, name, &namespace, panic).await,
    }
}

async fn fail(client: &Client, name: &str, namespace: &str, panic: Box<dyn Any + Send>) {
    let folder = dump::write(name, namespace).await;
    eprintln!("{name}: what was there is in {}", folder.display());
    if std::env::var_os("NIGHTSHIFT_KEEP").is_none() {
        delete_namespace(client, namespace).await;
    }
    resume_unwind(panic);
}

/// Does not wait, because the next test has another namespace. A test may have deleted its namespace itself.
async fn delete_namespace(client: &Client, namespace: &str) {
    match Api::<Namespace>::all(client.clone()).delete(namespace, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => panic!("{error}"),
    }
}

/// A client for the cluster of the environment variable.
pub(super) async fn client() -> Client {
    assert!(
        std::env::var_os("KUBECONFIG").is_some(),
        "KUBECONFIG is not set: these tests need a cluster. `make cluster image`, then `eval \"$(dev/cluster env)\"`"
    );
    let client = Client::try_default().await.expect("KUBECONFIG leads to a cluster");
    DEFINITIONS.get_or_init(|| prepare(&client)).await;
    client
}

/// Once per run: installs the definitions, and checks for an operator that would affect every test.
async fn prepare(client: &Client) {
    let selector = ListParams::default().labels("app.kubernetes.io/name=nightshift");
    let mut wide = Api::<ClusterRoleBinding>::all(client.clone()).list(&selector).await.unwrap().items;
    // The permission of a single-namespace operator to read nodes does not let it change anything.
    wide.retain(|binding| !binding.role_ref.name.ends_with("-nodes"));
    assert!(
        wide.is_empty(),
        "an operator that watches all namespaces is installed here ({}) and would act on the servers of the tests, too: remove it first",
        wide.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>().join(", ")
    );
    install_definitions().await;
}

async fn install_definitions() {
    run("kubectl", &["apply", "--server-side", "--force-conflicts", "-f", "crds/manifests"], "").await;
    // Right after their creation they have no condition yet, which `kubectl wait` reports as an error.
    wait_until("the definitions are established", SHORT_LIMIT, async || {
        let wait = ["wait", "--for=condition=Established", "--timeout=5s", "-f", "crds/manifests"];
        let output = try_run("kubectl", &wait, "").await;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    })
    .await;
}

impl TestEnv {
    async fn create(client: Client, namespace: &str, now: &str, values: &[&str]) -> Self {
        let _creating = CREATING.read().await;
        run("kubectl", &["create", "namespace", namespace], "").await;
        let objects = upstream::build_objects(namespace, now).to_string();
        let objects = format!("{objects}\n---\n{}", chart::render(namespace, values).await);
        kubectl(namespace, &["apply", "--server-side", "-f", "-"], &objects).await;
        let service: Service = Api::namespaced(client.clone(), namespace).get(upstream::NAME).await.unwrap();
        let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap();
        let upstream = Upstream { url: format!("http://{address}:{}", upstream::PORT) };
        let env = Self { client, namespace: namespace.to_owned(), upstream };
        for deployment in [upstream::NAME, RELEASE] {
            env.wait_for_deployment(deployment).await;
        }
        env
    }

    /// Waits until a replica is available.
    pub(super) async fn wait_for_deployment(&self, name: &str) {
        let api: Api<Deployment> = self.api();
        wait_until(&format!("Deployment {name} is available"), SHORT_LIMIT, async || {
            let status = api.get(name).await.unwrap().status.unwrap_or_default();
            if status.available_replicas.unwrap_or(0) > 0 { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// The API of a kind in this namespace.
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies objects as a user does, Plugins before servers. Otherwise a slow request between the two would start a
    /// server without its Plugins.
    pub(super) async fn apply(&self, objects: &[Value]) {
        let mut objects: Vec<&Value> = objects.iter().collect();
        objects.sort_by_key(|object| object["kind"] == "PaperMCServer");
        let list = objects.into_iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
        self.kubectl(&["apply", "-f", "-"], &list).await;
    }

    /// Writes an annotation on a server, as `NAME=VALUE`, or removes it, as `NAME-`.
    pub(super) async fn annotate(&self, server: &str, annotation: &str) {
        self.kubectl(&["annotate", "--overwrite", "papermcserver", server, annotation], "").await;
    }

    /// Requests an online backup as a user does. Returns the request, which is the current time.
    pub(super) async fn request_backup(&self, server: &str) -> String {
        #[expect(clippy::disallowed_methods, reason = "the request needs the cluster's time")]
        let request = Timestamp::now().as_second().to_string();
        self.annotate(server, &format!("nightshift.dev/backup-now={request}")).await;
        request
    }

    /// Requests the first backup on request, and returns its name.
    pub(super) async fn take_first_backup(&self, server: &str) -> String {
        self.request_backup(server).await;
        let taken = self.wait_for_event_note(server, "BackupTaken").await;
        taken.split_once(": ").unwrap().0.to_owned()
    }

    /// Runs kubectl in this namespace. It has to succeed.
    pub(super) async fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        kubectl(&self.namespace, arguments, input).await
    }

    /// Restarts the operator with a clock that is wrong by this time.
    pub(super) async fn set_clock_ahead(&self, seconds: i64) {
        let clock = format!("NIGHTSHIFT_CLOCK_AHEAD_SECONDS={seconds}");
        self.kubectl(&["set", "env", &format!("deployment/{RELEASE}"), &clock], "").await;
        self.kubectl(&["rollout", "status", &format!("deployment/{RELEASE}"), "--timeout=120s"], "").await;
    }

    /// The operator's pod.
    pub(super) async fn operator(&self) -> Pod {
        self.try_operator().await.expect("the operator has a pod")
    }

    /// The same, if there is one now.
    pub(super) async fn try_operator(&self) -> Option<Pod> {
        let selector = ListParams::default().labels("app.kubernetes.io/name=nightshift");
        let pods = self.api::<Pod>().list(&selector).await.unwrap();
        pods.items.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none())
    }

    /// The pod of the upstream.
    pub(super) async fn upstream_pod(&self) -> Pod {
        let selector = ListParams::default().labels(&format!("app={}", upstream::NAME));
        self.api::<Pod>().list(&selector).await.unwrap().items.pop().expect("the upstream has a pod")
    }

    /// The notes of all Events with this reason about an object of this name, oldest first.
    pub(super) async fn event_notes(&self, name: &str, reason: &str) -> Vec<String> {
        let mut events = self.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        events.retain(|event| {
            event.reason.as_deref() == Some(reason)
                && event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(name)
        });
        events.into_iter().filter_map(|event| event.note).collect()
    }

    /// Waits for an Event about an object of this name, and returns its note.
    pub(super) async fn wait_for_event_note(&self, name: &str, reason: &str) -> String {
        wait_until(&format!("there is an Event {reason} about {name}"), SHORT_LIMIT, async || {
            self.event_notes(name, reason).await.pop().ok_or_else(|| "there is none".to_owned())
        })
        .await
    }

    /// The number of finished passes over servers, by the operator's own metrics.
    pub(super) async fn passes(&self) -> u64 {
        let pod = self.operator().await;
        let address = pod.status.and_then(|status| status.pod_ip).unwrap();
        let text = reqwest::get(format!("http://{address}:8081/metrics")).await.unwrap().text().await.unwrap();
        let of_servers = |line: &&str| line.contains("reconcile_total{") && line.contains(r#"controller="server""#);
        let counts = text.lines().filter(of_servers).filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a counter is a small whole number"
        )]
        let total = counts.sum::<f64>() as u64;
        total
    }

    /// Triggers two passes over a server, and waits until they have ended.
    pub(super) async fn trigger_passes(&self, server: &str) {
        for mark in ["first", "second"] {
            let before = self.passes().await;
            self.annotate(server, &format!("example.com/look={mark}")).await;
            wait_until("the operator has had a pass over the server", SHORT_LIMIT, async || {
                let now = self.passes().await;
                if now > before { Ok(()) } else { Err(format!("{now} passes")) }
            })
            .await;
        }
    }

    /// The versions of all objects and the requests upstream, once neither changes any more.
    pub(super) async fn wait_until_idle(&self) -> (Vec<String>, BTreeMap<String, u64>) {
        let mut last = (self.versions().await, self.upstream.requests().await);
        let mut same = 0;
        wait_until("no object is written any more", SHORT_LIMIT, async || {
            let now = (self.versions().await, self.upstream.requests().await);
            same = if now == last { same + 1 } else { 0 };
            last = now;
            if same >= 10 { Ok(last.clone()) } else { Err(format!("{same} looks alike")) }
        })
        .await
    }

    /// The resourceVersion of everything in this namespace that the operator may write, by kind and name. Pods are
    /// excluded, because the kubelet writes their status.
    pub(super) async fn versions(&self) -> Vec<String> {
        let kinds = "papermcservers,plugins,statefulsets,services,configmaps,secrets,persistentvolumeclaims,poddisruptionbudgets";
        let columns = "custom-columns=K:.kind,N:.metadata.name,V:.metadata.resourceVersion";
        let text = self.kubectl(&["get", kinds, "--no-headers", "-o", columns], "").await;
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }
}

/// A name for messages.
pub(super) fn uid_of(pod: &Pod) -> String {
    pod.uid().unwrap_or_default()
}
