//! Pure. Solves a fleet: servers that share a plugin with strategy `latest` are solved together.

use jiff::Timestamp;

use super::{
    Budget, BudgetExceeded, Decision, Resolution, Unsolvable, build_lock, resolve_in_group, resolve_within,
    unanswerable,
};
use crate::catalog::{Catalog, Release};
use crate::explain::{self, Explanation};
use crate::index::CandidateIndex;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::request::Request;
use crate::solve::budget::BudgetMeter;
use crate::solve::provider::{Chosen, SolverProblem};
use crate::unverified_build::reject_unverified;
use crate::version::Minecraft;

mod exclusion;
pub(crate) mod group_context;
pub(crate) mod naive_encoding;
mod partition;
pub(crate) mod problem;
pub(crate) mod provider;
mod solo_domains;

pub use partition::groups;
#[cfg(feature = "cli")]
pub(crate) use partition::namespace;

use exclusion::GroupDecision;
use group_context::GroupContext;

/// Servers with all data that is needed to solve them.
///
/// Reading, deciding and explaining are separate, because their costs differ. A fleet is read and decided at once, and
/// explained server by server on request.
pub struct Fleet<'a> {
    catalog: &'a Catalog,
    now: Timestamp,
    requests: &'a [Request],
    /// Positions in `requests`, as returned by [`groups`].
    groups: Vec<Vec<usize>>,
    tables: SharedTables<'a>,
    /// Per group, the views of its servers, in its order. Empty for a group of one, which needs no tables.
    views: Vec<Vec<ServerView<'a>>>,
}

/// The decision for every server of a fleet.
pub struct DecidedFleet<'f, 'a> {
    fleet: &'f Fleet<'a>,
    budget: Budget,
    /// Per group. `None` for a group of one.
    outcomes: Vec<Option<GroupDecision<'a>>>,
}

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
    /// Index of its Paper version.
    pub(crate) paper: usize,
    /// Per plugin. `None` means not installed.
    pub(crate) releases: Vec<Option<&'a Release>>,
    /// Plugins that strategy `latest` left behind, with the release that stays.
    pub(crate) unfollowed: Vec<(usize, Option<&'a Release>)>,
    /// Whether dependencies may stay at their running release: strategy `latest` finds no other solution for the
    /// requested plugins.
    pub(crate) keeps_dependencies: bool,
}

/// Returns the single best version set for each server, with the explanation of the choice, in the order of the server
/// names.
///
/// Servers that share a Plugin with strategy `latest` get the same release of it and are solved together (see
/// [`groups`]). All others get the result of [`crate::resolve`]. The order is lexicographic. The newest Paper version
/// comes first, server by server in the order of their names. Then follows the newest release of each requested plugin,
/// in the order of the object names (for equal names, of the server names). A shared plugin counts once. The
/// dependencies come last. The order of the input does not matter.
///
/// A server without a solution is excluded: it never blocks the other servers of its group (see `docs/concepts`). A
/// server that runs a newer release than the others have in common gets its own solution. A server that exceeds its
/// budget alone is given up, and the others are decided without it.
pub fn resolve_fleet(
    catalog: &Catalog,
    requests: &[Request],
    now: Timestamp,
    budget: Budget,
) -> Vec<(String, Result<Resolution, Unsolvable>)> {
    Fleet::read(catalog, requests, now).decide(budget).resolutions()
}

impl<'a> Fleet<'a> {
    /// Reads the data that is needed. The cost grows with the servers and with the releases of the projects they
    /// request.
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

    /// The answers for all servers, by name.
    pub fn resolutions(&self) -> Vec<(String, Result<Resolution, Unsolvable>)> {
        let mut resolutions: Vec<(String, Result<Resolution, Unsolvable>)> = self
            .positions()
            .map(|(group, member)| (self.name(group, member), self.resolve_member(group, member)))
            .collect();
        resolutions.sort_by(|(a, _), (b, _)| a.cmp(b));
        resolutions
    }

    /// The answer for one server. `None` if it is not part of this fleet.
    pub fn resolution(&self, server: &str) -> Option<Result<Resolution, Unsolvable>> {
        let (group, member) = self.position_of(server)?;
        Some(self.resolve_member(group, member))
    }

    /// Explains why a server does not run `target`, considering the others of its group. `None` if it is not part of
    /// this fleet.
    pub fn why_not(&self, server: &str, target: &Minecraft) -> Option<Result<explain::WhyNot, Unsolvable>> {
        self.explain_with(server, |context| explain::why_not_version::explain(context, target))
    }

    /// Like `why_not`, with the state of each plugin: which support `target`, which do not, and how long those had no
    /// release.
    pub fn readiness(&self, server: &str, target: &Minecraft) -> Option<Result<explain::WhyNot, Unsolvable>> {
        self.explain_with(server, |context| {
            let why = explain::why_not_version::explain(context, target)?;
            Ok(explain::WhyNot { plugins: explain::why_not_version::states(context, &why), ..why })
        })
    }

