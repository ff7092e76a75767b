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
use delivery_queue::{ChannelKey, DeliveryEnd, DeliveryQueues, Route, notification_key};
use http_sender::HttpFailure;
pub(crate) use http_sender::HttpSender;
use message::build_body;

/// Limit of concurrent deliveries, for all servers together.
const MAX_CONCURRENT: usize = 16;
/// How long a read of a Secret is reused. An update has a pass each second.
const SECRET_FRESH_FOR: SignedDuration = SignedDuration::from_secs(60);
/// How often the Secrets of the cluster channels are checked, even without a pass over any server.
const SECRET_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// Wakes a server, so that its next pass records a change.
pub(crate) type WakeFn = Box<dyn Fn(&Key) + Send + Sync>;

/// A channel that is failing now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelError {
    pub(crate) channel: Channel,
    pub(crate) error: DeliveryError,
}

/// A delivery attempt that failed.
struct FailedAttempt {
    /// `None` if the channel did not cause it: the cluster did not answer, or another process leads.
    error: Option<DeliveryError>,
    retry_after: Option<Duration>,
}

impl From<HttpFailure> for FailedAttempt {
    fn from(HttpFailure { error, retry_after }: HttpFailure) -> Self {
        Self { error: Some(error), retry_after }
    }
}

struct Inner<O> {
    backend: O,
    sender: HttpSender,
    backoff: DeliveryBackoff,
    wake: WakeFn,
    metrics: NotificationMetrics,
    permits: Semaphore,
    /// The channels that are notified about all servers.
    cluster_channels: Vec<Channel>,
    queues: Mutex<DeliveryQueues>,
}

/// Delivers notifications. One for the process, and cheap to clone.
pub(crate) struct Notifier<O>(Arc<Inner<O>>);

impl<O: Backend> Notifier<O> {
    /// `cluster_channels` are the channels that are notified about all servers.
    pub(crate) fn new(
        backend: O,
        sender: HttpSender,
        wake: WakeFn,
        metrics: NotificationMetrics,
        cluster_channels: Vec<Channel>,
    ) -> Self {
        Self::with_backoff(backend, sender, wake, metrics, cluster_channels, DeliveryBackoff::default())
    }

    fn with_backoff(
        backend: O,
        sender: HttpSender,
        wake: WakeFn,
        metrics: NotificationMetrics,
        cluster_channels: Vec<Channel>,
        backoff: DeliveryBackoff,
    ) -> Self {
        let permits = Semaphore::new(MAX_CONCURRENT);
        Self(Arc::new(Inner {
            backend,
            sender,
            backoff,
            wake,
            metrics,
            permits,
            cluster_channels,
            queues: Mutex::default(),
        }))
    }

    /// All channels that are notified about a server.
    pub(crate) fn channels_of(&self, server: &PaperMCServer) -> Vec<Channel> {
        channel::channels_of(server, &self.0.cluster_channels)
    }

    /// Checks the cluster channels forever, so that an error in one shows early, even without a pass over any server.
    pub(crate) fn watch_cluster(&self) {
        let inner = Arc::clone(&self.0);
        if inner.cluster_channels.is_empty() {
            return;
        }
        tokio::spawn(async move {
            loop {
                inner.check_cluster_channels().await;
                tokio::time::sleep(SECRET_CHECK_INTERVAL).await;
            }
        });
    }

    /// Takes over the pending notifications from a server's status, as it was written last. A delivery that is already
    /// in progress continues.
    pub(crate) fn enqueue(&self, server: &Key, channels: &[Channel], notifications: &[NotificationState]) {
        let mut queues = self.0.queues();
        queues.retain_channels(server, channels);
        for channel in channels {
            let pending: Vec<&NotificationState> =
                notifications.iter().filter(|notification| notification.pending.contains(&channel.name)).collect();
            let is_open = queues.by_server.get(server).is_some_and(|open| open.contains_key(&channel.name));
            if pending.is_empty() && !is_open {
                continue;
            }
            let queue = queues.queue_for(server, channel);
            // An end whose notification is no longer pending is recorded in the status.
            queue.ended.retain(|name, _| pending.iter().any(|notification| notification_key(notification) == *name));
            queue.pending = pending
                .into_iter()
                .filter(|notification| !queue.ended.contains_key(&notification_key(notification)))
                .cloned()
                .collect();
            if !queue.pending.is_empty() && !queue.is_busy {
                queue.is_busy = true;
                let key = (server.clone(), channel.name.clone());
                tokio::spawn(Inner::run_worker(Arc::clone(&self.0), key, queue.id));
            }
        }
    }

