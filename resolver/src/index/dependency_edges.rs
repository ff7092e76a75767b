//! Pure. Builds the tables of the solver: which releases run on which Paper version, and what they require of each
//! other.

use std::cell::{LazyCell, OnceCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use pubgrub::VersionSet;

use super::candidates::{Candidate, Edge, EdgeKind, PluginCandidates, group_by_reason};
use super::dependency_closure::{Closure, ClosureMember};
use super::dependency_targets::{DependencyTarget, resolve_target, sorted_dependencies};
use super::eligibility::is_pinned;
use super::index_set::IndexSet;
use super::known_constraints::Bound;
use super::listed_versions::ListingReader;
use super::rules::Rules;
use super::version_bounds::{BoundContext, guessed_minimum};
use crate::model::api_version::ApiVersion;
use crate::model::catalog::{Catalog, DependencyKind, Release, Source};
use crate::model::request::Request;
use crate::model::version::lenient;
use crate::model::version::range::Range;

/// The releases of a project in the closure, as other projects refer to them.
pub(super) struct DependencyReleases<'x> {
    /// Oldest first.
    pub(super) releases: Vec<&'x Release>,
    /// Their indexes by id. Computed when a dependency names an id: a release may name hundreds.
    indexes: OnceCell<HashMap<&'x str, Vec<usize>>>,
    /// Their indexes, lowest version first. Computed when a dependency names a range: fifty releases may have one each.
    by_version: OnceCell<Vec<usize>>,
}

impl<'x> DependencyReleases<'x> {
    pub(super) fn new(releases: Vec<&'x Release>) -> Self {
        Self { releases, indexes: OnceCell::new(), by_version: OnceCell::new() }
    }

    /// The releases with this id.
    fn with_id(&self, id: &str) -> IndexSet {
        let indexes = self.indexes.get_or_init(|| {
            let mut indexes: HashMap<&str, Vec<usize>> = HashMap::new();
            for (at, release) in self.releases.iter().enumerate() {
                indexes.entry(&release.id).or_default().push(at + 1);
            }
            indexes
        });
        IndexSet::from_indexes(indexes.get(id).into_iter().flatten().copied())
    }

    /// The indexes of the releases within a range.
    fn indexes_within(&self, range: &Range) -> IndexSet {
        let version = |index: &usize| -> &str { &self.releases[index - 1].version };
        let sorted = self.by_version.get_or_init(|| {
            let mut sorted: Vec<usize> = (1..=self.releases.len()).collect();
            sorted.sort_by(|one, other| lenient::compare(version(one), version(other)));
            sorted
        });
        IndexSet::from_indexes(range.filter_sorted(sorted, version).copied())
    }
}

/// Converts the members into candidates, in the same order. `reusable` holds the candidates of the same instant and the
/// same Paper versions. Those that would be equal are reused.
pub(super) fn build_candidates<'a>(
    catalog: &'a Catalog,
    request: &Request,
    Closure { members, names }: &Closure<'a>,
    reader: &ListingReader,
    reusable: &[Rc<PluginCandidates<'a>>],
) -> Vec<Rc<PluginCandidates<'a>>> {
    // Edges refer to other plugins by position.
    let same = |(member, plugin): (&ClosureMember<'_>, &Rc<PluginCandidates<'_>>)| {
        std::ptr::eq(member.project, plugin.project)
    };
    let same_positions = reusable.len() == members.len() && members.iter().zip(reusable).all(same);
    let reusable = if same_positions { reusable } else { &[] };
    let position_of: HashMap<usize, usize> =
        members.iter().enumerate().map(|(at, member)| (member.position, at)).collect();
    let requested =
        members.iter().filter(|member| member.requested_by.is_some()).map(|member| member.position).collect();
    let releases =
        |member: &ClosureMember<'a>| member.eligibility.releases.iter().map(|candidate| candidate.release).collect();
    let dependents: Vec<_> =
        members.iter().map(|member| LazyCell::new(move || DependencyReleases::new(releases(member)))).collect();
    let find_dependency = |position: usize| position_of.get(&position).map(|&plugin| (plugin, &*dependents[plugin]));
    let plugins = members.iter().enumerate().map(|(at, member)| {
        let context = BoundContext::new(request, &requested, member.rules.requires);
        // Facts may resolve differently after another plugin changed. The eligibility already covers the names in its
        // JARs.
        let is_static = !context.depends_on_server(member.project);
        if let Some(plugin) = reusable.get(at).filter(|plugin| is_static && is_for(plugin, member)) {
            return Rc::clone(plugin);
        }
        let edges = member.eligibility.releases.iter().map(|candidate| {
            if candidate.unusable.is_some() {
                return Vec::new();
            }
            let name_targets =
                names.required_targets(catalog, member.position, (candidate.release, &member.rules.jars), &context);
            release_edges(catalog, member.position, (candidate.release, name_targets), &context, &find_dependency)
        });
        Rc::new(plugin_candidates(member, edges.collect(), reader))
    });
    plugins.collect()
}

