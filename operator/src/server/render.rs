//! Pure. Renders a checked server, its lock and its files into the objects that should exist. It cannot fail and needs no client.

use agent_api::FileSet;
use agent_api::signed::Signer;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, PodTemplateSpec, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use resolver::model::lock::Lock;

use crate::Config;
use crate::k8s::labels;
use validate::CheckedServer;

pub(crate) mod heap;
pub(crate) mod init_requests;
pub(crate) mod lock_config_map;
pub(crate) mod pod;
pub(crate) mod pod_disruption_budget;
pub(crate) mod pull_pod;
pub(crate) mod secret;
pub(crate) mod service;
pub(crate) mod stateful_set;
pub(crate) mod template_defaults;
pub(crate) mod volume_claim;

/// The objects of one server in the order in which they are applied. Each one is needed by the next.
pub(crate) struct Bundle {
    pub(crate) claim: Option<PersistentVolumeClaim>,
    pub(crate) backup_claim: Option<PersistentVolumeClaim>,
    pub(crate) service: Service,
    pub(crate) lock: ConfigMap,
    pub(crate) new_volume: ConfigMap,
    pub(crate) template: PodTemplateSpec,
}

/// All objects of one server for one lock.
pub(crate) fn build(server: &CheckedServer, lock: &Lock, files: &FileSet, signer: &Signer, config: &Config) -> Bundle {
    Bundle {
        claim: volume_claim::build_claim(server),
        backup_claim: volume_claim::build_backup_claim(server),
        service: service::build_service(server),
        lock: lock_config_map::build_lock_map(server, lock, files, signer),
        new_volume: init_requests::build_new_volume_map(server, signer),
        template: pod::build_template(server, lock, files, &signer.verifier(), config),
    }
}

/// Name, labels and owner of a child.
fn child_meta(server: &CheckedServer, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(server.namespace.clone()),
        labels: Some(labels::child(&server.name)),
        owner_references: server.owner.clone().map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}
