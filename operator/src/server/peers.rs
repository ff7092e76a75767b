//! Edge (reads). Tracks the servers that share a `latest` plugin with this one and are therefore solved together with it.

use std::collections::BTreeSet;

use kube::ResourceExt;
use resolver::model::request::Request;

use super::follows::followed_server::servers_in_namespace;
use crate::context::Context;
use crate::solve_groups::{Group, has_shared_plugin, peers};

/// Records the request of a server and returns its solve group. A new request wakes the other members, because their results may have
/// changed. This is skipped while some server is unknown: after a start every request is new, and each would wake all servers.
/// [`finish_pass`] then wakes them once.
pub(super) fn join(ctx: &Context, namespace: &str, server: &str, request: &Request) -> Group {
    // Usually all recorded servers exist. The set of all names is too large to be built in each pass.
    if ctx.catalog.requests.len() > ctx.servers.len() {
        evict_deleted(ctx, namespace);
    }
    let before = ctx.catalog.requests.group_of(namespace, server);
    let is_news = ctx.catalog.record_request(namespace, server, request);
    let group = ctx.catalog.requests.group_for_request(namespace, server, request);
    if is_news && !has_unobserved(ctx, namespace) {
        requeue_peers(ctx, namespace, server, before.iter().chain([&group]));
    }
    group
}

/// Records that a server has no valid request. Wakes its former solve group.
pub(super) fn leave(ctx: &Context, namespace: &str, server: &str) {
    let before = ctx.catalog.requests.group_of(namespace, server);
    if ctx.catalog.requests.record(namespace, server, None) {
        requeue_peers(ctx, namespace, server, &before);
    }
}

/// Forgets a deleted server and wakes its former solve group.
pub(crate) fn remove(ctx: &Context, namespace: &str, server: &str) {
    let before = ctx.catalog.requests.group_of(namespace, server);
    evict_deleted(ctx, namespace);
    requeue_peers(ctx, namespace, server, &before);
}

/// Whether the namespace has a server that no pass has observed since this process started. Its request may matter to every server with a
/// shared plugin, so this server waits until [`finish_pass`] wakes it.
pub(super) fn has_to_wait(ctx: &Context, namespace: &str, server: &str, request: &Request) -> bool {
    if !has_shared_plugin(request) {
        return false;
    }
    // Registered first, so that a pass that ends from now on sees that this server waits.
    ctx.catalog.requests.add_waiting(namespace, server);
    let waits = has_unobserved(ctx, namespace);
    if !waits {
        ctx.catalog.requests.remove_waiting(namespace, server);
    }
    waits
}

/// Called after each pass. If it was the last one for which other servers of the namespace waited, they are requeued.
pub(super) fn finish_pass(ctx: &Context, namespace: &str) {
    if ctx.catalog.requests.has_waiting(namespace)
        && !has_unobserved(ctx, namespace)
        && ctx.catalog.requests.clear_waiting(namespace)
    {
        ctx.catalog
            .requests
            .servers_with_shared_plugins(namespace)
            .iter()
            .for_each(|name| ctx.requeue(namespace, name));
    }
}

fn evict_deleted(ctx: &Context, namespace: &str) {
    let living: BTreeSet<String> = names_in_namespace(ctx, namespace).collect();
    ctx.catalog.requests.retain_servers(namespace, &living);
}

fn has_unobserved(ctx: &Context, namespace: &str) -> bool {
    names_in_namespace(ctx, namespace).any(|name| !ctx.catalog.requests.contains(namespace, &name))
}

fn names_in_namespace(ctx: &Context, namespace: &str) -> impl Iterator<Item = String> {
    servers_in_namespace(ctx, namespace).map(|server| server.name_any())
}

fn requeue_peers<'g>(ctx: &Context, namespace: &str, server: &str, groups: impl IntoIterator<Item = &'g Group>) {
    for group in groups {
        peers(group, server).for_each(|name| ctx.requeue_debounced(namespace, name));
    }
}
