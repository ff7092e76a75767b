//! Pure. Decides for a fleet: servers that share a plugin with strategy `latest` are decided together.

use jiff::Timestamp;

use super::Decision;
use super::provider::SolverProblem;
use crate::Budget;
use crate::index::CandidateIndex;
use crate::index::chosen::Chosen;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::model::budget::BudgetExceeded;
use crate::model::catalog::{Catalog, Release};
use crate::model::request::Request;
use crate::model::version::lenient;
use exclusion::GroupDecision;

pub(crate) mod exclusion;
mod partition;
pub(crate) mod plain_encoding;
pub(crate) mod problem;
pub(crate) mod provider;
pub(crate) mod solo_domains;

pub use partition::groups;
pub use partition::namespace;

/// The decision for one server of a group.
#[derive(Debug, Clone)]
pub(crate) enum MemberDecision<'a> {
    /// The group does not matter: the server has no solution alone either.
    UnsolvableAlone,
    /// The server is solved with the others.
    Member(Choice<'a>),
    /// The server has a solution alone, but not with the servers that were accepted before.
    Excluded,
    /// The budget was used up.
    GaveUp(BudgetExceeded),
}

/// The best version set for one server of a group.
#[derive(Debug, Clone)]
pub(crate) struct Choice<'a> {
    /// The index of its Paper version: the position plus 1.
    pub(crate) paper_index: usize,
    /// Per plugin. `None` means not installed.
    pub(crate) releases: Vec<Option<&'a Release>>,
    /// Plugins that strategy `latest` left behind, with the release that stays.
    pub(crate) left_behind: Vec<(usize, Option<&'a Release>)>,
    /// Whether dependencies may stay at their running release: strategy `latest` finds no other solution for the
    /// requested plugins.
    pub(crate) keeps_dependencies: bool,
}

/// Servers with all data that is needed to solve them.
///
/// Reading, deciding and explaining are separate, because their costs differ. A fleet is read and decided at once, and
/// explained server by server on request.
pub struct Fleet<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) now: Timestamp,
    pub(crate) requests: &'a [Request],
    /// Positions in `requests`, as returned by [`groups`].
    pub(crate) groups: Vec<Vec<usize>>,
    pub(crate) tables: SharedTables<'a>,
    /// Per group, the views of its servers, in its order. Empty for a group of one, which needs no tables.
    pub(crate) views: Vec<Vec<ServerView<'a>>>,
}

/// The decision for every server of a fleet.
pub struct DecidedFleet<'f, 'a> {
    pub(crate) fleet: &'f Fleet<'a>,
    pub(crate) budget: Budget,
    /// Per group. `None` for a group of one.
    pub(crate) outcomes: Vec<Option<GroupDecision<'a>>>,
}

impl<'a> Fleet<'a> {
    /// Reads the data that is needed. The cost grows with the servers and with the releases of the projects they
    /// request. `catalog` is that of [`Catalog::with_unread_projects`] for these requests.
    pub fn read(catalog: &'a Catalog, requests: &'a [Request], now: Timestamp) -> Self {
        let groups = groups(requests);
        let grouped: Vec<&Request> =
            groups.iter().filter(|group| group.len() > 1).flatten().map(|&position| &requests[position]).collect();
        let (tables, views) = SharedTables::read(catalog, &grouped, now);
        let mut views = views.into_iter();
        let take =
            |group: &Vec<usize>| if group.len() > 1 { views.by_ref().take(group.len()).collect() } else { vec![] };
        let views = groups.iter().map(take).collect();
        Self { catalog, now, requests, groups, tables, views }
    }

    /// Decides for all servers that have to be solved together. The others are solved when their answer is requested.
    /// `budget` is that of one server. A group may use a little more for each further server.
    pub fn decide(&self, budget: Budget) -> DecidedFleet<'_, 'a> {
        let outcomes = self.views.iter().map(|views| {
            (!views.is_empty()).then(|| exclusion::decide(self.catalog, &self.tables, views, self.now, budget))
        });
        DecidedFleet { fleet: self, budget, outcomes: outcomes.collect() }
    }
}

impl<'a> DecidedFleet<'_, 'a> {
    /// The servers, by name, that were not excluded. Servers without a group are included, whatever their result is.
    pub fn solved_together(&self) -> Vec<&'a str> {
        let is_member = |&(group, member): &(usize, usize)| {
            self.outcomes[group]
                .as_ref()
                .is_none_or(|outcome| matches!(outcome.decisions[member], MemberDecision::Member(_)))
        };
        let mut names: Vec<&str> = (self.positions().filter(is_member))
            .map(|(group, member)| self.request(group, member).server.as_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// Whether the group members share a plugin in a release that is a downgrade from the one that runs on an excluded
    /// server. Such a server cannot follow them and must not be blocked by them.
    pub(crate) fn shares_older_release(&self, group: usize, member: usize) -> bool {
        let (Some(outcome), views) = (&self.outcomes[group], &self.fleet.views[group]) else { return false };
        let view = outcome.view(views, member);
        let Some(running) = &view.request.running else { return false };
        outcome.members().into_iter().any(|member| {
            let MemberDecision::Member(choice) = &outcome.decisions[member] else { return false };
            let theirs = outcome.view(views, member).plugins.iter().zip(&choice.releases);
            let mut shared = theirs.filter_map(|(theirs, chosen)| {
                let plugin_view = &view.plugins[view.position_of(theirs.project)?];
                let one = plugin_view.latest.iter().any(|object| theirs.latest.contains(object));
                Some((plugin_view, (*chosen).filter(|_| one)?))
            });
            shared.any(|(plugin_view, chosen)| {
                let listing = &self.fleet.tables.projects[&plugin_view.project];
                let runs =
                    |index: &usize| plugin_view.domain.has(*index) && running.runs_release(listing.releases[index - 1]);
                let runs = (1..=listing.releases.len()).rfind(runs);
                listing.index_of(chosen).zip(runs).is_some_and(|(at, runs)| {
                    let is_lower = || lenient::is_lower(&chosen.version, &listing.releases[runs - 1].version);
                    !plugin_view.domain.has(at) && (at < runs || is_lower())
                })
            })
        })
    }

    pub(crate) fn positions(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let groups = self.fleet.groups.iter().enumerate();
        groups.flat_map(|(group, servers)| (0..servers.len()).map(move |member| (group, member)))
    }

    pub(crate) fn position_of(&self, server: &str) -> Option<(usize, usize)> {
        self.positions().find(|&(group, member)| self.request(group, member).server == server)
    }

    pub(crate) fn request(&self, group: usize, member: usize) -> &'a Request {
        &self.fleet.requests[self.fleet.groups[group][member]]
    }

    pub(crate) fn name(&self, group: usize, member: usize) -> String {
        self.request(group, member).server.clone()
    }
}

impl Choice<'_> {
    /// The same decision in the numbering of the server's own index.
    pub(crate) fn decision(&self, candidates: &CandidateIndex<'_>) -> Decision {
        let left_behind: Vec<(usize, Option<usize>)> = self
            .left_behind
            .iter()
            .map(|&(plugin, retained)| {
                (plugin, retained.and_then(|release| candidates.plugins[plugin].position_of(release)))
            })
            .collect();
        let whole = SolverProblem::new(candidates, super::allowed_papers(candidates));
        Decision {
            chosen: Chosen::from_group_choice(candidates, self.paper_index - 1, &self.releases),
            problem: if self.keeps_dependencies { whole.leaving_behind(candidates, &left_behind) } else { whole },
            left_behind,
        }
    }
}

#[cfg(test)]
mod tests;
