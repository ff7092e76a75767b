//! Pure. Finds plugin names that several files of a version set share: a server loads only one of them, and it is not
//! predictable which.

use std::collections::BTreeMap;

use crate::explanation::shared_name::SharedName;
use crate::index::CandidateIndex;
use crate::index::chosen::Chosen;
use crate::model::catalog::ProjectKey;
use crate::model::name_conflict::{JarNameConflict, find_conflicts, folded};
use crate::model::unmanaged_jar::unmanaged_conflicts;

/// The names that several files of a version set share, including unmanaged JARs. The flag tells whether one of the
/// files is managed and was read: the operator does not deploy a version set with such a name.
pub(super) fn conflicts_of_version_set(candidates: &CandidateIndex<'_>, chosen: &Chosen) -> Vec<(SharedName, bool)> {
    let releases = candidates.plugins.iter().zip(&chosen.releases);
    let mut read_files: Vec<&str> = Vec::new();
    let managed: Vec<(&str, Option<Vec<&str>>, &str)> = releases
        .filter_map(|(plugin, position)| {
            let release = plugin.releases[(*position)?].release;
            let jars = plugin.rules.jars.select(release).ok()?;
            read_files.extend(jars.iter().filter(|jar| jar.declared.is_some()).map(|jar| jar.file.name.as_str()));
            Some(jars.into_iter().map(|jar| {
                let declared = jar.declared.map(|declared| declared.names().collect());
                (jar.file.name.as_str(), declared, plugin.project.name.as_str())
            }))
        })
        .flatten()
        .collect();
    // Compared with unmanaged files, a JAR that was not read counts under the display name of its project. That is no
    // proof against another project.
    let named_files: Vec<_> = (managed.iter().cloned())
        .map(|(file, names, project)| (file, names.unwrap_or_else(|| vec![project])))
        .collect();
    let read = managed.into_iter().filter_map(|(file, names, _)| Some((file, names?)));
    let mut shared = find_conflicts(read);
    shared.extend(unmanaged_conflicts(candidates.request, &named_files));
    let conflicts = shared.into_iter().map(|JarNameConflict { name, files }| {
        let is_refused = files.iter().any(|file| read_files.contains(&file.as_str()));
        (SharedName { name, files }, is_refused)
    });
    conflicts.collect()
}

/// The names that several projects of a version set share, and the projects. Projects whose JARs were all read are left
/// out, because their plugin names are known.
pub(super) fn projects_of_one_name(candidates: &CandidateIndex<'_>, chosen: &Chosen) -> Vec<(String, Vec<ProjectKey>)> {
    let mut by_name: BTreeMap<String, (String, Vec<(ProjectKey, bool)>)> = BTreeMap::new();
    for (plugin, position) in candidates.plugins.iter().zip(&chosen.releases) {
        let Some(release) = position.map(|position| plugin.releases[position].release) else { continue };
        let jars = plugin.rules.jars.select(release).unwrap_or_default();
        let is_read = jars.iter().all(|jar| jar.declared.is_some());
        let (name, key) = (&plugin.project.name, plugin.project.key.clone());
        let (_, projects) = by_name.entry(folded(name)).or_insert_with(|| (name.clone(), Vec::new()));
        projects.push((key, is_read));
    }
    let several = by_name.into_values().filter(|(_, projects)| projects.len() > 1);
    let unread = several.filter(|(_, projects)| projects.iter().any(|(_, is_read)| !is_read));
    unread
        .map(|(name, projects)| {
            let mut keys: Vec<ProjectKey> = projects.into_iter().map(|(key, _)| key).collect();
            keys.sort();
            (name, keys)
        })
        .collect()
}

/// The first name for which the operator refuses to deploy a version set.
pub(super) fn blocking_conflict(candidates: &CandidateIndex<'_>, chosen: &Chosen) -> Option<SharedName> {
    conflicts_of_version_set(candidates, chosen)
        .into_iter()
        .find_map(|(shared, is_refused)| is_refused.then_some(shared))
}
