//! Edge (writes). Checks which files are added to the store, refused, and removed from it.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;

use super::super::fs_ops::{Disk, RealFs};
use super::super::hash_cache::HashCache;
use super::super::jar_descriptor::tests::jar;
use super::super::swap::swap;
use super::*;
use agent_api::FileHash;
use artifacts::content_store::StoreWriteError;
use artifacts::{Algorithm, Hasher};

fn file(path: &str, plugin: Option<&str>, content: &[u8], algorithm: Algorithm) -> File {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(content);
    let hash = FileHash(hasher.finish().to_string());
    let size = Some(content.len() as u64);
    File { path: path.into(), hash, size, url: String::new(), plugin: plugin.map(str::to_owned), provides: Vec::new() }
}

fn set(lock: char, content: &[u8]) -> FileSet {
    FileSet {
        lock: lock.to_string().repeat(64),
        minecraft: "1.21.10".into(),
        build: 1,
        data_version: None,
        server: file(".nightshift/server/paper.jar", None, content, Algorithm::Sha256),
        support: vec![],
        plugins: vec![],
    }
}

fn store() -> (tempfile::TempDir, VolumeStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = VolumeStore::new(Volume::new(directory.path()));
    (directory, store)
}

fn receive(store: &VolumeStore, file: &File, content: &[u8]) -> Result<(), Error> {
    keep(file, complete(store.begin(file)?, content).unwrap())
}

/// Writes the content in pieces.
fn complete(mut incoming: UnfinishedFile, content: &[u8]) -> Result<CompleteFile, StoreWriteError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for piece in content.chunks(70) {
            incoming.write(piece).await?;
        }
        incoming.finish().await
    })
}

fn everything(store: &VolumeStore) -> Vec<String> {
    let files = walkdir::WalkDir::new(store.volume.store_dir()).into_iter().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_file());
    files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn file_is_stored_under_its_hash_in_each_algorithm() {
    let (directory, store) = store();
    let public = directory.path().join("public");
    fs::File::options().write(true).create_new(true).mode(0o644).open(&public).unwrap();
    let permissions = |path: &Path| fs::metadata(path).unwrap().permissions();
    let content = jar(&[("plugin.yml", "name: Demo\nversion: 1\nmain: a.B\n")]);
    for algorithm in [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512] {
        let demo = file("plugins/Demo.jar", Some("Demo"), &content, algorithm);
        receive(&store, &demo, &content).unwrap();
        let digits = demo.hash.0.split_once(':').unwrap().1;
        let stored = store.volume.store_dir().join(algorithm.as_str()).join(digits);
        assert_eq!(fs::read(&stored).unwrap(), content);
        assert_eq!(permissions(&stored), permissions(&public), "the server can read it");
    }
}

#[test]
fn content_with_wrong_hash_leaves_no_file_behind() {
    let (_directory, store) = store();
    let content = jar(&[("plugin.yml", "name: Demo\nversion: 1\nmain: a.B\n")]);
    let demo = file("plugins/Demo.jar", Some("Demo"), &content, Algorithm::Sha256);
    let mut longer = content.clone();
    longer.push(0);
    let mut other = content.clone();
    other[40] ^= 1;
    let too_large = complete(store.begin(&demo).unwrap(), &longer);
    assert!(matches!(too_large, Err(StoreWriteError::TooLarge { limit }) if limit == content.len() as u64));
    assert!(matches!(receive(&store, &demo, &content[1..]), Err(Error::Mismatch { .. })));
    assert!(matches!(receive(&store, &demo, &other), Err(Error::Mismatch { .. })));
    let page = file("plugins/Demo.jar", Some("Demo"), b"<html>", Algorithm::Sha256);
    assert!(matches!(receive(&store, &page, b"<html>"), Err(Error::NotAJar { .. })));
    let renamed = File { plugin: Some("Warps".into()), ..demo.clone() };
    assert!(matches!(receive(&store, &renamed, &content), Err(Error::OtherPlugin { .. })));
    assert_eq!(everything(&store), Vec::<String>::new());
    let half = store.begin(&demo).unwrap();
    assert_eq!(everything(&store).len(), 1);
    drop(half);
    assert_eq!(everything(&store), Vec::<String>::new());
}

#[test]
fn non_jar_file_is_not_opened_as_jar() {
    let (_directory, store) = store();
    let text = file("libraries/notice.txt", None, b"text", Algorithm::Sha256);
    receive(&store, &text, b"text").unwrap();
}

#[test]
fn truncated_file_is_detected_and_requested_again() {
    let (_directory, store) = store();
    let content = jar(&[("x", "y")]);
    let set = set('a', &content);
    assert_eq!(store.missing(&set, &mut HashCache::default()).unwrap(), std::slice::from_ref(&set.server));
    receive(&store, &set.server, &content).unwrap();
    store.mark_staged(&set).unwrap();
    assert_eq!(store.staged(None).unwrap(), std::slice::from_ref(&set.lock));
    let stored = store.volume.stored_path(&Hash::parse(&set.server.hash.0).unwrap());
    fs::write(&stored, &content[..10]).unwrap();
    assert_eq!(store.staged(None).unwrap(), Vec::<String>::new());
    assert_eq!(store.missing(&set, &mut HashCache::default()).unwrap(), std::slice::from_ref(&set.server));
    assert!(!stored.exists());
}

