//! Edge (writes). Tests the backup that init takes before an update, and the sidecar's report on it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use agent::backup::LiveReads;
use agent::backup::create::{BackupSpec, create_backup};
use agent::backup::repository::BackupRepository;
use agent::backup::restore::unpack;
use agent::staging::fs_ops::{Disk, RealFs};
use agent::world::Worlds;
use agent_api::FileSet;
use agent_api::{Contents, Trigger};

use crate::fake_server::Paper;
use crate::harness::Pod;
use crate::volume::{Init, level_dat, served_set, set};

/// A volume on which the version set `a` of 1.21.10 has run, and a directory for backups.
struct Server {
    _web: tempfile::TempDir,
    url: String,
    init: Init,
    backups_dir: tempfile::TempDir,
}

impl Server {
    async fn new(before: &str) -> Self {
        let (web, url, old) = served_set().await;
        let backups_dir = tempfile::tempdir().unwrap();
        let mut init = Init::new(&old);
        init.put("world/level.dat", &level_dat(4556, "1.21.10"));
        init.put("world/region/r.0.0.mca", b"chunks");
        init.put("world_nether/DIM-1/region/r.0.0.mca", b"fire");
        init.more = vec![
            ("NIGHTSHIFT_BACKUPS", backups_dir.path().join("lobby").display().to_string()),
            ("NIGHTSHIFT_BACKUP_BEFORE", before.to_owned()),
        ];
        let this = Self { _web: web, url, init, backups_dir };
        assert!(this.run().success(), "a first start with the same Minecraft needs no backup");
        assert!(this.repository().list().unwrap().is_empty());
        this
    }

    fn run(&self) -> std::process::ExitStatus {
        tokio::task::block_in_place(|| self.init.run())
    }

    fn repository(&self) -> BackupRepository {
        BackupRepository::new(self.backups_dir.path().join("lobby"))
    }

    /// The next pod of the server has this version set.
    fn set_version_set(&self, set: &FileSet) {
        fs::write(self.init.files.path(), serde_json::to_vec(set).unwrap()).unwrap();
    }

    fn newer_minecraft(&self) -> FileSet {
        let (set, ..) = set(&self.url, 'b');
        FileSet { minecraft: "1.21.11".into(), data_version: Some(4671), ..set }
    }

    /// Requests the previous version set, with the worlds as they were before `failed`.
    fn request_rollback_from(&mut self, failed: &FileSet, unless_played: bool) {
        let (old, ..) = set(&self.url, 'a');
        self.set_version_set(&old);
        let request_path = self.backups_dir.path().join("restore.json");
        let text = serde_json::json!({"to": old.lock, "failed": failed.lock, "unlessPlayed": unless_played});
        fs::write(&request_path, text.to_string()).unwrap();
        self.init.more.push(("NIGHTSHIFT_RESTORE_ORDER", request_path.display().to_string()));
    }

    /// A player joined half an hour ago, between the two backups.
    fn add_player_between_backups(&self) {
        self.init.put("world/playerdata/steve.dat", b"steve");
        let player = fs::File::options().write(true).open(self.init.data.path().join("world/playerdata/steve.dat"));
        let player = player.unwrap();
        let between = player.metadata().unwrap().modified().unwrap() - std::time::Duration::from_mins(30);
        player.set_modified(between).unwrap();
    }

    /// The backups that are tried until the third attempt, or until one was restored.
    fn first_two_attempts(&self) -> Vec<String> {
        const ATTEMPT: &str = "restoring the worlds from the backup ";
        let mut child = self.init.spawn();
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        let named = lines.filter_map(|line| Some(line.split_once(ATTEMPT)?.1.split_once(';')?.0.to_owned()));
        tokio::task::block_in_place(|| named.take(2).collect())
    }

    fn make_readable(&self, id: &str) {
        let list = self.repository().directory(id).join("files.jsonl");
        fs::remove_dir(&list).unwrap();
        fs::rename(self.backups_dir.path().join("away"), &list).unwrap();
    }

    /// Sets a size in its record that no volume has space for.
    fn set_too_large(&self, id: &str) {
        let path = self.repository().directory(id).join("backup.json");
        let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record["seal"]["bytes"] = serde_json::json!(1_u64 << 60);
        fs::write(&path, record.to_string()).unwrap();
    }

    fn region(&self) -> Vec<u8> {
        fs::read(self.init.data.path().join("world/region/r.0.0.mca")).unwrap()
    }

