//! Pure. Compares the solver with exhaustive search on random small problems: solvability, and the best answer.

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
// It runs the `resolver` command.
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

use rules::Book;

use coverage::Census;
use group::Pair;
use oracle::Outcome;
use problem::Problem;

/// Whether this run tests all problems, as `make test-all` does. `make test` tests a part of them.
fn is_thorough() -> bool {
    std::env::var_os("NIGHTSHIFT_THOROUGH").is_some()
}

/// Problems of one run that are compared with exhaustive search. Eight thousand take a minute and a half of one core
/// without optimization.
fn problems() -> u64 {
    if is_thorough() { 100_000 } else { 8_000 }
}

/// A quarter of the number, or all of it in a thorough run.
fn scaled_to_run(all: u64) -> u64 {
    if is_thorough() { all } else { all / 4 }
}

/// How many cases of a kind a run must contain, if `all` is the minimum of a thorough run. Other runs need half the
/// expected number, because small numbers vary more. Rare kinds must occur only in a thorough run.
fn required_count(all: u64) -> u64 {
    if is_thorough() { all } else { all / 8 }
}

/// The first seed of a run. `NIGHTSHIFT_SEED` shifts all seeds, so that other problems are generated.
fn first_seed() -> u64 {
    std::env::var("NIGHTSHIFT_SEED").map_or(0, |seed| seed.parse().expect("NIGHTSHIFT_SEED is a number"))
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

/// Steps for a complete answer.
const ENOUGH_STEPS: u64 = 200_000;
/// Steps that usually suffice for the version set and leave few for the explanation. 100,000 complete answers would
/// take minutes.
const FEW_STEPS: u64 = 40;

/// The outcome of a problem, or the error in its answer.
fn check(problem: &Problem, steps: u64) -> Result<Outcome, String> {
    let Problem { catalog, request, now } = problem;
    let result = resolve_within(catalog, request, *now, Budget { steps, ..Budget::default() });
    if let Some(build) = result.as_ref().err().and_then(|unsolvable| unsolvable.builds_to_verify().first()) {
        // Verifies the build. The answer must then contain exactly that build.
        let verified = Problem { catalog: software::with_verified_build(catalog, build), ..problem.clone() };
        let outcome = check(&verified, steps)?;
        let is_same_build = matches!(&outcome, Outcome::Chosen { minecraft, build: number, .. }
            if *minecraft == build.minecraft.to_string() && *number == build.build);
        return if is_same_build { Ok(outcome) } else { Err(format!("looked at {build:?} for {outcome:?}")) };
    }
    if steps < ENOUGH_STEPS && matches!(result, Err(Unsolvable::GaveUp(_))) {
        return check(problem, ENOUGH_STEPS);
    }
    let book = Book::new(catalog, request, *now);
    let (found, best) = (outcome(&result), book.as_ref().map_or(Outcome::Unknown, oracle::best));
    if found != best {
        return Err(format!("found {found:?}\n best {best:?}"));
    }
    let violations = match (book, result) {
        (Ok(book), Ok(Resolution { lock, explanation })) => {
            let Explanation::Solved(solved) = explanation else { panic!("expected a solved explanation") };
            checker::violations_with_rules(&book, &lock, Some(&solved.warnings))
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

/// Of this many seeds, one is also tested as two servers.
const PAIR_INTERVAL: u64 = 8;

/// Compares the answers of two servers with exhaustive search. `None` if there is no expected answer.
fn check_pair(pair: &Pair, steps: u64) -> Option<Result<[Outcome; 2], String>> {
    let expected = group::expected_outcomes(pair)?;
    let budget = Budget { steps, ..Budget::default() };
    let mut verified = pair.clone();
    // Sorted by name, as the requests of a pair.
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
        return Some(Err(format!("found {found:#?}\n best {expected:#?}")));
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
    let mut census = Census::default();
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
                Some(Ok(outcomes)) => census.count_pair(&pair, &outcomes),
                None => {}
            }
        }
        let problem = delisted::problem(seed);
        match check(&problem, FEW_STEPS) {
            Ok(outcome) => {
                tally.count(&outcome);
                census.count(&problem, &outcome);
            }
            Err(first) => {
                let small = problem.shrunk(|smaller| check(smaller, ENOUGH_STEPS).is_err());
                let error = check(&small, ENOUGH_STEPS).err().unwrap_or(first);
                panic!("seed {seed}: {error}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
            }
        }
    }
    // Otherwise the test would prove little.
    assert!(tally.chosen > all / 4 && tally.no_solution > all / 5, "too few are solved or unsolvable: {tally:?}");
    assert!(tally.excluded > all / 20 && tally.unknown > all / 200, "too few are partial or unknown: {tally:?}");
    census.assert_enough(all);
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
