//! Pure. Compares the solver with exhaustive search on random small problems: solvability, and the best answer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has to fail")]

use std::collections::BTreeMap;

use resolver::explain::Explanation;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet, resolve_within};

#[path = "brute_force/because.rs"]
mod because;
#[path = "brute_force/beside.rs"]
mod beside;
#[path = "support/called.rs"]
mod called;
#[path = "brute_force/census.rs"]
mod census;
#[path = "support/checker.rs"]
mod checker;
#[path = "brute_force/generate.rs"]
mod generate;
#[path = "brute_force/groups.rs"]
mod groups;
#[path = "brute_force/holding.rs"]
mod holding;
#[path = "brute_force/inside.rs"]
mod inside;
#[path = "brute_force/jars.rs"]
mod jars;
#[path = "brute_force/joint.rs"]
mod joint;
#[path = "brute_force/joint_hints.rs"]
mod joint_hints;
#[path = "brute_force/known.rs"]
mod known;
#[path = "support/known_files.rs"]
mod known_files;
#[path = "support/loading.rs"]
mod loading;
#[path = "brute_force/lost.rs"]
mod lost;
#[path = "support/membership.rs"]
mod membership;
#[path = "brute_force/missed.rs"]
mod missed;
#[path = "support/needs.rs"]
mod needs;
#[path = "brute_force/one_version.rs"]
mod one_version;
#[path = "brute_force/oracle.rs"]
mod oracle;
#[path = "support/own_jars.rs"]
mod own_jars;
#[path = "support/papers.rs"]
mod papers;
#[path = "brute_force/problem.rs"]
mod problem;
// It runs the `resolver` command.
#[cfg(feature = "cli")]
#[path = "brute_force/processes.rs"]
mod processes;
#[path = "brute_force/projects.rs"]
mod projects;
#[path = "brute_force/properties.rs"]
mod properties;
#[path = "brute_force/rarer.rs"]
mod rarer;
#[path = "brute_force/ready.rs"]
mod ready;
#[path = "brute_force/reasons.rs"]
mod reasons;
#[path = "support/rules.rs"]
mod rules;
#[path = "support/saved.rs"]
mod saved;
#[path = "brute_force/sites.rs"]
mod sites;
#[path = "brute_force/software.rs"]
mod software;
#[path = "brute_force/stands.rs"]
mod stands;
#[path = "support/texts.rs"]
mod texts;
#[path = "support/verbatim.rs"]
mod verbatim;
#[path = "brute_force/waiting.rs"]
mod waiting;
#[path = "brute_force/wishes.rs"]
mod wishes;
#[path = "brute_force/written.rs"]
mod written;

use census::Census;
use joint::Pair;
use oracle::Outcome;
use problem::Problem;
use rules::Book;

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
fn share_of(all: u64) -> u64 {
    if is_thorough() { all } else { all / 4 }
}

/// How many cases of a kind a run must contain, if `all` is the minimum of a thorough run. Other runs need half the
/// expected number, because small numbers vary more. Rare kinds must occur only in a thorough run.
fn least_of(all: u64) -> u64 {
    if is_thorough() { all } else { all / 8 }
}

/// The first seed of a run. `NIGHTSHIFT_SEED` shifts all seeds, so that other problems are generated.
fn first_seed() -> u64 {
    std::env::var("NIGHTSHIFT_SEED").map_or(0, |seed| seed.parse().expect("NIGHTSHIFT_SEED is a number"))
}

fn outcome(answer: &Result<Resolution, Unsolvable>) -> Outcome {
    match answer {
        Ok(Resolution { lock, explanation }) => {
            let Explanation::Solved(solved) = explanation else { panic!("a resolution explains a yes") };
            let mut releases: Vec<String> = lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect();
            releases.sort();
            let unfollowed: BTreeMap<String, Option<String>> =
                solved.unfollowed.iter().map(|left| (left.name.clone(), left.stays.clone())).collect();
            Outcome::Chosen { minecraft: lock.minecraft.to_string(), build: lock.build, releases, unfollowed }
        }
        Err(Unsolvable::NoSolution(impossible)) => {
            assert!(!impossible.reasons.is_empty(), "a no without a reason");
            Outcome::Nothing
        }
        Err(Unsolvable::Unanswerable(_)) => Outcome::Unknown,
        Err(Unsolvable::GaveUp(gave_up)) => panic!("{gave_up}"),
    }
}

/// Steps for a complete answer.
const ENOUGH: u64 = 200_000;
/// Steps that usually suffice for the version set and leave few for the explanation. 100,000 complete answers would
/// take minutes.
const JUST_THE_SET: u64 = 40;