#[test]
fn stored_file_is_not_fetched() {
    let (directory, store) = store();
    let content = jar(&[("x", "y")]);
    let set = set('a', &content);
    fs::create_dir_all(directory.path().join(".nightshift/server")).unwrap();
    fs::write(directory.path().join(".nightshift/server/paper.jar"), &content).unwrap();
    assert_eq!(store.missing(&set, &mut HashCache::default()).unwrap(), vec![]);
    assert_eq!(everything(&store).len(), 1);
}

#[test]
fn store_never_fills_the_volume() {
    let (_directory, store) = store();
    let free = store.free_bytes().unwrap();
    let huge = File { size: Some(free), ..set('a', b"").server };
    assert!(matches!(store.check_space(std::slice::from_ref(&huge)), Err(Error::Full { .. })));
    assert!(matches!(store.check_space(&[File { size: Some(u64::MAX), ..huge.clone() }]), Err(Error::Full { .. })));
    store.check_space(&[File { size: Some(1), ..huge }]).unwrap();
}

#[test]
fn cleanup_keeps_current_previous_and_staged_locks() {
    let (_directory, store) = store();
    let contents: Vec<Vec<u8>> = (0..4).map(|number| jar(&[("n", &number.to_string())])).collect();
    let sets: Vec<FileSet> =
        ['a', 'b', 'c', 'd'].into_iter().zip(&contents).map(|(lock, content)| set(lock, content)).collect();
    for (set, content) in sets.iter().zip(&contents) {
        receive(&store, &set.server, content).unwrap();
        if set.lock.starts_with('d') {
            store.mark_staged(set).unwrap();
        } else {
            swap(&store.volume, set, &mut HashCache::default(), &mut Disk::new(RealFs)).unwrap();
        }
    }
    assert_eq!(store.prune().unwrap(), 1, "`a` is two locks old, and its run was not recorded");
    assert_eq!(store.missing(&sets[0], &mut HashCache::default()).unwrap().len(), 1);
    for set in &sets[1..] {
        assert_eq!(store.missing(set, &mut HashCache::default()).unwrap(), vec![], "{}", set.lock);
    }
    assert_eq!(store.staged(None).unwrap(), sets[1..].iter().map(|set| set.lock.clone()).collect::<Vec<_>>());
}

#[test]
fn cleanup_removes_files_of_killed_processes() {
    let (_directory, store) = store();
    let content = jar(&[("n", "1")]);
    let set = set('a', &content);
    receive(&store, &set.server, &content).unwrap();
    store.mark_staged(&set).unwrap();
    let half = complete(store.begin(&set.server).unwrap(), &content).unwrap();
    fs::write(half.path().with_file_name("half"), "ha").unwrap();
    // An agent before the shared store left its unfinished files here. A link that was being made has such a name, too.
    fs::write(store.volume.store_dir().join("sha256").join(".incoming.x"), "ha").unwrap();
    assert_eq!(store.prune().unwrap(), 1);
    assert_eq!(everything(&store).len(), 1);
    assert_eq!(store.staged(None).unwrap(), [set.lock]);
}

#[test]
fn staged_lock_that_never_ran_makes_room_for_next() {
    let (_directory, store) = store();
    for (lock, content) in [('a', "1"), ('b', "2")] {
        let content = jar(&[("n", content)]);
        let set = set(lock, &content);
        receive(&store, &set.server, &content).unwrap();
        store.mark_staged(&set).unwrap();
    }
    assert_eq!(store.staged(None).unwrap(), ["b".repeat(64)]);
    assert_eq!(store.prune().unwrap(), 1);
}

/// Runs these locks one after another, each with its own JAR and one that all share, as one pod per lock would.
fn run_all(store: &VolumeStore, locks: &str) -> Vec<FileSet> {
    let common = jar(&[("n", "all")]);
    let shared = file("cache/shared.jar", None, &common, Algorithm::Sha256);
    let mut sets = Vec::new();
    for lock in locks.chars() {
        let content = jar(&[("n", &lock.to_string().repeat(100))]);
        let set = FileSet { support: vec![shared.clone()], ..set(lock, &content) };
        receive(store, &set.server, &content).unwrap();
        if !store.missing(&set, &mut HashCache::default()).unwrap().is_empty() {
            receive(store, &shared, &common).unwrap();
        }
        store.mark_staged(&set).unwrap();
        swap(&store.volume, &set, &mut HashCache::default(), &mut Disk::new(RealFs)).unwrap();
        store.record_run().unwrap();
        store.prune().unwrap();
        sets.push(set);
    }
    sets
}

