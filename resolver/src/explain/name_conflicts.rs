//! Pure. Finds plugin names that several files of a version set share: a server loads only one of them, and it is not
//! predictable which.

use serde::{Deserialize, Serialize};

use super::phrases::list;
use crate::index::CandidateIndex;
use crate::name_conflict::{JarNameConflict, clashes};
use crate::solve::provider::Chosen;
use crate::unmanaged_jar::shared_names;

/// A plugin name that several files declare or provide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SharedName {
    /// The name.
    pub name: String,
    /// The files in `plugins/`.
    pub files: Vec<String>,
}

/// The names that several files of a version set share, including unmanaged JARs. The flag tells whether one of the
/// files is managed and was read: the operator does not deploy a version set with such a name.
pub(super) fn of_set(world: &CandidateIndex<'_>, chosen: &Chosen) -> Vec<(SharedName, bool)> {
    let releases = world.shelves.iter().zip(&chosen.releases);
    let mut known: Vec<&str> = Vec::new();
    let managed: Vec<(&str, Option<Vec<&str>>, &str)> = releases
        .filter_map(|(shelf, place)| {
            let release = shelf.releases[(*place)?].release;
            let jars = shelf.rules.jars.pick(release).ok()?;
            known.extend(jars.iter().filter(|jar| jar.declared.is_some()).map(|jar| jar.file.name.as_str()));
            Some(jars.into_iter().map(|jar| {
                let declared = jar.declared.map(|declared| declared.names().collect());
                (jar.file.name.as_str(), declared, shelf.project.name.as_str())
            }))
        })
        .flatten()
        .collect();
    // Compared with unmanaged files, a JAR that was not read counts under the display name of its project. That is no
    // proof against another project.
    let beside_own: Vec<_> = (managed.iter().cloned())
        .map(|(file, names, project)| (file, names.unwrap_or_else(|| vec![project])))
        .collect();
    let read = managed.into_iter().filter_map(|(file, names, _)| Some((file, names?)));
    let mut shared = clashes(read);
    shared.extend(shared_names(world.request, &beside_own));
    let told = shared.into_iter().map(|JarNameConflict { name, files }| {
        let is_refused = files.iter().any(|file| known.contains(&file.as_str()));
        (SharedName { name, files }, is_refused)
    });
    told.collect()
}

/// The first name for which the operator refuses to deploy a version set.
pub(super) fn refused(world: &CandidateIndex<'_>, chosen: &Chosen) -> Option<SharedName> {
    of_set(world, chosen).into_iter().find_map(|(shared, is_refused)| is_refused.then_some(shared))
}

/// `A.jar and B.jar are both Shop`
pub(super) fn in_words(name: &str, files: &[String]) -> String {
    format!("{} are both {name}", list(files, 4))
}
