//! Edge (reads). Tracks the servers that share a `latest` plugin with this one and are therefore solved together with it.

use std::collections::BTreeSet;

use crds::PaperMCServer;
use kube::ResourceExt;
use resolver::request::Request;

use crate::context::Context;
use crate::solve_groups::{Group, companions, shares};

/// Records the request of a server and returns its solve group. A new request wakes the other members, because their results may have
/// changed. This is skipped while some server is unknown: after a start every request is new, and each would wake all servers.
/// [`end_of_pass`] then wakes them once.
pub(super) fn join(ctx: &Context, namespace: &str, server: &str, request: &Request) -> Group {
    forget_the_deleted(ctx, namespace);
    let before = ctx.catalog.requests.group_of(namespace, server);
    let is_news = ctx.catalog.want(namespace, server, request);
    let group = ctx.catalog.requests.together(namespace, server, request);
    if is_news && !has_unknown(ctx, namespace) {
        wake_others(ctx, namespace, server, before.iter().chain([&group]));
    }
    group
}

/// Records that a server has no valid request. Wakes its former solve group.
pub(super) fn leave(ctx: &Context, namespace: &str, server: &str) {
    let before = ctx.catalog.requests.group_of(namespace, server);
    if ctx.catalog.requests.note(namespace, server, None) {
        wake_others(ctx, namespace, server, &before);
    }
}

/// Forgets a deleted server and wakes its former solve group.
pub(crate) fn gone(ctx: &Context, namespace: &str, server: &str) {
    let before = ctx.catalog.requests.group_of(namespace, server);
    forget_the_deleted(ctx, namespace);
    wake_others(ctx, namespace, server, &before);
}

/// Whether the namespace has a server that no pass has observed since this process started. Its request may matter to every server with a
/// shared plugin, so this server waits until [`end_of_pass`] wakes it.
pub(super) fn has_to_wait(ctx: &Context, namespace: &str, server: &str, request: &Request) -> bool {
    if !shares(request) {
        return false;
    }
    // Registered first, so that a pass that ends from now on sees that this server waits.
    ctx.catalog.requests.wait(namespace, server);
    let waits = has_unknown(ctx, namespace);
    if !waits {
        ctx.catalog.requests.stop_waiting(namespace, server);
    }
    waits
}

/// Called after each pass. If it was the last one for which other servers of the namespace waited, they are requeued.
pub(super) fn end_of_pass(ctx: &Context, namespace: &str) {
    if ctx.catalog.requests.has_waiting(namespace)
        && !has_unknown(ctx, namespace)
        && ctx.catalog.requests.end_waiting(namespace)
    {
        ctx.catalog.requests.sharing(namespace).iter().for_each(|name| ctx.look_again(namespace, name));
    }
}

fn forget_the_deleted(ctx: &Context, namespace: &str) {
    let living: BTreeSet<String> = of_namespace(ctx, namespace).collect();
    ctx.catalog.requests.keep(namespace, &living);
}

fn has_unknown(ctx: &Context, namespace: &str) -> bool {
    of_namespace(ctx, namespace).any(|name| !ctx.catalog.requests.knows(namespace, &name))
}

fn of_namespace(ctx: &Context, namespace: &str) -> impl Iterator<Item = String> {
    let is_here = move |server: &PaperMCServer| {
        server.namespace().as_deref() == Some(namespace) && server.metadata.deletion_timestamp.is_none()
    };
    ctx.servers.state().into_iter().filter(move |server| is_here(server)).map(|server| server.name_any())
}

fn wake_others<'g>(ctx: &Context, namespace: &str, server: &str, groups: impl IntoIterator<Item = &'g Group>) {
    for group in groups {
        companions(group, server).for_each(|name| ctx.look_again_in_a_moment(namespace, name));
    }
}
