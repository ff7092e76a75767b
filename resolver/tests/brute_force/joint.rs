//! Pure. Compares two servers that share plugins with strategy `latest` with exhaustive search: which servers are
//! solved together, and the result.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::Timestamp;
use resolver::catalog::{Catalog, Release};
use resolver::request::{PaperRequest, Request, Running, VersionRequest};
use resolver::software::Software;
use resolver::version::Minecraft;

use super::generate::{self, Dice};
use super::oracle::{self, Open, Outcome, Question};
use super::problem::Problem;
use super::rules::{Book, age, all_that_runs, place_of, runs};
use super::saved::saved;
use super::{software, written};

/// Two servers of one namespace, by name.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) catalog: Catalog,
    pub(crate) requests: [Request; 2],
    pub(crate) now: Timestamp,
}

impl Pair {
    /// Shrinks the pair while `fails` holds, by removing parts one by one.
    pub(crate) fn shrunk(self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut smallest = self;
        while let Some(smaller) = smallest.smaller().into_iter().find(&fails) {
            smallest = smaller;
        }
        smallest
    }

    /// All pairs with one part less. The catalog is shared.
    fn smaller(&self) -> Vec<Self> {
        let of = |seat: usize| {
            let Self { catalog, requests, now } = self.clone();
            let alone = Problem { catalog, request: requests[seat].clone(), now };
            alone.smaller().into_iter().map(move |Problem { catalog, request, now }| {
                let mut requests = requests.clone();
                requests[seat] = request;
                Self { catalog, requests, now }
            })
        };
        let mut all: Vec<Self> = of(0).collect();
        all.extend(of(1).filter(|pair| pair.catalog == self.catalog));
        all
    }

    /// The pair as a file for `tests/scenarios`, and as input for `resolver explain --problem FILE`.
    pub(crate) fn to_scenario(&self, name: &str) -> String {
        let scenario = written::scenario(name, &self.catalog, &self.requests, self.now);
        format!("{scenario}\n\n{}", saved(&self.catalog, &self.requests, self.now))
    }
}

/// Tests a property on the pairs of these seeds. A failing pair is shrunk and printed.
pub(crate) fn always(seeds: Range<u64>, property: impl Fn(&Pair) -> Result<(), String>) {
    for seed in seeds {
        let Some(mut pair) = pair(seed) else { continue };
        // Unverified builds are verified first.
        software::see_all(&mut pair.catalog);
        if let Err(fault) = property(&pair) {
            let small = pair.shrunk(|smaller| property(smaller).is_err());
            let fault = property(&small).err().unwrap_or(fault);
            panic!("two servers of seed {seed}: {fault}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
        }
    }
}

/// The pair of a seed. `None` if its servers share no plugin.
pub(crate) fn pair(seed: u64) -> Option<Pair> {
    let Problem { catalog, mut request, now } = generate::problem(seed);
    let mut dice = Dice::new(seed ^ 0x5EED);
    for wish in &mut request.plugins {
        if wish.version == VersionRequest::Auto && dice.chance(70) {
            wish.version = VersionRequest::Latest;
        }
    }
    let mut other = request.clone();
    "games/arena".clone_into(&mut other.server);
    other.plugins.retain(|_| dice.chance(85));
    let paper = dice.one(&catalog.paper);
    other.paper = match dice.below(20) {
        0..9 => PaperRequest::Auto,
        9..13 => PaperRequest::Latest,
        _ => PaperRequest::Pin { version: paper.minecraft.clone() },
    };
    other.floor = None;
    other.unmanaged.clear();
    other.image = None;
    other.running = dice.chance(60).then(|| Running {
        software: Software::Paper,
        minecraft: paper.minecraft.clone(),
        build: paper.builds[0].number,
        releases: catalog.projects.iter().map(|project| dice.one(&project.releases).id.clone()).collect(),
        unasked: Vec::new(),
        versions: Vec::new(),
        lost: Vec::new(),
        image: None,
        java: None,
        since: None,
    });
    let shared = other.plugins.iter().any(|wish| wish.version == VersionRequest::Latest);
    shared.then_some(Pair { catalog, requests: [other, request], now })
}

/// The expected outcomes of two servers, in their order. `None` if data is missing, which is tested with one server.
pub(crate) fn expected(pair: &Pair) -> Option<[Outcome; 2]> {
    let Pair { catalog, requests, now } = pair;
    let book = |at: usize| Book::open(catalog, &requests[at], *now).ok();
    let books = [book(0)?, book(1)?];
    // Excluded plugins concern only their own server, and the other server ignores them.
    let questions = [0, 1].map(|at: usize| Question::of(&books[at]));
    let search = |seats, papers, within| Search { pair, books: &books, questions: &questions, seats, papers, within };
    let none = BTreeMap::new();
    let both = search(&[0, 1], [None, None], &none);
    if let Some(found) = both.best() {
        return Some([0, 1].map(|seat| both.outcome(&found, seat)));
    }
    // Both have the same number of conflicting servers, so the first by name wins.
    let alone = [0, 1].map(|at: usize| oracle::best(&books[at]));
    let able = [0, 1].map(|seat: usize| matches!(alone[seat], Outcome::Chosen { .. }));
    let Some(taken) = (0..2).find(|&seat| able[seat]) else { return Some(alone) };
    let aside = 1 - taken;
    let only = [taken];
    let free = search(&only, [None, None], &none).best()?;
    let mut papers = [None, None];
    papers[taken] = Some(free.papers[taken]);
    let bounds = both.bounds(aside);
    let heeded = search(&only, papers, &bounds).best();
    let found = heeded.unwrap_or(free);
    let mut outcomes = alone;
    outcomes[taken] = both.outcome(&found, taken);
    if able[aside] && !both.is_below(aside, taken, &found) {
        outcomes[aside] = Outcome::Nothing;
    }
    Some(outcomes)
}

/// Whether both servers can be solved together: on these Papers, if given, and with only these releases of shared
/// plugins, by the place of their project. `None` if that is unknown.
pub(crate) fn go_together(
    pair: &Pair,
    papers: [Option<&Minecraft>; 2],
    within: &BTreeMap<usize, BTreeSet<&str>>,
) -> Option<bool> {
    let Pair { catalog, requests, now } = pair;
    let book = |at: usize| Book::open(catalog, &requests[at], *now).ok();
    let books = [book(0)?, book(1)?];
    let mut places = [None, None];
    for seat in (0..2).filter(|&seat| papers[seat].is_some()) {
        places[seat] = Some(books[seat].papers.iter().position(|paper| Some(paper.minecraft) == papers[seat])?);
    }
    let questions = [0, 1].map(|at: usize| Question::of(&books[at]));
    let both = Search { pair, books: &books, questions: &questions, seats: &[0, 1], papers: places, within };
    Some(both.best().is_some())
}

/// One plugin on one server, or on both.
struct Slot {
    /// The place of the member for each server.
    at: [Option<usize>; 2],
}

impl Slot {
    fn take<'a>(&self, choice: Option<&'a Release>, releases: &mut [Vec<Option<&'a Release>>; 2]) {
        for (member, releases) in self.at.iter().zip(releases) {
            if let Some(member) = *member {
                releases[member] = choice;
            }
        }
    }
}

struct Search<'s, 'a> {
    pair: &'a Pair,
    books: &'s [Book<'a>; 2],
    questions: &'s [Question<'a>; 2],
    seats: &'s [usize],
    /// Papers that are fixed.
    papers: [Option<usize>; 2],
    /// The allowed ids of shared plugins, by the place of their project.
    within: &'s BTreeMap<usize, BTreeSet<&'a str>>,
}

