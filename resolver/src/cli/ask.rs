//! Edge (reads). The questions: manifests and upstreams in, answers out.

use std::error::Error;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::arguments::{Explain, Fetch, Format, Reading as Asked};
use super::checked::{self, Checked};
use super::{End, Said, input, known_projects, manifests};
use crate::catalog::{Catalog, ProjectKey};
use crate::download::DownloadError;
use crate::explain::{Explanation, human};
use crate::upstream::{FetchError, Fetcher, Problem, Reading, Settings, Upstream, Wanted, in_words};
use crate::{Budget, Decided, Fleet, needed_projects};

/// How often a solve may name further projects before we stop. One such round is rare, two were never seen.
const ROUNDS: usize = 4;

/// `resolver explain`.
pub(super) fn explain(explain: &Explain, now: Timestamp) -> Said {
    let mut notes = Vec::new();
    let checked = match read(&explain.reading, &mut notes) {
        Ok(checked) => checked,
        Err(said) => return said,
    };
    let fetcher = match fetcher(&explain.reading, explain.catalog.as_deref()) {
        Ok(fetcher) => fetcher,
        Err(said) => return Said::nothing_but(vec![said]),
    };
    let at = explain.at.unwrap_or(now);
    let (reading, answers) = match in_runtime(ask(&fetcher, explain, &checked, at, now)) {
        Ok(answered) => answered,
        Err(said) => return Said::nothing_but(vec![said]),
    };
    let mistakes = misspelt(&fetcher, &checked, &reading.problems);
    if !mistakes.is_empty() {
        notes.extend(mistakes);
        return Said::nothing_but(notes);
    }
    let mut said = Said { answer: String::new(), notes, end: End::Solved };
    for answer in &answers {
        say(&mut said, answer, explain.format, at);
    }
    say_problems(&mut said, &reading.problems);
    if at < reading.catalog.paper_read_at {
        let day = reading.catalog.paper_read_at.to_zoned(TimeZone::UTC).date();
        said.notes.push(format!("lists as read on {day}; older text is not recorded"));
    }
    said
}

/// `resolver catalog fetch`.
pub(super) fn fetch(fetch: &Fetch, now: Timestamp) -> Said {
    let mut notes = Vec::new();
    let checked = match read(&fetch.reading, &mut notes) {
        Ok(checked) => checked,
        Err(said) => return said,
    };
    let directory = match fetch.catalog.clone().map_or_else(cache, Ok) {
        Ok(directory) => directory,
        Err(said) => return Said::nothing_but(vec![said]),
    };
    let fetcher = match online(&fetch.reading, directory.clone()) {
        Ok(fetcher) => fetcher,
        Err(said) => return Said::nothing_but(vec![said]),
    };
    let reading = match in_runtime(read_upstreams(&fetcher, &fetch.reading, &checked, &[], now)) {
        Ok(reading) => reading,
        Err(said) => return Said::nothing_but(vec![said]),
    };
    let mistakes = misspelt(&fetcher, &checked, &reading.problems);
    notes.extend(mistakes.iter().cloned());
    let mut said = Said { answer: String::new(), notes, end: End::Solved };
    if mistakes.is_empty() {
        said.notes.extend(reading.problems.iter().map(ToString::to_string));
    }
    // What is old is there all the same, but this was asked to be new.
    if !reading.problems.is_empty() {
        said.end = End::Failed;
    }
    let Catalog { paper, projects, images, .. } = &reading.catalog;
    said.answer = format!(
        "{}: {} Paper versions, {} projects, {} image tags\n",
        directory.display(),
        paper.len(),
        projects.len(),
        images.len()
    );
    said
}

/// What is asked, or all that is wrong with it.
fn read(asked: &Asked, notes: &mut Vec<String>) -> Result<Checked, Said> {
    let files = input::read(&asked.files).map_err(|error| Said::nothing_but(vec![in_words(&error)]))?;
    let manifests = manifests::read(&files);
    let none = manifests.servers.is_empty() && manifests.mistakes.is_empty();
    let checked = match checked::check(manifests, notes) {
        Ok(checked) => checked,
        Err(mut mistakes) => {
            mistakes.sort();
            notes.extend(mistakes.iter().map(ToString::to_string));
            return Err(Said::nothing_but(std::mem::take(notes)));
        }
    };
    if none {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        notes.push(format!("{}: there is no PaperMCServer here, so there is nothing to answer", names.join(", ")));
        return Err(Said::nothing_but(std::mem::take(notes)));
    }
    Ok(checked)
}

fn fetcher(asked: &Asked, catalog: Option<&Path>) -> Result<Fetcher, String> {
    match catalog {
        Some(directory) if directory.is_dir() => Ok(Fetcher::offline(directory)),
        Some(directory) => {
            let directory = directory.display();
            Err(format!(
                "there is no directory `{directory}`: fill it with `resolver catalog fetch --catalog {directory} -f …`"
            ))
        }
        None => online(asked, cache()?),
    }
}

