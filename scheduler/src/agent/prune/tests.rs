//! Edge (writes). Checks which of three backups are kept while a restore request names the oldest.

use std::fs;

use super::*;
use crate::agent::pre_update_backup::tests::{copied_before, has};
use crate::backup::create::{BackupSpec, take};
use crate::backup::{Contents, LiveReads, Trigger};
use crate::protocol::Restored;
use crate::protocol::restore::{ASKED_ORDER, AskedRestore, NOBODY, RestoreRefused};
use crate::staging::fs_ops::RealFs;
use crate::world::Worlds;

/// A server with three backups of its worlds, and a limit of one.
struct Server {
    directory: tempfile::TempDir,
    volume: Volume,
    shelf: BackupRepository,
    keeping: RetentionInput,
    /// Oldest first.
    copies: [String; 3],
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("data/world/region")).unwrap();
        fs::write(at("data/world/level.dat"), b"level").unwrap();
        let (volume, shelf) = (Volume::new(at("data")), BackupRepository::new(at("copies")));
        let worlds = Worlds::read(volume.root()).unwrap();
        let order = BackupSpec {
            data: volume.root(),
            worlds: &worlds,
            reading: LiveReads::Still,
            contents: Contents::Worlds,
            trigger: Trigger::OnDemand,
            lock: Some("aaaaaaaa"),
            before: None,
            request: None,
            after_damage: false,
        };
        let copies = [0, 60, 120].map(|second| {
            let clock = || Timestamp::from_second(1_800_000_000 + second).unwrap();
            take(&order, &shelf, &mut Disk::new(RealFs), clock).unwrap().id
        });
        let orders = Some(at("orders/restore.json"));
        fs::create_dir(at("orders")).unwrap();
        let keeping =
            RetentionInput { retention: Some(retention(1, None)), orders, kept: None, volume: volume.clone() };
        Self { directory, volume, shelf, keeping, copies }
    }

    fn orders_the_oldest(&self, not_after: Timestamp) {
        self.orders_the_oldest_to(&"a".repeat(64), not_after);
    }

    fn orders_the_oldest_to(&self, to: &str, not_after: Timestamp) {
        let order = AskedRestore {
            request: "asked-1".to_owned(),
            to: to.to_owned(),
            copy: self.copies[0].clone(),
            overwrite: true,
            everything: false,
            not_after,
        };
        self.writes_order(&serde_json::to_string(&order).unwrap());
    }

    /// A backup from before the version set of a lock, with this date.
    fn copied_before(&self, lock: &str, second: i64) -> String {
        copied_before(&self.volume, &self.shelf, lock, Timestamp::from_second(1_800_000_000 + second).unwrap())
    }

    fn writes_order(&self, text: &str) {
        fs::write(self.directory.path().join("orders").join(ASKED_ORDER), text).unwrap();
    }

    /// The remaining backups when another one is about to be taken.
    fn left(&self) -> Vec<String> {
        self.keeping.prune(&self.shelf, None, &mut Disk::new(RealFs));
        self.shelf.list().unwrap().into_iter().map(|copy| copy.id).collect()
    }
}

#[test]
fn prune_removes_only_excess_before_next_backup_exists() {
    let mut server = Server::new();
    server.keeping.retention = None;
    assert_eq!(server.left(), server.copies, "nobody said how many");
    server.keeping.retention = Some(retention(2, None));
    for _ in ["when it is tried", "when it is tried again"] {
        assert_eq!(server.left(), server.copies[1..], "the next one takes no place before it is there");
    }
    server.keeping.retention = Some(retention(1, None));
    assert_eq!(server.left(), server.copies[2..]);
}

#[test]
fn backup_awaited_by_restore_request_is_kept_until_outcome() {
    let obeyed = |server: &Server| {
        let done = Restored {
            at: clock::now(),
            id: server.copies[0].clone(),
            set_aside: String::new(),
            request: Some("asked-1".to_owned()),
            everything: false,
            after_damage: false,
        };
        Disk::new(RealFs).write_record(&server.volume.restored_path(), &done).unwrap();
    };
    let refused = |server: &Server| {
        let refused = RestoreRefused { request: "asked-1".to_owned(), at: clock::now(), why: "no room".to_owned() };
        Disk::new(RealFs).write_record(&server.volume.restore_refused_path(), &refused).unwrap();
    };
    for comes in [&obeyed as &dyn Fn(&Server), &refused] {
        let server = Server::new();
        server.orders_the_oldest(clock::now() + SignedDuration::from_hours(1));
        let [oldest, _, newest] = &server.copies;
        assert_eq!(server.left(), [oldest.clone(), newest.clone()]);
        comes(&server);
        assert_eq!(server.left(), std::slice::from_ref(newest));
    }
}

#[test]
fn backup_is_kept_for_restore_request_without_lock() {
    let server = Server::new();
    server.orders_the_oldest_to(NOBODY, clock::now() + SignedDuration::from_hours(1));
    let [oldest, _, newest] = &server.copies;
    assert_eq!(server.left(), [oldest.clone(), newest.clone()]);
}

#[test]
fn sidecar_keeps_requested_backup_until_its_deadline() {
    let mut server = Server::new();
    server.keeping.orders = None;
    let [oldest, _, newest] = server.copies.clone();
    server.keeping.kept = Some(KeepCopy { copy: oldest.clone(), until: clock::now() + SignedDuration::from_hours(1) });
    assert_eq!(server.left(), [oldest.clone(), newest.clone()]);
    server.keeping.kept = Some(KeepCopy { copy: oldest, until: clock::now() });
    assert_eq!(server.left(), [newest]);
}

#[test]
fn unreadable_restore_request_keeps_all_backups_unlike_expired_one() {
    let server = Server::new();
    server.writes_order(r#"{"request": "asked-1"}"#);
    assert_eq!(server.left(), server.copies);
    server.orders_the_oldest(clock::now());
    assert_eq!(server.left(), server.copies[2..]);
}

#[test]
fn rollback_backup_of_installed_lock_outlives_later_dated_one() {
    let server = Server::new();
    let (way_back, ahead) = (server.copied_before("bb", 30), server.copied_before("aa", 900_000));
    has(&server.volume, "bb");
    assert_eq!(server.left(), [way_back.clone(), ahead.clone()]);
    // The disk could not read it. It is the only one from before that version set.
    fs::write(server.shelf.directory(&way_back).join("unread.txt"), "a bad sector\n").unwrap();
    assert_eq!(server.left(), [way_back, ahead.clone()]);
    has(&server.volume, "cc");
    assert_eq!(server.left(), [ahead], "another set has come since");
}

#[test]
fn unknown_installed_lock_keeps_all_backups() {
    let server = Server::new();
    fs::create_dir(server.volume.root().join(".nightshift")).unwrap();
    fs::write(server.volume.root().join(".nightshift/manifest.json"), "{}").unwrap();
    assert_eq!(server.left(), server.copies);
}
