//! Edge (writes). Delivers notifications about servers to chat channels, independently of the passes, so no pass waits
//! for a channel.
//!
//! Pending notifications are in the status of their server until it records the delivery. The operator writes them
//! together with the facts that they follow from, so they survive a restart of the process. Each channel of each server
//! has a worker of its own while notifications are pending, and the worker delivers one after the other. The workers of
//! a cluster channel deliver one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::PaperMCServer;
use crds::paper_mc_server::NotificationState;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use crate::caches::Key;
use crate::telemetry::metrics::{DeliveryLabels, NotificationMetrics};

pub(crate) mod backend;
mod backoff;
mod channel;
pub(crate) mod cluster_config;
mod delivery_error;
mod delivery_queue;
mod http_sender;
mod message;
mod webhook_url;

use backend::Backend;
use backoff::DeliveryBackoff;
pub(crate) use channel::Channel;
use channel::ChannelOwner;
pub(crate) use delivery_error::DeliveryError;
use delivery_queue::{ChannelKey, DeliveryEnd, DeliveryQueues, Route, name_of};
use http_sender::HttpFailure;
pub(crate) use http_sender::HttpSender;
use message::build_body;

/// Limit of concurrent deliveries, for all servers together.
const AT_ONCE: usize = 16;
/// How long a read of a Secret is reused. An update has a pass each second.
const LOOK_COUNTS: SignedDuration = SignedDuration::from_secs(60);
/// How often the Secrets of the cluster channels are checked, even without a pass over any server.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// Wakes a server, so that its next pass records a change.
pub(crate) type WakeFn = Box<dyn Fn(&Key) + Send + Sync>;

/// A channel that is failing now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelError {
    pub(crate) channel: Channel,
    pub(crate) fault: DeliveryError,
}

/// A delivery attempt that failed.
struct FailedAttempt {
    /// `None` if the channel did not cause it: the cluster did not answer, or another process leads.
    fault: Option<DeliveryError>,
    asked: Option<Duration>,
}

impl From<HttpFailure> for FailedAttempt {
    fn from(HttpFailure { fault, asked }: HttpFailure) -> Self {
        Self { fault: Some(fault), asked }
    }
}

struct Inner<O> {
    office: O,
    post: HttpSender,
    pace: DeliveryBackoff,
    wake: WakeFn,
    metrics: NotificationMetrics,
    at_once: Semaphore,
    /// The channels that are notified about all servers.
    cluster: Vec<Channel>,
    desks: Mutex<DeliveryQueues>,
}

/// Delivers notifications. One for the process, and cheap to clone.
pub(crate) struct Notifier<O>(Arc<Inner<O>>);

impl<O: Backend> Notifier<O> {
    /// `cluster` are the channels that are notified about all servers.
    pub(crate) fn new(
        office: O,
        post: HttpSender,
        wake: WakeFn,
        metrics: NotificationMetrics,
        cluster: Vec<Channel>,
    ) -> Self {
        Self::with_pace(office, post, wake, metrics, cluster, DeliveryBackoff::default())
    }

    fn with_pace(
        office: O,
        post: HttpSender,
        wake: WakeFn,
        metrics: NotificationMetrics,
        cluster: Vec<Channel>,
        pace: DeliveryBackoff,
    ) -> Self {
        let at_once = Semaphore::new(AT_ONCE);
        Self(Arc::new(Inner { office, post, pace, wake, metrics, at_once, cluster, desks: Mutex::default() }))
    }

    /// All channels that are notified about a server.
    pub(crate) fn channels_of(&self, server: &PaperMCServer) -> Vec<Channel> {
        channel::channels_of(server, &self.0.cluster)
    }

