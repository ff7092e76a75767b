//! Edge (writes). Tests a server whose log reports damaged worlds: it is reported, and the last earlier backup is kept.

use crds::paper_mc_server::BackupStatus;
use serde_json::json;

use super::eventually::{SHORT_LIMIT, START_LIMIT, wait_until};
use super::manifests::{BEFORE_RELEASE, LOBBY, server_with_backups, viabackwards};
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};

#[tokio::test(flavor = "multi_thread")]
async fn backup_before_damage_survives_retention() {
    in_test_env("damage", BEFORE_RELEASE, async |env| {
        let mut object = server_with_backups(LOBBY);
        object["spec"]["backup"]["retention"] = json!({"maxCount": 1});
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (before, is_marked, _) = take_backup(env, &lobby).await;
        assert!(!is_marked);

        lobby.send_command("damage").await;
        // A server that is up to date has a pass every five minutes.
        env.trigger_passes(LOBBY).await;
        let message = lobby.wait_for_condition("WorldDamaged", "True", "ReportedByLog").await;
        assert!(message.contains("`Chunk [1, 2] header is truncated: expected 4096 but read 0`"), "{message}");
        assert!(message.contains(&format!("restore-from=\"{before};overwrite\"")), "{message}");
        assert_eq!(env.wait_for_event_note(LOBBY, "WorldDamaged").await, message);

        let (after, is_marked, count) = take_backup(env, &lobby).await;
        assert!(is_marked);
        assert_eq!(count, 2, "the backup from before the damage is kept too");
        wait_until("the Event reports the damage too", SHORT_LIMIT, async || {
            let taken = env.event_notes(LOBBY, "BackupTaken").await;
            let reports_damage = |note: &String| note.starts_with(&after) && note.contains("reported damage");
            if taken.iter().any(reports_damage) { Ok(()) } else { Err(format!("{taken:?}")) }
        })
        .await;

        // The restore of the earlier worlds ends the report.
        let pod = lobby.pod().await.unwrap();
        env.annotate(LOBBY, &format!("nightshift.dev/restore-from={before};overwrite")).await;
        lobby.wait_for_new_pod(&pod).await;
        env.wait_for_event_note(LOBBY, "WorldRestored").await;
        wait_until("no damage is reported any more", START_LIMIT, async || {
            match lobby.condition("WorldDamaged").await {
                None => Ok(()),
                Some(condition) => Err(condition.message),
            }
        })
        .await;
        lobby.wait_until_stable().await;
        assert_eq!(env.event_notes(LOBBY, "WorldDamaged").await.len(), 1, "the next start reports no damage");
    })
    .await;
}

/// Requests a backup, and waits until it is taken and old ones are pruned. Returns its name, whether it is marked, and
/// the number of backups.
async fn take_backup(env: &TestEnv, lobby: &Server<'_>) -> (String, bool, u32) {
    let request = env.request_backup(LOBBY).await;
    wait_until("the backup request is handled", START_LIMIT, async || {
        let status = lobby.object().await.status.unwrap_or_default();
        let served = status.last_handled.and_then(|handled| handled.backup_now);
        let BackupStatus { last_backup, backup_count, .. } = status.backup.unwrap_or_default();
        match last_backup {
            Some(last) if served.as_ref() == Some(&request) => Ok((last.name, last.after_damage, backup_count)),
            other => Err(format!("{other:?}, served {served:?}")),
        }
    })
    .await
}
