//! Edge (writes). Checks a backup volume that has space for three backups.

use super::*;

/// The size of incompressible data, which is most of each backup.
const COPY: usize = 300_000;
/// Less than four backups with their other files.
const ROOM: u64 = 1_050_000;

/// A volume of [`ROOM`] bytes, in addition to the reserve that must stay free.
struct Small {
    shelf: PathBuf,
}

impl FsHook for Small {
    fn before(&mut self, _what: &'static str, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let used: usize = files_below(&self.shelf).values().map(Vec::len).sum();
        Ok((SPARE + ROOM).saturating_sub(u64::try_from(used).unwrap()))
    }
}

#[test]
fn full_repository_refuses_backup_until_retention_is_lowered() {
    let server = Server::new(&NEW_LAYOUT);
    server.put("survival/dimensions/minecraft/overworld/region/r.1.0.mca", &noise(COPY));
    let disk = || Disk::new(Small { shelf: server.shelf.root().to_owned() });
    let take_at = |second| server.take_as(Contents::Worlds, Trigger::Scheduled, second, &mut disk());
    let taken = [0, 60, 120].map(|second| take_at(second).unwrap().id);

    let failed = take_at(180).unwrap_err();
    let Error::Full { free, needed, there, apart: _ } = failed else { panic!("{failed:?}") };
    assert!(free < needed && there == 3, "{free} bytes free of {needed}, beside {there} copies");
    let told = failed.to_string();
    let numbers =
        format!("may need {needed} bytes and there are {free} free where copies are kept (copies there now: 3)");
    assert!(told.contains(&numbers), "{told}");
    assert!(told.contains("`spec.backup.storage.size`") && told.contains("`spec.backup.retention.maxCount`"), "{told}");
    assert!(told.ends_with("Some copies stay whatever it says: docs/guides/backup.md"), "{told}");
    assert_eq!(server.good(), taken, "none goes for one that was not taken");

    server.put("server.properties", b"level-name=survival\n");
    server.put("kept/yesterday/level.dat", b"unpacked by somebody");
    let told = take_at(200).unwrap_err().to_string();
    assert!(
        told.ends_with("copied too (1, the first is `kept/yesterday`): move what is not wanted out of its directory"),
        "{told}"
    );

    let retention = Retention { max_count: 2, max_age: None };
    server.shelf.prune(retention, &[], Timestamp::MAX, &mut disk()).unwrap();
    let fourth = take_at(240).unwrap().id;
    assert_eq!(server.good(), [&taken[1..], &[fourth]].concat());
}
