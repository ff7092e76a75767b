//! Edge (writes). Checks which of three backups are kept while a restore request names the oldest.

use std::fs;

use super::*;
use crate::backup::LiveReads;
use crate::backup::create::{BackupSpec, create_backup};
use crate::pre_update_backup::tests::{back_up_before, set_lock};
use crate::staging::fs_ops::RealFs;
use crate::world::Worlds;
use agent_api::Restored;
use agent_api::restore::{NO_SET, RequestedRestore, RestoreRejection, USER_RESTORE_KEY};
use agent_api::signed::{Document, signature_key};
use agent_api::{Contents, Trigger};

/// A server with three backups of its worlds, and a limit of one.
struct Server {
    directory: tempfile::TempDir,
    volume: Volume,
    repository: BackupRepository,
    retention: RetentionInput,
    /// Oldest first.
    backups: [String; 3],
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("data/world/region")).unwrap();
        fs::write(at("data/world/level.dat"), b"level").unwrap();
        let (volume, repository) = (Volume::new(at("data")), BackupRepository::new(at("copies")));
        let worlds = Worlds::read(volume.root()).unwrap();
        let spec = BackupSpec {
            data: volume.root(),
            worlds: &worlds,
            reading: LiveReads::Offline,
            contents: Contents::Worlds,
            trigger: Trigger::OnDemand,
            lock: Some("aaaaaaaa"),
            before: None,
            request: None,
            after_damage: false,
        };
        let backups = [0, 60, 120].map(|second| {
            let clock = || Timestamp::from_second(1_800_000_000 + second).unwrap();
            create_backup(&spec, &repository, &mut Disk::new(RealFs), clock).unwrap().id
        });
        let restore_requests = Some(SignedRequests::at(at("orders/restore.json")));
        fs::create_dir(at("orders")).unwrap();
        let retention = RetentionInput {
            retention: Some(retention(1, None, RepositoryVolume::Backups)),
            restore_requests,
            retained_backup: None,
            volume: volume.clone(),
        };
        Self { directory, volume, repository, retention, backups }
    }

    fn request_oldest(&self, not_after: Timestamp) {
        self.request_oldest_for(&"a".repeat(64), not_after);
    }

    fn request_oldest_for(&self, to: &str, not_after: Timestamp) {
        let restore_request = RequestedRestore {
            request: "asked-1".to_owned(),
            to: to.to_owned(),
            backup: self.backups[0].clone(),
            overwrite: true,
            everything: false,
            not_after,
        };
        self.write_request(&restore_request);
    }

    /// A backup from before the version set of a lock, with this date.
    fn back_up_before(&self, lock: &str, second: i64) -> String {
        back_up_before(&self.volume, &self.repository, lock, Timestamp::from_second(1_800_000_000 + second).unwrap())
    }

    fn write_request(&self, request: &impl serde::Serialize) {
        self.retention.restore_requests.as_ref().unwrap().write(Document::UserRestore, request);
    }

    /// The remaining backups when another one is about to be taken.
    fn remaining(&self) -> Vec<String> {
        self.retention.prune(&self.repository, None, &mut Disk::new(RealFs));
        self.repository.list().unwrap().into_iter().map(|backup| backup.id).collect()
    }
}

#[test]
fn prune_removes_only_excess_before_next_backup_exists() {
    let mut server = Server::new();
    server.retention.retention = None;
    assert_eq!(server.remaining(), server.backups, "no limit is configured");
    server.retention.retention = Some(retention(2, None, RepositoryVolume::Backups));
    for _ in ["when it is tried", "when it is tried again"] {
        assert_eq!(server.remaining(), server.backups[1..], "a backup does not count before it exists");
    }
    server.retention.retention = Some(retention(1, None, RepositoryVolume::Backups));
    assert_eq!(server.remaining(), server.backups[2..]);
}

