//! Edge (writes). `agent init`: prepares the volume for one start of the server, or waits and reports the reason.
//!
//! It never crash-loops: any failure is retried, with one log line per attempt. It exits with an error only in three cases:
//!
//! - Time cannot fix the failure: a world that must not be opened, a due backup that failed, or a backup for a new volume that is unavailable.
//! - Time cannot fix it in this container: a read-only disk.
//! - The failure persists. It then exits once, because a running container cannot show from outside why it waits.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use super::fetch::{self, Fetcher};
use super::persistent_failure::PersistentFailure;
use super::retry::Backoff;
use super::{
    Chain, config, plugin_data_step, pre_update_backup, process_record, requested_restore, seed_volume, stage,
};
use crate::protocol::last_words::WorldRefused;
use crate::protocol::{FileSet, NO_BACKUP, NOT_RESTORED, Restored};
use crate::server_properties;
use crate::staging::content_store::{self, ContentStore};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::hash_cache::HashCache;
use crate::staging::swap::{self, SwapReport, swap};
use crate::staging::{RecordError, Volume};
use crate::world::session_lock::{self, SessionLocks};
use crate::world::{WorldRefusal, Worlds, may_open};

/// How often a held `session.lock` is tried again, and how many attempts pass between two log lines about it.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS_PER_SENTENCE: u32 = 10;
/// After this many attempts the failure is reported to the pod's status. A server that stops normally has usually ended by then.
const LOOKS_UNTIL_TOLD: u32 = 30;

/// How often a due backup is tried. The server is down meanwhile, and the previous version set can start again.
const COPY_TRIES: u32 = 2;

/// How often a read-only disk is tried. A container that started while the disk was read-only keeps its mount read-only, although the disk is
/// fixed since (observed with runc). Only a new container, which the kubelet creates, finds it writable.
const READ_ONLY_TRIES: u32 = 3;

/// The instructions for a backup that could not be restored to a volume without a world.
const NO_NEW_WORLD: &str = "Nothing starts, so that no new world takes the place of that one: correct `spec.restoreFrom`, or take it away to \
                            begin with a new world";

