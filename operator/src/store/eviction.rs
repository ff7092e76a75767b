//! Edge (writes). Enforces the store's limit on the disk by removing the least recently used files.
//!
//! The store is a cache on a volume with a limit of its own. The kubelet evicts a pod that exceeds that limit.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use artifacts::Hash;
use artifacts::content_store::{ContentStore, StoredFile};

/// Removes files until the others have at most `max_bytes` bytes together, and returns the removed ones. The file used
/// last always stays. `used` has the last use of each file in this process: a higher number is later. Files that an
/// earlier process left have none, and are removed first, by their age. A reader of a removed file is not interrupted.
/// Blocks.
pub(super) fn evict_files(
    store: &ContentStore,
    max_bytes: u64,
    used: &BTreeMap<Hash, u64>,
) -> io::Result<Vec<PathBuf>> {
    let last_use = |file: &StoredFile| file.hash.as_ref().and_then(|hash| used.get(hash).copied()).unwrap_or_default();
    let mut stored = store.list()?;
    stored.sort_by_cached_key(|file| (last_use(file), file.written, file.path.clone()));
    stored.pop();
    let mut excess = stored.iter().map(|file| file.size).sum::<u64>().saturating_sub(max_bytes);
    let mut removed = Vec::new();
    for file in stored {
        if excess == 0 {
            break;
        }
        fs::remove_file(&file.path)?;
        excess = excess.saturating_sub(file.size);
        removed.push(file.path);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_removes_least_recently_used_file_first() {
        let dir = tempfile::tempdir().unwrap();
        let store = ContentStore::new(dir.path());
        let hash = |digit: &str| Hash::from_parts("sha256", &digit.repeat(64)).unwrap();
        fs::create_dir(dir.path().join("sha256")).unwrap();
        for digit in ["1", "2", "3", "4"] {
            fs::write(store.path(&hash(digit)), [0; 10]).unwrap();
        }
        let used = BTreeMap::from([(hash("1"), 7), (hash("2"), 5), (hash("3"), 6)]);
        let left = || {
            let names = fs::read_dir(dir.path().join("sha256")).unwrap();
            let mut names: Vec<String> = names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names.iter().map(|name| name[..1].to_owned()).collect::<String>()
        };
        evict_files(&store, 30, &used).unwrap();
        assert_eq!(left(), "1234", "the file used last does not count");
        evict_files(&store, 25, &used).unwrap();
        assert_eq!(left(), "123", "a file without a use is removed first");
        evict_files(&store, 10, &used).unwrap();
        assert_eq!(left(), "13");
        evict_files(&store, 0, &used).unwrap();
        assert_eq!(left(), "1");
    }
}
