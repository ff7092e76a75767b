//! Edge (writes). Checks online backups: plugins write while files are read.

use super::*;

/// Changes by another process, right before a chunk of a file is read.
struct Meanwhile<F>(F);

impl<F: FnMut(&Path)> FsHook for Meanwhile<F> {
    fn before_operation(&mut self, operation: &'static str, path: &Path) -> io::Result<()> {
        if operation == "read" {
            (self.0)(path);
        }
        Ok(())
    }
}

const SIZE: usize = 300_000;
const SHORT: u64 = 200_000;

/// A server with four files that are written to while they are read, and two that are removed before.
fn busy() -> (Server, impl FnMut(&Path)) {
    let server = Server::new(&NEW_LAYOUT);
    for name in ["a-first", "grows", "rests", "rewritten", "shrinks"] {
        server.put(&format!("plugins/Log/{name}"), &noise(SIZE));
    }
    server.put("plugins/Log/vanishes", b"x");
    server.put("plugins/Log/vanishes-too/file", b"x");
    server.put("survival/players/uuid-1.tmp", b"x");
    let data = server.data();
    let mut pieces: BTreeMap<String, usize> = BTreeMap::new();
    let meanwhile = move |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let piece = pieces.entry(name.clone()).or_default();
        *piece += 1;
        let open = || fs::File::options().write(true).open(path).unwrap();
        match (name.as_str(), *piece) {
            ("steve.dat", 1) => fs::remove_file(data.join("survival/players/uuid-1.tmp")).unwrap_or_default(),
            ("a-first", 1) => {
                fs::remove_file(data.join("plugins/Log/vanishes")).unwrap();
                fs::remove_dir_all(data.join("plugins/Log/vanishes-too")).unwrap();
            }
            ("grows", 2) => open().set_len(2 * u64::try_from(SIZE).unwrap()).unwrap(),
            ("shrinks", 2) => open().set_len(SHORT).unwrap(),
            ("rewritten", 2) => open().write_all(b"y").unwrap(),
            _ => {}
        }
    };
    (server, meanwhile)
}

#[test]
fn online_backup_succeeds_and_names_changed_and_missing_files() {
    let (server, meanwhile) = busy();
    let mut disk = Disk::new(Meanwhile(meanwhile));
    let backup = server.create_as(Contents::Everything, Trigger::Scheduled, 0, &mut disk).unwrap();
    assert_eq!(backup.changed, ["plugins/Log/grows", "plugins/Log/rewritten", "plugins/Log/shrinks"]);
    let removed = ["survival/players/uuid-1.tmp", "plugins/Log/vanishes", "plugins/Log/vanishes-too"];
    assert_eq!(backup.left_out[..2], removed[..2]);
    assert!(backup.left_out.iter().any(|name| name.starts_with(removed[2])), "{:?}", backup.left_out);
    assert_eq!((backup.trigger, backup.request.as_deref()), (Trigger::Scheduled, Some("asked-1")));

    let restored = server.restored(&backup);
    let mut filled = noise(SIZE);
    filled[usize::try_from(SHORT).unwrap()..].fill(0);
    assert!(restored["plugins/Log/shrinks"] == filled, "missing bytes are zeros");
    assert!(restored["plugins/Log/grows"] == noise(SIZE), "bytes appended later are left out");
    assert!(restored["plugins/Log/rests"] == noise(SIZE));
    assert_eq!(server.good(), [backup.id]);
}

#[test]
fn offline_backup_fails_while_a_process_writes_files() {
    for name in ["grows", "shrinks"] {
        let (server, mut meanwhile) = busy();
        let only = |path: &Path| {
            if path.ends_with(name) {
                meanwhile(path);
            }
        };
        let failed = server.create_with(Contents::Everything, 0, &mut Disk::new(Meanwhile(only))).unwrap_err();
        let why = format!("{failed:?}");
        assert!(why.contains(name) && why.contains("something writes to it"), "{why}");
        assert!(server.repository.list().unwrap().is_empty());
    }
}

/// Refuses every step of this kind.
struct RefusingHook(&'static str);

impl FsHook for RefusingHook {
    fn before_operation(&mut self, operation: &'static str, _path: &Path) -> io::Result<()> {
        if operation == self.0 { Err(io::Error::other("told to end")) } else { Ok(()) }
    }
}

#[test]
fn backup_stops_at_next_chunk_when_cancelled() {
    for operation in ["read", "read back"] {
        let server = Server::new(&NEW_LAYOUT);
        let mut disk = Disk::new(RefusingHook(operation));
        let failed = server.create_as(Contents::Worlds, Trigger::Scheduled, 0, &mut disk).unwrap_err();
        assert!(format!("{failed:?}").contains("told to end"), "{failed:?}");
        assert!(server.repository.list().unwrap().is_empty());
        server.repository.remove_unfinished(&mut disk).unwrap();
        assert_eq!(fs::read_dir(server.repository.root()).unwrap().count(), 0);
    }
}

#[test]
fn world_removed_before_reading_fails_its_backup() {
    let server = Server::new(&OLD_LAYOUT);
    let data = server.data();
    let worlds = Worlds::read(&data).unwrap();
    fs::remove_dir_all(data.join("world_nether")).unwrap();
    let spec = BackupSpec {
        data: &data,
        worlds: &worlds,
        reading: LiveReads::Online,
        contents: Contents::Worlds,
        trigger: Trigger::OnDemand,
        lock: None,
        before: None,
        request: Some("asked-1"),
        after_damage: false,
    };
    let failed =
        create_backup(&spec, &server.repository, &mut Disk::new(RealFs), || Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(failed.to_string().contains("world_nether"), "{failed}");
}

#[test]
fn online_backups_never_displace_pre_update_backup() {
    let server = Server::new(&NEW_LAYOUT);
    let offline = server.create(Contents::Worlds);
    let retention = Retention { max_count: 3, max_age: Some(jiff::SignedDuration::from_secs(90)), keeps_older: true };
    let mut online = Vec::new();
    for number in 1..=20 {
        // Some backups are taken in the same second.
        let number = number / 2;
        let mut disk = Disk::new(RealFs);
        let backup = server.create_as(Contents::Everything, Trigger::Scheduled, 30 * number, &mut disk).unwrap();
        server.repository.prune(retention, &[&backup.id], backup.completed_at, &mut disk).unwrap();
        online.push(backup.id);
    }
    assert_eq!(server.good(), [&[offline.id], &online[17..]].concat());
}
