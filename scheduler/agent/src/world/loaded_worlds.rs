//! Edge (reads). Lists the worlds and datapacks on a volume, and determines which of them the running server has open.
//!
//! Up to Minecraft 26.1 each world is a folder with its own `session.lock`, which the server holds as long as the world is open. Since then all
//! of them are below the level's folder and only that one is locked. Only the server's console can tell which are open.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;

use super::{Role, Worlds, level_dat};
use crate::plain_fs::{self, exists, is_directory};
use crate::server_properties::level_name;
use crate::staging::{Volume, read_record};

/// The datapack that Bukkit writes into the folder for users' own. Paper 1.20.5 moved it into the server's JAR.
const BUKKIT_DATAPACK: &str = "bukkit";

/// Folders of which a dimension of the new layout has at least one.
const DIMENSION_FOLDERS: [&str; 4] = ["region", "entities", "poi", "data"];

/// How deep below its namespace a dimension may be: a plugin may name a world `worlds/creative`.
const DIMENSION_DEPTH: usize = 4;

/// How to find out whether a world is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenEvidence {
    /// Whether a process holds one of these files. A copy of a world beside its container has the same name, and one of the two is open.
    Locks(Vec<PathBuf>),
    /// The server's console, asked for this dimension.
    Console(String),
}

/// The part of `opened.json` that lists the worlds in use. The agent that observes a start writes it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OpenedRecord {
    worlds: WorldRecord,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WorldRecord {
    /// The worlds that the last start has opened, by the names of [`open_evidence`].
    opened: BTreeSet<String>,
}

/// The folder of the server's own level. `None` before its first start. In a container it is the topmost folder: a deeper one with the same name
/// is a copy of a user.
pub fn level_folder(data: &Path, worlds: &Worlds) -> Option<PathBuf> {
    let name = level_name(data).ok()?;
    let candidate = data.join(&name);
    let is_level = |path: &&PathBuf| exists(&path.join("level.dat"));
    if is_level(&&candidate) {
        return Some(candidate);
    }
    let below = worlds.folders.iter().map(|folder| &folder.path).filter(|path| path.ends_with(&name)).filter(is_level);
    below.min_by_key(|path| path.components().count()).cloned()
}

/// Whether the server has opened a new level that it has not saved yet. Paper writes the first `level.dat` with the first save.
pub fn is_unsaved(data: &Path) -> bool {
    let Ok(name) = level_name(data) else { return false };
    let level = data.join(name);
    exists(&level.join("session.lock")) && !exists(&level.join("level.dat"))
}

/// Sets how the server uses each folder. If the record cannot be read, only the level is known. Returns the first of these links that the last
/// start has opened as a world.
pub(super) fn set_roles<'a>(data: &Path, worlds: &mut Worlds, links: &'a [PathBuf]) -> Option<&'a Path> {
    let level = level_folder(data, worlds)?;
    let record: Option<OpenedRecord> = read_record(&Volume::new(data).loaded_content_path()).unwrap_or_default();
    let opened = record.unwrap_or_default().worlds.opened;
    let is_opened = |path: &Path| sibling_name(path, &level).is_some_and(|name| opened.contains(&name));
    for folder in &mut worlds.folders {
        folder.role = if folder.path == level {
            Role::Level
        } else if is_opened(&folder.path) {
            Role::Opened
        } else {
            Role::Unused
        };
    }
    links.iter().map(PathBuf::as_path).find(|link| is_opened(link))
}

/// The worlds on the volume, by the names of [`agent_api::loaded_content::Loaded`].
pub fn open_evidence(level: &Path, worlds: &Worlds) -> io::Result<BTreeMap<String, OpenEvidence>> {
    let dimensions = level.join("dimensions");
    let is_new = is_directory(&dimensions.join("minecraft/overworld"));
    let mut found = BTreeMap::new();
    for folder in &worlds.folders {
        let lock = folder.path.join("session.lock");
        let Some(name) = sibling_name(&folder.path, level).filter(|_| folder.level.is_some() || exists(&lock)) else {
            continue;
        };
        // In the new layout this world was not moved yet, but a plugin may open it and have it moved. A name that is not a valid key cannot be
        // opened.
        if is_new {
            found.extend(dimension_key(&name).map(|key| (name, OpenEvidence::Console(key))));
        } else if let OpenEvidence::Locks(locks) = found.entry(name).or_insert_with(|| OpenEvidence::Locks(Vec::new()))
        {
            locks.push(lock);
        }
    }
    if is_new {
        for namespace in directories(&dimensions)? {
            let mut paths = Vec::new();
            find_dimensions(&namespace, 0, &mut paths)?;
            for path in paths {
                let Some(key) =
                    relative_name(&path, &dimensions).and_then(|joined| valid_key(joined.replacen('/', ":", 1)))
                else {
                    continue;
                };
                found.insert(key.strip_prefix("minecraft:").unwrap_or(&key).to_owned(), OpenEvidence::Console(key));
            }
        }
    }
    Ok(found)
}

