//! Edge (writes). Checks the swap in a temporary directory, interrupted after each file operation.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;

use super::super::drift::{Drift, drift};
use super::super::fs_ops::RealFs;
use super::super::hash_cache::HashCache;
use super::super::jar_descriptor::tests::jar;
use super::super::volume_store::VolumeStore;
use super::*;
use agent_api::File;
use artifacts::{Algorithm, Hasher};

mod failing;
mod power_loss;
mod unmanaged_jars;

/// Allows `left` operations and then fails all others, as a crash would.
struct Crash {
    left: usize,
}

impl FsHook for Crash {
    fn before_operation(&mut self, _operation: &'static str, _path: &Path) -> io::Result<()> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other("the power went")),
        }
        Ok(())
    }
}

struct Server {
    directory: tempfile::TempDir,
    volume: Volume,
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let volume = Volume::new(directory.path());
        Self { directory, volume }
    }

    /// Replaces the file by a new one. Writing into the existing file would write into the store.
    fn put(&self, path: &str, content: &[u8]) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        fs::write(path, content).unwrap();
    }

    /// All files outside of `.nightshift` (and the server's JARs inside it), by path.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = walkdir::WalkDir::new(self.volume.root()).into_iter().map(Result::unwrap);
        let files = files.filter(|entry| entry.file_type().is_file()).map(|entry| entry.path().to_owned());
        files
            .map(|path| (relative(&self.volume, &path), fs::read(&path).unwrap()))
            .filter(|(path, _)| !path.starts_with(".nightshift/") || path.starts_with(".nightshift/server/"))
            .collect()
    }

    fn displaced(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.volume.displaced_jars_dir()).into_iter().flatten().map(Result::unwrap);
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    }

    /// The displaced JARs in the agent's report: file and new path.
    fn reported(&self) -> Vec<(String, String)> {
        displaced_jars::displaced_jars(&self.volume).into_iter().map(|jar| (jar.file, jar.place)).collect()
    }

    fn swap(&self, set: &FileSet) -> SwapReport {
        swap(&self.volume, set, &mut HashCache::default(), &mut Disk::new(RealFs)).unwrap()
    }

    fn store(&self, set: &FileSet, contents: &[&[u8]]) {
        // Does not use `keep`, which syncs to disk, because these tests do this some thousand times.
        for (file, content) in all_files(set).zip(contents) {
            let hash = Hash::parse(&file.hash.0).unwrap();
            let path = self.volume.stored_path(&hash);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        assert_eq!(VolumeStore::new(self.volume.clone()).missing(set, &mut HashCache::default()).unwrap(), vec![]);
    }
}

fn plugin_jar(name: &str, version: &str) -> Vec<u8> {
    jar(&[("plugin.yml", &format!("name: {name}\nversion: {version}\nmain: a.B\n"))])
}

fn file(path: &str, plugin: Option<&str>, content: &[u8]) -> File {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(content);
    let hash = FileHash(hasher.finish().to_string());
    File {
        path: path.into(),
        hash,
        size: None,
        url: String::new(),
        plugin: plugin.map(str::to_owned),
        provides: Vec::new(),
    }
}

struct Set {
    files: FileSet,
    contents: Vec<Vec<u8>>,
}

impl Set {
    /// From (path, plugin, content), the server's JAR first.
    fn new(lock: char, build: u32, files: &[(&str, Option<&str>, Vec<u8>)]) -> Self {
        let mut files_of_set = files.iter().map(|(path, plugin, content)| file(path, *plugin, content));
        let server = files_of_set.next().unwrap();
        let set = FileSet {
            lock: lock.to_string().repeat(64),
            minecraft: "1.21.10".into(),
            build,
            data_version: Some(4556),
            server,
            support: vec![],
            plugins: files_of_set.collect(),
        };
        Self { files: set, contents: files.iter().map(|(_, _, content)| content.clone()).collect() }
    }

