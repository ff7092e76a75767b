//! Edge (writes). Checks worlds built in a temporary directory.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::*;
use agent_api::termination_message::WorldRefused;
use agent_api::{File, FileHash};

#[derive(Serialize)]
struct Root {
    #[serde(rename = "Data")]
    data: Data,
}

#[derive(Serialize)]
struct Data {
    #[serde(rename = "LevelName")]
    level_name: String,
    #[serde(rename = "Version", skip_serializing_if = "Option::is_none")]
    version: Option<Version>,
}

#[derive(Serialize)]
struct Version {
    #[serde(rename = "Id")]
    id: i32,
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Snapshot")]
    snapshot: i8,
}

fn level_dat(version: Option<(i32, &str)>) -> Vec<u8> {
    let version = version.map(|(id, name)| Version { id, name: name.into(), snapshot: 0 });
    let bytes = fastnbt::to_bytes(&Root { data: Data { level_name: "world".into(), version } }).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&bytes).unwrap();
    gzip.finish().unwrap()
}

fn put(directory: &Path, path: &str, content: &[u8]) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A version set without plugins.
pub(crate) fn set(minecraft: &str, data_version: Option<u32>) -> FileSet {
    let hash = FileHash("sha256:00".into());
    let server = File {
        path: ".nightshift/server/paper.jar".into(),
        hash,
        size: None,
        url: String::new(),
        plugin: None,
        provides: Vec::new(),
    };
    FileSet {
        lock: "a".repeat(64),
        minecraft: minecraft.into(),
        build: 1,
        data_version,
        server,
        support: vec![],
        plugins: vec![],
    }
}

#[test]
fn empty_volume_has_no_floor_and_accepts_any_minecraft() {
    let data = tempfile::tempdir().unwrap();
    let worlds = Worlds::read(data.path()).unwrap();
    assert_eq!(worlds.report(), WorldReport { floor: None, whole: true });
    assert_eq!(may_open(&worlds, &set("1.8", None), None), Ok(()));
    assert_eq!(worlds.session_locks(), Vec::<PathBuf>::new());
}

#[test]
fn world_scan_ignores_lost_and_found_and_names_unlistable_folder() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "lost+found/level.dat", &level_dat(Some((9999, "99"))));
    put(data.path(), "lost+found/#131/level.dat", &level_dat(Some((9999, "99"))));
    assert_eq!(Worlds::read(data.path()).unwrap(), Worlds::default());
    let missing = data.path().join("gone");
    let error = Worlds::read(&missing).unwrap_err().to_string();
    assert!(error.starts_with(&format!("`{}`: ", missing.display())), "{error}");
}

#[test]
fn floor_is_highest_version_of_any_world() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "lobby/level.dat", &level_dat(Some((4556, "1.21.10"))));
    put(data.path(), "lobby_nether/DIM-1/region/r.0.0.mca", b"");
    put(data.path(), "worlds/build/level.dat", &level_dat(Some((4671, "1.21.11"))));
    put(data.path(), "ancient/level.dat", &level_dat(None));
    put(data.path(), "plugins/Templates/arena/level.dat", &level_dat(Some((9999, "99"))));
    let worlds = Worlds::read(data.path()).unwrap();
    assert_eq!(worlds.floor(), Some(Floor { minecraft: "1.21.11".into(), data_version: 4671 }));
    assert_eq!(worlds.folders.len(), 4);
    let locks: Vec<_> =
        worlds.session_locks().iter().map(|path| path.strip_prefix(data.path()).unwrap().to_owned()).collect();
    assert_eq!(
        locks,
        ["ancient/session.lock", "lobby/session.lock", "worlds/build/session.lock"].map(PathBuf::from),
        "a folder without level.dat and session.lock is not locked by a server"
    );
}

#[test]
fn worlds_are_found_up_to_four_folders_deep() {
    let data = tempfile::tempdir().unwrap();
    let newer = level_dat(Some((4671, "1.21.11")));
    put(data.path(), "world/level.dat", &level_dat(Some((4556, "1.21.10"))));
    put(data.path(), "world/backups/a/level.dat", &newer);
    put(data.path(), "worlds/minigames/map1/level.dat", &newer);
    put(data.path(), "worlds/minigames/sky/map2/level.dat", &newer);
    // The maximum depth in such folders.
    put(data.path(), "Backups/old/level.dat", &newer);
    put(data.path(), ".cache/old/level.dat", &newer);
    for elsewhere in [
        "a/b/c/d/e",
        "Backups/2026-11-22/world",
        "worlds/backup/2026-11-22/world",
        ".git/objects/ab",
        "bluemap/web/maps/world",
        "plugins/Templates/arenas/sky",
    ] {
        put(data.path(), &format!("{elsewhere}/level.dat"), &level_dat(Some((9999, "99"))));
    }
    // A world that has lost its `level.dat`, and not a moved folder.
    put(data.path(), "lost/dimensions/minecraft/creative/region/r.0.0.mca", b"");
    std::os::unix::fs::symlink(data.path(), data.path().join("worlds/minigames/up")).unwrap();
    let worlds = Worlds::read(data.path()).unwrap();
    let found: Vec<_> = worlds.folders.iter().map(|folder| folder.path.strip_prefix(data.path()).unwrap()).collect();
    let expected = [".cache/old", "Backups/old", "world", "worlds/minigames/map1", "worlds/minigames/sky/map2"];
    assert_eq!(found, expected.map(Path::new));
    assert_eq!(worlds.floor(), Some(Floor { minecraft: "1.21.11".into(), data_version: 4671 }));
    assert!(may_open(&worlds, &set("1.21.10", Some(4556)), Some("1.21.10")).is_err(), "the server would open `map1`");
}

