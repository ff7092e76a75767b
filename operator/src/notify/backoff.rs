//! Pure. How long is waited between two tries to tell a channel.

use std::time::Duration;

use super::delivery_error::DeliveryError;

/// How long is waited between two tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveryBackoff {
    /// After the first failure; doubled each time.
    pub(crate) first: Duration,
    /// Never longer, and at once for what only a person can mend.
    pub(crate) longest: Duration,
    /// For what is wrong with the Secret: nothing is sent to find that out, and nobody tells when it is mended.
    pub(crate) secret: Duration,
    /// Never longer, when the receiver says how long.
    pub(crate) longest_asked: Duration,
}

impl Default for DeliveryBackoff {
    /// From 2 s to a quarter of an hour: a receiver that is restarted loses nothing, one that is down for hours is asked a
    /// hundred times a day. Discord asks for seconds, rarely for minutes; an hour keeps a wrong header from being the end.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(2),
            longest: Duration::from_mins(15),
            secret: Duration::from_mins(1),
            longest_asked: Duration::from_hours(1),
        }
    }
}

impl DeliveryBackoff {
    /// After `failures` in a row (at least one), the last of them this one; `asked` is what the receiver asks for.
    pub(crate) fn pause(&self, failures: u32, fault: Option<&DeliveryError>, asked: Option<Duration>) -> Duration {
        if let Some(asked) = asked {
            return asked.clamp(self.first, self.longest_asked);
        }
        if fault.is_some_and(DeliveryError::is_of_the_secret) {
            return self.secret;
        }
        if fault.is_some_and(DeliveryError::is_lasting) {
            return self.longest;
        }
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_quarter_of_an_hour_and_a_receiver_that_a_person_must_mend_waits_so_long_at_once() {
        let pace = DeliveryBackoff::default();
        let of = |failures, code| pace.pause(failures, Some(&DeliveryError::Status(code)), None).as_secs();
        assert_eq!([of(1, 500), of(2, 500), of(5, 503), of(40, 500)], [2, 4, 32, 900]);
        assert_eq!([of(1, 404), of(1, 429)], [900, 2]);
        assert_eq!(pace.pause(3, Some(&DeliveryError::TimedOut), None).as_secs(), 8);
        assert_eq!(
            pace.pause(9, Some(&DeliveryError::SecretMissing), None),
            Duration::from_mins(1),
            "a look costs nothing"
        );
    }

    #[test]
    fn what_the_receiver_asks_for_is_honoured_within_reason() {
        let pace = DeliveryBackoff::default();
        let asked =
            |seconds| pace.pause(5, Some(&DeliveryError::Status(429)), Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!([asked(0), asked(65), asked(86_400)], [2, 65, 3_600]);
    }
}
