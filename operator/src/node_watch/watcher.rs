//! Edge (reads). Watches the nodes, and requeues the servers of a node whose mark has changed.

use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1;
use kube::Client;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use tracing::warn;

use super::Changed;
use crate::context::Context;
use crate::error_chain::ErrorChain;

/// Watches nodes forever, and requeues the servers of a node that has changed.
pub(crate) async fn watch(ctx: Arc<Context>) {
    let nodes: Api<v1::Node> = Api::all(Client::clone(&ctx.client));
    let events = watcher(nodes, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => requeue_servers(&ctx, &ctx.nodes.handle_event(event)),
            Err(error) => {
                warn!(error = %ErrorChain(&error), "nodes cannot be read; no drain starts or ends meanwhile");
            }
        }
    }
}

fn requeue_servers(ctx: &Context, changed: &Changed) {
    let servers = ctx.caches.server_nodes.keys_where(|node| match changed {
        Changed::Nodes(nodes) => nodes.contains(node),
        Changed::All => true,
    });
    for (namespace, name) in servers {
        ctx.requeue(&namespace, &name);
    }
}
