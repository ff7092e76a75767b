//! Edge (writes). Checks a restore in which each file operation fails once, as on a failing or full disk, and a temporarily unreadable backup.
//!
//! The process continues after each failure.

use std::fs;

use rustix::io::Errno;

use super::*;
use crate::staging::fs_ops::faulty::{FaultyFs, error_text};
use scheduler::backup_retention::Retention;

/// For each n, operation n fails while `part` of `server` is restored over the files in `existing`. At the end the files match the backup, and no
/// previous file is lost.
fn fail_everywhere(
    part: RestorePart,
    server: impl Fn() -> Server,
    existing: &BTreeMap<String, Vec<u8>>,
    restored: &BTreeMap<String, Vec<u8>>,
    displaced: &BTreeMap<String, Vec<u8>>,
) {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = server();
        let (steps, refused) = FaultyFs::fail_after(left, with);
        let mut disk = Disk::new(steps);
        let ended = server.restore_part(part, &mut disk, 60);
        if !refused.has_happened() {
            assert!(ended.is_ok() && left > 40, "only {left} operations pass through the hook");
            return;
        }
        let context = format!("when it could not {}", refused.operation());
        refused.assert_reported(&error_text(&ended.expect_err(&context)), with);
        let found = server.files();
        let is_whole = found == *existing || found == *restored;
        assert!(is_whole || server.volume.restore_journal_path().exists(), "mixed files without a journal, {context}");

        finish(&server.volume, &mut disk).expect("the disk works again");
        if server.files() == *existing {
            server.restore_part(part, &mut disk, 120).unwrap();
        }
        assert_eq!(server.files(), *restored, "at the second try, {context}");
        assert_eq!(server.displaced(), *displaced, "no file is lost, {context}");
        assert!(!server.volume.restore_journal_path().exists(), "{context}");
    }
}

#[test]
fn restore_on_failing_disk_leaves_old_worlds_or_journal() {
    let (existing, restored) = (files(&[&NEW, &OTHER]), files(&[&OLD, &OTHER]));
    fail_everywhere(RestorePart::Worlds, || Server::new(Contents::Worlds), &existing, &restored, &files(&[&NEW]));
}

#[test]
fn new_volume_restore_on_failing_disk_is_never_partial() {
    let server = || {
        let server = Server::new(Contents::Everything);
        server.replace_volume();
        server
    };
    let restored = files(&[&OLD, &OTHER, &NEW_VOLUME[..1]]);
    fail_everywhere(RestorePart::Everything, server, &files(&[&NEW_VOLUME]), &restored, &files(&[&NEW_VOLUME[1..]]));
}

#[test]
fn restore_on_failing_disk_never_leaves_different_floodgate_key() {
    let key: [(&str, &[u8]); 1] = [(FLOODGATE_KEY, b"of the network")];
    let server = || {
        let server = Server::backed_up_with(Contents::Everything, &[(FLOODGATE_KEY, b"of old")]);
        put(server.volume.root(), &key);
        server
    };
    let (existing, restored) = (files(&[&NEW, &OTHER, &key]), files(&[&OLD, &OTHER, &key]));
    fail_everywhere(RestorePart::Everything, server, &existing, &restored, &existing);
}

#[test]
fn temporarily_unreadable_backup_is_not_damaged_and_restores_later() {
    for name in ["archive.tar.gz", "files.jsonl"] {
        let server = Server::new(Contents::Worlds);
        let (file, away) =
            (server.repository.directory(&server.backup.id).join(name), server.directory.path().join("away"));
        fs::rename(&file, &away).unwrap();
        // Reading a folder as a file returns a system error, as on a failing disk.
        fs::create_dir(&file).unwrap();
        let failed = server.restore(&mut Disk::new(RealFs), 60).unwrap_err();
        assert!(
            error_text(&failed).contains(name) && !matches!(failed, Error::Damaged { .. }),
            "{}",
            error_text(&failed)
        );
        assert_eq!(server.files(), files(&[&NEW, &OTHER]), "no world may change");

        fs::remove_dir(&file).unwrap();
        fs::rename(&away, &file).unwrap();
        let noted = server.repository.list().unwrap().remove(0);
        assert_eq!(noted.record(), Some(&server.backup), "the backup can be retried");
        let why = noted.state.unwrap_err().why;
        let path = file.display();
        let message =
            format!("could not be read at the last attempt: `{name}` cannot be read: `{path}` is a directory");
        assert_eq!(why, message);
        server.restore(&mut Disk::new(RealFs), 120).unwrap();
        assert_eq!(server.files(), files(&[&OLD, &OTHER]));
        assert_eq!(server.repository.list().unwrap()[0].state, Ok(server.backup), "a full read clears the mark");
    }
}

