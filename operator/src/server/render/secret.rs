//! Pure. Renders the Secret that operator, agent and server share.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use super::child_meta;
use crate::random_secret::GeneratedPassword;
use validate::CheckedServer;

/// The key of the generated RCON password.
pub(crate) const RCON_PASSWORD: &str = "rcon-password";
/// The key of the signing key for requests to the agent.
pub(crate) const AGENT_KEY: &str = "agent-key";

/// The key of the private key that signs documents in `ConfigMap`s. No pod mounts it.
pub(crate) const SIGNING_KEY: &str = "signing-key";

/// The name of a server's Secret.
pub(crate) fn secret_name(server: &str) -> String {
    format!("{server}-nightshift")
}

/// A new Secret. It is created once and then only read. A new password for a running server would lock the operator out.
pub(crate) fn build_secret(
    server: &CheckedServer,
    rcon: &GeneratedPassword,
    agent_key: &GeneratedPassword,
    signing_key: &GeneratedPassword,
) -> Secret {
    let metadata: ObjectMeta = child_meta(server, secret_name(&server.name));
    Secret {
        metadata,
        string_data: Some(BTreeMap::from([
            (RCON_PASSWORD.to_owned(), rcon.0.clone()),
            (AGENT_KEY.to_owned(), agent_key.0.clone()),
            (SIGNING_KEY.to_owned(), signing_key.0.clone()),
        ])),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
