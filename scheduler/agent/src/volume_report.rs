//! Edge (reads). Reports on a server's volume: the part of a report that needs no running server.

use std::path::Path;

use super::{ErrorChain, backups_report};
use crate::staging::drift::unmanaged;
use crate::staging::{Volume, displaced_jars, read_record};
use crate::world::Worlds;
use agent_api::plugin_data::PluginData;
use agent_api::restore::SeedResult;
use agent_api::{BackupsReport, ReplacedJar, WorldReport};

/// The content of a volume and of its backup repository.
#[derive(Debug)]
pub struct VolumeReport {
    /// Its worlds.
    pub world: WorldReport,
    /// The lock that was last applied to the server's directory.
    pub lock: Option<String>,
    /// Unmanaged JARs in `plugins/`.
    pub unmanaged: Vec<String>,
    /// Unmanaged JARs that were displaced by managed ones.
    pub replaced: Vec<ReplacedJar>,
    /// The backups. `None` for a server without backups. It lacks the part that only the agent knows.
    pub backups: Option<BackupsReport>,
    /// Plugins' data that was saved before the last change of the version set.
    pub plugin_data: Option<PluginData>,
    /// The result of the restore request for a volume without a world.
    pub new_volume: Option<SeedResult>,
}

impl VolumeReport {
    /// Reads it now. `backups` is the server's own directory. Blocks on the disk.
    ///
    /// # Errors
    /// As text, when worlds, manifest or plugins cannot be read.
    pub fn read(volume: &Volume, backups: Option<&Path>) -> Result<Self, String> {
        let worlds = Worlds::read(volume.root()).map_err(|error| ErrorChain(&error).to_string())?;
        let manifest = volume.manifest().map_err(|error| ErrorChain(&error).to_string())?;
        let unmanaged = unmanaged(volume, manifest.as_ref()).map_err(|error| ErrorChain(&error).to_string())?;
        let lock = manifest.map(|manifest| manifest.lock);
        Ok(Self {
            world: worlds.report(),
            unmanaged,
            replaced: displaced_jars::displaced_jars(volume),
            backups: backups.map(|backups| backups_report::report(backups, volume, lock.as_deref(), &worlds)),
            lock,
            plugin_data: crate::plugin_data::last(volume),
            new_volume: read_record(&volume.new_volume_path()).unwrap_or(None),
        })
    }
}
