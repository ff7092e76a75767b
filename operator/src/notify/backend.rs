//! Edge (reads). What the messenger has to ask others for: the address in a Secret, and whether this process still leads.

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

/// What the messenger has to ask others for.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The address that stands in a Secret; None: the cluster cannot be asked now.
    fn address(
        &self,
        namespace: &str,
        secret: &SecretKey,
    ) -> impl Future<Output = Option<Result<Webhook, DeliveryError>>> + Send;

    /// Whether this process leads, as the Lease itself says now. Another leader tells what is left to be told.
    fn leads(&self) -> impl Future<Output = bool> + Send;

    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The real one.
pub(crate) struct KubeBackend {
    pub(crate) client: Client,
    pub(crate) standing: LeaseHolder,
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

    async fn leads(&self) -> bool {
        match self.standing.is_held(&self.client, now()).await {
            Ok(holds) => holds,
            Err(error) => {
                warn!(error = %ErrorChain(&error), "could not read the Lease; nothing is told meanwhile");
                false
            }
        }
    }

    fn now(&self) -> Timestamp {
        now()
    }
}
