//! Edge (reads). Lists directories, and all that is below one, by handles.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fmt, vec};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat};

use super::{Name, Refused, locate, metadata_at, names, open_at, open_directory_at, read_open, resolve};

/// How many levels below its first directory a walk descends. Each has an open file, of which a process may have 1,024. Real servers have about
/// ten levels.
pub(super) const MAX_DEPTH: usize = 128;

/// How many names of one directory are read. They are held in memory, and real servers have some ten thousand.
const MAX_NAMES: usize = 1_000_000;

/// One name in a directory.
#[derive(Clone)]
pub(crate) struct Entry {
    directory: Rc<OwnedFd>,
    path: PathBuf,
    kind: FileType,
}

impl Entry {
    /// The directory's path and the name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name.
    pub(crate) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// The metadata of the item itself.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        metadata_at(&self.directory, self.name())
    }

    /// The kind of the item itself.
    pub(crate) fn kind(&self) -> io::Result<FileType> {
        if self.kind != FileType::Unknown {
            return Ok(self.kind);
        }
        let found = statat(&self.directory, self.name(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    /// Whether it is a directory. False if that is unknown.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind().is_ok_and(FileType::is_dir)
    }

    /// Opens it for reading, if it is a plain file.
    pub(crate) fn open(&self) -> io::Result<File> {
        open_at(&self.directory, self.name(), &self.path, OFlags::RDONLY, Mode::empty())
    }

    /// Reads it, if it is a plain file of at most `most` bytes.
    pub(crate) fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        read_open(self.open()?, &self.path, most)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.path).finish()
    }
}

/// The direct entries of a directory, in no order. Empty if it does not exist.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let entries = first_entries(directory, MAX_NAMES + 1)?;
    check_count(directory, entries.len())?;
    Ok(entries)
}

/// The first entries of a directory that the file system returns, at most so many.
pub(crate) fn first_entries(directory: &Path, most: usize) -> io::Result<Vec<Entry>> {
    let handle = match resolve(directory, false) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => Rc::new(opened?),
    };
    let entry = |(name, kind): Name| Entry { directory: Rc::clone(&handle), path: directory.join(name), kind };
    names(&handle)?.take(most).map(|name| name.map(entry)).collect()
}

/// Whether a directory has such a name. False if it cannot be listed.
pub(crate) fn has_name(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> bool {
    let Ok(handle) = resolve(directory, false) else { return false };
    names(&handle).is_ok_and(|mut names| names.any(|name| name.is_ok_and(|(name, _)| is_wanted(Path::new(&name)))))
}

fn check_count(directory: &Path, names: usize) -> Result<(), Refused> {
    if names > MAX_NAMES {
        return Err(Refused::new(directory, format!("has more than {MAX_NAMES} names")));
    }
    Ok(())
}

/// An item that a walk has found.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) entry: Entry,
    pub(crate) metadata: Metadata,
}

/// An item that could not be examined or listed. The walk continues beside it.
#[derive(Debug, thiserror::Error)]
#[error("could not read `{}`", path.display())]
pub(crate) struct WalkError {
    pub(crate) path: PathBuf,
    /// Whether it is the first item of the walk.
    pub(crate) is_first: bool,
    #[source]
    pub(crate) source: io::Error,
}

/// All items from one path downwards: a directory before its content, each directory sorted by name. Links are listed, never followed.
pub(crate) struct Walk<F> {
    is_included: F,
    /// The directories from the first one down to the current one.
    levels: Vec<Level>,
    /// The directory that was returned last, and is entered next.
    next: Option<Entry>,
    /// Why the walk cannot begin.
    start: Option<WalkError>,
}

struct Level {
    directory: Rc<OwnedFd>,
    path: PathBuf,
    names: vec::IntoIter<OsString>,
}

impl Walk<fn(&Path) -> bool> {
    pub(crate) fn new(path: &Path) -> Self {
        Self::filtered(path, |_| true)
    }
}

impl<F: FnMut(&Path) -> bool> Walk<F> {
    /// Leaves out the paths that are not included, with all that is below them.
    pub(crate) fn filtered(path: &Path, is_included: F) -> Self {
        let mut walk = Self { is_included, levels: Vec::new(), next: None, start: None };
        match locate(path) {
            Ok((directory, name)) => walk.levels.push(Level {
                directory: Rc::new(directory),
                path: path.parent().unwrap_or(path).to_owned(),
                names: vec![name.to_owned()].into_iter(),
            }),
            Err(source) => walk.start = Some(WalkError { path: path.to_owned(), is_first: true, source }),
        }
        walk
    }

    fn enter(&mut self, entry: &Entry) -> io::Result<()> {
        if self.levels.len() > MAX_DEPTH {
            return Err(Refused::new(entry.path(), format!("is more than {MAX_DEPTH} levels deep")).into());
        }
        let directory = open_directory_at(&entry.directory, entry.name(), entry.path())?;
        let names = names(&directory)?.take(MAX_NAMES + 1).map(|name| name.map(|(name, _)| name));
        let mut names: Vec<OsString> = names.collect::<io::Result<_>>()?;
        check_count(entry.path(), names.len())?;
        names.sort_unstable();
        let (directory, path) = (Rc::new(directory), entry.path().to_owned());
        self.levels.push(Level { directory, path, names: names.into_iter() });
        Ok(())
    }
}

impl<F: FnMut(&Path) -> bool> Iterator for Walk<F> {
    type Item = Result<Walked, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.start.take() {
            return Some(Err(error));
        }
        if let Some(entry) = self.next.take()
            && let Err(source) = self.enter(&entry)
        {
            return Some(Err(WalkError { path: entry.path, is_first: self.levels.len() == 1, source }));
        }
        loop {
            let is_first = self.levels.len() == 1;
            let level = self.levels.last_mut()?;
            let Some(name) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            let (directory, path) = (Rc::clone(&level.directory), level.path.join(name));
            let entry = Entry { directory, path, kind: FileType::Unknown };
            if !(self.is_included)(entry.path()) {
                continue;
            }
            return Some(match entry.metadata() {
                Ok(metadata) => {
                    self.next = metadata.is_dir().then(|| entry.clone());
                    Ok(Walked { entry, metadata })
                }
                Err(source) => Err(WalkError { path: entry.path, is_first, source }),
            });
        }
    }
}
