//! Pure. The shelf: the catalog as one server sees it at one instant, with every release judged and indexed.

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
use eligibility::place_among;
pub(crate) use eligibility::{is_older, is_pinned};
use eligibility_cache::EligibilityTable;
use jar_selection::Jars;
use listed_versions::{ListingEvidence, ListingPolicy, ListingReader};
use paper_candidates::PaperCandidate;
pub(crate) use unmanaged_dependencies::MissingDependency;

/// Releases beyond this many (the oldest) are left off a shelf: an index is 16 bits, and nobody publishes as many.
pub(crate) const MOST_RELEASES: usize = 60_000;

/// Everything the solve and the explanation ask, computed once.
pub(crate) struct CandidateIndex<'a> {
    pub(crate) request: &'a Request,
    pub(crate) now: Timestamp,
    /// Index of a Paper in the solve is its place here plus 1.
    pub(crate) papers: Vec<PaperCandidate<'a>>,
    /// Classes of unusable Papers.
    pub(crate) paper_classes: Vec<UnusableClass>,
    /// In rank order: those asked for by object name, then the others, dependents before dependencies.
    pub(crate) shelves: Vec<Rc<PluginCandidates<'a>>>,
    /// What was assumed while reading the request.
    pub(crate) warnings: Vec<Warning>,
    reader: ListingReader,
    judgements: EligibilityTable<'a>,
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
    /// Whether it may go below what runs.
    pub(crate) may_go_down: bool,
    /// The Plugin object that is held at the release that runs, and whose word that is; none where none runs.
    pub(crate) hold: Option<(&'a str, Hold)>,
    pub(crate) compatibility: Option<&'a CompatibilityOverride>,
    pub(crate) pin: Option<&'a str>,
    /// Which of its files come.
    pub(crate) jars: Jars<'a>,
    /// What its Plugin object says about its versions and those of others.
    pub(crate) requires: Option<UserConstraint<'a>>,
    /// What the server says about pages without a list.
    pub(crate) unlisted: Unlisted,
    /// The plugins of the server that belong to it.
    pub(crate) together: Vec<Companion<'a>>,
}

/// Who asks for a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedBy<'a> {
    /// All objects, by name.
    pub(crate) objects: Vec<&'a str>,
    /// The one whose fields decide.
    pub(crate) decides: &'a str,
    /// Those that want one release on all their servers (`updateStrategy: latest`), by name.
    pub(crate) latest: Vec<&'a str>,
}

/// One plugin with its releases, oldest first. Index of a release in the solve is its place here plus 1.
pub(crate) struct PluginCandidates<'a> {
    pub(crate) project: &'a Project,
    /// `None`: only other plugins need it.
    pub(crate) asked: Option<RequestedBy<'a>>,
    /// JARs of people's own that need it, where nobody asks for it and it runs.
    pub(crate) kept_for: Vec<String>,
    pub(crate) rules: Rules<'a>,
    /// The channel used: that of the rules, or the best there is when the project has nothing on it.
    pub(crate) channel: Channel,
    pub(crate) releases: Rc<Vec<Candidate<'a>>>,
    /// What each release says about other shelves; nothing for one that may not be used.
    pub(crate) links: Vec<Vec<Edge>>,
    pub(crate) classes: Vec<UnusableClass>,
    /// Per Paper, the releases known to run on it, unusable ones included.
    pub(crate) supports: Vec<IndexSet>,
    /// Releases that may be used.
    pub(crate) usable: IndexSet,
    /// Releases that meet the pin; everything but "not installed" without one.
    pub(crate) allowed: IndexSet,
}

/// One release and its verdict.
pub(crate) struct Candidate<'a> {
    pub(crate) release: &'a Release,
    pub(crate) unusable: Option<Unusable>,
    /// Required projects that its source does not have, as the page names them.
    pub(crate) outside: Vec<String>,
}

/// What one release asks of another plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The other shelf.
    pub(crate) to: usize,
    /// Its versions that will do; "not installed" is among them unless it is required.
    pub(crate) set: IndexSet,
    pub(crate) kind: EdgeKind,
    /// The release that was guessed as the minimum.
    pub(crate) guessed: Option<usize>,
    /// The fact behind it that no page states.
    pub(crate) fact: Option<Arc<(Range, FactSource)>>,
}

/// The kinds of links that bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeKind {
    Required,
    Optional,
    Incompatible,
}

/// When something published at `published` is old enough.
pub(crate) fn ripe_at(published: Timestamp, delay: SignedDuration) -> Timestamp {
    published.checked_add(delay).unwrap_or(Timestamp::MAX)
}

