//! Pure. Builds the candidate index: the catalog as one server sees it at one instant, with the eligibility of every
//! release.

use std::rc::Rc;

use jiff::Timestamp;

use crate::explanation::Warning;
use crate::model::catalog::{Catalog, Project, Release};
use crate::model::compatibility_facts::UsedFact;
use crate::model::lock::Guess;
use crate::model::request::{Request, Unlisted};
use crate::model::software::PaperName;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

mod bundled_build;
pub(crate) mod candidates;
pub(crate) mod chosen;
mod delay_groups;
mod dependency_closure;
mod dependency_edges;
mod dependency_targets;
mod eligibility;
mod eligibility_cache;
pub(crate) mod fleet_tables;
mod identified_jars;
pub(crate) mod index_set;
mod jar_selection;
pub(crate) mod java;
mod known_constraints;
mod known_file;
pub(crate) mod listed_versions;
pub(crate) mod missing_projects;
pub(crate) mod paper_candidates;
mod provided_names;
pub(crate) mod rules;
mod unmanaged_dependencies;
pub(crate) mod unmanaged_jars;
mod unmanaged_queries;
mod version_bounds;

use crate::model::gap::Gap;
use candidates::{Edge, PluginCandidates, UnusableClass, group_by_reason};
pub use eligibility::is_pinned;
pub(crate) use eligibility::is_same_age;
use eligibility_cache::EligibilityTable;
pub(crate) use eligibility_cache::other_project;
use listed_versions::{ListingEvidence, ListingPolicy, ListingReader};
use paper_candidates::PaperCandidate;
pub(crate) use unmanaged_dependencies::MissingDependency;

/// All data that the solver and the explanations read, computed once.
pub(crate) struct CandidateIndex<'a> {
    pub(crate) request: &'a Request,
    pub(crate) now: Timestamp,
    /// The Paper versions. The index of a Paper version in the solver is its position here plus 1.
    pub(crate) papers: Vec<PaperCandidate<'a>>,
    /// Classes of unusable Paper versions.
    pub(crate) paper_classes: Vec<UnusableClass>,
    /// The plugins in rank order: requested plugins by object name, then the others, with dependents before their
    /// dependencies.
    pub(crate) plugins: Vec<Rc<PluginCandidates<'a>>>,
    /// Assumptions that were made while the request was read.
    pub(crate) warnings: Vec<Warning>,
    reader: ListingReader,
    eligibility_table: EligibilityTable<'a>,
}

/// Returns the catalog data that is missing for this request. [`CandidateIndex::build`] looks for the same data before
/// it indexes anything.
pub(crate) fn find_gap(catalog: &Catalog, request: &Request, now: Timestamp) -> Gap {
    let mut gap = Gap::default();
    dependency_closure::compute_closure(
        &mut EligibilityTable::for_request(catalog, now),
        request,
        &mut Vec::new(),
        &mut gap,
    );
    gap
}

impl<'a> CandidateIndex<'a> {
    /// The fact behind an edge of a release, as a self-contained value.
    pub(crate) fn fact(&self, at: usize, position: usize, edge: &Edge) -> Option<UsedFact> {
        let (range, source) = edge.fact.as_deref()?;
        let from = &self.plugins[at];
        Some(UsedFact {
            plugin: from.name().to_owned(),
            version: from.releases[position].release.version.clone(),
            needs: self.plugins[edge.to].name().to_owned(),
            range: range.clone(),
            says: source.clone(),
        })
    }

    /// The minimum versions of other plugins that are guessed from publication dates for a release.
    pub(crate) fn guesses(&self, at: usize, position: usize) -> impl Iterator<Item = Guess> {
        let (from, release) = (&self.plugins[at], self.plugins[at].releases[position].release);
        from.edges[position].iter().filter_map(move |edge| {
            let other = &self.plugins[edge.to];
            let least = other.releases[edge.guessed? - 1].release;
            Some(Guess {
                plugin: from.name().to_owned(),
                version: release.version.clone(),
                published: release.published,
                needs: other.name().to_owned(),
                at_least: least.version.clone(),
                at_least_published: least.published,
            })
        })
    }

