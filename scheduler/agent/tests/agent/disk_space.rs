//! Edge (writes). Tests how much space backups need, and a full backup volume when init is about to take a backup before an update.

use std::fs;

use agent::backup::repository::BackupRepository;
use agent::clock;
use agent_api::Contents;
use agent_api::FileSet;
use agent_api::restore::RequestedRestore;

use crate::fake_server::Paper;
use crate::harness::Pod;
use crate::volume::{Init, back_up, level_dat, served_set, set};

/// In bytes, more than any backup volume has. Zeros that take no space on the server's own volume.
const TOO_MANY_BYTES: u64 = 1 << 43;

#[tokio::test(flavor = "multi_thread")]
async fn init_container_prunes_excess_backups_before_requiring_space() {
    let (_web, url, old) = served_set().await;
    let backups_dir = tempfile::tempdir().unwrap();
    let mut init = Init::new(&old);
    init.put("world/level.dat", &level_dat(4556, "1.21.10"));
    init.put("world/region/r.0.0.mca", b"chunks");
    init.more = vec![
        ("NIGHTSHIFT_BACKUPS", backups_dir.path().join("lobby").display().to_string()),
        ("NIGHTSHIFT_BACKUP_BEFORE", "OneWay".to_owned()),
        ("NIGHTSHIFT_RESTORE_ORDER", backups_dir.path().join("restore.json").display().to_string()),
    ];
    let run = |init: &Init| tokio::task::block_in_place(|| init.run());
    let message = |init: &Init| fs::read_to_string(init.termination_log.path()).unwrap();
    assert!(run(&init).success(), "{}", message(&init));
    let repository = BackupRepository::new(backups_dir.path().join("lobby"));
    let names = || repository.list().unwrap().into_iter().map(|backup| backup.id).collect::<Vec<_>>();
    let taken: Vec<String> = (0..4).map(|_| back_up(&init, &repository, Contents::Everything).id).collect();

    let restore_request = RequestedRestore {
        request: "asked-1".into(),
        to: old.lock,
        backup: taken[0].clone(),
        overwrite: true,
        everything: false,
        not_after: clock::now() + jiff::SignedDuration::from_hours(1),
    };
    fs::write(backups_dir.path().join("restore-from.json"), serde_json::to_vec(&restore_request).unwrap()).unwrap();
    let (other, ..) = set(&url, 'b');
    let newer = FileSet { minecraft: "1.21.11".into(), data_version: Some(4671), ..other };
    fs::write(init.files.path(), serde_json::to_vec(&newer).unwrap()).unwrap();
    let large = init.data.path().join("world/region/r.1.0.mca");
    fs::File::create(&large).unwrap().set_len(TOO_MANY_BYTES).unwrap();
    assert_eq!(run(&init).code(), Some(3), "ten backups are kept by default");
    assert!(message(&init).contains("(backups there now: 4)"), "{}", message(&init));
    assert_eq!(names(), taken);

    init.more.push(("NIGHTSHIFT_BACKUP_MAX_COUNT", "1".to_owned()));
    assert_eq!(run(&init).code(), Some(3));
    assert!(message(&init).contains("(backups there now: 2)"), "{}", message(&init));
    let left = [taken[0].clone(), taken[3].clone()];
    assert_eq!(names(), left, "the newest, and the one requested for another version set");

    fs::remove_file(&large).unwrap();
    assert!(run(&init).success(), "{}", message(&init));
    let now = names();
    let stays = left.iter().all(|id| now.contains(id));
    assert!(stays && now.len() == 3, "a backup of worlds does not replace one with settings: {now:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_size_is_measured_after_server_start() {
    let pod = Pod::with_volume(tempfile::tempdir().unwrap(), "").await;
    let level = level_dat(4671, "1.21.11");
    for (path, content) in [
        ("world/level.dat", level.as_slice()),
        ("world/region/r.0.0.mca", b"chunks".as_slice()),
        ("cache/mojang.jar", b"comes back".as_slice()),
        ("bukkit.yml", b"settings: {}".as_slice()),
    ] {
        let path = pod.data.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    assert_eq!(pod.report().await.backups.unwrap().sizes, None, "no size was measured yet");
    pod.write_log();
    let _paper = Paper::start(pod.game, pod.rcon, 0).await;
    let report = pod.report_when("sizes", |report| report.backups.as_ref().unwrap().sizes.is_some()).await;
    let backups = report.backups.unwrap();
    let sizes = backups.sizes.unwrap();
    assert!(sizes.world_entries >= 3 && sizes.space_needed(Contents::Worlds) > sizes.worlds, "{sizes:?}");
    assert!(backups.room.is_some_and(|room| room > sizes.space_needed(Contents::Everything)), "{:?}", backups.room);
    assert_eq!(sizes.worlds, u64::try_from(level.len()).unwrap() + 6);
    assert!(sizes.server_files >= 12 && sizes.server_files < 2_000, "{sizes:?}");
}
