//! Edge (writes). Wakes callers at the instant a window opens, with one-shot jobs of `tokio-cron-scheduler`.
//!
//! An alarm decides nothing. A woken caller computes the gate from the clock and sets the alarm again. An early, late or repeated alarm therefore
//! does no harm, and a lost one costs no more than the caller's own timer.
//!
//! Three properties of that crate (0.15.1, read and tried) shape this file. Its cron jobs freeze the offset of a zone when they are registered,
//! so only one-shots are used. It counts whole seconds from its own clock and checks every 500 ms. It notifies its tasks by broadcast channels of
//! limited length, so a thousand one-shots for one Sunday morning could be dropped. Here one one-shot serves all callers that are due next.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// The longest time for which a one-shot is armed. After that it is armed again, because the clock of a machine may be set, or stop while it
/// sleeps.
const MAX_DELAY: SignedDuration = SignedDuration::from_hours(6);

/// A one-shot that has not rung this long after its time never will, and other callers must not wait for it.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// The callback of an alarm. It must not block. It is meant for sending into a channel.
type Wake = Box<dyn FnOnce() + Send>;

/// Reads the clock. The caller that starts the timer provides it, like all code here that needs the time.
type TimerClock = fn() -> Timestamp;

/// An alarm clock for many callers. It is cheap to clone, and all clones are the same clock.
#[derive(Clone)]
pub(crate) struct Timer {
    /// `None` if no alarm ever rings.
    scheduler: Option<JobScheduler>,
    clock: TimerClock,
    state: Arc<Mutex<TimerState>>,
}

/// Why an alarm could not be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AlarmError {
    /// No alarm will ring.
    #[error("could not start the timer")]
    Start(#[source] JobSchedulerError),
    /// This alarm will not ring, unless another one is set later.
    #[error("could not set an alarm for {at}")]
    Arm {
        /// When it should have rung.
        at: Timestamp,
        /// The error of the scheduler.
        #[source]
        source: JobSchedulerError,
    },
}

/// The callers with their instants, and the one-shots in progress for them.
#[derive(Default)]
struct TimerState {
    calls: BTreeMap<String, (Timestamp, Wake)>,
    /// One-shots are never cancelled. A one-shot that is no longer needed wakes no caller.
    armed: BTreeSet<Timestamp>,
}

impl TimerState {
    /// Removes and returns all callers that are due.
    fn take_due(&mut self, now: Timestamp) -> Vec<Wake> {
        let (due, later) = std::mem::take(&mut self.calls).into_iter().partition(|(_, (at, _))| *at <= now);
        self.calls = later;
        BTreeMap::into_values(due).map(|(_, wake)| wake).collect()
    }

    /// When a one-shot is missing: for the next caller, unless an earlier one is already armed.
    fn next_to_arm(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.armed.retain(|armed| *armed + LOST_AFTER >= now);
        let next = self.calls.values().map(|(at, _)| *at).min()?.min(now + MAX_DELAY);
        // Rounded up to the second, because one-shots are set in whole seconds.
        let next = Timestamp::from_second(whole_second_not_before(next)).ok()?;
        self.armed.first().is_none_or(|armed| *armed > next).then_some(next)
    }
}

impl Timer {
    /// Starts an alarm clock without alarms. It needs a tokio runtime, and runs as long as that.
    pub(crate) async fn start(clock: TimerClock) -> Result<Self, AlarmError> {
        let scheduler = JobScheduler::new().await.map_err(AlarmError::Start)?;
        scheduler.start().await.map_err(AlarmError::Start)?;
        Ok(Self { scheduler: Some(scheduler), clock, state: Arc::default() })
    }

    /// An alarm clock that never rings, for simulations. Real seconds would ring it at random instants of a simulated clock.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn silent(clock: TimerClock) -> Self {
        Self { scheduler: None, clock, state: Arc::default() }
    }

    /// Calls `wake` once after `at`: never earlier, and about half a second later at most. It replaces an earlier alarm for this key. An instant
    /// in the past is called at once.
    pub(crate) async fn wake_at(
        &self,
        key: String,
        at: Timestamp,
        wake: impl FnOnce() + Send + 'static,
    ) -> Result<(), AlarmError> {
        let mut state = self.state.lock().await;
        if at <= (self.clock)() {
            state.calls.remove(&key);
            drop(state);
            wake();
            return Ok(());
        }
        state.calls.insert(key, (at, Box::new(wake)));
        self.arm(&mut state).await
    }

    /// Arms a one-shot for the next caller, if none is armed.
    async fn arm(&self, state: &mut TimerState) -> Result<(), AlarmError> {
        let Some(scheduler) = &self.scheduler else { return Ok(()) };
        let now = (self.clock)();
        let Some(at) = state.next_to_arm(now) else { return Ok(()) };
        let failed = |source| AlarmError::Arm { at, source };
        // The crate adds whole seconds to the current second, rounded down.
        let seconds = u64::try_from(at.as_second() - now.as_second()).unwrap_or(0);
        let alarm = self.clone();
        let job = Job::new_one_shot_async(Duration::from_secs(seconds), move |_, _| alarm.clone().ring(at));
        scheduler.add(job.map_err(failed)?).await.map_err(failed)?;
        state.armed.insert(at);
        Ok(())
    }

    /// Handles a one-shot that has rung. Boxed, because it arms the next one.
    fn ring(self, armed: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut state = self.state.lock().await;
            state.armed.remove(&armed);
            let due = state.take_due((self.clock)());
            if let Err(error) = self.arm(&mut state).await {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::error!(error, "could not set the next alarm; waiting tasks use their own timers");
            }
            drop(state);
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
