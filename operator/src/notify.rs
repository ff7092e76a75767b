//! Edge (writes). Tells channels of a chat what happens to servers, beside all passes: nothing waits for a channel.
//!
//! What is to be told stands in the status of a server, in the same write as the facts that it follows from, until it is
//! noted there as told. So it survives this process. Each channel of each server has a worker of its own while something is
//! to be told, and tells one thing after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::paper_mc_server::{Notice, NotifyChannel, Occasion};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, Semaphore};
use tracing::{info, warn};

use crate::memory::Key;
use crate::telemetry::metrics::{Told, Tolds};

mod fault;
mod message;
pub(crate) mod office;
mod pace;
mod post;
mod webhook;

pub(crate) use fault::Fault;
use message::build_body;
use office::Office;
use pace::Pace;
pub(crate) use post::Post;
use post::Setback;

/// Messages under way at the same time, of all servers.
const AT_ONCE: usize = 16;
/// A Secret that was just looked at is not looked at again: an update has a pass each second.
const LOOK_COUNTS: SignedDuration = SignedDuration::from_secs(60);

/// Called when something is to be noted about a server.
pub(crate) type Wake = Box<dyn Fn(&Key) + Send + Sync>;

/// A channel of a server, by its name.
type Seat = (Key, String);

/// One of the things a server tells, by what it is about.
type Name = (Occasion, String);

/// A channel that cannot be told now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) channel: NotifyChannel,
    pub(crate) fault: Fault,
}

/// How telling something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Told,
    GivenUp,
}

/// A try that failed.
struct Failed {
    /// None: it was none of the channel's. The cluster did not answer, or another process leads.
    fault: Option<Fault>,
    asked: Option<Duration>,
}

impl From<Setback> for Failed {
    fn from(Setback { fault, asked }: Setback) -> Self {
        Self { fault: Some(fault), asked }
    }
}

/// What is to be told in one channel, and how that goes.
struct Desk {
    /// A desk that was removed and made again is another one.
    id: u64,
    channel: NotifyChannel,
    queue: Vec<Notice>,
    /// Not yet noted in the status.
    ended: BTreeMap<Name, End>,
    /// Why the last try failed.
    fault: Option<Fault>,
    /// What the Secret looked like, and when.
    looked: Option<(Timestamp, Option<Fault>)>,
    is_busy: bool,
    /// Something has changed that makes another try worth it.
    news: Arc<Notify>,
}

#[derive(Default)]
struct Desks {
    made: u64,
    /// By server, then by channel: a pass over one server costs what this server has.
    of: BTreeMap<Key, BTreeMap<String, Desk>>,
}

impl Desks {
    /// The desk of a channel, as the spec has it now.
    fn open(&mut self, server: &Key, channel: &NotifyChannel) -> &mut Desk {
        self.made += 1;
        let fresh = || Desk {
            id: self.made,
            channel: channel.clone(),
            queue: Vec::new(),
            ended: BTreeMap::new(),
            fault: None,
            looked: None,
            is_busy: false,
            news: Arc::default(),
        };
        let of_server = self.of.entry(server.clone()).or_default();
        let desk = of_server.entry(channel.name.clone()).or_insert_with(fresh);
        if desk.channel != *channel {
            desk.channel = channel.clone();
            (desk.fault, desk.looked) = (None, None);
            desk.news.notify_one();
        }
        desk
    }

    fn busy(&mut self, (server, channel): &Seat, id: u64) -> Option<&mut Desk> {
        self.of.get_mut(server)?.get_mut(channel).filter(|desk| desk.id == id)
    }

    /// Removes the desks of channels that the spec does not have any more. Whoever works there is told.
    fn close_all_but(&mut self, server: &Key, channels: &[NotifyChannel]) {
        let Some(of_server) = self.of.get_mut(server) else { return };
        of_server.retain(|name, desk| {
            let stays = channels.iter().any(|channel| channel.name == *name);
            if !stays {
                desk.news.notify_one();
            }
            stays
        });
        if of_server.is_empty() {
            self.of.remove(server);
        }
    }
}

struct Inner<O> {
    office: O,
    post: Post,
    pace: Pace,
    wake: Wake,
    tolds: Tolds,
    at_once: Semaphore,
    desks: Mutex<Desks>,
}

/// Tells channels. One for the process; cheap to share.
pub(crate) struct Messenger<O>(Arc<Inner<O>>);

impl<O: Office> Messenger<O> {
    pub(crate) fn new(office: O, post: Post, wake: Wake, tolds: Tolds) -> Self {
        Self::with_pace(office, post, wake, tolds, Pace::default())
    }

    fn with_pace(office: O, post: Post, wake: Wake, tolds: Tolds, pace: Pace) -> Self {
        let at_once = Semaphore::new(AT_ONCE);
        Self(Arc::new(Inner { office, post, pace, wake, tolds, at_once, desks: Mutex::default() }))
    }

