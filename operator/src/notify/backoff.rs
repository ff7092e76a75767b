//! Pure. Computes the pause between two attempts to deliver a notification.

use std::time::Duration;

use super::delivery_error::DeliveryError;

/// The pauses between two attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveryBackoff {
    /// After the first failure. Doubled each time.
    pub(crate) first: Duration,
    /// The upper limit. Also the first pause after an error that only a user can fix.
    pub(crate) longest: Duration,
    /// After an error in the Secret: checking it again sends no message, and no event signals that it is fixed.
    pub(crate) secret: Duration,
    /// The upper limit of a pause that the receiver requests.
    pub(crate) longest_retry_after: Duration,
}

impl Default for DeliveryBackoff {
    /// From 2 s to a quarter of an hour. A receiver that restarts loses no notification, and one that is down for hours
    /// gets about a hundred attempts a day. Discord requests pauses of seconds, rarely of minutes. The limit of an hour
    /// keeps a wrong header from ending the delivery.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(2),
            longest: Duration::from_mins(15),
            secret: Duration::from_mins(1),
            longest_retry_after: Duration::from_hours(1),
        }
    }
}

impl DeliveryBackoff {
    /// The pause after `failures` in a row (at least one, including the last). `retry_after` is the pause that the
    /// receiver requests.
    pub(crate) fn pause(
        &self,
        failures: u32,
        error: Option<&DeliveryError>,
        retry_after: Option<Duration>,
    ) -> Duration {
        if let Some(retry_after) = retry_after {
            return retry_after.clamp(self.first, self.longest_retry_after);
        }
        if error.is_some_and(DeliveryError::is_secret_error) {
            return self.secret;
        }
        if error.is_some_and(DeliveryError::is_persistent) {
            return self.longest;
        }
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_cap_and_permanent_errors_start_there() {
        let backoff = DeliveryBackoff::default();
        let pause_seconds =
            |failures, code| backoff.pause(failures, Some(&DeliveryError::Status(code)), None).as_secs();
        assert_eq!(
            [pause_seconds(1, 500), pause_seconds(2, 500), pause_seconds(5, 503), pause_seconds(40, 500)],
            [2, 4, 32, 900]
        );
        assert_eq!([pause_seconds(1, 404), pause_seconds(1, 429)], [900, 2]);
        assert_eq!(backoff.pause(3, Some(&DeliveryError::TimedOut), None).as_secs(), 8);
        assert_eq!(
            backoff.pause(9, Some(&DeliveryError::SecretMissing), None),
            Duration::from_mins(1),
            "a check of the Secret sends no message"
        );
    }

    #[test]
    fn backoff_honours_retry_after_within_limits() {
        let backoff = DeliveryBackoff::default();
        let retry_after =
            |seconds| backoff.pause(5, Some(&DeliveryError::Status(429)), Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([retry_after(0), retry_after(65), retry_after(86_400)], [2, 65, 3_600]);
    }
}
