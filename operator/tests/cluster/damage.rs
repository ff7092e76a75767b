//! Edge (writes). Tests a server whose log reports damaged worlds: it is reported, and the last earlier backup is kept.

use crds::paper_mc_server::BackupStatus;
use serde_json::json;

use super::manifests::{BEFORE, LOBBY, server_with_copies, viabackwards};
use super::server::Server;
use super::wait::{A_START, SOON, until};
use super::world::{World, in_a_world};

#[tokio::test(flavor = "multi_thread")]
async fn backup_before_damage_survives_retention() {
    in_a_world("damage", BEFORE, async |world| {
        let mut object = server_with_copies(LOBBY);
        object["spec"]["backup"]["retention"] = json!({"maxCount": 1});
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (before, is_marked, _) = copy(world, &lobby).await;
        assert!(!is_marked);

        lobby.order("damage").await;
        // A server that is up to date has a pass every five minutes.
        world.look_again(LOBBY).await;
        let message = lobby.condition_is("WorldDamaged", "True", "ReportedByLog").await;
        assert!(message.contains("`Chunk [1, 2] header is truncated: expected 4096 but read 0`"), "{message}");
        assert!(message.contains(&format!("restore-from=\"{before};overwrite\"")), "{message}");
        assert_eq!(world.note(LOBBY, "WorldDamaged").await, message);

        let (after, is_marked, count) = copy(world, &lobby).await;
        assert!(is_marked);
        assert_eq!(count, 2, "one is kept, and the one from before");
        until("the Event about it says so too", SOON, async || {
            let taken = world.notes(LOBBY, "BackupTaken").await;
            let says = |note: &String| note.starts_with(&after) && note.contains("told of damage");
            if taken.iter().any(says) { Ok(()) } else { Err(format!("{taken:?}")) }
        })
        .await;

        // The restore of the earlier worlds ends the report.
        let pod = lobby.pod().await.unwrap();
        world.annotate(LOBBY, &format!("nightshift.dev/restore-from={before};overwrite")).await;
        lobby.back_after(&pod).await;
        world.note(LOBBY, "WorldRestored").await;
        until("nothing is told of damage any more", A_START, async || match lobby.condition("WorldDamaged").await {
            None => Ok(()),
            Some(condition) => Err(condition.message),
        })
        .await;
        lobby.settled().await;
        assert_eq!(world.notes(LOBBY, "WorldDamaged").await.len(), 1, "its next start tells of nothing");
    })
    .await;
}

/// Requests a backup, and waits until it is taken and old ones are pruned. Returns its name, whether it is marked, and
/// the number of backups.
async fn copy(world: &World, lobby: &Server<'_>) -> (String, bool, u32) {
    let asked = world.ask_for_a_copy(LOBBY).await;
    until("the request for a copy is served", A_START, async || {
        let status = lobby.object().await.status.unwrap_or_default();
        let served = status.last_handled.and_then(|handled| handled.backup_now);
        let BackupStatus { last_backup, backup_count, .. } = status.backup.unwrap_or_default();
        match last_backup {
            Some(last) if served.as_ref() == Some(&asked) => Ok((last.name, last.after_damage, backup_count)),
            other => Err(format!("{other:?}, served {served:?}")),
        }
    })
    .await
}
