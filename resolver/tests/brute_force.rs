//! Pure. Compares the solver with exhaustive search on random small problems: whether a solution exists, and which one
//! is best.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed setup must fail the test")]

use std::collections::BTreeMap;

use resolver::explanation::Explanation;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet, resolve_within};

#[path = "brute_force/blockers.rs"]
mod blockers;
#[path = "support/checker.rs"]
mod checker;
#[path = "brute_force/coverage.rs"]
mod coverage;
#[path = "brute_force/delisted.rs"]
mod delisted;
#[path = "support/dependencies.rs"]
mod dependencies;
#[path = "brute_force/generate.rs"]
mod generate;
#[path = "brute_force/group.rs"]
mod group;
#[path = "brute_force/group_hints.rs"]
mod group_hints;
#[path = "brute_force/groups.rs"]
mod groups;
#[path = "brute_force/identified_jars.rs"]
mod identified_jars;
#[path = "brute_force/jar_contents.rs"]
mod jar_contents;
#[path = "support/jar_identification.rs"]
mod jar_identification;
#[path = "brute_force/jars.rs"]
mod jars;
#[path = "support/loading.rs"]
mod loading;
#[path = "support/membership.rs"]
mod membership;
#[path = "support/name_rules.rs"]
mod name_rules;
#[path = "brute_force/oracle.rs"]
mod oracle;
#[path = "support/paper_rules.rs"]
mod paper_rules;
#[path = "brute_force/problem.rs"]
mod problem;
#[path = "brute_force/shared_plugin.rs"]
mod shared_plugin;
#[path = "brute_force/side_facts.rs"]
mod side_facts;
#[path = "support/unmanaged_jars.rs"]
mod unmanaged_jars;
#[path = "brute_force/why_not_release.rs"]
mod why_not_release;
#[path = "brute_force/why_older.rs"]
mod why_older;

#[path = "brute_force/blockers_complete.rs"]
mod blockers_complete;
#[path = "brute_force/processes.rs"]
mod processes;
#[path = "brute_force/projects.rs"]
mod projects;
#[path = "brute_force/properties.rs"]
mod properties;
#[path = "brute_force/rare_features.rs"]
mod rare_features;
#[path = "support/raw_scenario.rs"]
mod raw_scenario;
#[path = "brute_force/ready.rs"]
mod ready;
#[path = "brute_force/reasons.rs"]
mod reasons;
#[path = "brute_force/release_delay.rs"]
mod release_delay;
#[path = "brute_force/requests.rs"]
mod requests;
#[path = "support/rules.rs"]
mod rules;
#[path = "support/saved_query.rs"]
mod saved_query;
#[path = "brute_force/software.rs"]
mod software;
#[path = "brute_force/sources.rs"]
mod sources;
#[path = "support/texts.rs"]
mod texts;
#[path = "brute_force/to_scenario.rs"]
mod to_scenario;

use rules::ServerRules;

use coverage::Coverage;
use group::Pair;
use oracle::Outcome;
use problem::Problem;

/// Whether this run tests all problems, as `make test-all` does. `make test` tests a part of them.
fn is_thorough() -> bool {
    std::env::var_os("NIGHTSHIFT_THOROUGH").is_some()
}

/// Number of problems that one run compares with exhaustive search. 8,000 take one core a minute and a half without
/// optimization.
fn problems() -> u64 {
    if is_thorough() { 100_000 } else { 8_000 }
}

/// The whole number in a thorough run, a quarter of it in other runs.
fn scaled_to_run(all: u64) -> u64 {
    if is_thorough() { all } else { all / 4 }
}

/// Minimum number of cases of a kind in this run. `all` is the minimum of a thorough run. Other runs test a quarter of
/// the problems and need an eighth of `all`, because small numbers vary more. Rare kinds must occur only in a thorough
/// run.
fn required_count(all: u64) -> u64 {
    if is_thorough() { all } else { all / 8 }
}

