//! Edge (writes). Tests which worlds and datapacks a start has opened, with the fake Paper server and an agent in another process.
//!
//! The separate process is needed because the agent detects locks that other processes hold.

use std::fs;
use std::path::Path;

use agent::{config, pre_stop_hook};
use agent_api::loaded_content::{AtStart, Loaded};
use agent_api::{AgentReport, Save, Saved, Server};
use fixtures::fake_paper::{Config, Handle, start};
use fixtures::jar::{self, Minecraft};
use serde_json::json;

use crate::fake_paper::MINECRAFT;
use crate::fake_server::PASSWORD;
use crate::harness::{Pod, until};

const V26_1: Minecraft<'_> = Minecraft { id: "26.1", world_version: 4790, protocol: Some(775), java: 25 };

/// A server's process, on a volume to which no file must be downloaded.
fn server(pod: &Pod, minecraft: &Minecraft<'_>, faults: &str) -> Handle {
    let data = pod.data.path();
    let paper = data.join(format!("paper-{}.jar", minecraft.id));
    fs::create_dir_all(data.join("cache")).unwrap();
    fs::write(data.join("cache").join(jar::mojang_file_name(minecraft.id)), jar::mojang(minecraft)).unwrap();
    fs::write(&paper, jar::paper(minecraft, 130, "http://127.0.0.1:1/server.jar")).unwrap();
    let config = Config::for_tests(data, &paper, minecraft.id, PASSWORD)
        .with("SERVER_PORT", &pod.game.port().to_string())
        .with("RCON_PORT", &pod.rcon.port().to_string())
        .with("STAND_IN_FAULTS", faults);
    start(config)
}

async fn loaded(pod: &Pod) -> Loaded {
    let report = pod.report_when("worlds and datapacks read", |report| report.loaded.is_some()).await;
    report.loaded.unwrap()
}

async fn stopped(pod: &Pod, server: Handle) {
    let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 };
    assert_eq!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::Done("ok".into()));
    server.terminate();
    pod.report_when("down", |report: &AgentReport| report.last_stop.is_some() && report.server == Server::Absent).await;
    server.wait().await;
}

fn put_datapack(data: &Path, name: &str) {
    let folder = data.join("world/datapacks").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("pack.mcmeta"), br#"{"pack": {"pack_format": 88, "description": ""}}"#).unwrap();
}

fn read(worlds: &[(&str, AtStart)], datapacks: &[(&str, AtStart)]) -> Loaded {
    let found = |names: &[(&str, AtStart)]| Some(names.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect());
    Loaded { worlds: found(worlds), datapacks: found(datapacks), ..Loaded::default() }
}

