//! Pure. Builds servers for tests.

use agent_api::signed::Signer;
use crds::PaperMCServer;
use fixtures::manifest::paper_mc_server;
use serde_json::Value;

/// A server with these fields in its spec, and with the defaults of the others.
pub(crate) fn server(spec: Value) -> PaperMCServer {
    serde_json::from_value(paper_mc_server(spec)).unwrap()
}

/// The key that signs documents of `games/lobby`.
pub(crate) fn signer() -> Signer {
    Signer::from_hex("games/lobby", &"1f".repeat(32)).unwrap()
}
