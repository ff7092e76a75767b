//! Edge (reads and writes). Detects color support and width of the terminal, and shows progress.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;

/// Whether the answer is colored. `auto` follows `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM`, and never colors
/// a file or a pipe.
pub(crate) fn wants_color(when: ColorWhen) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
    }
}

/// Width of the terminal in characters. `None` when the answer goes to a file or a pipe.
pub(crate) fn width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    // Some terminals report 0.
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A progress line, on a terminal only. Dropping the value removes it.
#[derive(Debug)]
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Shows the line.
    pub(crate) fn show(text: &str) -> Self {
        let mut stderr = io::stderr().lock();
        let is_shown = stderr.is_terminal();
        if is_shown {
            // A failure is ignored, because the command works without the line.
            let _ = write!(stderr, "{text}\r").and_then(|()| stderr.flush());
        }
        Self { is_shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            // Clears to the end of the line, so that no text remains.
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// When an answer is colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}
