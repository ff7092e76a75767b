//! Edge (writes). Tests restores at a user's request, which need the explicit word `overwrite`.

use crds::paper_mc_server::{RestoreHandled, RestoreResult};
use serde_json::json;

use super::eventually::{SHORT_LIMIT, START_LIMIT, UPDATE_LIMIT, wait_until};
use super::kubectl::run;
use super::manifests::{
    ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server_with_backups, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

/// A file in the world that identifies it.
pub(super) const MARKER: &str = "/data/world/marker.txt";

#[tokio::test(flavor = "multi_thread")]
async fn requested_restore_runs_once_and_needs_overwrite() {
    in_test_env("restore", BEFORE_RELEASE, async |env| {
        env.apply(&[server_with_backups(LOBBY), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.send_command("build 1000").await;
        lobby.put_file(MARKER, b"then").await;

        let backup_name = env.take_first_backup(LOBBY).await;
        lobby.put_file(MARKER, b"now").await;
        lobby.join_seven_players().await;
        let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
        let observer = ServerObserver::start(&lobby).await;

        for (request, expected) in [
            (backup_name.clone(), format!("`{backup_name};overwrite`")),
            ("latest;please".to_owned(), "`;overwrite`".to_owned()),
            (
                "20200101T000000Z-aaaaaaaa;overwrite".to_owned(),
                format!("the newest backups with worlds are: {backup_name}"),
            ),
        ] {
            env.annotate(LOBBY, &format!("nightshift.dev/restore-from={request}")).await;
            let handled = wait_until_handled(&lobby, &request).await;
            assert_eq!(handled.result, Some(RestoreResult::Refused), "{handled:?}");
            assert!(handled.message.unwrap().contains(&expected), "{request}");
            wait_until("the condition reports the refusal", SHORT_LIMIT, async || {
                match lobby.condition("RestoreRequested").await {
                    Some(found) if found.reason == "Refused" && found.message.contains(&expected) => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
            let notes = env.event_notes(LOBBY, "RequestRefused").await;
            assert!(notes.iter().any(|note| note.contains(&expected)), "{notes:?}");
        }
        env.trigger_passes(LOBBY).await;
        assert_eq!((observer.pods(), observer.runs()), (1, 1), "the server was not stopped:\n{}", observer.console());
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "now");

        let request = format!("{backup_name};overwrite");
        env.annotate(LOBBY, &format!("nightshift.dev/restore-from={request}")).await;
        let after = lobby.wait_for_new_pod(&before).await;
        let handled = wait_until_handled(&lobby, &request).await;
        assert_eq!(
            (handled.result, handled.backup.as_ref()),
            (Some(RestoreResult::Restored), Some(&backup_name)),
            "{handled:?}"
        );
        lobby.wait_until_restarted(&observer).await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then");
        assert!(lobby.saved_blocks().await >= 1000, "blocks from before the backup are there");
        assert_eq!(lobby.version_set().await, version_set, "the version set is the same");
        let restored = wait_until("the status names the restore", SHORT_LIMIT, async || {
            let backup = lobby.object().await.status.unwrap_or_default().backup;
            backup.and_then(|backup| backup.last_restore).ok_or_else(|| "no lastRestore".to_owned())
        })
        .await;
        assert_eq!(restored.name, backup_name);
        let displaced = lobby.shell(&format!("cat /data/{}/world/marker.txt", restored.set_aside)).await;
        assert_eq!(displaced, "now", "the replaced worlds are kept");
        assert!(env.wait_for_event_note(LOBBY, "WorldRestored").await.contains(&restored.set_aside));
        assert!(env.wait_for_event_note(LOBBY, "RestartStarted").await.contains(&backup_name));

        // A request that was served has no further effect, neither in a later pass nor with a new pod.
        lobby.put_file(MARKER, b"later").await;
        env.trigger_passes(LOBBY).await;
        env.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.wait_for_new_pod(&after).await;
        lobby.wait_until_stable().await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "later");
        assert_eq!(env.event_notes(LOBBY, "WorldRestored").await.len(), 1);
        for reason in ["UpdateStarted", "UpdateFailed", "RestoreFailed"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_command_restores_old_world_on_old_lock() {
    in_test_env("would-lose", OLDER_MINECRAFT, async |env| {
        env.apply(&[server_with_backups(LOBBY), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        lobby.put_file(MARKER, b"then").await;
        // The player's file is newer than any backup, which means that a player was on the server since.
        lobby
            .shell("mkdir -p /data/world/playerdata && touch -d '2037-01-01 00:00:00' /data/world/playerdata/a.dat")
            .await;
        lobby.send_command("fault plugin-fails ViaVersion if 1.21.11").await;
        env.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.wait_until_planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS_OPEN).await;

        let message =
            wait_until("the user has to decide", UPDATE_LIMIT, async || match lobby.condition("Updating").await {
                Some(found) if found.reason == "RollbackWouldLoseProgress" => Ok(found.message),
                other => Err(format!("{other:?}")),
            })
            .await;
        let failed = lobby.version_set().await;
        assert!(failed.paper.starts_with("1.21.11-"), "{failed:?}");
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then", "no backup was restored");
        lobby.put_file(MARKER, b"built since").await;
        let observer = ServerObserver::start(&lobby).await;
        let backup_name = lobby.object().await.status.unwrap().backup.unwrap().last_backup.unwrap().name;

        // The user may take days. Meanwhile backups can be taken, and the reported command stays valid.
        lobby.take_next_backup(&backup_name).await;

        // The reported command must work.
        let (_, command) = message.split_once("run `").expect("a command is reported");
        let (command, _) = command.split_once('`').unwrap();
        assert!(command.starts_with("kubectl -n ") && command.contains(&backup_name), "{command}");
        run("sh", &["-c", command], "").await;
        let request = format!("{backup_name};overwrite");
        let handled = wait_until_handled(&lobby, &request).await;
        assert_eq!(
            (handled.result, handled.backup.as_ref()),
            (Some(RestoreResult::Restored), Some(&backup_name)),
            "{handled:?}"
        );
        lobby.wait_for_condition("Updating", "False", "Held").await;
        assert_eq!(lobby.version_set().await, before, "the old version set runs");
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then", "the old world is restored");
        let restored = lobby.object().await.status.unwrap().backup.unwrap().last_restore.unwrap();
        let displaced = lobby.shell(&format!("cat /data/{}/world/marker.txt", restored.set_aside)).await;
        assert_eq!((restored.name, displaced.as_str()), (backup_name.clone(), "built since"), "old worlds are kept");
        assert!(env.wait_for_event_note(LOBBY, "UpdateRolledBack").await.contains(&backup_name));
        observer.assert_order(&[
            (0, "All dimensions are saved"),
            (0, "Closing Server"),
            (1, "Starting minecraft server version 1.21.10"),
            (1, "Done ("),
        ]);

        // The window is open all the time: the failed update is not tried again, and the backup is not restored again.
        env.trigger_passes(LOBBY).await;
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "one restart:\n{}", observer.console());
        assert_eq!(env.event_notes(LOBBY, "WorldRestored").await.len(), 1);
        for reason in ["RestoreFailed", "RequestRefused"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_restore_backup_survives_update_backup() {
    in_test_env("named-backup", OLDER_MINECRAFT, async |env| {
        let mut object = server_with_backups(LOBBY);
        object["spec"]["backup"]["retention"] = json!({"maxCount": 2});
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.put_file(MARKER, b"then").await;
        let backup_name = env.take_first_backup(LOBBY).await;
        lobby.put_file(MARKER, b"now").await;
        lobby.take_next_backup(&backup_name).await;

        // With the backup of the update there are three, and the requested one is the oldest.
        env.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.wait_until_planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS_OPEN).await;
        env.wait_for_event_note(LOBBY, "PlayersWarned").await;
        let request = format!("{backup_name};overwrite");
        env.annotate(LOBBY, &format!("nightshift.dev/restore-from={request}")).await;
        wait_until_updated(env, &lobby).await;
        let handled = wait_until_handled(&lobby, &request).await;
        assert_eq!(handled.result, Some(RestoreResult::Restored), "{handled:?}");
        lobby.wait_until_stable().await;
        let version_set = lobby.version_set().await;
        assert!(version_set.paper.starts_with("1.21.11-"), "the update is applied first: {version_set:?}");
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then");
    })
    .await;
}

impl Server<'_> {
    /// Requests a backup and waits for it. `newest` is the newest one before.
    async fn take_next_backup(&self, newest: &str) {
        self.env.request_backup(&self.name).await;
        wait_until("another backup is taken", START_LIMIT, async || {
            let backup = self.object().await.status.unwrap_or_default().backup.unwrap_or_default();
            match backup.last_backup {
                Some(last) if last.name != newest => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}

/// Waits for the result of a restore request.
pub(super) async fn wait_until_handled(server: &Server<'_>, request: &str) -> RestoreHandled {
    wait_until(&format!("the request `{request}` is handled"), UPDATE_LIMIT, async || {
        let handled = server.object().await.status.unwrap_or_default().last_handled;
        match handled.and_then(|handled| handled.restore_from) {
            Some(handled) if handled.asked == request && handled.result.is_some() => Ok(handled),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}
