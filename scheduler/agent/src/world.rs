//! Edge (reads). Finds the worlds on a volume, the Minecraft version that opened them last, and the processes that have them open.
//!
//! Folders are found by their content, never by the name `world`. A world that a newer Minecraft has opened cannot be converted back, so the
//! highest version in any `level.dat` is the floor. An unreadable one is unknown and allows no change of version. The name counts only for the
//! server's own level: a link at that path does not mean that no world exists.

pub mod damage;
mod level_dat;
pub mod loaded_worlds;
mod nbt_check;
pub mod session_lock;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::plain_fs::{self, Refused, Walk, exists, refused_in};
use crate::server_properties::level_name;
use agent_api::{FileSet, Floor, NIGHTSHIFT_DIR, WorldReport};
pub use level_dat::LevelDat;

/// Folders of a server directory that never contain a world which the server opens. `lost+found` is created by ext4 on each new volume, readable
/// only by root unless its owner was changed.
const NO_WORLDS: [&str; 10] = [
    "bundler",
    "cache",
    "config",
    "crash-reports",
    "libraries",
    "logs",
    "lost+found",
    "plugins",
    "versions",
    NIGHTSHIFT_DIR,
];

/// The depth of the search for worlds: beside server.properties, in a `world-container` below, or where a plugin stores its own
/// (`worlds/minigames/map1`). It equals the depth of dimensions in the new layout.
const DEPTH: usize = 4;

/// The depth inside folders that contain many subfolders, or several copies of the same world.
const FLAT_DEPTH: usize = 2;

/// Such folders, at any path and in any case. They are unpacked backups of users or plugins, which would be included in each backup of the
/// worlds, and the tiles of `BlueMap`. They are also the folders below a world without a `level.dat`, which are no worlds of their own.
const FLAT: [&str; 4] = ["backup", "backups", "bluemap", "dimensions"];

/// How many files one check of the progress of a start may read. A world of 100 GB has about 20,000 region files.
const MAX_PROGRESS_FILES: usize = 50_000;

/// One world folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldFolder {
    /// Its path.
    pub path: PathBuf,
    /// The content of its `level.dat`. `None` without one (a world folder of the new layout's dimensions, or one that was never saved).
    pub level: Option<LevelDat>,
    /// Whether it has region files where Minecraft before 26.1 stores them.
    pub old_layout: bool,
    /// Whether it has region files where Minecraft since 26.1 stores those of its own three dimensions.
    pub new_layout: bool,
    /// How the server uses it.
    pub role: Role,
}

/// How the server uses a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// It is the server's own level, which each start opens.
    Level,
    /// The last start had it open.
    Opened,
    /// It exists, and the server did not open it.
    #[default]
    Unused,
}

/// All world folders of a volume, ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worlds {
    /// The folders.
    pub folders: Vec<WorldFolder>,
}

impl Worlds {
    /// Reads the volume. A folder that cannot be listed is an error, because it may contain the newest world. A link at the path of the server's
    /// own level, or of a world that the last start has opened, is an error too: that world is somewhere else, and no link is followed.
    pub fn read(data: &Path) -> io::Result<Self> {
        let level = level_name(data)?;
        for dimension in ["", "_nether", "_the_end"] {
            check_links(data, &format!("{level}{dimension}"))?;
        }
        let mut found = FoundWorlds::default();
        find_worlds(data, 0, DEPTH, &mut found)?;
        found.folders.sort_by(|a, b| a.path.cmp(&b.path));
        let mut worlds = Self { folders: found.folders };
        match loaded_worlds::set_roles(data, &mut worlds, &found.links) {
            Some(link) => Err(Refused::new(link, LINKED_WORLD).into()),
            None => Ok(worlds),
        }
    }

    /// The newest Minecraft that opened any of them.
    pub fn floor(&self) -> Option<Floor> {
        let floors = self.folders.iter().filter_map(|folder| match &folder.level {
            Some(LevelDat::OpenedBy(floor)) => Some(floor),
            Some(LevelDat::BeforeVersions | LevelDat::Unreadable(_)) | None => None,
        });
        floors.max_by_key(|floor| floor.data_version).cloned()
    }

    /// Whether it is known which of them the server opens.
    pub fn is_use_known(&self) -> bool {
        self.folders.iter().any(|folder| folder.role != Role::Unused)
    }

