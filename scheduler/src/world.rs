//! Edge (reads). The worlds on a volume: which folders they are, which Minecraft opened them last, and who has them open now.
//!
//! Folders are found by their content, never by the name `world`. A world that a newer Minecraft has opened cannot go back, so the
//! highest version in any `level.dat` is the floor; one that cannot be read is unknown and allows no change of version. Only where the
//! server's own level is to be, its name counts: a link that leads to nothing there is no sign that there is no world.

pub mod damage;
mod level_dat;
pub mod loaded_worlds;
pub mod session_lock;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::protocol::{FileSet, Floor, OUR_DIR, WorldSeen};
use crate::server_properties::level_name;
pub use level_dat::LevelDat;

/// Folders of a server directory that never hold a world which the server opens. `lost+found` is what ext4 puts into each fresh volume, for
/// root alone where nobody has changed its owner.
const NO_WORLDS: [&str; 10] =
    ["bundler", "cache", "config", "crash-reports", "libraries", "logs", "lost+found", "plugins", "versions", OUR_DIR];

/// How deep worlds are looked for: beside server.properties, in a `world-container` below, or where a plugin keeps its own
/// (`worlds/minigames/map1`). As deep as dimensions of the new layout.
const DEPTH: usize = 4;

/// How deep in folders of which each has many, or more than one of the same world.
const FLAT_DEPTH: usize = 2;

/// Such folders, wherever they lie and however they are written: unpacked copies that people or plugins keep, which would be copied again
/// with each copy of the worlds; the tiles of `BlueMap`; and what a world without a `level.dat` has below it, which are no worlds of their own.
const FLAT: [&str; 4] = ["backup", "backups", "bluemap", "dimensions"];

/// How many files one look at the progress of a start may touch. A world of 100 GB has about 20,000 region files.
const PROGRESS_FILES: usize = 50_000;

/// One world folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldFolder {
    /// Where it is.
    pub path: PathBuf,
    /// What its `level.dat` says; None without one (a world folder of the new layout's dimensions, or one that was never saved).
    pub level: Option<LevelDat>,
    /// It has region files where Minecraft before 26.1 keeps them.
    pub old_layout: bool,
    /// It has region files where Minecraft since 26.1 keeps those of its own three dimensions.
    pub new_layout: bool,
    /// What the server has to do with it.
    pub role: Role,
}

/// What the server has to do with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// It is the server's own level: each start opens it.
    Level,
    /// The last start had it open.
    Opened,
    /// It lies there.
    #[default]
    Lies,
}

/// All world folders of a volume, ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worlds {
    /// The folders.
    pub folders: Vec<WorldFolder>,
}

impl Worlds {
    /// Looks at the volume. A folder that cannot be listed is an error: it may hold the newest world. So is a link to nothing in the place
    /// of the server's own level: the world lies somewhere, and here nobody sees it.
    pub fn read(data: &Path) -> io::Result<Self> {
        let level = level_name(data);
        for dimension in ["", "_nether", "_the_end"] {
            check_links(data, &format!("{level}{dimension}"))?;
        }
        let mut folders = Vec::new();
        find(data, 0, DEPTH, &mut folders)?;
        folders.sort_by(|a, b| a.path.cmp(&b.path));
        let mut worlds = Self { folders };
        loaded_worlds::tell_roles(data, &mut worlds);
        Ok(worlds)
    }

    /// The newest Minecraft that opened any of them.
    pub fn floor(&self) -> Option<Floor> {
        let floors = self.folders.iter().filter_map(|folder| match &folder.level {
            Some(LevelDat::OpenedBy(floor)) => Some(floor),
            Some(LevelDat::BeforeVersions | LevelDat::Unreadable(_)) | None => None,
        });
        floors.max_by_key(|floor| floor.data_version).cloned()
    }

    /// It is known which of them the server opens.
    pub fn are_in_use(&self) -> bool {
        self.folders.iter().any(|folder| folder.role != Role::Lies)
    }

