//! Edge (reads). Reads the Secret that contains a webhook's address, and the Lease, for the notifier.

use std::future::Future;

use crds::paper_mc_server::SecretKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use tracing::warn;

use super::delivery_error::DeliveryError;
use super::webhook_url::Webhook;
use crate::clock::now;
use crate::error_chain::ErrorChain;
use crate::leader_election::LeaseHolder;

/// Access of the notifier to the cluster.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The webhook address in a Secret. `None` if the cluster does not answer.
    fn address(
        &self,
        namespace: &str,
        secret: &SecretKey,
    ) -> impl Future<Output = Option<Result<Webhook, DeliveryError>>> + Send;

    /// Whether this process leads, by the current Lease. Another leader delivers the remaining notifications.
    fn is_leader(&self) -> impl Future<Output = bool> + Send;

    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The implementation for a real cluster.
pub(crate) struct KubeBackend {
    pub(crate) client: Client,
    pub(crate) lease_holder: LeaseHolder,
}

impl Backend for KubeBackend {
    async fn address(&self, namespace: &str, secret: &SecretKey) -> Option<Result<Webhook, DeliveryError>> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match secrets.get_opt(&secret.name).await {
            Ok(Some(found)) => {
                let value = found.data.as_ref().and_then(|data| data.get(&secret.key));
                Some(match value.map(|bytes| std::str::from_utf8(&bytes.0)) {
                    Some(Ok(text)) => Webhook::parse(text),
                    Some(Err(_)) => Err(DeliveryError::NotAnAddress),
                    None => Err(DeliveryError::KeyMissing),
                })
            }
            Ok(None) => Some(Err(DeliveryError::SecretMissing)),
            Err(error) => {
                warn!(secret = secret.name, error = %ErrorChain(&error), "could not read the Secret of a channel");
                None
            }
        }
    }

    async fn is_leader(&self) -> bool {
        match self.lease_holder.is_held(&self.client, now()).await {
            Ok(is_held) => is_held,
            Err(error) => {
                warn!(error = %ErrorChain(&error), "could not read the Lease; notifications wait");
                false
            }
        }
    }

    fn now(&self) -> Timestamp {
        now()
    }
}
