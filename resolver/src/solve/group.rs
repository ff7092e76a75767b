//! Pure. The solve of many servers: those that share a plugin with strategy `latest` are solved together.

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

/// Servers and all that has to be read to decide what they should run.
///
/// Reading, deciding and explaining are apart, because they cost differently: a fleet is read and decided at once, and
/// explained server by server, when somebody wants to know.
pub struct Fleet<'a> {
    catalog: &'a Catalog,
    now: Timestamp,
    requests: &'a [Request],
    /// Places in `requests`, as [`groups`] gives them.
    groups: Vec<Vec<usize>>,
    tables: SharedTables<'a>,
    /// Per group the seats of its servers, in its order; none for a group of one, which needs no tables.
    seats: Vec<Vec<ServerView<'a>>>,
}

/// What every server of a fleet should run.
pub struct Decided<'f, 'a> {
    fleet: &'f Fleet<'a>,
    budget: Budget,
    /// Per group; `None` for a group of one.
    outcomes: Vec<Option<GroupDecision<'a>>>,
}

/// What was decided about one server of a group.
#[derive(Debug, Clone)]
pub(crate) enum MemberDecision<'a> {
    /// The group does not matter: there is no answer for it alone either.
    Alone,
    /// It goes together with the others.
    Member(Choice<'a>),
    /// It could run alone, but not with those that were taken before.
    Aside,
    /// The budget was used up.
    GaveUp(BudgetExceeded),
}

/// The best set for one server of a group.
#[derive(Debug, Clone)]
pub(crate) struct Choice<'a> {
    /// Index of its Paper.
    pub(crate) paper: usize,
    /// Per shelf; `None`: not installed.
    pub(crate) releases: Vec<Option<&'a Release>>,
    /// Shelves that strategy `latest` left behind, and the release that stays.
    pub(crate) unfollowed: Vec<(usize, Option<&'a Release>)>,
    /// Whether what nobody asked for may stay as it runs: strategy `latest` finds nothing for all that is asked for else.
    pub(crate) keeps: bool,
}

/// The one best set for each server, and why it is that one; in the order of the servers' names.
///
/// Servers that share a Plugin with strategy `latest` get the same release of it, and are solved together (see
/// [`groups`]); all others get what [`crate::resolve`] gives. Best is lexicographic: the newest Paper, server by server in
/// the order of their names; then the newest release of each plugin asked for, in the order of the objects' names (of the
/// servers' for one name), what is shared once; then what those need. The order of the input does not count.
///
/// A server without an answer is set aside: it never keeps the others of its group from moving (see `docs/concepts`). One
/// that runs something newer than what the others have in common gets the answer that it has alone. One that takes too much
/// alone is given up, and the others are decided about without it.
pub fn resolve_fleet(
    catalog: &Catalog,
    requests: &[Request],
    now: Timestamp,
    budget: Budget,
) -> Vec<(String, Result<Resolution, Unsolvable>)> {
    Fleet::read(catalog, requests, now).decide(budget).answers()
}

impl<'a> Fleet<'a> {
    /// Reads what is needed. Cost grows with the servers and with the releases of the projects they ask for.
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

    /// Decides for all servers that have to be solved together; the others are solved when they are asked about.
    /// `budget` is that of one server; a group may take a little more for each further one.
    pub fn decide(&self, budget: Budget) -> Decided<'_, 'a> {
        let outcomes = self.seats.iter().map(|seats| {
            (!seats.is_empty()).then(|| exclusion::decide(self.catalog, &self.tables, seats, self.now, budget))
        });
        Decided { fleet: self, budget, outcomes: outcomes.collect() }
    }
}

impl<'a> Decided<'_, 'a> {
    /// The servers, by name, that were not set aside. Those without a group are among them, whatever their answer is.
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

    /// The answer for one server; `None`: it is none of this fleet.
    pub fn answer(&self, server: &str) -> Option<Result<Resolution, Unsolvable>> {
        let (group, seat) = self.place_of(server)?;
        Some(self.answer_at(group, seat))
    }

    /// Why a server does not run `target`, seen with the others of its group; `None`: it is none of this fleet.
    pub fn why_not(&self, server: &str, target: &Minecraft) -> Option<Result<explain::WhyNot, Unsolvable>> {
        self.asked_about(server, |asked| explain::why_not_version::explain(asked, target))
    }

    /// The same with the state of each plugin: who is ready for `target`, who is not, and since when they are silent.
    pub fn readiness(&self, server: &str, target: &Minecraft) -> Option<Result<explain::WhyNot, Unsolvable>> {
        self.asked_about(server, |asked| {
            let why = explain::why_not_version::explain(asked, target)?;
            Ok(explain::WhyNot { plugins: explain::why_not_version::states(asked, &why), ..why })
        })
    }

    /// Why a server does not get this release of a plugin (by its object), seen with the others of its group. `pinned` are the same servers
    /// with that release pinned. None: it is none of this fleet, or does not ask for the plugin.
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

    /// Whether the servers that go together share a plugin in a release below what runs on a server that was set aside:
    /// it cannot follow them, and is not to be held by them.
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
            // What the others run is too old for it: plugins rarely read what a newer release of them wrote.
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
    /// The same in the numbers of the server's own world.
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
