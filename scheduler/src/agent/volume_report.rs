//! Edge (reads, and writes one record). What the volume of a server says of itself: the part of a report that needs no server that runs.

use std::path::Path;

use super::{Chain, pre_update_backup};
use crate::protocol::plugin_data::PluginData;
use crate::protocol::restore::NewVolume;
use crate::protocol::{BackupsSeen, ReplacedJar, WorldSeen};
use crate::staging::drift::unmanaged;
use crate::staging::{Volume, displaced_jars, fs_ops, read_record};
use crate::world::Worlds;

/// What lies on a volume, and beside it where its copies are kept.
#[derive(Debug)]
pub struct VolumeReport {
    /// Its worlds.
    pub world: WorldSeen,
    /// The lock that the server's directory was made equal to last.
    pub lock: Option<String>,
    /// JARs in `plugins/` that are not ours.
    pub unmanaged: Vec<String>,
    /// JARs of people that made room for ours.
    pub replaced: Vec<ReplacedJar>,
    /// Copies; None on a server that takes none. What only the agent knows of them is not in it.
    pub backups: Option<BackupsSeen>,
    /// Plugins' data that were kept before the set changed last.
    pub plugin_data: Option<PluginData>,
    /// What came of the order for a volume without a world.
    pub new_volume: Option<NewVolume>,
}

impl VolumeReport {
    /// Reads it now; `backups` is the server's own directory. Waits for the disk.
    ///
    /// # Errors
    /// In words, when worlds, manifest or plugins cannot be read.
    pub fn read(volume: &Volume, backups: Option<&Path>) -> Result<Self, String> {
        let worlds = Worlds::read(volume.root()).map_err(|error| Chain(&error).to_string())?;
        let manifest = volume.manifest().map_err(|error| Chain(&error).to_string())?;
        let unmanaged = unmanaged(volume, manifest.as_ref()).map_err(|error| Chain(&error).to_string())?;
        let lock = manifest.map(|manifest| manifest.lock);
        Ok(Self {
            world: worlds.seen(),
            unmanaged,
            replaced: displaced_jars::replaced(volume),
            backups: backups.map(|backups| pre_update_backup::look(backups, volume, lock.as_deref(), &worlds)),
            lock,
            plugin_data: crate::plugin_data::last(volume),
            new_volume: read_record(&volume.new_volume_path()).unwrap_or(None),
        })
    }
}

/// Puts down on the volume that somebody plays: neither worlds nor plugins' data are put back over that.
///
/// # Errors
/// When the disk does not take it.
pub fn note_players(volume: &Volume) -> Result<(), fs_ops::Error> {
    pre_update_backup::note_players(volume)
}
