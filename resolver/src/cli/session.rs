//! Edge (reads). What every question starts from: the requests of the manifests, and one catalog that answers them all.

use std::mem::ManuallyDrop;
use std::path::Path;

use jiff::Timestamp;

use super::args::{FromArgs, SourceArgs};
use super::explain::{self, fetcher, in_runtime, misspelt, read_upstreams, say_problems};
use super::query::Query;
use super::requests::Checked;
use super::saved_query::SavedQuery;
use super::{ExitStatus, Output};
use crate::catalog::{Catalog, ProjectKey};
use crate::explain::{Explanation, PaperName};
use crate::request::Request;
use crate::unverified_build::is_unseen;
use crate::upstream::{self, CatalogBuild, Fetcher, in_words};
use crate::{Budget, Resolution, Unsolvable, resolve_fleet};

/// How often a solve may name what it lacks before we stop. One such round is rare but for Purpur, where a set is chosen first and its
/// build is looked at then.
const ROUNDS: usize = 4;

/// What the catalog lacks for an answer.
#[derive(Debug, Default)]
pub(super) struct MissingFromCatalog {
    /// Projects that nobody has fetched.
    pub(super) projects: Vec<ProjectKey>,
    /// Builds whose bytes nobody has seen.
    pub(super) builds: Vec<PaperName>,
}

impl MissingFromCatalog {
    /// Adds what is missing where there is no set.
    pub(super) fn note(&mut self, unsolvable: &Unsolvable) {
        self.projects.extend_from_slice(unsolvable.projects_to_fetch());
        self.builds.extend_from_slice(unsolvable.builds_to_see());
    }

    /// The same, and what is said of it.
    pub(super) fn told(&mut self, unsolvable: &Unsolvable) -> Explanation {
        self.note(unsolvable);
        unsolvable.explanation()
    }
}

/// An answer for each server, by its name.
pub(super) type Answers = Vec<(String, Result<Resolution, Unsolvable>)>;

/// An answer, and what it rests on.
pub(super) struct Session<T> {
    /// What was asked.
    pub(super) requests: Vec<Request>,
    /// What is known. The end of the process frees it at once; piece by piece took a tenth of the whole run.
    pub(super) catalog: ManuallyDrop<Catalog>,
    /// What was made of both.
    pub(super) answer: T,
    /// What could not be read anew.
    pub(super) problems: Vec<upstream::ReadError>,
    /// Why the question could not be saved, if that was asked for.
    unsaved: Option<String>,
}

impl<T> Session<T> {
    /// Adds what could not be read, unless it has been said.
    pub(super) fn say_problems(&self, said: &mut Output) {
        say_problems(said, &self.problems);
        if let Some(why) = &self.unsaved {
            said.notes.push(why.clone());
            said.end = ExitStatus::Failed;
        }
    }
}

/// Where a question starts: from manifests or a cluster, or from a file that holds it.
pub(super) struct InputSource {
    /// What is asked.
    pub(super) checked: Checked,
    /// The present instant, or that of the file.
    pub(super) now: Timestamp,
    /// The instant to decide for.
    pub(super) at: Timestamp,
    /// What was known, if it stands in the file.
    known: Option<Catalog>,
}

impl InputSource {
    /// Of what `from` names.
    pub(super) fn of(from: &FromArgs, notes: &mut Vec<String>, now: Timestamp) -> Result<Self, Output> {
        let Some(file) = &from.problem else {
            let checked = explain::read(&from.reading, notes)?;
            return Ok(Self { checked, now, at: from.at.unwrap_or(now), known: None });
        };
        let failed = |said: String| Output::nothing_but(vec![said]);
        let problem = SavedQuery::read(file).map_err(|error| failed(in_words(&error)))?;
        let question = &problem.question;
        if !(question.without.is_empty() && question.assume.is_empty()) {
            let file = file.display();
            return Err(failed(format!(
                "{file}: the question supposes what is not so (`--without`, `--assume`): only `explain --problem` answers it"
            )));
        }
        let at = from.at.unwrap_or(question.at);
        Ok(Self { checked: Checked::of_problem(&problem), now: question.now, at, known: Some(problem.catalog) })
    }

    /// Reads the upstreams until `answer` lacks nothing any more, unless all that is known was given; and saves the question where that is
    /// asked for.
    pub(super) fn gather<T>(
        self,
        from: &FromArgs,
        notes: &mut Vec<String>,
        answer: impl Fn(&Catalog, &[Request]) -> (T, MissingFromCatalog),
    ) -> Result<Session<T>, Output> {
        let Self { checked, now, at, known } = self;
        if let Some(catalog) = known {
            let (answer, _) = answer(&catalog, &checked.requests);
            let (requests, catalog) = (checked.requests, ManuallyDrop::new(catalog));
            return Ok(Session { requests, catalog, answer, problems: Vec::new(), unsaved: None });
        }
        let servers = if checked.is_about_all() { Vec::new() } else { checked.servers() };
        let save = from.save_problem.as_ref();
        let save = save.map(|file| (file, SavedQuery::of(Query { servers, ..Query::plain(now, at) }, &checked)));
        let mut gathered = gather(&from.reading.sources, from.catalog.as_deref(), checked, notes, now, answer)?;
        let saved = save.map_or(Ok(()), |(file, problem)| problem.save(file, &gathered.catalog));
        gathered.unsaved = saved.err().map(|error| in_words(&error));
        Ok(gathered)
    }
}

