//! Pure. Presents one server together with the others of its group, for explanations.

#![expect(clippy::similar_names, reason = "a shelf is a shelf everywhere here, and `self` is no name of ours")]

use jiff::Timestamp;
use pubgrub::VersionSet;

use super::exclusion::{self, GroupDecision, works};
use super::problem::{DomainCache, JointProblem};
use super::solo_domains::{Shares, alone};
use super::{Choice, Fleet, MemberDecision, provider};
use crate::catalog::{Catalog, Release};
use crate::compatibility_facts::UsedFact;
use crate::explain::{HintStep, PaperName, apply_to_others};
use crate::index::CandidateIndex;
use crate::index::fleet_tables::{PluginView, ServerView, SharedTables};
use crate::index::paper_candidates::candidates;
use crate::request::Request;
use crate::solve::budget::BudgetMeter;
use crate::solve::index_set::IndexSet;
use crate::solve::{BudgetExceeded, SolveOutcome, outcome};
use crate::version::Minecraft;

/// Limit of group members for analyses that solve the group once per attempt. Larger groups get no hints, and the
/// blocking servers are named only if two servers alone show the conflict.
pub(crate) const MOST_PROVEN: usize = 64;

/// One server and its group.
#[derive(Clone, Copy)]
pub(crate) struct GroupContext<'c, 'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) tables: &'c SharedTables<'a>,
    pub(crate) seats: &'c [ServerView<'a>],
    pub(crate) outcome: &'c GroupDecision<'a>,
    /// Position of this server.
    pub(crate) me: usize,
}

/// The Paper versions, and the releases of one plugin, that a server could have alone.
pub(crate) struct SoloDomain {
    /// Position of the server.
    pub(crate) seat: usize,
    /// Indexes of Paper versions.
    pub(crate) papers: IndexSet,
    /// Indexes of releases in the common numbering.
    pub(crate) releases: IndexSet,
}

/// A shared plugin without a common release on two servers, with the Paper versions in question.
pub(crate) struct GroupConflict {
    /// Position of the plugin on this server.
    pub(crate) shelf: usize,
    /// The options of this server, then those of each conflicting server.
    pub(crate) could: Vec<SoloDomain>,
    /// The number of conflicting servers that are not listed.
    pub(crate) more: usize,
}

/// Conflicts on another server, with its chosen releases, that prevent a release of a shared plugin.
pub(crate) struct PairConflict {
    /// Position of the server.
    pub(crate) seat: usize,
    /// The index of its Paper version.
    pub(crate) paper: usize,
    /// Installed plugins that are incompatible with the release: display names with versions.
    pub(crate) with: Vec<String>,
    /// Plugins that the release needs and that are not installed: display names.
    pub(crate) needs: Vec<String>,
    /// The facts behind it that no page states.
    pub(crate) facts: Vec<UsedFact>,
}

impl<'c, 'a> GroupContext<'c, 'a> {
    /// The decision for this server.
    pub(crate) fn verdict(&self) -> &'c MemberDecision<'a> {
        &self.outcome.verdicts[self.me]
    }

    /// The server view that was used for the decision.
    pub(crate) fn seat(&self, at: usize) -> &'c ServerView<'a> {
        self.outcome.seat(self.seats, at)
    }

    /// The members of the group except this server.
    pub(crate) fn others(&self) -> Vec<usize> {
        self.outcome.members().into_iter().filter(|&at| at != self.me).collect()
    }

    fn choice(&self, at: usize) -> Option<&'c Choice<'a>> {
        match &self.outcome.verdicts[at] {
            MemberDecision::Member(choice) => Some(choice),
            MemberDecision::Alone | MemberDecision::Aside | MemberDecision::GaveUp(_) => None,
        }
    }

    /// Position of a plugin of this server on another server that shares it.
    pub(crate) fn shared(&self, shelf: usize, with: usize) -> Option<usize> {
        let mine = &self.seat(self.me).shelves[shelf];
        let theirs = self.seat(with).shelf_of(mine.project)?;
        let one = mine.latest.iter().any(|object| self.seat(with).shelves[theirs].latest.contains(object));
        one.then_some(theirs)
    }

    /// The Paper versions of a server at the point where this server's version is chosen: fixed for servers that come
    /// before it by name.
    fn papers_before(&self, at: usize) -> IndexSet {
        match self.choice(at) {
            Some(choice) if at < self.me => IndexSet::of([choice.paper]),
            Some(_) | None => self.seat(at).open.clone(),
        }
    }

