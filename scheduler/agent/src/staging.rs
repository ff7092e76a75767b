//! Edge (reads). Defines the paths and records of Nightshift on a server's volume, including which files it manages.
//!
//! All state is below `.nightshift` on the volume itself, so that it moves with the world. Files are added to the [`volume_store`] hours before
//! a window. The [`swap`] makes the server's directory equal to a lock by links and renames, between a stop and a start. Users' JARs are never
//! changed.

pub mod displaced_jars;
pub mod drift;
pub mod fs_ops;
pub mod hash_cache;
pub mod jar_descriptor;
pub mod swap;
pub mod unmanaged_jars;
mod update_folder;
pub mod volume_store;

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use agent_api::signed::NotSigned;
use agent_api::{File, FileHash, FileSet, NIGHTSHIFT_DIR};
use artifacts::Hash;
use hash_cache::Malformed;

use crate::plain_fs;

/// The largest record that is read, in bytes. Real ones have up to some hundred KiB.
const MAX_RECORD_BYTES: u64 = 16 * 1024 * 1024;

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

    /// The plugins directory.
    pub fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    fn nightshift_dir(&self) -> PathBuf {
        self.root.join(NIGHTSHIFT_DIR)
    }

    fn manifest_path(&self) -> PathBuf {
        self.nightshift_dir().join("manifest.json")
    }

    fn journal_path(&self) -> PathBuf {
        self.nightshift_dir().join("journal.json")
    }

    fn staged_dir(&self) -> PathBuf {
        self.nightshift_dir().join("staged")
    }

    fn staged_path(&self, lock: &str) -> PathBuf {
        self.staged_dir().join(format!("{lock}.json"))
    }

    fn ran_path(&self) -> PathBuf {
        self.nightshift_dir().join("ran.json")
    }

    fn displaced_jars_dir(&self) -> PathBuf {
        self.nightshift_dir().join("replaced")
    }

    fn displaced_jars_path(&self) -> PathBuf {
        self.nightshift_dir().join("replaced.json")
    }

    fn store_dir(&self) -> PathBuf {
        self.nightshift_dir().join("store")
    }

    /// The path of the file with this hash in the store.
    fn stored_path(&self, hash: &Hash) -> PathBuf {
        self.store_dir().join(hash.algorithm().as_str()).join(hash.hex())
    }

    /// The copy of the files of the lock that was last applied.
    pub fn lock_files_path(&self) -> PathBuf {
        self.nightshift_dir().join("files.json")
    }

    /// The record of the last stop.
    pub fn last_stop_path(&self) -> PathBuf {
        self.nightshift_dir().join("last-stop.json")
    }

    /// The record of the last server process.
    pub fn running_path(&self) -> PathBuf {
        self.nightshift_dir().join("running.json")
    }

    /// The record that the backup for the update in progress was taken.
    pub fn backup_taken_path(&self) -> PathBuf {
        self.nightshift_dir().join("backup-taken.json")
    }

    /// The record of the last backup that failed.
    pub fn backup_failed_path(&self) -> PathBuf {
        self.nightshift_dir().join("backup-failed.json")
    }

    /// The record of the last request for an online backup, and its result.
    pub fn online_backup_path(&self) -> PathBuf {
        self.nightshift_dir().join("online-backup.json")
    }

    /// The record that autosave may be off in the running server.
    pub fn autosave_off_path(&self) -> PathBuf {
        self.nightshift_dir().join("saving-off.json")
    }

    /// The journal of a restore that has begun.
    pub fn restore_journal_path(&self) -> PathBuf {
        self.nightshift_dir().join("restore.json")
    }

    /// The record of the last restore.
    pub fn restored_path(&self) -> PathBuf {
        self.nightshift_dir().join("restored.json")
    }

    /// The record of the last restore request of a user that was refused.
    pub fn restore_refused_path(&self) -> PathBuf {
        self.nightshift_dir().join("restore-refused.json")
    }

    /// The record of the result of a request for a volume without a world.
    pub fn new_volume_path(&self) -> PathBuf {
        self.nightshift_dir().join("new-volume.json")
    }

    /// The directory in which a backup is unpacked, to be moved into place as a whole.
    pub fn restoring_dir(&self) -> PathBuf {
        self.nightshift_dir().join("restoring")
    }

    /// The directory of files that were displaced by a restore.
    pub fn displaced_dir(&self) -> PathBuf {
        self.nightshift_dir().join("set-aside")
    }

    /// The record that players were online since this pod started.
    pub fn played_path(&self) -> PathBuf {
        self.nightshift_dir().join("played.json")
    }

    /// The record of the worlds and datapacks that a start has opened, and of those that were closed since.
    pub fn loaded_content_path(&self) -> PathBuf {
        self.nightshift_dir().join("opened.json")
    }

    /// The record of the damage to worlds that the server's log has reported.
    pub fn damage_path(&self) -> PathBuf {
        self.nightshift_dir().join("damage.json")
    }

    /// The directory of saved plugins' data, with a subdirectory for each change of the version set.
    pub fn saved_data_dir(&self) -> PathBuf {
        self.nightshift_dir().join("kept")
    }

    /// The directory of the settings of plugins whose data is not saved whole, with a subdirectory for each change of the version set.
    pub fn saved_settings_dir(&self) -> PathBuf {
        self.nightshift_dir().join("kept-settings")
    }

    /// The directory for plugins' data that a failed version set has written, with a subdirectory for each version set.
    pub fn failed_data_dir(&self) -> PathBuf {
        self.nightshift_dir().join("failed")
    }

    /// The record of the data that was saved before the last change of the version set.
    pub fn plugin_data_path(&self) -> PathBuf {
        self.nightshift_dir().join("plugin-data.json")
    }

    /// The journal of a restore of plugins' data.
    pub fn plugin_data_journal_path(&self) -> PathBuf {
        self.nightshift_dir().join("plugin-data-back.json")
    }

    /// The path of a file of a lock. Refuses paths that lead out of the volume or into Nightshift's own records.
    pub fn resolve_path(&self, path: &str) -> Result<PathBuf, RecordError> {
        let parts: Vec<_> = Path::new(path).components().collect();
        let plain = !parts.is_empty() && parts.iter().all(|part| matches!(part, Component::Normal(_)));
        let ours = path.starts_with(NIGHTSHIFT_DIR) && !path.starts_with(".nightshift/server/");
        let odd = path.chars().any(char::is_control) || path.ends_with('/');
        if !plain || ours || odd {
            return Err(RecordError::Path { path: path.to_owned() });
        }
        Ok(self.root.join(path))
    }

    /// The lock that was last applied to the directory. `None` on a volume that Nightshift never managed.
    pub fn manifest(&self) -> Result<Option<AppliedManifest>, RecordError> {
        read_record(&self.manifest_path())
    }

    fn journal(&self) -> Result<Option<Journal>, RecordError> {
        read_record(&self.journal_path())
    }
}

