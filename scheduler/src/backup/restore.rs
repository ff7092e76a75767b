//! Edge (writes). Brings back what a copy holds, into a directory of its own that nothing has seen before.
//!
//! Nothing that is there is written over, and no link is followed, because there is none: each file is made anew below a new directory.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::Backup;
use super::archive::{self, Damaged, Target};
use super::shelf::{self, Shelf};
use crate::staging::disk::{self, Disk, Steps};

/// What a copy holds was not brought back. Nothing of the server was touched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// The copy must not be used.
    #[error("the copy `{id}` is damaged and cannot be used")]
    Damaged {
        /// Its name.
        id: String,
        /// How.
        #[source]
        source: Damaged,
    },
    /// It could not be marked as damaged.
    #[error(transparent)]
    Shelf(#[from] shelf::Error),
}

/// Unpacks all of `backup` into the directory `into`, which is made anew: what lay under that name is removed first. All of it has been
/// compared with the record, and is on the disk, when this ends well.
pub fn unpack<S: Steps>(shelf: &Shelf, backup: &Backup, into: &Path, disk: &mut Disk<S>) -> Result<(), Error> {
    disk.step("remove", into, |into| match fs::remove_dir_all(into) {
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    })?;
    disk.make_directory(into)?;
    let mut unpacking = Unpacking { into, disk, open: None };
    match archive::read(&shelf.directory(&backup.id), &backup.seal, &mut unpacking) {
        Ok(()) => {}
        Err(Damaged::Target(error)) => return Err(error.into()),
        Err(source) => {
            shelf.mark_damaged(&backup.id, &source, disk)?;
            return Err(Error::Damaged { id: backup.id.clone(), source });
        }
    }
    // Names last: each file's content is on the disk already.
    for entry in walkdir::WalkDir::new(into).contents_first(true).sort_by_file_name() {
        let entry = entry.map_err(io::Error::from);
        let path = disk.step("look through", into, |_| entry)?;
        if path.file_type().is_dir() {
            disk.sync_directory(path.path())?;
        }
    }
    Ok(())
}

struct Unpacking<'a, S> {
    into: &'a Path,
    disk: &'a mut Disk<S>,
    open: Option<(PathBuf, File, u32, u64)>,
}

impl<S: Steps> Target for Unpacking<'_, S> {
    fn directory(&mut self, path: &Path) -> Result<(), disk::Error> {
        self.disk.make_directory(&self.into.join(path))
    }

    fn begin(&mut self, path: &Path, mode: u32, modified: u64) -> Result<(), disk::Error> {
        let path = self.into.join(path);
        if let Some(parent) = path.parent() {
            self.disk.make_directory(parent)?;
        }
        let file = self
            .disk
            .step("create", &path, |path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path))?;
        self.open = Some((path, file, mode, modified));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), disk::Error> {
        match &mut self.open {
            Some((path, file, _, _)) => self.disk.step("write", path, |_| file.write_all(bytes)),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), disk::Error> {
        let Some((path, file, mode, modified)) = self.open.take() else { return Ok(()) };
        self.disk.step("bring to the disk", &path, |_| {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.set_times(FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(modified)))?;
            file.sync_all()
        })
    }
}