    /// The solutions that the members could have alone: on the chosen Paper versions if `settled`, otherwise on those
    /// that they can choose from.
    fn shares(&self, settled: bool) -> &'c Shares {
        let alone = &self.outcome.alone;
        let known = if settled { &alone.settled } else { &alone.open };
        known.get_or_init(|| {
            let members = self.outcome.members().into_iter().map(|at| {
                let chosen = self.choice(at).filter(|_| settled);
                let papers = chosen.map_or_else(|| self.seat(at).open.clone(), |choice| IndexSet::of([choice.paper]));
                (at, self.seat(at), papers)
            });
            Shares::of(self.tables, members)
        })
    }

    /// Finds the servers that share a plugin with this one and have no common release of it.
    ///
    /// `mine` holds the Paper versions of this server. The others use the versions that they can choose from, or the
    /// chosen ones for servers before this one if `settled`. `gone` holds plugins of this server to ignore. At most
    /// `many` options are listed, this server's first. The rest is counted.
    pub(crate) fn clashes(&self, gone: &[usize], mine: &IndexSet, settled: bool, many: usize) -> Vec<GroupConflict> {
        let seat = self.seat(self.me);
        let Some(me) = alone(self.tables, seat, mine.clone(), gone, &mut DomainCache::default()) else {
            return Vec::new();
        };
        let others = [(self.shares(settled), 0..self.me), (self.shares(false), self.me + 1..self.seats.len())];
        let shelves = seat.shelves.iter().enumerate().filter(|(shelf, _)| !gone.contains(shelf));
        let clash = |(shelf, place): (usize, &PluginView<'a>)| {
            let releases = &me.slots[me.slot_of[0][shelf]].domain;
            let (mut against, mut count) = (Vec::new(), 0);
            for (shares, range) in &others {
                for sharers in shares.of_project(place.project) {
                    let theirs = &self.seat(sharers.like.0).shelves[sharers.like.1].latest;
                    let is_one = place.latest.iter().any(|object| theirs.contains(object));
                    if !is_one || !sharers.releases.is_disjoint(releases) {
                        continue;
                    }
                    let seats = sharers.within(range);
                    count += seats.len();
                    against.extend(seats.iter().take(many).map(|&seat| (seat, shares, &sharers.releases)));
                }
            }
            against.sort_by_key(|(seat, _, _)| *seat);
            let mine = SoloDomain { seat: self.me, papers: me.papers[0].clone(), releases: releases.clone() };
            let theirs = against.into_iter().map(|(seat, shares, releases)| SoloDomain {
                seat,
                papers: shares.papers(seat).clone(),
                releases: releases.clone(),
            });
            let could: Vec<SoloDomain> = std::iter::once(mine).chain(theirs).take(many).collect();
            (count > 0).then(|| GroupConflict { shelf, more: count + 1 - could.len(), could })
        };
        shelves.filter_map(clash).collect()
    }

    /// A minimal subset of the others that this server is incompatible with on these Paper versions. Empty for a group
    /// that is too large.
    pub(crate) fn smallest_clash(
        &self,
        mine: &IndexSet,
        settled: bool,
        smallest: impl FnOnce(
            Vec<usize>,
            &dyn Fn(&[usize]) -> Result<bool, BudgetExceeded>,
        ) -> Result<Vec<usize>, BudgetExceeded>,
        meter: &BudgetMeter,
    ) -> Vec<usize> {
        let others = self.others();
        if others.len() >= MOST_PROVEN {
            return Vec::new();
        }
        let fails = |kept: &[usize]| Ok(!self.goes_with(kept, mine, settled, meter)?);
        smallest(others, &fails).unwrap_or_default()
    }

    /// Whether the server is compatible with these others on these Paper versions.
    pub(crate) fn goes_with(
        &self,
        others: &[usize],
        mine: &IndexSet,
        settled: bool,
        meter: &BudgetMeter,
    ) -> Result<bool, BudgetExceeded> {
        Ok(self.releases_with(others, mine, settled, meter)?.is_some())
    }

    /// The releases of the server, per plugin, in a solution with these others on these Paper versions. `None` if they
    /// are incompatible.
    pub(crate) fn releases_with(
        &self,
        others: &[usize],
        mine: &IndexSet,
        settled: bool,
        meter: &BudgetMeter,
    ) -> Result<Option<Vec<Option<&'a Release>>>, BudgetExceeded> {
        let mut all: Vec<usize> = others.iter().copied().chain([self.me]).collect();
        all.sort_unstable();
        let mut party = JointProblem::of(self.tables, all.iter().map(|&at| self.seat(at)).collect());
        for (papers, &at) in party.papers.iter_mut().zip(&all) {
            if at == self.me {
                *papers = mine.clone();
            } else if settled {
                *papers = self.papers_before(at);
            }
        }
        let seat = all.partition_point(|&at| at < self.me);
        Ok(provider::solve(&party, meter)?.map(|settled| party.releases(seat, &settled)))
    }

    /// The servers whose chosen Paper version cannot use a release (given by its index) of a shared plugin, with their
    /// options. Excluded servers are included if the plugin stays within the releases that work on them.
    pub(crate) fn cannot_take(&self, shelf: usize, index: usize) -> Vec<SoloDomain> {
        let all = (0..self.seats.len()).filter(|&at| at != self.me);
        let found = all.filter_map(|at| {
            let theirs = self.shared(shelf, at)?;
            let (seat, place) = (self.seat(at), &self.seat(at).shelves[theirs]);
            let (papers, releases) = match self.choice(at) {
                Some(choice) => (IndexSet::of([choice.paper]), self.on_paper(place, choice.paper)),
                None if self.outcome.heeded[at] => (self.runs_on(seat)?, works(self.tables, seat, place)),
                None => return None,
            };
            (!releases.has(index)).then_some(SoloDomain { seat: at, papers, releases })
        });
        found.collect()
    }

    /// The other servers whose chosen releases are incompatible with a release (given by its index) of a shared plugin.
    pub(crate) fn apart(&self, shelf: usize, index: usize) -> Vec<PairConflict> {
        let found = self.others().into_iter().filter_map(|at| {
            let theirs = self.shared(shelf, at)?;
            let apart = self.apart_there(at, theirs, index, self.choice(at)?);
            (!apart.with.is_empty() || !apart.needs.is_empty()).then_some(apart)
        });
        found.collect()
    }

    fn apart_there(&self, at: usize, theirs: usize, index: usize, choice: &Choice<'_>) -> PairConflict {
        let shelves = &self.seat(at).shelves;
        let chosen = |shelf: usize| self.tables.projects[&shelves[shelf].project].index_of(choice.releases[shelf]?);
        let named = |shelf: usize, index: usize| {
            let listing = &self.tables.projects[&shelves[shelf].project];
            format!("{} {}", listing.name, listing.releases[index - 1].version)
        };
        let mut apart =
            PairConflict { seat: at, paper: choice.paper, with: Vec::new(), needs: Vec::new(), facts: Vec::new() };
        for link in self.tables.links(&shelves[theirs], index) {
            // A project that is not used on that server puts no constraint on it.
            let Some(to) = self.seat(at).shelf_of(link.to) else { continue };
            match chosen(to) {
                Some(there) if !link.set.has(there) => {
                    apart.with.push(named(to, there));
                    apart.facts.extend(self.tables.fact(&shelves[theirs], index, link));
                }
                None if !link.set.has(0) && self.on_paper(&shelves[to], choice.paper).is_disjoint(&link.set) => {
                    apart.needs.push(self.tables.projects[&link.to].name.to_owned());
                }
                Some(_) | None => {}
            }
        }
        for (shelf, place) in shelves.iter().enumerate() {
            let Some(there) = chosen(shelf).filter(|_| shelf != theirs) else { continue };
            let links = self.tables.links(place, there).iter();
            for link in links.filter(|link| link.to == shelves[theirs].project && !link.set.has(index)) {
                apart.with.push(named(shelf, there));
                apart.facts.extend(self.tables.fact(place, there, link));
            }
        }
        apart.with.sort();
        apart.with.dedup();
        apart.needs.sort();
        apart.facts.sort();
        apart
    }

    fn on_paper(&self, place: &PluginView<'_>, paper: usize) -> IndexSet {
        self.tables.sheets[place.sheet].supports[paper - 1].intersection(&place.domain)
    }

    fn runs_on(&self, seat: &ServerView<'_>) -> Option<IndexSet> {
        let running = seat.request.running.as_ref()?;
        let paper = self.tables.papers[seat.papers].iter().position(|paper| *paper == running.minecraft)?;
        Some(IndexSet::of([paper + 1]))
    }

    /// The index, in the common numbering, of a release of this server.
    pub(crate) fn index_of(&self, shelf: usize, release: &Release) -> Option<usize> {
        self.tables.projects[&self.seat(self.me).shelves[shelf].project].index_of(release)
    }

    /// Whether the server has this Paper version (given by its index) or a newer one.
    pub(crate) fn has_reached(&self, paper: usize) -> bool {
        self.choice(self.me).is_some_and(|choice| choice.paper >= paper)
    }

    /// The Paper versions that a server sees, oldest first.
    pub(crate) fn papers(&self, at: usize) -> &'c [Minecraft] {
        &self.tables.papers[self.seat(at).papers]
    }

    /// The result for the server if its request were `mine` and the whole group had taken the steps that led to it.
    /// `None` if there is no solution. Groups that are too large are not tried.
    pub(crate) fn outcome(
        &self,
        mine: &Request,
        steps: &[HintStep],
        now: Timestamp,
        meter: &BudgetMeter,
    ) -> Result<Option<SolveOutcome>, BudgetExceeded> {
        let tell = |company: Option<&GroupContext<'_, '_>>| match company {
            Some(company) => Ok(company.bare_answer(now)),
            None => outcome(|| CandidateIndex::build(self.catalog, mine, now), meter),
        };
        self.imagine(mine, steps, now, meter, tell).unwrap_or_else(|| Err(meter.gave_up()))
    }

    /// Presents the server and its group (`None` if it has no group then) under changed requests. Its own request is
    /// `mine`, and the whole group has taken the steps that led to it. `None` if the group is too large or exceeds the
    /// budget.
    pub(crate) fn imagine<T>(
        &self,
        mine: &Request,
        steps: &[HintStep],
        now: Timestamp,
        meter: &BudgetMeter,
        tell: impl FnOnce(Option<&GroupContext<'_, '_>>) -> T,
    ) -> Option<T> {
        if self.seats.len() > MOST_PROVEN || meter.is_spent() {
            return None;
        }
        let requests = self.seats.iter().enumerate().map(|(at, seat)| {
            if at == self.me {
                return mine.clone();
            }
            let mut request = seat.request.clone();
            for step in steps {
                apply_to_others(&mut request, step);
            }
            request
        });
        let requests: Vec<Request> = requests.collect();
        let fleet = Fleet::read(self.catalog, &requests, now);
        let group = fleet.groups.iter().position(|group| group.contains(&self.me))?;
        let me = fleet.groups[group].iter().position(|&at| at == self.me)?;
        if fleet.seats[group].is_empty() {
            return Some(tell(None));
        }
        // A server that was too hard to be decided with the others counts as too hard here, too.
        let hard = fleet.groups[group].iter().map(|&at| match &self.outcome.verdicts[at] {
            MemberDecision::GaveUp(gave_up) => Some(gave_up.clone()),
            MemberDecision::Alone | MemberDecision::Aside | MemberDecision::Member(_) => None,
        });
        let hard: Vec<Option<BudgetExceeded>> = hard.collect();
        let (tables, seats) = (&fleet.tables, fleet.seats[group].as_slice());
        let outcome = &exclusion::decide_within(self.catalog, tables, seats, now, meter, &hard).ok()?;
        Some(tell(Some(&GroupContext { catalog: self.catalog, tables, seats, outcome, me })))
    }

    /// The chosen releases of the server, without an explanation.
    fn bare_answer(&self, now: Timestamp) -> Option<SolveOutcome> {
        let MemberDecision::Member(choice) = self.verdict() else { return None };
        let ServerView { request, shelves, .. } = &self.seats[self.me];
        let candidates = candidates(self.catalog, request, now);
        let paper = &candidates[choice.paper - 1];
        let name = |shelf: usize| self.catalog.projects[shelves[shelf].project].name.clone();
        Some(SolveOutcome {
            paper: PaperName {
                software: request.software,
                minecraft: paper.version.minecraft.clone(),
                build: paper.build?.number,
            },
            unfollowed: choice.unfollowed.iter().map(|&(shelf, _)| name(shelf)).collect(),
            plugins: choice
                .releases
                .iter()
                .enumerate()
                .filter_map(|(shelf, release)| Some((name(shelf), (*release)?.version.clone())))
                .collect(),
        })
    }
}
