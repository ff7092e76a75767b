//! Edge (writes). Checks volumes of both layouts, built in a temporary directory.

use std::fs;
use std::io::Write as _;

use fastnbt::{Value, nbt};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn put(directory: &Path, path: &str, content: &[u8]) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn level_dat(data: &Value) -> Vec<u8> {
    let bytes = fastnbt::to_bytes(&nbt!({"Data": data.clone()})).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&bytes).unwrap();
    gzip.finish().unwrap()
}

fn plain() -> Vec<u8> {
    level_dat(&nbt!({"LevelName": "x"}))
}

fn read(data: &Path) -> BTreeMap<String, OpenEvidence> {
    let folders = Worlds::read(data).unwrap();
    open_evidence(&level_folder(data, &folders).unwrap(), &folders).unwrap()
}

fn names(data: &Path) -> Vec<String> {
    read(data).into_keys().collect()
}

#[test]
fn world_keeps_its_name_across_26_1_migration() {
    let before = tempfile::tempdir().unwrap();
    put(before.path(), "server.properties", b"level-name=lobby\n");
    for folder in ["lobby", "lobby_nether", "lobby_the_end", "Creative World", "lobby_skylands_high", "lobby_old"] {
        put(before.path(), &format!("{folder}/level.dat"), &plain());
    }
    put(before.path(), "lobby_skylands_high/dimensions/skylands/high/region/r.0.0.mca", b"");
    put(before.path(), "world_nether/DIM-1/region/r.0.0.mca", b"never opened by a server of ours");
    let after = tempfile::tempdir().unwrap();
    put(after.path(), "server.properties", b"level-name=lobby\n");
    put(after.path(), "lobby/level.dat", &plain());
    for dimension in [
        "minecraft/overworld/region",
        "minecraft/the_nether/region",
        "minecraft/the_end/data",
        "minecraft/creative_world/entities",
        "minecraft/lobby_old/region",
        "skylands/high/poi",
    ] {
        fs::create_dir_all(after.path().join("lobby/dimensions").join(dimension)).unwrap();
    }
    let expected = ["creative_world", "lobby_old", "overworld", "skylands:high", "the_end", "the_nether"];
    assert_eq!(names(before.path()), expected);
    assert_eq!(names(after.path()), expected);

    let lock = before.path().join("Creative World/session.lock");
    assert_eq!(read(before.path())["creative_world"], OpenEvidence::Locks(vec![lock]));
    assert_eq!(read(after.path())["creative_world"], OpenEvidence::Console("minecraft:creative_world".to_owned()));
    assert_eq!(read(after.path())["skylands:high"], OpenEvidence::Console("skylands:high".to_owned()));
}

#[test]
fn folder_left_by_migration_is_listed_without_unsafe_names() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "world/level.dat", &plain());
    fs::create_dir_all(data.path().join("world/dimensions/minecraft/overworld/region")).unwrap();
    fs::create_dir_all(data.path().join("world/dimensions/minecraft/x run stop/region")).unwrap();
    fs::create_dir_all(data.path().join("world/dimensions/minecraft/worlds/hub/region")).unwrap();
    put(data.path(), "Creative/level.dat", &plain());
    put(data.path(), "a\nminecraft:stop/level.dat", &plain());
    assert_eq!(names(data.path()), ["creative", "overworld", "worlds/hub"]);
}

#[test]
fn level_in_world_container_is_found_with_sibling_worlds() {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(level_folder(data.path(), &Worlds::default()), None);
    put(data.path(), "worlds/world/level.dat", &plain());
    put(data.path(), "worlds/creative/level.dat", &plain());
    put(data.path(), "outside/level.dat", &plain());
    let folders = Worlds::read(data.path()).unwrap();
    assert_eq!(level_folder(data.path(), &folders), Some(data.path().join("worlds/world")));
    assert_eq!(names(data.path()), ["creative", "outside", "overworld"]);
}

#[test]
fn level_of_container_is_highest_folder_of_its_name() {
    let data = tempfile::tempdir().unwrap();
    put(data.path(), "archive/2025/world/level.dat", &plain());
    put(data.path(), "worlds/world/level.dat", &plain());
    let folders = Worlds::read(data.path()).unwrap();
    assert_eq!(folders.folders.len(), 2);
    assert_eq!(level_folder(data.path(), &folders), Some(data.path().join("worlds/world")));
}

#[test]
fn folder_role_is_level_opened_or_unused() {
    let data = tempfile::tempdir().unwrap();
    let roles = || {
        let folders = Worlds::read(data.path()).unwrap().folders;
        folders.into_iter().map(|folder| folder.role).collect::<Vec<_>>()
    };
    put(data.path(), "server.properties", b"level-name=lobby\n");
    for folder in ["Creative World", "event", "lobby", "lobby_nether"] {
        put(data.path(), &format!("{folder}/level.dat"), &plain());
    }
    assert_eq!(roles(), [Role::Unused, Role::Unused, Role::Level, Role::Unused], "no start is recorded");
    let opened = br#"{"start": "x", "worlds": {"opened": ["creative_world", "overworld", "the_nether"], "rows": {}}}"#;
    put(data.path(), ".nightshift/opened.json", opened);
    assert_eq!(roles(), [Role::Opened, Role::Unused, Role::Level, Role::Opened]);
    put(data.path(), ".nightshift/opened.json", b"rubbish");
    assert_eq!(roles(), [Role::Unused, Role::Unused, Role::Level, Role::Unused]);
}

#[test]
fn duplicate_world_beside_container_hides_no_session_lock() {
    let data = tempfile::tempdir().unwrap();
    let folders = ["worlds/creative", "worlds.bak/creative"].map(|folder| data.path().join(folder));
    put(data.path(), "worlds/world/level.dat", &plain());
    for folder in &folders {
        put(folder, "level.dat", &plain());
    }
    let [original, duplicate] = folders.map(|folder| folder.join("session.lock"));
    assert_eq!(read(data.path())["creative"], OpenEvidence::Locks(vec![original, duplicate]));
}

#[test]
fn datapacks_are_those_installed_by_users_and_enabled() {
    let data = tempfile::tempdir().unwrap();
    let level = data.path();
    assert_eq!(datapacks_present(level).unwrap(), BTreeSet::new(), "no folder");
    for file in ["terrain.zip", "skylands/pack.mcmeta", "bukkit/pack.mcmeta", "notes.txt", "empty/readme"] {
        put(level, &format!("datapacks/{file}"), b"");
    }
    let present = datapacks_present(level).unwrap();
    assert_eq!(present.iter().collect::<Vec<_>>(), ["file/skylands", "file/terrain.zip"]);

    let enabled = ["vanilla", "file/bukkit", "paper", "file/terrain.zip", "myplugin/terrain"];
    let enabled = enabled.map(|name| Value::String(name.to_owned())).to_vec();
    put(level, "level.dat", &level_dat(&nbt!({"DataPacks": {"Enabled": enabled, "Disabled": ["file/skylands"]}})));
    let written = fs::metadata(level.join("level.dat")).unwrap().modified().unwrap();
    let written = Timestamp::try_from(written).unwrap();
    let second = jiff::SignedDuration::from_secs(1);
    assert_eq!(datapacks_enabled(level, written + second), Ok(None), "the file is older than the start");
    assert_eq!(datapacks_enabled(level, written), Ok(Some(["file/terrain.zip".to_owned()].into())));

    put(level, "level.dat", &plain());
    assert!(datapacks_enabled(level, written).unwrap_err().contains("names no datapacks"));
    put(level, "level.dat", b"rubbish");
    assert!(datapacks_enabled(level, written).is_err());
}
