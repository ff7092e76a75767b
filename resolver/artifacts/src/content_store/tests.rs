//! Edge (writes). Checks which files a store has after each way to add, damage and remove one.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const CONTENT: &[u8] = b"a plugin, let us say";

fn store() -> (tempfile::TempDir, ContentStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = ContentStore::new(dir.path().join("store"));
    (dir, store)
}

async fn receive(store: &ContentStore, algorithm: Algorithm, content: &[u8]) -> CompleteFile {
    let mut file = store.begin(algorithm, content.len() as u64).unwrap();
    for chunk in content.chunks(7) {
        file.write(chunk).await.unwrap();
    }
    file.finish().await.unwrap()
}

/// Adds the file and returns its hash.
async fn add(store: &ContentStore, algorithm: Algorithm, content: &[u8]) -> Hash {
    let file = receive(store, algorithm, content).await;
    let hash = file.hash().clone();
    file.keep().unwrap();
    hash
}

/// The number of unfinished files.
fn unfinished(store: &ContentStore) -> usize {
    fs::read_dir(store.unfinished()).unwrap().count()
}

#[tokio::test]
async fn file_is_stored_under_hash_of_its_content() {
    let (_dir, store) = store();
    for algorithm in Algorithm::ALL {
        let file = receive(&store, algorithm, CONTENT).await;
        let hash = algorithm.hash(CONTENT).unwrap();
        assert_eq!((file.hash(), file.size()), (&hash, CONTENT.len() as u64));
        assert_eq!(fs::read(file.path()).unwrap(), CONTENT, "it can be read before it is kept");
        assert_eq!(store.verify(&hash).unwrap(), StoredContent::Missing);
        file.keep().unwrap();
        assert_eq!(store.verify(&hash).unwrap(), StoredContent::Intact);
        assert_eq!(store.path(&hash), store.dir().join(algorithm.as_str()).join(hash.hex()));
        assert_eq!(fs::read(store.path(&hash)).unwrap(), CONTENT);
    }
    assert_eq!(unfinished(&store), 0);
}

#[tokio::test]
async fn dropped_file_leaves_nothing_behind() {
    let (_dir, store) = store();
    let mut file = store.begin(Algorithm::Sha256, 100).unwrap();
    file.write(CONTENT).await.unwrap();
    assert_eq!(unfinished(&store), 1);
    drop(file);
    drop(receive(&store, Algorithm::Sha256, CONTENT).await);
    assert_eq!((unfinished(&store), store.list().unwrap()), (0, vec![]));
}

#[tokio::test]
async fn file_above_its_limit_is_refused() {
    let (_dir, store) = store();
    let mut file = store.begin(Algorithm::Sha256, 10).unwrap();
    file.check_size(10).unwrap();
    assert!(matches!(file.check_size(11), Err(StoreWriteError::TooLarge { limit: 10 })));
    file.write(&CONTENT[..10]).await.unwrap();
    assert!(matches!(file.write(&CONTENT[10..11]).await, Err(StoreWriteError::TooLarge { limit: 10 })));
}

#[tokio::test]
async fn damaged_file_is_found_removed_and_replaced() {
    let (_dir, store) = store();
    let hash = add(&store, Algorithm::Sha256, CONTENT).await;
    fs::write(store.path(&hash), &CONTENT[..5]).unwrap();
    assert_eq!(store.verify(&hash).unwrap(), StoredContent::Damaged);
    assert_eq!(add(&store, Algorithm::Sha256, CONTENT).await, hash);
    assert_eq!(store.verify(&hash).unwrap(), StoredContent::Intact);
    store.remove(&hash).unwrap();
    assert_eq!(store.verify(&hash).unwrap(), StoredContent::Missing);
    store.remove(&hash).unwrap();
}

#[tokio::test]
async fn failed_keep_leaves_no_file() {
    let (_dir, store) = store();
    let file = receive(&store, Algorithm::Sha256, CONTENT).await;
    // A file at the path of the directory causes a system error, as on a failing disk.
    fs::write(store.folder(Algorithm::Sha256), "").unwrap();
    file.keep().unwrap_err();
    assert_eq!((unfinished(&store), store.list().unwrap()), (0, vec![]));
}

#[tokio::test]
async fn list_has_complete_files_and_marks_foreign_names() {
    let (_dir, store) = store();
    assert_eq!(store.list().unwrap(), vec![], "the directory does not exist yet");
    let sha1 = add(&store, Algorithm::Sha1, CONTENT).await;
    let sha256 = add(&store, Algorithm::Sha256, &CONTENT[..4]).await;
    let _half = store.begin(Algorithm::Sha256, 100).unwrap();
    let upper = store.folder(Algorithm::Sha256).join("AB".repeat(32));
    fs::write(&upper, "x").unwrap();
    let mut found = store.list().unwrap();
    found.sort_by_key(|file| file.path.clone());
    let found: Vec<_> = found.into_iter().map(|file| (file.path, file.hash, file.size)).collect();
    let mut expected = vec![
        (store.path(&sha1), Some(sha1), CONTENT.len() as u64),
        (upper, None, 1),
        (store.path(&sha256), Some(sha256), 4),
    ];
    expected.sort_by_key(|(path, ..)| path.clone());
    assert_eq!(found, expected);
}

#[test]
fn list_does_not_follow_links() {
    let (dir, store) = store();
    let outside = dir.path().join("world");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("level.dat"), "world").unwrap();
    store.create().unwrap();
    symlink(&outside, store.folder(Algorithm::Sha256)).unwrap();
    assert_eq!(store.list().unwrap(), vec![]);
}

#[tokio::test]
async fn only_unfinished_files_of_killed_process_are_removed() {
    let (_dir, store) = store();
    store.remove_unfinished().unwrap();
    let hash = add(&store, Algorithm::Sha512, CONTENT).await;
    fs::write(store.unfinished().join("half"), "ha").unwrap();
    store.remove_unfinished().unwrap();
    assert!(!store.unfinished().exists());
    assert_eq!(store.verify(&hash).unwrap(), StoredContent::Intact);
}

#[tokio::test]
async fn files_are_private() {
    let (_dir, store) = store();
    let hash = add(&store, Algorithm::Sha256, CONTENT).await;
    assert_eq!(fs::metadata(store.path(&hash)).unwrap().permissions().mode() & 0o777, 0o600);
}