fn complete_sets(store: &VolumeStore, sets: &[FileSet]) -> String {
    let is_complete = |set: &&FileSet| store.missing(set, &mut HashCache::default()).unwrap().is_empty();
    sets.iter().filter(is_complete).map(|set| set.lock.chars().next().unwrap()).collect()
}

#[test]
fn files_of_last_five_locks_survive_next_staging() {
    let (_directory, store) = store();
    let sets = run_all(&store, "abcdefg1");
    // `a` and `b` ran too long ago. A file is linked back into the store only for the current lock.
    assert_eq!(complete_sets(&store, &sets), "cdefg1");
    store.mark_staged(&sets[2]).unwrap();
    let lately = [sets[7].lock.clone(), sets[6].lock.clone()];
    assert_eq!(store.staged(None).unwrap(), lately, "version sets that may be needed");
    let with_requested = [&sets[7], &sets[2], &sets[6]].map(|set| set.lock.clone());
    assert_eq!(store.staged(Some(&sets[2].lock)).unwrap(), with_requested, "a user requested `c`");
    let again = run_all(&store, "d");
    assert_eq!(complete_sets(&store, &again), "d");
    assert_eq!(complete_sets(&store, &sets), "cdefg1", "a version set that runs again counts once");
}

#[test]
fn cleanup_for_space_removes_oldest_but_never_rollback_lock() {
    let (_directory, store) = store();
    let sets = run_all(&store, "abcdef");
    let jar_of = |set: &FileSet| set.server.size.unwrap();
    assert_eq!(store.fewest_that_free(0, None).unwrap(), Some(vec![]));
    let two = jar_of(&sets[0]) + 1;
    assert_eq!(store.fewest_that_free(two, None).unwrap().unwrap(), [sets[0].lock.clone(), sets[1].lock.clone()]);
    assert_eq!(store.fewest_that_free(u64::MAX, None).unwrap(), None);
    let incoming = store.fewest_that_free(two, Some(&sets[0])).unwrap().unwrap();
    assert_eq!(incoming, [sets[1].lock.clone(), sets[2].lock.clone()], "the incoming version set is never removed");

    let huge = File { size: Some(u64::MAX), ..sets[5].server.clone() };
    assert!(matches!(store.free_space_for(&sets[5], &[huge]), Err(Error::Full { .. })));
    assert_eq!(complete_sets(&store, &sets), "abcdef", "version sets stay if removal frees too little");

    assert_eq!(store.prune_to_free(two).unwrap().len(), 2);
    assert_eq!(complete_sets(&store, &sets), "cdef");
    assert_eq!(store.prune_to_free(u64::MAX).unwrap().len(), 2);
    assert_eq!(complete_sets(&store, &sets), "ef", "the current and previous version set stay");
    assert_eq!(store.prune_to_free(u64::MAX).unwrap(), Vec::<String>::new());
}

#[test]
fn cleanup_for_space_keeps_files_of_lock_being_staged() {
    let (_directory, store) = store();
    let sets = run_all(&store, "abcd");
    let content = jar(&[("n", "new")]);
    let old = File { path: "cache/old.jar".into(), ..sets[0].server.clone() };
    let incoming = FileSet { support: vec![old], ..set('9', &content) };
    receive(&store, &incoming.server, &content).unwrap();
    let removed = store.fewest_that_free(1, Some(&incoming)).unwrap().unwrap();
    assert_eq!(removed, [sets[0].lock.clone(), sets[1].lock.clone()], "the JAR of `a` is needed, so `b` is removed");
    store.remove_sets(&removed, Some(&incoming)).unwrap();
    assert_eq!(store.missing(&incoming, &mut HashCache::default()).unwrap(), vec![], "its files stay without a record");
    assert_eq!(complete_sets(&store, &sets), "acd");
    assert!(!store.staged(Some(&sets[1].lock)).unwrap().contains(&sets[1].lock), "`b` does not count as staged");
    let runs_and_before = [sets[2].lock.clone(), sets[3].lock.clone()];
    assert_eq!(store.staged(None).unwrap(), runs_and_before);
}

#[test]
fn failed_write_names_the_file_and_second_try_succeeds() {
    let (_directory, store) = store();
    let content = b"x: 1";
    let file = file("config/paper.yml", None, content, Algorithm::Sha256);
    // A file at the path of its directory causes a system error, as on a failing disk.
    let beginning = store.volume.store_dir();
    fs::create_dir_all(beginning.parent().unwrap()).unwrap();
    fs::write(&beginning, b"").unwrap();
    let refused = store.begin(&file).unwrap_err().to_string();
    assert_eq!(refused, format!("could not begin `{}` in the store on the volume", file.path));
    fs::remove_file(&beginning).unwrap();

    let received = complete(store.begin(&file).unwrap(), content).unwrap();
    fs::remove_dir_all(&beginning).unwrap();
    let refused = keep(&file, received).unwrap_err().to_string();
    assert_eq!(refused, format!("could not keep `{}` in the store on the volume", file.path));
    assert_eq!(everything(&store), [""; 0]);

    receive(&store, &file, content).unwrap();
    assert_eq!(everything(&store).len(), 1);
}
