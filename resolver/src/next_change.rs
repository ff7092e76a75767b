//! Pure. Computes when time alone changes a result.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::index::rules::eligible_at;
use crate::model::catalog::Catalog;
use crate::model::request::Request;

/// The first instant after `now` at which the same requests may have another result on the same catalog, because a
/// release is published or old enough then. `None` if time alone changes nothing.
///
/// Every publication is combined with every delay, whether it applies or not: an instant without a change is better
/// than a late one.
pub fn next_change(catalog: &Catalog, requests: &[Request], now: Timestamp) -> Option<Timestamp> {
    let of_plugins =
        requests.iter().flat_map(|request| request.plugins.iter().map(|plugin_request| plugin_request.delay));
    let mut delays: BTreeSet<SignedDuration> = requests.iter().map(|request| request.delay).chain(of_plugins).collect();
    delays.insert(SignedDuration::ZERO);
    let others = catalog.others.values().flat_map(|other| &other.versions);
    let builds =
        catalog.paper.iter().chain(others).flat_map(|version| version.builds.iter().map(|build| build.published));
    let releases = catalog.projects.iter().flat_map(|project| &project.releases);
    let published = builds.chain(releases.filter_map(|release| release.published));
    let published = published.chain(catalog.images.iter().map(|image| image.pushed));
    let instants = published.flat_map(|at| delays.iter().map(move |delay| eligible_at(at, *delay)));
    instants.filter(|at| *at > now).min()
}
