//! Edge (reads). Checks that the claim of `spec.restoreFrom` exists before a first start. A pod with a missing claim would wait without a
//! message for its owner.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use kube::api::Api;

use super::observe::{ObserveError, Observed, read_error};
use crate::context::Context;
use validate::CheckedServer;

/// Number of servers that the message suggests.
const MAX_NAMED: usize = 5;

/// The message about the missing claim. `None` if the claim exists or the server was started before.
pub(crate) async fn missing_claim(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
) -> Result<Option<String>, ObserveError> {
    let Some(claim) = server.extra_restore_claim().filter(|_| observed.stateful_set.is_none()) else { return Ok(None) };
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(ctx.client.clone(), &server.namespace);
    if claims.get_metadata_opt(claim).await.map_err(read_error("PersistentVolumeClaim", claim))?.is_some() {
        return Ok(None);
    }
    let servers = ctx.servers.state();
    let candidates = servers.iter().filter(|other| {
        other.namespace().as_deref() == Some(&server.namespace)
            && other.name_any() != server.name
            && other.spec.backup.is_some()
    });
    let mut names: Vec<String> = candidates.map(|other| other.name_any()).collect();
    names.sort();
    Ok(Some(message(claim, &names)))
}

fn message(claim: &str, candidates: &[String]) -> String {
    let others = match candidates {
        [] => String::new(),
        names => {
            let names: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
            format!(". Servers with backups here: {}", names.join(", "))
        }
    };
    format!(
        "spec.restoreFrom: there is no claim `{claim}` in this namespace. The server is not started, so that no new \
        world replaces the missing one. Correct `spec.restoreFrom.server` or `spec.restoreFrom.claim`{others}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_seed_claim_message_lists_servers_with_backups() {
        let text = message("backup-loby-0", &["lobby".to_owned(), "survival".to_owned()]);
        assert!(text.contains("no claim `backup-loby-0`"), "{text}");
        assert!(text.ends_with("Servers with backups here: lobby, survival"), "{text}");
        assert!(message("nas", &[]).ends_with("`spec.restoreFrom.claim`"));
    }
}
