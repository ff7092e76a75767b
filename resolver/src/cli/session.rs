//! Edge (reads). Collects the input of every query: the requests of the manifests, and one catalog that answers them
//! all.

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

/// Maximum number of rounds in which a solve names missing data. One such round is rare except for Purpur, where a
/// version set is chosen first and its build is verified then.
const ROUNDS: usize = 4;

/// Data that the catalog lacks for an answer.
#[derive(Debug, Default)]
pub(super) struct MissingFromCatalog {
    /// Projects that were not fetched.
    pub(super) projects: Vec<ProjectKey>,
    /// Builds that are not verified.
    pub(super) builds: Vec<PaperName>,
}

impl MissingFromCatalog {
    /// Adds the data that an unsolved request lacks.
    pub(super) fn note(&mut self, unsolvable: &Unsolvable) {
        self.projects.extend_from_slice(unsolvable.projects_to_fetch());
        self.builds.extend_from_slice(unsolvable.builds_to_see());
    }

    /// Adds the missing data, and returns the explanation.
    pub(super) fn told(&mut self, unsolvable: &Unsolvable) -> Explanation {
        self.note(unsolvable);
        unsolvable.explanation()
    }
}

/// An answer for each server, by its name.
pub(super) type Answers = Vec<(String, Result<Resolution, Unsolvable>)>;

/// An answer with its input.
pub(super) struct Session<T> {
    /// The requests.
    pub(super) requests: Vec<Request>,
    /// The catalog. It is never dropped, because the exit of the process frees it at once. Dropping it took a tenth of
    /// the whole run.
    pub(super) catalog: ManuallyDrop<Catalog>,
    /// The answer.
    pub(super) answer: T,
    /// Read errors.
    pub(super) problems: Vec<upstream::ReadError>,
    /// Why the query could not be saved, if the user requested that.
    unsaved: Option<String>,
}

impl<T> Session<T> {
    /// Adds the read errors that the notes do not contain yet.
    pub(super) fn say_problems(&self, said: &mut Output) {
        say_problems(said, &self.problems);
        if let Some(why) = &self.unsaved {
            said.notes.push(why.clone());
            said.end = ExitStatus::Failed;
        }
    }
}

/// Source of the input: manifests, a cluster, or a saved query.
pub(super) struct InputSource {
    /// The validated requests.
    pub(super) checked: Checked,
    /// The current time, or that of the saved query.
    pub(super) now: Timestamp,
    /// The time to evaluate for.
    pub(super) at: Timestamp,
    /// The catalog of the saved query.
    known: Option<Catalog>,
}

impl InputSource {
    /// Reads the input that `from` names.
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

    /// Reads the upstreams until `answer` lacks no data. With a saved query, its catalog is used instead. Saves the
    /// query if requested.
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

/// Reads the upstreams until `answer` lacks no data. The second value that `answer` returns is the missing data.
pub(super) fn gather<T>(
    sources: &SourceArgs,
    directory: Option<&Path>,
    checked: Checked,
    notes: &mut Vec<String>,
    now: Timestamp,
    answer: impl Fn(&Catalog, &[Request]) -> (T, MissingFromCatalog),
) -> Result<Session<T>, Output> {
    // Not dropped: like the catalog, it contains all data that was read.
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

/// Reads until `answer` lacks no data, or the missing data cannot be read.
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

/// Gathers the best version set for each server of the query, as of its time. `also` is a build that must be verified
/// in addition to the chosen ones.
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

/// The best version set for each server, sorted by name.
pub(super) fn answers(catalog: &Catalog, requests: &[Request], at: Timestamp) -> Answers {
    resolve_fleet(catalog, requests, at, Budget::default())
}

/// The data that is missing for an answer.
pub(super) fn lacking<T>(answers: &[(String, Result<T, Unsolvable>)]) -> MissingFromCatalog {
    let mut lacking = MissingFromCatalog::default();
    answers.iter().filter_map(|(_, answer)| answer.as_ref().err()).for_each(|unsolvable| lacking.note(unsolvable));
    lacking
}

/// The exit status of a query without a version set.
pub(super) fn end_of(unsolvable: &Unsolvable) -> ExitStatus {
    match unsolvable {
        Unsolvable::NoSolution(_) => ExitStatus::NoSolution,
        Unsolvable::Unanswerable(_) | Unsolvable::GaveUp(_) => ExitStatus::Failed,
    }
}

/// Resolves a server by `games/lobby` or `lobby`, or returns the only one there is.
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
