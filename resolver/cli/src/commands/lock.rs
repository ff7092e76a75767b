//! Edge (writes). `resolver lock`: writes the chosen version set of a server as its lock, to stdout or to one file per
//! server.

use std::path::Path;

use jiff::Timestamp;

use crate::answers::exit_status;
use crate::args::LockArgs;
use crate::output::atomic_write::write_atomically;
use crate::select_server::select_server;
use crate::session::{InputSource, gather_answers};
use crate::{ExitStatus, Output};
use resolver::Resolution;
use resolver::explanation::Explanation;
use resolver::render::text;
use upstream::format_chain;

/// Runs `resolver lock`.
pub(crate) fn lock(lock: &LockArgs, now: Timestamp) -> Result<Output, Output> {
    let mut notes = Vec::new();
    let source = InputSource::read(&lock.from, &mut notes, now)?;
    let names = source.checked.servers();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // If there are several servers, the user names one or writes all to a directory.
    let wanted = match (&lock.server, &lock.output) {
        (None, Some(_)) => None,
        (server, _) => {
            let one = select_server(&names, server.as_deref(), ", or write a file for each with `-o DIR`");
            Some(one.map_err(|error| Output::failure(vec![error]))?)
        }
    };
    let at = source.at;
    let session = gather_answers(&lock.from, source, None, &mut notes)?;
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    for (server, result) in &session.answer {
        if wanted.is_some_and(|wanted| wanted != server) {
            continue;
        }
        if let Ok(Resolution { explanation, .. }) = result
            && explanation.deploy_blocker().is_some()
        {
            report_no_lock(&mut output, lock, server, explanation, at);
            output.status = output.status.max(ExitStatus::NoSolution);
            continue;
        }
        match (result, &lock.output) {
            (Ok(resolution), None) => output.stdout.push_str(&resolution.lock.to_json()),
            (Ok(resolution), Some(directory)) => write_lock(&mut output, directory, resolution),
            (Err(unsolvable), _) => {
                report_no_lock(&mut output, lock, server, &unsolvable.explanation(), at);
                output.status = output.status.max(exit_status(unsolvable));
            }
        }
        if let Ok(Resolution { explanation: Explanation::Solved(solved), .. }) = result {
            output.stderr.extend(solved.left_behind.iter().map(|excluded| {
                let (name, minecraft) = (&excluded.blocker.name, &solved.paper.minecraft);
                format!("{server}: {name} has no release for {minecraft}: see `explain`")
            }));
        }
    }
    session.add_read_errors(&mut output);
    Ok(output)
}

/// Reports why a server has no lock. This goes to stderr, not to the locks on stdout.
fn report_no_lock(output: &mut Output, lock: &LockArgs, server: &str, explanation: &Explanation, at: Timestamp) {
    output.stderr.push(text::render(explanation, at).trim_end().to_owned());
    if lock.output.is_some() {
        output.stderr.push(format!("{server}: no lock was written"));
    }
}

/// Writes a lock below `directory` and prints its path.
fn write_lock(output: &mut Output, directory: &Path, resolution: &Resolution) {
    let lock = &resolution.lock;
    // Namespace and name contain no dot, so no two servers share a file name.
    let path = directory.join(format!("{}.lock.json", lock.server.replace('/', ".")));
    match write_atomically(&path, &lock.to_json()) {
        Ok(()) => {
            let plugins = lock.plugins.len();
            let plural = if plugins == 1 { "" } else { "s" };
            let (path, software, paper) = (path.display(), lock.software, &lock.minecraft);
            let line = format!("{path}: {software} {paper} (build {}), {plugins} plugin{plural}\n", lock.build);
            output.stdout.push_str(&line);
        }
        Err(error) => {
            output.stderr.push(format_chain(&error));
            output.status = ExitStatus::Failed;
        }
    }
}
