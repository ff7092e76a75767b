//! Edge (reads). Reads single entries of a JAR, with limits.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use super::error::FactsError;

/// Limit of entries: four times the largest known plugin (50,000, with its libraries inside).
const MAX_ENTRIES: usize = 200_000;

/// An open JAR.
#[derive(Debug)]
pub struct Jar {
    zip: ZipArchive<BufReader<File>>,
}

impl Jar {
    /// Opens a file. Blocks.
    pub fn open(path: &Path) -> Result<Self, FactsError> {
        let file = File::open(path).map_err(FactsError::Open)?;
        let zip = ZipArchive::new(BufReader::new(file)).map_err(FactsError::NotAJar)?;
        if zip.len() > MAX_ENTRIES {
            return Err(FactsError::TooManyEntries { count: zip.len(), limit: MAX_ENTRIES });
        }
        Ok(Self { zip })
    }

    /// An entry, unpacked. `None` if it does not exist. The unpacked bytes are counted, whatever size the archive
    /// states.
    pub fn entry(&mut self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, FactsError> {
        let bytes = self.start(name, limit + 1)?;
        match bytes {
            Some(bytes) if bytes.len() as u64 > limit => {
                Err(FactsError::EntryTooLarge { entry: name.to_owned(), limit })
            }
            whole => Ok(whole),
        }
    }

    /// The start of an entry, at most `most` bytes.
    pub fn start(&mut self, name: &str, most: u64) -> Result<Option<Vec<u8>>, FactsError> {
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(FactsError::NotAJar(error)),
        };
        let mut bytes = Vec::new();
        entry
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(|source| FactsError::Unpack { entry: name.to_owned(), source })?;
        Ok(Some(bytes))
    }
}