/// The first seed of a run. `NIGHTSHIFT_SEED` shifts all seeds, so that other problems are generated.
fn first_seed() -> u64 {
    std::env::var("NIGHTSHIFT_SEED").map_or(0, |seed| seed.parse().expect("NIGHTSHIFT_SEED must be a number"))
}

fn outcome(result: &Result<Resolution, Unsolvable>) -> Outcome {
    match result {
        Ok(Resolution { lock, explanation }) => {
            let Explanation::Solved(solved) = explanation else { panic!("expected a solved explanation") };
            let mut releases: Vec<String> = lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect();
            releases.sort();
            let left_behind: BTreeMap<String, Option<String>> =
                solved.left_behind.iter().map(|plugin| (plugin.name.clone(), plugin.stays.clone())).collect();
            Outcome::Chosen { minecraft: lock.minecraft.to_string(), build: lock.build, releases, left_behind }
        }
        Err(Unsolvable::NoSolution(impossible)) => {
            assert!(!impossible.reasons.is_empty(), "a conflict must have a reason");
            Outcome::NoSolution
        }
        Err(Unsolvable::Unanswerable(_)) => Outcome::Unknown,
        Err(Unsolvable::GaveUp(gave_up)) => panic!("{gave_up}"),
    }
}

/// Step budget that is sufficient for a complete answer.
const ENOUGH_STEPS: u64 = 200_000;
/// Step budget that is usually sufficient for the version set and leaves few steps for the explanation. 100,000
/// complete answers would take minutes.
const FEW_STEPS: u64 = 40;

/// Compares the answer to a problem with exhaustive search. Returns the outcome, or the error in the answer.
fn check(problem: &Problem, steps: u64) -> Result<Outcome, String> {
    let Problem { catalog, request, now } = problem;
    let result = resolve_within(catalog, request, *now, Budget { steps, ..Budget::default() });
    if let Some(build) = result.as_ref().err().and_then(|unsolvable| unsolvable.builds_to_verify().first()) {
        // Verifies the build. The answer must then contain exactly that build.
        let verified = Problem { catalog: software::with_verified_build(catalog, build), ..problem.clone() };
        let outcome = check(&verified, steps)?;
        let is_same_build = matches!(&outcome, Outcome::Chosen { minecraft, build: number, .. }
            if *minecraft == build.minecraft.to_string() && *number == build.build);
        return if is_same_build {
            Ok(outcome)
        } else {
            Err(format!("the solver required {build:?} to be verified, but then the answer is {outcome:?}"))
        };
    }
    if steps < ENOUGH_STEPS && matches!(result, Err(Unsolvable::GaveUp(_))) {
        return check(problem, ENOUGH_STEPS);
    }
    let rules = ServerRules::new(catalog, request, *now);
    let (found, best) = (outcome(&result), rules.as_ref().map_or(Outcome::Unknown, oracle::best));
    if found != best {
        return Err(format!("the solver answers {found:?}\nexhaustive search finds {best:?}"));
    }
    let violations = match (rules, result) {
        (Ok(rules), Ok(Resolution { lock, explanation })) => {
            let Explanation::Solved(solved) = explanation else { panic!("expected a solved explanation") };
            checker::violations_with_rules(&rules, &lock, Some(&solved.warnings))
        }
        (_, Err(_)) | (Err(_), _) => Vec::new(),
    };
    if violations.is_empty() { Ok(found) } else { Err(violations.join("; ")) }
}

