//! Edge (writes). Counts the instructions of five questions with valgrind. Unlike time, the count is the same on a busy machine.
//!
//! Each case runs twice under callgrind: with its work and with its preparation only. The difference is the count. The counts are compared with
//! `instructions.txt`. With `NIGHTSHIFT_RECORD=1` they are written to it.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use benches::budgets::Bounds;
use benches::generators::adversarial::big;
use benches::generators::{self, PAPERS, fleet, fleet_catalog};
use benches::instruction_counts::{self, Counts};
use benches::measure::print_line;
use resolver::model::catalog::Catalog;
use resolver::model::request::PaperRequest;
use resolver::render::text;
use resolver::{Budget, Fleet};

mod recorded;

/// Set for the counted process: the case, and whether it does the work.
const CASE: &str = "NIGHTSHIFT_BENCH_CASE";
const WORK: &str = "NIGHTSHIFT_BENCH_WORK";
/// The directory with the catalog that the first process has read.
const DIR: &str = "NIGHTSHIFT_BENCH_DIR";

/// The times at which the cache is filled and at which `explain` is counted. They are less than five minutes apart, so no upstream is asked again.
const FILLED_AT: &str = "2026-01-20T12:00:00Z";
const READ_AT: &str = "2026-01-20T12:01:00Z";

/// A directory with the recorded catalog, and whether to do the work.
type Case = fn(&Path, bool);

const CASES: [(&str, Case); 5] = [
    ("recorded catalog, six plugins: the answer in words", six_plugins),
    ("40 plugins of 900 releases, 15 newest Papers blocked: the answer in words", fifteen_blocked),
    ("40 plugins of 900 releases, every Paper blocked: the answer in words", all_blocked),
    ("1,000 servers that share 20 plugins: read and decide", thousand),
    ("resolver explain, three plugins, warm cache", explain),
];

const MANIFESTS: &str = include_str!("lobby.yaml");

fn six_plugins(dir: &Path, work: bool) {
    let json = fs::read(dir.join("catalog.json")).expect("the first process wrote the file");
    let catalog: Catalog = serde_json::from_slice(&json).expect("the file is a catalog");
    if work {
        resolve_and_explain(
            &catalog,
            &recorded::request(&generators::SIX_PLUGINS, PaperRequest::Auto),
            recorded::now(),
        );
    }
}

fn resolve_and_explain(catalog: &Catalog, request: &resolver::model::request::Request, at: jiff::Timestamp) {
    let explanation = match resolver::resolve(catalog, request, at) {
        Ok(resolution) => resolution.explanation,
        Err(unsolvable) => unsolvable.explanation(),
    };
    black_box(text::render(&explanation, at));
}

fn blocked(papers: usize, work: bool) {
    let big = big(papers);
    let (catalog, request) = (big.catalog(), big.request());
    if work {
        resolve_and_explain(&catalog, &request, generators::now());
    }
}

fn fifteen_blocked(_: &Path, work: bool) {
    blocked(15, work);
}

fn all_blocked(_: &Path, work: bool) {
    blocked(PAPERS, work);
}

fn thousand(_: &Path, work: bool) {
    let (catalog, requests) = (fleet_catalog(), fleet(1_000));
    if work {
        let fleet = Fleet::read(&catalog, &requests, generators::now());
        black_box(fleet.decide(Budget::default()).solved_together().len());
    }
}

/// The addresses and the cache of `explain` are in the environment.
fn explain(dir: &Path, work: bool) {
    let manifests = dir.join("lobby.yaml");
    if work {
        let arguments = ["resolver".as_ref(), "explain".as_ref(), "-f".as_ref(), manifests.as_os_str()];
        cli::run(arguments.map(Into::into), recorded::now());
    }
}

/// The process that is counted.
fn counted_process(case: &str) {
    let (_, case) = CASES.into_iter().find(|(name, _)| *name == case).expect("the name is in the list");
    let dir = PathBuf::from(env::var_os(DIR).expect("set together with the case"));
    case(&dir, env::var_os(WORK).is_some());
}

