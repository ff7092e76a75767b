//! Pure. Defines why a backup must not be used, or could not be read.

use std::error::Error;
use std::io;

use crate::plain_fs::refused_in;
use crate::staging::fs_ops;

/// An archive does not match its record.
#[derive(Debug, thiserror::Error)]
pub enum Damaged {
    /// It cannot be read to its end.
    #[error("`{file}` cannot be read")]
    Read {
        /// The archive or the list.
        file: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A name that must not be used.
    #[error("the archive has `{name}`, which {problem}")]
    Entry {
        /// The name as written in the archive.
        name: String,
        /// Why it is not allowed.
        problem: &'static str,
    },
    /// An entry and its line in the list differ.
    #[error("`{name}` in the archive differs from the list of files")]
    Differs {
        /// The name as written in the archive.
        name: String,
    },
    /// A hash or a sum differs.
    #[error("the {subject} differs from the record")]
    Seal {
        /// Which one.
        subject: &'static str,
    },
    /// The content could not be written to the target. This is independent of the archive.
    #[error("could not write the contents of the archive")]
    Target(#[source] fs_ops::Error),
}

impl Damaged {
    /// Whether the archive itself is at fault. False: the source or the target disk failed. That may be temporary, and a backup marked as damaged
    /// for it would be lost for ever. It is only marked as unreadable. A missing archive counts as damaged.
    pub fn is_archive_fault(&self) -> bool {
        match self {
            Self::Read { file: _, source } => !is_system_error(source),
            Self::Target(_) => false,
            Self::Entry { .. } | Self::Differs { .. } | Self::Seal { .. } => true,
        }
    }
}

/// Whether the system could not read, as opposed to invalid content.
fn is_system_error(error: &io::Error) -> bool {
    let causes = std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source());
    let mut io_errors = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    // A link or a directory in place of the file says nothing about the file.
    refused_in(error).is_some()
        || io_errors.any(|error| error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound)
}
