//! Pure. Models backups of the worlds, restore requests, and a user who requests one.

use crate::moves::{Kind, Moves};
use crate::state::{Agent, L, Rev, State};

/// An offline backup, taken before a revision opened the worlds for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OfflineBackup {
    pub(crate) format: u8,
    pub(crate) before: Rev,
}

/// The request to restore the worlds when `to` starts after `failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RollbackRequest {
    pub(crate) to: Rev,
    pub(crate) failed: Rev,
    /// Players were online when it was written, or that was unknown. The worlds are then restored only if nobody was online since the backup.
    pub(crate) unless_played: bool,
}

/// A user's request to replace the worlds with a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RestoreChoice {
    /// Not made yet, if the scenario includes it.
    Before,
    /// It was recorded, and its backup was selected.
    Requested,
    /// It was executed, refused, or has expired.
    Over,
}

impl State {
    /// Whether players were online since the backup, or that is unknown.
    pub(crate) fn may_have_played(&self) -> bool {
        self.has_played || self.agent != Agent::Answers
    }

    /// Whether a user's request may be part of the next stop: the agent confirms that it was not executed yet, and no pod is already handling it.
    pub(crate) fn is_user_restore_confirmed(&self) -> bool {
        let is_confirmed = match self.pod {
            Some(p) if p.phase == L::Refused => Some(p.rev) == self.stable,
            Some(_) => self.agent == Agent::Answers,
            None => false,
        };
        is_confirmed && self.is_user_restore_due()
    }

    /// Whether its backup is selected, and nothing of it has begun.
    pub(crate) fn is_user_restore_due(&self) -> bool {
        self.user_request == RestoreChoice::Requested
            && self.stable.is_some()
            && !self.user_restore_done
            && !self.is_user_restore_in_progress()
    }

    /// Whether it is in progress. Either the pod that was deleted for it is recorded and has been replaced, or the request is mounted and its pod
    /// starts or retries.
    pub(crate) fn is_user_restore_in_progress(&self) -> bool {
        let stops = self.active_pod().is_none();
        let is_recorded = self.recreated.is_some_and(|again| again.for_backup && (stops || !again.is_current_pod));
        let is_mounted = self.user_restore_for.is_some() && self.user_restore_for == self.stable;
        let of_stable = self.pod.filter(|p| Some(p.rev) == self.stable);
        let is_up = of_stable.is_some_and(|p| matches!(p.phase, L::Up | L::Down));
        is_recorded || (is_mounted && (Some(self.template) == self.stable || of_stable.is_some()) && !is_up)
    }
}

impl Moves<'_> {
    /// Requests once, at any time. A request expires if it has not begun in time. Its result is recorded as soon as an agent reports it.
    pub(crate) fn request_user_restore(&mut self, w: &State) {
        match w.user_request {
            RestoreChoice::Before if self.s.backups => {
                self.add(
                    Kind::User,
                    "a user requests a restore",
                    State { user_request: RestoreChoice::Requested, ..*w },
                );
            }
            RestoreChoice::Requested if !w.is_user_restore_in_progress() => {
                let to = State { user_request: RestoreChoice::Over, user_restore_for: None, ..*w };
                self.tick("too late for the restore", to);
            }
            RestoreChoice::Before | RestoreChoice::Requested | RestoreChoice::Over => {}
        }
    }
}
