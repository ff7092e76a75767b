//! Edge (reads). Computes and caches hashes of files, in the algorithms that sources publish.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::protocol::FileHash;

/// A hash algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Modrinth and Mojang. It protects against accidents only, and is used where a source publishes no better one.
    Sha1,
    /// Fill and Hangar.
    Sha256,
    /// Modrinth.
    Sha512,
}

impl Algorithm {
    /// The name before the colon and in the store's paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A hash that can be compared with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash {
    algorithm: Algorithm,
    hex: String,
}

/// The text is not a supported hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not `sha256:`, `sha512:` or `sha1:` with its hex digits")]
pub struct Malformed {
    text: String,
}

impl Hash {
    /// Reads `<algorithm>:<hex>`. Upper-case digits are read as lower-case ones.
    pub fn parse(text: &FileHash) -> Result<Self, Malformed> {
        let malformed = || Malformed { text: text.0.chars().take(160).collect() };
        let (name, digits) = text.0.split_once(':').ok_or_else(malformed)?;
        let algorithms = [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];
        let algorithm = algorithms.into_iter().find(|algorithm| algorithm.name() == name).ok_or_else(malformed)?;
        if digits.len() != algorithm.digits() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(malformed());
        }
        Ok(Self { algorithm, hex: digits.to_ascii_lowercase() })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digits, lower-case.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Whether the file at `path` has this content. False for a missing file.
    pub fn matches_file(&self, path: &Path) -> io::Result<bool> {
        HashCache::default().matches_file(self, path)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

/// The hashes of files, each of which is read once while it is unchanged. It is meant for one run between a server's stop and its start, which
/// hashes the same JARs repeatedly, some hundred megabytes on a large server. No other process writes there meanwhile, so length and times show
/// whether a file is unchanged.
#[derive(Debug, Default)]
pub struct HashCache(HashMap<(Stamp, Algorithm), Hash>);

/// The state of a file when it was read.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Stamp {
    file: (u64, u64),
    length: u64,
    /// Seconds and nanoseconds of the last change of the content, and of the metadata.
    times: [i64; 4],
}

impl Stamp {
    fn from_metadata(file: &Metadata) -> Self {
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Self { file: (file.dev(), file.ino()), length: file.len(), times }
    }
}

impl HashCache {
    /// Whether the file at `path` has this content. False for a missing file.
    pub fn matches_file(&mut self, hash: &Hash, path: &Path) -> io::Result<bool> {
        match self.hash_file(hash.algorithm, path) {
            Ok(found) => Ok(found == hash),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn hash_file(&mut self, algorithm: Algorithm, path: &Path) -> io::Result<&Hash> {
        let mut file = File::open(path)?;
        // Taken from the open file, because another one may replace it at this path.
        match self.0.entry((Stamp::from_metadata(&file.metadata()?), algorithm)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(unknown) => Ok(unknown.insert(read(algorithm, &mut file)?)),
        }
    }
}

/// Hashes bytes incrementally.
#[derive(Clone)]
pub enum Hasher {
    /// SHA-1.
    Sha1(Sha1),
    /// SHA-256.
    Sha256(Sha256),
    /// SHA-512.
    Sha512(Sha512),
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

impl Hasher {
    /// A new hasher.
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha1 => Self::Sha1(Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the hash.
    pub fn finish(self) -> Hash {
        let (algorithm, hex) = match self {
            Self::Sha1(hasher) => (Algorithm::Sha1, hex::encode(hasher.finalize())),
            Self::Sha256(hasher) => (Algorithm::Sha256, hex::encode(hasher.finalize())),
            Self::Sha512(hasher) => (Algorithm::Sha512, hex::encode(hasher.finalize())),
        };
        Hash { algorithm, hex }
    }
}

/// Hashes a whole file.
pub fn hash_file(algorithm: Algorithm, path: &Path) -> io::Result<Hash> {
    read(algorithm, &mut File::open(path)?)
}

fn read(algorithm: Algorithm, file: &mut File) -> io::Result<Hash> {
    let mut hasher = Hasher::new(algorithm);
    let mut bytes = vec![0; 128 * 1024];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&bytes[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_algorithms_match_published_values_for_abc() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        // FIPS 180-4, the examples.
        for (algorithm, start) in [
            (Algorithm::Sha1, "sha1:a9993e364706816aba3e25717850c26c9cd0d89d"),
            (Algorithm::Sha256, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (Algorithm::Sha512, "sha512:ddaf35a193617abacc417349ae204131"),
        ] {
            let hash = hash_file(algorithm, file.path()).unwrap();
            assert!(hash.to_string().starts_with(start), "{hash}");
            assert_eq!(Hash::parse(&FileHash(hash.to_string())).unwrap(), hash);
        }
    }

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
        let stamp = Stamp::from_metadata(&std::fs::metadata(&path).unwrap());
        cache.0.insert((stamp, Algorithm::Sha256), of(b"as remembered"));
        assert!(cache.matches_file(&of(b"as remembered"), &path).unwrap());
        std::fs::hard_link(&path, &second).unwrap();
        assert!(cache.matches_file(&of(b"abc"), &second).unwrap(), "its time is another one now, so it is read");
        std::fs::write(&path, "abd").unwrap();
        assert!(cache.matches_file(&of(b"abd"), &second).unwrap());
        assert!(!cache.matches_file(&of(b"abd"), &directory.path().join("missing")).unwrap());
    }

    #[test]
    fn invalid_hash_is_refused() {
        for text in ["", "sha256", "sha256:", "md5:d41d8cd98f00b204e9800998ecf8427e", "sha1:../../etc/passwd"] {
            assert!(Hash::parse(&FileHash(text.into())).is_err(), "{text}");
        }
        let upper = format!("sha1:{}", "AB".repeat(20));
        assert_eq!(Hash::parse(&FileHash(upper)).unwrap().hex(), "ab".repeat(20));
    }
}
