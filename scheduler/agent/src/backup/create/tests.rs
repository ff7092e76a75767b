//! Edge (writes). Checks backups of small servers: round trips, interruptions after each operation, damage, and malicious archives.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::backup::archive::{ARCHIVE, LIST};
use crate::backup::restore::{self, unpack};
use crate::backup::{Checksum, MAX_NAMED_FILES};
use crate::plain_fs::hostile_tree;
use crate::staging::fs_ops::RealFs;
use artifacts::Algorithm;
use scheduler::backup_retention::Retention;

/// A server's directory and a repository beside it.
struct Server {
    directory: tempfile::TempDir,
    repository: BackupRepository,
}

const LOCK: &str = "aaaaaaaa11112222";

impl Server {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = BackupRepository::new(directory.path().join("copies"));
        let server = Self { directory, repository };
        fs::create_dir(server.data()).unwrap();
        server.put_all(files);
        server
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn put(&self, path: &str, content: &[u8]) {
        let path = self.data().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn put_all(&self, files: &[(&str, &[u8])]) {
        for (path, content) in files {
            self.put(path, content);
        }
    }

    fn create_with<S: FsHook>(&self, contents: Contents, second: i64, disk: &mut Disk<S>) -> Result<Backup, Error> {
        self.create_as(contents, Trigger::BeforeUpdate, second, disk)
    }

    /// Before an update no process writes. With any other trigger the server runs.
    fn create_as<S: FsHook>(
        &self,
        contents: Contents,
        trigger: Trigger,
        second: i64,
        disk: &mut Disk<S>,
    ) -> Result<Backup, Error> {
        let data = self.data();
        let offline = trigger == Trigger::BeforeUpdate;
        let worlds = Worlds::read(&data).unwrap();
        let spec = BackupSpec {
            data: &data,
            worlds: &worlds,
            reading: if offline { LiveReads::Offline } else { LiveReads::Online },
            contents,
            trigger,
            lock: Some(LOCK),
            before: offline.then_some("bbbb"),
            request: (!offline).then_some("asked-1"),
            after_damage: false,
        };
        create_backup(&spec, &self.repository, disk, || Timestamp::from_second(1_800_000_000 + second).unwrap())
    }

    fn create(&self, contents: Contents) -> Backup {
        self.create_with(contents, 0, &mut Disk::new(RealFs)).unwrap()
    }

    fn restored(&self, backup: &Backup) -> BTreeMap<String, Vec<u8>> {
        let into = self.directory.path().join("restored");
        unpack(&self.repository, backup, &into, &mut Disk::new(RealFs)).unwrap();
        files_below(&into)
    }

    /// The good backups, each read from beginning to end.
    fn good(&self) -> Vec<String> {
        let backups = self.repository.list().unwrap().into_iter().filter_map(|stored| stored.state.ok());
        let is_whole = |backup: &Backup| {
            read_whole(&self.repository, backup)
                .unwrap_or_else(|damaged| panic!("{} is listed as good, but damaged: {damaged:?}", backup.id));
        };
        backups.inspect(is_whole).map(|backup| backup.id).collect()
    }
}

/// Reads a backup from beginning to end.
fn read_whole(repository: &BackupRepository, backup: &Backup) -> Result<(), Damaged> {
    let mut disk = Disk::new(RealFs);
    archive::read(&repository.directory(&backup.id), &backup.seal, &mut DiscardTarget { disk: &mut disk })
}

fn files_below(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(root).min_depth(1).into_iter().map(Result::unwrap);
    let named = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let entry = |entry: walkdir::DirEntry| {
        if entry.file_type().is_dir() {
            (named(entry.path()) + "/", Vec::new())
        } else {
            (named(entry.path()), fs::read(entry.path()).unwrap())
        }
    };
    entries.map(entry).collect()
}

/// Incompressible data, so that an archive takes several writes.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(byte).take(length).collect()
}

const OLD_LAYOUT: [(&str, &[u8]); 6] = [
    ("world/level.dat", b"no nbt, and a world all the same"),
    ("world/region/r.0.0.mca", b"chunks"),
    ("world/playerdata/steve.dat", b"steve"),
    ("world_nether/DIM-1/region/r.0.0.mca", b"fire"),
    ("worlds/creative/level.dat", b"another"),
    ("worlds/creative/region/r.-1.0.mca", b"blocks"),
];

