//! Pure. Builds the candidate index: the catalog as one server sees it at one instant, with the eligibility of every
//! release.

use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use pubgrub::VersionSet;

use crate::catalog::{Catalog, Channel, Project, Release};
use crate::compatibility_facts::{FactSource, UsedFact};
use crate::explain::{PaperName, Warning};
use crate::known_constraints::UserConstraint;
use crate::lock::Guess;
use crate::request::{CompatibilityOverride, Hold, Request, Unlisted};
use crate::solve::index_set::IndexSet;
use crate::unusable::Unusable;
use crate::version::Minecraft;
use crate::version::range::Range;

mod bundled_build;
mod delay_groups;
mod dependency_closure;
mod dependency_edges;
mod eligibility;
mod eligibility_cache;
pub(crate) mod fleet_tables;
mod identified_jars;
pub(crate) mod jar_selection;
pub(crate) mod java;
pub(crate) mod listed_versions;
pub(crate) mod paper_candidates;
mod provided_names;
mod unmanaged_dependencies;
pub(crate) mod unmanaged_jars;
mod version_bounds;

use delay_groups::Companion;
pub(crate) use dependency_closure::Gap;
use eligibility::position_among;
pub(crate) use eligibility::{is_older, is_pinned};
use eligibility_cache::EligibilityTable;
use jar_selection::Jars;
use listed_versions::{ListingEvidence, ListingPolicy, ListingReader};
use paper_candidates::PaperCandidate;
pub(crate) use unmanaged_dependencies::MissingDependency;

/// Limit of releases of one plugin in an index. The oldest ones beyond it are left out. An index is 16 bits wide, and
/// no project publishes that many.
pub(crate) const MAX_RELEASES: usize = 60_000;

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

/// Unusable versions that share one reason.
#[derive(Debug)]
pub(crate) struct UnusableClass {
    pub(crate) reason: Unusable,
    pub(crate) members: std::sync::Arc<[u64]>,
}

/// The policy that applies to one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rules<'a> {
    pub(crate) channel: Channel,
    pub(crate) delay: SignedDuration,
    /// Whether a downgrade below the running release is allowed.
    pub(crate) may_downgrade: bool,
    /// The Plugin object that is held at the running release, and the origin of the hold. `None` if no release of it
    /// runs.
    pub(crate) hold: Option<(&'a str, Hold)>,
    pub(crate) compatibility: Option<&'a CompatibilityOverride>,
    pub(crate) pin: Option<&'a str>,
    /// The files of a release that are installed.
    pub(crate) jars: Jars<'a>,
    /// Constraints of its Plugin object on its own versions and on those of other plugins.
    pub(crate) requires: Option<UserConstraint<'a>>,
    /// The server's policy for pages without a list of Minecraft versions.
    pub(crate) unlisted: Unlisted,
    /// The companion plugins on this server.
    pub(crate) companions: Vec<Companion<'a>>,
}

/// The Plugin objects that request a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedBy<'a> {
    /// All objects, by name.
    pub(crate) objects: Vec<&'a str>,
    /// The object whose fields apply.
    pub(crate) deciding_object: &'a str,
    /// Objects that want one release on all their servers (`updateStrategy: latest`), by name.
    pub(crate) latest: Vec<&'a str>,
}

/// One plugin with its releases, oldest first. The index of a release in the solver is its position here plus 1.
pub(crate) struct PluginCandidates<'a> {
    pub(crate) project: &'a Project,
    /// `None` if only other plugins need it.
    pub(crate) requested_by: Option<RequestedBy<'a>>,
    /// Unmanaged JARs that need it, if it runs and no Plugin object requests it.
    pub(crate) unmanaged_dependents: Vec<String>,
    pub(crate) rules: Rules<'a>,
    /// The channel in use: that of the rules, or the most stable one available if the project has no release on it.
    pub(crate) channel: Channel,
    pub(crate) releases: Rc<Vec<Candidate<'a>>>,
    /// The dependency edges of each release. Empty for a release that may not be used.
    pub(crate) edges: Vec<Vec<Edge>>,
    pub(crate) classes: Vec<UnusableClass>,
    /// Per Paper version, the releases known to run on it, including unusable ones.
    pub(crate) supports: Vec<IndexSet>,
    /// Releases that may be used.
    pub(crate) usable: IndexSet,
    /// Releases that match the pin. Without a pin: every release, but not "not installed".
    pub(crate) allowed: IndexSet,
}

/// One release and its eligibility.
pub(crate) struct Candidate<'a> {
    pub(crate) release: &'a Release,
    pub(crate) unusable: Option<Unusable>,
    /// Required projects that are missing at its source, named as on its page.
    pub(crate) missing_at_source: Vec<String>,
}

/// A requirement of one release on another plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Position of the other plugin.
    pub(crate) to: usize,
    /// The accepted versions of it. They include "not installed" unless the plugin is required.
    pub(crate) set: IndexSet,
    pub(crate) kind: EdgeKind,
    /// The release that was guessed as the minimum.
    pub(crate) guessed: Option<usize>,
    /// The fact behind the edge, if no page states it.
    pub(crate) fact: Option<Arc<(Range, FactSource)>>,
}

