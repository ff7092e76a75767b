//! Pure. Solves a fleet: servers that share a plugin with strategy `latest` are solved together.

use jiff::Timestamp;

use super::{
    Budget, BudgetExceeded, Decision, Resolution, Unsolvable, build_lock, resolve_beside, resolve_within, unanswerable,
};
use crate::catalog::{Catalog, Release};
use crate::explain::{self, Explanation};
use crate::index::CandidateIndex;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::request::Request;
use crate::solve::budget::BudgetMeter;
use crate::solve::provider::{Chosen, SolverProblem};
use crate::unverified_build::refuse_unseen;
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
    seats: Vec<Vec<ServerView<'a>>>,
}

/// The decision for every server of a fleet.
pub struct Decided<'f, 'a> {
    fleet: &'f Fleet<'a>,
    budget: Budget,
    /// Per group. `None` for a group of one.
    outcomes: Vec<Option<GroupDecision<'a>>>,
}

/// The decision for one server of a group.
#[derive(Debug, Clone)]
pub(crate) enum MemberDecision<'a> {
    /// The group does not matter: the server has no solution alone either.
    Alone,
    /// The server is solved with the others.
    Member(Choice<'a>),
    /// The server has a solution alone, but not with the servers that were accepted before.
    Aside,
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
    pub(crate) keeps: bool,
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
    Fleet::read(catalog, requests, now).decide(budget).answers()
}

impl<'a> Fleet<'a> {
    /// Reads the data that is needed. The cost grows with the servers and with the releases of the projects they
    /// request.
    pub fn read(catalog: &'a Catalog, requests: &'a [Request], now: Timestamp) -> Self {
        let groups = groups(requests);
        let together: Vec<&Request> =
            groups.iter().filter(|group| group.len() > 1).flatten().map(|&place| &requests[place]).collect();
        let (tables, seats) = SharedTables::read(catalog, &together, now);
        let mut seats = seats.into_iter();
        let take =
            |group: &Vec<usize>| if group.len() > 1 { seats.by_ref().take(group.len()).collect() } else { vec![] };
        let seats = groups.iter().map(take).collect();
        Self { catalog, now, requests, groups, tables, seats }
    }

    /// Decides for all servers that have to be solved together. The others are solved when their answer is requested.
    /// `budget` is that of one server. A group may use a little more for each further server.
    pub fn decide(&self, budget: Budget) -> Decided<'_, 'a> {
        let outcomes = self.seats.iter().map(|seats| {
            (!seats.is_empty()).then(|| exclusion::decide(self.catalog, &self.tables, seats, self.now, budget))
        });
        Decided { fleet: self, budget, outcomes: outcomes.collect() }
    }
}

