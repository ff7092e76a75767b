//! Edge (reads). The worlds on a volume: which folders they are, which Minecraft opened them last, and who has them open now.
//!
//! Folders are found by their content, never by the name `world`. A world that a newer Minecraft has opened cannot go back, so the
//! highest version in any `level.dat` is the floor; one that cannot be read is unknown and allows no change of version.

pub mod damage;
mod level;
pub mod lock;
pub mod opened;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::protocol::{FileSet, Floor, OUR_DIR, WorldSeen};
pub use level::Level;

/// Folders of a server directory that never hold a world which the server opens. `lost+found` is what ext4 puts into each fresh volume, for
/// root alone where nobody has changed its owner.
const NO_WORLDS: [&str; 10] =
    ["bundler", "cache", "config", "crash-reports", "libraries", "logs", "lost+found", "plugins", "versions", OUR_DIR];

/// How deep worlds are looked for: beside server.properties, or in one `world-container` below.
const DEPTH: usize = 2;

/// How many files one look at the progress of a start may touch. A world of 100 GB has about 20,000 region files.
const PROGRESS_FILES: usize = 50_000;

/// One world folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// What its `level.dat` says; None without one (a world folder of the new layout's dimensions, or one that was never saved).
    pub level: Option<Level>,
    /// It has region files where Minecraft before 26.1 keeps them.
    pub old_layout: bool,
    /// It has region files where Minecraft since 26.1 keeps those of its own three dimensions.
    pub new_layout: bool,
}

/// All world folders of a volume, ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worlds {
    /// The folders.
    pub folders: Vec<Folder>,
}

impl Worlds {
    /// Looks at the volume. A folder that cannot be listed is an error: it may hold the newest world.
    pub fn read(data: &Path) -> io::Result<Self> {
        let mut folders = Vec::new();
        find(data, 0, &mut folders)?;
        folders.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { folders })
    }

    /// The newest Minecraft that opened any of them.
    pub fn floor(&self) -> Option<Floor> {
        let floors = self.folders.iter().filter_map(|folder| match &folder.level {
            Some(Level::OpenedBy(floor)) => Some(floor),
            Some(Level::BeforeVersions | Level::Unreadable(_)) | None => None,
        });
        floors.max_by_key(|floor| floor.data_version).cloned()
    }

    /// The `level.dat` files that cannot be read, each with the reason.
    pub fn unreadable(&self) -> Vec<(&Path, &str)> {
        let unreadable = |folder: &'_ Folder| matches!(&folder.level, Some(Level::Unreadable(_)));
        let with_reason = self.folders.iter().filter(|folder| unreadable(folder)).map(|folder| match &folder.level {
            Some(Level::Unreadable(why)) => (folder.path.as_path(), why.as_str()),
            Some(Level::OpenedBy(_) | Level::BeforeVersions) | None => (folder.path.as_path(), ""),
        });
        with_reason.collect()
    }

    /// False if a move from the old to the new layout did not end: the Minecraft that moves ends at each start.
    pub fn whole(&self) -> bool {
        let new = |folder: &Folder| folder.new_layout;
        !self.folders.iter().filter(|folder| new(folder)).any(|moved| {
            moved.old_layout
                || self
                    .folders
                    .iter()
                    .any(|other| other.old_layout && !other.new_layout && belongs_to(&other.path, &moved.path))
        })
    }

    /// As the report says it.
    pub fn seen(&self) -> WorldSeen {
        WorldSeen { floor: self.floor(), whole: self.whole() }
    }

    /// The `session.lock` of each folder that a server locks, whether the file is there or not.
    pub fn session_locks(&self) -> Vec<PathBuf> {
        let locked =
            self.folders.iter().filter(|folder| folder.level.is_some() || folder.path.join("session.lock").exists());
        locked.map(|folder| folder.path.join("session.lock")).collect()
    }

    /// When a file of these worlds last changed: a start that moves is not stuck.
    pub fn changed_at(&self) -> Option<Timestamp> {
        let files = self.folders.iter().flat_map(|folder| walkdir::WalkDir::new(&folder.path)).take(PROGRESS_FILES);
        files.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok()?.try_into().ok()).max()
    }
}

/// `world_nether` and `world_the_end` are the other two dimensions of `world`, in Bukkit's old layout.
fn belongs_to(other: &Path, level: &Path) -> bool {
    let suffix =
        other.as_os_str().to_str().zip(level.as_os_str().to_str()).and_then(|(other, level)| other.strip_prefix(level));
    matches!(suffix, Some("_nether" | "_the_end"))
}

