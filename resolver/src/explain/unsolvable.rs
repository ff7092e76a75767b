//! Pure. Explains an unsolvable request: shrinks the proof and converts it into facts that users can check.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pubgrub::{DerivationTree, External, VersionSet};

use super::blockers::{blocked_twice, listed_release, minimize};
use super::group_context::GroupContext;
use super::inputs::{lists_read_later, running, unread_parts};
use super::nearest::{nearest_existing, nearest_releases};
use super::shared_plugins::{MAX_PLUGINS, conflicting_plugins};
use super::{ExplainContext, hints, upstream_actions};
use crate::explanation::{Conflict, Reason, Span, UpstreamAction};
use crate::index::CandidateIndex;
use crate::index::candidates::{Edge, EdgeKind};
use crate::index::index_set::IndexSet;
use crate::model::catalog::newest_listed;
use crate::model::request::PaperRequest;
use crate::model::unusable::Unusable;
use crate::solve::provider::{Package, Proof, SolverFailure, SolverProblem, find_solution, solve};

/// Limit of listed facts, for readability. Further ones are counted.
const MAX_REASONS: usize = 8;
/// Limit of plugins for shrinking the proof: each one costs a solver run.
const MAX_SHRUNK_PLUGINS: usize = 60;

/// Explains that `problem` has no solution.
pub(crate) fn explain(context: &ExplainContext<'_, '_>, problem: &SolverProblem, proof: &Proof) -> Conflict {
    let candidates = context.candidates;
    let shrunk = shrink(context, problem, proof);
    let (smaller, proof) = shrunk.as_ref().map_or((problem, proof), |(problem, proof)| (problem, &**proof));
    let reasons = ConflictLeaves { candidates, problem: smaller, found: Vec::new() }.collect(proof);
    // Verified for the whole request: after the actions for a part of the plugins, another one may exclude the rest.
    let waits = upstream_actions::for_reasons(context, problem, &reasons);
    with_hints(context, reasons, waits, MAX_REASONS)
}

/// The problem with a minimal set of mandatory plugins that is still unsolvable. The first proof names irrelevant ones,
/// because each Paper version is ruled out by the first plugin that fails on it. Returned only if its proof is smaller.
fn shrink(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    proof: &Proof,
) -> Option<(SolverProblem, Box<Proof>)> {
    let mut named: HashSet<usize> = HashSet::new();
    let size = visit(proof, |leaf| {
        if let External::FromDependencyOf(_, _, Package::Plugin(plugin), _) = leaf {
            named.insert(*plugin);
        }
    });
    let mandatory: Vec<usize> =
        problem.mandatory_plugins().into_iter().filter(|plugin| named.contains(plugin)).collect();
    if mandatory.len() > MAX_SHRUNK_PLUGINS {
        return None;
    }
    let fails = |subset: &[usize]| {
        let with = problem.with_mandatory(|plugin| subset.contains(&plugin));
        Ok(find_solution(context.candidates, &with, context.meter)?.is_none())
    };
    let subset = minimize(mandatory, fails).ok()?;
    let smaller = problem.with_mandatory(|plugin| subset.contains(&plugin));
    match solve(context.candidates, &smaller, context.meter) {
        Err(SolverFailure::NoSolution(proof)) if visit(&proof, |_| {}) <= size => Some((smaller, proof)),
        Ok(_) | Err(_) => None,
    }
}

/// Visits each node of the proof once (it is a graph, not a tree, and may be deep), and returns the number of nodes.
fn visit(
    proof: &Proof,
    mut leaf: impl FnMut(&External<Package, IndexSet, crate::solve::provider::DebugUnusable>),
) -> usize {
    let mut visited = HashSet::new();
    let mut open: Vec<&Proof> = vec![proof];
    let mut size = 0;
    while let Some(node) = open.pop() {
        size += 1;
        match node {
            DerivationTree::External(external) => leaf(external),
            DerivationTree::Derived(derived) => {
                for cause in [&derived.cause2, &derived.cause1] {
                    if visited.insert(Arc::as_ptr(cause)) {
                        open.push(cause);
                    }
                }
            }
        }
    }
    size
}

