//! Edge (reads). Provides the files of a lock: downloads them once into the store, reads their descriptors and lists them for the agent.

use std::sync::Arc;

use agent_api::{AgentReport, File, FileHash, FileSet};
use artifacts::{FactsError, plugin_descriptor};
use resolver::model::lock::{Lock, LockedFile, LockedPlugin};
use resolver::model::name_conflict::{JarNameConflict, find_conflicts};
use tracing::warn;

use super::model::records::LockRecord;
use super::plan::RunningState;
use super::records::{self, RecordError, unless_rejected};
use super::unmanaged_jars::name_conflict;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::k8s::ownership::Owner;
use crate::store::{FetchError, paper_descriptor};
use crate::telemetry::metrics::{FetchLabels, Metrics};
use validate::CheckedServer;

/// Why the files of a lock could not be provided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("could not fetch `{file}`")]
    Fetch {
        file: String,
        #[source]
        source: FetchError,
    },
    #[error("could not read `{file}`")]
    Read {
        file: String,
        #[source]
        source: FactsError,
    },
    #[error(
        "{} are both the plugin {}, and a server loads only one of them: remove one of the two Plugins, or its label \
        on the server",
        clash.files.join(" and "), clash.name
    )]
    DuplicatePlugin { clash: JarNameConflict },
    #[error(
        "{} would both be the plugin {}, and a server loads only one of them: remove your own JAR from `plugins`, or \
        the Plugin",
        clash.files.join(" and "), clash.name
    )]
    NameConflict { clash: JarNameConflict },
    #[error(
        "`{file}` needs Java {needs}, but the version set was chosen for Java {has}: it is chosen again for Java \
    {needs}"
    )]
    Java { file: String, needs: u32, has: u32 },
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl FilesError {
    /// Counts a file that could not be fetched.
    pub(crate) fn record(&self, metrics: &Metrics) {
        if let Self::Fetch { file: _, source } = self {
            metrics.fetch_failures.get_or_create(&FetchLabels { category: source.category() }).inc();
        }
    }
}

/// The lock with its files. If they cannot be fetched and a lock runs already, the running lock stays the goal, and the reason is returned. A
/// release that is broken upstream must not stop the verification of a rollout or the end of a roll-back. `report` is that of the agent, if
/// the unmanaged JARs on the volume may block the lock.
pub(super) async fn fetch_or_keep_running(
    ctx: &Context,
    server: &CheckedServer,
    lock: &Lock,
    runs: &RunningState,
    report: Option<&AgentReport>,
) -> Result<(Arc<LockRecord>, Option<String>), FilesError> {
    if let Some(running) = runs.record_of(lock) {
        // All files of the running lock are on the volume. An unmanaged JAR cannot block it either, because the server already runs beside
        // that JAR.
        register_files(ctx, running);
        return Ok((running.clone(), None));
    }
    let fetched = fetch_lock_files(ctx, &Owner::from(server), lock, runs.lock.as_deref()).await;
    let fetched = fetched.and_then(|record| match report {
        Some(report) => check_unmanaged_conflicts(record, report),
        None => Ok(record),
    });
    match (fetched, &runs.lock) {
        (Ok(record), _) => Ok((record, None)),
        (Err(error), Some(running)) => {
            error.record(&ctx.metrics);
            let why = ErrorChain(&error).to_string();
            warn!(error = why, "could not provide the newer version set; the running set stays");
            Ok((running.clone(), Some(why)))
        }
        (Err(error), None) => Err(error),
    }
}

