//! Pure. Models running releases that no page lists any more, from the data in the lock: delisted ones, and those of a
//! project whose slug leads to another project now.

use serde::{Deserialize, Serialize};

use super::catalog::{
    Artifact, Catalog, Channel, Dependency, DependencyKind, FurtherJar, Project, ProjectKey, Release,
};
use super::lock::{Lock, LockReason, LockedPlugin};
use super::request::Running;
use super::software::Software;
use super::version::Minecraft;

/// A running release that is delisted, as far as the running lock describes it. Its files are on the server's own
/// volume, so only that server may keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DelistedRelease {
    /// The project.
    pub project: ProjectKey,
    /// The id of the running project, if [`Self::project`] leads to another project now. A slug can be given up and
    /// taken by somebody else, so another id is never followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The release in the form of a page entry. It has no date, so it counts as the oldest, and it is listed only for
    /// the Minecraft version on which it runs.
    pub release: Release,
}

/// Whether a project has any release for a server: one on its page for such servers, or a running one that is delisted.
pub(crate) fn has_any_release(project: &Project, software: Software, running: Option<&Running>) -> bool {
    let delisted = running.and_then(|running| running.delisted_release(project));
    project.releases.iter().chain(delisted).any(|release| software.accepts_kind_of(release))
}

/// Where a delisted release runs, which is the only evidence about its compatibility.
#[derive(Debug, Clone, Copy)]
pub struct RunningEvidence<'x> {
    /// The server software.
    pub software: Software,
    /// The Minecraft version.
    pub minecraft: &'x Minecraft,
    /// The Java version. The release needs no newer one.
    pub java: Option<u32>,
}

impl DelistedRelease {
    /// Builds the known data of a release: its id and version, the projects (by their ids at the source) that were
    /// installed for it, its files. `None` without a file, because there is nothing to keep.
    pub fn new(
        project: ProjectKey,
        (id, version): (String, String),
        on: RunningEvidence<'_>,
        needs: impl IntoIterator<Item = String>,
        files: impl IntoIterator<Item = Artifact>,
    ) -> Option<Self> {
        let RunningEvidence { software, minecraft, java } = on;
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
            refused: None,
            java,
            declared: None,
            dependencies: needs.collect(),
            file: Some(file),
            further: files.map(|file| FurtherJar { java, folia, ..FurtherJar::unread(file) }).collect(),
        };
        Some(Self { project, project_id: None, release })
    }

    /// The delisted releases of a running lock. Empty for a proxy, whose pages list version lines that a lock does not
    /// contain.
    fn from_running_lock(lock: &Lock, catalog: &Catalog) -> Vec<Self> {
        if !lock.software.is_minecraft() {
            return Vec::new();
        }
        let delisted = lock.plugins.iter().filter_map(|plugin| {
            // If the project was not read, its delisted releases are unknown.
            let project = catalog.project(&plugin.key)?;
            // A lock without the id accepts the project, and the next lock records it.
            let is_same = plugin.project_id.is_empty() || plugin.project_id == project.id;
            if is_same && project.has_release(&plugin.release_id) {
                return None;
            }
            let is_dependency = |other: &&LockedPlugin| match &other.reason {
                LockReason::NeededBy(names) => names.contains(&plugin.name) && other.key.source == plugin.key.source,
                LockReason::RequestedBy(_) => false,
            };
            let files = plugin.files().map(|file| Artifact {
                name: file.name.clone(),
                url: file.url.clone(),
                size: file.size,
                hash: Some(file.hash.clone()),
            });
            let delisted = Self::new(
                project.key.clone(),
                (plugin.release_id.clone(), plugin.version.clone()),
                RunningEvidence { software: lock.software, minecraft: &lock.minecraft, java: Some(lock.java) },
                lock.plugins.iter().filter(is_dependency).map(|other| other.project_id.clone()),
                files,
            )?;
            Some(Self { project_id: (!is_same).then(|| plugin.project_id.clone()), ..delisted })
        });
        delisted.collect()
    }
}

impl Running {
    /// Adds those releases of the running lock that were delisted since.
    #[must_use]
    pub fn with_delisted(self, lock: &Lock, catalog: &Catalog) -> Self {
        Self { delisted: DelistedRelease::from_running_lock(lock, catalog), ..self }
    }

    /// The running release of a project in a form that can be kept, if its page no longer lists it.
    pub(crate) fn delisted_release(&self, project: &Project) -> Option<&Release> {
        let delisted = self.delisted.iter().find(|delisted| delisted.project == project.key)?;
        (!project.has_release(&delisted.release.id)).then_some(&delisted.release)
    }

    /// The id of the running project, if the slug of `project` led to that one when the running release was chosen.
    pub(crate) fn other_project_id(&self, project: &Project) -> Option<&str> {
        let delisted = self.delisted.iter().find(|delisted| delisted.project == project.key)?;
        delisted.project_id.as_deref().filter(|id| *id != project.id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn running_release_of_another_project_is_kept_with_its_id() {
        let catalog: Catalog = serde_json::from_value(json!({
            "paper": [], "paperReadAt": "2026-01-01T00:00:00Z",
            "projects": [{
                "key": {"source": "modrinth", "project": "claims"}, "id": "new", "name": "Claims",
                "readAt": "2026-01-01T00:00:00Z",
                "releases": [{"id": "listed", "version": "2", "channel": "release", "minecraft": [], "loaders": []}],
            }],
        }))
        .unwrap();
        for (project_id, release_id, expected) in [
            ("new", "listed", None),
            ("new", "gone", Some(None)),
            ("old", "gone", Some(Some("old"))),
            // A lock without the id accepts the project.
            ("", "listed", None),
            ("", "gone", Some(None)),
        ] {
            let lock: Lock = serde_json::from_value(json!({
                "server": "games/lobby", "minecraft": "1.21.10", "build": 7, "java": 21,
                "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "facts": [],
                "plugins": [{
                    "name": "Claims", "key": {"source": "modrinth", "project": "Claims"}, "projectId": project_id,
                    "releaseId": release_id, "version": "1", "reason": {"requestedBy": ["claims"]},
                    "file": {"name": "claims.jar", "url": "", "hash": "sha256:01"},
                }],
            }))
            .unwrap();
            let running = Running::from_lock(&lock).with_delisted(&lock, &catalog);
            let found = running.delisted.first().map(|delisted| delisted.project_id.as_deref());
            assert_eq!(found, expected, "{project_id} {release_id}");
            let other = running.other_project_id(&catalog.projects[0]);
            assert_eq!(other, expected.flatten(), "{project_id} {release_id}");
        }
    }
}
