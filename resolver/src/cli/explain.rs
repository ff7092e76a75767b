//! Edge (reads). `resolver explain` and `resolver catalog fetch`: reads manifests and upstreams, and renders the
//! answers.

use std::error::Error;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::args::{CatalogArgs as Asked, ExplainArgs, ExplainFormat, FetchArgs, SourceArgs};
#[cfg(feature = "cluster")]
use super::cluster;
use super::manifests::InputViolation;
use super::query::{Answered, Query};
use super::requests::{self, Checked};
use super::saved_query::SavedQuery;
use super::session::{MissingFromCatalog, answers, gather, lacking, read_until_answered};
use super::terminal::Progress;
use super::what_if::{Assumptions, WhatIf};
use super::when::ServerSchedules;
use super::{ExitStatus, Output, files, manifests, project_slugs};
use crate::catalog::{Catalog, ProjectKey, Source};
use crate::compatibility_facts::CompatibilityFacts;
use crate::download::DownloadError;
use crate::explain::{Explanation, ReleaseState, svg, text};
use crate::request::Request;
use crate::software::Software;
use crate::unmanaged_jar::UnmanagedJar;
use crate::upstream::{CatalogBuild, CatalogQuery, FetchError, Fetcher, Settings, Upstream, in_words};
use crate::{needed_projects, upstream};

/// Runs `resolver explain`.
pub(super) fn explain(explain: &ExplainArgs, now: Timestamp) -> Result<Output, Output> {
    let ExplainArgs { reading, at, why_not, target, without, assume, format, catalog, save_problem, problem } = explain;
    if let Some(file) = problem {
        let mut problem = SavedQuery::read(file).map_err(|error| Output::nothing_but(vec![in_words(&error)]))?;
        let question = &mut problem.question;
        question.at = at.unwrap_or(question.at);
        if why_not.is_some() || target.is_some() {
            question.ask_about(why_not.as_ref(), target.as_ref());
        }
        question.without.extend(without.iter().cloned());
        question.assume.extend(assume.iter().cloned());
        let SavedQuery { question, requests, schedules, catalog, .. } = &problem;
        let (answered, _) = question.ask(catalog, requests);
        let times = ServerSchedules { schedules, requests, now: question.now, at: question.at };
        let mut said = told(&answered, *format, &times, Vec::new())?;
        say_reading(&mut said, catalog, question.at);
        return Ok(said);
    }
    let mut notes = Vec::new();
    let checked = read(reading, &mut notes)?;
    let mut question = Query {
        without: without.clone(),
        assume: assume.clone(),
        servers: if checked.is_about_all() { Vec::new() } else { checked.servers() },
        ..Query::plain(now, at.unwrap_or(now))
    };
    question.ask_about(why_not.as_ref(), target.as_ref());
    let asked = SavedQuery::of(question, &checked);
    let SavedQuery { question, schedules, .. } = &asked;
    let gathered = gather(&reading.sources, catalog.as_deref(), checked, &mut notes, now, |catalog, requests| {
        question.ask(catalog, requests)
    })?;
    let times = ServerSchedules { schedules, requests: &gathered.requests, now, at: question.at };
    let mut said = told(&gathered.answer, *format, &times, notes)?;
    gathered.say_problems(&mut said);
    say_reading(&mut said, &gathered.catalog, question.at);
    if let Some(file) = save_problem
        && let Err(error) = asked.save(file, &gathered.catalog)
    {
        said.notes.push(in_words(&error));
        said.end = ExitStatus::Failed;
    }
    Ok(said)
}

/// The rendered answer, or the mistakes in the query as an error.
fn told(
    answered: &Answered,
    format: ExplainFormat,
    times: &ServerSchedules<'_>,
    notes: Vec<String>,
) -> Result<Output, Output> {
    let Answered { explanations, supposed, mistakes } = answered;
    if !mistakes.is_empty() {
        return Err(Output::nothing_but(notes.into_iter().chain(mistakes.iter().cloned()).collect()));
    }
    let mut said = Output { answer: String::new(), notes, end: ExitStatus::Solved };
    if format == ExplainFormat::Human {
        said.answer = supposed.lines().into_iter().map(|line| line + "\n").collect();
    }
    for explanation in explanations {
        say(&mut said, explanation, supposed, format, times);
    }
    let answers: Vec<Explanation> = explanations.iter().filter(|one| end(one) != ExitStatus::Failed).cloned().collect();
    if format == ExplainFormat::Svg && !answers.is_empty() {
        said.answer = svg::render(&answers, &supposed.lines());
    }
    Ok(said)
}

