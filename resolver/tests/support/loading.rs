//! What a server's software loads, said a second time and without the solver's code.

use resolver::catalog::{Release, Source};
use resolver::software::Software;

use super::rules::Terms;

/// What a page may say that it is for, so that a server of this kind can be meant.
pub(crate) fn is_meant_for(software: Software, release: &Release) -> bool {
    let ours: &[&str] = match software {
        Software::Paper => &["paper", "spigot", "bukkit"],
        Software::Purpur => &["paper", "spigot", "bukkit", "purpur"],
        Software::Folia => &["paper", "spigot", "bukkit", "folia"],
        Software::Velocity => &["velocity"],
    };
    release.loaders.is_empty() || release.loaders.iter().any(|loader| ours.contains(&loader.to_lowercase().as_str()))
}

/// Whether the software loads a release: `None` where nobody can know it of Folia yet.
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
        () if !inside.is_empty() && inside.iter().all(|says| *says == Some(true)) => Some(true),
        () => (source != Source::Hangar).then_some(false),
    }
}

/// Whether a page has a list that binds: what Modrinth lists is not about proxies.
pub(crate) fn has_list(software: Software, source: Source, release: &Release) -> bool {
    !release.minecraft.is_empty() && (software != Software::Velocity || source == Source::Hangar)
}
