//! Edge (writes). Creates and applies objects with one field manager per writer.
//!
//! Each apply removes the fields that its manager no longer sends, so two writers with the same manager would remove
//! each other's fields.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A field manager. Exactly one place in the code uses each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldManager(&'static str);

impl FieldManager {
    /// Service, claim, ConfigMap and StatefulSet of a server, from `server/apply.rs`.
    pub(crate) const SERVER_CHILDREN: Self = Self("nightshift/server-children");
    /// The request for a new volume, in the ConfigMap of restore requests, from `server/apply.rs`.
    pub(crate) const NEW_VOLUME: Self = Self("nightshift/new-volume");
    /// Template, partition and facts of the StatefulSet, from `server/act.rs`.
    pub(crate) const ROLLOUT: Self = Self("nightshift/rollout");
    /// Status of both kinds, from `server/report.rs` and `plugin.rs`.
    pub(crate) const STATUS: Self = Self("nightshift/status");

    /// Creates an object, unless there is one of its name.
    pub(super) async fn create<K>(self, api: &Api<K>, object: &K) -> Result<K, kube::Error>
    where
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let params = PostParams { field_manager: Some(self.0.to_owned()), ..PostParams::default() };
        api.create(&params, object).await
    }

    /// Server-side apply of a whole object. Forced, because the operator owns these fields. The object has the UID of the one that it
    /// changes, and is never created.
    pub(super) async fn apply<K>(self, api: &Api<K>, object: &K) -> Result<K, kube::Error>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        api.patch(&object.name_any(), &self.apply_params(), &Patch::Apply(object)).await
    }

    /// Returns the object that the API server would store, with defaults filled in, without writing it.
    pub(crate) async fn dry_run<K>(self, api: &Api<K>, object: &K) -> Result<K, kube::Error>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        api.patch(&object.name_any(), &self.apply_params().dry_run(), &Patch::Apply(object)).await
    }

    /// The managers of an object after the fields that this one owns by a create are handed over to its applies. `None` if it has none, or
    /// has applied the object before.
    pub(super) fn handed_over(self, entries: &[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>> {
        let is_own = |entry: &ManagedFieldsEntry, operation: &str| {
            let ManagedFieldsEntry { manager, operation: of, subresource, .. } = entry;
            manager.as_deref() == Some(self.0) && of.as_deref() == Some(operation) && subresource.is_none()
        };
        let created = entries.iter().position(|entry| is_own(entry, "Update"))?;
        if entries.iter().any(|entry| is_own(entry, "Apply")) {
            return None;
        }
        let mut entries = entries.to_vec();
        entries[created].operation = Some("Apply".to_owned());
        Some(entries)
    }

    /// Server-side apply of the status only.
    pub(crate) async fn apply_status<K>(
        self,
        api: &Api<K>,
        name: &str,
        status: &serde_json::Value,
    ) -> Result<K, kube::Error>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        api.patch_status(name, &self.apply_params(), &Patch::Apply(status)).await
    }

    /// Parameters of a JSON Patch by this manager.
    pub(crate) fn patch_params(self) -> PatchParams {
        PatchParams { field_manager: Some(self.0.to_owned()), ..PatchParams::default() }
    }

    fn apply_params(self) -> PatchParams {
        PatchParams::apply(self.0).force()
    }
}