fn find(directory: &Path, depth: usize, found: &mut Vec<Folder>) -> io::Result<()> {
    let with_place = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", directory.display()));
    for entry in fs::read_dir(directory).map_err(with_place)? {
        let entry = entry.map_err(with_place)?;
        let name = entry.file_name();
        // Follows symbolic links: worlds are often linked to another disk.
        if !entry.path().is_dir() || (depth == 0 && NO_WORLDS.iter().any(|no| name == *no)) {
            continue;
        }
        let path = entry.path();
        let level_dat = path.join("level.dat");
        let level = if level_dat.exists() { Some(level::read(&level_dat)) } else { None };
        let old_layout = ["region", "DIM-1/region", "DIM1/region"].iter().any(|place| has_regions(&path.join(place)));
        let own = ["overworld", "the_nether", "the_end"];
        let new_layout =
            own.iter().any(|dimension| has_regions(&path.join("dimensions/minecraft").join(dimension).join("region")));
        if level.is_some() || old_layout || new_layout {
            found.push(Folder { path, level, old_layout, new_layout });
        } else if depth + 1 < DEPTH {
            find(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

fn has_regions(directory: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(directory) else { return false };
    entries.any(|entry| entry.is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "mca")))
}

/// Why a set of files must not open the worlds. The sentences are for people; each starts the agent's termination message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The worlds were opened by a newer one.
    #[error(
        "Minecraft {wanted} must not open this world: Minecraft {floor} has opened it, and a world cannot go back. \
         Choose {floor} or newer, or restore a backup from before"
    )]
    Older {
        /// In the lock.
        wanted: String,
        /// On the volume.
        floor: String,
    },
    /// A newer one has begun to move them to its layout, and did not end it.
    #[error(
        "Minecraft {wanted} must not open this world: a newer one has begun to move it to the layout of {MOVES}, and what is moved would be made \
         anew. Restore a backup from before"
    )]
    Moved {
        /// In the lock.
        wanted: String,
    },
    /// Nobody knows.
    #[error(
        "`{file}` cannot be read ({why}), so nobody knows which Minecraft opened this world; \
         only the one that ran last ({last}) may open it, not {wanted}. Restore that file, or the world, from a backup"
    )]
    Unknown {
        /// The `level.dat`.
        file: String,
        /// The first reason.
        why: String,
        /// By our manifest.
        last: String,
        /// In the lock.
        wanted: String,
    },
}

/// The first Minecraft with one folder for all dimensions of a world: Paper moves those of before into it at its first start.
const MOVES: &str = "26.1";

/// Whether the files of `set` may open these worlds. `last` is the Minecraft that our manifest names, if there is one.
pub fn may_open(worlds: &Worlds, set: &FileSet, last: Option<&str>) -> Result<(), Refusal> {
    if let Some(floor) = worlds.floor() {
        let older = match set.data_version {
            Some(wanted) => wanted < floor.data_version,
            None => level::is_older(&set.minecraft, &floor.minecraft),
        };
        if older {
            return Err(Refusal::Older { wanted: set.minecraft.clone(), floor: floor.minecraft });
        }
    }
    // Its `level.dat` is stamped only when all is moved, so by that it could. What ran here last found them as they are, and has been played on since.
    let release = set.minecraft.split(['-', ' ']).next().unwrap_or_default();
    if !worlds.whole() && level::is_older(release, MOVES) && last != Some(&set.minecraft) {
        return Err(Refusal::Moved { wanted: set.minecraft.clone() });
    }
    if let Some((path, why)) = worlds.unreadable().first()
        && last != Some(&set.minecraft)
    {
        return Err(Refusal::Unknown {
            file: path.join("level.dat").display().to_string(),
            why: (*why).to_owned(),
            last: last.unwrap_or("unknown too").to_owned(),
            wanted: set.minecraft.clone(),
        });
    }
    Ok(())
}

/// Whether `set` is a newer Minecraft than any that opened these worlds: once it has, they cannot go back.
pub fn is_one_way(worlds: &Worlds, set: &FileSet) -> bool {
    match worlds.floor() {
        Some(floor) => match set.data_version {
            Some(wanted) => floor.data_version < wanted,
            None => level::is_older(&floor.minecraft, &set.minecraft),
        },
        // Older than every Minecraft that says which one it is.
        None => worlds.folders.iter().any(|folder| folder.level == Some(Level::BeforeVersions)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