    /// Explains why a server does not get this release of a plugin (given by its object), considering the others of its
    /// group. `pinned` holds the same servers with that release pinned. `None` if the server is not part of this fleet
    /// or does not request the plugin.
    pub fn why_not_release(
        &self,
        server: &str,
        (object, version): (&str, &str),
        pinned: &DecidedFleet<'_, '_>,
    ) -> Option<Result<explain::WhyNotRelease, Unsolvable>> {
        let pinned = || {
            Some(
                pinned
                    .resolution(server)?
                    .map_or_else(|unsolvable| unsolvable.explanation(), |resolution| resolution.explanation),
            )
        };
        self.explain_with(server, |context| explain::why_not_release::explain(context, object, version, pinned))?
            .transpose()
    }

    fn explain_with<T>(
        &self,
        server: &str,
        f: impl FnOnce(&explain::ExplainContext<'_, '_>) -> Result<T, BudgetExceeded>,
    ) -> Option<Result<T, Unsolvable>> {
        let (group, member) = self.position_of(server)?;
        let request = self.request(group, member);
        let group_context = self.group_context(group, member);
        let candidates = match CandidateIndex::build(self.fleet.catalog, request, self.fleet.now) {
            Ok(candidates) => candidates,
            Err(gap) => return Some(Err(unanswerable(self.fleet.catalog, request, gap))),
        };
        let meter = BudgetMeter::new(self.budget);
        let context = explain::ExplainContext {
            catalog: self.fleet.catalog,
            candidates: &candidates,
            meter: &meter,
            group: group_context.as_ref(),
        };
        Some(f(&context).map_err(Unsolvable::GaveUp))
    }

    /// Whether the group members share a plugin in a release older than the one that runs on an excluded server. Such a
    /// server cannot follow them and must not be blocked by them.
    fn shares_older_release(&self, group: usize, member: usize) -> bool {
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
                (listing.index_of(chosen).zip(runs))
                    .is_some_and(|(chosen, runs)| chosen < runs && !plugin_view.domain.has(chosen))
            })
        })
    }

    fn positions(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let groups = self.fleet.groups.iter().enumerate();
        groups.flat_map(|(group, servers)| (0..servers.len()).map(move |member| (group, member)))
    }

    fn position_of(&self, server: &str) -> Option<(usize, usize)> {
        self.positions().find(|&(group, member)| self.request(group, member).server == server)
    }

    fn request(&self, group: usize, member: usize) -> &'a Request {
        &self.fleet.requests[self.fleet.groups[group][member]]
    }

    fn name(&self, group: usize, member: usize) -> String {
        self.request(group, member).server.clone()
    }

    fn group_context(&self, group: usize, member: usize) -> Option<GroupContext<'_, 'a>> {
        let outcome = self.outcomes[group].as_ref()?;
        let fleet = self.fleet;
        Some(GroupContext {
            catalog: fleet.catalog,
            tables: &fleet.tables,
            views: &fleet.views[group],
            outcome,
            server: member,
        })
    }

    fn resolve_member(&self, group: usize, member: usize) -> Result<Resolution, Unsolvable> {
        let (catalog, now, request) = (self.fleet.catalog, self.fleet.now, self.request(group, member));
        let Some(group_context) = self.group_context(group, member) else {
            return resolve_within(catalog, request, now, self.budget);
        };
        let choice = match group_context.decision() {
            MemberDecision::UnsolvableAlone => {
                return resolve_in_group(catalog, request, now, self.budget, Some(&group_context));
            }
            MemberDecision::GaveUp(gave_up) => return Err(Unsolvable::GaveUp(gave_up.clone())),
            // The releases of the other servers are too old for this one. Plugins rarely read data that a newer release
            // of them wrote.
            MemberDecision::Excluded if self.shares_older_release(group, member) => {
                return resolve_within(catalog, request, now, self.budget);
            }
            MemberDecision::Excluded => None,
            MemberDecision::Member(choice) => Some(choice),
        };
        let candidates =
            CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
        let meter = BudgetMeter::new(self.budget);
        let context =
            explain::ExplainContext { catalog, candidates: &candidates, meter: &meter, group: Some(&group_context) };
        match choice {
            None => Err(Unsolvable::NoSolution(Box::new(explain::shared_plugins::explain_excluded(
                &context,
                &group_context,
            )))),
            Some(choice) => {
                let decision = choice.decision(&candidates);
                reject_unverified(catalog, &candidates, &decision)?;
                Ok(Resolution {
                    lock: build_lock::build_lock(catalog, &candidates, &decision),
                    explanation: Explanation::Solved(explain::solved::explain(&context, &decision)),
                })
            }
        }
    }
}

impl Choice<'_> {
    /// The same decision in the numbering of the server's own index.
    pub(crate) fn decision(&self, candidates: &CandidateIndex<'_>) -> Decision {
        let unfollowed: Vec<(usize, Option<usize>)> = self
            .unfollowed
            .iter()
            .map(|&(plugin, retained)| {
                (plugin, retained.and_then(|release| candidates.plugins[plugin].position_of(release)))
            })
            .collect();
        let whole = SolverProblem::new(candidates, super::allowed_papers(candidates));
        Decision {
            chosen: Chosen::from_group_choice(candidates, self.paper - 1, &self.releases),
            problem: if self.keeps_dependencies { whole.leaving_behind(candidates, &unfollowed) } else { whole },
            unfollowed,
        }
    }
}

#[cfg(test)]
mod tests;