    /// Where worlds of this format lie, if the server had none of them open: who looks at the worlds that are played on would not find why.
    fn strays_of(&self, floor: &Floor) -> String {
        let is_of = |folder: &&WorldFolder| matches!(&folder.level, Some(LevelDat::OpenedBy(by)) if by == floor);
        let all: Vec<_> = self.folders.iter().filter(is_of).collect();
        match all.first() {
            Some(stray) if self.are_in_use() && all.iter().all(|folder| folder.role == Role::Lies) => format!(
                ". It is `{}`, which the server did not have open: if it is not wanted here, move it out of the server's directory",
                stray.path.display()
            ),
            Some(_) | None => String::new(),
        }
    }

    /// The `level.dat` files that cannot be read, each with the reason.
    pub fn unreadable(&self) -> Vec<(&Path, &str)> {
        let unreadable = |folder: &'_ WorldFolder| matches!(&folder.level, Some(LevelDat::Unreadable(_)));
        let with_reason = self.folders.iter().filter(|folder| unreadable(folder)).map(|folder| match &folder.level {
            Some(LevelDat::Unreadable(why)) => (folder.path.as_path(), why.as_str()),
            Some(LevelDat::OpenedBy(_) | LevelDat::BeforeVersions) | None => (folder.path.as_path(), ""),
        });
        with_reason.collect()
    }

    /// False if a move from the old to the new layout did not end: the Minecraft that moves ends at each start.
    pub fn whole(&self) -> bool {
        let new = |folder: &WorldFolder| folder.new_layout;
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

/// Refuses a link that leads to nothing, at `name` or on the way to it. The claim that it led to may be mounted into the server's container
/// alone, or be lost: either way nothing may be copied, started or put back as if there were no world.
fn check_links(data: &Path, name: &str) -> io::Result<()> {
    let mut path = data.to_owned();
    for part in Path::new(name).components() {
        path.push(part);
        if path.is_symlink()
            && let Err(error) = fs::metadata(&path)
        {
            let words = format!(
                "`{}` is a link that leads to nothing here ({error}): put the worlds on the data volume in its place, or remove the \
                 link where there are none",
                path.display()
            );
            return Err(io::Error::new(error.kind(), words));
        }
    }
    Ok(())
}

fn find(directory: &Path, depth: usize, deepest: usize, found: &mut Vec<WorldFolder>) -> io::Result<()> {
    let with_place = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", directory.display()));
    let entries = match fs::read_dir(directory) {
        Err(error) if holds_none(error.kind(), depth) => return Ok(()),
        entries => entries.map_err(with_place)?,
    };
    for entry in entries {
        let entry = entry.map_err(with_place)?;
        let (name, path) = (entry.file_name(), entry.path());
        // Follows symbolic links: worlds are often linked. What else is no directory takes no look of its own, there may be thousands.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir()) || (is_link && path.is_dir());
        if !is_directory || (depth == 0 && NO_WORLDS.iter().any(|no| name == *no)) {
            continue;
        }
        let level_dat = path.join("level.dat");
        let level = if level_dat.exists() { Some(level_dat::read(&level_dat)) } else { None };
        let old_layout = ["region", "DIM-1/region", "DIM1/region"].iter().any(|place| has_regions(&path.join(place)));
        let own = path.join("dimensions/minecraft");
        let regions_of = |dimension: &&str| has_regions(&own.join(dimension).join("region"));
        let new_layout = own.exists() && ["overworld", "the_nether", "the_end"].iter().any(regions_of);
        // A link may lead up again, and what it leads to is found in its own place.
        let deepest = if is_link || is_flat(&name) { deepest.min(FLAT_DEPTH) } else { deepest };
        if level.is_some() || old_layout || new_layout {
            found.push(WorldFolder { path, level, old_layout, new_layout, role: Role::default() });
        } else if depth + 1 < deepest {
            find(&path, depth + 1, deepest, found)?;
        }
    }
    Ok(())
}

/// Whether a folder that cannot be listed can hold no world that the server opens. One that went while a server runs holds none. Far below,
/// neither does one that this user may not look into: the server is the same user. Higher up that is a mistake which somebody has to see.
fn holds_none(why: io::ErrorKind, depth: usize) -> bool {
    (depth > 0 && why == io::ErrorKind::NotFound) || (depth >= FLAT_DEPTH && why == io::ErrorKind::PermissionDenied)
}

/// Hidden folders are of tools: the objects of a `.git` lie in 256 folders.
fn is_flat(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || FLAT.iter().any(|flat| name.eq_ignore_ascii_case(flat))
}

fn has_regions(directory: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(directory) else { return false };
    entries.any(|entry| entry.is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "mca")))
}

