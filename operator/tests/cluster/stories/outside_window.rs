//! Edge (writes). Restarts a server for other reasons while an update waits for its window: it always returns with its
//! version set.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::access_mode::{force_delete, server_with_access_mode};
use crate::cluster::eventually::{SHORT_LIMIT, START_LIMIT, wait_until};
use crate::cluster::manifests::{AFTER_RELEASE, BEFORE_RELEASE, LOBBY, RELEASE_CHANGES, viabackwards};
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::{Server, VersionSet, is_ready};
use crate::cluster::test_env::{TestEnv, in_test_env};

/// The number of forced deletions until a new pod meets the old server.
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn server_restarts_unchanged_outside_its_window_while_an_update_waits() {
    in_test_env("outside", BEFORE_RELEASE, async |env| {
        env.apply(&[lobby_with_memory("256Mi"), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let version_set = lobby.version_set().await;
        assert_eq!(version_set.memory.as_deref(), Some("256Mi"));
        assert_settings_outside_pod_apply_at_once(env, &lobby).await;
        assert_update_and_memory_limit_wait(env, &lobby, &version_set).await;
        assert_deleted_pod_is_saved_and_replaced(env, &lobby, &version_set).await;
        assert_force_deleted_pod_waits_for_old_server(env, &lobby, &version_set).await;
        assert_deleted_stateful_set_is_recreated(env, &lobby, &version_set).await;
        assert_server_returns_after_scaling_to_zero(env, &lobby, &version_set).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
    })
    .await;
}

/// A volume that two pods of one node may mount, and a memory limit.
fn lobby_with_memory(limit: &str) -> Value {
    let mut object = server_with_access_mode("ReadWriteOnce");
    object.pointer_mut("/spec/podTemplate/spec/containers/0/resources").unwrap()["limits"] = json!({"memory": limit});
    object
}

async fn template(server: &Server<'_>) -> Option<PodTemplateSpec> {
    server.stateful_set().await.spec.map(|spec| spec.template)
}

async fn assert_settings_outside_pod_apply_at_once(env: &TestEnv, lobby: &Server<'_>) {
    let (before, template) = (lobby.pod().await.unwrap(), template(lobby).await);
    lobby
        .patch_spec(json!({
            "service": {"annotations": {"example.com/pool": "games"}},
            "updateSchedule": {"maintenanceWindow": {"cron": "30 5 29 2 *"}},
            "players": {"notice": "9s"},
            "notify": [{"name": "staff", "type": "Discord", "secret": {"name": "chat", "key": "address"}}],
        }))
        .await;
    wait_until("the Service has the annotation, and the window is the new one", SHORT_LIMIT, async || {
        let service = env.api::<Service>().get(LOBBY).await.unwrap();
        let window = lobby.object().await.status.and_then(|status| status.next_window).unwrap_or_default();
        let pool = service.annotations().get("example.com/pool").cloned();
        let applied = pool.as_deref() == Some("games") && window.contains("05:30");
        if applied { Ok(()) } else { Err(format!("{pool:?}, {window}")) }
    })
    .await;
    lobby.wait_until_stable().await;
    env.trigger_passes(LOBBY).await;
    assert_eq!(lobby.pod().await.unwrap().uid(), before.uid());
    assert_eq!(self::template(lobby).await, template);
    assert!(lobby.object().await.status.unwrap().available_update.is_none());
}

async fn assert_update_and_memory_limit_wait(env: &TestEnv, lobby: &Server<'_>, version_set: &VersionSet) {
    let (before, template) = (lobby.pod().await.unwrap(), template(lobby).await);
    env.upstream.set_now(AFTER_RELEASE).await;
    lobby.wait_until_planned(&RELEASE_CHANGES).await;
    let status = lobby.object().await.status.unwrap();
    assert!(status.next_window.unwrap().contains("29 Feb"), "this window opens on one day only");
    let note = env.wait_for_event_note(LOBBY, "UpdatePlanned").await;
    assert!(note.contains("29 Feb") && note.contains("ViaVersion 5.7.0 -> 5.7.1"), "{note}");
    env.wait_for_event_note(LOBBY, "UpdateStaged").await;

    env.apply(&[lobby_with_memory("320Mi")]).await;
    lobby.wait_for_condition("UpdateAvailable", "True", "UpdatePlanned").await;
    env.trigger_passes(LOBBY).await;
    assert_eq!(lobby.pod().await.unwrap().uid(), before.uid());
    assert_eq!(self::template(lobby).await, template);
    assert_eq!(lobby.version_set().await, *version_set);
}

async fn assert_deleted_pod_is_saved_and_replaced(env: &TestEnv, lobby: &Server<'_>, version_set: &VersionSet) {
    let before = lobby.pod().await.unwrap();
    let observer = ServerObserver::start(lobby).await;
    let built = lobby.saved_blocks().await + 500;
    lobby.send_command("build 500").await;
    assert!(lobby.saved_blocks().await < built, "only a save writes the blocks to the volume");
    let warned = warnings(env).await.len();
    env.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
    lobby.wait_for_new_pod(&before).await;
    observer.assert_order(&[
        (0, "All dimensions are saved"),
        (0, "Stopping server"),
        (0, "Closing Server"),
        (1, "Done ("),
    ]);
    assert_eq!(lobby.version_set().await, *version_set, "after the pod was deleted");
    assert!(lobby.saved_blocks().await >= built, "no block is lost");
    let warnings = warnings(env).await;
    assert_eq!(warnings.len(), warned, "a saved stop causes no warning: {warnings:?}");
}

/// Warnings of Kubernetes about pods, except those that every start may cause. These are a probe that fails until the
/// server runs, and a volume that cannot be mounted at the first try.
async fn warnings(env: &TestEnv) -> Vec<String> {
    let events = env.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let about_pods = events.into_iter().filter(|event| {
        let of_a_pod = event.regarding.as_ref().and_then(|object| object.kind.as_deref()) == Some("Pod");
        of_a_pod
            && event.type_.as_deref() == Some("Warning")
            && !matches!(event.reason.as_deref(), Some("Unhealthy" | "FailedMount"))
    });
    about_pods
        .map(|event| format!("{}: {}", event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
        .collect()
}

/// The init container of the new pod waits while the old server has the world open.
async fn assert_force_deleted_pod_waits_for_old_server(env: &TestEnv, lobby: &Server<'_>, version_set: &VersionSet) {
    let mut logs = Vec::new();
    // In rare cases the kubelet may not read the claim of such a new pod yet ("no relationship found between node and
    // this object"). The kubelet tries again after the old server has exited, and then the init container does not have
    // to wait.
    for _ in 0..TRIES {
        let (most, log) = force_delete(env, lobby).await;
        assert_eq!(most, 1, "one server at a time");
        let waited = log.contains("waiting: another server has this world open");
        logs.push(log);
        if waited {
            break;
        }
        assert!(logs.len() < TRIES, "no init container waited for the old server: {logs:#?}");
    }
    lobby.send_command("fault none").await;
    env.trigger_passes(LOBBY).await;
    assert_eq!(lobby.version_set().await, *version_set, "after the pod was deleted by force");
}

async fn assert_deleted_stateful_set_is_recreated(env: &TestEnv, lobby: &Server<'_>, version_set: &VersionSet) {
    let before = lobby.pod().await.unwrap();
    env.api::<StatefulSet>().delete(LOBBY, &DeleteParams::foreground()).await.unwrap();
    lobby.wait_for_new_pod(&before).await;
    assert_eq!(lobby.version_set().await, *version_set, "after the StatefulSet was deleted");
    lobby.wait_until_planned(&RELEASE_CHANGES).await;
}

async fn assert_server_returns_after_scaling_to_zero(env: &TestEnv, lobby: &Server<'_>, version_set: &VersionSet) {
    let before = lobby.pod().await.unwrap();
    let built = lobby.saved_blocks().await + 500;
    lobby.send_command("build 500").await;
    lobby.patch_spec(json!({"replicas": 0})).await;
    lobby.wait_until_pod_is_deleted().await;
    lobby.patch_spec(json!({"replicas": 1})).await;
    lobby.wait_for_new_pod(&before).await;
    assert_eq!(lobby.version_set().await, *version_set, "after spec.replicas 0 and 1");
    assert!(lobby.saved_blocks().await >= built, "no block is lost");

    env.kubectl(&["scale", "statefulset", LOBBY, "--replicas=0"], "").await;
    // The operator may already have scaled it up, because the spec has 1. An admin would scale it again.
    env.kubectl(&["scale", "statefulset", LOBBY, "--replicas=1"], "").await;
    wait_until("the same pod or a new one is ready", START_LIMIT, async || {
        let pod = lobby.pod().await.ok_or("there is no pod")?;
        if is_ready(&pod) { Ok(()) } else { Err("it is not ready".to_owned()) }
    })
    .await;
    assert_eq!(lobby.version_set().await, *version_set, "after scaling the StatefulSet to 0 and 1");
}
