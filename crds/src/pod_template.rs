//! Pure. Builds the schema of the field `podTemplate`: a whole `PodTemplateSpec` that fits into a CRD.
//!
//! The generated schema has four problems (measured). It has 328 KB, and client-side `kubectl apply` rejects more than 256 KiB. It requires
//! `containers`. It treats every list as one value, so that a second writer of one item conflicts with all of them. It accepts `cpu: two`.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Lists whose items are identified by keys, as the core types declare them: field and keys.
const KEYED_LISTS: [(&str, &[&str]); 14] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("resourceClaims", &["name"]),
    ("claims", &["name"]),
    ("schedulingGates", &["name"]),
    ("env", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("ports", &["containerPort", "protocol"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("hostAliases", &["ip"]),
];

/// The format of a quantity, as the API server publishes it for its own types.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The schema of a `PodTemplateSpec` in which every field is optional.
///
/// # Panics
/// Never: schemars generates an object for a struct.
pub fn schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<PodTemplateSpec>().to_value();
    drop_descriptions(&mut schema);
    if let Some(required) = schema.pointer_mut("/properties/spec/required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "containers");
    }
    visit("podTemplate", &mut schema);
    schema.try_into().expect("a JSON object is a valid schema")
}

fn visit(name: &str, schema: &mut Value) {
    // These two fields are copied from the metadata of a template (of the pod or a claim). The other fields belong to the object.
    if name == "metadata" {
        *schema = json!({
            "type": "object",
            "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
    }
    // The ports of probes and hooks are the only fields that accept a number or a name and are not a quantity.
    if schema["x-kubernetes-int-or-string"] == true && name != "port" {
        schema["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]);
        schema["pattern"] = json!(QUANTITY);
    }
    let Some(fields) = schema.as_object_mut() else { return };
    if fields.get("required").is_some_and(|required| *required == json!([])) {
        fields.remove("required");
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        mark_keyed_lists(properties);
        properties.iter_mut().for_each(|(name, property)| visit(name, property));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(inner) {
            visit(name, inner);
        }
    }
}

fn mark_keyed_lists(properties: &mut Map<String, Value>) {
    for (name, keys) in KEYED_LISTS {
        let Some(list) = properties.get_mut(name).filter(|list| list["type"] == "array") else { continue };
        // A list with the same name elsewhere may have items of another type.
        if !keys.iter().all(|key| list["items"]["properties"].get(key).is_some()) {
            continue;
        }

        list["x-kubernetes-list-type"] = json!("map");
        list["x-kubernetes-list-map-keys"] = json!(keys);
        for key in keys {
            let required = list["items"]["required"].as_array().is_some_and(|all| all.iter().any(|item| item == key));
            // A key must be required or have a default. These are the defaults of the core types.
            if !required {
                let default = if *key == "protocol" { "TCP" } else { "" };
                list["items"]["properties"][*key]["default"] = json!(default);
            }
        }
    }
}

fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A property may itself be named `description`, so only texts are removed.
            if fields.get("description").is_some_and(Value::is_string) {
                fields.remove("description");
            }
            fields.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
