//! Edge (reads). `resolver diff`: compares two locks, with exit codes as in diff(1).

use std::fs;
use std::io::{self, Read as _};

use crate::args::{DiffArgs, Format};
use crate::output::table::table;
use crate::{ExitStatus, Output};
use resolver::model::lock::{
    ChangeKind, Difference, Lock, LockedFile, PaperChange, PluginChange, ReleaseName, ValueChange,
};
use resolver::render::phrases::{list, named};
use upstream::format_chain;

/// A lock that could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("could not read `{name}`")]
    Read {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("{name}:{line}: this is not a lock: {message} (write one with `lock`)")]
    Unreadable { name: String, line: usize, message: String },
}

impl LockError {
    fn from_json(name: &str, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        // The message already begins with the line number.
        let position = format!(" at line {} column {}", error.line(), error.column());
        let message =
            if error.is_eof() { "it ends too early" } else { message.strip_suffix(&position).unwrap_or(&message) };
        Self::Unreadable { name: name.to_owned(), line: error.line(), message: message.to_owned() }
    }
}

/// Reads the lock in a file, or on stdin for `-`.
pub(crate) fn read_lock(name: &str) -> Result<Lock, LockError> {
    let failed = |source| LockError::Read { name: name.to_owned(), source };
    let (name, text) = if name == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(failed)?;
        ("stdin", text)
    } else {
        (name, fs::read_to_string(name).map_err(failed)?)
    };
    // Some editors write a byte order mark.
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| LockError::from_json(name, &error))
}

/// Runs `resolver diff`.
pub(crate) fn diff(diff: &DiffArgs) -> Output {
    let failure = |stderr| Output { stdout: String::new(), stderr, status: ExitStatus::Failed };
    if diff.old == "-" && diff.new == "-" {
        return failure(vec!["stdin holds one lock only: name a file for the other".to_owned()]);
    }
    let (old, new) = match (read_lock(&diff.old), read_lock(&diff.new)) {
        (Ok(old), Ok(new)) => (old, new),
        (old, new) => {
            return failure([old.err(), new.err()].iter().flatten().map(|error| format_chain(error)).collect());
        }
    };
    let difference = old.difference(&new);
    let stdout = match diff.format {
        Format::Human => render_text(&difference),
        Format::Json => render_json(&difference),
    };
    let status = if difference.equal { ExitStatus::Solved } else { ExitStatus::NoSolution };
    Output { stdout, stderr: Vec::new(), status }
}

fn render_json(difference: &Difference) -> String {
    let mut text = serde_json::to_string_pretty(difference).expect("a difference has string keys only");
    text.push('\n');
    text
}

fn render_text(difference: &Difference) -> String {
    let Difference { old, new, equal, .. } = difference;
    let server =
        if old.server == new.server { old.server.clone() } else { format!("{} -> {}", old.server, new.server) };
    if *equal {
        return format!("{server}: the versions are the same ({})\n", named(&new.paper));
    }
    format!("{server}: different\n{}", lines(difference))
}

/// One indented line for each difference.
pub(crate) fn lines(difference: &Difference) -> String {
    let Difference { paper, java, image, plugins, old: _, new: _, equal: _ } = difference;
    let row = |head: &str, phrase: String| vec![head.to_owned(), phrase];
    let mut rows: Vec<Vec<String>> = Vec::new();
    rows.extend(paper.as_ref().map(|paper| row(&paper.to.software.to_string(), paper_phrase(paper))));
    rows.extend(java.as_ref().map(|java| row("Java", format!("{} -> {}", java.from, java.to))));
    rows.extend(image.as_ref().map(|image| row("image", image_phrase(image.from.as_deref(), image.to.as_deref()))));
    rows.extend(plugins.iter().map(|plugin| row(&plugin.name, plugin_phrase(plugin))));
    table("  ", &rows)
}

/// Shortens two images to the part that differs: repository, tag, or else the digest.
pub(crate) fn image_phrase(from: Option<&str>, to: Option<&str>) -> String {
    let default_image = "the operator's image";
    let (Some(from), Some(to)) = (from, to) else {
        return format!("{} -> {}", from.unwrap_or(default_image), to.unwrap_or(default_image));
    };
    let name = |image: &str| image.split('@').next().unwrap_or(image).to_owned();
    let (name_from, name_to) = (name(from), name(to));
    match (name_from.rsplit_once(':'), name_to.rsplit_once(':')) {
        _ if name_from == name_to => format!("{from} -> {to}"),
        (Some((old, _)), Some((new, tag))) if old == new => format!("{name_from} -> {tag}"),
        _ => format!("{name_from} -> {name_to}"),
    }
}

