//! Pure. Defines the errors of a pass and who has to act on them.

use super::records::RecordError;
use super::{apply, lock_files, observe};
use crate::agent_client::AgentError;
use crate::k8s::ownership::NameConflict;
use crate::requeue::RetryBlame;
use crate::solver;

/// Why a pass failed. Waiting is never an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    #[error("could not choose the server's version set")]
    Solve(#[from] solver::SolverStopped),
    #[error("could not observe the server")]
    Observe(#[from] observe::ObserveError),
    #[error("could not observe the server that it follows")]
    Follow(#[source] RecordError),
    #[error("could not provide the files of the lock")]
    Files(#[from] lock_files::FilesError),
    #[error("could not apply the server's objects")]
    Apply(#[from] apply::ApplyError),
    #[error("could not execute the step `{step}`")]
    Act {
        step: &'static str,
        #[source]
        source: crate::server::act::error::ActError,
    },
    #[error("could not write the status")]
    Report(#[source] kube::Error),
}

impl PassError {
    /// Whether the namespace is being deleted, so that the API server accepts no new objects in it. No action is needed.
    pub(super) fn is_namespace_terminating(&self) -> bool {
        let mut causes = std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        causes.any(|error| match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => {
                let causes = status.details.as_ref().map_or(&[][..], |details| details.causes.as_slice());
                causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
            }
            Some(_) | None => false,
        })
    }

    /// The object of somebody else that has the name of an object of the server.
    pub(super) fn name_conflict(&self) -> Option<&NameConflict> {
        let mut causes = std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        causes.find_map(|error| error.downcast_ref())
    }

    /// Whether another operator leads by now. The state of this one is outdated and must not be written, not even to a status.
    pub(super) fn is_deposed(&self) -> bool {
        let mut causes = std::iter::successors(Some(self as &dyn std::error::Error), |error| error.source());
        causes.any(|error| {
            match (error.downcast_ref::<AgentError>(), error.downcast_ref::<crate::server::act::error::ActError>()) {
                (Some(error), _) | (_, Some(crate::server::act::error::ActError::Agent(error))) => {
                    matches!(error, AgentError::Deposed { .. })
                }
                (None, _) => false,
            }
        })
    }

    /// Whether the pass failed before it decided on a step: the plan could not be made, or the objects not be applied.
    pub(super) fn is_before_step(&self) -> bool {
        match self {
            Self::Solve(_) | Self::Follow(_) | Self::Files(_) | Self::Apply(_) => !self.is_namespace_terminating(),
            Self::Observe(_) | Self::Act { .. } | Self::Report(_) => false,
        }
    }

    pub(super) fn retry_blame(&self) -> RetryBlame {
        match self {
            Self::Apply(error) if error.is_user_error() => RetryBlame::User,
            // A retry would fetch the same wrong file from the same URL. A new release or a changed spec wakes the server.
            Self::Files(lock_files::FilesError::Fetch { file: _, source }) if !source.is_retryable() => {
                RetryBlame::User
            }
            Self::Files(
                lock_files::FilesError::DuplicatePlugin { .. } | lock_files::FilesError::NameConflict { .. },
            ) => RetryBlame::User,
            Self::Files(lock_files::FilesError::Record(_))
            | Self::Observe(_)
            | Self::Solve(_)
            | Self::Follow(_)
            | Self::Apply(_)
            | Self::Act { .. }
            | Self::Report(_) => RetryBlame::Cluster,
            Self::Files(
                lock_files::FilesError::Fetch { .. }
                | lock_files::FilesError::Read { .. }
                | lock_files::FilesError::Java { .. },
            ) => RetryBlame::Upstream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn garbled() -> RecordError {
        let source = serde_json::from_str::<bool>("?").unwrap_err();
        RecordError::Garbled { name: "lobby-lock-1".to_owned(), source }
    }

    #[test]
    fn deposed_leader_is_detected_in_every_agent_error() {
        let deposed = || AgentError::Deposed { pod: "lobby-0".to_owned(), fence: 8 };
        assert!(PassError::Observe(observe::ObserveError::Deposed(deposed())).is_deposed());
        assert!(PassError::Act { step: "announce", source: deposed().into() }.is_deposed());
        let refused = AgentError::Refused { pod: "lobby-0".to_owned(), operation: "a report", reason: "no".to_owned() };
        assert!(!PassError::Act { step: "announce", source: refused.into() }.is_deposed());
    }

    #[test]
    fn followed_server_error_does_not_block_rollout_end() {
        assert!(PassError::Follow(garbled()).is_before_step());
        assert!(!PassError::Observe(garbled().into()).is_before_step(), "the server itself was not observed");
    }
}
