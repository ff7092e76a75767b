//! Pure. The tables of the solve: which releases run on which Paper, and what they ask of each other.

use std::collections::HashMap;

use pubgrub::VersionSet;

use super::closure::{Member, Names, Target, in_order, need_target, target};
use super::judge::is_pinned;
use super::listing::Reader;
use super::{Link, LinkKind, Shelf, Stocked, classes, ripe_at};
use crate::catalog::{Catalog, DependencyKind, Release};
use crate::overlay::{self, Bound};
use crate::solve::set::IndexSet;
use crate::version::lenient;

/// Turns the members into shelves, in the same order.
pub(super) fn shelve<'a>(
    catalog: &'a Catalog,
    members: Vec<Member<'a>>,
    reader: &Reader,
    papers: usize,
) -> Vec<Shelf<'a>> {
    let shelf_of: HashMap<usize, usize> = members.iter().enumerate().map(|(at, member)| (member.place, at)).collect();
    let requested = members.iter().filter(|member| member.asked.is_some()).map(|member| member.place).collect();
    let names = Names::of(catalog, shelf_of.keys().copied(), &requested);
    let links: Vec<Vec<Vec<Link>>> = members
        .iter()
        .map(|member| {
            member
                .releases
                .iter()
                .map(|judged| match judged.unusable {
                    Some(_) => Vec::new(),
                    None => links(
                        Linking { catalog, names: &names, members: &members, shelf_of: &shelf_of },
                        member,
                        judged.release,
                    ),
                })
                .collect()
        })
        .collect();
    members.into_iter().zip(links).map(|(member, links)| shelf(member, links, reader, papers)).collect()
}

fn shelf<'a>(member: Member<'a>, links: Vec<Vec<Link>>, reader: &Reader, papers: usize) -> Shelf<'a> {
    let supports = supports(&member, reader, papers);
    let usable = IndexSet::of(
        member.releases.iter().enumerate().filter(|(_, judged)| judged.unusable.is_none()).map(|(at, _)| at + 1),
    );
    let allowed = match member.rules.pin {
        None => IndexSet::present(),
        Some(pin) => IndexSet::of(
            member
                .releases
                .iter()
                .enumerate()
                .filter(|(_, judged)| is_pinned(&judged.release.version, pin))
                .map(|(at, _)| at + 1),
        ),
    };
    let releases: Vec<Stocked<'a>> = member
        .releases
        .into_iter()
        .zip(links)
        .map(|(judged, links)| Stocked {
            release: judged.release,
            unusable: judged.unusable,
            links,
            outside: judged.outside,
        })
        .collect();
    Shelf {
        project: member.project,
        asked: member.asked,
        rules: member.rules,
        channel: member.channel,
        classes: classes(releases.iter().map(|stocked| stocked.unusable.as_ref())),
        releases,
        supports,
        usable,
        allowed,
    }
}

/// Per Paper, the releases known to run on it.
fn supports(member: &Member<'_>, reader: &Reader, papers: usize) -> Vec<IndexSet> {
    let words = member.releases.len() / 64 + 1;
    let mut bits = vec![vec![0_u64; words]; papers];
    // Neighbours mostly have the same list (886 ViaVersion releases have 17 different ones): read it once.
    let mut last: Option<(&Release, Vec<usize>)> = None;
    for (at, judged) in member.releases.iter().enumerate() {
        let release = judged.release;
        let says = member.rules.compatibility;
        let same = says.is_none()
            && last.as_ref().is_some_and(|(before, _)| {
                before.minecraft == release.minecraft && before.api_version == release.api_version
            });
        if !same {
            let known = reader.read(release, says);
            let on = known.iter().enumerate().filter(|(_, known)| known.is_some()).map(|(paper, _)| paper).collect();
            last = Some((release, on));
        }
        for &paper in last.iter().flat_map(|(_, on)| on) {
            let index = at + 1;
            bits[paper][index / 64] |= 1 << (index % 64);
        }
    }
    bits.iter().map(|words| IndexSet::from_words(words, false)).collect()
}

#[derive(Clone, Copy)]
struct Linking<'x, 'a> {
    catalog: &'x Catalog,
    names: &'x Names,
    members: &'x [Member<'a>],
    /// Places in the catalog to places among the members.
    shelf_of: &'x HashMap<usize, usize>,
}

/// What one usable release asks of the other shelves.
fn links(at: Linking<'_, '_>, member: &Member<'_>, release: &Release) -> Vec<Link> {
    let Linking { catalog, names, members, shelf_of } = at;
    let mut links: Vec<Link> = Vec::new();
    for dependency in in_order(release) {
        let kind = match dependency.kind {
            DependencyKind::Required => LinkKind::Required,
            // An optional dependency without a version asks for nothing.
            DependencyKind::Optional if dependency.version_id.is_some() => LinkKind::Optional,
            DependencyKind::Incompatible => LinkKind::Incompatible,
            DependencyKind::Optional | DependencyKind::Embedded => continue,
        };
        // A project that does not take part cannot be there: nothing to bind, nothing to exclude.
        let Target::Project(place) = target(catalog, names, member.place, dependency) else { continue };
        let Some(&to) = shelf_of.get(&place) else { continue };
        let meant = match &dependency.version_id {
            None => IndexSet::present(),
            Some(id) => IndexSet::of(
                members[to].releases.iter().enumerate().filter(|(_, r)| r.release.id == *id).map(|(at, _)| at + 1),
            ),
        };
        let set = match kind {
            LinkKind::Required => meant,
            LinkKind::Optional => meant.union(&IndexSet::absent()),
            LinkKind::Incompatible => meant.complement().union(&IndexSet::absent()),
        };
        links.push(Link { to, set, kind, guessed: None });
    }
    if let Some(need) = overlay::need(member.project, release)
        && let Target::Project(place) = need_target(catalog, member.project, &need)
        && let Some(&to) = shelf_of.get(&place)
    {
        let (set, guessed) = bounded(&members[to], release, &need.bound);
        links.push(Link { to, set, kind: LinkKind::Required, guessed });
    }
    merged(links)
}

/// The releases of a dependency that a bound allows, and the minimum if it was guessed.
fn bounded(dependency: &Member<'_>, release: &Release, bound: &Bound) -> (IndexSet, Option<usize>) {
    let releases = dependency.releases.iter().enumerate();
    match bound {
        Bound::AtLeast(minimum) => {
            let new_enough = releases.filter(|(_, judged)| lenient::at_least(&judged.release.version, minimum));
            (IndexSet::of(new_enough.map(|(at, _)| at + 1)), None)
        }
        Bound::Guess => {
            let until = release.published.map(|published| ripe_at(published, overlay::SAME_RELEASE_NIGHT));
            let minimum = releases
                .filter(|(_, judged)| judged.release.channel == release.channel && judged.release.published <= until)
                .map(|(at, _)| at + 1)
                .max();
            match minimum {
                Some(minimum) => (IndexSet::of(minimum..=dependency.releases.len()), Some(minimum)),
                None => (IndexSet::present(), None),
            }
        }
    }
}

/// One link for each other shelf that is required: the page may say "any", the overlay "at least".
fn merged(links: Vec<Link>) -> Vec<Link> {
    let mut merged: Vec<Link> = Vec::new();
    for link in links {
        match merged.iter_mut().find(|known| known.to == link.to && known.kind == link.kind) {
            Some(known) => {
                known.set = known.set.intersection(&link.set);
                known.guessed = known.guessed.or(link.guessed);
            }
            None => merged.push(link),
        }
    }
    merged.sort_by_key(|link| (link.to, link.kind));
    merged
}
