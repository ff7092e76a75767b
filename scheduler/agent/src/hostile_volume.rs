//! Edge (writes). Attacks the agent through the volume, as a plugin can: each named attack, and generated volumes. Everything beside the volume must
//! stay as it is, and must not get onto it.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use artifacts::{Algorithm, Hasher};
use flate2::read::GzDecoder;
use jiff::Timestamp;

use crate::backup::create::{BackupSpec, create_backup};
use crate::backup::repository::BackupRepository;
use crate::backup::restore::{self, RestorePart, RestoreTarget};
use crate::backup::{Backup, LiveReads};
use crate::config::BackupConfig;
use crate::plain_fs::hostile_tree::{Canary, Random, has_canary, spoil};
use crate::plain_fs::refused_in;
use crate::prune::RetentionInput;
use crate::signed_requests::SignedRequests;
use crate::staging::Volume;
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::hash_cache::HashCache;
use crate::staging::jar_descriptor::tests::jar;
use crate::staging::swap::{self, SwapReport};
use crate::staging::volume_store::{self, VolumeStore};
use crate::volume_report::VolumeReport;
use crate::world::Worlds;
use crate::world::damage::DamageLog;
use crate::world::session_lock::SessionLocks;
use crate::{plugin_data, seed_volume, server_log, server_properties};
use agent_api::restore::SeedRequest;
use agent_api::signed::Document;
use agent_api::{Contents, File, FileHash, FileSet, Trigger};

mod generated;

/// A server's volume, the tree beside it, and the server's own backups.
struct Server {
    directory: tempfile::TempDir,
    volume: Volume,
    canary: Canary,
    repository: BackupRepository,
    /// What runs, and the next version set.
    sets: [FileSet; 2],
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (volume, canary) =
            (Volume::new(directory.path().join("data")), Canary::new(directory.path().join("canary")));
        for (path, content) in [
            ("world/level.dat", "level"),
            ("world/region/r.0.0.mca", "chunks"),
            ("world_nether/level.dat", "level"),
            ("plugins/Demo/config.yml", "a: 1"),
            ("server.properties", "motd=x\n"),
            ("bukkit.yml", "settings: {}\n"),
            ("config/paper-global.yml", "_version: 29\n"),
            ("logs/latest.log", "[12:00:04] [Server thread/INFO]: Starting minecraft server version 1.21.10\n"),
        ] {
            let path = volume.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let repository = BackupRepository::new(directory.path().join("copies/lobby"));
        let server = Self { directory, volume, canary, repository, sets: ['a', 'b'].map(set) };
        server.fill_store(&server.sets[0]).unwrap();
        server.swap(&server.sets[0]).unwrap();
        server.fill_store(&server.sets[1]).unwrap();
        server
    }

    fn path(&self, path: &str) -> PathBuf {
        self.volume.root().join(path)
    }

    /// Replaces an item of the volume by a link.
    fn link(&self, path: &str, target: &Path) {
        let link = self.path(path);
        if link.is_dir() {
            fs::remove_dir_all(&link).unwrap();
        } else {
            drop(fs::remove_file(&link));
        }
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }

