//! Pure. Lists the channels that are notified about a server: its own, and those of the cluster.

use crds::PaperMCServer;
use crds::paper_mc_server::{NotificationEvent, NotifyChannel};
use kube::ResourceExt as _;

/// Prefix of the name of a cluster channel in a status. A server's own channel cannot have it, because names contain no
/// slash.
const OF_THE_CLUSTER: &str = "cluster/";

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
    pub(crate) whose: ChannelOwner,
    /// The name in a status: `team`, `cluster/team`.
    pub(crate) name: String,
    /// The namespace of its Secret.
    pub(crate) namespace: String,
    /// The channel as configured.
    pub(crate) written: NotifyChannel,
}

impl Channel {
    /// A cluster channel. Its Secret is in the operator's namespace.
    pub(crate) fn of_the_cluster(namespace: &str, written: NotifyChannel) -> Self {
        let name = format!("{OF_THE_CLUSTER}{}", written.name);
        Self { whose: ChannelOwner::Cluster, name, namespace: namespace.to_owned(), written }
    }

    /// A channel of a server's own.
    pub(crate) fn of_a_server(namespace: &str, written: NotifyChannel) -> Self {
        Self { whose: ChannelOwner::Server, name: written.name.clone(), namespace: namespace.to_owned(), written }
    }

    /// Whether it is notified about this event.
    pub(crate) fn wants(&self, occasion: NotificationEvent) -> bool {
        self.written.wants(occasion)
    }
}

/// All channels that are notified about a server. `of_the_cluster` are the configured cluster channels.
pub(crate) fn channels_of(server: &PaperMCServer, of_the_cluster: &[Channel]) -> Vec<Channel> {
    let namespace = server.namespace().unwrap_or_default();
    let own = server.spec.notify.iter().map(|written| Channel::of_a_server(&namespace, written.clone()));
    let shared = of_the_cluster.iter().filter(|_| server.spec.notify_cluster).cloned();
    own.chain(shared).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::check::tests::server;

    fn written() -> NotifyChannel {
        let secret = json!({"name": "chat", "key": "address"});
        serde_json::from_value(json!({"name": "team", "type": "Slack", "secret": secret})).unwrap()
    }

    #[test]
    fn cluster_channel_coexists_with_server_channel_of_same_name() {
        let all = [Channel::of_the_cluster("nightshift-system", written())];
        let seen = |spec| -> Vec<(String, String)> {
            channels_of(&server(spec), &all).into_iter().map(|it| (it.name, it.namespace)).collect()
        };
        let pair = |name: &str, namespace: &str| (name.to_owned(), namespace.to_owned());
        let (own, shared) = (pair("team", "games"), pair("cluster/team", "nightshift-system"));
        assert_eq!(seen(json!({"notify": [written()]})), [own.clone(), shared.clone()]);
        assert_eq!(seen(json!({})), [shared]);
        assert_eq!(seen(json!({"notify": [written()], "notifyCluster": false})), [own]);
    }
}