    /// The paths of worlds with this format, if the server had none of them open: a user who checks only the worlds in use would not find the
    /// cause.
    fn unused_worlds_with(&self, floor: &Floor) -> String {
        let is_of = |folder: &&WorldFolder| matches!(&folder.level, Some(LevelDat::OpenedBy(by)) if by == floor);
        let all: Vec<_> = self.folders.iter().filter(is_of).collect();
        match all.first() {
            Some(stray) if self.is_use_known() && all.iter().all(|folder| folder.role == Role::Unused) => format!(
                ". It is `{}`, which the server did not have open: if it is unwanted, move it out of the server's \
                directory",
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

    /// False if a move from the old to the new layout did not finish: a Minecraft that moves the worlds then exits at each start.
    pub fn is_whole(&self) -> bool {
        let new = |folder: &WorldFolder| folder.new_layout;
        !self.folders.iter().filter(|folder| new(folder)).any(|moved| {
            moved.old_layout
                || self
                    .folders
                    .iter()
                    .any(|other| other.old_layout && !other.new_layout && belongs_to(&other.path, &moved.path))
        })
    }

    /// The worlds for the report.
    pub fn report(&self) -> WorldReport {
        WorldReport { floor: self.floor(), whole: self.is_whole() }
    }

    /// The `session.lock` of each folder that a server locks, whether or not the file exists.
    pub fn session_locks(&self) -> Vec<PathBuf> {
        let locked =
            self.folders.iter().filter(|folder| folder.level.is_some() || exists(&folder.path.join("session.lock")));
        locked.map(|folder| folder.path.join("session.lock")).collect()
    }

    /// When a file of these worlds last changed: a start with progress is not stuck.
    pub fn changed_at(&self) -> Option<Timestamp> {
        let files = self.folders.iter().flat_map(|folder| Walk::new(&folder.path)).take(MAX_PROGRESS_FILES);
        files.filter_map(|walked| walked.ok()?.metadata.modified().ok()?.try_into().ok()).max()
    }
}

/// `world_nether` and `world_the_end` are the other two dimensions of `world`, in Bukkit's old layout.
fn belongs_to(other: &Path, level: &Path) -> bool {
    let suffix =
        other.as_os_str().to_str().zip(level.as_os_str().to_str()).and_then(|(other, level)| other.strip_prefix(level));
    matches!(suffix, Some("_nether" | "_the_end"))
}

/// Why a linked world is refused.
const LINKED_WORLD: &str = "is a link to a world";

/// Refuses a link at `name` or in its parents. No backup, start or restore may treat the world as missing.
fn check_links(data: &Path, name: &str) -> io::Result<()> {
    let mut path = data.to_owned();
    for part in Path::new(name).components() {
        path.push(part);
        if plain_fs::metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(Refused::new(&path, LINKED_WORLD).into());
        }
    }
    Ok(())
}

/// What a search for worlds has found.
#[derive(Default)]
struct FoundWorlds {
    folders: Vec<WorldFolder>,
    /// Links where a world may be.
    links: Vec<PathBuf>,
}

fn find_worlds(directory: &Path, depth: usize, deepest: usize, found: &mut FoundWorlds) -> io::Result<()> {
    let with_path = |error: io::Error| match refused_in(&error) {
        Some(_) => error,
        None => io::Error::new(error.kind(), format!("`{}`: {error}", directory.display())),
    };
    if depth == 0 {
        plain_fs::metadata(directory).map_err(with_path)?;
    }
    let entries = match plain_fs::entries(directory) {
        Err(error) if cannot_hold_worlds(error.kind(), depth) => return Ok(()),
        entries => entries.map_err(with_path)?,
    };
    for entry in entries {
        let (name, path) = (entry.name(), entry.path());
        if depth == 0 && NO_WORLDS.iter().any(|no| name == *no) {
            continue;
        }
        match entry.kind() {
            Ok(kind) if kind.is_dir() => {}
            Ok(kind) if kind.is_symlink() => {
                found.links.push(path.to_owned());
                continue;
            }
            Ok(_) | Err(_) => continue,
        }
        let level_dat = path.join("level.dat");
        let level = if exists(&level_dat) { Some(level_dat::read(&level_dat)?) } else { None };
        let old_layout =
            ["region", "DIM-1/region", "DIM1/region"].iter().any(|region_path| has_regions(&path.join(region_path)));
        let dimensions = path.join("dimensions/minecraft");
        let regions_of = |dimension: &&str| has_regions(&dimensions.join(dimension).join("region"));
        let new_layout = exists(&dimensions) && ["overworld", "the_nether", "the_end"].iter().any(regions_of);
        let deepest = if is_flat(name) { deepest.min(FLAT_DEPTH) } else { deepest };
        if level.is_some() || old_layout || new_layout {
            let path = path.to_owned();
            found.folders.push(WorldFolder { path, level, old_layout, new_layout, role: Role::default() });
        } else if depth + 1 < deepest {
            find_worlds(path, depth + 1, deepest, found)?;
        }
    }
    Ok(())
}

/// Whether a folder that cannot be listed cannot contain a world that the server opens. A folder that disappeared while a server runs contains
/// none. Deep down, a folder without permission contains none either, because the server runs as the same user. Higher up, missing permission is
/// a mistake that must be reported.
fn cannot_hold_worlds(why: io::ErrorKind, depth: usize) -> bool {
    (depth > 0 && why == io::ErrorKind::NotFound) || (depth >= FLAT_DEPTH && why == io::ErrorKind::PermissionDenied)
}

/// Hidden folders belong to tools: the objects of a `.git` are in 256 folders.
fn is_flat(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with('.') || FLAT.iter().any(|flat| name.eq_ignore_ascii_case(flat))
}

fn has_regions(directory: &Path) -> bool {
    plain_fs::has_name(directory, |name| name.extension().is_some_and(|extension| extension == "mca"))
}

/// Why a version set must not open the worlds. The messages are for users, and each starts the agent's termination message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldRefusal {
    /// A newer Minecraft opened the worlds.
    #[error(
        "Minecraft {wanted} must not open this world: Minecraft {floor} has opened it, and a world cannot be \
        downgraded. Choose {floor} or newer, or restore an earlier backup{world}"
    )]
    Older {
        /// The version in the lock.
        wanted: String,
        /// The version on the volume.
        floor: String,
        /// The path of that world as text, if it is not the server's own. Otherwise empty.
        world: String,
    },
    /// A newer Minecraft has begun to move them to its layout, and did not finish.
    #[error(
        "Minecraft {wanted} must not open this world: a newer one has begun to move it to the layout of \
        {NEW_LAYOUT_SINCE}, and the moved parts would be generated again. Restore an earlier backup"
    )]
    Moved {
        /// The version in the lock.
        wanted: String,
    },
    /// The version of the worlds is unknown.
    #[error(
        "`{file}` cannot be read ({why}), so the Minecraft that opened this world is unknown. Only the one that ran \
        last ({last}) may open it, not {wanted}. Restore that file, or the world, from a backup"
    )]
    Unknown {
        /// The `level.dat`.
        file: String,
        /// The first reason.
        why: String,
        /// The version in the manifest.
        last: String,
        /// The version in the lock.
        wanted: String,
    },
}

