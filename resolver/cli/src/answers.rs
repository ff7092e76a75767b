//! Pure. Solves the requests of a query, and collects the data that the catalog lacks for an answer.

use jiff::Timestamp;

use super::ExitStatus;
use resolver::explanation::Explanation;
use resolver::model::catalog::{Catalog, ProjectKey};
use resolver::model::request::Request;
use resolver::model::software::{PaperName, Software};
use resolver::model::version::Minecraft;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet};

/// Data that the catalog lacks for an answer.
#[derive(Debug, Default)]
pub(super) struct MissingFromCatalog {
    /// Projects that were not fetched.
    pub(super) projects: Vec<ProjectKey>,
    /// Builds that are not verified.
    pub(super) builds: Vec<PaperName>,
}

impl MissingFromCatalog {
    /// Adds the data that an unsolved request lacks.
    pub(super) fn add(&mut self, unsolvable: &Unsolvable) {
        self.projects.extend_from_slice(unsolvable.projects_to_fetch());
        self.builds.extend_from_slice(unsolvable.builds_to_verify());
    }

    /// Adds the missing data, and returns the explanation.
    pub(super) fn add_and_explain(&mut self, unsolvable: &Unsolvable) -> Explanation {
        self.add(unsolvable);
        unsolvable.explanation()
    }
}

/// An answer for each server, by its name.
pub(super) type Answers = Vec<(String, Result<Resolution, Unsolvable>)>;

/// The best version set for each server, sorted by name.
pub(super) fn resolve_all(catalog: &Catalog, requests: &[Request], at: Timestamp) -> Answers {
    resolve_fleet(catalog, requests, at, Budget::default())
}

/// The data that is missing for an answer.
pub(super) fn missing_data<T>(answers: &[(String, Result<T, Unsolvable>)]) -> MissingFromCatalog {
    let mut missing = MissingFromCatalog::default();
    answers.iter().filter_map(|(_, answer)| answer.as_ref().err()).for_each(|unsolvable| missing.add(unsolvable));
    missing
}

/// The exit status of a query without a version set.
pub(super) fn exit_status(unsolvable: &Unsolvable) -> ExitStatus {
    match unsolvable {
        Unsolvable::NoSolution(_) => ExitStatus::NoSolution,
        Unsolvable::Unanswerable(_) | Unsolvable::GaveUp(_) => ExitStatus::Failed,
    }
}

/// When the first build of a version was published.
pub(super) fn first_published(
    catalog: &Catalog,
    software: Software,
    target: &Minecraft,
    at: Timestamp,
) -> Option<Timestamp> {
    let versions = catalog.versions(software).iter().filter(|version| version.minecraft == *target);
    let builds = versions.flat_map(|version| &version.builds);
    builds.map(|build| build.published).filter(|published| *published <= at).min()
}
