//! Edge (reads). Identifies the project of each file in `plugins/` by hash, or else by name and version.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::finding::{AdoptFinding, Because};
use super::server_dir::PluginFile;
use resolver::is_pinned;
use resolver::model::catalog::{Catalog, Project, ProjectKey, Release, Source};
use resolver::model::jar_pattern::{matches, stem};
use resolver::model::software::Software;
use resolver::model::version::{Minecraft, hotfix};
use upstream::{CatalogQuery, FetchError, Fetcher, ReadError, format_chain};

/// Result of the lookups.
#[derive(Debug)]
pub(super) struct IdentifiedFiles {
    /// The projects that the files may belong to, and Paper.
    pub(super) catalog: Catalog,
    /// Owners of the files, by sha512.
    pub(super) owners: BTreeMap<String, ProjectKey>,
    /// Why a file is unmanaged when no project has it.
    pub(super) fallback_reason: Because,
}

/// Source of one file.
#[derive(Debug)]
pub(super) enum Origin {
    /// A release of a project.
    Release {
        /// The project, by its slug.
        key: ProjectKey,
        /// The source's id of the release, because version texts are not unique.
        release: String,
        /// The version as its authors write it.
        version: String,
        /// It is the file that is installed when `jars` is empty.
        main: bool,
        /// The pattern that selects it among the files of its release.
        pattern: String,
        /// Its page lists the running Minecraft version, or has no list.
        listed: bool,
    },
    /// A project has a release with the name and version of the file, but with other bytes. It may be another plugin.
    Guess {
        /// The project, by its slug.
        key: ProjectKey,
        /// The version as its authors write it.
        version: String,
        /// Its page lists the running Minecraft version, or has no list.
        listed: bool,
    },
    /// No release that a Plugin can request.
    Unmanaged(Because),
}

/// Looks up the files by hash on Modrinth and Hangar, and reads the projects that they may belong to. With `offline` it
/// searches all projects in the store instead. Builds of Paper before `oldest` are not read.
pub(super) async fn identify(
    fetcher: &Fetcher,
    files: &[PluginFile],
    oldest: &Minecraft,
    offline: bool,
    now: Timestamp,
    findings: &mut Vec<AdoptFinding>,
) -> IdentifiedFiles {
    let owners = if offline { BTreeMap::new() } else { owners(fetcher, files, now, findings).await };
    let mut wanted: BTreeSet<ProjectKey> = owners.values().cloned().collect();
    let mut guesses = BTreeSet::new();
    if offline {
        wanted.extend(fetcher.stored_projects());
    } else {
        let unknown = files.iter().filter(|file| !owners.contains_key(&file.sha512));
        guesses.extend(unknown.flat_map(|file| candidate_keys(&file.facts.name)).filter(|key| !wanted.contains(key)));
    }
    let keys: Vec<ProjectKey> = wanted.iter().chain(&guesses).cloned().collect();
    let all = CatalogQuery { projects: &keys, oldest: Some(oldest), ..CatalogQuery::default() };
    let reading = fetcher.catalog(all, |_| Vec::new(), now).await;
    let subjects: BTreeSet<String> = guesses.iter().map(ToString::to_string).collect();
    for error in unexpected_errors(&reading.problems, &subjects, offline) {
        add_unread_site(error, findings);
    }
    let failed = findings.iter().any(|finding| matches!(finding, AdoptFinding::SiteNotRead { .. }));
    let fallback_reason = match (offline, failed) {
        (true, _) => Because::Offline,
        (false, true) => Because::SiteNotRead,
        (false, false) => Because::Unknown,
    };
    IdentifiedFiles { catalog: reading.catalog, owners, fallback_reason }
}

impl IdentifiedFiles {
    /// The source of each file, in the order of the files, on a server that runs this Minecraft version.
    pub(super) fn origins(&self, files: &[PluginFile], minecraft: &Minecraft) -> Vec<Origin> {
        let origin = |file: &PluginFile| {
            origin(&self.catalog, file, self.owners.get(&file.sha512), minecraft, &self.fallback_reason)
        };
        let mut origins: Vec<Origin> = files.iter().map(origin).collect();
        // All files of a Plugin are of one release: that of the project's main file, else that of its first file.
        let mut releases: BTreeMap<ProjectKey, String> = BTreeMap::new();
        for with_main in [true, false] {
            for origin in &origins {
                if let Origin::Release { key, release, main, .. } = origin
                    && *main == with_main
                {
                    releases.entry(key.clone()).or_insert_with(|| release.clone());
                }
            }
        }
        for origin in &mut origins {
            if let Origin::Release { key, release, .. } = origin
                && releases.get(key) != Some(release)
            {
                *origin = Origin::Unmanaged(Because::DifferentRelease { project: key.to_string() });
            }
        }
        origins
    }
}