/// A repository that is read-only, on an otherwise healthy disk.
struct ReadOnlyRepository;

impl FsHook for ReadOnlyRepository {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        let changes = ["write", "remove"].contains(&operation) && path.ends_with("unread.txt");
        if changes { Err(Errno::ROFS.into()) } else { Ok(()) }
    }
}

#[test]
fn unreadable_backup_verifies_later_despite_failed_note_write() {
    let server = Server::new(Contents::Worlds);
    let (file, away) =
        (server.repository.directory(&server.backup.id).join("files.jsonl"), server.directory.path().join("away"));
    fs::rename(&file, &away).unwrap();
    fs::create_dir(&file).unwrap();
    let mut disk = Disk::new(ReadOnlyRepository);
    let failed = server.restore(&mut disk, 60).unwrap_err();
    assert!(matches!(failed, Error::Unread { .. }), "{}", error_text(&failed));
    let read = server.repository.verify(&server.backup, &mut disk).expect("a failed mark is no failure");
    assert!(matches!(read, Err(Damaged::Read { .. })));
    assert_eq!(server.repository.list().unwrap()[0].state.as_ref(), Ok(&server.backup), "no mark was written");

    server.repository.verify(&server.backup, &mut Disk::new(RealFs)).unwrap().unwrap_err();
    fs::remove_dir(&file).unwrap();
    fs::rename(&away, &file).unwrap();
    server.restore(&mut disk, 120).unwrap();
    assert_eq!(server.files(), files(&[&OLD, &OTHER]));
    server.repository.list().unwrap()[0].state.as_ref().expect_err("the mark cannot be removed");
    server.repository.verify(&server.backup, &mut Disk::new(RealFs)).unwrap().unwrap();
    assert_eq!(server.repository.list().unwrap()[0].state, Ok(server.backup));
}

#[test]
fn readable_older_rollback_backup_outranks_unreadable_newer_one() {
    let server = Server::new(Contents::Worlds);
    let worlds = Worlds::read(server.volume.root()).unwrap();
    let take_at = |trigger, second| {
        let spec = BackupSpec {
            data: server.volume.root(),
            worlds: &worlds,
            reading: LiveReads::Offline,
            contents: Contents::Worlds,
            trigger,
            lock: Some("aaaaaaaa"),
            before: Some("bb"),
            request: None,
            after_damage: false,
        };
        create_backup(&spec, &server.repository, &mut Disk::new(RealFs), || at(second)).unwrap()
    };
    let unread = take_at(Trigger::BeforeUpdate, 10);
    let online = take_at(Trigger::Scheduled, 20);
    let list = server.repository.directory(&unread.id).join("files.jsonl");
    fs::remove_file(&list).unwrap();
    fs::create_dir(&list).unwrap();
    server.repository.verify(&unread, &mut Disk::new(RealFs)).unwrap().unwrap_err();
    let retention = Retention { max_count: 1, max_age: None, keeps_older: true };
    let pruned = server.repository.prune(retention, &[&online.id], at(30), &mut Disk::new(RealFs)).unwrap();
    assert_eq!(pruned, [unread.id]);
    let left: Vec<String> = server.repository.list().unwrap().into_iter().map(|stored| stored.id).collect();
    assert_eq!(left, [server.backup.id.clone(), online.id]);

    // It is now the only backup from before an update.
    server.repository.mark_unread(&server.backup.id, &Damaged::Seal { subject: "x" }, &mut Disk::new(RealFs));
    let pruned = server.repository.prune(retention, &[], at(30), &mut Disk::new(RealFs)).unwrap();
    assert!(pruned.is_empty(), "{pruned:?}");
}
