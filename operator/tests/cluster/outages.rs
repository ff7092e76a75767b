//! Edge (writes). Tests failures around a server: a full volume, a firewall between it and the agent, and clocks that
//! differ.

use serde_json::json;

use super::eventually::{START_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::node::cut_rcon;
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;
use super::volume::SmallVolume;

#[tokio::test(flavor = "multi_thread")]
async fn full_volume_delays_update_until_space_is_free() {
    in_test_env("full-volume", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        let _small = SmallVolume::mount_for(&lobby, "96m").await;
        lobby.shell("head -c 60000000 /dev/zero > /data/filler").await;

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.set_window(ALWAYS_OPEN).await;
        let message = lobby.wait_for_condition("ArtifactsReady", "False", "NotStaged").await;
        assert!(message.contains("MiB free, these files need 1 MiB, and 64 MiB must stay free"), "{message}");
        // The window is open all the time, but the server is not stopped for missing files.
        env.trigger_passes(LOBBY).await;
        assert_eq!(lobby.version_set().await, before);
        assert_eq!(env.event_notes(LOBBY, "PlayersWarned").await, Vec::<String>::new());

        lobby.shell("rm /data/filler").await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.condition("ArtifactsReady").await, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_cannot_save_is_not_stopped_for_update() {
    in_test_env("firewall", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
        lobby.send_command("build 500").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;
        let _cut = cut_rcon(&before);
        lobby.set_window(ALWAYS_OPEN).await;

        let refused = env.wait_for_event_note(LOBBY, "SaveRefused").await;
        assert!(refused.contains("RCON at 127.0.0.1:25575 cannot be reached"), "{refused}");
        let waits = lobby.wait_for_condition("Updating", "False", "SaveRefused").await;
        assert!(waits.contains("did not confirm its save"), "{waits}");
        assert_eq!((lobby.version_set().await, observer.pods()), (version_set, 1));

        env.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.wait_for_new_pod(&before).await;
        assert!(lobby.saved_blocks().await >= 500, "no block is lost");
        observer.assert_order(&[(0, "Stopping server"), (0, "Closing Server"), (1, "Done (")]);
        wait_until_updated(env, &lobby).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_is_reported_and_blocks_stops() {
    in_test_env("clocks", BEFORE_RELEASE, async |env| {
        let mut patient = server(LOBBY, NEVER_OPEN);
        patient["spec"]["gracefulShutdown"]["timeout"] = json!("10m");
        env.apply(&[patient, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let version_set = lobby.version_set().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.send_command("join Alice").await;
        let observer = ServerObserver::start(&lobby).await;

        env.set_clock_ahead(-90).await;
        lobby.set_window(ALWAYS_OPEN).await;
        let silent = lobby.wait_for_condition("Updating", "True", "AgentUnreachable").await;
        assert!(silent.contains("about 2 minutes ahead of the operator's"), "{silent}");
        let rejected = wait_until("a condition says that the clocks differ", START_LIMIT, async || {
            env.trigger_passes(LOBBY).await;
            let found = lobby.condition("AgentRejectsRequests").await.filter(|found| found.reason == "ClocksDiffer");
            found.ok_or_else(|| "no such condition".to_owned())
        })
        .await;
        assert!(
            rejected.message.contains("At most 30 s are accepted: synchronise both clocks by NTP"),
            "{}",
            rejected.message
        );
        assert_eq!(env.wait_for_event_note(LOBBY, "AgentRejectsRequests").await, rejected.message);
        assert_eq!(
            (lobby.version_set().await, observer.pods()),
            (version_set, 1),
            "a server is not stopped while players cannot be warned"
        );

        env.set_clock_ahead(0).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.condition("AgentRejectsRequests").await, None);
        observer.assert_order(&[
            (0, "shown: "),
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (1, "Done ("),
        ]);
    })
    .await;
}
