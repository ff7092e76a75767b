//! Edge (writes). Tests a volume without a world, which init restores from a backup before a server starts on it, or
//! refuses.

use std::fs;
use std::path::{Path, PathBuf};

use scheduler::agent::clock;
use scheduler::backup::repository::BackupRepository;
use scheduler::backup::{Backup, Contents};
use scheduler::protocol::restore::{NewVolume, NewVolumeOrder};
use scheduler::protocol::{FileSet, NOT_RESTORED, Restored};

use crate::pod::Pod;
use crate::volume::{Init, copy_of, jar, level_dat, served_set};

/// A new volume for a server of 1.21.10, and a backup of everything on the previous one.
struct Server {
    _web: tempfile::TempDir,
    init: Init,
    set: FileSet,
    copies: tempfile::TempDir,
    copy: Backup,
}

impl Server {
    async fn new() -> Self {
        let (web, _url, set) = served_set().await;
        let copies = tempfile::tempdir().unwrap();
        let lost = Init::new(&set);
        lost.put("world/level.dat", &level_dat(4556, "1.21.10"));
        lost.put("world/region/r.0.0.mca", b"chunks");
        lost.put("server.properties", b"motd=then\nrcon.password=hunter2\n");
        lost.put("plugins/Demo/config.yml", b"by hand");
        // An older version of a managed plugin, and an unmanaged one.
        lost.put("plugins/Demo-1.0.jar", &jar("plugin.yml", "name: Demo\nversion: 1\n"));
        lost.put("plugins/Own.jar", &jar("plugin.yml", "name: Own\n"));
        let copy = copy_of(&lost, &BackupRepository::new(copies.path().join("backups/lobby")), Contents::Everything);
        let mut init = Init::new(&set);
        init.more = vec![
            ("NIGHTSHIFT_BACKUPS", copies.path().join("backups/lobby").display().to_string()),
            ("NIGHTSHIFT_BACKUP_BEFORE", "OneWay".to_owned()),
            ("NIGHTSHIFT_RESTORE_ORDER", copies.path().join("restore.json").display().to_string()),
        ];
        let server = Self { _web: web, init, set, copies, copy };
        server.is_to_get(&order("latest"));
        server
    }

    fn is_to_get(&self, order: &NewVolumeOrder) {
        fs::write(self.copies.path().join("new-volume.json"), serde_json::to_vec(order).unwrap()).unwrap();
    }

    fn starts(&self) {
        let ended = tokio::task::block_in_place(|| self.init.run());
        assert!(ended.success(), "{}", fs::read_to_string(self.init.last_words.path()).unwrap());
    }

