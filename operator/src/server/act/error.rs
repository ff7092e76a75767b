//! Pure. Errors of the execution of a step.

use scheduler::observation::Revision;

use crate::agent_client::AgentError;
use crate::k8s::owned_api::OwnedError;
use crate::k8s::ownership::NameConflict;
use crate::server::records::RecordError;

/// Why a step was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    #[error("could not {intent} StatefulSet `{name}`")]
    Write {
        intent: &'static str,
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("the decision to {intent} is too old")]
    Stale { intent: &'static str },
    #[error(
        "the template of revision {revision} no longer exists: correct the server's spec so that the template can be \
        rendered again"
    )]
    NoTemplate { revision: Revision },
    #[error("there is no StatefulSet `{name}` to {intent}")]
    NoStatefulSet { intent: &'static str, name: String },
    #[error(
        "revision {revision} cannot restore what the failed update changed: its pod template has no restore requests"
    )]
    RestoreNotSupported { revision: Revision },
    #[error("the pod has no agent")]
    NoAgent,
    #[error("the server has no Secret with its keys yet")]
    NoKey,
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("could not {intent} the restore request, ConfigMap `{name}`")]
    RestoreRequest {
        intent: &'static str,
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("an object of the server has the name of another object")]
    NameConflict(#[from] NameConflict),
    #[error("could not delete Pod `{name}` for its restart")]
    Delete {
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("could not read the history of StatefulSet `{name}`")]
    History {
        name: String,
        #[source]
        source: kube::Error,
    },
}

impl ActError {
    /// The error of a read or write of the restore request.
    pub(crate) fn restore_request(intent: &'static str, name: String) -> impl FnOnce(OwnedError) -> Self {
        move |error| match error {
            OwnedError::NameConflict(conflict) => Self::NameConflict(conflict),
            OwnedError::Kube(source) => Self::RestoreRequest { intent, name, source },
        }
    }

    /// Whether the object has changed since the observation, or the observation is too old. No write happened, and the next pass observes
    /// again.
    pub(crate) fn is_stale(&self) -> bool {
        match self {
            // Such a write conflicts only because of the resourceVersion that it names.
            Self::Write { source: kube::Error::Api(status), .. }
            | Self::RestoreRequest { source: kube::Error::Api(status), .. } => status.is_conflict(),
            Self::Stale { .. } => true,
            Self::Write { .. }
            | Self::NoTemplate { .. }
            | Self::NoStatefulSet { .. }
            | Self::RestoreNotSupported { .. }
            | Self::NoAgent
            | Self::NoKey
            | Self::Agent(_)
            | Self::Record(_)
            | Self::RestoreRequest { .. }
            | Self::NameConflict(_)
            | Self::Delete { .. }
            | Self::History { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_conflict_counts_as_stale_and_not_as_failure() {
        let write = |code: u16, reason: &str| {
            let status = serde_json::from_value(serde_json::json!({
                "status": "Failure", "message": "", "reason": reason, "code": code,
            }));
            ActError::Write {
                intent: "set partition 0 on",
                name: "lobby".to_owned(),
                source: kube::Error::Api(Box::new(status.unwrap())),
            }
        };
        assert!(write(409, "Conflict").is_stale());
        assert!(ActError::Stale { intent: "commit" }.is_stale());
        for (code, reason) in [(422, "Invalid"), (403, "Forbidden"), (500, "InternalError")] {
            assert!(!write(code, reason).is_stale(), "{reason} is reported");
        }
        assert!(!ActError::NoAgent.is_stale());
    }
}