/// Whether candidates are those of a member, apart from the edges of their releases.
fn is_for(plugin: &PluginCandidates<'_>, member: &ClosureMember<'_>) -> bool {
    Rc::ptr_eq(&plugin.releases, &member.eligibility.releases)
        && (&plugin.requested_by, &plugin.unmanaged_dependents, &plugin.rules)
            == (&member.requested_by, &member.unmanaged_dependents, &member.rules)
}

fn plugin_candidates<'a>(
    member: &ClosureMember<'a>,
    edges: Vec<Vec<Edge>>,
    reader: &ListingReader,
) -> PluginCandidates<'a> {
    let eligibility = &member.eligibility;
    let supports = supports(&eligibility.releases, (member.project.key.source, &member.rules), reader);
    let numbered = || eligibility.releases.iter().enumerate().map(|(at, candidate)| (at + 1, candidate));
    let usable = IndexSet::from_indexes(
        numbered().filter(|(_, candidate)| candidate.unusable.is_none()).map(|(index, _)| index),
    );
    let allowed = match member.rules.pin {
        None => IndexSet::present(),
        Some(pin) => IndexSet::from_indexes(
            numbered().filter(|(_, candidate)| is_pinned(&candidate.release.version, pin)).map(|(index, _)| index),
        ),
    };
    PluginCandidates {
        project: member.project,
        requested_by: member.requested_by.clone(),
        unmanaged_dependents: member.unmanaged_dependents.clone(),
        rules: member.rules.clone(),
        channel: eligibility.channel,
        classes: group_by_reason(eligibility.releases.iter().map(|candidate| candidate.unusable.as_ref())),
        releases: Rc::clone(&eligibility.releases),
        edges,
        supports,
        usable,
        allowed,
    }
}