#[test]
fn link_at_path_of_level_does_not_mean_missing_world() {
    let link = |name: &str, to: &Path| {
        let data = tempfile::tempdir().unwrap();
        put(data.path(), "server.properties", b"level-name=maps/lobby\n");
        fs::create_dir_all(data.path().join("maps")).unwrap();
        let link = data.path().join(name);
        if name == "maps" {
            fs::remove_dir(&link).unwrap();
        }
        std::os::unix::fs::symlink(to, &link).unwrap();
        (Worlds::read(data.path()), link)
    };
    let disk = tempfile::tempdir().unwrap();
    put(disk.path(), "level.dat", &level_dat(Some((4556, "1.21.10"))));
    for target in [Path::new("/nightshift/of/the/servers/container"), disk.path()] {
        for name in ["maps", "maps/lobby", "maps/lobby_nether", "maps/lobby_the_end"] {
            let (read, link) = link(name, target);
            let message = read.unwrap_err().to_string();
            assert_eq!(message, format!("`{}` is a link to a world", link.display()));
        }
        let (elsewhere, _) = link("maps/creative", target);
        assert_eq!(elsewhere.unwrap(), Worlds::default(), "the server did not open it");
    }
}

#[test]
fn link_to_world_that_last_start_opened_is_refused() {
    let (data, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(data.path(), "world/level.dat", &level_dat(Some((4556, "1.21.10"))));
    put(disk.path(), "level.dat", &level_dat(Some((4556, "1.21.10"))));
    std::os::unix::fs::symlink(disk.path(), data.path().join("Creative Map")).unwrap();
    assert_eq!(Worlds::read(data.path()).unwrap().folders.len(), 1);
    put(data.path(), ".nightshift/opened.json", br#"{"worlds": {"opened": ["creative_map"]}}"#);
    let message = Worlds::read(data.path()).unwrap_err().to_string();
    assert!(message.ends_with("Creative Map` is a link to a world"), "{message}");
}

#[test]
fn older_minecraft_is_refused_by_data_version_or_number() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "world/level.dat", &level_dat(Some((4556, "1.21.10"))));
    let worlds = Worlds::read(data.path()).unwrap();
    for (minecraft, data_version, fine) in [
        ("1.21.10", Some(4556), true),
        ("1.21.9", Some(4554), false),
        ("1.21.9", None, false),
        ("1.21.10", None, true),
        ("1.21.11", None, true),
        ("26.1", None, true),
        ("26.1", Some(4800), true),
        ("1.21.10-pre1", None, false),
    ] {
        assert_eq!(
            may_open(&worlds, &set(minecraft, data_version), None).is_ok(),
            fine,
            "{minecraft} {data_version:?}"
        );
    }
    let refusal = may_open(&worlds, &set("1.21.9", None), None).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Minecraft 1.21.9 must not open this world: Minecraft 1.21.10 has opened it, and a world cannot be \
        downgraded. Choose 1.21.10 or newer, or restore an earlier backup"
    );
}

#[test]
fn newer_unopened_world_is_named_as_unopened_in_refusal() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "world/level.dat", &level_dat(Some((4556, "1.21.10"))));
    put(data.path(), "archive/2027/world/level.dat", &level_dat(Some((4671, "1.21.11"))));
    let message =
        || may_open(&Worlds::read(data.path()).unwrap(), &set("1.21.10", Some(4556)), None).unwrap_err().to_string();
    assert!(message().contains("archive/2027/world`, which the server did not have open"), "{}", message());
    put(data.path(), "world/level.dat", &level_dat(Some((4671, "1.21.11"))));
    assert!(message().ends_with("or restore an earlier backup"), "{}", message());
}

#[test]
fn unreadable_level_dat_allows_only_last_run_minecraft() {
    let cut = &level_dat(Some((4556, "1.21.10")))[..20];
    for content in [b"".as_slice(), b"rubbish", cut] {
        let data = tempfile::tempdir().unwrap();
        put(data.path(), "world/level.dat", content);
        let worlds = Worlds::read(data.path()).unwrap();
        assert_eq!(worlds.unreadable().len(), 1);
        assert_eq!(may_open(&worlds, &set("1.21.10", None), Some("1.21.10")), Ok(()));
        for last in [Some("1.21.9"), None] {
            let refusal = may_open(&worlds, &set("1.21.10", None), last).unwrap_err();
            assert!(matches!(refusal, WorldRefusal::Unknown { .. }), "{refusal:?}");
        }
    }
}

