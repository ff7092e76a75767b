//! Edge (reads). Limits the request rate of one upstream: a burst, then evenly spaced requests.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::Upstream;

/// Spaces requests so that a cold start does not run into the upstream's own limit.
///
/// It stores the instant at which the allowance would be used up exactly ("theoretical arrival time"). A request may be
/// sent when that instant is at most a burst ahead.
#[derive(Debug)]
pub(super) struct RateLimiter {
    interval: Duration,
    burst: u32,
    used_until: Mutex<Option<Instant>>,
}

impl RateLimiter {
    pub(super) fn new(upstream: Upstream) -> Self {
        // The upstreams' own limits: Hangar 100 at once, then 4/s. Modrinth 300 a minute. Fill, PurpurMC and Docker Hub
        // state none or only by header, and their values here are those of a polite client. All values stay below the
        // limits, because other clients may share the address.
        let (burst, per_second) = match upstream {
            Upstream::Fill => (80, 10),
            // A full response about one version is some hundred kilobytes, and there are 40 versions in all.
            Upstream::Purpur => (10, 4),
            Upstream::Hangar => (60, 4),
            Upstream::Modrinth => (100, 4),
            Upstream::DockerHub => (10, 1),
        };
        Self { interval: Duration::from_secs(1) / per_second, burst, used_until: Mutex::new(None) }
    }

    /// Waits until one more request may be sent.
    pub(super) async fn wait(&self) {
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Reserves one request and returns how long it has to wait.
    fn reserve(&self, now: Instant) -> Duration {
        let mut used_until = self.used_until.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = used_until.map_or(now, |until| until.max(now));
        *used_until = Some(before + self.interval);
        (before + self.interval).saturating_duration_since(now + self.interval * self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limiter_allows_burst_then_spaces_requests() {
        let limiter = RateLimiter::new(Upstream::Hangar);
        let now = Instant::now();
        let waits: Vec<Duration> = (0..68).map(|_| limiter.reserve(now)).collect();
        assert!(waits[..60].iter().all(Duration::is_zero));
        assert_eq!(waits[60], Duration::from_millis(250));
        assert_eq!(waits[67], Duration::from_secs(2));
    }

    #[test]
    fn rate_limiter_restores_unused_capacity() {
        let limiter = RateLimiter::new(Upstream::DockerHub);
        let now = Instant::now();
        for _ in 0..10 {
            limiter.reserve(now);
        }
        let later = now + Duration::from_secs(5);
        let waits: Vec<bool> = (0..6).map(|_| limiter.reserve(later).is_zero()).collect();
        assert_eq!(waits, [true, true, true, true, true, false]);
    }
}
