//! Edge (writes). Checks a restore in which each file operation fails once, as on a failing or full disk, and a temporarily unreadable backup.
//!
//! The process continues after each failure.

use rustix::io::Errno;

use super::*;
use crate::backup::retention::Retention;
use crate::staging::fs_ops::faulty::{FaultyFs, told};

/// For each n, operation n fails while `part` of `server` is restored over the files in `there`. At the end the files match the backup, and no
/// previous file is lost.
fn fail_everywhere(
    part: RestorePart,
    server: impl Fn() -> Server,
    there: &BTreeMap<String, Vec<u8>>,
    comes: &BTreeMap<String, Vec<u8>>,
    aside: &BTreeMap<String, Vec<u8>>,
) {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = server();
        let (steps, refused) = FaultyFs::after(left, with);
        let mut disk = Disk::new(steps);
        let ended = server.restore_part(part, &mut disk, 60);
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 40, "only {left} operations: the test does not see them all");
            return;
        }
        let story = format!("when it could not {}", refused.what());
        refused.assert_told(&told(&ended.expect_err(&story)), with);
        let found = server.files();
        let is_whole = found == *there || found == *comes;
        assert!(is_whole || server.volume.restore_journal_path().exists(), "without a journal it is whole, {story}");

        finish(&server.volume, &mut disk).expect("the disk is well again");
        if server.files() == *there {
            server.restore_part(part, &mut disk, 120).unwrap();
        }
        assert_eq!(server.files(), *comes, "at the second try, {story}");
        assert_eq!(server.aside(), *aside, "nothing is lost, {story}");
        assert!(!server.volume.restore_journal_path().exists(), "{story}");
    }
}

#[test]
fn restore_on_failing_disk_leaves_old_worlds_or_journal() {
    let (there, comes) = (files(&[&NEW, &OTHER]), files(&[&OLD, &OTHER]));
    fail_everywhere(RestorePart::Worlds, || Server::new(Contents::Worlds), &there, &comes, &files(&[&NEW]));
}

#[test]
fn new_volume_restore_on_failing_disk_is_never_partial() {
    let server = || {
        let server = Server::new(Contents::Everything);
        server.loses_its_volume();
        server
    };
    let comes = files(&[&OLD, &OTHER, &NEW_VOLUME[..1]]);
    fail_everywhere(RestorePart::Everything, server, &files(&[&NEW_VOLUME]), &comes, &files(&[&NEW_VOLUME[1..]]));
}

#[test]
fn restore_on_failing_disk_never_leaves_different_floodgate_key() {
    let key: [(&str, &[u8]); 1] = [(FLOODGATE_KEY, b"of the network")];
    let server = || {
        let server = Server::copied_with(Contents::Everything, &[(FLOODGATE_KEY, b"of old")]);
        put(server.volume.root(), &key);
        server
    };
    let (there, comes) = (files(&[&NEW, &OTHER, &key]), files(&[&OLD, &OTHER, &key]));
    fail_everywhere(RestorePart::Everything, server, &there, &comes, &there);
}

#[test]
fn temporarily_unreadable_backup_is_not_damaged_and_restores_later() {
    for name in ["archive.tar.gz", "files.jsonl"] {
        let server = Server::new(Contents::Worlds);
        let (file, away) = (server.shelf.directory(&server.backup.id).join(name), server.directory.path().join("away"));
        fs::rename(&file, &away).unwrap();
        // Reading a folder as a file returns a system error, as on a failing disk.
        fs::create_dir(&file).unwrap();
        let failed = server.restore(&mut Disk::new(RealFs), 60).unwrap_err();
        assert!(told(&failed).contains(name) && !matches!(failed, Error::Damaged { .. }), "{}", told(&failed));
        assert_eq!(server.files(), files(&[&NEW, &OTHER]), "no world is touched");

        fs::remove_dir(&file).unwrap();
        fs::rename(&away, &file).unwrap();
        let noted = server.shelf.list().unwrap().remove(0);
        assert_eq!(noted.record(), Some(&server.backup), "it may be tried");
        let why = noted.state.unwrap_err().why;
        let told =
            format!("could not be read when it was tried last: `{name}` cannot be read: Is a directory (os error 21)");
        assert_eq!(why, told);
        server.restore(&mut Disk::new(RealFs), 120).unwrap();
        assert_eq!(server.files(), files(&[&OLD, &OTHER]));
        assert_eq!(server.shelf.list().unwrap()[0].state, Ok(server.backup), "all of it was read");
    }
}