/// Adds a note if the lists are newer than the time of the query.
fn say_reading(said: &mut Output, catalog: &Catalog, at: Timestamp) {
    if at < catalog.paper_read_at {
        let day = catalog.paper_read_at.to_zoned(TimeZone::UTC).date();
        said.notes.push(format!("lists as read on {day}; older text is not recorded"));
    }
}

/// Runs `resolver catalog fetch`.
pub(super) fn fetch(fetch: &FetchArgs, now: Timestamp) -> Output {
    let mut notes = Vec::new();
    let checked = match read(&fetch.reading, &mut notes) {
        Ok(checked) => checked,
        Err(said) => return said,
    };
    let directory = match fetch.catalog.clone().map_or_else(cache, Ok) {
        Ok(directory) => directory,
        Err(said) => return Output::nothing_but(vec![said]),
    };
    let fetcher = match online(&fetch.reading.sources, directory.clone()) {
        Ok(fetcher) => fetcher,
        Err(said) => return Output::nothing_but(vec![said]),
    };
    // Solves the requests, so that everything that a later offline query would choose is fetched.
    let ask = |catalog: &Catalog, requests: &[Request]| ((), lacking(&answers(catalog, requests, now)));
    let read = in_runtime(read_until_answered(&fetcher, &fetch.reading.sources, &checked, now, ask));
    let reading = match read {
        Ok((reading, ())) => reading,
        Err(said) => return Output::nothing_but(vec![said]),
    };
    let mistakes = misspelt(&fetcher, &checked, &reading.problems);
    notes.extend(mistakes.iter().cloned());
    let mut said = Output { answer: String::new(), notes, end: ExitStatus::Solved };
    if mistakes.is_empty() {
        said.notes.extend(reading.problems.iter().map(ToString::to_string));
    }
    // Cached data is complete but old, and the user asked for current data.
    if !reading.problems.is_empty() {
        said.end = ExitStatus::Failed;
    }
    let Catalog { projects, images, .. } = &reading.catalog;
    let count = |software: Software| format!("{} {software} versions", reading.catalog.versions(software).len());
    let versions: Vec<String> = checked.software().into_iter().map(count).collect();
    said.answer = format!(
        "{}: {}, {} projects, {} image tags\n",
        directory.display(),
        versions.join(", "),
        projects.len(),
        images.len()
    );
    said
}

/// Reads the requests, or returns all violations in them.
pub(super) fn read(asked: &Asked, notes: &mut Vec<String>) -> Result<Checked, Output> {
    let mut checked = objects(asked, notes)?;
    if let Some(file) = &asked.sources.facts {
        let facts = facts(file).map_err(|error| Output::nothing_but(vec![error]))?;
        for request in &mut checked.requests {
            request.facts = facts.clone();
        }
    }
    Ok(checked)
}

/// Reads the objects of the query from the cluster or from files.
fn objects(asked: &Asked, notes: &mut Vec<String>) -> Result<Checked, Output> {
    #[cfg(feature = "cluster")]
    if asked.files.is_empty() {
        let found = in_runtime(cluster::read(&asked.cluster)).map_err(|said| Output::nothing_but(vec![said]))?;
        let found = found.map_err(|error| Output::nothing_but(vec![in_words(&error)]))?;
        return requests::check_found(found, notes).map_err(|mistakes| refused(mistakes, notes));
    }
    let files = files::read(&asked.files).map_err(|error| Output::nothing_but(vec![in_words(&error)]))?;
    let manifests = manifests::read(&files);
    let none = manifests.servers.is_empty() && manifests.mistakes.is_empty();
    let checked = requests::check(manifests, notes).map_err(|mistakes| refused(mistakes, notes))?;
    if none {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        notes.push(format!("{}: there is no PaperMCServer here, so there is nothing to answer", names.join(", ")));
        return Err(Output::nothing_but(std::mem::take(notes)));
    }
    Ok(checked)
}

