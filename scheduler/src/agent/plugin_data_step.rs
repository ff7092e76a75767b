//! Edge (writes). Saves the data of changing plugins before a swap, and restores it when the version set has failed.

use std::path::Path;

use jiff::Timestamp;
use tracing::{info, warn};

use super::{Chain, clock, pre_update_backup};
use crate::plugin_data::{Error, finish, forget_old, keep, put_back};
use crate::protocol::plugin_data::{DataPiece, PluginData, PluginDataRestored, Settings};
use crate::protocol::{FileSet, RestoreOrder, Restored};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{Volume, read_record};
use crate::world::Worlds;

/// The work between the stop of one version set and the swap to `set`. `limit` is the maximum size of one folder or file, in bytes. 0 means that
/// no data is saved. `order` is the path at which a restore request is mounted.
pub(super) fn before_swap(volume: &Volume, set: &FileSet, limit: u64, order: Option<&Path>) -> Result<(), Error> {
    let mut disk = Disk::new(RealFs);
    if let Some(done) = finish(volume, &mut disk)? {
        say_back(&done);
    }
    if let Some(failed) = failed_before(volume, set, order)? {
        let played = |kept_at| may_have_played(volume, kept_at);
        if let Some(done) = put_back(volume, &set.lock, &failed, played, &mut disk, clock::now())? {
            say_back(&done);
        }
        // The rollback must not be delayed, so the data of the failed version set is not saved again.
        return Ok(());
    }
    if let Some(record) = keep(volume, set, limit, &mut disk, clock::now())? {
        say_kept(&record);
    }
    Ok(())
}

/// The failed version set, if it is the one on the volume and a restore request makes this start roll back from it.
fn failed_before(volume: &Volume, set: &FileSet, order: Option<&Path>) -> Result<Option<String>, Error> {
    let Some(order) = order else { return Ok(None) };
    let order = match read_record::<RestoreOrder>(order) {
        Ok(order) => order.filter(|order| order.to == set.lock),
        // The operator is newer and its request is not understood. Plugin data is not worth a server that does not start.
        Err(error) => {
            warn!("{}", Chain(&error));
            None
        }
    };
    let here = volume.manifest()?.map(|manifest| manifest.lock);
    Ok(order.map(|order| order.failed).filter(|failed| here.as_ref() == Some(failed)))
}

/// Whether players may have been online since the data was saved. Worlds that were restored since contain no progress made with the failed
/// version set.
fn may_have_played(volume: &Volume, kept_at: Timestamp) -> bool {
    let restored: Option<Restored> = read_record(&volume.restored_path()).unwrap_or(None);
    let worlds_went_back = restored.is_some_and(|restored| restored.at > kept_at);
    let nobody_has =
        || Worlds::read(volume.root()).is_ok_and(|worlds| !pre_update_backup::played_since(volume, &worlds, kept_at));
    !worlds_went_back && !nobody_has()
}

/// Called when the server starts: removes data that is older than the last two changes.
pub(super) fn step_is_over(volume: &Volume, set: &FileSet) -> Result<(), Error> {
    let mut disk = Disk::new(RealFs);
    crate::plugin_data::step_is_over(volume, set, &mut disk)?;
    match forget_old(volume, &mut disk) {
        Ok(gone) => gone.iter().for_each(|place| info!("removed {}: data and settings of older sets", place.display())),
        // Leftover copies do not prevent a start.
        Err(error) => warn!("data and settings of older sets stay: {}", Chain(&error)),
    }
    Ok(())
}

fn paths(pieces: &[DataPiece]) -> String {
    pieces.iter().map(DataPiece::path).collect::<Vec<_>>().join(", ")
}

fn say_kept(record: &PluginData) {
    if let Some(place) = &record.place {
        info!("kept in {place}, as before this change: {}", paths(&record.kept));
    }
    if let Some(Settings { files, of, place }) = &record.settings {
        info!("kept in {place}: {files} of {of} files of settings, of the plugins that stay as they are");
    }
    for not_kept in &record.not_kept {
        warn!("not kept: {not_kept}");
    }
    for name in &record.left_out {
        warn!("{name} is not in it: neither a file nor a directory nor a link");
    }
}

fn say_back(record: &PluginData) {
    let kept = paths(&record.kept);
    let place = record.place.as_deref().unwrap_or("nowhere");
    match &record.back {
        Some(PluginDataRestored::Done { at: _, set_aside }) => {
            warn!("these are what they were before the set that failed: {kept}");
            if let Some(set_aside) = set_aside {
                warn!("what that set has written lies in {set_aside}");
            }
        }
        Some(PluginDataRestored::SomebodyPlayed { at: _ }) => {
            warn!("somebody may have played since, so these are not put back: {kept}, kept in {place}");
        }
        Some(PluginDataRestored::Impossible { at: _, problem }) => {
            warn!("these are not put back: {kept}, kept in {place}: {problem}");
        }
        None => {}
    }
}
