//! Pure. Which projects a solve needs that the catalog does not hold yet.

use jiff::{SignedDuration, Timestamp};

use crate::catalog::{Catalog, ProjectKey};
use crate::index;
use crate::request::Request;

/// The projects that are missing from the catalog, sorted: those asked for, and what their usable releases need.
///
/// Fetch them, add them to `projects` (or to `unread`, with the reason), and ask again until none is left: a project
/// that was just fetched may need further ones. Delays are left aside, so that a release which ripens tomorrow does not
/// send the edge out again. In rare cases (a past `now` at which a project had nothing stable yet) [`crate::resolve`]
/// still names more, in [`crate::Unsolvable::projects_to_fetch`].
pub fn needed_projects(catalog: &Catalog, request: &Request) -> Vec<ProjectKey> {
    let mut request = request.clone();
    for wish in &mut request.plugins {
        wish.delay = SignedDuration::ZERO;
    }
    index::gap(catalog, &request, Timestamp::MAX).fetch.into_iter().collect()
}
