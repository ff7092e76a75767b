//! Edge (reads). What the messenger has to ask others for: the address in a Secret, and whether this process still leads.

use std::future::Future;

use crds::paper_mc_server::SecretKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use tracing::warn;

use super::fault::Fault;
use super::webhook::Webhook;
use crate::chain::Chain;
use crate::clock::now;
use crate::leader::Standing;

/// What the messenger has to ask others for.
pub(crate) trait Office: Send + Sync + 'static {
    /// The address that stands in a Secret; None: the cluster cannot be asked now.
    fn address(
        &self,
        namespace: &str,
        secret: &SecretKey,
    ) -> impl Future<Output = Option<Result<Webhook, Fault>>> + Send;

    /// Whether this process leads, as the Lease itself says now. Another leader tells what is left to be told.
    fn leads(&self) -> impl Future<Output = bool> + Send;

    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The real one.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) standing: Standing,
}

impl Office for Cluster {
    async fn address(&self, namespace: &str, secret: &SecretKey) -> Option<Result<Webhook, Fault>> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match secrets.get_opt(&secret.name).await {
            Ok(Some(found)) => {
                let value = found.data.as_ref().and_then(|data| data.get(&secret.key));
                Some(match value.map(|bytes| std::str::from_utf8(&bytes.0)) {
                    Some(Ok(text)) => Webhook::parse(text),
                    Some(Err(_)) => Err(Fault::NotAnAddress),
                    None => Err(Fault::KeyMissing),
                })
            }
            Ok(None) => Some(Err(Fault::SecretMissing)),
            Err(error) => {
                warn!(secret = secret.name, error = %Chain(&error), "could not read the Secret of a channel");
                None
            }
        }
    }

    async fn leads(&self) -> bool {
        match self.standing.is_held(&self.client, now()).await {
            Ok(holds) => holds,
            Err(error) => {
                warn!(error = %Chain(&error), "could not read the Lease; nothing is told meanwhile");
                false
            }
        }
    }

    fn now(&self) -> Timestamp {
        now()
    }
}
