//! Edge (reads). Measures how long a fleet takes to solve together, on generated projects.
//!
//! 1,000 servers share 20 plugins with strategy `latest` and have 10 of 200 other plugins each. Every project has 900 releases, of which a third is
//! beta. With 54 Paper versions, this makes 11,020 packages.
//!
//! The reference of every ratio are the [`others`], each asked once. For a change of one server, it is to solve the whole fleet again. The peak of
//! memory of each step is printed before the times. It is the resident memory as the kernel counts it, and the catalog is loaded before. Then follow
//! the cost of a change of one server, of adversarial catalogs that no real project has, and of 10,000 servers.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Duration;

use benches::bounds::Bounds;
use benches::measure::{Cost, cost, say};
use benches::worlds::hard::{crawl, ladder, tower};
use benches::worlds::{RELEASES, at, fleet, fleet_catalog, impossible, twins};
use criterion::Criterion;
use others::{Found, Others, Plain};
use resolver::catalog::Catalog;
use resolver::request::Request;
use resolver::version::Minecraft;
use resolver::{Budget, Fleet, PlainTables, Resolution, Unsolvable, groups, needed_projects, resolve};

mod others;

const SERVERS: usize = 1_000;

/// A budget that is never used up.
const PLENTY: Budget = Budget { steps: u64::MAX, words: u64::MAX, time: Duration::MAX };

/// The limit for a single question, however its plugins are made.
const LONGEST: Duration = Duration::from_secs(2);
/// The memory limit for a single question, in MiB.
const LARGEST: u32 = 256;

/// 10,000 servers that share 20 plugins: one group, read and decided at once.
const TEN_THOUSAND: &str = "10,000 servers: read and decide";

/// Solves it in this process.
fn answer_ten_thousand() -> ExitCode {
    let (catalog, requests) = (fleet_catalog(), twins(10 * SERVERS));
    let measured = || {
        let (fleet, read) = cost(|| Fleet::read(&catalog, &requests, at()));
        let (decided, decide) = cost(|| fleet.decide(Budget::default()));
        assert_eq!(decided.together().len(), requests.len(), "the yes must be a yes for all");
        say(&format!("10,000 servers that share 20 plugins: read {read}; decide {decide}"));
        Cost { peak: read.peak + decide.peak, took: read.took + decide.took }
    };
    let first = measured();
    let mut bounds = Bounds::of("fleet");
    within(&mut bounds, TEN_THOUSAND, &first, Duration::from_secs(1), 300, || measured().took);
    beside_others(&catalog, &requests, &first, SHORTER, None);
    bounds.end()
}

/// Changes one plugin of one of 10,000 servers in 500 groups of 20. The decisions about the other groups are kept.
fn one_change(catalog: &Catalog) {
    let mut requests = twins(10 * SERVERS);
    for (at, request) in requests.iter_mut().enumerate() {
        request.server = format!("games-{:03}/s{at:05}", at / 20);
    }
    let before: Vec<Vec<Request>> = members(&requests);
    requests[4_242].plugins.pop();
    let (groups, grouping) = cost(|| members(&requests));
    let changed: Vec<&Vec<Request>> = groups.iter().filter(|group| !before.contains(group)).collect();
    let touched: usize = changed.iter().map(|group| group.len()).sum();
    let decide = |group: &Vec<Request>| Fleet::read(catalog, group, at()).decide(Budget::default()).together().len();
    let (decided, again) = cost(|| changed.iter().copied().map(decide).sum::<usize>());
    assert_eq!((touched, decided), (20, 20), "only the group of the server that changed");
    let (all, anew) = cost(|| groups.iter().map(decide).sum::<usize>());
    assert_eq!(all, requests.len(), "the yes must be a yes for all");
    say(&format!(
        "one of 10,000 servers changes: {} of {} groups, {touched} servers are solved again: {again} (grouping all: {grouping}; solving all: {anew}, {:.0} times)",
        changed.len(),
        groups.len(),
        anew.times(&again)
    ));
}

fn members(requests: &[Request]) -> Vec<Vec<Request>> {
    let of = |places: Vec<usize>| places.into_iter().map(|place| requests[place].clone()).collect();
    groups(requests).into_iter().map(of).collect()
}

/// Set in a separate process that solves the question of this name. Its memory peak then belongs to this question only.
const QUESTION: &str = "NIGHTSHIFT_QUESTION";