    /// Records delivered and abandoned notifications in the status that is about to be written.
    pub(crate) fn record_deliveries(&self, server: &Key, notifications: &mut [NotificationState]) {
        let queues = self.0.queues();
        for (channel, queue) in queues.by_server.get(server).into_iter().flatten() {
            for notification in notifications.iter_mut() {
                let Some(end) = queue.ended.get(&notification_key(notification)) else { continue };
                let was_pending = notification.pending.contains(channel);
                notification.pending.retain(|name| name != channel);
                if *end == DeliveryEnd::GivenUp && was_pending {
                    notification.given_up.push(channel.clone());
                }
            }
        }
    }

    /// Checks the channels' Secrets, so that an error in one shows before a notification is due. Also returns the error
    /// of the last delivery.
    pub(crate) async fn check_channels(&self, server: &Key, channels: &[Channel], now: Timestamp) -> Vec<ChannelError> {
        let mut errors = Vec::new();
        for channel in channels {
            let route = self.0.queues().queue_for(server, channel).route.clone();
            if let Some(error) = self.0.check_channel(&route, channel, now).await {
                errors.push(ChannelError { channel: channel.clone(), error });
            }
        }
        errors
    }

    /// Removes the queues of a deleted server.
    pub(crate) fn remove_server(&self, server: &Key) {
        self.enqueue(server, &[], &[]);
    }
}

