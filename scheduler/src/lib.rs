//! Pure. Decides when a server may change and which safe step is next.
//!
//! The crate depends neither on Kubernetes nor on the resolver. The decisions are [`maintenance::Windows::gate`] and
//! [`rollout::next_step`]. Both take `now` as an argument and have no side effects. The agent in the server's pod is the
//! crate `agent`. `agent_api` defines its protocol.

pub mod announcement;
pub mod backup_retention;
pub mod maintenance;
pub mod observation;
pub mod rollout;
