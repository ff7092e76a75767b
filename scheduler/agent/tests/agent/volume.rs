//! Edge (writes). Provides the files of a lock, a web server for them, and the agent's binary as init container.

use std::fs;
use std::future::IntoFuture;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use agent::backup::create::{BackupSpec, create_backup};
use agent::backup::repository::BackupRepository;
use agent::backup::{Backup, LiveReads};
use agent::clock;
use agent::staging::fs_ops::{Disk, RealFs};
use agent::world::Worlds;
use agent_api::restore::{NEW_VOLUME_KEY, USER_RESTORE_KEY};
use agent_api::signed::{Document, Signer, signature_key};
use agent_api::{Contents, Trigger};
use agent_api::{File, FileHash, FileSet};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::fake_server::PASSWORD;

pub(crate) fn jar(entry: &str, content: &str) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.start_file(entry, zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(content.as_bytes()).unwrap();
    writer.finish().unwrap().into_inner()
}

pub(crate) fn file(path: &str, plugin: Option<&str>, content: &[u8], url: String) -> File {
    let hash = FileHash(format!("sha256:{}", hex::encode(Sha256::digest(content))));
    File {
        path: path.into(),
        hash,
        size: Some(content.len() as u64),
        url,
        plugin: plugin.map(str::to_owned),
        provides: Vec::new(),
    }
}

/// A web server that serves the files of a directory by name, and by their hash like the operator's store. Returns its address.
pub(crate) async fn serve(directory: &Path) -> String {
    let directory = directory.to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let give = move |uri: axum::http::Uri| async move {
        let named = fs::read(directory.join(uri.path().trim_start_matches('/'))).ok();
        let stored = || uri.path().strip_prefix("/files/sha256/").and_then(|hex| file_of_hash(&directory, hex));
        named.or_else(stored).ok_or(axum::http::StatusCode::NOT_FOUND)
    };
    tokio::spawn(axum::serve(listener, axum::Router::new().fallback(give)).into_future());
    format!("http://{address}")
}

fn file_of_hash(directory: &Path, digest: &str) -> Option<Vec<u8>> {
    let files = fs::read_dir(directory).ok()?.filter_map(|entry| fs::read(entry.ok()?.path()).ok());
    files.into_iter().find(|content| hex::encode(Sha256::digest(content)) == digest)
}

pub(crate) fn set(url: &str, lock: char) -> (FileSet, Vec<u8>, Vec<u8>) {
    let (server, demo) = (jar("version.json", "{}"), jar("plugin.yml", "name: Demo\nversion: 1\nmain: a.B\n"));
    let set = FileSet {
        lock: lock.to_string().repeat(64),
        minecraft: "1.21.10".into(),
        build: 130,
        data_version: Some(4556),
        server: file(".nightshift/server/paper-1.21.10-130.jar", None, &server, format!("{url}/paper.jar")),
        support: vec![],
        plugins: vec![file("plugins/Demo.jar", Some("Demo"), &demo, format!("{url}/demo.jar"))],
    };
    (set, server, demo)
}

/// The version set of lock `a`, with its files behind a URL, for as long as the directory exists.
pub(crate) async fn served_set() -> (TempDir, String, FileSet) {
    let web = tempfile::tempdir().unwrap();
    let url = serve(web.path()).await;
    let (set, server, demo) = set(&url, 'a');
    fs::write(web.path().join("paper.jar"), &server).unwrap();
    fs::write(web.path().join("demo.jar"), &demo).unwrap();
    (web, url, set)
}

/// The variable by which dev/mutations breaks a function. A process that a test starts needs it as well.
pub(crate) fn broken_by_mutation() -> impl Iterator<Item = (String, String)> {
    std::env::vars().filter(|(name, _)| name == "NIGHTSHIFT_BROKEN")
}

/// A process that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The operator's key for a server.
pub(crate) fn signer(server: &str) -> Signer {
    Signer::from_hex(server, &"1f".repeat(32)).unwrap()
}

pub(crate) struct Init {
    pub(crate) data: TempDir,
    pub(crate) shared: TempDir,
    pub(crate) files: tempfile::NamedTempFile,
    pub(crate) termination_log: tempfile::NamedTempFile,
    /// Additional variables of its container.
    pub(crate) more: Vec<(&'static str, String)>,
    /// The digest in the pod template, if it is not that of `files`, and whether the operator has signed the requests.
    pub(crate) files_digest: Option<String>,
    pub(crate) is_signed: bool,
}

impl Init {
    pub(crate) fn new(set: &FileSet) -> Self {
        Self::with_volume(tempfile::tempdir().unwrap(), set)
    }

