//! Edge (reads). Reads the Secret that contains a webhook's address, and the Lease, for the notifier.

use std::future::Future;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use tracing::warn;

use super::channel::{Channel, ChannelOwner};
use super::delivery_error::DeliveryError;
use super::webhook_url::Webhook;
use crate::clock::now;
use crate::error_chain::ErrorChain;
use crate::k8s::labels::allows_use;
use crate::leader_election::LeaseHolder;

/// Access of the notifier to the cluster.
pub(crate) trait Backend: Send + Sync + 'static {
    /// The webhook address in the Secret of a channel. `None` if the cluster does not answer.
    fn address(&self, channel: &Channel) -> impl Future<Output = Option<Result<Webhook, DeliveryError>>> + Send;

    /// Whether this process leads, by the current Lease. Another leader delivers the remaining notifications.
    fn is_leader(&self) -> impl Future<Output = bool> + Send;

    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The implementation for a real cluster.
pub(crate) struct KubeBackend {
    pub(crate) client: Client,
    pub(crate) lease_holder: LeaseHolder,
    /// Whether the Secret of a server's own channel needs the label that allows its use.
    pub(crate) requires_label: bool,
}

impl Backend for KubeBackend {
    async fn address(&self, channel: &Channel) -> Option<Result<Webhook, DeliveryError>> {
        let secret = &channel.config.secret;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &channel.namespace);
        // An admin of the operator names the Secrets of the cluster's channels.
        let needs_label = self.requires_label && channel.owner == ChannelOwner::Server;
        match secrets.get_opt(&secret.name).await {
            Ok(Some(found)) if needs_label && !allows_use(found.labels()) => Some(Err(DeliveryError::NotAllowed)),
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use http::Response;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::Config;

    fn backend(secret: Value, requires_label: bool) -> KubeBackend {
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let answer = Response::new(Body::from(secret.to_string().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let lease_holder = LeaseHolder::new(&Config::parse_from(["operator"]), 1);
        KubeBackend { client: Client::new(service, "games"), lease_holder, requires_label }
    }

    #[tokio::test]
    async fn unlabelled_secret_is_not_used_for_channel_of_server() {
        let config = json!({"name": "team", "type": "Slack", "secret": {"name": "chat", "key": "address"}});
        let config: crds::paper_mc_server::NotifyChannel = serde_json::from_value(config).unwrap();
        let of_server = Channel::for_server("games", config.clone());
        let of_cluster = Channel::for_cluster("nightshift-system", config);
        let secret = |labels: Value| {
            let address = k8s_openapi::ByteString(b"https://chat.example/hook".to_vec());
            json!({"metadata": {"name": "chat", "labels": labels}, "data": {"address": address}})
        };
        let labelled = secret(json!({"nightshift.dev/allow-use": "true"}));
        for (secret, requires_label, channel, is_used) in [
            (secret(json!({})), true, &of_server, false),
            (secret(json!({"nightshift.dev/allow-use": "false"})), true, &of_server, false),
            (labelled, true, &of_server, true),
            (secret(json!({})), false, &of_server, true),
            (secret(json!({})), true, &of_cluster, true),
        ] {
            let found = backend(secret.clone(), requires_label).address(channel).await.unwrap();
            assert_eq!(found.is_ok(), is_used, "{secret}");
            if let Err(error) = found {
                let text = error.message(channel);
                assert!(text.contains("`kubectl -n games label secret chat nightshift.dev/allow-use=true`"), "{text}");
            }
        }
    }
}
