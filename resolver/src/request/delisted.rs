//! Pure. A release that runs and that its page has lost: what the lock still knows of it.

use serde::{Deserialize, Serialize};

use super::Running;
use crate::catalog::{
    Artifact, Catalog, Channel, Dependency, DependencyKind, FurtherJar, Project, ProjectKey, Release,
};
use crate::lock::{Lock, LockReason, LockedPlugin};
use crate::software::Software;
use crate::version::Minecraft;

/// A release that runs and that its page has no more, as far as the lock that runs knows it. Its files lie on the server's own volume, so
/// that the server, and no other one, may keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DelistedRelease {
    /// Where it came from.
    pub project: ProjectKey,
    /// As a page would have it. It has no date, so that nothing is older, and is listed for nothing but the Minecraft that it runs on.
    pub release: Release,
}

/// Whether there is anything of a project for a server: on its page something for such servers, or what runs and the page has lost.
pub(crate) fn has_any(project: &Project, software: Software, running: Option<&Running>) -> bool {
    let lost = running.and_then(|running| running.lost_release(project));
    project.releases.iter().chain(lost).any(|release| software.is_kin_of(release))
}

/// Where a lost release runs, which is all that is known of where it would.
#[derive(Debug, Clone, Copy)]
pub struct RunsOn<'x> {
    /// As what the server runs.
    pub software: Software,
    /// On which Minecraft.
    pub minecraft: &'x Minecraft,
    /// With which Java: it needs none that is newer.
    pub java: Option<u32>,
}

impl DelistedRelease {
    /// What is known of a release: its id and version, the projects (by their ids at the source) that came for it, its files. Without a
    /// file there is nothing to keep.
    pub fn new(
        project: ProjectKey,
        (id, version): (String, String),
        on: RunsOn<'_>,
        needs: impl IntoIterator<Item = String>,
        files: impl IntoIterator<Item = Artifact>,
    ) -> Option<Self> {
        let RunsOn { software, minecraft, java } = on;
        let folia = (software == Software::Folia).then_some(true);
        let mut files = files.into_iter();
        let file = files.next()?;
        let needs = needs.into_iter().map(|id| Dependency {
            project_id: Some(id),
            name: None,
            version_id: None,
            kind: DependencyKind::Required,
        });
        let release = Release {
            id,
            version,
            published: None,
            channel: Channel::Release,
            minecraft: vec![minecraft.clone()],
            loaders: vec![software.project().to_owned()],
            folia,
            api_version: None,
            java,
            declared: None,
            dependencies: needs.collect(),
            file: Some(file),
            further: files.map(|file| FurtherJar { java, folia, ..FurtherJar::unread(file) }).collect(),
        };
        Some(Self { project, release })
    }

    /// Those of a lock that runs. A proxy's pages list lines, of which a lock says nothing.
    fn all_of(lock: &Lock, catalog: &Catalog) -> Vec<Self> {
        if !lock.software.is_minecraft() {
            return Vec::new();
        }
        let lost = lock.plugins.iter().filter_map(|plugin| {
            // Of a project that nobody has read it is not known what it has lost.
            let project = catalog.project(&plugin.key).filter(|project| !project.has(&plugin.release_id))?;
            let came_for_it = |other: &&LockedPlugin| match &other.reason {
                LockReason::NeededBy(names) => names.contains(&plugin.name) && other.key.source == plugin.key.source,
                LockReason::RequestedBy(_) => false,
            };
            let files = plugin.files().map(|file| Artifact {
                name: file.name.clone(),
                url: file.url.clone(),
                size: file.size,
                hash: Some(file.hash.clone()),
            });
            Self::new(
                project.key.clone(),
                (plugin.release_id.clone(), plugin.version.clone()),
                RunsOn { software: lock.software, minecraft: &lock.minecraft, java: Some(lock.java) },
                lock.plugins.iter().filter(came_for_it).map(|other| other.project_id.clone()),
                files,
            )
        });
        lost.collect()
    }
}

impl Running {
    /// With those releases of the lock that makes it run which their pages have lost since.
    #[must_use]
    pub fn with_lost(self, lock: &Lock, catalog: &Catalog) -> Self {
        Self { lost: DelistedRelease::all_of(lock, catalog), ..self }
    }

    /// The release of a project that runs, as it can be kept although its page has it no more.
    pub(crate) fn lost_release(&self, project: &Project) -> Option<&Release> {
        let lost = self.lost.iter().find(|lost| lost.project == project.key)?;
        (!project.has(&lost.release.id)).then_some(&lost.release)
    }
}
