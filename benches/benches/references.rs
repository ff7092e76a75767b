//! Edge (reads). Compares our solver with other solvers on the same question.
//!
//! The question is one server with 40 plugins of 900 releases, of which 3 in 10 may not be used. It is asked with the 15 newest Papers blocked, and
//! with every Paper blocked. A third question is the recorded catalog with six plugins.
//!
//! `resolve` is everything that this project does for an answer: check the eligibility of every release, index, solve, explain. "Solve only" is the
//! third of these steps, from prepared tables, with the proof when there is no answer. The [`others`] do the same.

use std::process::ExitCode;
use std::time::Duration;

use benches::bounds::Bounds;
use benches::measure::{Cost, cost, median, say};
use benches::worlds::hard::{PLUGINS, big};
use benches::worlds::{PAPERS, RELEASES, SIX, at};
use others::{Found, Others, Plain};
use resolver::catalog::Catalog;
use resolver::request::{PaperRequest, Request};
use resolver::version::Minecraft;
use resolver::{PlainTables, PreparedTables, Unsolvable};

mod others;
mod recorded;

/// The time limit for other solvers.
const LONGEST: Duration = Duration::from_mins(2);
/// The number of runs. The median counts.
const RUNS: usize = 9;

/// The answer that all solvers can give: which Paper.
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

/// The limits of the design. A limit is absent where another bench measures it.
#[derive(Default)]
struct Asked {
    /// The time limit of the solve alone, with its proof if there is no answer.
    solve: Option<Duration>,
    /// The time limit of the whole answer.
    whole: Option<Duration>,
    /// The minimum ratio between the plain encoding and our solve.
    plain: Option<f64>,
}

fn compare(name: &str, catalog: &Catalog, request: &Request, asked: &Asked, bounds: &mut Bounds) {
    let prepared = PreparedTables::of(catalog, request, at()).expect("all that it takes");
    say(&format!("{name}:"));
    let answer = || median(RUNS, || whole(catalog, request));
    let (best, all) = answer();
    let in_words = |paper: &Paper| paper.as_ref().map_or_else(|| "no".to_owned(), |paper| format!("Paper {paper}"));
    say(&format!("  resolve, with explanation: {all}: {}", in_words(&best)));
    let solve_only = || median(RUNS, || prepared.paper().expect("an answer within the budget").cloned());
    let (found, solve) = solve_only();
    assert_eq!(found, best, "the solve alone finds the same");
    say(&format!("  solve only: {:.3} ms", solve.took.as_secs_f64() * 1000.0));
    let times = |other: &Cost| {
        format!("{other} ({:.1} times resolve, {:.0} times solve only)", other.times(&all), other.times(&solve))
    };
    let tables = PlainTables::read(catalog, std::slice::from_ref(request), at());
    let question = tables.question();
    let told = |found: Found| match found {
        Found::Papers(papers) => in_words(&papers.map(|papers| question.minecraft(0, papers[0]).clone())),
        Found::NotIn(time) => format!("no answer in {} s", time.as_secs()),
    };
    let plain = Plain::new(&question);
    let (found, other) = median(RUNS, || plain.solve(LONGEST));
    assert_eq!(told(found), in_words(&best), "the plain encoding finds the same");
    say(&format!("  plain encoding in pubgrub, solve only: {}", times(&other)));
    if let Some(least) = asked.plain {
        bounds.at_least(&format!("{name}: plain encoding, solve only"), other.times(&solve), least, "times");
    }
    // `solve` consumes the tables, so only the solve is measured.
    let mut runs: Vec<(Found, Cost)> = (0..RUNS)
        .map(|_| {
            let others = Others::new(&question);
            cost(|| others.solve(LONGEST))
        })
        .collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    let (found, other) = runs.swap_remove(RUNS / 2);
    say(&format!("  resolvo, solve only: {}: {}", times(&other), told(found)));
    if let Some(longest) = asked.solve {
        bounds.time(&format!("{name}: solve only"), solve.took, longest, || solve_only().1.took);
    }
    if let Some(longest) = asked.whole {
        bounds.time(&format!("{name}: resolve, with explanation"), all.took, longest, || answer().1.took);
    }
}

fn main() -> ExitCode {
    let mut bounds = Bounds::of("references");
    let ms = |ms: f64| Some(Duration::from_secs_f64(ms / 1000.0));
    for (name, blocked, asked) in [
        ("15 newest Papers blocked", 15, Asked { solve: ms(0.5), whole: None, plain: Some(400.0) }),
        ("every Paper blocked", PAPERS, Asked { solve: ms(2.0), whole: ms(100.0), plain: None }),
    ] {
        let big = big(blocked);
        let name = format!("one server, {PLUGINS} plugins of {RELEASES} releases, {name}");
        compare(&name, &big.catalog(), &big.request(), &asked, &mut bounds);
    }
    let (catalog, request) = (recorded::read(&SIX), recorded::request(&SIX, PaperRequest::Auto));
    compare("recorded catalog, six plugins", &catalog, &request, &Asked::default(), &mut bounds);
    bounds.end()
}
