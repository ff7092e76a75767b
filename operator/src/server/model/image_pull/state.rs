//! Pure. Models the state of an image pull on the server's node, and its next action.
//!
//! The state does not have to survive a restart of the operator. A new one starts again, and a node with all images answers within seconds.

use jiff::{SignedDuration, Timestamp};
use kube::core::Status;
use scheduler::observation::ImagesOnNode;

use super::pod_status::PullStatus;
use super::rejection::is_image_independent;
use super::request::PullRequest;
use crate::error_chain::cut;

/// How long a result is valid for the start of an update. Later the node may have removed the image again, which it does when its disk is
/// full.
const RESULT_VALID_FOR: SignedDuration = SignedDuration::from_hours(1);
/// The same if each start asks the registry, because the result then also shows that the registry answers.
const ALWAYS_PULLED_VALID_FOR: SignedDuration = SignedDuration::from_mins(10);
/// Maximum time for a pull. The slowest supported line downloads a gigabyte in that time.
pub(crate) const PULL_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);
/// Pause after the first failure. It doubles with each further one.
const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(30);
/// Maximum pause. A window is short, and a registry often recovers soon.
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(15);
/// Time in which a kubelet must notice the pod. It usually takes seconds, so the node is considered unreachable after this.
const KUBELET_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);
/// Time in which a deleted pull pod must be gone. It usually takes a second, so the node is considered unreachable after this.
pub(crate) const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(1);
/// Number of failed attempts in a row after which the node counts as unavailable. A quota may be full for a moment during another rollout,
/// and a pod may be deleted by mistake.
const UNREACHABLE_AFTER: u32 = 2;
/// Maximum length of a reason: registries may answer with whole pages.
const MAX_REASON_LENGTH: usize = 512;

/// Why the images are missing, or why their presence is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullError {
    /// Whether the node has reported it of an image. Otherwise the node could not be reached, for a reason unrelated to images.
    pub(crate) is_image_error: bool,
    /// The image or the other problem, and the node. It stays the same during retries.
    pub(crate) subject: String,
    /// The message of the kubelet or the API server.
    pub(crate) why: String,
}

/// One pull request and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) request: PullRequest,
    state: PullState,
    failures: u32,
    /// Number of attempts in a row, up to now, that did not reach the node.
    unreachable_attempts: u32,
    /// Whether the node reported the problem of an image, rather than not answering. Later attempts that do not reach the node do not
    /// override that.
    is_reported: bool,
    /// It remains until the node has the images, or another problem is reported.
    pub(crate) problem: Option<PullError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PullState {
    /// The node has not been asked yet.
    New,
    Requested {
        /// Deadline of the pull.
        until: Timestamp,
    },
    Pulled {
        at: Timestamp,
    },
    Backoff {
        retry_at: Timestamp,
    },
}

/// The observed pull pod of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PullPod {
    Missing,
    /// A pod of this name that Nightshift did not create.
    Foreign,
    /// A pull pod for another request.
    OtherRequest,
    /// A pull pod that is being deleted.
    Terminating {
        /// The instant by which it has to be gone.
        gone_by: Timestamp,
    },
    Owned {
        status: PullStatus,
        since: Timestamp,
    },
}

/// The action for the observed pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullAction {
    Nothing,
    Create,
    Delete,
}

impl Pull {
    pub(crate) fn new(request: PullRequest) -> Self {
        Self { request, state: PullState::New, failures: 0, unreachable_attempts: 0, is_reported: false, problem: None }
    }

    /// The state in the rollout's types.
    pub(crate) fn images_on_node(&self) -> ImagesOnNode {
        match (self.state, &self.problem) {
            (PullState::Pulled { .. }, _) => ImagesOnNode::Present,
            (PullState::New | PullState::Requested { .. } | PullState::Backoff { .. }, Some(problem))
                if problem.is_image_error =>
            {
                ImagesOnNode::Failed
            }
            (PullState::New | PullState::Requested { .. } | PullState::Backoff { .. }, Some(_)) => {
                ImagesOnNode::Unknown
            }
            (PullState::New | PullState::Requested { .. } | PullState::Backoff { .. }, None) => ImagesOnNode::Pulling,
        }
    }

    /// Whether nothing has to be checked now. A result from hours before the window is checked again when the window is `near`.
    pub(crate) fn is_current(&self, near: bool, now: Timestamp) -> bool {
        let always = self.request.is_always_pulled();
        let counts = if always { ALWAYS_PULLED_VALID_FOR } else { RESULT_VALID_FOR };
        match self.state {
            PullState::New | PullState::Requested { .. } => false,
            PullState::Pulled { at } => !near || (at..at + counts).contains(&now),
            PullState::Backoff { retry_at } => now < retry_at,
        }
    }

    /// Whether a pull pod may exist.
    pub(crate) fn may_have_pod(&self) -> bool {
        matches!(self.state, PullState::New | PullState::Requested { .. })
    }

    /// When the state changes by time alone.
    pub(crate) fn next_check(&self) -> Option<Timestamp> {
        match self.state {
            PullState::New | PullState::Pulled { .. } => None,
            PullState::Requested { until } => Some(until),
            PullState::Backoff { retry_at } => Some(retry_at),
        }
    }

