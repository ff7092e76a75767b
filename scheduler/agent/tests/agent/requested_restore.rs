//! Edge (writes). Tests whether init restores a backup that a user requests.

use std::fs;
use std::path::PathBuf;

use agent::backup::Backup;
use agent::backup::repository::BackupRepository;
use agent::clock;
use agent_api::Contents;
use agent_api::restore::{NO_SET, RequestedRestore, RestoreRejection};
use agent_api::signed::Document;
use agent_api::termination_message::{LockRejected, WorldRefused};
use agent_api::{FileSet, Restored};

use crate::harness::Pod;
use crate::volume::{Init, back_up, level_dat, served_set, signer};

/// A volume on which a version set of 1.21.10 runs, with an online backup. Players have built since.
struct Server {
    web: tempfile::TempDir,
    init: Init,
    set: FileSet,
    backups_dir: tempfile::TempDir,
    backup: Backup,
}

impl Server {
    async fn new() -> Self {
        let (web, _url, set) = served_set().await;
        let backups_dir = tempfile::tempdir().unwrap();
        let mut init = Init::new(&set);
        init.put("world/level.dat", &level_dat(4556, "1.21.10"));
        init.put("world/region/r.0.0.mca", b"chunks");
        init.put("server.properties", b"motd=then\n");
        init.more = vec![
            ("NIGHTSHIFT_BACKUPS", backups_dir.path().join("lobby").display().to_string()),
            ("NIGHTSHIFT_BACKUP_BEFORE", "OneWay".to_owned()),
            ("NIGHTSHIFT_RESTORE_ORDER", backups_dir.path().join("restore.json").display().to_string()),
        ];
        let repository = BackupRepository::new(backups_dir.path().join("lobby"));
        let backup = back_up(&init, &repository, Contents::Everything);
        init.put("world/region/r.0.0.mca", b"more chunks");
        init.put("world_nether/DIM-1/region/r.0.0.mca", b"fire");
        init.put("server.properties", b"motd=now\n");
        Self { web, init, set, backups_dir, backup }
    }

    fn restore_request(&self) -> RequestedRestore {
        RequestedRestore {
            request: "asked-1".into(),
            to: self.set.lock.clone(),
            backup: self.backup.id.clone(),
            overwrite: true,
            everything: false,
            not_after: clock::now() + jiff::SignedDuration::from_hours(1),
        }
    }

    fn write_request(&self, restore_request: &RequestedRestore) {
        fs::write(self.backups_dir.path().join("restore-from.json"), serde_json::to_vec(restore_request).unwrap())
            .unwrap();
    }

    /// A start of the server, which must succeed whatever was requested.
    fn assert_starts(&self) {
        let ended = tokio::task::block_in_place(|| self.init.run());
        assert!(ended.success(), "{}", fs::read_to_string(self.init.termination_log.path()).unwrap());
    }

    /// A start that is refused because the version set cannot open the existing worlds. Returns its termination message.
    fn world_refused(&self) -> WorldRefused {
        assert_eq!(tokio::task::block_in_place(|| self.init.run()).code(), Some(3));
        let message = fs::read_to_string(self.init.termination_log.path()).unwrap();
        WorldRefused::parse(&message).expect("the message states why the worlds are refused")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.init.data.path().join(path)
    }

    fn chunks(&self) -> String {
        fs::read_to_string(self.path("world/region/r.0.0.mca")).unwrap()
    }

    fn displaced_dirs(&self) -> Vec<PathBuf> {
        let Ok(listed) = fs::read_dir(self.path(".nightshift/set-aside")) else { return Vec::new() };
        listed.map(|entry| entry.unwrap().path()).collect()
    }

