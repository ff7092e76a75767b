//! Edge (writes). The clocks of a simulation: each thread has its own, and only the simulation moves them.

use std::cell::Cell;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What the clocks of this thread show.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    wall: Timestamp,
    monotonic: Duration,
}

thread_local! {
    static CLOCKS: Cell<Option<Clocks>> = const { Cell::new(None) };
}

/// The wall clock of this thread, where it is simulated.
pub(super) fn wall() -> Option<Timestamp> {
    CLOCKS.get().map(|clocks| clocks.wall)
}

/// The other one.
pub(super) fn monotonic() -> Option<Duration> {
    CLOCKS.get().map(|clocks| clocks.monotonic)
}

/// Begins to simulate them on this thread, until what is answered is dropped.
pub(crate) fn start(wall: Timestamp) -> Simulated {
    CLOCKS.set(Some(Clocks { wall, monotonic: Duration::ZERO }));
    Simulated
}

/// Lets time pass until then; back it never goes.
pub(crate) fn pass_until(at: Timestamp) {
    let Some(clocks) = CLOCKS.get() else { return };
    let passed = Duration::try_from(at.duration_since(clocks.wall)).unwrap_or_default();
    let wall = clocks.wall.max(at);
    CLOCKS.set(Some(Clocks { wall, monotonic: clocks.monotonic + passed }));
}

/// The wall clock is put forward, or back; no time passes.
pub(crate) fn put(by: SignedDuration) {
    let Some(clocks) = CLOCKS.get() else { return };
    CLOCKS.set(Some(Clocks { wall: clocks.wall + by, ..clocks }));
}

/// Lets so much time pass; false where the clocks are real.
pub(super) fn sleep(length: Duration) -> bool {
    let Some(clocks) = CLOCKS.get() else { return false };
    pass_until(clocks.wall + length);
    true
}

/// While it lives the clocks of this thread are simulated.
#[derive(Debug)]
pub(crate) struct Simulated;

impl Drop for Simulated {
    fn drop(&mut self) {
        CLOCKS.set(None);
    }
}
