//! Edge (writes). Tests whether init restores a backup that a user requests.

use std::fs;
use std::path::PathBuf;

use scheduler::agent::clock;
use scheduler::backup::repository::BackupRepository;
use scheduler::backup::{Backup, Contents};
use scheduler::protocol::last_words::WorldRefused;
use scheduler::protocol::restore::{AskedRestore, NOBODY, RestoreRefused};
use scheduler::protocol::{FileSet, Restored};

use crate::pod::Pod;
use crate::volume::{Init, copy_of, level_dat, served_set};

/// A volume on which a version set of 1.21.10 runs, with an online backup. Players have built since.
struct Server {
    web: tempfile::TempDir,
    init: Init,
    set: FileSet,
    copies: tempfile::TempDir,
    copy: Backup,
}

impl Server {
    async fn new() -> Self {
        let (web, _url, set) = served_set().await;
        let copies = tempfile::tempdir().unwrap();
        let mut init = Init::new(&set);
        init.put("world/level.dat", &level_dat(4556, "1.21.10"));
        init.put("world/region/r.0.0.mca", b"chunks");
        init.put("server.properties", b"motd=then\n");
        init.more = vec![
            ("NIGHTSHIFT_BACKUPS", copies.path().join("lobby").display().to_string()),
            ("NIGHTSHIFT_BACKUP_BEFORE", "OneWay".to_owned()),
            ("NIGHTSHIFT_RESTORE_ORDER", copies.path().join("restore.json").display().to_string()),
        ];
        let shelf = BackupRepository::new(copies.path().join("lobby"));
        let copy = copy_of(&init, &shelf, Contents::Everything);
        init.put("world/region/r.0.0.mca", b"more chunks");
        init.put("world_nether/DIM-1/region/r.0.0.mca", b"fire");
        init.put("server.properties", b"motd=now\n");
        Self { web, init, set, copies, copy }
    }

    fn order(&self) -> AskedRestore {
        AskedRestore {
            request: "asked-1".into(),
            to: self.set.lock.clone(),
            copy: self.copy.id.clone(),
            overwrite: true,
            everything: false,
            not_after: clock::now() + jiff::SignedDuration::from_hours(1),
        }
    }

    fn asks(&self, order: &AskedRestore) {
        fs::write(self.copies.path().join("restore-from.json"), serde_json::to_vec(order).unwrap()).unwrap();
    }

    /// A start of the server, which must succeed whatever was requested.
    fn starts(&self) {
        let ended = tokio::task::block_in_place(|| self.init.run());
        assert!(ended.success(), "{}", fs::read_to_string(self.init.last_words.path()).unwrap());
    }

    /// A start that is refused because the version set cannot open the existing worlds. Returns its termination message.
    fn world_refused(&self) -> WorldRefused {
        assert_eq!(tokio::task::block_in_place(|| self.init.run()).code(), Some(3));
        let words = fs::read_to_string(self.init.last_words.path()).unwrap();
        WorldRefused::read(&words).expect("it says why the worlds are refused")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.init.data.path().join(path)
    }

    fn chunks(&self) -> String {
        fs::read_to_string(self.at("world/region/r.0.0.mca")).unwrap()
    }

    fn set_aside(&self) -> Vec<PathBuf> {
        let Ok(listed) = fs::read_dir(self.at(".nightshift/set-aside")) else { return Vec::new() };
        listed.map(|entry| entry.unwrap().path()).collect()
    }

