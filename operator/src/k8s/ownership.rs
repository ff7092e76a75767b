//! Pure. Decides whether an object belongs to a server. The operator writes and deletes no other object of the server's names.
//!
//! An object belongs to the server that its `ownerReferences` name by UID. Two kinds have exceptions:
//!
//! - A claim without an owner belongs to the server if it has the labels of its children: an earlier server of this name has kept it.
//! - A Service or a budget without an owner belongs to it if somebody who may write that object has annotated it with the server's UID.

use crds::PaperMCServer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use validate::CheckedServer;

use crate::k8s::labels;

/// The kinds that a server takes over from nobody if the object says so. Each apply writes their whole content.
const ADOPTABLE: [&str; 2] = ["Service", "PodDisruptionBudget"];
const CLAIM: &str = "PersistentVolumeClaim";
const STATEFUL_SET: &str = "StatefulSet";

/// The server that owns objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `None` for a server in a file. It owns no object.
    uid: Option<String>,
}

impl From<&PaperMCServer> for Owner {
    fn from(server: &PaperMCServer) -> Self {
        Self { namespace: server.namespace().unwrap_or_default(), name: server.name_any(), uid: server.uid() }
    }
}

impl From<&CheckedServer> for Owner {
    fn from(server: &CheckedServer) -> Self {
        let uid = server.owner.as_ref().map(|owner| owner.uid.clone());
        Self { namespace: server.namespace.clone(), name: server.name.clone(), uid }
    }
}

impl Owner {
    /// Whether the object belongs to the server.
    pub(crate) fn owns<K: Resource<DynamicType = ()>>(&self, object: &ObjectMeta) -> bool {
        let Some(uid) = &self.uid else { return false };
        let kind = K::kind(&());
        if self.is_named_in(object) {
            return true;
        }
        object.owner_references.as_ref().is_none_or(Vec::is_empty)
            && match &*kind {
                CLAIM => labels::child(&self.name).iter().all(|label| label_of(object, label.0) == Some(label.1)),
                kind if ADOPTABLE.contains(&kind) => {
                    object.annotations.as_ref().and_then(|all| all.get(labels::ADOPT)) == Some(uid)
                }
                _ => false,
            }
    }

    /// Whether the object is deleted with the server.
    pub(crate) fn is_named_in(&self, object: &ObjectMeta) -> bool {
        object.owner_references.iter().flatten().any(|owner| Some(&owner.uid) == self.uid.as_ref())
    }

    /// Returns the object if it belongs to the server.
    pub(crate) fn check<K: Resource<DynamicType = ()>>(&self, object: K) -> Result<K, NameConflict> {
        if self.owns::<K>(object.meta()) { Ok(object) } else { Err(self.conflict::<K>(object.meta())) }
    }

    /// Whether this pod belongs to the server's `StatefulSet`, or to an earlier one of its name. A pod without an owner, which a deleted
    /// `StatefulSet` has left, is taken over by the next one because of its labels.
    pub(crate) fn owns_pod(&self, pod: &ObjectMeta) -> bool {
        match controller_of(pod) {
            Some(controller) => controller.kind == STATEFUL_SET && controller.name == self.name,
            None => labels::selector(&self.name).iter().all(|label| label_of(pod, label.0) == Some(label.1)),
        }
    }

    /// The conflict with this object of somebody else.
    pub(crate) fn conflict<K: Resource<DynamicType = ()>>(&self, object: &ObjectMeta) -> NameConflict {
        let (kind, name) = (K::kind(&()).into_owned(), object.name.clone().unwrap_or_default());
        let other = controller_of(object).or_else(|| object.owner_references.iter().flatten().next());
        let owner = other.map(|owner| format!(" It belongs to {} `{}`.", owner.kind, owner.name)).unwrap_or_default();
        let uid = self.uid.as_deref().unwrap_or_default();
        let other_ways = match kind.as_str() {
            CLAIM => ", or create it with this claim as `existingClaim`".to_owned(),
            kind if ADOPTABLE.contains(&kind) && other.is_none() => format!(
                ", or let the server take the object over: `kubectl -n {} annotate {} {name} {}={uid}`",
                self.namespace,
                kind.to_lowercase(),
                labels::ADOPT
            ),
            _ => String::new(),
        };
        let message = format!(
            "{kind} `{name}` was not created for this server.{owner} The operator does not change it, and creates no \
            other. Create the server under another name, or delete the {kind}{other_ways}."
        );
        NameConflict { kind, name, message }
    }
}

fn controller_of(object: &ObjectMeta) -> Option<&OwnerReference> {
    object.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn label_of<'o>(object: &'o ObjectMeta, name: &str) -> Option<&'o String> {
    object.labels.as_ref()?.get(name)
}

/// An object of somebody else has a name that the server needs. The operator does not change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{name}` belongs to somebody else")]
pub(crate) struct NameConflict {
    /// The reason of the condition.
    pub(crate) kind: String,
    name: String,
    /// The object, its owner and the remedies, for the condition.
    pub(crate) message: String,
}

#[cfg(test)]
mod tests;