    /// Why the server does not start. No folder exists in which a server could create a new world.
    fn does_not_start(&self) -> String {
        assert_eq!(tokio::task::block_in_place(|| self.init.run()).code(), Some(3));
        let left: Vec<_> = fs::read_dir(self.at("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty() || left == [".nightshift"], "{left:?}");
        assert!(!self.at(".nightshift/restoring").exists(), "it takes room");
        let words = fs::read_to_string(self.init.last_words.path()).unwrap();
        let why = words.strip_prefix(NOT_RESTORED).expect("it says that nothing was restored");
        assert!(why.ends_with("correct `spec.restoreFrom`, or take it away to begin with a new world"), "{why}");
        why.to_owned()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.init.data.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn noted(&self) -> NewVolume {
        serde_json::from_slice(&fs::read(self.at(".nightshift/new-volume.json")).unwrap()).unwrap()
    }
}

fn order(copy: &str) -> NewVolumeOrder {
    NewVolumeOrder { server: "lobby".into(), copy: copy.into(), claim: "backup-lobby-0".into(), apart: false }
}

fn damage(shelf: &Path, id: &str) {
    let archive = shelf.join(id).join("archive.tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&archive, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_without_world_is_seeded_once_with_entire_backup() {
    let server = Server::new().await;
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks");
    assert_eq!(server.text("plugins/Demo/config.yml"), "by hand");
    let properties = server.text("server.properties");
    assert!(properties.contains("motd=then") && properties.contains("enable-rcon=true"), "{properties}");
    assert!(server.at("plugins/Demo.jar").exists() && server.at("plugins/Own.jar").exists());
    assert!(!server.at("plugins/Demo-1.0.jar").exists(), "the managed plugin is the one of the set");
    let noted = server.noted();
    assert_eq!((noted.order, noted.copy.as_ref()), (order("latest"), Some(&server.copy.id)));
    let restored: Restored = serde_json::from_str(&server.text(".nightshift/restored.json")).unwrap();
    assert_eq!((restored.set_aside.as_str(), restored.everything), ("", true));

    // The request stays for ever, and changes neither later progress nor a volume whose world was removed on purpose.
    server.init.put("world/region/r.0.0.mca", b"built since");
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "built since");
    fs::remove_dir_all(server.at("world")).unwrap();
    server.starts();
    assert!(!server.at("world").exists());
    assert_eq!(server.noted().copy.as_ref(), Some(&server.copy.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_with_world_is_never_seeded_even_later() {
    let server = Server::new().await;
    server.init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    server.init.put("world/region/r.0.0.mca", b"ours");
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "ours");
    assert!(!server.at("plugins/Own.jar").exists());
    assert_eq!((server.noted().order, server.noted().copy), (order("latest"), None));
    fs::remove_dir_all(server.at("world")).unwrap();
    server.starts();
    assert!(!server.at("world").exists(), "whoever takes it away wants a new one");
    // Another request is executed.
    server.is_to_get(&order(&server.copy.id));
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks");
    assert_eq!(server.noted().copy.as_ref(), Some(&server.copy.id));
    fs::write(server.copies.path().join("new-volume.json"), "{").unwrap();
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks", "an order that nobody can read keeps no world down");
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_seed_backup_blocks_start_and_creates_no_world() {
    let server = Server::new().await;
    let shelf = server.copies.path().join("backups/lobby");
    server.is_to_get(&order("20010101T000000Z-aaaaaaaa"));
    let why = server.does_not_start();
    assert!(why.contains(&format!("the newest ones with worlds are: {}", server.copy.id)), "{why}");
    server.is_to_get(&NewVolumeOrder { server: "loby".into(), ..order("latest") });
    let why = server.does_not_start();
    assert!(
        why.starts_with(
            "there are no copies of a server `loby` on the claim `backup-lobby-0`; there are those of: lobby"
        ),
        "{why}"
    );
    server.is_to_get(&NewVolumeOrder { apart: true, ..order("latest") });
    let why = server.does_not_start();
    assert!(why.contains("mounted at the first start of a server alone"), "{why}");
    fs::write(server.copies.path().join("new-volume.json"), r#"{"copy": "latest"}"#).unwrap();
    let why = server.does_not_start();
    assert!(why.contains("new-volume.json` is not what we wrote there"), "{why}");

    let other = Init::new(&server.set);
    other.put("world/level.dat", &level_dat(4671, "1.21.11"));
    let newer = copy_of(&other, &BackupRepository::new(&shelf), Contents::Worlds);
    server.is_to_get(&order("latest"));
    let why = server.does_not_start();
    assert!(why.contains("are of Minecraft 1.21.11: a world cannot go back"), "{why}");

    // The damage is found only by reading, and no older backup is used instead.
    fs::remove_dir_all(shelf.join(newer.id)).unwrap();
    damage(&shelf, &server.copy.id);
    for _ in 0..2 {
        let why = server.does_not_start();
        assert!(why.contains(&server.copy.id), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_succeeds_on_next_try_after_obstacle_is_removed() {
    let server = Server::new().await;
    server.is_to_get(&order("20010101T000000Z-aaaaaaaa"));
    server.does_not_start();
    server.is_to_get(&order("latest"));
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "chunks");
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_reads_foreign_backup_from_read_only_claim() {
    let mut server = Server::new().await;
    let (own, apart) = (server.copies.path().join("backups"), server.copies.path().join("apart"));
    fs::rename(own.join("lobby"), server.copies.path().join("survival")).unwrap();
    fs::create_dir_all(&apart).unwrap();
    fs::rename(server.copies.path().join("survival"), apart.join("survival")).unwrap();
    server.init.more.push(("NIGHTSHIFT_RESTORE_SHELVES", apart.display().to_string()));
    let other = NewVolumeOrder { server: "survival".into(), apart: true, ..order("latest") };
    server.is_to_get(&other);
    server.starts();
    assert_eq!((server.text("world/region/r.0.0.mca").as_str(), server.noted().order), ("chunks", other));
    assert!(!own.join("lobby").exists(), "nothing is taken or written for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_seed_is_resumed_and_satisfies_its_request() {
    let server = Server::new().await;
    let restored = serde_json::json!({
        "at": clock::now().to_string(), "id": server.copy.id, "setAside": "", "request": "new-volume", "everything": true,
    });
    let journal = serde_json::json!({"done": restored, "aside": [], "comes": ["plugins", "world"]});
    server.init.put(".nightshift/restore.json", journal.to_string().as_bytes());
    server.init.put("plugins/Demo/config.yml", b"by hand");
    server.init.put(".nightshift/restoring/world/level.dat", &level_dat(4556, "1.21.10"));
    server.init.put(".nightshift/restoring/world/region/r.0.0.mca", b"half way");
    server.starts();
    assert_eq!(server.text("world/region/r.0.0.mca"), "half way");
    assert_eq!(server.noted().copy.as_ref(), Some(&server.copy.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_minecraft_on_seeded_volume_needs_no_further_backup() {
    let server = Server::new().await;
    let newer = FileSet { minecraft: "1.21.11".into(), data_version: Some(4671), ..server.set.clone() };
    fs::write(server.init.files.path(), serde_json::to_vec(&newer).unwrap()).unwrap();
    server.starts();
    let shelf = BackupRepository::new(server.copies.path().join("backups/lobby"));
    assert_eq!(shelf.list().unwrap().len(), 1);
    // After the first run, the next update is like any other.
    let next = FileSet { lock: "c".repeat(64), minecraft: "1.21.12".into(), data_version: Some(4700), ..newer };
    fs::write(server.init.files.path(), serde_json::to_vec(&next).unwrap()).unwrap();
    server.starts();
    assert_eq!(shelf.list().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn report_contains_outcome_of_seed() {
    let server = Server::new().await;
    server.starts();
    let pod = Pod::on(tempfile::tempdir().unwrap(), "").await;
    assert_eq!(pod.report().await.new_volume, None);
    fs::create_dir_all(pod.data.path().join(".nightshift")).unwrap();
    let record = ".nightshift/new-volume.json";
    fs::copy(server.at(record), pod.data.path().join(record)).unwrap();
    assert_eq!(pod.report().await.new_volume.unwrap(), server.noted());
}
