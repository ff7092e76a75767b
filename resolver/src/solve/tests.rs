//! Pure. Tests of the solver, against brute force and against properties that must hold on any catalog.

use std::time::Duration;

use proptest::prelude::*;

use super::provider::SolverFailure;
use super::*;
use crate::model::request::Request;
use crate::render::text;
use crate::{Budget, Limit, Resolution, Unsolvable, resolve, resolve_within};

mod changed;
pub(super) mod small_fleets;

use small_fleets::{Problem, best, problems};

/// For tests that are not about the budget, in a build without optimisation on any machine.
const UNLIMITED: Budget = Budget { steps: u64::MAX, words: u64::MAX, time: Duration::MAX };

fn solved(problem: &Problem) -> Result<Resolution, Unsolvable> {
    resolve(&problem.catalog, &problem.request, problem.now)
}

#[test]
fn group_budget_grows_with_each_further_server() {
    let single = Budget::default();
    assert_eq!(single.for_group(1), single);
    assert_eq!(single.for_group(11), Budget { steps: 220_000, words: 8_160_000, time: Duration::from_millis(2200) });
}

proptest! {
    #[test]
    fn resolution_matches_brute_force(problem in problems()) {
        let found = match solved(&problem) {
            Ok(resolution) => Some(small_fleets::named(&resolution.lock)),
            Err(Unsolvable::NoSolution(impossible)) => {
                prop_assert!(!impossible.reasons.is_empty(), "a conflict must have a reason");
                None
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        prop_assert_eq!(found, best(&problem));
    }

    #[test]
    fn answer_stays_until_next_change_instant(mut problem in problems(), hours in 0..24_i64 * 14) {
        problem.request.delay = jiff::SignedDuration::from_hours(30);
        let from = problem.now - jiff::SignedDuration::from_hours(hours);
        let next = crate::next_change(&problem.catalog, std::slice::from_ref(&problem.request), from);
        let until = next.map_or(jiff::Timestamp::MAX, |next| next - jiff::SignedDuration::from_secs(1));
        let at = |now| solved(&Problem { now, ..problem.clone() });
        prop_assert_eq!(at(from), at(until));
    }

    #[test]
    fn lock_satisfies_its_request_and_facts(problem in problems()) {
        if let Ok(resolution) = solved(&problem) {
            let Problem { catalog, request, now } = &problem;
            prop_assert_eq!(crate::lock_check::stale_file_facts(&resolution.lock, catalog, *now), Vec::new());
            prop_assert_eq!(crate::lock_check::unmet(&resolution.lock, catalog, request, *now), Ok(Vec::new()));
        }
    }

    #[test]
    fn lock_with_swapped_release_satisfies_request_like_its_pin(
        problem in problems(),
        which in any::<proptest::sample::Index>(),
        other in any::<proptest::sample::Index>(),
    ) {
        let Ok(Resolution { mut lock, .. }) = solved(&problem) else { return Ok(()) };
        if lock.plugins.is_empty() {
            return Ok(());
        }
        let position = which.index(lock.plugins.len());
        let locked = &mut lock.plugins[position];
        let project = problem.catalog.projects.iter().find(|project| project.id == locked.project_id).unwrap();
        let release = &project.releases[other.index(project.releases.len())];
        locked.release_id.clone_from(&release.id);
        locked.version.clone_from(&release.version);
        let unmet = crate::lock_check::unmet(&lock, &problem.catalog, &problem.request, problem.now).unwrap();
        // An index that contains only the locked releases has a solution exactly if they are compatible.
        let mut pinned_problem = problem.clone();
        pinned_problem.request.paper = PaperRequest::Pin { version: lock.minecraft.clone() };
        for project in &mut pinned_problem.catalog.projects {
            let mine = lock.plugins.iter().find(|locked| locked.project_id == project.id);
            project.releases.retain(|release| mine.is_some_and(|locked| locked.release_id == release.id));
        }
        let is_same = solved(&pinned_problem).is_ok_and(|resolution| small_fleets::named(&resolution.lock) == small_fleets::named(&lock));
        if unmet.is_empty() && !matches!(problem.request.paper, PaperRequest::Latest) {
            prop_assert!(is_same, "{:?}", lock.plugins);
        }
    }

    #[test]
    fn solver_fast_path_matches_search(problem in problems(), mask in any::<u8>()) {
        let Problem { catalog, request, now } = &problem;
        let candidates = CandidateIndex::build(catalog, request, *now).unwrap_or_else(|gap| panic!("{gap:?}"));
        let meter = BudgetMeter::new(Budget::default());
        let whole = SolverProblem::new(&candidates, allowed_papers(&candidates));
        let some = whole.with_mandatory(|plugin| mask >> (plugin % 8) & 1 == 1);
        let per_paper = (1..=candidates.papers.len()).map(|paper| whole.with_papers(IndexSet::from_indexes([paper])));
        for solver_problem in [whole.clone(), some].into_iter().chain(per_paper) {
            let searched = provider::solve(&candidates, &solver_problem, &meter).ok();
            prop_assert_eq!(find_solution(&candidates, &solver_problem, &meter), Ok(searched), "{:?}", solver_problem);
        }
    }

    #[test]
    fn changed_candidate_index_equals_rebuilt_one(
        problem in problems(), change in 0..changed::CHANGES.len(), which in any::<proptest::sample::Index>(),
    ) {
        let Problem { catalog, request, now } = &problem;
        let candidates = CandidateIndex::build(catalog, request, *now).unwrap_or_else(|gap| panic!("{gap:?}"));
        let mut other = problem.clone();
        if !request.plugins.is_empty() {
            changed::CHANGES[change](&mut other, which.index(request.plugins.len()));
        }
        let changed = candidates.with_request(&other.request, other.now).unwrap_or_else(|gap| panic!("{gap:?}"));
        let anew = CandidateIndex::build(catalog, &other.request, other.now).unwrap_or_else(|gap| panic!("{gap:?}"));
        changed::assert_same(&changed, &anew);
    }

    #[test]
    fn resolution_is_independent_of_input_order(problem in problems(), seed in any::<u64>()) {
        let shuffled = problem.shuffled(seed);
        match (solved(&problem), solved(&shuffled)) {
            (Ok(a), Ok(b)) => {
                prop_assert_eq!(a.lock.to_json(), b.lock.to_json());
                prop_assert_eq!(a.explanation, b.explanation);
            }
            (a, b) => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn lock_is_independent_of_unrelated_project(problem in problems()) {
        let mut more = problem.clone();
        more.catalog.projects.push(small_fleets::unrelated());
        let lock = |problem: &Problem| solved(problem).ok().map(|resolution| resolution.lock.to_json());
        prop_assert_eq!(lock(&problem), lock(&more));
    }

    #[test]
    fn resolution_of_running_versions_changes_no_release(problem in problems()) {
        if let Ok(first) = solved(&problem) {
            let mut again = problem.clone();
            again.request.running = Some(crate::model::request::Running {
                software: crate::model::software::Software::Paper,
                minecraft: first.lock.minecraft.clone(),
                build: first.lock.build,
                releases: first.lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect(),
                image: None,
                unrequested: Vec::new(),
                versions: Vec::new(),
                delisted: Vec::new(),
                java: None,
                since: None,
            });
            prop_assert_eq!(solved(&again).unwrap().lock.digest(), first.lock.digest());
        }
    }

    #[test]
    fn held_delisted_release_stays_and_is_unavailable_to_others(problem in problems(), held in any::<u8>()) {
        let Ok(first) = solved(&problem) else { return Ok(()) };
        let mut after = problem.clone();
        after.request.paper = PaperRequest::Pin { version: first.lock.minecraft.clone() };
        let is_selected = |at: usize| held >> (at % 8) & 1 == 1;
        for (at, plugin_request) in after.request.plugins.iter_mut().enumerate() {
            plugin_request.hold = is_selected(at).then_some(crate::model::request::Hold::Plugin);
        }
        let plugin_requests: Vec<_> = after.request.plugins.iter().filter(|plugin_request| plugin_request.hold.is_some()).cloned().collect();
        let is_held = |locked: &&crate::model::lock::LockedPlugin| plugin_requests.iter().any(|plugin_request| plugin_request.key == locked.key);
        let held_plugins: Vec<_> = first.lock.plugins.iter().filter(is_held).collect();
        for project in &mut after.catalog.projects {
            project.releases.retain(|release| held_plugins.iter().all(|locked| locked.release_id != release.id));
        }
        let running = crate::model::request::Running::from_lock(&first.lock).with_delisted(&first.lock, &after.catalog);
        prop_assert_eq!(running.delisted.len(), held_plugins.len());
        let another = Problem { request: Request { running: None, ..after.request.clone() }, ..after.clone() };
        after.request.running = Some(running);
        // The running releases are compatible, so there is a solution.
        let lock = solved(&after).unwrap().lock;
        for locked in held_plugins {
            prop_assert_eq!(lock.plugins.iter().find(|other| other.key == locked.key), Some(locked));
        }
        prop_assert_eq!(crate::lock_check::unmet(&lock, &after.catalog, &after.request, after.now), Ok(Vec::new()));
        if let Ok(Resolution { lock, .. }) = solved(&another) {
            prop_assert_eq!(crate::lock_check::stale_file_facts(&lock, &after.catalog, after.now), Vec::new());
        }
    }

    #[test]
    fn explanation_text_avoids_solver_terms(problem in problems()) {
        let text = match solved(&problem) {
            Ok(resolution) => text::render(&resolution.explanation, problem.now),
            Err(unsolvable) => text::render(&unsolvable.explanation(), problem.now),
        };
        for word in ["Root", "Plugin(", "derivation", "IndexSet", "Bulk", "satisf", "version set"] {
            prop_assert!(!text.contains(word), "{word} in:\n{text}");
        }
        prop_assert!(text.lines().count() < 60, "{text}");
    }
}

#[test]
fn unusable_releases_form_one_fact_of_derivation() {
    // Guards the encoding of `index_set::Index::Bulk`. If pubgrub stopped building custom facts with `singleton`, a
    // reason would cover one release only. The search would continue with the next release, and this test would count
    // them.
    let problem = small_fleets::many_betas(500);
    let candidates =
        CandidateIndex::build(&problem.catalog, &problem.request, problem.now).unwrap_or_else(|gap| panic!("{gap:?}"));
    let meter = BudgetMeter::new(Budget { steps: 200, ..UNLIMITED });
    let solver_problem = SolverProblem::new(&candidates, allowed_papers(&candidates));
    let Err(SolverFailure::NoSolution(proof)) = provider::solve(&candidates, &solver_problem, &meter) else {
        panic!("500 betas and a release for another Paper have no solution");
    };
    let mut facts = Vec::new();
    let mut open = vec![&*proof];
    while let Some(node) = open.pop() {
        match node {
            pubgrub::DerivationTree::External(pubgrub::External::Custom(_, set, why)) => {
                facts.push((set.clone(), why.clone()));
            }
            pubgrub::DerivationTree::External(_) => {}
            pubgrub::DerivationTree::Derived(derived) => open.extend([&*derived.cause1, &*derived.cause2]),
        }
    }
    facts.dedup();
    assert_eq!(facts.len(), 1, "{facts:?}");
    assert_eq!(facts[0].0.members(0, 600).count(), 500);
}

#[test]
fn changed_candidate_index_reuses_unchanged_parts() {
    let problem = small_fleets::independent_plugins();
    let Problem { catalog, request, now } = &problem;
    let candidates = CandidateIndex::build(catalog, request, *now).unwrap_or_else(|gap| panic!("{gap:?}"));
    let mut other = request.clone();
    other.plugins[0].delay = jiff::SignedDuration::ZERO;
    let changed = candidates.with_request(&other, *now).unwrap_or_else(|gap| panic!("{gap:?}"));
    let is_reused = |at: usize| std::rc::Rc::ptr_eq(&candidates.plugins[at], &changed.plugins[at]);
    assert_eq!([is_reused(0), is_reused(1)], [false, true]);
}

#[test]
fn search_beyond_step_budget_reports_exceeded_budget() {
    let problem = small_fleets::many_betas(5);
    let answer = resolve_within(&problem.catalog, &problem.request, problem.now, Budget { steps: 3, ..UNLIMITED });
    // Too early for a conflict.
    let gave_up = BudgetExceeded { steps: 3, limit: Limit::Steps, clashing: Vec::new() };
    assert_eq!(answer.unwrap_err(), Unsolvable::GaveUp(gave_up));
}

#[test]
fn search_beyond_memory_budget_stops_after_few_steps() {
    let problem = small_fleets::ladder(60);
    let resolve_with = |budget| resolve_within(&problem.catalog, &problem.request, problem.now, budget);
    assert!(matches!(resolve_with(UNLIMITED), Err(Unsolvable::NoSolution(_))));
    let Err(Unsolvable::GaveUp(BudgetExceeded { steps, limit: Limit::Memory, .. })) =
        resolve_with(Budget { words: 100, ..UNLIMITED })
    else {
        panic!("two plugins with 60 conflicting releases must exceed 100 words");
    };
    assert!(steps < 1_000, "{steps}");
}

#[test]
fn search_beyond_time_budget_reports_exceeded_budget() {
    let problem = small_fleets::ladder(60);
    let resolve_with =
        |time| resolve_within(&problem.catalog, &problem.request, problem.now, Budget { time, ..UNLIMITED });
    assert!(matches!(resolve_with(UNLIMITED.time), Err(Unsolvable::NoSolution(_))));
    let Err(Unsolvable::GaveUp(BudgetExceeded { steps: 0, limit: Limit::Time, clashing })) =
        resolve_with(Duration::ZERO)
    else {
        panic!("a search without time must end before its first step");
    };
    assert_eq!(clashing, [""; 0]);
    // The search has begun as soon as there is time for a first step.
    let more = (0..20).map(|power| resolve_with(Duration::from_micros(100 << power)));
    let begun =
        more.map(Result::unwrap_err).find(|why| !matches!(why, Unsolvable::GaveUp(BudgetExceeded { steps: 0, .. })));
    let Some(Unsolvable::GaveUp(BudgetExceeded { steps: 1.., limit: Limit::Time, .. })) = begun else {
        panic!("the time limit must end a long search: {begun:?}");
    };
}

#[test]
fn exceeded_budget_names_most_frequent_clashes() {
    let problem = small_fleets::ladder(60);
    for steps in [200, 500] {
        let budget = Budget { steps, ..UNLIMITED };
        let Err(Unsolvable::GaveUp(mut gave_up)) =
            resolve_within(&problem.catalog, &problem.request, problem.now, budget)
        else {
            panic!("60 conflicting releases must take more than {steps} steps");
        };
        gave_up.clashing.sort();
        assert_eq!(
            gave_up,
            BudgetExceeded { steps, limit: Limit::Steps, clashing: vec!["A".to_owned(), "B".to_owned()] }
        );
    }
}
