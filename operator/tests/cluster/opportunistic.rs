//! Edge (writes). Tests updates outside of windows: on an empty server, cancelled when a player joins, at zero
//! replicas, and never to a newer Minecraft.

use serde_json::{Value, json};

use super::eventually::{SHORT_LIMIT, START_LIMIT, UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, BEFORE_RELEASE, LOBBY, NEVER_OPEN, NEWER_MINECRAFT, OLDER_MINECRAFT, RELEASE_CHANGES, server,
    viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

/// A server whose window is far away, and that is updated after it was empty for 15 seconds.
fn opportunistic() -> Value {
    let mut object = server(LOBBY, NEVER_OPEN);
    object["spec"]["updateSchedule"]["opportunistic"] = json!({"emptyFor": "15s"});
    // Long enough for a player to join in between.
    object["spec"]["players"]["emptyNotice"] = json!("20s");
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn opportunistic_update_is_called_off_by_joining_player() {
    in_test_env("opportunistic", BEFORE_RELEASE, async |env| {
        env.apply(&[opportunistic(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.send_command("join Alice").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let (version_set, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);
        let message = lobby.wait_for_condition("Updating", "False", "WaitingForWindow").await;
        assert!(message.contains("It is also applied when no players have been online for 15 seconds"), "{message}");
        let next = lobby.object().await.status.unwrap().next_window.unwrap_or_default();
        assert!(next.ends_with("or when empty"), "{next}");
        env.trigger_passes(LOBBY).await;
        assert_eq!((lobby.version_set().await, observer.runs()), (version_set.clone(), 1), "a player is online");

        lobby.send_command("leave Alice").await;
        lobby.wait_for_condition("Updating", "True", "CountdownWhileEmpty").await;
        lobby.send_command("join Bob").await;
        env.wait_for_event_note(LOBBY, "UpdateCancelled").await;
        wait_until("Bob reads that the restart is cancelled", SHORT_LIMIT, async || {
            let is_cancelled =
                observer.lines().iter().any(|line| line.text.contains("Bob was shown: The restart is cancelled"));
            if is_cancelled { Ok(()) } else { Err(observer.console()) }
        })
        .await;
        env.trigger_passes(LOBBY).await;
        assert_eq!((lobby.version_set().await, observer.runs()), (version_set, 1), "{}", observer.console());
        assert_eq!(env.event_notes(LOBBY, "UpdateStarted").await, Vec::<String>::new());

        lobby.send_command("leave Bob").await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
        let started = env.wait_for_event_note(LOBBY, "UpdateStarted").await;
        assert!(started.starts_with("No players have been online for 15 seconds: "), "{started}");
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "one restart:\n{}", observer.console());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scaled_to_zero_server_starts_with_opportunistic_update() {
    in_test_env("opportunistic-asleep", BEFORE_RELEASE, async |env| {
        env.apply(&[opportunistic(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.patch_spec(json!({"replicas": 0})).await;
        lobby.wait_for_condition("Ready", "False", "ScaledToZero").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        let started = wait_until("the update begins at zero replicas", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "UpdateStarted").await.pop().ok_or_else(|| "no Event UpdateStarted".to_owned())
        })
        .await;
        assert!(started.starts_with("While the server is scaled to zero: "), "{started}");
        wait_until("the update waits for a scale-up", START_LIMIT, async || match lobby.condition("Updating").await {
            Some(found)
                if found.message.contains("The update that has begun is applied when the server is scaled up") =>
            {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        })
        .await;
        assert!(lobby.pod().await.is_none(), "the server is still scaled to zero");

        lobby.patch_spec(json!({"replicas": 1})).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_minecraft_waits_for_window_on_empty_server() {
    in_test_env("opportunistic-one-way", OLDER_MINECRAFT, async |env| {
        env.apply(&[opportunistic(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let observer = ServerObserver::start(&lobby).await;
        // A player is on the server until the whole update is planned, because ViaVersion alone would not be a newer
        // Minecraft.
        lobby.send_command("join Alice").await;
        env.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.wait_until_planned(&["Paper 1.21.10", "-> 1.21.11"]).await;
        let plans = env.event_notes(LOBBY, "UpdatePlanned").await;
        let has_both_remarks = |plan: &String| plan.contains("(one-way)") && plan.contains("the backup of the worlds");
        assert!(plans.iter().any(has_both_remarks), "{plans:?}");
        lobby.send_command("leave Alice").await;
        wait_until("the condition names the window", SHORT_LIMIT, async || match lobby.condition("Updating").await {
            Some(found) if found.message.contains("A newer Minecraft is applied in a window only") => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        let next = lobby.object().await.status.unwrap().next_window.unwrap_or_default();
        assert!(!next.contains("when empty"), "{next}");
        env.trigger_passes(LOBBY).await;
        assert_eq!(observer.runs(), 1, "{}", observer.console());
        assert!(lobby.version_set().await.paper.starts_with("1.21.10-"));
    })
    .await;
}
