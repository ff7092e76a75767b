//! Pure. Tests of the joint solver, against brute force and against properties that must hold for any fleet.

use std::collections::BTreeMap;

use super::*;
use crate::explanation::{Explanation, Hint, HintsLeftOut};
use crate::model::budget::Limit;
use crate::model::request::VersionRequest;
use crate::render::text;
use crate::solve::BudgetMeter;
use crate::{Resolution, Unsolvable, resolve_fleet};

mod brute_force;
mod delisted;
#[path = "../../../tests/support/saved_query.rs"]
mod saved_query;
mod small_fleets;
mod solo_domains;

use small_fleets::{Random, fleet};

/// Seeds of one run. All of them take a few seconds without optimisation.
const SEEDS: u64 = 4_000;

fn decided(requests: &[Request], catalog: &Catalog, now: Timestamp) -> Vec<(String, brute_force::Answer)> {
    let fleet = Fleet::read(catalog, requests, now);
    let decided = fleet.decide(Budget::default());
    let mut answers = Vec::new();
    for (group, views) in fleet.views.iter().enumerate() {
        let Some(outcome) = &decided.outcomes[group] else { continue };
        for (at, decision) in outcome.decisions.iter().enumerate() {
            let answer = match decision {
                MemberDecision::UnsolvableAlone => brute_force::Answer::NoSolution,
                MemberDecision::Excluded if decided.shares_older_release(group, at) => {
                    brute_force::Answer::BehindRunning
                }
                MemberDecision::Excluded => brute_force::Answer::Excluded,
                MemberDecision::GaveUp(_) => panic!("a small fleet must stay within its budget"),
                MemberDecision::Member(choice) => {
                    let mut releases: Vec<String> =
                        choice.releases.iter().flatten().map(|release| release.id.clone()).collect();
                    releases.sort();
                    brute_force::Answer::Runs(
                        fleet.tables.papers[views[at].papers][choice.paper_index - 1].to_string(),
                        releases,
                    )
                }
            };
            answers.push((decided.name(group, at), answer));
        }
    }
    answers
}

#[test]
fn group_answer_matches_brute_force() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let problem = fleet(seed);
        let groups = groups(&problem.requests);
        let answers: BTreeMap<_, _> = decided(&problem.requests, &problem.catalog, problem.now).into_iter().collect();
        let expected: BTreeMap<_, _> = groups
            .iter()
            .filter(|group| group.len() > 1)
            .flat_map(|group| brute_force::group(&problem, group))
            .collect();
        assert_eq!(answers, expected, "seed {seed}\n\n{}", problem.to_saved());
        for answer in answers.values() {
            *counts.entry(answer.kind()).or_default() += 1;
        }
    }
    for (kind, least) in [("alone", 100), ("aside", 100), ("runs", 100), ("below", 50)] {
        let count = counts.get(kind).copied().unwrap_or_default();
        assert!(count > least, "too few cases: {counts:?}");
    }
}

#[test]
fn fleet_answers_are_explainable_and_independent_of_input_order() {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..250 {
        let problem = fleet(seed);
        let answers = resolve_fleet(&problem.catalog, &problem.requests, problem.now, Budget::default());
        let mut random = Random::new(seed);
        let mut shuffled = problem.clone();
        shuffled.shuffle(&mut random);
        let again = resolve_fleet(&shuffled.catalog, &shuffled.requests, problem.now, Budget::default());
        assert_eq!(answers, again, "seed {seed}");
        for (server, answer) in &answers {
            let explanation = match answer {
                Ok(resolution) => {
                    assert_eq!(resolution.lock.server, *server);
                    resolution.explanation.clone()
                }
                Err(unsolvable) => unsolvable.explanation(),
            };
            let text = text::render(&explanation, problem.now);
            for word in ["Variable", "GroupPackage", "IndexSet", "Plugin(", "satisf", "version set"] {
                assert!(!text.contains(word), "{word} in:\n{text}");
            }
            let json = serde_json::to_string(&explanation).unwrap();
            assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), explanation, "seed {seed}");
            if text.contains("the same version on all servers") {
                *outcomes.entry(if answer.is_ok() { "yes" } else { "no" }).or_default() += 1;
            }
        }
    }
    assert!(outcomes.values().all(|&count| count > 3) && outcomes.len() == 2, "{outcomes:?}");
}

