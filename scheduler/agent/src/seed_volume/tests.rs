//! Pure. Checks which backup a request for a new volume selects, and which result is recorded.

use super::*;
use crate::backup::{Checksum, FORMAT};
use crate::world::tests::set;
use agent_api::{Contents, Trigger};

fn request(id: &str) -> SeedRequest {
    SeedRequest { server: "lobby".into(), backup: id.into(), claim: "backup-lobby-0".into(), apart: false }
}

fn stored_backup(id: &str, contents: Contents, data_version: u32, minecraft: &str) -> StoredBackup {
    let seal =
        Checksum { files: 1, bytes: 1, archive_bytes: 1, archive_sha256: String::new(), list_sha256: String::new() };
    let folders = if contents.has_worlds() { vec!["world".to_owned()] } else { Vec::new() };
    let backup = Backup {
        format: FORMAT,
        id: id.into(),
        started_at: Timestamp::UNIX_EPOCH,
        completed_at: Timestamp::UNIX_EPOCH,
        trigger: Trigger::OnDemand,
        contents,
        lock: Some("a".repeat(64)),
        before: None,
        request: None,
        minecraft: Some(minecraft.into()),
        data_version: Some(data_version),
        folders,
        left_out: Vec::new(),
        changed: Vec::new(),
        after_damage: false,
        seal,
    };
    StoredBackup { id: id.into(), state: Ok(backup) }
}

/// Oldest first, as a repository lists them.
fn repository() -> Vec<StoredBackup> {
    vec![
        stored_backup("20261120T030000Z-a", Contents::Everything, 4556, "1.21.10"),
        stored_backup("20261121T030000Z-a", Contents::Worlds, 4556, "1.21.10"),
        stored_backup("20261122T030000Z-a", Contents::ServerFiles, 4556, "1.21.10"),
    ]
}

fn select_id(id: &str, listed: &[StoredBackup]) -> Result<String, String> {
    let chosen = select(&request(id), listed, &set("1.21.10", Some(4556)));
    chosen.map(|backup| backup.id).map_err(|error| error.to_string())
}

#[test]
fn seed_uses_newest_backup_with_worlds_or_named_one() {
    assert_eq!(select_id("latest", &repository()).unwrap(), "20261121T030000Z-a");
    assert_eq!(select_id("20261120T030000Z-a", &repository()).unwrap(), "20261120T030000Z-a");
    let why = select_id("20261119T030000Z-a", &repository()).unwrap_err();
    assert_eq!(
        why,
        "there is no backup `20261119T030000Z-a` of `lobby` on the claim `backup-lobby-0`. The newest backups with \
        worlds: 20261121T030000Z-a, 20261120T030000Z-a"
    );
    let why = select_id("20261122T030000Z-a", &repository()).unwrap_err();
    assert!(why.contains("has no worlds. The newest backups with worlds: 20261121T030000Z-a"), "{why}");
}

#[test]
fn damaged_newest_backup_is_not_skipped_silently() {
    let mut listed = repository();
    let id = "20261123T030000Z-a".to_owned();
    let why = "`archive.tar.gz` has 3 bytes".to_owned();
    listed.push(StoredBackup { id, state: Err(IgnoredBackup { why, unread: None }) });
    for id in ["latest", "20261123T030000Z-a"] {
        let why = select_id(id, &listed).unwrap_err();
        assert!(why.contains("`20261123T030000Z-a` cannot be used: `archive.tar.gz` has 3 bytes"), "{why}");
        assert!(why.ends_with("with worlds: 20261121T030000Z-a, 20261120T030000Z-a"), "{why}");
    }
    assert_eq!(select_id("20261121T030000Z-a", &listed).unwrap(), "20261121T030000Z-a", "a named backup is used");
}

#[test]
fn unreadable_newest_backup_is_retried_for_seed() {
    let unread = |stored: StoredBackup| {
        let unread = Some(Box::new(stored.state.unwrap()));
        StoredBackup { id: stored.id, state: Err(IgnoredBackup { why: "could not be read".into(), unread }) }
    };
    let mut listed = repository();
    listed.push(unread(stored_backup("20261123T030000Z-a", Contents::Worlds, 4556, "1.21.10")));
    listed.push(unread(stored_backup("20261124T030000Z-a", Contents::ServerFiles, 4556, "1.21.10")));
    assert_eq!(select_id("latest", &listed).unwrap(), "20261123T030000Z-a");
    assert_eq!(select_id("20261123T030000Z-a", &listed).unwrap(), "20261123T030000Z-a");
    let why = select_id("20261124T030000Z-a", &listed).unwrap_err();
    assert!(why.contains("has no worlds. The newest backups with worlds: 20261121T030000Z-a, "), "{why}");
}

#[test]
fn older_minecraft_is_never_started_on_newer_backup() {
    let mut listed = repository();
    listed.push(stored_backup("20261123T030000Z-b", Contents::Worlds, 4671, "1.21.11"));
    let why = select_id("latest", &listed).unwrap_err();
    assert!(why.starts_with("Minecraft 1.21.10 would start"), "{why}");
    assert!(why.contains("Choose 1.21.11 or newer"), "{why}");
}

#[test]
fn restore_outcome_is_written_once_with_its_restored_backup() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let filled = || {
        let (set_aside, request) = (String::new(), Some(NEW_VOLUME_REQUEST.to_owned()));
        Some(Restored { at: at(5), id: "x".into(), set_aside, request, everything: true, after_damage: false })
    };
    let unfilled = new_result(request("latest"), None, None, at(7)).unwrap();
    assert_eq!((unfilled.backup.as_deref(), unfilled.at), (None, at(7)));
    let was_filled = new_result(request("latest"), None, filled(), at(7)).unwrap();
    assert_eq!((was_filled.backup.as_deref(), was_filled.at), (Some("x"), at(5)));
    let earlier = SeedResult { at: at(4), ..unfilled.clone() };
    let then_filled = new_result(request("20261120T030000Z-a"), Some(&earlier), filled(), at(7)).unwrap();
    assert_eq!(then_filled.backup.as_deref(), Some("x"), "its world was removed, and another request came");
    for previous in [&unfilled, &was_filled] {
        assert_eq!(new_result(request("latest"), Some(previous), filled(), at(9)), None);
        let another = new_result(request("20261120T030000Z-a"), Some(previous), filled(), at(9)).unwrap();
        assert_eq!(another.backup, None, "the volume already had its world at that request");
    }
}
