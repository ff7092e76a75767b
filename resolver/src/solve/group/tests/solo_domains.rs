//! Pure. Tests the conflicts within a group against comparing each pair of servers, and tests their cost.

use pubgrub::VersionSet;

use super::super::solo_domains::{COMPUTATIONS, solo_problem};
use super::small_fleets::{Random, Small, fleet};
use super::*;
use crate::explain::group_context::{GroupConflict, GroupContext, SoloDomain};
use crate::index::index_set::IndexSet;

/// One server compared with each other one.
fn pairwise_conflicts(
    context: &GroupContext<'_, '_>,
    ignored: &[usize],
    mine: &IndexSet,
    on_chosen_papers: bool,
) -> Vec<(usize, Vec<SoloDomain>)> {
    let (tables, me) = (context.tables, context.server);
    let solo = |at: usize, papers: IndexSet, ignored: &[usize]| {
        solo_problem(tables, context.view(at), papers, ignored, &mut problem::DomainCache::default())
    };
    let domain_of = |at: usize, solo: &problem::JointProblem<'_, '_>, plugin: usize| SoloDomain {
        server: at,
        papers: solo.papers[0].clone(),
        releases: solo.variables[solo.variable_of[0][plugin]].domain.clone(),
    };
    let Some(mine) = solo(me, mine.clone(), ignored) else { return Vec::new() };
    let mut conflicts = Vec::new();
    for plugin in (0..context.view(me).plugins.len()).filter(|plugin| !ignored.contains(plugin)) {
        let against = context.others().into_iter().filter_map(|other| {
            let papers = match &context.outcome.decisions[other] {
                MemberDecision::Member(choice) if on_chosen_papers && other < me => {
                    IndexSet::from_indexes([choice.paper_index])
                }
                MemberDecision::Member(_)
                | MemberDecision::UnsolvableAlone
                | MemberDecision::Excluded
                | MemberDecision::GaveUp(_) => context.view(other).open.clone(),
            };
            let other_solo = solo(other, papers, &[])?;
            let theirs = domain_of(other, &other_solo, context.shared_with(plugin, other)?);
            theirs.releases.is_disjoint(&domain_of(me, &mine, plugin).releases).then_some(theirs)
        });
        let against: Vec<SoloDomain> = against.collect();
        if !against.is_empty() {
            conflicts.push((plugin, std::iter::once(domain_of(me, &mine, plugin)).chain(against).collect()));
        }
    }
    conflicts
}

fn describe(domains: &[SoloDomain]) -> Vec<String> {
    domains.iter().map(|SoloDomain { server, papers, releases }| format!("{server} {papers:?} {releases:?}")).collect()
}

#[test]
fn group_conflicts_match_pairwise_check() {
    let (mut found, mut omitted) = (0, 0);
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
        for (group, views) in fleet.views.iter().enumerate() {
            for me in 0..views.len() {
                let context = decided.group_context(group, me).unwrap();
                let papers = IndexSet::from_indexes((1..=problem.catalog.paper.len()).filter(|_| random.percent(50)));
                let plugin_count = context.view(me).plugins.len();
                let ignored: Vec<usize> = (0..plugin_count).filter(|_| random.percent(15)).collect();
                for on_chosen_papers in [false, true] {
                    let expected = pairwise_conflicts(&context, &ignored, &papers, on_chosen_papers);
                    let all = context.group_conflicts(&ignored, &papers, on_chosen_papers, usize::MAX);
                    let limited = context.group_conflicts(&ignored, &papers, on_chosen_papers, 3);
                    assert_eq!((all.len(), limited.len()), (expected.len(), expected.len()), "seed {seed}");
                    for ((plugin, domains), (all, limited)) in expected.iter().zip(all.iter().zip(&limited)) {
                        let summary =
                            |conflict: &GroupConflict| (conflict.plugin, describe(&conflict.domains), conflict.more);
                        assert_eq!(summary(all), (*plugin, describe(domains), 0), "seed {seed}");
                        let first = &domains[..domains.len().min(3)];
                        assert_eq!(
                            summary(limited),
                            (*plugin, describe(first), domains.len() - first.len()),
                            "seed {seed}"
                        );
                        found += 1;
                        omitted += limited.more;
                    }
                }
            }
        }
    }
    assert!(found > 500 && omitted > 50, "too few cases: {found}, {omitted}");
}

#[test]
fn group_conflict_search_needs_few_checks_per_server() {
    let conflict = |problem: &Small| {
        let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
        let decided = fleet.decide(Budget::default());
        let before = COMPUTATIONS.get();
        let servers = fleet.views[0].len();
        let conflicts = (0..servers).map(|me| {
            let context = decided.group_context(0, me).unwrap();
            let open = context.view(me).open.clone();
            let conflicts = context.group_conflicts(&[], &open, true, 4);
            assert!(conflicts.iter().all(|conflict| conflict.domains.len() <= 4));
            conflicts.iter().map(|conflict| conflict.domains.len() - 1 + conflict.more).sum::<usize>()
        });
        (conflicts.sum::<usize>(), servers, COMPUTATIONS.get() - before)
    };
    let many = |of: &Small| {
        let copy =
            |request: &Request, at: usize| Request { server: format!("{}-{at:03}", request.server), ..request.clone() };
        let requests = of.requests.iter().flat_map(|request| (0..50).map(move |at| copy(request, at)));
        Small { requests: requests.collect(), ..of.clone() }
    };
    // Two servers that share a plugin and have no common release of it.
    let of_two = |of: &Small| of.requests.len() == 2 && groups(&of.requests).len() == 1 && conflict(of).0 > 0;
    let problem = many(&(0..2_000).map(fleet).find(of_two).unwrap());
    let (conflicts, servers, computations) = conflict(&problem);
    assert!(servers == 100 && conflicts >= 50 * 50, "{servers} servers, {conflicts} conflicts");
    assert!(computations <= 3 * servers, "{computations} computations for {servers} servers");
}
