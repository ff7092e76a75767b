//! Edge (writes). Measures `resolver explain` from exec to exit with six plugins.
//!
//! The cache on disk is warm, and no request is sent. The measured process is this program again, which runs the same command. The reference of the
//! ratio is the same program that only parses `--version`.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use benches::budgets::Bounds;
use benches::generators::{self, ON_HANGAR, SIX_PLUGINS};
use benches::measure::print_line;

/// Set in a process that runs as `resolver`, with these arguments.
const RESOLVER: &str = "NIGHTSHIFT_BENCH_RESOLVER";

/// The times at which the cache is filled and read. They are less than five minutes apart, so no upstream is asked again.
const FILLED_AT: &str = "2026-01-20T12:00:00Z";
const READ_AT: &str = "2026-01-20T12:01:00Z";

/// The number of runs. The median counts.
const RUNS: usize = 60;

/// The limit of the design.
const TIME_LIMIT: Duration = Duration::from_millis(30);

/// The manifests of a server and the six plugins.
fn manifests() -> String {
    let (server, _) = include_str!("lobby.yaml").split_once("---").expect("the server is the first document");
    let plugin = |project: &&str| {
        let site = if *project == ON_HANGAR { "hangar" } else { "modrinth" };
        let name = project.to_lowercase();
        format!(
            "---\napiVersion: nightshift.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: {name}, namespace: games}}\nspec:\n  \
             source: {{type: {site}, project: {project}}}\n  instanceSelector: {{matchLabels: {{tier: lobby}}}}\n"
        )
    };
    server.to_owned() + &SIX_PLUGINS.iter().map(plugin).collect::<String>()
}

/// This program as `resolver`.
fn resolver_command(arguments: &str, dir: &Path, base: &str, now: &str) -> Command {
    let mut child = Command::new(env::current_exe().expect("this program has a path"));
    child.env(RESOLVER, arguments).env("XDG_CACHE_HOME", dir).env("NIGHTSHIFT_NOW", now).current_dir(dir);
    for (upstream, path) in
        [("FILL", "fill/v3"), ("HANGAR", "hangar/api/v1"), ("MODRINTH", "modrinth/v2"), ("DOCKER_HUB", "docker-hub/v2")]
    {
        child.env(format!("NIGHTSHIFT_{upstream}_URL"), format!("{base}/{path}"));
    }
    child.stdin(Stdio::null());
    child
}

/// The minimum, median and maximum duration of the runs. Each run must give the same bytes.
fn measure_runs(mut command: Command) -> [Duration; 3] {
    let mut first_output: Option<Vec<u8>> = None;
    let run = |_| {
        let start = Instant::now();
        let output = command.output().expect("this program can be run");
        let took = start.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(first_output.get_or_insert_with(|| output.stdout.clone()), &output.stdout, "the outputs differ");
        took
    };
    let mut took: Vec<Duration> = (0..RUNS).map(run).collect();
    took.sort();
    [took[0], took[RUNS / 2], took[RUNS - 1]]
}

fn main() -> ExitCode {
    if let Ok(arguments) = env::var(RESOLVER) {
        let arguments = std::iter::once("resolver").chain(arguments.split(' ')).map(Into::into);
        return cli::run(arguments.collect::<Vec<_>>(), generators::now());
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("lobby.yaml"), manifests()).expect("a writable directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be created");
    let (state, serving) =
        runtime.block_on(fixtures::upstream::spawn(generators::now())).expect("a free port on loopback");
    let command = |arguments, now| resolver_command(arguments, dir.path(), state.public_url(), now);
    let filled = command("explain -f lobby.yaml", FILLED_AT).output().expect("this program can be run");
    let text = String::from_utf8_lossy(&filled.stdout).into_owned();
    assert!(filled.status.success() && text.contains("BlueMap"), "{text}{}", String::from_utf8_lossy(&filled.stderr));
    // A request to an upstream would fail from now on.
    serving.abort();
    let reference = measure_runs(command("--version", READ_AT));
    let explain = measure_runs(command("explain -f lobby.yaml", READ_AT));
    for (label, [least, median, most]) in
        [("reference: resolver --version", reference), ("resolver explain, six plugins", explain)]
    {
        let [least, median, most] = [least, median, most].map(|time| time.as_secs_f64() * 1000.0);
        print_line(&format!("{label}, exec to exit, {RUNS} runs: {median:.1} ms ({least:.1} to {most:.1})"));
    }
    let mut bounds = Bounds::new("explain");
    let again = || measure_runs(command("explain -f lobby.yaml", READ_AT))[1];
    bounds.check_time("resolver explain, six plugins, exec to exit", explain[1], TIME_LIMIT, again);
    bounds.finish()
}
