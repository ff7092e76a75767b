//! Edge (writes). Wakes somebody at the instant a window opens: one-shots of `tokio-cron-scheduler`.
//!
//! An alarm decides nothing. Whoever is woken computes the gate from the clock and sets the alarm again, so one that is
//! early, late or rung twice does no harm, and one that is lost costs no more than the caller's own timer.
//!
//! What that crate does (0.15.1, read and tried) shapes this file: its cron jobs freeze the offset of a zone when they are
//! registered, so only one-shots are used; it counts whole seconds from its own clock and looks every 500 ms; it tells its
//! tasks by broadcast channels of bounded length, so a thousand one-shots for one Sunday morning could be dropped. Here one
//! one-shot stands for everybody who is due next.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// The longest time a one-shot is armed for; then it is armed again. The clock of a machine may be set, or stand still while
/// it sleeps.
const FURTHEST: SignedDuration = SignedDuration::from_hours(6);

/// A one-shot that has not rung this long after its time never will, and others may not wait for it.
const LOST: SignedDuration = SignedDuration::from_secs(5);

/// What is done when an alarm rings. It must not block; sending into a channel is what it is for.
type Wake = Box<dyn FnOnce() + Send>;

/// Reads the clock. Given by whoever starts the alarm, as everything here that needs the time.
type TimerClock = fn() -> Timestamp;

/// An alarm clock for many callers. Cheap to clone; all clones are the same clock.
#[derive(Clone)]
pub struct Timer {
    scheduler: JobScheduler,
    clock: TimerClock,
    book: Arc<Mutex<TimerState>>,
}

/// Why an alarm could not be set.
#[derive(Debug, thiserror::Error)]
pub enum AlarmError {
    /// Nothing will ring.
    #[error("could not start the alarm clock")]
    Start(#[source] JobSchedulerError),
    /// This one will not ring, unless another one is set later.
    #[error("could not set an alarm for {at}")]
    Arm {
        /// When it should have rung.
        at: Timestamp,
        /// What the alarm clock said.
        #[source]
        source: JobSchedulerError,
    },
}

/// Who is woken when, and which one-shots are under way for it.
#[derive(Default)]
struct TimerState {
    calls: BTreeMap<String, (Timestamp, Wake)>,
    /// One-shots are never taken back: one that is not needed any more rings for nobody.
    armed: BTreeSet<Timestamp>,
}

impl TimerState {
    /// Takes out everybody whose time has come.
    fn due(&mut self, now: Timestamp) -> Vec<Wake> {
        let (due, later) = std::mem::take(&mut self.calls).into_iter().partition(|(_, (at, _))| *at <= now);
        self.calls = later;
        BTreeMap::into_values(due).map(|(_, wake)| wake).collect()
    }

    /// When a one-shot is missing: for the next caller, unless one rings until then anyway.
    fn missing(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.armed.retain(|armed| *armed + LOST >= now);
        let next = self.calls.values().map(|(at, _)| *at).min()?.min(now + FURTHEST);
        // Up to the second: that is how the one-shots are set.
        let next = Timestamp::from_second(whole_second_not_before(next)).ok()?;
        self.armed.first().is_none_or(|armed| *armed > next).then_some(next)
    }
}

impl Timer {
    /// Starts an alarm clock with nothing set. Needs a tokio runtime, and lives as long as that.
    pub async fn start(clock: TimerClock) -> Result<Self, AlarmError> {
        let scheduler = JobScheduler::new().await.map_err(AlarmError::Start)?;
        scheduler.start().await.map_err(AlarmError::Start)?;
        Ok(Self { scheduler, clock, book: Arc::default() })
    }

    /// Calls `wake` once, when `at` has come: not before it, and about half a second after it at the latest. Replaces what
    /// was set for this key before. What is over already is called at once.
    pub async fn wake_at(
        &self,
        key: String,
        at: Timestamp,
        wake: impl FnOnce() + Send + 'static,
    ) -> Result<(), AlarmError> {
        let mut book = self.book.lock().await;
        if at <= (self.clock)() {
            book.calls.remove(&key);
            drop(book);
            wake();
            return Ok(());
        }
        book.calls.insert(key, (at, Box::new(wake)));
        self.arm(&mut book).await
    }

    /// Nobody is called for this key any more.
    pub async fn forget(&self, key: &str) {
        self.book.lock().await.calls.remove(key);
    }

    /// Sets a one-shot for whoever is next, if there is none yet.
    async fn arm(&self, book: &mut TimerState) -> Result<(), AlarmError> {
        let now = (self.clock)();
        let Some(at) = book.missing(now) else { return Ok(()) };
        let armed = |source| AlarmError::Arm { at, source };
        // The crate adds whole seconds to the begun second of now.
        let seconds = u64::try_from(at.as_second() - now.as_second()).unwrap_or(0);
        let alarm = self.clone();
        let job = Job::new_one_shot_async(Duration::from_secs(seconds), move |_, _| alarm.clone().ring(at));
        self.scheduler.add(job.map_err(armed)?).await.map_err(armed)?;
        book.armed.insert(at);
        Ok(())
    }

    /// A one-shot has rung. Boxed, because it sets the next one.
    fn ring(self, armed: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut book = self.book.lock().await;
            book.armed.remove(&armed);
            let due = book.due((self.clock)());
            if let Err(error) = self.arm(&mut book).await {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::error!(error, "the next alarm is not set; whoever waits for it has a timer of their own");
            }
            drop(book);
            for wake in due {
                wake();
            }
        })
    }
}

fn whole_second_not_before(at: Timestamp) -> i64 {
    at.as_second() + i64::from(at.subsec_nanosecond() > 0)
}

#[cfg(test)]
mod tests;
