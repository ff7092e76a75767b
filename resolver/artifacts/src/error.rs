//! Pure. Defines the errors of reading a JAR.

use std::io;

use super::descriptor_rules::DescriptorRule;

/// The reason why a JAR could not be read. If its hash was right, the JAR itself is the cause.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The file could not be opened.
    #[error("it could not be opened")]
    Open(#[source] io::Error),
    /// The file is no zip.
    #[error("it is not a JAR")]
    NotAJar(#[source] zip::result::ZipError),
    /// It has more entries than any legitimate JAR.
    #[error("it has {count} entries, and more than {limit} are not read")]
    TooManyEntries {
        /// The number of entries.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// An entry unpacks to more than the limit.
    #[error("its `{entry}` is larger than {limit} bytes")]
    EntryTooLarge {
        /// Its path in the archive.
        entry: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// An entry is broken.
    #[error("its `{entry}` could not be unpacked")]
    Unpack {
        /// Its path in the archive.
        entry: String,
        /// The error of the archive.
        #[source]
        source: io::Error,
    },
    /// The JAR is not a plugin.
    #[error("it is not a plugin for Paper: it has neither paper-plugin.yml nor plugin.yml")]
    NoDescriptor,
    /// It is a plugin for other software.
    #[error("it is a plugin for {software}, not for Paper: it has {entry} and no plugin.yml")]
    OtherSoftware {
        /// The name of the software.
        software: &'static str,
        /// The descriptor that it has.
        entry: &'static str,
    },
    /// Paper refuses it by one of its rules.
    #[error("Paper refuses it: {rule}")]
    Refused {
        /// The rule.
        rule: DescriptorRule,
    },
    /// This reader does not understand the descriptor. The server may.
    #[error("Nightshift could not read its `{entry}`: {what}")]
    UnreadableDescriptor {
        /// Its path in the archive.
        entry: &'static str,
        /// The error, in one line.
        what: String,
    },
}

impl FactsError {
    /// Whether the JAR was read and no Paper loads a plugin from it.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NoDescriptor | Self::OtherSoftware { .. } | Self::Refused { .. } => true,
            Self::Open(_)
            | Self::NotAJar(_)
            | Self::TooManyEntries { .. }
            | Self::EntryTooLarge { .. }
            | Self::Unpack { .. }
            | Self::UnreadableDescriptor { .. } => false,
        }
    }
}
