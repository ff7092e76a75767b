//! Edge (writes). Reads the files of the lock from its `ConfigMap`, and keeps a copy on the volume.
//!
//! Others may write `ConfigMap`s, and a plugin may write the volume. So both count only with the digest that the pod template names. If the
//! `ConfigMap` was changed, the copy lets the server start with the version set that it runs.

use std::io;
use std::path::Path;

use tracing::warn;

use super::{ErrorChain, config};
use crate::plain_fs::{self, MAX_CONFIG_MAP_BYTES};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{Volume, read_record};
use agent_api::FileSet;

/// The files of the lock are not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("could not read the lock's files at `{path}`")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("the lock's files at `{path}` were written by another version of the operator")]
    Parse {
        path: String,
        #[source]
        source: serde_json::Error,
    },
    /// Only the operator can help.
    #[error("the lock's files at `{path}` are not those that the pod template names")]
    Changed { path: String },
}

/// The files of the lock that the pod template names.
#[derive(Debug)]
pub(super) struct TrustedFiles {
    pub(super) set: FileSet,
    /// Whether the `ConfigMap` has others, so that these are from the copy on the volume.
    pub(super) is_copy: bool,
}

impl TrustedFiles {
    pub(super) fn read(config: &config::InitConfig, volume: &Volume) -> Result<Self, Error> {
        let problem = match read_mounted(&config.files) {
            Ok(set) if set.digest() == config.files_digest => return Ok(Self { set, is_copy: false }),
            Ok(_) => Error::Changed { path: config.files.display().to_string() },
            Err(error) => error,
        };
        // An unreadable copy is as good as none.
        let copy = read_record::<FileSet>(&volume.lock_files_path()).unwrap_or(None);
        match copy.filter(|set| set.digest() == config.files_digest) {
            Some(set) => Ok(Self { set, is_copy: true }),
            None => Err(problem),
        }
    }

    /// Keeps a copy for the next start. The server starts without it too.
    pub(super) fn keep_copy(&self, volume: &Volume) {
        if self.is_copy {
            return;
        }
        let path = volume.lock_files_path();
        if read_record::<FileSet>(&path).unwrap_or(None).as_ref() != Some(&self.set)
            && let Err(error) = Disk::new(RealFs).write_record(&path, &self.set)
        {
            warn!("{}", ErrorChain(&error));
        }
    }
}

fn read_mounted(path: &Path) -> Result<FileSet, Error> {
    let name = || path.display().to_string();
    let read = plain_fs::read_provided(path, MAX_CONFIG_MAP_BYTES);
    let bytes = read.map_err(|source| Error::Read { path: name(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| Error::Parse { path: name(), source })
}
