//! Pure. Keeps the pending notifications of each channel of each server, and the state of the routes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::paper_mc_server::{NotificationEvent, NotificationState};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::channel::{Channel, ChannelOwner};
use super::delivery_error::DeliveryError;
use crate::caches::Key;

/// A channel of a server, by its name.
pub(super) type ChannelKey = (Key, String);

/// The key of a notification: its event and its subject.
pub(super) type NotificationKey = (NotificationEvent, String);

/// How the delivery of a notification ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryEnd {
    Delivered,
    GivenUp,
}

/// The route to one receiver. A cluster channel has one route for all servers. It delivers one message after the other
/// and pauses after a failed attempt, however many servers have pending notifications.
#[derive(Default)]
pub(super) struct Route {
    /// The number of failures in a row. Locked during a delivery and during the pause after a failed one.
    pub(super) failures: tokio::sync::Mutex<u32>,
    /// Signals a change that makes another attempt worthwhile.
    pub(super) changed: Notify,
    state: Mutex<RouteState>,
}

/// The state of a route.
#[derive(Default)]
pub(super) struct RouteState {
    /// Why the last attempt failed.
    pub(super) error: Option<DeliveryError>,
    /// The last check of the Secret: its time and its error.
    pub(super) secret_check: Option<(Timestamp, Option<DeliveryError>)>,
}

impl RouteState {
    /// The error that blocks the route, as far as it is known.
    pub(super) fn blocking_error(&self) -> Option<&DeliveryError> {
        let secret_error = self.secret_check.as_ref().and_then(|(_, error)| error.as_ref());
        secret_error.or(self.error.as_ref())
    }
}

impl Route {
    /// The guard is never held over an await.
    pub(super) fn state(&self) -> MutexGuard<'_, RouteState> {
        // Each change under this lock leaves the value consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pending notifications of one server for one channel.
pub(super) struct DeliveryQueue {
    /// A queue that was removed and created again has a new id.
    pub(super) id: u64,
    pub(super) channel: Channel,
    pub(super) route: Arc<Route>,
    pub(super) pending: Vec<NotificationState>,
    /// Finished deliveries that are not in the status yet.
    pub(super) ended: BTreeMap<NotificationKey, DeliveryEnd>,
    pub(super) is_busy: bool,
}

/// The queues of all servers.
#[derive(Default)]
pub(super) struct DeliveryQueues {
    last_id: u64,
    /// By server, then by channel: a pass over one server touches only the queues of this server.
    pub(super) by_server: BTreeMap<Key, BTreeMap<String, DeliveryQueue>>,
    /// The routes that all servers share, by the channel's name.
    cluster_routes: BTreeMap<String, Arc<Route>>,
}

impl DeliveryQueues {
    /// The route to a channel: a new one, or the shared one of the cluster.
    pub(super) fn route(&mut self, channel: &Channel) -> Arc<Route> {
        match channel.owner {
            ChannelOwner::Server => Arc::default(),
            ChannelOwner::Cluster => self.cluster_routes.entry(channel.name.clone()).or_default().clone(),
        }
    }

    /// The queue of a channel, updated to its current configuration.
    pub(super) fn queue_for(&mut self, server: &Key, channel: &Channel) -> &mut DeliveryQueue {
        self.last_id += 1;
        let route = self.route(channel);
        let fresh = || DeliveryQueue {
            id: self.last_id,
            channel: channel.clone(),
            route: route.clone(),
            pending: Vec::new(),
            ended: BTreeMap::new(),
            is_busy: false,
        };
        let of_server = self.by_server.entry(server.clone()).or_default();
        let queue = of_server.entry(channel.name.clone()).or_insert_with(fresh);
        if queue.channel != *channel {
            queue.channel = channel.clone();
            // The state belongs to the old route. A worker that waits there starts again on the new one.
            queue.route.changed.notify_one();
            queue.route = route;
        }
        queue
    }

    pub(super) fn get_mut(&mut self, (server, channel): &ChannelKey, id: u64) -> Option<&mut DeliveryQueue> {
        self.by_server.get_mut(server)?.get_mut(channel).filter(|queue| queue.id == id)
    }

    /// Removes the queues of channels that are no longer configured, and wakes their workers.
    pub(super) fn retain_channels(&mut self, server: &Key, channels: &[Channel]) {
        let Some(of_server) = self.by_server.get_mut(server) else { return };
        of_server.retain(|name, queue| {
            let is_configured = channels.iter().any(|channel| channel.name == *name);
            if !is_configured {
                queue.route.changed.notify_one();
            }
            is_configured
        });
        if of_server.is_empty() {
            self.by_server.remove(server);
        }
    }

    /// The servers that use this route.
    pub(super) fn servers_of(&self, route: &Arc<Route>) -> Vec<Key> {
        let uses =
            |queues: &BTreeMap<String, DeliveryQueue>| queues.values().any(|queue| Arc::ptr_eq(&queue.route, route));
        self.by_server.iter().filter(|(_, queues)| uses(queues)).map(|(server, _)| server.clone()).collect()
    }
}

pub(super) fn notification_key(notification: &NotificationState) -> NotificationKey {
    (notification.event, notification.about.clone())
}
