//! Pure. Adds rare features to random problems: plugins with built-in constraints, holds of servers, and ignored
//! unmanaged files. It uses its own random numbers, so that the rest of a problem does not change.

use resolver::request::Hold;
use resolver::unmanaged_jar::UnmanagedPlugins;

use super::generate::Dice;
use super::problem::Problem;

/// Plugins with built-in constraints, dependents first, and versions on both sides of the known limits.
const KNOWN: [(&[&str], &[&str]); 3] = [
    (&["EssentialsXChat", "EssentialsX"], &["2.20.1", "2.21.0", "2.21.1", "2.21.2"]),
    (&["WorldGuard", "WorldEdit"], &["7.0.8", "7.0.10", "7.0.11", "7.2.12", "7.2.14", "7.3.0", "7.3.4"]),
    (
        &["ViaRewind", "ViaBackwards", "ViaVersion"],
        &["4.0.5", "4.0.9", "4.0.13", "4.8.0", "5.2.1", "5.4.0", "5.7.0", "5.7.1", "9.9.9"],
    ),
];

/// Gives some of the projects names of known plugins.
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

/// Moves some holds to the server, and lets some servers ignore their unmanaged files.
pub(crate) fn scatter(dice: &mut Dice, problem: &mut Problem) {
    let holds = problem.request.plugins.iter_mut().filter_map(|wish| wish.hold.as_mut());
    holds.filter(|_| dice.chance(40)).for_each(|hold| *hold = Hold::Server);
    if dice.chance(15) {
        problem.request.unmanaged_plugins = UnmanagedPlugins::Ignore;
    }
}
