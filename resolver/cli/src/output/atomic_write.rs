//! Edge (writes). Writes files atomically: a file exists in full or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// An error of writing a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("could not make the directory `{}`", .path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not write `{}`", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Writes `text` to `path` and creates its directory if it is missing. Concurrent readers get the old text or the new
/// one.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), WriteError> {
    let failed = |source| WriteError::File { path: path.to_owned(), source };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory).map_err(|source| WriteError::Directory { path: directory.to_owned(), source })?;
    // In the same directory, because a rename works only within one file system.
    let mut builder = Builder::new();
    builder.prefix(".nightshift-").suffix(".part");
    // Default permissions minus the umask. Temporary files are readable by their owner only.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
