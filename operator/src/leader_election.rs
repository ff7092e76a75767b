//! Edge (writes). Elects one leader by a Lease.
//!
//! The process ends when it loses the Lease.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder};
use serde_json::json;
use tracing::warn;

use crate::Config;
use crate::error_chain::ErrorChain;

/// The default of the Lease's name.
pub(crate) const LEASE: &str = "nightshift-leader";
/// Lifetime of the Lease without a renewal, in seconds. Then another replica can take over.
const DURATION_SECONDS: u64 = 15;
/// How long before the end of that time the leader renews, in seconds.
const GRACE_SECONDS: u64 = 5;

/// The label of the leader's pod.
const LEADER_LABEL: &str = "nightshift.dev/leader";
/// Pause between two attempts to write it.
const MARK_PAUSE: Duration = Duration::from_secs(2);

/// The result of a won election.
pub(crate) struct Leadership {
    /// Grows with each new leader. Agents refuse a lower one than they have seen, so a leader that was suspended cannot
    /// command them any more.
    pub(crate) fence: u64,
    /// Ends when the Lease is lost.
    pub(crate) lost: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The identity of a leader, by its Lease.
#[derive(Debug, Clone)]
pub(crate) struct LeaseHolder {
    /// The namespace of the Lease.
    pub(crate) namespace: String,
    /// The name of the Lease.
    pub(crate) lease: String,
    /// The holder identity in the Lease.
    pub(crate) identity: String,
    /// The number of leaders before this one.
    pub(crate) fence: u64,
}

/// How much time the Lease must have left when the operator sends something that no fence protects. Sending takes less.
const MIN_REMAINING: SignedDuration = SignedDuration::from_secs(5);

impl LeaseHolder {
    /// The identity of a process that leads with this configuration and fence.
    pub(crate) fn new(config: &Config, fence: u64) -> Self {
        Self {
            namespace: config.namespace.clone(),
            lease: config.lease.clone(),
            identity: config.identity.clone(),
            fence,
        }
    }

    /// Whether this leader still holds the Lease, and for at least [`MIN_REMAINING`] from now. A process that was suspended
    /// learns this from the Lease before its own clock shows it.
    pub(crate) async fn is_held(&self, client: &Client, now: Timestamp) -> Result<bool, kube::Error> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &self.namespace);
        Ok(self.is_held_by(&leases.get(&self.lease).await?, now))
    }

    fn is_held_by(&self, lease: &Lease, now: Timestamp) -> bool {
        let Some(spec) = &lease.spec else { return false };
        let duration = SignedDuration::from_secs(i64::from(spec.lease_duration_seconds.unwrap_or(0)));
        let until = spec.renew_time.as_ref().map(|renewed| renewed.0 + duration);
        spec.holder_identity.as_deref() == Some(self.identity.as_str())
            && transitions(lease) == self.fence
            && until.is_some_and(|until| until >= now + MIN_REMAINING)
    }
}

/// Waits until this process leads.
pub(crate) async fn lead(client: Client, config: &Config) -> anyhow::Result<Leadership> {
    let Config { namespace, lease, identity, .. } = config;
    let manager = LeaseManagerBuilder::new(client.clone(), lease)
        .with_namespace(namespace)
        .with_identity(identity)
        .with_duration(DURATION_SECONDS)
        .with_grace(GRACE_SECONDS)
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .with_field_manager("nightshift/leader")
        .build()
        .await
        .with_context(|| format!("could not prepare Lease `{lease}` in namespace `{namespace}`"))?;
    let (mut leads, task) = manager.watch().await;
    while !*leads.borrow_and_update() {
        leads.changed().await.context("the watch of the Lease has ended")?;
    }
    let fence = read_fence(client, namespace, lease).await?;
    let lost = Box::pin(async move {
        while leads.changed().await.is_ok() {
            if !*leads.borrow_and_update() {
                break;
            }
        }
        task.abort();
    });
    Ok(Leadership { fence, lost })
}

async fn read_fence(client: Client, namespace: &str, name: &str) -> anyhow::Result<u64> {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let lease = leases.get(name).await.with_context(|| format!("could not read Lease `{name}`"))?;
    Ok(transitions(&lease))
}

/// Marks this process's pod as the leader's, or removes the mark of an earlier process in the same pod. The Service of the store
/// selects it. Repeats until the API server has answered. Outside of a pod, and without the permission, it only logs.
pub(crate) async fn mark_pod(client: Client, config: Config, leads: bool) {
    let pods: Api<Pod> = Api::namespaced(client, &config.namespace);
    let label = json!({"metadata": {"labels": {LEADER_LABEL: leads.then_some("true")}}});
    loop {
        let patched = pods.patch_metadata(&config.identity, &PatchParams::default(), &Patch::Merge(&label)).await;
        let Err(problem) = patched else { return };
        warn!(error = %ErrorChain(&problem), pod = config.identity, "could not mark the pod of the leader");
        if matches!(&problem, kube::Error::Api(status) if matches!(status.code, 403 | 404)) {
            return;
        }
        tokio::time::sleep(MARK_PAUSE).await;
    }
}

fn transitions(lease: &Lease) -> u64 {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
    u64::try_from(transitions).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_counts_only_for_holder_until_near_expiry() {
        let lease: Lease = serde_json::from_value(json!({"spec": {
            "holderIdentity": "operator-b", "leaseTransitions": 7, "leaseDurationSeconds": 15,
            "renewTime": "2026-11-22T04:00:00.000000Z",
        }}))
        .unwrap();
        let is_held = |identity: &str, fence, seconds| {
            let holder = LeaseHolder {
                namespace: "n".to_owned(),
                lease: LEASE.to_owned(),
                identity: identity.to_owned(),
                fence,
            };
            let renewed: Timestamp = "2026-11-22T04:00:00Z".parse().unwrap();
            holder.is_held_by(&lease, renewed + SignedDuration::from_secs(seconds))
        };
        assert!(is_held("operator-b", 7, 0) && is_held("operator-b", 7, 10));
        assert!(!is_held("operator-a", 7, 0), "another replica holds the Lease");
        assert!(!is_held("operator-b", 6, 0), "the Lease was lost in between");
        assert!(!is_held("operator-b", 7, 11), "the Lease may expire before a message is sent");
    }
}
