//! Pure. Why a copy must not be used, or could not be read.

use std::error::Error;
use std::io;

use crate::staging::fs_ops;

/// An archive is not what its record says.
#[derive(Debug, thiserror::Error)]
pub enum Damaged {
    /// It cannot be read to its end.
    #[error("`{file}` cannot be read")]
    Read {
        /// Archive or list.
        file: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A name that must not be used.
    #[error("the archive holds `{name}`, which {problem}")]
    Entry {
        /// As it stands there.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Entry and list are not of one mind.
    #[error("`{name}` in the archive is not what the list of files says")]
    Differs {
        /// As it stands in the archive.
        name: String,
    },
    /// A hash or a sum is another one.
    #[error("the {what} is not what the record says")]
    Seal {
        /// Which.
        what: &'static str,
    },
    /// What was read could not be put down: says nothing about the archive.
    #[error("could not write what the archive holds")]
    Target(#[source] fs_ops::Error),
}

impl Damaged {
    /// False: it is a disk that said no, the one that it goes to or the one that it lies on. That may be over the next time, and a copy that was
    /// called damaged for it would be lost for ever: it is only noted that it could not be read. One that is not there is damaged.
    pub fn is_about_the_archive(&self) -> bool {
        match self {
            Self::Read { file: _, source } => !is_of_the_system(source),
            Self::Target(_) => false,
            Self::Entry { .. } | Self::Differs { .. } | Self::Seal { .. } => true,
        }
    }
}

/// Whether the system could not read, as opposed to what it has read making no sense.
fn is_of_the_system(error: &io::Error) -> bool {
    let causes = std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source());
    let mut said = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    said.any(|error| error.raw_os_error().is_some() && error.kind() != io::ErrorKind::NotFound)
}
