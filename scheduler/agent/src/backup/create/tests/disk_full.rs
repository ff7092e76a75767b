//! Edge (writes). Checks a backup volume that has space for three backups.

use super::*;
use agent_api::restore::{FREE_FOR_WORLDS, RESERVED_BYTES};

/// The size of incompressible data, which is most of each backup.
const BACKUP_BYTES: usize = 300_000;
/// Less than four backups with their other files.
const SPACE: u64 = 1_050_000;

/// A volume of [`SPACE`] bytes, in addition to the reserve that must stay free.
struct Small {
    repository: PathBuf,
}

impl FsHook for Small {
    fn before_operation(&mut self, _operation: &'static str, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let used: usize = files_below(&self.repository).values().map(Vec::len).sum();
        Ok((RESERVED_BYTES + SPACE).saturating_sub(u64::try_from(used).unwrap()))
    }
}

#[test]
fn full_repository_refuses_backup_until_retention_is_lowered() {
    let server = Server::new(&NEW_LAYOUT);
    server.put("survival/dimensions/minecraft/overworld/region/r.1.0.mca", &noise(BACKUP_BYTES));
    let disk = || Disk::new(Small { repository: server.repository.root().to_owned() });
    let take_at = |second| server.create_as(Contents::Worlds, Trigger::Scheduled, second, &mut disk());
    let taken = [0, 60, 120].map(|second| take_at(second).unwrap().id);

    let failed = take_at(180).unwrap_err();
    let Error::Full { free, needed, existing_backups, .. } = failed else { panic!("{failed:?}") };
    assert!(free < needed && existing_backups == 3, "{free} of {needed} bytes free, {existing_backups} backups");
    let message = failed.to_string();
    let numbers = format!("may need {needed} bytes, but the backup volume has {free} free (backups there now: 3)");
    assert!(message.contains(&numbers), "{message}");
    assert!(
        message.contains("`spec.backup.storage.size`") && message.contains("`spec.backup.retention.maxCount`"),
        "{message}"
    );
    assert!(message.ends_with("Some backups are never pruned: docs/guides/backup.md"), "{message}");
    assert_eq!(server.good(), taken, "a failed backup must not remove others");

    server.put("server.properties", b"level-name=survival\n");
    server.put("kept/yesterday/level.dat", b"unpacked by somebody");
    let message = take_at(200).unwrap_err().to_string();
    assert!(
        message
            .ends_with("backed up too (1, the first is `kept/yesterday`): move unwanted worlds out of its directory"),
        "{message}"
    );

    let retention = Retention { max_count: 2, max_age: None, keeps_older: true };
    server.repository.prune(retention, &[], Timestamp::MAX, &mut disk()).unwrap();
    let fourth = take_at(240).unwrap().id;
    assert_eq!(server.good(), [&taken[1..], &[fourth]].concat());
}

#[test]
fn backup_on_server_volume_leaves_room_for_worlds() {
    let mut server = Server::new(&NEW_LAYOUT);
    server.put("survival/dimensions/minecraft/overworld/region/r.1.0.mca", &noise(BACKUP_BYTES));
    server.repository = BackupRepository::new(server.data().join(".nightshift/backups"));
    let take = |free: u64| {
        let mut disk = Disk::new(Free(free));
        server.create_as(Contents::Everything, Trigger::BeforeUpdate, 0, &mut disk)
    };
    let failed = take(FREE_FOR_WORLDS + 1_000).unwrap_err();
    let Error::Full { free, needed, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(free, 1_000);
    let message = failed.to_string();
    for part in [
        "the server's volume has 1000 free (backups there now: 0)",
        "`spec.backup.storage`",
        "`spec.backup.beforeUpdate: Never`",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let backup = take(FREE_FOR_WORLDS + needed).unwrap();
    assert_eq!(server.good(), [backup.id.as_str()]);
    let names = fs::read_to_string(server.repository.directory(&backup.id).join(LIST)).unwrap();
    assert!(names.contains("survival/") && !names.contains(".nightshift"), "{names}");
}

/// A volume with so many free bytes.
struct Free(u64);

impl FsHook for Free {
    fn before_operation(&mut self, _operation: &'static str, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.0)
    }
}
