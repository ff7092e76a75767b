//! Pure. Stores the objects of a small cluster with one namespace, and applies reads and writes as its API server does.
//!
//! This covers versions, generations, preconditions and server-side apply (`kubernetes-notes.md` of the design lists
//! the measurements).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

/// The key of an object: the plural name of its kind, and its own name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) plural: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(plural: &str, name: &str) -> Self {
        Self { plural: plural.to_owned(), name: name.to_owned() }
    }
}

/// Why a request is refused, in the form of the API server's answer.
#[derive(Debug, Clone)]
pub(super) struct Rejection {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Rejection {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    fn not_found(key: &Key) -> Self {
        Self::new(404, "NotFound", format!("{} \"{}\" not found", key.plural, key.name))
    }

    fn conflict(key: &Key, reason: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {} \"{}\": {reason}", key.plural, key.name),
        )
    }
}

/// A change of an object.
#[derive(Debug, Clone)]
pub(super) enum Patch {
    Apply { manager: String, object: Value },
    Merge(Value),
    Json(json_patch::Patch),
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<Key, Value>,
    /// The last applied object of each manager, by object and subresource.
    applied: BTreeMap<(Key, bool, String), Value>,
    /// The object that a manager has created, until its fields are handed over to the manager's applies.
    created: BTreeMap<(Key, String), Value>,
    version: u64,
    uids: u64,
    /// The namespace is being deleted, so that it accepts no new object.
    is_terminating: bool,
}

impl Objects {
    /// The objects of one of several servers: their UIDs do not collide.
    pub(super) fn with_number(number: u32) -> Self {
        Self { uids: u64::from(number) << 32, ..Self::default() }
    }

    pub(super) fn get(&self, key: &Key) -> Result<&Value, Rejection> {
        self.all.get(key).ok_or_else(|| Rejection::not_found(key))
    }

    /// The objects of a kind with all these labels.
    pub(super) fn list(&self, plural: &str, labels: &[(&str, &str)]) -> Vec<&Value> {
        let has = |object: &Value| {
            labels.iter().all(|(name, value)| object["metadata"]["labels"][*name].as_str() == Some(*value))
        };
        self.all.iter().filter(|(key, object)| key.plural == plural && has(object)).map(|(_, object)| object).collect()
    }

