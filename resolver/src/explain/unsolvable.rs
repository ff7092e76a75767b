//! Pure. Explains an unsolvable request: shrinks the proof and converts it into facts that users can check.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pubgrub::{DerivationTree, External, VersionSet};

use super::blockers::{kept_twice, listed, smallest, up_to};
use super::solved::lists_read_later;
use super::why_not_version::nearest_real;
use super::{Conflict, ExplainContext, Reason, RunningNow, Span, hints, upstream_actions};
use crate::index::{CandidateIndex, EdgeKind};
use crate::request::PaperRequest;
use crate::solve::index_set::IndexSet;
use crate::solve::provider::{Package, Proof, SolverFailure, SolverProblem, find, solve};
use crate::unusable::Unusable;
use crate::version::lenient;

/// Limit of listed facts, for readability. Further ones are counted.
const MOST_REASONS: usize = 8;
/// Limit of plugins for shrinking the proof: each one costs a solver run.
const MOST_SHRUNK: usize = 60;

/// Explains that `question` has no solution.
pub(crate) fn explain(asked: &ExplainContext<'_, '_>, question: &SolverProblem, proof: &Proof) -> Conflict {
    let world = asked.world;
    let shrunk = shrink(asked, question, proof);
    let (question, proof) = shrunk.as_ref().map_or((question, proof), |(question, proof)| (question, &**proof));
    let reasons = ConflictLeaves { world, question, found: Vec::new() }.collect(proof);
    let mut impossible = Conflict {
        server: world.request.server.clone(),
        software: world.request.software,
        running: running(world),
        reasons,
        more: 0,
        hints: Vec::new(),
        more_hints: 0,
        hints_left_out: None,
        waits: Vec::new(),
        lists_read_later: lists_read_later(asked),
    };
    let hints::Ways { hints, more, left_out } = hints::for_impossible(asked, &impossible);
    (impossible.hints, impossible.more_hints, impossible.hints_left_out) = (hints, more, left_out);
    impossible.waits = upstream_actions::by_reasons(world, &impossible.reasons);
    // Reasons that are not shown still count for the hints.
    impossible.more = impossible.reasons.len().saturating_sub(MOST_REASONS);
    impossible.reasons.truncate(MOST_REASONS);
    impossible
}

/// The problem with a minimal set of mandatory plugins that is still unsolvable. The first proof names irrelevant ones,
/// because each Paper version is ruled out by the first plugin that fails on it. Returned only if its proof is smaller.
fn shrink(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    proof: &Proof,
) -> Option<(SolverProblem, Box<Proof>)> {
    let mut named: HashSet<usize> = HashSet::new();
    let size = visit(proof, |leaf| {
        if let External::FromDependencyOf(_, _, Package::Plugin(stock), _) = leaf {
            named.insert(*stock);
        }
    });
    let insisted: Vec<usize> = question.insisted().into_iter().filter(|stock| named.contains(stock)).collect();
    if insisted.len() > MOST_SHRUNK {
        return None;
    }
    let fails = |kept: &[usize]| {
        let with = question.only(|stock| kept.contains(&stock));
        Ok(find(asked.world, &with, asked.meter)?.is_none())
    };
    let kept = smallest(insisted, fails).ok()?;
    let smaller = question.only(|stock| kept.contains(&stock));
    match solve(asked.world, &smaller, asked.meter) {
        Err(SolverFailure::None(proof)) if visit(&proof, |_| {}) <= size => Some((smaller, proof)),
        Ok(_) | Err(_) => None,
    }
}

/// Visits each node of the proof once (it is a graph, not a tree, and may be deep), and returns the number of nodes.
fn visit(
    proof: &Proof,
    mut leaf: impl FnMut(&External<Package, IndexSet, crate::solve::provider::DebugUnusable>),
) -> usize {
    let mut seen = HashSet::new();
    let mut open: Vec<&Proof> = vec![proof];
    let mut size = 0;
    while let Some(node) = open.pop() {
        size += 1;
        match node {
            DerivationTree::External(external) => leaf(external),
            DerivationTree::Derived(derived) => {
                for cause in [&derived.cause2, &derived.cause1] {
                    if seen.insert(Arc::as_ptr(cause)) {
                        open.push(cause);
                    }
                }
            }
        }
    }
    size
}