#[test]
fn single_server_answer_matches_fleet_and_peers_omit_excluded() {
    let mut excluded = 0;
    for seed in 0..200 {
        let mut problem = fleet(seed);
        problem.shuffle(&mut Random::new(seed));
        let decisions = decided(&problem.requests, &problem.catalog, problem.now);
        let excluded_servers: Vec<&String> =
            decisions.iter().filter(|(_, answer)| answer.kind() != "runs").map(|(server, _)| server).collect();
        let mut together: Vec<&str> = problem.requests.iter().map(|request| request.server.as_str()).collect();
        together.retain(|server| !excluded_servers.iter().any(|excluded_server| excluded_server == server));
        together.sort_unstable();
        excluded += excluded_servers.len();

        let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
        let decided = fleet.decide(Budget::default());
        assert_eq!(decided.solved_together(), together, "seed {seed}");
        for (server, answer) in decided.resolutions() {
            assert_eq!(decided.resolution(&server), Some(answer), "seed {seed}");
        }
        assert_eq!(decided.resolution("games/nobody"), None);
    }
    assert!(excluded > 20, "{excluded}");
}

#[test]
fn group_fast_path_matches_search() {
    let mut found = 0;
    for seed in 0..2_000 {
        let problem = fleet(seed);
        let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
        for views in fleet.views.iter().filter(|views| views.len() > 1 && views.iter().all(|view| !view.gap)) {
            let joint = problem::JointProblem::new(&fleet.tables, views.iter().collect());
            let meter = BudgetMeter::new(Budget::default());
            let searched = provider::search(&joint, &meter).unwrap();
            assert_eq!(provider::solve(&joint, &meter).unwrap(), searched, "seed {seed}\n\n{}", problem.to_saved());
            found += usize::from(searched.is_some());
        }
    }
    assert!(found > 200, "{found}");
}

#[test]
fn group_of_one_matches_single_server() {
    for seed in 0..60 {
        let problem = fleet(seed);
        for request in &problem.requests {
            let one = std::slice::from_ref(request);
            let answers = resolve_fleet(&problem.catalog, one, problem.now, Budget::default());
            let solo = crate::resolve(&problem.catalog, request, problem.now);
            assert_eq!(answers, [(request.server.clone(), solo)], "seed {seed}");
        }
    }
}

#[test]
fn group_answer_is_independent_of_other_groups() {
    for seed in 0..60 {
        let (one, other) = (fleet(seed), fleet(seed + 10_000));
        let mut requests = one.requests.clone();
        // The objects have the same names, but are in another namespace.
        requests.extend(other.requests.iter().cloned().map(|mut request| {
            request.server = request.server.replace("games/", "work/");
            request
        }));
        let both = resolve_fleet(&one.catalog, &requests, one.now, Budget::default());
        let solo = resolve_fleet(&one.catalog, &one.requests, one.now, Budget::default());
        let both: Vec<_> = both.into_iter().filter(|(server, _)| server.starts_with("games/")).collect();
        assert_eq!(both, solo, "seed {seed}");
    }
}

#[test]
fn group_members_share_one_release_of_common_plugins() {
    let mut shared_count = 0;
    for seed in 0..500 {
        let problem = fleet(seed);
        let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
        let decided = fleet.decide(Budget::default());
        let mut runs: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for (group, servers) in fleet.groups.iter().enumerate() {
            let Some(outcome) = &decided.outcomes[group] else { continue };
            for (at, &position) in servers.iter().enumerate() {
                let MemberDecision::Member(choice) = &outcome.decisions[at] else { continue };
                let left: Vec<usize> = choice.left_behind.iter().map(|(plugin, _)| *plugin).collect();
                let plugin_requests = problem.requests[position].plugins.iter();
                for plugin_request in
                    plugin_requests.filter(|plugin_request| plugin_request.version == VersionRequest::Latest)
                {
                    let plugin = fleet.views[group][at]
                        .plugins
                        .iter()
                        .position(|plugin| problem.catalog.projects[plugin.project].key == plugin_request.key)
                        .unwrap();
                    if left.contains(&plugin) {
                        continue;
                    }
                    let id = choice.releases[plugin].unwrap().id.clone();
                    let key = (plugin_request.object.as_str(), plugin_request.key.project.as_str());
                    shared_count += usize::from(runs.contains_key(&key));
                    assert_eq!(*runs.entry(key).or_insert_with(|| id.clone()), id, "seed {seed}");
                }
            }
        }
    }
    assert!(shared_count > 300, "{shared_count}");
}