#[test]
fn floor_holds_despite_another_unreadable_level_dat() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "world/level.dat", &level_dat(Some((4671, "1.21.11"))));
    put(data.path(), "other/level.dat", b"rubbish");
    let worlds = Worlds::read(data.path()).unwrap();
    let refusal = may_open(&worlds, &set("1.21.10", None), Some("1.21.10")).unwrap_err();
    assert!(matches!(refusal, WorldRefusal::Older { .. }), "{refusal:?}");
}

#[test]
fn unfinished_migration_to_new_layout_is_detected() {
    let old_nether = "world_nether/DIM-1/region/r.0.0.mca";
    for (files, whole) in [
        (&["world/region/r.0.0.mca", old_nether][..], true),
        (&["world/dimensions/minecraft/overworld/region/r.0.0.mca"], true),
        // A dimension of a datapack is at this path in both layouts.
        (&["world/region/r.0.0.mca", "world/dimensions/skylands/high/region/r.0.0.mca"], true),
        (&["world/region/r.1.0.mca", "world/dimensions/minecraft/overworld/region/r.0.0.mca"], false),
        (&["world/dimensions/minecraft/overworld/region/r.0.0.mca", old_nether], false),
        (&["world/dimensions/minecraft/overworld/region/r.0.0.mca", "hub/region/r.0.0.mca"], true),
        (&["world/dimensions/minecraft/overworld/region/r.0.0.mca", "world_nether/DIM-1/region/readme.txt"], true),
    ] {
        let data = tempfile::tempdir().unwrap();
        put(data.path(), "world/level.dat", &level_dat(Some((4800, "26.1"))));
        for file in files {
            put(data.path(), file, b"");
        }
        assert_eq!(Worlds::read(data.path()).unwrap().is_whole(), whole, "{files:?}");
    }
}

#[test]
fn partly_migrated_worlds_refuse_minecraft_before_new_layout() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "world/level.dat", &level_dat(Some((4671, "1.21.11"))));
    put(data.path(), "world_nether/DIM-1/region/r.0.0.mca", b"");
    let opens = |minecraft: &str, data_version, last| {
        may_open(&Worlds::read(data.path()).unwrap(), &set(minecraft, Some(data_version)), Some(last))
    };
    let may = |minecraft: &str, data_version| opens(minecraft, data_version, "26.1.2");
    assert_eq!(may("1.21.11", 4671), Ok(()));
    put(data.path(), "world/dimensions/minecraft/overworld/region/r.0.0.mca", b"");
    let refusal = may("1.21.11", 4671).unwrap_err();
    assert_eq!(refusal, WorldRefusal::Moved { wanted: "1.21.11".into() });
    assert!(
        refusal.to_string().contains("to the layout of 26.1, and the moved parts would be generated again"),
        "{refusal}"
    );
    // Paper itself reports the conflict, at each start.
    assert_eq!(may("26.1.2", 4790), Ok(()));
    assert_eq!(may("26.1-rc-1", 4780), Ok(()));
    // This Minecraft has already run on these worlds, and players have used them since. Their progress stays.
    assert_eq!(opens("1.21.11", 4671, "1.21.11"), Ok(()));
}

#[test]
fn world_refusal_for_age_means_older_minecraft_only() {
    let refused = |refusal: WorldRefusal| WorldRefused {
        why: refusal.to_string(),
        floor: None,
        backups: None,
        refused_request: None,
    };
    let (wanted, floor) = ("1.21.10".to_owned(), "1.21.11".to_owned());
    assert!(refused(WorldRefusal::Older { wanted: wanted.clone(), floor, world: String::new() }).is_too_new());
    assert!(!refused(WorldRefusal::Moved { wanted }).is_too_new());
}

#[test]
fn region_file_change_counts_as_progress() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "world/level.dat", &level_dat(Some((4800, "26.1"))));
    put(data.path(), "world/region/r.0.0.mca", b"");
    let late = Timestamp::from_second(4_000_000_000).unwrap();
    let region = fs::File::options().write(true).open(data.path().join("world/region/r.0.0.mca")).unwrap();
    region.set_modified(late.into()).unwrap();
    assert_eq!(Worlds::read(data.path()).unwrap().changed_at(), Some(late));
}

#[test]
fn version_names_are_compared_by_their_numbers() {
    let sorted = [
        "1.9",
        "1.21",
        "1.21.9",
        "1.21.11-pre2",
        "1.21.11-pre10",
        "1.21.11-rc1",
        "1.21.11",
        "25w41a",
        "26.1",
        "26.1.1",
    ];
    for (at, older) in sorted.iter().enumerate() {
        for (other, newer) in sorted.iter().enumerate() {
            assert_eq!(level_dat::is_older(older, newer), at < other, "{older} {newer}");
        }
    }
    assert!(!level_dat::is_older("26.1", "26.1.0") && !level_dat::is_older("26.1.0", "26.1"));
}
