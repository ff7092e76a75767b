//! Pure. Returns the newest known status of a server.

use std::sync::Arc;

use crds::{PaperMCServer, PaperMCServerStatus};
use kube::ResourceExt;

use crate::caches::Key;
use crate::context::Context;

/// The key of a server in the caches.
pub(crate) fn key_of(server: &PaperMCServer) -> Key {
    (server.namespace().unwrap_or_default(), server.name_any())
}

/// The status that this process wrote last, which is newer than any cache. Otherwise that of the object.
pub(crate) fn status_before(ctx: &Context, server: &PaperMCServer) -> Arc<PaperMCServerStatus> {
    ctx.caches
        .status
        .get(&key_of(server))
        .filter(|(uid, _)| Some(uid) == server.uid().as_ref())
        .map_or_else(|| Arc::new(server.status.clone().unwrap_or_default()), |(_, status)| status)
}