/// The hints for lobby in a group of this size, and the reason why not all hints were tried. The other servers have the
/// same requests as the first of two.
fn hints_for_group(two: &small_fleets::Small, servers: usize) -> (Vec<Hint>, Option<HintsLeftOut>) {
    let mut problem = two.clone();
    let first = problem.requests.remove(0);
    let copy = |number: usize| Request { server: format!("{}-{number:02}", first.server), ..first.clone() };
    problem.requests.extend((1..servers).map(copy));
    let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
    match fleet.decide(Budget::default()).resolution("games/lobby") {
        Some(Err(Unsolvable::NoSolution(impossible))) => {
            let text = text::render(&Explanation::Impossible((*impossible).clone()), problem.now);
            assert_eq!(
                text.contains("the group of 65 servers is too large"),
                impossible.hints_left_out.is_some(),
                "{text}"
            );
            (impossible.hints, impossible.hints_left_out)
        }
        Some(_) | None => (Vec::new(), None),
    }
}

#[test]
fn group_hints_are_tried_jointly_up_to_64_servers() {
    let has_excluded = |problem: &small_fleets::Small| {
        let answers = decided(&problem.requests, &problem.catalog, problem.now);
        matches!(&answers[..], [(_, brute_force::Answer::Runs(..)), (_, brute_force::Answer::Excluded)])
            && !hints_for_group(problem, 3).0.is_empty()
    };
    let two = (0..2_000).map(fleet).find(has_excluded).unwrap();
    assert_eq!(hints_for_group(&two, 3).1, None);
    assert_eq!(hints_for_group(&two, 64), hints_for_group(&two, 3));
    let skipped = HintsLeftOut::GroupTooLarge { servers: 65 };
    assert_eq!(hints_for_group(&two, 65), (Vec::new(), Some(skipped)), "the reason must be reported");
}

/// Three servers that have a common solution.
fn compatible_servers() -> small_fleets::Small {
    let all_run = |problem: &small_fleets::Small| {
        let answers = decided(&problem.requests, &problem.catalog, problem.now);
        answers.len() == 3 && answers.iter().all(|(_, answer)| answer.kind() == "runs")
    };
    (0..2_000).map(fleet).find(all_run).unwrap()
}

#[test]
fn group_exceeding_budget_reports_it() {
    let problem = compatible_servers();
    let budget = Budget { steps: 1, ..Budget::default() };
    let answers = resolve_fleet(&problem.catalog, &problem.requests, problem.now, budget);
    for (server, answer) in answers {
        let gave_up = BudgetExceeded { steps: 1, limit: Limit::Steps, clashing: Vec::new() };
        assert_eq!(answer, Err(Unsolvable::GaveUp(gave_up)), "{server}");
    }
    let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
    let decided = fleet.decide(budget);
    for request in &problem.requests {
        for paper in &problem.catalog.paper {
            let why = decided.why_not(&request.server, &paper.minecraft).unwrap();
            assert!(
                why.as_ref().is_ok_and(|why| !why.possible) || matches!(why, Err(Unsolvable::GaveUp(_))),
                "{why:?}"
            );
        }
    }
}

#[test]
fn server_exceeding_budget_does_not_block_its_group() {
    let mut problem = compatible_servers();
    let budget = Budget { steps: 300, ..Budget::default() };
    let hard_server = problem.requests[0].server.clone();
    let others: Vec<Request> =
        problem.requests.iter().filter(|request| request.server != hard_server).cloned().collect();
    let without = resolve_fleet(&problem.catalog, &others, problem.now, budget);
    assert!(without.iter().all(|(_, answer)| answer.is_ok()), "the others must be solvable: {without:?}");

    small_fleets::add_ladder(&mut problem, 0);
    let solo = resolve_fleet(&problem.catalog, &problem.requests[..1], problem.now, budget);
    assert!(matches!(solo[..], [(_, Err(Unsolvable::GaveUp(_)))]), "{solo:?}");

    let answers = resolve_fleet(&problem.catalog, &problem.requests, problem.now, budget);
    for (server, answer) in answers {
        if server == hard_server {
            let Err(Unsolvable::GaveUp(gave_up)) = answer else { panic!("{answer:?}") };
            assert!(gave_up.clashing.iter().any(|name| name.starts_with("LADDER-")), "{gave_up:?}");
        } else {
            let lock = |answers: &[(String, Result<Resolution, Unsolvable>)]| {
                let (_, answer) = answers.iter().find(|(name, _)| *name == server)?;
                Some(answer.as_ref().ok()?.lock.clone())
            };
            assert_eq!(answer.ok().map(|answer| answer.lock), lock(&without), "{server}");
        }
    }
}
