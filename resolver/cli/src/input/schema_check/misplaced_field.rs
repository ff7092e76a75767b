//! Pure. Finds where a misplaced field belongs.

use serde_json::Value;

/// The paths of Nightshift's fields that contain `key`. Empty if there are too many to help.
pub(super) fn parents_with_field(key: &str, root: &Value) -> Vec<String> {
    let mut parents = Vec::new();
    collect_parents(key, &root["properties"]["spec"], "spec", &mut parents);
    if parents.len() > 5 { Vec::new() } else { parents }
}

fn collect_parents(key: &str, schema: &Value, path: &str, parents: &mut Vec<String>) {
    // Kubernetes has so many fields that almost every word would match one.
    if path == "spec.podTemplate" {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if name == key {
            parents.push(path.to_owned());
        }
        collect_parents(key, property, &format!("{path}.{name}"), parents);
    }
    if schema.get("items").is_some() {
        collect_parents(key, &schema["items"], &format!("{path}[]"), parents);
    }
}
