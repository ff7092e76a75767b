//! Pure. Suggests slugs for a misspelt one when the store is empty.

use from_api::pasted_slug;
use resolver::model::catalog::{ProjectKey, Source};
use resolver::model::did_you_mean::nearest;

/// Slugs of widely used projects. All are in the recorded responses or in the dependencies that those name. The list
/// only helps with spelling: a slug that is not in it is looked up all the same.
const MODRINTH_SLUGS: &[&str] = &[
    "bluemap",
    "chunky",
    "discordsrv",
    "essentialsx",
    "geyser",
    "griefprevention",
    "luckperms",
    "multiverse-core",
    "placeholderapi",
    "viabackwards",
    "viarewind",
    "viaversion",
    "vaultunlocked",
    "worldedit",
];

/// The same for Hangar. Its slugs have capitals and are compared without case.
const HANGAR_SLUGS: &[&str] = &[
    "BlueMap",
    "Chunky",
    "Essentials",
    "Geyser",
    "Maintenance",
    "Multiverse-Core",
    "PlaceholderAPI",
    "ViaBackwards",
    "ViaRewind",
    "ViaVersion",
];

/// Suggests a replacement for a project that its source does not have. `stored` are the projects in the store.
pub(crate) fn suggest(wrong: &ProjectKey, stored: &[ProjectKey]) -> String {
    let candidates = |source: Source| {
        let slugs = match source {
            Source::Hangar => HANGAR_SLUGS,
            Source::Modrinth => MODRINTH_SLUGS,
            Source::Url => &[],
        };
        let stored = stored.iter().filter(move |key| key.source == source).map(|key| key.project.as_str());
        stored
            .chain(slugs.iter().copied())
            .filter(move |project| !(source == wrong.source && *project == wrong.project))
    };
    if let Some(slug) = pasted_slug(&wrong.project) {
        return format!("write its slug alone: `{slug}`");
    }
    if let Some(suggestion) = nearest(&wrong.project, candidates(wrong.source)).next() {
        return format!("did you mean `{suggestion}`?");
    }
    let other = match wrong.source {
        Source::Hangar => Source::Modrinth,
        Source::Modrinth | Source::Url => Source::Hangar,
    };
    match nearest(&wrong.project, candidates(other)).next() {
        Some(suggestion) => format!("there is `{{type: {other}, project: {suggestion}}}`"),
        None => "write the slug, the last part of the project page's address".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: Source, project: &str) -> ProjectKey {
        ProjectKey { source, project: project.to_owned() }
    }

    #[test]
    fn misspelt_project_slug_gets_nearest_existing_one() {
        let stored = [key(Source::Modrinth, "clickvillagers")];
        let fix = |source, project| suggest(&key(source, project), &stored);
        assert_eq!(fix(Source::Modrinth, "viabackward"), "did you mean `viabackwards`?");
        assert_eq!(fix(Source::Modrinth, "click-villager"), "did you mean `clickvillagers`?");
        assert_eq!(fix(Source::Hangar, "clickvillagers"), "there is `{type: modrinth, project: clickvillagers}`");
        assert!(fix(Source::Hangar, "something-else-entirely").contains("the slug"));
        assert_eq!(fix(Source::Modrinth, "@luckperms"), "write its slug alone: `luckperms`");
    }
}
