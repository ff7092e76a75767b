use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use super::*;
use crate::server::test_server::server;

fn owner() -> Owner {
    let server = server(json!({}));
    let owner = Owner::from(&validate::check(&server).unwrap());
    assert_eq!(owner, Owner::from(&server));
    owner
}

fn meta(fields: &Value) -> ObjectMeta {
    let mut object = json!({"name": "lobby"});
    json_patch::merge(&mut object, fields);
    serde_json::from_value(object).unwrap()
}

fn owned_by(uid: &str) -> ObjectMeta {
    let reference = json!({"apiVersion": "v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": true});
    meta(&json!({"ownerReferences": [reference], "labels": labels::child("lobby")}))
}

#[test]
fn object_belongs_to_server_by_uid_only() {
    let owner = owner();
    let uid = owner.uid.clone().unwrap();
    let unowned = meta(&json!({"labels": labels::child("lobby")}));
    for (owns, kind) in [
        (Owner::owns::<Service> as fn(&Owner, &ObjectMeta) -> bool, "Service"),
        (Owner::owns::<StatefulSet>, "StatefulSet"),
        (Owner::owns::<ConfigMap>, "ConfigMap"),
        (Owner::owns::<Secret>, "Secret"),
        (Owner::owns::<PodDisruptionBudget>, "PodDisruptionBudget"),
    ] {
        assert!(owns(&owner, &owned_by(&uid)), "{kind}");
        assert!(!owns(&owner, &owned_by("another")), "{kind} of an owner of the same labels");
        assert!(!owns(&owner, &unowned), "{kind} with the labels alone");
    }
    let in_file = Owner { uid: None, ..owner };
    assert!(!in_file.owns::<Service>(&meta(&json!({}))), "a server without a UID owns nothing");
}

#[test]
fn kept_claim_belongs_to_next_server_of_its_name() {
    let owner = owner();
    assert!(owner.owns::<PersistentVolumeClaim>(&meta(&json!({"labels": labels::child("lobby")}))));
    assert!(!owner.owns::<PersistentVolumeClaim>(&meta(&json!({"labels": labels::child("hub")}))));
    assert!(!owner.owns::<PersistentVolumeClaim>(&meta(&json!({}))), "a claim of another program");
    assert!(!owner.owns::<PersistentVolumeClaim>(&owned_by("another")));
}

#[test]
fn adoption_needs_uid_of_server_and_no_other_owner() {
    let owner = owner();
    let uid = owner.uid.clone().unwrap();
    let mut object = meta(&json!({"annotations": {labels::ADOPT: uid}}));
    assert!(owner.owns::<Service>(&object) && owner.owns::<PodDisruptionBudget>(&object));
    assert!(!owner.owns::<StatefulSet>(&object) && !owner.owns::<Secret>(&object) && !owner.owns::<ConfigMap>(&object));
    object.owner_references = owned_by("another").owner_references;
    assert!(!owner.owns::<Service>(&object));
    assert!(!owner.owns::<Service>(&meta(&json!({"annotations": {labels::ADOPT: "true"}}))));
}

#[test]
fn pod_belongs_to_stateful_set_of_servers_name() {
    let owner = owner();
    let of = |kind: &str, name: &str| {
        let reference = json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true});
        meta(&json!({"ownerReferences": [reference], "labels": labels::selector("lobby")}))
    };
    assert!(owner.owns_pod(&of("StatefulSet", "lobby")));
    assert!(!owner.owns_pod(&of("StatefulSet", "web")) && !owner.owns_pod(&of("ReplicaSet", "lobby")));
    assert!(owner.owns_pod(&meta(&json!({"labels": labels::selector("lobby")}))));
    assert!(!owner.owns_pod(&meta(&json!({"labels": {"app": "web"}}))));
}

#[test]
fn conflict_message_names_object_owner_and_remedy() {
    let owner = owner();
    let text = owner.conflict::<Service>(&meta(&json!({}))).message;
    let command = format!(
        "`kubectl -n {} annotate service lobby nightshift.dev/adopt={}`",
        owner.namespace,
        owner.uid.clone().unwrap()
    );
    assert!(text.starts_with("Service `lobby` was not created for this server.") && text.contains(&command), "{text}");
    let text = owner.conflict::<Service>(&owned_by("another")).message;
    assert!(text.contains("It belongs to Deployment `web`.") && !text.contains("annotate"), "{text}");
    let text = owner.conflict::<PersistentVolumeClaim>(&meta(&json!({}))).message;
    assert!(text.contains("`existingClaim`"), "{text}");
    assert!(!owner.conflict::<Secret>(&meta(&json!({}))).message.contains("annotate"));
}