#[test]
fn room_counts_backups_that_are_removed_before_the_next() {
    let mut server = Server::new();
    let size = |id: &String| {
        let files = fs::read_dir(server.repository.directory(id)).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let oldest: u64 = server.backups[..2].iter().map(size).sum();
    assert_eq!(server.retention.removable_bytes(&server.repository), oldest);
    server.retention.retention = Some(retention(3, None, RepositoryVolume::Backups));
    assert_eq!(server.retention.removable_bytes(&server.repository), 0, "all three stay");
    assert_eq!(server.repository.list().unwrap().len(), 3, "none was removed");
}

#[test]
fn backup_awaited_by_restore_request_is_kept_until_outcome() {
    let executed = |server: &Server| {
        let done = Restored {
            at: clock::now(),
            id: server.backups[0].clone(),
            set_aside: String::new(),
            request: Some("asked-1".to_owned()),
            everything: false,
            after_damage: false,
        };
        Disk::new(RealFs).write_record(&server.volume.restored_path(), &done).unwrap();
    };
    let refused = |server: &Server| {
        let refused = RestoreRejection { request: "asked-1".to_owned(), at: clock::now(), why: "no room".to_owned() };
        Disk::new(RealFs).write_record(&server.volume.restore_refused_path(), &refused).unwrap();
    };
    for resolve in [&executed as &dyn Fn(&Server), &refused] {
        let server = Server::new();
        server.request_oldest(clock::now() + SignedDuration::from_hours(1));
        let [oldest, _, newest] = &server.backups;
        assert_eq!(server.remaining(), [oldest.clone(), newest.clone()]);
        resolve(&server);
        assert_eq!(server.remaining(), std::slice::from_ref(newest));
    }
}

#[test]
fn backup_is_kept_for_restore_request_without_lock() {
    let server = Server::new();
    server.request_oldest_for(NO_SET, clock::now() + SignedDuration::from_hours(1));
    let [oldest, _, newest] = &server.backups;
    assert_eq!(server.remaining(), [oldest.clone(), newest.clone()]);
}

#[test]
fn sidecar_keeps_requested_backup_until_its_deadline() {
    let mut server = Server::new();
    server.retention.restore_requests = None;
    let [oldest, _, newest] = server.backups.clone();
    server.retention.retained_backup =
        Some(ProtectBackup { backup: oldest.clone(), until: clock::now() + SignedDuration::from_hours(1) });
    assert_eq!(server.remaining(), [oldest.clone(), newest.clone()]);
    server.retention.retained_backup = Some(ProtectBackup { backup: oldest, until: clock::now() });
    assert_eq!(server.remaining(), [newest]);
}

#[test]
fn unreadable_restore_request_keeps_all_backups_unlike_expired_one() {
    let server = Server::new();
    server.write_request(&serde_json::json!({"request": "asked-1"}));
    assert_eq!(server.remaining(), server.backups);
    server.request_oldest(clock::now());
    assert_eq!(server.remaining(), server.backups[2..]);
}

#[test]
fn unsigned_restore_request_keeps_no_backup() {
    let server = Server::new();
    server.request_oldest(clock::now() + SignedDuration::from_hours(1));
    let orders = server.directory.path().join("orders");
    fs::remove_file(orders.join(signature_key(USER_RESTORE_KEY))).unwrap();
    assert_eq!(server.remaining(), server.backups[2..]);
}

#[test]
fn rollback_backup_of_installed_lock_outlives_later_dated_one() {
    let server = Server::new();
    let (rollback_backup, ahead) = (server.back_up_before("bb", 30), server.back_up_before("aa", 900_000));
    set_lock(&server.volume, "bb");
    assert_eq!(server.remaining(), [rollback_backup.clone(), ahead.clone()]);
    // The disk could not read it. It is the only one from before that version set.
    fs::write(server.repository.directory(&rollback_backup).join("unread.txt"), "a bad sector\n").unwrap();
    assert_eq!(server.remaining(), [rollback_backup, ahead.clone()]);
    set_lock(&server.volume, "cc");
    assert_eq!(server.remaining(), [ahead], "another version set was applied since");
}

#[test]
fn unknown_installed_lock_keeps_all_backups() {
    let server = Server::new();
    fs::create_dir(server.volume.root().join(".nightshift")).unwrap();
    fs::write(server.volume.root().join(".nightshift/manifest.json"), "{}").unwrap();
    assert_eq!(server.remaining(), server.backups);
}
