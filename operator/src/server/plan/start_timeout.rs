//! Pure. How long a new set is waited for.

use jiff::SignedDuration;

/// How long a new set is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartTimeout {
    /// It must stay well for so long.
    pub(crate) settle: SignedDuration,
    /// A start may go on for so long without a sign of life.
    pub(crate) start: SignedDuration,
    /// The same for the first start of a newer Minecraft, which rewrites the world.
    pub(crate) first_start: SignedDuration,
}

impl StartTimeout {
    /// How long a first start of a pod may take before it is given up. One that rewrites the world does all that another does, too: it never
    /// has less time, whatever its own setting says.
    pub(super) fn start_within(self, one_way: bool) -> SignedDuration {
        if one_way { self.first_start.max(self.start) } else { self.start }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_rewrites_the_world_has_a_time_of_its_own_and_never_less_than_another() {
        let within = |first_start: i64| {
            let mins = SignedDuration::from_mins;
            let pace = StartTimeout { settle: mins(1), start: mins(10), first_start: mins(first_start) };
            [false, true].map(|one_way| pace.start_within(one_way).as_mins())
        };
        assert_eq!(within(45), [10, 45]);
        assert_eq!(within(5), [10, 10]);
    }
}
