//! Edge (reads). Measures how long a fleet takes to solve together, on generated projects.
//!
//! 1,000 servers share 20 plugins with strategy `latest` and have 10 of 200 other plugins each. Every project has 900 releases, of which a third is
//! beta. With 54 Paper versions, this makes 11,020 packages.
//!
//! The references of every ratio are the [`other_solvers`], each asked once. For a change of one server, it is to solve the whole fleet again. The peak of
//! memory of each step is printed before the times. It is the resident memory as the kernel counts it, and the catalog is loaded before. Then follow
//! the cost of a change of one server, of adversarial catalogs that no real project has, and of 10,000 servers.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Duration;

use benches::budgets::Bounds;
use benches::generators::adversarial::{crawl, ladder, tower};
use benches::generators::{RELEASES, conflicting_fleet, fleet, fleet_catalog, now, uniform_fleet};
use benches::measure::{Cost, measure, print_line};
use criterion::Criterion;
use other_solvers::{Found, PlainPubgrub, Resolvo};
use resolver::model::catalog::Catalog;
use resolver::model::request::Request;
use resolver::model::version::Minecraft;
use resolver::{Budget, Fleet, PlainTables, Resolution, Unsolvable, groups, missing_projects, resolve};

mod other_solvers;

const SERVERS: usize = 1_000;

/// A budget that is never used up.
const UNLIMITED: Budget = Budget { steps: u64::MAX, words: u64::MAX, time: Duration::MAX };

/// The limit for a single question, however its plugins are made.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// The memory limit for a single question, in MiB.
const MEMORY_LIMIT_MIB: u32 = 256;

/// 10,000 servers that share 20 plugins: one group, read and decided at once.
const TEN_THOUSAND: &str = "10,000 servers: read and decide";

/// Solves it in this process.
fn solve_ten_thousand() -> ExitCode {
    let (catalog, requests) = (fleet_catalog(), uniform_fleet(10 * SERVERS));
    let measured = || {
        let (fleet, read) = measure(|| Fleet::read(&catalog, &requests, now()));
        let (decided, decide) = measure(|| fleet.decide(Budget::default()));
        assert_eq!(decided.solved_together().len(), requests.len(), "every server must get a solution");
        print_line(&format!("10,000 servers that share 20 plugins: read {read}; decide {decide}"));
        Cost { peak: read.peak + decide.peak, took: read.took + decide.took }
    };
    let first = measured();
    let mut bounds = Bounds::new("fleet");
    check_cost(&mut bounds, TEN_THOUSAND, &first, Duration::from_secs(1), 300, || measured().took);
    compare_with_others(&catalog, &requests, &first, OTHERS_SHORT_TIME_LIMIT, None);
    bounds.finish()
}

/// Changes one plugin of one of 10,000 servers in 500 groups of 20. The decisions about the other groups are kept.
fn measure_one_change(catalog: &Catalog) {
    let mut requests = uniform_fleet(10 * SERVERS);
    for (index, request) in requests.iter_mut().enumerate() {
        request.server = format!("games-{:03}/s{index:05}", index / 20);
    }
    let before: Vec<Vec<Request>> = group_members(&requests);
    requests[4_242].plugins.pop();
    let (groups, grouping) = measure(|| group_members(&requests));
    let changed: Vec<&Vec<Request>> = groups.iter().filter(|group| !before.contains(group)).collect();
    let touched: usize = changed.iter().map(|group| group.len()).sum();
    let decide =
        |group: &Vec<Request>| Fleet::read(catalog, group, now()).decide(Budget::default()).solved_together().len();
    let (decided, again) = measure(|| changed.iter().copied().map(decide).sum::<usize>());
    assert_eq!((touched, decided), (20, 20), "only the group of the changed server is solved");
    let (all, anew) = measure(|| groups.iter().map(decide).sum::<usize>());
    assert_eq!(all, requests.len(), "every server must get a solution");
    print_line(&format!(
        "one of 10,000 servers changes: {} of {} groups, {touched} servers are solved again: {again} (grouping all: {grouping}; solving all: {anew}, {:.0} times)",
        changed.len(),
        groups.len(),
        anew.ratio_to(&again)
    ));
}

fn group_members(requests: &[Request]) -> Vec<Vec<Request>> {
    let clone_members = |places: Vec<usize>| places.into_iter().map(|index| requests[index].clone()).collect();
    groups(requests).into_iter().map(clone_members).collect()
}

/// Set in a separate process that solves the question of this name. Its memory peak then belongs to this question only.
const QUESTION: &str = "NIGHTSHIFT_QUESTION";

