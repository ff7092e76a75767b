//! Edge (reads). `resolver explain` and `resolver catalog fetch`: reads manifests and upstreams, and renders the
//! answers.

use std::error::Error;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::args::{CatalogArgs, ExplainArgs, ExplainFormat, FetchArgs, SourceArgs};
#[cfg(feature = "cluster")]
use super::cluster;
use super::manifests::InputViolation;
use super::query::{Query, QueryAnswer};
use super::requests::{self, Checked};
use super::saved_query::SavedQuery;
use super::session::{MissingFromCatalog, gather, missing_data, read_until_complete, resolve_all};
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
use crate::upstream::{CatalogBuild, CatalogQuery, FetchError, Fetcher, Settings, Upstream, format_chain};
use crate::{missing_projects, upstream};

/// Runs `resolver explain`.
pub(super) fn explain(explain: &ExplainArgs, now: Timestamp) -> Result<Output, Output> {
    let ExplainArgs { reading, at, why_not, target, without, assume, format, catalog, save_problem, problem } = explain;
    if let Some(file) = problem {
        let mut problem = SavedQuery::read(file).map_err(|error| Output::failure(vec![format_chain(&error)]))?;
        let question = &mut problem.question;
        question.at = at.unwrap_or(question.at);
        if why_not.is_some() || target.is_some() {
            question.set_subject(why_not.as_ref(), target.as_ref());
        }
        question.without.extend(without.iter().cloned());
        question.assume.extend(assume.iter().cloned());
        let SavedQuery { question, requests, schedules, catalog, .. } = &problem;
        let (answered, _) = question.answer(catalog, requests);
        let times = ServerSchedules { schedules, requests, now: question.now, at: question.at };
        let mut output = render_answer(&answered, *format, &times, Vec::new())?;
        add_lists_note(&mut output, catalog, question.at);
        return Ok(output);
    }
    let mut notes = Vec::new();
    let checked = read(reading, &mut notes)?;
    let mut question = Query {
        without: without.clone(),
        assume: assume.clone(),
        servers: if checked.queries_all() { Vec::new() } else { checked.servers() },
        ..Query::simple(now, at.unwrap_or(now))
    };
    question.set_subject(why_not.as_ref(), target.as_ref());
    let saved_query = SavedQuery::new(question, &checked);
    let SavedQuery { question, schedules, .. } = &saved_query;
    let session = gather(&reading.sources, catalog.as_deref(), checked, &mut notes, now, |catalog, requests| {
        question.answer(catalog, requests)
    })?;
    let times = ServerSchedules { schedules, requests: &session.requests, now, at: question.at };
    let mut output = render_answer(&session.answer, *format, &times, notes)?;
    session.add_read_errors(&mut output);
    add_lists_note(&mut output, &session.catalog, question.at);
    if let Some(file) = save_problem
        && let Err(error) = saved_query.save(file, &session.catalog)
    {
        output.stderr.push(format_chain(&error));
        output.status = ExitStatus::Failed;
    }
    Ok(output)
}

/// The rendered answer, or the mistakes in the query as an error.
fn render_answer(
    answered: &QueryAnswer,
    format: ExplainFormat,
    times: &ServerSchedules<'_>,
    notes: Vec<String>,
) -> Result<Output, Output> {
    let QueryAnswer { explanations, assumptions, errors } = answered;
    if !errors.is_empty() {
        return Err(Output::failure(notes.into_iter().chain(errors.iter().cloned()).collect()));
    }
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    if format == ExplainFormat::Human {
        output.stdout = assumptions.lines().into_iter().map(|line| line + "\n").collect();
    }
    for explanation in explanations {
        add_explanation(&mut output, explanation, assumptions, format, times);
    }
    let answers: Vec<Explanation> =
        explanations.iter().filter(|one| exit_status(one) != ExitStatus::Failed).cloned().collect();
    if format == ExplainFormat::Svg && !answers.is_empty() {
        output.stdout = svg::render(&answers, &assumptions.lines());
    }
    Ok(output)
}

