//! Pure. What is to be told in each channel of each server, and what is known of the ways there.

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

/// One of the things a server tells, by what it is about.
pub(super) type NotificationKey = (NotificationEvent, String);

/// How telling something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryEnd {
    Told,
    GivenUp,
}

/// The way to one receiver. A channel of the cluster has one for all servers: one message after the other, and one pause after a
/// try that failed, however many servers have something to tell.
#[derive(Default)]
pub(super) struct Route {
    /// Held while a message is under way, and in the pause after one that failed. How many have failed in a row.
    pub(super) turn: tokio::sync::Mutex<u32>,
    /// Something has changed that makes another try worth it.
    pub(super) news: Notify,
    known: Mutex<RouteState>,
}

/// What is known of a way.
#[derive(Default)]
pub(super) struct RouteState {
    /// Why the last try failed.
    pub(super) fault: Option<DeliveryError>,
    /// What the Secret looked like, and when.
    pub(super) looked: Option<(Timestamp, Option<DeliveryError>)>,
}

impl RouteState {
    /// What is in the way, as far as anybody knows.
    pub(super) fn in_the_way(&self) -> Option<&DeliveryError> {
        let looked = self.looked.as_ref().and_then(|(_, fault)| fault.as_ref());
        looked.or(self.fault.as_ref())
    }
}

impl Route {
    /// For a moment: never held over a wait.
    pub(super) fn known(&self) -> MutexGuard<'_, RouteState> {
        // Each change under this lock leaves whole values behind.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be told about one server in one channel.
pub(super) struct DeliveryQueue {
    /// A desk that was removed and made again is another one.
    pub(super) id: u64,
    pub(super) channel: Channel,
    pub(super) lane: Arc<Route>,
    pub(super) queue: Vec<NotificationState>,
    /// Not yet noted in the status.
    pub(super) ended: BTreeMap<NotificationKey, DeliveryEnd>,
    pub(super) is_busy: bool,
}

/// All of them.
#[derive(Default)]
pub(super) struct DeliveryQueues {
    made: u64,
    /// By server, then by channel: a pass over one server costs what this server has.
    pub(super) of: BTreeMap<Key, BTreeMap<String, DeliveryQueue>>,
    /// Those that all servers share, by the channel's name.
    shared: BTreeMap<String, Arc<Route>>,
}

impl DeliveryQueues {
    /// The way to a channel: of its own, or the one of the cluster.
    pub(super) fn lane(&mut self, channel: &Channel) -> Arc<Route> {
        match channel.whose {
            ChannelOwner::Server => Arc::default(),
            ChannelOwner::Cluster => self.shared.entry(channel.name.clone()).or_default().clone(),
        }
    }

    /// The desk of a channel, as it is written now.
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
            // What is known of the way was known of another one. Whoever waits there begins here.
            desk.lane.news.notify_one();
            desk.lane = lane;
        }
        desk
    }

    pub(super) fn busy(&mut self, (server, channel): &ChannelKey, id: u64) -> Option<&mut DeliveryQueue> {
        self.of.get_mut(server)?.get_mut(channel).filter(|desk| desk.id == id)
    }

    /// Removes the desks of channels that nobody wants told any more. Whoever works there is told.
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

    /// The servers that are told of over this way.
    pub(super) fn users(&self, lane: &Arc<Route>) -> Vec<Key> {
        let uses = |desks: &BTreeMap<String, DeliveryQueue>| desks.values().any(|desk| Arc::ptr_eq(&desk.lane, lane));
        self.of.iter().filter(|(_, desks)| uses(desks)).map(|(server, _)| server.clone()).collect()
    }
}

pub(super) fn name_of(notice: &NotificationState) -> NotificationKey {
    (notice.occasion, notice.about.clone())
}
