//! Edge (writes). Tests plugins' data that init saves before another version set is put in place, and restores on request when it has failed.

use std::fs;
use std::path::Path;

use agent_api::FileSet;
use agent_api::plugin_data::{NotSavedReason, PluginData, PluginDataRestored};

use crate::fake_server::Paper;
use crate::harness::Pod;
use crate::volume::{Init, file, jar, serve, set};

/// A volume on which the version set `a` with the first version of Demo has run.
struct Server {
    _web: tempfile::TempDir,
    init: Init,
    old: FileSet,
    new: FileSet,
    requests_dir: tempfile::TempDir,
}

const DATA: &str = "plugins/Demo/data.db";
const SETTINGS: &str = "config/paper-global.yml";

impl Server {
    async fn new(limit: u64) -> Self {
        let web = tempfile::tempdir().unwrap();
        let url = serve(web.path()).await;
        let (old, server, demo) = set(&url, 'a');
        let demo_2 = jar("plugin.yml", "name: Demo\nversion: 2\nmain: a.B\n");
        let plugins = vec![file("plugins/Demo-2.jar", Some("Demo"), &demo_2, format!("{url}/demo-2.jar"))];
        let new = FileSet { lock: "b".repeat(64), build: old.build + 1, plugins, ..old.clone() };
        for (name, content) in [("paper.jar", &server), ("demo.jar", &demo), ("demo-2.jar", &demo_2)] {
            fs::write(web.path().join(name), content).unwrap();
        }
        let requests_dir = tempfile::tempdir().unwrap();
        let mut init = Init::new(&old);
        init.more = vec![
            ("NIGHTSHIFT_KEEP_PLUGIN_DATA", limit.to_string()),
            ("NIGHTSHIFT_RESTORE_ORDER", requests_dir.path().join("restore.json").display().to_string()),
        ];
        let this = Self { _web: web, init, old, new, requests_dir };
        this.assert_starts(&this.old);
        this.init.put(DATA, b"schema 1");
        this.init.put(SETTINGS, b"_version: 30");
        this
    }

    fn assert_starts(&self, set: &FileSet) {
        fs::write(self.init.files.path(), serde_json::to_vec(set).unwrap()).unwrap();
        assert!(tokio::task::block_in_place(|| self.init.run()).success());
    }

    /// The next version of Demo has started on the next build of Paper, and both have migrated their data.
    fn update(&self) {
        self.assert_starts(&self.new);
        self.init.put(DATA, b"schema 2");
        self.init.put(SETTINGS, b"_version: 31");
        self.init.put("server.properties", b"rcon.password=of-another-time\nwhite-list=false\n");
    }

    fn request_rollback(&self, to: &FileSet, failed: &FileSet) {
        let restore_request =
            serde_json::json!({"to": to.lock, "failed": failed.lock, "unlessPlayed": true, "worlds": false});
        fs::write(self.requests_dir.path().join("restore.json"), restore_request.to_string()).unwrap();
    }

