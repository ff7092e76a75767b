//! Edge (writes). Copies a folder with its whole content on the same volume.

use std::fs::{File, FileTimes, Metadata, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Error;
use crate::backup::MAX_NAMED_FILES;
use crate::plain_fs::{self, Walk, Walked};
use crate::staging::fs_ops::{Disk, FsHook};

/// Copies the folder `from` to `to`, which does not exist yet: files, folders, and links as links, with their modes and times. It follows no
/// link. Returns the items that cannot be copied, relative to `from`. The copy is not synced to disk when this returns. After an error, the
/// content of `to` is invalid.
pub(super) fn copy<S: FsHook>(from: &Path, to: &Path, disk: &mut Disk<S>) -> Result<Vec<String>, Error> {
    let (mut folders, mut left_out) = (Vec::new(), Vec::new());
    for walked in Walk::new(from) {
        let Walked { entry, metadata } = walked.map_err(|failed| unreadable(&failed.path, failed.source))?;
        let name = entry.path().strip_prefix(from).unwrap_or(entry.path());
        let target = if name.as_os_str().is_empty() { to.to_owned() } else { to.join(name) };
        if metadata.is_dir() {
            disk.step("create the directory", &target, plain_fs::create_directory)?;
            folders.push((target, metadata));
        } else if metadata.is_file() {
            copy_file(entry.path(), &target, &metadata, disk)?;
        } else if metadata.is_symlink() {
            disk.step("link", &target, |target| plain_fs::copy_link(entry.path(), target))?;
        } else if left_out.len() < MAX_NAMED_FILES {
            left_out.push(name.display().to_string());
        }
    }
    // The innermost first: a read-only folder accepts no more files, and each new file changes its time.
    for (folder, metadata) in folders.iter().rev() {
        disk.step("set mode and time of", folder, |folder| {
            copy_metadata(&plain_fs::open_directory(folder)?, metadata)
        })?;
    }
    Ok(left_out)
}

/// Copies the file `from` to `to`, which does not exist yet, with its mode and time.
pub(super) fn copy_file<S: FsHook>(
    from: &Path,
    to: &Path,
    metadata: &Metadata,
    disk: &mut Disk<S>,
) -> Result<(), Error> {
    let source = plain_fs::open(from).map_err(|failed| unreadable(from, failed))?;
    let mut target = disk.step("create", to, |to| plain_fs::create_new(to, 0o600))?;
    // The kernel shares the blocks where the file system supports it.
    let copied = disk.step("write", to, |_| io::copy(&mut source.take(metadata.len() + 1), &mut target))?;
    if copied != metadata.len() {
        return Err(unreadable(from, io::Error::other("its size changed while it was read: something writes to it")));
    }
    Ok(disk.step("set mode and time of", to, |_| copy_metadata(&target, metadata))?)
}

fn copy_metadata(file: &File, like: &Metadata) -> io::Result<()> {
    file.set_times(FileTimes::new().set_modified(like.modified()?))?;
    file.set_permissions(Permissions::from_mode(like.permissions().mode() & 0o777))
}

fn unreadable(path: &Path, source: impl Into<io::Error>) -> Error {
    Error::Read { path: path.display().to_string(), source: source.into() }
}
