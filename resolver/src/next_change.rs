//! Pure. When time alone changes an answer.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::Catalog;
use crate::index::ripe_at;
use crate::request::Request;

/// The first instant after `now` at which the same requests may get another answer out of the same catalog: something is out then, or old
/// enough. None: never by time alone.
///
/// Every publication counts with every delay, whoever waits for it: rather an instant that changes nothing than one too late.
pub fn next_change(catalog: &Catalog, requests: &[Request], now: Timestamp) -> Option<Timestamp> {
    let of_plugins = requests.iter().flat_map(|request| request.plugins.iter().map(|wish| wish.delay));
    let mut delays: BTreeSet<SignedDuration> = requests.iter().map(|request| request.delay).chain(of_plugins).collect();
    delays.insert(SignedDuration::ZERO);
    let others = catalog.others.values().flat_map(|other| &other.versions);
    let builds =
        catalog.paper.iter().chain(others).flat_map(|version| version.builds.iter().map(|build| build.published));
    let releases = catalog.projects.iter().flat_map(|project| &project.releases);
    let published = builds.chain(releases.filter_map(|release| release.published));
    let published = published.chain(catalog.images.iter().map(|image| image.pushed));
    let instants = published.flat_map(|at| delays.iter().map(move |delay| ripe_at(at, *delay)));
    instants.filter(|at| *at > now).min()
}
