//! Edge (writes). Collects the input of every query: the requests of the manifests, and one catalog that answers them
//! all. Saves it on request.

use std::mem::ManuallyDrop;
use std::path::Path;

use jiff::Timestamp;

use super::answers::{Answers, MissingFromCatalog, missing_data, resolve_all};
use super::args::{FromArgs, SourceArgs};
use super::input::{self, add_read_errors, block_on, fetcher, read_upstreams, unknown_projects};
use super::query::Query;
use super::saved_query::SavedQuery;
use super::{ExitStatus, Output};
use crate::input::requests::Checked;
use resolver::model::catalog::Catalog;
use resolver::model::request::Request;
use resolver::model::software::PaperName;
use resolver::model::unverified_build::is_unverified;
use upstream::{CatalogBuild, Fetcher, format_chain};

/// Maximum number of rounds in which a solve names missing data. One such round is rare except for Purpur, where a
/// version set is chosen first and its build is verified then.
const MAX_ROUNDS: usize = 4;

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
    save_error: Option<String>,
}

impl<T> Session<T> {
    /// Adds the read errors that the notes do not contain yet.
    pub(super) fn add_read_errors(&self, output: &mut Output) {
        add_read_errors(output, &self.problems);
        if let Some(error) = &self.save_error {
            output.stderr.push(error.clone());
            output.status = ExitStatus::Failed;
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
    saved_catalog: Option<Catalog>,
}

impl InputSource {
    /// Reads the input that `from` names.
    pub(super) fn read(from: &FromArgs, notes: &mut Vec<String>, now: Timestamp) -> Result<Self, Output> {
        let Some(file) = &from.problem else {
            let checked = input::read(&from.reading, notes)?;
            return Ok(Self { checked, now, at: from.at.unwrap_or(now), saved_catalog: None });
        };
        let failed = |error: String| Output::failure(vec![error]);
        let problem = SavedQuery::read(file).map_err(|error| failed(format_chain(&error)))?;
        let question = &problem.question;
        if !(question.without.is_empty() && question.assume.is_empty()) {
            let file = file.display();
            return Err(failed(format!(
                "{file}: the saved query contains assumptions (`--without`, `--assume`): only `explain --problem` can answer it"
            )));
        }
        let at = from.at.unwrap_or(question.at);
        Ok(Self {
            checked: Checked::from_saved_query(&problem),
            now: question.now,
            at,
            saved_catalog: Some(problem.catalog),
        })
    }

    /// Reads the upstreams until `answer` lacks no data. With a saved query, its catalog is used instead. Saves the
    /// query if requested.
    pub(super) fn gather<T>(
        self,
        from: &FromArgs,
        notes: &mut Vec<String>,
        answer: impl Fn(&Catalog, &[Request]) -> (T, MissingFromCatalog),
    ) -> Result<Session<T>, Output> {
        let Self { checked, now, at, saved_catalog } = self;
        if let Some(catalog) = saved_catalog {
            let (answer, _) = answer(&catalog, &checked.requests);
            let (requests, catalog) = (checked.requests, ManuallyDrop::new(catalog));
            return Ok(Session { requests, catalog, answer, problems: Vec::new(), save_error: None });
        }
        let servers = if checked.queries_all() { Vec::new() } else { checked.servers() };
        let save = from.save_problem.as_ref();
        let save = save.map(|file| (file, SavedQuery::new(Query { servers, ..Query::simple(now, at) }, &checked)));
        let mut session = gather(&from.reading.sources, from.catalog.as_deref(), checked, notes, now, answer)?;
        let saved = save.map_or(Ok(()), |(file, problem)| problem.save(file, &session.catalog));
        session.save_error = saved.err().map(|error| format_chain(&error));
        Ok(session)
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
    let fetcher = ManuallyDrop::new(fetcher(sources, directory).map_err(|error| Output::failure(vec![error]))?);
    let read = block_on(read_until_complete(&fetcher, sources, &checked, now, answer));
    let (reading, answer) = read.map_err(|error| Output::failure(vec![error]))?;
    let violations = unknown_projects(&fetcher, &checked, &reading.problems);
    if !violations.is_empty() {
        notes.extend(violations);
        return Err(Output::failure(std::mem::take(notes)));
    }
    let catalog = ManuallyDrop::new(reading.catalog);
    Ok(Session { requests: checked.requests, catalog, answer, problems: reading.problems, save_error: None })
}

/// Reads until `answer` lacks no data, or the missing data cannot be read.
pub(super) async fn read_until_complete<T>(
    fetcher: &Fetcher,
    sources: &SourceArgs,
    checked: &Checked,
    now: Timestamp,
    answer: impl Fn(&Catalog, &[Request]) -> (T, MissingFromCatalog),
) -> (CatalogBuild, T) {
    let mut already_missing = MissingFromCatalog::default();
    let mut round = 0;
    loop {
        let reading = read_upstreams(fetcher, sources, checked, &already_missing, now).await;
        let (answer, MissingFromCatalog { mut projects, mut builds }) = answer(&reading.catalog, &checked.requests);
        projects.retain(|key| !already_missing.projects.contains(key));
        builds.retain(|build| !already_missing.builds.contains(build));
        round += 1;
        if (projects.is_empty() && builds.is_empty()) || round == MAX_ROUNDS {
            return (reading, answer);
        }
        already_missing.projects.extend(projects);
        already_missing.builds.extend(builds);
    }
}

/// Gathers the best version set for each server of the query, as of its time. `also` is a build that must be verified
/// in addition to the chosen ones.
pub(super) fn gather_answers(
    from: &FromArgs,
    source: InputSource,
    also: Option<&PaperName>,
    notes: &mut Vec<String>,
) -> Result<Session<Answers>, Output> {
    let at = source.at;
    let queried = source.checked.servers();
    source.gather(from, notes, |catalog, requests| {
        let mut answers = resolve_all(catalog, requests, at);
        let mut missing = missing_data(&answers);
        missing.builds.extend(also.filter(|build| is_unverified(catalog, build)).cloned());
        answers.retain(|(server, _)| queried.contains(server));
        (answers, missing)
    })
}
