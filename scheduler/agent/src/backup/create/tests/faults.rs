//! Edge (writes). Checks faults while a backup is taken, kept or read: power, disk, other writers, and malicious archives.

use rustix::io::Errno;

use super::*;
use crate::staging::fs_ops::faulty::{FaultyFs, error_text};

/// Simulates a power cut after `left` operations. Files that were written and not synced to disk by then are empty afterwards.
struct Power {
    left: usize,
    unsynced: Rc<RefCell<BTreeSet<PathBuf>>>,
    syncing: Option<PathBuf>,
}

impl FsHook for Power {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        if operation.starts_with("read") {
            // Reads change no state that a power cut could leave half done.
            return Ok(());
        }
        // The operation before this one has ended.
        if let Some(synced) = self.syncing.take() {
            self.unsynced.borrow_mut().remove(&synced);
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power went"))?;
        match operation {
            "create" | "write" => drop(self.unsynced.borrow_mut().insert(path.to_owned())),
            "flush" => self.syncing = Some(path.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn backup_interrupted_at_any_operation_leaves_no_partial_backup() {
    for left in 0.. {
        let server = Server::new(&NEW_LAYOUT);
        server.put("survival/dimensions/minecraft/overworld/region/r.1.0.mca", &noise(300_000));
        let first = server.create(Contents::Worlds);
        let unsynced = Rc::default();
        let power = Power { left, unsynced: Rc::clone(&unsynced), syncing: None };
        let ended = server.create_with(Contents::Worlds, 60, &mut Disk::new(power)).is_ok();
        for path_lost in unsynced.borrow().iter() {
            let published = PathBuf::from(path_lost.to_str().unwrap().replace(PARTIAL, ""));
            for path in [path_lost.clone(), published, path_lost.with_file_name(RECORD)] {
                if path.is_file() {
                    fs::write(path, b"").unwrap();
                }
            }
        }
        let good = server.good();
        assert_eq!(good[0], first.id, "after {left} operations");
        assert!(!ended || good.len() == 2, "a backup that was reported as taken must exist");
        assert_eq!(
            server.repository.list().unwrap().len(),
            good.len(),
            "the repository has no damaged backup, after {left} operations"
        );

        let again = server.create_with(Contents::Worlds, 120, &mut Disk::new(RealFs)).unwrap();
        assert!(server.good().contains(&again.id), "resumed after {left} operations");
        let names = fs::read_dir(server.repository.root()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_str().unwrap().starts_with('.')), "no unfinished files");
        if ended {
            assert!(left > 15, "only {left} operations pass through the hook");
            return;
        }
    }
}

#[test]
fn backup_on_failing_disk_names_file_and_then_succeeds() {
    for left in 0.. {
        let with = if left % 2 == 0 { Errno::IO } else { Errno::NOSPC };
        let server = Server::new(&NEW_LAYOUT);
        let before = files_below(&server.data());
        let first = server.create(Contents::Worlds);
        let (steps, refused) = FaultyFs::fail_after(left, with);
        let mut disk = Disk::new(steps);
        let taken = server.create_with(Contents::Worlds, 60, &mut disk);
        if !refused.has_happened() {
            assert!(taken.is_ok() && left > 15, "only {left} operations pass through the hook");
            return;
        }
        let context = format!("when it could not {}", refused.operation());
        refused.assert_reported(&error_text(&taken.expect_err(&context)), with);
        let good = server.good();
        assert_eq!(good[0], first.id, "{context}");
        assert_eq!(server.repository.list().unwrap().len(), good.len(), "no backup may be damaged, {context}");
        assert_eq!(files_below(&server.data()), before, "{context}");

        let again = server.create_with(Contents::Worlds, 120, &mut disk).expect("the disk works again");
        assert!(server.good().contains(&again.id), "at the second try, {context}");
        let names = fs::read_dir(server.repository.root()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_str().unwrap().starts_with('.')), "no leftovers, {context}");
    }
}

#[test]
fn interrupted_prune_leaves_whole_backups_and_is_resumed_later() {
    for left in 0.. {
        let server = Server::new(&NEW_LAYOUT);
        let taken = [0, 60, 120].map(|at| server.create_with(Contents::Worlds, at, &mut Disk::new(RealFs)).unwrap().id);
        let retention = Retention { max_count: 1, max_age: None, keeps_older: true };
        let power = Power { left, unsynced: Rc::default(), syncing: None };
        let ended = server.repository.prune(retention, &[], Timestamp::MAX, &mut Disk::new(power)).is_ok();
        let good = server.good();
        assert_eq!(good.last(), taken.last(), "after {left} operations");
        assert_eq!(server.repository.list().unwrap().len(), good.len(), "no partial backup, after {left} operations");
        server.repository.remove_unfinished(&mut Disk::new(RealFs)).unwrap();
        server.repository.prune(retention, &[], Timestamp::MAX, &mut Disk::new(RealFs)).unwrap();
        assert_eq!(server.good(), [taken[2].clone()]);
        assert_eq!(fs::read_dir(server.repository.root()).unwrap().count(), 1);
        if ended {
            assert_eq!(left, 6);
            return;
        }
    }
}

#[test]
fn changed_byte_in_backup_is_detected_and_remembered() {
    let server = Server::new(&NEW_LAYOUT);
    let backup = server.create(Contents::Worlds);
    for file in [ARCHIVE, LIST] {
        let path = server.repository.directory(&backup.id).join(file);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            fs::write(&path, &bytes).unwrap();
            let read = read_whole(&server.repository, &backup);
            assert!(read.is_err(), "byte {at} of {file}");
        }
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            let read = read_whole(&server.repository, &backup);
            assert!(read.is_err(), "{length} bytes of {file}");
        }
        fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert!(read_whole(&server.repository, &backup).is_err());
        fs::write(&path, &whole).unwrap();
    }
    let path = server.repository.directory(&backup.id).join(ARCHIVE);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(server.repository.list().unwrap()[0].state.as_ref(), Ok(&backup), "damage is unknown before a read");
    let into = server.directory.path().join("restored");
    let failed = unpack(&server.repository, &backup, &into, &mut Disk::new(RealFs)).unwrap_err();
    assert!(matches!(failed, restore::Error::Damaged { .. }), "{failed:?}");
    assert!(server.repository.list().unwrap()[0].state.is_err(), "a damaged backup does not count");
}

