//! Edge (writes). The `resolver` command: parses arguments, writes the answer to stdout and everything else to stderr.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::FromArgMatches as _;
use jiff::Timestamp;
use tracing_subscriber::EnvFilter;

mod answers;
mod args;
mod cluster;
mod commands;
#[cfg(test)]
mod fuzz;
mod input;
mod invocation;
mod kubectl_complete;
#[cfg(test)]
#[path = "../../tests/support/mutate.rs"]
mod mutate;
mod output;
mod query;
mod saved_query;
mod schedule;
mod select_server;
mod session;
mod what_if;

use args::{Arguments, CatalogCommand, Command, SourceArgs};
use commands::{adopt, annotate, diff, explain, lock, man, migrate, outdated, plan, ready, schema, trust, verify};
use invocation::Invocation;
use output::style::styled;
use output::terminal;
use resolver::model::untrusted_text::sanitize_text;

/// Exit status of a command. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExitStatus {
    /// Every question has an answer, and all are positive.
    Solved = 0,
    /// Every question has an answer, and at least one is negative.
    NoSolution = 1,
    /// Any other end: wrong input, missing or unreadable data.
    Failed = 2,
}

/// Output of a command.
#[derive(Debug)]
struct Output {
    /// The answer, for stdout.
    stdout: String,
    /// Notes and errors, one a line, for stderr.
    stderr: Vec<String>,
    /// The exit status.
    status: ExitStatus,
}

impl Output {
    fn success(stdout: String) -> Self {
        Self { stdout, stderr: Vec::new(), status: ExitStatus::Solved }
    }

    fn failure(stderr: Vec<String>) -> Self {
        Self { stdout: String::new(), stderr, status: ExitStatus::Failed }
    }
}

/// Runs the command with these arguments. `now` is the time of the clock.
pub fn run(arguments: impl IntoIterator<Item = OsString>, now: Timestamp) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if kubectl_complete::is_completion_call(arguments.first()) {
        let words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        let found = kubectl_complete::completions(invocation::command(Invocation::Kubectl), &words.collect::<Vec<_>>());
        // Only the shell reads this output. A write error cannot be reported to anyone.
        let _ = io::stdout().lock().write_all(found.as_bytes());
        return ExitCode::from(ExitStatus::Solved as u8);
    }
    let invocation = Invocation::from_program(arguments.first());
    let mut command = invocation::command(invocation);
    let parsed = command.try_get_matches_from_mut(arguments);
    let arguments = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(refused) => {
            // clap prints help to stdout and errors to stderr.
            let _ = refused.print();
            return ExitCode::from(if refused.use_stderr() {
                ExitStatus::Failed as u8
            } else {
                ExitStatus::Solved as u8
            });
        }
    };
    // Users see the log of this command, so only warnings are logged unless RUST_LOG asks for more.
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,kube_client=off")))
        .with_writer(io::stderr)
        .without_time()
        .with_target(false)
        .init();
    let Output { stdout: mut text, stderr: messages, status } = run_command(&arguments.command, invocation, now);
    if arguments.command.is_for_users() {
        text = styled(&sanitize_text(&text), terminal::wants_color(arguments.color), terminal::width());
    }
    let mut stderr = io::stderr().lock();
    for message in messages {
        // An error on stderr cannot be reported anywhere else.
        let _ = writeln!(stderr, "{}", sanitize_text(&message));
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::from(status as u8),
        // The reader closed the pipe, as in `… | head`. This is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(status as u8),
        Err(error) => {
            let _ = writeln!(stderr, "could not write the answer: {error}");
            ExitCode::from(ExitStatus::Failed as u8)
        }
    }
}

fn run_command(command: &Command, invocation: Invocation, clock: Timestamp) -> Output {
    let now = |sources: &SourceArgs| sources.now.unwrap_or(clock);
    let output = match command {
        Command::Explain(explain) => explain::explain(explain, now(&explain.reading.sources)),
        Command::Lock(lock) => lock::lock(lock, now(&lock.from.reading.sources)),
        Command::Diff(diff) => Ok(diff::diff(diff)),
        Command::Outdated(outdated) => outdated::outdated(outdated, now(&outdated.from.reading.sources)),
        Command::Plan(plan) => plan::plan(plan, now(&plan.from.reading.sources)),
        Command::Ready(ready) => ready::ready(ready, now(&ready.from.reading.sources)),
        Command::Verify(verify) => verify::verify(verify, now(&verify.from.reading.sources)),
        Command::Trust(trust) => trust::trust(trust),
        Command::Restart(server) => annotate::restart(server, clock),
        Command::Refresh(server) => annotate::refresh(server, clock),
        Command::Adopt(adopt) => adopt::adopt(adopt, now(&adopt.sources)),
        Command::Migrate(migrate) => migrate::migrate(migrate),
        Command::Catalog(CatalogCommand::Fetch(fetch)) => Ok(explain::fetch(fetch, now(&fetch.reading.sources))),
        Command::Schema(schema) => Ok(Output::success(schema::schema(schema.of))),
        Command::Completions(completions) => Ok(Output::success(man::completions(invocation, completions.shell))),
        Command::Man(man) => Ok(man::man(invocation, man.output.as_deref())),
    };
    // An early end is printed like any other.
    output.unwrap_or_else(|output| output)
}