    /// The init container of a pod on a volume.
    pub(crate) fn with_volume(data: TempDir, set: &FileSet) -> Self {
        let files = tempfile::NamedTempFile::new().unwrap();
        fs::write(files.path(), serde_json::to_vec(set).unwrap()).unwrap();
        let shared = tempfile::tempdir().unwrap();
        let termination_log = tempfile::NamedTempFile::new().unwrap();
        Self { data, shared, files, termination_log, more: vec![], files_digest: None, is_signed: true }
    }

    /// The set in its `ConfigMap`. A test may have replaced the file, for example by a named pipe, which would block here.
    fn mounted_set(&self) -> Option<FileSet> {
        let is_file = fs::metadata(self.files.path()).unwrap().is_file();
        is_file.then(|| serde_json::from_slice(&fs::read(self.files.path()).unwrap()).ok())?
    }

    /// Signs the mounted requests as the operator does.
    fn sign_requests(&self) {
        let mounted = self.more.iter().rev().find(|(name, _)| *name == "NIGHTSHIFT_RESTORE_ORDER");
        let Some(rollback) = mounted.map(|(_, path)| Path::new(path)).filter(|_| self.is_signed) else { return };
        for (name, kind) in [
            ("restore.json", Document::Rollback),
            (USER_RESTORE_KEY, Document::UserRestore),
            (NEW_VOLUME_KEY, Document::NewVolume),
        ] {
            if let Ok(content) = fs::read(rollback.with_file_name(name)) {
                let signature = signer("games/lobby").sign(kind, &content);
                fs::write(rollback.with_file_name(signature_key(name)), signature).unwrap();
            }
        }
    }

    pub(crate) fn spawn(&self) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
        command.arg("init").env_clear().envs(broken_by_mutation()).stdout(Stdio::piped());
        for (name, path) in [
            ("NIGHTSHIFT_DATA", self.data.path()),
            ("NIGHTSHIFT_SHARED", self.shared.path()),
            ("NIGHTSHIFT_FILES", self.files.path()),
        ] {
            command.env(name, path);
        }
        self.sign_requests();
        let set = self.mounted_set();
        let digest = self.files_digest.clone().or_else(|| Some(set.as_ref()?.digest())).unwrap_or_default();
        command.env("NIGHTSHIFT_FILES_DIGEST", digest);
        command.env("NIGHTSHIFT_SIGNED_BY", signer("games/lobby").verifier().to_string());
        // The operator's store is at the address of the source.
        let source = set.and_then(|set| Some(set.server.url.rsplit_once('/')?.0.to_owned()));
        command.env("NIGHTSHIFT_STORE_URL", source.unwrap_or_default());
        command.envs(self.more.iter().map(|(name, value)| (name, value)));
        command.env("NIGHTSHIFT_RCON_PASSWORD", PASSWORD).arg("--termination-log").arg(self.termination_log.path());
        Running(command.spawn().unwrap())
    }

    pub(crate) fn run(&self) -> ExitStatus {
        let mut running = self.spawn();
        let mut output = String::new();
        running.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert!(!output.contains(PASSWORD));
        running.0.wait().unwrap()
    }

    pub(crate) fn put(&self, path: &str, content: &[u8]) {
        let path = self.data.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A backup of the server on this volume, where version set `a` ran, as if a user had requested it.
pub(crate) fn back_up(init: &Init, repository: &BackupRepository, contents: Contents) -> Backup {
    let spec = BackupSpec {
        data: init.data.path(),
        worlds: &Worlds::read(init.data.path()).unwrap(),
        reading: LiveReads::Online,
        contents,
        trigger: Trigger::OnDemand,
        lock: Some(&"a".repeat(64)),
        before: None,
        request: Some("asked-0"),
        after_damage: false,
    };
    create_backup(&spec, repository, &mut Disk::new(RealFs), clock::now).unwrap()
}

pub(crate) fn level_dat(id: i32, name: &str) -> Vec<u8> {
    let version = std::collections::BTreeMap::from([
        ("Id", fastnbt::Value::Int(id)),
        ("Name", fastnbt::Value::String(name.into())),
    ]);
    let root = std::collections::BTreeMap::from([("Data", std::collections::BTreeMap::from([("Version", version)]))]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&fastnbt::to_bytes(&root).unwrap()).unwrap();
    gzip.finish().unwrap()
}