fn online(asked: &Asked, directory: PathBuf) -> Result<Fetcher, String> {
    let mut settings = Settings::new(directory);
    settings.upstreams = asked.upstreams.upstreams();
    Fetcher::new(settings).map_err(|error| in_words(&error))
}

/// `$XDG_CACHE_HOME/nightshift/catalog`, below `~/.cache` when that is not set (or not absolute, as its specification says).
fn cache() -> Result<PathBuf, String> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|cache| cache.join("nightshift").join("catalog"))
        .ok_or_else(|| "there is no place for the catalog: set HOME or XDG_CACHE_HOME, or give --catalog".to_owned())
}

fn in_runtime<T>(work: impl Future<Output = T>) -> Result<T, String> {
    // Stored pages are read by few threads: starting one costs more than reading a page, and most are small.
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("could not start: {}", in_words(&error as &dyn Error)))?;
    Ok(runtime.block_on(work))
}

async fn ask(
    fetcher: &Fetcher,
    explain: &Explain,
    checked: &Checked,
    at: Timestamp,
    now: Timestamp,
) -> (Reading, Vec<Explanation>) {
    let mut further: Vec<ProjectKey> = Vec::new();
    let mut round = 0;
    loop {
        let reading = read_upstreams(fetcher, &explain.reading, checked, &further, now).await;
        let mut lacking = Vec::new();
        let fleet = Fleet::read(&reading.catalog, &checked.requests, at);
        let decided = fleet.decide(Budget::default());
        let answers: Vec<Explanation> =
            checked.requests.iter().map(|request| answer(explain, &decided, &request.server, &mut lacking)).collect();
        lacking.retain(|key| !further.contains(key));
        round += 1;
        if lacking.is_empty() || round == ROUNDS {
            return (reading, answers);
        }
        further.extend(lacking);
    }
}

async fn read_upstreams(
    fetcher: &Fetcher,
    asked: &Asked,
    checked: &Checked,
    further: &[ProjectKey],
    now: Timestamp,
) -> Reading {
    let mut projects = checked.projects();
    projects.extend_from_slice(further);
    let oldest = checked.oldest();
    let wanted = Wanted {
        projects: &projects,
        images: checked.chooses_an_image().then_some(asked.image.as_str()),
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

/// The answer for one server; projects that it lacks still go to `lacking`.
fn answer(explain: &Explain, decided: &Decided<'_, '_>, server: &str, lacking: &mut Vec<ProjectKey>) -> Explanation {
    let answer = match &explain.why_not {
        Some(target) => decided.why_not(server, target).map(|why| why.map(Explanation::WhyNot)),
        None => decided.answer(server).map(|answer| answer.map(|resolution| resolution.explanation)),
    };
    let answer = answer.expect("the fleet was read from the same requests");
    answer.unwrap_or_else(|unsolvable| {
        lacking.extend_from_slice(unsolvable.projects_to_fetch());
        unsolvable.explanation()
    })
}

fn say(said: &mut Said, explanation: &Explanation, format: Format, at: Timestamp) {
    let end = match explanation {
        Explanation::Solved(_) => End::Solved,
        Explanation::WhyNot(why) if why.possible => End::Solved,
        Explanation::WhyNot(_) | Explanation::Impossible(_) => End::NoSolution,
        Explanation::Unanswerable(_) | Explanation::GaveUp(_) => End::Failed,
    };
    said.end = said.end.max(end);
    if end == End::Failed {
        // It is no answer, so it is not where answers go.
        said.notes.push(human::render(explanation, at).trim_end().to_owned());
        return;
    }
    match format {
        Format::Human => {
            if !said.answer.is_empty() {
                said.answer.push('\n');
            }
            said.answer.push_str(&human::render(&without_reading_note(explanation), at));
        }
        Format::Json => {
            let json = serde_json::to_string_pretty(explanation).expect("an explanation has string keys only");
            said.answer.push_str(&json);
            said.answer.push('\n');
        }
    }
}

/// Without what the note about a past instant says once, for all servers.
fn without_reading_note(explanation: &Explanation) -> Explanation {
    let mut explanation = explanation.clone();
    match &mut explanation {
        Explanation::Solved(solved) => solved.lists_read_later = None,
        Explanation::Impossible(impossible) => impossible.lists_read_later = None,
        Explanation::WhyNot(_) | Explanation::Unanswerable(_) | Explanation::GaveUp(_) => {}
    }
    explanation
}

/// What could not be read and has not been said yet.
fn say_problems(said: &mut Said, problems: &[Problem]) {
    let unsaid: Vec<String> = problems
        .iter()
        .filter(|problem| !said.notes.iter().any(|note| note.contains(&in_words(&problem.error))))
        .map(ToString::to_string)
        .collect();
    said.notes.extend(unsaid);
}

/// The mistakes that only an upstream can tell: projects that are asked for and do not exist, files that are others.
fn misspelt(fetcher: &Fetcher, checked: &Checked, problems: &[Problem]) -> Vec<String> {
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
        let fix = known_projects::fix(&key, &fetcher.stored_projects());
        mistakes.extend(checked.mistaken(&key, "spec.source.project", &said, &fix).iter().map(ToString::to_string));
    }
    mistakes
}