/// A record or a lock that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system returned an error.
    #[error("could not read `{path}`")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The content is not what Nightshift writes.
    #[error("`{path}` was changed by another program")]
    Content {
        /// The path.
        path: String,
        /// The position of the error.
        #[source]
        source: serde_json::Error,
    },
    /// The operator did not write it.
    #[error("`{path}` is not as the operator wrote it")]
    NotSigned {
        /// The path.
        path: String,
        /// The reason.
        #[source]
        source: NotSigned,
    },
    /// A path in a lock is not allowed.
    #[error("the lock has the path `{path}`, which is not a plain path below the server's directory")]
    Path {
        /// The path as written.
        path: String,
    },
    /// Two files have the same path.
    #[error("the lock has the path `{path}` twice")]
    Duplicate {
        /// The path as written.
        path: String,
    },
    /// A hash in a lock is invalid.
    #[error("the lock's hash for `{path}` cannot be used")]
    Hash {
        /// The path of its file.
        path: String,
        /// The cause.
        #[source]
        source: Malformed,
    },
}

/// `manifest.json`: the managed files, and their lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifest {
    /// The digest of the lock.
    pub lock: String,
    /// The digest of the previous lock. Its files stay in the store for a rollback.
    pub previous: Option<String>,
    /// Whether this lock was reached by a rollback from the previous lock, so it had been in place before that one. False from an agent that did
    /// not record it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub went_back: bool,
    /// The Minecraft version of the lock.
    pub minecraft: String,
    /// Paper's build.
    pub build: u32,
    /// The managed files by path.
    pub files: BTreeMap<String, Managed>,
}

impl AppliedManifest {
    /// Whether replacing this lock with `lock` is a rollback. Applying a lock again after a rollback from it is not one: it is a new attempt.
    pub fn is_rollback_to(&self, lock: &str) -> bool {
        !self.went_back && self.previous.as_deref() == Some(lock)
    }
}

/// One managed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Managed {
    /// The hash of its content.
    pub hash: FileHash,
    /// The plugin's name, for plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

/// `journal.json`: a swap that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Journal {
    /// The target of the swap.
    target: FileSet,
    /// The contents that Nightshift may own while it runs: by path, every content that a swap has placed or may have placed there.
    ours: BTreeMap<String, Vec<FileHash>>,
}

/// The validated files of a lock: plain paths without duplicates, and usable hashes. In the order server, support, plugins.
fn validate(volume: &Volume, set: &FileSet) -> Result<Vec<WantedFile>, RecordError> {
    let mut wanted: Vec<WantedFile> = Vec::new();
    for file in all_files(set) {
        let hash = hash_cache::parse(&file.hash);
        let hash = hash.map_err(|source| RecordError::Hash { path: file.path.clone(), source })?;
        if wanted.iter().any(|other| other.file.path == file.path) {
            return Err(RecordError::Duplicate { path: file.path.clone() });
        }
        wanted.push(WantedFile { path: volume.resolve_path(&file.path)?, hash, file: file.clone() });
    }
    Ok(wanted)
}

/// A file of a lock, its path and its hash.
#[derive(Debug, Clone)]
struct WantedFile {
    file: File,
    path: PathBuf,
    hash: Hash,
}

/// All files of a lock.
pub fn all_files(set: &FileSet) -> impl Iterator<Item = &File> {
    std::iter::once(&set.server).chain(&set.support).chain(&set.plugins)
}

/// Whether the path, relative to the server's directory, is directly below one of Nightshift's directories.
pub(crate) fn is_direct_child(path: &str, parent: &Path) -> bool {
    let Ok(rest) = Path::new(path).strip_prefix(parent) else { return false };
    let mut parts = rest.components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// Reads a record on the volume.
pub(crate) fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let name = || path.display().to_string();
    match plain_fs::read(path, MAX_RECORD_BYTES) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|source| RecordError::Content { path: name(), source })
        }
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Read { path: name(), source }),
    }
}
