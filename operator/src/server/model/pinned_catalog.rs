//! Pure. Defines the catalog that is pinned for an update that players or the cluster already wait for.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use resolver::model::catalog::Catalog;
use resolver::model::lock::{Lock, LockedPlugin};
use scheduler::observation::Revision;

use super::records::LockRecord;
use crate::catalog::Snapshot;

/// An update for which players or the cluster wait, with the catalog from which it was planned.
#[derive(Clone)]
pub(crate) struct PinnedCatalog {
    pub(crate) goal: Revision,
    pub(crate) record: Arc<LockRecord>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The instant of the plan, so that a delay or soak time that ends during a countdown does not change it.
    pub(crate) at: Timestamp,
}

impl PinnedCatalog {
    /// Whether a package of the lock has been delisted since it was planned. Such a package must not be rolled out.
    pub(crate) fn is_delisted_in(&self, newest: &Snapshot) -> bool {
        let lock = &self.record.lock;
        !unpublished_packages(lock, &newest.catalog).is_subset(&unpublished_packages(lock, &self.snapshot.catalog))
    }
}

/// The packages of a lock that are known to be unpublished. Pages that could not be read tell nothing.
fn unpublished_packages<'l>(lock: &'l Lock, catalog: &Catalog) -> BTreeSet<&'l str> {
    let versions = catalog.versions(lock.software);
    let has_build = versions
        .iter()
        .filter(|version| version.minecraft == lock.minecraft)
        .any(|version| version.builds.iter().any(|build| build.number == lock.build));
    // A version whose builds could not be read has an empty list of builds.
    let is_read = versions.iter().any(|version| version.minecraft == lock.minecraft && !version.builds.is_empty());
    let server = (is_read && !has_build).then_some(lock.paper.hash.as_str());
    let is_missing = |plugin: &&LockedPlugin| {
        let project = catalog.project(&plugin.key);
        project.is_some_and(|project| !project.releases.iter().any(|release| release.id == plugin.release_id))
    };
    let plugins = lock.plugins.iter().filter(is_missing);
    server.into_iter().chain(plugins.map(|plugin| plugin.release_id.as_str())).collect()
}
