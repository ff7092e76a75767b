//! Edge (reads). The same question put to others: one server with 40 plugins of 900 releases, 3 in 10 of which may not be
//! used, with the 15 newest Papers blocked, and with every Paper blocked; and the recorded catalog with six plugins.
//!
//! `resolve` is all that this project does for an answer: judge every release, index, solve, explain. "Solve only" is the third of these,
//! from tables that are there, with the proof when there is no answer: what the [`others`] do.

use benches::measure::{Cost, cost, say};
use benches::worlds::hard::{PLUGINS, big};
use benches::worlds::{PAPERS, RELEASES, SIX, at};
use others::{Found, Others, Plain};
use resolver::catalog::Catalog;
use resolver::request::{PaperWish, Request};
use resolver::version::Minecraft;
use resolver::{PlainTables, Prepared, Unsolvable};

mod others;
mod recorded;

/// Each is done so often; the median counts.
const RUNS: usize = 9;

/// The answer, as all of them can give it: which Paper.
type Paper = Option<Minecraft>;

fn whole(catalog: &Catalog, request: &Request) -> Paper {
    match resolver::resolve(catalog, request, at()) {
        Ok(resolution) => Some(resolution.lock.minecraft),
        Err(no) => {
            assert!(matches!(no, Unsolvable::NoSolution(_)), "{no}");
            None
        }
    }
}

fn median<T>(work: impl Fn() -> T) -> (T, Cost) {
    let mut runs: Vec<(T, Cost)> = (0..RUNS).map(|_| cost(&work)).collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    runs.swap_remove(RUNS / 2)
}

fn compare(name: &str, catalog: &Catalog, request: &Request) {
    let prepared = Prepared::of(catalog, request, at()).expect("all that it takes");
    say(&format!("{name}:"));
    let (best, all) = median(|| whole(catalog, request));
    let in_words = |paper: &Paper| paper.as_ref().map_or_else(|| "no".to_owned(), |paper| format!("Paper {paper}"));
    say(&format!("  resolve, with explanation: {all}: {}", in_words(&best)));
    let (found, solve) = median(|| prepared.paper().expect("an answer within the budget").cloned());
    assert_eq!(found, best, "the solve alone finds the same");
    say(&format!("  solve only: {:.3} ms", solve.took.as_secs_f64() * 1000.0));
    let times = |other: &Cost| {
        let ratio = |ours: &Cost| other.took.as_secs_f64() / ours.took.as_secs_f64();
        format!("{other} ({:.1} times resolve, {:.0} times solve only)", ratio(&all), ratio(&solve))
    };
    let tables = PlainTables::read(catalog, std::slice::from_ref(request), at());
    let question = tables.question();
    let told = |found: Found| match found {
        Found::Papers(papers) => in_words(&papers.map(|papers| question.minecraft(0, papers[0]).clone())),
        Found::NotIn(time) => format!("no answer in {} s", time.as_secs()),
    };
    let plain = Plain::new(&question);
    let (found, other) = median(|| plain.solve());
    assert_eq!(told(found), in_words(&best), "the plain encoding finds the same");
    say(&format!("  plain encoding in pubgrub, solve only: {}", times(&other)));
    // It takes its tables with it: only the solve is measured.
    let mut runs: Vec<(Found, Cost)> = (0..RUNS)
        .map(|_| {
            let others = Others::new(&question);
            cost(|| others.solve())
        })
        .collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    let (found, other) = runs.swap_remove(RUNS / 2);
    say(&format!("  resolvo, solve only: {}: {}", times(&other), told(found)));
}

fn main() {
    for (name, blocked) in [("15 newest Papers blocked", 15), ("every Paper blocked", PAPERS)] {
        let big = big(blocked);
        let name = format!("one server, {PLUGINS} plugins of {RELEASES} releases, {name}");
        compare(&name, &big.catalog(), &big.request());
    }
    compare("recorded catalog, six plugins", &recorded::read(&SIX), &recorded::request(&SIX, PaperWish::Auto));
}