    fn fill_store(&self, set: &FileSet) -> Result<(), volume_store::Error> {
        let store = VolumeStore::new(self.volume.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for file in store.missing(set, &mut HashCache::default())? {
            let mut incoming = store.begin(&file)?;
            let received = runtime.block_on(async {
                incoming.write(&content(&file, set)).await?;
                incoming.finish().await
            });
            volume_store::keep(&file, received.unwrap())?;
        }
        store.mark_staged(set)
    }

    fn swap(&self, set: &FileSet) -> Result<SwapReport, swap::Error> {
        swap::swap(&self.volume, set, &mut HashCache::default(), &mut Disk::new(RealFs))
    }

    fn back_up(
        &self,
        worlds: &Worlds,
        reading: LiveReads,
        second: i64,
    ) -> Result<Backup, crate::backup::create::Error> {
        let spec = BackupSpec {
            data: self.volume.root(),
            worlds,
            reading,
            contents: Contents::Everything,
            trigger: Trigger::BeforeUpdate,
            lock: Some(&self.sets[0].lock),
            before: Some(&self.sets[1].lock),
            request: None,
            after_damage: false,
        };
        create_backup(&spec, &self.repository, &mut Disk::new(RealFs), || at(second))
    }

    /// The content of the archives, without their compression.
    fn archived(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for stored in self.repository.list().unwrap() {
            let archive = fs::File::open(self.repository.directory(&stored.id).join("archive.tar.gz")).unwrap();
            GzDecoder::new(archive).read_to_end(&mut all).unwrap();
        }
        all
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn content(file: &File, set: &FileSet) -> Vec<u8> {
    let version = &set.lock[..1];
    match &file.plugin {
        Some(name) => jar(&[("plugin.yml", &format!("name: {name}\nversion: {version}\nmain: a.B\n"))]),
        None => jar(&[("version.json", version)]),
    }
}

fn set(lock: char) -> FileSet {
    let file = |path: &str, plugin: Option<&str>| File {
        path: path.into(),
        hash: FileHash(String::new()),
        size: None,
        url: String::new(),
        plugin: plugin.map(str::to_owned),
        provides: Vec::new(),
    };
    let mut set = FileSet {
        lock: lock.to_string().repeat(64),
        minecraft: "1.21.10".into(),
        build: if lock == 'a' { 1 } else { 2 },
        data_version: None,
        server: file(".nightshift/server/paper.jar", None),
        support: vec![],
        plugins: vec![file("plugins/Demo.jar", Some("Demo"))],
    };
    let hash = |file: &File, set: &FileSet| {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(&content(file, set));
        FileHash(hasher.finish().to_string())
    };
    set.server.hash = hash(&set.server, &set);
    set.plugins[0].hash = hash(&set.plugins[0], &set);
    set
}

/// The path below the volume that an error refuses.
fn refused_path(server: &Server, error: &(dyn std::error::Error + 'static)) -> String {
    let refused = refused_in(error).unwrap_or_else(|| panic!("not a refusal: {error}"));
    refused.path.strip_prefix(&format!("{}/", server.volume.root().display())).unwrap_or(&refused.path).to_owned()
}

#[test]
fn linked_store_deletes_no_file_of_others() {
    for (path, target) in [
        (".nightshift/store", ""),
        (".nightshift/store/sha256", "sha256"),
        (".nightshift/store/unfinished", "unfinished"),
    ] {
        let server = Server::new();
        server.link(path, &server.canary.path().join(target));
        let store = VolumeStore::new(server.volume.clone());
        match store.prune() {
            Ok(removed) => assert_eq!((path, removed), (".nightshift/store/unfinished", 0), "only the link is removed"),
            Err(error) => assert_eq!(refused_path(&server, &error), path),
        }
        drop(store.prune_for_worlds());
        drop(store.staged(None));
        drop(server.fill_store(&server.sets[1]));
        server.canary.assert_untouched(path);
    }
}

#[test]
fn linked_temporary_name_of_record_overwrites_no_file() {
    let server = Server::new();
    for name in [".manifest.json.nightshift", ".journal.json.nightshift"] {
        server.link(&format!(".nightshift/{name}"), &server.canary.path().join("secret.txt"));
    }
    server.link("plugins/.Demo.jar.nightshift", &server.canary.path().join("plugins/Demo.jar"));
    assert_eq!(server.swap(&server.sets[1]).unwrap().placed.len(), 2);
    server.canary.assert_untouched("records were written");
    assert_eq!(server.volume.manifest().unwrap().unwrap().lock, server.sets[1].lock);
}

#[test]
fn link_in_world_brings_no_backup_of_others_into_archive() {
    let server = Server::new();
    server.link("world/datapacks", &server.canary.path().join("backups/other"));
    server.link("world/region/r.0.1.mca", &server.canary.path().join("world/region/r.0.0.mca"));
    server.link("plugins/Demo/messages.yml", &server.canary.path().join("secret.txt"));
    let worlds = Worlds::read(server.volume.root()).unwrap();
    let backup = server.back_up(&worlds, LiveReads::Offline, 0).unwrap();
    assert_eq!(backup.left_out, ["world/datapacks", "world/region/r.0.1.mca", "plugins/Demo/messages.yml"]);
    assert!(!has_canary(&server.archived()));
    server.canary.assert_untouched("a backup");
}

#[test]
fn linked_properties_are_neither_read_nor_written() {
    let server = Server::new();
    server.link("server.properties", Path::new("/proc/self/environ"));
    let password = "secret".into();
    let rcon = server_properties::Rcon { enabled: true, port: 25575, password: &password };
    let error = server_properties::write(server.volume.root(), rcon).unwrap_err();
    assert_eq!(refused_path(&server, &error), "server.properties");
    assert_eq!(refused_path(&server, &Worlds::read(server.volume.root()).unwrap_err()), "server.properties");
    assert!(server.path("server.properties").is_symlink());
}

#[test]
fn linked_plugins_directory_gets_no_managed_jar() {
    let server = Server::new();
    server.link("plugins", &server.canary.path().join("plugins"));
    assert_eq!(refused_path(&server, &server.swap(&server.sets[1]).unwrap_err()), "plugins");
    server.canary.assert_untouched("a swap");
}

#[test]
fn linked_managed_jar_is_displaced_and_not_followed() {
    let server = Server::new();
    server.link("plugins/Demo.jar", &server.canary.path().join("plugins/Demo.jar"));
    let swapped = server.swap(&server.sets[1]).unwrap();
    assert_eq!(swapped.displaced, [("plugins/Demo.jar".to_owned(), ".nightshift/replaced/Demo.jar".to_owned())]);
    assert!(server.path("plugins/Demo.jar").symlink_metadata().unwrap().is_file());
    server.canary.assert_untouched("a swap");
}

#[test]
fn forged_restore_journal_moves_no_file_out_of_volume() {
    let server = Server::new();
    for set_aside in ["../canary", "/tmp", ".nightshift/set-aside/..", ".nightshift/set-aside", "plugins"] {
        let done = serde_json::json!({"at": "2026-11-22T03:00:00Z", "id": "x", "setAside": set_aside});
        let journal = serde_json::json!({"done": done, "aside": ["world"], "comes": []});
        fs::write(server.volume.restore_journal_path(), journal.to_string()).unwrap();
        let error = restore::finish(&server.volume, &mut Disk::new(RealFs)).unwrap_err();
        assert!(matches!(error, restore::Error::Journal { .. }), "{set_aside}: {error:?}");
        assert!(server.path("world/level.dat").exists());
    }
    server.canary.assert_untouched("a forged journal");
}