    fn data(&self) -> String {
        self.text(DATA)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.init.data.path().join(path)).unwrap()
    }

    fn record(&self) -> PluginData {
        serde_json::from_str(&self.text(".nightshift/plugin-data.json")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn previous_lock_restores_plugin_data_on_request_once() {
    let server = Server::new(1 << 20).await;
    let written_by_init = server.text("server.properties");
    server.update();
    let saved: Vec<String> = server.record().kept.iter().map(ToString::to_string).collect();
    assert_eq!(saved, ["Demo", "./config", "./server.properties"]);
    server.request_rollback(&server.old, &server.new);
    server.assert_starts(&server.old);
    assert_eq!((server.data().as_str(), server.text(SETTINGS).as_str()), ("schema 1", "_version: 30"));
    assert_eq!(server.text("server.properties"), written_by_init, "with the managed password");
    assert!(server.init.data.path().join("plugins/Demo.jar").exists());
    let Some(PluginDataRestored::Done { set_aside: Some(aside), .. }) = server.record().back else { panic!() };
    assert_eq!(server.text(&format!("{aside}/Demo/data.db")), "schema 2");
    assert_eq!(server.text(&format!("{aside}/@server/{SETTINGS}")), "_version: 31");

    // The server continues, and its pod is lost while the request is mounted.
    server.init.put(DATA, b"schema 1, a day later");
    server.assert_starts(&server.old);
    assert_eq!(server.data(), "schema 1, a day later");
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_data_stays_without_restore_request_for_this_update() {
    let server = Server::new(1 << 20).await;
    server.update();
    let another = FileSet { lock: "c".repeat(64), ..server.new.clone() };
    server.request_rollback(&server.old, &another);
    server.assert_starts(&server.old);
    assert_eq!(server.data(), "schema 2", "a manual rollback restores no plugin data");
    let record = server.record();
    assert_eq!(
        (&record.lock, &record.before),
        (&server.new.lock, &server.old.lock),
        "this version change can be rolled back too"
    );

    server.request_rollback(&server.new, &server.old);
    server.init.put(DATA, b"broken by the older one");
    server.assert_starts(&server.new);
    assert_eq!(server.data(), "schema 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_plugin_data_request_does_not_block_start() {
    let server = Server::new(1 << 20).await;
    server.update();
    fs::write(server.requests_dir.path().join("restore.json"), r#"{"to": "x", "of": "a later operator"}"#).unwrap();
    server.assert_starts(&server.old);
    assert_eq!(server.data(), "schema 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn player_join_on_failed_lock_keeps_its_plugin_data() {
    let server = Server::new(1 << 20).await;
    server.update();
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    let paper = Paper::start(pod.game, pod.rcon, 1).await;
    let played = pod.data.path().join(".nightshift/played.json");
    pod.report_when("a player is seen", |_| played.exists()).await;
    drop(paper);
    fs::copy(played, server.init.data.path().join(".nightshift/played.json")).unwrap();

    server.request_rollback(&server.old, &server.new);
    server.assert_starts(&server.old);
    assert_eq!(server.data(), "schema 2");
    let record = server.record();
    assert!(matches!(record.back, Some(PluginDataRestored::SomebodyPlayed { .. })), "{record:?}");
    let path = record.place.clone().unwrap();
    assert_eq!(server.text(&format!("{path}/Demo/data.db")), "schema 1", "a user can restore it");
    assert!(Path::new(&path).starts_with(".nightshift/kept"));

    fs::copy(
        server.init.data.path().join(".nightshift/plugin-data.json"),
        pod.data.path().join(".nightshift/plugin-data.json"),
    )
    .unwrap();
    assert_eq!(pod.report().await.plugin_data, Some(record));
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_data_above_limit_is_named_without_blocking_update() {
    let server = Server::new(3).await;
    server.update();
    let record = server.record();
    assert_eq!((record.kept.len(), record.place), (0, None));
    assert_eq!(record.not_kept[0].why, NotSavedReason::TooLarge { bytes: 8, limit: 3 });
    server.request_rollback(&server.old, &server.new);
    server.assert_starts(&server.old);
    assert_eq!(server.data(), "schema 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_worlds_restore_plugin_data_despite_later_player_activity() {
    let server = Server::new(1 << 20).await;
    server.update();
    let later = "2100-01-01T00:00:00Z";
    server.init.put(".nightshift/played.json", serde_json::json!({"at": later}).to_string().as_bytes());
    let restored = serde_json::json!({"at": later, "id": "x", "setAside": ".nightshift/set-aside/x"});
    server.init.put(".nightshift/restored.json", restored.to_string().as_bytes());
    server.request_rollback(&server.old, &server.new);
    server.assert_starts(&server.old);
    assert_eq!(server.data(), "schema 1", "the restored worlds contain no later progress");
}