    /// Takes over what a server's status says is to be told, as it was written last. What is under way already goes on.
    pub(crate) fn offer(&self, server: &Key, channels: &[NotifyChannel], notices: &[Notice]) {
        let mut desks = self.0.desks();
        desks.close_all_but(server, channels);
        for channel in channels {
            let pending: Vec<&Notice> =
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
    pub(crate) fn note(&self, server: &Key, notices: &mut [Notice]) {
        let desks = self.0.desks();
        for (channel, desk) in desks.of.get(server).into_iter().flatten() {
            for notice in notices.iter_mut() {
                let Some(end) = desk.ended.get(&name_of(notice)) else { continue };
                let was_pending = notice.pending.contains(channel);
                notice.pending.retain(|name| name != channel);
                if *end == End::GivenUp && was_pending {
                    notice.given_up.push(channel.clone());
                }
            }
        }
    }

    /// Looks at the channels' Secrets, so that what is wrong with them is told by day. And says what was in the way of the
    /// last message.
    pub(crate) async fn look(&self, server: &Key, channels: &[NotifyChannel], now: Timestamp) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        for channel in channels {
            let known = self.0.desks().open(server, channel).looked.clone();
            let (looked_at, fault) = match known.filter(|(at, _)| now < *at + LOOK_COUNTS) {
                Some(known) => known,
                None => match self.0.office.address(&server.0, &channel.secret).await {
                    Some(found) => (now, found.and_then(|webhook| self.0.post.check(&webhook).map(drop)).err()),
                    None => continue,
                },
            };
            let mut desks = self.0.desks();
            let desk = desks.open(server, channel);
            let was_wrong = desk.looked.as_ref().is_some_and(|(_, fault)| fault.is_some());
            desk.looked = Some((looked_at, fault.clone()));
            // Not for what only a connection shows: it would be tried again with each pass.
            if was_wrong && fault.is_none() {
                desk.fault = None;
                desk.news.notify_one();
            }
            if let Some(fault) = fault.or_else(|| desk.fault.clone()) {
                troubles.push(Trouble { channel: channel.clone(), fault });
            }
        }
        troubles
    }

    /// Forgets a server that is gone.
    pub(crate) fn forget(&self, server: &Key) {
        self.offer(server, &[], &[]);
    }
}

impl<O: Office> Inner<O> {
    fn desks(&self) -> MutexGuard<'_, Desks> {
        // Each change under this lock leaves whole values behind.
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all that is to be told in one channel, and ends.
    async fn work(self: Arc<Self>, seat: Seat, id: u64) {
        let mut failures = 0;
        while let Some((channel, notice, news)) = self.next(&seat, id) {
            let Err(Failed { fault, asked }) = self.tell(&seat.0, &channel, &notice).await else {
                failures = 0;
                self.end(&seat, id, &notice, End::Told);
                continue;
            };
            if fault.as_ref().is_some_and(Fault::is_of_the_message) {
                self.note_fault(&seat, id, &channel, fault);
                self.end(&seat, id, &notice, End::GivenUp);
                continue;
            }
            failures += 1;
            let pause = self.pace.pause(failures, fault.as_ref(), asked);
            self.note_fault(&seat, id, &channel, fault);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = news.notified() => failures = 0,
            }
        }
    }

    /// What is to be told next. None: nothing, and whoever asked has to end.
    fn next(&self, seat: &Seat, id: u64) -> Option<(NotifyChannel, Notice, Arc<Notify>)> {
        let now = self.office.now();
        let late: Vec<Notice> = {
            let mut desks = self.desks();
            let queue = &desks.busy(seat, id)?.queue;
            queue.iter().filter(|notice| notice.until <= now).cloned().collect()
        };
        for notice in late {
            self.end(seat, id, &notice, End::GivenUp);
        }
        let mut desks = self.desks();
        let desk = desks.busy(seat, id)?;
        let next = desk.queue.first().cloned();
        desk.is_busy = next.is_some();
        Some((desk.channel.clone(), next?, desk.news.clone()))
    }

    /// One try.
    async fn tell(&self, server: &Key, channel: &NotifyChannel, notice: &Notice) -> Result<(), Failed> {
        const NOT_OURS: Failed = Failed { fault: None, asked: None };
        // Never closed: it lives as long as this.
        let _permit = self.at_once.acquire().await;
        let address = self.office.address(&server.0, &channel.secret).await.ok_or(NOT_OURS)?;
        let webhook = address.map_err(Setback::from)?;
        self.post.check(&webhook).map_err(Setback::from)?;
        let body = build_body(channel, &server.0, &server.1, notice);
        // Last, right before the message goes: another leader tells what is left.
        if !self.office.leads().await {
            return Err(NOT_OURS);
        }
        Ok(self.post.send(&webhook, &body).await?)
    }

    fn end(&self, seat: &Seat, id: u64, notice: &Notice, end: End) {
        let (namespace, server) = &seat.0;
        let outcome = match end {
            End::Told => {
                info!(namespace, server, channel = seat.1, occasion = notice.occasion.as_str(), "told a channel");
                "told"
            }
            End::GivenUp => {
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
        let mut desks = self.desks();
        let Some(desk) = desks.busy(seat, id) else { return };
        desk.queue.retain(|waiting| name_of(waiting) != name_of(notice));
        desk.ended.insert(name_of(notice), end);
        if end == End::Told {
            desk.fault = None;
        }
        self.tolds.get_or_create(&Told { channel: desk.channel.kind.as_str(), outcome }).inc();
        drop(desks);
        (self.wake)(&seat.0);
    }

    fn note_fault(&self, seat: &Seat, id: u64, channel: &NotifyChannel, fault: Option<Fault>) {
        let Some(fault) = fault else { return };
        self.tolds.get_or_create(&Told { channel: channel.kind.as_str(), outcome: "failed" }).inc();
        let mut desks = self.desks();
        let Some(desk) = desks.busy(seat, id) else { return };
        let is_news = desk.fault.as_ref() != Some(&fault);
        desk.fault = Some(fault.clone());
        drop(desks);
        if is_news {
            let (namespace, server) = &seat.0;
            warn!(namespace, server, error = fault.in_words(channel), "could not tell a channel");
            (self.wake)(&seat.0);
        }
    }
}

fn name_of(notice: &Notice) -> Name {
    (notice.occasion, notice.about.clone())
}

#[cfg(test)]
mod tests;
