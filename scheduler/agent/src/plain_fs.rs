//! Edge (writes). Opens, changes and removes files on volumes that a hostile plugin may write. No other code of the agent opens a path.
//!
//! A path is walked name by name. Each name is opened relative to the directory before it, and a link is refused. So a path never leaves its
//! directory, whatever another process does meanwhile. A mount below the volume is a directory like any other, because only an admin can mount.
//! The system call `openat2` would do the same in one step, but some sandboxes (gVisor) lack it.
//!
//! Only plain files are read. A named pipe would block, and a device has no end.

#![expect(clippy::disallowed_methods, reason = "this module is what the rule leads to")]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self as system, Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

mod escaped_path;
mod provided;
mod refused;
mod remove_tree;
mod walk;

pub(crate) use escaped_path::escape_path;
pub(crate) use provided::{MAX_CONFIG_MAP_BYTES, overwrite_provided, read_provided, replace_with_program};
pub(crate) use refused::{Refused, refused_in};
pub(crate) use remove_tree::remove_tree;
pub(crate) use walk::{Entry, Walk, WalkError, Walked, entries, first_entries, has_name};

/// A directory in which names are resolved. That needs no permission to list it.
const RESOLVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A directory that is listed, or synced to disk.
const LIST: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// An item of any kind, for its metadata. It is not opened in the sense of its kind, and a POSIX lock of this process stays.
const EXAMINE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The flags with which every file is opened. A named pipe without a writer would block otherwise.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The kind of item that an open is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    File,
    Directory,
}

/// Opens a plain file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let (directory, name) = locate(path)?;
    open_at(&directory, name, path, OFlags::RDONLY, Mode::empty())
}

/// Opens a plain file for writing, without changing it. Creates it if it does not exist.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    let (directory, name) = locate(path)?;
    open_at(&directory, name, path, OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o666))
}

/// Reads a plain file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_open(open(path)?, path, most)
}

/// Creates a file, and fails if the name exists.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let (directory, name) = locate(path)?;
    create_at(&directory, name, mode)
}

/// Creates a file under a temporary name. An item that has this name (the remains of a killed process, or a link that somebody placed there) is
/// removed first, and never written to.
pub(crate) fn create_anew(path: &Path, mode: u32) -> io::Result<File> {
    let (directory, name) = locate(path)?;
    match system::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => create_at(&directory, name, mode),
        Err(errno) => Err(explain_removal(&directory, name, path, errno)),
    }
}

/// Writes a whole file under a temporary name. See [`create_anew`].
pub(crate) fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_anew(path, 0o644)?.write_all(bytes)
}

/// The metadata of the item itself. For a link, that of the link.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    let (directory, name) = locate(path)?;
    metadata_at(&directory, name)
}

/// Whether the path exists. A link counts, wherever it leads.
pub(crate) fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// Whether the path is a directory, and not a link to one.
pub(crate) fn is_directory(path: &Path) -> bool {
    metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Opens a directory, to sync it or to set its mode and time.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let (directory, name) = locate(path)?;
    open_directory_at(&directory, name, path).map(File::from)
}

/// Creates a directory, whose parent must exist.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let (directory, name) = locate(path)?;
    Ok(system::mkdirat(&directory, name, Mode::from_raw_mode(0o777))?)
}

/// Creates a directory and its parents. Does nothing if it exists.
pub(crate) fn create_directories(path: &Path) -> io::Result<()> {
    resolve(path, true).map(drop)
}

/// Removes a file or a link.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    let (directory, name) = locate(path)?;
    let removed = system::unlinkat(&directory, name, AtFlags::empty());
    removed.map_err(|errno| explain_removal(&directory, name, path, errno))
}

/// Moves an item atomically. A link is moved itself.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((from, from_name), (to, to_name)) = (locate(from)?, locate(to)?);
    Ok(system::renameat(&from, from_name, &to, to_name)?)
}

/// Gives a plain file a second name.
pub(crate) fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    let ((from_directory, from_name), (to_directory, to_name)) = (locate(from)?, locate(to)?);
    system::linkat(&from_directory, from_name, &to_directory, to_name, AtFlags::empty())?;
    // Another item may have replaced the file meanwhile. A link is linked itself.
    match Refused::if_not_plain(from, &metadata_at(&to_directory, to_name)?) {
        Some(refused) => {
            system::unlinkat(&to_directory, to_name, AtFlags::empty())?;
            Err(refused.into())
        }
        None => Ok(()),
    }
}

/// Copies a link as a link. Its target is not read.
pub(crate) fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    let ((from, from_name), (to, to_name)) = (locate(from)?, locate(to)?);
    let target = system::readlinkat(&from, from_name, Vec::new())?;
    Ok(system::symlinkat(target.as_c_str(), &to, to_name)?)
}

/// Sets the mode of an item that is no link, also if nobody may open it.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let (directory, name) = locate(path)?;
    set_mode_at(&directory, name, path, mode)
}

/// Syncs a directory's names to disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    open_directory(path)?.sync_all()
}

/// Syncs the whole file system of a directory to disk.
pub(crate) fn sync_file_system(directory: &Path) -> io::Result<()> {
    Ok(system::syncfs(open_directory(directory)?)?)
}

