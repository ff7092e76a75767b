//! Edge (reads). Runs the controllers and defines which changes trigger a pass.
//!
//! The passes themselves are in `server` and `plugin`.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crds::{PaperMCServer, Plugin};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Controller, Error};
use kube::runtime::reflector::{self, ObjectRef, reflector};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::Config;
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::merged_watch::{watch_merged, watch_touched};
use crate::k8s::namespace_scope::scoped;
use crate::plugin::matched_servers::MatchedServers;
use crate::telemetry::health::{Readiness, ReadyGate};
use crate::{plugin, server};

/// Both controllers before they run. Every pass reads from their stores.
pub(crate) struct Controllers {
    pub(crate) servers: Controller<PaperMCServer>,
    pub(crate) plugins: Controller<Plugin>,
    pub(crate) matched_servers: MatchedServers,
    /// The Plugins whose statuses change because of a server.
    woken_plugins: mpsc::UnboundedReceiver<ObjectRef<Plugin>>,
}

impl Controllers {
    /// Watches both kinds.
    pub(crate) fn new(client: &Client, config: &Config) -> Self {
        let (known_plugins, plugin_writer) = reflector::store();
        let plugin_events = watch_merged(scoped(client, config), known_plugins.clone());
        let plugins =
            Controller::for_stream(reflector(plugin_writer, plugin_events).applied_objects(), known_plugins.clone());
        let matched_servers = MatchedServers::default();
        let (wake_plugin, woken_plugins) = mpsc::unbounded_channel();
        let (servers, writer) = reflector::store();
        let update = matched_servers.clone();
        let wake_plugins = move |event: &watcher::Event<PaperMCServer>| {
            for plugin in update.handle_event(event, &known_plugins) {
                // Sending fails only when the process ends.
                drop(wake_plugin.send(plugin));
            }
        };
        let server_events = watch_merged(scoped(client, config), servers.clone());
        let changes = reflector(writer, server_events).inspect_ok(wake_plugins).applied_objects();
        Self {
            servers: Controller::for_stream(
                changes.predicate_filter(user_input_fingerprint, PredicateConfig::default()),
                servers,
            ),
            plugins,
            matched_servers,
            woken_plugins,
        }
    }

    /// Runs until a signal.
    pub(crate) async fn run(
        self,
        ctx: Arc<Context>,
        woken: mpsc::UnboundedReceiver<ObjectRef<PaperMCServer>>,
        readiness: Readiness,
    ) {
        let (client, config) = (ctx.client.clone(), ctx.config.clone());
        let server_store = ctx.servers.clone();
        // Passes wait for this channel, because a store wakes only the last task that waits for it.
        let (stores_are_complete, complete) = watch::channel(false);
        let (for_servers, for_plugins) = (complete.clone(), complete);
        let managed = watcher::Config::default().labels(&format!("{}={}", labels::MANAGED_BY.0, labels::MANAGED_BY.1));
        let plugin_changes = watch_touched(scoped::<Plugin>(&client, &config), &watcher::Config::default())
            .predicate_filter(user_input_fingerprint, PredicateConfig::default());
        let servers = self
            .servers
            .with_config(kube::runtime::controller::Config::default().concurrency(config.concurrency))
            .owns_stream(watch_touched(scoped::<PartialObjectMeta<StatefulSet>>(&client, &config), &managed))
            .watches_stream(watch_touched(scoped::<Pod>(&client, &config), &managed), |pod| server_of_pod(&pod))
            // A Plugin that is created, changed or deleted may affect any server of its namespace. The pass evaluates
            // the labels.
            .watches_stream(plugin_changes, move |plugin| {
                in_namespace(&server_store, plugin.metadata.namespace.as_ref())
            })
            .reconcile_all_on(ctx.catalog.changes())
            .reconcile_on(receiver_stream(woken))
            .shutdown_on_signal()
            .run(
                move |server, ctx| spawn_pass(server, ctx, for_servers.clone()),
                error_policy::<PaperMCServer>,
                ctx.clone(),
            )
            .for_each(|pass| {
                if let Err(Error::ObjectNotFound(object)) = pass {
                    let namespace = object.namespace.as_deref().unwrap_or_default();
                    server::evict(&ctx, namespace, &object.name, object.extra.uid.as_deref());
                }
                std::future::ready(())
            });
        let plugins = self
            .plugins
            .reconcile_all_on(ctx.catalog.changes())
            .reconcile_on(receiver_stream(self.woken_plugins))
            .shutdown_on_signal()
            .run(
                move |plugin, ctx| run_plugin_pass(plugin, ctx, for_plugins.clone()),
                error_policy::<Plugin>,
                ctx.clone(),
            )
            .for_each(|pass| {
                if let Err(Error::ObjectNotFound(object)) = pass {
                    ctx.matched_servers.remove(&(object.namespace.unwrap_or_default(), object.name));
                }
                std::future::ready(())
            });
        let ready = async {
            let both = futures::join!(ctx.servers.wait_until_ready(), ctx.plugins.wait_until_ready());
            if let (Ok(()), Ok(())) = both {
                readiness.open(ReadyGate::Stores);
                stores_are_complete.send_replace(true);
            }
        };
        futures::join!(servers, plugins, ready);
    }
}

