use serde_json::{Value, json};

use crate::PaperMCServer;
use crate::crd::schema_of;

fn template() -> Value {
    schema_of::<PaperMCServer>()["properties"]["spec"]["properties"]["podTemplate"].clone()
}

#[test]
fn pod_template_fields_are_all_optional() {
    let spec = &template()["properties"]["spec"];
    assert!(spec["properties"]["containers"].is_object());
    assert!(spec.get("required").is_none(), "{}", spec["required"]);
}

#[test]
fn pod_template_lists_merge_by_core_type_keys() {
    let template = template();
    let spec = &template["properties"]["spec"]["properties"];
    let container = &spec["containers"]["items"]["properties"];
    for (list, keys) in [
        (&spec["containers"], json!(["name"])),
        (&spec["initContainers"], json!(["name"])),
        (&spec["volumes"], json!(["name"])),
        (&spec["imagePullSecrets"], json!(["name"])),
        (&spec["topologySpreadConstraints"], json!(["topologyKey", "whenUnsatisfiable"])),
        (&container["env"], json!(["name"])),
        (&container["volumeMounts"], json!(["mountPath"])),
        (&container["ports"], json!(["containerPort", "protocol"])),
    ] {
        assert_eq!(list["x-kubernetes-list-type"], "map", "{keys}");
        assert_eq!(list["x-kubernetes-list-map-keys"], keys);
        for key in keys.as_array().unwrap() {
            let required = list["items"]["required"].as_array().is_some_and(|all| all.contains(key));
            let default = &list["items"]["properties"][key.as_str().unwrap()]["default"];
            assert!(required || default.is_string(), "{keys}: {key} must be required or have a default");
        }
    }
    assert_eq!(container["ports"]["items"]["properties"]["protocol"]["default"], "TCP");
}

#[test]
fn quantity_schema_has_pattern_and_port_schema_lacks_it() {
    let template = template();
    let spec = &template["properties"]["spec"]["properties"];
    let container = &spec["containers"]["items"]["properties"];
    for quantity in [
        &container["resources"]["properties"]["limits"]["additionalProperties"],
        &container["resources"]["properties"]["requests"]["additionalProperties"],
        &spec["overhead"]["additionalProperties"],
        &spec["volumes"]["items"]["properties"]["emptyDir"]["properties"]["sizeLimit"],
    ] {
        assert_eq!(quantity["x-kubernetes-int-or-string"], true);
        assert!(quantity["pattern"].is_string());
    }
    let port = &container["livenessProbe"]["properties"]["httpGet"]["properties"]["port"];
    assert_eq!(port["x-kubernetes-int-or-string"], true);
    assert!(port.get("pattern").is_none());
}

#[test]
fn numeric_quantity_is_read_as_text() {
    let server: PaperMCServer = serde_json::from_value(json!({
        "apiVersion": "nightshift.dev/v1alpha1",
        "kind": "PaperMCServer",
        "metadata": {"name": "lobby"},
        "spec": {
            "updateStrategy": "auto",
            "podTemplate": {"spec": {
                "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": 1024}}],
                "containers": [{"name": "papermc", "resources": {"requests": {"cpu": 2}, "limits": {"memory": "6Gi"}}}],
            }},
        },
    }))
    .unwrap();
    let spec = server.spec.pod_template.unwrap().spec.unwrap();
    let resources = spec.containers[0].resources.clone().unwrap();
    assert_eq!(resources.requests.unwrap()["cpu"].0, "2");
    assert_eq!(resources.limits.unwrap()["memory"].0, "6Gi");
    assert_eq!(spec.volumes.unwrap()[0].empty_dir.clone().unwrap().size_limit.unwrap().0, "1024");
}
