//! Pure. Defines why a backup must not be used, or could not be read.

use std::error::Error;
use std::io;

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
    #[error("the archive holds `{name}`, which {problem}")]
    Entry {
        /// The name as written in the archive.
        name: String,
        /// Why it is not allowed.
        problem: &'static str,
    },
    /// An entry and its line in the list differ.
    #[error("`{name}` in the archive is not what the list of files says")]
    Differs {
        /// The name as written in the archive.
        name: String,
    },
    /// A hash or a sum differs.
    #[error("the {what} is not what the record says")]
    Seal {
        /// Which one.
        what: &'static str,
    },
    /// The content could not be written to the target. This is independent of the archive.
    #[error("could not write what the archive holds")]
    Target(#[source] fs_ops::Error),
}

impl Damaged {
    /// Whether the archive itself is at fault. False: the source or the target disk failed. That may be temporary, and a backup marked as damaged
    /// for it would be lost for ever. It is only marked as unreadable. A missing archive counts as damaged.
    pub fn is_about_the_archive(&self) -> bool {
        match self {
            Self::Read { file: _, source } => !is_of_the_system(source),
            Self::Target(_) => false,
            Self::Entry { .. } | Self::Differs { .. } | Self::Seal { .. } => true,
        }
    }
}

/// Whether the system could not read, as opposed to invalid content.
fn is_of_the_system(error: &io::Error) -> bool {
    let causes = std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source());
    let mut said = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    said.any(|error| error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound)
}
