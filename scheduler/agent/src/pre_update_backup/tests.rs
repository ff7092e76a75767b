//! Edge (writes). Checks which backup the report names as the rollback backup.

use std::collections::BTreeMap;
use std::fs;

use jiff::Timestamp;

use super::*;
use crate::staging::AppliedManifest;
use crate::volume_report::VolumeReport;
use agent_api::Contents;

/// A server with a world, and a repository beside it.
struct Server {
    _directory: tempfile::TempDir,
    volume: Volume,
    repository: BackupRepository,
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (volume, repository) =
            (Volume::new(directory.path().join("data")), BackupRepository::new(directory.path().join("copies")));
        fs::create_dir_all(volume.root().join("world/playerdata")).unwrap();
        fs::write(volume.root().join("world/level.dat"), b"level").unwrap();
        Self { _directory: directory, volume, repository }
    }

    /// The rollback backup, and whether players may have been online since.
    fn rollback_backup(&self) -> (Option<String>, bool) {
        let VolumeReport { backups, .. } = VolumeReport::read(&self.volume, Some(self.repository.root())).unwrap();
        let report = backups.unwrap();
        (report.last_of_worlds.map(|backup| backup.id), report.played_since)
    }
}

/// Takes a backup of the worlds before the version set of a lock, with this date. Returns its name.
pub(crate) fn back_up_before(volume: &Volume, repository: &BackupRepository, lock: &str, at: Timestamp) -> String {
    let worlds = Worlds::read(volume.root()).unwrap();
    let spec = BackupSpec {
        data: volume.root(),
        worlds: &worlds,
        reading: LiveReads::Offline,
        contents: Contents::Worlds,
        trigger: Trigger::BeforeUpdate,
        lock: Some("aaaaaaaa"),
        before: Some(lock),
        request: None,
        after_damage: false,
    };
    create_backup(&spec, repository, &mut Disk::new(RealFs), || at).unwrap().id
}

/// Sets the lock of the version set on the volume.
pub(crate) fn set_lock(volume: &Volume, lock: &str) {
    let (lock, minecraft) = (lock.to_owned(), "1.21.11".to_owned());
    let manifest =
        AppliedManifest { lock, previous: None, minecraft, build: 1, files: BTreeMap::new(), went_back: false };
    let path = volume.root().join(".nightshift/manifest.json");
    Disk::new(RealFs).write_record(&path, &manifest).unwrap();
}

#[test]
fn rollback_backup_matches_installed_lock_despite_later_dated_backup() {
    let server = Server::new();
    let now = clock::now();
    let hour = jiff::SignedDuration::from_hours(1);
    // Dated by a clock that was days ahead.
    let ahead = back_up_before(&server.volume, &server.repository, "aa", now + jiff::SignedDuration::from_hours(96));
    let older = back_up_before(&server.volume, &server.repository, "bb", now - hour - hour);
    let rollback_backup = back_up_before(&server.volume, &server.repository, "bb", now - hour);
    set_lock(&server.volume, "bb");
    assert_eq!(server.rollback_backup(), (Some(rollback_backup.clone()), false));
    fs::write(server.volume.root().join("world/playerdata/steve.dat"), b"steve").unwrap();
    assert_eq!(
        server.rollback_backup(),
        (Some(rollback_backup.clone()), true),
        "since that backup, not since the one dated later"
    );

    fs::write(server.repository.directory(&rollback_backup).join("archive.tar.gz"), b"cut").unwrap();
    assert_eq!(server.rollback_backup().0, Some(older));
    set_lock(&server.volume, "cc");
    assert_eq!(
        server.rollback_backup(),
        (Some(ahead), true),
        "without a backup from before that version set, the newest one is reported"
    );
}