/// The bytes that a user other than root may still write on the file system of a directory.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let space = system::fstatvfs(resolve(directory, false)?)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Fails if this process may not create and remove names in a directory.
pub(crate) fn check_writable(directory: &Path) -> Result<(), Errno> {
    let resolved = resolve(directory, false).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::LOOP))?;
    system::accessat(&resolved, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
}

/// The directory of an item, and the item's name in it.
fn locate(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Refused::new(path, "is no name in a directory").into());
    };
    Ok((resolve(parent, false)?, name))
}

/// Opens a directory without following a link, and creates what is missing if `creates`.
fn resolve(path: &Path, creates: bool) -> io::Result<OwnedFd> {
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(Refused::new(path, "leads upwards").into());
    }
    let start = if path.is_absolute() { "/" } else { "." };
    let mut directory = system::open(start, RESOLVE, Mode::empty())?;
    let mut walked = PathBuf::new();
    for part in path.components() {
        walked.push(part);
        let Component::Normal(name) = part else { continue };
        let mut opened = system::openat(&directory, name, RESOLVE, Mode::empty());
        if creates && matches!(opened, Err(Errno::NOENT)) {
            match system::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => opened = system::openat(&directory, name, RESOLVE, Mode::empty()),
                Err(errno) => return Err(errno.into()),
            }
        }
        directory = opened.map_err(|errno| explain(&directory, name, &walked, errno, Wanted::Directory))?;
    }
    Ok(directory)
}

fn open_at(directory: impl AsFd, name: &OsStr, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    let opened = system::openat(&directory, name, flags | PLAIN, mode);
    let file = File::from(opened.map_err(|errno| explain(&directory, name, path, errno, Wanted::File))?);
    match Refused::if_not_plain(path, &file.metadata()?) {
        Some(refused) => Err(refused.into()),
        None => Ok(file),
    }
}

fn open_directory_at(directory: impl AsFd, name: &OsStr, path: &Path) -> io::Result<OwnedFd> {
    let opened = system::openat(&directory, name, LIST, Mode::empty());
    opened.map_err(|errno| explain(&directory, name, path, errno, Wanted::Directory))
}

fn create_at(directory: impl AsFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | PLAIN;
    Ok(File::from(system::openat(directory, name, flags, Mode::from_raw_mode(mode))?))
}

fn metadata_at(directory: impl AsFd, name: &OsStr) -> io::Result<Metadata> {
    File::from(system::openat(directory, name, EXAMINE, Mode::empty())?).metadata()
}

fn read_open(file: File, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
        Ok(bytes)
    } else {
        Err(Refused::new(path, format!("has more than {most} bytes")).into())
    }
}

fn set_mode_at(directory: impl AsFd, name: &OsStr, path: &Path, mode: u32) -> io::Result<()> {
    let item = File::from(system::openat(directory, name, EXAMINE, Mode::empty())?);
    if item.metadata()?.is_symlink() {
        return Err(Refused::new(path, "is a link").into());
    }
    // It names exactly the item that is open, and works without the permission to read it.
    let open_item = format!("/proc/self/fd/{}", item.as_raw_fd());
    Ok(system::chmod(open_item, Mode::from_raw_mode(mode))?)
}

/// Why an open failed. The system's own error for an item of another kind would not name the kind, and differs between file systems.
fn explain(directory: impl AsFd, name: &OsStr, path: &Path, errno: Errno, wanted: Wanted) -> io::Error {
    let Ok(found) = metadata_at(directory, name) else { return errno.into() };
    // A directory that became a file while the server runs is not an attack.
    let is_usual = wanted == Wanted::Directory && (found.is_dir() || found.is_file());
    match Refused::if_not_plain(path, &found) {
        Some(refused) if !is_usual => refused.into(),
        Some(_) | None => errno.into(),
    }
}

/// Why a file could not be removed.
fn explain_removal(directory: impl AsFd, name: &OsStr, path: &Path, errno: Errno) -> io::Error {
    if errno == Errno::ISDIR { explain(directory, name, path, errno, Wanted::File) } else { errno.into() }
}

/// What the item is, unless it is a plain file.
fn other_kind(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_file() {
        None
    } else if kind.is_symlink() {
        Some("is a link")
    } else if kind.is_dir() {
        Some("is a directory")
    } else if kind.is_fifo() {
        Some("is a named pipe")
    } else if kind.is_socket() {
        Some("is a socket")
    } else {
        Some("is a device")
    }
}

/// A name in a directory, and the kind of its item if the file system states it.
type Name = (OsString, FileType);

/// The names in a directory, in no order.
fn names(directory: &OwnedFd) -> io::Result<impl Iterator<Item = io::Result<Name>>> {
    // A directory that only resolves names cannot be listed itself.
    let listed = system::openat(directory, ".", LIST, Mode::empty())?;
    Ok(system::Dir::new(listed)?.filter_map(|entry| match entry {
        Ok(entry) => {
            let name = entry.file_name().to_bytes();
            let is_item = name != b"." && name != b"..";
            is_item.then(|| Ok((OsString::from_vec(name.to_owned()), entry.file_type())))
        }
        Err(errno) => Some(Err(errno.into())),
    }))
}

#[cfg(test)]
pub(crate) mod hostile_tree;
#[cfg(test)]
mod tests;
