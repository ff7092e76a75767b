//! Edge (writes). Tests online backups: on request and scheduled.

use crds::paper_mc_server::{BackupContents, BackupStatus, BackupTrigger};
use serde_json::json;

use super::eventually::{SHORT_LIMIT, START_LIMIT, wait_until};
use super::manifests::{BEFORE_RELEASE, LOBBY, server_with_backups, viabackwards};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;

#[tokio::test(flavor = "multi_thread")]
async fn online_backup_runs_on_request_then_on_schedule() {
    in_test_env("hot-backup", BEFORE_RELEASE, async |env| {
        env.apply(&[server_with_backups(LOBBY), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.join_seven_players().await;
        lobby.send_command("build 1000").await;
        let observer = ServerObserver::start(&lobby).await;

        let request = env.request_backup(LOBBY).await;
        let note = env.wait_for_event_note(LOBBY, "BackupTaken").await;
        assert!(note.contains("worlds, settings and plugins") && note.contains("while the server ran"), "{note}");
        let first = wait_until("the status names the backup and its request", SHORT_LIMIT, async || {
            let status = lobby.object().await.status.unwrap_or_default();
            let served = status.last_handled.and_then(|handled| handled.backup_now);
            match status.backup.and_then(|backup| backup.last_backup) {
                Some(last) if served.as_ref() == Some(&request) => Ok(last),
                other => Err(format!("{other:?}, served {served:?}")),
            }
        })
        .await;
        assert_eq!((first.trigger, first.contents), (BackupTrigger::OnDemand, BackupContents::Everything));
        assert!(note.starts_with(&first.name), "{note}");
        lobby.wait_for_condition("BackupReady", "True", "Ready").await;
        assert!(lobby.saved_blocks().await >= 1000, "the built blocks are on the disk");
        assert_ne!(lobby.reported_state().await["saving"], false, "autosave is on again");

        // A request that was served has no effect, also when it is removed and written again.
        env.annotate(LOBBY, "nightshift.dev/backup-now-").await;
        env.annotate(LOBBY, &format!("nightshift.dev/backup-now={request}")).await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(env.event_notes(LOBBY, "BackupTaken").await, [note]);

        lobby.patch_spec(json!({"backup": {"schedule": {"cron": "* * * * *", "contents": "Worlds"}}})).await;
        let scheduled =
            wait_until("a scheduled backup is taken", START_LIMIT, async || match backup_status(&lobby).await {
                BackupStatus { last_backup: Some(last), next_backup: Some(next), .. } if last.name != first.name => {
                    Ok((last, next))
                }
                other => Err(format!("{other:?}")),
            })
            .await;
        let (second, next) = scheduled;
        assert_eq!((second.trigger, second.contents), (BackupTrigger::Scheduled, BackupContents::Worlds));
        assert!(second.started_at < next, "{second:?}, and next {next}");
        lobby.wait_for_condition("BackupCronValid", "True", "BackupCronScheduleConfigured").await;

        // It passes the schema, and blocks only scheduled backups.
        lobby.patch_spec(json!({"backup": {"schedule": {"cron": "0 0 30 2 *"}}})).await;
        let why = lobby.wait_for_condition("BackupCronValid", "False", "InvalidBackupCronExpression").await;
        assert!(why.starts_with("spec.backup.schedule.cron: `0 0 30 2 *` never occurs"), "{why}");
        assert_eq!(env.wait_for_event_note(LOBBY, "InvalidBackupCronExpression").await, why);
        lobby.wait_for_condition("Resolved", "True", "Solved").await;
        lobby.patch_spec(json!({"backup": {"schedule": null}})).await;
        wait_until("no backup is scheduled, and autosave is on again", SHORT_LIMIT, async || {
            let (next, saving) =
                (backup_status(&lobby).await.next_backup, lobby.reported_state().await["saving"].clone());
            if next.is_none() && saving != false { Ok(()) } else { Err(format!("{next:?}, saving: {saving}")) }
        })
        .await;

        assert_eq!((observer.pods(), observer.runs()), (1, 1), "the server was not restarted:\n{}", observer.console());
        assert_eq!(lobby.reported_state().await["players"].as_array().unwrap().len(), 7, "no player was disconnected");
        for reason in ["BackupFailed", "PlayersWarned", "RequestRefused"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_backup_skips_server_without_players() {
    in_test_env("hot-backup-played", BEFORE_RELEASE, async |env| {
        let mut object = server_with_backups(LOBBY);
        object["spec"]["backup"]["schedule"] =
            json!({"cron": "* * * * *", "contents": "Worlds", "onlyIf": {"played": true}});
        env.apply(&[object]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        // There is no backup yet, so the first scheduled time takes one.
        let (first, scheduled) =
            wait_until("a first backup exists, and another is scheduled", START_LIMIT, async || {
                let BackupStatus { last_backup, next_backup, .. } = backup_status(&lobby).await;
                let both = last_backup.clone().zip(next_backup).filter(|(last, next)| last.started_at < *next);
                both.ok_or_else(|| format!("{last_backup:?}, next {next_backup:?}"))
            })
            .await;
        wait_until("the time has passed, and the next one is scheduled", START_LIMIT, async || {
            let next = backup_status(&lobby).await.next_backup;
            if next.is_some_and(|next| next > scheduled) { Ok(()) } else { Err(format!("{next:?}")) }
        })
        .await;
        assert_eq!(backup_status(&lobby).await.last_backup.as_ref(), Some(&first), "no player was on the server");

        lobby.join_seven_players().await;
        wait_until("another backup is taken", START_LIMIT, async || match backup_status(&lobby).await.last_backup {
            Some(last) if last.name != first.name && last.started_at >= scheduled => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        assert_eq!(env.event_notes(LOBBY, "BackupTaken").await.len(), 2, "no backup in between");
    })
    .await;
}

async fn backup_status(server: &Server<'_>) -> BackupStatus {
    server.object().await.status.unwrap_or_default().backup.unwrap_or_default()
}
