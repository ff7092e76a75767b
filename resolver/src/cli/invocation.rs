//! Pure. The name that the command was called by: its own, or as a plugin of kubectl.

use std::ffi::OsString;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use super::args::Arguments;

/// What commands are typed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invocation {
    /// `resolver`
    Resolver,
    /// `kubectl nightshift`: kubectl runs `kubectl-nightshift` of the `PATH`.
    Kubectl,
}

/// What each command takes before it is told where the servers are. Without lines of our own clap would name the upstreams'
/// flags as if they were asked for, when the environment sets them.
const USAGES: [(&[&str], &str); 7] = [
    (&["explain"], ""),
    (&["lock"], ""),
    (&["verify"], "<LOCK> "),
    (&["outdated"], ""),
    (&["plan"], ""),
    (&["ready"], "<VERSION> "),
    (&["catalog", "fetch"], ""),
];

/// Where the servers are.
const PLACES: &[&str] =
    if cfg!(feature = "cluster") { &["-f <FILE|DIR|->...", "[SERVER]..."] } else { &["-f <FILE|DIR|->..."] };

impl Invocation {
    /// By the first argument.
    pub(super) fn by(program: Option<&OsString>) -> Self {
        let stem = program.and_then(|program| Path::new(program).file_stem()?.to_str());
        if stem == Some("kubectl-nightshift") { Self::Kubectl } else { Self::Resolver }
    }

    /// The name of the file.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Resolver => "resolver",
            Self::Kubectl => "kubectl-nightshift",
        }
    }

    /// What a user types before the command's name.
    pub(super) fn typed(self) -> &'static str {
        match self {
            Self::Resolver => "resolver",
            Self::Kubectl => "kubectl nightshift",
        }
    }
}

/// The command line as it is called.
pub(super) fn command(called: Invocation) -> Command {
    let typed = called.typed();
    let mut command = Arguments::command().bin_name(typed).display_name(typed);
    for (path, first) in USAGES {
        let path_in_words = path.join(" ");
        let line = |place: &&str| format!("{typed} {path_in_words} [OPTIONS] {first}{place}");
        let mut lines: Vec<String> = PLACES.iter().map(line).collect();
        lines.extend((!is_fetch(path)).then(|| line(&"--problem <FILE>")));
        // Under the first one, which stands after `Usage: `.
        let usage = lines.join("\n       ");
        command = at(command, path, &|command| command.override_usage(usage.clone()));
    }
    // Shared with one that has no `--problem`.
    for (path, _) in USAGES.into_iter().filter(|(path, _)| !is_fetch(path)) {
        command = at(command, path, &|command| {
            if cfg!(feature = "cluster") {
                let places = ["servers", "namespace", "all_namespaces", "kubeconfig", "context"];
                command.mut_arg("problem", |problem| problem.conflicts_with_all(places))
            } else {
                command.mut_arg("files", |files| files.required(false).required_unless_present("problem"))
            }
        });
    }
    command
}

/// Whether it reads the upstreams anew, which no saved question answers.
fn is_fetch(path: &[&str]) -> bool {
    path == ["catalog", "fetch"]
}

/// With one command changed, however deep it is.
fn at(command: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| at(inner, rest, change)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_fit_together() {
        for called in [Invocation::Resolver, Invocation::Kubectl] {
            command(called).debug_assert();
        }
    }

    #[test]
    fn kubectl_calls_it_by_its_plugin_name_wherever_it_is() {
        let by = |program: &str| Invocation::by(Some(&program.into()));
        assert_eq!(by("/usr/local/bin/kubectl-nightshift"), Invocation::Kubectl);
        assert_eq!(by("kubectl-nightshift.exe"), Invocation::Kubectl);
        assert_eq!(by("./resolver"), Invocation::Resolver);
        assert_eq!(Invocation::by(None), Invocation::Resolver);
    }
}
