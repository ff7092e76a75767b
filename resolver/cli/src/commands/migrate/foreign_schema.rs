//! Pure. Defines the schemas of minecraft-operator's kinds, so that a wrong field is reported with its line.
//!
//! Source: the types in `api/v1beta1` of lexfrei/minecraft-operator, read on 29 November 2026. Only names, types and
//! enumerations are repeated. The check of the converted object finds missing fields and wrong values.

use serde_json::{Map, Value, json};

use crate::input::manifests::{schema_of, schemas};

/// The version that is read.
pub(super) const API_VERSION: &str = "mc.k8s.lex.la/v1beta1";

/// The schema of a `PaperMCServer` of minecraft-operator.
pub(super) fn server() -> Value {
    let switch = || object([("enabled", boolean())]);
    let window = object([("cron", text()), ("enabled", boolean())]);
    let secret = object([("name", text()), ("key", text())]);
    let parent = object([("name", text()), ("namespace", text()), ("sectionName", text())]);
    let any = || json!({});
    schema_of(object([
        ("updateStrategy", strategy()),
        ("version", text()),
        ("build", whole_number()),
        ("updateDelay", text()),
        ("updateSchedule", object([("checkCron", text()), ("maintenanceWindow", window)])),
        ("gracefulShutdown", object([("timeout", text())])),
        ("rcon", object([("enabled", boolean()), ("passwordSecret", secret), ("port", whole_number())])),
        (
            "service",
            object([
                ("type", json!({"type": "string", "enum": ["LoadBalancer", "NodePort", "ClusterIP"]})),
                ("annotations", json!({"type": "object", "additionalProperties": text()})),
                ("loadBalancerIP", text()),
            ]),
        ),
        (
            "gateway",
            object([
                ("enabled", boolean()),
                ("parentRefs", list(parent)),
                ("tcpRoute", switch()),
                ("udpRoute", switch()),
            ]),
        ),
        (
            "backup",
            object([
                ("enabled", boolean()),
                ("schedule", text()),
                ("beforeUpdate", boolean()),
                ("volumeSnapshotClassName", text()),
                ("retention", object([("maxCount", whole_number())])),
            ]),
        ),
        (
            "network",
            object([(
                "networkPolicy",
                object([
                    ("enabled", boolean()),
                    ("allowFrom", list(any())),
                    ("restrictEgress", boolean()),
                    ("allowEgressTo", list(any())),
                ]),
            )]),
        ),
        ("podTemplate", pod_template()),
    ]))
}

/// The schema of a `Plugin` of minecraft-operator.
pub(super) fn plugin() -> Value {
    let source = object([
        ("type", json!({"type": "string", "enum": ["hangar", "url"]})),
        ("project", text()),
        ("url", text()),
        ("checksum", text()),
    ]);
    let [_, ours] = schemas();
    schema_of(object([
        ("source", source),
        ("updateStrategy", strategy()),
        ("version", text()),
        ("build", whole_number()),
        ("updateDelay", text()),
        // The type is of Kubernetes.
        ("instanceSelector", ours["properties"]["spec"]["properties"]["instanceSelector"].clone()),
        ("port", whole_number()),
        ("compatibilityOverride", object([("enabled", boolean()), ("minecraftVersions", list(text()))])),
    ]))
}

/// The type is of Kubernetes, and Nightshift uses it too. Its metadata may have more fields here.
fn pod_template() -> Value {
    let [ours, _] = schemas();
    let mut template = ours["properties"]["spec"]["properties"]["podTemplate"].clone();
    template["properties"]["metadata"] = json!({});
    template
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let properties: Map<String, Value> = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": properties})
}

fn list(items: Value) -> Value {
    let mut list = json!({"type": "array"});
    list["items"] = items;
    list
}

fn strategy() -> Value {
    json!({"type": "string", "enum": ["latest", "auto", "pin", "build-pin"]})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

fn whole_number() -> Value {
    json!({"type": "integer"})
}
