//! Edge (writes). Which JARs of people made room for managed plugins, and where they lie since.

use super::fs_ops::{self, Disk, FsHook};
use super::{Volume, read_record};
use crate::protocol::ReplacedJar;

/// As many are remembered. Somebody who puts a JAR back each time has read of it by then.
const KEPT: usize = 20;

/// Writes down what is about to be moved. Before it is: a crash in between leaves a line about a file that does not lie there, which is not
/// told, and the next swap moves it to the very same place.
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

/// Those that lie there still, the last one first. Whoever takes one away has seen to it.
pub fn replaced(volume: &Volume) -> Vec<ReplacedJar> {
    let mut known = remembered(volume);
    known.retain(|jar| volume.root().join(&jar.place).exists());
    known.reverse();
    known
}

/// A record that cannot be read is begun anew: nothing is decided by it, and it must not keep a server from starting.
fn remembered(volume: &Volume) -> Vec<ReplacedJar> {
    read_record(&volume.replaced_path()).ok().flatten().unwrap_or_default()
}