    fn store_on(&self, server: &Server) {
        server.store(&self.files, &self.contents.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }

    fn by_path(&self) -> BTreeMap<String, Vec<u8>> {
        all_files(&self.files).map(|file| file.path.clone()).zip(self.contents.clone()).collect()
    }
}

fn old() -> Set {
    Set::new(
        'a',
        129,
        &[
            (".nightshift/server/paper-1.21.10-129.jar", None, jar(&[("version.json", "129")])),
            ("plugins/Claims-1.jar", Some("Claims"), plugin_jar("Claims", "1")),
            ("plugins/Leaves.jar", Some("Leaves"), plugin_jar("Leaves", "1")),
            ("plugins/Warps.jar", Some("Warps"), plugin_jar("Warps", "1")),
        ],
    )
}

fn new() -> Set {
    Set::new(
        'b',
        130,
        &[
            (".nightshift/server/paper-1.21.10-130.jar", None, jar(&[("version.json", "130")])),
            ("cache/mojang_1.21.10.jar", None, jar(&[("x", "y")])),
            ("plugins/Claims-2.jar", Some("Claims"), plugin_jar("Claims", "2")),
            ("plugins/Fresh.jar", Some("Fresh"), plugin_jar("Fresh", "2")),
            ("plugins/Warps.jar", Some("Warps"), plugin_jar("Warps", "2")),
        ],
    )
}

/// Unmanaged files: a JAR unrelated to the lock, one at a path of the new version set, one that declares a name in it, and files that are no
/// JARs.
fn unmanaged() -> BTreeMap<String, Vec<u8>> {
    [
        ("plugins/ShopGUIPlus.jar", plugin_jar("ShopGUIPlus", "9")),
        ("plugins/broken.jar", b"no zip".to_vec()),
        ("plugins/Warps/config.yml", b"x: 1".to_vec()),
        ("world/level.dat", b"world".to_vec()),
    ]
    .map(|(path, content)| (path.to_owned(), content))
    .into()
}

fn merged(set: &Set, more: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    set.by_path().into_iter().chain(more.clone()).collect()
}

fn prepared() -> (Server, Set, Set) {
    let (server, old, new) = (Server::new(), old(), new());
    old.store_on(&server);
    new.store_on(&server);
    for (path, content) in unmanaged() {
        server.put(&path, &content);
    }
    (server, old, new)
}

#[test]
fn swap_makes_directory_match_lock_and_keeps_unmanaged_files() {
    let (server, old, new) = prepared();
    let first = server.swap(&old.files);
    assert_eq!(first.placed.len(), 4);
    assert_eq!(server.files(), merged(&old, &unmanaged()));
    let second = server.swap(&new.files);
    assert_eq!(
        second.removed,
        [".nightshift/server/paper-1.21.10-129.jar", "plugins/Claims-1.jar", "plugins/Leaves.jar"]
    );
    assert_eq!(server.files(), merged(&new, &unmanaged()));
    let manifest = server.volume.manifest().unwrap().unwrap();
    assert!(manifest.is_rollback_to(&"a".repeat(64)));
    assert_eq!((manifest.lock, manifest.previous), ("b".repeat(64), Some("a".repeat(64))));
    server.swap(&old.files);
    assert_eq!(server.files(), merged(&old, &unmanaged()));
    let manifest = server.volume.manifest().unwrap().unwrap();
    assert_eq!((manifest.previous.as_deref(), manifest.went_back), (Some("b".repeat(64).as_str()), true));
    assert!(!manifest.is_rollback_to(&"b".repeat(64)), "a retry after a rollback is no rollback");
    server.swap(&old.files);
    assert_eq!(server.volume.manifest().unwrap(), Some(manifest), "a second start must not change it");
    server.swap(&new.files);
    assert!(server.volume.manifest().unwrap().unwrap().is_rollback_to(&"a".repeat(64)), "rolled back once more");
    server.swap(&old.files);
    assert_eq!(server.files(), merged(&old, &unmanaged()));
    assert!(!server.volume.journal_path().exists());
}

#[test]
fn swap_does_not_write_to_equal_directory() {
    let (server, old, _) = prepared();
    server.swap(&old.files);
    let mut nothing = Disk::new(Crash { left: 0 });
    assert_eq!(
        swap(&server.volume, &old.files, &mut HashCache::default(), &mut nothing).unwrap(),
        SwapReport::default()
    );
}

/// Each file belongs to one version set or the other. Without a journal all of them belong to the same one.
fn assert_old_or_new(server: &Server, old: &Set, new: &Set, context: &str) {
    let (before, after) = (merged(old, &unmanaged()), merged(new, &unmanaged()));
    for (path, content) in server.files().into_iter().filter(|(path, _)| !path.ends_with(".nightshift")) {
        let is_known = before.get(&path) == Some(&content) || after.get(&path) == Some(&content);
        assert!(is_known, "{context} `{path}` is neither old nor new");
    }
    for (path, content) in unmanaged() {
        assert_eq!(server.files().get(&path), Some(&content), "{context}");
    }
    assert!(server.files().contains_key("plugins/Warps.jar"), "old or new, but never absent, {context}");
    if server.volume.journal().unwrap().is_none() {
        let manifest = server.volume.manifest().unwrap().unwrap();
        let expected = if manifest.lock == old.files.lock { &before } else { &after };
        assert_eq!(&server.files(), expected, "without a journal the files match the manifest, {context}");
    }
}

/// For each n, stops after n operations, checks the files, and continues to either version set.
fn interrupt_everywhere(is_rollback: bool, links: bool) {
    for left in 0.. {
        let (server, old, new) = prepared();
        server.swap(&old.files);
        let steps = Crash { left };
        let mut disk = if links { Disk::new(steps) } else { Disk::without_links(steps) };
        let ended = swap(&server.volume, &new.files, &mut HashCache::default(), &mut disk).is_ok();

        assert_old_or_new(&server, &old, &new, &format!("after {left} operations"));

        let goal = if is_rollback { &old } else { &new };
        server.swap(&goal.files);
        assert_eq!(server.files(), merged(goal, &unmanaged()), "resumed after {left} operations");
        assert_eq!(server.volume.manifest().unwrap().unwrap().lock, goal.files.lock);
        assert!(!server.volume.journal_path().exists());
        assert_eq!(server.displaced(), BTreeMap::new(), "no managed file is displaced, {left}");
        if ended {
            assert!(left > 20, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn swap_crash_at_any_operation_is_completed_next_start() {
    interrupt_everywhere(false, true);
}

#[test]
fn swap_crash_at_any_operation_can_be_rolled_back() {
    interrupt_everywhere(true, true);
}

#[test]
fn swap_crashes_are_recovered_without_hard_links() {
    interrupt_everywhere(false, false);
    interrupt_everywhere(true, false);
}

#[test]
fn swap_crashes_toward_two_goals_lose_no_file() {
    for first in (1..60).step_by(6) {
        for second in (2..60).step_by(11) {
            let (server, old, new) = prepared();
            server.swap(&old.files);
            let third = Set::new('c', 131, &[(".nightshift/server/paper-1.21.10-131.jar", None, jar(&[("v", "131")]))]);
            third.store_on(&server);
            let _ = swap(&server.volume, &new.files, &mut HashCache::default(), &mut Disk::new(Crash { left: first }));
            let _ =
                swap(&server.volume, &third.files, &mut HashCache::default(), &mut Disk::new(Crash { left: second }));
            server.swap(&third.files);
            assert_eq!(server.files(), merged(&third, &unmanaged()), "{first} {second}");
        }
    }
}

#[test]
fn drift_names_changed_and_unmanaged_files() {
    let (server, old, _) = prepared();
    server.swap(&old.files);
    let manifest = server.volume.manifest().unwrap().unwrap();
    let unmanaged = vec!["ShopGUIPlus.jar".to_owned(), "broken.jar".to_owned()];
    assert_eq!(drift(&server.volume, &manifest).unwrap(), Drift { changed: vec![], unmanaged });
    fs::remove_file(server.volume.plugins().join("Claims-1.jar")).unwrap();
    server.put("plugins/Leaves.jar", b"x");
    server.put("plugins/second.jar", &plugin_jar("warps", "7"));
    let found = drift(&server.volume, &manifest).unwrap();
    assert_eq!(found.changed, ["plugins/Claims-1.jar", "plugins/Leaves.jar", "plugins/second.jar"]);
    assert_eq!(found.unmanaged, ["ShopGUIPlus.jar", "broken.jar", "second.jar"]);
}

#[test]
fn swap_does_not_begin_with_incomplete_store() {
    let (server, old, new) = prepared();
    server.swap(&old.files);
    let claims = Hash::parse(&new.files.plugins[1].hash.0).unwrap();
    let stored = server.volume.stored_path(&claims);
    let whole = fs::read(&stored).unwrap();
    fs::write(&stored, &whole[..whole.len() - 1]).unwrap();
    let error = swap(&server.volume, &new.files, &mut HashCache::default(), &mut Disk::new(RealFs)).unwrap_err();
    assert!(matches!(&error, Error::NotStored { path } if *path == new.files.plugins[1].path), "{error:?}");
    assert_eq!(server.files(), merged(&old, &unmanaged()));
}

#[test]
fn lock_with_path_outside_directory_or_inside_records_is_refused() {
    let server = Server::new();
    for path in [
        "../x.jar",
        "/etc/x.jar",
        "",
        ".",
        "a/../b",
        ".nightshift/manifest.json",
        ".nightshift",
        "plugins/a\nb.jar",
        "plugins/",
    ] {
        assert!(server.volume.resolve_path(path).is_err(), "{path:?}");
    }
    assert!(server.volume.resolve_path(".nightshift/server/paper.jar").is_ok());
    let mut set = old().files;
    set.plugins[1].path = set.plugins[0].path.clone();
    let error = swap(&server.volume, &set, &mut HashCache::default(), &mut Disk::new(RealFs)).unwrap_err();
    assert!(matches!(error, Error::Record(RecordError::Duplicate { .. })), "{error:?}");
}

#[test]
fn modified_jar_is_requested_again_and_then_set_aside() {
    let (server, old, _) = prepared();
    server.swap(&old.files);
    // In place, as `cp` does: the store has the same file, which is changed with it.
    fs::write(server.volume.plugins().join("Warps.jar"), plugin_jar("Warps", "mine")).unwrap();
    let missing = VolumeStore::new(server.volume.clone()).missing(&old.files, &mut HashCache::default()).unwrap();
    assert_eq!(missing.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["plugins/Warps.jar"]);
    old.store_on(&server);
    server.swap(&old.files);
    assert_eq!(server.files(), merged(&old, &unmanaged()));
    assert_eq!(server.displaced(), BTreeMap::from([("Warps.jar".into(), plugin_jar("Warps", "mine"))]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Any sequence of version sets of a few plugins, with crashes in between, ends with the last one and all unmanaged files.
    #[test]
    fn any_swap_sequence_with_crashes_ends_with_last_lock(
        steps in prop::collection::vec((prop::collection::btree_map(0_u8..4, 0_u8..3, 0..4), 0_usize..80), 1..6)
    ) {
        let server = Server::new();
        for (path, content) in unmanaged() {
            server.put(&path, &content);
        }
        let mut last = None;
        for (plugins, left) in steps {
            let mut files = vec![(".nightshift/server/paper.jar".to_owned(), None, jar(&[("v", &format!("{plugins:?}"))]))];
            for (plugin, version) in &plugins {
                let name = format!("P{plugin}");
                // Half of the plugins have their version in the file name.
                let path = if plugin % 2 == 0 { format!("plugins/{name}.jar") } else { format!("plugins/{name}-{version}.jar") };
                files.push((path, Some(name.clone()), plugin_jar(&name, &version.to_string())));
            }
            let files: Vec<_> = files.iter().map(|(path, plugin, content)| (path.as_str(), plugin.as_deref(), content.clone())).collect();
            let lock = char::from_digit(u32::try_from(plugins.len()).unwrap() + 1, 16).unwrap();
            let set = Set::new(lock, 1, &files);
            set.store_on(&server);
            let _ = swap(&server.volume, &set.files, &mut HashCache::default(), &mut Disk::new(Crash { left }));
            last = Some(set);
        }
        let last = last.unwrap();
        server.swap(&last.files);
        prop_assert_eq!(server.files(), merged(&last, &unmanaged()));
        prop_assert_eq!(server.displaced(), BTreeMap::new());
    }
}
