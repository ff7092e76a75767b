//! Edge (reads and writes). Tests the command on a terminal: it writes to one side of a pseudo-terminal, and the test
//! reads the other.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Workspace, lobby};

/// Where a command writes to.
#[derive(Clone, Copy)]
enum End {
    Pipe,
    /// With this number of columns. 0 means unknown.
    Terminal(u16),
}

impl End {
    /// The side to read, and the side to write.
    fn open(self) -> (OwnedFd, OwnedFd) {
        match self {
            Self::Pipe => {
                let (reader, writer) = io::pipe().unwrap();
                (reader.into(), writer.into())
            }
            Self::Terminal(columns) => {
                let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
                grantpt(&reader).unwrap();
                unlockpt(&reader).unwrap();
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                let writer = rustix::fs::open(ptsname(&reader, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
                tcsetwinsize(&reader, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
                (reader, writer)
            }
        }
    }
}

/// The text that a command writes to stdout and to stderr.
fn run_with(mut command: Command, stdout: End, stderr: End) -> [String; 2] {
    let ((stdout_reader, stdout), (stderr_reader, stderr)) = (stdout.open(), stderr.open());
    let handles = [stdout_reader, stderr_reader].map(|reader| thread::spawn(move || read_to_end(reader)));
    let status = command.stdout(stdout).stderr(stderr).status().unwrap();
    // The command holds the write sides. The readers reach the end only when they are closed.
    drop(command);
    assert!(status.success(), "{status}");
    // A terminal adds a carriage return to each line.
    handles.map(|handle| handle.join().unwrap().replace("\r\n", "\n"))
}

/// A pipe ends with an empty read, a terminal with an error when the other side is closed.
fn read_to_end(reader: OwnedFd) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = File::from(reader).read_to_end(&mut bytes) {
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
    }
    String::from_utf8(bytes).unwrap()
}

/// `explain` in a workspace with these arguments and variables, separated by spaces.
fn explain(workspace: &Workspace, arguments: &str, variables: &str) -> Command {
    let arguments: Vec<&str> = "explain -f lobby.yaml".split(' ').chain(arguments.split_whitespace()).collect();
    let mut command = workspace.command(&arguments);
    command.envs(variables.split_whitespace().map(|variable| variable.split_once('=').unwrap()));
    command
}

#[test]
fn narrow_terminal_wraps_lines_below_their_column() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let on = |stdout: End| run_with(explain(&workspace, "", ""), stdout, End::Pipe)[0].clone();
    let plain = on(End::Pipe);
    assert!(plain.lines().any(|line| line.chars().count() > 100), "{plain}");
    // Very wide, unknown, and too narrow for wrapping.
    for columns in [500, 0, 39] {
        assert_eq!(on(End::Terminal(columns)), plain, "{columns} columns");
    }
    let narrow = on(End::Terminal(60));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&narrow), words(&plain), "wrapping keeps all words");
    let too_long: Vec<&str> = narrow.lines().filter(|line| line.chars().count() > 60).collect();
    assert!(matches!(too_long[..], [line] if line.contains("compatibilityOverride: {")), "not wrapped: {too_long:?}");
    let below = "\n  GriefPrevention 16.18.5  newest, of 6 October 2025. Its Modrinth\n";
    let below = below.replace(" Modrinth\n", "\n                           Modrinth page lists");
    assert!(narrow.contains(&below), "{narrow}");
}

#[test]
fn terminal_headings_are_bold_unless_disabled() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let shown = |arguments: &str, variables: &str| {
        run_with(explain(&workspace, arguments, variables), End::Terminal(500), End::Pipe)[0].clone()
    };
    let colored = shown("", "TERM=xterm");
    assert!(colored.starts_with("\u{1b}[1mlobby can run"), "{colored}");
    let plain = colored.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    for (arguments, variables) in [
        ("", "TERM=xterm NO_COLOR=1"),
        ("", "TERM=xterm CLICOLOR=0"),
        ("", "TERM=dumb"),
        ("", ""),
        ("--color never", "TERM=xterm CLICOLOR_FORCE=1"),
    ] {
        assert_eq!(shown(arguments, variables), plain, "{arguments} {variables}");
    }
    assert_eq!(shown("--color always", "TERM=dumb NO_COLOR=1"), colored);
    let json = shown("--format json", "TERM=xterm");
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok() && json.lines().count() > 50, "{json}");
}

#[test]
fn terminal_progress_is_shown_on_stderr() {
    let workspace = Workspace::new(&[("lobby.yaml", &lobby())]);
    let progress_line = "asking Fill for Paper, modrinth for 3 plugins, Docker Hub for images\r\r\u{1b}[K";
    let on = |stdout: End, stderr: End| run_with(explain(&workspace, "", ""), stdout, stderr);
    let [output, progress] = on(End::Pipe, End::Terminal(80));
    assert!(
        !progress.is_empty() && progress.replace(progress_line, "").is_empty(),
        "expected only the cleared line: {progress:?}"
    );
    // The answer is the same for every output and does not contain the progress line.
    assert_eq!(on(End::Pipe, End::Pipe), [output.as_str(), ""]);
    assert_eq!(on(End::Terminal(500), End::Pipe), [output.as_str(), ""]);
    let both = on(End::Terminal(500), End::Terminal(80));
    assert_eq!(both, [output, progress]);
}
