//! Edge (writes). `agent init`: prepares the volume for one start of the server, or waits and reports the reason.
//!
//! It never crash-loops: any failure is retried, with one log line per attempt. It exits with an error only in three cases:
//!
//! - Time cannot fix the failure: a world that must not be opened, a due backup that failed, or a backup for a new volume that is unavailable.
//! - Time cannot fix it in this container: a read-only disk.
//! - The failure persists. It then exits once, because a running container cannot show from outside why it waits.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use super::fetch::{self, Fetcher};
use super::mounted_lock::{self, TrustedFiles};
use super::persistent_failure::PersistentFailure;
use super::retry::Backoff;
use super::signed_requests::SignedRequests;
use super::{
    ErrorChain, config, plugin_data_step, pre_update_backup, process_record, requested_restore, rollback_restore,
    seed_volume, stage,
};
use crate::plain_fs::{self, refused_in};
use crate::server_properties;
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::hash_cache::HashCache;
use crate::staging::swap::{self, SwapReport, swap};
use crate::staging::volume_store::{self, VolumeStore};
use crate::staging::{RecordError, Volume};
use crate::world::session_lock::{self, SessionLocks};
use crate::world::{WorldRefusal, Worlds, may_open};
use agent_api::termination_message::{LockRejected, VolumeRejected, WorldRefused};
use agent_api::{FILES_KEY, FileSet, NO_BACKUP, NOT_RESTORED, Restored};
use artifacts::http_client::ClientError;

/// How often a held `session.lock` is tried again, and how many attempts pass between two log lines about it.
const LOCK_RETRY_DELAY: Duration = Duration::from_secs(1);
const ATTEMPTS_PER_LOG_LINE: u32 = 10;
/// After this many attempts the failure is reported to the pod's status. A server that stops normally has usually ended by then.
const ATTEMPTS_UNTIL_REPORTED: u32 = 30;

/// How often a due backup is tried. The server is down meanwhile, and the previous version set can start again.
const BACKUP_ATTEMPTS: u32 = 2;

/// How often a read-only disk is tried. A container that started while the disk was read-only keeps its mount read-only, although the disk is
/// fixed since (observed with runc). Only a new container, which the kubelet creates, finds it writable.
const READ_ONLY_ATTEMPTS: u32 = 3;

/// The instructions for a backup that could not be restored to a volume without a world.
const NOT_RESTORED_ADVICE: &str = "The server does not start, so that no new world replaces the missing one: correct \
`spec.restoreFrom`, or remove it to start with a new world";

/// The result of `agent init`.
#[derive(Debug)]
pub enum InitResult {
    /// The server may start. The locks on its worlds are held until the process ends.
    Ready(SessionLocks),
    /// The server must not start, with the reason as text.
    Refused(String),
    /// A new container must try again, with the reason as text.
    Retry(String),
}

/// The result of `prepare` without a failure.
enum Prepared {
    Ready,
    /// The worlds must not be opened.
    Refused(WorldRefused),
}

