//! Edge (writes). `resolver completions` and `resolver man`: generates both from the command line definition.

use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::ShellKind;
use crate::invocation;
use crate::invocation::Invocation;
use crate::output::atomic_write::write_atomically;
use crate::{ExitStatus, Output};
use upstream::format_chain;

/// The completion script for the shell.
pub(crate) fn completions(invocation: Invocation, shell: ShellKind) -> String {
    let target = match shell {
        ShellKind::Bash => Shell::Bash,
        ShellKind::Zsh => Shell::Zsh,
        ShellKind::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(target, &mut invocation::command(invocation), invocation.program(), &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The page of the whole command on stdout, or one page per command in `directory`.
pub(crate) fn man(invocation: Invocation, directory: Option<&Path>) -> Output {
    let mut command = invocation::command(invocation).display_name(invocation.program());
    command.build();
    let Some(directory) = directory else { return Output::success(page(&command)) };
    let mut output = Output::success(String::new());
    let mut pages = pages(&command);
    pages.sort();
    for (name, page) in pages {
        let path = directory.join(name);
        match write_atomically(&path, &page) {
            Ok(()) => {
                output.stdout.push_str(&path.display().to_string());
                output.stdout.push('\n');
            }
            Err(error) => {
                output.stderr.push(format_chain(&error));
                output.status = ExitStatus::Failed;
                break;
            }
        }
    }
    output
}

fn page(command: &Command) -> String {
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render(&mut page).expect("writing to a Vec cannot fail");
    String::from_utf8_lossy(&page).into_owned()
}

/// Pages of all commands with their file names.
fn pages(command: &Command) -> Vec<(String, String)> {
    // A name such as `resolver-catalog-fetch`, once the command is built.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut pages = vec![(format!("{name}.1"), page(command))];
    pages.extend(command.get_subcommands().flat_map(self::pages));
    pages
}
