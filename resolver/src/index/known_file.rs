//! Pure. Defines an unmanaged JAR that an upstream knows by its hash.

use crate::model::catalog::{Catalog, Project, Release};

/// An unmanaged JAR and the release it was identified as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownFile<'a> {
    pub(super) file: &'a str,
    /// Position of the project.
    pub(super) position: usize,
    pub(super) project: &'a Project,
    pub(super) release: &'a Release,
}

impl PartialEq for KnownFile<'_> {
    fn eq(&self, other: &Self) -> bool {
        let Self { file, position, project: _, release } = self;
        (*file, *position, &release.id) == (other.file, other.position, &other.release.id)
    }
}

impl Eq for KnownFile<'_> {}

impl KnownFile<'_> {
    /// Whether the file belongs to the project at `position`, or to its namesake at another site.
    pub(super) fn is_for(&self, catalog: &Catalog, position: usize) -> bool {
        self.position == position || are_namesakes(self.project, &catalog.projects[position])
    }
}

/// Whether two projects are the same plugin at two sites.
pub(crate) fn are_namesakes(one: &Project, other: &Project) -> bool {
    one.key.source != other.key.source && one.name.eq_ignore_ascii_case(&other.name)
}
