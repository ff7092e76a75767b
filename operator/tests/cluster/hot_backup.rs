//! Edge (writes). Tests online backups: on request and scheduled.

use crds::paper_mc_server::{BackupContents, BackupStatus, BackupTrigger};
use serde_json::json;

use super::manifests::{BEFORE, LOBBY, server_with_copies, viabackwards};
use super::server::Server;
use super::wait::{A_START, SOON, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn online_backup_runs_on_request_then_on_schedule() {
    in_a_world("hot-backup", BEFORE, async |world| {
        world.apply(&[server_with_copies(LOBBY), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join().await;
        lobby.order("build 1000").await;
        let witness = ServerObserver::of(&lobby).await;

        let asked = world.ask_for_a_copy(LOBBY).await;
        let note = world.note(LOBBY, "BackupTaken").await;
        assert!(note.contains("worlds, settings and plugins") && note.contains("while the server ran"), "{note}");
        let first = until("the status names the copy, and whose request it served", SOON, async || {
            let status = lobby.object().await.status.unwrap_or_default();
            let served = status.last_handled.and_then(|handled| handled.backup_now);
            match status.backup.and_then(|backup| backup.last_backup) {
                Some(last) if served.as_ref() == Some(&asked) => Ok(last),
                other => Err(format!("{other:?}, served {served:?}")),
            }
        })
        .await;
        assert_eq!((first.trigger, first.contents), (BackupTrigger::OnDemand, BackupContents::Everything));
        assert!(note.starts_with(&first.name), "{note}");
        lobby.condition_is("BackupReady", "True", "Ready").await;
        assert!(lobby.saved_blocks().await >= 1000, "what was built is on the disk");
        assert_ne!(lobby.says().await["saving"], false, "saving is on again");

        // A request that was served has no effect, also when it is removed and written again.
        world.annotate(LOBBY, "nightshift.dev/backup-now-").await;
        world.annotate(LOBBY, &format!("nightshift.dev/backup-now={asked}")).await;
        world.look_again(LOBBY).await;
        assert_eq!(world.notes(LOBBY, "BackupTaken").await, [note]);

        lobby.change(json!({"backup": {"schedule": {"cron": "* * * * *", "contents": "Worlds"}}})).await;
        let by_the_clock = until("a copy is taken by the clock", A_START, async || match backup(&lobby).await {
            BackupStatus { last_backup: Some(last), next_backup: Some(next), .. } if last.name != first.name => {
                Ok((last, next))
            }
            other => Err(format!("{other:?}")),
        })
        .await;
        let (second, next) = by_the_clock;
        assert_eq!((second.trigger, second.contents), (BackupTrigger::Scheduled, BackupContents::Worlds));
        assert!(second.started_at < next, "{second:?}, and next {next}");
        lobby.condition_is("BackupCronValid", "True", "BackupCronScheduleConfigured").await;

        // It passes the schema, and blocks only scheduled backups.
        lobby.change(json!({"backup": {"schedule": {"cron": "0 0 30 2 *"}}})).await;
        let why = lobby.condition_is("BackupCronValid", "False", "InvalidBackupCronExpression").await;
        assert!(why.starts_with("spec.backup.schedule: `0 0 30 2 *` never happens"), "{why}");
        assert_eq!(world.note(LOBBY, "InvalidBackupCronExpression").await, why);
        lobby.condition_is("Resolved", "True", "Solved").await;
        lobby.change(json!({"backup": {"schedule": null}})).await;
        until("no instant is promised any more, and saving is on again", SOON, async || {
            let (next, saving) = (backup(&lobby).await.next_backup, lobby.says().await["saving"].clone());
            if next.is_none() && saving != false { Ok(()) } else { Err(format!("{next:?}, saving: {saving}")) }
        })
        .await;

        assert_eq!((witness.pods(), witness.runs()), (1, 1), "it went on running:\n{}", witness.console());
        assert_eq!(lobby.says().await["players"].as_array().unwrap().len(), 7, "nobody was disconnected");
        for reason in ["BackupFailed", "PlayersWarned", "RequestRefused"] {
            assert_eq!(world.notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_backup_skips_server_without_players() {
    in_a_world("hot-backup-played", BEFORE, async |world| {
        let mut object = server_with_copies(LOBBY);
        object["spec"]["backup"]["schedule"] =
            json!({"cron": "* * * * *", "contents": "Worlds", "onlyIf": {"played": true}});
        world.apply(&[object]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        // There is no backup yet, so the first scheduled time takes one.
        let (first, promised) = until("there is a first copy, and another is promised", A_START, async || {
            let BackupStatus { last_backup, next_backup, .. } = backup(&lobby).await;
            let both = last_backup.clone().zip(next_backup).filter(|(last, next)| last.started_at < *next);
            both.ok_or_else(|| format!("{last_backup:?}, next {next_backup:?}"))
        })
        .await;
        until("the instant has passed, and the one after it is promised", A_START, async || {
            let next = backup(&lobby).await.next_backup;
            if next.is_some_and(|next| next > promised) { Ok(()) } else { Err(format!("{next:?}")) }
        })
        .await;
        assert_eq!(backup(&lobby).await.last_backup.as_ref(), Some(&first), "nobody has been on");

        lobby.seven_join().await;
        until("what they play is copied", A_START, async || match backup(&lobby).await.last_backup {
            Some(last) if last.name != first.name && last.started_at >= promised => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        assert_eq!(world.notes(LOBBY, "BackupTaken").await.len(), 2, "no copy in between");
    })
    .await;
}

async fn backup(server: &Server<'_>) -> BackupStatus {
    server.object().await.status.unwrap_or_default().backup.unwrap_or_default()
}