impl<'a> Decided<'_, 'a> {
    /// The servers, by name, that were not excluded. Servers without a group are included, whatever their result is.
    pub fn together(&self) -> Vec<&'a str> {
        let member = |&(group, seat): &(usize, usize)| {
            self.outcomes[group]
                .as_ref()
                .is_none_or(|outcome| matches!(outcome.verdicts[seat], MemberDecision::Member(_)))
        };
        let mut names: Vec<&str> =
            (self.places().filter(member)).map(|(group, seat)| self.request(group, seat).server.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The answers for all servers, by name.
    pub fn answers(&self) -> Vec<(String, Result<Resolution, Unsolvable>)> {
        let mut answers: Vec<(String, Result<Resolution, Unsolvable>)> =
            self.places().map(|(group, seat)| (self.name(group, seat), self.answer_at(group, seat))).collect();
        answers.sort_by(|(a, _), (b, _)| a.cmp(b));
        answers
    }

    /// The answer for one server. `None` if it is not part of this fleet.
    pub fn answer(&self, server: &str) -> Option<Result<Resolution, Unsolvable>> {
        let (group, seat) = self.place_of(server)?;
        Some(self.answer_at(group, seat))
    }

    /// Explains why a server does not run `target`, considering the others of its group. `None` if it is not part of
    /// this fleet.
    pub fn why_not(&self, server: &str, target: &Minecraft) -> Option<Result<explain::WhyNot, Unsolvable>> {
        self.asked_about(server, |asked| explain::why_not_version::explain(asked, target))
    }

    /// Like `why_not`, with the state of each plugin: which support `target`, which do not, and how long those had no
    /// release.
    pub fn readiness(&self, server: &str, target: &Minecraft) -> Option<Result<explain::WhyNot, Unsolvable>> {
        self.asked_about(server, |asked| {
            let why = explain::why_not_version::explain(asked, target)?;
            Ok(explain::WhyNot { plugins: explain::why_not_version::states(asked, &why), ..why })
        })
    }

    /// Explains why a server does not get this release of a plugin (given by its object), considering the others of its
    /// group. `pinned` holds the same servers with that release pinned. `None` if the server is not part of this fleet
    /// or does not request the plugin.
    pub fn why_not_release(
        &self,
        server: &str,
        (object, version): (&str, &str),
        pinned: &Decided<'_, '_>,
    ) -> Option<Result<explain::WhyNotRelease, Unsolvable>> {
        let pinned = || Some(pinned.answer(server)?.map_or_else(|no| no.explanation(), |yes| yes.explanation));
        self.asked_about(server, |asked| explain::why_not_release::explain(asked, object, version, pinned))?.transpose()
    }

    fn asked_about<T>(
        &self,
        server: &str,
        answer: impl FnOnce(&explain::ExplainContext<'_, '_>) -> Result<T, BudgetExceeded>,
    ) -> Option<Result<T, Unsolvable>> {
        let (group, seat) = self.place_of(server)?;
        let request = self.request(group, seat);
        let company = self.company(group, seat);
        let world = match CandidateIndex::build(self.fleet.catalog, request, self.fleet.now) {
            Ok(world) => world,
            Err(gap) => return Some(Err(unanswerable(self.fleet.catalog, request, gap))),
        };
        let meter = BudgetMeter::new(self.budget);
        let asked = explain::ExplainContext {
            catalog: self.fleet.catalog,
            world: &world,
            meter: &meter,
            company: company.as_ref(),
        };
        Some(answer(&asked).map_err(Unsolvable::GaveUp))
    }

    /// Whether the group members share a plugin in a release older than the one that runs on an excluded server. Such a
    /// server cannot follow them and must not be blocked by them.
    fn is_below(&self, group: usize, seat: usize) -> bool {
        let (Some(outcome), seats) = (&self.outcomes[group], &self.fleet.seats[group]) else { return false };
        let here = outcome.seat(seats, seat);
        let Some(running) = &here.request.running else { return false };
        outcome.members().into_iter().any(|member| {
            let MemberDecision::Member(choice) = &outcome.verdicts[member] else { return false };
            let theirs = outcome.seat(seats, member).shelves.iter().zip(&choice.releases);
            let mut shared = theirs.filter_map(|(theirs, chosen)| {
                let place = &here.shelves[here.shelf_of(theirs.project)?];
                let one = place.latest.iter().any(|object| theirs.latest.contains(object));
                Some((place, (*chosen).filter(|_| one)?))
            });
            shared.any(|(place, chosen)| {
                let listing = &self.fleet.tables.projects[&place.project];
                let runs = |index: &usize| place.domain.has(*index) && running.has(listing.releases[index - 1]);
                let runs = (1..=listing.releases.len()).rfind(runs);
                (listing.index_of(chosen).zip(runs))
                    .is_some_and(|(chosen, runs)| chosen < runs && !place.domain.has(chosen))
            })
        })
    }

    fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let groups = self.fleet.groups.iter().enumerate();
        groups.flat_map(|(group, servers)| (0..servers.len()).map(move |seat| (group, seat)))
    }

    fn place_of(&self, server: &str) -> Option<(usize, usize)> {
        self.places().find(|&(group, seat)| self.request(group, seat).server == server)
    }

    fn request(&self, group: usize, seat: usize) -> &'a Request {
        &self.fleet.requests[self.fleet.groups[group][seat]]
    }

    fn name(&self, group: usize, seat: usize) -> String {
        self.request(group, seat).server.clone()
    }

    fn company(&self, group: usize, seat: usize) -> Option<GroupContext<'_, 'a>> {
        let outcome = self.outcomes[group].as_ref()?;
        let fleet = self.fleet;
        Some(GroupContext {
            catalog: fleet.catalog,
            tables: &fleet.tables,
            seats: &fleet.seats[group],
            outcome,
            me: seat,
        })
    }

    fn answer_at(&self, group: usize, seat: usize) -> Result<Resolution, Unsolvable> {
        let (catalog, now, request) = (self.fleet.catalog, self.fleet.now, self.request(group, seat));
        let Some(company) = self.company(group, seat) else {
            return resolve_within(catalog, request, now, self.budget);
        };
        let choice = match company.verdict() {
            MemberDecision::Alone => return resolve_beside(catalog, request, now, self.budget, Some(&company)),
            MemberDecision::GaveUp(gave_up) => return Err(Unsolvable::GaveUp(gave_up.clone())),
            // The releases of the other servers are too old for this one. Plugins rarely read data that a newer release
            // of them wrote.
            MemberDecision::Aside if self.is_below(group, seat) => {
                return resolve_within(catalog, request, now, self.budget);
            }
            MemberDecision::Aside => None,
            MemberDecision::Member(choice) => Some(choice),
        };
        let world = CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
        let meter = BudgetMeter::new(self.budget);
        let asked = explain::ExplainContext { catalog, world: &world, meter: &meter, company: Some(&company) };
        match choice {
            None => Err(Unsolvable::NoSolution(Box::new(explain::shared_plugins::aside(&asked, &company)))),
            Some(choice) => {
                let decision = choice.decision(&world);
                refuse_unseen(catalog, &world, &decision)?;
                Ok(Resolution {
                    lock: build_lock::lock(catalog, &world, &decision),
                    explanation: Explanation::Solved(explain::solved::explain(&asked, &decision)),
                })
            }
        }
    }
}

impl Choice<'_> {
    /// The same decision in the numbering of the server's own index.
    pub(crate) fn decision(&self, world: &CandidateIndex<'_>) -> Decision {
        let unfollowed: Vec<(usize, Option<usize>)> = self
            .unfollowed
            .iter()
            .map(|&(shelf, stays)| (shelf, stays.and_then(|release| world.shelves[shelf].place_of(release))))
            .collect();
        let whole = SolverProblem::whole(world, super::papers(world));
        Decision {
            chosen: Chosen::of(world, self.paper - 1, &self.releases),
            question: if self.keeps { whole.without(world, &unfollowed) } else { whole },
            unfollowed,
        }
    }
}

#[cfg(test)]
mod tests;
