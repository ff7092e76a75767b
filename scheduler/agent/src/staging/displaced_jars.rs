//! Edge (writes). Records which unmanaged JARs were displaced by managed plugins, and their new paths.

use std::path::Path;

use super::fs_ops::{self, Disk, FsHook, exists};
use super::{Volume, read_record};
use agent_api::{NIGHTSHIFT_DIR, ReplacedJar};

/// How many are recorded. A user who puts a JAR back each time has been informed by then.
const MAX_RECORDED: usize = 20;

/// Records a JAR that is about to be moved. After a crash in between, the record names a file that does not exist. Such a line is not reported,
/// and the next swap moves the file to the same path.
pub(super) fn record<S: FsHook>(
    volume: &Volume,
    disk: &mut Disk<S>,
    file: String,
    place: String,
) -> Result<(), fs_ops::Error> {
    let mut recorded = read_recorded(volume);
    recorded.retain(|jar| jar.place != place);
    recorded.push(ReplacedJar { file, place });
    let forgotten = recorded.len().saturating_sub(MAX_RECORDED);
    disk.write_record(&volume.displaced_jars_path(), &recorded.split_off(forgotten))
}

/// The displaced JARs that still exist, the latest first. A JAR that a user has removed needs no report.
pub fn displaced_jars(volume: &Volume) -> Vec<ReplacedJar> {
    let mut recorded = read_recorded(volume);
    recorded.retain(|jar| Path::new(&jar.place).starts_with(NIGHTSHIFT_DIR) && exists(&volume.root().join(&jar.place)));
    recorded.reverse();
    recorded
}

/// An unreadable record is started anew: no decision depends on it, and it must not prevent a start.
fn read_recorded(volume: &Volume) -> Vec<ReplacedJar> {
    read_record(&volume.displaced_jars_path()).ok().flatten().unwrap_or_default()
}
