//! Edge (writes). Tests that an [`OwnedApi`] changes no object of somebody else, also if that object appears between a read and a write.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service};
use kube::ResourceExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use validate::CheckedServer;

use super::cluster_handle::ClusterHandle;
use super::fake_api_server::client;
use super::objects::Key;
use super::run::scripted::begin_cluster;
use super::{next_address, run_on_this_thread};
use crate::clock::now;
use crate::k8s::labels;
use crate::k8s::owned_api::{Creation, OwnedApi, OwnedError};
use crate::k8s::server_side_apply::FieldManager;

const WRITER: FieldManager = FieldManager::SERVER_CHILDREN;

/// Runs a test in a cluster with a server that has no objects yet.
fn in_cluster<T>(test: impl AsyncFnOnce(Arc<ClusterHandle>, CheckedServer) -> T) -> T {
    run_on_this_thread(async {
        let (handle, server, _clocks) = begin_cluster(next_address()).await;
        test(handle, server).await
    })
}

fn parse<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// A Service of the server with these annotations.
fn service(server: &CheckedServer, annotations: &Value) -> Service {
    let metadata = json!({"name": "lobby", "ownerReferences": [server.owner], "annotations": annotations});
    parse(json!({"metadata": metadata, "spec": {"selector": labels::selector("lobby")}}))
}

fn foreign_service() -> Value {
    json!({"metadata": {"name": "lobby", "annotations": {"team": "web"}}, "spec": {"selector": {"app": "web"}}})
}

fn key() -> Key {
    Key::new("services", "lobby")
}

#[test]
fn foreign_object_is_neither_written_nor_deleted() {
    in_cluster(async |handle, server| {
        let before = handle.cluster().objects.create("services", foreign_service(), now()).unwrap().clone();
        let api = OwnedApi::<Service>::new(&client(&handle), &server);
        let desired = service(&server, &json!({}));
        for error in [
            api.get_opt("lobby").await.map(drop).unwrap_err(),
            api.create(WRITER, &desired).await.map(drop).unwrap_err(),
            api.write(WRITER, &desired).await.map(drop).unwrap_err(),
        ] {
            assert!(matches!(error, OwnedError::NameConflict(_)), "{error:?}");
        }
        assert_eq!(*handle.cluster().objects.get(&key()).unwrap(), before);
    });
}

#[test]
fn object_that_replaced_the_read_one_is_neither_written_nor_deleted() {
    in_cluster(async |handle, server| {
        let api = OwnedApi::<Service>::new(&client(&handle), &server);
        let desired = service(&server, &json!({}));
        let live = api.write(WRITER, &desired).await.unwrap();
        handle.cluster().objects.remove(&key());
        let before = handle.cluster().objects.create("services", foreign_service(), now()).unwrap().clone();
        for error in [
            api.apply(WRITER, &desired, &live).await.map(drop).unwrap_err(),
            api.merge(WRITER, &live, json!({"spec": {"type": "NodePort"}})).await.map(drop).unwrap_err(),
            api.delete(&live).await.unwrap_err(),
        ] {
            assert!(matches!(&error, OwnedError::Kube(kube::Error::Api(status)) if status.code == 409), "{error:?}");
        }
        assert_eq!(*handle.cluster().objects.get(&key()).unwrap(), before);
    });
}

#[test]
fn created_object_loses_fields_that_later_applies_leave_out() {
    in_cluster(async |handle, server| {
        let api = OwnedApi::<Service>::new(&client(&handle), &server);
        let with = |annotations: Value| service(&server, &annotations);
        let created = api.create(WRITER, &with(json!({"pool": "games", "zone": "a"}))).await.unwrap();
        assert!(matches!(created, Creation::New(_)));
        handle.cluster().objects.change(&key(), now(), |object| object["metadata"]["annotations"]["team"] = json!("x"));
        for (annotations, left) in [(json!({"zone": "b"}), vec!["team", "zone"]), (json!({}), vec!["team"])] {
            let live = api.write(WRITER, &with(annotations)).await.unwrap();
            assert_eq!(live.annotations().keys().collect::<Vec<_>>(), left);
        }
    });
}

#[test]
fn second_create_returns_unchanged_object() {
    in_cluster(async |handle, server| {
        let api = OwnedApi::<ConfigMap>::new(&client(&handle), &server);
        let map = |text: &str| -> ConfigMap {
            parse(json!({"metadata": {"name": "lobby-x", "ownerReferences": [server.owner]}, "data": {"a": text}}))
        };
        api.create(WRITER, &map("1")).await.unwrap();
        let Creation::Existing(found) = api.create(WRITER, &map("2")).await.unwrap() else { panic!("it exists") };
        assert_eq!(found.data.unwrap()["a"], "1");
        api.delete(&api.get_opt("lobby-x").await.unwrap().unwrap()).await.unwrap();
        assert!(handle.cluster().objects.get(&Key::new("configmaps", "lobby-x")).is_err());
    });
}

#[test]
fn kept_claim_is_never_deleted_with_a_server() {
    in_cluster(async |handle, server| {
        let claim = |owners: Value, size: &str| {
            json!({
                "metadata": {"name": "data-lobby-0", "labels": labels::child("lobby"), "ownerReferences": owners},
                "spec": {"resources": {"requests": {"storage": size}}},
            })
        };
        handle.cluster().objects.create("persistentvolumeclaims", claim(json!([]), "1Gi"), now()).unwrap();
        let api = OwnedApi::<PersistentVolumeClaim>::new(&client(&handle), &server);
        let written = api.write(WRITER, &parse(claim(json!([server.owner]), "2Gi"))).await.unwrap();
        assert!(written.owner_references().is_empty(), "{written:?}");
        assert_eq!(written.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0, "2Gi");
    });
}