    /// Why a request was refused, without a change of files.
    fn refused(&self) -> RestoreRefused {
        assert_eq!((self.chunks().as_str(), self.set_aside().len()), ("more chunks", 0));
        assert!(self.at("world_nether").exists() && !self.at(".nightshift/restoring").exists());
        serde_json::from_slice(&fs::read(self.at(".nightshift/restore-refused.json")).unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_replaces_worlds_once_and_sets_old_ones_aside() {
    let server = Server::new().await;
    server.asks(&server.order());
    server.starts();
    assert_eq!(server.chunks(), "chunks");
    assert!(!server.at("world_nether").exists(), "all worlds make room, not those of the same name only");
    assert!(fs::read_to_string(server.at("server.properties")).unwrap().contains("motd=now"), "settings stay");
    let [aside] = server.set_aside().try_into().unwrap();
    assert_eq!(fs::read(aside.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    assert_eq!(fs::read(aside.join("world_nether/DIM-1/region/r.0.0.mca")).unwrap(), b"fire");
    let restored: Restored =
        serde_json::from_slice(&fs::read(server.at(".nightshift/restored.json")).unwrap()).unwrap();
    assert_eq!((restored.request.as_deref(), &restored.id), (Some("asked-1"), &server.copy.id));

    // Players build, and the pod is lost. The same request is still mounted, and is not executed again.
    server.init.put("world/region/r.0.0.mca", b"built since");
    server.starts();
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("built since", 1));
    server.asks(&AskedRestore { request: "asked-2".into(), ..server.order() });
    server.starts();
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("chunks", 2), "another request is another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_to_be_kept_is_restored_only_on_request() {
    let server = Server::new().await;
    server.asks(&AskedRestore { to: NOBODY.into(), ..server.order() });
    server.starts();
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("more chunks", 0));
    assert!(!server.at(".nightshift/restore-refused.json").exists(), "nothing has come of it");
    server.asks(&server.order());
    server.starts();
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("chunks", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn full_restore_includes_settings_and_plugins_but_keeps_lock() {
    let server = Server::new().await;
    server.starts();
    server.init.put("plugins/Chat/config.yml", b"since");
    server.asks(&AskedRestore { everything: true, ..server.order() });
    server.starts();
    assert_eq!(server.chunks(), "chunks");
    let properties = fs::read_to_string(server.at("server.properties")).unwrap();
    assert!(properties.contains("motd=then") && properties.contains("enable-rcon=true"), "{properties}");
    assert!(server.at("plugins/Demo.jar").exists() && !server.at("plugins/Chat").exists());
    let [aside] = server.set_aside().try_into().unwrap();
    assert_eq!(fs::read(aside.join("plugins/Chat/config.yml")).unwrap(), b"since");
    assert_eq!(fs::read(aside.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    let restored: Restored =
        serde_json::from_slice(&fs::read(server.at(".nightshift/restored.json")).unwrap()).unwrap();
    assert!(restored.everything);
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_restore_request_is_recorded_and_server_still_starts() {
    let server = Server::new().await;
    let shelf = BackupRepository::new(server.copies.path().join("lobby"));
    let order = |request: &str| AskedRestore { request: request.into(), ..server.order() };
    let refused_for = |order: AskedRestore| {
        server.asks(&order);
        server.starts();
        let refused = server.refused();
        assert_eq!(refused.request, order.request);
        refused.why
    };
    let why = refused_for(AskedRestore { not_after: clock::now(), ..order("late") });
    assert!(why.contains("too old"), "{why}");
    let why = refused_for(AskedRestore { overwrite: false, ..order("no-word") });
    assert!(why.contains("`;overwrite`"), "{why}");
    let why = refused_for(AskedRestore { copy: "20010101T000000Z-aaaaaaaa".into(), ..order("none") });
    assert_eq!(why, "there is no copy `20010101T000000Z-aaaaaaaa`");
    let settings = copy_of(&server.init, &shelf, Contents::ServerFiles);
    let why = refused_for(AskedRestore { copy: settings.id, ..order("settings") });
    assert!(why.contains("holds no worlds"), "{why}");
    let worlds = copy_of(&server.init, &shelf, Contents::Worlds);
    let why = refused_for(AskedRestore { copy: worlds.id, everything: true, ..order("worlds") });
    assert!(why.contains("take `;contents=Everything` away"), "{why}");
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    let newer = copy_of(&server.init, &shelf, Contents::Worlds);
    server.init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    let why = refused_for(AskedRestore { copy: newer.id, ..order("newer") });
    assert!(why.contains("a world cannot go back"), "{why}");

    damage(&shelf, &server.copy.id);
    let why = refused_for(order("damaged"));
    assert!(why.contains("is damaged and cannot be used"), "{why}");
    let why = refused_for(order("marked"));
    assert!(why.contains("cannot be used"), "{why}");
}

/// Changes a byte in the middle: the size is the same, and the damage is found only by reading.
fn damage(shelf: &BackupRepository, id: &str) {
    let archive = shelf.directory(id).join("archive.tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&archive, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn worlds_of_newer_minecraft_list_usable_backups_for_restore() {
    let server = Server::new().await;
    let shelf = BackupRepository::new(server.copies.path().join("lobby"));
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    copy_of(&server.init, &shelf, Contents::Worlds);
    let refused = server.world_refused();
    assert!(refused.why.contains("a world cannot go back"), "{refused:?}");
    assert_eq!((&refused.copies, refused.not_obeyed), (&Some(vec![server.copy.id.clone()]), None), "not the newer one");

    server.asks(&AskedRestore { copy: "20010101T000000Z-aaaaaaaa".into(), ..server.order() });
    let why = "there is no copy `20010101T000000Z-aaaaaaaa`".to_owned();
    for _ in ["when it is tried", "at the next try"] {
        assert_eq!(server.world_refused().not_obeyed, Some(("asked-1".to_owned(), why.clone())));
    }
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("more chunks", 0));

    // The same pod, restarted by the kubelet, finds another request.
    server.asks(&AskedRestore { request: "asked-2".into(), ..server.order() });
    server.starts();
    assert_eq!(server.chunks(), "chunks");
    let [aside] = server.set_aside().try_into().unwrap();
    assert_eq!(fs::read(aside.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    let restored: Restored =
        serde_json::from_slice(&fs::read(server.at(".nightshift/restored.json")).unwrap()).unwrap();
    assert_eq!((restored.request.as_deref(), &restored.id), (Some("asked-2"), &server.copy.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_backup_leaves_worlds_unchanged_and_is_delisted() {
    let server = Server::new().await;
    let shelf = BackupRepository::new(server.copies.path().join("lobby"));
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    damage(&shelf, &server.copy.id);
    server.asks(&server.order());
    let refused = server.world_refused();
    assert_eq!(refused.copies, Some(Vec::new()));
    let (request, why) = refused.not_obeyed.unwrap();
    assert!(request == "asked-1" && why.contains("is damaged and cannot be used"), "{why}");
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("more chunks", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_request_unreadable_or_for_other_lock_is_ignored() {
    let server = Server::new().await;
    server.asks(&AskedRestore { to: "c".repeat(64), ..server.order() });
    server.starts();
    fs::write(server.copies.path().join("restore-from.json"), r#"{"request": "asked-1", "everything": true}"#).unwrap();
    server.starts();
    server.asks(&server.order());
    fs::write(server.at(".nightshift/restored.json"), "{").unwrap();
    server.starts();
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("more chunks", 0), "nobody knows what was done");
    assert!(!server.at(".nightshift/restore-refused.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_restore_is_completed_first_and_satisfies_its_request() {
    let server = Server::new().await;
    let restored = serde_json::json!({
        "at": clock::now().to_string(), "id": server.copy.id, "setAside": ".nightshift/set-aside/x", "request": "asked-1",
    });
    let journal = serde_json::json!({"done": restored, "aside": ["world", "world_nether"], "comes": ["world"]});
    server.init.put(".nightshift/restore.json", journal.to_string().as_bytes());
    server.init.put(".nightshift/restoring/world/level.dat", &level_dat(4556, "1.21.10"));
    server.init.put(".nightshift/restoring/world/region/r.0.0.mca", b"chunks");
    server.asks(&server.order());
    server.starts();
    assert_eq!((server.chunks().as_str(), server.set_aside().len()), ("chunks", 1), "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_lists_available_backups_and_outcome_of_restore_request() {
    let server = Server::new().await;
    server.asks(&AskedRestore { overwrite: false, ..server.order() });
    server.starts();
    let pod = Pod::on(tempfile::tempdir().unwrap(), "").await;
    fs::create_dir_all(pod.data.path().join(".nightshift")).unwrap();
    let refused = ".nightshift/restore-refused.json";
    fs::copy(server.at(refused), pod.data.path().join(refused)).unwrap();
    fs::rename(server.copies.path().join("lobby"), pod.shared.path().join("copies")).unwrap();
    let seen = pod.report().await.backups.unwrap();
    assert_eq!(seen.restore_refused.unwrap().request, "asked-1");
    let [listed] = seen.listed.unwrap().try_into().unwrap();
    assert_eq!((&listed.id, listed.contents), (&server.copy.id, Some(Contents::Everything)));
    assert_eq!((listed.data_version, listed.problem), (Some(4556), None));
    fs::write(pod.copies().join(&listed.id).join("archive.tar.gz"), b"cut").unwrap();
    let [damaged] = pod.report().await.backups.unwrap().listed.unwrap().try_into().unwrap();
    assert!(damaged.contents.is_none() && damaged.problem.unwrap().contains("3 bytes"));
    drop(server.web);
}
