//! Pure. How many servers are updated at the same time, and whose turn it is next.
//!
//! A server has its turn from the first announcement until it is settled again, or given up. Who has none is told that what has begun may end
//! and nothing new begins, as in the last part of a window: so nobody is warned of a stop that has to wait. Kept in memory: whoever leads next
//! finds who is at it by looking at each server once, and until then by what its status says.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::caches::Key;
use crate::telemetry::metrics;

/// At most so many, all together and on one node; None: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    pub(crate) together: Option<usize>,
    pub(crate) on_a_node: Option<usize>,
}

/// So many are no hiccup of the API server: with the pauses between them, some eight minutes.
const FAILS_FOR_LONG: u32 = 9;

/// Where a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SlotPosition {
    /// It is being updated, there.
    AtIt { node: Option<String> },
    /// It could begin, since its window opened.
    Queues { since: Timestamp, node: Option<String> },
    /// Neither.
    Rests,
}

/// Not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotUnavailable {
    /// So many are at it.
    pub(crate) at_it: usize,
    /// There is room for more of them, and none on its node, where so many are.
    pub(crate) on_its_node: Option<usize>,
    /// Those come before, the next one first.
    pub(crate) before: Vec<Key>,
}

/// Who is at it, and who waits. One for the process.
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

    /// Whether anything is bounded at all.
    pub(crate) fn are_bounded(&self) -> bool {
        self.limits != Limits::default()
    }

    /// Notes that an update of this server has begun. Between two pods it is a load on the node where it was: it comes back there, mostly.
    pub(crate) fn is_at_it(&self, server: &Key, node: Option<&str>) {
        let mut places = self.lock();
        let before = match places.get(server) {
            Some(SlotPosition::AtIt { node }) => node.clone(),
            Some(SlotPosition::Queues { .. } | SlotPosition::Rests) | None => None,
        };
        let node = node.map(str::to_owned).or(before);
        self.put(&mut places, server, Some(SlotPosition::AtIt { node }));
    }

    /// Notes that there is nothing to begin, or nothing any more. Answers whose turn it is now because of that.
    pub(crate) fn rests(&self, server: &Key) -> Vec<Key> {
        let mut places = self.lock();
        let was = self.put(&mut places, server, Some(SlotPosition::Rests));
        self.next(&places, was)
    }

    /// So many passes of this server have failed, one after the other and wherever they did. One that fails for long keeps nobody else waiting,
    /// and takes its turn anew when it can. Answers as [`Self::rests`] does.
    pub(crate) fn failed(&self, server: &Key, attempts: u32) -> Vec<Key> {
        if attempts < FAILS_FOR_LONG { Vec::new() } else { self.rests(server) }
    }

    /// Forgets a server that is gone. Answers as [`Self::rests`] does.
    pub(crate) fn forget(&self, server: &Key) -> Vec<Key> {
        let mut places = self.lock();
        let was = self.put(&mut places, server, None);
        self.next(&places, was)
    }

    /// Whether an update may begin here and now, which takes the turn. `unseen` are servers that this process has not looked at yet and
    /// whose status says that they are being updated; of all that are named there, those that were looked at since count as they were seen.
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

    /// Who may begin now that a server left its place.
    fn next(&self, places: &BTreeMap<Key, SlotPosition>, was: Option<SlotPosition>) -> Vec<Key> {
        if was.is_none_or(|was| was == SlotPosition::Rests) {
            return Vec::new();
        }
        let (mut taken, queue) = SlotsInUse::of(places.iter());
        // By the node on which it was when it came.
        let mut may_begin = Vec::new();
        for (_, server, node) in queue {
            if taken.let_in(self.limits, node) {
                may_begin.push(server.clone());
            }
        }
        may_begin
    }

    /// Puts a server there; None: it is gone. Nobody gets or leaves a place in another way, so that what is counted is so. Answers where it was.
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

/// How many are at it.
#[derive(Debug, Default)]
struct SlotsInUse<'a> {
    together: usize,
    on: BTreeMap<&'a str, usize>,
}

/// Who waits since when, and where. First come, first served; by name where windows open together.
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

    /// Counts one more, if there is room. Who finds none, because its node is full, keeps nobody behind it waiting. A server
    /// without a node, which is asleep, is a load on none.
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
