//! Pure. Finds where a misplaced field belongs.

use serde_json::Value;

/// The paths of Nightshift's fields that contain `key`. Empty if there are too many to help.
pub(super) fn homes(key: &str, root: &Value) -> Vec<String> {
    let mut homes = Vec::new();
    find(key, &root["properties"]["spec"], "spec", &mut homes);
    if homes.len() > 5 { Vec::new() } else { homes }
}

fn find(key: &str, schema: &Value, path: &str, homes: &mut Vec<String>) {
    // Kubernetes has so many fields that almost every word would match one.
    if path == "spec.podTemplate" {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if name == key {
            homes.push(path.to_owned());
        }
        find(key, property, &format!("{path}.{name}"), homes);
    }
    if schema.get("items").is_some() {
        find(key, &schema["items"], &format!("{path}[]"), homes);
    }
}
