//! Pure. Defines the data that the catalog lacks for a request.

use std::collections::BTreeSet;

use super::catalog::ProjectKey;

/// Data that is missing before the request can be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Gap {
    /// Projects that are not in the catalog, without a recorded reason.
    pub(crate) fetch: BTreeSet<ProjectKey>,
    /// Projects that could not be read: name and reason.
    pub(crate) unread: BTreeSet<(String, String)>,
}
