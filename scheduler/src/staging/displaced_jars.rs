//! Edge (writes). Records which unmanaged JARs were displaced by managed plugins, and their new paths.

use super::fs_ops::{self, Disk, FsHook};
use super::{Volume, read_record};
use crate::protocol::ReplacedJar;

/// How many are recorded. A user who puts a JAR back each time has been informed by then.
const KEPT: usize = 20;

/// Records a JAR that is about to be moved. After a crash in between, the record names a file that does not exist. Such a line is not reported,
/// and the next swap moves the file to the same path.
pub(super) fn note<S: FsHook>(
    volume: &Volume,
    disk: &mut Disk<S>,
    file: String,
    place: String,
) -> Result<(), fs_ops::Error> {
    let mut known = remembered(volume);
    known.retain(|jar| jar.place != place);
    known.push(ReplacedJar { file, place });
    let forgotten = known.len().saturating_sub(KEPT);
    disk.write_record(&volume.replaced_path(), &known.split_off(forgotten))
}

/// The displaced JARs that still exist, the latest first. A JAR that a user has removed needs no report.
pub fn replaced(volume: &Volume) -> Vec<ReplacedJar> {
    let mut known = remembered(volume);
    known.retain(|jar| volume.root().join(&jar.place).exists());
    known.reverse();
    known
}

/// An unreadable record is started anew: no decision depends on it, and it must not prevent a start.
fn remembered(volume: &Volume) -> Vec<ReplacedJar> {
    read_record(&volume.replaced_path()).ok().flatten().unwrap_or_default()
}