/// The kinds of dependency edges that constrain the solver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    Required,
    Optional,
    Incompatible,
}

/// The instant at which a release published at `published` is old enough.
pub(crate) fn eligible_at(published: Timestamp, delay: SignedDuration) -> Timestamp {
    published.checked_add(delay).unwrap_or(Timestamp::MAX)
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
        let paper_classes = classes(papers.iter().map(|paper| paper.unusable.as_ref()));
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
        let needs = plugin.rules.jars.api_version(release);
        self.reader.evidence(plugin.project.key.source, release, needs, plugin.rules.compatibility).swap_remove(paper)
    }

    /// The same evidence from the page alone, without the user's override.
    pub(crate) fn page_evidence(&self, at: usize, release: usize, paper: usize) -> Option<ListingEvidence<'a>> {
        let plugin = &self.plugins[at];
        let release = plugin.releases[release].release;
        // A page without a list is no evidence if the server refuses unlisted releases.
        let source = plugin.project.key.source;
        let has_list = !self.request.software.listed_versions(source, release).is_empty();
        let silent = !has_list && self.request.unlisted == Unlisted::Refuse;
        let needs = plugin.rules.jars.api_version(release);
        self.reader.evidence(source, release, needs, None).swap_remove(paper).filter(|_| !silent)
    }

    /// The hotfix sibling on a release's page that would be sufficient for a Paper version, if only `hotfixSiblings:
    /// Ask` blocks it.
    pub(crate) fn untrusted_sibling(&self, at: usize, release: usize, paper: usize) -> Option<Minecraft> {
        let plugin = &self.plugins[at];
        let unsupported =
            self.listing_evidence(at, release, paper).is_none() && self.page_evidence(at, release, paper).is_none();
        let (source, release) = (plugin.project.key.source, plugin.releases[release].release);
        let needs = plugin.rules.jars.api_version(release);
        self.reader.untrusted_sibling(source, release, needs, paper).filter(|_| unsupported).cloned()
    }

    /// The reason why a Paper version refuses to load a release (both given by position), regardless of overrides.
    pub(crate) fn refusal(&self, at: usize, release: usize, paper: usize) -> Option<Unusable> {
        let plugin = &self.plugins[at];
        let needs = plugin.rules.jars.api_version(plugin.releases[release].release);
        listed_versions::api_version_refusal(needs, &self.papers[paper].version.minecraft)
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

    /// Whether a release runs on the server now.
    pub(crate) fn is_running(&self, release: &Release) -> bool {
        self.request.running.as_ref().is_some_and(|running| running.runs_release(release))
    }
}

impl PluginCandidates<'_> {
    /// The position of a release, whether the value comes from this server or from another one.
    pub(crate) fn position_of(&self, release: &Release) -> Option<usize> {
        position_among(release, self.releases.iter().map(|candidate| candidate.release))
    }

    /// The position of the newest release that may be used, with or without a pin.
    pub(crate) fn newest_usable(&self) -> Option<usize> {
        self.usable.highest(self.releases.len()).and_then(|index| index.checked_sub(1))
    }

    /// The releases that may be used and that are known to run on a Paper version (given by position).
    pub(crate) fn usable_on(&self, paper: usize) -> IndexSet {
        self.supports[paper].intersection(&self.usable)
    }

    /// The position of the release that runs now and may stay.
    pub(crate) fn running_release(&self, candidates: &CandidateIndex<'_>) -> Option<usize> {
        self.releases
            .iter()
            .position(|candidate| candidate.unusable.is_none() && candidates.is_running(candidate.release))
    }

    /// The display name.
    pub(crate) fn name(&self) -> &str {
        &self.project.name
    }

    /// Whether the server must have this plugin regardless of the needs of other plugins.
    pub(crate) fn is_wanted(&self) -> bool {
        self.requested_by.is_some() || !self.unmanaged_dependents.is_empty()
    }

    /// The Plugin object that hints refer to.
    pub(crate) fn object(&self) -> Option<&str> {
        self.requested_by.as_ref().map(|requested_by| requested_by.deciding_object)
    }
}

/// Groups unusable versions by reason. The index is the position plus 1.
fn classes<'x>(reasons: impl Iterator<Item = Option<&'x Unusable>>) -> Vec<UnusableClass> {
    let mut found: Vec<(&Unusable, Vec<u64>)> = Vec::new();
    for (position, reason) in reasons.enumerate() {
        let Some(reason) = reason else { continue };
        let at = found.iter().rposition(|(existing, _)| *existing == reason).unwrap_or_else(|| {
            found.push((reason, Vec::new()));
            found.len() - 1
        });
        let words = &mut found[at].1;
        let index = position + 1;
        if words.len() <= index / 64 {
            words.resize(index / 64 + 1, 0);
        }
        words[index / 64] |= 1 << (index % 64);
    }
    found.into_iter().map(|(reason, words)| UnusableClass { reason: reason.clone(), members: words.into() }).collect()
}

/// The class that contains an index.
pub(crate) fn class_of(classes: &[UnusableClass], index: usize) -> Option<&UnusableClass> {
    classes.iter().find(|class| class.members.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1))
}