fn refused(mut mistakes: Vec<InputViolation>, notes: &mut Vec<String>) -> Output {
    mistakes.sort();
    mistakes.dedup();
    notes.extend(mistakes.iter().map(ToString::to_string));
    Output::nothing_but(std::mem::take(notes))
}

/// Reads a file of compatibility facts.
fn facts(file: &Path) -> Result<CompatibilityFacts, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("could not read `{name}`: {error}"))?;
    CompatibilityFacts::read(&text).map_err(|fault| format!("{name}: {}", in_words(&fault)))
}

pub(super) fn fetcher(sources: &SourceArgs, catalog: Option<&Path>) -> Result<Fetcher, String> {
    match catalog {
        Some(directory) if directory.is_dir() => Ok(Fetcher::offline(directory)),
        Some(directory) => {
            let directory = directory.display();
            Err(format!("there is no directory `{directory}`: fill it with `catalog fetch --catalog {directory} -f …`"))
        }
        None => online(sources, cache()?),
    }
}

fn online(sources: &SourceArgs, directory: PathBuf) -> Result<Fetcher, String> {
    let mut settings = Settings::new(directory);
    settings.upstreams = sources.upstreams.upstreams();
    settings.remembers = false;
    Fetcher::new(settings).map_err(|error| in_words(&error))
}

/// `$XDG_CACHE_HOME/nightshift/catalog`, or below `~/.cache` when that is not set (or not absolute, as its
/// specification demands).
pub(super) fn cache() -> Result<PathBuf, String> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|cache| cache.join("nightshift").join("catalog"))
        .ok_or_else(|| "there is no place for the catalog: set HOME or XDG_CACHE_HOME, or give --catalog".to_owned())
}

pub(super) fn in_runtime<T>(work: impl Future<Output = T>) -> Result<T, String> {
    // Few threads read stored pages: starting one costs more than reading a page, and most pages are small.
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("could not start: {}", in_words(&error as &dyn Error)))?;
    Ok(runtime.block_on(work))
}

pub(super) async fn read_upstreams(
    fetcher: &Fetcher,
    sources: &SourceArgs,
    checked: &Checked,
    further: &MissingFromCatalog,
    now: Timestamp,
) -> CatalogBuild {
    let mut projects = checked.projects();
    projects.extend_from_slice(&further.projects);
    let oldest = checked.oldest();
    let own: Vec<UnmanagedJar> =
        checked.requests.iter().flat_map(|request| request.unmanaged.iter().cloned()).collect();
    let software = checked.software();
    let _progress = Progress::of(&under_way(&software, &projects, checked.chooses_an_image()));
    let wanted = CatalogQuery {
        software: &software,
        projects: &projects,
        images: checked.chooses_an_image().then_some(sources.image.as_str()),
        see: &further.builds,
        own: &own,
        oldest: oldest.as_ref(),
    };
    let missing = |catalog: &Catalog| {
        let mut keys: Vec<ProjectKey> =
            checked.requests.iter().flat_map(|request| needed_projects(catalog, request)).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    fetcher.catalog(wanted, missing, now).await
}

/// Progress text: the upstreams and what is read from each.
fn under_way(software: &[Software], projects: &[ProjectKey], images: bool) -> String {
    let (purpur, of_fill): (Vec<Software>, Vec<Software>) =
        software.iter().partition(|software| **software == Software::Purpur);
    let of_fill: Vec<String> = of_fill.iter().map(Software::to_string).collect();
    let mut parts = vec![format!("Fill for {}", of_fill.join(" and "))];
    parts.extend(purpur.iter().map(|purpur| format!("PurpurMC for {purpur}")));
    for source in [Source::Hangar, Source::Modrinth, Source::Url] {
        let count = projects.iter().filter(|key| key.source == source).count();
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            parts.push(format!("{source} for {count} plugin{plural}"));
        }
    }
    parts.extend(images.then(|| "Docker Hub for images".to_owned()));
    format!("asking {}", parts.join(", "))
}

