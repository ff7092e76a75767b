//! Pure. Explains the effect of shared plugins (one version on several servers) on one server.

use pubgrub::VersionSet;

use super::blockers::smallest;
use super::solved::lists_read_later;
use super::unsolvable::running;
use super::{Blocker, Conflict, ExplainContext, OneVersion, PaperPin, Reason, ServerChoice, SharedPlugin, Span, hints};
use crate::index::PluginCandidates;
use crate::index::fleet_tables::ListingTable;
use crate::solve::BudgetExceeded;
use crate::solve::group::MemberDecision;
use crate::solve::group::group_context::{GroupConflict, GroupContext, MOST_PROVEN, PairConflict, SoloDomain};
use crate::solve::index_set::IndexSet;
use crate::unusable::Unusable;

/// Limit of listed servers. Further ones are counted.
const MOST_SERVERS: usize = 4;
/// Limit of listed plugins, because each takes several lines.
const MOST_PLUGINS: usize = 3;

/// The explanation for an excluded server: it has a solution alone, but not with the members of its group that were
/// accepted before it.
pub(crate) fn aside(asked: &ExplainContext<'_, '_>, company: &GroupContext<'_, '_>) -> Conflict {
    let mine = company.seat(company.me).open.clone();
    let reasons = stands_against(asked, company, &mine, false);
    let mut impossible = Conflict {
        server: asked.world.request.server.clone(),
        software: asked.world.request.software,
        running: running(asked.world),
        reasons: reasons.into_iter().map(|one_version| Reason::OneVersion { one_version }).collect(),
        more: 0,
        hints: Vec::new(),
        more_hints: 0,
        hints_left_out: None,
        waits: Vec::new(),
        lists_read_later: lists_read_later(asked),
    };
    let hints::Ways { hints, more, left_out } = hints::for_impossible(asked, &impossible);
    (impossible.hints, impossible.more_hints, impossible.hints_left_out) = (hints, more, left_out);
    // Reasons that are not shown still count for the hints.
    impossible.more = impossible.reasons.len().saturating_sub(MOST_PLUGINS);
    impossible.reasons.truncate(MOST_PLUGINS);
    impossible
}

/// The shared plugins that keep a server from a Paper version (given by position) that it could have alone.
pub(super) fn held(asked: &ExplainContext<'_, '_>, company: &GroupContext<'_, '_>, paper: usize) -> Vec<OneVersion> {
    stands_against(asked, company, &IndexSet::of([paper + 1]), true)
}

/// Reasons against a Paper version other than the group.
pub(super) struct Besides<'x> {
    /// The reason why it may not be used.
    pub(super) unusable: Option<&'x Unusable>,
    /// The server's own pin.
    pub(super) pin: Option<&'x PaperPin>,
    /// The plugins that block it.
    pub(super) holders: &'x [Blocker],
}

impl Besides<'_> {
    /// Whether there are none.
    pub(super) fn is_nothing(&self) -> bool {
        let Self { unusable, pin, holders } = self;
        unusable.is_none() && pin.is_none() && holders.is_empty()
    }
}

/// The shared plugins that keep a server from a Paper version (given by position), as if there were no other reason.
///
/// With `or_newer`, the result is empty if the server would get a newer version then. In a group that is too large to
/// try, only servers without a common release of a plugin are named, on any Paper version. Two servers alone show that
/// conflict.
pub(super) fn behind(
    asked: &ExplainContext<'_, '_>,
    place: usize,
    besides: &Besides<'_>,
    or_newer: bool,
) -> Result<Vec<OneVersion>, BudgetExceeded> {
    let Some(company) = asked.company else { return Ok(Vec::new()) };
    if let MemberDecision::GaveUp(gave_up) = company.verdict() {
        return Err(gave_up.clone());
    }
    let world = asked.world;
    let minecraft = &world.papers[place].version.minecraft;
    let tell = |company: Option<&GroupContext<'_, '_>>| {
        let Some(company) = company else { return Ok(Vec::new()) };
        let Some(paper) = company.papers(company.me).iter().position(|paper| paper == minecraft) else {
            return Ok(Vec::new());
        };
        let goes = |others: &[usize]| company.goes_with(others, &IndexSet::of([paper + 1]), true, asked.meter);
        let is_free = or_newer && company.has_reached(paper + 1) || !goes(&[])? || goes(&company.others())?;
        Ok(if is_free { Vec::new() } else { held(asked, company, paper) })
    };
    let Besides { unusable, pin, holders } = besides;
    if besides.is_nothing() {
        return tell(Some(company));
    }
    let Some((mut request, now)) = hints::out_of_the_way(asked, *unusable, *pin, minecraft) else {
        return Ok(Vec::new());
    };
    let stops = |shelf: &PluginCandidates<'_>| holders.iter().any(|holder| holder.stops(shelf.name()));
    if company.seats.len() > MOST_PROVEN {
        let Some(paper) = company.papers(company.me).iter().position(|paper| paper == minecraft) else {
            return Ok(Vec::new());
        };
        let gone: Vec<usize> = (0..world.shelves.len()).filter(|&shelf| stops(&world.shelves[shelf])).collect();
        let is_free = or_newer && company.has_reached(paper + 1);
        let clashes =
            if is_free { Vec::new() } else { company.clashes(&gone, &IndexSet::of([paper + 1]), false, MOST_SERVERS) };
        return Ok(clashes.iter().map(|clash| of_clash(company, clash)).collect());
    }
    for shelf in world.shelves.iter().filter(|shelf| stops(shelf)) {
        let objects = shelf.asked.as_ref().map_or(&[][..], |asked| &asked.objects);
        request.plugins.retain(|wish| !objects.contains(&wish.object.as_str()));
        request.unmanaged.retain(|jar| !shelf.kept_for.contains(&jar.file));
    }
    company.imagine(&request, &[], now, asked.meter, tell).unwrap_or_else(|| Ok(Vec::new()))
}

