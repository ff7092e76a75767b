//! Edge (reads). What lies on a server's volume because of us: names, places, and the records that say which files are ours.
//!
//! Everything we remember is below `.nightshift` on the volume itself, so that it goes where the world goes. Files come into the
//! [`store`] hours before a window; the [`swap`] makes the server's directory equal to a lock by links and renames, between a stop and
//! a start. JARs that people put there are never changed.

pub mod content_store;
pub mod displaced_jars;
pub mod drift;
pub mod fs_ops;
pub mod hash_cache;
pub mod jar_descriptor;
pub mod swap;
pub mod unmanaged_jars;
mod update_folder;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::protocol::{File, FileHash, FileSet, OUR_DIR};
use hash_cache::{Hash, Malformed};

/// The server's directory on the volume (`/data`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    root: PathBuf,
}

impl Volume {
    /// The volume that is mounted at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The server's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where plugins lie.
    pub fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    fn ours(&self) -> PathBuf {
        self.root.join(OUR_DIR)
    }

    fn manifest_path(&self) -> PathBuf {
        self.ours().join("manifest.json")
    }

    fn journal_path(&self) -> PathBuf {
        self.ours().join("journal.json")
    }

    fn staged_dir(&self) -> PathBuf {
        self.ours().join("staged")
    }

    fn staged_path(&self, lock: &str) -> PathBuf {
        self.staged_dir().join(format!("{lock}.json"))
    }

    fn ran_path(&self) -> PathBuf {
        self.ours().join("ran.json")
    }

    fn replaced_dir(&self) -> PathBuf {
        self.ours().join("replaced")
    }

    fn replaced_path(&self) -> PathBuf {
        self.ours().join("replaced.json")
    }

    fn store_dir(&self) -> PathBuf {
        self.ours().join("store")
    }

    fn store_of(&self, hash: &Hash) -> PathBuf {
        self.store_dir().join(hash.algorithm().name())
    }

    fn stored(&self, hash: &Hash) -> PathBuf {
        self.store_of(hash).join(hash.hex())
    }

    /// Where the record of the last stop lies.
    pub fn last_stop_path(&self) -> PathBuf {
        self.ours().join("last-stop.json")
    }

    /// Where the record lies of the process of the server that was there last.
    pub fn running_path(&self) -> PathBuf {
        self.ours().join("running.json")
    }

    /// Where the record lies that the copy for the step under way has been taken.
    pub fn copied_path(&self) -> PathBuf {
        self.ours().join("copied.json")
    }

    /// Where the record of the last copy lies that could not be taken.
    pub fn copy_failed_path(&self) -> PathBuf {
        self.ours().join("copy-failed.json")
    }

    /// Where the last request for a copy of the running server lies, and what came of it.
    pub fn hot_copy_path(&self) -> PathBuf {
        self.ours().join("hot-copy.json")
    }

    /// Where it is noted that saving may be switched off in the server that runs.
    pub fn saving_off_path(&self) -> PathBuf {
        self.ours().join("saving-off.json")
    }

    /// Where the record of a restore lies that has begun.
    pub fn restore_journal_path(&self) -> PathBuf {
        self.ours().join("restore.json")
    }

    /// Where the record of the last restore lies.
    pub fn restored_path(&self) -> PathBuf {
        self.ours().join("restored.json")
    }

    /// Where the record of the last order of a person to restore lies that was not obeyed.
    pub fn restore_refused_path(&self) -> PathBuf {
        self.ours().join("restore-refused.json")
    }

    /// Where the record lies of what came of an order for a volume without a world.
    pub fn new_volume_path(&self) -> PathBuf {
        self.ours().join("new-volume.json")
    }

    /// Where a copy is unpacked, to be moved into place as a whole.
    pub fn restoring_dir(&self) -> PathBuf {
        self.ours().join("restoring")
    }

    /// Where that goes which made room for a copy.
    pub fn set_aside_dir(&self) -> PathBuf {
        self.ours().join("set-aside")
    }

    /// Where the record lies that somebody has played since this pod started.
    pub fn played_path(&self) -> PathBuf {
        self.ours().join("played.json")
    }

    /// Where the record lies of the worlds and datapacks that a start has opened, and of those that were closed since.
    pub fn opened_path(&self) -> PathBuf {
        self.ours().join("opened.json")
    }

    /// Where the record lies of what the server's log has told of damage to the worlds.
    pub fn damage_path(&self) -> PathBuf {
        self.ours().join("damage.json")
    }

    /// Where the plugins' data lie that were kept, a directory for each change of the set.
    pub fn kept_dir(&self) -> PathBuf {
        self.ours().join("kept")
    }

    /// Where the settings lie of plugins whose data are not kept whole, a directory for each change of the set.
    pub fn kept_settings_dir(&self) -> PathBuf {
        self.ours().join("kept-settings")
    }

