//! Pure. Builds the tables of the solver: which releases run on which Paper version, and what they require of each
//! other.

use std::cell::{LazyCell, OnceCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use pubgrub::VersionSet;

use super::dependency_closure::{Closure, ClosureMember, DependencyTarget, in_order, target};
use super::eligibility::is_pinned;
use super::listed_versions::ListingReader;
use super::version_bounds::BoundContext;
use super::{Candidate, Edge, EdgeKind, PluginCandidates, Rules, classes, ripe_at};
use crate::catalog::{Catalog, DependencyKind, Release, Source};
use crate::known_constraints::{self, Bound};
use crate::request::Request;
use crate::solve::index_set::IndexSet;
use crate::version::range::Range;
use crate::version::{Minecraft, lenient};

/// The releases of a project in the closure, as other projects refer to them.
pub(super) struct Dependents<'x> {
    /// Oldest first.
    pub(super) releases: Vec<&'x Release>,
    /// Their indexes by id. Computed when a dependency names an id: a release may name hundreds.
    indexes: OnceCell<HashMap<&'x str, Vec<usize>>>,
    /// Their indexes, lowest version first. Computed when a dependency names a range: fifty releases may have one each.
    by_version: OnceCell<Vec<usize>>,
}

impl<'x> Dependents<'x> {
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
        IndexSet::of(indexes.get(id).into_iter().flatten().copied())
    }

    /// The indexes of the releases within a range.
    fn within(&self, range: &Range) -> IndexSet {
        let version = |index: &usize| -> &str { &self.releases[index - 1].version };
        let sorted = self.by_version.get_or_init(|| {
            let mut sorted: Vec<usize> = (1..=self.releases.len()).collect();
            sorted.sort_by(|one, other| lenient::compare(version(one), version(other)));
            sorted
        });
        IndexSet::of(range.among(sorted, version).copied())
    }
}

/// Converts the members into candidates, in the same order. `known` holds the candidates of the same instant and the
/// same Paper versions. Those that would be equal are reused.
pub(super) fn shelve<'a>(
    catalog: &'a Catalog,
    request: &Request,
    Closure { members, names }: &Closure<'a>,
    reader: &ListingReader,
    known: &[Rc<PluginCandidates<'a>>],
) -> Vec<Rc<PluginCandidates<'a>>> {
    // Edges refer to other plugins by position.
    let same =
        |(member, shelf): (&ClosureMember<'_>, &Rc<PluginCandidates<'_>>)| std::ptr::eq(member.project, shelf.project);
    let in_place = known.len() == members.len() && members.iter().zip(known).all(same);
    let known = if in_place { known } else { &[] };
    let shelf_of: HashMap<usize, usize> = members.iter().enumerate().map(|(at, member)| (member.place, at)).collect();
    let requested = members.iter().filter(|member| member.asked.is_some()).map(|member| member.place).collect();
    let releases = |member: &ClosureMember<'a>| member.judged.releases.iter().map(|judged| judged.release).collect();
    let peers: Vec<_> = members.iter().map(|member| LazyCell::new(move || Dependents::new(releases(member)))).collect();
    let there = |place: usize| shelf_of.get(&place).map(|&shelf| (shelf, &*peers[shelf]));
    let shelves = members.iter().enumerate().map(|(at, member)| {
        let facing = BoundContext::of(request, &requested, member.rules.requires);
        // Facts may resolve differently after another plugin changed. The eligibility already covers the names in its
        // JARs.
        let apart = !facing.mentions(member.project);
        if let Some(shelf) = known.get(at).filter(|shelf| apart && is_of(shelf, member)) {
            return Rc::clone(shelf);
        }
        let links = member.judged.releases.iter().map(|judged| {
            if judged.unusable.is_some() {
                return Vec::new();
            }
            let asked = names.asked_by(catalog, member.place, (judged.release, &member.rules.jars), &facing);
            links(catalog, member.place, (judged.release, asked), &facing, &there)
        });
        Rc::new(shelf(member, links.collect(), reader))
    });
    shelves.collect()
}

/// Whether candidates are those of a member, apart from the edges of their releases.
fn is_of(shelf: &PluginCandidates<'_>, member: &ClosureMember<'_>) -> bool {
    Rc::ptr_eq(&shelf.releases, &member.judged.releases)
        && (&shelf.asked, &shelf.kept_for, &shelf.rules) == (&member.asked, &member.kept_for, &member.rules)
}

fn shelf<'a>(member: &ClosureMember<'a>, links: Vec<Vec<Edge>>, reader: &ListingReader) -> PluginCandidates<'a> {
    let judged = &member.judged;
    let supports = supports(&judged.releases, (member.project.key.source, &member.rules), reader);
    let numbered = || judged.releases.iter().enumerate().map(|(at, judged)| (at + 1, judged));
    let usable = IndexSet::of(numbered().filter(|(_, judged)| judged.unusable.is_none()).map(|(index, _)| index));
    let allowed = match member.rules.pin {
        None => IndexSet::present(),
        Some(pin) => IndexSet::of(
            numbered().filter(|(_, judged)| is_pinned(&judged.release.version, pin)).map(|(index, _)| index),
        ),
    };
    PluginCandidates {
        project: member.project,
        asked: member.asked.clone(),
        kept_for: member.kept_for.clone(),
        rules: member.rules.clone(),
        channel: judged.channel,
        classes: classes(judged.releases.iter().map(|stocked| stocked.unusable.as_ref())),
        releases: Rc::clone(&judged.releases),
        links,
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
    let mut last: Option<(&Release, Option<&Minecraft>, Vec<usize>)> = None;
    for (at, judged) in releases.iter().enumerate() {
        let release = judged.release;
        let needs = rules.jars.api_version(release);
        let same = rules.compatibility.is_none()
            && last
                .as_ref()
                .is_some_and(|(before, needed, _)| before.minecraft == release.minecraft && *needed == needs);
        if !same {
            let known = reader.read(source, release, needs, rules.compatibility);
            let on = known.iter().enumerate().filter(|(_, known)| known.is_some()).map(|(paper, _)| paper).collect();
            last = Some((release, needs, on));
        }
        for &paper in last.iter().flat_map(|(_, _, on)| on) {
            let index = at + 1;
            bits[paper][index / 64] |= 1 << (index % 64);
        }
    }
    bits.iter().map(|words| IndexSet::from_words(words, false)).collect()
}

