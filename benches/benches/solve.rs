//! Edge (reads). Measures the solve on the recorded catalog.
//!
//! The catalog has 66 Paper versions, 886 `ViaVersion` releases, 517 `ViaBackwards` releases, `DiscordSRV` and `GriefPrevention`, as the replaying
//! upstream serves them on 20 January 2026. For six plugins, `Multiverse-Core` and `BlueMap` are added.
//!
//! The reference of every ratio is `read the catalog`: parsing that catalog from JSON, which every tool must do first.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use benches::budgets::Bounds;
use benches::generators;
use benches::measure::median;
use criterion::Criterion;
use recorded::now;
use resolver::PreparedTables;
use resolver::explanation::Explanation;
use resolver::model::catalog::Catalog;
use resolver::model::request::{PaperRequest, Request};
use resolver::model::version::Minecraft;
use resolver::render::text;

mod recorded;

/// The number of runs that are compared with a limit. The median counts.
const RUNS: usize = 49;
/// The limits of the design with six plugins: for the solve alone, and for the whole answer.
const SOLVE_TIME_LIMIT: Duration = Duration::from_micros(100);
const RESOLVE_TIME_LIMIT: Duration = Duration::from_millis(20);

const THREE_PLUGINS: [&str; 3] = ["viabackwards", "discordsrv", "griefprevention"];

fn request(paper: PaperRequest) -> Request {
    recorded::request(&THREE_PLUGINS, paper)
}

fn measure_three(criterion: &mut Criterion) {
    let catalog = recorded::read(&THREE_PLUGINS);
    let json = serde_json::to_vec(&catalog).expect("a catalog has string keys only");
    let yes = request(PaperRequest::Auto);
    let no = request(PaperRequest::Pin { version: "1.21.11".parse().expect("a literal") });
    assert!(resolver::resolve(&catalog, &yes, now()).is_ok(), "the request must have a solution");
    assert!(resolver::resolve(&catalog, &no, now()).is_err(), "the pin must have no solution");

    let mut group = criterion.benchmark_group("three plugins");
    group.sample_size(20);
    group.bench_function("reference: read the catalog", |bencher| {
        bencher.iter(|| serde_json::from_slice::<Catalog>(black_box(&json)).expect("the JSON is a catalog"));
    });
    group.bench_function("yes, with explanation and text", |bencher| {
        bencher.iter(|| {
            let resolution = resolver::resolve(black_box(&catalog), &yes, now()).expect("a solution");
            text::render(&resolution.explanation, now())
        });
    });
    group.bench_function("no, with explanation and text", |bencher| {
        bencher.iter(|| {
            let no = resolver::resolve(black_box(&catalog), &no, now()).expect_err("a conflict");
            text::render(&no.explanation(), now())
        });
    });
    group.bench_function("what is still to be fetched", |bencher| {
        bencher.iter(|| resolver::missing_projects(black_box(&catalog), &yes));
    });
    group.finish();
}

/// Measures the solve alone, with pages read and releases checked before, and the whole answer.
fn measure_six(criterion: &mut Criterion, bounds: &mut Bounds) {
    let catalog = recorded::read(&generators::SIX_PLUGINS);
    let json = serde_json::to_vec(&catalog).expect("a catalog has string keys only");
    let request = recorded::request(&generators::SIX_PLUGINS, PaperRequest::Auto);
    let prepared = PreparedTables::new(&catalog, &request, now()).expect("the catalog is complete");
    let newest: Minecraft = "1.21.11".parse().expect("a literal");
    let resolution = resolver::resolve(&catalog, &request, now()).expect("the request has a solution");
    assert_eq!(resolution.lock.plugins.len(), generators::SIX_PLUGINS.len(), "all six plugins are chosen");
    assert_eq!(prepared.paper().expect("an answer within the budget"), Some(&resolution.lock.minecraft));
    assert!(
        resolution.lock.minecraft < newest && !resolution.explanation.blocked_by().is_empty(),
        "a newer Minecraft must be blocked"
    );
    let resolve_and_explain = || {
        let resolution = resolver::resolve(&catalog, &request, now()).expect("a solution");
        let why_not = resolver::why_not(&catalog, &request, &newest, now()).expect("an answer within the budget");
        text::render(&resolution.explanation, now()) + &text::render(&Explanation::WhyNot(why_not), now())
    };

    let mut group = criterion.benchmark_group("six plugins");
    group.sample_size(20);
    group.bench_function("reference: read the catalog", |bencher| {
        bencher.iter(|| serde_json::from_slice::<Catalog>(black_box(&json)).expect("the JSON is a catalog"));
    });
    group.bench_function("solve only", |bencher| bencher.iter(|| black_box(&prepared).paper()));
    group.bench_function("the whole answer, with explanation, why-not, proven hints and text", |bencher| {
        bencher.iter(black_box(resolve_and_explain));
    });
    group.finish();
    let solve = || median(RUNS, || black_box(&prepared).paper()).1.took;
    bounds.check_time("six plugins: solve only", solve(), SOLVE_TIME_LIMIT, solve);
    let whole = || median(RUNS, black_box(resolve_and_explain)).1.took;
    bounds.check_time("six plugins: the whole answer", whole(), RESOLVE_TIME_LIMIT, whole);
}

fn main() -> ExitCode {
    let (mut criterion, mut bounds) = (Criterion::default().configure_from_args(), Bounds::new("solve"));
    measure_three(&mut criterion);
    measure_six(&mut criterion, &mut bounds);
    criterion.final_summary();
    bounds.finish()
}
