//! Edge (writes). Outside the window: an update is planned, and whatever happens to the pod, it comes back as it ran.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::manifests::{AFTER, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::wait::{A_START, SOON, until};
use super::world::{World, in_a_world};

/// A server that runs 5.7.0 and knows of 5.7.1, which has to wait.
async fn with_an_update_that_waits(world: &World) -> Server<'_> {
    world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
    let lobby = Server::new(world, LOBBY);
    lobby.settled().await;
    world.upstream.set_now(AFTER).await;
    lobby.planned(&TO_AFTER).await;
    lobby
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_appears_is_planned_for_the_next_window_and_nothing_about_the_pod_changes() {
    in_a_world("planned", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (pod, set, template) = (lobby.pod().await.unwrap(), lobby.set().await, template(&lobby).await);

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let status = lobby.object().await.status.unwrap();
        assert!(status.next_window.unwrap().contains("29 Feb"), "the window of this server opens on no other day");
        let note = world.note(LOBBY, "UpdatePlanned").await;
        assert!(note.contains("29 Feb") && note.contains("ViaVersion 5.7.0 -> 5.7.1"), "{note}");
        world.note(LOBBY, "UpdateStaged").await;

        world.look_again(LOBBY).await;
        assert_eq!(lobby.pod().await.unwrap().uid(), pod.uid());
        assert_eq!(self::template(&lobby).await, template);
        assert_eq!(lobby.set().await, set);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_deleted_or_force_deleted_comes_back_as_it_ran() {
    in_a_world("deleted", BEFORE, async |world| {
        let lobby = with_an_update_that_waits(world).await;
        let set = lobby.set().await;
        for how in [
            &["delete", "pod", "lobby-0", "--wait=false"][..],
            &["delete", "pod", "lobby-0", "--force", "--grace-period=0"],
        ] {
            let before = lobby.pod().await.unwrap();
            world.kubectl(how, "").await;
            lobby.back_after(&before).await;
            assert_eq!(lobby.set().await, set, "{how:?}");
        }
        world.look_again(LOBBY).await;
        assert_eq!(lobby.set().await, set);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_slept_wakes_up_as_it_ran() {
    in_a_world("slept", BEFORE, async |world| {
        let lobby = with_an_update_that_waits(world).await;
        let set = lobby.set().await;
        let before = lobby.pod().await.unwrap();
        let built = lobby.saved_blocks().await + 500;
        lobby.order("build 500").await;
        assert!(lobby.saved_blocks().await < built, "the world is on the disk only when it is saved");
        lobby.change(json!({"replicas": 0})).await;
        lobby.gone().await;
        lobby.change(json!({"replicas": 1})).await;
        let before = lobby.back_after(&before).await;
        assert_eq!(lobby.set().await, set, "after spec.replicas 0 and 1");
        assert!(lobby.saved_blocks().await >= built, "what was built right before is there");

        world.kubectl(&["scale", "statefulset", LOBBY, "--replicas=0"], "").await;
        // The operator may wake it by itself, as the spec says 1; scaling it again is what a person would do.
        world.kubectl(&["scale", "statefulset", LOBBY, "--replicas=1"], "").await;
        until("another pod, or the same one unharmed, is ready", A_START, async || {
            let pod = lobby.pod().await.ok_or("there is no pod")?;
            if super::server::is_ready(&pod) { Ok(()) } else { Err("it is not ready".to_owned()) }
        })
        .await;
        drop(before);
        assert_eq!(lobby.set().await, set, "after scaling the StatefulSet to 0 and 1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_that_somebody_deletes_is_made_again_as_it_was() {
    in_a_world("set-deleted", BEFORE, async |world| {
        let lobby = with_an_update_that_waits(world).await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        world.api::<StatefulSet>().delete(LOBBY, &DeleteParams::foreground()).await.unwrap();
        lobby.back_after(&before).await;
        assert_eq!(lobby.set().await, set);
        // And the update still waits.
        lobby.planned(&TO_AFTER).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_memory_limit_waits_for_the_window_like_any_other_change() {
    in_a_world("memory", BEFORE, async |world| {
        let mut object = server(LOBBY, FAR);
        let limits = "/spec/podTemplate/spec/containers/0/resources";
        object.pointer_mut(limits).unwrap()["limits"] = json!({"memory": "256Mi"});
        world.apply(&[object.clone(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, before, template) = (lobby.set().await, lobby.pod().await.unwrap(), template(&lobby).await);
        assert_eq!(set.memory.as_deref(), Some("256Mi"));

        object.pointer_mut(limits).unwrap()["limits"] = json!({"memory": "320Mi"});
        world.apply(&[object]).await;
        lobby.condition_is("UpdateAvailable", "True", "UpdatePlanned").await;
        assert_eq!(self::template(&lobby).await, template);
        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.back_after(&before).await;
        assert_eq!(lobby.set().await, set);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stops_nobody_is_applied_at_once_and_leaves_the_pod_alone() {
    in_a_world("at-once", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (before, template) = (lobby.pod().await.unwrap(), template(&lobby).await);
        lobby
            .change(json!({
                "service": {"annotations": {"example.com/pool": "games"}},
                "updateSchedule": {"maintenanceWindow": {"cron": "30 5 29 2 *"}},
                "players": {"notice": "9s"},
                "notify": [{"name": "staff", "type": "Discord", "secret": {"name": "chat", "key": "address"}}],
            }))
            .await;
        until("the Service has the annotation, and the window is the new one", SOON, async || {
            let service = world.api::<Service>().get(LOBBY).await.unwrap();
            let window = lobby.object().await.status.and_then(|status| status.next_window).unwrap_or_default();
            let pool = service.annotations().get("example.com/pool").cloned();
            let is_there = pool.as_deref() == Some("games") && window.contains("05:30");
            if is_there { Ok(()) } else { Err(format!("{pool:?}, {window}")) }
        })
        .await;
        lobby.settled().await;
        world.look_again(LOBBY).await;
        assert_eq!(lobby.pod().await.unwrap().uid(), before.uid());
        assert_eq!(self::template(&lobby).await, template);
        assert!(lobby.object().await.status.unwrap().available_update.is_none());
    })
    .await;
}

async fn template(server: &Server<'_>) -> Option<k8s_openapi::api::core::v1::PodTemplateSpec> {
    server.stateful_set().await.spec.map(|spec| spec.template)
}