/// The result of `agent init`.
#[derive(Debug)]
pub enum InitResult {
    /// The server may start. The locks on its worlds are held until the process ends.
    Ready(SessionLocks),
    /// The server must not start, with the reason as text.
    Refused(String),
    /// A new container must try again, with the reason as text.
    TryAnew(String),
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
    #[error("could not read the lock's files at `{path}`")]
    ReadFiles {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("the lock's files at `{path}` are not what an operator of this version writes")]
    ParseFiles {
        path: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("could not look for worlds on the volume")]
    Worlds(#[source] io::Error),
    #[error(transparent)]
    Lock(#[from] session_lock::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("could not fill the store on the volume")]
    Store(#[from] content_store::Error),
    #[error(transparent)]
    Fetch(#[from] fetch::Error),
    #[error("could not make an HTTP client")]
    Client(#[source] reqwest::Error),
    #[error(transparent)]
    Copy(#[from] pre_update_backup::Error),
    #[error(transparent)]
    Restore(#[from] pre_update_backup::RestoreError),
    #[error("the volume has no world, and is to get that of a copy")]
    NewVolume(#[from] seed_volume::Error),
    #[error("could not keep the plugins' data, or put them back")]
    PluginData(#[from] crate::plugin_data::Error),
    #[error("the work on a copy ended without an answer")]
    CopyLost,
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    #[error("could not make the server's directory equal to the lock")]
    Swap(#[from] swap::Error),
    #[error(transparent)]
    Properties(#[from] server_properties::Error),
    /// The lock has been held for so long that it is reported.
    #[error("another server has this world open and holds {0}: nothing starts before that one has ended")]
    WorldOpen(String),
}

/// Runs until the volume is ready or the start is refused.
pub async fn run(settings: &config::InitConfig) -> InitResult {
    let mut locks = SessionLocks::default();
    let mut backoff = Backoff::default();
    let (mut copies_failed, mut read_only) = (0, 0);
    let mut obstacle = PersistentFailure::new(&settings.shared);
    loop {
        match prepare(settings, &mut locks, &obstacle).await {
            Ok(Prepared::Ready) => return InitResult::Ready(locks),
            Ok(Prepared::Refused(refused)) => return refuse(settings, refused.to_string()),
            Err(Error::Copy(error)) => {
                copies_failed += 1;
                let why = Chain(&error).to_string();
                if error.is_final() || copies_failed == COPY_TRIES {
                    if let Ok(set) = read_files(&settings.files) {
                        pre_update_backup::note_failure(&Volume::new(&settings.data), &set, why.clone());
                    }
                    return refuse(settings, format!("{NO_BACKUP}{why}"));
                }
                wait(&mut backoff, &why).await;
            }
            // The kubelet retries it, and the pod's status shows the reason meanwhile.
            Err(Error::NewVolume(seed_volume::Error::NotRestored(error))) => {
                let why = Chain(&error);
                return refuse(settings, format!("{NOT_RESTORED}{why}. {NO_NEW_WORLD}"));
            }
            Err(error) => {
                let why = Chain(&error).to_string();
                read_only = if is_of_read_only_disk(&error) { read_only + 1 } else { 0 };
                let stays = obstacle.is_to_be_told(&why) || matches!(error, Error::WorldOpen(_));
                if stays {
                    obstacle.is_told();
                }
                if stays || read_only == READ_ONLY_TRIES {
                    leave_last_words(settings, &why);
                    return InitResult::TryAnew(why);
                }
                wait(&mut backoff, &why).await;
            }
        }
    }
}

fn is_of_read_only_disk(error: &Error) -> bool {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut causes = chain.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

async fn wait(backoff: &mut Backoff, why: &str) {
    let wait = backoff.next();
    warn!("not ready: {why}; trying again in {} s", wait.as_secs());
    tokio::time::sleep(wait).await;
}

fn refuse(settings: &config::InitConfig, words: String) -> InitResult {
    leave_last_words(settings, &words);
    InitResult::Refused(words)
}

fn leave_last_words(settings: &config::InitConfig, words: &str) {
    warn!("{words}");
    if let Err(error) = fs::write(&settings.termination_log, words) {
        warn!("could not leave last words at {}: {error}", settings.termination_log.display());
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
        Self::Refused(requested_restore::last_words(&settings.copies, volume, worlds, set, refusal))
    }
}

async fn prepare(
    settings: &config::InitConfig,
    locks: &mut SessionLocks,
    obstacle: &PersistentFailure,
) -> Result<Prepared, Error> {
    place_hook(&settings.hook, &settings.shared.join("agent"))?;
    let set = read_files(&settings.files)?;
    let volume = Volume::new(&settings.data);
    let worlds = lock_worlds(&settings.data, locks, obstacle).await?;
    let here = worlds.clone();
    // First, so that the end is reported whatever the result of this start is.
    of_copies(&volume, move |volume| process_record::tell_of_before(&volume, &here)).await?;

    let finished = of_copies(&volume, |volume| pre_update_backup::finish_restore(&volume)).await??;
    let worlds = if finished.is_some() { lock_anew(&settings.data, locks, obstacle).await? } else { worlds };
    say_restored(finished.as_ref());

    let (copies, files, here) = (settings.copies.clone(), set.clone(), worlds.clone());
    let fill = move |volume: Volume| seed_volume::fill_if_new(&copies, &volume, &here, &files);
    let filled = of_copies(&volume, fill).await??;
    let worlds = if filled.is_some() { lock_anew(&settings.data, locks, obstacle).await? } else { worlds };
    say_restored(filled.as_ref());

    let (copies, files, here) = (settings.copies.clone(), set.clone(), worlds.clone());
    let restore = move |volume: Volume| requested_restore::restore_if_asked(&copies, &volume, &here, &files);
    let asked = of_copies(&volume, restore).await??;
    let worlds = if asked.is_some() { lock_anew(&settings.data, locks, obstacle).await? } else { worlds };
    say_restored(asked.as_ref());

    let last = volume.manifest()?.map(|manifest| manifest.minecraft);
    let worlds = match may_open(&worlds, &set, last.as_deref()) {
        Ok(()) if worlds.whole() => worlds,
        // A backup replaces only a world that cannot be opened as it is, and only on request.
        opened => {
            let (copies, files, here) = (settings.copies.clone(), set.clone(), worlds.clone());
            let restore = move |volume: Volume| pre_update_backup::restore_if_ordered(&copies, &volume, &here, &files);
            match (of_copies(&volume, restore).await??, opened) {
                (Some(restored), _) => {
                    say_restored(Some(&restored));
                    lock_anew(&settings.data, locks, obstacle).await?
                }
                (None, Err(refusal)) => return Ok(Prepared::refused(settings, &volume, &worlds, &set, &refusal)),
                (None, Ok(())) => worlds,
            }
        }
    };
    if let Err(refusal) = may_open(&worlds, &set, last.as_deref()) {
        return Ok(Prepared::refused(settings, &volume, &worlds, &set, &refusal));
    }
    if !worlds.whole() {
        warn!(
            "a world lies here in the old and in the new layout: a move of the worlds did not end, and Paper ends at each start on such a one"
        );
    }
    let mut known = HashCache::default();
    fill_store(settings, &ContentStore::new(volume.clone()), &set, &mut known).await?;
    // The last step that can take long, before any file is changed.
    let (copies, files) = (settings.copies.clone(), set.clone());
    of_copies(&volume, move |volume| pre_update_backup::copy_if_due(&copies, &volume, &worlds, &files)).await??;
    let (limit, order, files) = (settings.keep_plugin_data, settings.copies.restore_order.clone(), set.clone());
    of_copies(&volume, move |volume| plugin_data_step::before_swap(&volume, &files, limit, order.as_deref())).await??;
    say(&swap(&volume, &set, &mut known, &mut Disk::new(RealFs))?);
    let config::InitConfig { rcon_enabled: enabled, rcon_port: port, rcon_password: password, .. } = settings;
    server_properties::write(&settings.data, server_properties::Rcon { enabled: *enabled, port: *port, password })?;
    pre_update_backup::step_is_over(&volume)?;
    plugin_data_step::step_is_over(&volume, &set)?;
    process_record::forget(&volume);
    info!("ready for Paper {} build {} (lock {})", set.minecraft, set.build, set.lock.get(..16).unwrap_or(&set.lock));
    Ok(Prepared::Ready)
}

/// Runs backup work on a thread that is not joined. A pod that is deleted in the middle ends at once, and leaves only unfinished files that do
/// not count.
async fn of_copies<T: Send + 'static>(
    volume: &Volume,
    work: impl FnOnce(Volume) -> T + Send + 'static,
) -> Result<T, Error> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let volume = volume.clone();
    std::thread::spawn(move || tell.send(work(volume)));
    told.await.map_err(|_| Error::CopyLost)
}

/// The folders were replaced, so the locks on the previous ones are useless.
async fn lock_anew(data: &Path, locks: &mut SessionLocks, obstacle: &PersistentFailure) -> Result<Worlds, Error> {
    *locks = SessionLocks::default();
    lock_worlds(data, locks, obstacle).await
}

fn say_restored(restored: Option<&Restored>) {
    let Some(Restored { at: _, id, set_aside, request: _, everything, after_damage: _ }) = restored else { return };
    let what = if *everything { "worlds, settings, plugins and their data" } else { "the worlds" };
    if set_aside.is_empty() {
        warn!("{what} are those of the copy {id}");
    } else {
        warn!("{what} are those of the copy {id}; what was here lies in {set_aside}");
    }
}

/// Places a program, usually this one, where the server's container finds it as its preStop hook. The server runs it as its own user, so all
/// users may execute it and none may write it.
fn place_hook(program: &Path, target: &Path) -> Result<(), Error> {
    let copy = || {
        let beside = target.with_extension("new");
        fs::copy(program, &beside)?;
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o555))?;
        fs::rename(&beside, target)
    };
    copy().map_err(|source| Error::Hook { path: target.display().to_string(), source })
}

fn read_files(path: &Path) -> Result<FileSet, Error> {
    let name = || path.display().to_string();
    let bytes = fs::read(path).map_err(|source| Error::ReadFiles { path: name(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| Error::ParseFiles { path: name(), source })
}

/// Waits until no server has a world of this volume open, and then keeps the locks. A lock that stays held is an error once per pod, so that it
/// is reported.
async fn lock_worlds(data: &Path, locks: &mut SessionLocks, obstacle: &PersistentFailure) -> Result<Worlds, Error> {
    let mut tries = 0_u32;
    loop {
        let worlds = Worlds::read(data).map_err(Error::Worlds)?;
        let busy = locks.take(&worlds.session_locks())?;
        if busy.is_empty() {
            return Ok(worlds);
        }
        let open = Error::WorldOpen(listed(&busy));
        if tries == LOOKS_UNTIL_TOLD && !obstacle.was_told(&open.to_string()) {
            return Err(open);
        }
        if tries.is_multiple_of(LOOKS_PER_SENTENCE) {
            info!("waiting: {open}");
        }
        tries += 1;
        tokio::time::sleep(LOOK).await;
    }
}

async fn fill_store(
    settings: &config::InitConfig,
    store: &ContentStore,
    set: &FileSet,
    known: &mut HashCache,
) -> Result<(), Error> {
    let missing = store.missing(set, known)?;
    if missing.is_empty() {
        return Ok(());
    }
    stage::say_dropped(&store.make_room(set, &missing)?);
    let fetcher = Fetcher::new(&settings.store_url).map_err(Error::Client)?;
    for file in &missing {
        fetcher.fetch(store, file).await?;
        info!("fetched {}", file.path);
    }
    Ok(())
}

fn say(done: &SwapReport) {
    let SwapReport { placed, removed, adopted, set_aside } = done;
    for (what, paths) in [("placed", placed), ("removed", removed), ("adopted", adopted)] {
        for path in paths {
            info!("{what} {path}");
        }
    }
    for (from, to) in set_aside {
        warn!("{from} was put there by somebody and is in the way of a managed plugin: moved to {to}");
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_disk_is_recognized_anywhere_in_error_chain() {
        let read = |kind| RecordError::Read { path: "a".to_owned(), source: io::Error::from(kind) };
        assert!(is_of_read_only_disk(&Error::Record(read(io::ErrorKind::ReadOnlyFilesystem))));
        assert!(is_of_read_only_disk(&Error::Worlds(io::Error::from_raw_os_error(30))));
        assert!(!is_of_read_only_disk(&Error::Record(read(io::ErrorKind::StorageFull))));
        assert!(!is_of_read_only_disk(&Error::CopyLost));
    }
}
