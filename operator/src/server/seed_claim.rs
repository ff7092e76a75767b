//! Edge (reads). Checks that the claim of `spec.restoreFrom` exists before a first start. A pod with a missing claim would wait without a
//! message for its owner.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use kube::api::Api;

use super::check::CheckedServer;
use super::observe::{ObserveError, Observed, read};
use crate::context::Context;

/// Number of servers that the message suggests.
const NAMED: usize = 5;

/// The message about the missing claim. `None` if the claim exists or the server was started before.
pub(crate) async fn missing_claim(
    ctx: &Context,
    server: &CheckedServer,
    seen: &Observed,
) -> Result<Option<String>, ObserveError> {
    let Some(claim) = server.mounts_apart().filter(|_| seen.set.is_none()) else { return Ok(None) };
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(ctx.client.clone(), &server.namespace);
    if claims.get_metadata_opt(claim).await.map_err(read("PersistentVolumeClaim", claim))?.is_some() {
        return Ok(None);
    }
    let here = ctx.servers.state();
    let with_copies = here.iter().filter(|other| {
        other.namespace().as_deref() == Some(&server.namespace)
            && other.name_any() != server.name
            && other.spec.backup.is_some()
    });
    let mut names: Vec<String> = with_copies.map(|other| other.name_any()).collect();
    names.sort();
    Ok(Some(in_words(claim, &names)))
}

fn in_words(claim: &str, with_copies: &[String]) -> String {
    let others = match with_copies {
        [] => String::new(),
        names => {
            let names: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            format!("; servers with copies here are: {}", names.join(", "))
        }
    };
    format!(
        "spec.restoreFrom: there is no claim `{claim}` in this namespace, so nothing is started: no new world takes the place of the one that is \
         missed. Correct `spec.restoreFrom.server` or `spec.restoreFrom.claim`{others}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_seed_claim_message_lists_servers_with_backups() {
        let said = in_words("backup-loby-0", &["lobby".to_owned(), "survival".to_owned()]);
        assert!(said.contains("no claim `backup-loby-0`"), "{said}");
        assert!(said.ends_with("servers with copies here are: lobby, survival"), "{said}");
        assert!(in_words("nas", &[]).ends_with("`spec.restoreFrom.claim`"));
    }
}
