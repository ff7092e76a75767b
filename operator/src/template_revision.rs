//! Pure. Hashes a whole pod template, which determines whether a restart is necessary.
//!
//! With the lock digest alone, a change of memory would never count as a change. The hash is taken from the template
//! that the API server returns, with defaults filled in, so that template, `ControllerRevision` and pod are comparable.

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use scheduler::observation::Revision;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::k8s::labels;
use validate::image_contract::{AGENT_CONTAINERS, KEEP_PLUGIN_DATA, SERVER_CONTAINER};

/// The revision of a template as the API server stores it.
pub(crate) fn revision_of(template: &PodTemplateSpec) -> Revision {
    let mut value = serde_json::to_value(template).expect("a Kubernetes type serialises");
    prune(&mut value);
    Revision(u64::from_be_bytes(digest(&value)[..8].try_into().expect("sha256 has 32 bytes")))
}

/// The revision of a template without the fields that change with a version of Nightshift: image, digest and commands of
/// the agent, hooks and probes. A version set that failed remains the same one with another agent. The backup settings of
/// the spec are included, so that an update whose backup failed is tried again after they change.
pub(crate) fn revision_without_agent(template: &PodTemplateSpec) -> Revision {
    let mut template = template.clone();
    if let Some(annotations) = template.metadata.as_mut().and_then(|metadata| metadata.annotations.as_mut()) {
        annotations.remove(labels::AGENT_DIGEST);
    }
    if let Some(spec) = &mut template.spec {
        let is_nightshift = |container: &&mut Container| AGENT_CONTAINERS.contains(&container.name.as_str());
        for container in spec.init_containers.iter_mut().flatten().filter(is_nightshift) {
            (container.image, container.command, container.args, container.startup_probe, container.volume_mounts) =
                (None, None, None, None, None);
            container.env.iter_mut().for_each(|variables| variables.retain(|variable| is_from_spec(&variable.name)));
        }
        for server in spec.containers.iter_mut().filter(|container| container.name == SERVER_CONTAINER) {
            (server.lifecycle, server.liveness_probe, server.readiness_probe, server.startup_probe) =
                (None, None, None, None);
        }
    }
    revision_of(&template)
}

/// Whether this variable of the agent comes from the user's spec and affects the outcome of an update.
fn is_from_spec(variable: &str) -> bool {
    variable.starts_with("NIGHTSHIFT_BACKUP") || variable == KEEP_PLUGIN_DATA
}

/// The template in a `ControllerRevision` of a StatefulSet: `data.spec.template` without its patch marker.
pub(crate) fn template_of(history: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = history.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// Hash of the canonical JSON of any value. Keys are sorted, independently of the map type of the JSON library.
pub(crate) fn digest(value: &Value) -> [u8; 32] {
    let mut text = String::new();
    write_canonical(value, &mut text);
    Sha256::digest(text.as_bytes()).into()
}

/// Removes nulls and empty maps and lists, which differ between versions of the API and have no meaning in a template.
/// An empty object stays if its key selects something by its presence (`emptyDir: {}`).
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                prune(field);
            }
            fields.retain(|key, field| match field {
                Value::Null => false,
                Value::Object(inner) => {
                    !(inner.is_empty() && matches!(key.as_str(), "metadata" | "resources" | "securityContext"))
                }
                Value::Array(inner) => !inner.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_unstable();
            text.push('{');
            for key in keys {
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write_canonical(&fields[key], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
    use serde_json::json;

    use super::*;

    fn template(memory: &str) -> Value {
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "papermc", "image": "x", "resources": {"limits": {"memory": memory}}}],
            "volumes": [{"name": "nightshift", "emptyDir": {}}],
        }})
    }

    fn parsed(value: Value) -> PodTemplateSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn history_entry_has_revision_of_its_template() {
        let mut stored = template("6Gi");
        stored["$patch"] = json!("replace");
        stored["metadata"]["creationTimestamp"] = Value::Null;
        let history = ControllerRevision {
            data: Some(RawExtension(json!({"spec": {"template": stored}}))),
            ..ControllerRevision::default()
        };
        assert_eq!(revision_of(&template_of(&history).unwrap()), revision_of(&parsed(template("6Gi"))));
    }

    #[test]
    fn changed_memory_limit_is_another_revision() {
        assert_ne!(revision_of(&parsed(template("6Gi"))), revision_of(&parsed(template("8Gi"))));
    }

    #[test]
    fn newer_agent_image_keeps_lock_identity() {
        let with = |agent: &str, memory: &str, lock: &str| {
            let mut template = template(memory);
            template["metadata"]["annotations"] = json!({
                "nightshift.dev/lock-digest": lock, "nightshift.dev/agent-digest": agent,
            });
            template["spec"]["initContainers"] =
                json!([{"name": "prepare", "image": agent}, {"name": "agent", "image": agent}]);
            template["spec"]["containers"][0]["startupProbe"] = json!({"httpGet": {"path": agent, "port": 1}});
            parsed(template)
        };
        let failed = with("nightshift:1", "6Gi", "a");
        let [upgraded, more, newer] =
            [with("nightshift:2", "6Gi", "a"), with("nightshift:2", "8Gi", "a"), with("nightshift:2", "6Gi", "b")];
        assert!(
            revision_of(&failed) != revision_of(&upgraded)
                && revision_without_agent(&failed) == revision_without_agent(&upgraded)
        );
        assert!(
            revision_without_agent(&failed) != revision_without_agent(&more)
                && revision_without_agent(&failed) != revision_without_agent(&newer)
        );
    }

    #[test]
    fn changed_backup_settings_allow_failed_update_again() {
        let with = |variable: &str, value: &str| {
            let mut template = template("6Gi");
            template["spec"]["initContainers"] =
                json!([{"name": "prepare", "env": [{"name": variable, "value": value}]}]);
            revision_without_agent(&parsed(template))
        };
        assert_ne!(with("NIGHTSHIFT_BACKUP_MAX_COUNT", "10"), with("NIGHTSHIFT_BACKUP_MAX_COUNT", "3"));
        assert_ne!(with("NIGHTSHIFT_BACKUP_BEFORE", "OneWay"), with("NIGHTSHIFT_BACKUP_BEFORE", "Never"));
        assert_eq!(with("NIGHTSHIFT_STORE_URL", "http://a"), with("NIGHTSHIFT_STORE_URL", "http://b"));
    }

    #[test]
    fn volume_changed_to_empty_dir_is_another_revision() {
        let mut other = template("6Gi");
        other["spec"]["volumes"][0] = json!({"name": "nightshift"});
        assert_ne!(revision_of(&parsed(template("6Gi"))), revision_of(&parsed(other)));
    }
}
