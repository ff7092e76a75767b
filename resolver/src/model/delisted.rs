//! Pure. Models running releases that no page lists, from the data in the lock: delisted ones, those of a project whose
//! slug leads to another project now, and those of a project that could not be read.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::catalog::{
    Artifact, Catalog, Channel, Dependency, DependencyKind, FurtherJar, Project, ProjectKey, Release, Source,
};
use super::lock::{Lock, LockReason, LockedPlugin};
use super::request::{Request, Running};
use super::software::Software;
use super::version::Minecraft;

/// A running release that is delisted, as far as the running lock describes it. Its files are on the server's own
/// volume, so only that server may keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DelistedRelease {
    /// The project.
    pub project: ProjectKey,
    /// The id of the running project, if [`Self::project`] leads to another project now or could not be read. A slug
    /// can be given up and taken by somebody else, so another id is never followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The display name of a project that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
        Some(Self { project, project_id: None, name: None, release })
    }

    /// The releases of a running lock that no page lists. Empty for a proxy, whose pages list version lines that a lock
    /// does not contain.
    fn from_running_lock(lock: &Lock, catalog: &Catalog) -> Vec<Self> {
        if !lock.software.is_minecraft() {
            return Vec::new();
        }
        let delisted = lock.plugins.iter().filter_map(|plugin| {
            let (key, project_id, name) = if let Some(project) = catalog.project(&plugin.key) {
                // A lock without the id accepts the project, and the next lock records it.
                let is_same = plugin.project_id.is_empty() || plugin.project_id == project.id;
                if is_same && project.has_release(&plugin.release_id) {
                    return None;
                }
                (&project.key, (!is_same).then(|| plugin.project_id.clone()), None)
            } else {
                // If the project was not fetched yet, its delisted releases are unknown.
                catalog.unread_running(&plugin.key, &plugin.project_id)?;
                (&plugin.key, Some(plugin.project_id.clone()), Some(plugin.name.clone()))
            };
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
                key.clone(),
                (plugin.release_id.clone(), plugin.version.clone()),
                RunningEvidence { software: lock.software, minecraft: &lock.minecraft, java: Some(lock.java) },
                lock.plugins.iter().filter(is_dependency).map(|other| other.project_id.clone()),
                files,
            )?;
            Some(Self { project_id, name, ..delisted })
        });
        delisted.collect()
    }
}

impl Catalog {
    /// The reason why the project of a running plugin could not be read, if it is in the catalog neither by its slug nor
    /// by its id. `None` for a file that was given by URL, which has no page.
    fn unread_running(&self, key: &ProjectKey, id: &str) -> Option<&str> {
        let by_id = ProjectKey { source: key.source, project: id.to_owned() };
        let is_read = [key, &by_id].into_iter().any(|key| self.project(key).is_some());
        let because = self.unread_reason(key).or_else(|| self.unread_reason(&by_id));
        because.filter(|_| key.source != Source::Url && !is_read)
    }

    /// The catalog with the running projects of these servers that could not be read, each without a release. So their
    /// running releases can stay, as delisted ones do, and everything else can be updated.
    pub fn with_unread_projects<'r>(&self, requests: impl IntoIterator<Item = &'r Request>) -> Cow<'_, Self> {
        let mut catalog = Cow::Borrowed(self);
        if self.unread.is_empty() {
            return catalog;
        }
        let running = requests.into_iter().filter_map(|request| request.running.as_ref());
        for delisted in running.flat_map(|running| &running.delisted) {
            let (key, Some(id)) = (&delisted.project, &delisted.project_id) else { continue };
            let Some(because) = catalog.unread_running(key, id).map(str::to_owned) else { continue };
            let catalog = catalog.to_mut();
            catalog.unread.insert(key.to_string(), because);
            catalog.projects.push(Project {
                key: key.clone(),
                id: id.clone(),
                name: delisted.name.clone().unwrap_or_else(|| key.project.clone()),
                read_at: catalog.paper_read_at,
                releases: Vec::new(),
            });
        }
        catalog
    }
}

impl Running {
    /// Adds those releases of the running lock that no page lists any more, or whose page could not be read.
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

    /// A lock with one plugin.
    fn lock(project_id: &str, release_id: &str) -> Lock {
        serde_json::from_value(json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": 7, "java": 21,
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "facts": [],
            "plugins": [{
                "name": "Claims", "key": {"source": "modrinth", "project": "claims"}, "projectId": project_id,
                "releaseId": release_id, "version": "1", "reason": {"requestedBy": ["claims"]},
                "file": {"name": "claims.jar", "url": "", "hash": "sha256:01"},
            }],
        }))
        .unwrap()
    }

    /// A catalog with one project of the name Claims.
    fn catalog(slug: &str) -> Catalog {
        serde_json::from_value(json!({
            "paper": [], "paperReadAt": "2026-01-01T00:00:00Z",
            "projects": [{
                "key": {"source": "modrinth", "project": slug}, "id": "new", "name": "Claims",
                "readAt": "2026-01-01T00:00:00Z",
                "releases": [{"id": "listed", "version": "2", "channel": "release", "minecraft": [], "loaders": []}],
            }],
        }))
        .unwrap()
    }

    #[test]
    fn running_release_of_another_project_is_kept_with_its_id() {
        let catalog = catalog("claims");
        for (project_id, release_id, expected) in [
            ("new", "listed", None),
            ("new", "gone", Some(None)),
            ("old", "gone", Some(Some("old"))),
            // A lock without the id accepts the project.
            ("", "listed", None),
            ("", "gone", Some(None)),
        ] {
            let lock = lock(project_id, release_id);
            let running = Running::from_lock(&lock).with_delisted(&lock, &catalog);
            let found = running.delisted.first().map(|delisted| delisted.project_id.as_deref());
            assert_eq!(found, expected, "{project_id} {release_id}");
            let other = running.other_project_id(&catalog.projects[0]);
            assert_eq!(other, expected.flatten(), "{project_id} {release_id}");
        }
    }

    #[test]
    fn unread_project_of_running_plugin_is_known_by_its_lock() {
        let lock = lock("old", "gone");
        // Another project has the name of the unread one.
        let mut catalog = catalog("other");
        catalog.unread.insert("modrinth/claims".to_owned(), "it answers 503".to_owned());
        let running = Running::from_lock(&lock).with_delisted(&lock, &catalog);
        let request = Request {
            running: Some(running),
            ..serde_json::from_value(json!({
                "server": "games/lobby", "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE",
                "plugins": [],
            }))
            .unwrap()
        };
        let whole = catalog.with_unread_projects([&request]);
        let project = whole.project(&lock.plugins[0].key).unwrap();
        assert_eq!((project.id.as_str(), project.name.as_str(), project.releases.len()), ("old", "Claims", 0));
        let running = request.running.as_ref().unwrap();
        assert_eq!(running.delisted_release(project).map(|release| release.id.as_str()), Some("gone"));
        assert!(matches!(whole.with_unread_projects([&request]), Cow::Borrowed(_)), "it is added once");
        catalog.unread.clear();
        let running = Running::from_lock(&lock).with_delisted(&lock, &catalog);
        assert_eq!(running.delisted.len(), 1, "by its name it is another project");
        assert_eq!(running.other_project_id(&catalog.projects[0]), Some("old"));
    }
}