/// The edges of one usable release. `asked` holds the targets of the names in its JARs. `there` maps the position of a
/// project in the closure to its number and its releases, oldest first.
pub(super) fn links<'r: 'x, 'x>(
    catalog: &Catalog,
    place: usize,
    (release, asked): (&Release, Vec<DependencyTarget>),
    facing: &BoundContext<'_>,
    there: &dyn Fn(usize) -> Option<(usize, &'x Dependents<'r>)>,
) -> Vec<Edge> {
    let mut links: Vec<Edge> = Vec::new();
    // Plugins for which the page names the release: no date adds information.
    let mut exact: Vec<usize> = Vec::new();
    for dependency in in_order(release) {
        let kind = match dependency.kind {
            DependencyKind::Required => EdgeKind::Required,
            // An optional dependency without a version is no constraint.
            DependencyKind::Optional if dependency.version_id.is_some() => EdgeKind::Optional,
            DependencyKind::Incompatible => EdgeKind::Incompatible,
            DependencyKind::Optional | DependencyKind::Embedded => continue,
        };
        // A project outside the closure cannot be installed, so there is nothing to require or exclude.
        let DependencyTarget::Project(found) = target(catalog, facing, place, dependency) else { continue };
        let Some((to, peers)) = there(found) else { continue };
        let meant = match &dependency.version_id {
            None => IndexSet::present(),
            Some(id) => peers.with_id(id),
        };
        if kind != EdgeKind::Incompatible && dependency.version_id.is_some() {
            exact.push(to);
        }
        let set = match kind {
            EdgeKind::Required => meant,
            EdgeKind::Optional => meant.union(&IndexSet::absent()),
            EdgeKind::Incompatible => meant.complement().union(&IndexSet::absent()),
        };
        links.push(Edge { to, set, kind, guessed: None, fact: None });
    }
    for target in asked {
        let DependencyTarget::Project(found) = target else { continue };
        let Some((to, _)) = there(found) else { continue };
        let set = IndexSet::present();
        links.push(Edge { to, set, kind: EdgeKind::Required, guessed: None, fact: None });
    }
    for (target, bound) in facing.bounds(catalog, place, release) {
        let DependencyTarget::Project(found) = target else { continue };
        let Some((to, peers)) = there(found) else { continue };
        let (mut set, mut guessed) = bounded(peers, release, &bound);
        let named = exact.contains(&to) && bound == Bound::Guess;
        let apart = facing.runs(release)
            && peers.releases.iter().enumerate().any(|(at, other)| facing.runs(other) && !set.has(at + 1));
        // A bound that comes neither from a page nor from a check in the JAR does not separate releases that run
        // together.
        let is_mild = matches!(bound, Bound::Guess | Bound::Same(..));
        let mut fact = match bound {
            Bound::Within(range, says) | Bound::Same(range, says) => Some(Arc::new((range, says))),
            Bound::Guess => None,
        };
        if named || apart && is_mild {
            (set, guessed, fact) = (IndexSet::present(), None, None);
        }
        links.push(Edge { to, set, kind: EdgeKind::Required, guessed, fact });
    }
    merged(links)
}

/// The releases of a dependency that a bound allows, and the minimum if it was guessed.
fn bounded(peers: &Dependents<'_>, release: &Release, bound: &Bound) -> (IndexSet, Option<usize>) {
    match bound {
        Bound::Within(range, _) | Bound::Same(range, _) => (peers.within(range), None),
        Bound::Guess => match guessed_minimum(&peers.releases, release) {
            Some(minimum) => (IndexSet::of(minimum..=peers.releases.len()), Some(minimum)),
            None => (IndexSet::present(), None),
        },
    }
}

/// The index of the oldest release (of releases sorted oldest first) that a release is assumed to need: the newest of
/// its channel on its day.
pub(super) fn guessed_minimum(others: &[&Release], release: &Release) -> Option<usize> {
    let until = release.published.map(|published| ripe_at(published, known_constraints::SAME_RELEASE_NIGHT));
    // The day of a release without a date is unknown.
    let on_its_day =
        |other: &&Release| other.channel == release.channel && other.published.is_some() && other.published <= until;
    others.iter().rposition(on_its_day).map(|at| at + 1)
}

/// Merges the edges to each required plugin into one: the page may allow any version, and the overlay a minimum. A page
/// and a fact of which neither implies the other stay separate, because they have different origins.
fn merged(links: Vec<Edge>) -> Vec<Edge> {
    let mut merged: Vec<Edge> = Vec::new();
    for link in links {
        let known = merged.iter_mut().find(|known| known.to == link.to && known.kind == link.kind);
        match known {
            Some(known) if known.set.subset_of(&link.set) => {}
            Some(known) if link.set.subset_of(&known.set) => *known = link,
            Some(known) if known.fact.is_none() && link.fact.is_none() => {
                known.set = known.set.intersection(&link.set);
                known.guessed = known.guessed.or(link.guessed);
            }
            Some(_) | None => merged.push(link),
        }
    }
    merged.sort_by_key(|link| (link.to, link.kind));
    merged
}
