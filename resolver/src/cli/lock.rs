//! Edge (writes). `resolver lock`: writes the chosen version set of a server as its lock, to stdout or to one file per
//! server.

use std::path::Path;

use jiff::Timestamp;

use super::args::LockArgs as Asked;
use super::atomic_write::write_atomically;
use super::session::{InputSource, end_of, gather_answers, one_server};
use super::{ExitStatus, Output};
use crate::Resolution;
use crate::explain::{Explanation, text};
use crate::upstream::in_words;

/// Runs `resolver lock`.
pub(super) fn lock(lock: &Asked, now: Timestamp) -> Result<Output, Output> {
    let mut notes = Vec::new();
    let start = InputSource::of(&lock.from, &mut notes, now)?;
    let names = start.checked.servers();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // If there are several servers, the user names one or writes all to a directory.
    let wanted = match (&lock.server, &lock.output) {
        (None, Some(_)) => None,
        (server, _) => {
            let one = one_server(&names, server.as_deref(), ", or write a file for each with `-o DIR`");
            Some(one.map_err(|said| Output::nothing_but(vec![said]))?)
        }
    };
    let at = start.at;
    let gathered = gather_answers(&lock.from, start, None, &mut notes)?;
    let mut said = Output { answer: String::new(), notes, end: ExitStatus::Solved };
    for (server, answer) in &gathered.answer {
        if wanted.is_some_and(|wanted| wanted != server) {
            continue;
        }
        if let Ok(Resolution { explanation, .. }) = answer
            && explanation.stopped_by().is_some()
        {
            no_lock(&mut said, lock, server, explanation, at);
            said.end = said.end.max(ExitStatus::NoSolution);
            continue;
        }
        match (answer, &lock.output) {
            (Ok(resolution), None) => said.answer.push_str(&resolution.lock.to_json()),
            (Ok(resolution), Some(directory)) => write(&mut said, directory, resolution),
            (Err(unsolvable), _) => {
                no_lock(&mut said, lock, server, &unsolvable.explanation(), at);
                said.end = said.end.max(end_of(unsolvable));
            }
        }
        if let Ok(Resolution { explanation: Explanation::Solved(solved), .. }) = answer {
            said.notes.extend(solved.unfollowed.iter().map(|left| {
                let (name, minecraft) = (&left.holder.name, &solved.paper.minecraft);
                format!("{server}: {name} has nothing for {minecraft}; see `explain`")
            }));
        }
    }
    gathered.say_problems(&mut said);
    Ok(said)
}

/// Reports why a server has no lock. This goes to stderr, not to the locks on stdout.
fn no_lock(said: &mut Output, lock: &Asked, server: &str, explanation: &Explanation, at: Timestamp) {
    said.notes.push(text::render(explanation, at).trim_end().to_owned());
    if lock.output.is_some() {
        said.notes.push(format!("{server}: no lock was written"));
    }
}

/// Writes a lock below `directory` and prints its path.
fn write(said: &mut Output, directory: &Path, resolution: &Resolution) {
    let lock = &resolution.lock;
    // Namespace and name contain no dot, so no two servers share a file name.
    let path = directory.join(format!("{}.lock.json", lock.server.replace('/', ".")));
    match write_atomically(&path, &lock.to_json()) {
        Ok(()) => {
            let plugins = lock.plugins.len();
            let plural = if plugins == 1 { "" } else { "s" };
            let (path, software, paper) = (path.display(), lock.software, &lock.minecraft);
            let line = format!("{path}: {software} {paper} (build {}), {plugins} plugin{plural}\n", lock.build);
            said.answer.push_str(&line);
        }
        Err(error) => {
            said.notes.push(in_words(&error));
            said.end = ExitStatus::Failed;
        }
    }
}
