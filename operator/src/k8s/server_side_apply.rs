//! Edge (writes). Applies objects with one field manager per writer.
//!
//! Each apply removes the fields that its manager no longer sends, so two writers with the same manager would remove
//! each other's fields.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
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

    /// Server-side apply of a whole object. Forced, because the operator owns these fields.
    pub(crate) async fn apply<K>(self, api: &Api<K>, object: &K) -> Result<K, kube::Error>
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
