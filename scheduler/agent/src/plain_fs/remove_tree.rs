//! Edge (writes). Removes a directory with all that is below it, by handles.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{self as system, AtFlags, Mode};
use rustix::io::Errno;

use super::walk::MAX_DEPTH;
use super::{LIST, Name, Wanted, explain, locate, metadata_at, names, set_mode_at};

/// How many names are read before they are removed. A directory may have millions.
const NAMES_AT_ONCE: usize = 10_000;

/// The mode that a directory needs so that its owner can empty it.
const EMPTIABLE: u32 = 0o700;

/// Removes an item with all that is below it, including read-only directories. A link is removed itself.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let (parent, name) = locate(path)?;
    if !remove_unless_directory(&parent, name)? {
        let top = open_to_empty(&parent, name, path)?;
        Emptying { top: &top, path, moved: 0 }.empty(&top, 0)?;
        system::unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

struct Emptying<'a> {
    top: &'a OwnedFd,
    path: &'a Path,
    /// How many directories were moved up.
    moved: u64,
}

impl Emptying<'_> {
    fn empty(&mut self, directory: &OwnedFd, depth: usize) -> io::Result<()> {
        loop {
            let names: Vec<Name> = names(directory)?.take(NAMES_AT_ONCE).collect::<io::Result<_>>()?;
            if names.is_empty() {
                return Ok(());
            }
            for (name, _) in names {
                match remove_unless_directory(directory, &name) {
                    Ok(true) | Err(Errno::NOENT) => {}
                    Ok(false) if depth == MAX_DEPTH => self.move_up(directory, &name)?,
                    Ok(false) => {
                        let below = open_to_empty(directory, &name, self.path)?;
                        self.empty(&below, depth + 1)?;
                        system::unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
                    }
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
    }

    /// Moves a directory that is too deep to the top, where it is emptied later. Otherwise the depth would be limited by the number of files that
    /// may be open.
    fn move_up(&mut self, directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
        loop {
            self.moved += 1;
            match system::renameat(directory, name, self.top, format!("too-deep-{}", self.moved)) {
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                moved => return Ok(moved?),
            }
        }
    }
}

/// False: it is a directory.
fn remove_unless_directory(directory: &OwnedFd, name: &OsStr) -> Result<bool, Errno> {
    match system::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn open_to_empty(directory: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<OwnedFd> {
    if metadata_at(directory, name)?.permissions().mode() & EMPTIABLE != EMPTIABLE {
        set_mode_at(directory, name, path, EMPTIABLE)?;
    }
    let opened = system::openat(directory, name, LIST, Mode::empty());
    opened.map_err(|errno| explain(directory, name, path, errno, Wanted::Directory))
}