    /// The next state and the action for the observed pod.
    pub(crate) fn next(self, found: PullPod, now: Timestamp) -> (Self, PullAction) {
        let on = format!("on node `{}`", self.request.node);
        let all = self.request.description();
        let made = matches!(self.state, PullState::Requested { .. });
        match found {
            PullPod::Missing if made => {
                (self.unreachable("the pod that pulls the images was deleted too early", now), PullAction::Nothing)
            }
            PullPod::Missing => (self.requested(now + KUBELET_TIMEOUT), PullAction::Create),
            PullPod::Foreign => {
                let why =
                    "a pod that Nightshift did not create has the name of the pod that pulls the images: delete it";
                (self.unreachable(why, now), PullAction::Nothing)
            }
            PullPod::OtherRequest => (self, PullAction::Delete),
            // Independent of who deleted it: its node does not answer, or a finalizer keeps it.
            PullPod::Terminating { gone_by } if gone_by <= now => (
                self.unreachable("the pod of an earlier pull is being deleted, but still exists", now),
                PullAction::Delete,
            ),
            PullPod::Terminating { gone_by: _ } if made => {
                (self.unreachable("the pod that pulls the images was deleted too early", now), PullAction::Nothing)
            }
            PullPod::Terminating { gone_by } => {
                (Self { state: PullState::Backoff { retry_at: gone_by }, ..self }, PullAction::Nothing)
            }
            PullPod::Owned { status: PullStatus::Pulled, since: _ } => {
                let state = PullState::Pulled { at: now };
                (
                    Self { state, failures: 0, unreachable_attempts: 0, is_reported: false, problem: None, ..self },
                    PullAction::Delete,
                )
            }
            PullPod::Owned { status: PullStatus::Failed { image: Some(image), why }, since: _ } => {
                (self.failed(format!("The image `{image}` cannot be pulled {on}"), &why, now), PullAction::Delete)
            }
            PullPod::Owned { status: PullStatus::Failed { image: None, why }, since: _ } => {
                (self.failed(format!("Could not pull {all} {on}"), &why, now), PullAction::Delete)
            }
            PullPod::Owned { status: PullStatus::NoCapacity(why), since: _ } => {
                (self.unreachable(&why, now), PullAction::Delete)
            }
            PullPod::Owned { status: PullStatus::Unnoticed, since } if since + KUBELET_TIMEOUT <= now => {
                (self.unreachable("the node has not accepted the pod within two minutes", now), PullAction::Delete)
            }
            PullPod::Owned { status: PullStatus::Unnoticed, since } => {
                (self.requested(since + KUBELET_TIMEOUT), PullAction::Nothing)
            }
            PullPod::Owned { status: PullStatus::Pending, since } if since + PULL_TIMEOUT <= now => {
                let why = "the node has not finished within an hour";
                let late = self.failed(format!("Could not pull {all} {on}"), why, now);
                (Self { is_reported: false, ..late }, PullAction::Delete)
            }
            PullPod::Owned { status: PullStatus::Pending, since } => {
                (self.requested(since + PULL_TIMEOUT), PullAction::Nothing)
            }
        }
    }

    /// Handles a rejection of the pull pod by the API server.
    pub(crate) fn rejected(self, refusal: &Status, now: Timestamp) -> Self {
        if is_image_independent(refusal) {
            return self.unreachable(&refusal.message, now);
        }
        let subject =
            format!("Could not create a pod that has node `{}` pull {}", self.request.node, self.request.description());
        self.failed(subject, &refusal.message, now)
    }

    fn requested(self, until: Timestamp) -> Self {
        Self { state: PullState::Requested { until }, ..self }
    }

    /// The node or the API server has reported that the images are missing.
    fn failed(self, subject: String, why: &str, now: Timestamp) -> Self {
        let problem = PullError { is_image_error: true, subject, why: cut(why, MAX_REASON_LENGTH) };
        Self { unreachable_attempts: 0, is_reported: true, problem: Some(problem), ..self.backed_off(now) }
    }

    /// The node was not reached, and the knowledge about the images is unchanged.
    fn unreachable(self, why: &str, now: Timestamp) -> Self {
        let unreachable_attempts = self.unreachable_attempts.saturating_add(1);
        if unreachable_attempts < UNREACHABLE_AFTER || self.is_reported {
            return Self { unreachable_attempts, ..self.backed_off(now) };
        }
        let subject = format!("Node `{}` could not be checked for {}", self.request.node, self.request.description());
        let problem = PullError { is_image_error: false, subject, why: cut(why, MAX_REASON_LENGTH) };
        Self { unreachable_attempts, problem: Some(problem), ..self.backed_off(now) }
    }

    fn backed_off(self, now: Timestamp) -> Self {
        let doubled = FIRST_BACKOFF * 2_i32.pow(self.failures.min(10));
        let state = PullState::Backoff { retry_at: now + doubled.min(MAX_BACKOFF) };
        Self { state, failures: self.failures.saturating_add(1), ..self }
    }
}

#[cfg(test)]
mod tests;
