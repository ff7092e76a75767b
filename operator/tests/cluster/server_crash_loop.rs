//! Edge (writes). Tests a stable server that crashes repeatedly: it is reported, and no update begins, or it is stopped
//! if its spec asks for that.

use serde_json::json;

use super::eventually::{START_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::node::kill_9;
use super::notify::replace_operator;
use super::server::Server;
use super::test_env::in_test_env;

const MARKER: &str = "/data/world/marker.txt";

#[tokio::test(flavor = "multi_thread")]
async fn crash_looping_server_gets_no_update() {
    in_test_env("crash-loop", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let template = lobby.stateful_set().await.spec.unwrap().template;
        // The fault is on the volume, so that each next start of the process crashes too.
        lobby.send_command("fault crash-after 15").await;
        let unsaved = wait_until("an Event StoppedUnsaved", START_LIMIT, async || {
            env.event_notes(LOBBY, "StoppedUnsaved").await.pop().ok_or_else(|| "none".to_owned())
        })
        .await;
        assert!(unsaved.contains("without a request to this agent"), "{unsaved}");
        // The kubelet waits 10, 20, 40 seconds between them.
        let message = lobby.wait_for_condition("CrashLoop", "True", "ProcessEnds").await;
        assert!(message.starts_with("The server's process exited 3 times within an hour"), "{message}");

        lobby.set_window(ALWAYS_OPEN).await;
        lobby.wait_for_condition("CrashLoop", "True", "ProcessEnds").await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(env.event_notes(LOBBY, "CrashLoop").await.len(), 1);
        for reason in ["PlayersWarned", "UpdateStarted", "UpdateFailed"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
        assert_eq!(lobby.stateful_set().await.spec.unwrap().template, template);
        let status = lobby.object().await.status.unwrap();
        assert!(status.crashes.is_some_and(|crashes| crashes.at.len() >= 3));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_stop_lasts_until_request() {
    in_test_env("crash-loop-stopped", BEFORE_RELEASE, async |env| {
        let mut object = server(LOBBY, NEVER_OPEN);
        object["spec"]["onCrashLoop"] = json!("Stop");
        // A server that is scaled to zero by a user would be updated at once.
        object["spec"]["updateSchedule"]["opportunistic"] = json!({"emptyFor": "10m"});
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.put_file(MARKER, b"years").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let template = lobby.stateful_set().await.spec.unwrap().template;
        lobby.send_command("fault crash-after 15").await;

        let message = lobby.wait_for_condition("CrashLoop", "True", "Stopped").await;
        assert!(message.contains(" times within an hour, last with exit code "), "{message}");
        assert!(message.contains("annotate papermcserver lobby --overwrite nightshift.dev/apply-now="), "{message}");
        lobby.wait_until_pod_is_deleted().await;
        lobby.wait_for_condition("Ready", "False", "StoppedByCrashes").await;
        let stopped = lobby.object().await.status.unwrap().crashes.unwrap();
        assert!(stopped.at.len() >= 3, "{stopped:?}");

        replace_operator(env, &lobby).await;
        lobby.wait_for_condition("CrashLoop", "True", "Stopped").await;
        assert!(lobby.pod().await.is_none());
        let spec = lobby.stateful_set().await.spec.unwrap();
        assert_eq!((spec.replicas, spec.template), (Some(0), template));
        assert_eq!(lobby.object().await.status.unwrap().crashes, Some(stopped), "a deleted pod is no crash");
        let notes = env.event_notes(LOBBY, "CrashLoop").await;
        assert_eq!(notes.iter().filter(|note| note.contains("It has been stopped since")).count(), 1, "{notes:?}");
        assert_eq!(env.event_notes(LOBBY, "UpdateStarted").await, Vec::<String>::new());

        lobby.patch_spec(json!({"players": {"deadline": "61m"}})).await;
        wait_until("the server runs again, and its fault is removed", START_LIMIT, async || {
            if lobby.try_send_command("fault none").await { Ok(()) } else { Err("it does not run".to_owned()) }
        })
        .await;
        lobby.wait_for_condition("Ready", "True", "Running").await;
        assert_eq!(lobby.condition("CrashLoop").await, None);
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "years");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_lost_with_its_agent_is_reported_unsaved() {
    in_test_env("unseen-end", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        // The agent has recorded that this process runs.
        wait_until("the process is recorded on the volume", START_LIMIT, async || {
            let files = lobby.shell("ls /data/.nightshift").await;
            if files.contains("running.json") { Ok(()) } else { Err(files) }
        })
        .await;
        let pod = lobby.pod().await.unwrap();
        kill_9(&pod, "/agent");
        kill_9(&pod, "/fake-paper");
        let (unsaved, last) = lobby.wait_for_unsaved_stop().await;
        assert!(unsaved.contains(" or later without a confirmed save: "), "{unsaved}");
        assert!(!last.saved && last.why.starts_with("the exit of the process was not observed"), "{last:?}");
        lobby.wait_for_condition("Ready", "True", "Running").await;
        assert_eq!(env.event_notes(LOBBY, "StoppedUnsaved").await, [unsaved]);
    })
    .await;
}
