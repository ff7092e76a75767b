//! Pure. Decides which releases a server's software loads: a second implementation without the solver's code.

use resolver::model::catalog::{Release, Source};
use resolver::model::software::Software;

use super::rules::Terms;

/// Whether the loaders on the page include this software or one that it is compatible with.
pub(crate) fn is_meant_for(software: Software, release: &Release) -> bool {
    let accepted: &[&str] = match software {
        Software::Paper => &["paper", "spigot", "bukkit"],
        Software::Purpur => &["paper", "spigot", "bukkit", "purpur"],
        Software::Folia => &["paper", "spigot", "bukkit", "folia"],
        Software::Velocity => &["velocity"],
    };
    release.loaders.is_empty()
        || release.loaders.iter().any(|loader| accepted.contains(&loader.to_lowercase().as_str()))
}

/// Whether the software loads a release. `None` if that is unknown for Folia.
pub(crate) fn loads(terms: &Terms<'_>, source: Source, release: &Release) -> Option<bool> {
    if !is_meant_for(terms.software, release) {
        return Some(false);
    }
    if terms.software != Software::Folia {
        return Some(true);
    }
    let inside: Vec<Option<bool>> = terms.files(release).into_iter().flatten().map(|file| file.folia).collect();
    let on_page = release.loaders.is_empty() || release.loaders.iter().any(|loader| loader.to_lowercase() == "folia");
    match () {
        () if inside.contains(&Some(false)) => Some(false),
        () if on_page => Some(true),
        () if !inside.is_empty() && inside.iter().all(|supports| *supports == Some(true)) => Some(true),
        () => (source != Source::Hangar).then_some(false),
    }
}

/// Whether the list of a release applies. A release may have none, and lists on Modrinth do not apply to proxies.
pub(crate) fn has_list(software: Software, source: Source, release: &Release) -> bool {
    !release.minecraft.is_empty() && (software != Software::Velocity || source == Source::Hangar)
}
