//! Edge (writes). Tests a volume without a world, which init restores from a backup before a server starts on it, or
//! refuses.

use std::fs;
use std::path::{Path, PathBuf};

use agent::backup::Backup;
use agent::backup::repository::BackupRepository;
use agent::clock;
use agent_api::Contents;
use agent_api::restore::{SeedRequest, SeedResult};
use agent_api::{FileSet, NOT_RESTORED, Restored};

use crate::harness::Pod;
use crate::volume::{Init, back_up, jar, level_dat, served_set};

/// A new volume for a server of 1.21.10, and a backup of everything on the previous one.
struct Server {
    _web: tempfile::TempDir,
    init: Init,
    set: FileSet,
    backups_dir: tempfile::TempDir,
    backup: Backup,
}

impl Server {
    async fn new() -> Self {
        let (web, _url, set) = served_set().await;
        let backups_dir = tempfile::tempdir().unwrap();
        let source = Init::new(&set);
        source.put("world/level.dat", &level_dat(4556, "1.21.10"));
        source.put("world/region/r.0.0.mca", b"chunks");
        source.put("server.properties", b"motd=then\nrcon.password=hunter2\n");
        source.put("plugins/Demo/config.yml", b"by hand");
        // An older version of a managed plugin, and an unmanaged one.
        source.put("plugins/Demo-1.0.jar", &jar("plugin.yml", "name: Demo\nversion: 1\nmain: a.B\n"));
        source.put("plugins/Own.jar", &jar("plugin.yml", "name: Own\nversion: 1\nmain: a.B\n"));
        let backup =
            back_up(&source, &BackupRepository::new(backups_dir.path().join("backups/lobby")), Contents::Everything);
        let mut init = Init::new(&set);
        init.more = vec![
            ("NIGHTSHIFT_BACKUPS", backups_dir.path().join("backups/lobby").display().to_string()),
            ("NIGHTSHIFT_BACKUP_BEFORE", "OneWay".to_owned()),
            ("NIGHTSHIFT_RESTORE_ORDER", backups_dir.path().join("restore.json").display().to_string()),
        ];
        let server = Self { _web: web, init, set, backups_dir, backup };
        server.write_request(&request("latest"));
        server
    }

    fn write_request(&self, request: &SeedRequest) {
        fs::write(self.backups_dir.path().join("new-volume.json"), serde_json::to_vec(request).unwrap()).unwrap();
    }

    fn assert_starts(&self) {
        let ended = tokio::task::block_in_place(|| self.init.run());
        assert!(ended.success(), "{}", fs::read_to_string(self.init.termination_log.path()).unwrap());
    }

    /// Why the server does not start. No folder exists in which a server could create a new world.
    fn start_refusal(&self) -> String {
        assert_eq!(tokio::task::block_in_place(|| self.init.run()).code(), Some(3));
        let left: Vec<_> = fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty() || left == [".nightshift"], "{left:?}");
        assert!(!self.path(".nightshift/restoring").exists(), "unpacked files take space");
        let message = fs::read_to_string(self.init.termination_log.path()).unwrap();
        let why = message.strip_prefix(NOT_RESTORED).expect("the message states that nothing was restored");
        assert!(why.ends_with("correct `spec.restoreFrom`, or remove it to start with a new world"), "{why}");
        why.to_owned()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.init.data.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn recorded(&self) -> SeedResult {
        serde_json::from_slice(&fs::read(self.path(".nightshift/new-volume.json")).unwrap()).unwrap()
    }
}

fn request(id: &str) -> SeedRequest {
    SeedRequest { server: "lobby".into(), backup: id.into(), claim: "backup-lobby-0".into(), apart: false }
}

