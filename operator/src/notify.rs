//! Edge (writes). Tells channels of a chat what happens to servers, beside all passes: nothing waits for a channel.
//!
//! What is to be told stands in the status of a server, in the same write as the facts that it follows from, until it is
//! noted there as told. So it survives this process. Each channel of each server has a worker of its own while something is
//! to be told, and tells one thing after the other. The workers of a channel of the cluster take turns.

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

/// Messages under way at the same time, of all servers.
const AT_ONCE: usize = 16;
/// A Secret that was just looked at is not looked at again: an update has a pass each second.
const LOOK_COUNTS: SignedDuration = SignedDuration::from_secs(60);
/// How often the Secrets of the cluster's channels are looked at, whether or not a server has a pass.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// Called when something is to be noted about a server.
pub(crate) type WakeFn = Box<dyn Fn(&Key) + Send + Sync>;

/// A channel that cannot be told now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelError {
    pub(crate) channel: Channel,
    pub(crate) fault: DeliveryError,
}

/// A try that failed.
struct FailedAttempt {
    /// None: it was none of the channel's. The cluster did not answer, or another process leads.
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
    /// Those that are told about all servers.
    cluster: Vec<Channel>,
    desks: Mutex<DeliveryQueues>,
}

/// Tells channels. One for the process; cheap to share.
pub(crate) struct Notifier<O>(Arc<Inner<O>>);

impl<O: Backend> Notifier<O> {
    /// `cluster` are the channels that are told about all servers.
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

    /// Everybody who is told about a server.
    pub(crate) fn channels_of(&self, server: &PaperMCServer) -> Vec<Channel> {
        channel::channels_of(server, &self.0.cluster)
    }

    /// Looks at the channels of the cluster for ever: what is wrong with one is told by day, although no server has a pass.
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

    /// Takes over what a server's status says is to be told, as it was written last. What is under way already goes on.
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
            // What is not to be told any more is noted.
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

    /// Notes what was told, and what was given up, in what is about to be written.
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

    /// Looks at the channels' Secrets, so that what is wrong with them is told by day. And says what was in the way of the
    /// last message.
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

    /// Forgets a server that is gone.
    pub(crate) fn forget(&self, server: &Key) {
        self.offer(server, &[], &[]);
    }
}

impl<O: Backend> Inner<O> {
    fn desks(&self) -> MutexGuard<'_, DeliveryQueues> {
        // Each change under this lock leaves whole values behind.
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

    /// What is in the way of telling a channel: its Secret as it is now, else what the last message met. None also where the cluster
    /// cannot be asked.
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
            // Not for what only a connection shows: it would be tried again with each pass.
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

    /// What is known of a way is said of each server that is told of over it.
    fn wake_users(&self, lane: &Arc<Route>) {
        let users = self.desks().users(lane);
        for server in &users {
            (self.wake)(server);
        }
    }

    /// Tells all that is to be told about one server in one channel, and ends.
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
            // With the turn in hand: nobody else tries meanwhile what has just failed.
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = lane.news.notified() => *failures = 0,
            }
        }
    }

    fn lane_of(&self, seat: &ChannelKey, id: u64) -> Option<Arc<Route>> {
        self.desks().busy(seat, id).map(|desk| desk.lane.clone())
    }

    /// What is to be told next. None: nothing, and whoever asked has to end.
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

    /// One try.
    async fn tell(&self, server: &Key, channel: &Channel, notice: &NotificationState) -> Result<(), FailedAttempt> {
        const NOT_OURS: FailedAttempt = FailedAttempt { fault: None, asked: None };
        // Never closed: it lives as long as this.
        let _permit = self.at_once.acquire().await;
        let address = self.office.address(&channel.namespace, &channel.written.secret).await.ok_or(NOT_OURS)?;
        let webhook = address.map_err(HttpFailure::from)?;
        self.post.check(&webhook).map_err(HttpFailure::from)?;
        let body = build_body(&channel.written, &server.0, &server.1, notice);
        // Last, right before the message goes: another leader tells what is left.
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
