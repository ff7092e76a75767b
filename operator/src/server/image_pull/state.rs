//! Pure. How far the images of a set are on their way to the node of its server, and what is done about it next.
//!
//! Nothing in it has to survive a restart of the operator: a new one asks again, and a node that has everything answers within seconds.

use jiff::{SignedDuration, Timestamp};
use kube::core::Status;
use scheduler::observation::ImagesOnNode;

use super::pod_status::PullStatus;
use super::rejection::is_of_any_pod;
use super::request::PullRequest;
use crate::error_chain::cut;

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
/// A kubelet takes notice of a pod within seconds. One that has not is that of a node which does not answer.
const TAKEN_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// A pod that runs nothing goes within a second. One that is still there is on a node that does not answer.
pub(super) const GONE_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// So often in a row a node must not have been asked before it is taken for one that cannot be: a quota is full for a moment while something
/// else is rolled out, and a pod is deleted by mistake.
const BELIEVED_AFTER: u32 = 2;
/// Registries answer with whole pages.
const LONGEST_WHY: usize = 512;

/// Why the images are not there, or why nobody knows whether they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullError {
    /// The node has said it of an image. Else it could not be asked, for a reason that says nothing about images.
    pub(crate) is_of_an_image: bool,
    /// Which image, or what else, on which node. Stays the same while it is tried again.
    pub(crate) what: String,
    /// In the words of the kubelet or of the API server.
    pub(crate) why: String,
}

/// One question, and what came of it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) question: PullRequest,
    state: PullState,
    failures: u32,
    /// So often in a row, and up to now, it could not be asked.
    unasked: u32,
    /// What is wrong was said of an image, and is no mere silence: not to be asked any more says nothing against that.
    is_said: bool,
    /// Stands until the node has them, or says another one.
    pub(crate) problem: Option<PullError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PullState {
    /// The node is still to be asked.
    New,
    Asked {
        /// Then it is given up.
        until: Timestamp,
    },
    Here {
        at: Timestamp,
    },
    Later {
        again: Timestamp,
    },
}

/// The pod of this server that pulls images, as it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PullPod {
    Nothing,
    /// A pod of this name that we did not make.
    Foreign,
    /// Ours, and about something else.
    OfAnother,
    /// Ours, and being deleted.
    Going {
        /// By when it has to be gone.
        by: Timestamp,
    },
    Ours {
        answer: PullStatus,
        since: Timestamp,
    },
}

/// What is done about the pod that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullAction {
    Nothing,
    Make,
    Delete,
}

impl Pull {
    pub(crate) fn new(question: PullRequest) -> Self {
        Self { question, state: PullState::New, failures: 0, unasked: 0, is_said: false, problem: None }
    }

    /// In the words of the rollout.
    pub(crate) fn seen(&self) -> ImagesOnNode {
        match (self.state, &self.problem) {
            (PullState::Here { .. }, _) => ImagesOnNode::Here,
            (PullState::New | PullState::Asked { .. } | PullState::Later { .. }, Some(problem))
                if problem.is_of_an_image =>
            {
                ImagesOnNode::Failed
            }
            (PullState::New | PullState::Asked { .. } | PullState::Later { .. }, Some(_)) => ImagesOnNode::Unknown,
            (PullState::New | PullState::Asked { .. } | PullState::Later { .. }, None) => ImagesOnNode::OnTheirWay,
        }
    }

    /// Whether nothing has to be looked at for now. What was pulled hours before the window is looked for again when it is `near`.
    pub(crate) fn stands(&self, near: bool, now: Timestamp) -> bool {
        let always = self.question.is_asked_at_each_start();
        let counts = if always { COUNTS_IF_ASKED_AT_EACH_START } else { COUNTS };
        match self.state {
            PullState::New | PullState::Asked { .. } => false,
            PullState::Here { at } => !near || (at..at + counts).contains(&now),
            PullState::Later { again } => now < again,
        }
    }

    /// A pod for it may be there.
    pub(crate) fn may_have_a_pod(&self) -> bool {
        matches!(self.state, PullState::New | PullState::Asked { .. })
    }

    /// When the clock alone changes something about it.
    pub(crate) fn next_look(&self) -> Option<Timestamp> {
        match self.state {
            PullState::New | PullState::Here { .. } => None,
            PullState::Asked { until } => Some(until),
            PullState::Later { again } => Some(again),
        }
    }

