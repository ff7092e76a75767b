//! Edge (writes). Reads, creates, changes and deletes the children of one server, and no object of somebody else that has the same name.
//!
//! No write relies on an earlier read alone, so that no object is taken over that appears in between:
//!
//! - A create is a POST, which fails if the name is taken. An apply would merge into the other object.
//! - An apply names the UID of the object that was read. The API server refuses it for an object that was created anew.
//! - A delete names that UID too.
//!
//! A POST owns its fields as an update, and later applies of the same manager could not remove them. Before the first apply to an object,
//! its fields are therefore handed over to the applies of the manager, as client-go's `csaupgrade` does.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use validate::CheckedServer;

use super::ownership::{NameConflict, Owner};
use super::server_side_apply::FieldManager;

/// The objects of one kind that one server may have.
pub(crate) struct OwnedApi<K> {
    api: Api<K>,
    owner: Owner,
}

/// Why an object could not be read or written.
#[derive(Debug)]
pub(crate) enum OwnedError {
    /// It belongs to somebody else.
    NameConflict(NameConflict),
    Kube(kube::Error),
}

impl From<kube::Error> for OwnedError {
    fn from(error: kube::Error) -> Self {
        Self::Kube(error)
    }
}

impl From<NameConflict> for OwnedError {
    fn from(conflict: NameConflict) -> Self {
        Self::NameConflict(conflict)
    }
}

/// The result of a create.
#[derive(Debug)]
pub(crate) enum Creation<K> {
    New(K),
    /// The server has had this object before. It is unchanged.
    Existing(K),
}

impl<K> OwnedApi<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    pub(crate) fn new(client: &Client, server: &CheckedServer) -> Self {
        let owner = Owner::from(server);
        Self { api: Api::namespaced(client.clone(), &owner.namespace), owner }
    }

    /// Reads an object. Fails if it belongs to somebody else.
    pub(crate) async fn get_opt(&self, name: &str) -> Result<Option<K>, OwnedError> {
        let found = self.api.get_opt(name).await?;
        Ok(found.map(|object| self.owner.check(object)).transpose()?)
    }

    /// Creates an object. Fails if an object of this name belongs to somebody else.
    pub(crate) async fn create(&self, writer: FieldManager, object: &K) -> Result<Creation<K>, OwnedError> {
        match writer.create(&self.api, object).await {
            Ok(created) => Ok(Creation::New(created)),
            // Also the answer to a request whose first answer was lost.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                match self.get_opt(&object.name_any()).await? {
                    Some(existing) => Ok(Creation::Existing(existing)),
                    None => Err(kube::Error::Api(status).into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Applies an object over the one that was read, as [`Self::fitted`] returns it.
    pub(crate) async fn apply(&self, writer: FieldManager, desired: &K, live: &K) -> Result<K, OwnedError> {
        if let Some(entries) = writer.handed_over(live.managed_fields()) {
            let patch = json!([
                {"op": "add", "path": "/metadata/managedFields", "value": entries},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
            ]);
            let patch = serde_json::from_value(patch).expect("the operations above are JSON Patch");
            self.api.patch(&live.name_any(), &PatchParams::default(), &Patch::<K>::Json(patch)).await?;
        }
        let mut desired = self.fitted(desired.clone(), live);
        desired.meta_mut().uid = live.uid();
        Ok(writer.apply(&self.api, &desired).await?)
    }

    /// Creates the object, or applies it over the existing one.
    pub(crate) async fn write(&self, writer: FieldManager, desired: &K) -> Result<K, OwnedError> {
        match self.create(writer, desired).await? {
            Creation::New(created) => Ok(created),
            Creation::Existing(live) => self.apply(writer, desired, &live).await,
        }
    }

    /// Merges into an object that was read, unless it has changed since.
    pub(crate) async fn merge(&self, writer: FieldManager, live: &K, mut patch: Value) -> Result<K, OwnedError> {
        patch["metadata"]["uid"] = json!(live.uid());
        patch["metadata"]["resourceVersion"] = json!(live.resource_version());
        Ok(self.api.patch(&live.name_any(), &writer.patch_params(), &Patch::Merge(&patch)).await?)
    }

    /// Deletes an object that was read, unless it has changed since. An object that is gone counts as deleted.
    pub(crate) async fn delete(&self, live: &K) -> Result<(), OwnedError> {
        let exactly = Preconditions { uid: live.uid(), resource_version: live.resource_version() };
        match self
            .api
            .delete(&live.name_any(), &DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() })
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The desired object without an owner, if the existing one has none: a claim that was kept once is never deleted with a server.
    pub(crate) fn fitted(&self, mut desired: K, live: &K) -> K {
        if K::kind(&()) == "PersistentVolumeClaim" && !self.owner.is_named_in(live.meta()) {
            desired.meta_mut().owner_references = None;
        }
        desired
    }
}
