//! Pure. The `StatefulSet` as it is created. Afterwards only the rollout changes it, one guarded write at a time.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use scheduler::seen::{Door, Facts};

use super::super::check::CheckedServer;
use super::child_meta;
use crate::k8s::labels;

/// The partition that a door is. Closed (1): the only pod keeps its revision, whatever the template says.
pub(crate) fn partition(door: Door) -> i32 {
    match door {
        Door::Closed => 1,
        Door::Open => 0,
    }
}

/// The door that a partition is. None is 0 by the API's default.
pub(crate) fn door(partition: Option<i32>) -> Door {
    if partition.unwrap_or(0) == 0 { Door::Open } else { Door::Closed }
}

/// `Parallel` is immutable and stands from the first commit: `OrderedReady` never repairs a pod that cannot start
/// (measured). No `volumeClaimTemplates`: they freeze the storage and then block every update.
pub(crate) fn build_stateful_set(
    server: &CheckedServer,
    template: PodTemplateSpec,
    at: Door,
    facts: &Facts,
) -> StatefulSet {
    let mut metadata = child_meta(server, server.name.clone());
    let facts = serde_json::to_string(facts).expect("facts have string keys only");
    metadata.annotations = Some(BTreeMap::from([(labels::FACTS.to_owned(), facts)]));
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            replicas: Some(server.replicas),
            service_name: Some(server.name.clone()),
            pod_management_policy: Some("Parallel".to_owned()),
            selector: LabelSelector { match_labels: Some(labels::selector(&server.name)), ..LabelSelector::default() },
            template,
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateStatefulSetStrategy {
                    partition: Some(partition(at)),
                    ..RollingUpdateStatefulSetStrategy::default()
                }),
            }),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}
