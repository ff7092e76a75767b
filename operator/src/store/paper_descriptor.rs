//! Edge (reads). Reads version and dependencies from a Paper JAR.

use std::path::Path;

use artifacts::{FactsError, Hash, Jar};
use reqwest::Url;
use serde::Deserialize;

const VERSION: &str = "version.json";
const DOWNLOAD_CONTEXT: &str = "META-INF/download-context";

/// Both files have a few hundred bytes.
const MAX_ENTRY_BYTES: u64 = 64 << 10;

/// The facts in a server's JAR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaperFacts {
    /// Minecraft's own number for the world format. `None` before Minecraft 1.18, whose JARs do not contain it here.
    pub(crate) data_version: Option<u32>,
    /// The Minecraft version, as Mojang writes it.
    pub(crate) minecraft: Option<String>,
    /// The JAR that Paper's launcher downloads at its first start, unless it is in `cache/`.
    pub(crate) mojang: Option<Mojang>,
}

/// Mojang's own server JAR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mojang {
    /// In lower case.
    pub(crate) sha256: String,
    pub(crate) url: String,
    /// A plain file name: `mojang_1.21.10.jar`.
    pub(crate) file_name: String,
}

/// Reads a Paper JAR. Blocks, for a few milliseconds.
pub(crate) fn read_facts(path: &Path) -> Result<PaperFacts, FactsError> {
    let mut jar = Jar::open(path)?;
    let version = match jar.entry(VERSION, MAX_ENTRY_BYTES)? {
        Some(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| FactsError::UnreadableDescriptor { entry: VERSION, what: error.to_string() })?,
        None => Version::default(),
    };
    let mojang =
        jar.entry(DOWNLOAD_CONTEXT, MAX_ENTRY_BYTES)?.map(|bytes| parse_download_context(&bytes)).transpose()?;
    Ok(PaperFacts { data_version: version.world_version, minecraft: version.id, mojang })
}

/// `version.json` in Mojang's format, with only the fields that are used here.
#[derive(Debug, Default, Deserialize)]
struct Version {
    id: Option<String>,
    world_version: Option<u32>,
}

/// `<sha256> TAB <url> TAB <file name>`, as Paperclip reads it.
fn parse_download_context(bytes: &[u8]) -> Result<Mojang, FactsError> {
    let nonsense = |reason: &str| FactsError::UnreadableDescriptor { entry: DOWNLOAD_CONTEXT, what: reason.to_owned() };
    let text = std::str::from_utf8(bytes).map_err(|error| nonsense(&error.to_string()))?;
    let parts: Vec<&str> = text.trim_end().split('\t').collect();
    let [sha256, url, file_name] = parts[..] else {
        return Err(nonsense("it has to have three parts"));
    };
    let hash = Hash::from_parts("sha256", sha256).ok_or_else(|| nonsense("its first part is not a sha256"))?;
    let url = Url::parse(url).map_err(|_| nonsense("its second part is not an address"))?;
    // The name becomes part of a path on the server's volume.
    let plain =
        file_name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) && !file_name.starts_with('.');
    if !plain || file_name.is_empty() {
        return Err(nonsense("its third part is not a plain file name"));
    }
    Ok(Mojang { sha256: hash.hex().to_owned(), url: url.into(), file_name: file_name.to_owned() })
}