fn damage_backup(repository: &Path, id: &str) {
    let archive = repository.join(id).join("archive.tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&archive, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_without_world_is_seeded_once_with_entire_backup() {
    let server = Server::new().await;
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks");
    assert_eq!(server.text("plugins/Demo/config.yml"), "by hand");
    let properties = server.text("server.properties");
    assert!(properties.contains("motd=then") && properties.contains("enable-rcon=true"), "{properties}");
    assert!(server.path("plugins/Demo.jar").exists() && server.path("plugins/Own.jar").exists());
    assert!(!server.path("plugins/Demo-1.0.jar").exists(), "the version set replaces the older plugin");
    let noted = server.recorded();
    assert_eq!((noted.order, noted.backup.as_ref()), (request("latest"), Some(&server.backup.id)));
    let restored: Restored = serde_json::from_str(&server.text(".nightshift/restored.json")).unwrap();
    assert_eq!((restored.set_aside.as_str(), restored.everything), ("", true));

    // The request stays for ever, and changes neither later progress nor a volume whose world was removed on purpose.
    server.init.put("world/region/r.0.0.mca", b"built since");
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "built since");
    fs::remove_dir_all(server.path("world")).unwrap();
    server.assert_starts();
    assert!(!server.path("world").exists());
    assert_eq!(server.recorded().backup.as_ref(), Some(&server.backup.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_with_world_is_never_seeded_even_later() {
    let server = Server::new().await;
    server.init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    server.init.put("world/region/r.0.0.mca", b"ours");
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "ours");
    assert!(!server.path("plugins/Own.jar").exists());
    assert_eq!((server.recorded().order, server.recorded().backup), (request("latest"), None));
    fs::remove_dir_all(server.path("world")).unwrap();
    server.assert_starts();
    assert!(!server.path("world").exists(), "a user who removes a world wants a new one");
    // Another request is executed.
    server.write_request(&request(&server.backup.id));
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks");
    assert_eq!(server.recorded().backup.as_ref(), Some(&server.backup.id));
    fs::write(server.backups_dir.path().join("new-volume.json"), "{").unwrap();
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks", "an invalid request does not block the start");
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_seed_backup_blocks_start_and_creates_no_world() {
    let mut server = Server::new().await;
    let repository = server.backups_dir.path().join("backups/lobby");
    server.write_request(&request("20010101T000000Z-aaaaaaaa"));
    let why = server.start_refusal();
    assert!(why.contains(&format!("The newest backups with worlds: {}", server.backup.id)), "{why}");
    for (server_name, apart) in [("loby", false), ("lobby", true)] {
        server.write_request(&SeedRequest { server: server_name.into(), apart, ..request("latest") });
        let why = server.start_refusal();
        assert!(why.contains("mounted at the first start of a server only"), "{why}");
    }
    let mounted = server.backups_dir.path().join("mounted").display().to_string();
    server.init.more.push(("NIGHTSHIFT_RESTORE_REPOSITORIES", mounted));
    server.write_request(&SeedRequest { server: "loby".into(), ..request("latest") });
    let why = server.start_refusal();
    assert!(why.starts_with("there are no backups of a server `loby` on the claim `backup-lobby-0`"), "{why}");
    server.init.more.pop();
    fs::write(server.backups_dir.path().join("new-volume.json"), r#"{"backup": "latest"}"#).unwrap();
    let why = server.start_refusal();
    assert!(why.contains("new-volume.json` was changed by another program"), "{why}");

    let other = Init::new(&server.set);
    other.put("world/level.dat", &level_dat(4671, "1.21.11"));
    let newer = back_up(&other, &BackupRepository::new(&repository), Contents::Worlds);
    server.write_request(&request("latest"));
    let why = server.start_refusal();
    assert!(why.contains("are of Minecraft 1.21.11: a world cannot be downgraded"), "{why}");

    // The damage is found only by reading, and no older backup is used instead.
    fs::remove_dir_all(repository.join(newer.id)).unwrap();
    damage_backup(&repository, &server.backup.id);
    for _ in 0..2 {
        let why = server.start_refusal();
        assert!(why.contains(&server.backup.id), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_seed_request_blocks_start_only_without_world() {
    let mut server = Server::new().await;
    server.init.is_signed = false;
    let why = server.start_refusal();
    assert!(why.contains("new-volume.json` is not as the operator wrote it"), "{why}");
    server.init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    server.assert_starts();
    assert!(!server.path(".nightshift/new-volume.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_succeeds_on_next_try_after_obstacle_is_removed() {
    let server = Server::new().await;
    server.write_request(&request("20010101T000000Z-aaaaaaaa"));
    server.start_refusal();
    server.write_request(&request("latest"));
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks");
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_reads_foreign_backup_from_read_only_claim() {
    let mut server = Server::new().await;
    let (server_backups, apart) = (server.backups_dir.path().join("backups"), server.backups_dir.path().join("apart"));
    fs::rename(server_backups.join("lobby"), server.backups_dir.path().join("survival")).unwrap();
    fs::create_dir_all(&apart).unwrap();
    fs::rename(server.backups_dir.path().join("survival"), apart.join("survival")).unwrap();
    server.init.more.push(("NIGHTSHIFT_RESTORE_REPOSITORIES", apart.display().to_string()));
    let other = SeedRequest { server: "survival".into(), apart: true, ..request("latest") };
    server.write_request(&other);
    server.assert_starts();
    assert_eq!((server.text("world/region/r.0.0.mca").as_str(), server.recorded().order), ("chunks", other));
    assert!(!server_backups.join("lobby").exists(), "the server's own repository is not created");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_seed_is_resumed_and_satisfies_its_request() {
    let server = Server::new().await;
    let restored = serde_json::json!({
        "at": clock::now().to_string(), "id": server.backup.id, "setAside": "", "request": "new-volume", "everything": true,
    });
    let journal = serde_json::json!({"done": restored, "aside": [], "comes": ["plugins", "world"]});
    server.init.put(".nightshift/restore.json", journal.to_string().as_bytes());
    server.init.put("plugins/Demo/config.yml", b"by hand");
    server.init.put(".nightshift/restoring/world/level.dat", &level_dat(4556, "1.21.10"));
    server.init.put(".nightshift/restoring/world/region/r.0.0.mca", b"half way");
    server.assert_starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "half way");
    assert_eq!(server.recorded().backup.as_ref(), Some(&server.backup.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_minecraft_on_seeded_volume_needs_no_further_backup() {
    let server = Server::new().await;
    let newer = FileSet { minecraft: "1.21.11".into(), data_version: Some(4671), ..server.set.clone() };
    fs::write(server.init.files.path(), serde_json::to_vec(&newer).unwrap()).unwrap();
    server.assert_starts();
    let repository = BackupRepository::new(server.backups_dir.path().join("backups/lobby"));
    assert_eq!(repository.list().unwrap().len(), 1);
    // After the first run, the next update is like any other.
    let next = FileSet { lock: "c".repeat(64), minecraft: "1.21.12".into(), data_version: Some(4700), ..newer };
    fs::write(server.init.files.path(), serde_json::to_vec(&next).unwrap()).unwrap();
    server.assert_starts();
    assert_eq!(repository.list().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_contains_outcome_of_seed() {
    let server = Server::new().await;
    server.assert_starts();
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    assert_eq!(pod.report().await.new_volume, None);
    fs::create_dir_all(pod.data.path().join(".nightshift")).unwrap();
    let record = ".nightshift/new-volume.json";
    fs::copy(server.path(record), pod.data.path().join(record)).unwrap();
    assert_eq!(pod.report().await.new_volume.unwrap(), server.recorded());
}
