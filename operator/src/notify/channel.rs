//! Pure. Who is told about a server: its own channels, and those of the cluster.

use crds::PaperMCServer;
use crds::paper_mc_server::{NotificationEvent, NotifyChannel};
use kube::ResourceExt as _;

/// What stands before the name of a channel of the cluster in a status. No server can name its own so: a name has no slash.
const OF_THE_CLUSTER: &str = "cluster/";

/// Whose word it is that a channel is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelOwner {
    /// The server's: `spec.notify`.
    Server,
    /// That of whoever installed the operator: `notify.channels` of the chart.
    Cluster,
}

/// A channel that is told about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) whose: ChannelOwner,
    /// As a status names it: `team`, `cluster/team`.
    pub(crate) name: String,
    /// Where its Secret is.
    pub(crate) namespace: String,
    /// As it was written.
    pub(crate) written: NotifyChannel,
}

impl Channel {
    /// One of the operator's, whose namespace holds its Secret.
    pub(crate) fn of_the_cluster(namespace: &str, written: NotifyChannel) -> Self {
        let name = format!("{OF_THE_CLUSTER}{}", written.name);
        Self { whose: ChannelOwner::Cluster, name, namespace: namespace.to_owned(), written }
    }

    /// One of a server's own.
    pub(crate) fn of_a_server(namespace: &str, written: NotifyChannel) -> Self {
        Self { whose: ChannelOwner::Server, name: written.name.clone(), namespace: namespace.to_owned(), written }
    }

    /// Whether it is told about this.
    pub(crate) fn wants(&self, occasion: NotificationEvent) -> bool {
        self.written.wants(occasion)
    }
}

/// Everybody who is told about a server. `of_the_cluster` are the channels that the operator was given.
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
    fn a_channel_of_the_cluster_stands_beside_a_servers_own_of_the_same_name_until_the_server_does_not_want_it() {
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
