//! Pure. Why a JAR could not be read.

use std::io;

/// Why a JAR could not be read. All of it is the JAR's fault when its hash was right.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The file itself cannot be had.
    #[error("it could not be opened")]
    Open(#[source] io::Error),
    /// The file is no zip.
    #[error("it is no JAR")]
    NotAJar(#[source] zip::result::ZipError),
    /// More entries than any honest JAR has.
    #[error("it has {count} entries, and more than {limit} are not read")]
    TooManyEntries {
        /// How many there are.
        count: usize,
        /// How many may be.
        limit: usize,
    },
    /// An entry that unpacks to more than it may.
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
        /// What the archive said.
        #[source]
        source: io::Error,
    },
    /// A JAR of something else.
    #[error("it is no plugin for Paper: it has neither paper-plugin.yml nor plugin.yml")]
    NoDescription,
    /// A plugin of another software.
    #[error("it is a plugin for {software}, not for Paper: it has {entry} and no plugin.yml")]
    OtherSoftware {
        /// As its makers call it.
        software: &'static str,
        /// The description that it has.
        entry: &'static str,
    },
    /// A description that says nothing usable.
    #[error("its `{entry}` could not be understood: {what}")]
    Nonsense {
        /// Its path in the archive.
        entry: &'static str,
        /// What is wrong with it, in one line.
        what: String,
    },
}
