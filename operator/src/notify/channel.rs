//! Pure. Lists the channels that are notified about a server: its own, and those of the cluster.

use crds::PaperMCServer;
use crds::paper_mc_server::{NotificationEvent, NotifyChannel};
use kube::ResourceExt as _;

/// Prefix of the name of a cluster channel in a status. A server's own channel cannot have it, because names contain no
/// slash.
const CLUSTER_PREFIX: &str = "cluster/";

/// Where a channel is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelOwner {
    /// In the server: `spec.notify`.
    Server,
    /// By the admin who installed the operator: `notify.channels` of the chart.
    Cluster,
}

/// A channel that is notified about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) owner: ChannelOwner,
    /// The name in a status: `team`, `cluster/team`.
    pub(crate) name: String,
    /// The namespace of its Secret.
    pub(crate) namespace: String,
    /// The channel as configured.
    pub(crate) config: NotifyChannel,
}

impl Channel {
    /// A cluster channel. Its Secret is in the operator's namespace.
    pub(crate) fn for_cluster(namespace: &str, config: NotifyChannel) -> Self {
        let name = format!("{CLUSTER_PREFIX}{}", config.name);
        Self { owner: ChannelOwner::Cluster, name, namespace: namespace.to_owned(), config }
    }

    /// A channel of a server's own.
    pub(crate) fn for_server(namespace: &str, config: NotifyChannel) -> Self {
        Self { owner: ChannelOwner::Server, name: config.name.clone(), namespace: namespace.to_owned(), config }
    }

    /// Whether it is notified about this event.
    pub(crate) fn is_subscribed_to(&self, event: NotificationEvent) -> bool {
        self.config.is_subscribed_to(event)
    }
}

/// All channels that are notified about a server. `cluster_channels` are the configured cluster channels.
pub(crate) fn channels_of(server: &PaperMCServer, cluster_channels: &[Channel]) -> Vec<Channel> {
    let namespace = server.namespace().unwrap_or_default();
    let server_channels = server.spec.notify.iter().map(|config| Channel::for_server(&namespace, config.clone()));
    let cluster_channels_if_enabled = cluster_channels.iter().filter(|_| server.spec.notify_cluster).cloned();
    server_channels.chain(cluster_channels_if_enabled).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;

    fn channel_config() -> NotifyChannel {
        let secret = json!({"name": "chat", "key": "address"});
        serde_json::from_value(json!({"name": "team", "type": "Slack", "secret": secret})).unwrap()
    }

    #[test]
    fn cluster_channel_coexists_with_server_channel_of_same_name() {
        let all = [Channel::for_cluster("nightshift-system", channel_config())];
        let listed = |spec| -> Vec<(String, String)> {
            channels_of(&server(spec), &all).into_iter().map(|channel| (channel.name, channel.namespace)).collect()
        };
        let pair = |name: &str, namespace: &str| (name.to_owned(), namespace.to_owned());
        let (server_channel, cluster_channel) = (pair("team", "games"), pair("cluster/team", "nightshift-system"));
        assert_eq!(listed(json!({"notify": [channel_config()]})), [server_channel.clone(), cluster_channel.clone()]);
        assert_eq!(listed(json!({})), [cluster_channel]);
        assert_eq!(listed(json!({"notify": [channel_config()], "notifyCluster": false})), [server_channel]);
    }
}