/// A failure that may go away.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("could not copy the agent to `{path}`")]
    Hook {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Files(#[from] mounted_lock::Error),
    #[error("could not look for worlds on the volume")]
    Worlds(#[source] io::Error),
    #[error(transparent)]
    Lock(#[from] session_lock::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("could not download to the store on the volume")]
    Store(#[from] volume_store::Error),
    #[error(transparent)]
    Fetch(#[from] fetch::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Backup(#[from] pre_update_backup::Error),
    #[error(transparent)]
    Restore(#[from] rollback_restore::RestoreError),
    #[error("could not fill the volume from a backup")]
    NewVolume(#[from] seed_volume::Error),
    #[error("could not save or restore the plugins' data")]
    PluginData(#[from] crate::plugin_data::Error),
    #[error("the thread that handles a backup stopped unexpectedly")]
    WorkerLost,
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    #[error("could not apply the lock to the server's directory")]
    Swap(#[from] swap::Error),
    #[error(transparent)]
    Properties(#[from] server_properties::Error),
    /// The lock has been held for so long that it is reported.
    #[error("another server has this world open and holds {0}: this server starts after the other one has exited")]
    WorldOpen(String),
}

/// Runs [`run`] on a thread of its own, which is not joined. A step that waits for a disk then delays neither a signal nor the end.
pub async fn run_apart(settings: config::InitConfig) -> InitResult {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = match runtime {
            Ok(runtime) => runtime.block_on(run(&settings)),
            Err(error) => InitResult::Retry(format!("could not start: {error}")),
        };
        sender.send(result)
    });
    receiver.await.unwrap_or_else(|_| InitResult::Retry("the thread that prepares the volume stopped".to_owned()))
}

/// Runs until the volume is ready or the start is refused.
pub async fn run(settings: &config::InitConfig) -> InitResult {
    let mut locks = SessionLocks::default();
    let mut backoff = Backoff::default();
    let (mut failed_backups, mut read_only) = (0, 0);
    let mut persistent_failure = PersistentFailure::new(&settings.shared);
    loop {
        let prepared = prepare(settings, &mut locks, &persistent_failure).await;
        if let Some(plain_fs::Refused { path, problem }) = prepared.as_ref().err().and_then(|error| refused_in(error)) {
            let why = VolumeRejected { path: path.clone(), problem: problem.clone() }.to_string();
            // A retry cannot help before somebody has acted, so it is reported at once.
            if !persistent_failure.was_reported(&why) {
                persistent_failure.count_attempt(&why);
                persistent_failure.mark_reported();
                write_termination_message(settings, &why);
                return InitResult::Retry(why);
            }
            wait(&mut backoff, &why.replace('\n', " ")).await;
            continue;
        }
        match prepared {
            Ok(Prepared::Ready) => return InitResult::Ready(locks),
            Ok(Prepared::Refused(refused)) => return refuse(settings, refused.to_string()),
            Err(Error::Backup(error)) => {
                failed_backups += 1;
                let why = ErrorChain(&error).to_string();
                if error.is_final() || failed_backups == BACKUP_ATTEMPTS {
                    let volume = Volume::new(&settings.data);
                    if let Ok(files) = TrustedFiles::read(settings, &volume) {
                        pre_update_backup::record_failure(&volume, &files.set, why.clone());
                    }
                    return refuse(settings, format!("{NO_BACKUP}{why}"));
                }
                wait(&mut backoff, &why).await;
            }
            // A mounted `ConfigMap` may not change before the next container starts.
            Err(Error::Files(mounted_lock::Error::Changed { .. })) => {
                return refuse(settings, LockRejected { files: vec![FILES_KEY.to_owned()] }.to_string());
            }
            // The kubelet retries it, and the pod's status shows the reason meanwhile.
            Err(Error::NewVolume(seed_volume::Error::NotRestored(error))) => {
                let why = ErrorChain(&error);
                return refuse(settings, format!("{NOT_RESTORED}{why}. {NOT_RESTORED_ADVICE}"));
            }
            Err(error) => {
                let why = ErrorChain(&error).to_string();
                read_only = if is_read_only_disk(&error) { read_only + 1 } else { 0 };
                let is_persistent = persistent_failure.count_attempt(&why) || matches!(error, Error::WorldOpen(_));
                if is_persistent {
                    persistent_failure.mark_reported();
                }
                if is_persistent || read_only == READ_ONLY_ATTEMPTS {
                    write_termination_message(settings, &why);
                    return InitResult::Retry(why);
                }
                wait(&mut backoff, &why).await;
            }
        }
    }
}

fn is_read_only_disk(error: &Error) -> bool {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut causes = chain.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

async fn wait(backoff: &mut Backoff, why: &str) {
    let wait = backoff.next();
    warn!("not ready: {why}; retrying in {} s", wait.as_secs());
    tokio::time::sleep(wait).await;
}

fn refuse(settings: &config::InitConfig, message: String) -> InitResult {
    write_termination_message(settings, &message);
    InitResult::Refused(message)
}

fn write_termination_message(settings: &config::InitConfig, message: &str) {
    warn!("{message}");
    if let Err(error) = plain_fs::overwrite_provided(&settings.termination_log, message) {
        warn!("could not write the termination message at {}: {error}", settings.termination_log.display());
    }
}

impl Prepared {
    /// Names the backups with which a user could replace such worlds.
    fn refused(
        settings: &config::InitConfig,
        volume: &Volume,
        worlds: &Worlds,
        set: &FileSet,
        refusal: &WorldRefusal,
    ) -> Self {
        Self::Refused(requested_restore::termination_message(&settings.backup, volume, worlds, set, refusal))
    }
}

async fn prepare(
    settings: &config::InitConfig,
    locks: &mut SessionLocks,
    persistent_failure: &PersistentFailure,
) -> Result<Prepared, Error> {
    install_hook(&settings.hook, &settings.shared.join("agent"))?;
    let volume = Volume::new(&settings.data);
    let trusted = TrustedFiles::read(settings, &volume)?;
    let set = trusted.set.clone();
    let worlds = lock_worlds(&settings.data, locks, persistent_failure).await?;
    let locked_worlds = worlds.clone();
    // First, so that the end is reported whatever the result of this start is.
    run_backup_work(&volume, move |volume| process_record::record_previous_end(&volume, &locked_worlds)).await?;

    let finished = run_backup_work(&volume, |volume| rollback_restore::finish_restore(&volume)).await??;
    let worlds =
        if finished.is_some() { relock_worlds(&settings.data, locks, persistent_failure).await? } else { worlds };
    log_restored(finished.as_ref());

    let (backup_config, files, locked_worlds) = (settings.backup.clone(), set.clone(), worlds.clone());
    let fill = move |volume: Volume| seed_volume::fill_if_new(&backup_config, &volume, &locked_worlds, &files);
    let filled = run_backup_work(&volume, fill).await??;
    let worlds =
        if filled.is_some() { relock_worlds(&settings.data, locks, persistent_failure).await? } else { worlds };
    log_restored(filled.as_ref());

    let (backup_config, files, locked_worlds) = (settings.backup.clone(), set.clone(), worlds.clone());
    let restore =
        move |volume: Volume| requested_restore::restore_if_requested(&backup_config, &volume, &locked_worlds, &files);
    let requested = run_backup_work(&volume, restore).await??;
    let worlds =
        if requested.is_some() { relock_worlds(&settings.data, locks, persistent_failure).await? } else { worlds };
    log_restored(requested.as_ref());

    let last = volume.manifest()?.map(|manifest| manifest.minecraft);
    let worlds = match may_open(&worlds, &set, last.as_deref()) {
        Ok(()) if worlds.is_whole() => worlds,
        // A backup replaces only a world that cannot be opened as it is, and only on request.
        opened => {
            let (backup_config, files, locked_worlds) = (settings.backup.clone(), set.clone(), worlds.clone());
            let restore = move |volume: Volume| {
                rollback_restore::restore_if_requested(&backup_config, &volume, &locked_worlds, &files)
            };
            match (run_backup_work(&volume, restore).await??, opened) {
                (Some(restored), _) => {
                    log_restored(Some(&restored));
                    relock_worlds(&settings.data, locks, persistent_failure).await?
                }
                (None, Err(refusal)) => return Ok(Prepared::refused(settings, &volume, &worlds, &set, &refusal)),
                (None, Ok(())) => worlds,
            }
        }
    };
    if let Err(refusal) = may_open(&worlds, &set, last.as_deref()) {
        return Ok(Prepared::refused(settings, &volume, &worlds, &set, &refusal));
    }
    if !worlds.is_whole() {
        warn!(
            "a world exists in the old and in the new layout: a move of the worlds is incomplete, and Paper exits at \
            each start with such a world"
        );
    }
    let mut hashes = HashCache::default();
    fill_store(settings, &VolumeStore::new(volume.clone()), &set, &mut hashes).await?;
    // The last step that can take long, before any file is changed.
    let (backup_config, files) = (settings.backup.clone(), set.clone());
    run_backup_work(&volume, move |volume| pre_update_backup::back_up_if_due(&backup_config, &volume, &worlds, &files))
        .await??;
    let requests = SignedRequests::from_config(&settings.backup);
    let (limit, mounted_requests, files) = (settings.keep_plugin_data, requests.clone(), set.clone());
    run_backup_work(&volume, move |volume| {
        plugin_data_step::before_swap(&volume, &files, limit, mounted_requests.as_ref())
    })
    .await??;
    log_swap(&swap(&volume, &set, &mut hashes, &mut Disk::new(RealFs))?);
    let config::InitConfig { rcon_enabled: enabled, rcon_port: port, rcon_password: password, .. } = settings;
    server_properties::write(&settings.data, server_properties::Rcon { enabled: *enabled, port: *port, password })?;
    pre_update_backup::remove_marker(&volume)?;
    plugin_data_step::remove_outdated(&volume, &set)?;
    process_record::remove_running(&volume);
    trusted.keep_copy(&volume);
    report_rejected(settings, trusted.is_copy, requests.as_ref());
    info!("ready for Paper {} build {} (lock {})", set.minecraft, set.build, set.lock.get(..16).unwrap_or(&set.lock));
    Ok(Prepared::Ready)
}

/// Runs backup work on a thread that is not joined. A pod that is deleted in the middle ends at once, and leaves only unfinished files that do
/// not count.
async fn run_backup_work<T: Send + 'static>(
    volume: &Volume,
    work: impl FnOnce(Volume) -> T + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let volume = volume.clone();
    std::thread::spawn(move || sender.send(work(volume)));
    receiver.await.map_err(|_| Error::WorkerLost)
}

/// The folders were replaced, so the locks on the previous ones are useless.
async fn relock_worlds(
    data: &Path,
    locks: &mut SessionLocks,
    persistent_failure: &PersistentFailure,
) -> Result<Worlds, Error> {
    *locks = SessionLocks::default();
    lock_worlds(data, locks, persistent_failure).await
}

fn log_restored(restored: Option<&Restored>) {
    let Some(Restored { at: _, id, set_aside, request: _, everything, after_damage: _ }) = restored else { return };
    let restored_content = if *everything { "worlds, settings, plugins and their data" } else { "the worlds" };
    if set_aside.is_empty() {
        warn!("restored {restored_content} from the backup {id}");
    } else {
        warn!("restored {restored_content} from the backup {id}; the previous files are in {set_aside}");
    }
}

/// Places a program, usually this one, where the server's container finds it as its preStop hook. The server runs it as its own user, so all
/// users may execute it and none may write it.
fn install_hook(program: &Path, target: &Path) -> Result<(), Error> {
    let copied = plain_fs::replace_with_program(program, target);
    copied.map_err(|source| Error::Hook { path: target.display().to_string(), source })
}

/// Reports files that the operator did not write, although the server starts.
fn report_rejected(settings: &config::InitConfig, is_lock_changed: bool, requests: Option<&SignedRequests>) {
    let lock = is_lock_changed.then(|| FILES_KEY.to_owned());
    let files: Vec<String> = lock.into_iter().chain(requests.into_iter().flat_map(SignedRequests::rejected)).collect();
    if !files.is_empty() {
        write_termination_message(settings, &LockRejected { files }.to_string());
    }
}

/// Waits until no server has a world of this volume open, and then keeps the locks. A lock that stays held is an error once per pod, so that it
/// is reported.
async fn lock_worlds(
    data: &Path,
    locks: &mut SessionLocks,
    persistent_failure: &PersistentFailure,
) -> Result<Worlds, Error> {
    let mut attempts = 0_u32;
    loop {
        let worlds = Worlds::read(data).map_err(Error::Worlds)?;
        let busy = locks.acquire(&worlds.session_locks())?;
        if busy.is_empty() {
            return Ok(worlds);
        }
        let open = Error::WorldOpen(join_paths(&busy));
        if attempts == ATTEMPTS_UNTIL_REPORTED && !persistent_failure.was_reported(&open.to_string()) {
            return Err(open);
        }
        if attempts.is_multiple_of(ATTEMPTS_PER_LOG_LINE) {
            info!("waiting: {open}");
        }
        attempts += 1;
        tokio::time::sleep(LOCK_RETRY_DELAY).await;
    }
}

async fn fill_store(
    settings: &config::InitConfig,
    store: &VolumeStore,
    set: &FileSet,
    hashes: &mut HashCache,
) -> Result<(), Error> {
    let missing = store.missing(set, hashes)?;
    if missing.is_empty() {
        return Ok(());
    }
    stage::log_dropped(&store.free_space_for(set, &missing)?);
    let fetcher = Fetcher::new(&settings.store_url)?;
    for file in &missing {
        fetcher.fetch(store, file).await?;
        info!("fetched {}", file.path);
    }
    Ok(())
}

fn log_swap(done: &SwapReport) {
    let SwapReport { placed, removed, adopted, displaced } = done;
    for (action, paths) in [("placed", placed), ("removed", removed), ("adopted", adopted)] {
        for path in paths {
            info!("{action} {path}");
        }
    }
    for (from, to) in displaced {
        warn!("displaced {from}, which conflicts with a managed plugin, to {to}");
    }
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_disk_is_recognized_anywhere_in_error_chain() {
        let read = |kind| RecordError::Read { path: "a".to_owned(), source: io::Error::from(kind) };
        assert!(is_read_only_disk(&Error::Record(read(io::ErrorKind::ReadOnlyFilesystem))));
        assert!(is_read_only_disk(&Error::Worlds(io::Error::from_raw_os_error(30))));
        assert!(!is_read_only_disk(&Error::Record(read(io::ErrorKind::StorageFull))));
        assert!(!is_read_only_disk(&Error::WorkerLost));
    }
}
