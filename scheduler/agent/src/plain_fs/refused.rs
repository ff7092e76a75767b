//! Pure. Defines why the agent does not touch an item on a volume.

use std::error::Error;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{escape_path, other_kind};

/// An item that is not what the agent opens. It was neither read nor changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {problem}")]
pub(crate) struct Refused {
    /// Its path as text, without control characters.
    pub(crate) path: String,
    /// What is wrong with it: `is a link`.
    pub(crate) problem: String,
}

impl Refused {
    pub(crate) fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: escape_path(path.as_os_str().as_bytes()), problem: problem.into() }
    }

    /// `None` for a plain file.
    pub(super) fn if_not_plain(path: &Path, found: &Metadata) -> Option<Self> {
        other_kind(found).map(|problem| Self::new(path, problem))
    }

    /// Whether it is about this item, and not about a directory above it.
    pub(crate) fn is_about(&self, path: &Path) -> bool {
        self.path == escape_path(path.as_os_str().as_bytes())
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::other(refused)
    }
}

/// The refusal that caused an error, if one did.
pub(crate) fn refused_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refused> {
    let mut causes = std::iter::successors(Some(error), |cause| (*cause).source());
    causes.find_map(|cause| match cause.downcast_ref::<io::Error>() {
        // An `io::Error` has the cause of its content as its own cause, and not the content.
        Some(error) => refused_in(error.get_ref()?),
        None => cause.downcast_ref(),
    })
}