/// The running versions, by name.
pub(super) fn running(world: &CandidateIndex<'_>) -> Option<RunningNow> {
    let running = world.request.running.as_ref()?;
    let mut plugins: Vec<(String, String)> = world
        .shelves
        .iter()
        .flat_map(|stock| {
            let on_page = |release| world.runs(release) && !world.has_lost(stock.project, release);
            let runs = stock.releases.iter().filter(move |stocked| on_page(stocked.release));
            let runs = runs.map(|stocked| stocked.release.version.as_str()).chain(world.lost(stock.project));
            runs.map(|version| (stock.name().to_owned(), version.to_owned()))
        })
        .collect();
    plugins.sort();
    Some(RunningNow { paper: running.paper_name(), plugins })
}

/// Converts leaves of a proof into reasons.
struct ConflictLeaves<'x, 'a> {
    world: &'x CandidateIndex<'a>,
    question: &'x SolverProblem,
    found: Vec<((u8, String, usize), Reason)>,
}

impl ConflictLeaves<'_, '_> {
    fn collect(mut self, proof: &Proof) -> Vec<Reason> {
        // One plugin often rules out Paper versions in several steps. They are reported once.
        let mut on_papers: BTreeMap<(usize, bool), IndexSet> = BTreeMap::new();
        let mut leaves = Vec::new();
        visit(proof, |leaf| leaves.push(leaf.clone()));
        for leaf in &leaves {
            match leaf {
                External::Custom(package, set, why) => self.unusable(*package, set, &why.0),
                External::FromDependencyOf(Package::Root, _, Package::Paper, _) => self.paper_wish(),
                External::FromDependencyOf(Package::Root, _, Package::Plugin(stock), _) => self.plugin_wish(*stock),
                External::FromDependencyOf(Package::Paper, papers, Package::Plugin(stock), goes) => {
                    let none = goes.is_disjoint(&IndexSet::present());
                    let papers = papers.intersection(&self.question.papers);
                    let known = on_papers.entry((*stock, none)).or_insert_with(IndexSet::empty);
                    *known = known.union(&papers);
                }
                External::FromDependencyOf(Package::Plugin(from), set, Package::Plugin(to), goes) => {
                    self.link(*from, set, *to, goes);
                }
                // No other package has dependencies, and an empty range is a consequence of other facts.
                External::FromDependencyOf(..) | External::NotRoot(..) | External::NoVersions(..) => {}
            }
        }
        for ((stock, none), papers) in on_papers {
            self.listing(stock, none, &papers);
        }
        if self.found.is_empty() {
            self.nothing_at_all();
        }
        let only_previews = self.found.iter().all(|(_, reason)| is_preview(reason));
        self.found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut reasons: Vec<Reason> = self.found.into_iter().map(|(_, reason)| reason).collect();
        reasons.dedup();
        // The reasons why existing releases are unusable are more informative than the fact that no usable one exists.
        let unusable = |reason: &Reason| {
            if let Reason::ReleasesUnusable { plugin, .. } = reason { Some(plugin.clone()) } else { None }
        };
        let explained: Vec<String> = reasons.iter().filter_map(unusable).collect();
        reasons.retain(
            |reason| !matches!(reason, Reason::NotListed { plugin, newest: None, .. } if explained.contains(plugin)),
        );
        if !only_previews {
            reasons.retain(|reason| !is_preview(reason));
        }
        // A file has one release, so the reason why it is unusable is sufficient.
        let missing: Vec<String> = reasons.iter().filter_map(lacks_a_plugin).map(str::to_owned).collect();
        reasons.retain(
            |reason| !matches!(reason, Reason::NotListed { plugin, newest: None, .. } if missing.contains(plugin)),
        );
        reasons
    }

    fn add(&mut self, rank: u8, name: &str, reason: Reason) {
        let order = self.found.len();
        self.found.push(((rank, name.to_owned(), order), reason));
    }

    fn spans(&self, papers: &IndexSet) -> Vec<Span> {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for index in papers.members(1, self.world.papers.len()) {
            match spans.last_mut() {
                Some((_, to)) if *to + 1 == index => *to = index,
                _ => spans.push((index, index)),
            }
        }
        let name = |index: usize| self.world.papers[index - 1].version.minecraft.clone();
        spans.into_iter().map(|(from, to)| Span { from: name(from), to: name(to) }).collect()
    }