    /// What follows from what was found.
    pub(crate) fn next(self, found: PullPod, now: Timestamp) -> (Self, PullAction) {
        let on = format!("on node `{}`", self.question.node);
        let all = self.question.in_words();
        let made = matches!(self.state, PullState::Asked { .. });
        match found {
            PullPod::Nothing if made => {
                (self.unasked("the pod that was to ask it was deleted before it had", now), PullAction::Nothing)
            }
            PullPod::Nothing => (self.asked(now + TAKEN_WITHIN), PullAction::Make),
            PullPod::Foreign => {
                let why = "a pod that Nightshift did not make has the name of the one that would ask it; delete it";
                (self.unasked(why, now), PullAction::Nothing)
            }
            PullPod::OfAnother => (self, PullAction::Delete),
            // Whoever deletes it: it is on a node that does not answer, or somebody keeps it.
            PullPod::Going { by } if by <= now => {
                (self.unasked("the pod of an earlier time is being deleted and does not go", now), PullAction::Delete)
            }
            PullPod::Going { by: _ } if made => {
                (self.unasked("the pod that was to ask it was deleted before it had", now), PullAction::Nothing)
            }
            PullPod::Going { by } => (Self { state: PullState::Later { again: by }, ..self }, PullAction::Nothing),
            PullPod::Ours { answer: PullStatus::Here, since: _ } => {
                let state = PullState::Here { at: now };
                (Self { state, failures: 0, unasked: 0, is_said: false, problem: None, ..self }, PullAction::Delete)
            }
            PullPod::Ours { answer: PullStatus::Failed { image: Some(image), why }, since: _ } => {
                (self.failed(format!("the image `{image}` cannot be pulled {on}"), &why, now), PullAction::Delete)
            }
            PullPod::Ours { answer: PullStatus::Failed { image: None, why }, since: _ } => {
                (self.failed(format!("{all} could not be pulled {on}"), &why, now), PullAction::Delete)
            }
            PullPod::Ours { answer: PullStatus::NoRoom(why), since: _ } => {
                (self.unasked(&why, now), PullAction::Delete)
            }
            PullPod::Ours { answer: PullStatus::Untaken, since } if since + TAKEN_WITHIN <= now => {
                (self.unasked("the node has taken no notice of the pod within two minutes", now), PullAction::Delete)
            }
            PullPod::Ours { answer: PullStatus::Untaken, since } => {
                (self.asked(since + TAKEN_WITHIN), PullAction::Nothing)
            }
            PullPod::Ours { answer: PullStatus::Pending, since } if since + PULLED_WITHIN <= now => {
                let why = "the node has not answered within an hour";
                let late = self.failed(format!("{all} could not be pulled {on}"), why, now);
                (Self { is_said: false, ..late }, PullAction::Delete)
            }
            PullPod::Ours { answer: PullStatus::Pending, since } => {
                (self.asked(since + PULLED_WITHIN), PullAction::Nothing)
            }
        }
    }

    /// The API server takes no pod for it.
    pub(crate) fn refused(self, refusal: &Status, now: Timestamp) -> Self {
        if is_of_any_pod(refusal) {
            return self.unasked(&refusal.message, now);
        }
        let what =
            format!("no pod can be made that has node `{}` pull {}", self.question.node, self.question.in_words());
        self.failed(what, &refusal.message, now)
    }

    fn asked(self, until: Timestamp) -> Self {
        Self { state: PullState::Asked { until }, ..self }
    }

    /// The node, or whoever stands for it, has said that they are not there.
    fn failed(self, what: String, why: &str, now: Timestamp) -> Self {
        let problem = PullError { is_of_an_image: true, what, why: cut(why, LONGEST_WHY) };
        Self { unasked: 0, is_said: true, problem: Some(problem), ..self.later(now) }
    }

    /// It could not be asked, and nothing is known of them that was not known before.
    fn unasked(self, why: &str, now: Timestamp) -> Self {
        let unasked = self.unasked.saturating_add(1);
        if unasked < BELIEVED_AFTER || self.is_said {
            return Self { unasked, ..self.later(now) };
        }
        let what = format!("node `{}` cannot be asked whether it has {}", self.question.node, self.question.in_words());
        let problem = PullError { is_of_an_image: false, what, why: cut(why, LONGEST_WHY) };
        Self { unasked, problem: Some(problem), ..self.later(now) }
    }

    fn later(self, now: Timestamp) -> Self {
        let doubled = FIRST_PAUSE * 2_i32.pow(self.failures.min(10));
        let state = PullState::Later { again: now + doubled.min(LONGEST_PAUSE) };
        Self { state, failures: self.failures.saturating_add(1), ..self }
    }
}

#[cfg(test)]
mod tests;
