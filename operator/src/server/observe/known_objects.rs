//! Edge (reads). Reads the `StatefulSet` and the pod of a server. While a server starts or is verified, passes ask its agent every few
//! seconds. In between the two objects are read again only if a watch has reported a change.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use scheduler::rollout::{Step, WaitingOn};

use super::{ObserveError, read_error};
use crate::caches::Key;
use crate::context::Context;
use crate::server::model::known_objects::KnownObjects;

/// How long the objects are known without a read, in case a watch is late.
const KNOWN_FOR: SignedDuration = SignedDuration::from_secs(30);

/// How a pass knows the two objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// It has read them.
    Live,
    /// An earlier pass has read them, and no watch has reported a change since.
    Known,
}

impl Reads {
    /// Whether the pass may end with this step. A decision to act always needs live reads: otherwise it could commit a change that a user
    /// has just reverted.
    pub(crate) fn allow(self, step: Step) -> bool {
        let only_waits = matches!(
            step,
            Step::Wait(
                WaitingOn::Controller
                    | WaitingOn::PodMissing
                    | WaitingOn::PodStopping { .. }
                    | WaitingOn::Start { .. }
                    | WaitingOn::Verification { .. }
            )
        );
        self == Self::Live || only_waits
    }
}

/// The objects of the last pass, if they are still the current ones.
pub(crate) fn known_objects(ctx: &Context, server: &Key, now: Timestamp) -> Option<Arc<KnownObjects>> {
    let known = ctx.caches.known_objects.get(server)?;
    let is_recent = (SignedDuration::ZERO..KNOWN_FOR).contains(&now.duration_since(known.read_at));
    (is_recent && known.changes == ctx.caches.changes.get(server).unwrap_or(0)).then_some(known)
}

/// A watch reports a change of one of the objects.
pub(crate) fn record_change(ctx: &Context, server: &Key) {
    let before = ctx.caches.changes.get(server).unwrap_or(0);
    ctx.caches.changes.put(server.clone(), before.wrapping_add(1));
}

/// The `StatefulSet` first, then the pod.
pub(super) async fn read_objects(
    ctx: &Context,
    server: &Key,
    known: Option<&KnownObjects>,
    now: Timestamp,
) -> Result<(Option<StatefulSet>, Option<Pod>), ObserveError> {
    if let Some(known) = known {
        return Ok((known.stateful_set.clone(), known.pod.clone()));
    }
    let (namespace, name) = server;
    // A change during the reads counts as unknown.
    let changes = ctx.caches.changes.get(server).unwrap_or(0);
    let stateful_sets: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), namespace);
    let stateful_set = stateful_sets.get_opt(name).await.map_err(read_error("StatefulSet", name))?;
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), namespace);
    let pod_name = format!("{name}-0");
    let pod = pods.get_opt(&pod_name).await.map_err(read_error("Pod", &pod_name))?;
    let known = KnownObjects { changes, read_at: now, stateful_set: stateful_set.clone(), pod: pod.clone() };
    ctx.caches.known_objects.put(server.clone(), Arc::new(known));
    Ok((stateful_set, pod))
}

#[cfg(test)]
mod tests {
    use scheduler::observation::Revision;

    use super::*;

    #[test]
    fn only_waiting_for_start_or_verification_needs_no_live_reads() {
        let until = Timestamp::UNIX_EPOCH;
        for waiting in [WaitingOn::PodMissing, WaitingOn::Start { until }, WaitingOn::Verification { until }] {
            assert!(Reads::Known.allow(Step::Wait(waiting)));
        }
        for step in [
            Step::UpToDate,
            Step::Wait(WaitingOn::Eviction),
            Step::Wait(WaitingOn::Window { opens: None }),
            Step::MarkStable { revision: Revision(1) },
            Step::MarkFailed { revision: Revision(1) },
        ] {
            assert!(!Reads::Known.allow(step) && Reads::Live.allow(step));
        }
    }
}
