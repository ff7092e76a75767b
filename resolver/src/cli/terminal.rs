//! Edge (reads and writes). The terminal, if there is one: whether it wants colours, how wide it is, what is under way.

use std::io::{self, IsTerminal as _, Write as _};

use super::args::ColorWhen;

/// Whether the answer is coloured. Left to us, as the field has it: `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`, and
/// never into a file or a pipe.
pub(super) fn wants_color(when: ColorWhen) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
    }
}

/// How many letters fit into a line; None when the answer goes into a file or a pipe.
pub(super) fn width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    // Some terminals do not know.
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A line about what is under way, on a terminal only; it goes away with the value.
#[derive(Debug)]
pub(super) struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Shows the line.
    pub(super) fn of(what: &str) -> Self {
        let mut stderr = io::stderr().lock();
        let is_shown = stderr.is_terminal();
        if is_shown {
            // Without it everything goes on all the same.
            let _ = write!(stderr, "{what}\r").and_then(|()| stderr.flush());
        }
        Self { is_shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            // To the end of the line: nothing of it stays on the screen.
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
