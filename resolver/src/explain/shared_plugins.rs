//! Pure. Explains the effect of shared plugins (one version on several servers) on one server.

use pubgrub::VersionSet;

use super::ExplainContext;
use super::blockers::minimize;
use super::group_context::{GroupConflict, GroupContext, MAX_ANALYSED_SERVERS, PairConflict, SoloDomain};
use super::hints::apply;
use crate::explanation::{Blocker, PaperPin, ServerChoice, SharedPlugin, SharedVersion, Span};
use crate::index::candidates::PluginCandidates;
use crate::index::fleet_tables::ListingTable;
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use crate::model::unusable::Unusable;
use crate::solve::group::MemberDecision;

/// Limit of listed servers. Further ones are counted.
const MAX_SERVERS: usize = 4;
/// Limit of listed plugins, because each takes several lines.
pub(crate) const MAX_PLUGINS: usize = 3;

/// The shared plugins that keep a server from a Paper version (given by position) that it could have alone.
pub(super) fn blocking_plugins(
    context: &ExplainContext<'_, '_>,
    group: &GroupContext<'_, '_>,
    paper: usize,
) -> Vec<SharedVersion> {
    conflicting_plugins(context, group, &IndexSet::from_indexes([paper + 1]), true)
}

/// Reasons against a Paper version other than the group.
pub(super) struct OtherReasons<'x> {
    /// The reason why it may not be used.
    pub(super) unusable: Option<&'x Unusable>,
    /// The server's own pin.
    pub(super) pin: Option<&'x PaperPin>,
    /// The plugins that block it.
    pub(super) blockers: &'x [Blocker],
}

impl OtherReasons<'_> {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        let Self { unusable, pin, blockers } = self;
        unusable.is_none() && pin.is_none() && blockers.is_empty()
    }
}

/// The shared plugins that keep a server from a Paper version (given by position), as if there were no other reason.
///
/// With `or_newer`, the result is empty if the server would get a newer version then. In a group that is too large to
/// try, only servers without a common release of a plugin are named, on any Paper version. Two servers alone show that
/// conflict.
pub(super) fn blocking_if_usable(
    context: &ExplainContext<'_, '_>,
    position: usize,
    other_reasons: &OtherReasons<'_>,
    or_newer: bool,
) -> Result<Vec<SharedVersion>, BudgetExceeded> {
    let Some(group) = context.group else { return Ok(Vec::new()) };
    if let MemberDecision::GaveUp(gave_up) = group.decision() {
        return Err(gave_up.clone());
    }
    let candidates = context.candidates;
    let minecraft = &candidates.papers[position].version.minecraft;
    let evaluate = |group: Option<&GroupContext<'_, '_>>| {
        let Some(group) = group else { return Ok(Vec::new()) };
        let Some(paper) = group.papers(group.server).iter().position(|paper| paper == minecraft) else {
            return Ok(Vec::new());
        };
        let is_compatible = |others: &[usize]| {
            group.is_compatible_with(others, &IndexSet::from_indexes([paper + 1]), true, context.meter)
        };
        let is_free =
            or_newer && group.has_reached(paper + 1) || !is_compatible(&[])? || is_compatible(&group.others())?;
        Ok(if is_free { Vec::new() } else { blocking_plugins(context, group, paper) })
    };
    let OtherReasons { unusable, pin, blockers } = other_reasons;
    if other_reasons.is_empty() {
        return evaluate(Some(group));
    }
    let Some((mut request, now)) = apply::assuming_usable(context, *unusable, *pin, minecraft) else {
        return Ok(Vec::new());
    };
    let is_blocked = |plugin: &PluginCandidates<'_>| blockers.iter().any(|blocker| blocker.blocks(plugin.name()));
    if group.views.len() > MAX_ANALYSED_SERVERS {
        let Some(paper) = group.papers(group.server).iter().position(|paper| paper == minecraft) else {
            return Ok(Vec::new());
        };
        let ignored: Vec<usize> =
            (0..candidates.plugins.len()).filter(|&plugin| is_blocked(&candidates.plugins[plugin])).collect();
        let is_free = or_newer && group.has_reached(paper + 1);
        let conflicts = if is_free {
            Vec::new()
        } else {
            group.group_conflicts(&ignored, &IndexSet::from_indexes([paper + 1]), false, MAX_SERVERS)
        };
        return Ok(conflicts.iter().map(|conflict| from_conflict(group, conflict)).collect());
    }
    for plugin in candidates.plugins.iter().filter(|plugin| is_blocked(plugin)) {
        let objects = plugin.requested_by.as_ref().map_or(&[][..], |requested_by| &requested_by.objects);
        request.plugins.retain(|plugin_request| !objects.contains(&plugin_request.object.as_str()));
        request.unmanaged.retain(|jar| !plugin.unmanaged_dependents.contains(&jar.file));
    }
    group.with_changed_requests(&request, &[], now, context.meter, evaluate).unwrap_or_else(|| Ok(Vec::new()))
}