/// The datapacks that users have put into the level's folder.
pub fn datapacks_present(level: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in plain_fs::entries(&level.join("datapacks"))? {
        let Some(name) = entry.name().to_str().map(str::to_owned) else { continue };
        let is_pack = entry.path().extension() == Some("zip".as_ref()) || exists(&entry.path().join("pack.mcmeta"));
        if is_pack && name != BUKKIT_DATAPACK {
            found.insert(format!("file/{name}"));
        }
    }
    Ok(found)
}

/// The users' datapacks that the server has enabled, by its latest `level.dat`. `None`: it has not written one since then.
///
/// At a start it reads the file, drops datapacks that it cannot find or read, and adds new ones. A file from before the start therefore shows the
/// requested datapacks, not the active ones.
pub fn datapacks_enabled(level: &Path, since: Timestamp) -> Result<Option<BTreeSet<String>>, String> {
    let path = level.join("level.dat");
    let modified =
        plain_fs::metadata(&path).and_then(|metadata| metadata.modified()).map_err(|error| error.to_string())?;
    if Timestamp::try_from(modified).map_err(|error| error.to_string())? < since {
        return Ok(None);
    }
    let enabled = level_dat::enabled_datapacks(&path)?.ok_or("`level.dat` names no datapacks")?;
    let is_user_datapack = |name: &String| name.strip_prefix("file/").is_some_and(|file| file != BUKKIT_DATAPACK);
    Ok(Some(enabled.into_iter().filter(is_user_datapack).collect()))
}

/// The name of a world whose folder is where Bukkit has always put it: beside the level's.
fn sibling_name(folder: &Path, level: &Path) -> Option<String> {
    let level_name = level.file_name()?.to_str()?;
    // Bukkit's conversion of a world's name into a key.
    let key = |name: &str| name.to_lowercase().replace(' ', "_");
    let Some(name) = relative_name(folder, level.parent()?) else { return folder.file_name()?.to_str().map(key) };
    match name.strip_prefix(level_name) {
        Some("") => return Some("overworld".to_owned()),
        Some("_nether") => return Some("the_nether".to_owned()),
        Some("_the_end") => return Some("the_end".to_owned()),
        Some(_) | None => {}
    }
    // A dimension of a datapack: `world_skylands_high/dimensions/skylands/high`.
    let of_a_pack = name.strip_prefix(level_name).and_then(|rest| rest.strip_prefix('_')).and_then(|rest| {
        let mut splits = rest.match_indices('_').map(|(at, _)| (&rest[..at], &rest[at + 1..]));
        splits.find(|(namespace, path)| is_directory(&folder.join("dimensions").join(namespace).join(path)))
    });
    Some(match of_a_pack {
        Some((namespace, path)) => format!("{namespace}:{path}"),
        None => key(&name),
    })
}

/// The console's key for a world with this name.
fn dimension_key(name: &str) -> Option<String> {
    valid_key(if name.contains(':') { name.to_owned() } else { format!("minecraft:{name}") })
}

/// A key that Minecraft accepts. It becomes part of a command line, so no other text is allowed.
fn valid_key(key: String) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-./:".contains(&byte);
    (key.bytes().all(plain) && key.matches(':').count() == 1).then_some(key)
}

/// The path of `inner` below `outer`, with `/` between its parts.
fn relative_name(inner: &Path, outer: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = inner.strip_prefix(outer).ok()?.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/")).filter(|joined| !joined.is_empty())
}

fn find_dimensions(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for path in directories(directory)? {
        if DIMENSION_FOLDERS.iter().any(|part| is_directory(&path.join(part))) {
            found.push(path);
        } else if depth + 1 < DIMENSION_DEPTH {
            find_dimensions(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

fn directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = plain_fs::entries(directory)?.into_iter();
    Ok(entries.filter(plain_fs::Entry::is_directory).map(|entry| entry.path().to_owned()).collect())
}

#[cfg(test)]
mod tests;