#[test]
fn full_disk_during_unpack_does_not_mark_backup_damaged() {
    let server = Server::new(&NEW_LAYOUT);
    let backup = server.create(Contents::Worlds);
    let into = server.directory.path().join("restored");
    for left in 0..12 {
        let power = Power { left, unsynced: Rc::default(), syncing: None };
        let failed = unpack(&server.repository, &backup, &into, &mut Disk::new(power)).unwrap_err();
        assert!(matches!(failed, restore::Error::Disk(_)), "{failed:?}");
    }
    assert!(server.repository.list().unwrap()[0].state.is_ok());
    assert_eq!(only_files(&server.restored(&backup)), files(&NEW_LAYOUT), "partial files are removed first");
}

/// A forged backup in the repository: archive, list and record agree with each other.
fn forged(server: &Server, entries: &[(&[u8], tar::EntryType)]) -> Backup {
    let honest = server.create(Contents::Worlds);
    let directory = server.repository.directory(&honest.id);
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut list = Vec::new();
    for (name, kind) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        header.set_entry_type(*kind);
        header.set_link_name("/etc/passwd").unwrap();
        header.set_mode(0o777);
        header.set_mtime(0);
        let content: &[u8] = if kind.is_file() { b"x" } else { b"" };
        header.set_size(u64::try_from(content.len()).unwrap());
        header.set_cksum();
        archive.append(&header, content).unwrap();
        let x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        let name = escape_path(name);
        if kind.is_file() {
            writeln!(list, r#"{{"path":"{name}","size":1,"sha256":"{x}"}}"#).unwrap();
        } else {
            writeln!(list, r#"{{"path":"{name}"}}"#).unwrap();
        }
    }
    let archive = archive.into_inner().unwrap().finish().unwrap();
    fs::write(directory.join(ARCHIVE), &archive).unwrap();
    fs::write(directory.join(LIST), &list).unwrap();
    let files = entries.iter().filter(|(_, kind)| kind.is_file()).count();
    let files = u64::try_from(files).unwrap();
    let hash =
        |name: &str| Algorithm::Sha256.hash(fs::File::open(directory.join(name)).unwrap()).unwrap().hex().to_owned();
    let seal = Checksum {
        files,
        bytes: files,
        archive_bytes: u64::try_from(archive.len()).unwrap(),
        archive_sha256: hash(ARCHIVE),
        list_sha256: hash(LIST),
    };
    Backup { seal, ..honest }
}

#[test]
fn malicious_archive_writes_no_file_outside_its_directory() {
    use tar::EntryType as Kind;
    let hostile: [&[(&[u8], Kind)]; 9] = [
        &[(b"../evil", Kind::Regular)],
        &[(b"world/../../evil", Kind::Regular)],
        &[(b"/evil", Kind::Regular)],
        &[(b".", Kind::Regular)],
        &[(b".nightshift/manifest.json", Kind::Regular)],
        &[(b"world", Kind::Symlink), (b"world/evil", Kind::Regular)],
        &[(b"world", Kind::Link)],
        &[(b"world", Kind::Char)],
        &[(b"world", Kind::Fifo)],
    ];
    for entries in hostile {
        let server = Server::new(&NEW_LAYOUT);
        let backup = forged(&server, entries);
        let before = files_below(server.directory.path());
        let into = server.directory.path().join("in/to");
        let failed = unpack(&server.repository, &backup, &into, &mut Disk::new(RealFs)).unwrap_err();
        assert!(
            matches!(failed, restore::Error::Damaged { source: Damaged::Entry { .. }, .. }),
            "{entries:?}: {failed:?}"
        );
        let after = files_below(server.directory.path());
        let new = after.keys().filter(|path| !before.contains_key(*path) && !path.ends_with("damaged.txt"));
        assert_eq!(new.collect::<Vec<_>>(), ["in/", "in/to/"], "{entries:?}");
    }
    let server = Server::new(&NEW_LAYOUT);
    let twice = forged(&server, &[(b"world/a", Kind::Regular), (b"world/a", Kind::Regular)]);
    let into = server.directory.path().join("in/to");
    assert!(unpack(&server.repository, &twice, &into, &mut Disk::new(RealFs)).is_err(), "no file is overwritten");
    let harmless = forged(&Server::new(&NEW_LAYOUT), &[(b"world/a", Kind::Regular)]);
    assert_eq!(harmless.seal.files, 1);
}

#[test]
fn file_changing_size_while_read_fails_the_backup() {
    struct Meddles {
        file: PathBuf,
        length: u64,
    }
    impl FsHook for Meddles {
        fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
            // After the size was read, before the content is read: the first block of the archive is written.
            if operation == "write" && path.ends_with(ARCHIVE) {
                fs::File::options().write(true).open(&self.file)?.set_len(self.length)?;
            }
            Ok(())
        }
    }
    for length in [10, 900_000] {
        let server = Server::new(&NEW_LAYOUT);
        server.put("survival/data/a.dat", &noise(400_000));
        server.put("survival/data/b.dat", &noise(400_000));
        let meddles = Meddles { file: server.data().join("survival/data/a.dat"), length };
        let failed = server.create_with(Contents::Worlds, 0, &mut Disk::new(meddles)).unwrap_err();
        assert!(matches!(failed, Error::Write(WriteError::Entry { .. })), "{failed:?}");
        assert!(server.repository.list().unwrap().is_empty());
    }
}

