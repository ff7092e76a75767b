//! Pure. Why a step was not carried out.

use scheduler::seen::Revision;

use crate::agent_client::AgentError;
use crate::server::record::RecordError;

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
    #[error("the decision to {intent} is too old to be carried out")]
    Stale { intent: &'static str },
    #[error(
        "the template of revision {revision} is not kept anywhere; write the server's spec so that it can be made anew"
    )]
    NoTemplate { revision: Revision },
    #[error("the pod has no agent to ask")]
    NoAgent,
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("could not {intent} the order to put worlds or plugins' data back, ConfigMap `{name}`")]
    Order {
        intent: &'static str,
        name: String,
        #[source]
        source: kube::Error,
    },
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
    /// What was seen is not so any more, or was seen too long ago. Nothing was done, and nothing is wrong.
    pub(crate) fn is_of_an_old_look(&self) -> bool {
        match self {
            // A write is refused only for the resourceVersion that it names.
            Self::Write { source: kube::Error::Api(status), .. } => status.is_conflict(),
            Self::Stale { .. } => true,
            Self::Write { .. }
            | Self::NoTemplate { .. }
            | Self::NoAgent
            | Self::Agent(_)
            | Self::Record(_)
            | Self::Order { .. }
            | Self::Delete { .. }
            | Self::History { .. } => false,
        }
    }
}
