//! Edge (writes). Defines the world layouts before and since Minecraft 26.1: three folders, or one.
//!
//! The files and the order of the migration at the first start of 26.1 are those of the fake Paper server
//! (`fixtures/src/fake_paper/migration.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use agent_api::FileSet;

/// The world folders of the server. Since 26.1 only the first exists.
pub(super) const FOLDERS: [&str; 3] = ["world", "world_nether", "world_the_end"];

/// The file with the players' builds in each dimension.
const REGION: &str = "r.0.0.mca";
/// The file of the only player.
const PLAYER: &str = "player.dat";

/// The layout of the dimensions on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A folder for each dimension, with a `level.dat` of its own.
    Siblings,
    /// All dimensions below the level's folder (26.1).
    Nested,
}

impl Layout {
    /// The layout of a Minecraft version.
    pub(super) fn from_minecraft(minecraft: &str) -> Self {
        // Newer versions begin with the year.
        if minecraft.starts_with("1.") { Self::Siblings } else { Self::Nested }
    }

    /// The folders of the region files of the three dimensions.
    const fn regions(self) -> [&'static str; 3] {
        match self {
            Self::Siblings => ["world/region", "world_nether/DIM-1/region", "world_the_end/DIM1/region"],
            Self::Nested => [
                "world/dimensions/minecraft/overworld/region",
                "world/dimensions/minecraft/the_nether/region",
                "world/dimensions/minecraft/the_end/region",
            ],
        }
    }

    const fn players(self) -> &'static str {
        match self {
            Self::Siblings => "world/playerdata",
            Self::Nested => "world/players",
        }
    }

    /// The folders that have a `level.dat`.
    const fn levels(self) -> &'static [&'static str] {
        match self {
            Self::Siblings => &FOLDERS,
            Self::Nested => &["world"],
        }
    }
}

/// The players' builds that a server of this layout finds. A 26.1 server also reads the old folders, because it
/// migrates them.
pub(super) fn read_builds(data: &Path, layout: Layout) -> Vec<u64> {
    let layouts: &[Layout] = match layout {
        Layout::Siblings => &[Layout::Siblings],
        Layout::Nested => &[Layout::Siblings, Layout::Nested],
    };
    let files = layouts.iter().flat_map(|layout| layout.regions()).map(|folder| data.join(folder).join(REGION));
    let texts = files.map(|file| fs::read_to_string(file).unwrap_or_default());
    let mut builds: Vec<u64> =
        texts.flat_map(|text| text.lines().map(|line| line.parse().expect("a build")).collect::<Vec<u64>>()).collect();
    builds.sort_unstable();
    builds
}

/// Writes all builds to the disk. Players build in all three dimensions.
pub(super) fn write_worlds(data: &Path, files: &FileSet, builds: &[u64]) {
    let layout = Layout::from_minecraft(&files.minecraft);
    for (dimension, folder) in (0..).zip(layout.regions()) {
        let built = builds.iter().filter(|build| **build % 3 == dimension);
        write(
            &data.join(folder).join(REGION),
            built.map(ToString::to_string).collect::<Vec<_>>().join("\n").as_bytes(),
        );
    }
    if !builds.is_empty() {
        let player = data.join(layout.players()).join(PLAYER);
        // Minecraft writes it when a player has changed, not at each start.
        let text = builds.len().to_string();
        if fs::read_to_string(&player).ok().as_ref() != Some(&text) {
            write(&player, text.as_bytes());
        }
    }
    // Each Minecraft version adds files that older ones do not know.
    write(&data.join("world/data").join(&files.minecraft), b"");
    let format = files.data_version.expect("every version set here has a data version");
    for folder in layout.levels() {
        write(&data.join(folder).join("level.dat"), &level_dat(format, &files.minecraft));
    }
}

/// The files that the first start of 26.1 moves, in its order: source, target and name.
pub(super) fn files_to_migrate(data: &Path) -> Vec<(&'static str, &'static str, &'static str)> {
    let players = (Layout::Siblings.players(), Layout::Nested.players(), PLAYER);
    let regions = Layout::Siblings.regions().into_iter().zip(Layout::Nested.regions());
    let all = std::iter::once(players).chain(regions.map(|(from, to)| (from, to, REGION)));
    all.filter(|(from, _, file)| data.join(from).join(file).exists()).collect()
}

/// Whether a migration has begun and not ended. 26.1 does not continue it ("Refusing to overwrite existing migrated
/// file").
pub(super) fn is_partly_migrated(data: &Path) -> bool {
    data.join("world/dimensions").exists() && !files_to_migrate(data).is_empty()
}

/// Whether a start of 26.1 has moved files here to a place that older versions do not read.
pub(super) fn is_migrated(data: &Path) -> bool {
    data.join("world/dimensions").exists()
}

/// Moves the first `count` files.
pub(super) fn migrate_files(data: &Path, count: usize) {
    for (from, to, file) in files_to_migrate(data).into_iter().take(count) {
        let to = data.join(to);
        fs::create_dir_all(&to).expect("a folder of the new layout");
        fs::rename(data.join(from).join(file), to.join(file)).expect("both are on one volume");
    }
}

/// Moves the remaining files, and removes the empty folders.
pub(super) fn finish_migration(data: &Path) {
    migrate_files(data, usize::MAX);
    for folder in FOLDERS.iter().filter(|folder| !Layout::Nested.levels().contains(folder)) {
        fs::remove_dir_all(data.join(folder)).expect("a migrated world folder");
    }
    for folder in [Layout::Siblings.regions()[0], Layout::Siblings.players()] {
        // The folder does not exist if no player was on the server.
        let _ = fs::remove_dir(data.join(folder));
    }
}

fn write(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder of the worlds");
    fs::write(file, bytes).expect("a file of the worlds");
}

/// Records in the worlds that this Minecraft has opened them.
pub(super) fn write_level_dats(data: &Path, format: u32, name: &str) {
    for folder in Layout::Siblings.levels() {
        write(&data.join(folder).join("level.dat"), &level_dat(format, name));
    }
}

fn level_dat(format: u32, name: &str) -> Vec<u8> {
    let version = BTreeMap::from([
        ("Id", fastnbt::Value::Int(i32::try_from(format).expect("a small number"))),
        ("Name", fastnbt::Value::String(name.into())),
    ]);
    let root = BTreeMap::from([("Data", BTreeMap::from([("Version", version)]))]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&fastnbt::to_bytes(&root).expect("valid NBT")).expect("a write to memory");
    gzip.finish().expect("a write to memory")
}
