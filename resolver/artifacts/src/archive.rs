//! Edge (reads). Reads single entries of a JAR as Java does, with limits.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::DeflateDecoder;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

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
        Self::new(File::open(path).map_err(FactsError::Open)?)
    }

    /// Reads an open file. Blocks.
    pub fn new(file: File) -> Result<Self, FactsError> {
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
    ///
    /// As `java.util.zip.ZipFile`, it finds `plugin.yml/` if there is no `plugin.yml`, and does not compare checksums.
    pub fn start(&mut self, name: &str, most: u64) -> Result<Option<Vec<u8>>, FactsError> {
        let position = self.zip.index_for_name(name).or_else(|| self.zip.index_for_name(&format!("{name}/")));
        let Some(position) = position else { return Ok(None) };
        let entry = self.zip.by_index_raw(position).map_err(FactsError::NotAJar)?;
        if entry.encrypted() {
            return Err(FactsError::NotAJar(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)));
        }
        let method = entry.compression();
        let unpacked = if method == CompressionMethod::Stored {
            read_start(entry, most)
        } else if method == CompressionMethod::Deflated {
            read_start(DeflateDecoder::new(entry), most)
        } else {
            return Err(FactsError::NotAJar(ZipError::UnsupportedArchive("compression method is not supported")));
        };
        unpacked.map(Some).map_err(|source| FactsError::Unpack { entry: name.to_owned(), source })
    }
}

fn read_start(entry: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
