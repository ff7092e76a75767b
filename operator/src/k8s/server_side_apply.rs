//! Edge (writes). One writer, one field manager: each apply removes the fields its manager stopped sending, so two
//! places that share a name would fight.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A field manager with the one place that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldManager(&'static str);

impl FieldManager {
    /// Service, claim, ConfigMap and StatefulSet of a server, from `server/apply.rs`.
    pub(crate) const SERVER_CHILDREN: Self = Self("nightshift/server-children");
    /// The order for a new volume, beside other orders in their ConfigMap, from `server/apply.rs`.
    pub(crate) const NEW_VOLUME: Self = Self("nightshift/new-volume");
    /// Template, partition and facts of the StatefulSet, from `server/act.rs`.
    pub(crate) const ROLLOUT: Self = Self("nightshift/rollout");
    /// Status of both kinds, from `server/report.rs` and `plugin_descriptor.rs`.
    pub(crate) const STATUS: Self = Self("nightshift/status");

    /// Server-side apply of a whole object. Forced: what we own is ours.
    pub(crate) async fn apply<K>(self, api: &Api<K>, object: &K) -> Result<K, kube::Error>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        api.patch(&object.name_any(), &self.apply_params(), &Patch::Apply(object)).await
    }

    /// What the API server would make of `object`, defaults filled in, without writing it.
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

    /// A JSON Patch under this manager's name.
    pub(crate) fn patch_params(self) -> PatchParams {
        PatchParams { field_manager: Some(self.0.to_owned()), ..PatchParams::default() }
    }

    fn apply_params(self) -> PatchParams {
        PatchParams::apply(self.0).force()
    }
}