fn say(
    said: &mut Output,
    explanation: &Explanation,
    supposed: &Assumptions,
    format: ExplainFormat,
    times: &ServerSchedules<'_>,
) {
    let end = end(explanation);
    said.end = said.end.max(end);
    if end == ExitStatus::Failed {
        // This is not an answer, so it does not go to stdout.
        said.notes.push(text::render(explanation, times.at).trim_end().to_owned());
        return;
    }
    match format {
        // One diagram contains all servers.
        ExplainFormat::Svg => {}
        ExplainFormat::Human => {
            if !said.answer.is_empty() {
                said.answer.push('\n');
            }
            said.answer.push_str(&text::render(&without_reading_note(explanation), times.at));
            if let Some(when) = times.in_sentences(explanation) {
                said.answer.extend(["\n", &when, "\n"]);
            }
        }
        ExplainFormat::Json => {
            let json = if supposed.is_nothing() {
                serde_json::to_string_pretty(explanation)
            } else {
                serde_json::to_string_pretty(&WhatIf::new(supposed, explanation))
            };
            said.answer.push_str(&json.expect("an explanation has string keys only"));
            said.answer.push('\n');
        }
    }
}

/// The exit status for this explanation.
fn end(explanation: &Explanation) -> ExitStatus {
    match explanation {
        Explanation::Solved(solved) if solved.stopped_by().is_some() => ExitStatus::NoSolution,
        Explanation::Solved(_) => ExitStatus::Solved,
        Explanation::WhyNot(why) if why.possible => ExitStatus::Solved,
        Explanation::WhyNotRelease(why) if why.state == ReleaseState::Chosen => ExitStatus::Solved,
        Explanation::WhyNot(_) | Explanation::WhyNotRelease(_) | Explanation::Impossible(_) => ExitStatus::NoSolution,
        Explanation::Unanswerable(_) | Explanation::GaveUp(_) => ExitStatus::Failed,
    }
}

/// Removes the remark that the note about a past time already makes once for all servers.
fn without_reading_note(explanation: &Explanation) -> Explanation {
    let mut explanation = explanation.clone();
    match &mut explanation {
        Explanation::Solved(solved) => solved.lists_read_later = None,
        Explanation::Impossible(impossible) => impossible.lists_read_later = None,
        Explanation::WhyNot(_)
        | Explanation::WhyNotRelease(_)
        | Explanation::Unanswerable(_)
        | Explanation::GaveUp(_) => {}
    }
    explanation
}

/// Adds the read errors that no earlier note contains.
pub(super) fn say_problems(said: &mut Output, problems: &[upstream::ReadError]) {
    let unsaid: Vec<String> = problems
        .iter()
        .filter(|problem| !said.notes.iter().any(|note| note.contains(&in_words(&problem.error))))
        .map(ToString::to_string)
        .collect();
    said.notes.extend(unsaid);
}

/// Violations that only an upstream can detect: requested projects that do not exist, and files with another hash.
pub(super) fn misspelt(fetcher: &Fetcher, checked: &Checked, problems: &[upstream::ReadError]) -> Vec<String> {
    let mut mistakes = Vec::new();
    for key in checked.projects() {
        let subject = key.to_string();
        let Some(problem) = problems.iter().find(|problem| problem.subject == subject) else { continue };
        let words = |upstream: Upstream| format!("is `{}`, and {upstream} has no such project", key.project);
        let said = match &*problem.error {
            FetchError::NotFound { upstream, .. } | FetchError::NotAName { upstream, .. } => words(*upstream),
            FetchError::Download(DownloadError::WrongHash { url, expected, found }) => {
                let is = format!("is {expected}, and what is at {url} now has {found}");
                let fix = "ask its authors which of the two is right before you write it";
                mistakes
                    .extend(checked.mistaken(&key, "spec.source.checksum", &is, fix).iter().map(ToString::to_string));
                continue;
            }
            FetchError::Unreachable { .. }
            | FetchError::Status { .. }
            | FetchError::Resting { .. }
            | FetchError::TooLarge { .. }
            | FetchError::Unreadable { .. }
            | FetchError::Hollow { .. }
            | FetchError::Offline { .. }
            | FetchError::Download(_)
            | FetchError::NotAFile { .. }
            | FetchError::NotAPlugin { .. }
            | FetchError::FileOffline { .. }
            | FetchError::NotOnDockerHub { .. } => continue,
        };
        let fix = project_slugs::fix(&key, &fetcher.stored_projects());
        mistakes.extend(checked.mistaken(&key, "spec.source.project", &said, &fix).iter().map(ToString::to_string));
    }
    mistakes
}
