//! Edge (reads). Reads a `level.dat`: gzipped NBT with the version of the Minecraft that wrote it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::nbt_check;
use crate::plain_fs::{self, refused_in};
use agent_api::Floor;

/// The largest content that is read. Real files have a few KiB, and mods add registries of some hundred.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The version information in a `level.dat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LevelDat {
    /// `Data.Version`, which Minecraft writes since 1.9.
    OpenedBy(Floor),
    /// A valid file without `Data.Version`: older than every version that a lock can contain.
    BeforeVersions,
    /// Empty, cut off, or no permission. The reason as text.
    Unreadable(String),
}

#[derive(Deserialize)]
struct Root<D> {
    #[serde(rename = "Data")]
    data: D,
}

#[derive(Deserialize)]
struct VersionTag {
    #[serde(rename = "Version")]
    version: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "Id")]
    id: u32,
    #[serde(rename = "Name")]
    name: String,
}

#[derive(Deserialize)]
struct Packs {
    #[serde(rename = "DataPacks")]
    datapacks: Option<Selection>,
}

#[derive(Deserialize)]
struct Selection {
    #[serde(rename = "Enabled")]
    enabled: Vec<String>,
}

/// # Errors
/// It is not a plain file.
pub(super) fn read(path: &Path) -> io::Result<LevelDat> {
    let data = match plain_fs::open(path) {
        Err(error) if refused_in(&error).is_some() => return Err(error),
        opened => opened.map_err(|error| error.to_string()).and_then(read_data),
    };
    Ok(match data {
        Ok(VersionTag { version: Some(Version { id, name }) }) => {
            LevelDat::OpenedBy(Floor { minecraft: name, data_version: id })
        }
        Ok(VersionTag { version: None }) => LevelDat::BeforeVersions,
        Err(why) => LevelDat::Unreadable(why),
    })
}

/// The datapacks that were enabled when it was written, `Data.DataPacks.Enabled`. `None`: it lists no datapacks, not even Minecraft's own.
pub(super) fn enabled_datapacks(path: &Path) -> Result<Option<Vec<String>>, String> {
    let file = plain_fs::open(path).map_err(|error| error.to_string())?;
    read_data::<Packs>(file).map(|packs| packs.datapacks.map(|selection| selection.enabled))
}

fn read_data<D: DeserializeOwned>(file: File) -> Result<D, String> {
    let mut bytes = Vec::new();
    GzDecoder::new(file.take(MAX_BYTES)).take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    nbt_check::check(&bytes)?;
    fastnbt::from_bytes::<Root<D>>(&bytes).map(|root| root.data).map_err(|error| error.to_string())
}

/// Whether Minecraft `a` is older than `b`, by the numbers in the name: `1.21.9` < `1.21.11-pre2` < `1.21.11` < `26.1`. A snapshot with an old
/// name (`25w41a`) counts as its year: newer than every `1.x`, older than `26.1`.
pub(super) fn is_older(a: &str, b: &str) -> bool {
    version_key(a) < version_key(b)
}

fn version_key(name: &str) -> (Vec<u32>, u8, Vec<u32>) {
    let (numbers, suffix) = name.split_once(['-', ' ']).unwrap_or((name, ""));
    let numbers: Vec<u32> = numbers.split('.').map(leading_number).collect();
    // `26.1` and `26.1.0` are one version.
    let length = numbers.iter().rposition(|number| *number != 0).map_or(0, |at| at + 1);
    let stage = match suffix {
        "" => 3,
        suffix if suffix.starts_with("rc") => 2,
        suffix if suffix.starts_with("snapshot") => 0,
        _ => 1,
    };
    let suffix_numbers = suffix.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    (numbers[..length].to_vec(), stage, suffix_numbers.collect())
}

fn leading_number(part: &str) -> u32 {
    part[..part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())].parse().unwrap_or(0)
}
