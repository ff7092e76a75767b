//! Pure. Shell completion for `kubectl nightshift`.
//!
//! kubectl runs `kubectl_complete-nightshift` from the `PATH` with the words so far, and reads lines in the format of
//! cobra.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use clap::builder::PossibleValue;
use clap::{Arg, Command, ValueHint};

/// No file names (cobra's `ShellCompDirectiveNoFileComp`).
const NO_FILE_COMPLETION: u8 = 4;
/// File names, completed by the shell (cobra's `ShellCompDirectiveDefault`).
const FILE_COMPLETION: u8 = 0;

/// Whether the command was called for completions.
pub(super) fn is_completion_call(program: Option<&OsString>) -> bool {
    let stem = program.and_then(|program| Path::new(program).file_stem()?.to_str());
    stem == Some("kubectl_complete-nightshift")
}

/// The completions of the last of these words. Each line has a completion, a tab and a description. The last line has
/// cobra's directive.
pub(super) fn completions(mut command: Command, words: &[String]) -> String {
    command.build();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let context = CompletionContext::parse(&command, before);
    let (found, directive) = context.candidates(last);
    let mut text = String::new();
    for (value, about) in found {
        let _ = if about.is_empty() { writeln!(text, "{value}") } else { writeln!(text, "{value}\t{about}") };
    }
    let _ = writeln!(text, ":{directive}");
    text
}

/// State before the word to complete.
struct CompletionContext<'c> {
    /// The innermost command.
    command: &'c Command,
    /// The option that takes the word, or may take it.
    option: Option<&'c Arg>,
    /// Number of positional words of the command so far.
    positional: usize,
}

impl<'c> CompletionContext<'c> {
    fn parse(command: &'c Command, words: &[String]) -> Self {
        let mut context = Self { command, option: None, positional: 0 };
        for word in words {
            context.advance(word);
        }
        context
    }

    fn advance(&mut self, word: &str) {
        if let Some(name) = word.strip_prefix("--") {
            self.option = self.long_option(name).filter(|_| !name.contains('='));
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // With more characters after the letter, those are its value.
            let single_letter = letters.chars().next().filter(|_| letters.chars().count() == 1);
            self.option = single_letter.and_then(|letter| self.options().find(|arg| arg.get_short() == Some(letter)));
            self.option = self.option.filter(|arg| takes_value(arg));
        } else if let Some(option) = self.option {
            // Some options take several values.
            let max_values = option.get_num_args().map_or(1, |range| range.max_values());
            self.option = Some(option).filter(|_| max_values > 1);
        } else if let Some(inner) = self.command.find_subcommand(word) {
            *self = Self { command: inner, option: None, positional: 0 };
        } else {
            self.positional += 1;
        }
    }

    fn options(&self) -> impl Iterator<Item = &'c Arg> + use<'c> {
        self.command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set())
    }

    /// The option of this long name, also with `=value`, if it takes a value.
    fn long_option(&self, name: &str) -> Option<&'c Arg> {
        let name = name.split('=').next();
        self.options().find(|arg| arg.get_long() == name).filter(|arg| takes_value(arg))
    }

    fn candidates(&self, last: &str) -> (Vec<(String, String)>, u8) {
        if let Some((name, value)) = last.strip_prefix("--").and_then(|option| option.split_once('=')) {
            return self
                .long_option(name)
                .map_or((Vec::new(), NO_FILE_COMPLETION), |option| value_candidates(option, value));
        }
        if last.starts_with('-') {
            let named = self.options().filter_map(|arg| Some((format!("--{}", arg.get_long()?), description(arg))));
            return (named.filter(|(name, _)| name.starts_with(last)).collect(), NO_FILE_COMPLETION);
        }
        if let Some(option) = self.option {
            return value_candidates(option, last);
        }
        if self.command.has_subcommands() {
            let matching = |inner: &&Command| !inner.is_hide_set() && inner.get_name().starts_with(last);
            let matching = self.command.get_subcommands().filter(matching);
            let mut named: Vec<_> =
                matching.map(|inner| (inner.get_name().to_owned(), first_line(inner.get_about()))).collect();
            named.sort();
            return (named, NO_FILE_COMPLETION);
        }
        // The last positional takes all remaining words.
        let positionals: Vec<&Arg> = self.command.get_positionals().collect();
        let taken = positionals.get(self.positional).or(positionals.last());
        taken.map_or((Vec::new(), NO_FILE_COMPLETION), |arg| value_candidates(arg, last))
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The possible values of an argument with this prefix.
fn value_candidates(arg: &Arg, prefix: &str) -> (Vec<(String, String)>, u8) {
    let is_shown = |value: &PossibleValue| !value.is_hide_set() && value.get_name().starts_with(prefix);
    let possible = arg.get_possible_values();
    if possible.is_empty() {
        return (Vec::new(), if is_path(arg) { FILE_COMPLETION } else { NO_FILE_COMPLETION });
    }
    let found = possible.iter().filter(|value| is_shown(value));
    (found.map(|value| (value.get_name().to_owned(), first_line(value.get_help()))).collect(), NO_FILE_COMPLETION)
}

/// Whether the argument is a path. Arguments that also accept `-` are strings, and are recognized by their value name.
fn is_path(arg: &Arg) -> bool {
    let mut names = arg.get_value_names().unwrap_or_default().iter();
    arg.get_value_hint() == ValueHint::AnyPath
        || names.any(|name| ["FILE", "DIR", "LOCK", ".lock.json"].iter().any(|path| name.contains(path)))
}

fn description(arg: &Arg) -> String {
    first_line(arg.get_help())
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
}