struct Found<'a> {
    papers: [usize; 2],
    releases: [Vec<Option<&'a Release>>; 2],
}

impl<'a> Search<'_, 'a> {
    fn outcome(&self, found: &Found<'a>, seat: usize) -> Outcome {
        let unfollowed = self.questions[seat].unfollowed.clone();
        oracle::outcome(&self.books[seat], found.papers[seat], &found.releases[seat], unfollowed)
    }

    /// The objects that demand one release for all servers, for a member of a server. A server that holds its running
    /// release does not count, nor does one that excludes the plugin.
    fn latest(&self, seat: usize, member: usize) -> BTreeSet<&'a str> {
        let Pair { catalog, requests, .. } = self.pair;
        let one = &self.books[seat].members[member];
        let of_it = || requests[seat].plugins.iter().filter(|wish| place_of(catalog, &wish.key) == Some(one.place));
        let runs_one = all_that_runs(&requests[seat], one.project).next().is_some();
        let holds = runs_one && of_it().any(|wish| wish.hold.is_some());
        if holds || self.questions[seat].open[member] != Open::Must {
            return BTreeSet::new();
        }
        of_it().filter(|wish| wish.version == VersionRequest::Latest).map(|wish| wish.object.as_str()).collect()
    }

    /// The member of the other server that must have the same release.
    fn partner(&self, seat: usize, member: usize) -> Option<usize> {
        let place = self.books[seat].members[member].place;
        let other = self.books[1 - seat].members.iter().position(|member| member.place == place)?;
        (!self.latest(seat, member).is_disjoint(&self.latest(1 - seat, other))).then_some(other)
    }

    /// All plugins, in their order of priority.
    fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for &seat in self.seats {
            for (member, one) in self.books[seat].members.iter().enumerate() {
                let partner = self.partner(seat, member).filter(|_| self.seats.len() == 2);
                if partner.is_some() && seat == 1 {
                    continue;
                }
                let mut at = [None, None];
                at[seat] = Some(member);
                at[1 - seat] = partner;
                let rank = |seat: usize, member: usize, objects: &[&'a str]| {
                    (objects.is_empty(), objects.first().copied().unwrap_or_default(), seat, member)
                };
                let own = rank(seat, member, &one.objects);
                let least = partner
                    .map_or(own, |other| own.min(rank(1 - seat, other, &self.books[1 - seat].members[other].objects)));
                slots.push((least, Slot { at }));
            }
        }
        slots.sort_by_key(|(rank, _)| *rank);
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    fn best(&self) -> Option<Found<'a>> {
        let slots = self.slots();
        let open = |seat: usize| -> Vec<usize> {
            let settled = |paper: &usize| self.papers[seat].is_none_or(|settled| settled == *paper);
            self.questions[seat].papers.iter().copied().filter(settled).collect()
        };
        let second = |seat: usize| if self.seats.contains(&seat) { open(seat) } else { vec![0] };
        for first in second(0) {
            for &other in &second(1) {
                let papers = [first, other];
                let mut releases = [0, 1].map(|seat| vec![None; self.books[seat].members.len()]);
                if self.deeper(&slots, 0, papers, &mut releases) {
                    return Some(Found { papers, releases });
                }
            }
        }
        None
    }

    fn deeper(
        &self,
        slots: &[Slot],
        at: usize,
        papers: [usize; 2],
        releases: &mut [Vec<Option<&'a Release>>; 2],
    ) -> bool {
        let Some(slot) = slots.get(at) else { return true };
        let own = slot.at.iter().position(Option::is_some).unwrap();
        let place = slot.at[own].unwrap();
        let member = &self.books[own].members[place];
        let may = |release: &&'a Release| {
            let bound = self.within.get(&member.place).filter(|_| !self.latest(own, place).is_empty());
            let within = bound.is_none_or(|ids| ids.contains(release.id.as_str()));
            within
                && (0..2).all(|seat| slot.at[seat].is_none_or(|member| self.suits(seat, member, release, papers[seat])))
        };
        let absent = (self.questions[own].open[place] == Open::May).then_some(None);
        let newest_first = member.usable.iter().rev().copied().filter(may).map(Some);
        for choice in absent.into_iter().chain(newest_first) {
            slot.take(choice, releases);
            let decided = &slots[..=at];
            if (0..2).all(|seat| slot.at[seat].is_none_or(|_| self.holds(seat, decided, &releases[seat])))
                && self.deeper(slots, at + 1, papers, releases)
            {
                return true;
            }
        }
        slot.take(None, releases);
        false
    }

    fn suits(&self, seat: usize, member: usize, release: &Release, paper: usize) -> bool {
        let book = &self.books[seat];
        let usable = book.members[member].usable.iter().any(|usable| usable.id == release.id);
        usable && self.questions[seat].suits(book, member, release, paper)
    }

    /// Whether all decided releases of a server are compatible.
    fn holds(&self, seat: usize, decided: &[Slot], releases: &[Option<&'a Release>]) -> bool {
        let members: Vec<usize> = decided.iter().filter_map(|slot| slot.at[seat]).collect();
        members.iter().all(|&asking| {
            let Some(release) = releases[asking] else { return true };
            let member = &self.books[seat].members[asking];
            let place = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
            let asks = member.asks[place].iter().filter(|ask| members.contains(&ask.of));
            asks.into_iter().all(|ask| match releases[ask.of] {
                None => ask.or_absent,
                Some(there) => ask.one_of.contains(there.id.as_str()),
            })
        })
    }

    /// The releases of shared plugins that would work on an excluded server: the running ones, and the usable ones that
    /// are listed for its running Paper. Empty for a server without a running version set.
    fn bounds(&self, aside: usize) -> BTreeMap<usize, BTreeSet<&'a str>> {
        let (book, request) = (&self.books[aside], &self.pair.requests[aside]);
        let mut bounds = BTreeMap::new();
        let Some(running) = &request.running else { return bounds };
        let paper = book.papers.iter().position(|paper| *paper.minecraft == running.minecraft);
        for (at, member) in book.members.iter().enumerate().filter(|(at, _)| self.partner(aside, *at).is_some()) {
            let runs = all_that_runs(request, member.project);
            let listed = member
                .usable
                .iter()
                .copied()
                .filter(|release| paper.is_some_and(|paper| book.listed(at, release, paper)));
            let ids: BTreeSet<&str> = runs.chain(listed).map(|release| release.id.as_str()).collect();
            if !ids.is_empty() {
                bounds.insert(member.place, ids);
            }
        }
        bounds
    }

    /// Whether a shared plugin is older on the other server than the running release of the excluded server, and too
    /// old for it.
    fn is_below(&self, aside: usize, taken: usize, found: &Found<'a>) -> bool {
        (0..self.books[aside].members.len()).any(|at| {
            let Some(chosen) = self.partner(aside, at).and_then(|other| found.releases[taken][other]) else {
                return false;
            };
            let member = &self.books[aside].members[at];
            let newest = member.usable.iter().rev().find(|release| runs(&self.pair.requests[aside], release));
            let can = member.usable.iter().any(|usable| usable.id == chosen.id);
            !can && newest.is_some_and(|newest| age(chosen) < age(newest))
        })
    }
}
