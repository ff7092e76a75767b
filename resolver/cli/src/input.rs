//! Edge (reads). Reads the input of a query: manifests or objects of a cluster, and the upstreams.

pub(crate) mod files;
pub(crate) mod from_status;
pub(crate) mod instant;
pub(crate) mod manifests;
pub(crate) mod project_slugs;
pub(crate) mod requests;
pub(crate) mod running;
pub(crate) mod schema_check;
pub(crate) mod yaml;

use std::error::Error;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::Output;
use super::answers::MissingFromCatalog;
use super::args::{CatalogArgs, SourceArgs};
use crate::cluster;
use crate::input::manifests::InputViolation;
use crate::input::requests::Checked;
use crate::output::terminal::Progress;
use artifacts::download::DownloadError;
use resolver::missing_projects;
use resolver::model::catalog::{Catalog, ProjectKey, Source};
use resolver::model::compatibility_facts::CompatibilityFacts;
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedJar;
use resolver::model::untrusted_text::hide_url_secrets;
use upstream::{CatalogBuild, CatalogQuery, FetchError, Fetcher, Settings, Upstream, format_chain};

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
    from_api::parse_facts(&text).map_err(|error| format!("{name}: {}", format_chain(&error)))
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

pub(super) fn online_fetcher(sources: &SourceArgs, directory: PathBuf) -> Result<Fetcher, String> {
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
        max_age: None,
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
                let is = format!("is {expected}, but the file at {} now has {found}", hide_url_secrets(url));
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
            | FetchError::RefusedPlugin { .. }
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
