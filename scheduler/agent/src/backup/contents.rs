//! Edge (reads). Lists the files of a server's directory that belong in a backup, one after the other.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{LiveReads, MAX_NAMED_FILES};
use crate::plain_fs::{Entry, Walk, WalkError, Walked, escape_path, refused_in};
use crate::server_properties;
use crate::world::Worlds;
use agent_api::Contents;
use agent_api::NIGHTSHIFT_DIR;

/// Paths, relative to the server's directory, whose content is recreated automatically. All of them are outside of world folders.
///
/// - From the disk: files found by a repair of its file system, which only root may read.
/// - From the server: files that Paper downloads or unpacks at a start, and files that it writes for users to read.
/// - From web maps: tiles are rendered again from the world, and can be larger than it. Dynmap's `tilespath` is `web/tiles` in its folder, and
///   squaremap's is the same in its own. `BlueMap` keeps its maps in `bluemap/web/maps`
///   (<https://bluemap.bluecolored.de/wiki/getting-started/Installation>).
const REGENERATED: [&str; 11] = [
    "bluemap/web/maps",
    "bundler",
    "cache",
    "crash-reports",
    "libraries",
    "logs",
    "lost+found",
    "plugins/.paper-remapped",
    "plugins/dynmap/web/tiles",
    "plugins/squaremap/web/tiles",
    "versions",
];

/// Files in which the itzg image keeps the RCON password for its own tool. It writes both at each start.
const SECRETS: [&str; 2] = [".rcon-cli.env", ".rcon-cli.yaml"];

/// Whether the file contains or may contain the RCON password. That includes files that a killed process has left beside `server.properties`.
fn is_secret(name: &Path) -> bool {
    let is_temporary_properties =
        name.as_os_str().as_bytes().starts_with(server_properties::TEMPORARY_PREFIX.as_bytes());
    is_temporary_properties || SECRETS.iter().any(|path| name == Path::new(path))
}

/// Whether this is a chunk file of a world.
pub fn holds_chunks(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "mca" || extension == "mcc")
}

/// The file that a running server locks. Closing any descriptor of it drops a lock that this process holds, so it is never opened here. Minecraft
/// creates a new one.
const SESSION_LOCK: &str = "session.lock";

/// Whether a top-level item of the server's directory stays when a whole backup is restored: Nightshift's own records, recreated content, and
/// secrets.
pub(super) fn is_left_in_place(name: &Path) -> bool {
    is_secret(name) || [NIGHTSHIFT_DIR].iter().chain(&REGENERATED).any(|path| name == Path::new(path))
}

/// The file system failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path could not be read.
    #[error("could not read `{path}`")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The longest path of an item, in bytes, as for the system's own calls. A program can create longer ones in steps.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// One item of a backup.
#[derive(Debug)]
pub(super) struct Item {
    /// The name relative to the server's directory, in the file system's own bytes.
    pub(super) name: PathBuf,
    pub(super) mode: u32,
    /// Seconds since 1970.
    pub(super) modified: u64,
    pub(super) content: Content,
}

/// The content of an item.
#[derive(Debug)]
pub(super) enum Content {
    Directory,
    /// A file, and its size when it was listed.
    File {
        entry: Entry,
        size: u64,
    },
    /// A file whose content is not read from the disk.
    Bytes(Vec<u8>),
}

impl Content {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Directory => 0,
            Self::File { entry: _, size } => *size,
            Self::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        }
    }
}

/// The part of a server's directory that is backed up.
#[derive(Debug)]
pub(super) struct BackupSource<'a> {
    pub(super) data: &'a Path,
    pub(super) worlds: &'a Worlds,
    pub(super) contents: Contents,
    pub(super) reading: LiveReads,
}

