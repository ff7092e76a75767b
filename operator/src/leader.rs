//! Edge (writes). One replica leads, by a Lease; losing it ends the process.

use std::future::Future;
use std::pin::Pin;

use anyhow::Context as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;
use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder};

/// The Lease's name.
const LEASE: &str = "nightshift-leader";
/// A dead leader is replaced after this long, in seconds.
const DURATION_SECONDS: u64 = 15;
/// The leader renews this long before its time is up, in seconds.
const GRACE_SECONDS: u64 = 5;

/// What a leader has.
pub(crate) struct Led {
    /// Grows with each new leader. Agents refuse a lower one than they have seen, so a leader that was asleep cannot
    /// command them any more.
    pub(crate) fence: u64,
    /// Ends when the Lease is lost.
    pub(crate) lost: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Waits until this process leads.
pub(crate) async fn lead(client: Client, namespace: &str, identity: &str) -> anyhow::Result<Led> {
    let manager = LeaseManagerBuilder::new(client.clone(), LEASE)
        .with_namespace(namespace)
        .with_identity(identity)
        .with_duration(DURATION_SECONDS)
        .with_grace(GRACE_SECONDS)
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .with_field_manager("nightshift/leader")
        .build()
        .await
        .with_context(|| format!("could not prepare Lease `{LEASE}` in namespace `{namespace}`"))?;
    let (mut leads, task) = manager.watch().await;
    while !*leads.borrow_and_update() {
        leads.changed().await.context("the Lease is not watched any more")?;
    }
    let fence = read_fence(client, namespace).await?;
    let lost = Box::pin(async move {
        while leads.changed().await.is_ok() {
            if !*leads.borrow_and_update() {
                break;
            }
        }
        task.abort();
    });
    Ok(Led { fence, lost })
}

async fn read_fence(client: Client, namespace: &str) -> anyhow::Result<u64> {
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let lease = leases.get(LEASE).await.with_context(|| format!("could not read Lease `{LEASE}`"))?;
    let transitions = lease.spec.and_then(|spec| spec.lease_transitions).unwrap_or(0);
    Ok(u64::try_from(transitions).unwrap_or(0))
}