/// Why a set of files must not open the worlds. The sentences are for people; each starts the agent's termination message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldRefusal {
    /// The worlds were opened by a newer one.
    #[error(
        "Minecraft {wanted} must not open this world: Minecraft {floor} has opened it, and a world cannot go back. \
         Choose {floor} or newer, or restore a backup from before{of}"
    )]
    Older {
        /// In the lock.
        wanted: String,
        /// On the volume.
        floor: String,
        /// Where that world lies, in words, if it is not the server's own. Else empty.
        of: String,
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
pub fn may_open(worlds: &Worlds, set: &FileSet, last: Option<&str>) -> Result<(), WorldRefusal> {
    if let Some(floor) = worlds.floor() {
        let older = match set.data_version {
            Some(wanted) => wanted < floor.data_version,
            None => level_dat::is_older(&set.minecraft, &floor.minecraft),
        };
        if older {
            let of = worlds.strays_of(&floor);
            return Err(WorldRefusal::Older { wanted: set.minecraft.clone(), floor: floor.minecraft, of });
        }
    }
    // Its `level.dat` is stamped only when all is moved, so by that it could. What ran here last found them as they are, and has been played on since.
    let release = set.minecraft.split(['-', ' ']).next().unwrap_or_default();
    if !worlds.whole() && level_dat::is_older(release, MOVES) && last != Some(&set.minecraft) {
        return Err(WorldRefusal::Moved { wanted: set.minecraft.clone() });
    }
    if let Some((path, why)) = worlds.unreadable().first()
        && last != Some(&set.minecraft)
    {
        return Err(WorldRefusal::Unknown {
            file: path.join("level.dat").display().to_string(),
            why: (*why).to_owned(),
            last: last.unwrap_or("unknown too").to_owned(),
            wanted: set.minecraft.clone(),
        });
    }
    Ok(())
}

/// Whether `set` is a newer Minecraft than those that opened these worlds: once it has, they cannot go back. `last` is the Minecraft that our
/// manifest names, if there is one.
///
/// Of worlds that only lie there the newest counts alone, else something old that nobody opens would be copied before each update. But a
/// newer one that somebody has put there says nothing of those that are played on.
pub fn is_one_way(worlds: &Worlds, set: &FileSet, last: Option<&str>) -> bool {
    let is_older = |level: &LevelDat| match level {
        LevelDat::OpenedBy(floor) => match set.data_version {
            Some(wanted) => floor.data_version < wanted,
            None => level_dat::is_older(&floor.minecraft, &set.minecraft),
        },
        // Older than every Minecraft that says which one it is.
        LevelDat::BeforeVersions => true,
        LevelDat::Unreadable(_) => false,
    };
    let are_all = match worlds.floor() {
        Some(floor) => is_older(&LevelDat::OpenedBy(floor)),
        None => worlds.folders.iter().any(|folder| folder.level == Some(LevelDat::BeforeVersions)),
    };
    // A plugin may open a world and never have it saved: its `level.dat` stays as old as it was, whatever has opened it since.
    let comes_first = last != Some(&set.minecraft);
    let is_opened = |folder: &WorldFolder| match folder.role {
        Role::Level => true,
        Role::Opened => comes_first,
        Role::Lies => false,
    };
    are_all || worlds.folders.iter().any(|folder| is_opened(folder) && folder.level.as_ref().is_some_and(is_older))
}

#[cfg(test)]
pub(crate) mod tests;
