//! Edge (writes). Checks restores of worlds, interrupted after each operation.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::backup::LiveReads;
use crate::backup::create::{BackupSpec, create_backup};
use crate::plain_fs::refused_in;
use crate::staging::fs_ops::RealFs;
use agent_api::{Contents, Trigger};

const OLD: [(&str, &[u8]); 5] = [
    ("world/level.dat", b"old"),
    ("world/region/r.0.0.mca", b"old chunks"),
    ("world_nether/DIM-1/region/r.0.0.mca", b"old fire"),
    ("worlds/creative/level.dat", b"old"),
    ("worlds/minigames/map1/level.dat", b"old"),
];

/// The files after a newer Minecraft: moved, overwritten, one folder emptied, and one new.
const NEW: [(&str, &[u8]); 5] = [
    ("world/level.dat", b"new"),
    ("world/dimensions/minecraft/overworld/region/r.0.0.mca", b"new chunks"),
    ("worlds/creative/level.dat", b"new"),
    ("worlds/minigames/map1/level.dat", b"new"),
    ("fresh/level.dat", b"new"),
];

const OTHER: [(&str, &[u8]); 2] = [("server.properties", b"motd=x\n"), ("plugins/Warps.jar", b"jar")];

/// A new volume on which a start failed before it created a world.
const NEW_VOLUME: [(&str, &[u8]); 2] = [("cache/mojang.jar", b"jar"), ("server.properties", b"motd=z\n")];

mod failing;

struct Crash {
    left: usize,
}

impl FsHook for Crash {
    fn before_operation(&mut self, _what: &'static str, _path: &Path) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power went"))?;
        Ok(())
    }
}