/// Converts leaves of a proof into reasons.
struct ConflictLeaves<'x, 'a> {
    candidates: &'x CandidateIndex<'a>,
    problem: &'x SolverProblem,
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
                External::Custom(package, set, why) => self.add_unusable(*package, set, &why.0),
                External::FromDependencyOf(Package::Root, _, Package::Paper, _) => self.add_paper_pin(),
                External::FromDependencyOf(Package::Root, _, Package::Plugin(plugin), _) => {
                    self.add_plugin_pin(*plugin);
                }
                External::FromDependencyOf(Package::Paper, papers, Package::Plugin(plugin), accepted) => {
                    let none = accepted.is_disjoint(&IndexSet::present());
                    let papers = papers.intersection(&self.problem.papers);
                    let existing = on_papers.entry((*plugin, none)).or_insert_with(IndexSet::empty);
                    *existing = existing.union(&papers);
                }
                External::FromDependencyOf(Package::Plugin(from), set, Package::Plugin(to), accepted) => {
                    self.add_edge(*from, set, *to, accepted);
                }
                // No other package has dependencies, and an empty range is a consequence of other facts.
                External::FromDependencyOf(..) | External::NotRoot(..) | External::NoVersions(..) => {}
            }
        }
        for ((plugin, none), papers) in on_papers {
            self.add_listing(plugin, none, &papers);
        }
        if self.found.is_empty() {
            self.add_missing();
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
        reasons
    }

    fn add(&mut self, rank: u8, name: &str, reason: Reason) {
        let sequence = self.found.len();
        self.found.push(((rank, name.to_owned(), sequence), reason));
    }

    fn spans(&self, papers: &IndexSet) -> Vec<Span> {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for index in papers.members(1, self.candidates.papers.len()) {
            match spans.last_mut() {
                Some((_, to)) if *to + 1 == index => *to = index,
                _ => spans.push((index, index)),
            }
        }
        let name = |index: usize| self.candidates.papers[index - 1].version.minecraft.clone();
        spans.into_iter().map(|(from, to)| Span { from: name(from), to: name(to) }).collect()
    }

    fn add_paper_pin(&mut self) {
        let (version, build) = match &self.candidates.request.paper {
            PaperRequest::Pin { version } => (version, None),
            PaperRequest::BuildPin { version, build } => (version, Some(*build)),
            PaperRequest::Auto | PaperRequest::Latest => return,
        };
        let reason = if self.candidates.papers.iter().any(|paper| paper.version.minecraft == *version) {
            Reason::PaperPinned { version: version.clone(), build }
        } else {
            Reason::NoSuchPaper { version: version.clone(), nearest: nearest_existing(self.candidates, version) }
        };
        self.add(0, "", reason);
    }

    fn add_plugin_pin(&mut self, at: usize) {
        let plugin_candidates = &self.candidates.plugins[at];
        let (Some(pin), Some(object), true) =
            (plugin_candidates.rules.pin, plugin_candidates.object(), self.problem.is_mandatory(at))
        else {
            return;
        };
        let (object, plugin) = (object.to_owned(), plugin_candidates.name().to_owned());
        let limit = plugin_candidates.releases.len();
        let reason = if plugin_candidates.allowed.highest(limit).is_none() {
            Reason::NoSuchRelease {
                object,
                plugin,
                version: pin.to_owned(),
                nearest: nearest_releases(self.candidates, at, pin),
            }
        } else {
            let on = (0..self.candidates.papers.len()).filter(|&paper| {
                plugin_candidates.allowed.members(1, limit).any(|index| plugin_candidates.supports[paper].has(index))
            });
            let papers = self.spans(&IndexSet::from_indexes(on.map(|paper| paper + 1)));
            Reason::PluginPinned { object, plugin, version: pin.to_owned(), papers }
        };
        self.add(1, plugin_candidates.name(), reason);
    }

    fn add_unusable(&mut self, package: Package, set: &IndexSet, why: &Unusable) {
        match package {
            Package::Root => {}
            Package::Paper => {
                let papers = self.spans(&set.intersection(&self.problem.papers));
                if !papers.is_empty() {
                    self.add(2, "", Reason::PaperUnusable { papers, unusable: why.clone() });
                }
            }
            Package::Plugin(at) => {
                let plugin_candidates = &self.candidates.plugins[at];
                // Only releases that would be sufficient on a Paper version in question are relevant.
                let on_papers = self
                    .problem
                    .papers
                    .members(1, self.candidates.papers.len())
                    .filter(|index| self.candidates.papers[index - 1].unusable.is_none())
                    .fold(IndexSet::empty(), |all, index| all.union(&plugin_candidates.supports[index - 1]));
                let sufficient = set.intersection(&on_papers);
                let limit = plugin_candidates.releases.len();
                let Some(newest) = sufficient.highest(limit).and_then(|index| index.checked_sub(1)) else { return };
                let release = plugin_candidates.releases[newest].release;
                let is_delisted = self.candidates.is_delisted(plugin_candidates.project, release);
                let reason = Reason::ReleasesUnusable {
                    plugin: plugin_candidates.name().to_owned(),
                    object: plugin_candidates.object().map(str::to_owned),
                    version: release.version.clone(),
                    published: release.published,
                    older: sufficient.members(1, limit).count() - 1,
                    up_to: newest_listed(release).filter(|_| !is_delisted),
                    delisted: is_delisted,
                    unusable: why.clone(),
                };
                self.add(3, &format!("{}+", plugin_candidates.name()), reason);
            }
        }
    }

    fn add_listing(&mut self, at: usize, none: bool, papers: &IndexSet) {
        let plugin_candidates = &self.candidates.plugins[at];
        let spans = self.spans(papers);
        if spans.is_empty() || plugin_candidates.rules.pin.is_some() && self.problem.is_mandatory(at) && !none {
            return;
        }
        if !plugin_candidates.unmanaged_dependents.is_empty() && self.problem.is_mandatory(at) {
            let (plugin, files) = (plugin_candidates.name().to_owned(), plugin_candidates.unmanaged_dependents.clone());
            self.add(1, plugin_candidates.name(), Reason::NeededByFiles { plugin, files });
        }
        if plugin_candidates.releases.is_empty() {
            self.add_no_release(at, spans);
            return;
        }
        let limit = plugin_candidates.releases.len();
        let accepted = papers
            .members(1, self.candidates.papers.len())
            .fold(IndexSet::empty(), |all, index| all.union(&plugin_candidates.supports[index - 1]))
            .intersection(&plugin_candidates.usable);
        let newest = plugin_candidates.newest_usable();
        let reason = if none || newest.is_none_or(|newest| !accepted.has(newest + 1)) {
            let places: Vec<usize> = papers.members(1, self.candidates.papers.len()).map(|index| index - 1).collect();
            let newest = newest.map(|newest| listed_release(self.candidates, at, newest, &places));
            Reason::NotListed {
                plugin: plugin_candidates.name().to_owned(),
                object: plugin_candidates.object().map(str::to_owned),
                papers: spans,
                both: places
                    .last()
                    .and_then(|&paper| blocked_twice(self.candidates, at, newest.as_ref(), paper))
                    .map(Box::new),
                newest,
                read_at: plugin_candidates.project.read_at,
            }
        } else {
            let version = |index: usize| plugin_candidates.releases[index - 1].release.version.clone();
            let (Some(oldest), Some(newest)) = (accepted.members(1, limit).next(), accepted.highest(limit)) else {
                return;
            };
            if (oldest..=newest).count() >= plugin_candidates.usable.members(1, limit).count() {
                return;
            }
            Reason::OnlyThese {
                plugin: plugin_candidates.name().to_owned(),
                papers: spans,
                oldest: version(oldest),
                newest: version(newest),
            }
        };
        self.add(3, plugin_candidates.name(), reason);
    }

    fn add_no_release(&mut self, at: usize, papers: Vec<Span>) {
        let plugin_candidates = &self.candidates.plugins[at];
        let (plugin, object) = (plugin_candidates.name().to_owned(), plugin_candidates.object().map(str::to_owned));
        self.add(1, plugin_candidates.name(), Reason::NoRelease { plugin, object, papers });
    }

    fn add_edge(&mut self, from: usize, set: &IndexSet, to: usize, accepted: &IndexSet) {
        let (plugin_candidates, other) = (&self.candidates.plugins[from], &self.candidates.plugins[to]);
        let limit = plugin_candidates.releases.len();
        let Some(newest) = set.highest(limit).and_then(|index| index.checked_sub(1)) else { return };
        let edge = plugin_candidates.edges[newest].iter().find(|edge| edge.to == to && edge.set == *accepted);
        let version = plugin_candidates.releases[newest].release.version.clone();
        let plugin = plugin_candidates.name().to_owned();
        let others = other.releases.len();
        let named = |index: usize| other.releases[index - 1].release.version.clone();
        let is_ruled_out = |highest: usize| (highest + 1..=others).any(|index| other.usable.has(index));
        // 0 stands for "no release".
        let is_exact = edge.is_some_and(Edge::is_exact);
        let highest = accepted.highest(others).filter(|&highest| highest > 0 && (is_exact || is_ruled_out(highest)));
        let reason = match edge.map(|edge| edge.kind) {
            Some(EdgeKind::Incompatible) => {
                let excluded: Vec<usize> = (1..=others).rev().filter(|&index| !accepted.has(index)).collect();
                let releases =
                    if excluded.len() == others { Vec::new() } else { excluded.into_iter().map(named).collect() };
                Reason::Excludes { plugin, version, other: other.name().to_owned(), releases }
            }
            kind @ (Some(EdgeKind::Required | EdgeKind::Optional) | None) => Reason::Needs {
                plugin,
                version,
                older: set.members(1, limit).count() - 1,
                needs: other.name().to_owned(),
                at_least: accepted.members(1, others).next().map(named),
                at_most: highest.map(named),
                guessed: edge.is_some_and(|edge| edge.guessed.is_some()),
                optional: kind == Some(EdgeKind::Optional),
                fact: edge.and_then(|edge| self.candidates.fact(from, newest, edge)),
            },
        };
        self.add(4, plugin_candidates.name(), reason);
    }

    /// Facts that a proof takes for granted: there was nothing to choose from.
    fn add_missing(&mut self) {
        if self.candidates.papers.is_empty() {
            self.add(0, "", Reason::NoPaper);
            return;
        }
        for at in self.problem.mandatory_plugins() {
            if self.candidates.plugins[at].releases.is_empty() {
                self.add_no_release(at, self.spans(&self.problem.papers));
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

/// The explanation for an excluded server: it has a solution alone, but not with the members of its group that were
/// accepted before it.
pub(crate) fn explain_excluded(context: &ExplainContext<'_, '_>, group: &GroupContext<'_, '_>) -> Conflict {
    let mine = group.view(group.server).open.clone();
    let reasons = conflicting_plugins(context, group, &mine, false);
    let reasons = reasons.into_iter().map(|shared_version| Reason::SharedVersion { shared_version }).collect();
    with_hints(context, reasons, Vec::new(), MAX_PLUGINS)
}

/// The conflict with its hints. At most `most` reasons are shown. The others still count for the hints.
fn with_hints(
    context: &ExplainContext<'_, '_>,
    reasons: Vec<Reason>,
    waits: Vec<UpstreamAction>,
    most: usize,
) -> Conflict {
    let request = context.candidates.request;
    let mut conflict = Conflict {
        server: request.server.clone(),
        software: request.software,
        running: running(context.candidates),
        reasons,
        more: 0,
        hints: Vec::new(),
        more_hints: 0,
        hints_left_out: None,
        waits,
        unread: unread_parts(context, None),
        lists_read_later: lists_read_later(context),
    };
    let hints::HintList { hints, more, skipped } = hints::for_conflict(context, &conflict);
    (conflict.hints, conflict.more_hints, conflict.hints_left_out) = (hints, more, skipped);
    conflict.more = conflict.reasons.len().saturating_sub(most);
    conflict.reasons.truncate(most);
    conflict
}
