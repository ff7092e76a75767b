//! Edge (writes). Checks folders that are saved and restored, interrupted after each operation, with and without loss of unsynced data.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::rc::Rc;

use jiff::Timestamp;
use serde_json::json;

use super::restore::{finish, restore_data};
use super::snapshot::{prune_saved, remove_outdated_record, save_data};
use super::*;
use crate::staging::fs_ops::{Disk, FsHook, RealFs};
use agent_api::plugin_data::{NotSavedReason, PluginDataRestored, Settings};

mod failing;
mod faults;
mod unchanged_config;

const LIMIT: u64 = 1024 * 1024;

/// The files after version set `a`.
const OLD: [(&str, &str); 10] = [
    ("bukkit.yml", "settings: 1"),
    ("config/paper-global.yml", "_version: 30"),
    ("ops.json", "[]"),
    ("server.properties", "pvp=false"),
    ("plugins/LuckPerms/config.yml", "storage: h2"),
    ("plugins/LuckPerms/libs/empty.txt", ""),
    ("plugins/LuckPerms/luckperms.mv.db", "schema 1"),
    ("plugins/My_Warps/warps.yml", "spawn: 0 64 0"),
    ("plugins/Same/same.yml", "x: 1"),
    ("world/level.dat", "world"),
];

/// The files after version set `b`: one file removed, one new, a plugin with a new folder, and Paper with one more file.
const NEW: [(&str, &str); 11] = [
    ("bukkit.yml", "settings: 1"),
    ("config/paper-global.yml", "_version: 31"),
    ("ops.json", "[\"by hand\"]"),
    ("server.properties", "white-list=false"),
    ("spigot.yml", "new"),
    ("plugins/Fresh/fresh.yml", "new"),
    ("plugins/LuckPerms/config.yml", "storage: h2"),
    ("plugins/LuckPerms/luckperms.mv.db", "schema 2"),
    ("plugins/My_Warps/warps.yml", "broken"),
    ("plugins/Same/same.yml", "x: 2"),
    ("world/level.dat", "world"),
];

struct Server {
    _directory: tempfile::TempDir,
    volume: Volume,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A version set of plugins, each with a hash, on the first build of Paper.
fn set(lock: char, plugins: &[(&str, &str)]) -> FileSet {
    let file = |(name, hash): &(&str, &str)| json!({"path": format!("plugins/{name}.jar"), "hash": format!("sha256:{hash}"), "url": "", "plugin": name});
    let plugins: Vec<_> = plugins.iter().map(file).collect();
    let server = json!({"path": ".nightshift/server/paper.jar", "hash": "sha256:00", "url": ""});
    let set = json!({"lock": lock.to_string().repeat(64), "minecraft": "1.21.10", "build": 1, "server": server, "plugins": plugins});
    serde_json::from_value(set).unwrap()
}

fn set_a() -> FileSet {
    set('a', &[("LuckPerms", "54"), ("My Warps", "1"), ("Same", "7"), ("Leaves", "3")])
}

fn set_b() -> FileSet {
    FileSet { build: 2, ..set('b', &[("LuckPerms", "55"), ("My Warps", "2"), ("Same", "7"), ("Fresh", "1")]) }
}

fn pieces(names: &[&str]) -> Vec<DataPiece> {
    names.iter().map(|name| DataPiece::from((*name).to_owned())).collect()
}

/// The pieces that are saved before the step from `a` to `b`.
fn saved_before_b() -> Vec<DataPiece> {
    pieces(&["LuckPerms", "My_Warps", "./bukkit.yml", "./config", "./server.properties"])
}

/// The pieces with data of `b` after a rollback: those saved before it, and those that `a` did not have.
fn left_by_b() -> Vec<DataPiece> {
    [saved_before_b(), pieces(&["Fresh", "./spigot.yml"])].concat()
}

impl Server {
    /// Version set `a` has run.
    fn new() -> Self {
        // In memory, if possible, because these tests sync to disk some thousand times.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let volume = Volume::new(directory.path());
        let server = Self { _directory: directory, volume };
        server.put(&OLD);
        server.write_manifest(&set_a());
        server
    }

    fn path(&self, path: &str) -> PathBuf {
        self.volume.root().join(path)
    }

    fn put(&self, files: &[(&str, &str)]) {
        for (path, content) in files {
            fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
            fs::write(self.path(path), content).unwrap();
        }
    }

