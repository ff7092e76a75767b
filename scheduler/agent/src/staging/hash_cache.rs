//! Edge (reads). Caches the hashes of files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use agent_api::FileHash;
use artifacts::{Algorithm, Hash};

use crate::plain_fs;

/// A larger file is not hashed: no lock has one, and a file without content could have any size.
const MAX_HASHED_BYTES: u64 = 4 << 30;

/// The text is not a supported hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not `sha256:`, `sha512:` or `sha1:` with its hex digits")]
pub struct Malformed {
    text: String,
}

/// Reads the hash of a file in a lock.
pub fn parse(hash: &FileHash) -> Result<Hash, Malformed> {
    Hash::parse(&hash.0).ok_or_else(|| Malformed { text: hash.0.chars().take(160).collect() })
}

/// The hashes of files, each of which is read once while it is unchanged. It is meant for one run between a server's stop and its start, which
/// hashes the same JARs repeatedly, some hundred megabytes on a large server. No other process writes there meanwhile, so length and times show
/// whether a file is unchanged.
#[derive(Debug, Default)]
pub struct HashCache(HashMap<(FileStamp, Algorithm), Hash>);

/// The state of a file when it was read. Another stamp may mean other bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileStamp {
    file: (u64, u64),
    length: u64,
    /// Seconds and nanoseconds of the last change of the content, and of the metadata.
    times: [i64; 4],
}

impl FileStamp {
    pub(super) fn from_metadata(file: &Metadata) -> Self {
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Self { file: (file.dev(), file.ino()), length: file.len(), times }
    }
}

impl HashCache {
    /// Whether the file at `path` has this content. False for a missing file, and for a link or another item that is no plain file.
    pub fn matches_file(&mut self, hash: &Hash, path: &Path) -> io::Result<bool> {
        match self.hash_file(hash.algorithm(), path) {
            Ok(found) => Ok(found == Some(hash)),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(other) if plain_fs::refused_in(&other).is_some_and(|refused| refused.is_about(path)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// `None`: the file is too large.
    fn hash_file(&mut self, algorithm: Algorithm, path: &Path) -> io::Result<Option<&Hash>> {
        let file = plain_fs::open(path)?;
        // Taken from the open file, because another one may replace it at this path.
        let metadata = file.metadata()?;
        if metadata.len() > MAX_HASHED_BYTES {
            return Ok(None);
        }
        match self.0.entry((FileStamp::from_metadata(&metadata), algorithm)) {
            Entry::Occupied(entry) => Ok(Some(entry.into_mut())),
            Entry::Vacant(unknown) => Ok(Some(unknown.insert(algorithm.hash(file.take(MAX_HASHED_BYTES))?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use artifacts::Hasher;

    use super::*;

    #[test]
    fn unchanged_file_is_hashed_once() {
        let directory = tempfile::tempdir().unwrap();
        let (path, second) = (directory.path().join("a"), directory.path().join("b"));
        let of = |content: &[u8]| {
            let mut hasher = Hasher::new(Algorithm::Sha256);
            hasher.update(content);
            hasher.finish()
        };
        std::fs::write(&path, "abc").unwrap();
        let mut cache = HashCache::default();
        assert!(cache.matches_file(&of(b"abc"), &path).unwrap() && !cache.matches_file(&of(b"x"), &path).unwrap());
        assert_eq!(cache.0.len(), 1);
        // Only the content differs here, so a second read would be noticed.
        let stamp = FileStamp::from_metadata(&std::fs::metadata(&path).unwrap());
        cache.0.insert((stamp, Algorithm::Sha256), of(b"as remembered"));
        assert!(cache.matches_file(&of(b"as remembered"), &path).unwrap());
        std::fs::hard_link(&path, &second).unwrap();
        assert!(cache.matches_file(&of(b"abc"), &second).unwrap(), "the link changed its time, so it is read");
        std::fs::write(&path, "abd").unwrap();
        assert!(cache.matches_file(&of(b"abd"), &second).unwrap());
        assert!(!cache.matches_file(&of(b"abd"), &directory.path().join("missing")).unwrap());
    }

    #[test]
    fn invalid_hash_is_refused() {
        for text in ["", "sha256", "sha256:", "md5:d41d8cd98f00b204e9800998ecf8427e", "sha1:../../etc/passwd"] {
            assert!(parse(&FileHash(text.into())).is_err(), "{text}");
        }
        let upper = format!("sha1:{}", "AB".repeat(20));
        assert_eq!(parse(&FileHash(upper)).unwrap().hex(), "ab".repeat(20));
    }
}