fn stands_against(
    asked: &ExplainContext<'_, '_>,
    company: &GroupContext<'_, '_>,
    papers: &IndexSet,
    settled: bool,
) -> Vec<OneVersion> {
    let clashes = company.clashes(&[], papers, settled, MOST_SERVERS);
    if !clashes.is_empty() {
        return clashes.iter().map(|clash| of_clash(company, clash)).collect();
    }
    // No pair shows the conflict: it needs several plugins or more servers.
    let with = company.smallest_clash(papers, settled, |all, fails| smallest(all, fails), asked.meter);
    let sharers = if with.is_empty() { company.others() } else { with.clone() };
    let shelves: Vec<usize> = (0..company.seat(company.me).shelves.len())
        .filter(|&shelf| sharers.iter().any(|&other| company.shared(shelf, other).is_some()))
        .collect();
    let nothing_said = |seat: usize, papers: IndexSet| SoloDomain { seat, papers, releases: IndexSet::empty() };
    let mut could = vec![nothing_said(company.me, papers.clone())];
    could.extend(with.iter().map(|&other| nothing_said(other, IndexSet::empty())));
    vec![one_version(company, &shelves, &could)]
}

/// Why a newer release (given by its position in the index) of a shared plugin was not chosen. `None` if sharing is not
/// the reason. `nobody_here` means that this server itself has no reason against it.
pub(super) fn not_taken(
    asked: &ExplainContext<'_, '_>,
    at: usize,
    place: usize,
    nobody_here: bool,
) -> Option<OneVersion> {
    let company = asked.company?;
    let index = company.index_of(at, asked.world.shelves[at].releases[place].release)?;
    let could = company.cannot_take(at, index);
    if !could.is_empty() {
        return Some(one_version(company, &[at], &could));
    }
    (nobody_here && is_shared(company, at)).then(|| by_company(company, at, index))
}

/// Whether another server shares the plugin with this one as one version.
pub(super) fn is_shared(company: &GroupContext<'_, '_>, at: usize) -> bool {
    company.others().iter().any(|&other| company.shared(at, other).is_some())
}

/// The servers of the group whose chosen releases are incompatible with a release (given by its index) of a shared
/// plugin.
fn by_company(company: &GroupContext<'_, '_>, at: usize, index: usize) -> OneVersion {
    let apart = company.apart(at, index);
    let more = apart.len().saturating_sub(MOST_SERVERS);
    let takes = apart.into_iter().take(MOST_SERVERS).map(|PairConflict { seat, paper, with, needs, facts }| {
        let paper = &company.papers(seat)[paper - 1];
        ServerChoice {
            papers: Some(Span { from: paper.clone(), to: paper.clone() }),
            with,
            needs,
            facts,
            ..ServerChoice::nothing_said(&company.seat(seat).request.server)
        }
    });
    let servers = takes.collect();
    OneVersion { servers, more, ..one_version(company, &[at], &[]) }
}

fn of_clash(company: &GroupContext<'_, '_>, GroupConflict { shelf, could, more }: &GroupConflict) -> OneVersion {
    OneVersion { more: *more, ..one_version(company, &[*shelf], could) }
}

fn one_version(company: &GroupContext<'_, '_>, shelves: &[usize], could: &[SoloDomain]) -> OneVersion {
    let seat = company.seat(company.me);
    let plugins = shelves.iter().map(|&shelf| {
        let place = &seat.shelves[shelf];
        SharedPlugin {
            object: place.latest.first().map(|&object| object.to_owned()).unwrap_or_default(),
            plugin: company.catalog.projects[place.project].name.clone(),
        }
    });
    let listing = shelves.first().map(|&shelf| &company.tables.projects[&seat.shelves[shelf].project]);
    let takes = could.iter().take(MOST_SERVERS).map(|could| {
        let papers = company.papers(could.seat);
        let ends = |set: &IndexSet, limit: usize| Some((set.members(1, limit).next()?, set.highest(limit)?));
        let version = |index: usize| listing.map(|listing| listing.releases[index - 1].version.clone());
        let releases = listing.and_then(|listing| ends(&could.releases, listing.releases.len()));
        ServerChoice {
            papers: ends(&could.papers, papers.len())
                .map(|(from, to)| Span { from: papers[from - 1].clone(), to: papers[to - 1].clone() }),
            oldest: releases.and_then(|(oldest, _)| version(oldest)),
            newest: releases.and_then(|(_, newest)| version(newest)),
            without: listing
                .zip(releases)
                .map_or_else(Vec::new, |(listing, ends)| gaps(listing, &could.releases, ends)),
            ..ServerChoice::nothing_said(&company.seat(could.seat).request.server)
        }
    });
    OneVersion { plugins: plugins.collect(), servers: takes.collect(), more: could.len().saturating_sub(MOST_SERVERS) }
}

/// The versions between the ends of a set that are not in it, newest first. Versions that are less stable than both
/// ends are left out.
fn gaps(listing: &ListingTable<'_>, set: &IndexSet, (oldest, newest): (usize, usize)) -> Vec<String> {
    let release = |index: usize| &listing.releases[index - 1];
    let least = release(oldest).channel.min(release(newest).channel);
    let between = (oldest..newest).rev().filter(|&index| !set.has(index)).map(release);
    between.filter(|release| release.channel >= least).map(|release| release.version.clone()).collect()
}