    fn termination_message(&self) -> String {
        fs::read_to_string(self.init.termination_log.path()).unwrap()
    }

    fn installed_lock(&self) -> String {
        let manifest = fs::read_to_string(self.init.data.path().join(".nightshift/manifest.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&manifest).unwrap()["lock"].as_str().unwrap().to_owned()
    }
}

fn files_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    files.map(|file| (file.path().strip_prefix(root).unwrap().to_owned(), fs::read(file.path()).unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn worlds_are_backed_up_once_before_newer_minecraft_starts() {
    let server = Server::new("OneWay").await;
    let newer = server.newer_minecraft();
    server.set_version_set(&newer);
    // The swap is blocked after the backup.
    let journal = server.init.data.path().join(".nightshift/journal.json");
    fs::create_dir(&journal).unwrap();
    assert_eq!(server.run().code(), Some(1), "the first container reports it");
    let mut child = server.init.spawn();
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let again =
        tokio::task::block_in_place(|| lines.into_iter().find(|line| line.contains("was already taken for this step")));
    assert!(again.is_some());
    drop(child);
    assert_eq!(server.installed_lock(), "a".repeat(64));
    fs::remove_dir(&journal).unwrap();
    assert!(server.run().success());
    let listed = server.repository().list().unwrap();
    assert_eq!(listed.len(), 1, "one update takes one backup");
    let backup = listed[0].state.clone().unwrap();
    assert_eq!(
        (backup.contents, backup.before.clone(), backup.data_version),
        (Contents::Worlds, Some(newer.lock), Some(4556))
    );
    assert_eq!(backup.lock, Some("a".repeat(64)));

    let into = server.backups_dir.path().join("restored");
    unpack(&server.repository(), &backup, &into, &mut Disk::new(RealFs)).unwrap();
    let restored = files_below(&into);
    assert_eq!(restored.len(), 3);
    assert_eq!(restored[Path::new("world_nether/DIM-1/region/r.0.0.mca")], b"fire");
    assert!(!server.init.data.path().join(".nightshift/backup-taken.json").exists(), "the next update needs a backup");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_pre_update_backup_starts_previous_lock_unchanged() {
    let server = Server::new("OneWay").await;
    server.set_version_set(&server.newer_minecraft());
    // A file is at the path of the backup directory.
    fs::write(server.backups_dir.path().join("lobby"), b"").unwrap();
    assert_eq!(server.run().code(), Some(3));
    let text = server.termination_message();
    assert!(text.starts_with("NO BACKUP: could not take the backup that is due before this update"), "{text}");
    assert_eq!(server.installed_lock(), "a".repeat(64), "the swap must not begin");

    let (old, ..) = set(&server.url, 'a');
    server.set_version_set(&old);
    assert!(server.run().success(), "a rollback needs no backup");
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    let failed = ".nightshift/backup-failed.json";
    fs::create_dir(pod.data.path().join(".nightshift")).unwrap();
    fs::copy(server.init.data.path().join(failed), pod.data.path().join(failed)).unwrap();
    let failed = pod.report().await.backups.unwrap().failed.unwrap();
    assert_eq!(failed.before, "b".repeat(64));
    assert!(failed.why.contains("could not"), "{}", failed.why);
}

#[tokio::test(flavor = "multi_thread")]
async fn partly_migrated_world_is_neither_backed_up_nor_opened() {
    let server = Server::new("OneWay").await;
    server.init.put("world/dimensions/minecraft/overworld/region/r.0.0.mca", b"chunks");
    // A Minecraft that moves worlds exits at each start by itself, and is not tried without a backup. An older one must not create moved worlds
    // anew.
    let moves = FileSet { minecraft: "26.1.2".into(), data_version: Some(4790), ..server.newer_minecraft() };
    for (set, refused) in [
        (moves, "in the old and in the new layout"),
        (server.newer_minecraft(), "has begun to move it to the layout of 26.1"),
    ] {
        server.set_version_set(&set);
        assert_eq!(server.run().code(), Some(3));
        assert!(server.termination_message().contains(refused), "{}", server.termination_message());
        assert!(server.repository().list().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn always_policy_backs_up_everything_and_reports_it() {
    let server = Server::new("Always").await;
    let (other, ..) = set(&server.url, 'c');
    server.set_version_set(&other);
    assert!(server.run().success());
    server.set_version_set(&server.newer_minecraft());
    assert!(server.run().success());
    let listed = server.repository().list().unwrap();
    let contents: Vec<Contents> = listed.iter().map(|stored| stored.state.as_ref().unwrap().contents).collect();
    assert_eq!(contents, [Contents::Everything; 2]);

    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    let backups = pod.report().await.backups.unwrap();
    assert!(backups.room.is_some(), "the directory of the backups does not exist yet");
    let none = agent_api::BackupsReport {
        listed: Some(vec![]),
        puts_back_everything: true,
        room: backups.room,
        ..Default::default()
    };
    assert_eq!(backups, none, "no backup exists yet");
    fs::rename(server.backups_dir.path().join("lobby"), pod.shared.path().join("copies")).unwrap();
    let backups = pod.report().await.backups.unwrap();
    assert_eq!((backups.good, backups.damaged, backups.free.is_some()), (2, 0, true));
    assert_eq!(backups.last.unwrap().id, listed[1].id);
    assert_eq!(backups.last_of_worlds.unwrap().contents, Contents::Everything);
    fs::write(pod.shared.path().join("copies").join(&listed[1].id).join("archive.tar.gz"), b"cut").unwrap();
    let backups = pod.report().await.backups.unwrap();
    assert_eq!((backups.good, backups.damaged, backups.last_of_worlds.unwrap().id), (1, 1, listed[0].id.clone()));
}

#[tokio::test(flavor = "multi_thread")]
async fn previous_lock_restores_only_worlds_it_cannot_open() {
    let mut server = Server::new("OneWay").await;
    let newer = server.newer_minecraft();
    server.set_version_set(&newer);
    assert!(server.run().success());
    // The newer Minecraft moves the world.
    let data = server.init.data.path().to_owned();
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    fs::create_dir_all(data.join("world/dimensions/minecraft/overworld")).unwrap();
    fs::rename(data.join("world/region"), data.join("world/dimensions/minecraft/overworld/region")).unwrap();

    let (old, ..) = set(&server.url, 'a');
    server.set_version_set(&old);
    assert_eq!(server.run().code(), Some(3), "without a request the world is refused");
    let request_path = server.backups_dir.path().join("restore.json");
    let write = |to: &str, failed: &str| {
        let request_text = serde_json::json!({"to": to, "failed": failed, "unlessPlayed": true}).to_string();
        fs::write(&request_path, request_text).unwrap();
    };
    server.init.more.push(("NIGHTSHIFT_RESTORE_ORDER", request_path.display().to_string()));
    write(&"c".repeat(64), &newer.lock);
    assert_eq!(server.run().code(), Some(3), "a request for another version set does not count");
    write(&old.lock, &"c".repeat(64));
    assert_eq!(server.run().code(), Some(3), "no backup is from before that version set");

    let of_data = serde_json::json!({"to": old.lock, "failed": newer.lock, "unlessPlayed": true, "worlds": false});
    fs::write(&request_path, of_data.to_string()).unwrap();
    assert_eq!(server.run().code(), Some(3), "a request for plugin data restores no worlds");

    write(&old.lock, &newer.lock);
    let (another, ..) = set(&server.url, 'c');
    server.set_version_set(&another);
    assert_eq!(server.run().code(), Some(3), "the request is for another version set");
    server.set_version_set(&old);
    server.init.put("world/playerdata/steve.dat", b"steve");
    assert_eq!(server.run().code(), Some(3), "steve has played, so `unlessPlayed` forbids the restore");
    fs::remove_file(data.join("world/playerdata/steve.dat")).unwrap();
    assert!(server.run().success());
    assert_eq!(fs::read(data.join("world/region/r.0.0.mca")).unwrap(), b"chunks");
    assert!(!data.join("world/dimensions").exists());
    assert_eq!(server.installed_lock(), old.lock);
    let displaced: Vec<_> = fs::read_dir(data.join(".nightshift/set-aside")).unwrap().collect();
    assert_eq!(displaced.len(), 1);

    // Players build, and the pod is lost. The same request is still mounted, and is not executed again.
    server.init.put("world/region/r.0.0.mca", b"more chunks");
    assert!(server.run().success());
    assert_eq!(fs::read(data.join("world/region/r.0.0.mca")).unwrap(), b"more chunks");
    assert_eq!(fs::read_dir(data.join(".nightshift/set-aside")).unwrap().count(), 1);
}

/// Two backups from before one newer Minecraft, which has opened the world now, and the request to roll back to the previous version set. Returns
/// the names of the older and the newer backup.
async fn with_two_backups() -> (Server, [String; 2]) {
    let mut server = Server::new("OneWay").await;
    let data = server.init.data.path().to_owned();
    let newer = server.newer_minecraft();
    let spec = BackupSpec {
        data: &data,
        worlds: &Worlds::read(&data).unwrap(),
        reading: LiveReads::Offline,
        contents: Contents::Worlds,
        trigger: Trigger::BeforeUpdate,
        lock: Some(&"a".repeat(64)),
        before: Some(&newer.lock),
        request: None,
        after_damage: false,
    };
    let an_hour_ago = || agent::clock::now() - jiff::SignedDuration::from_hours(1);
    let first = create_backup(&spec, &server.repository(), &mut Disk::new(RealFs), an_hour_ago).unwrap();
    server.init.put("world/region/r.0.0.mca", b"more chunks");
    server.set_version_set(&newer);
    assert!(server.run().success());
    let newest = server.repository().list().unwrap().pop().unwrap().id;
    assert_ne!(newest, first.id);
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));

    server.request_rollback_from(&newer, false);
    (server, [first.id, newest])
}

/// The same, and the disk cannot read the newer backup.
async fn with_unread_backup() -> (Server, [String; 2]) {
    let (server, [older, newest]) = with_two_backups().await;
    let list = server.repository().directory(&newest).join("files.jsonl");
    fs::rename(&list, server.backups_dir.path().join("away")).unwrap();
    // Reading a folder as a file returns a system error, as on a bad sector.
    fs::create_dir(&list).unwrap();
    (server, [older, newest])
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_backup_falls_back_to_previous_but_stays_listed() {
    let (server, [readable, unread]) = with_unread_backup().await;
    assert!(server.run().success(), "{}", server.termination_message());
    assert_eq!(server.region(), b"chunks");

    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    fs::rename(server.backups_dir.path().join("lobby"), pod.backups_dir()).unwrap();
    let backups = pod.report().await.backups.unwrap();
    assert_eq!((backups.good, backups.damaged, backups.last_of_worlds.unwrap().id), (1, 1, readable));
    let listed = backups.listed.unwrap();
    assert_eq!((&listed[0].id, listed[0].contents), (&unread, Some(Contents::Worlds)));
    let problem = listed[0].problem.as_deref().unwrap();
    assert!(problem.starts_with("could not be read at the last attempt: `files.jsonl`"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_backup_is_retried_if_players_joined_since_previous() {
    let (server, [readable, unread]) = with_unread_backup().await;
    server.add_player_between_backups();
    let mut child = server.init.spawn();
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut has_line = |text: &str| tokio::task::block_in_place(|| lines.any(|line| line.contains(text)));
    assert!(has_line(&format!("the backup `{unread}` cannot be read from the disk at the moment")));
    assert!(has_line(&format!("players may have joined since the backup {readable}")));
    assert_eq!(
        tokio::task::block_in_place(|| child.0.wait().unwrap().code()),
        Some(1),
        "the first container reports it"
    );
    // The second attempt begins with the readable backup, and then tries the other one again.
    let mut child = server.init.spawn();
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut has_line = |text: &str| tokio::task::block_in_place(|| lines.any(|line| line.contains(text)));
    assert!(has_line(&format!("the backup `{unread}` cannot be read from the disk at the moment")));
    drop(child);

    server.make_readable(&unread);
    assert!(server.run().success(), "{}", server.termination_message());
    assert_eq!(server.region(), b"more chunks");
    assert!(server.repository().list().unwrap().iter().all(|stored| stored.state.is_ok()), "the mark is cleared");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_newest_backup_never_falls_back_over_progress() {
    let (server, [_, newest]) = with_two_backups().await;
    server.add_player_between_backups();
    fs::write(server.repository().directory(&newest).join("archive.tar.gz"), b"cut").unwrap();
    assert_eq!(server.run().code(), Some(3), "play was checked only since the newest");
    assert_eq!(server.region(), b"more chunks");

    fs::remove_file(server.init.data.path().join("world/playerdata/steve.dat")).unwrap();
    assert!(server.run().success(), "{}", server.termination_message());
    assert_eq!(server.region(), b"chunks");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_backup_without_space_blocks_no_newest_retry() {
    let (server, [older, newest]) = with_unread_backup().await;
    assert!(server.repository().list().unwrap().iter().all(|stored| stored.state.is_ok()), "no backup was read yet");
    fs::write(server.repository().directory(&newest).join("unread.txt"), "a bad sector\n").unwrap();
    server.set_too_large(&older);
    server.make_readable(&newest);
    assert_eq!(server.first_two_attempts(), [older, newest]);
    assert!(server.run().success(), "{}", server.termination_message());
    assert_eq!(server.region(), b"more chunks");
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_backup_without_space_is_not_replaced_by_older() {
    let (server, [_, newest]) = with_two_backups().await;
    server.set_too_large(&newest);
    assert_eq!(server.first_two_attempts(), [newest.clone(), newest], "the newest backup waits for space");
    assert_eq!(server.region(), b"more chunks");
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_of_intermediate_lock_is_used_if_openable() {
    let mut server = Server::new("OneWay").await;
    let (never_verified, ..) = set(&server.url, 'c');
    server.set_version_set(&never_verified);
    assert!(server.run().success());
    let newer = server.newer_minecraft();
    server.set_version_set(&newer);
    assert!(server.run().success());
    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));

    server.request_rollback_from(&newer, true);
    assert!(server.run().success(), "{}", server.termination_message());
    let level = fs::read(server.init.data.path().join("world/level.dat")).unwrap();
    assert_eq!(level, level_dat(4556, "1.21.10"));
}

#[tokio::test(flavor = "multi_thread")]
async fn player_activity_is_detected_by_ping_and_world_files() {
    let server = Server::new("OneWay").await;
    server.set_version_set(&server.newer_minecraft());
    assert!(server.run().success());
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    fs::rename(server.backups_dir.path().join("lobby"), pod.shared.path().join("copies")).unwrap();
    // The backup before the update is also the newest of all.
    let is_reported = async || {
        let backups = pod.report().await.backups.unwrap();
        assert_ne!(backups.played_since, backups.unplayed_since_last);
        backups.played_since
    };
    assert!(!is_reported().await);
    let player = pod.data.path().join("world/playerdata/steve.dat");
    fs::create_dir_all(player.parent().unwrap()).unwrap();
    fs::create_dir_all(pod.data.path().join("world/region")).unwrap();
    fs::write(pod.data.path().join("world/level.dat"), level_dat(4671, "1.21.11")).unwrap();
    fs::write(&player, b"steve").unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let file = fs::File::options().write(true).open(&player).unwrap();
    file.set_modified(long_ago).unwrap();
    assert!(!is_reported().await, "steve played before the backup");
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(10_000_000_000)).unwrap();
    assert!(is_reported().await);
    fs::remove_file(&player).unwrap();
    assert!(!is_reported().await);

    let _paper = Paper::start(pod.game, pod.rcon, 1).await;
    pod.report_when("a player is seen and noted", |report| report.backups.as_ref().unwrap().played_since).await;
    assert!(pod.data.path().join(".nightshift/played.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_online_backup_is_never_restored_after_failed_update() {
    let mut server = Server::new("OneWay").await;
    let newer = server.newer_minecraft();
    server.set_version_set(&newer);
    assert!(server.run().success());
    let [offline] = server.repository().list().unwrap().try_into().unwrap();

    // A scheduled backup of progress made with the version set that fails. The previous version set could open it.
    server.init.put("world/region/r.0.0.mca", b"played");
    let data = server.init.data.path().to_owned();
    let spec = BackupSpec {
        data: &data,
        worlds: &Worlds::read(&data).unwrap(),
        reading: LiveReads::Online,
        contents: Contents::Everything,
        trigger: Trigger::Scheduled,
        lock: Some(&newer.lock),
        before: None,
        request: Some("scheduled-1"),
        after_damage: false,
    };
    let online = create_backup(&spec, &server.repository(), &mut Disk::new(RealFs), agent::clock::now).unwrap();
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    fs::create_dir(pod.backups_dir()).unwrap();
    for id in [&offline.id, &online.id] {
        let (from, to) = (server.repository().directory(id), pod.backups_dir().join(id));
        fs::create_dir(&to).unwrap();
        fs::read_dir(from).unwrap().map(Result::unwrap).for_each(|file| {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        });
    }
    let backups = pod.report().await.backups.unwrap();
    assert_eq!(
        (backups.last.unwrap().id, backups.last_of_worlds.unwrap().id),
        (online.id, offline.id),
        "the rollback backup is the offline one"
    );

    server.init.put("world/level.dat", &level_dat(4671, "1.21.11"));
    server.request_rollback_from(&newer, false);
    assert!(server.run().success(), "{}", server.termination_message());
    assert_eq!(fs::read(data.join("world/region/r.0.0.mca")).unwrap(), b"chunks");
}
