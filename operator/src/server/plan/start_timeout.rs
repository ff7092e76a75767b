//! Pure. Holds the time limits for the start and verification of a new revision.

use jiff::SignedDuration;

/// Time limits for the start and verification of a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartTimeout {
    /// The server must run without problems for this long.
    pub(crate) settle: SignedDuration,
    /// Maximum time of a start without progress.
    pub(crate) start: SignedDuration,
    /// The same for the first start of a newer Minecraft version, which rewrites the world.
    pub(crate) first_start: SignedDuration,
}

impl StartTimeout {
    /// Maximum time for the first start of a pod. A start that rewrites the world (`one_way`) also does everything that another start does.
    /// It therefore never has less time than `start`, whatever its own setting is.
    pub(super) fn start_within(self, one_way: bool) -> SignedDuration {
        if one_way { self.first_start.max(self.start) } else { self.start }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_start_timeout_is_never_below_start_timeout() {
        let within = |first_start: i64| {
            let mins = SignedDuration::from_mins;
            let start_timeout = StartTimeout { settle: mins(1), start: mins(10), first_start: mins(first_start) };
            [false, true].map(|one_way| start_timeout.start_within(one_way).as_mins())
        };
        assert_eq!(within(45), [10, 45]);
        assert_eq!(within(5), [10, 10]);
    }
}
