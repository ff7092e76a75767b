//! Edge (writes). Caches pages on disk, one small file per page that is replaced as a whole.
//!
//! The files are MessagePack and not JSON: a command reads them on each run, and parsing text takes longer than all
//! other input of the answer (`benches/README.md`).
//!
//! This is a cache: a file that is missing, truncated, of another format or unreadable is a miss and has no other
//! effect. For the same reason writes are not fsynced.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::StartError;

/// Incremented when the stored form changes. Older files are then misses.
const FORMAT: u32 = 6;

/// Extension of the files.
const EXTENSION: &str = ".msgpack";

/// File systems allow 255 bytes a name. The extension and the temporary name need some of them.
const MAX_NAME_LENGTH: usize = 200;

/// Source and age of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageOrigin {
    /// URL that the page was read from. With another base URL it is another page.
    pub(super) url: String,
    /// Value for `If-None-Match`.
    pub(super) etag: Option<String>,
    /// When these bytes were fetched.
    pub(super) fetched_at: Timestamp,
    /// When the upstream last confirmed that the page is unchanged.
    pub(super) checked_at: Timestamp,
}

/// A page with its origin.
#[derive(Debug)]
pub(super) struct StoredPage<T> {
    pub(super) stamp: PageOrigin,
    pub(super) body: Arc<T>,
}

impl<T> Clone for StoredPage<T> {
    fn clone(&self) -> Self {
        Self { stamp: self.stamp.clone(), body: Arc::clone(&self.body) }
    }
}

/// The form that is read. It is not flattened, which would parse every page twice.
#[derive(Deserialize)]
struct CacheFile<T> {
    format: u32,
    stamp: PageOrigin,
    body: T,
}

/// The form that is written.
#[derive(Serialize)]
struct FileRef<'a, T> {
    format: u32,
    stamp: &'a PageOrigin,
    body: &'a T,
}

/// The cache directory.
#[derive(Debug, Clone)]
pub(super) struct DiskStore {
    dir: PathBuf,
}

impl DiskStore {
    pub(super) fn open(dir: &Path) -> Result<Self, StartError> {
        fs::create_dir_all(dir).map_err(|source| StartError { path: dir.display().to_string(), source })?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// A store that is only read. The directory need not exist.
    pub(super) fn open_existing(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Returns the page, or None if it is missing or unreadable. Blocks.
    pub(super) fn read<T: DeserializeOwned>(&self, folder: &str, name: &str) -> Option<StoredPage<T>> {
        let path = self.path(folder, name);
        let bytes = fs::read(&path).ok()?;
        match rmp_serde::from_slice::<CacheFile<T>>(&bytes) {
            Ok(CacheFile { format: FORMAT, stamp, body }) => Some(StoredPage { stamp, body: Arc::new(body) }),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a stored page is unreadable and will be fetched again");
                None
            }
        }
    }

    /// Writes the page over an older one. Blocks. A failure costs one request after the next restart, so it is only
    /// logged.
    pub(super) fn write<T: Serialize>(&self, folder: &str, name: &str, page: &StoredPage<T>) {
        let path = self.path(folder, name);
        if let Err(error) = write(&path, page) {
            tracing::warn!(path = %path.display(), %error, "a page could not be stored");
        }
    }

    /// Names of all pages in a folder, sorted, except those too long for a file name. Blocks.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.dir.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| decode_name(entry.file_name().to_str()?.strip_suffix(EXTENSION)?)).collect();
        names.sort();
        names
    }

    fn path(&self, folder: &str, name: &str) -> PathBuf {
        self.dir.join(folder).join(format!("{}{EXTENSION}", encode_name(name)))
    }
}

fn write<T: Serialize>(path: &Path, page: &StoredPage<T>) -> std::io::Result<()> {
    let dir = path.parent().expect("the path ends with `<folder>/<file>`");
    fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    // Named fields, as in JSON, because fields that hold no value are left out.
    let bytes = rmp_serde::to_vec_named(&FileRef { format: FORMAT, stamp: &page.stamp, body: page.body.as_ref() });
    file.write_all(&bytes.map_err(std::io::Error::other)?)?;
    file.persist(path)?;
    Ok(())
}

/// Encodes a name as a file name. Capitals and other characters are escaped, so that two names never share a file, not
/// even where the file system ignores case.
fn encode_name(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        let plain = byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        // A leading dot would hide the file or name a folder.
        if plain || (byte == b'.' && !escaped.is_empty()) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.push_str(&hex::encode([byte]));
        }
    }
    if escaped.len() > MAX_NAME_LENGTH { hex::encode(Sha256::digest(name)) } else { escaped }
}

/// Decodes a name that [`encode_name`] escaped. `None` means that the file was not written by this module.
fn decode_name(escaped: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = escaped;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.extend(hex::decode(rest.get(at + 1..at + 3)?).ok()?);
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> StoredPage<String> {
        let at = "2026-01-21T12:00:00Z".parse().unwrap();
        let stamp =
            PageOrigin { url: "http://x/y".to_owned(), etag: Some("\"e\"".to_owned()), fetched_at: at, checked_at: at };
        StoredPage { stamp, body: Arc::new(body.to_owned()) }
    }

    #[test]
    fn disk_cache_page_round_trips_and_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        assert!(store.read::<String>("names", "a").is_none());
        store.write("names", "a", &page("one"));
        store.write("names", "a", &page("two"));
        let read = store.read::<String>("names", "a").unwrap();
        assert_eq!((read.body.as_str(), &read.stamp), ("two", &page("").stamp));
        assert_eq!(fs::read_dir(dir.path().join("names")).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn disk_cache_damaged_page_is_a_miss() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        store.write("names", "a", &page("one"));
        let path = store.path("names", "a");
        let whole = fs::read(&path).unwrap();
        for damaged in [&b""[..], b"{}", b"\0\0\0\0", b"\xdd\xff\xff\xff\xff", &whole[..whole.len() - 3]] {
            fs::write(&path, damaged).unwrap();
            assert!(store.read::<String>("names", "a").is_none());
        }
        let mut other = whole.clone();
        let at = whole.windows(6).position(|bytes| bytes == b"format").unwrap() + 6;
        assert_eq!(u32::from(std::mem::replace(&mut other[at], 99)), FORMAT);
        fs::write(&path, other).unwrap();
        assert!(store.read::<String>("names", "a").is_none(), "a page of another format is a miss");
        fs::write(&path, whole).unwrap();
        assert!(store.read::<String>("names", "a").is_some(), "the undamaged page is read");
    }

    #[test]
    fn disk_cache_names_stay_in_folder_and_distinct() {
        assert_eq!(encode_name("../../etc/passwd"), "%2e.%2f..%2fetc%2fpasswd");
        assert_ne!(encode_name("P1OZGk5p"), encode_name("p1ozgk5p"));
        assert_eq!(encode_name(&"!".repeat(300)).len(), 64);
        for name in ["modrinth/ViaVersion", "../../etc/passwd", "a_b-c", "é"] {
            assert_eq!(decode_name(&encode_name(name)).as_deref(), Some(name));
        }
        assert_eq!(decode_name("50%"), None);
    }
}
