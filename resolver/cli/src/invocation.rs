//! Pure. Detects the name that the command was called by: `resolver`, or a kubectl plugin.

use std::ffi::OsString;
use std::path::Path;

use clap::{Command, CommandFactory as _};

use super::args::Arguments;

/// How users call the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invocation {
    /// `resolver`
    Resolver,
    /// `kubectl nightshift`: kubectl runs `kubectl-nightshift` from the `PATH`.
    Kubectl,
}

/// The arguments of each command before the location of the servers. Without explicit usage lines, clap would list the
/// upstream flags as required when the environment sets them.
const USAGES: [(&[&str], &str); 7] = [
    (&["explain"], ""),
    (&["lock"], ""),
    (&["verify"], "<LOCK> "),
    (&["outdated"], ""),
    (&["plan"], ""),
    (&["ready"], "<VERSION> "),
    (&["catalog", "fetch"], ""),
];

/// The ways to give the servers.
const SERVER_ARGUMENTS: &[&str] = &["-f <FILE|DIR|->...", "[SERVER]..."];

impl Invocation {
    /// Detects the invocation by the first argument.
    pub(super) fn from_program(program: Option<&OsString>) -> Self {
        let stem = program.and_then(|program| Path::new(program).file_stem()?.to_str());
        if stem == Some("kubectl-nightshift") { Self::Kubectl } else { Self::Resolver }
    }

    /// The name of the program file.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Resolver => "resolver",
            Self::Kubectl => "kubectl-nightshift",
        }
    }

    /// The text that users type before the command's name.
    pub(super) fn typed_name(self) -> &'static str {
        match self {
            Self::Resolver => "resolver",
            Self::Kubectl => "kubectl nightshift",
        }
    }
}

/// The command line for this invocation.
pub(super) fn command(invocation: Invocation) -> Command {
    let typed = invocation.typed_name();
    let mut command = Arguments::command().bin_name(typed).display_name(typed);
    for (path, first) in USAGES {
        let path_text = path.join(" ");
        let line = |servers: &&str| format!("{typed} {path_text} [OPTIONS] {first}{servers}");
        let mut lines: Vec<String> = SERVER_ARGUMENTS.iter().map(line).collect();
        lines.extend((!is_fetch(path)).then(|| line(&"--problem <FILE>")));
        // Aligned with the first line, which follows `Usage: `.
        let usage = lines.join("\n       ");
        command = change_subcommand(command, path, &|command| command.override_usage(usage.clone()));
    }
    // These arguments are shared with a command that has no `--problem`.
    for (path, _) in USAGES.into_iter().filter(|(path, _)| !is_fetch(path)) {
        command = change_subcommand(command, path, &|command| {
            let places = ["servers", "namespace", "all_namespaces", "kubeconfig", "context"];
            command.mut_arg("problem", |problem| problem.conflicts_with_all(places))
        });
    }
    command
}

/// Whether the command reads the upstreams again, for which a saved query is no substitute.
fn is_fetch(path: &[&str]) -> bool {
    path == ["catalog", "fetch"]
}

/// Changes one subcommand at any depth.
fn change_subcommand(command: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| change_subcommand(inner, rest, change)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_arguments_are_consistent() {
        for invocation in [Invocation::Resolver, Invocation::Kubectl] {
            command(invocation).debug_assert();
        }
    }

    #[test]
    fn kubectl_plugin_name_is_detected_on_any_path() {
        let from_program = |program: &str| Invocation::from_program(Some(&program.into()));
        assert_eq!(from_program("/usr/local/bin/kubectl-nightshift"), Invocation::Kubectl);
        assert_eq!(from_program("kubectl-nightshift.exe"), Invocation::Kubectl);
        assert_eq!(from_program("./resolver"), Invocation::Resolver);
        assert_eq!(Invocation::from_program(None), Invocation::Resolver);
    }
}
