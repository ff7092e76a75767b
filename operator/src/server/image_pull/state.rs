//! Pure. Models the state of an image pull on the server's node, and its next action.
//!
//! The state does not have to survive a restart of the operator. A new one starts again, and a node with all images answers within seconds.

use jiff::{SignedDuration, Timestamp};
use kube::core::Status;
use scheduler::observation::ImagesOnNode;

use super::pod_status::PullStatus;
use super::rejection::is_of_any_pod;
use super::request::PullRequest;
use crate::error_chain::cut;

/// How long a result is valid for the start of an update. Later the node may have removed the image again, which it does when its disk is
/// full.
const COUNTS: SignedDuration = SignedDuration::from_hours(1);
/// The same if each start asks the registry, because the result then also shows that the registry answers.
const COUNTS_IF_ASKED_AT_EACH_START: SignedDuration = SignedDuration::from_mins(10);
/// Maximum time for a pull. The slowest supported line downloads a gigabyte in that time.
pub(crate) const PULLED_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// Pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// Maximum pause. A window is short, and a registry often recovers soon.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(15);
/// Time in which a kubelet must notice the pod. It usually takes seconds, so the node is considered unreachable after this.
const TAKEN_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// Time in which a deleted pull pod must be gone. It usually takes a second, so the node is considered unreachable after this.
pub(super) const GONE_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// Number of failed attempts in a row after which the node counts as unavailable. A quota may be full for a moment during another rollout,
/// and a pod may be deleted by mistake.
const BELIEVED_AFTER: u32 = 2;
/// Maximum length of a reason: registries may answer with whole pages.
const LONGEST_WHY: usize = 512;

/// Why the images are missing, or why their presence is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullError {
    /// Whether the node has reported it of an image. Otherwise the node could not be reached, for a reason unrelated to images.
    pub(crate) is_of_an_image: bool,
    /// The image or the other problem, and the node. It stays the same during retries.
    pub(crate) what: String,
    /// The message of the kubelet or the API server.
    pub(crate) why: String,
}

/// One pull request and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) question: PullRequest,
    state: PullState,
    failures: u32,
    /// Number of attempts in a row, up to now, that did not reach the node.
    unasked: u32,
    /// Whether the node reported the problem of an image, rather than not answering. Later attempts that do not reach the node do not
    /// override that.
    is_said: bool,
    /// It remains until the node has the images, or another problem is reported.
    pub(crate) problem: Option<PullError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PullState {
    /// The node has not been asked yet.
    New,
    Asked {
        /// Deadline of the pull.
        until: Timestamp,
    },
    Here {
        at: Timestamp,
    },
    Later {
        again: Timestamp,
    },
}

/// The observed pull pod of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PullPod {
    Nothing,
    /// A pod of this name that Nightshift did not create.
    Foreign,
    /// A pull pod for another request.
    OfAnother,
    /// A pull pod that is being deleted.
    Going {
        /// The instant by which it has to be gone.
        by: Timestamp,
    },
    Ours {
        answer: PullStatus,
        since: Timestamp,
    },
}

/// The action for the observed pod.
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

    /// The state in the rollout's types.
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

    /// Whether nothing has to be checked now. A result from hours before the window is checked again when the window is `near`.
    pub(crate) fn stands(&self, near: bool, now: Timestamp) -> bool {
        let always = self.question.is_asked_at_each_start();
        let counts = if always { COUNTS_IF_ASKED_AT_EACH_START } else { COUNTS };
        match self.state {
            PullState::New | PullState::Asked { .. } => false,
            PullState::Here { at } => !near || (at..at + counts).contains(&now),
            PullState::Later { again } => now < again,
        }
    }

    /// Whether a pull pod may exist.
    pub(crate) fn may_have_a_pod(&self) -> bool {
        matches!(self.state, PullState::New | PullState::Asked { .. })
    }

    /// When the state changes by time alone.
    pub(crate) fn next_look(&self) -> Option<Timestamp> {
        match self.state {
            PullState::New | PullState::Here { .. } => None,
            PullState::Asked { until } => Some(until),
            PullState::Later { again } => Some(again),
        }
    }

    /// The next state and the action for the observed pod.
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
            // Independent of who deleted it: its node does not answer, or a finalizer keeps it.
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

    /// Handles a rejection of the pull pod by the API server.
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

    /// The node or the API server has reported that the images are missing.
    fn failed(self, what: String, why: &str, now: Timestamp) -> Self {
        let problem = PullError { is_of_an_image: true, what, why: cut(why, LONGEST_WHY) };
        Self { unasked: 0, is_said: true, problem: Some(problem), ..self.later(now) }
    }

    /// The node was not reached, and the knowledge about the images is unchanged.
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