/// Adds a note if the lists are newer than the time of the query.
fn add_lists_note(output: &mut Output, catalog: &Catalog, at: Timestamp) {
    if at < catalog.paper_read_at {
        let day = catalog.paper_read_at.to_zoned(TimeZone::UTC).date();
        output.stderr.push(format!("version lists as of {day}: older lists are not recorded"));
    }
}

/// Runs `resolver catalog fetch`.
pub(super) fn fetch(fetch: &FetchArgs, now: Timestamp) -> Output {
    let mut notes = Vec::new();
    let checked = match read(&fetch.reading, &mut notes) {
        Ok(checked) => checked,
        Err(output) => return output,
    };
    let directory = match fetch.catalog.clone().map_or_else(cache_directory, Ok) {
        Ok(directory) => directory,
        Err(error) => return Output::failure(vec![error]),
    };
    let fetcher = match online_fetcher(&fetch.reading.sources, directory.clone()) {
        Ok(fetcher) => fetcher,
        Err(error) => return Output::failure(vec![error]),
    };
    // Solves the requests, so that everything that a later offline query would choose is fetched.
    let solve = |catalog: &Catalog, requests: &[Request]| ((), missing_data(&resolve_all(catalog, requests, now)));
    let read = block_on(read_until_complete(&fetcher, &fetch.reading.sources, &checked, now, solve));
    let catalog_build = match read {
        Ok((catalog_build, ())) => catalog_build,
        Err(error) => return Output::failure(vec![error]),
    };
    let violations = unknown_projects(&fetcher, &checked, &catalog_build.problems);
    notes.extend(violations.iter().cloned());
    let mut output = Output { stdout: String::new(), stderr: notes, status: ExitStatus::Solved };
    if violations.is_empty() {
        output.stderr.extend(catalog_build.problems.iter().map(ToString::to_string));
    }
    // Cached data is complete but old, and the user asked for current data.
    if !catalog_build.problems.is_empty() {
        output.status = ExitStatus::Failed;
    }
    let Catalog { projects, images, .. } = &catalog_build.catalog;
    let count = |software: Software| format!("{} {software} versions", catalog_build.catalog.versions(software).len());
    let versions: Vec<String> = checked.software().into_iter().map(count).collect();
    output.stdout = format!(
        "{}: {}, {} projects, {} image tags\n",
        directory.display(),
        versions.join(", "),
        projects.len(),
        images.len()
    );
    output
}

/// Reads the requests, or returns all violations in them.
pub(super) fn read(args: &CatalogArgs, notes: &mut Vec<String>) -> Result<Checked, Output> {
    let mut checked = read_objects(args, notes)?;
    if let Some(file) = &args.sources.facts {
        let facts = read_facts(file).map_err(|error| Output::failure(vec![error]))?;
        for request in &mut checked.requests {
            request.facts = facts.clone();
        }
    }
    Ok(checked)
}

/// Reads the objects of the query from the cluster or from files.
fn read_objects(args: &CatalogArgs, notes: &mut Vec<String>) -> Result<Checked, Output> {
    #[cfg(feature = "cluster")]
    if args.files.is_empty() {
        let found = block_on(cluster::read(&args.cluster)).map_err(|error| Output::failure(vec![error]))?;
        let found = found.map_err(|error| Output::failure(vec![format_chain(&error)]))?;
        return requests::check_cluster_objects(found, notes)
            .map_err(|violations| violations_output(violations, notes));
    }
    let files = files::read(&args.files).map_err(|error| Output::failure(vec![format_chain(&error)]))?;
    let manifests = manifests::read(&files);
    let none = manifests.servers.is_empty() && manifests.violations.is_empty();
    let checked = requests::check(manifests, notes).map_err(|violations| violations_output(violations, notes))?;
    if none {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        notes.push(format!("{}: there is no PaperMCServer here, so there is no answer", names.join(", ")));
        return Err(Output::failure(std::mem::take(notes)));
    }
    Ok(checked)
}