/// The time limit for other solvers.
const OTHERS_TIME_LIMIT: Duration = Duration::from_mins(2);
/// The time limit if there are many questions, or if the size of a question predicts the result. It is more than ten times the limit for our solver.
const OTHERS_SHORT_TIME_LIMIT: Duration = Duration::from_secs(20);

/// A catalog and the requests for it.
type Question = (Catalog, Vec<Request>);

/// The cost of an answer, its result, and the Paper of each server where it was requested.
type Answered = (Cost, String, Option<Vec<Option<Minecraft>>>);

/// A question that no search solves quickly.
struct Hard {
    name: &'static str,
    question: fn() -> Question,
    solve: fn(&Question) -> Answered,
}

/// The time limit to decide about 1,000 servers that share plugins.
const FLEET_TIME_LIMIT: Duration = Duration::from_millis(60);
/// The memory limit for it, in MiB above the tables.
const FLEET_MEMORY_LIMIT_MIB: u32 = 32;

/// Compares a cost with its limits.
fn check_cost(
    bounds: &mut Bounds,
    label: &str,
    cost: &Cost,
    longest: Duration,
    largest: u32,
    again: impl FnMut() -> Duration,
) {
    bounds.check_time(label, cost.took, longest, again);
    let peak = u32::try_from(cost.peak).unwrap_or(u32::MAX);
    bounds.check_max(label, f64::from(peak), f64::from(largest), "MiB");
}

/// Questions that no search solves quickly. Each must end, with or without an answer.
const HARD_QUESTIONS: [Hard; 5] = [
    Hard { name: "ladder of 2", question: || for_one_server(ladder(2, RELEASES)), solve: solve_one },
    Hard { name: "ladder of 3", question: || for_one_server(ladder(3, RELEASES)), solve: solve_one },
    Hard { name: "tower of 6", question: || for_one_server(tower(6, 300)), solve: solve_one },
    Hard { name: "tower of 20", question: || for_one_server(tower(20, 100)), solve: solve_one },
    Hard { name: "crawl of 1,000", question: || crawl(SERVERS), solve: solve_many },
];

fn for_one_server((catalog, request): (Catalog, Request)) -> Question {
    (catalog, vec![request])
}

fn solve_one((catalog, requests): &Question) -> Answered {
    let request = &requests[0];
    let (_, reads) = measure(|| missing_projects(catalog, request));
    let (result, whole) = measure(|| resolve(catalog, request, now()));
    let (end, paper) = match result {
        Ok(Resolution { lock, explanation: _ }) => {
            (format!("yes, {} plugins", lock.plugins.len()), Some(lock.minecraft))
        }
        Err(no @ (Unsolvable::NoSolution(_) | Unsolvable::Unanswerable(_) | Unsolvable::GaveUp(_))) => {
            (no.to_string(), None)
        }
    };
    (whole, format!("(of which reading {reads}): {end}"), Some(vec![paper]))
}

fn solve_many((catalog, requests): &Question) -> Answered {
    let (fleet, read) = measure(|| Fleet::read(catalog, requests, now()));
    let (decided, decide) = measure(|| fleet.decide(Budget::default()));
    let end = format!("to decide, {read} to read: {} together", decided.solved_together().len());
    (decide, end, None)
}

/// The question whose memory is measured before any other question is solved.
const FLEET: &str = "1,000 servers: decide";

/// Decides about 1,000 servers in this process. In a shared process, memory freed by other questions would be reused, and no growth would be visible.
fn solve_fleet() -> ExitCode {
    let (catalog, requests) = (fleet_catalog(), fleet(SERVERS));
    let read = Fleet::read(&catalog, &requests, now());
    let (decided, first) = measure(|| read.decide(UNLIMITED));
    assert_eq!(decided.solved_together().len(), SERVERS, "every server must get a solution");
    print_line(&format!("{FLEET}, alone: {first}"));
    let mut bounds = Bounds::new("fleet");
    check_cost(&mut bounds, FLEET, &first, FLEET_TIME_LIMIT, FLEET_MEMORY_LIMIT_MIB, || {
        measure(|| read.decide(UNLIMITED)).1.took
    });
    bounds.finish()
}

/// Solves the question of this name in this process.
fn solve(name: &str) -> ExitCode {
    match name {
        FLEET => return solve_fleet(),
        TEN_THOUSAND => return solve_ten_thousand(),
        _ => {}
    }
    let hard = HARD_QUESTIONS.into_iter().find(|hard| hard.name == name);
    let Hard { name, question, solve } = hard.expect("a name from the list");
    let question = question();
    let (cost, end, papers) = solve(&question);
    print_line(&format!("{name}: {cost} {end}"));
    let mut bounds = Bounds::new("fleet");
    check_cost(&mut bounds, name, &cost, TIME_LIMIT, MEMORY_LIMIT_MIB, || solve(&question).0.took);
    let best = |server: usize| papers.as_ref().and_then(|papers| papers[server].clone());
    compare_with_others(&question.0, &question.1, &cost, OTHERS_SHORT_TIME_LIMIT, papers.is_some().then_some(&best));
    bounds.finish()
}

