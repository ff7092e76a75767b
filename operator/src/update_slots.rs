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
    pub(crate) total: Option<usize>,
    pub(crate) per_node: Option<usize>,
}

/// More failures than a short problem of the API server causes: with the pauses between them, about eight minutes.
const RELEASE_AFTER_FAILURES: u32 = 9;

/// The position of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SlotPosition {
    /// It is being updated on this node.
    Updating { node: Option<String> },
    /// It could begin since its window opened.
    Waiting { since: Timestamp, node: Option<String> },
    /// It is not being updated and does not wait.
    Idle,
}

/// Why a server gets no update slot now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotUnavailable {
    /// The number of servers that are being updated.
    pub(crate) updating: usize,
    /// The number of servers that are being updated on its node, if only the limit of the node is reached.
    pub(crate) updating_on_node: Option<usize>,
    /// The servers that come before it, the next one first.
    pub(crate) queued_before: Vec<Key>,
}

/// The servers that are being updated or wait. One for the process.
#[derive(Debug, Default)]
pub(crate) struct UpdateSlots {
    limits: Limits,
    positions: Mutex<BTreeMap<Key, SlotPosition>>,
    metrics: metrics::UpdateSlotMetrics,
}

impl UpdateSlots {
    pub(crate) fn new(limits: Limits, metrics: metrics::UpdateSlotMetrics) -> Self {
        Self { limits, positions: Mutex::default(), metrics }
    }

    /// Whether there is any limit.
    pub(crate) fn has_limit(&self) -> bool {
        self.limits != Limits::default()
    }

    /// Records that an update of this server has begun. While it has no pod, it counts on its last node, because the
    /// new pod usually starts there.
    pub(crate) fn occupy(&self, server: &Key, node: Option<&str>) {
        let mut positions = self.lock();
        let previous_node = match positions.get(server) {
            Some(SlotPosition::Updating { node }) => node.clone(),
            Some(SlotPosition::Waiting { .. } | SlotPosition::Idle) | None => None,
        };
        let node = node.map(str::to_owned).or(previous_node);
        self.set_position(&mut positions, server, Some(SlotPosition::Updating { node }));
    }

    /// Records that the server has no update to begin, or none any more. Returns the servers that get a slot because of
    /// that.
    pub(crate) fn release(&self, server: &Key) -> Vec<Key> {
        let mut positions = self.lock();
        let previous = self.set_position(&mut positions, server, Some(SlotPosition::Idle));
        self.next_to_begin(&positions, previous)
    }

    /// Records the number of failures in a row, at whatever step. A server that fails for long gives up its slot to
    /// others, and requests one again when it recovers. Returns the same as [`Self::release`].
    pub(crate) fn record_failures(&self, server: &Key, attempts: u32) -> Vec<Key> {
        if attempts < RELEASE_AFTER_FAILURES { Vec::new() } else { self.release(server) }
    }

    /// Removes a deleted server. Returns the same as [`Self::release`].
    pub(crate) fn remove(&self, server: &Key) -> Vec<Key> {
        let mut positions = self.lock();
        let previous = self.set_position(&mut positions, server, None);
        self.next_to_begin(&positions, previous)
    }

    /// Takes a slot for an update that may begin now. `unobserved` are servers without a pass in this process whose status
    /// reports an update. If one of them has had a pass since, the result of that pass counts.
    pub(crate) fn acquire(
        &self,
        server: &Key,
        node: Option<&str>,
        since: Timestamp,
        unobserved: impl Iterator<Item = Key>,
    ) -> Result<(), SlotUnavailable> {
        let mut positions = self.lock();
        for other in unobserved {
            if !positions.contains_key(&other) {
                self.set_position(&mut positions, &other, Some(SlotPosition::Updating { node: None }));
            }
        }
        let (mut in_use, queue) = SlotsInUse::from_positions(positions.iter().filter(|(other, _)| *other != server));
        let queued_before: Vec<_> =
            queue.into_iter().filter(|waiting| (waiting.0, waiting.1) < (since, server)).collect();
        let updating = in_use.total;
        for (_, _, other_node) in &queued_before {
            in_use.try_add(self.limits, *other_node);
        }
        let updating_on_node = in_use.has_free_slot(self.limits).then(|| in_use.count_on_node(node));
        let fits = in_use.try_add(self.limits, node);
        let queued_before = queued_before.into_iter().map(|(_, server, _)| server.clone()).collect();
        let unavailable = SlotUnavailable { updating, updating_on_node, queued_before };
        let node = node.map(str::to_owned);
        let position = if fits { SlotPosition::Updating { node } } else { SlotPosition::Waiting { since, node } };
        self.set_position(&mut positions, server, Some(position));
        if fits { Ok(()) } else { Err(unavailable) }
    }

