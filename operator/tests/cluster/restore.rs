//! Edge (writes). Tests restores at a user's request, which need the explicit word `overwrite`.

use crds::paper_mc_server::{RestoreHandled, RestoreResult};
use serde_json::json;

use super::kubectl::run;
use super::manifests::{ALWAYS, BEFORE, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server_with_copies, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{A_START, AN_UPDATE, SOON, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

/// A file in the world that identifies it.
pub(super) const MARKER: &str = "/data/world/marker.txt";

#[tokio::test(flavor = "multi_thread")]
async fn requested_restore_runs_once_and_needs_overwrite() {
    in_a_world("restore", BEFORE, async |world| {
        world.apply(&[server_with_copies(LOBBY), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.order("build 1000").await;
        lobby.put_file(MARKER, b"then").await;

        let copy = world.first_copy(LOBBY).await;
        lobby.put_file(MARKER, b"now").await;
        lobby.seven_join().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        let witness = ServerObserver::of(&lobby).await;

        for (asked, says) in [
            (copy.clone(), format!("`{copy};overwrite`")),
            ("latest;please".to_owned(), "`;overwrite`".to_owned()),
            ("20200101T000000Z-aaaaaaaa;overwrite".to_owned(), format!("the newest ones with worlds are: {copy}")),
        ] {
            world.annotate(LOBBY, &format!("nightshift.dev/restore-from={asked}")).await;
            let handled = over(&lobby, &asked).await;
            assert_eq!(handled.result, Some(RestoreResult::Refused), "{handled:?}");
            assert!(handled.message.unwrap().contains(&says), "{asked}");
            until("the condition says so too", SOON, async || match lobby.condition("RestoreRequested").await {
                Some(found) if found.reason == "Refused" && found.message.contains(&says) => Ok(()),
                other => Err(format!("{other:?}")),
            })
            .await;
            let told = world.notes(LOBBY, "RequestRefused").await;
            assert!(told.iter().any(|note| note.contains(&says)), "{told:?}");
        }
        world.look_again(LOBBY).await;
        assert_eq!((witness.pods(), witness.runs()), (1, 1), "nothing was stopped:\n{}", witness.console());
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "now");

        let asked = format!("{copy};overwrite");
        world.annotate(LOBBY, &format!("nightshift.dev/restore-from={asked}")).await;
        let after = lobby.back_after(&before).await;
        let handled = over(&lobby, &asked).await;
        assert_eq!(
            (handled.result, handled.copy.as_ref()),
            (Some(RestoreResult::Restored), Some(&copy)),
            "{handled:?}"
        );
        lobby.restarted(&witness).await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then");
        assert!(lobby.saved_blocks().await >= 1000, "what was built before the copy is there");
        assert_eq!(lobby.set().await, set, "it is the same set");
        let restored = until("the status names the restore", SOON, async || {
            let backup = lobby.object().await.status.unwrap_or_default().backup;
            backup.and_then(|backup| backup.last_restore).ok_or_else(|| "no lastRestore".to_owned())
        })
        .await;
        assert_eq!(restored.name, copy);
        let aside = lobby.shell(&format!("cat /data/{}/world/marker.txt", restored.set_aside)).await;
        assert_eq!(aside, "now", "set aside, not deleted");
        assert!(world.note(LOBBY, "WorldRestored").await.contains(&restored.set_aside));
        assert!(world.note(LOBBY, "RestartStarted").await.contains(&copy));

        // A request that was served has no further effect, neither in a later pass nor with a new pod.
        lobby.put_file(MARKER, b"later").await;
        world.look_again(LOBBY).await;
        world.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.back_after(&after).await;
        lobby.settled().await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "later");
        assert_eq!(world.notes(LOBBY, "WorldRestored").await.len(), 1);
        for reason in ["UpdateStarted", "UpdateFailed", "RestoreFailed"] {
            assert_eq!(world.notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_command_restores_old_world_on_old_lock() {
    in_a_world("would-lose", OLDER_MINECRAFT, async |world| {
        world.apply(&[server_with_copies(LOBBY), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        lobby.put_file(MARKER, b"then").await;
        // The player's file is newer than any backup, which means that a player was on the server since.
        lobby
            .shell("mkdir -p /data/world/playerdata && touch -d '2037-01-01 00:00:00' /data/world/playerdata/a.dat")
            .await;
        lobby.order("fault plugin-fails ViaVersion if 1.21.11").await;
        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS).await;

        let told = until("a person has to decide", AN_UPDATE, async || match lobby.condition("Updating").await {
            Some(found) if found.reason == "RollbackWouldLoseProgress" => Ok(found.message),
            other => Err(format!("{other:?}")),
        })
        .await;
        let failed = lobby.set().await;
        assert!(failed.paper.starts_with("1.21.11-"), "{failed:?}");
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then", "nothing was put back");
        lobby.put_file(MARKER, b"built since").await;
        let witness = ServerObserver::of(&lobby).await;
        let copy = lobby.object().await.status.unwrap().backup.unwrap().last_backup.unwrap().name;

        // The user may take days. Meanwhile backups can be taken, and the reported command stays valid.
        lobby.next_copy(&copy).await;

        // The reported command must work.
        let (_, command) =
            told.split_once('`').and_then(|(_, rest)| rest.split_once("by `")).expect("a command is told");
        let (command, _) = command.split_once('`').unwrap();
        assert!(command.starts_with("kubectl -n ") && command.contains(&copy), "{command}");
        run("sh", &["-c", command], "").await;
        let asked = format!("{copy};overwrite");
        let handled = over(&lobby, &asked).await;
        assert_eq!(
            (handled.result, handled.copy.as_ref()),
            (Some(RestoreResult::Restored), Some(&copy)),
            "{handled:?}"
        );
        lobby.condition_is("Updating", "False", "Held").await;
        assert_eq!(lobby.set().await, before, "the old set");
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then", "the old world");
        let restored = lobby.object().await.status.unwrap().backup.unwrap().last_restore.unwrap();
        let aside = lobby.shell(&format!("cat /data/{}/world/marker.txt", restored.set_aside)).await;
        assert_eq!((restored.name, aside.as_str()), (copy.clone(), "built since"), "set aside, not deleted");
        assert!(world.note(LOBBY, "UpdateRolledBack").await.contains(&copy));
        witness.assert_order(&[
            (0, "All dimensions are saved"),
            (0, "Closing Server"),
            (1, "Starting minecraft server version 1.21.10"),
            (1, "Done ("),
        ]);

        // The window is open all the time: the failed update is not tried again, and the backup is not restored again.
        world.look_again(LOBBY).await;
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "one restart:\n{}", witness.console());
        assert_eq!(world.notes(LOBBY, "WorldRestored").await.len(), 1);
        for reason in ["RestoreFailed", "RequestRefused"] {
            assert_eq!(world.notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_restore_backup_survives_update_backup() {
    in_a_world("named-copy", OLDER_MINECRAFT, async |world| {
        let mut object = server_with_copies(LOBBY);
        object["spec"]["backup"]["retention"] = json!({"maxCount": 2});
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.put_file(MARKER, b"then").await;
        let copy = world.first_copy(LOBBY).await;
        lobby.put_file(MARKER, b"now").await;
        lobby.next_copy(&copy).await;

        // With the backup of the update there are three, and the requested one is the oldest.
        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS).await;
        world.note(LOBBY, "PlayersWarned").await;
        let asked = format!("{copy};overwrite");
        world.annotate(LOBBY, &format!("nightshift.dev/restore-from={asked}")).await;
        updated(world, &lobby).await;
        let handled = over(&lobby, &asked).await;
        assert_eq!(handled.result, Some(RestoreResult::Restored), "{handled:?}");
        lobby.settled().await;
        let set = lobby.set().await;
        assert!(set.paper.starts_with("1.21.11-"), "the update went first: {set:?}");
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then");
    })
    .await;
}

impl Server<'_> {
    /// Requests a backup and waits for it. `newest` is the newest one before.
    async fn next_copy(&self, newest: &str) {
        self.world.ask_for_a_copy(&self.name).await;
        until("another copy is taken", A_START, async || {
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
pub(super) async fn over(server: &Server<'_>, asked: &str) -> RestoreHandled {
    until(&format!("something has come of `{asked}`"), AN_UPDATE, async || {
        let handled = server.object().await.status.unwrap_or_default().last_handled;
        match handled.and_then(|handled| handled.restore_from) {
            Some(handled) if handled.asked == asked && handled.result.is_some() => Ok(handled),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}
