//! Edge (reads). Runs the `resolver` command, and is its only file that reads a clock.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the clock; other code receives this instant"
    )]
    let now = jiff::Timestamp::now();
    cli::run(std::env::args_os(), now)
}
