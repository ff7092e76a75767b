//! Edge (reads). Tests the `resolver` command as a user runs it, against the replaying upstream: exit code, stdout and
//! stderr.

#![expect(clippy::unwrap_used, reason = "a failed setup must fail the test")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use fixtures::upstream::State;
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "cli/adopt.rs"]
mod adopt;
#[path = "cli/answers.rs"]
mod answers;
#[path = "cli/cluster.rs"]
mod cluster;
#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/downgrades.rs"]
mod downgrades;
#[path = "cli/facts.rs"]
mod facts;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/invalid_input.rs"]
mod invalid_input;
#[path = "cli/locks.rs"]
mod locks;
#[path = "cli/migrate.rs"]
mod migrate;
#[path = "cli/offline_catalog.rs"]
mod offline_catalog;
#[path = "cli/overview.rs"]
mod overview;
#[path = "cli/plans.rs"]
mod plans;
#[path = "cli/purpur.rs"]
mod purpur;
#[path = "cli/readme.rs"]
mod readme;
#[path = "cli/schemas.rs"]
mod schemas;
#[path = "cli/svg.rs"]
mod svg;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/trust.rs"]
mod trust;
#[path = "cli/verify.rs"]
mod verify;
#[path = "cli/what_if.rs"]
mod what_if;
#[path = "cli/windows.rs"]
mod windows;

/// The current time of both the replay and the command.
const NOW: &str = "2026-01-21T12:00:00Z";

/// The replay, and the cache that all tests share so that the upstream is read once.
struct Replay {
    runtime: Runtime,
    upstream: State,
    cache: TempDir,
}

static REPLAY: LazyLock<Replay> = LazyLock::new(|| {
    // With its own threads, because the tests block in the commands they run.
    let runtime = Runtime::new().unwrap();
    let (upstream, _task) = runtime.block_on(fixtures::upstream::spawn(NOW.parse().unwrap())).unwrap();
    Replay { runtime, upstream, cache: tempfile::tempdir().unwrap() }
});

/// A directory with manifests, in which commands are run.
struct Workspace(TempDir);

impl Workspace {
    fn new(files: &[(&str, &str)]) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = workspace.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        workspace
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_resolver"));
        command.current_dir(self.0.path()).env_clear().args(arguments).stdin(Stdio::null());
        command.env("NIGHTSHIFT_NOW", NOW).env("XDG_CACHE_HOME", REPLAY.cache.path());
        let base = REPLAY.upstream.public_url();
        for (name, path) in [
            ("FILL", "fill/v3"),
            ("PURPUR", "purpur/v2"),
            ("HANGAR", "hangar/api/v1"),
            ("MODRINTH", "modrinth/v2"),
            ("DOCKER_HUB", "docker-hub/v2"),
        ] {
            command.env(format!("NIGHTSHIFT_{name}_URL"), format!("{base}/{path}"));
        }
        command
    }

    /// Exit code, stdout and stderr, as they are compared.
    fn run(&self, arguments: &[&str]) -> String {
        output_text(&self.command(arguments).output().unwrap())
    }

    fn run_with_stdin(&self, arguments: &[&str], stdin: &str) -> String {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        output_text(&child.wait_with_output().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn output_text(output: &Output) -> String {
    let mut shown = format!("exit {}\n", output.status.code().unwrap());
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = std::str::from_utf8(bytes).unwrap();
        if !text.is_empty() {
            writeln!(shown, "-- {name}\n{}", text.trim_end()).unwrap();
        }
    }
    shown
}

/// A server named `lobby` with a window, and these further lines of its spec.
fn server(spec: &str) -> String {
    format!(
        "apiVersion: nightshift.dev/v1alpha1\nkind: PaperMCServer\n\
         metadata: {{name: lobby, namespace: games, labels: {{tier: survival}}}}\n\
         spec:\n  updateSchedule: {{maintenanceWindow: {{cron: \"0 4 * * 0\"}}}}\n{spec}"
    )
}

/// A Plugin from Modrinth for all servers of `games`, and these further fields of its spec.
fn plugin(project: &str, more: &str) -> String {
    format!(
        "---\napiVersion: nightshift.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: {project}, namespace: games}}\n\
         spec: {{source: {{type: modrinth, project: {project}}}, instanceSelector: {{}}{more}}}\n"
    )
}

/// The server of most tests: the newest Paper for which ViaBackwards, DiscordSRV and GriefPrevention all have a
/// release.
fn lobby() -> String {
    let plugins = ["viabackwards", "discordsrv", "griefprevention"].map(|project| plugin(project, "")).concat();
    server("  updateStrategy: auto\n") + &plugins
}

/// Compares with the snapshot. Addresses are replaced, because they differ from run to run.
fn assert_snapshot(name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("cli/snapshots");
    settings.add_filter(r"http://127\.0\.0\.1:\d+", "[upstream]");
    // The replay's Paper JARs contain its address, so their hashes differ in each run.
    settings.add_filter(r"/files/[0-9a-f]{64}/", "/files/[sha256]/");
    settings.add_filter(r#""sha256:[0-9a-f]{64}""#, "\"sha256:[hex]\"");
    settings.add_filter(r"sha256:[0-9a-f]{12}…", "sha256:[hex]…");
    settings.add_filter(r#""digest": "[0-9a-f]{64}""#, "\"digest\": \"[hex]\"");
    settings.add_filter(r#""size": \d+"#, "\"size\": [size]");
    settings.add_filter(r"(resolver |nightshift |v)\d+\.\d+\.\d+", "$1[version]");
    settings.bind(|| insta::assert_snapshot!(name, shown));
}
