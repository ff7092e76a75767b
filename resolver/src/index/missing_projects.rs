//! Pure. Lists the projects that a solve needs and that the catalog does not hold yet.

use jiff::{SignedDuration, Timestamp};

use crate::index;
use crate::model::catalog::{Catalog, ProjectKey};
use crate::model::request::Request;

/// The projects that are missing from the catalog, sorted: requested ones, and the dependencies of their usable
/// releases.
///
/// Fetch them, add them to `projects` (or to `unread`, with the reason), and call this function again until the result
/// is empty: a fetched project may need further ones. Delays are ignored, so that a release which becomes usable
/// tomorrow does not cause another fetch. In rare cases (a past `now` at which a project had no stable release yet)
/// [`crate::resolve`] names further projects, in [`crate::Unsolvable::projects_to_fetch`].
pub fn missing_projects(catalog: &Catalog, request: &Request) -> Vec<ProjectKey> {
    let mut request = request.clone();
    for plugin_request in &mut request.plugins {
        plugin_request.delay = SignedDuration::ZERO;
    }
    let catalog = catalog.with_unread_projects([&request]);
    index::find_gap(&catalog, &request, Timestamp::MAX).fetch.into_iter().collect()
}