    /// Checks the cluster channels forever, so that an error in one shows early, even without a pass over any server.
    pub(crate) fn watch_cluster(&self) {
        let inner = Arc::clone(&self.0);
        if inner.cluster.is_empty() {
            return;
        }
        tokio::spawn(async move {
            loop {
                inner.look_at_cluster().await;
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
    }

    /// Takes over the pending notifications from a server's status, as it was written last. A delivery that is already
    /// in progress continues.
    pub(crate) fn offer(&self, server: &Key, channels: &[Channel], notices: &[NotificationState]) {
        let mut desks = self.0.desks();
        desks.close_all_but(server, channels);
        for channel in channels {
            let pending: Vec<&NotificationState> =
                notices.iter().filter(|notice| notice.pending.contains(&channel.name)).collect();
            let is_open = desks.of.get(server).is_some_and(|open| open.contains_key(&channel.name));
            if pending.is_empty() && !is_open {
                continue;
            }
            let desk = desks.open(server, channel);
            // An end whose notification is no longer pending is recorded in the status.
            desk.ended.retain(|name, _| pending.iter().any(|notice| name_of(notice) == *name));
            desk.queue =
                pending.into_iter().filter(|notice| !desk.ended.contains_key(&name_of(notice))).cloned().collect();
            if !desk.queue.is_empty() && !desk.is_busy {
                desk.is_busy = true;
                let seat = (server.clone(), channel.name.clone());
                tokio::spawn(Inner::work(Arc::clone(&self.0), seat, desk.id));
            }
        }
    }

    /// Records delivered and abandoned notifications in the status that is about to be written.
    pub(crate) fn note(&self, server: &Key, notices: &mut [NotificationState]) {
        let desks = self.0.desks();
        for (channel, desk) in desks.of.get(server).into_iter().flatten() {
            for notice in notices.iter_mut() {
                let Some(end) = desk.ended.get(&name_of(notice)) else { continue };
                let was_pending = notice.pending.contains(channel);
                notice.pending.retain(|name| name != channel);
                if *end == DeliveryEnd::GivenUp && was_pending {
                    notice.given_up.push(channel.clone());
                }
            }
        }
    }

    /// Checks the channels' Secrets, so that an error in one shows before a notification is due. Also returns the error
    /// of the last delivery.
    pub(crate) async fn look(&self, server: &Key, channels: &[Channel], now: Timestamp) -> Vec<ChannelError> {
        let mut troubles = Vec::new();
        for channel in channels {
            let lane = self.0.desks().open(server, channel).lane.clone();
            if let Some(fault) = self.0.look_at(&lane, channel, now).await {
                troubles.push(ChannelError { channel: channel.clone(), fault });
            }
        }
        troubles
    }

    /// Removes the queues of a deleted server.
    pub(crate) fn forget(&self, server: &Key) {
        self.offer(server, &[], &[]);
    }
}

impl<O: Backend> Inner<O> {
    fn desks(&self) -> MutexGuard<'_, DeliveryQueues> {
        // Each change under this lock leaves the value consistent.
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_at_cluster(&self) {
        let mut failing = 0;
        for channel in &self.cluster {
            let lane = self.desks().lane(channel);
            self.look_at(&lane, channel, self.office.now()).await;
            failing += i64::from(lane.known().in_the_way().is_some());
        }
        self.metrics.cluster_failing.set(failing);
    }

    /// The error that blocks a channel: the one of its Secret now, or else the one of the last delivery. `None` also if
    /// the cluster does not answer.
    async fn look_at(&self, lane: &Arc<Route>, channel: &Channel, now: Timestamp) -> Option<DeliveryError> {
        let known = lane.known().looked.clone();
        if let Some((at, _)) = known
            && now < at + LOOK_COUNTS
        {
            return lane.known().in_the_way().cloned();
        }
        let found = self.office.address(&channel.namespace, &channel.written.secret).await?;
        let fault = found.and_then(|webhook| self.post.check(&webhook).map(drop)).err();
        let (is_news, in_the_way) = {
            let mut known = lane.known();
            let was = known.looked.replace((now, fault.clone())).and_then(|(_, was)| was);
            // Not for an error that only a connection shows: each pass would then try again.
            if was.is_some() && fault.is_none() {
                known.fault = None;
                lane.news.notify_one();
            }
            (was != fault, known.in_the_way().cloned())
        };
        if is_news && channel.whose == ChannelOwner::Cluster {
            if let Some(fault) = &fault {
                warn!(error = fault.in_words(channel), "a channel of the cluster cannot be told");
            } else {
                info!(channel = channel.name, "a channel of the cluster can be told again");
            }
            self.wake_users(lane);
        }
        in_the_way
    }

    /// Wakes all servers that use a route, because the error of the route is in the status of each.
    fn wake_users(&self, lane: &Arc<Route>) {
        let users = self.desks().users(lane);
        for server in &users {
            (self.wake)(server);
        }
    }

    /// Worker: delivers all notifications of one server to one channel, and ends.
    async fn work(self: Arc<Self>, seat: ChannelKey, id: u64) {
        while let Some(lane) = self.lane_of(&seat, id) {
            let mut failures = lane.turn.lock().await;
            let Some((channel, notice)) = self.next(&seat, id) else { return };
            let Err(FailedAttempt { fault, asked }) = self.tell(&seat.0, &channel, &notice).await else {
                *failures = 0;
                self.end(&seat, id, &notice, DeliveryEnd::Told);
                continue;
            };
            if fault.as_ref().is_some_and(DeliveryError::is_of_the_message) {
                self.note_fault(&seat, &lane, &channel, fault);
                self.end(&seat, id, &notice, DeliveryEnd::GivenUp);
                continue;
            }
            *failures += 1;
            let pause = self.pace.pause(*failures, fault.as_ref(), asked);
            self.note_fault(&seat, &lane, &channel, fault);
            // The guard is held during the pause, so that no other worker repeats the attempt that has just failed.
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = lane.news.notified() => *failures = 0,
            }
        }
    }

    fn lane_of(&self, seat: &ChannelKey, id: u64) -> Option<Arc<Route>> {
        self.desks().busy(seat, id).map(|desk| desk.lane.clone())
    }

    /// The next notification to deliver. `None` if there is none, and the caller has to end.
    fn next(&self, seat: &ChannelKey, id: u64) -> Option<(Channel, NotificationState)> {
        let now = self.office.now();
        let late: Vec<NotificationState> = {
            let mut desks = self.desks();
            let queue = &desks.busy(seat, id)?.queue;
            queue.iter().filter(|notice| notice.until <= now).cloned().collect()
        };
        for notice in late {
            self.end(seat, id, &notice, DeliveryEnd::GivenUp);
        }
        let mut desks = self.desks();
        let desk = desks.busy(seat, id)?;
        let next = desk.queue.first().cloned();
        desk.is_busy = next.is_some();
        Some((desk.channel.clone(), next?))
    }

    /// One delivery attempt.
    async fn tell(&self, server: &Key, channel: &Channel, notice: &NotificationState) -> Result<(), FailedAttempt> {
        const NOT_OURS: FailedAttempt = FailedAttempt { fault: None, asked: None };
        // The semaphore is never closed: it exists as long as `self`.
        let _permit = self.at_once.acquire().await;
        let address = self.office.address(&channel.namespace, &channel.written.secret).await.ok_or(NOT_OURS)?;
        let webhook = address.map_err(HttpFailure::from)?;
        self.post.check(&webhook).map_err(HttpFailure::from)?;
        let body = build_body(&channel.written, &server.0, &server.1, notice);
        // This check is the last step before the message is sent. If another process leads, it delivers the rest.
        if !self.office.leads().await {
            return Err(NOT_OURS);
        }
        Ok(self.post.send(&webhook, &body).await?)
    }

    fn end(&self, seat: &ChannelKey, id: u64, notice: &NotificationState, end: DeliveryEnd) {
        let (namespace, server) = &seat.0;
        let outcome = match end {
            DeliveryEnd::Told => {
                info!(namespace, server, channel = seat.1, occasion = notice.occasion.as_str(), "told a channel");
                "delivered"
            }
            DeliveryEnd::GivenUp => {
                warn!(
                    namespace,
                    server,
                    channel = seat.1,
                    occasion = notice.occasion.as_str(),
                    "a channel was not told"
                );
                "given-up"
            }
        };
        let mended = {
            let mut desks = self.desks();
            let Some(desk) = desks.busy(seat, id) else { return };
            desk.queue.retain(|waiting| name_of(waiting) != name_of(notice));
            desk.ended.insert(name_of(notice), end);
            self.metrics
                .told
                .get_or_create(&DeliveryLabels { channel: desk.channel.written.kind.as_str(), outcome })
                .inc();
            let was_wrong = end == DeliveryEnd::Told && desk.lane.known().fault.take().is_some();
            was_wrong.then(|| desk.lane.clone())
        };
        match mended {
            Some(lane) => self.wake_users(&lane),
            None => (self.wake)(&seat.0),
        }
    }

    fn note_fault(&self, seat: &ChannelKey, lane: &Arc<Route>, channel: &Channel, fault: Option<DeliveryError>) {
        let Some(fault) = fault else { return };
        self.metrics
            .told
            .get_or_create(&DeliveryLabels { channel: channel.written.kind.as_str(), outcome: "failed" })
            .inc();
        let words = fault.in_words(channel);
        let is_news = lane.known().fault.replace(fault.clone()).as_ref() != Some(&fault);
        if is_news {
            let (namespace, server) = &seat.0;
            warn!(namespace, server, error = words, "could not tell a channel");
            self.wake_users(lane);
        }
    }
}

#[cfg(test)]
mod tests;