    fn paper_wish(&mut self) {
        let (version, build) = match &self.world.request.paper {
            PaperRequest::Pin { version } => (version, None),
            PaperRequest::BuildPin { version, build } => (version, Some(*build)),
            PaperRequest::Auto | PaperRequest::Latest => return,
        };
        let reason = if self.world.papers.iter().any(|paper| paper.version.minecraft == *version) {
            Reason::PaperPinned { version: version.clone(), build }
        } else {
            Reason::NoSuchPaper { version: version.clone(), nearest: nearest_real(self.world, version) }
        };
        self.add(0, "", reason);
    }

    fn plugin_wish(&mut self, at: usize) {
        let stock = &self.world.shelves[at];
        let (Some(pin), Some(object), true) = (stock.rules.pin, stock.object(), self.question.insists(at)) else {
            return;
        };
        let (object, plugin) = (object.to_owned(), stock.name().to_owned());
        let limit = stock.releases.len();
        let reason = if stock.allowed.highest(limit).is_none() {
            Reason::NoSuchRelease {
                object,
                plugin,
                version: pin.to_owned(),
                nearest: nearest_releases(self.world, at, pin),
            }
        } else {
            let on = (0..self.world.papers.len())
                .filter(|&paper| stock.allowed.members(1, limit).any(|index| stock.supports[paper].has(index)));
            let papers = self.spans(&IndexSet::of(on.map(|paper| paper + 1)));
            Reason::PluginPinned { object, plugin, version: pin.to_owned(), papers }
        };
        self.add(1, stock.name(), reason);
    }

    fn unusable(&mut self, package: Package, set: &IndexSet, why: &Unusable) {
        match package {
            Package::Root => {}
            Package::Paper => {
                let papers = self.spans(&set.intersection(&self.question.papers));
                if !papers.is_empty() {
                    self.add(2, "", Reason::PaperUnusable { papers, unusable: why.clone() });
                }
            }
            Package::Plugin(at) => {
                let stock = &self.world.shelves[at];
                // Only releases that would be sufficient on a Paper version in question are relevant.
                let on_papers = self
                    .question
                    .papers
                    .members(1, self.world.papers.len())
                    .filter(|index| self.world.papers[index - 1].unusable.is_none())
                    .fold(IndexSet::empty(), |all, index| all.union(&stock.supports[index - 1]));
                let would_do = set.intersection(&on_papers);
                let limit = stock.releases.len();
                let Some(newest) = would_do.highest(limit).and_then(|index| index.checked_sub(1)) else { return };
                let release = stock.releases[newest].release;
                let lost = self.world.has_lost(stock.project, release);
                let reason = Reason::ReleasesUnusable {
                    plugin: stock.name().to_owned(),
                    object: stock.object().map(str::to_owned),
                    version: release.version.clone(),
                    published: release.published,
                    older: would_do.members(1, limit).count() - 1,
                    up_to: up_to(release).filter(|_| !lost),
                    lost,
                    unusable: why.clone(),
                };
                self.add(3, &format!("{}+", stock.name()), reason);
            }
        }
    }

    fn listing(&mut self, at: usize, none: bool, papers: &IndexSet) {
        let stock = &self.world.shelves[at];
        let spans = self.spans(papers);
        if spans.is_empty() || stock.rules.pin.is_some() && self.question.insists(at) && !none {
            return;
        }
        if !stock.kept_for.is_empty() && self.question.insists(at) {
            let (plugin, files) = (stock.name().to_owned(), stock.kept_for.clone());
            self.add(1, stock.name(), Reason::NeededByFiles { plugin, files });
        }
        if stock.releases.is_empty() {
            self.no_release(at, spans);
            return;
        }
        let limit = stock.releases.len();
        let goes = papers
            .members(1, self.world.papers.len())
            .fold(IndexSet::empty(), |all, index| all.union(&stock.supports[index - 1]))
            .intersection(&stock.usable);
        let newest = stock.newest_usable();
        let reason = if none || newest.is_none_or(|newest| !goes.has(newest + 1)) {
            let places: Vec<usize> = papers.members(1, self.world.papers.len()).map(|index| index - 1).collect();
            let newest = newest.map(|newest| listed(self.world, at, newest, &places));
            Reason::NotListed {
                plugin: stock.name().to_owned(),
                object: stock.object().map(str::to_owned),
                papers: spans,
                both: places.last().and_then(|&paper| kept_twice(self.world, at, newest.as_ref(), paper)).map(Box::new),
                newest,
                read_at: stock.project.read_at,
            }
        } else {
            let version = |index: usize| stock.releases[index - 1].release.version.clone();
            let (Some(oldest), Some(newest)) = (goes.members(1, limit).next(), goes.highest(limit)) else { return };
            if (oldest..=newest).count() >= stock.usable.members(1, limit).count() {
                return;
            }
            Reason::OnlyThese {
                plugin: stock.name().to_owned(),
                papers: spans,
                oldest: version(oldest),
                newest: version(newest),
            }
        };
        self.add(3, stock.name(), reason);
    }