    /// The manifest after the swap.
    fn write_manifest(&self, set: &FileSet) {
        let managed = |file: &agent_api::File| {
            (file.path.clone(), crate::staging::Managed { hash: file.hash.clone(), plugin: file.plugin.clone() })
        };
        let manifest = AppliedManifest {
            lock: set.lock.clone(),
            previous: self.volume.manifest().unwrap().map(|before| before.lock),
            went_back: false,
            minecraft: set.minecraft.clone(),
            build: set.build,
            files: set.plugins.iter().map(managed).collect(),
        };
        Disk::new(RealFs).write_record(&self.path(".nightshift/manifest.json"), &manifest).unwrap();
    }

    fn save(&self, set: &FileSet, second: i64) -> Option<PluginData> {
        save_data(&self.volume, set, LIMIT, &mut Disk::new(RealFs), at(second)).unwrap()
    }

    fn restore(&self, second: i64) -> Option<PluginData> {
        restore_data(&self.volume, &set_a().lock, &set_b().lock, |_| false, &mut Disk::new(RealFs), at(second)).unwrap()
    }

    /// `b` has been put in place, has started and has changed the files.
    fn run_b(&self) {
        self.write_manifest(&set_b());
        remove_outdated_record(&self.volume, &set_b(), &mut Disk::new(RealFs)).unwrap();
        fs::remove_dir_all(self.path("plugins/LuckPerms/libs")).unwrap();
        self.put(&NEW);
    }

    /// All files outside of Nightshift's own.
    fn files(&self) -> BTreeMap<String, String> {
        files_below(self.volume.root()).into_iter().filter(|(path, _)| !path.starts_with(".nightshift/")).collect()
    }

    fn record(&self) -> Option<PluginData> {
        last(&self.volume)
    }

    fn saved_names(&self) -> Vec<String> {
        directories(&self.volume.saved_data_dir()).unwrap()
    }

    fn saved_settings(&self) -> Vec<String> {
        directories(&self.volume.saved_settings_dir()).unwrap()
    }

    /// Asserts that the saved settings of the plugin that is unchanged from `a` to `b` are complete, under whatever name they are now.
    fn assert_settings_are_whole(&self, context: &str) {
        for name in self.saved_settings().iter().filter(|name| !name.starts_with('.')) {
            let found = files_below(&self.volume.saved_settings_dir().join(name).join("Same"));
            assert_eq!(found, files(&[("same.yml", "x: 1")]), "{context}");
        }
    }
}

fn files_below(root: &Path) -> BTreeMap<String, String> {
    let entries = walkdir::WalkDir::new(root).into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_file());
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    files.map(|file| (name(file.path()), fs::read_to_string(file.path()).unwrap())).collect()
}

fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

/// The part of `pairs` that belongs to these pieces, with paths as in a directory of saved data.
fn files_of_pieces(pairs: &[(&str, &str)], pieces: &[DataPiece]) -> BTreeMap<String, String> {
    let saved_as = |path: &str| {
        let is_in = |piece: &&DataPiece| Path::new(path).starts_with(piece.path());
        let path = match pieces.iter().find(is_in)? {
            DataPiece::OfPlugin(_) => path.strip_prefix("plugins/")?.to_owned(),
            DataPiece::OfServer(_) => format!("@server/{path}"),
        };
        Some(path)
    };
    pairs.iter().filter_map(|(path, content)| Some((saved_as(path)?, (*content).to_owned()))).collect()
}

/// The files after the rollback: as before, except for the unchanged plugin, and for files that a user's command wrote.
fn after_rollback() -> BTreeMap<String, String> {
    let mut expected = files(&OLD);
    expected.insert("plugins/Same/same.yml".into(), "x: 2".into());
    expected.insert("ops.json".into(), "[\"by hand\"]".into());
    expected
}