/// The time limit for other solvers.
const LONGER: Duration = Duration::from_mins(2);
/// The time limit if there are many questions, or if the size of a question predicts the result. It is more than ten times the limit for our solver.
const SHORTER: Duration = Duration::from_secs(20);

/// A catalog and the requests for it.
type Question = (Catalog, Vec<Request>);

/// The cost of an answer, its result, and the Paper of each server where it was requested.
type Answered = (Cost, String, Option<Vec<Option<Minecraft>>>);

/// A question that no search solves quickly.
struct Hard {
    name: &'static str,
    question: fn() -> Question,
    answer: fn(&Question) -> Answered,
}

/// The time limit to decide about 1,000 servers that share plugins.
const LONGEST_FLEET: Duration = Duration::from_millis(60);
/// The memory limit for it, in MiB above the tables.
const LARGEST_FLEET: u32 = 32;

/// Compares a cost with its limits.
fn within(
    bounds: &mut Bounds,
    what: &str,
    cost: &Cost,
    longest: Duration,
    largest: u32,
    again: impl FnMut() -> Duration,
) {
    bounds.time(what, cost.took, longest, again);
    let peak = u32::try_from(cost.peak).unwrap_or(u32::MAX);
    bounds.at_most(what, f64::from(peak), f64::from(largest), "MiB");
}

/// Questions that no search solves quickly. Each must end, with or without an answer.
const HARD_QUESTIONS: [Hard; 5] = [
    Hard { name: "ladder of 2", question: || of_one(ladder(2, RELEASES)), answer: answer_one },
    Hard { name: "ladder of 3", question: || of_one(ladder(3, RELEASES)), answer: answer_one },
    Hard { name: "tower of 6", question: || of_one(tower(6, 300)), answer: answer_one },
    Hard { name: "tower of 20", question: || of_one(tower(20, 100)), answer: answer_one },
    Hard { name: "crawl of 1,000", question: || crawl(SERVERS), answer: answer_many },
];

fn of_one((catalog, request): (Catalog, Request)) -> Question {
    (catalog, vec![request])
}

fn answer_one((catalog, requests): &Question) -> Answered {
    let request = &requests[0];
    let (_, reads) = cost(|| needed_projects(catalog, request));
    let (answer, whole) = cost(|| resolve(catalog, request, at()));
    let (end, paper) = match answer {
        Ok(Resolution { lock, explanation: _ }) => {
            (format!("yes, {} plugins", lock.plugins.len()), Some(lock.minecraft))
        }
        Err(no @ (Unsolvable::NoSolution(_) | Unsolvable::Unanswerable(_) | Unsolvable::GaveUp(_))) => {
            (no.to_string(), None)
        }
    };
    (whole, format!("(of which reading {reads}): {end}"), Some(vec![paper]))
}

fn answer_many((catalog, requests): &Question) -> Answered {
    let (fleet, read) = cost(|| Fleet::read(catalog, requests, at()));
    let (decided, decide) = cost(|| fleet.decide(Budget::default()));
    let end = format!("to decide, {read} to read: {} together", decided.together().len());
    (decide, end, None)
}

/// The question whose memory is measured before any other question is solved.
const FLEET: &str = "1,000 servers: decide";

/// Decides about 1,000 servers in this process. In a shared process, memory freed by other questions would be reused, and no growth would be visible.
fn answer_fleet() -> ExitCode {
    let (catalog, requests) = (fleet_catalog(), fleet(SERVERS));
    let read = Fleet::read(&catalog, &requests, at());
    let (decided, first) = cost(|| read.decide(PLENTY));
    assert_eq!(decided.together().len(), SERVERS, "the yes must be a yes for all");
    say(&format!("{FLEET}, alone: {first}"));
    let mut bounds = Bounds::of("fleet");
    within(&mut bounds, FLEET, &first, LONGEST_FLEET, LARGEST_FLEET, || cost(|| read.decide(PLENTY)).1.took);
    bounds.end()
}

/// Solves the question of this name in this process.
fn answer(name: &str) -> ExitCode {
    match name {
        FLEET => return answer_fleet(),
        TEN_THOUSAND => return answer_ten_thousand(),
        _ => {}
    }
    let hard = HARD_QUESTIONS.into_iter().find(|hard| hard.name == name);
    let Hard { name, question, answer } = hard.expect("a name from the list");
    let question = question();
    let (cost, end, papers) = answer(&question);
    say(&format!("{name}: {cost} {end}"));
    let mut bounds = Bounds::of("fleet");
    within(&mut bounds, name, &cost, LONGEST, LARGEST, || answer(&question).0.took);
    let best = |server: usize| papers.as_ref().and_then(|papers| papers[server].clone());
    beside_others(&question.0, &question.1, &cost, SHORTER, papers.is_some().then_some(&best));
    bounds.end()
}

