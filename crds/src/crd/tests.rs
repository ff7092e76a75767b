use super::*;

/// Client-side `kubectl apply` keeps the whole object in an annotation. Annotations are limited to 256 KiB.
const ANNOTATION_LIMIT: usize = 262_144;

fn schema_in(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn crd_fits_kubectl_apply_annotation_limit() {
    for (file, definition) in definitions() {
        let size = definition.to_string().len();
        assert!(size < ANNOTATION_LIMIT, "{file} has {size} bytes");
    }
}

#[test]
fn crd_schema_bounds_every_field_outside_pod_template() {
    for (file, definition) in definitions() {
        let mut unbounded = Vec::new();
        let properties = &schema_in(&definition)["properties"];
        find_unbounded(&properties["spec"], "spec", &mut unbounded);
        find_unbounded(&properties["status"], "status", &mut unbounded);
        assert_eq!(unbounded, Vec::<String>::new(), "{file}");
    }
}

fn find_unbounded(schema: &Value, path: &str, unbounded: &mut Vec<String>) {
    if path == "spec.podTemplate" {
        return;
    }
    let has = |key: &str| schema.get(key).is_some();
    match schema["type"].as_str() {
        Some("string") if !has("maxLength") && !has("enum") && schema["format"] != "date-time" => {
            unbounded.push(path.to_owned());
        }
        Some("integer") if schema["format"] != "int64" && !(has("minimum") && has("maximum")) && !has("format") => {
            unbounded.push(path.to_owned());
        }
        Some("array") => {
            if !has("maxItems") {
                unbounded.push(path.to_owned());
            }
            find_unbounded(&schema["items"], &format!("{path}[]"), unbounded);
        }
        Some("object") => {
            if has("additionalProperties") && !has("maxProperties") {
                unbounded.push(path.to_owned());
            }
            if let Some(values) = schema.get("additionalProperties") {
                find_unbounded(values, &format!("{path}{{}}"), unbounded);
            }
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                find_unbounded(property, &format!("{path}.{name}"), unbounded);
            }
        }
        _ => {}
    }
}

#[test]
fn crd_has_no_finalizers_or_preserved_unknown_fields() {
    for (file, definition) in definitions() {
        let text = definition.to_string();
        assert!(!text.contains("finalizers"), "{file}");
        assert!(!text.contains("x-kubernetes-preserve-unknown-fields"), "{file}");
    }
}

#[test]
fn crd_schema_has_no_nullable_or_unknown_formats() {
    for (file, definition) in definitions() {
        let text = definition.to_string();
        for unwanted in ["\"nullable\"", "\"format\":\"uint", "\"default\":null", "\"oneOf\"", "\"title\""] {
            assert!(!text.contains(unwanted), "{file}: {unwanted}");
        }
    }
}

/// kubectl reads YAML 1.1, in which `on: x` sets the key `true`. The API server knows no field of that name.
#[test]
fn crd_schema_has_no_yaml_boolean_names_or_values() {
    fn find_yaml_booleans(schema: &Value, found: &mut Vec<String>) {
        let is_truth =
            |name: &&str| ["y", "n", "yes", "no", "on", "off", "true", "false"].contains(&name.to_lowercase().as_str());
        match schema {
            Value::Object(fields) => {
                let names = fields.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
                let values = fields.get("enum").and_then(Value::as_array).into_iter().flatten();
                let names_and_values = names.map(String::as_str).chain(values.filter_map(Value::as_str));
                found.extend(names_and_values.filter(is_truth).map(str::to_owned));
                fields.values().for_each(|inner| find_yaml_booleans(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| find_yaml_booleans(inner, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    for (file, definition) in definitions() {
        let mut found = Vec::new();
        find_yaml_booleans(&schema_in(&definition)["properties"]["spec"], &mut found);
        assert_eq!(found, Vec::<String>::new(), "{file}");
    }
}

#[test]
fn committed_crds_match_types() {
    for (file, text) in generated_files() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == text, "crds/{file} is outdated: run `make generate`");
    }
}

/// The largest number of characters of a value that this schema accepts.
fn largest(schema: &Value) -> u64 {
    let bound = |key: &str| schema[key].as_u64().unwrap();
    match schema["type"].as_str().unwrap() {
        "string" if schema["enum"].is_array() || schema["format"] == "date-time" => 32,
        "string" => bound("maxLength") + 2,
        "array" => bound("maxItems") * (largest(&schema["items"]) + 1) + 2,
        "object" => {
            let properties = schema["properties"].as_object().unwrap();
            properties.iter().map(|(name, schema)| name.len() as u64 + 4 + largest(schema)).sum::<u64>() + 2
        }
        _ => 20,
    }
}

#[test]
fn status_size_stays_bounded() {
    let status = |schema: Value| largest(&schema["properties"]["status"]);
    let plugin = status(schema_of::<Plugin>());
    assert!(plugin <= 64 * 1024, "status of a Plugin: {plugin}");
    // 200 plugins and 100 unmanaged JARs with the longest possible names. etcd accepts 1.5 MiB.
    let server = status(schema_of::<PaperMCServer>());
    assert!(server <= 576 * 1024, "status of a PaperMCServer: {server}");
}

#[test]
fn definition_states_its_schema_version() {
    for (file, definition) in definitions() {
        let description = schema_in(&definition)["description"].as_str().unwrap();
        assert_eq!(schema_version(description), SCHEMA_VERSION, "{file}: {description}");
    }
    assert_eq!(schema_version("One Paper server. Schema version 12."), 12);
    assert_eq!(schema_version("One Paper server, of an operator without schema versions."), 0);
}