fn violations_output(mut violations: Vec<InputViolation>, notes: &mut Vec<String>) -> Output {
    violations.sort();
    violations.dedup();
    notes.extend(violations.iter().map(ToString::to_string));
    Output::failure(std::mem::take(notes))
}

/// Reads a file of compatibility facts.
fn read_facts(file: &Path) -> Result<CompatibilityFacts, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("could not read `{name}`: {error}"))?;
    CompatibilityFacts::parse(&text).map_err(|error| format!("{name}: {}", format_chain(&error)))
}

pub(super) fn fetcher(sources: &SourceArgs, catalog: Option<&Path>) -> Result<Fetcher, String> {
    match catalog {
        Some(directory) if directory.is_dir() => Ok(Fetcher::offline(directory)),
        Some(directory) => {
            let directory = directory.display();
            Err(format!("there is no directory `{directory}`: fill it with `catalog fetch --catalog {directory} -f …`"))
        }
        None => online_fetcher(sources, cache_directory()?),
    }
}

fn online_fetcher(sources: &SourceArgs, directory: PathBuf) -> Result<Fetcher, String> {
    let mut settings = Settings::new(directory);
    settings.upstreams = sources.upstreams.upstreams();
    settings.keeps_in_memory = false;
    Fetcher::new(settings).map_err(|error| format_chain(&error))
}

/// `$XDG_CACHE_HOME/nightshift/catalog`, or below `~/.cache` when that is not set (or not absolute, as its
/// specification demands).
pub(super) fn cache_directory() -> Result<PathBuf, String> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|cache| cache.join("nightshift").join("catalog"))
        .ok_or_else(|| {
            "there is no directory for the catalog: set HOME or XDG_CACHE_HOME, or give --catalog".to_owned()
        })
}

pub(super) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, String> {
    // Few threads read stored pages: starting one costs more than reading a page, and most pages are small.
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("could not start: {}", format_chain(&error as &dyn Error)))?;
    Ok(runtime.block_on(work))
}

