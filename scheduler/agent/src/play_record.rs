//! Edge (writes). Knows whether players were on the server since an instant, so that nothing is restored over their progress.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::clock;
use crate::plain_fs::{Walk, WalkError, Walked, exists};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{Volume, read_record};
use crate::world::Worlds;

/// `played.json`: a player was seen on the server. The instant is the first since its pod started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlayedMarker {
    at: Timestamp,
}

/// Records on the volume that the server has players, so that neither worlds nor plugins' data are restored over their progress.
///
/// # Errors
/// When the write fails.
pub fn record_players(volume: &Volume) -> Result<(), fs_ops::Error> {
    Disk::new(RealFs).write_record(&volume.played_path(), &PlayedMarker { at: clock::now() })
}

/// Whether players may have been online since a backup that began at `since`. Evidence is the agent's record and the files that Minecraft writes
/// for each player. Unreadable evidence counts as yes. A backup dated in the future also counts as yes: its clock was ahead, so all later play
/// seems to be older.
pub(super) fn may_have_played_since(volume: &Volume, worlds: &Worlds, since: Timestamp) -> bool {
    if since > clock::now() {
        return true;
    }
    match read_record::<PlayedMarker>(&volume.played_path()) {
        Ok(Some(played)) if played.at > since => return true,
        Err(_) => return true,
        Ok(_) => {}
    }
    let directories =
        worlds.folders.iter().flat_map(|folder| ["playerdata", "players"].map(|directory| folder.path.join(directory)));
    let files = directories.filter(|directory| exists(directory)).flat_map(|directory| Walk::new(&directory));
    let changed_later = |walked: Result<Walked, WalkError>| {
        let Ok(Walked { entry: _, metadata }) = walked else { return true };
        if !metadata.is_file() {
            return false;
        }
        let modified = metadata.modified().ok();
        modified.and_then(|modified| Timestamp::try_from(modified).ok()).is_none_or(|at| at > since)
    };
    files.into_iter().any(changed_later)
}