const NEW_LAYOUT: [(&str, &[u8]); 4] = [
    ("survival/level.dat", b"level"),
    ("survival/dimensions/minecraft/overworld/region/r.0.0.mca", b"chunks"),
    ("survival/dimensions/skylands/high/region/r.0.0.mca", b"clouds"),
    ("survival/players/steve.dat", b"steve"),
];

const SERVER_FILES: [(&str, &[u8]); 19] = [
    (
        "server.properties",
        b"motd=hi\nrcon.password=hunter2\n# rcon.password=hunter1\nmanagement-server-secret=hunter3\nx=1\n",
    ),
    (".rcon-cli.env", b"hunter2"),
    (".rcon-cli.yaml", b"hunter2"),
    (".server.properties.a1B2c3", b"rcon.password=hunter2\n"),
    (".server.properties.nightshift-a1B2c3", b"rcon.password=hunter2\n"),
    ("plugins/Warps.jar", b"jar"),
    ("plugins/Warps/config.yml", b"x: 1"),
    ("plugins/Warps/cache/kept.db", b"a plugin's own cache folder is its own matter"),
    ("plugins/dynmap/web/tiles/0.png", b"tile"),
    ("plugins/dynmap/web/index.html", b"edited by hand"),
    ("plugins/squaremap/web/tiles/0.png", b"tile"),
    ("plugins/.paper-remapped/Warps.jar", b"remapped"),
    ("bluemap/web/maps/0.png", b"tile"),
    ("cache/mojang.jar", b"jar"),
    ("logs/latest.log", b"hunter2"),
    ("libraries/a.jar", b"jar"),
    ("lost+found/#131", b"hunter2"),
    ("versions/b.jar", b"jar"),
    (".nightshift/manifest.json", b"{}"),
];

fn files(pairs: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    pairs.iter().map(|(path, content)| ((*path).to_owned(), content.to_vec())).collect()
}

fn only_files(found: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    found
        .iter()
        .filter(|(path, _)| !path.ends_with('/'))
        .map(|(path, content)| (path.clone(), content.clone()))
        .collect()
}

#[test]
fn worlds_of_either_layout_survive_backup_and_restore_exactly() {
    for (layout, folders) in
        [(&OLD_LAYOUT[..], &["world", "world_nether", "worlds/creative"][..]), (&NEW_LAYOUT, &["survival"])]
    {
        let server = Server::new(&SERVER_FILES);
        server.put_all(layout);
        server.put(&format!("{}/session.lock", folders[0]), b"");
        fs::create_dir(server.data().join(folders[0]).join("datapacks")).unwrap();
        let backup = server.create(Contents::Worlds);
        assert_eq!(backup.folders, folders);
        let restored = server.restored(&backup);
        assert_eq!(only_files(&restored), files(layout));
        assert!(restored.contains_key(&format!("{}/datapacks/", folders[0])), "an empty directory is part of a world");
        assert_eq!(backup.seal.files, u64::try_from(layout.len()).unwrap());
    }
}

#[test]
fn server_files_backup_excludes_worlds_caches_tiles_and_secrets() {
    let server = Server::new(&SERVER_FILES);
    server.put_all(&OLD_LAYOUT);
    let backup = server.create(Contents::ServerFiles);
    let expected = [
        ("server.properties", &b"motd=hi\nx=1\n"[..]),
        ("plugins/Warps.jar", b"jar"),
        ("plugins/Warps/config.yml", b"x: 1"),
        ("plugins/Warps/cache/kept.db", b"a plugin's own cache folder is its own matter"),
        ("plugins/dynmap/web/index.html", b"edited by hand"),
    ];
    assert_eq!(only_files(&server.restored(&backup)), files(&expected));
}

#[test]
fn full_backup_holds_worlds_and_files_but_no_password() {
    let server = Server::new(&SERVER_FILES);
    server.put_all(&NEW_LAYOUT);
    let backup = server.create(Contents::Everything);
    let restored = server.restored(&backup);
    assert!(restored.contains_key("survival/level.dat") && restored.contains_key("plugins/Warps.jar"));
    let archive = fs::File::open(server.repository.directory(&backup.id).join(ARCHIVE)).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(archive), &mut bytes).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"hunter"));
}

