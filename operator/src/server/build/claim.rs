//! Pure. The claim `data-<name>-0`: the name other operators use, so that an existing volume is adopted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::super::check::CheckedServer;
use super::child_meta;

/// The claim, unless the user brought one. It may grow; with `retain` it is not owned by the server and outlives it.
pub(crate) fn build_claim(server: &CheckedServer) -> Option<PersistentVolumeClaim> {
    let storage = &server.storage;
    if storage.existing_claim.is_some() {
        return None;
    }
    let mut metadata = child_meta(server, server.claim_name());
    if storage.retain {
        metadata.owner_references = None;
    }
    Some(PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![storage.access_mode.clone()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(storage.size.clone()))])),
                ..VolumeResourceRequirements::default()
            }),
            storage_class_name: storage.class.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    })
}