    /// Where the plugins' data go that a failed set has written, a directory for each set.
    pub fn failed_dir(&self) -> PathBuf {
        self.ours().join("failed")
    }

    /// Where the record lies of what was kept before the set changed last.
    pub fn plugin_data_path(&self) -> PathBuf {
        self.ours().join("plugin-data.json")
    }

    /// Where the record lies of plugins' data that are being put back.
    pub fn plugin_data_journal_path(&self) -> PathBuf {
        self.ours().join("plugin-data-back.json")
    }

    /// Where a file of a lock lies. Refuses paths that lead out of the volume or into our own records.
    pub fn place(&self, path: &str) -> Result<PathBuf, RecordError> {
        let parts: Vec<_> = Path::new(path).components().collect();
        let plain = !parts.is_empty() && parts.iter().all(|part| matches!(part, Component::Normal(_)));
        let ours = path.starts_with(OUR_DIR) && !path.starts_with(".nightshift/server/");
        let odd = path.chars().any(char::is_control) || path.ends_with('/');
        if !plain || ours || odd {
            return Err(RecordError::Path { path: path.to_owned() });
        }
        Ok(self.root.join(path))
    }

    /// What the directory was last made equal to; None on a volume where we never were.
    pub fn manifest(&self) -> Result<Option<StagedManifest>, RecordError> {
        read_record(&self.manifest_path())
    }

    fn journal(&self) -> Result<Option<Journal>, RecordError> {
        read_record(&self.journal_path())
    }
}

/// A record or a lock that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system said no.
    #[error("could not read `{path}`")]
    Read {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Not what we write.
    #[error("`{path}` is not what we wrote there")]
    Content {
        /// Which.
        path: String,
        /// Where it stops making sense.
        #[source]
        source: serde_json::Error,
    },
    /// A path in a lock.
    #[error("the lock names the path `{path}`, which is not a plain path below the server's directory")]
    Path {
        /// As written.
        path: String,
    },
    /// Two files for one place.
    #[error("the lock names the path `{path}` twice")]
    Twice {
        /// As written.
        path: String,
    },
    /// A hash in a lock.
    #[error("the lock's hash for `{path}` cannot be used")]
    Hash {
        /// Of which file.
        path: String,
        /// Why.
        #[source]
        source: Malformed,
    },
}

/// `manifest.json`: the files that are ours, and the lock they came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedManifest {
    /// Digest of the lock.
    pub lock: String,
    /// Digest of the lock before it: its files stay in the store, for the way back.
    pub previous: Option<String>,
    /// The lock before has been gone back from: this one had lain there before it. False from an agent that did not remember it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub went_back: bool,
    /// The Minecraft version of the lock.
    pub minecraft: String,
    /// Paper's build.
    pub build: u32,
    /// Our files by path.
    pub files: BTreeMap<String, Managed>,
}

impl StagedManifest {
    /// Whether `lock` in the place of this one is a step back. What was gone back from and comes again is none: it is tried once more.
    pub fn goes_back_to(&self, lock: &str) -> bool {
        !self.went_back && self.previous.as_deref() == Some(lock)
    }
}

/// One file that is ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Managed {
    /// What it hashes to.
    pub hash: FileHash,
    /// The plugin's name, for plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

/// `journal.json`: a swap that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Journal {
    /// Where it is going.
    target: FileSet,
    /// What is or may be ours while it runs: by path, every content that a swap of ours has put or may have put there.
    ours: BTreeMap<String, Vec<FileHash>>,
}

/// A lock's files, checked: plain paths, each once, hashes that can be computed. In the order server, support, plugins.
fn checked(volume: &Volume, set: &FileSet) -> Result<Vec<WantedSet>, RecordError> {
    let mut wanted: Vec<WantedSet> = Vec::new();
    for file in all(set) {
        let hash = Hash::parse(&file.hash);
        let hash = hash.map_err(|source| RecordError::Hash { path: file.path.clone(), source })?;
        if wanted.iter().any(|other| other.file.path == file.path) {
            return Err(RecordError::Twice { path: file.path.clone() });
        }
        wanted.push(WantedSet { place: volume.place(&file.path)?, hash, file: file.clone() });
    }
    Ok(wanted)
}

/// A file of a lock, its place and its hash.
#[derive(Debug, Clone)]
struct WantedSet {
    file: File,
    place: PathBuf,
    hash: Hash,
}

/// All files of a lock.
pub fn all(set: &FileSet) -> impl Iterator<Item = &File> {
    std::iter::once(&set.server).chain(&set.support).chain(&set.plugins)
}

pub(crate) fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let name = || path.display().to_string();
    match fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|source| RecordError::Content { path: name(), source })
        }
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Read { path: name(), source }),
    }
}