/// A lock with its files. Files that an earlier pass recorded in a `ConfigMap` are taken from there, so that a known lock needs no
/// upstream. `runs` is the record that runs on the server now.
async fn fetch_lock_files(
    ctx: &Context,
    owner: &Owner,
    lock: &Lock,
    runs: Option<&LockRecord>,
) -> Result<Arc<LockRecord>, FilesError> {
    let digest = lock.digest();
    if let Some(stored) = stored_record(ctx, owner, digest.as_str()).await? {
        return Ok(stored);
    }
    let paper_file = file_of(&lock.paper, format!(".nightshift/server/{}", lock.paper.name));
    let path = fetch(ctx, &paper_file).await?;
    let facts = paper_descriptor::read_facts(&path)
        .map_err(|source| FilesError::Read { file: lock.paper.name.clone(), source })?;
    // Without Mojang's own JAR, Paper's launcher downloads it at its first start, in the middle of the update.
    let support: Vec<File> = facts.mojang.iter().map(mojang_file).collect();
    for file in &support {
        fetch(ctx, file).await?;
    }
    let mut plugins = Vec::new();
    for locked in lock.plugins.iter().flat_map(LockedPlugin::files) {
        plugins.push(fetch_plugin(ctx, locked, lock.java, runs).await?);
    }
    plugins.sort_by(|a, b| a.path.cmp(&b.path));
    check_unique_names(&plugins)?;
    let files = FileSet {
        lock: digest.to_string(),
        minecraft: lock.minecraft.to_string(),
        build: lock.build,
        data_version: facts.data_version,
        server: paper_file,
        support,
        plugins,
    };
    ctx.store.register(all_files(&files));
    Ok(Arc::new(LockRecord { lock: lock.clone(), files }))
}

fn mojang_file(mojang: &paper_descriptor::Mojang) -> File {
    File {
        path: format!("cache/{}", mojang.file_name),
        hash: FileHash(format!("sha256:{}", mojang.sha256)),
        size: None,
        url: mojang.url.clone(),
        plugin: None,
        provides: Vec::new(),
    }
}

/// Fetches a plugin's JAR and reads its name. A JAR that runs already and cannot be fetched keeps the name that it has.
async fn fetch_plugin(
    ctx: &Context,
    locked: &LockedFile,
    java: u32,
    runs: Option<&LockRecord>,
) -> Result<File, FilesError> {
    let mut file = file_of(locked, format!("plugins/{}", locked.name));
    let path = match (fetch(ctx, &file).await, running_file(locked, java, runs)) {
        (Ok(path), _) => path,
        (Err(_), Some(running)) => {
            (file.plugin, file.provides) = (running.plugin.clone(), running.provides.clone());
            return Ok(file);
        }
        (Err(error), None) => return Err(error),
    };
    let facts = plugin_descriptor::facts(&path).map_err(|source| {
        if source.is_refusal() {
            // The next read of the catalog finds the JAR in the store, and the release is not chosen again.
            ctx.catalog.read_soon();
        }
        FilesError::Read { file: locked.name.clone(), source }
    })?;
    if let Some(needs) = facts.java.map(u32::from).filter(|needs| *needs > java) {
        // The next read of the catalog finds the JAR in the store and takes its Java version into account.
        ctx.catalog.read_soon();
        return Err(FilesError::Java { file: locked.name.clone(), needs, has: java });
    }
    file.plugin = Some(facts.name);
    file.provides = facts.provides;
    Ok(file)
}

/// The file of a plugin that runs already and whose descriptor is known. It is on the server's volume, where the agent finds it by its
/// hash. A file missing from this replica's store is fetched again, because its descriptor counts when versions are chosen. The fetch may
/// fail, because the release may be delisted. With an older Java than the running one, the descriptor would have to be read.
fn running_file<'a>(locked: &LockedFile, java: u32, runs: Option<&'a LockRecord>) -> Option<&'a File> {
    let runs = runs.filter(|runs| runs.lock.java <= java)?;
    runs.files.plugins.iter().find(|file| file.hash.0 == locked.hash && file.plugin.is_some())
}

/// Rejects two files that declare or provide one name: the server loads only one of them, and it is unknown which.
fn check_unique_names(plugins: &[File]) -> Result<(), FilesError> {
    let files = plugins.iter().map(|file| {
        let names = file.plugin.iter().chain(&file.provides).map(String::as_str);
        (file.path.strip_prefix("plugins/").unwrap_or(&file.path), names.collect())
    });
    match find_conflicts(files).into_iter().next() {
        None => Ok(()),
        Some(clash) => Err(FilesError::DuplicatePlugin { clash }),
    }
}

