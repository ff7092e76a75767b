use serde_json::{Value, json};

use super::*;

pub(crate) fn server(spec: Value) -> PaperMCServer {
    let mut server: PaperMCServer = serde_json::from_value(json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
        "metadata": {"name": "lobby", "namespace": "games", "uid": "6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e"},
        "spec": {"updateStrategy": "auto"},
    }))
    .unwrap();
    let mut merged = serde_json::to_value(&server.spec).unwrap();
    let Value::Object(fields) = spec else { panic!("a spec is an object") };
    for (key, value) in fields {
        merged[key] = value;
    }
    server.spec = serde_json::from_value(merged).unwrap();
    server
}

fn paths(spec: Value) -> Vec<String> {
    match check(&server(spec)) {
        Ok(_) => Vec::new(),
        Err(complaints) => complaints.into_iter().map(|complaint| complaint.path).collect(),
    }
}

#[test]
fn the_shortest_spec_is_complete() {
    let checked = check(&server(json!({}))).unwrap();
    assert_eq!(checked.claim_name(), "data-lobby-0");
    assert!(!checked.eula);
    assert_eq!(checked.notice, SignedDuration::from_mins(5));
}

#[test]
fn every_wrong_field_is_named_at_once() {
    let wrong = json!({
        "players": {"notice": "soon"},
        "updateSchedule": {"maintenanceWindow": {"cron": "61 4 * * 0"}},
        "jvm": {"heap": "lots"},
    });
    let expected = ["spec.updateSchedule.maintenanceWindow", "spec.players.notice", "spec.jvm.heap"];
    assert_eq!(paths(wrong), expected);
}

#[test]
fn what_the_safety_of_the_world_hangs_on_cannot_be_overridden_by_a_pod_template() {
    let template = |container: Value| json!({"podTemplate": {"spec": {"containers": [container]}}});
    let variable = template(json!({"name": "papermc", "env": [{"name": "STOP_DURATION", "value": "1"}]}));
    assert_eq!(paths(variable), ["spec.podTemplate.spec.containers[papermc].env[STOP_DURATION]"]);
    let hook = template(json!({"name": "papermc", "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}));
    assert_eq!(paths(hook), ["spec.podTemplate.spec.containers[papermc].lifecycle"]);
    let volume = json!({"podTemplate": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}}});
    assert_eq!(paths(volume), ["spec.podTemplate.spec.volumes[data]"]);
    let harmless = template(json!({"name": "papermc", "env": [{"name": "DIFFICULTY", "value": "hard"}]}));
    assert_eq!(paths(harmless), Vec::<String>::new());
}