    /// Determines the eligibility of every project that the request can reach, and indexes them.
    pub(crate) fn build(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Gap> {
        Self::build_from(None, catalog, request, now)
    }

    /// Builds the index of a changed request of the same server and reuses all parts that stay the same. Most requests
    /// that are tried for a hint change one plugin of forty.
    pub(crate) fn with_request<'b>(&'b self, request: &'b Request, now: Timestamp) -> Result<CandidateIndex<'b>, Gap> {
        let comparable = self.now == now && self.request.running == request.running;
        CandidateIndex::build_from(Some(self).filter(|_| comparable), self.eligibility_table.catalog, request, now)
    }

    /// `previous` is an index at the same instant, of a server that runs the same releases.
    fn build_from(
        previous: Option<&'a CandidateIndex<'a>>,
        catalog: &'a Catalog,
        request: &'a Request,
        now: Timestamp,
    ) -> Result<Self, Gap> {
        let papers = paper_candidates::candidates(catalog, request, now);
        let paper_classes = group_by_reason(papers.iter().map(|paper| paper.unusable.as_ref()));
        // The versions that Paper has built up to this instant. A version that Paper never built has no build anywhere
        // in the catalog.
        let built =
            paper_candidates::built_versions(catalog, papers.iter().map(|paper| paper.version), request.software, now);
        let reader =
            ListingReader::new(papers.iter().map(|paper| paper.version), ListingPolicy::from_request(request), &built);
        let mut warnings = Vec::new();
        let mut gap = Gap::default();
        let mut eligibility_table = match previous {
            Some(previous) => previous.eligibility_table.for_changed_request(),
            None => EligibilityTable::for_request(catalog, now),
        };
        let closure = dependency_closure::compute_closure(&mut eligibility_table, request, &mut warnings, &mut gap);
        if gap != Gap::default() {
            return Err(gap);
        }
        let reusable = previous
            .filter(|previous| previous.reader.is_equivalent(&reader))
            .map_or(&[][..], |previous| previous.plugins.as_slice());
        let plugins = dependency_edges::build_candidates(catalog, request, &closure, &reader, reusable);
        Ok(Self { request, now, papers, paper_classes, plugins, warnings, reader, eligibility_table })
    }

    /// Returns the evidence that a release runs on a Paper version (both given by position).
    pub(crate) fn listing_evidence(&self, at: usize, release: usize, paper: usize) -> Option<ListingEvidence<'a>> {
        let plugin = &self.plugins[at];
        let release = plugin.releases[release].release;
        let states = plugin.rules.jars.api_versions(release);
        self.reader.evidence(plugin.project.key.source, release, &states, plugin.rules.compatibility).swap_remove(paper)
    }

    /// The same evidence from the page alone, without the user's override.
    pub(crate) fn page_evidence(&self, at: usize, release: usize, paper: usize) -> Option<ListingEvidence<'a>> {
        let plugin = &self.plugins[at];
        let release = plugin.releases[release].release;
        // A page without a list is no evidence if the server refuses unlisted releases.
        let source = plugin.project.key.source;
        let has_list = !self.request.software.listed_versions(source, release).is_empty();
        let silent = !has_list && self.request.unlisted == Unlisted::Refuse;
        let states = plugin.rules.jars.api_versions(release);
        self.reader.evidence(source, release, &states, None).swap_remove(paper).filter(|_| !silent)
    }

    /// The hotfix sibling on a release's page that would be sufficient for a Paper version, if only `hotfixSiblings:
    /// Ask` blocks it.
    pub(crate) fn untrusted_sibling(&self, at: usize, release: usize, paper: usize) -> Option<Minecraft> {
        let plugin = &self.plugins[at];
        let unsupported =
            self.listing_evidence(at, release, paper).is_none() && self.page_evidence(at, release, paper).is_none();
        let (source, release) = (plugin.project.key.source, plugin.releases[release].release);
        let states = plugin.rules.jars.api_versions(release);
        self.reader.untrusted_sibling(source, release, &states, paper).filter(|_| unsupported).cloned()
    }

    /// The reason why a Paper version refuses to load a release (both given by position), regardless of overrides.
    pub(crate) fn refusal(&self, at: usize, release: usize, paper: usize) -> Option<Unusable> {
        let plugin = &self.plugins[at];
        let states = plugin.rules.jars.api_versions(plugin.releases[release].release);
        listed_versions::api_version_refusal(states, &self.papers[paper].version.minecraft)
    }

    /// The name of a Paper version (given by position) with its build. `None` without a build.
    pub(crate) fn paper_name(&self, position: usize) -> Option<PaperName> {
        let paper = &self.papers[position];
        let (software, minecraft) = (self.request.software, paper.version.minecraft.clone());
        Some(PaperName { software, minecraft, build: paper.build?.number })
    }

    /// The running version of a project whose page no longer lists it.
    pub(crate) fn delisted_version(&self, project: &Project) -> Option<&str> {
        self.request.running.as_ref()?.delisted_version(project)
    }

    /// Whether a release runs and is delisted.
    pub(crate) fn is_delisted(&self, project: &Project, release: &Release) -> bool {
        let delisted = self.request.running.as_ref().and_then(|running| running.delisted_release(project));
        delisted.is_some_and(|delisted| std::ptr::eq(delisted, release))
    }

    /// The id of the project of a release: that of the running one, if the slug leads to another project now.
    pub(crate) fn project_id<'p>(&'p self, project: &'p Project, release: &Release) -> &'p str {
        let running = self.request.running.as_ref().filter(|_| self.is_delisted(project, release));
        running.and_then(|running| running.other_project_id(project)).unwrap_or(&project.id)
    }

    /// The reason why the page of a project could not be read, if the running release is all that is known of it.
    pub(crate) fn unread_page(&self, project: &Project) -> Option<&'a str> {
        let catalog = self.eligibility_table.catalog;
        catalog.unread_reason(&project.key).filter(|_| project.releases.is_empty())
    }

    /// Whether a release runs on the server now.
    pub(crate) fn is_running(&self, release: &Release) -> bool {
        self.request.running.as_ref().is_some_and(|running| running.runs_release(release))
    }
}