    /// Why a request was refused, without a change of files.
    fn refused(&self) -> RestoreRejection {
        assert_eq!((self.chunks().as_str(), self.displaced_dirs().len()), ("more chunks", 0));
        assert!(self.path("world_nether").exists() && !self.path(".nightshift/restoring").exists());
        serde_json::from_slice(&fs::read(self.path(".nightshift/restore-refused.json")).unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_replaces_worlds_once_and_sets_old_ones_aside() {
    let server = Server::new().await;
    server.write_request(&server.restore_request());
    server.assert_starts();
    assert_eq!(server.chunks(), "chunks");
    assert!(!server.path("world_nether").exists(), "all worlds are displaced, not only those of the same name");
    assert!(fs::read_to_string(server.path("server.properties")).unwrap().contains("motd=now"), "settings stay");
    let [displaced] = server.displaced_dirs().try_into().unwrap();
    assert_eq!(fs::read(displaced.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    assert_eq!(fs::read(displaced.join("world_nether/DIM-1/region/r.0.0.mca")).unwrap(), b"fire");
    let restored: Restored =
        serde_json::from_slice(&fs::read(server.path(".nightshift/restored.json")).unwrap()).unwrap();
    assert_eq!((restored.request.as_deref(), &restored.id), (Some("asked-1"), &server.backup.id));

    // Players build, and the pod is lost. The same request is still mounted, and is not executed again.
    server.init.put("world/region/r.0.0.mca", b"built since");
    server.assert_starts();
    assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("built since", 1));
    server.write_request(&RequestedRestore { request: "asked-2".into(), ..server.restore_request() });
    server.assert_starts();
    assert_eq!(
        (server.chunks().as_str(), server.displaced_dirs().len()),
        ("chunks", 2),
        "a request with another name is executed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_to_be_kept_is_restored_only_on_request() {
    let server = Server::new().await;
    server.write_request(&RequestedRestore { to: NO_SET.into(), ..server.restore_request() });
    server.assert_starts();
    assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("more chunks", 0));
    assert!(!server.path(".nightshift/restore-refused.json").exists(), "the request is not refused");
    server.write_request(&server.restore_request());
    server.assert_starts();
    assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("chunks", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn full_restore_includes_settings_and_plugins_but_keeps_lock() {
    let server = Server::new().await;
    server.assert_starts();
    server.init.put("plugins/Chat/config.yml", b"since");
    server.write_request(&RequestedRestore { everything: true, ..server.restore_request() });
    server.assert_starts();
    assert_eq!(server.chunks(), "chunks");
    let properties = fs::read_to_string(server.path("server.properties")).unwrap();
    assert!(properties.contains("motd=then") && properties.contains("enable-rcon=true"), "{properties}");
    assert!(server.path("plugins/Demo.jar").exists() && !server.path("plugins/Chat").exists());
    let [displaced] = server.displaced_dirs().try_into().unwrap();
    assert_eq!(fs::read(displaced.join("plugins/Chat/config.yml")).unwrap(), b"since");
    assert_eq!(fs::read(displaced.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    let restored: Restored =
        serde_json::from_slice(&fs::read(server.path(".nightshift/restored.json")).unwrap()).unwrap();
    assert!(restored.everything);
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_restore_request_is_recorded_and_server_still_starts() {
    let server = Server::new().await;
    let repository = BackupRepository::new(server.backups_dir.path().join("lobby"));
    let request_named = |request: &str| RequestedRestore { request: request.into(), ..server.restore_request() };
    let refused_for = |restore_request: RequestedRestore| {
        server.write_request(&restore_request);
        server.assert_starts();
        let refused = server.refused();
        assert_eq!(refused.request, restore_request.request);
        refused.why
    };
    let why = refused_for(RequestedRestore { not_after: clock::now(), ..request_named("late") });
    assert!(why.contains("has expired"), "{why}");
    let why = refused_for(RequestedRestore { overwrite: false, ..request_named("no-word") });
    assert!(why.contains("`;overwrite`"), "{why}");
    let why = refused_for(RequestedRestore { backup: "20010101T000000Z-aaaaaaaa".into(), ..request_named("none") });
    assert_eq!(why, "there is no backup `20010101T000000Z-aaaaaaaa`");
    let settings = back_up(&server.init, &repository, Contents::ServerFiles);
    let why = refused_for(RequestedRestore { backup: settings.id, ..request_named("settings") });
    assert!(why.contains("has no worlds"), "{why}");
    let worlds = back_up(&server.init, &repository, Contents::Worlds);
    let why = refused_for(RequestedRestore { backup: worlds.id, everything: true, ..request_named("worlds") });
    assert!(why.contains("remove `;contents=Everything`"), "{why}");
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    let newer = back_up(&server.init, &repository, Contents::Worlds);
    server.init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    let why = refused_for(RequestedRestore { backup: newer.id, ..request_named("newer") });
    assert!(why.contains("a world cannot be downgraded"), "{why}");

    damage_backup(&repository, &server.backup.id);
    let why = refused_for(request_named("damaged"));
    assert!(why.contains("is damaged and cannot be used"), "{why}");
    let why = refused_for(request_named("marked"));
    assert!(why.contains("cannot be used"), "{why}");
}

/// Changes a byte in the middle: the size is the same, and the damage is found only by reading.
fn damage_backup(repository: &BackupRepository, id: &str) {
    let archive = repository.directory(id).join("archive.tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&archive, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn worlds_of_newer_minecraft_list_usable_backups_for_restore() {
    let server = Server::new().await;
    let repository = BackupRepository::new(server.backups_dir.path().join("lobby"));
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    back_up(&server.init, &repository, Contents::Worlds);
    let refused = server.world_refused();
    assert!(refused.why.contains("a world cannot be downgraded"), "{refused:?}");
    assert_eq!(
        (&refused.backups, refused.refused_request),
        (&Some(vec![server.backup.id.clone()]), None),
        "the newer backup is unusable"
    );

    server.write_request(&RequestedRestore { backup: "20010101T000000Z-aaaaaaaa".into(), ..server.restore_request() });
    let why = "there is no backup `20010101T000000Z-aaaaaaaa`".to_owned();
    for _ in ["when it is tried", "at the next try"] {
        assert_eq!(server.world_refused().refused_request, Some(("asked-1".to_owned(), why.clone())));
    }
    assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("more chunks", 0));

    // The same pod, restarted by the kubelet, finds another request.
    server.write_request(&RequestedRestore { request: "asked-2".into(), ..server.restore_request() });
    server.assert_starts();
    assert_eq!(server.chunks(), "chunks");
    let [displaced] = server.displaced_dirs().try_into().unwrap();
    assert_eq!(fs::read(displaced.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    let restored: Restored =
        serde_json::from_slice(&fs::read(server.path(".nightshift/restored.json")).unwrap()).unwrap();
    assert_eq!((restored.request.as_deref(), &restored.id), (Some("asked-2"), &server.backup.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_backup_leaves_worlds_unchanged_and_is_delisted() {
    let server = Server::new().await;
    let repository = BackupRepository::new(server.backups_dir.path().join("lobby"));
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    damage_backup(&repository, &server.backup.id);
    server.write_request(&server.restore_request());
    let refused = server.world_refused();
    assert_eq!(refused.backups, Some(Vec::new()));
    let (request, why) = refused.refused_request.unwrap();
    assert!(request == "asked-1" && why.contains("is damaged and cannot be used"), "{why}");
    assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("more chunks", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_request_unreadable_or_for_other_lock_is_ignored() {
    let server = Server::new().await;
    server.write_request(&RequestedRestore { to: "c".repeat(64), ..server.restore_request() });
    server.assert_starts();
    fs::write(server.backups_dir.path().join("restore-from.json"), r#"{"request": "asked-1", "everything": true}"#)
        .unwrap();
    server.assert_starts();
    server.write_request(&server.restore_request());
    fs::write(server.path(".nightshift/restored.json"), "{").unwrap();
    server.assert_starts();
    assert_eq!(
        (server.chunks().as_str(), server.displaced_dirs().len()),
        ("more chunks", 0),
        "it is unknown what was restored"
    );
    assert!(!server.path(".nightshift/restore-refused.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn request_with_foreign_signature_is_ignored_and_reported() {
    let mut server = Server::new().await;
    server.init.is_signed = false;
    server.write_request(&server.restore_request());
    let (request, signature) = {
        let path = |name: &str| server.backups_dir.path().join(name);
        (path("restore-from.json"), path("restore-from.json.sig"))
    };
    let content = fs::read(request).unwrap();
    let of = |name: &str, kind| signer(name).sign(kind, &content);
    let foreign = [
        None,
        Some(of("games/other", Document::UserRestore)),
        Some(of("games/lobby", Document::Rollback)),
        Some("00".repeat(64)),
    ];
    for foreign in foreign {
        if let Some(foreign) = &foreign {
            fs::write(&signature, foreign).unwrap();
        }
        server.assert_starts();
        assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("more chunks", 0), "{foreign:?}");
        let message = fs::read_to_string(server.init.termination_log.path()).unwrap();
        assert_eq!(LockRejected::parse(&message).unwrap().files, ["restore-from.json"]);
    }
    fs::write(&signature, of("games/lobby", Document::UserRestore)).unwrap();
    server.assert_starts();
    assert_eq!(server.chunks(), "chunks", "the operator's own request is carried out");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_restore_is_completed_first_and_satisfies_its_request() {
    let server = Server::new().await;
    let restored = serde_json::json!({
        "at": clock::now().to_string(), "id": server.backup.id, "setAside": ".nightshift/set-aside/x", "request": "asked-1",
    });
    let journal = serde_json::json!({"done": restored, "aside": ["world", "world_nether"], "comes": ["world"]});
    server.init.put(".nightshift/restore.json", journal.to_string().as_bytes());
    server.init.put(".nightshift/restoring/world/level.dat", &level_dat(4556, "1.21.10"));
    server.init.put(".nightshift/restoring/world/region/r.0.0.mca", b"chunks");
    server.write_request(&server.restore_request());
    server.assert_starts();
    assert_eq!((server.chunks().as_str(), server.displaced_dirs().len()), ("chunks", 1), "restored once");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_lists_available_backups_and_outcome_of_restore_request() {
    let server = Server::new().await;
    server.write_request(&RequestedRestore { overwrite: false, ..server.restore_request() });
    server.assert_starts();
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    fs::create_dir_all(pod.data.path().join(".nightshift")).unwrap();
    let refused = ".nightshift/restore-refused.json";
    fs::copy(server.path(refused), pod.data.path().join(refused)).unwrap();
    fs::rename(server.backups_dir.path().join("lobby"), pod.shared.path().join("copies")).unwrap();
    let backups = pod.report().await.backups.unwrap();
    assert_eq!(backups.restore_refused.unwrap().request, "asked-1");
    let [listed] = backups.listed.unwrap().try_into().unwrap();
    assert_eq!((&listed.id, listed.contents), (&server.backup.id, Some(Contents::Everything)));
    assert_eq!((listed.data_version, listed.problem), (Some(4556), None));
    fs::write(pod.backups_dir().join(&listed.id).join("archive.tar.gz"), b"cut").unwrap();
    let [damaged] = pod.report().await.backups.unwrap().listed.unwrap().try_into().unwrap();
    assert!(damaged.contents.is_none() && damaged.problem.unwrap().contains("3 bytes"));
    drop(server.web);
}
