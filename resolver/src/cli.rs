//! Edge (writes). The `resolver` command: arguments in, the answer on stdout, everything else on stderr.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use jiff::Timestamp;
use tracing_subscriber::EnvFilter;

mod arguments;
mod ask;
mod checked;
mod document;
mod input;
mod instant;
mod known_projects;
mod manifests;
mod nearest;
mod rules;
mod strict;

use arguments::{Arguments, CatalogCommand, Command};

/// How a command ended; the numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Every question has an answer, and it is a yes.
    Solved = 0,
    /// Every question has an answer, and one is a no.
    NoSolution = 1,
    /// Anything else: wrong input, nothing known, nothing readable.
    Failed = 2,
}

/// What a command has to say.
#[derive(Debug)]
struct Said {
    /// The answer, for stdout.
    answer: String,
    /// Notes and what went wrong, one a line, for stderr.
    notes: Vec<String>,
    /// How it ended.
    end: End,
}

impl Said {
    fn nothing_but(notes: Vec<String>) -> Self {
        Self { answer: String::new(), notes, end: End::Failed }
    }
}

/// Runs the command with these arguments; `now` is what the clock says.
pub fn run(arguments: impl IntoIterator<Item = OsString>, now: Timestamp) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(refused) => {
            // Help is an answer, and goes to stdout; clap knows.
            let _ = refused.print();
            return ExitCode::from(if refused.use_stderr() { End::Failed as u8 } else { End::Solved as u8 });
        }
    };
    // What is worth a log line here is worth a user's eye: warnings only, unless RUST_LOG asks for more.
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn")))
        .with_writer(io::stderr)
        .without_time()
        .with_target(false)
        .init();
    let Said { answer, notes, end } = match arguments.command {
        Command::Explain(explain) => ask::explain(&explain, explain.reading.now.unwrap_or(now)),
        Command::Catalog(CatalogCommand::Fetch(fetch)) => ask::fetch(&fetch, fetch.reading.now.unwrap_or(now)),
    };
    let mut stderr = io::stderr().lock();
    for note in notes {
        // Nobody is left to be told.
        let _ = writeln!(stderr, "{note}");
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::from(end as u8),
        // As with `… | head`: the reader has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(end as u8),
        Err(error) => {
            let _ = writeln!(stderr, "could not write the answer: {error}");
            ExitCode::from(End::Failed as u8)
        }
    }
}