struct Server {
    directory: tempfile::TempDir,
    volume: Volume,
    repository: BackupRepository,
    backup: Backup,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn put(root: &Path, files: &[(&str, &[u8])]) {
    for (path, content) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Server {
    /// A server that is backed up, and then changed by a newer Minecraft.
    fn new(contents: Contents) -> Self {
        Self::backed_up_with(contents, &[])
    }

    /// The same, with additional files at the time of the backup.
    fn backed_up_with(contents: Contents, more: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let volume = Volume::new(directory.path().join("data"));
        let repository = BackupRepository::new(directory.path().join("copies"));
        put(volume.root(), &OLD);
        put(volume.root(), &OTHER);
        put(volume.root(), more);
        let backup = back_up(&volume, &repository, contents, 0);
        fs::remove_dir_all(volume.root().join("world")).unwrap();
        fs::remove_dir_all(volume.root().join("world_nether/DIM-1")).unwrap();
        put(volume.root(), &NEW);
        Self { directory, volume, repository, backup }
    }

    fn restore(&self, disk: &mut Disk<impl FsHook>, second: i64) -> Result<Restored, Error> {
        self.restore_part(RestorePart::Worlds, disk, second)
    }

    fn restore_part(&self, part: RestorePart, disk: &mut Disk<impl FsHook>, second: i64) -> Result<Restored, Error> {
        let worlds = Worlds::read(self.volume.root()).unwrap();
        let target = RestoreTarget { part, request: None };
        restore(&self.repository, &self.backup, &self.volume, &worlds, target, disk, at(second))
    }

    /// Replaces the volume by a new one that contains only the files of a failed start.
    fn replace_volume(&self) {
        fs::remove_dir_all(self.volume.root()).unwrap();
        put(self.volume.root(), &NEW_VOLUME);
    }

    /// The displaced files of all restores.
    fn displaced(&self) -> BTreeMap<String, Vec<u8>> {
        let Ok(places) = fs::read_dir(self.volume.displaced_dir()) else { return BTreeMap::new() };
        places.flat_map(|directory| files_below(&directory.unwrap().path())).collect()
    }

    /// All files outside of Nightshift's own.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files_below(self.volume.root()).into_iter().filter(|(path, _)| !path.starts_with(".nightshift/")).collect()
    }
}

fn back_up(volume: &Volume, repository: &BackupRepository, contents: Contents, second: i64) -> Backup {
    let worlds = Worlds::read(volume.root()).unwrap();
    let spec = BackupSpec {
        data: volume.root(),
        worlds: &worlds,
        reading: LiveReads::Offline,
        contents,
        trigger: Trigger::BeforeUpdate,
        lock: Some("aaaaaaaa"),
        before: Some("bb"),
        request: None,
        after_damage: false,
    };
    create_backup(&spec, repository, &mut Disk::new(RealFs), || at(second)).unwrap()
}

fn files_below(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    files.map(|file| (name(file.path()), fs::read(file.path()).unwrap())).collect()
}

fn files(parts: &[&[(&str, &[u8])]]) -> BTreeMap<String, Vec<u8>> {
    parts.iter().flat_map(|part| part.iter()).map(|(path, content)| ((*path).to_owned(), content.to_vec())).collect()
}

#[test]
fn restored_worlds_equal_backup_without_newer_layout_files() {
    for contents in [Contents::Worlds, Contents::Everything] {
        let server = Server::new(contents);
        fs::write(server.volume.root().join("server.properties"), b"motd=y\n").unwrap();
        let done = server.restore(&mut Disk::new(RealFs), 60).unwrap();
        let mut expected = files(&[&OLD, &OTHER]);
        expected.insert("server.properties".into(), b"motd=y\n".to_vec());
        assert_eq!(server.files(), expected, "files outside of worlds must not change");
        assert_eq!(done.set_aside, ".nightshift/set-aside/20270115T080100Z");
        assert_eq!(files_below(&server.volume.root().join(&done.set_aside)), files(&[&NEW]), "displaced, not deleted");
        assert!(!server.volume.restoring_dir().exists() && !server.volume.restore_journal_path().exists());
        assert_eq!(read_record::<Restored>(&server.volume.restored_path()).unwrap(), Some(done));
    }
}

#[test]
fn restore_first_removes_leftovers_of_failed_restore() {
    let server = Server::new(Contents::Worlds);
    let large = 1 << 43;
    assert!(available_space(&server.volume).unwrap() < large, "the test volume has less free space");
    put(&server.volume.restoring_dir(), &[("world/region/r.0.0.mca", b"half")]);
    let left = server.volume.restoring_dir().join("world/region/r.0.0.mca");
    // Zeros, which take no space themselves.
    File::options().write(true).open(left).unwrap().set_len(large).unwrap();
    assert!(available_space(&server.volume).unwrap() > large);
}

#[test]
fn restore_without_space_changes_no_file_and_reports_need() {
    let mut server = Server::new(Contents::Worlds);
    server.backup.seal.bytes = 1 << 60;
    let error = server.restore(&mut Disk::new(RealFs), 60).unwrap_err();
    assert!(
        matches!(error, Error::Full { free, needed, .. } if needed == 1 << 60 && free < space_needed(needed)),
        "{error}"
    );
    assert_eq!(server.files(), files(&[&NEW, &OTHER]));
}

#[test]
fn interrupted_restore_leaves_old_worlds_or_a_journal() {
    for left in 0.. {
        let server = Server::new(Contents::Worlds);
        let ended = server.restore(&mut Disk::new(Crash { left }), 60).is_ok();
        if !server.volume.restore_journal_path().exists() && !ended {
            let (old, new) = (files(&[&OLD, &OTHER]), files(&[&NEW, &OTHER]));
            let found = server.files();
            assert!(found == old || found == new, "mixed worlds without a journal, after {left} operations");
        }
        // The next init container finds the journal and is interrupted too. The one after it finishes the restore.
        let _ = finish(&server.volume, &mut Disk::new(Crash { left: left % 7 }));
        let finished = finish(&server.volume, &mut Disk::new(RealFs)).unwrap();
        assert!(!server.volume.restore_journal_path().exists());
        if finished.is_none() && server.files() == files(&[&NEW, &OTHER]) {
            server.restore(&mut Disk::new(RealFs), 120).unwrap();
        }
        assert_eq!(server.files(), files(&[&OLD, &OTHER]), "resumed after {left} operations");
        assert_eq!(server.displaced(), files(&[&NEW]), "no file is lost, after {left} operations");
        if ended {
            assert!(left > 40, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn full_restore_replaces_everything_but_regenerated_files() {
    let server = Server::new(Contents::Everything);
    put(
        server.volume.root(),
        &[("cache/mojang.jar", b"jar"), ("plugins/Chat/config.yml", b"new"), ("notes.txt", b"new")],
    );
    let secret: [(&str, &[u8]); 1] = [(".server.properties.swp", b"rcon.password=x")];
    put(server.volume.root(), &secret);
    fs::write(server.volume.root().join("server.properties"), b"motd=y\n").unwrap();
    let done = server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 60).unwrap();
    assert!(done.everything);
    assert_eq!(server.files(), files(&[&OLD, &OTHER, &[("cache/mojang.jar", b"jar")], &secret]));
    let new: [(&str, &[u8]); 4] = [
        ("plugins/Chat/config.yml", b"new"),
        ("plugins/Warps.jar", b"jar"),
        ("notes.txt", b"new"),
        ("server.properties", b"motd=y\n"),
    ];
    assert_eq!(server.displaced(), files(&[&NEW, &new]), "displaced, not deleted");
}

#[test]
fn full_restore_keeps_links_and_refuses_linked_plugins() {
    let server = Server::new(Contents::Everything);
    let (root, elsewhere) = (server.volume.root(), server.directory.path().join("disk2"));
    let link = |name: &str| std::os::unix::fs::symlink(elsewhere.join(name), root.join(name)).unwrap();
    put(&elsewhere, &[("more/arena/level.dat", b"new"), ("ops.json", b"[]"), ("notes.txt", b"x")]);
    for name in ["more", "ops.json"] {
        link(name);
    }
    let is_link = |path: PathBuf| path.is_symlink();
    server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 60).unwrap();
    assert!(["more", "ops.json"].iter().all(|name| is_link(root.join(name))));
    assert_eq!(server.files(), files(&[&OLD, &OTHER]), "all other files equal the backup");

    // Behind this link may be a key that must stay.
    fs::rename(root.join("plugins"), elsewhere.join("plugins")).unwrap();
    link("plugins");
    let failed = server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 120).unwrap_err();
    assert!(refused_in(&failed).is_some_and(|refused| refused.is_about(&root.join("plugins"))), "{failed:?}");
    assert!(is_link(root.join("plugins")) && !exists(&server.volume.restore_journal_path()));
}

#[test]
fn linked_plugins_directory_stays_without_its_key_being_read() {
    let mut server = Server::new(Contents::Everything);
    let (root, elsewhere) = (server.volume.root(), server.directory.path().join("disk2"));
    fs::remove_dir_all(root.join("plugins")).unwrap();
    put(&elsewhere, &[("floodgate/key.pem", b"of the network")]);
    std::os::unix::fs::symlink(&elsewhere, root.join("plugins")).unwrap();
    server.backup = back_up(&server.volume, &server.repository, Contents::Everything, 30);
    assert_eq!(server.backup.left_out, ["plugins"]);
    server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 60).unwrap();
    assert!(root.join("plugins").is_symlink());
    assert_eq!(fs::read(elsewhere.join("floodgate/key.pem")).unwrap(), b"of the network");
}

#[test]
fn floodgate_key_is_restored_only_if_missing_or_empty() {
    for (existing, then, expected) in [
        (Some("of the network"), Some("of old"), "of the network"),
        (Some("of the network"), None, "of the network"),
        (None, Some("of old"), "of old"),
        (Some(""), Some("of old"), "of old"),
    ] {
        let (existing, then, expected) = (existing.map(str::as_bytes), then.map(str::as_bytes), expected.as_bytes());
        let server = Server::backed_up_with(Contents::Everything, then.map(|key| (FLOODGATE_KEY, key)).as_slice());
        let key = server.volume.root().join(FLOODGATE_KEY);
        fs::remove_dir_all(server.volume.root().join("plugins/floodgate")).unwrap_or_default();
        put(server.volume.root(), existing.map(|key| (FLOODGATE_KEY, key)).as_slice());
        let done = server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 60).unwrap();
        assert_eq!(fs::read(&key).unwrap(), expected, "{existing:?} exists, the backup has {then:?}");
        assert_eq!(server.files(), files(&[&OLD, &OTHER, &[(FLOODGATE_KEY, expected)]]), "the rest equals the backup");
        let displaced = server.volume.root().join(done.set_aside).join(FLOODGATE_KEY);
        assert_eq!(fs::read(displaced).ok().as_deref(), existing, "an existing key is displaced too");
    }
    let server = Server::backed_up_with(Contents::Everything, &[(FLOODGATE_KEY, b"of old")]);
    server.replace_volume();
    server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 60).unwrap();
    assert_eq!(fs::read(server.volume.root().join(FLOODGATE_KEY)).unwrap(), b"of old", "a new volume gets the key");
}