#[test]
fn backup_of_compressed_files_is_no_larger_than_room_check_allows() {
    let noise = noise(700_000);
    let server = Server::new(&[
        ("world/level.dat", &noise[..2_000]),
        ("world/region/r.0.0.mca", &noise[..]),
        ("plugins/A.jar", &noise[..]),
    ]);
    let backup = server.create(Contents::Everything);
    let stored = |name: &str| fs::metadata(server.repository.directory(&backup.id).join(name)).unwrap().len();
    let size = stored(ARCHIVE) + stored(LIST) + stored(RECORD);
    // `world`, `world/region`, `plugins` and three files.
    let bound = space_for_backup(backup.seal.bytes, 6);
    assert!(backup.seal.bytes <= size && size <= bound, "{size} of {} bytes, at most {bound}", backup.seal.bytes);
    assert_eq!(server.restored(&backup)["world/region/r.0.0.mca"], noise);
}

#[test]
fn links_in_worlds_are_left_out_and_named() {
    let server = Server::new(&[("world/level.dat", b"level")]);
    let elsewhere = server.directory.path().join("disk2");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("r.0.0.mca"), b"chunks").unwrap();
    std::os::unix::fs::symlink(&elsewhere, server.data().join("world/region")).unwrap();
    std::os::unix::fs::symlink("nowhere", server.data().join("world/gone")).unwrap();
    let backup = server.create(Contents::Worlds);
    assert_eq!(backup.left_out, ["world/gone", "world/region"]);
    assert_eq!(only_files(&server.restored(&backup)), files(&[("world/level.dat", b"level")]));
}

#[test]
fn path_too_long_or_deep_for_other_tools_is_left_out_and_named() {
    let server = Server::new(&[("world/level.dat", b"level"), ("plugins/A/config.yml", b"x")]);
    hostile_tree::deep(&server.data().join("plugins/A/deep"), 200);
    let backup = server.create(Contents::Everything);
    assert_eq!(backup.left_out.len(), MAX_NAMED_FILES);
    assert!(backup.left_out.iter().all(|name| name.starts_with("plugins/A/deep/")), "{:?}", backup.left_out);
    let restored = server.restored(&backup);
    assert_eq!(restored["plugins/A/config.yml"], b"x");
}

#[test]
fn modes_and_times_are_restored() {
    let server = Server::new(&NEW_LAYOUT);
    let level = server.data().join("survival/level.dat");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&level).unwrap().set_modified(long_ago).unwrap();
    fs::set_permissions(&level, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    server.restored(&server.create(Contents::Worlds));
    let metadata = fs::metadata(server.directory.path().join("restored/survival/level.dat")).unwrap();
    assert_eq!(metadata.modified().unwrap(), long_ago);
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o640);
}

#[test]
fn long_and_unusual_names_are_restored() {
    let long = format!("survival/datapacks/{}/pack.mcmeta", ["a".repeat(120), "b".repeat(120)].join("/"));
    let odd = "survival/datapacks/100% ü\n.txt";
    let mut all = NEW_LAYOUT.to_vec();
    all.extend([(long.as_str(), &b"long"[..]), (odd, b"odd")]);
    let server = Server::new(&all);
    let backup = server.create(Contents::Worlds);
    assert_eq!(only_files(&server.restored(&backup)), files(&all));
}

#[test]
fn volume_without_world_gets_no_world_backup() {
    let server = Server::new(&SERVER_FILES);
    let failed = server.create_with(Contents::Worlds, 0, &mut Disk::new(RealFs)).unwrap_err();
    assert!(matches!(failed, Error::Empty), "{failed:?}");
    assert!(server.repository.list().unwrap().is_empty());
}

#[test]
fn hashes_in_file_list_match_those_of_other_tools() {
    let server = Server::new(&NEW_LAYOUT);
    let backup = server.create(Contents::Worlds);
    let directory = server.repository.directory(&backup.id);
    let hash =
        |name: &str| Algorithm::Sha256.hash(fs::File::open(directory.join(name)).unwrap()).unwrap().hex().to_owned();
    assert_eq!((backup.seal.archive_sha256.clone(), backup.seal.list_sha256.clone()), (hash(ARCHIVE), hash(LIST)));
    assert_eq!(backup.id, "20270115T080000Z-aaaaaaaa");
}

mod disk_full;
mod faults;
mod online;
