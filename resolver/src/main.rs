//! Edge (reads). Runs the `resolver` command, and is its only file that reads a clock.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one clock of this command; everything below is given the instant"
    )]
    let now = jiff::Timestamp::now();
    resolver::cli::run(std::env::args_os(), now)
}