/// Solves each question in a separate process.
fn alone(bounds: &mut Bounds) {
    let program = std::env::current_exe().expect("this program has a path");
    for name in HARD_QUESTIONS.into_iter().map(|hard| hard.name).chain([FLEET, TEN_THOUSAND]) {
        let status = Command::new(&program).env(QUESTION, name).status().expect("this program can be run");
        if !status.success() {
            bounds.exceed(&format!("{name}: {status}"));
        }
    }
}

/// Gives the same question to other solvers, which only decide, for at most `longest`. `best` returns our Paper for a server, by index. Without it,
/// the results are not compared.
fn beside_others(
    catalog: &Catalog,
    requests: &[Request],
    ours: &Cost,
    longest: Duration,
    best: Option<&dyn Fn(usize) -> Option<Minecraft>>,
) {
    let tables = PlainTables::read(catalog, requests, at());
    let question = tables.question();
    let tell = |name: &str, found: Found, other: &Cost| {
        let found = match found {
            Found::NotIn(time) => format!("no answer in {} s", time.as_secs()),
            Found::Papers(None) => "no".to_owned(),
            Found::Papers(Some(papers)) => match &best {
                Some(best) => {
                    let is_ours = |&(server, &paper): &(usize, &u32)| {
                        best(server).is_some_and(|best| best == *question.minecraft(server, paper))
                    };
                    format!("our Paper for {} of {}", papers.iter().enumerate().filter(is_ours).count(), papers.len())
                }
                None => "an answer".to_owned(),
            },
        };
        say(&format!("{name}: {other}, {:.1} times: {found}", other.times(ours)));
    };
    let plain = Plain::new(&question);
    let (found, other) = cost(|| plain.solve(longest));
    tell("the same: plain encoding in pubgrub", found, &other);
    let others = Others::new(&question);
    let (found, other) = cost(|| others.solve(longest));
    tell("the same: resolvo", found, &other);
}

fn fleets(criterion: &mut Criterion, bounds: &mut Bounds) {
    let catalog = fleet_catalog();
    one_change(&catalog);
    alone(bounds);
    let (requests, impossible) = (fleet(SERVERS), impossible(SERVERS));
    let (read, cost_of_reading) = cost(|| Fleet::read(&catalog, &requests, at()));
    say(&format!("read the tables: {cost_of_reading}"));
    let (decided, cost_of_deciding) = cost(|| read.decide(PLENTY));
    assert_eq!(decided.together().len(), SERVERS, "the yes must be a yes for all");
    say(&format!("decide: {cost_of_deciding}"));
    let other = Fleet::read(&catalog, &impossible, at());
    let (decided_otherwise, cost_of_one_aside) = cost(|| other.decide(PLENTY));
    assert_eq!(decided_otherwise.together().len(), SERVERS - 1, "exactly one cannot go with the others");
    say(&format!("decide, one set aside: {cost_of_one_aside}"));
    let best = |server: usize| Some(decided.answer(&requests[server].server)?.ok()?.lock.minecraft);
    beside_others(&catalog, &requests, &cost_of_deciding, LONGER, Some(&best));

    let mut group = criterion.benchmark_group("1,000 servers");
    group.sample_size(10);
    group.bench_function("decide", |bencher| bencher.iter(|| black_box(&read).decide(PLENTY).together().len()));
    group.bench_function("decide, one set aside", |bencher| {
        bencher.iter(|| black_box(&other).decide(PLENTY).together().len());
    });
    group.bench_function("read the tables", |bencher| {
        bencher.iter(|| Fleet::read(black_box(&catalog), &requests, at()));
    });
    group.bench_function("the answer for one server, with explanation", |bencher| {
        bencher.iter(|| decided.answer("games/s00042"));
    });
    group.finish();
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(QUESTION) {
        return answer(&name);
    }
    let (mut criterion, mut bounds) = (Criterion::default().configure_from_args(), Bounds::of("fleet"));
    fleets(&mut criterion, &mut bounds);
    criterion.final_summary();
    bounds.end()
}
