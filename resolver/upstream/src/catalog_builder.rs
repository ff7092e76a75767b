//! Pure. Assembles the catalog from the pages that were read, with the errors of that pass.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::page_cache::CachedPage;
use super::project_page::ProjectListing;
use super::{FetchError, format_chain};
use resolver::model::catalog::{Catalog, ImageTag, OtherSoftware, PaperVersion, Project, ProjectKey};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

/// A catalog, with the errors that occurred while it was read.
#[derive(Debug)]
#[must_use = "the problems say which parts of the catalog are old or missing"]
pub struct CatalogBuild {
    /// All data that could be read, now or earlier.
    pub catalog: Catalog,
    /// Errors of this pass, sorted by subject.
    pub problems: Vec<ReadError>,
}

/// A part of the catalog that could not be read now.
#[derive(Debug, Clone)]
pub struct ReadError {
    /// `fill/paper`, `fill/folia/1.21.8`, `purpur/purpur/26.2/2622`, `modrinth/viaversion`, `url/https://…#sha256=…`,
    /// `docker.io/itzg/minecraft-server`. It is never a bare word, because that could be a project's slug.
    pub subject: String,
    /// Cause of the failure.
    pub error: Arc<FetchError>,
    /// When the cached data that is used instead was last confirmed. `None` means that no cached data exists.
    pub cached_since: Option<Timestamp>,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file's subject is its URL with its hash, and the error names that already.
        if self.error.concerns_file() {
            return f.write_str(&format_chain(&self.error));
        }
        write!(f, "{}: {}", self.subject, format_chain(&self.error))?;
        match self.cached_since {
            Some(since) => write!(f, ", and data that was read at {since} is used"),
            None => f.write_str(", and there is no earlier data"),
        }
    }
}

/// Builds of Paper, or of other software, as far as they could be read.
pub(super) struct Paper {
    pub(super) software: Software,
    pub(super) read_at: Timestamp,
    pub(super) versions: Vec<PaperVersion>,
    pub(super) unread: Vec<ReadFailure>,
}

/// A part of Paper that could not be read now.
pub(super) struct ReadFailure {
    /// `None` means the list of versions itself.
    pub(super) minecraft: Option<Minecraft>,
    pub(super) error: Arc<FetchError>,
    pub(super) cached_since: Option<Timestamp>,
}

/// The image's tags, if they could be read.
pub(super) struct Images {
    pub(super) subject: String,
    pub(super) found: Result<CachedPage<Vec<ImageTag>>, Arc<FetchError>>,
}

/// The requested key of a project and the result of the request.
pub(super) type FoundProject = (ProjectKey, Result<CachedPage<ProjectListing>, Arc<FetchError>>);

impl CatalogBuild {
    pub(super) fn empty(now: Timestamp) -> Self {
        Self { catalog: Catalog::empty(now), problems: Vec::new() }
    }

    /// Sorts projects and errors, so that the catalog does not depend on the order in which responses arrived.
    pub(super) fn sorted(mut self) -> Self {
        self.catalog.projects.sort_by(|a, b| (a.key.source, &a.id).cmp(&(b.key.source, &b.id)));
        self.problems.sort_by(|a, b| a.subject.cmp(&b.subject));
        self
    }

    /// Records a read failure. Offline, the age of cached data is expected and not recorded.
    pub(super) fn record_error(&mut self, subject: String, error: Arc<FetchError>, cached_since: Option<Timestamp>) {
        if matches!((&*error, cached_since), (FetchError::Offline { .. }, Some(_))) {
            return;
        }
        if cached_since.is_none() {
            self.catalog.unread.insert(subject.clone(), format_chain(&error));
        }
        self.problems.push(ReadError { subject, error, cached_since });
    }

    pub(super) fn add_paper(&mut self, paper: Paper) {
        let Paper { software, read_at, versions, unread } = paper;
        match software {
            Software::Paper => (self.catalog.paper, self.catalog.paper_read_at) = (versions, read_at),
            Software::Purpur | Software::Folia | Software::Velocity => {
                self.catalog.others.insert(software, OtherSoftware { versions, read_at });
            }
        }
        for ReadFailure { minecraft, error, cached_since } in unread {
            let list = software.list_name();
            let subject = minecraft.map_or_else(|| list.clone(), |minecraft| format!("{list}/{minecraft}"));
            self.record_error(subject, error, cached_since);
        }
    }

    /// Copies the Java requirement of Paper to Purpur of the same Minecraft. PurpurMC publishes no requirement, and
    /// Purpur is Paper with patches.
    pub(super) fn copy_java_to_purpur(&mut self) {
        let Catalog { paper, others, .. } = &mut self.catalog;
        let purpur = others.get_mut(&Software::Purpur).map(|purpur| &mut purpur.versions);
        for version in purpur.into_iter().flatten() {
            let of_paper = paper.iter().find(|paper| paper.minecraft == version.minecraft);
            version.java = of_paper.and_then(|paper| paper.java);
        }
    }

    pub(super) fn add_images(&mut self, images: Option<Images>) {
        let Some(Images { subject, found }) = images else { return };
        match found {
            Ok(CachedPage { stored, stale }) => {
                self.catalog.images.clone_from(&stored.body);
                if let Some(error) = stale {
                    self.record_error(subject, error, Some(stored.stamp.checked_at));
                }
            }
            Err(error) => self.record_error(subject, error, None),
        }
    }

    pub(super) fn add_projects(&mut self, read: Vec<FoundProject>) {
        for (key, found) in read {
            match found {
                Ok(CachedPage { stored, stale }) => {
                    let since = stored.stamp.checked_at;
                    let ProjectListing { project, walk: _, unreadable } = Arc::unwrap_or_clone(stored.body);
                    let mut project = Project { read_at: since, ..project };
                    if self
                        .catalog
                        .projects
                        .iter()
                        .all(|other| (other.key.source, &other.id) != (key.source, &project.id))
                    {
                        // A renamed project keeps the name that it was requested with.
                        let names = [&project.id, &project.key.project, &project.name];
                        if !names.iter().any(|name| name.eq_ignore_ascii_case(&key.project)) {
                            project.key.project.clone_from(&key.project);
                        }
                        for row in unreadable {
                            self.catalog.unread.insert(format!("{}/{}", project.key, row.release), row.reason());
                        }
                        self.catalog.projects.push(project);
                    }
                    if let Some(error) = stale {
                        self.record_error(key.to_string(), error, Some(since));
                    }
                }
                Err(error) => self.record_error(key.to_string(), error, None),
            }
        }
    }
}