/// Runs a pass as a task of its own. kube would poll all waiting passes whenever one of them advances, and on one core.
async fn spawn_pass(
    server: Arc<PaperMCServer>,
    ctx: Arc<Context>,
    mut stores: watch::Receiver<bool>,
) -> Result<Action, Infallible> {
    // Without the Plugins, the server would be planned without its plugins. An error means that the process ends.
    drop(stores.wait_for(|are_complete| *are_complete).await);
    // When the Lease is lost, the controller is dropped, and this guard aborts the pass.
    let pass = AbortOnDropHandle::new(tokio::spawn(server::reconcile(server, ctx)));
    pass.await.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic()))
}

/// Runs a pass over a Plugin once all servers are known. Before, its status would show that it matches none.
async fn run_plugin_pass(
    plugin: Arc<Plugin>,
    ctx: Arc<Context>,
    mut stores: watch::Receiver<bool>,
) -> Result<Action, Infallible> {
    // An error means that the process ends.
    drop(stores.wait_for(|are_complete| *are_complete).await);
    plugin::reconcile(plugin, ctx).await
}

/// The error policy, which is never called: passes turn their own failures into outcomes.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "kube defines the signature")]
fn error_policy<K>(_: Arc<K>, error: &Infallible, _: Arc<Context>) -> Action {
    match *error {}
}

/// Hash of spec generation, labels and annotations. Without a generation the result is None, which always counts as a
/// change. The status is left out because the operator writes it. If the operator wrote the statuses of a hundred
/// servers, each write would wake the Plugins, whose statuses name servers. Each Plugin would then wake all servers.
pub(crate) fn user_input_fingerprint<K: kube::Resource>(object: &K) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    (object.meta().generation?, object.labels(), object.annotations()).hash(&mut hasher);
    Some(hasher.finish())
}

fn server_of_pod(pod: &Pod) -> Option<ObjectRef<PaperMCServer>> {
    let server = pod.labels().get(labels::SERVER)?;
    Some(ObjectRef::new(server).within(&pod.namespace()?))
}

fn in_namespace<K>(store: &kube::runtime::reflector::Store<K>, namespace: Option<&String>) -> Vec<ObjectRef<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let all = store.state();
    all.iter()
        .filter(|object| object.meta().namespace.as_ref() == namespace)
        .map(|object| ObjectRef::from_obj(&**object))
        .collect()
}

fn receiver_stream<T: Send + 'static>(receiver: mpsc::UnboundedReceiver<T>) -> impl Stream<Item = T> + Send {
    futures::stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|item| (item, receiver)) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plugin(generation: Option<i64>, labels: &[(&str, &str)], annotations: &[(&str, &str)], newest: &str) -> Plugin {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect::<serde_json::Map<_, _>>()
        };
        let metadata =
            json!({"name": "p", "generation": generation, "labels": map(labels), "annotations": map(annotations)});
        let spec = json!({"source": {"type": "modrinth", "project": "viaversion"}, "instanceSelector": {}});
        let object = json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
            "metadata": metadata, "spec": spec, "status": {"newest": newest},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn reconcile_ignores_own_status_writes() {
        let before = user_input_fingerprint(&plugin(Some(1), &[], &[], "1"));
        assert_eq!(user_input_fingerprint(&plugin(Some(1), &[], &[], "2")), before, "a status write is ignored");
        let changed = [
            plugin(Some(2), &[], &[], "1"),
            plugin(Some(1), &[("mode", "survival")], &[], "1"),
            plugin(Some(1), &[], &[("nightshift.dev/hold", "true")], "1"),
        ];
        assert!(changed.iter().all(|plugin| user_input_fingerprint(plugin) != before));
        assert_eq!(user_input_fingerprint(&plugin(None, &[], &[], "1")), None, "a deleted object has no fingerprint");
    }
}