/// Solves each question in a separate process.
fn solve_in_child_processes(bounds: &mut Bounds) {
    let program = std::env::current_exe().expect("this program has a path");
    for name in HARD_QUESTIONS.into_iter().map(|hard| hard.name).chain([FLEET, TEN_THOUSAND]) {
        let status = Command::new(&program).env(QUESTION, name).status().expect("this program can be run");
        if !status.success() {
            bounds.record_failure(&format!("{name}: {status}"));
        }
    }
}

/// Gives the same question to other solvers, which only decide, for at most `longest`. `best` returns our Paper for a server, by index. Without it,
/// the results are not compared.
fn compare_with_others(
    catalog: &Catalog,
    requests: &[Request],
    our_cost: &Cost,
    longest: Duration,
    best: Option<&dyn Fn(usize) -> Option<Minecraft>>,
) {
    let tables = PlainTables::read(catalog, requests, now());
    let question = tables.encode();
    let report = |name: &str, found: Found, other: &Cost| {
        let found = match found {
            Found::TimedOut(time) => format!("no answer in {} s", time.as_secs()),
            Found::Papers(None) => "no".to_owned(),
            Found::Papers(Some(papers)) => match &best {
                Some(best) => {
                    let is_same_paper = |&(server, &paper): &(usize, &u32)| {
                        best(server).is_some_and(|best| best == *question.minecraft(server, paper))
                    };
                    format!(
                        "our Paper for {} of {}",
                        papers.iter().enumerate().filter(is_same_paper).count(),
                        papers.len()
                    )
                }
                None => "an answer".to_owned(),
            },
        };
        print_line(&format!("{name}: {other}, {:.1} times: {found}", other.ratio_to(our_cost)));
    };
    let plain = PlainPubgrub::new(&question);
    let (found, other) = measure(|| plain.solve(longest));
    report("the same: plain encoding in pubgrub", found, &other);
    let resolvo = Resolvo::new(&question);
    let (found, other) = measure(|| resolvo.solve(longest));
    report("the same: resolvo", found, &other);
}

fn measure_fleets(criterion: &mut Criterion, bounds: &mut Bounds) {
    let catalog = fleet_catalog();
    measure_one_change(&catalog);
    solve_in_child_processes(bounds);
    let (requests, conflicting) = (fleet(SERVERS), conflicting_fleet(SERVERS));
    let (read, cost_of_reading) = measure(|| Fleet::read(&catalog, &requests, now()));
    print_line(&format!("read the tables: {cost_of_reading}"));
    let (decided, cost_of_deciding) = measure(|| read.decide(UNLIMITED));
    assert_eq!(decided.solved_together().len(), SERVERS, "every server must get a solution");
    print_line(&format!("decide: {cost_of_deciding}"));
    let other = Fleet::read(&catalog, &conflicting, now());
    let (decided_otherwise, cost_of_one_excluded) = measure(|| other.decide(UNLIMITED));
    assert_eq!(decided_otherwise.solved_together().len(), SERVERS - 1, "exactly one server is excluded");
    print_line(&format!("decide, one set aside: {cost_of_one_excluded}"));
    let best = |server: usize| Some(decided.resolution(&requests[server].server)?.ok()?.lock.minecraft);
    compare_with_others(&catalog, &requests, &cost_of_deciding, OTHERS_TIME_LIMIT, Some(&best));

    let mut group = criterion.benchmark_group("1,000 servers");
    group.sample_size(10);
    group.bench_function("decide", |bencher| {
        bencher.iter(|| black_box(&read).decide(UNLIMITED).solved_together().len());
    });
    group.bench_function("decide, one set aside", |bencher| {
        bencher.iter(|| black_box(&other).decide(UNLIMITED).solved_together().len());
    });
    group.bench_function("read the tables", |bencher| {
        bencher.iter(|| Fleet::read(black_box(&catalog), &requests, now()));
    });
    group.bench_function("the answer for one server, with explanation", |bencher| {
        bencher.iter(|| decided.resolution("games/s00042"));
    });
    group.finish();
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(QUESTION) {
        return solve(&name);
    }
    let (mut criterion, mut bounds) = (Criterion::default().configure_from_args(), Bounds::new("fleet"));
    measure_fleets(&mut criterion, &mut bounds);
    criterion.final_summary();
    bounds.finish()
}