impl BackupSource<'_> {
    /// The world folders, relative to the server's directory, in order.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let relative = |path: &PathBuf| path.strip_prefix(self.data).unwrap_or(path).to_owned();
        self.worlds.folders.iter().map(|folder| relative(&folder.path)).collect()
    }

    /// Passes each item to `visit`, a directory before its content, always in the same order. Returns the items that cannot be backed up.
    ///
    /// Anything but plain files and directories is left out and named: a link can lead to the backups of another server. On a running server, an
    /// item that disappeared before it was listed is left out and named too, unless it is a whole world.
    pub(super) fn for_each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<Vec<String>, E> {
        let mut left_out = Vec::new();
        if self.contents.has_worlds() {
            for folder in &self.worlds.folders {
                self.walk(&folder.path, |_| true, &mut left_out, &mut visit)?;
            }
        }
        if self.contents.has_server_files() {
            let folders = self.folders();
            self.walk(self.data, |path| self.is_included(path, &folders), &mut left_out, &mut visit)?;
        }
        Ok(left_out)
    }

    fn walk<E: From<Error>>(
        &self,
        from: &Path,
        is_included: impl FnMut(&Path) -> bool,
        left_out: &mut Vec<String>,
        visit: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        for walked in Walk::filtered(from, is_included) {
            let walked = match walked {
                Ok(walked) => walked,
                Err(WalkError { path, is_first, source }) => {
                    // A missing file means that the server is writing.
                    let is_gone = self.reading == LiveReads::Online && is_removed(&source);
                    if !is_first && (is_gone || refused_in(&source).is_some()) {
                        self.name(&path, left_out);
                        continue;
                    }
                    return Err(Error::Read { path: path.display().to_string(), source }.into());
                }
            };
            let path = walked.entry.path().to_owned();
            if path == self.data || path.file_name() == Some(OsStr::new(SESSION_LOCK)) {
                continue;
            }
            if self.relative(&path).as_os_str().len() > MAX_PATH_BYTES {
                self.name(&path, left_out);
                continue;
            }
            match self.item(walked) {
                Ok(Some(item)) => visit(item)?,
                Ok(None) => self.name(&path, left_out),
                Err(Error::Read { path: _, source }) if self.reading == LiveReads::Online && is_removed(&source) => {
                    self.name(&path, left_out);
                }
                Err(failed) => return Err(failed.into()),
            }
        }
        Ok(())
    }

    fn is_included(&self, path: &Path, folders: &[PathBuf]) -> bool {
        let name = self.relative(path);
        let is_regenerated = REGENERATED.iter().any(|path| name == Path::new(path));
        name != Path::new(NIGHTSHIFT_DIR)
            && !is_regenerated
            && !is_secret(name)
            && !folders.iter().any(|folder| name == *folder)
    }

    /// `None`: neither a file nor a directory.
    fn item(&self, walked: Walked) -> Result<Option<Item>, Error> {
        let Walked { entry, metadata } = walked;
        let path = entry.path().to_owned();
        let error = |source: io::Error| Error::Read { path: path.display().to_string(), source };
        let name = self.relative(&path).to_owned();
        let content = if metadata.is_dir() {
            Content::Directory
        } else if !metadata.is_file() {
            return Ok(None);
        } else if name == Path::new("server.properties") {
            let bytes = entry.read(server_properties::MAX_BYTES).map_err(error)?;
            Content::Bytes(server_properties::without_secrets(&bytes))
        } else {
            Content::File { entry, size: metadata.len() }
        };
        let modified = metadata.modified().map_err(error)?.duration_since(UNIX_EPOCH);
        Ok(Some(Item {
            name,
            mode: metadata.permissions().mode() & 0o777,
            modified: modified.map_or(0, |since| since.as_secs()),
            content,
        }))
    }

    fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(self.data).unwrap_or(path)
    }

    fn name(&self, path: &Path, left_out: &mut Vec<String>) {
        if left_out.len() < MAX_NAMED_FILES {
            let name = self.relative(path).as_os_str().as_bytes();
            left_out.push(escape_path(&name[..name.len().min(MAX_PATH_BYTES)]));
        }
    }
}

/// Whether the item was removed since its name was read, or a directory above it became a file.
pub(super) fn is_removed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