/// A repository that is read-only, on an otherwise healthy disk.
struct ReadOnlyShelf;

impl FsHook for ReadOnlyShelf {
    fn before(&mut self, what: &'static str, path: &Path) -> io::Result<()> {
        let changes = ["write", "remove"].contains(&what) && path.ends_with("unread.txt");
        if changes { Err(Errno::ROFS.into()) } else { Ok(()) }
    }
}

#[test]
fn unreadable_backup_verifies_later_despite_failed_note_write() {
    let server = Server::new(Contents::Worlds);
    let (file, away) =
        (server.shelf.directory(&server.backup.id).join("files.jsonl"), server.directory.path().join("away"));
    fs::rename(&file, &away).unwrap();
    fs::create_dir(&file).unwrap();
    let mut disk = Disk::new(ReadOnlyShelf);
    let failed = server.restore(&mut disk, 60).unwrap_err();
    assert!(matches!(failed, Error::Unread { .. }), "{}", told(&failed));
    let read = server.shelf.verify(&server.backup, &mut disk).expect("what could not be noted is no failure");
    assert!(matches!(read, Err(Damaged::Read { .. })));
    assert_eq!(server.shelf.list().unwrap()[0].state.as_ref(), Ok(&server.backup), "nothing was noted");

    server.shelf.verify(&server.backup, &mut Disk::new(RealFs)).unwrap().unwrap_err();
    fs::remove_dir(&file).unwrap();
    fs::rename(&away, &file).unwrap();
    server.restore(&mut disk, 120).unwrap();
    assert_eq!(server.files(), files(&[&OLD, &OTHER]));
    server.shelf.list().unwrap()[0].state.as_ref().expect_err("the note could not be taken away");
    server.shelf.verify(&server.backup, &mut Disk::new(RealFs)).unwrap().unwrap();
    assert_eq!(server.shelf.list().unwrap()[0].state, Ok(server.backup));
}

#[test]
fn readable_older_rollback_backup_outranks_unreadable_newer_one() {
    let server = Server::new(Contents::Worlds);
    let worlds = Worlds::read(server.volume.root()).unwrap();
    let take_at = |trigger, second| {
        let order = BackupSpec {
            data: server.volume.root(),
            worlds: &worlds,
            reading: LiveReads::Still,
            contents: Contents::Worlds,
            trigger,
            lock: Some("aaaaaaaa"),
            before: Some("bb"),
            request: None,
            after_damage: false,
        };
        take(&order, &server.shelf, &mut Disk::new(RealFs), || at(second)).unwrap()
    };
    let unread = take_at(Trigger::BeforeUpdate, 10);
    let hot = take_at(Trigger::Scheduled, 20);
    let list = server.shelf.directory(&unread.id).join("files.jsonl");
    fs::remove_file(&list).unwrap();
    fs::create_dir(&list).unwrap();
    server.shelf.verify(&unread, &mut Disk::new(RealFs)).unwrap().unwrap_err();
    let retention = Retention { max_count: 1, max_age: None };
    let gone = server.shelf.prune(retention, &[&hot.id], at(30), &mut Disk::new(RealFs)).unwrap();
    assert_eq!(gone, [unread.id]);
    let left: Vec<String> = server.shelf.list().unwrap().into_iter().map(|copy| copy.id).collect();
    assert_eq!(left, [server.backup.id.clone(), hot.id]);

    // It is now the only backup from before an update.
    server.shelf.mark_unread(&server.backup.id, &Damaged::Seal { what: "x" }, &mut Disk::new(RealFs));
    let gone = server.shelf.prune(retention, &[], at(30), &mut Disk::new(RealFs)).unwrap();
    assert!(gone.is_empty(), "{gone:?}");
}