#[test]
fn plugin_data_of_failed_lock_is_rolled_back_and_displaced() {
    let server = Server::new();
    let config = server.path("plugins/LuckPerms/config.yml");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&config).unwrap().set_modified(long_ago).unwrap();
    fs::create_dir(server.path("plugins/LuckPerms/translations")).unwrap();
    symlink("/etc/passwd", server.path("plugins/LuckPerms/link")).unwrap();

    let saved = server.save(&set_b(), 0).unwrap();
    assert_eq!(saved.kept, saved_before_b());
    let absent =
        ["Fresh", "Leaves", "./commands.yml", "./help.yml", "./paper.yml", "./permissions.yml", "./spigot.yml"];
    assert_eq!(saved.absent, pieces(&absent));
    assert_eq!((saved.not_kept.len(), saved.lock, saved.before), (0, set_a().lock, set_b().lock));
    assert_eq!(saved.place.as_deref(), Some(".nightshift/kept/20270115T080000Z-aaaaaaaa"));
    server.run_b();
    fs::remove_file(server.path("plugins/LuckPerms/link")).unwrap();

    let restored = server.restore(60).unwrap();
    let failed = format!(".nightshift/failed/{}", set_b().lock);
    assert_eq!(restored.back, Some(PluginDataRestored::Done { at: at(60), set_aside: Some(failed.clone()) }));
    assert_eq!(server.files(), super::tests::after_rollback());
    let displaced = files_below(&server.path(&failed));
    assert_eq!(displaced, files_of_pieces(&NEW, &left_by_b()), "displaced, not deleted");
    let metadata = fs::metadata(&config).unwrap();
    assert_eq!((metadata.permissions().mode() & 0o777, metadata.modified().unwrap()), (0o640, long_ago));
    assert!(server.path("plugins/LuckPerms/translations").is_dir());
    assert_eq!(fs::read_link(server.path("plugins/LuckPerms/link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!((server.saved_names(), server.record()), (vec![], Some(restored)));
    assert_eq!(server.restore(61), None, "the data is restored once");
}

#[test]
fn plugin_data_is_saved_only_on_paper_or_plugin_change() {
    let server = Server::new();
    assert_eq!(server.save(&set_a(), 0), None, "the same version set");
    let same_files = FileSet { lock: "c".repeat(64), ..set_a() };
    assert_eq!(server.save(&same_files, 0), None, "the same Paper and the same plugins");
    assert_eq!(save_data(&server.volume, &set_b(), 0, &mut Disk::new(RealFs), at(0)).unwrap(), None, "the limit is 0");
    fs::remove_file(server.path(".nightshift/manifest.json")).unwrap();
    assert_eq!(server.save(&set_b(), 0), None, "no lock has run here");
    assert_eq!((server.saved_names(), server.saved_settings()), (vec![], vec![]));
}

#[test]
fn plugin_data_is_saved_once_per_update_despite_retry() {
    let server = Server::new();
    let first = server.save(&set_b(), 0).unwrap();
    assert!(first.settings.is_some());
    assert_eq!(server.save(&set_b(), 5), Some(first), "no server has run in between");
    // Version set `a` starts again and runs for a week.
    remove_outdated_record(&server.volume, &set_a(), &mut Disk::new(RealFs)).unwrap();
    assert_eq!(server.record(), None);
    server.put(&[("plugins/LuckPerms/luckperms.mv.db", "schema 1, more groups")]);
    let second = server.save(&set_b(), 600).unwrap();
    assert_eq!(second.at, at(600));
    server.run_b();
    server.restore(660).unwrap();
    let found = fs::read_to_string(server.path("plugins/LuckPerms/luckperms.mv.db")).unwrap();
    assert_eq!(found, "schema 1, more groups");
}

#[test]
fn plugin_data_of_earlier_update_is_never_restored_later() {
    let server = Server::new();
    server.save(&set_b(), 0).unwrap();
    server.run_b();
    // A user has disabled the saving of plugin data and rolls back to `a`. Later `b` is tried once more.
    for (set, second) in [(set_a(), 60), (set_b(), 600)] {
        save_data(&server.volume, &set, 0, &mut Disk::new(RealFs), at(second)).unwrap();
        server.write_manifest(&set);
        remove_outdated_record(&server.volume, &set, &mut Disk::new(RealFs)).unwrap();
        server.put(&[("plugins/LuckPerms/luckperms.mv.db", "of a week")]);
    }
    assert_eq!(server.restore(660), None);
    assert_eq!(fs::read_to_string(server.path("plugins/LuckPerms/luckperms.mv.db")).unwrap(), "of a week");
}

#[test]
fn lock_that_was_never_installed_changes_no_plugin_data() {
    let server = Server::new();
    server.save(&set_b(), 0).unwrap();
    assert_eq!(server.restore(60), None);
    assert_eq!(server.files(), files(&OLD));
}

#[test]
fn possible_player_activity_keeps_current_and_saved_plugin_data() {
    let server = Server::new();
    let saved = server.save(&set_b(), 0).unwrap();
    server.run_b();
    let queried_since = RefCell::new(None);
    let played = |since| queried_since.replace(Some(since)).is_none();
    let restored = restore_data(&server.volume, &set_a().lock, &set_b().lock, played, &mut Disk::new(RealFs), at(60))
        .unwrap()
        .unwrap();
    assert_eq!(
        (*queried_since.borrow(), restored.back.clone()),
        (Some(saved.at), Some(PluginDataRestored::SomebodyPlayed { at: at(60) }))
    );
    assert_eq!(server.files(), files(&NEW));
    server.write_manifest(&set_a());
    remove_outdated_record(&server.volume, &set_a(), &mut Disk::new(RealFs)).unwrap();
    prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
    let path = server.path(server.record().unwrap().place.as_deref().unwrap());
    assert_eq!(files_below(&path), files_of_pieces(&OLD, &saved_before_b()), "a user can still restore it");
    assert_eq!(server.restore(120), None, "the decision is made once");
}

#[test]
fn saved_plugin_data_is_not_restored_under_another_lock() {
    let server = Server::new();
    let saved = server.save(&set_b(), 0).unwrap();
    server.run_b();
    let other = "c".repeat(64);
    let restored =
        restore_data(&server.volume, &other, &set_b().lock, |_| false, &mut Disk::new(RealFs), at(60)).unwrap();
    let restored = restored.unwrap().back.unwrap();
    assert!(
        matches!(&restored, PluginDataRestored::Impossible { problem, .. } if problem.contains("ran in between")),
        "{restored:?}"
    );
    assert_eq!(server.files(), files(&NEW));
    assert!(server.path(&saved.place.unwrap()).is_dir());
}

#[test]
fn unsavable_folder_is_named_and_others_are_saved() {
    let server = Server::new();
    let (large, json) = ("x".repeat(2_000_000), "{}".repeat(600_000));
    server.put(&[
        ("plugins/My_Warps/large.db", &large),
        ("plugins/My_Warps/lang/en.yml", "hi: hello"),
        ("plugins/My_Warps/tiles/all.json", &json),
        ("plugins/My_Warps/a/b/c/d/e/deep.yml", "x: 1"),
    ]);
    symlink("/etc/hostname", server.path("plugins/My_Warps/link.yml")).unwrap();
    let saved = server.save(&set_b(), 0).unwrap();
    let rest = pieces(&["LuckPerms", "./bukkit.yml", "./config", "./server.properties"]);
    assert_eq!(saved.kept, rest);
    let [not_saved] = saved.not_kept.as_slice() else { panic!("{saved:?}") };
    assert_eq!(not_saved.why, NotSavedReason::TooLarge { bytes: 3_200_026, limit: LIMIT });
    let settings = not_saved.settings.clone().expect("small files are saved as settings");
    assert_eq!((settings.files, settings.of), (2, 2));
    server.run_b();
    server.restore(60).unwrap();
    assert_eq!(fs::read_to_string(server.path("plugins/My_Warps/warps.yml")).unwrap(), "broken", "it was too large");
    assert_eq!(fs::read_to_string(server.path("plugins/LuckPerms/luckperms.mv.db")).unwrap(), "schema 1");
    let expected_settings = [("lang/en.yml", "hi: hello"), ("warps.yml", "spawn: 0 64 0")];
    let expected_settings = expected_settings.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(
        files_below(&server.path(&settings.place)),
        BTreeMap::from(expected_settings),
        "the saved settings stay after the rollback"
    );
}

#[test]
fn unsavable_settings_block_no_update_and_newest_are_kept() {
    let large = "x".repeat(2_000_000);
    let server = Server::new();
    server.put(&[("plugins/My_Warps/large.db", &large), (".nightshift/kept-settings", "somebody's file")]);
    let saved = server.save(&set_b(), 0).unwrap();
    assert_eq!((saved.kept[0].to_string(), saved.not_kept[0].settings.clone()), ("LuckPerms".to_owned(), None));

    let server = Server::new();
    server.put(&[
        ("plugins/My_Warps/large.db", &large),
        (".nightshift/kept-settings/20290101T000000Z-aaaaaaaa/My_Warps/warps.yml", "1"),
        (".nightshift/kept-settings/20290201T000000Z-aaaaaaaa/My_Warps/warps.yml", "2"),
    ]);
    let saved = server.save(&set_b(), 0).unwrap();
    prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
    let left = directories(&server.path(".nightshift/kept-settings")).unwrap();
    assert_eq!(left, ["20270115T080000Z-aaaaaaaa", "20290201T000000Z-aaaaaaaa"]);
    assert!(server.path(&saved.not_kept[0].settings.as_ref().unwrap().place).is_dir());
}

#[test]
fn links_files_and_sockets_are_not_saved_as_folders() {
    let server = Server::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret"), "x").unwrap();
    fs::remove_dir_all(server.path("plugins/My_Warps")).unwrap();
    symlink(elsewhere.path(), server.path("plugins/My_Warps")).unwrap();
    fs::write(server.path("plugins/Fresh"), "a file").unwrap();
    fs::remove_file(server.path("bukkit.yml")).unwrap();
    symlink(elsewhere.path().join("secret"), server.path("bukkit.yml")).unwrap();
    fs::create_dir(server.path("spigot.yml")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(server.path("plugins/LuckPerms/x.sock")).unwrap();
    let saved = server.save(&set_b(), 0).unwrap();
    assert_eq!(saved.kept, pieces(&["LuckPerms", "./config", "./server.properties"]));
    let (not, why): (Vec<_>, Vec<_>) = saved.not_kept.into_iter().map(|not| (not.piece, not.why)).unzip();
    assert_eq!(not, pieces(&["Fresh", "My_Warps", "./bukkit.yml", "./spigot.yml"]));
    assert_eq!(why, [(); 4].map(|()| NotSavedReason::NotMovable));
    assert_eq!(saved.left_out, ["plugins/LuckPerms/x.sock"]);
    assert!(!files_below(&server.volume.saved_data_dir()).keys().any(|path| path.ends_with("secret")));
}

#[test]
fn plugin_data_restore_is_refused_if_one_folder_is_unmovable() {
    let server = Server::new();
    let saved = server.save(&set_b(), 0).unwrap();
    server.run_b();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir_all(server.path("plugins/My_Warps")).unwrap();
    symlink(elsewhere.path(), server.path("plugins/My_Warps")).unwrap();
    let restored = server.restore(60).unwrap().back.unwrap();
    assert!(
        matches!(&restored, PluginDataRestored::Impossible { problem, .. } if problem.contains("plugins/My_Warps")),
        "{restored:?}"
    );
    assert_eq!(fs::read_to_string(server.path("plugins/LuckPerms/luckperms.mv.db")).unwrap(), "schema 2");
    assert!(server.path(&saved.place.unwrap()).is_dir());
}

#[test]
fn lock_that_fails_twice_leaves_two_set_aside_folders() {
    let server = Server::new();
    for second in [0, 600] {
        server.save(&set_b(), second).unwrap();
        if second > 0 {
            fs::create_dir_all(server.path("plugins/LuckPerms/libs")).unwrap();
        }
        server.run_b();
        server.restore(second + 60).unwrap();
        server.write_manifest(&set_a());
    }
    assert_eq!(directories(&server.volume.failed_data_dir()).unwrap(), [set_b().lock, format!("{}.2", set_b().lock)]);
}

#[test]
fn plugin_data_of_last_two_updates_is_kept() {
    let server = Server::new();
    for (second, (to, hash)) in [(0, ('b', "2")), (60, ('c', "3")), (120, ('d', "4"))] {
        let next = set(to, &[("LuckPerms", hash)]);
        server.save(&next, second).unwrap();
        server.write_manifest(&next);
        prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
    }
    assert_eq!(server.saved_names(), ["20270115T080100Z-bbbbbbbb", "20270115T080200Z-cccccccc"]);
    // The clock is set back.
    server.save(&set('e', &[("LuckPerms", "5")]), -600).unwrap();
    prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap();
    assert_eq!(server.saved_names(), ["20270115T075000Z-dddddddd", "20270115T080200Z-cccccccc"]);
}

#[test]
fn read_only_saved_folder_can_be_removed() {
    let server = Server::new();
    fs::set_permissions(server.path("plugins/LuckPerms/libs"), fs::Permissions::from_mode(0o500)).unwrap();
    for second in [0, 60, 120] {
        let next = set(if second == 60 { 'c' } else { 'b' }, &[("LuckPerms", "9"), ("My Warps", &second.to_string())]);
        server.save(&next, second).unwrap();
        server.write_manifest(&next);
    }
    assert_eq!(prune_saved(&server.volume, &mut Disk::new(RealFs)).unwrap().len(), 1);
    assert_eq!(server.saved_names().len(), 2);
}

#[test]
fn plugin_folder_name_matches_that_of_the_server() {
    assert_eq!(folder_of("LuckPerms").as_deref(), Some("LuckPerms"));
    assert_eq!(folder_of("My Warps-2.x").as_deref(), Some("My_Warps-2.x"));
    for odd in ["", ".", "..", "a/b", "../x", "a\0", "é", "/etc"] {
        assert_eq!(folder_of(odd), None, "{odd:?}");
    }
}
