//! Pure. A random query for the solver, with functions to shrink and print it.

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{BuildChannel, Catalog, Channel};
use resolver::model::compatibility_facts::CompatibilityFacts;
use resolver::model::request::{
    Dependencies, HotfixSiblings, ImagePolicy, PaperRequest, Request, Unlisted, VersionRequest,
};
use resolver::model::software::Software;

use super::to_scenario;

/// A complete query for one server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) catalog: Catalog,
    pub(crate) request: Request,
    pub(crate) now: Timestamp,
}

impl Problem {
    /// Shrinks the problem while `fails` holds, by removing parts one by one.
    pub(crate) fn shrunk(self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut smallest = self;
        while let Some(smaller) = smallest.smaller().into_iter().find(&fails) {
            smallest = smaller;
        }
        smallest
    }

    /// All problems with one part removed.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut other = self.clone();
            change(&mut other);
            if other != *self {
                all.push(other);
            }
        };
        let Catalog { paper, others, projects, images, unread, owners, paper_read_at: _ } = &self.catalog;
        with(&|p| p.request.software = Software::Paper);
        for (software, other) in others {
            for at in 0..other.versions.len() {
                with(&|p| drop(p.catalog.others.get_mut(software).unwrap().versions.remove(at)));
            }
        }
        for at in 0..projects.len() {
            with(&|p| drop(p.catalog.projects.remove(at)));
        }
        for at in 0..self.request.plugins.len() {
            with(&|p| drop(p.request.plugins.remove(at)));
        }
        for (at, version) in paper.iter().enumerate() {
            with(&|p| drop(p.catalog.paper.remove(at)));
            for build in 0..version.builds.len() {
                with(&|p| drop(p.catalog.paper[at].builds.remove(build)));
                with(&|p| p.catalog.paper[at].builds[build].channel = BuildChannel::Stable);
            }
        }
        for at in 0..images.len() {
            with(&|p| drop(p.catalog.images.remove(at)));
        }
        for file in owners.keys() {
            with(&|p| drop(p.catalog.owners.remove(file)));
        }
        for name in unread.keys() {
            with(&|p| drop(p.catalog.unread.remove(name)));
        }
        for (at, project) in projects.iter().enumerate() {
            for (release_index, release) in project.releases.iter().enumerate() {
                with(&|p| drop(p.catalog.projects[at].releases.remove(release_index)));
                with(&|p| p.catalog.projects[at].releases[release_index].minecraft.clear());
                with(&|p| p.catalog.projects[at].releases[release_index].channel = Channel::Release);
                with(&|p| p.catalog.projects[at].releases[release_index].java = None);
                with(&|p| p.catalog.projects[at].releases[release_index].api_version = None);
                for line in 0..release.minecraft.len() {
                    with(&|p| drop(p.catalog.projects[at].releases[release_index].minecraft.remove(line)));
                }
                for line in 0..release.dependencies.len() {
                    with(&|p| drop(p.catalog.projects[at].releases[release_index].dependencies.remove(line)));
                    with(&|p| p.catalog.projects[at].releases[release_index].dependencies[line].version_id = None);
                }
            }
        }
        for at in 0..self.request.plugins.len() {
            with(&|p| p.request.plugins[at].version = VersionRequest::Auto);
            with(&|p| p.request.plugins[at].compatibility = None);
            with(&|p| p.request.plugins[at].requires.clear());
            with(&|p| p.request.plugins[at].delay_together.clear());
            with(&|p| p.request.plugins[at].allow_downgrade = false);
            with(&|p| p.request.plugins[at].hold = None);
            with(&|p| p.request.plugins[at].delay = SignedDuration::ZERO);
            with(&|p| p.request.plugins[at].channel = Channel::Release);
        }
        with(&|p| p.request.paper = PaperRequest::Auto);
        with(&|p| p.request.delay = SignedDuration::ZERO);
        with(&|p| p.request.channel = BuildChannel::Stable);
        with(&|p| p.request.floor = None);
        with(&|p| p.request.running = None);
        for at in 0..self.request.running.iter().flat_map(|running| &running.delisted).count() {
            with(&|p| drop(p.request.running.as_mut().unwrap().delisted.remove(at)));
            with(&|p| p.request.running.as_mut().unwrap().delisted[at].release.dependencies.clear());
        }
        with(&|p| p.request.image = None);
        with(&|p| p.request.image_policy = ImagePolicy::Follow);
        with(&|p| p.request.unmanaged = Vec::new());
        with(&|p| p.request.hotfix_siblings = HotfixSiblings::Trust);
        with(&|p| p.request.unlisted = Unlisted::Assume);
        with(&|p| p.request.facts = CompatibilityFacts::default());
        for at in 0..self.request.facts.all().len() {
            let mut facts = self.request.facts.all().to_vec();
            facts.remove(at);
            with(&|p| p.request.facts = facts.clone().into());
        }
        with(&|p| p.request.dependencies = Dependencies::Install);
        all
    }

    /// The problem as a file for `tests/scenarios`.
    pub(crate) fn to_scenario(&self, name: &str) -> String {
        to_scenario::scenario(name, &self.catalog, std::slice::from_ref(&self.request), self.now)
    }
}