/// The projects of the files, by sha512. Hangar is asked only for files that Modrinth does not know.
async fn owners(
    fetcher: &Fetcher,
    files: &[PluginFile],
    now: Timestamp,
    findings: &mut Vec<AdoptFinding>,
) -> BTreeMap<String, ProjectKey> {
    let hashes: Vec<String> = files.iter().map(|file| file.sha512.clone()).collect();
    let mut owners: BTreeMap<String, ProjectKey> = match fetcher.modrinth_by_hash(&hashes, now).await {
        Ok(owners) => owners.into_iter().map(|(sha512, owner)| (sha512, owner.project)).collect(),
        Err(error) => {
            add_unread_site(&error, findings);
            BTreeMap::new()
        }
    };
    for file in files {
        if owners.contains_key(&file.sha512) {
            continue;
        }
        match fetcher.hangar_by_hash(&file.sha256, now).await {
            Ok(owner) => owners.extend(owner.map(|owner| (file.sha512.clone(), owner))),
            Err(error) => {
                add_unread_site(&error, findings);
                // The site is unreachable, so the other lookups would fail as well, each after all its retries.
                break;
            }
        }
    }
    owners
}

/// The slugs that a plugin of this name would have: lower case on Modrinth, the name itself on Hangar.
fn candidate_keys(name: &str) -> [ProjectKey; 2] {
    let slug = name.replace(' ', "-");
    [
        ProjectKey { source: Source::Modrinth, project: slug.to_lowercase() },
        ProjectKey { source: Source::Hangar, project: slug },
    ]
}

/// Errors to report. A missing project for a guessed slug is expected, and offline every error is.
fn unexpected_errors<'a>(
    problems: &'a [ReadError],
    guesses: &BTreeSet<String>,
    offline: bool,
) -> impl Iterator<Item = &'a FetchError> {
    let unexpected = problems.iter().filter(move |problem| {
        let none = matches!(&*problem.error, FetchError::NotFound { .. } | FetchError::InvalidName { .. });
        let expected = offline || (none && guesses.contains(&problem.subject));
        !expected
    });
    unexpected.map(|problem| &*problem.error)
}

/// Adds the site of this error, once: the pages of a site that is down all fail.
fn add_unread_site(error: &FetchError, findings: &mut Vec<AdoptFinding>) {
    let Some(of_error) = error.upstream() else { return };
    let known =
        findings.iter().any(|finding| matches!(finding, AdoptFinding::SiteNotRead { site, .. } if *site == of_error));
    if !known {
        findings.push(AdoptFinding::SiteNotRead { site: of_error, error: format_chain(error) });
    }
}

fn origin(
    catalog: &Catalog,
    file: &PluginFile,
    owner: Option<&ProjectKey>,
    minecraft: &Minecraft,
    fallback_reason: &Because,
) -> Origin {
    let release_origin = |project: &Project, release: &Release, at: usize| Origin::Release {
        key: project.key.clone(),
        release: release.id.clone(),
        version: release.version.clone(),
        main: at == 0,
        pattern: pattern(release, at),
        listed: is_listed(release, minecraft),
    };
    let position = |release: &Release| {
        let is_file = |hash: &String| file.has_hash(hash);
        release.files().position(|file| file.hash.as_ref().is_some_and(is_file))
    };
    let sites = catalog.projects.iter().filter(|project| project.key.source != Source::Url);
    let releases = sites.flat_map(|project| project.releases.iter().map(move |release| (project, release)));
    let mut found = releases.filter(|(_, release)| Software::Paper.is_named_by(release));
    if let Some(origin) =
        found.find_map(|(project, release)| Some(release_origin(project, release, position(release)?)))
    {
        return origin;
    }
    if let Some(owner) = owner {
        let project = catalog.project(owner).map_or_else(|| owner.to_string(), |project| project.key.to_string());
        return Origin::Unmanaged(Because::NotForPaper { project });
    }
    let named: Vec<&Project> = candidate_keys(&file.facts.name).iter().filter_map(|key| catalog.project(key)).collect();
    let same = |release: &&Release| {
        is_pinned(&release.version, &file.facts.version)
            && Software::Paper.is_named_by(release)
            && release.file.as_ref().is_some_and(|file| file.hash.is_some())
    };
    let guess = named.iter().find_map(|project| Some((*project, project.releases.iter().find(same)?)));
    match (guess, named.first()) {
        (Some((project, release)), _) => Origin::Guess {
            key: project.key.clone(),
            version: release.version.clone(),
            listed: is_listed(release, minecraft),
        },
        (None, Some(project)) => Origin::Unmanaged(Because::NoSuchVersion { project: project.key.to_string() }),
        (None, None) => Origin::Unmanaged(fallback_reason.clone()),
    }
}

/// The pattern for `spec.source.jars` that selects the file at this position of a release. It is the part of the name
/// that is the same in every version, or the full name if another file of the release matches that part.
fn pattern(release: &Release, at: usize) -> String {
    let names: Vec<&str> = release.files().map(|file| file.name.as_str()).collect();
    let name = names[at];
    let stem = stem(name);
    if names.iter().filter(|name| matches(&stem, name)).count() == 1 {
        return stem;
    }
    name.strip_suffix(".jar").unwrap_or(name).to_owned()
}

/// Whether the page lists this Minecraft version or its hotfix sibling. A page without a list counts as listing it.
fn is_listed(release: &Release, minecraft: &Minecraft) -> bool {
    let list = &release.minecraft;
    list.is_empty() || list.contains(minecraft) || hotfix::siblings(minecraft).any(|sibling| list.contains(sibling))
}
