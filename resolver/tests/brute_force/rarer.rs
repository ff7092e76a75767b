//! Pure. What few random problems hold: plugins of which something is built in, holds that a server says, files of one's own that
//! nobody minds. By dice of their own, so that all else of a problem stays what it was before there were any.

use resolver::request::Hold;
use resolver::unmanaged_jar::UnmanagedPlugins;

use super::generate::Dice;
use super::problem::Problem;

/// Plugins of which something is built in, those that need before those that are needed, and versions on both sides of what is
/// known.
const KNOWN: [(&[&str], &[&str]); 3] = [
    (&["EssentialsXChat", "EssentialsX"], &["2.20.1", "2.21.0", "2.21.1", "2.21.2"]),
    (&["WorldGuard", "WorldEdit"], &["7.0.8", "7.0.10", "7.0.11", "7.2.12", "7.2.14", "7.3.0", "7.3.4"]),
    (
        &["ViaRewind", "ViaBackwards", "ViaVersion"],
        &["4.0.5", "4.0.9", "4.0.13", "4.8.0", "5.2.1", "5.4.0", "5.7.0", "5.7.1", "9.9.9"],
    ),
];

/// Names some of the projects after plugins that are known.
pub(crate) fn names(dice: &mut Dice, names: &mut [String]) {
    let (known, _) = *dice.one(&KNOWN);
    if names.len() >= known.len() && dice.chance(8) {
        for (name, known) in names.iter_mut().zip(known) {
            (*known).clone_into(name);
        }
    }
}

/// The versions that a known project may have.
pub(crate) fn versions(project: &str) -> Option<&'static [&'static str]> {
    KNOWN.iter().find(|(names, _)| names.contains(&project)).map(|(_, versions)| *versions)
}

/// Lets servers say some of the holds, and some of them not mind their own files.
pub(crate) fn scatter(dice: &mut Dice, problem: &mut Problem) {
    let holds = problem.request.plugins.iter_mut().filter_map(|wish| wish.hold.as_mut());
    holds.filter(|_| dice.chance(40)).for_each(|hold| *hold = Hold::Server);
    if dice.chance(15) {
        problem.request.unmanaged_plugins = UnmanagedPlugins::Ignore;
    }
}