/// This program again, running one case.
fn case_command(program: Command, name: &str, dir: &Path, base: &str, work: bool) -> Command {
    let mut child = program;
    child.env(CASE, name).env(DIR, dir).env("XDG_CACHE_HOME", dir).env("NIGHTSHIFT_NOW", READ_AT);
    for (upstream, path) in
        [("FILL", "fill/v3"), ("HANGAR", "hangar/api/v1"), ("MODRINTH", "modrinth/v2"), ("DOCKER_HUB", "docker-hub/v2")]
    {
        child.env(format!("NIGHTSHIFT_{upstream}_URL"), format!("{base}/{path}"));
    }
    if work {
        child.env(WORK, "1");
    }
    child.stdin(Stdio::null()).stdout(Stdio::null());
    child
}

/// The instructions of one run, parsed from valgrind's output: `==7== I   refs:   359,713,773`.
fn count_instructions(name: &str, dir: &Path, base: &str, work: bool) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    let out = dir.join("callgrind.out");
    valgrind.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
    valgrind.arg(env::current_exe().map_err(|error| error.to_string())?);
    let done = case_command(valgrind, name, dir, base, work).output().map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    let refs = stderr.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.trim().replace(',', ""));
    match refs.and_then(|count| count.parse().ok()) {
        Some(count) if done.status.success() => Ok(count),
        Some(_) | None => Err(format!("`{name}` could not be counted: {stderr}")),
    }
}

fn count_all(dir: &Path, base: &str) -> Result<Counts, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    // Fills the cache.
    let (explain, _) = CASES[4];
    let filled = case_command(Command::new(this), explain, dir, base, true)
        .env("NIGHTSHIFT_NOW", FILLED_AT)
        .status()
        .map_err(|error| error.to_string())?;
    if !filled.success() {
        return Err(format!("`{explain}` failed before it was counted"));
    }
    let count = |(name, _): (&str, Case)| {
        let whole = count_instructions(name, dir, base, true)?;
        let count = whole.saturating_sub(count_instructions(name, dir, base, false)?);
        Ok((name.to_owned(), count))
    };
    CASES.into_iter().map(count).collect()
}

fn main() -> ExitCode {
    if let Ok(case) = env::var(CASE) {
        counted_process(&case);
        return ExitCode::SUCCESS;
    }
    if !Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        print_line("valgrind is not here, so no instructions are counted; everything else is measured.");
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be created");
    let at = recorded::now();
    let (state, _serving) = runtime.block_on(fixtures::upstream::spawn(at)).expect("a free port on loopback");
    let catalog = recorded::read(&generators::SIX_PLUGINS);
    let json = serde_json::to_vec(&catalog).expect("a catalog has string keys only");
    fs::write(dir.path().join("catalog.json"), json).expect("a writable directory");
    fs::write(dir.path().join("lobby.yaml"), MANIFESTS).expect("a writable directory");

    let new = count_all(dir.path(), state.public_url()).expect("each case can be counted");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    let old = fs::read_to_string(&file).map_or_else(|_| Ok(Counts::new()), |text| instruction_counts::parse(&text));
    let old = old.expect("the file has the expected format");
    print_line(instruction_counts::compare(&old, &new).trim_end());
    let mut bounds = Bounds::new("instructions");
    if env::var_os("NIGHTSHIFT_RECORD").is_some() {
        fs::write(&file, instruction_counts::render(&new)).expect("the checkout is writable");
    } else {
        for (name, then) in &old {
            let (now, most) = (new.get(name).copied().unwrap_or_default(), instruction_counts::max_instructions(*then));
            if now > most {
                bounds.record_failure(&format!(
                    "{name}: {now} instructions; at most {most} are allowed, see `benches/README.md`"
                ));
            }
        }
    }
    bounds.finish()
}
