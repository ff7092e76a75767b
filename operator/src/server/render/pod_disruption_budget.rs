//! Pure. Renders the `PodDisruptionBudget` of a server, which decides whether its pod may be evicted now.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::child_meta;
use crate::k8s::labels;
use validate::CheckedServer;

/// The budget `<name>`. A server that is not Ready may always be evicted, because a broken one must not block a node for ever. A full
/// server that has answered no ping for 20 s is not Ready either.
pub(crate) fn build_budget(server: &CheckedServer, lets_through: bool) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: child_meta(server, server.name.clone()),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(i32::from(lets_through))),
            selector: Some(LabelSelector {
                match_labels: Some(labels::selector(&server.name)),
                ..LabelSelector::default()
            }),
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    #[test]
    fn disruption_budget_blocks_or_allows_eviction_of_pod() {
        let server = check(&server(json!({}))).unwrap();
        let shut = build_budget(&server, false);
        assert_eq!(shut.metadata.name.as_deref(), Some("lobby"));
        assert!(shut.metadata.owner_references.is_some(), "the budget is deleted with the server");
        assert_eq!(
            serde_json::to_value(&shut.spec).unwrap(),
            json!({
                "maxUnavailable": 0,
                "selector": {"matchLabels": {"app.kubernetes.io/name": "papermc", "nightshift.dev/server": "lobby"}},
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            })
        );
        let open = build_budget(&server, true);
        assert_eq!(open.spec.unwrap().max_unavailable, Some(IntOrString::Int(1)));
    }
}
