//! Pure. Copies of the worlds, the orders to put one back, and a person who asks for one.

use crate::moves::{Kind, Moves};
use crate::world::{Agent, L, Rev, State};

/// A cold copy, taken before a revision opened the worlds for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ColdCopy {
    pub(crate) format: u8,
    pub(crate) before: Rev,
}

/// The order to put the worlds back when `to` starts after `failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    pub(crate) to: Rev,
    pub(crate) failed: Rev,
    /// Somebody was on when it was given, or nobody could say: then the worlds only come back if nobody was on since the copy.
    pub(crate) unless_played: bool,
}

/// The word of a person that a copy takes the place of the worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wish {
    /// It is still to come, if it is looked at.
    Before,
    /// It was noted, and its copy chosen.
    Asked,
    /// It was carried out, or could not be, or it is too late.
    Over,
}

impl State {
    /// Somebody was on since the copy, or nobody can say.
    pub(crate) fn may_have_played(&self) -> bool {
        self.played || self.agent != Agent::Answers
    }

    /// A person's wish may go with what comes next: somebody says that it was not carried out yet, and it is not left to a pod already.
    pub(crate) fn copy_is_asked(&self) -> bool {
        let says_no = match self.pod {
            Some(p) if p.life == L::Refused => Some(p.rev) == self.settled,
            Some(_) => self.agent == Agent::Answers,
            None => false,
        };
        says_no && self.copy_is_due()
    }

    /// Its copy is chosen, and nothing of it has begun.
    pub(crate) fn copy_is_due(&self) -> bool {
        self.wish == Wish::Asked && self.settled.is_some() && !self.obeyed && !self.copy_is_on_its_way()
    }

    /// The pod that goes for it was recorded and is another one by now; or the order stands, and whoever obeys it comes or tries again.
    pub(crate) fn copy_is_on_its_way(&self) -> bool {
        let stops = self.busy().is_none();
        let is_recorded = self.again.is_some_and(|again| again.copy && (stops || !again.of_now));
        let stands = self.order_for_copy.is_some() && self.order_for_copy == self.settled;
        let of_settled = self.pod.filter(|p| Some(p.rev) == self.settled);
        let is_up = of_settled.is_some_and(|p| matches!(p.life, L::Up | L::Down));
        is_recorded || (stands && (Some(self.template) == self.settled || of_settled.is_some()) && !is_up)
    }
}

impl Moves<'_> {
    /// Asks once, at any time. Too late is what nobody has begun in time; what came of it is noted as soon as an agent says it.
    pub(crate) fn whoever_asks_for_a_copy(&mut self, w: &State) {
        match w.wish {
            Wish::Before if self.s.copies => {
                self.to(Kind::Person, "a person asks for a copy", State { wish: Wish::Asked, ..*w });
            }
            Wish::Asked if !w.copy_is_on_its_way() => {
                let to = State { wish: Wish::Over, order_for_copy: None, ..*w };
                self.tick("too late for the copy", to);
            }
            Wish::Before | Wish::Asked | Wish::Over => {}
        }
    }
}