#[test]
fn interrupted_new_volume_restore_leaves_no_world_or_journal() {
    for left in 0.. {
        let server = Server::new(Contents::Everything);
        server.replace_volume();
        let ended = server.restore_part(RestorePart::Everything, &mut Disk::new(Crash { left }), 60).is_ok();
        if !server.volume.restore_journal_path().exists() && !ended {
            let (old, new) = (files(&[&OLD, &OTHER, &NEW_VOLUME[..1]]), files(&[&NEW_VOLUME]));
            let found = server.files();
            assert!(
                found == old || found == new,
                "without a journal the volume must be all old or all new, after {left} operations"
            );
        }
        let _ = finish(&server.volume, &mut Disk::new(Crash { left: left % 5 }));
        let finished = finish(&server.volume, &mut Disk::new(RealFs)).unwrap();
        if finished.is_none() && server.files() == files(&[&NEW_VOLUME]) {
            server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 120).unwrap();
        }
        assert_eq!(server.files(), files(&[&OLD, &OTHER, &NEW_VOLUME[..1]]), "resumed after {left} operations");
        assert_eq!(server.displaced(), files(&[&NEW_VOLUME[1..]]), "no file is lost, after {left} operations");
        if ended {
            assert!(left > 40, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn restore_to_empty_volume_sets_no_files_aside() {
    let server = Server::new(Contents::Everything);
    server.replace_volume();
    fs::remove_file(server.volume.root().join("server.properties")).unwrap();
    let done = server.restore_part(RestorePart::Everything, &mut Disk::new(RealFs), 60).unwrap();
    assert_eq!((done.set_aside.as_str(), server.volume.displaced_dir().exists()), ("", false));
    assert_eq!(server.files(), files(&[&OLD, &OTHER, &NEW_VOLUME[..1]]));
}

#[test]
fn restore_clears_damage_only_if_backup_predates_it() {
    let server = Server::new(Contents::Worlds);
    let line = "[12:00:00] [IO-Worker-1/ERROR]: Chunk [1, 2] header is truncated: expected 4096 but read 0\n";
    put(server.volume.root(), &[("logs/latest.log", line.as_bytes())]);
    let is_damage_reported =
        || damage::DamageLog::new(server.volume.clone()).scan(Timestamp::UNIX_EPOCH).unwrap().is_some();
    assert!(is_damage_reported());
    let marked = Backup { after_damage: true, ..server.backup.clone() };
    let (worlds, target) =
        (Worlds::read(server.volume.root()).unwrap(), RestoreTarget { part: RestorePart::Worlds, request: None });
    let disk = &mut Disk::new(RealFs);
    let done = restore(&server.repository, &marked, &server.volume, &worlds, target, disk, at(60)).unwrap();
    assert!(done.after_damage && is_damage_reported());
    assert!(!server.restore(disk, 120).unwrap().after_damage);
    assert!(!is_damage_reported());
}

#[test]
fn damaged_backup_changes_no_world() {
    let server = Server::new(Contents::Worlds);
    let archive = server.repository.directory(&server.backup.id).join("archive.tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let failed = server.restore(&mut Disk::new(RealFs), 60).unwrap_err();
    assert!(matches!(failed, Error::Damaged { .. }), "{failed:?}");
    assert_eq!(server.files(), files(&[&NEW, &OTHER]));
    assert!(server.repository.list().unwrap()[0].state.is_err());
}

#[test]
fn link_at_path_of_restored_world_is_set_aside_as_a_link() {
    let server = Server::new(Contents::Worlds);
    let (root, elsewhere) = (server.volume.root(), server.directory.path().join("disk2"));
    let worlds = Worlds::read(root).unwrap();
    fs::rename(root.join("world"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, root.join("world")).unwrap();
    let target = RestoreTarget { part: RestorePart::Worlds, request: None };
    let mut disk = Disk::new(RealFs);
    let done = restore(&server.repository, &server.backup, &server.volume, &worlds, target, &mut disk, at(60)).unwrap();
    assert_eq!(server.files(), files(&[&OLD, &OTHER]));
    assert!(root.join(done.set_aside).join("world").is_symlink());
    assert_eq!(fs::read(elsewhere.join("level.dat")).unwrap(), b"new");
}

#[test]
fn restores_in_same_second_use_separate_set_aside_directories() {
    let server = Server::new(Contents::Worlds);
    let restore = || server.restore(&mut Disk::new(RealFs), 60).unwrap().set_aside;
    let places = [restore(), restore()];
    assert_eq!(places, ["", "-2"].map(|number| format!(".nightshift/set-aside/20270115T080100Z{number}")));
    assert_eq!(files_below(&server.volume.root().join(&places[0])), files(&[&NEW]));
    assert_eq!(files_below(&server.volume.root().join(&places[1])), files(&[&OLD]));
    assert_eq!(server.files(), files(&[&OLD, &OTHER]));
}

#[test]
fn restore_journal_with_outside_path_is_not_executed() {
    let server = Server::new(Contents::Worlds);
    for name in ["../copies", "/etc", ".nightshift/store"] {
        let set_aside = ".nightshift/set-aside/x".into();
        let id = "x".into();
        let done = Restored { at: at(0), id, set_aside, request: None, everything: false, after_damage: false };
        let journal = RestoreJournal { done, displaced: vec![name.into()], restored: vec![] };
        Disk::new(RealFs).write_record(&server.volume.restore_journal_path(), &journal).unwrap();
        let failed = finish(&server.volume, &mut Disk::new(RealFs)).unwrap_err();
        assert!(matches!(failed, Error::Journal { .. }), "{failed:?}");
        assert_eq!(server.files(), files(&[&NEW, &OTHER]));
    }
}
