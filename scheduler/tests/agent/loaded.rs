//! Edge (writes). Which worlds and datapacks a start has opened, with the stand-in Paper and an agent of another process: it sees who holds a
//! lock.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixtures::jar::{self, Minecraft};
use fixtures::stand_in::{Config, Handle, start};
use scheduler::agent::{settings, stop};
use scheduler::protocol::loaded::{AtStart, Loaded};
use scheduler::protocol::{Report, Save, Saved, Server};

use crate::paper::PASSWORD;
use crate::pod::Pod;
use crate::stand_in::MINECRAFT;

const V26_1: Minecraft<'_> = Minecraft { id: "26.1", world_version: 4790, protocol: Some(775), java: 25 };

/// A server's process, on a volume where nothing has to be fetched.
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
    let asked = settings::Stop { shared: pod.shared.path().to_owned(), stop_timeout: 60 };
    assert_eq!(stop::run(&asked).await, stop::Outcome::Done("ok".into()));
    pod.report_when("gone", |report: &Report| report.last_stop.is_some() && report.server == Server::Absent).await;
    server.wait().await;
}

fn put_datapack(data: &Path, name: &str) {
    let folder = data.join("world/datapacks").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("pack.mcmeta"), br#"{"pack": {"pack_format": 88, "description": ""}}"#).unwrap();
}

fn found(names: &[(&str, AtStart)]) -> Option<BTreeMap<String, AtStart>> {
    Some(names.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_start_tells_what_it_opened_what_it_did_not_and_what_somebody_had_closed() {
    use AtStart::{ClosedBefore, NotOpened, Opened};
    let pod = Pod::without_agent(tempfile::tempdir().unwrap());
    let first = server(&pod, &MINECRAFT, "");
    let agent = pod.start_process().await;
    let own = [("overworld", Opened), ("the_end", Opened), ("the_nether", Opened)];
    assert_eq!(loaded(&pod).await, Loaded { worlds: found(&own), datapacks: found(&[]) });
    stopped(&pod, first).await;

    let data = pod.data.path();
    for name in ["creative", "hub"] {
        fs::create_dir(data.join(name)).unwrap();
        fs::copy(data.join("world/level.dat"), data.join(name).join("level.dat")).unwrap();
    }
    put_datapack(data, "skylands");
    put_datapack(data, "terrain");
    let second = server(&pod, &MINECRAFT, "");
    let all = [&own[..], &[("creative", Opened), ("hub", Opened)]].concat();
    let packs = [("file/skylands", Opened), ("file/terrain", Opened)];
    assert_eq!(loaded(&pod).await, Loaded { worlds: found(&all), datapacks: found(&packs) });
    // A person does this, and the server is saved before its update.
    second.console("mv unload creative");
    second.console("datapack disable file/terrain");
    let saved: Saved = pod.json("POST", "/v1/save", &Save { timeout_seconds: 20 }).await;
    assert!(saved.confirmed, "{saved:?}");
    stopped(&pod, second).await;

    // The next set has trouble with what is left.
    let third = server(&pod, &MINECRAFT, "loses-world creative, loses-world hub, loses-datapack file/skylands");
    let worlds = [&own[..], &[("creative", ClosedBefore), ("hub", NotOpened)]].concat();
    let packs = [("file/skylands", NotOpened), ("file/terrain", ClosedBefore)];
    assert_eq!(loaded(&pod).await, Loaded { worlds: found(&worlds), datapacks: found(&packs) });
    drop((third, agent));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_move_of_26_1_takes_no_world_and_no_datapack_away() {
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

    let worlds = found(&[("creative", Opened), ("overworld", Opened), ("the_end", Opened), ("the_nether", Opened)]);
    let expected = Loaded { worlds, datapacks: found(&[("file/skylands", Opened)]) };
    let second = server(&pod, &MINECRAFT, "");
    assert_eq!(loaded(&pod).await, expected);
    stopped(&pod, second).await;
    let third = server(&pod, &V26_1, "");
    assert_eq!(loaded(&pod).await, expected);
    assert!(data.join("world/dimensions/minecraft/creative/region").is_dir() && !data.join("Creative").exists());
    drop((third, agent));
}
