//! Edge (reads). Reads the keys in a server's Secret: the one that its agent shares, and the one that signs documents for later starts.

use agent_api::signature::Key;
use agent_api::signed::{Signer, Verifier};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;

use super::model::keys::ServerKeys;
use super::render::secret::{AGENT_KEY, SIGNING_KEY, secret_name};
use crate::caches::{KnownKeys, is_fresh};
use crate::context::Context;
use crate::k8s::ownership::{NameConflict, Owner};

/// Why the keys could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("could not read Secret `{name}`")]
    Read {
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("Secret `{name}` has no usable `{key}`: delete the Secret, and the operator creates a new one")]
    Unusable { name: String, key: &'static str },
    #[error("an object of the server has the name of another object")]
    NameConflict(#[from] NameConflict),
}

/// Reads both keys. An error names the unusable one.
pub(crate) fn parse_keys(
    namespace: &str,
    server: &str,
    agent: &str,
    signing: &str,
) -> Result<ServerKeys, &'static str> {
    let signer = Signer::from_hex(&format!("{namespace}/{server}"), signing).map_err(|_| SIGNING_KEY)?;
    Ok(ServerKeys { agent: Key::from_hex(agent).map_err(|_| AGENT_KEY)?, signer })
}

/// The keys of a server from the cache if they are recent, otherwise from its Secret. `None`: it has none yet. A Secret of somebody else has keys that
/// others know.
pub(crate) async fn read_keys(ctx: &Context, owner: &Owner, now: Timestamp) -> Result<Option<ServerKeys>, KeysError> {
    let name = secret_name(&owner.name);
    let cache_key = (owner.namespace.clone(), name.clone());
    if let Some(cached) = ctx.caches.keys.get(&cache_key).filter(|cached| is_fresh(cached.read_at, now)) {
        return Ok(Some(cached.keys));
    }
    let secrets: Api<Secret> = Api::namespaced(ctx.client.clone(), &owner.namespace);
    let read = secrets.get_opt(&name).await.map_err(|source| KeysError::Read { name: name.clone(), source })?;
    let Some(secret) = read else { return Ok(None) };
    let secret = owner.check(secret)?;
    let text = |of: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(of));
        bytes.and_then(|bytes| std::str::from_utf8(&bytes.0).ok()).unwrap_or_default()
    };
    let keys = parse_keys(&owner.namespace, &owner.name, text(AGENT_KEY), text(SIGNING_KEY))
        .map_err(|key| KeysError::Unusable { name, key })?;
    ctx.caches.keys.put(cache_key, KnownKeys { keys: keys.clone(), read_at: now });
    Ok(Some(keys))
}

/// The public key with which the documents of a server are verified.
pub(crate) async fn read_verifier(ctx: &Context, owner: &Owner, now: Timestamp) -> Result<Option<Verifier>, KeysError> {
    Ok(read_keys(ctx, owner, now).await?.map(|keys| keys.signer.verifier()))
}