impl<O: Backend> Inner<O> {
    fn queues(&self) -> MutexGuard<'_, DeliveryQueues> {
        // Each change under this lock leaves the value consistent.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn check_cluster_channels(&self) {
        let mut failing = 0;
        for channel in &self.cluster_channels {
            let route = self.queues().route(channel);
            self.check_channel(&route, channel, self.backend.now()).await;
            failing += i64::from(route.state().blocking_error().is_some());
        }
        self.metrics.cluster_failing.set(failing);
    }

    /// The error that blocks a channel: the one of its Secret now, or else the one of the last delivery. `None` also if
    /// the cluster does not answer.
    async fn check_channel(&self, route: &Arc<Route>, channel: &Channel, now: Timestamp) -> Option<DeliveryError> {
        let last_check = route.state().secret_check.clone();
        if let Some((at, _)) = last_check
            && now < at + SECRET_FRESH_FOR
        {
            return route.state().blocking_error().cloned();
        }
        let found = self.backend.address(channel).await?;
        let error = found.and_then(|webhook| self.sender.check(&webhook).map(drop)).err();
        let (is_new, blocking_error) = {
            let mut state = route.state();
            let was = state.secret_check.replace((now, error.clone())).and_then(|(_, was)| was);
            // Not for an error that only a connection shows: each pass would then try again.
            if was.is_some() && error.is_none() {
                state.error = None;
                route.changed.notify_one();
            }
            (was != error, state.blocking_error().cloned())
        };
        if is_new && channel.owner == ChannelOwner::Cluster {
            if let Some(error) = &error {
                warn!(error = error.message(channel), "could not notify a channel of the cluster");
            } else {
                info!(channel = channel.name, "a channel of the cluster works again");
            }
            self.wake_servers(route);
        }
        blocking_error
    }

    /// Wakes all servers that use a route, because the error of the route is in the status of each.
    fn wake_servers(&self, route: &Arc<Route>) {
        let users = self.queues().servers_of(route);
        for server in &users {
            (self.wake)(server);
        }
    }

    /// Worker: delivers all notifications of one server to one channel, and ends.
    async fn run_worker(self: Arc<Self>, key: ChannelKey, id: u64) {
        while let Some(route) = self.route_of(&key, id) {
            let mut failures = route.failures.lock().await;
            let Some((channel, notification)) = self.next_pending(&key, id) else { return };
            let Err(FailedAttempt { error, retry_after }) = self.deliver(&key.0, &channel, &notification).await else {
                *failures = 0;
                self.finish(&key, id, &notification, DeliveryEnd::Delivered);
                continue;
            };
            if error.as_ref().is_some_and(DeliveryError::is_message_rejected) {
                self.record_error(&key, &route, &channel, error);
                self.finish(&key, id, &notification, DeliveryEnd::GivenUp);
                continue;
            }
            *failures += 1;
            let pause = self.backoff.pause(*failures, error.as_ref(), retry_after);
            self.record_error(&key, &route, &channel, error);
            // The guard is held during the pause, so that no other worker repeats the attempt that has just failed.
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = route.changed.notified() => *failures = 0,
            }
        }
    }

    fn route_of(&self, key: &ChannelKey, id: u64) -> Option<Arc<Route>> {
        self.queues().get_mut(key, id).map(|queue| queue.route.clone())
    }

    /// The next notification to deliver. `None` if there is none, and the caller has to end.
    fn next_pending(&self, key: &ChannelKey, id: u64) -> Option<(Channel, NotificationState)> {
        let now = self.backend.now();
        let late: Vec<NotificationState> = {
            let mut queues = self.queues();
            let pending = &queues.get_mut(key, id)?.pending;
            pending.iter().filter(|notification| notification.until <= now).cloned().collect()
        };
        for notification in late {
            self.finish(key, id, &notification, DeliveryEnd::GivenUp);
        }
        let mut queues = self.queues();
        let queue = queues.get_mut(key, id)?;
        let next = queue.pending.first().cloned();
        queue.is_busy = next.is_some();
        Some((queue.channel.clone(), next?))
    }

    /// One delivery attempt.
    async fn deliver(
        &self,
        server: &Key,
        channel: &Channel,
        notification: &NotificationState,
    ) -> Result<(), FailedAttempt> {
        const NOT_CHANNEL_ERROR: FailedAttempt = FailedAttempt { error: None, retry_after: None };
        // The semaphore is never closed: it exists as long as `self`.
        let _permit = self.permits.acquire().await;
        let address = self.backend.address(channel).await.ok_or(NOT_CHANNEL_ERROR)?;
        let webhook = address.map_err(HttpFailure::from)?;
        self.sender.check(&webhook).map_err(HttpFailure::from)?;
        let body = build_body(&channel.config, &server.0, &server.1, notification);
        // This check is the last step before the message is sent. If another process leads, it delivers the rest.
        if !self.backend.is_leader().await {
            return Err(NOT_CHANNEL_ERROR);
        }
        Ok(self.sender.send(&webhook, &body).await?)
    }

    fn finish(&self, key: &ChannelKey, id: u64, notification: &NotificationState, end: DeliveryEnd) {
        let (namespace, server) = &key.0;
        let outcome = match end {
            DeliveryEnd::Delivered => {
                info!(
                    namespace,
                    server,
                    channel = key.1,
                    event = notification.event.as_str(),
                    "notified a \
                channel"
                );
                "delivered"
            }
            DeliveryEnd::GivenUp => {
                warn!(
                    namespace,
                    server,
                    channel = key.1,
                    event = notification.event.as_str(),
                    "could not notify a channel"
                );
                "given-up"
            }
        };
        let recovered_route = {
            let mut queues = self.queues();
            let Some(queue) = queues.get_mut(key, id) else { return };
            queue.pending.retain(|waiting| notification_key(waiting) != notification_key(notification));
            queue.ended.insert(notification_key(notification), end);
            self.metrics
                .deliveries
                .get_or_create(&DeliveryLabels { channel: queue.channel.config.kind.as_str(), outcome })
                .inc();
            let was_failing = end == DeliveryEnd::Delivered && queue.route.state().error.take().is_some();
            was_failing.then(|| queue.route.clone())
        };
        match recovered_route {
            Some(route) => self.wake_servers(&route),
            None => (self.wake)(&key.0),
        }
    }

    fn record_error(&self, key: &ChannelKey, route: &Arc<Route>, channel: &Channel, error: Option<DeliveryError>) {
        let Some(error) = error else { return };
        self.metrics
            .deliveries
            .get_or_create(&DeliveryLabels { channel: channel.config.kind.as_str(), outcome: "failed" })
            .inc();
        let message = error.message(channel);
        let is_new = route.state().error.replace(error.clone()).as_ref() != Some(&error);
        if is_new {
            let (namespace, server) = &key.0;
            warn!(namespace, server, error = message, "could not deliver to a channel");
            self.wake_servers(route);
        }
    }
}

#[cfg(test)]
mod tests;
