//! Edge (reads). Compares our solver with other solvers on the same question.
//!
//! The question is one server with 40 plugins of 900 releases, of which 3 in 10 may not be used. It is asked with the 15 newest Papers blocked, and
//! with every Paper blocked. A third question is the recorded catalog with six plugins.
//!
//! `resolve` is everything that this project does for an answer: check the eligibility of every release, index, solve, explain. "Solve only" is the
//! third of these steps, from prepared tables, with the proof when there is no answer. The [`other_solvers`] do the same.

use std::process::ExitCode;
use std::time::Duration;

use benches::budgets::Bounds;
use benches::generators::adversarial::{PLUGINS, big};
use benches::generators::{PAPERS, RELEASES, SIX_PLUGINS, now};
use benches::measure::{Cost, measure, median, print_line};
use other_solvers::{Found, PlainPubgrub, Resolvo};
use resolver::model::catalog::Catalog;
use resolver::model::request::{PaperRequest, Request};
use resolver::model::version::Minecraft;
use resolver::{PlainTables, PreparedTables, Unsolvable};

mod other_solvers;
mod recorded;

/// The time limit for other solvers.
const OTHERS_TIME_LIMIT: Duration = Duration::from_mins(2);
/// The number of runs. The median counts.
const RUNS: usize = 9;

/// The answer that all solvers can give: which Paper.
type Paper = Option<Minecraft>;

fn resolve_paper(catalog: &Catalog, request: &Request) -> Paper {
    match resolver::resolve(catalog, request, now()) {
        Ok(resolution) => Some(resolution.lock.minecraft),
        Err(unsolvable) => {
            assert!(matches!(unsolvable, Unsolvable::NoSolution(_)), "{unsolvable}");
            None
        }
    }
}

/// The limits of the design. A limit is absent where another bench measures it.
#[derive(Default)]
struct Limits {
    /// The time limit of the solve alone, with its proof if there is no answer.
    solve: Option<Duration>,
    /// The time limit of the whole answer.
    resolve: Option<Duration>,
    /// The minimum ratio between the plain encoding and our solve.
    plain: Option<f64>,
}

fn compare(name: &str, catalog: &Catalog, request: &Request, limits: &Limits, bounds: &mut Bounds) {
    let prepared = PreparedTables::new(catalog, request, now()).expect("the catalog is complete");
    print_line(&format!("{name}:"));
    let measure_resolve = || median(RUNS, || resolve_paper(catalog, request));
    let (best, all) = measure_resolve();
    let paper_text = |paper: &Paper| paper.as_ref().map_or_else(|| "no".to_owned(), |paper| format!("Paper {paper}"));
    print_line(&format!("  resolve, with explanation: {all}: {}", paper_text(&best)));
    let measure_solve = || median(RUNS, || prepared.paper().expect("an answer within the budget").cloned());
    let (found, solve) = measure_solve();
    assert_eq!(found, best, "the solve alone finds the same Paper");
    print_line(&format!("  solve only: {:.3} ms", solve.took.as_secs_f64() * 1000.0));
    let times = |other: &Cost| {
        format!("{other} ({:.1} times resolve, {:.0} times solve only)", other.ratio_to(&all), other.ratio_to(&solve))
    };
    let tables = PlainTables::read(catalog, std::slice::from_ref(request), now());
    let question = tables.encode();
    let found_text = |found: Found| match found {
        Found::Papers(papers) => paper_text(&papers.map(|papers| question.minecraft(0, papers[0]).clone())),
        Found::TimedOut(time) => format!("no answer in {} s", time.as_secs()),
    };
    let plain = PlainPubgrub::new(&question);
    let (found, other) = median(RUNS, || plain.solve(OTHERS_TIME_LIMIT));
    assert_eq!(found_text(found), paper_text(&best), "the plain encoding finds the same Paper");
    print_line(&format!("  plain encoding in pubgrub, solve only: {}", times(&other)));
    if let Some(least) = limits.plain {
        bounds.check_min(&format!("{name}: plain encoding, solve only"), other.ratio_to(&solve), least, "times");
    }
    // `solve` consumes the tables, so only the solve is measured.
    let mut runs: Vec<(Found, Cost)> = (0..RUNS)
        .map(|_| {
            let resolvo = Resolvo::new(&question);
            measure(|| resolvo.solve(OTHERS_TIME_LIMIT))
        })
        .collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    let (found, other) = runs.swap_remove(RUNS / 2);
    print_line(&format!("  resolvo, solve only: {}: {}", times(&other), found_text(found)));
    if let Some(longest) = limits.solve {
        bounds.check_time(&format!("{name}: solve only"), solve.took, longest, || measure_solve().1.took);
    }
    if let Some(longest) = limits.resolve {
        bounds
            .check_time(&format!("{name}: resolve, with explanation"), all.took, longest, || measure_resolve().1.took);
    }
}

fn main() -> ExitCode {
    let mut bounds = Bounds::new("references");
    let ms = |ms: f64| Some(Duration::from_secs_f64(ms / 1000.0));
    for (name, blocked, limits) in [
        ("15 newest Papers blocked", 15, Limits { solve: ms(0.5), resolve: None, plain: Some(400.0) }),
        ("every Paper blocked", PAPERS, Limits { solve: ms(2.0), resolve: ms(100.0), plain: None }),
    ] {
        let big = big(blocked);
        let name = format!("one server, {PLUGINS} plugins of {RELEASES} releases, {name}");
        compare(&name, &big.catalog(), &big.request(), &limits, &mut bounds);
    }
    let (catalog, request) = (recorded::read(&SIX_PLUGINS), recorded::request(&SIX_PLUGINS, PaperRequest::Auto));
    compare("recorded catalog, six plugins", &catalog, &request, &Limits::default(), &mut bounds);
    bounds.finish()
}