/// The first Minecraft with one folder for all dimensions of a world. Paper moves older worlds into it at its first start.
const NEW_LAYOUT_SINCE: &str = "26.1";

/// Whether the files of `set` may open these worlds. `last` is the Minecraft in the manifest, if any.
pub fn may_open(worlds: &Worlds, set: &FileSet, last: Option<&str>) -> Result<(), WorldRefusal> {
    if let Some(floor) = worlds.floor() {
        let older = match set.data_version {
            Some(wanted) => wanted < floor.data_version,
            None => level_dat::is_older(&set.minecraft, &floor.minecraft),
        };
        if older {
            let of = worlds.unused_worlds_with(&floor);
            return Err(WorldRefusal::Older { wanted: set.minecraft.clone(), floor: floor.minecraft, world: of });
        }
    }
    // The `level.dat` gets its version only after the move, so by that file an older version could open the worlds. The version that ran here
    // last found them as they are, and players have used them since.
    let release = set.minecraft.split(['-', ' ']).next().unwrap_or_default();
    if !worlds.is_whole() && level_dat::is_older(release, NEW_LAYOUT_SINCE) && last != Some(&set.minecraft) {
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

/// Whether `set` has a newer Minecraft than the one that opened these worlds: after that, they cannot be converted back. `last` is the Minecraft
/// in the manifest, if any.
///
/// Of worlds that the server does not open, only the newest counts. Otherwise an old unused world would cause a backup before each update. But a
/// newer unused world that a user added does not affect the worlds in use.
pub fn is_irreversible(worlds: &Worlds, set: &FileSet, last: Option<&str>) -> bool {
    let is_older = |level: &LevelDat| match level {
        LevelDat::OpenedBy(floor) => match set.data_version {
            Some(wanted) => floor.data_version < wanted,
            None => level_dat::is_older(&floor.minecraft, &set.minecraft),
        },
        // Older than every Minecraft that writes its version.
        LevelDat::BeforeVersions => true,
        LevelDat::Unreadable(_) => false,
    };
    let is_floor_older = match worlds.floor() {
        Some(floor) => is_older(&LevelDat::OpenedBy(floor)),
        None => worlds.folders.iter().any(|folder| folder.level == Some(LevelDat::BeforeVersions)),
    };
    // A plugin may open a world and never save it. Its `level.dat` then stays as old as it was, whatever has opened it since.
    let is_first_open = last != Some(&set.minecraft);
    let is_opened = |folder: &WorldFolder| match folder.role {
        Role::Level => true,
        Role::Opened => is_first_open,
        Role::Unused => false,
    };
    is_floor_older
        || worlds.folders.iter().any(|folder| is_opened(folder) && folder.level.as_ref().is_some_and(is_older))
}

#[cfg(test)]
pub(crate) mod tests;
