//! Pure. Renders the `StatefulSet` for its creation. Afterwards only the rollout changes it, with one guarded write at a time.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use scheduler::observation::{Partition, RecordedFacts};

use super::child_meta;
use crate::k8s::labels;
use validate::CheckedServer;

/// The partition number. With `Closed` (1) the only pod keeps its revision, whatever the template contains.
pub(crate) fn partition_number(partition: Partition) -> i32 {
    match partition {
        Partition::Closed => 1,
        Partition::Open => 0,
    }
}

/// The state of a partition number. `None` is 0 by the API's default.
pub(crate) fn partition_from_number(partition: Option<i32>) -> Partition {
    if partition.unwrap_or(0) == 0 { Partition::Open } else { Partition::Closed }
}

/// The `StatefulSet`. `Parallel` is immutable and therefore set from the first version: `OrderedReady` never repairs a pod that cannot
/// start (measured). There are no `volumeClaimTemplates`, because they freeze the storage and then block every update.
pub(crate) fn build_stateful_set(
    server: &CheckedServer,
    template: PodTemplateSpec,
    at: Partition,
    facts: &RecordedFacts,
) -> StatefulSet {
    let mut metadata = child_meta(server, server.name.clone());
    let facts = serde_json::to_string(facts).expect("facts have string keys only");
    metadata.annotations = Some(BTreeMap::from([(labels::FACTS.to_owned(), facts)]));
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            replicas: Some(server.pod.replicas),
            service_name: Some(server.name.clone()),
            pod_management_policy: Some("Parallel".to_owned()),
            selector: LabelSelector { match_labels: Some(labels::selector(&server.name)), ..LabelSelector::default() },
            template,
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateStatefulSetStrategy {
                    partition: Some(partition_number(at)),
                    ..RollingUpdateStatefulSetStrategy::default()
                }),
            }),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}