/// The outcome of a problem, or the error in its answer.
fn fault(problem: &Problem, steps: u64) -> Result<Outcome, String> {
    let Problem { catalog, request, now } = problem;
    let answer = resolve_within(catalog, request, *now, Budget { steps, ..Budget::default() });
    if let Some(build) = answer.as_ref().err().and_then(|unsolvable| unsolvable.builds_to_see().first()) {
        // Verifies the build. The answer must then contain exactly that build.
        let seen = Problem { catalog: software::seen(catalog, build), ..problem.clone() };
        let outcome = fault(&seen, steps)?;
        let is_it = matches!(&outcome, Outcome::Chosen { minecraft, build: number, .. }
            if *minecraft == build.minecraft.to_string() && *number == build.build);
        return if is_it { Ok(outcome) } else { Err(format!("looked at {build:?} for {outcome:?}")) };
    }
    if steps < ENOUGH && matches!(answer, Err(Unsolvable::GaveUp(_))) {
        return fault(problem, ENOUGH);
    }
    let book = Book::open(catalog, request, *now);
    let (found, best) = (outcome(&answer), book.as_ref().map_or(Outcome::Unknown, oracle::best));
    if found != best {
        return Err(format!("found {found:?}\n best {best:?}"));
    }
    let complaints = match (book, answer) {
        (Ok(book), Ok(Resolution { lock, explanation })) => {
            let Explanation::Solved(solved) = explanation else { panic!("a resolution explains a yes") };
            checker::complaints_by(&book, &lock, Some(&solved.warnings))
        }
        (_, Err(_)) | (Err(_), _) => Vec::new(),
    };
    if complaints.is_empty() { Ok(found) } else { Err(complaints.join("; ")) }
}

/// Number of answers of each kind.
#[derive(Debug, Default)]
struct Tally {
    chosen: u64,
    left_behind: u64,
    nothing: u64,
    unknown: u64,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Chosen { unfollowed, .. } if unfollowed.is_empty() => &mut self.chosen,
            Outcome::Chosen { .. } => &mut self.left_behind,
            Outcome::Nothing => &mut self.nothing,
            Outcome::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// One in this many seeds is also tested as two servers.
const ONE_IN: u64 = 8;

/// Compares the answers of two servers with exhaustive search. `None` if there is no expected answer.
fn pair_fault(pair: &Pair, steps: u64) -> Option<Result<[Outcome; 2], String>> {
    let expected = joint::expected(pair)?;
    let budget = Budget { steps, ..Budget::default() };
    let mut seen = pair.clone();
    // Sorted by name, as the requests of a pair.
    let mut answers = resolve_fleet(&pair.catalog, &pair.requests, pair.now, budget);
    let to_see = |answers: &[(String, Result<Resolution, Unsolvable>)]| {
        answers.iter().find_map(|(_, answer)| answer.as_ref().err()?.builds_to_see().first().cloned())
    };
    while let Some(build) = to_see(&answers) {
        seen.catalog = software::seen(&seen.catalog, &build);
        answers = resolve_fleet(&seen.catalog, &seen.requests, seen.now, budget);
    }
    let gave_up = |(_, answer): &(_, Result<Resolution, Unsolvable>)| matches!(answer, Err(Unsolvable::GaveUp(_)));
    if steps < ENOUGH && answers.iter().any(gave_up) {
        return pair_fault(pair, ENOUGH);
    }
    let found: Vec<Outcome> = answers.iter().map(|(_, answer)| outcome(answer)).collect();
    if found[..] != expected[..] {
        return Some(Err(format!("found {found:#?}\n best {expected:#?}")));
    }
    for ((_, answer), request) in answers.iter().zip(&pair.requests) {
        let Ok(Resolution { lock, explanation: _ }) = answer else { continue };
        let complaints = checker::complaints(&seen.catalog, request, seen.now, lock);
        if !complaints.is_empty() {
            return Some(Err(complaints.join("; ")));
        }
    }
    Some(Ok(expected))
}

fn try_all(seeds: std::ops::Range<u64>) {
    let mut tally = Tally::default();
    let mut census = Census::default();
    let all = seeds.end - seeds.start;
    for seed in seeds {
        if seed % ONE_IN == 0
            && let Some(pair) = lost::pair(seed)
        {
            match pair_fault(&pair, JUST_THE_SET * 4) {
                Some(Err(first)) => {
                    let found = |pair: &Pair| pair_fault(pair, ENOUGH).and_then(Result::err);
                    let small = pair.shrunk(|smaller| found(smaller).is_some());
                    let fault = found(&small).unwrap_or(first);
                    panic!("two servers of seed {seed}: {fault}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
                }
                Some(Ok(outcomes)) => census.count_pair(&pair, &outcomes),
                None => {}
            }
        }
        let problem = lost::problem(seed);
        match fault(&problem, JUST_THE_SET) {
            Ok(outcome) => {
                tally.count(&outcome);
                census.count(&problem, &outcome);
            }
            Err(first) => {
                let small = problem.shrunk(|smaller| fault(smaller, ENOUGH).is_err());
                let fault = fault(&small, ENOUGH).err().unwrap_or(first);
                panic!("seed {seed}: {fault}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
            }
        }
    }
    // Otherwise the test would prove little.
    assert!(tally.chosen > all / 4 && tally.nothing > all / 5, "too much of one kind: {tally:?}");
    assert!(tally.left_behind > all / 20 && tally.unknown > all / 200, "too few of a kind: {tally:?}");
    census.is_enough(all);
}

#[test]
fn brute_force_agrees_on_first_half_of_problems() {
    let first = first_seed();
    try_all(first..first + problems() / 2);
}

#[test]
fn brute_force_agrees_on_second_half_of_problems() {
    let first = first_seed();
    try_all(first + problems() / 2..first + problems());
}
