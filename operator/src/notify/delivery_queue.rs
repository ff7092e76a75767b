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
    Told,
    GivenUp,
}

/// The route to one receiver. A cluster channel has one route for all servers. It delivers one message after the other
/// and pauses after a failed attempt, however many servers have pending notifications.
#[derive(Default)]
pub(super) struct Route {
    /// The number of failures in a row. Locked during a delivery and during the pause after a failed one.
    pub(super) turn: tokio::sync::Mutex<u32>,
    /// Signals a change that makes another attempt worthwhile.
    pub(super) news: Notify,
    known: Mutex<RouteState>,
}

/// The state of a route.
#[derive(Default)]
pub(super) struct RouteState {
    /// Why the last attempt failed.
    pub(super) fault: Option<DeliveryError>,
    /// The last check of the Secret: its time and its error.
    pub(super) looked: Option<(Timestamp, Option<DeliveryError>)>,
}

impl RouteState {
    /// The error that blocks the route, as far as it is known.
    pub(super) fn in_the_way(&self) -> Option<&DeliveryError> {
        let looked = self.looked.as_ref().and_then(|(_, fault)| fault.as_ref());
        looked.or(self.fault.as_ref())
    }
}

impl Route {
    /// The guard is never held over an await.
    pub(super) fn known(&self) -> MutexGuard<'_, RouteState> {
        // Each change under this lock leaves the value consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pending notifications of one server for one channel.
pub(super) struct DeliveryQueue {
    /// A queue that was removed and created again has a new id.
    pub(super) id: u64,
    pub(super) channel: Channel,
    pub(super) lane: Arc<Route>,
    pub(super) queue: Vec<NotificationState>,
    /// Finished deliveries that are not in the status yet.
    pub(super) ended: BTreeMap<NotificationKey, DeliveryEnd>,
    pub(super) is_busy: bool,
}

/// The queues of all servers.
#[derive(Default)]
pub(super) struct DeliveryQueues {
    made: u64,
    /// By server, then by channel: a pass over one server touches only the queues of this server.
    pub(super) of: BTreeMap<Key, BTreeMap<String, DeliveryQueue>>,
    /// The routes that all servers share, by the channel's name.
    shared: BTreeMap<String, Arc<Route>>,
}

impl DeliveryQueues {
    /// The route to a channel: a new one, or the shared one of the cluster.
    pub(super) fn lane(&mut self, channel: &Channel) -> Arc<Route> {
        match channel.whose {
            ChannelOwner::Server => Arc::default(),
            ChannelOwner::Cluster => self.shared.entry(channel.name.clone()).or_default().clone(),
        }
    }

    /// The queue of a channel, updated to its current configuration.
    pub(super) fn open(&mut self, server: &Key, channel: &Channel) -> &mut DeliveryQueue {
        self.made += 1;
        let lane = self.lane(channel);
        let fresh = || DeliveryQueue {
            id: self.made,
            channel: channel.clone(),
            lane: lane.clone(),
            queue: Vec::new(),
            ended: BTreeMap::new(),
            is_busy: false,
        };
        let of_server = self.of.entry(server.clone()).or_default();
        let desk = of_server.entry(channel.name.clone()).or_insert_with(fresh);
        if desk.channel != *channel {
            desk.channel = channel.clone();
            // The state belongs to the old route. A worker that waits there starts again on the new one.
            desk.lane.news.notify_one();
            desk.lane = lane;
        }
        desk
    }

    pub(super) fn busy(&mut self, (server, channel): &ChannelKey, id: u64) -> Option<&mut DeliveryQueue> {
        self.of.get_mut(server)?.get_mut(channel).filter(|desk| desk.id == id)
    }

    /// Removes the queues of channels that are no longer configured, and wakes their workers.
    pub(super) fn close_all_but(&mut self, server: &Key, channels: &[Channel]) {
        let Some(of_server) = self.of.get_mut(server) else { return };
        of_server.retain(|name, desk| {
            let stays = channels.iter().any(|channel| channel.name == *name);
            if !stays {
                desk.lane.news.notify_one();
            }
            stays
        });
        if of_server.is_empty() {
            self.of.remove(server);
        }
    }

    /// The servers that use this route.
    pub(super) fn users(&self, lane: &Arc<Route>) -> Vec<Key> {
        let uses = |desks: &BTreeMap<String, DeliveryQueue>| desks.values().any(|desk| Arc::ptr_eq(&desk.lane, lane));
        self.of.iter().filter(|(_, desks)| uses(desks)).map(|(server, _)| server.clone()).collect()
    }
}

pub(super) fn name_of(notice: &NotificationState) -> NotificationKey {
    (notice.occasion, notice.about.clone())
}
