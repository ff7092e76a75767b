//! Edge (reads). The servers that share a `latest` plugin with one, and so are decided about together with it.

use crds::PaperMCServer;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use resolver::request::Request;

use crate::context::Context;
use crate::requests::shares;

/// Whether there is a server in the namespace that no pass has looked at since this process started. What it asks for may
/// matter to everybody with a shared plugin.
pub(super) fn is_unknown(ctx: &Context, server: &PaperMCServer, request: &Request) -> bool {
    let namespace = server.namespace().unwrap_or_default();
    let is_new = |other: &PaperMCServer| {
        other.namespace().as_ref() == Some(&namespace)
            && other.metadata.deletion_timestamp.is_none()
            && !ctx.catalog.requests.knows(&namespace, &other.name_any())
    };
    shares(request) && ctx.servers.state().iter().any(|other| is_new(other))
}

/// Wakes the others: what one asks for has changed, and so may their answers.
pub(super) fn wake(ctx: &Context, namespace: &str, request: &Request, together: &[Request]) {
    for other in together.iter().filter(|other| other.server != request.server) {
        let name = other.server.rsplit_once('/').map_or(other.server.as_str(), |(_, name)| name);
        // Nobody listens any more only when the process ends.
        drop(ctx.wake.send(ObjectRef::new(name).within(namespace)));
    }
}
