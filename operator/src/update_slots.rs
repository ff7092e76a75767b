//! Pure. Limits how many servers are updated at the same time, and orders the servers that wait for an update slot.
//!
//! A server holds its slot from the first announcement until its revision is stable or given up. A server without a
//! slot is treated as in the last part of a window: a disruption may end, but no new one begins. So players are not
//! warned of a stop that has to wait. The slots are in memory. The next leader learns the running updates from one pass
//! over each server, and from the server's status until then.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::caches::Key;
use crate::telemetry::metrics;

/// Limits of concurrent updates, in total and on one node. `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    pub(crate) together: Option<usize>,
    pub(crate) on_a_node: Option<usize>,
}

/// More failures than a short problem of the API server causes: with the pauses between them, about eight minutes.
const FAILS_FOR_LONG: u32 = 9;

/// The position of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SlotPosition {
    /// It is being updated on this node.
    AtIt { node: Option<String> },
    /// It could begin since its window opened.
    Queues { since: Timestamp, node: Option<String> },
    /// It is not being updated and does not wait.
    Rests,
}

/// Why a server gets no update slot now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotUnavailable {
    /// The number of servers that are being updated.
    pub(crate) at_it: usize,
    /// The number of servers that are being updated on its node, if only the limit of the node is reached.
    pub(crate) on_its_node: Option<usize>,
    /// The servers that come before it, the next one first.
    pub(crate) before: Vec<Key>,
}

/// The servers that are being updated or wait. One for the process.
#[derive(Debug, Default)]
pub(crate) struct UpdateSlots {
    limits: Limits,
    places: Mutex<BTreeMap<Key, SlotPosition>>,
    counted: metrics::UpdateSlotMetrics,
}

impl UpdateSlots {
    pub(crate) fn new(limits: Limits, counted: metrics::UpdateSlotMetrics) -> Self {
        Self { limits, places: Mutex::default(), counted }
    }

    /// Whether there is any limit.
    pub(crate) fn are_bounded(&self) -> bool {
        self.limits != Limits::default()
    }

    /// Records that an update of this server has begun. While it has no pod, it counts on its last node, because the
    /// new pod usually starts there.
    pub(crate) fn is_at_it(&self, server: &Key, node: Option<&str>) {
        let mut places = self.lock();
        let before = match places.get(server) {
            Some(SlotPosition::AtIt { node }) => node.clone(),
            Some(SlotPosition::Queues { .. } | SlotPosition::Rests) | None => None,
        };
        let node = node.map(str::to_owned).or(before);
        self.put(&mut places, server, Some(SlotPosition::AtIt { node }));
    }

    /// Records that the server has no update to begin, or none any more. Returns the servers that get a slot because of
    /// that.
    pub(crate) fn rests(&self, server: &Key) -> Vec<Key> {
        let mut places = self.lock();
        let was = self.put(&mut places, server, Some(SlotPosition::Rests));
        self.next(&places, was)
    }

    /// Records the number of failures in a row, at whatever step. A server that fails for long gives up its slot to
    /// others, and requests one again when it recovers. Returns the same as [`Self::rests`].
    pub(crate) fn failed(&self, server: &Key, attempts: u32) -> Vec<Key> {
        if attempts < FAILS_FOR_LONG { Vec::new() } else { self.rests(server) }
    }

    /// Removes a deleted server. Returns the same as [`Self::rests`].
    pub(crate) fn forget(&self, server: &Key) -> Vec<Key> {
        let mut places = self.lock();
        let was = self.put(&mut places, server, None);
        self.next(&places, was)
    }