pub(super) async fn read_upstreams(
    fetcher: &Fetcher,
    sources: &SourceArgs,
    checked: &Checked,
    already_missing: &MissingFromCatalog,
    now: Timestamp,
) -> CatalogBuild {
    let mut projects = checked.projects();
    projects.extend_from_slice(&already_missing.projects);
    let oldest = checked.oldest_minecraft();
    let unmanaged: Vec<UnmanagedJar> =
        checked.requests.iter().flat_map(|request| request.unmanaged.iter().cloned()).collect();
    let software = checked.software();
    let _progress = Progress::show(&progress_text(&software, &projects, checked.chooses_image()));
    let wanted = CatalogQuery {
        software: &software,
        projects: &projects,
        images: checked.chooses_image().then_some(sources.image.as_str()),
        builds_to_verify: &already_missing.builds,
        unmanaged: &unmanaged,
        oldest: oldest.as_ref(),
    };
    let missing = |catalog: &Catalog| {
        let mut keys: Vec<ProjectKey> =
            checked.requests.iter().flat_map(|request| missing_projects(catalog, request)).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    fetcher.catalog(wanted, missing, now).await
}

/// Progress text: the upstreams and what is read from each.
fn progress_text(software: &[Software], projects: &[ProjectKey], images: bool) -> String {
    let (purpur, from_fill): (Vec<Software>, Vec<Software>) =
        software.iter().partition(|software| **software == Software::Purpur);
    let from_fill: Vec<String> = from_fill.iter().map(Software::to_string).collect();
    let mut parts = vec![format!("Fill for {}", from_fill.join(" and "))];
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

fn add_explanation(
    output: &mut Output,
    explanation: &Explanation,
    assumptions: &Assumptions,
    format: ExplainFormat,
    times: &ServerSchedules<'_>,
) {
    let status = exit_status(explanation);
    output.status = output.status.max(status);
    if status == ExitStatus::Failed {
        // This is not an answer, so it does not go to stdout.
        output.stderr.push(text::render(explanation, times.at).trim_end().to_owned());
        return;
    }
    match format {
        // One diagram contains all servers.
        ExplainFormat::Svg => {}
        ExplainFormat::Human => {
            if !output.stdout.is_empty() {
                output.stdout.push('\n');
            }
            output.stdout.push_str(&text::render(&without_lists_note(explanation), times.at));
            if let Some(when) = times.schedule_sentences(explanation) {
                output.stdout.extend(["\n", &when, "\n"]);
            }
        }
        ExplainFormat::Json => {
            let json = if assumptions.is_empty() {
                serde_json::to_string_pretty(explanation)
            } else {
                serde_json::to_string_pretty(&WhatIf::new(assumptions, explanation))
            };
            output.stdout.push_str(&json.expect("an explanation has string keys only"));
            output.stdout.push('\n');
        }
    }
}

/// The exit status for this explanation.
fn exit_status(explanation: &Explanation) -> ExitStatus {
    match explanation {
        Explanation::Solved(solved) if solved.deploy_blocker().is_some() => ExitStatus::NoSolution,
        Explanation::Solved(_) => ExitStatus::Solved,
        Explanation::WhyNot(why) if why.possible => ExitStatus::Solved,
        Explanation::WhyNotRelease(why) if why.state == ReleaseState::Chosen => ExitStatus::Solved,
        Explanation::WhyNot(_) | Explanation::WhyNotRelease(_) | Explanation::Impossible(_) => ExitStatus::NoSolution,
        Explanation::Unanswerable(_) | Explanation::GaveUp(_) => ExitStatus::Failed,
    }
}

/// Removes the remark that the note about a past time already makes once for all servers.
fn without_lists_note(explanation: &Explanation) -> Explanation {
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
pub(super) fn add_read_errors(output: &mut Output, problems: &[upstream::ReadError]) {
    let unreported: Vec<String> = problems
        .iter()
        .filter(|problem| !output.stderr.iter().any(|note| note.contains(&format_chain(&problem.error))))
        .map(ToString::to_string)
        .collect();
    output.stderr.extend(unreported);
}

/// Violations that only an upstream can detect: requested projects that do not exist, and files with another hash.
pub(super) fn unknown_projects(fetcher: &Fetcher, checked: &Checked, problems: &[upstream::ReadError]) -> Vec<String> {
    let mut violations = Vec::new();
    for key in checked.projects() {
        let subject = key.to_string();
        let Some(problem) = problems.iter().find(|problem| problem.subject == subject) else { continue };
        let unknown_project = |upstream: Upstream| format!("is `{}`, and {upstream} has no such project", key.project);
        let problem_text = match &*problem.error {
            FetchError::NotFound { upstream, .. } | FetchError::InvalidName { upstream, .. } => {
                unknown_project(*upstream)
            }
            FetchError::Download(DownloadError::WrongHash { url, expected, found }) => {
                let is = format!("is {expected}, but the file at {url} now has {found}");
                let fix = "ask its authors which of the two is right before you change it";
                violations.extend(
                    checked.project_violations(&key, "spec.source.checksum", &is, fix).iter().map(ToString::to_string),
                );
                continue;
            }
            FetchError::Unreachable { .. }
            | FetchError::Status { .. }
            | FetchError::Paused { .. }
            | FetchError::TooLarge { .. }
            | FetchError::Unreadable { .. }
            | FetchError::NoUsableEntry { .. }
            | FetchError::Offline { .. }
            | FetchError::Download(_)
            | FetchError::InvalidFileKey { .. }
            | FetchError::NotAPlugin { .. }
            | FetchError::FileOffline { .. }
            | FetchError::NotOnDockerHub { .. } => continue,
        };
        let fix = project_slugs::suggest(&key, &fetcher.stored_projects());
        violations.extend(
            checked
                .project_violations(&key, "spec.source.project", &problem_text, &fix)
                .iter()
                .map(ToString::to_string),
        );
    }
    violations
}