/// Checks that these files can be in `plugins` beside the unmanaged JARs.
fn check_unmanaged_conflicts(record: Arc<LockRecord>, report: &AgentReport) -> Result<Arc<LockRecord>, FilesError> {
    match name_conflict(&record.files, report) {
        None => Ok(record),
        Some(clash) => Err(FilesError::NameConflict { clash }),
    }
}

/// The record of a lock that an earlier pass wrote, with its files registered in the store. `None` if it is not kept.
pub(crate) async fn stored_record(
    ctx: &Context,
    owner: &Owner,
    digest: &str,
) -> Result<Option<Arc<LockRecord>>, RecordError> {
    // A lock that the operator did not write is made again, and replaces the other one.
    let stored = unless_rejected(records::read_signed_lock(ctx, owner, digest).await, &mut Vec::new())?;
    if let Some(stored) = &stored {
        register_files(ctx, stored);
    }
    Ok(stored)
}

/// Registers the files of a lock in the store, from which the agents download them.
fn register_files(ctx: &Context, record: &LockRecord) {
    ctx.store.register(all_files(&record.files));
}

async fn fetch(ctx: &Context, file: &File) -> Result<std::path::PathBuf, FilesError> {
    ctx.store.fetch(file).await.map_err(|source| FilesError::Fetch { file: file.path.clone(), source })
}

fn file_of(locked: &LockedFile, path: String) -> File {
    File {
        path,
        hash: FileHash(locked.hash.clone()),
        size: locked.size,
        url: locked.url.clone(),
        plugin: None,
        provides: Vec::new(),
    }
}

fn all_files(files: &FileSet) -> impl Iterator<Item = &File> {
    std::iter::once(&files.server).chain(&files.support).chain(&files.plugins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(path: &str, name: &str, provides: &[&str]) -> File {
        File {
            path: format!("plugins/{path}"),
            hash: FileHash(String::new()),
            size: None,
            url: String::new(),
            plugin: Some(name.to_owned()),
            provides: provides.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn running_jar_facts_are_reused_unless_java_is_older() {
        let lock: Lock = serde_json::from_value(serde_json::json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": 7, "java": 21,
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "plugins": [], "facts": [],
        }))
        .unwrap();
        let hash = |hash: &str| FileHash(format!("sha256:{hash}"));
        let files = FileSet {
            lock: String::new(),
            minecraft: "1.21.10".to_owned(),
            build: 7,
            data_version: None,
            server: jar("paper.jar", "", &[]),
            support: Vec::new(),
            plugins: vec![
                File { hash: hash("aa"), ..jar("warps.jar", "Warps", &["Homes"]) },
                File { hash: hash("bb"), plugin: None, ..jar("old.jar", "", &[]) },
            ],
        };
        let runs = LockRecord { lock, files };
        let running_of = |of: &str, java, runs| {
            let locked = LockedFile { name: "w.jar".to_owned(), url: String::new(), size: None, hash: hash(of).0 };
            running_file(&locked, java, runs).and_then(|file: &File| file.plugin.clone())
        };
        assert_eq!(running_of("aa", 21, Some(&runs)).as_deref(), Some("Warps"));
        assert_eq!(running_of("aa", 25, Some(&runs)).as_deref(), Some("Warps"));
        assert_eq!(running_of("aa", 17, Some(&runs)), None, "the JAR may need the newer Java");
        assert_eq!(running_of("bb", 21, Some(&runs)), None, "its descriptor was never read");
        assert_eq!(running_of("cc", 21, Some(&runs)), None);
        assert_eq!(running_of("aa", 21, None), None);
    }

    #[test]
    fn lock_with_duplicate_plugin_name_is_refused() {
        let fawe = jar("FAWE.jar", "FastAsyncWorldEdit", &["WorldEdit"]);
        let error = check_unique_names(&[fawe.clone(), jar("we.jar", "worldedit", &[])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "FAWE.jar and we.jar are both the plugin WorldEdit, and a server loads only one of them: remove one of \
            the two Plugins, or its label on the server"
        );
        assert!(check_unique_names(&[fawe, jar("wg.jar", "WorldGuard", &["FlagProvider", "flagprovider"])]).is_ok());
    }
}
