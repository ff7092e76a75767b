//! Pure. Renders the claim `data-<name>-0`, which other operators name the same so that an existing volume is adopted, and the backup
//! claim.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::child_meta;
use validate::{BackupVolume, CheckedServer};

/// The data claim, unless the user has set one. It may grow. With `retain` it has no owner and survives the server.
pub(crate) fn build_claim(server: &CheckedServer) -> Option<PersistentVolumeClaim> {
    let storage = &server.data.storage;
    if storage.existing_claim.is_some() {
        return None;
    }
    let mut metadata = child_meta(server, server.claim_name());
    if storage.retain {
        metadata.owner_references = None;
    }
    Some(claim(metadata, &storage.size, storage.class.as_deref(), &storage.access_mode))
}

/// The backup claim, unless the user has set one or has asked for no volume. It has no owner, because backups are needed most after the server is
/// lost. It is not `ReadWriteOncePod`, so that a user can inspect it while the server runs.
pub(crate) fn build_backup_claim(server: &CheckedServer) -> Option<PersistentVolumeClaim> {
    let BackupVolume::Created { size, class } = &server.data.backup.as_ref()?.volume else { return None };
    let mut metadata = child_meta(server, server.backup_claim_name());
    metadata.owner_references = None;
    Some(claim(metadata, size, class.as_deref(), "ReadWriteOnce"))
}

fn claim(metadata: ObjectMeta, size: &str, class: Option<&str>, access_mode: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![access_mode.to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(size.to_owned()))])),
                ..VolumeResourceRequirements::default()
            }),
            storage_class_name: class.map(str::to_owned),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    #[test]
    fn backup_claim_outlives_server() {
        let checked = check(&server(json!({
            "storage": {"retain": false},
            "backup": {"storage": {"size": "7Gi", "storageClassName": "slow"}},
        })))
        .unwrap();
        assert!(build_claim(&checked).unwrap().metadata.owner_references.is_some());
        let claim = build_backup_claim(&checked).unwrap();
        assert_eq!(claim.metadata.owner_references, None);
        let spec = claim.spec.unwrap();
        assert_eq!(spec.storage_class_name.as_deref(), Some("slow"));
        assert_eq!(spec.resources.unwrap().requests.unwrap()["storage"].0, "7Gi");
    }

    #[test]
    fn backup_claim_is_not_created_if_unneeded_or_existing() {
        for backup in [json!(null), json!({"enabled": false}), json!({"storage": {"existingClaim": "nas"}})] {
            let checked = check(&server(json!({"backup": backup}))).unwrap();
            assert_eq!(build_backup_claim(&checked), None);
        }
    }
}
