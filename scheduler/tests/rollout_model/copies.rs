//! Pure. Models backups of the worlds, restore requests, and a user who requests one.

use crate::moves::{Kind, Moves};
use crate::world::{Agent, L, Rev, State};

/// An offline backup, taken before a revision opened the worlds for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ColdCopy {
    pub(crate) format: u8,
    pub(crate) before: Rev,
}

/// The request to restore the worlds when `to` starts after `failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    pub(crate) to: Rev,
    pub(crate) failed: Rev,
    /// Players were online when it was written, or that was unknown. The worlds are then restored only if nobody was online since the backup.
    pub(crate) unless_played: bool,
}

/// A user's request to replace the worlds with a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wish {
    /// Not made yet, if the scenario includes it.
    Before,
    /// It was recorded, and its backup was selected.
    Asked,
    /// It was executed, refused, or has expired.
    Over,
}

impl State {
    /// Whether players were online since the backup, or that is unknown.
    pub(crate) fn may_have_played(&self) -> bool {
        self.played || self.agent != Agent::Answers
    }

    /// Whether a user's request may be part of the next stop: the agent confirms that it was not executed yet, and no pod is already handling it.
    pub(crate) fn copy_is_asked(&self) -> bool {
        let says_no = match self.pod {
            Some(p) if p.life == L::Refused => Some(p.rev) == self.settled,
            Some(_) => self.agent == Agent::Answers,
            None => false,
        };
        says_no && self.copy_is_due()
    }

    /// Whether its backup is selected, and nothing of it has begun.
    pub(crate) fn copy_is_due(&self) -> bool {
        self.wish == Wish::Asked && self.settled.is_some() && !self.obeyed && !self.copy_is_on_its_way()
    }

    /// Whether it is in progress. Either the pod that was deleted for it is recorded and has been replaced, or the request is mounted and its pod
    /// starts or retries.
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
    /// Requests once, at any time. A request expires if it has not begun in time. Its result is recorded as soon as an agent reports it.
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
