//! Edge (writes). Simulates the clocks: each thread has its own, and only the simulation moves them.

use std::cell::Cell;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The clocks of this thread.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    wall: Timestamp,
    monotonic: Duration,
}

thread_local! {
    static CLOCKS: Cell<Option<Clocks>> = const { Cell::new(None) };
}

/// The wall clock of this thread, if it is simulated.
pub(super) fn wall() -> Option<Timestamp> {
    CLOCKS.get().map(|clocks| clocks.wall)
}

/// The monotonic clock of this thread, if it is simulated.
pub(super) fn monotonic() -> Option<Duration> {
    CLOCKS.get().map(|clocks| clocks.monotonic)
}

/// Starts the simulation of this thread's clocks. It ends when the returned guard is dropped.
pub(crate) fn start(wall: Timestamp) -> Simulated {
    CLOCKS.set(Some(Clocks { wall, monotonic: Duration::ZERO }));
    Simulated
}

/// Advances the clocks until `at`. They never go back.
pub(crate) fn advance_to(at: Timestamp) {
    let Some(clocks) = CLOCKS.get() else { return };
    let passed = Duration::try_from(at.duration_since(clocks.wall)).unwrap_or_default();
    let wall = clocks.wall.max(at);
    CLOCKS.set(Some(Clocks { wall, monotonic: clocks.monotonic + passed }));
}

/// Moves the wall clock forward or back. No time passes.
pub(crate) fn shift_wall_clock(offset: SignedDuration) {
    let Some(clocks) = CLOCKS.get() else { return };
    CLOCKS.set(Some(Clocks { wall: clocks.wall + offset, ..clocks }));
}

/// Advances the clocks by `length`. Returns false if the clocks are real.
pub(super) fn sleep(length: Duration) -> bool {
    let Some(clocks) = CLOCKS.get() else { return false };
    advance_to(clocks.wall + length);
    true
}

/// Guard: the clocks of this thread are simulated while it exists.
#[derive(Debug)]
pub(crate) struct Simulated;

impl Drop for Simulated {
    fn drop(&mut self) {
        CLOCKS.set(None);
    }
}