    /// The servers that may begin after a server left its position.
    fn next_to_begin(&self, positions: &BTreeMap<Key, SlotPosition>, previous: Option<SlotPosition>) -> Vec<Key> {
        if previous.is_none_or(|previous| previous == SlotPosition::Idle) {
            return Vec::new();
        }
        let (mut in_use, queue) = SlotsInUse::from_positions(positions.iter());
        // By the node on which each server was when it began to wait.
        let mut may_begin = Vec::new();
        for (_, server, node) in queue {
            if in_use.try_add(self.limits, node) {
                may_begin.push(server.clone());
            }
        }
        may_begin
    }

    /// Sets the position of a server, or removes it with `None`, and returns the earlier one. All changes go through
    /// this function, so that the metrics are correct.
    fn set_position(
        &self,
        positions: &mut BTreeMap<Key, SlotPosition>,
        server: &Key,
        position: Option<SlotPosition>,
    ) -> Option<SlotPosition> {
        self.count(position.as_ref(), 1);
        let previous = match position {
            Some(position) => positions.insert(server.clone(), position),
            None => positions.remove(server),
        };
        self.count(previous.as_ref(), -1);
        previous
    }

    fn count(&self, position: Option<&SlotPosition>, delta: i64) {
        let gauge = match position {
            Some(SlotPosition::Updating { .. }) => &self.metrics.in_use,
            Some(SlotPosition::Waiting { .. }) => &self.metrics.waiting,
            Some(SlotPosition::Idle) | None => return,
        };
        gauge.inc_by(delta);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, SlotPosition>> {
        // Each change under this lock is one insert or one removal.
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of slots in use.
#[derive(Debug, Default)]
struct SlotsInUse<'a> {
    total: usize,
    per_node: BTreeMap<&'a str, usize>,
}

/// Waiting servers with the start of their wait and their node. First come, first served, and by name if the windows
/// open together.
type SlotQueue<'a> = Vec<(Timestamp, &'a Key, Option<&'a str>)>;

impl<'a> SlotsInUse<'a> {
    fn from_positions(positions: impl Iterator<Item = (&'a Key, &'a SlotPosition)>) -> (Self, SlotQueue<'a>) {
        let (mut in_use, mut queue) = (Self::default(), Vec::new());
        for (server, position) in positions {
            match position {
                SlotPosition::Updating { node } => in_use.add(node.as_deref()),
                SlotPosition::Waiting { since, node } => queue.push((*since, server, node.as_deref())),
                SlotPosition::Idle => {}
            }
        }
        queue.sort_unstable();
        (in_use, queue)
    }

    fn add(&mut self, node: Option<&'a str>) {
        self.total += 1;
        if let Some(node) = node {
            *self.per_node.entry(node).or_default() += 1;
        }
    }

    fn has_free_slot(&self, limits: Limits) -> bool {
        limits.total.is_none_or(|limit| self.total < limit)
    }

    fn count_on_node(&self, node: Option<&str>) -> usize {
        node.and_then(|node| self.per_node.get(node)).copied().unwrap_or(0)
    }

    /// Counts one more server if there is a slot. A server whose node is full does not block the servers behind it. A
    /// server without a node is scaled to zero and counts on no node.
    fn try_add(&mut self, limits: Limits, node: Option<&'a str>) -> bool {
        let fits = self.has_free_slot(limits) && limits.per_node.is_none_or(|limit| self.count_on_node(node) < limit);
        if fits {
            self.add(node);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