fn paper_phrase(paper: &PaperChange) -> String {
    let PaperChange { from, to, one_way, backwards, file } = paper;
    if let Some(ValueChange { from, to }) = file {
        return format!("the same build, another file: {}", files_phrase(from, to));
    }
    if from.software != to.software {
        return format!(
            "{} -> {}. One-way: the data of {} may be unreadable for {}",
            named(from),
            named(to),
            to.software,
            from.software
        );
    }
    let phrase = format!("{} (build {}) -> {} (build {})", from.minecraft, from.build, to.minecraft, to.build);
    match (one_way, backwards) {
        (true, _) => format!("{phrase}. One-way: the world cannot return to {}", from.minecraft),
        (_, true) => format!("{phrase}. Downgrade: it cannot open a world that {} has opened", from.minecraft),
        (false, false) => phrase,
    }
}

fn plugin_phrase(plugin: &PluginChange) -> String {
    let needed = |release: &ReleaseName| match release.needed_by.as_slice() {
        [] => String::new(),
        names => format!(" (needed by {})", list(names, 4)),
    };
    match (&plugin.from, &plugin.to) {
        (None, Some(to)) => format!("new: {}{}", to.version, needed(to)),
        (Some(from), None) => format!("removed: was {}", from.version),
        (Some(from), Some(to)) => {
            let moved = from.key.source != to.key.source;
            let version = |release: &ReleaseName| {
                if moved { format!("{} ({})", release.version, release.key.source) } else { release.version.clone() }
            };
            match plugin.change {
                ChangeKind::Downgraded => format!("{} -> {}, which is older", version(from), version(to)),
                ChangeKind::Replaced if !moved && has_same_file(from, to) && !has_same_further_files(from, to) => {
                    format!("{}, {}", version(to), further_files_phrase(from, to))
                }
                ChangeKind::Replaced if !moved && has_same_file(from, to) => {
                    format!("{}, another release of that name: {} -> {}", version(to), from.release_id, to.release_id)
                }
                ChangeKind::Replaced if !moved => {
                    format!("{}, another file: {}", version(to), files_phrase(&from.file, &to.file))
                }
                ChangeKind::Replaced | ChangeKind::Updated | ChangeKind::Added | ChangeKind::Removed => {
                    format!("{} -> {}", version(from), version(to))
                }
            }
        }
        (None, None) => String::new(),
    }
}

fn has_same_file(from: &ReleaseName, to: &ReleaseName) -> bool {
    is_same_file(&from.file, &to.file)
}

fn is_same_file(from: &LockedFile, to: &LockedFile) -> bool {
    from.hash == to.hash && from.name == to.name
}

fn files_missing_from<'a>(among: &'a [LockedFile], others: &'a [LockedFile]) -> impl Iterator<Item = &'a LockedFile> {
    among.iter().filter(|file| !others.iter().any(|other| is_same_file(file, other)))
}

fn has_same_further_files(from: &ReleaseName, to: &ReleaseName) -> bool {
    files_missing_from(&from.more, &to.more).chain(files_missing_from(&to.more, &from.more)).next().is_none()
}

/// The further files of one release that are added and removed.
fn further_files_phrase(from: &ReleaseName, to: &ReleaseName) -> String {
    let names = |preposition: &str, files: Vec<&LockedFile>| {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{preposition} {}", list(&names, 4)))
    };
    let with = names("with", files_missing_from(&to.more, &from.more).collect());
    let without = names("without", files_missing_from(&from.more, &to.more).collect());
    [with, without].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes two different files in as few characters as possible.
fn files_phrase(from: &LockedFile, to: &LockedFile) -> String {
    let short_hash = |hash: &str| hash.chars().take("sha256:".len() + 12).collect::<String>();
    if from.hash == to.hash {
        format!("{} -> {}", from.name, to.name)
    } else if from.name == to.name {
        format!("{} {}… -> {}…", from.name, short_hash(&from.hash), short_hash(&to.hash))
    } else {
        format!("{} ({}…) -> {} ({}…)", from.name, short_hash(&from.hash), to.name, short_hash(&to.hash))
    }
}