    fn no_release(&mut self, at: usize, papers: Vec<Span>) {
        let stock = &self.world.shelves[at];
        let (plugin, object) = (stock.name().to_owned(), stock.object().map(str::to_owned));
        self.add(1, stock.name(), Reason::NoRelease { plugin, object, papers });
    }

    fn link(&mut self, from: usize, set: &IndexSet, to: usize, goes: &IndexSet) {
        let (stock, other) = (&self.world.shelves[from], &self.world.shelves[to]);
        let limit = stock.releases.len();
        let Some(newest) = set.highest(limit).and_then(|index| index.checked_sub(1)) else { return };
        let link = stock.links[newest].iter().find(|link| link.to == to && link.set == *goes);
        let version = stock.releases[newest].release.version.clone();
        let plugin = stock.name().to_owned();
        let others = other.releases.len();
        let named = |index: usize| other.releases[index - 1].release.version.clone();
        let is_ruled_out = |highest: usize| (highest + 1..=others).any(|index| other.usable.has(index));
        // 0 stands for "no release".
        let highest = goes.highest(others).filter(|&highest| highest > 0 && is_ruled_out(highest));
        let reason = match link.map(|link| link.kind) {
            Some(EdgeKind::Incompatible) => {
                let excluded: Vec<usize> = (1..=others).rev().filter(|&index| !goes.has(index)).collect();
                let releases =
                    if excluded.len() == others { Vec::new() } else { excluded.into_iter().map(named).collect() };
                Reason::Excludes { plugin, version, other: other.name().to_owned(), releases }
            }
            kind @ (Some(EdgeKind::Required | EdgeKind::Optional) | None) => Reason::Needs {
                plugin,
                version,
                older: set.members(1, limit).count() - 1,
                needs: other.name().to_owned(),
                at_least: goes.members(1, others).next().map(named),
                at_most: highest.map(named),
                guessed: link.is_some_and(|link| link.guessed.is_some()),
                optional: kind == Some(EdgeKind::Optional),
                fact: link.and_then(|link| self.world.fact(from, newest, link)),
            },
        };
        self.add(4, stock.name(), reason);
    }

    /// Facts that a proof takes for granted: there was nothing to choose from.
    fn nothing_at_all(&mut self) {
        if self.world.papers.is_empty() {
            self.add(0, "", Reason::NoPaper);
            return;
        }
        for at in self.question.insisted() {
            if self.world.shelves[at].releases.is_empty() {
                self.no_release(at, self.spans(&self.question.papers));
            }
        }
        if self.found.is_empty() {
            self.add(0, "", Reason::NoPaper);
        }
    }
}

fn is_preview(reason: &Reason) -> bool {
    matches!(reason, Reason::PaperUnusable { unusable: Unusable::Preview, .. })
}

/// The plugin whose JAR needs another plugin that is missing.
fn lacks_a_plugin(reason: &Reason) -> Option<&str> {
    if let Reason::ReleasesUnusable { plugin, unusable: Unusable::NeedsMissing { .. }, .. } = reason {
        return Some(plugin);
    }
    None
}

/// Up to three existing versions close to a nonexistent one.
pub(super) fn nearest_releases(world: &CandidateIndex<'_>, at: usize, pin: &str) -> Vec<String> {
    let stock = &world.shelves[at];
    let mut versions: Vec<&str> = stock.releases.iter().map(|stocked| stocked.release.version.as_str()).collect();
    let on_channel = |version: &&str| {
        stock.releases.iter().any(|s| s.release.version == **version && s.release.channel >= stock.channel)
    };
    if versions.iter().any(on_channel) {
        versions.retain(|version| on_channel(version));
    }
    versions.sort_by(|a, b| lenient::compare(a, b).then_with(|| a.cmp(b)));
    versions.dedup();
    let split = versions.partition_point(|version| lenient::compare(version, pin).is_lt());
    let mut near: Vec<(usize, &str)> = versions
        .iter()
        .enumerate()
        .map(|(place, version)| (if place < split { split - place } else { place + 1 - split }, *version))
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(3).map(|(_, version)| version.to_owned()).collect()
}
