//! Pure. How far the images of a set are on their way to the node of its server, and what is done about it next.
//!
//! Nothing in it has to survive a restart of the operator: a new one asks again, and a node that has everything answers within seconds.

use jiff::{SignedDuration, Timestamp};
use scheduler::seen::Images;

use super::answer::Answer;
use super::question::Question;
use crate::chain::cut;

/// How long an answer counts when an update may begin. Later the node may have removed the image again, which it does when its disk is full.
const COUNTS: SignedDuration = SignedDuration::from_hours(1);
/// The same where each start asks the registry: what is found out is also whether that answers.
const COUNTS_IF_ASKED_AT_EACH_START: SignedDuration = SignedDuration::from_mins(10);
/// How long a node may take. The slowest line that a server is run on brings a gigabyte in that time.
pub(crate) const PULLED_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// After the first failure; twice as long after each further one.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// A window is short, and a registry that was down is often back soon.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(15);
/// Registries answer with whole pages.
const LONGEST_WHY: usize = 512;

/// Why the images are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Which image, or what else, on which node. Stays the same while it is tried again.
    pub(crate) what: String,
    /// In the words of the kubelet or of the API server.
    pub(crate) why: String,
}

/// One question, and what came of it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) question: Question,
    state: State,
    failures: u32,
    /// Of the last try. Stands until one succeeds.
    pub(crate) problem: Option<Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The node is still to be asked.
    New,
    Asked {
        since: Timestamp,
    },
    Here {
        at: Timestamp,
    },
    Failed {
        again: Timestamp,
    },
}

/// The pod of this server that pulls images, as it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A pod of this name that we did not make.
    Foreign,
    /// Ours, and about something else.
    OfAnother,
    /// Ours, and being deleted.
    Going,
    Ours {
        answer: Answer,
        since: Timestamp,
    },
}

/// What is done about the pod that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Nothing,
    Make,
    Delete,
}

impl Pull {
    pub(crate) fn new(question: Question) -> Self {
        Self { question, state: State::New, failures: 0, problem: None }
    }

    /// In the words of the rollout.
    pub(crate) fn seen(&self) -> Images {
        match (self.state, &self.problem) {
            (State::Here { .. }, _) => Images::Here,
            (State::New | State::Asked { .. } | State::Failed { .. }, Some(_)) => Images::Failed,
            (State::New | State::Asked { .. } | State::Failed { .. }, None) => Images::OnTheirWay,
        }
    }

    /// Whether nothing has to be looked at for now. What was pulled hours before the window is looked for again when it is `near`.
    pub(crate) fn stands(&self, near: bool, now: Timestamp) -> bool {
        let always = self.question.is_asked_at_each_start();
        let counts = if always { COUNTS_IF_ASKED_AT_EACH_START } else { COUNTS };
        match self.state {
            State::New | State::Asked { .. } => false,
            State::Here { at } => !near || (at..at + counts).contains(&now),
            State::Failed { again } => now < again,
        }
    }

    /// A pod for it may be there.
    pub(crate) fn may_have_a_pod(&self) -> bool {
        matches!(self.state, State::New | State::Asked { .. })
    }

    /// When the clock alone changes something about it.
    pub(crate) fn next_look(&self) -> Option<Timestamp> {
        match self.state {
            State::New | State::Here { .. } => None,
            State::Asked { since } => Some(since + PULLED_WITHIN),
            State::Failed { again } => Some(again),
        }
    }

    /// What follows from what was found.
    pub(crate) fn next(self, found: Found, now: Timestamp) -> (Self, Deed) {
        let on = format!("on node `{}`", self.question.node);
        let all = self.question.in_words();
        let made = matches!(self.state, State::Asked { .. });
        match found {
            Found::Nothing if made => {
                let what = format!("{all} could not be pulled {on}");
                (self.failed(what, "the pod that was to pull it was deleted before it had", now), Deed::Nothing)
            }
            Found::Nothing => (Self { state: State::Asked { since: now }, ..self }, Deed::Make),
            Found::Foreign => {
                let what = format!("{all} could not be pulled {on}");
                let why = "a pod that Nightshift did not make has the name of the one that would pull it; delete it";
                (self.failed(what, why, now), Deed::Nothing)
            }
            Found::OfAnother => (self, Deed::Delete),
            Found::Going => (self, Deed::Nothing),
            Found::Ours { answer: Answer::Here, since: _ } => {
                (Self { state: State::Here { at: now }, failures: 0, problem: None, ..self }, Deed::Delete)
            }
            Found::Ours { answer: Answer::Failed { image: Some(image), why }, since: _ } => {
                (self.failed(format!("the image `{image}` cannot be pulled {on}"), &why, now), Deed::Delete)
            }
            Found::Ours { answer: Answer::Failed { image: None, why }, since: _ } => {
                (self.failed(format!("{all} could not be pulled {on}"), &why, now), Deed::Delete)
            }
            Found::Ours { answer: Answer::Pending, since } if since + PULLED_WITHIN <= now => {
                let why = "the node has not answered within an hour";
                (self.failed(format!("{all} could not be pulled {on}"), why, now), Deed::Delete)
            }
            Found::Ours { answer: Answer::Pending, since } => {
                (Self { state: State::Asked { since }, ..self }, Deed::Nothing)
            }
        }
    }

    /// The API server takes no pod for it: a quota, an admission, a right that is missing.
    pub(crate) fn refused(self, why: &str, now: Timestamp) -> Self {
        let what =
            format!("no pod can be made that has node `{}` pull {}", self.question.node, self.question.in_words());
        self.failed(what, why, now)
    }

    fn failed(self, what: String, why: &str, now: Timestamp) -> Self {
        let doubled = FIRST_PAUSE * 2_i32.pow(self.failures.min(10));
        let state = State::Failed { again: now + doubled.min(LONGEST_PAUSE) };
        let problem = Some(Problem { what, why: cut(why, LONGEST_WHY) });
        Self { state, failures: self.failures.saturating_add(1), problem, ..self }
    }
}

#[cfg(test)]
mod tests;
