//! Edge (writes). Checks which backup the report names as the rollback backup.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::agent::volume_report::VolumeReport;
use crate::backup::Contents;
use crate::staging::StagedManifest;

/// A server with a world, and a repository beside it.
struct Server {
    _directory: tempfile::TempDir,
    volume: Volume,
    shelf: BackupRepository,
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (volume, shelf) =
            (Volume::new(directory.path().join("data")), BackupRepository::new(directory.path().join("copies")));
        fs::create_dir_all(volume.root().join("world/playerdata")).unwrap();
        fs::write(volume.root().join("world/level.dat"), b"level").unwrap();
        Self { _directory: directory, volume, shelf }
    }

    /// The rollback backup, and whether players may have been online since.
    fn way_back(&self) -> (Option<String>, bool) {
        let VolumeReport { backups, .. } = VolumeReport::read(&self.volume, Some(self.shelf.root())).unwrap();
        let seen = backups.unwrap();
        (seen.last_of_worlds.map(|copy| copy.id), seen.played_since)
    }
}

/// Takes a backup of the worlds before the version set of a lock, with this date. Returns its name.
pub(in crate::agent) fn copied_before(volume: &Volume, shelf: &BackupRepository, lock: &str, at: Timestamp) -> String {
    let worlds = Worlds::read(volume.root()).unwrap();
    let order = BackupSpec {
        data: volume.root(),
        worlds: &worlds,
        reading: LiveReads::Still,
        contents: Contents::Worlds,
        trigger: Trigger::BeforeUpdate,
        lock: Some("aaaaaaaa"),
        before: Some(lock),
        request: None,
        after_damage: false,
    };
    take(&order, shelf, &mut Disk::new(RealFs), || at).unwrap().id
}

/// Sets the lock of the version set on the volume.
pub(in crate::agent) fn has(volume: &Volume, lock: &str) {
    let (lock, minecraft) = (lock.to_owned(), "1.21.11".to_owned());
    let manifest =
        StagedManifest { lock, previous: None, minecraft, build: 1, files: BTreeMap::new(), went_back: false };
    let path = volume.root().join(".nightshift/manifest.json");
    Disk::new(RealFs).write_record(&path, &manifest).unwrap();
}

#[test]
fn rollback_backup_matches_installed_lock_despite_later_dated_backup() {
    let server = Server::new();
    let now = clock::now();
    let hour = jiff::SignedDuration::from_hours(1);
    // Dated by a clock that was days ahead.
    let ahead = copied_before(&server.volume, &server.shelf, "aa", now + jiff::SignedDuration::from_hours(96));
    let older = copied_before(&server.volume, &server.shelf, "bb", now - hour - hour);
    let way_back = copied_before(&server.volume, &server.shelf, "bb", now - hour);
    has(&server.volume, "bb");
    assert_eq!(server.way_back(), (Some(way_back.clone()), false));
    fs::write(server.volume.root().join("world/playerdata/steve.dat"), b"steve").unwrap();
    assert_eq!(server.way_back(), (Some(way_back.clone()), true), "since that copy, not since the one dated later");

    fs::write(server.shelf.directory(&way_back).join("archive.tar.gz"), b"cut").unwrap();
    assert_eq!(server.way_back().0, Some(older));
    has(&server.volume, "cc");
    assert_eq!(
        server.way_back(),
        (Some(ahead), true),
        "there is none from before that set: the newest of all, of no known age"
    );
}