/// What is missing before the request can be answered: all that [`CandidateIndex::build`] looks for before it indexes anything.
pub(crate) fn gap(catalog: &Catalog, request: &Request, now: Timestamp) -> Gap {
    let mut gap = Gap::default();
    dependency_closure::stock(&mut EligibilityTable::of_one(catalog, now), request, &mut Vec::new(), &mut gap);
    gap
}

impl<'a> CandidateIndex<'a> {
    /// The fact behind a link of a release, in words that stand alone.
    pub(crate) fn fact(&self, at: usize, place: usize, link: &Edge) -> Option<UsedFact> {
        let (range, says) = link.fact.as_deref()?;
        let from = &self.shelves[at];
        Some(UsedFact {
            plugin: from.name().to_owned(),
            version: from.releases[place].release.version.clone(),
            needs: self.shelves[link.to].name().to_owned(),
            range: range.clone(),
            says: says.clone(),
        })
    }

    /// What a release is taken to need of others by their dates.
    pub(crate) fn guesses(&self, at: usize, place: usize) -> impl Iterator<Item = Guess> {
        let (from, release) = (&self.shelves[at], self.shelves[at].releases[place].release);
        from.links[place].iter().filter_map(move |link| {
            let other = &self.shelves[link.to];
            let least = other.releases[link.guessed? - 1].release;
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

    /// Judges and indexes everything that the request can reach.
    pub(crate) fn build(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Gap> {
        Self::after(None, catalog, request, now)
    }

    /// The world of another request of the same server. What it does not change is taken over: most requests that are
    /// tried for a hint change one plugin of forty.
    pub(crate) fn changed<'b>(&'b self, request: &'b Request, now: Timestamp) -> Result<CandidateIndex<'b>, Gap> {
        let comparable = self.now == now && self.request.running == request.running;
        CandidateIndex::after(Some(self).filter(|_| comparable), self.judgements.catalog, request, now)
    }

    /// `before`: a world at the same instant, of a server that runs the same.
    fn after(
        before: Option<&'a CandidateIndex<'a>>,
        catalog: &'a Catalog,
        request: &'a Request,
        now: Timestamp,
    ) -> Result<Self, Gap> {
        let papers = paper_candidates::candidates(catalog, request, now);
        let paper_classes = classes(papers.iter().map(|paper| paper.unusable.as_ref()));
        // What Paper has built up to this instant; a version it never built is one without a build in all the catalog.
        let built = paper_candidates::built(catalog, papers.iter().map(|paper| paper.version), request.software, now);
        let reader = ListingReader::new(papers.iter().map(|paper| paper.version), ListingPolicy::of(request), &built);
        let mut warnings = Vec::new();
        let mut gap = Gap::default();
        let mut judgements = match before {
            Some(before) => before.judgements.continued(),
            None => EligibilityTable::of_one(catalog, now),
        };
        let stock = dependency_closure::stock(&mut judgements, request, &mut warnings, &mut gap);
        if gap != Gap::default() {
            return Err(gap);
        }
        let known = before
            .filter(|before| before.reader.reads_like(&reader))
            .map_or(&[][..], |before| before.shelves.as_slice());
        let shelves = dependency_edges::shelve(catalog, request, &stock, &reader, known);
        Ok(Self { request, now, papers, paper_classes, shelves, warnings, reader, judgements })
    }

    /// How a release is known to run on a Paper (both by their places).
    pub(crate) fn known(&self, at: usize, release: usize, paper: usize) -> Option<ListingEvidence<'a>> {
        let stock = &self.shelves[at];
        let release = stock.releases[release].release;
        let needs = stock.rules.jars.api_version(release);
        self.reader.read(stock.project.key.source, release, needs, stock.rules.compatibility).swap_remove(paper)
    }

    /// How the page alone would have it, without the user's word.
    pub(crate) fn known_by_page(&self, at: usize, release: usize, paper: usize) -> Option<ListingEvidence<'a>> {
        let stock = &self.shelves[at];
        let release = stock.releases[release].release;
        // A page without a list says nothing, where nobody takes that for a yes.
        let source = stock.project.key.source;
        let has_list = !self.request.software.list_of(source, release).is_empty();
        let silent = !has_list && self.request.unlisted == Unlisted::Refuse;
        let needs = stock.rules.jars.api_version(release);
        self.reader.read(source, release, needs, None).swap_remove(paper).filter(|_| !silent)
    }

    /// The hotfix sibling on the page of a release that would do for a Paper, if only `hotfixSiblings: Ask` is in the way.
    pub(crate) fn left_open(&self, at: usize, release: usize, paper: usize) -> Option<Minecraft> {
        let stock = &self.shelves[at];
        let nobody = self.known(at, release, paper).is_none() && self.known_by_page(at, release, paper).is_none();
        let (source, release) = (stock.project.key.source, stock.releases[release].release);
        let needs = stock.rules.jars.api_version(release);
        self.reader.left_open(source, release, needs, paper).filter(|_| nobody).cloned()
    }

    /// Why a Paper refuses to load a release (both by their places), whatever is said about it.
    pub(crate) fn refuses(&self, at: usize, release: usize, paper: usize) -> Option<Unusable> {
        let stock = &self.shelves[at];
        let needs = stock.rules.jars.api_version(stock.releases[release].release);
        listed_versions::refuses(needs, &self.papers[paper].version.minecraft)
    }

    /// What a Paper (by its place) is called with its build; None for one without.
    pub(crate) fn paper_name(&self, place: usize) -> Option<PaperName> {
        let paper = &self.papers[place];
        let (software, minecraft) = (self.request.software, paper.version.minecraft.clone());
        Some(PaperName { software, minecraft, build: paper.build?.number })
    }

    /// The version of a project that runs although its page has it no more.
    pub(crate) fn lost(&self, project: &Project) -> Option<&str> {
        self.request.running.as_ref()?.lost(project)
    }

    /// Whether a release is one that runs and that its page has lost.
    pub(crate) fn has_lost(&self, project: &Project, release: &Release) -> bool {
        let lost = self.request.running.as_ref().and_then(|running| running.lost_release(project));
        lost.is_some_and(|lost| std::ptr::eq(lost, release))
    }

    /// Whether a release runs on the server now.
    pub(crate) fn runs(&self, release: &Release) -> bool {
        self.request.running.as_ref().is_some_and(|running| running.has(release))
    }
}

impl PluginCandidates<'_> {
    /// The place of a release, as this server or another one knows it.
    pub(crate) fn place_of(&self, release: &Release) -> Option<usize> {
        place_among(release, self.releases.iter().map(|stocked| stocked.release))
    }

    /// The newest release that may be used (its place), pin or not.
    pub(crate) fn newest_usable(&self) -> Option<usize> {
        self.usable.highest(self.releases.len()).and_then(|index| index.checked_sub(1))
    }

    /// The releases that may be used and that somebody says run on a Paper (by its place).
    pub(crate) fn would_do(&self, paper: usize) -> IndexSet {
        self.supports[paper].intersection(&self.usable)
    }

    /// The release (its place) that runs now and may stay.
    pub(crate) fn runs(&self, world: &CandidateIndex<'_>) -> Option<usize> {
        self.releases.iter().position(|stocked| stocked.unusable.is_none() && world.runs(stocked.release))
    }

    /// The name people know.
    pub(crate) fn name(&self) -> &str {
        &self.project.name
    }

    /// Whether the server has to have it, whatever the others need.
    pub(crate) fn is_wanted(&self) -> bool {
        self.asked.is_some() || !self.kept_for.is_empty()
    }

    /// The Plugin object that hints point at.
    pub(crate) fn object(&self) -> Option<&str> {
        self.asked.as_ref().map(|asked| asked.decides)
    }
}

/// Groups unusable versions by reason; place + 1 is the index.
fn classes<'x>(reasons: impl Iterator<Item = Option<&'x Unusable>>) -> Vec<UnusableClass> {
    let mut found: Vec<(&Unusable, Vec<u64>)> = Vec::new();
    for (place, reason) in reasons.enumerate() {
        let Some(reason) = reason else { continue };
        let at = found.iter().rposition(|(known, _)| *known == reason).unwrap_or_else(|| {
            found.push((reason, Vec::new()));
            found.len() - 1
        });
        let words = &mut found[at].1;
        let index = place + 1;
        if words.len() <= index / 64 {
            words.resize(index / 64 + 1, 0);
        }
        words[index / 64] |= 1 << (index % 64);
    }
    found.into_iter().map(|(reason, words)| UnusableClass { reason: reason.clone(), members: words.into() }).collect()
}

/// The class that an index belongs to.
pub(crate) fn class_of(classes: &[UnusableClass], index: usize) -> Option<&UnusableClass> {
    classes.iter().find(|class| class.members.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1))
}