pub(crate) fn conflicting_plugins(
    context: &ExplainContext<'_, '_>,
    group: &GroupContext<'_, '_>,
    papers: &IndexSet,
    on_chosen_papers: bool,
) -> Vec<SharedVersion> {
    let conflicts = group.group_conflicts(&[], papers, on_chosen_papers, MAX_SERVERS);
    if !conflicts.is_empty() {
        return conflicts.iter().map(|conflict| from_conflict(group, conflict)).collect();
    }
    // No pair shows the conflict: it needs several plugins or more servers.
    let with = group.minimal_conflict(papers, on_chosen_papers, |all, fails| minimize(all, fails), context.meter);
    let sharers = if with.is_empty() { group.others() } else { with.clone() };
    let plugins: Vec<usize> = (0..group.view(group.server).plugins.len())
        .filter(|&plugin| sharers.iter().any(|&other| group.shared_with(plugin, other).is_some()))
        .collect();
    let no_options = |server: usize, papers: IndexSet| SoloDomain { server, papers, releases: IndexSet::empty() };
    let mut domains = vec![no_options(group.server, papers.clone())];
    domains.extend(with.iter().map(|&other| no_options(other, IndexSet::empty())));
    vec![shared_version(group, &plugins, &domains)]
}

/// Why a newer release (given by its position in the index) of a shared plugin was not chosen. `None` if sharing is not
/// the reason. `is_unsupported` means that this server itself has no reason against it.
pub(super) fn not_chosen_reason(
    context: &ExplainContext<'_, '_>,
    at: usize,
    position: usize,
    is_unsupported: bool,
) -> Option<SharedVersion> {
    let group = context.group?;
    let index = group.index_of(at, context.candidates.plugins[at].releases[position].release)?;
    let domains = group.servers_without_release(at, index);
    if !domains.is_empty() {
        return Some(shared_version(group, &[at], &domains));
    }
    (is_unsupported && is_shared(group, at)).then(|| incompatible_servers(group, at, index))
}

/// Whether another server shares the plugin with this one as one version.
pub(super) fn is_shared(group: &GroupContext<'_, '_>, at: usize) -> bool {
    group.others().iter().any(|&other| group.shared_with(at, other).is_some())
}

/// The servers of the group whose chosen releases are incompatible with a release (given by its index) of a shared
/// plugin.
fn incompatible_servers(group: &GroupContext<'_, '_>, at: usize, index: usize) -> SharedVersion {
    let conflicts = group.pair_conflicts(at, index);
    let more = conflicts.len().saturating_sub(MAX_SERVERS);
    let choices = conflicts.into_iter().take(MAX_SERVERS).map(|PairConflict { server, paper, with, needs, facts }| {
        let paper = &group.papers(server)[paper - 1];
        ServerChoice {
            papers: Some(Span { from: paper.clone(), to: paper.clone() }),
            with,
            needs,
            facts,
            ..ServerChoice::empty(&group.view(server).request.server)
        }
    });
    let servers = choices.collect();
    SharedVersion { servers, more, ..shared_version(group, &[at], &[]) }
}

fn from_conflict(
    group: &GroupContext<'_, '_>,
    GroupConflict { plugin, domains, more }: &GroupConflict,
) -> SharedVersion {
    SharedVersion { more: *more, ..shared_version(group, &[*plugin], domains) }
}

pub(crate) fn shared_version(
    group: &GroupContext<'_, '_>,
    positions: &[usize],
    domains: &[SoloDomain],
) -> SharedVersion {
    let view = group.view(group.server);
    let plugins = positions.iter().map(|&plugin| {
        let plugin_view = &view.plugins[plugin];
        SharedPlugin {
            object: plugin_view.latest.first().map(|&object| object.to_owned()).unwrap_or_default(),
            plugin: group.catalog.projects[plugin_view.project].name.clone(),
        }
    });
    let listing = positions.first().map(|&plugin| &group.tables.projects[&view.plugins[plugin].project]);
    let choices = domains.iter().take(MAX_SERVERS).map(|domain| {
        let papers = group.papers(domain.server);
        let ends = |set: &IndexSet, limit: usize| Some((set.members(1, limit).next()?, set.highest(limit)?));
        let version = |index: usize| listing.map(|listing| listing.releases[index - 1].version.clone());
        let releases = listing.and_then(|listing| ends(&domain.releases, listing.releases.len()));
        ServerChoice {
            papers: ends(&domain.papers, papers.len())
                .map(|(from, to)| Span { from: papers[from - 1].clone(), to: papers[to - 1].clone() }),
            oldest: releases.and_then(|(oldest, _)| version(oldest)),
            newest: releases.and_then(|(_, newest)| version(newest)),
            without: listing
                .zip(releases)
                .map_or_else(Vec::new, |(listing, ends)| gaps(listing, &domain.releases, ends)),
            ..ServerChoice::empty(&group.view(domain.server).request.server)
        }
    });
    SharedVersion {
        plugins: plugins.collect(),
        servers: choices.collect(),
        more: domains.len().saturating_sub(MAX_SERVERS),
    }
}

/// The versions between the ends of a set that are not in it, newest first. Versions that are less stable than both
/// ends are left out.
fn gaps(listing: &ListingTable<'_>, set: &IndexSet, (oldest, newest): (usize, usize)) -> Vec<String> {
    let release = |index: usize| &listing.releases[index - 1];
    let least = release(oldest).channel.min(release(newest).channel);
    let between = (oldest..newest).rev().filter(|&index| !set.has(index)).map(release);
    between.filter(|release| release.channel >= least).map(|release| release.version.clone()).collect()
}
