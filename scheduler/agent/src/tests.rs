//! Edge (writes). Fuzz tests for the bytes that the agent reads from the server and its volume. Both are written by plugins.

use std::fs;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde::Serialize;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;

use crate::backup::create::{BackupSpec, create_backup};
use crate::backup::repository::BackupRepository;
use crate::backup::{Backup, LiveReads};
use crate::rcon::frame_validator::PacketGuard;
use crate::rcon::{RconPassword, responses};
use crate::server_properties::{self, Rcon};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::world::Worlds;
use crate::{server_list_ping, server_log};
use agent_api::{Contents, Trigger};
use mutate::fuzz_targets;

#[path = "../../../resolver/tests/support/mutate.rs"]
mod mutate;

// One line for each parser. `dev/fuzz` runs each for a minute and more.
fuzz_targets! {
    fuzz_rcon_frames([packet(b"There are 0"), packet("\u{a7}aDemo".as_bytes())], rcon_frames);
    fuzz_rcon_answers([PLUGINS.into(), ONLINE.into()], rcon_answers);
    fuzz_server_list_ping([status(STATUS)], server_list_ping);
    fuzz_level_dat([gzip(&nbt())], level_dat);
    fuzz_level_dat_content([nbt()], |bytes| level_dat(&gzip(bytes)));
    fuzz_server_properties([PROPERTIES.into()], server_properties);
    fuzz_server_log([LOG.into()], server_log);
    fuzz_backup_archive([BackupOnDisk::new().archive()], {
        let backup = BackupOnDisk::new();
        move |bytes| backup.verify_archive(&gzip(bytes))
    });
    fuzz_backup_list([BackupOnDisk::new().list()], {
        let backup = BackupOnDisk::new();
        move |bytes| backup.verify_list(bytes)
    });
}

const PLUGINS: &str = "\u{a7}fServer Plugins (2):\nBukkit Plugins (2):\n \u{a7}8- \u{a7}aDemo\u{a7}f, \u{a7}cRed\n";
const ONLINE: &str = "There are 2 of a max of 20 players online: Bob, Eve";
const STATUS: &str = r#"{"version":{"name":"Paper 1.21.10","protocol":773},"players":{"max":20,"online":7}}"#;
const PROPERTIES: &str = "#comment\nmotd=a \\u00a7 b\nlevel-name=my\\ world\nrcon.password : old\nenable-rcon=false\n";
const LOG: &str = "\
[12:00:04] [Server thread/INFO]: Starting minecraft server version 1.21.10
[12:00:05] [Server thread/INFO]: This server is running Paper version 1.21.10-130-main@8043efd
[12:00:05] [Server thread/INFO]: [Demo] Loading server plugin Demo v2.0
[12:00:06] [Server thread/INFO]: [Demo] Enabling Demo v2.0*
[12:00:09] [Server thread/INFO]: Done (5.331s)!
[12:10:09] [Server thread/INFO]: Stopping server
[12:10:10] [Server thread/INFO]: ThreadedAnvilChunkStorage: All dimensions are saved
";

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn packet(body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(10 + body.len()).unwrap();
    [&length.to_le_bytes()[..], &[1, 0, 0, 0], &[0, 0, 0, 0], body, &[0, 0]].concat()
}

/// The `rcon` crate gets only whole packets with valid text, because it panics at others.
fn rcon_frames(bytes: &[u8]) -> bool {
    let mut passed = Vec::new();
    let result = block_on(PacketGuard::new(bytes).read_to_end(&mut passed));
    let mut rest = passed.as_slice();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_le_bytes(*length)).unwrap();
        let (packet, next) = after.split_at(length);
        assert!(packet.ends_with(&[0, 0]), "{packet:?}");
        std::str::from_utf8(&packet[8..length - 2]).unwrap();
        rest = next;
    }
    assert!(rest.is_empty(), "{rest:?}");
    result.is_ok()
}

fn rcon_answers(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    assert!(!responses::strip_colours(&text).contains('\u{a7}') || text.ends_with('\u{a7}'), "{text:?}");
    let (is_saving, has_dimension) = (responses::saving(&text).is_some(), responses::has_dimension(&text).is_some());
    let is_online = responses::online(&text) != responses::Online::Unknown;
    is_saving || has_dimension || is_online || responses::plugins(&text).is_some()
}

