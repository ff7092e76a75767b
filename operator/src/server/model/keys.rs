//! Pure. Defines the keys of a server.

use agent_api::signature::Key;
use agent_api::signed::Signer;

/// The keys in the Secret of one server. They are never printed.
#[derive(Debug, Clone)]
pub(crate) struct ServerKeys {
    /// Signs requests to the agent.
    pub(crate) agent: Key,
    /// Signs documents in `ConfigMap`s.
    pub(crate) signer: Signer,
}