/// Reads the upstreams until `answer` lacks nothing any more; what it lacks is the second of what it gives.
pub(super) fn gather<T>(
    sources: &SourceArgs,
    directory: Option<&Path>,
    checked: Checked,
    notes: &mut Vec<String>,
    now: Timestamp,
    answer: impl Fn(&Catalog, &[Request]) -> (T, MissingFromCatalog),
) -> Result<Session<T>, Output> {
    // It holds all that was read, as the catalog does.
    let fetcher = ManuallyDrop::new(fetcher(sources, directory).map_err(|said| Output::nothing_but(vec![said]))?);
    let read = in_runtime(read_until_answered(&fetcher, sources, &checked, now, answer));
    let (reading, answer) = read.map_err(|said| Output::nothing_but(vec![said]))?;
    let mistakes = misspelt(&fetcher, &checked, &reading.problems);
    if !mistakes.is_empty() {
        notes.extend(mistakes);
        return Err(Output::nothing_but(std::mem::take(notes)));
    }
    let catalog = ManuallyDrop::new(reading.catalog);
    Ok(Session { requests: checked.requests, catalog, answer, problems: reading.problems, unsaved: None })
}

/// Reads until `answer` lacks nothing any more, or what it lacks is not to be had.
pub(super) async fn read_until_answered<T>(
    fetcher: &Fetcher,
    sources: &SourceArgs,
    checked: &Checked,
    now: Timestamp,
    answer: impl Fn(&Catalog, &[Request]) -> (T, MissingFromCatalog),
) -> (CatalogBuild, T) {
    let mut further = MissingFromCatalog::default();
    let mut round = 0;
    loop {
        let reading = read_upstreams(fetcher, sources, checked, &further, now).await;
        let (answer, MissingFromCatalog { mut projects, mut builds }) = answer(&reading.catalog, &checked.requests);
        projects.retain(|key| !further.projects.contains(key));
        builds.retain(|build| !further.builds.contains(build));
        round += 1;
        if (projects.is_empty() && builds.is_empty()) || round == ROUNDS {
            return (reading, answer);
        }
        further.projects.extend(projects);
        further.builds.extend(builds);
    }
}

/// Gathers for what `from` names, with the best set for each server asked about as of its instant. `also`: a build that has to be known
/// beside those that are chosen.
pub(super) fn gather_answers(
    from: &FromArgs,
    start: InputSource,
    also: Option<&PaperName>,
    notes: &mut Vec<String>,
) -> Result<Session<Answers>, Output> {
    let at = start.at;
    let asked_about = start.checked.servers();
    start.gather(from, notes, |catalog, requests| {
        let mut answers = answers(catalog, requests, at);
        let mut lacking = lacking(&answers);
        lacking.builds.extend(also.filter(|build| is_unseen(catalog, build)).cloned());
        answers.retain(|(server, _)| asked_about.contains(server));
        (answers, lacking)
    })
}

/// The best set for each server, in the order of their names.
pub(super) fn answers(catalog: &Catalog, requests: &[Request], at: Timestamp) -> Answers {
    resolve_fleet(catalog, requests, at, Budget::default())
}

/// What is missing before there can be an answer.
pub(super) fn lacking<T>(answers: &[(String, Result<T, Unsolvable>)]) -> MissingFromCatalog {
    let mut lacking = MissingFromCatalog::default();
    answers.iter().filter_map(|(_, answer)| answer.as_ref().err()).for_each(|unsolvable| lacking.note(unsolvable));
    lacking
}

/// How a question ends that has no set for its answer.
pub(super) fn end_of(unsolvable: &Unsolvable) -> ExitStatus {
    match unsolvable {
        Unsolvable::NoSolution(_) => ExitStatus::NoSolution,
        Unsolvable::Unanswerable(_) | Unsolvable::GaveUp(_) => ExitStatus::Failed,
    }
}

/// The one server that is meant: by `games/lobby` or `lobby`, or the only one there is.
pub(super) fn one_server<'n>(names: &[&'n str], wanted: Option<&str>, instead: &str) -> Result<&'n str, String> {
    let listed = |names: &[&str]| super::join::listed(names.iter().copied());
    let Some(wanted) = wanted else {
        return match names {
            [only] => Ok(only),
            several => Err(format!(
                "there are {} servers here; name one with `--server`: {}{instead}",
                several.len(),
                listed(several)
            )),
        };
    };
    // A server without a namespace may have the short name of another one.
    if let Some(exact) = names.iter().find(|name| **name == wanted) {
        return Ok(exact);
    }
    let is_short = |name: &&str| name.rsplit('/').next().is_some_and(|short| short == wanted);
    let meant: Vec<&str> = names.iter().copied().filter(is_short).collect();
    match meant.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("there is no server `{wanted}` here; write `--server` with {}", listed(names))),
        several => Err(format!("`{wanted}` is the name of several servers here; write {}", listed(several))),
    }
}