fn status(json: &str) -> Vec<u8> {
    let length = u8::try_from(json.len()).unwrap();
    assert!(length < 126, "the length must fit into one byte");
    [&[length + 2, 0, length], json.as_bytes()].concat()
}

fn server_list_ping(mut bytes: &[u8]) -> bool {
    block_on(server_list_ping::read_answer(&mut bytes)).is_ok()
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Level {
    data: Data,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    level_name: &'static str,
    version: Version,
    #[serde(rename = "DataPacks")]
    packs: Packs,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    id: i32,
    name: &'static str,
    snapshot: i8,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Packs {
    enabled: Vec<&'static str>,
}

fn nbt() -> Vec<u8> {
    let version = Version { id: 4556, name: "1.21.10", snapshot: 0 };
    let packs = Packs { enabled: vec!["vanilla", "file/skylands"] };
    fastnbt::to_bytes(&Level { data: Data { level_name: "world", version, packs } }).unwrap()
}

/// A server's directory with this file.
fn directory_with(path: &str, bytes: &[u8]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    directory
}

fn level_dat(bytes: &[u8]) -> bool {
    let directory = directory_with("world/level.dat", bytes);
    Worlds::read(directory.path()).unwrap().floor().is_some()
}

/// A second write changes nothing.
fn server_properties(bytes: &[u8]) -> bool {
    let directory = directory_with("server.properties", bytes);
    let password = RconPassword::new("secret");
    let write = || {
        server_properties::write(directory.path(), Rcon { enabled: true, port: 25575, password: &password }).unwrap();
        fs::read(directory.path().join("server.properties")).unwrap()
    };
    assert_eq!(write(), write());
    server_properties::level_name(directory.path()).is_ok_and(|name| !name.is_empty())
}

fn server_log(bytes: &[u8]) -> bool {
    let directory = directory_with("logs/latest.log", bytes);
    server_log::logged_saves(directory.path()).unwrap();
    server_log::read(directory.path()).unwrap().is_some()
}

/// A backup whose files are replaced.
struct BackupOnDisk {
    _directory: TempDir,
    repository: BackupRepository,
    backup: Backup,
}

impl BackupOnDisk {
    fn new() -> Self {
        let directory = directory_with("data/world/level.dat", &gzip(&nbt()));
        let data = directory.path().join("data");
        fs::write(data.join("world/region.mca"), "chunks").unwrap();
        let repository = BackupRepository::new(directory.path().join("copies"));
        let spec = BackupSpec {
            data: &data,
            worlds: &Worlds::read(&data).unwrap(),
            reading: LiveReads::Offline,
            contents: Contents::Worlds,
            trigger: Trigger::BeforeUpdate,
            lock: None,
            before: None,
            request: None,
            after_damage: false,
        };
        let backup = create_backup(&spec, &repository, &mut Disk::new(RealFs), || Timestamp::UNIX_EPOCH).unwrap();
        Self { _directory: directory, repository, backup }
    }

    fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.repository.directory(&self.backup.id).join(file)).unwrap()
    }

    /// The archive without its compression, so that mutations reach the reader of the archive.
    fn archive(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        GzDecoder::new(self.read("archive.tar.gz").as_slice()).read_to_end(&mut archive).unwrap();
        archive
    }

    fn list(&self) -> Vec<u8> {
        self.read("files.jsonl")
    }

    /// Whether the backup could be verified. The result is always "damaged" for an archive that is not the original.
    fn verify(&self) -> bool {
        self.repository.verify(&self.backup, &mut Disk::new(RealFs)).is_ok()
    }

    fn verify_archive(&self, bytes: &[u8]) -> bool {
        fs::write(self.repository.directory(&self.backup.id).join("archive.tar.gz"), bytes).unwrap();
        self.verify()
    }

    fn verify_list(&self, bytes: &[u8]) -> bool {
        fs::write(self.repository.directory(&self.backup.id).join("files.jsonl"), bytes).unwrap();
        self.verify()
    }
}