/// The swap before the next start. It changes no file, because none is managed.
fn put_lock(data: &Path, lock: &str) {
    let manifest = json!({"lock": lock, "previous": null, "minecraft": MINECRAFT.id, "build": 130, "files": {}});
    fs::create_dir_all(data.join(".nightshift")).unwrap();
    fs::write(data.join(".nightshift/manifest.json"), manifest.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_start_reports_opened_unopened_and_previously_closed_worlds() {
    use AtStart::{ClosedBefore, NotAnyMore, NotOpened, Opened};
    let pod = Pod::without_agent(tempfile::tempdir().unwrap());
    let first = server(&pod, &MINECRAFT, "");
    let agent = pod.start_process().await;
    let always_open = [("overworld", Opened), ("the_end", Opened), ("the_nether", Opened)];
    assert_eq!(loaded(&pod).await, read(&always_open, &[]));
    stopped(&pod, first).await;

    let data = pod.data.path();
    for name in ["creative", "hub"] {
        fs::create_dir(data.join(name)).unwrap();
        fs::copy(data.join("world/level.dat"), data.join(name).join("level.dat")).unwrap();
    }
    put_datapack(data, "skylands");
    put_datapack(data, "terrain");
    put_lock(data, "before");
    let all = [&always_open[..], &[("creative", Opened), ("hub", Opened)]].concat();
    let packs = [("file/skylands", Opened), ("file/terrain", Opened)];
    for _ in 0..2 {
        let next = server(&pod, &MINECRAFT, "");
        assert_eq!(loaded(&pod).await, read(&all, &packs));
        stopped(&pod, next).await;
    }
    fs::create_dir(data.join("late")).unwrap();
    fs::copy(data.join("world/level.dat"), data.join("late/level.dat")).unwrap();
    let last = server(&pod, &MINECRAFT, "");
    let all = [&all[..], &[("late", Opened)]].concat();
    assert_eq!(loaded(&pod).await, read(&all, &packs));
    // A user closes a world and disables a datapack, and the server is saved before its update.
    last.console("mv unload creative");
    last.console("datapack disable file/terrain");
    let saved: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 20 }).await;
    assert!(saved.confirmed, "{saved:?}");
    stopped(&pod, last).await;

    // The next version set fails to open the remaining ones.
    put_lock(data, "after");
    let faults = "loses-world creative, loses-world hub, loses-world late, loses-datapack file/skylands";
    let newer = server(&pod, &MINECRAFT, faults);
    let worlds = [&always_open[..], &[("creative", ClosedBefore), ("hub", NotAnyMore), ("late", NotOpened)]].concat();
    let packs = [("file/skylands", NotAnyMore), ("file/terrain", ClosedBefore)];
    assert_eq!(loaded(&pod).await, read(&worlds, &packs));
    drop((newer, agent));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_world_is_saved_once_so_that_worlds_and_backup_size_are_known() {
    use AtStart::Opened;
    let pod = Pod::without_agent(tempfile::tempdir().unwrap());
    let first = server(&pod, &MINECRAFT, "");
    until("the world is open", async || pod.data.path().join("world/session.lock").exists()).await;
    assert!(!pod.data.path().join("world/level.dat").exists(), "Paper writes it with the first save");
    let agent = pod.start_process().await;
    assert_eq!(loaded(&pod).await, read(&[("overworld", Opened), ("the_end", Opened), ("the_nether", Opened)], &[]));
    let sizes = |report: &AgentReport| report.backups.as_ref().and_then(|backups| backups.sizes);
    let report = pod.report_when("the backup is measured", |report| sizes(report).is_some()).await;
    let level = fs::metadata(pod.data.path().join("world/level.dat")).unwrap();
    assert!(sizes(&report).unwrap().worlds > level.len(), "{:?}", sizes(&report));
    let saves = first.lines().iter().filter(|line| line.contains("All dimensions are saved")).count();
    assert_eq!(saves, 1, "{:?}", first.lines());
    drop((first, agent));
}

#[tokio::test(flavor = "multi_thread")]
async fn worlds_and_datapacks_survive_26_1_migration() {
    use AtStart::Opened;
    let pod = Pod::without_agent(tempfile::tempdir().unwrap());
    let first = server(&pod, &MINECRAFT, "");
    let agent = pod.start_process().await;
    loaded(&pod).await;
    stopped(&pod, first).await;
    let data = pod.data.path();
    fs::create_dir_all(data.join("Creative/region")).unwrap();
    fs::copy(data.join("world/level.dat"), data.join("Creative/level.dat")).unwrap();
    fs::copy(data.join("world/region/r.0.0.mca"), data.join("Creative/region/r.0.0.mca")).unwrap();
    put_datapack(data, "skylands");

    let worlds = [("creative", Opened), ("overworld", Opened), ("the_end", Opened), ("the_nether", Opened)];
    let expected = read(&worlds, &[("file/skylands", Opened)]);
    let second = server(&pod, &MINECRAFT, "");
    assert_eq!(loaded(&pod).await, expected);
    stopped(&pod, second).await;
    let last = server(&pod, &V26_1, "");
    assert_eq!(loaded(&pod).await, expected);
    assert!(data.join("world/dimensions/minecraft/creative/region").is_dir() && !data.join("Creative").exists());
    drop((last, agent));
}
