//! Pure. Adds rare features to random problems: plugins with built-in constraints, holds that the server sets, and
//! ignored unmanaged JARs. It uses its own random numbers, so that the rest of a problem does not change.

use resolver::model::request::Hold;
use resolver::model::unmanaged_jar::UnmanagedPlugins;

use super::generate::Rng;
use super::problem::Problem;

/// Plugins with built-in constraints, dependents first, and versions below and above the minimums of those constraints.
const CONSTRAINED_PLUGINS: [(&[&str], &[&str]); 3] = [
    (&["EssentialsXChat", "EssentialsX"], &["2.20.1", "2.21.0", "2.21.1", "2.21.2"]),
    (&["WorldGuard", "WorldEdit"], &["7.0.8", "7.0.10", "7.0.11", "7.2.12", "7.2.14", "7.3.0", "7.3.4"]),
    (
        &["ViaRewind", "ViaBackwards", "ViaVersion"],
        &["4.0.5", "4.0.9", "4.0.13", "4.8.0", "5.2.1", "5.4.0", "5.7.0", "5.7.1", "9.9.9"],
    ),
];

/// Gives some of the projects the names of plugins with built-in constraints.
pub(crate) fn names(rng: &mut Rng, names: &mut [String]) {
    let (known_names, _) = *rng.choose(&CONSTRAINED_PLUGINS);
    if names.len() >= known_names.len() && rng.chance(8) {
        for (name, known_name) in names.iter_mut().zip(known_names) {
            (*known_name).clone_into(name);
        }
    }
}

/// The versions that a project with built-in constraints may have.
pub(crate) fn versions(project: &str) -> Option<&'static [&'static str]> {
    CONSTRAINED_PLUGINS.iter().find(|(names, _)| names.contains(&project)).map(|(_, versions)| *versions)
}

/// Moves some holds from the Plugin to the server, and makes some servers ignore their unmanaged JARs.
pub(crate) fn randomize(rng: &mut Rng, problem: &mut Problem) {
    let holds = problem.request.plugins.iter_mut().filter_map(|plugin_request| plugin_request.hold.as_mut());
    holds.filter(|_| rng.chance(40)).for_each(|hold| *hold = Hold::Server);
    if rng.chance(15) {
        problem.request.unmanaged_plugins = UnmanagedPlugins::Ignore;
    }
}
