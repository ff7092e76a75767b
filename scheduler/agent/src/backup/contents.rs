//! Edge (reads). Lists the files of a server's directory that belong in a backup, one after the other.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use walkdir::{DirEntry, WalkDir};

use super::{LiveReads, MAX_NAMED_FILES};
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

/// The largest `server.properties` that is read. A real one has 2 KiB.
const MAX_PROPERTIES_BYTES: u64 = 1024 * 1024;

/// The file system failed, or contains an item that cannot be backed up.
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
    /// The file with the password is too large to be one.
    #[error(
        "`server.properties` has {size} bytes, more than the {MAX_PROPERTIES_BYTES} that are read to remove the password"
    )]
    Properties {
        /// Its size in bytes.
        size: u64,
    },
}

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
        path: PathBuf,
        size: u64,
    },
    /// A file whose content is not read from the disk.
    Bytes(Vec<u8>),
}

impl Content {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Directory => 0,
            Self::File { path: _, size } => *size,
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
    /// World folders are often links to another disk, so links in them are followed: a copied link would not back up the world. Outside of them a
    /// link is listed and left out, because it can point anywhere. On a running server, an item that disappeared before it was listed is left out
    /// and named too, unless it is a whole world.
    pub(super) fn for_each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<Vec<String>, E> {
        let mut left_out = Vec::new();
        if self.contents.has_worlds() {
            for folder in &self.worlds.folders {
                self.walk(&folder.path, true, &mut left_out, &mut visit)?;
            }
        }
        if self.contents.has_server_files() {
            self.walk(self.data, false, &mut left_out, &mut visit)?;
        }
        Ok(left_out)
    }

    fn walk<E: From<Error>>(
        &self,
        from: &Path,
        is_world: bool,
        left_out: &mut Vec<String>,
        visit: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let folders = self.folders();
        let is_included = |entry: &DirEntry| is_world || self.is_included(entry, &folders);
        let walk = WalkDir::new(from).follow_links(is_world).sort_by_file_name();
        for entry in walk.into_iter().filter_entry(is_included) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(failed) => {
                    let path = failed.path().unwrap_or(from).to_owned();
                    let missing = failed.io_error().is_some_and(is_removed);
                    // A link to nothing. Any other missing file means that the server is writing.
                    if missing && (path.is_symlink() || (self.reading == LiveReads::Online && failed.depth() > 0)) {
                        self.name(&path, left_out);
                        continue;
                    }
                    return Err(Error::Read { path: path.display().to_string(), source: failed.into() }.into());
                }
            };
            if entry.path() == self.data || entry.file_name() == SESSION_LOCK {
                continue;
            }
            match self.item(&entry) {
                Ok(Some(item)) => visit(item)?,
                Ok(None) => self.name(entry.path(), left_out),
                Err(Error::Read { path: _, source }) if self.reading == LiveReads::Online && is_removed(&source) => {
                    self.name(entry.path(), left_out);
                }
                Err(failed) => return Err(failed.into()),
            }
        }
        Ok(())
    }

    fn is_included(&self, entry: &DirEntry, folders: &[PathBuf]) -> bool {
        let name = self.relative(entry.path());
        let is_regenerated = REGENERATED.iter().any(|path| name == Path::new(path));
        name != Path::new(NIGHTSHIFT_DIR)
            && !is_regenerated
            && !is_secret(name)
            && !folders.iter().any(|folder| name == *folder)
    }

    /// `None`: neither a file nor a directory.
    fn item(&self, entry: &DirEntry) -> Result<Option<Item>, Error> {
        let error = |source: io::Error| Error::Read { path: entry.path().display().to_string(), source };
        let metadata = entry.metadata().map_err(|failed| error(failed.into()))?;
        let name = self.relative(entry.path()).to_owned();
        let content = if metadata.is_dir() {
            Content::Directory
        } else if !metadata.is_file() {
            return Ok(None);
        } else if name == Path::new("server.properties") {
            if metadata.len() > MAX_PROPERTIES_BYTES {
                return Err(Error::Properties { size: metadata.len() });
            }
            Content::Bytes(server_properties::without_secrets(&fs::read(entry.path()).map_err(error)?))
        } else {
            Content::File { path: entry.path().to_owned(), size: metadata.len() }
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
            left_out.push(escape_path(self.relative(path).as_os_str().as_bytes()));
        }
    }
}

/// Whether the item was removed since its name was read, or a directory above it became a file.
pub(super) fn is_removed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The bytes of a path as a unique text: `%` and bytes that are not printable or not UTF-8 become `%` and two hex digits.
pub(super) fn escape_path(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '%' || letter.is_control() {
                let mut bytes = [0; 4];
                letter.encode_utf8(&mut bytes).bytes().for_each(|byte| push_hex(&mut text, byte));
            } else {
                text.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| push_hex(&mut text, *byte));
    }
    text
}

fn push_hex(text: &mut String, byte: u8) {
    text.push('%');
    text.push_str(&hex::encode_upper([byte]));
}
