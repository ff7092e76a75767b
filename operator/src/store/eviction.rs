//! Edge (writes). Enforces the store's limit on the disk by removing the least recently used files.
//!
//! The store is a cache on a volume with a limit of its own. The kubelet evicts a pod that exceeds that limit.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use artifacts::Hash;
use artifacts::download::UNFINISHED;

/// A file of the store.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StoredFile {
    /// When this process used it last: a higher number is later, and 0 means never.
    used: u64,
    /// When it was written. It orders the files that an earlier process left.
    written: SystemTime,
    path: PathBuf,
    size: u64,
}

/// Removes files until the others have at most `max_bytes` bytes together, and returns the removed ones. The file used last
/// always stays. A reader of a removed file is not interrupted. Blocks.
pub(super) fn evict_files(dir: &Path, max_bytes: u64, used: &BTreeMap<Hash, u64>) -> io::Result<Vec<PathBuf>> {
    let mut stored = Vec::new();
    for folder in fs::read_dir(dir)? {
        let folder = folder?;
        if folder.file_name() == UNFINISHED {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            let metadata = file.metadata()?;
            let (algorithm, hex) = (folder.file_name(), file.file_name());
            let hash = Hash::from_parts(&algorithm.to_string_lossy(), &hex.to_string_lossy());
            let used = hash.and_then(|hash| used.get(&hash).copied()).unwrap_or_default();
            stored.push(StoredFile { used, written: metadata.modified()?, path: file.path(), size: metadata.len() });
        }
    }
    stored.sort();
    stored.pop();
    let mut excess = stored.iter().map(|file| file.size).sum::<u64>().saturating_sub(max_bytes);
    let mut removed = Vec::new();
    for StoredFile { path, size, used: _, written: _ } in stored {
        if excess == 0 {
            break;
        }
        fs::remove_file(&path)?;
        excess = excess.saturating_sub(size);
        removed.push(path);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_removes_least_recently_used_file_first() {
        let dir = tempfile::tempdir().unwrap();
        let hash = |digit: &str| Hash::from_parts("sha256", &digit.repeat(64)).unwrap();
        for folder in ["sha256", UNFINISHED] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join(UNFINISHED).join("x"), [0; 99]).unwrap();
        for digit in ["1", "2", "3", "4"] {
            fs::write(dir.path().join("sha256").join(hash(digit).hex()), [0; 10]).unwrap();
        }
        let used = BTreeMap::from([(hash("1"), 7), (hash("2"), 5), (hash("3"), 6)]);
        let left = || {
            let names = fs::read_dir(dir.path().join("sha256")).unwrap();
            let mut names: Vec<String> = names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names.iter().map(|name| name[..1].to_owned()).collect::<String>()
        };
        evict_files(dir.path(), 30, &used).unwrap();
        assert_eq!(left(), "1234", "the file used last does not count");
        evict_files(dir.path(), 25, &used).unwrap();
        assert_eq!(left(), "123", "a file without a use is removed first");
        evict_files(dir.path(), 10, &used).unwrap();
        assert_eq!(left(), "13");
        evict_files(dir.path(), 0, &used).unwrap();
        assert_eq!(left(), "1");
    }
}
