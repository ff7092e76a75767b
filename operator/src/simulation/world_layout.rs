//! Edge (writes). Defines the world layouts before and since Minecraft 26.1: three folders, or one.
//!
//! The files and the order of the migration at the first start of 26.1 are those of the fake Paper server
//! (`fixtures/src/stand_in/migration.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use scheduler::protocol::FileSet;

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
    Beside,
    /// All dimensions below the level's folder (26.1).
    Below,
}

impl Layout {
    /// The layout of a Minecraft version.
    pub(super) fn of(minecraft: &str) -> Self {
        // Newer versions begin with the year.
        if minecraft.starts_with("1.") { Self::Beside } else { Self::Below }
    }

    /// The folders of the region files of the three dimensions.
    const fn regions(self) -> [&'static str; 3] {
        match self {
            Self::Beside => ["world/region", "world_nether/DIM-1/region", "world_the_end/DIM1/region"],
            Self::Below => [
                "world/dimensions/minecraft/overworld/region",
                "world/dimensions/minecraft/the_nether/region",
                "world/dimensions/minecraft/the_end/region",
            ],
        }
    }

    const fn players(self) -> &'static str {
        match self {
            Self::Beside => "world/playerdata",
            Self::Below => "world/players",
        }
    }

    /// The folders that have a `level.dat`.
    const fn levels(self) -> &'static [&'static str] {
        match self {
            Self::Beside => &FOLDERS,
            Self::Below => &["world"],
        }
    }
}

/// The players' builds that a server of this layout finds. A 26.1 server also reads the old folders, because it
/// migrates them.
pub(super) fn read_marks(data: &Path, layout: Layout) -> Vec<u64> {
    let looks_at: &[Layout] = match layout {
        Layout::Beside => &[Layout::Beside],
        Layout::Below => &[Layout::Beside, Layout::Below],
    };
    let files = looks_at.iter().flat_map(|layout| layout.regions()).map(|folder| data.join(folder).join(REGION));
    let texts = files.map(|file| fs::read_to_string(file).unwrap_or_default());
    let mut marks: Vec<u64> =
        texts.flat_map(|text| text.lines().map(|line| line.parse().expect("a mark")).collect::<Vec<u64>>()).collect();
    marks.sort_unstable();
    marks
}

/// Writes all builds to the disk. Players build in all three dimensions.
pub(super) fn write_worlds(data: &Path, files: &FileSet, marks: &[u64]) {
    let layout = Layout::of(&files.minecraft);
    for (dimension, folder) in (0..).zip(layout.regions()) {
        let built = marks.iter().filter(|mark| **mark % 3 == dimension);
        write(
            &data.join(folder).join(REGION),
            built.map(ToString::to_string).collect::<Vec<_>>().join("\n").as_bytes(),
        );
    }
    if !marks.is_empty() {
        let player = data.join(layout.players()).join(PLAYER);
        // Minecraft writes it when a player has changed, not at each start.
        let text = marks.len().to_string();
        if fs::read_to_string(&player).ok().as_ref() != Some(&text) {
            write(&player, text.as_bytes());
        }
    }
    // Each Minecraft version adds files that older ones do not know.
    write(&data.join("world/data").join(&files.minecraft), b"");
    let format = files.data_version.expect("the stand-in for Paper says its format");
    for folder in layout.levels() {
        write(&data.join(folder).join("level.dat"), &level_dat(format, &files.minecraft));
    }
}

/// The files that the first start of 26.1 moves, in its order: source, target and name.
pub(super) fn moves(data: &Path) -> Vec<(&'static str, &'static str, &'static str)> {
    let players = (Layout::Beside.players(), Layout::Below.players(), PLAYER);
    let regions = Layout::Beside.regions().into_iter().zip(Layout::Below.regions());
    let all = std::iter::once(players).chain(regions.map(|(from, to)| (from, to, REGION)));
    all.filter(|(from, _, file)| data.join(from).join(file).exists()).collect()
}

/// Whether a migration has begun and not ended. 26.1 does not continue it ("Refusing to overwrite existing migrated
/// file").
pub(super) fn is_half_moved(data: &Path) -> bool {
    data.join("world/dimensions").exists() && !moves(data).is_empty()
}

/// Whether a start of 26.1 has moved files here to a place that older versions do not read.
pub(super) fn is_moved(data: &Path) -> bool {
    data.join("world/dimensions").exists()
}

/// Moves the first `some` files.
pub(super) fn move_some(data: &Path, some: usize) {
    for (from, to, file) in moves(data).into_iter().take(some) {
        let to = data.join(to);
        fs::create_dir_all(&to).expect("a folder of the new layout");
        fs::rename(data.join(from).join(file), to.join(file)).expect("both lie on one volume");
    }
}

/// Moves the remaining files, and removes the empty folders.
pub(super) fn end_move(data: &Path) {
    move_some(data, usize::MAX);
    for folder in FOLDERS.iter().filter(|folder| !Layout::Below.levels().contains(folder)) {
        fs::remove_dir_all(data.join(folder)).expect("a world that was moved");
    }
    for folder in [Layout::Beside.regions()[0], Layout::Beside.players()] {
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
    for folder in Layout::Beside.levels() {
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
    gzip.write_all(&fastnbt::to_bytes(&root).expect("a small tree")).expect("memory");
    gzip.finish().expect("memory")
}