/// Per Paper version, the releases known to run on it.
pub(super) fn supports(
    releases: &[Candidate<'_>],
    (source, rules): (Source, &Rules<'_>),
    reader: &ListingReader,
) -> Vec<IndexSet> {
    let words = releases.len() / 64 + 1;
    let mut bits = vec![vec![0_u64; words]; reader.papers().len()];
    // Neighbours mostly have the same list (886 ViaVersion releases have 17 different ones), so each list is read once.
    let mut last: Option<(&Release, Vec<&ApiVersion>, Vec<usize>)> = None;
    for (at, candidate) in releases.iter().enumerate() {
        let release = candidate.release;
        let states = rules.jars.api_versions(release);
        let same = rules.compatibility.is_none()
            && last
                .as_ref()
                .is_some_and(|(before, stated, _)| before.minecraft == release.minecraft && *stated == states);
        if !same {
            let evidence = reader.evidence(source, release, &states, rules.compatibility);
            let on = evidence
                .iter()
                .enumerate()
                .filter(|(_, evidence)| evidence.is_some())
                .map(|(paper, _)| paper)
                .collect();
            last = Some((release, states, on));
        }
        for &paper in last.iter().flat_map(|(_, _, on)| on) {
            let index = at + 1;
            bits[paper][index / 64] |= 1 << (index % 64);
        }
    }
    bits.iter().map(|words| IndexSet::from_words(words, false)).collect()
}

/// The edges of one usable release. `name_targets` holds the targets of the names in its JARs. `find_dependency` maps
/// the position of a project in the closure to its number and its releases, oldest first.
pub(super) fn release_edges<'r: 'x, 'x>(
    catalog: &Catalog,
    position: usize,
    (release, name_targets): (&Release, Vec<DependencyTarget>),
    context: &BoundContext<'_>,
    find_dependency: &dyn Fn(usize) -> Option<(usize, &'x DependencyReleases<'r>)>,
) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    // Plugins for which the page names the release: no date adds information.
    let mut exact: Vec<usize> = Vec::new();
    for dependency in sorted_dependencies(release) {
        let kind = match dependency.kind {
            DependencyKind::Required => EdgeKind::Required,
            // An optional dependency without a version is no constraint.
            DependencyKind::Optional if dependency.version_id.is_some() => EdgeKind::Optional,
            DependencyKind::Incompatible => EdgeKind::Incompatible,
            DependencyKind::Optional | DependencyKind::Embedded => continue,
        };
        // A project outside the closure cannot be installed, so there is nothing to require or exclude.
        let DependencyTarget::Project(found) = resolve_target(catalog, context, position, dependency) else { continue };
        let Some((to, dependents)) = find_dependency(found) else { continue };
        let meant = match &dependency.version_id {
            None => IndexSet::present(),
            Some(id) => dependents.with_id(id),
        };
        if kind != EdgeKind::Incompatible && dependency.version_id.is_some() {
            exact.push(to);
        }
        let set = match kind {
            EdgeKind::Required => meant,
            EdgeKind::Optional => meant.union(&IndexSet::absent()),
            EdgeKind::Incompatible => meant.complement().union(&IndexSet::absent()),
        };
        edges.push(Edge { to, set, kind, guessed: None, fact: None });
    }
    for target in name_targets {
        let DependencyTarget::Project(found) = target else { continue };
        let Some((to, _)) = find_dependency(found) else { continue };
        let set = IndexSet::present();
        edges.push(Edge { to, set, kind: EdgeKind::Required, guessed: None, fact: None });
    }
    for (target, bound) in context.bounds(catalog, position, release) {
        let DependencyTarget::Project(found) = target else { continue };
        let Some((to, dependents)) = find_dependency(found) else { continue };
        let (mut set, mut guessed) = bounded_releases(dependents, release, &bound);
        let named = exact.contains(&to) && bound == Bound::Guess;
        let separated = context.is_running(release)
            && dependents.releases.iter().enumerate().any(|(at, other)| context.is_running(other) && !set.has(at + 1));
        // A bound that comes neither from a page nor from a check in the JAR does not separate releases that run
        // together.
        let is_mild = matches!(bound, Bound::Guess | Bound::Same(..));
        let mut fact = match bound {
            Bound::Within(range, source) | Bound::Same(range, source) => Some(Arc::new((range, source))),
            Bound::Guess => None,
        };
        if named || separated && is_mild {
            (set, guessed, fact) = (IndexSet::present(), None, None);
        }
        edges.push(Edge { to, set, kind: EdgeKind::Required, guessed, fact });
    }
    merge_edges(edges)
}

/// The releases of a dependency that a bound allows, and the minimum if it was guessed.
fn bounded_releases(
    dependents: &DependencyReleases<'_>,
    release: &Release,
    bound: &Bound,
) -> (IndexSet, Option<usize>) {
    match bound {
        Bound::Within(range, _) | Bound::Same(range, _) => (dependents.indexes_within(range), None),
        Bound::Guess => match guessed_minimum(&dependents.releases, release) {
            Some(minimum) => (IndexSet::from_indexes(minimum..=dependents.releases.len()), Some(minimum)),
            None => (IndexSet::present(), None),
        },
    }
}

/// Merges the edges to each required plugin into one: the page may allow any version, and the overlay a minimum. A page
/// and a fact of which neither implies the other stay separate, because they have different origins.
fn merge_edges(edges: Vec<Edge>) -> Vec<Edge> {
    let mut merged: Vec<Edge> = Vec::new();
    for edge in edges {
        let existing = merged.iter_mut().find(|existing| existing.to == edge.to && existing.kind == edge.kind);
        match existing {
            Some(existing) if existing.set.subset_of(&edge.set) => {}
            Some(existing) if edge.set.subset_of(&existing.set) => *existing = edge,
            Some(existing) if existing.fact.is_none() && edge.fact.is_none() => {
                existing.set = existing.set.intersection(&edge.set);
                existing.guessed = existing.guessed.or(edge.guessed);
            }
            Some(_) | None => merged.push(edge),
        }
    }
    merged.sort_by_key(|edge| (edge.to, edge.kind));
    merged
}
