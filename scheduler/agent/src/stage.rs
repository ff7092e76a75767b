//! Edge (writes). Downloads the files of the next lock to the volume while the server runs, one at a time.

use std::sync::Arc;

use tracing::{info, warn};

use super::ErrorChain;
use super::state::SidecarState;
use crate::staging::hash_cache::HashCache;
use crate::staging::volume_store::{self, VolumeStore};
use agent_api::{FileSet, Staging};

/// Begins to stage `set`. If the same lock is already being staged, that continues. Staging of another lock ends.
pub(super) fn begin(shared: &Arc<SidecarState>, set: FileSet) {
    let mut state = shared.state();
    let running = state.staging_task.as_ref().is_some_and(|task| !task.is_finished());
    if running && state.staging.as_ref().is_some_and(|staging| staging.lock == set.lock) {
        return;
    }
    if let Some(task) = state.staging_task.take() {
        task.abort();
    }
    let total = u32::try_from(crate::staging::all_files(&set).count()).unwrap_or(u32::MAX);
    state.staging = Some(Staging { lock: set.lock.clone(), done: 0, of: total, error: None });
    let task = Arc::clone(shared);
    state.staging_task = Some(tokio::spawn(async move {
        if let Err(error) = stage(&task, &set, total).await {
            warn!("staging lock {}: {error}", set.lock);
            update_staging(&task, &set, |staging| staging.error = Some(error));
        }
    }));
}

async fn stage(shared: &Arc<SidecarState>, set: &FileSet, total: u32) -> Result<(), String> {
    let missing = run_blocking(shared, set, |store, set| store.missing(set, &mut HashCache::default())).await?;
    let have = |left: usize| total.saturating_sub(u32::try_from(left).unwrap_or(u32::MAX));
    update_staging(shared, set, |staging| staging.done = have(missing.len()));
    let files = missing.clone();
    let dropped = run_blocking(shared, set, move |store, set| store.free_space_for(set, &files)).await?;
    log_dropped(&dropped);
    for (fetched, file) in missing.iter().enumerate() {
        shared.fetcher.fetch(&shared.store, file).await.map_err(|error| ErrorChain(&error).to_string())?;
        update_staging(shared, set, |staging| staging.done = have(missing.len() - fetched - 1));
    }
    run_blocking(shared, set, VolumeStore::mark_staged).await?;
    let staged = run_blocking(shared, set, |store, set| store.staged(Some(&set.lock))).await?;
    info!("lock {} is staged", set.lock);
    let mut state = shared.state();
    state.staged = staged;
    state.staging = None;
    Ok(())
}

/// Logs the version sets that can no longer be rolled back to without the operator's store.
pub(super) fn log_dropped(dropped: &[String]) {
    for lock in dropped {
        info!("removed the files of the earlier lock {lock} to free space");
    }
}

fn update_staging(shared: &SidecarState, set: &FileSet, change: impl FnOnce(&mut Staging)) {
    // Another lock may have replaced this one.
    if let Some(staging) = shared.state().staging.as_mut().filter(|staging| staging.lock == set.lock) {
        change(staging);
    }
}

/// Runs hashing and disk work outside of the threads that answer probes.
async fn run_blocking<T: Send + 'static>(
    shared: &Arc<SidecarState>,
    set: &FileSet,
    work: impl FnOnce(&VolumeStore, &FileSet) -> Result<T, volume_store::Error> + Send + 'static,
) -> Result<T, String> {
    let (store, set) = (shared.store.clone(), set.clone());
    let done = tokio::task::spawn_blocking(move || work(&store, &set)).await;
    done.map_err(|error| error.to_string())?.map_err(|error| ErrorChain(&error).to_string())
}