    pub(super) fn create(&mut self, plural: &str, mut object: Value, now: Timestamp) -> Result<&Value, Rejection> {
        let key = Key::new(plural, object["metadata"]["name"].as_str().unwrap_or_default());
        self.check_accepts_objects()?;
        if self.all.contains_key(&key) {
            return Err(Rejection::new(409, "AlreadyExists", format!("{plural} \"{}\" already exists", key.name)));
        }
        if let Some(Value::Object(texts)) = object.as_object_mut().and_then(|fields| fields.remove("stringData")) {
            for (name, text) in texts {
                object["data"][name] = json!(ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec()));
            }
        }
        Ok(self.store(&key, object, now))
    }

    /// Creates an object for a field manager, which owns the fields as an update.
    pub(super) fn create_for(
        &mut self,
        manager: &str,
        plural: &str,
        mut object: Value,
        now: Timestamp,
    ) -> Result<&Value, Rejection> {
        let created = object.clone();
        object["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Update"}]);
        let key = Key::new(plural, object["metadata"]["name"].as_str().unwrap_or_default());
        self.create(plural, object, now)?;
        self.created.insert((key.clone(), manager.to_owned()), created);
        self.get(&key)
    }

    /// Changes an object, or its status alone. With `is_dry_run` it only returns the result.
    pub(super) fn patch(
        &mut self,
        key: &Key,
        is_status: bool,
        patch: &Patch,
        is_dry_run: bool,
        now: Timestamp,
    ) -> Result<Value, Rejection> {
        let old = self.all.get(key).cloned();
        let Some(mut new) = self.patched(key, is_status, patch, old.as_ref())? else {
            return Err(Rejection::not_found(key));
        };
        if let Some(old) = &old {
            check_versions(key, &new, old)?;
            if old["immutable"] == true && new["data"] != old["data"] {
                return Err(Rejection::new(422, "Invalid", format!("{}: data is immutable", key.name)));
            }
            // A write changes either only the status, or everything except the status.
            let (from, to) = if is_status { (&new, old.clone()) } else { (old, new.clone()) };
            let status = from.get("status").cloned();
            new = to;
            set_field(&mut new, "status", status);
        }
        if is_dry_run {
            return Ok(new);
        }
        self.hand_over_fields(key, &new);
        if let Patch::Apply { manager, object } = patch {
            self.applied.insert((key.clone(), is_status, manager.clone()), object.clone());
        }
        Ok(self.store(key, new, now).clone())
    }

    /// From a change of its `managedFields` on, the creator of an object owns the fields by its applies.
    fn hand_over_fields(&mut self, key: &Key, object: &Value) {
        for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
            let manager = entry["manager"].as_str().unwrap_or_default().to_owned();
            if entry["operation"] == "Apply"
                && let Some(created) = self.created.remove(&(key.clone(), manager.clone()))
            {
                self.applied.insert((key.clone(), false, manager), created);
            }
        }
    }

    fn patched(
        &self,
        key: &Key,
        is_status: bool,
        patch: &Patch,
        old: Option<&Value>,
    ) -> Result<Option<Value>, Rejection> {
        let mut new = old.cloned();
        match (patch, &mut new) {
            (Patch::Apply { manager, object }, Some(new)) => {
                if let Some(before) = self.applied.get(&(key.clone(), is_status, manager.clone())) {
                    remove_dropped(new, before, object);
                }
                merge_applied(new, object);
            }
            (Patch::Apply { manager: _, object }, None) => {
                if object["metadata"].get("uid").is_some() {
                    return Err(Rejection::conflict(key, "uid mismatch: no existing object was found"));
                }
                self.check_accepts_objects()?;
                new = Some(object.clone());
            }
            (Patch::Merge(merge), Some(new)) => json_patch::merge(new, merge),
            (Patch::Json(operations), Some(new)) => json_patch::patch(new, operations)
                .map_err(|error| Rejection::new(422, "Invalid", format!("{}: {error}", key.name)))?,
            (Patch::Merge(_) | Patch::Json(_), None) => {}
        }
        Ok(new)
    }

    /// Deletes an object. A server's pod on a node is only marked as being deleted. `uid` and `version` are
    /// preconditions, if they are set.
    pub(super) fn delete(
        &mut self,
        key: &Key,
        (uid, version): (Option<&str>, Option<&str>),
        now: Timestamp,
    ) -> Result<Value, Rejection> {
        let object = self.get(key)?.clone();
        for (name, named) in [("uid", uid), ("resourceVersion", version)] {
            if named.is_some_and(|named| object["metadata"][name] != named) {
                return Err(Rejection::conflict(key, &format!("the {name} in the precondition does not match")));
            }
        }
        let is_of_server = key.plural == "pods" && !key.name.ends_with("-images");
        if !is_of_server || object["spec"].get("nodeName").is_none() {
            self.remove(key);
        } else if !is_being_deleted(&object) {
            let grace = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
            let ends = now + jiff::SignedDuration::from_secs(grace);
            self.change(key, now, |pod| pod["metadata"]["deletionTimestamp"] = json!(ends.to_string()));
        }
        Ok(object)
    }

    /// The namespace is being deleted. So far only the servers are left, and the leader's Lease, which is in another
    /// namespace in a real cluster.
    pub(super) fn terminate_namespace(&mut self) {
        self.is_terminating = true;
        self.all.retain(|key, _| ["papermcservers", "leases"].contains(&key.plural.as_str()));
    }

    fn check_accepts_objects(&self) -> Result<(), Rejection> {
        if self.is_terminating {
            return Err(Rejection::new(403, "Forbidden", "the namespace is being terminated"));
        }
        Ok(())
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, key: &Key) {
        self.all.remove(key);
        self.applied.retain(|(of, _, _), _| of != key);
        self.created.retain(|(of, _), _| of != key);
    }

    /// Changes an existing object, as a part of Kubernetes or a user does.
    pub(super) fn change(&mut self, key: &Key, now: Timestamp, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.all.get(key).cloned() {
            change(&mut object);
            self.store(key, object, now);
        }
    }

    /// Stores an object, with the fields that the API server adds. A write without a change has no effect.
    fn store(&mut self, key: &Key, mut new: Value, now: Timestamp) -> &Value {
        let old = self.all.get(key);
        if let Some(old) = old {
            for name in ["uid", "creationTimestamp", "resourceVersion", "generation", "namespace", "name"] {
                set_field(&mut new["metadata"], name, old["metadata"].get(name).cloned());
            }
            if *old == new {
                return &self.all[key];
            }
            let generation =
                old["metadata"]["generation"].as_u64().unwrap_or(1) + u64::from(old["spec"] != new["spec"]);
            new["metadata"]["generation"] = json!(generation);
        } else {
            self.uids += 1;
            new["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{:012x}", self.uids));
            new["metadata"]["creationTimestamp"] = json!(now.to_string());
            new["metadata"]["generation"] = json!(1);
        }
        self.version += 1;
        new["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.all.insert(key.clone(), new);
        &self.all[key]
    }
}

/// Whether an object is being deleted.
pub(super) fn is_being_deleted(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn set_field(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
}

/// Version and UID in a write must match the stored object.
fn check_versions(key: &Key, new: &Value, old: &Value) -> Result<(), Rejection> {
    for (name, reason) in [("uid", "uid mismatch"), ("resourceVersion", "the object has been modified")] {
        if new["metadata"].get(name).is_some_and(|named| *named != old["metadata"][name]) {
            return Err(Rejection::conflict(key, reason));
        }
    }
    Ok(())
}

/// Removes the fields that a manager applied before and no longer applies.
fn remove_dropped(live: &mut Value, before: &Value, now: &Value) {
    let (Some(live), Some(before)) = (live.as_object_mut(), before.as_object()) else { return };
    for (name, owned) in before {
        let still = now.get(name);
        let Some(field) = live.get_mut(name) else { continue };
        if owned.is_object() && field.is_object() {
            remove_dropped(field, owned, still.unwrap_or(&Value::Null));
            let is_left_empty = still.is_none() && field.as_object().is_some_and(Map::is_empty);
            if is_left_empty {
                live.remove(name);
            }
        } else if still.is_none() {
            live.remove(name);
        }
    }
}

/// Lists are replaced as a whole: no list here has two managers.
fn merge_applied(live: &mut Value, applied: &Value) {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) => {
            for (name, value) in applied {
                merge_applied(live.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (live, applied) => *live = applied.clone(),
    }
}