    /// Takes a slot for an update that may begin now. `unseen` are servers without a pass in this process whose status
    /// reports an update. If one of them has had a pass since, the result of that pass counts.
    pub(crate) fn begin(
        &self,
        server: &Key,
        node: Option<&str>,
        since: Timestamp,
        unseen: impl Iterator<Item = Key>,
    ) -> Result<(), SlotUnavailable> {
        let mut places = self.lock();
        for other in unseen {
            if !places.contains_key(&other) {
                self.put(&mut places, &other, Some(SlotPosition::AtIt { node: None }));
            }
        }
        let (mut taken, queue) = SlotsInUse::of(places.iter().filter(|(other, _)| *other != server));
        let before: Vec<_> = queue.into_iter().filter(|waiting| (waiting.0, waiting.1) < (since, server)).collect();
        let at_it = taken.together;
        for (_, _, theirs) in &before {
            taken.let_in(self.limits, *theirs);
        }
        let on_its_node = taken.fits_together(self.limits).then(|| taken.here(node));
        let fits = taken.let_in(self.limits, node);
        let before = before.into_iter().map(|(_, server, _)| server.clone()).collect();
        let not_yet = SlotUnavailable { at_it, on_its_node, before };
        let node = node.map(str::to_owned);
        let place = if fits { SlotPosition::AtIt { node } } else { SlotPosition::Queues { since, node } };
        self.put(&mut places, server, Some(place));
        if fits { Ok(()) } else { Err(not_yet) }
    }

    /// The servers that may begin after a server left its position.
    fn next(&self, places: &BTreeMap<Key, SlotPosition>, was: Option<SlotPosition>) -> Vec<Key> {
        if was.is_none_or(|was| was == SlotPosition::Rests) {
            return Vec::new();
        }
        let (mut taken, queue) = SlotsInUse::of(places.iter());
        // By the node on which each server was when it began to wait.
        let mut may_begin = Vec::new();
        for (_, server, node) in queue {
            if taken.let_in(self.limits, node) {
                may_begin.push(server.clone());
            }
        }
        may_begin
    }

    /// Sets the position of a server, or removes it with `None`, and returns the earlier one. All changes go through
    /// this function, so that the metrics are correct.
    fn put(
        &self,
        places: &mut BTreeMap<Key, SlotPosition>,
        server: &Key,
        place: Option<SlotPosition>,
    ) -> Option<SlotPosition> {
        self.count(place.as_ref(), 1);
        let was = match place {
            Some(place) => places.insert(server.clone(), place),
            None => places.remove(server),
        };
        self.count(was.as_ref(), -1);
        was
    }

    fn count(&self, place: Option<&SlotPosition>, by: i64) {
        let gauge = match place {
            Some(SlotPosition::AtIt { .. }) => &self.counted.taken,
            Some(SlotPosition::Queues { .. }) => &self.counted.waiting,
            Some(SlotPosition::Rests) | None => return,
        };
        gauge.inc_by(by);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, SlotPosition>> {
        // Each change under this lock is one insert or one removal.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of slots in use.
#[derive(Debug, Default)]
struct SlotsInUse<'a> {
    together: usize,
    on: BTreeMap<&'a str, usize>,
}

/// Waiting servers with the start of their wait and their node. First come, first served, and by name if the windows
/// open together.
type SlotQueue<'a> = Vec<(Timestamp, &'a Key, Option<&'a str>)>;

impl<'a> SlotsInUse<'a> {
    fn of(places: impl Iterator<Item = (&'a Key, &'a SlotPosition)>) -> (Self, SlotQueue<'a>) {
        let (mut taken, mut queue) = (Self::default(), Vec::new());
        for (server, place) in places {
            match place {
                SlotPosition::AtIt { node } => taken.add(node.as_deref()),
                SlotPosition::Queues { since, node } => queue.push((*since, server, node.as_deref())),
                SlotPosition::Rests => {}
            }
        }
        queue.sort_unstable();
        (taken, queue)
    }

    fn add(&mut self, node: Option<&'a str>) {
        self.together += 1;
        if let Some(node) = node {
            *self.on.entry(node).or_default() += 1;
        }
    }

    fn fits_together(&self, limits: Limits) -> bool {
        limits.together.is_none_or(|limit| self.together < limit)
    }

    fn here(&self, node: Option<&str>) -> usize {
        node.and_then(|node| self.on.get(node)).copied().unwrap_or(0)
    }

    /// Counts one more server if there is a slot. A server whose node is full does not block the servers behind it. A
    /// server without a node is scaled to zero and counts on no node.
    fn let_in(&mut self, limits: Limits, node: Option<&'a str>) -> bool {
        let fits = self.fits_together(limits) && limits.on_a_node.is_none_or(|limit| self.here(node) < limit);
        if fits {
            self.add(node);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