/// Number of answers of each kind.
#[derive(Debug, Default)]
struct Tally {
    chosen: u64,
    excluded: u64,
    no_solution: u64,
    unknown: u64,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Chosen { left_behind, .. } if left_behind.is_empty() => &mut self.chosen,
            Outcome::Chosen { .. } => &mut self.excluded,
            Outcome::NoSolution => &mut self.no_solution,
            Outcome::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// One of this many seeds is also tested with two servers.
const PAIR_INTERVAL: u64 = 8;

/// Compares the answers of two servers with exhaustive search. `None` if there is no expected answer.
fn check_pair(pair: &Pair, steps: u64) -> Option<Result<[Outcome; 2], String>> {
    let expected = group::expected_outcomes(pair)?;
    let budget = Budget { steps, ..Budget::default() };
    let mut verified = pair.clone();
    // The results are sorted by server name, like the requests of a pair.
    let mut results = resolve_fleet(&pair.catalog, &pair.requests, pair.now, budget);
    let build_to_verify = |results: &[(String, Result<Resolution, Unsolvable>)]| {
        results.iter().find_map(|(_, result)| result.as_ref().err()?.builds_to_verify().first().cloned())
    };
    while let Some(build) = build_to_verify(&results) {
        verified.catalog = software::with_verified_build(&verified.catalog, &build);
        results = resolve_fleet(&verified.catalog, &verified.requests, verified.now, budget);
    }
    let gave_up = |(_, result): &(_, Result<Resolution, Unsolvable>)| matches!(result, Err(Unsolvable::GaveUp(_)));
    if steps < ENOUGH_STEPS && results.iter().any(gave_up) {
        return check_pair(pair, ENOUGH_STEPS);
    }
    let found: Vec<Outcome> = results.iter().map(|(_, result)| outcome(result)).collect();
    if found[..] != expected[..] {
        return Some(Err(format!("the solver answers {found:#?}\nexhaustive search finds {expected:#?}")));
    }
    for ((_, result), request) in results.iter().zip(&pair.requests) {
        let Ok(Resolution { lock, explanation: _ }) = result else { continue };
        let violations = checker::violations(&verified.catalog, request, verified.now, lock);
        if !violations.is_empty() {
            return Some(Err(violations.join("; ")));
        }
    }
    Some(Ok(expected))
}

fn check_seeds(seeds: std::ops::Range<u64>) {
    let mut tally = Tally::default();
    let mut coverage = Coverage::default();
    let all = seeds.end - seeds.start;
    for seed in seeds {
        if seed % PAIR_INTERVAL == 0
            && let Some(pair) = delisted::pair(seed)
        {
            match check_pair(&pair, FEW_STEPS * 4) {
                Some(Err(first)) => {
                    let found = |pair: &Pair| check_pair(pair, ENOUGH_STEPS).and_then(Result::err);
                    let small = pair.shrunk(|smaller| found(smaller).is_some());
                    let error = found(&small).unwrap_or(first);
                    panic!("two servers of seed {seed}: {error}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
                }
                Some(Ok(outcomes)) => coverage.count_pair(&pair, &outcomes),
                None => {}
            }
        }
        let problem = delisted::problem(seed);
        match check(&problem, FEW_STEPS) {
            Ok(outcome) => {
                tally.count(&outcome);
                coverage.count(&problem, &outcome);
            }
            Err(first) => {
                let small = problem.shrunk(|smaller| check(smaller, ENOUGH_STEPS).is_err());
                let error = check(&small, ENOUGH_STEPS).err().unwrap_or(first);
                panic!("seed {seed}: {error}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
            }
        }
    }
    // A kind of answer that occurs rarely is hardly tested.
    assert!(
        tally.chosen > all / 4 && tally.no_solution > all / 5,
        "too few problems are solvable, or too few are unsolvable: {tally:?}"
    );
    assert!(
        tally.excluded > all / 20 && tally.unknown > all / 200,
        "too few solutions exclude plugins, or too few answers are unknown: {tally:?}"
    );
    coverage.assert_enough(all);
}

#[test]
fn brute_force_agrees_on_first_half_of_problems() {
    let first = first_seed();
    check_seeds(first..first + problems() / 2);
}

#[test]
fn brute_force_agrees_on_second_half_of_problems() {
    let first = first_seed();
    check_seeds(first + problems() / 2..first + problems());
}