#[test]
fn disk_that_stores_other_bytes_fails_the_backup() {
    struct Rots;
    impl FsHook for Rots {
        fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
            if operation == "flush" && path.ends_with(LIST) {
                let archive = path.with_file_name(ARCHIVE);
                let mut bytes = fs::read(&archive)?;
                bytes[40] ^= 1;
                fs::write(archive, bytes)?;
            }
            Ok(())
        }
    }
    let server = Server::new(&NEW_LAYOUT);
    let failed = server.create_with(Contents::Worlds, 0, &mut Disk::new(Rots)).unwrap_err();
    assert!(matches!(failed, Error::Unverified(_)), "{failed:?}");
    assert!(server.repository.list().unwrap().is_empty());
}

#[test]
fn repository_with_unrelated_files_is_readable_and_keeps_them() {
    let server = Server::new(&NEW_LAYOUT);
    let backup = server.create(Contents::Worlds);
    fs::create_dir(server.repository.root().join("lost+found")).unwrap();
    fs::write(server.repository.root().join("notes.txt"), b"x").unwrap();
    fs::create_dir(server.repository.root().join("20260101T000000Z-none")).unwrap();
    let states: Vec<bool> = server.repository.list().unwrap().iter().map(|stored| stored.state.is_ok()).collect();
    assert_eq!(states, [false, true], "a directory without a record does not count");
    let retention = Retention { max_count: 2, max_age: None, keeps_older: true };
    let pruned = server.repository.prune(retention, &[], Timestamp::MAX, &mut Disk::new(RealFs)).unwrap();
    assert!(pruned.is_empty());
    assert_eq!(server.good(), [backup.id]);
}
