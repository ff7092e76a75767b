//! Edge (writes). Saves the data of changing plugins before a swap, and restores it when the version set has failed.

use jiff::Timestamp;
use tracing::{info, warn};

use super::signed_requests::SignedRequests;
use super::{ErrorChain, clock, play_record};
use crate::plugin_data::{Error, finish, prune_saved, restore_data, save_data};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{Volume, read_record};
use crate::world::Worlds;
use agent_api::plugin_data::{DataPiece, PluginData, PluginDataRestored, Settings};
use agent_api::signed::Document;
use agent_api::{FileSet, RestoreRequest, Restored};

/// The work between the stop of one version set and the swap to `set`. `limit` is the maximum size of one folder or file, in bytes. 0 means that
/// no data is saved. `requests` are the mounted requests.
pub(super) fn before_swap(
    volume: &Volume,
    set: &FileSet,
    limit: u64,
    requests: Option<&SignedRequests>,
) -> Result<(), Error> {
    let mut disk = Disk::new(RealFs);
    if let Some(done) = finish(volume, &mut disk)? {
        log_restored(&done);
    }
    if let Some(failed) = failed_set(volume, set, requests)? {
        let played = |saved_at| may_have_played(volume, saved_at);
        if let Some(done) = restore_data(volume, &set.lock, &failed, played, &mut disk, clock::now())? {
            log_restored(&done);
        }
        // The rollback must not be delayed, so the data of the failed version set is not saved again.
        return Ok(());
    }
    if let Some(record) = save_data(volume, set, limit, &mut disk, clock::now())? {
        log_saved(&record);
    }
    Ok(())
}

/// The failed version set, if it is the one on the volume and a restore request makes this start roll back from it.
fn failed_set(volume: &Volume, set: &FileSet, requests: Option<&SignedRequests>) -> Result<Option<String>, Error> {
    let Some(requests) = requests else { return Ok(None) };
    let restore_request = match requests.read::<RestoreRequest>(Document::Rollback) {
        Ok(restore_request) => restore_request.filter(|restore_request| restore_request.to == set.lock),
        // The operator is newer and its request is not understood. Plugin data is not worth a server that does not start.
        Err(error) => {
            warn!("{}", ErrorChain(&error));
            None
        }
    };
    let current_lock = volume.manifest()?.map(|manifest| manifest.lock);
    Ok(restore_request
        .map(|restore_request| restore_request.failed)
        .filter(|failed| current_lock.as_ref() == Some(failed)))
}

/// Whether players may have been online since the data was saved. Worlds that were restored since contain no progress made with the failed
/// version set.
fn may_have_played(volume: &Volume, saved_at: Timestamp) -> bool {
    let restored: Option<Restored> = read_record(&volume.restored_path()).unwrap_or(None);
    let worlds_restored = restored.is_some_and(|restored| restored.at > saved_at);
    let is_unplayed = || {
        Worlds::read(volume.root()).is_ok_and(|worlds| !play_record::may_have_played_since(volume, &worlds, saved_at))
    };
    !worlds_restored && !is_unplayed()
}

/// Called when the server starts: removes data that is older than the last two changes.
pub(super) fn remove_outdated(volume: &Volume, set: &FileSet) -> Result<(), Error> {
    let mut disk = Disk::new(RealFs);
    crate::plugin_data::remove_outdated_record(volume, set, &mut disk)?;
    match prune_saved(volume, &mut disk) {
        Ok(removed) => {
            for path in removed {
                info!("removed {}: data and settings of older version sets", path.display());
            }
        }
        // Leftover copies do not prevent a start.
        Err(error) => warn!("could not remove data and settings of older version sets: {}", ErrorChain(&error)),
    }
    Ok(())
}

fn join_paths(pieces: &[DataPiece]) -> String {
    pieces.iter().map(DataPiece::path).collect::<Vec<_>>().join(", ")
}

fn log_saved(record: &PluginData) {
    if let Some(place) = &record.place {
        info!("saved in {place} before this change: {}", join_paths(&record.kept));
    }
    if let Some(Settings { files, of, place }) = &record.settings {
        info!("saved in {place}: {files} of {of} settings files of plugins that do not change");
    }
    for not_kept in &record.not_kept {
        warn!("not saved: {not_kept}");
    }
    for name in &record.left_out {
        warn!("skipped {name}: neither a file nor a directory nor a link");
    }
}

fn log_restored(record: &PluginData) {
    let saved = join_paths(&record.kept);
    let place = record.place.as_deref().unwrap_or("nowhere");
    match &record.back {
        Some(PluginDataRestored::Done { at: _, set_aside }) => {
            warn!("restored to their state before the failed version set: {saved}");
            if let Some(set_aside) = set_aside {
                warn!("the files of the failed version set are in {set_aside}");
            }
        }
        Some(PluginDataRestored::SomebodyPlayed { at: _ }) => {
            warn!("players may have joined since, so these are not restored: {saved}, saved in {place}");
        }
        Some(PluginDataRestored::Impossible { at: _, problem }) => {
            warn!("could not restore {saved}, saved in {place}: {problem}");
        }
        None => {}
    }
}
