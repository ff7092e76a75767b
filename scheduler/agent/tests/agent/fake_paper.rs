//! Edge (writes). Tests two runs of one server on one volume, with the fake Paper server: init, start, announce, stop, update, start.

use std::fs;

use agent::{config, pre_stop_hook};
use agent_api::{AgentReport, FileSet, PlayerCount, ReplacedJar, Server};
use fixtures::fake_paper::{Config, start};
use fixtures::jar::{self, Minecraft, PluginYml};

use crate::fake_server::PASSWORD;
use crate::harness::Pod;
use crate::volume::{Init, file, serve};

pub(crate) const MINECRAFT: Minecraft<'_> =
    Minecraft { id: "1.21.10", world_version: 4556, protocol: Some(773), java: 21 };

pub(crate) fn lock(lock: char, build: u32, demo: &str, url: &str) -> (FileSet, Vec<(String, Vec<u8>)>) {
    let (mojang, paper) = (jar::mojang(&MINECRAFT), jar::paper(&MINECRAFT, build, "http://127.0.0.1:1/server.jar"));
    let demo_jar = jar::plugin(&PluginYml::new("Demo", demo));
    let at = |name: &str| format!("{url}/{name}");
    let (paper_name, demo_name) = (format!("paper-{build}.jar"), format!("demo-{demo}.jar"));
    let set = FileSet {
        lock: lock.to_string().repeat(64),
        minecraft: MINECRAFT.id.into(),
        build,
        data_version: Some(MINECRAFT.world_version),
        server: file(&format!(".nightshift/server/paper-1.21.10-{build}.jar"), None, &paper, at(&paper_name)),
        support: vec![file("cache/mojang_1.21.10.jar", None, &mojang, at("mojang.jar"))],
        plugins: vec![file(&format!("plugins/Demo-{demo}.jar"), Some("Demo"), &demo_jar, at(&demo_name))],
    };
    (set, vec![("mojang.jar".into(), mojang), (paper_name, paper), (demo_name, demo_jar)])
}

#[tokio::test(flavor = "multi_thread")]
async fn fake_server_runs_is_updated_and_runs_again() {
    let web = tempfile::tempdir().unwrap();
    let url = serve(web.path()).await;
    let locks = [lock('a', 129, "1.0", &url), lock('b', 130, "2.0", &url)];
    for (name, content) in locks.iter().flat_map(|(_, files)| files) {
        fs::write(web.path().join(name), content).unwrap();
    }
    let mut volume = tempfile::tempdir().unwrap();
    fs::create_dir_all(volume.path().join("plugins")).unwrap();
    let shop = jar::plugin(&PluginYml::new("Shop", "9"));
    fs::write(volume.path().join("plugins/Shop.jar"), &shop).unwrap();
    let unmanaged = jar::plugin(&PluginYml::new("Demo", "0.1"));
    fs::write(volume.path().join("plugins/my-demo.jar"), &unmanaged).unwrap();
    let made_room =
        ReplacedJar { file: "plugins/my-demo.jar".to_owned(), place: ".nightshift/replaced/my-demo.jar".to_owned() };

    for (number, (set, _)) in locks.iter().enumerate() {
        let init = Init::with_volume(volume, set);
        let status = tokio::task::block_in_place(|| init.run());
        assert!(status.success(), "{status}");
        let pod = Pod::with_volume(init.data, &url).await;
        let config =
            Config::for_tests(pod.data.path(), &pod.data.path().join(&set.server.path), MINECRAFT.id, PASSWORD)
                .with("SERVER_PORT", &pod.game.port().to_string())
                .with("RCON_PORT", &pod.rcon.port().to_string())
                .with("STAND_IN_PLAYERS", "2");
        let server = start(config);
        // The new world of the first start has no version until the agent has saved it.
        let is_read = |report: &AgentReport| {
            matches!(&report.server, Server::Up { plugins: Some(_), .. }) && report.world.floor.is_some()
        };
        let report = pod.report_when("plugins read", is_read).await;
        let Server::Up { minecraft, build, plugins, .. } = report.server else { unreachable!() };
        assert_eq!((minecraft.as_str(), build), ("1.21.10", Some(set.build)));
        let plugins = plugins.unwrap();
        let version = |name: &str| plugins[name].version.clone().unwrap();
        assert_eq!((version("Demo"), version("Shop")), (["1.0", "2.0"][number].to_owned(), "9".to_owned()));
        assert!(plugins.values().all(|plugin| plugin.enabled));
        assert_eq!(report.lock, Some(set.lock.clone()));
        assert_eq!((report.drift, report.unmanaged), (vec![], vec!["Shop.jar".to_owned()]));
        let reported = report.replaced.as_slice();
        assert_eq!(reported, std::slice::from_ref(&made_room), "the displaced JAR is reported while it exists");
        let [shop] = report.unmanaged_jars.as_slice() else { panic!("{:?}", report.unmanaged_jars) };
        assert_eq!((shop.name.as_deref(), shop.version.as_deref()), (Some("Shop"), Some("9")));
        assert_eq!(report.players, PlayerCount::Some { count: 2 });
        assert_eq!(report.world.floor.map(|floor| floor.data_version), Some(MINECRAFT.world_version));

        if let Some((next, _)) = locks.get(number + 1) {
            assert_eq!(pod.send("POST", "/v1/stage", next).await.status(), 202);
            pod.report_when("staged", |report| report.staged.contains(&next.lock)).await;
            // No file is downloaded between stop and start.
            fs::remove_dir_all(web.path()).unwrap();
        }
        let config = config::StopConfig { shared: pod.shared.path().to_owned(), stop_timeout: 60 };
        assert_eq!(pre_stop_hook::run(&config).await, pre_stop_hook::HookResult::Done("ok".into()));
        server.terminate();
        let stopped_once = |report: &AgentReport| report.last_stop.is_some() && report.server == Server::Absent;
        let report = pod.report_when("exited", stopped_once).await;
        assert!(report.last_stop.unwrap().saved);
        let lines = server.lines();
        assert!(
            !lines.iter().any(|line| line.contains("Dispatched Async")),
            "the server got a second `stop`: {lines:?}"
        );
        assert_eq!(server.wait().await, 143, "SIGTERM stops the server");
        volume = pod.data;
    }
    assert_eq!(fs::read(volume.path().join("plugins/Shop.jar")).unwrap(), shop);
    assert_eq!(fs::read(volume.path().join(&made_room.place)).unwrap(), unmanaged);
    assert!(!volume.path().join("plugins/Demo-1.0.jar").exists());
}
