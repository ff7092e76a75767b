//! Pure. Tests the conflicts within a group against comparing each pair of servers, and tests their cost.

use pubgrub::VersionSet;

use super::super::group_context::{GroupConflict, SoloDomain};
use super::super::solo_domains::{LOOKS, alone};
use super::small::{Random, Small, fleet};
use super::*;
use crate::solve::index_set::IndexSet;

/// One server compared with each other one.
fn one_by_one(
    company: &GroupContext<'_, '_>,
    gone: &[usize],
    mine: &IndexSet,
    settled: bool,
) -> Vec<(usize, Vec<SoloDomain>)> {
    let (tables, me) = (company.tables, company.me);
    let party = |at: usize, papers: IndexSet, gone: &[usize]| {
        alone(tables, company.seat(at), papers, gone, &mut problem::DomainCache::default())
    };
    let could = |at: usize, party: &problem::JointProblem<'_, '_>, shelf: usize| SoloDomain {
        seat: at,
        papers: party.papers[0].clone(),
        releases: party.slots[party.slot_of[0][shelf]].domain.clone(),
    };
    let Some(mine) = party(me, mine.clone(), gone) else { return Vec::new() };
    let mut clashes = Vec::new();
    for shelf in (0..company.seat(me).shelves.len()).filter(|shelf| !gone.contains(shelf)) {
        let against = company.others().into_iter().filter_map(|other| {
            let papers = match &company.outcome.verdicts[other] {
                MemberDecision::Member(choice) if settled && other < me => IndexSet::of([choice.paper]),
                MemberDecision::Member(_)
                | MemberDecision::Alone
                | MemberDecision::Aside
                | MemberDecision::GaveUp(_) => company.seat(other).open.clone(),
            };
            let them = party(other, papers, &[])?;
            let theirs = could(other, &them, company.shared(shelf, other)?);
            theirs.releases.is_disjoint(&could(me, &mine, shelf).releases).then_some(theirs)
        });
        let against: Vec<SoloDomain> = against.collect();
        if !against.is_empty() {
            clashes.push((shelf, std::iter::once(could(me, &mine, shelf)).chain(against).collect()));
        }
    }
    clashes
}

fn words(could: &[SoloDomain]) -> Vec<String> {
    could.iter().map(|SoloDomain { seat, papers, releases }| format!("{seat} {papers:?} {releases:?}")).collect()
}

#[test]
fn group_conflicts_match_pairwise_check() {
    let (mut found, mut left_out) = (0, 0);
    for seed in 0..1_500 {
        let mut problem = fleet(seed);
        let copies = problem
            .requests
            .iter()
            .map(|request| Request { server: format!("{}-2", request.server), ..request.clone() });
        problem.requests.extend(copies.collect::<Vec<_>>());
        let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
        let decided = fleet.decide(Budget::default());
        let mut random = Random::new(seed);
        for (group, seats) in fleet.seats.iter().enumerate() {
            for me in 0..seats.len() {
                let company = decided.company(group, me).unwrap();
                let papers = IndexSet::of((1..=problem.catalog.paper.len()).filter(|_| random.percent(50)));
                let shelves = company.seat(me).shelves.len();
                let gone: Vec<usize> = (0..shelves).filter(|_| random.percent(15)).collect();
                for settled in [false, true] {
                    let expected = one_by_one(&company, &gone, &papers, settled);
                    let all = company.clashes(&gone, &papers, settled, usize::MAX);
                    let few = company.clashes(&gone, &papers, settled, 3);
                    assert_eq!((all.len(), few.len()), (expected.len(), expected.len()), "seed {seed}");
                    for ((shelf, could), (all, few)) in expected.iter().zip(all.iter().zip(&few)) {
                        let told = |clash: &GroupConflict| (clash.shelf, words(&clash.could), clash.more);
                        assert_eq!(told(all), (*shelf, words(could), 0), "seed {seed}");
                        let first = &could[..could.len().min(3)];
                        assert_eq!(told(few), (*shelf, words(first), could.len() - first.len()), "seed {seed}");
                        found += 1;
                        left_out += few.more;
                    }
                }
            }
        }
    }
    assert!(found > 500 && left_out > 50, "too few to prove anything: {found}, {left_out}");
}

#[test]
fn group_conflict_search_needs_few_checks_per_server() {
    let clash = |problem: &Small| {
        let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
        let decided = fleet.decide(Budget::default());
        let before = LOOKS.get();
        let seats = fleet.seats[0].len();
        let clashes = (0..seats).map(|me| {
            let company = decided.company(0, me).unwrap();
            let open = company.seat(me).open.clone();
            let told = company.clashes(&[], &open, true, 4);
            assert!(told.iter().all(|clash| clash.could.len() <= 4));
            told.iter().map(|clash| clash.could.len() - 1 + clash.more).sum::<usize>()
        });
        (clashes.sum::<usize>(), seats, LOOKS.get() - before)
    };
    let many = |of: &Small| {
        let copy =
            |request: &Request, at: usize| Request { server: format!("{}-{at:03}", request.server), ..request.clone() };
        let requests = of.requests.iter().flat_map(|request| (0..50).map(move |at| copy(request, at)));
        Small { requests: requests.collect(), ..of.clone() }
    };
    // Two servers that share a plugin and have no common release of it.
    let of_two = |of: &Small| of.requests.len() == 2 && groups(&of.requests).len() == 1 && clash(of).0 > 0;
    let problem = many(&(0..2_000).map(fleet).find(of_two).unwrap());
    let (clashes, servers, looks) = clash(&problem);
    assert!(servers == 100 && clashes >= 50 * 50, "{servers} servers, {clashes} clashes");
    assert!(looks <= 3 * servers, "{looks} looks at {servers} servers");
}
