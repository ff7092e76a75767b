//! Edge (reads). The controllers: which changes wake which object. What a pass does stands in `server` and `plugin`.

use std::sync::Arc;

use crds::{PaperMCServer, Plugin};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{Action, Controller, Error};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use tokio::sync::mpsc;

use crate::Config;
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::scope::scoped;
use crate::telemetry::health::{Readiness, ReadyGate};
use crate::{plugin, server};

/// Both controllers before they run; their stores are what every pass reads from.
pub(crate) struct Controllers {
    pub(crate) servers: Controller<PaperMCServer>,
    pub(crate) plugins: Controller<Plugin>,
}

impl Controllers {
    /// Watches both kinds.
    pub(crate) fn new(client: &Client, config: &Config) -> Self {
        Self {
            servers: Controller::new(scoped(client, config), watcher::Config::default()),
            plugins: Controller::new(scoped(client, config), watcher::Config::default()),
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
        let (server_store, plugin_store) = (ctx.servers.clone(), ctx.plugins.clone());
        let ours = watcher::Config::default().labels(&format!("{}={}", labels::MANAGED_BY.0, labels::MANAGED_BY.1));
        let everything = watcher::Config::default();
        let servers = self
            .servers
            .with_config(kube::runtime::controller::Config::default().concurrency(config.concurrency))
            .owns(scoped::<StatefulSet>(&client, &config), ours.clone())
            .watches(scoped::<Pod>(&client, &config), ours, |pod| server_of(&pod))
            // A Plugin that changes, comes or goes may matter to any server of its namespace: labels decide, in the pass.
            .watches(scoped::<Plugin>(&client, &config), everything.clone(), move |plugin| {
                in_namespace(&server_store, plugin.metadata.namespace.as_ref())
            })
            .reconcile_all_on(ctx.catalog.changes())
            .reconcile_on(items_of(woken))
            .shutdown_on_signal()
            .run(server::reconcile, never::<PaperMCServer>, ctx.clone())
            .for_each(|pass| {
                if let Err(Error::ObjectNotFound(object)) = pass {
                    let namespace = object.namespace.as_deref().unwrap_or_default();
                    server::forget(&ctx, namespace, &object.name, object.extra.uid.as_deref());
                }
                std::future::ready(())
            });
        let plugins = self
            .plugins
            .watches(scoped::<PaperMCServer>(&client, &config), everything, move |server| {
                in_namespace(&plugin_store, server.metadata.namespace.as_ref())
            })
            .reconcile_all_on(ctx.catalog.changes())
            .shutdown_on_signal()
            .run(plugin::reconcile, never::<Plugin>, ctx.clone())
            .for_each(|_| async {});
        let ready = async {
            let both = futures::join!(ctx.servers.wait_until_ready(), ctx.plugins.wait_until_ready());
            if let (Ok(()), Ok(())) = both {
                readiness.open(ReadyGate::Stores);
            }
        };
        futures::join!(servers, plugins, ready);
    }
}

/// Passes turn their own failures into outcomes: there is no error left for kube's runtime.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is kube's")]
fn never<K>(_: Arc<K>, error: &std::convert::Infallible, _: Arc<Context>) -> Action {
    match *error {}
}

fn server_of(pod: &Pod) -> Option<ObjectRef<PaperMCServer>> {
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

fn items_of<T: Send + 'static>(receiver: mpsc::UnboundedReceiver<T>) -> impl futures::Stream<Item = T> + Send {
    futures::stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|item| (item, receiver)) })
}
