//! Edge (reads). Where the files of `plugins/` come from: by hash, else by name and version, else from nobody.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::doubt::{Because, Doubt};
use super::folder::PluginFile;
use crate::catalog::{Catalog, Project, ProjectKey, Release, Source};
use crate::shelf::{for_paper, is_pinned};
use crate::upstream::{FetchError, Fetcher, Problem, Wanted, in_words};
use crate::version::{Minecraft, sibling};

/// What was found about the files.
#[derive(Debug)]
pub(super) struct Found {
    /// The projects that they may be of, and Paper.
    pub(super) catalog: Catalog,
    /// Whose the files are, by sha512.
    owners: BTreeMap<String, ProjectKey>,
    /// Why a file is nobody's that no project has.
    otherwise: Because,
}

/// Where one file comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// A release of a project.
    Of {
        /// The project, by its slug.
        key: ProjectKey,
        /// As its authors write it.
        version: String,
        /// Its page lists the Minecraft that runs, or has no list.
        listed: bool,
        /// By name and version, and not by its hash.
        guess: bool,
    },
    /// No release that can be asked for.
    Nobody(Because),
}

/// Asks Modrinth and Hangar for the files by their hashes, and reads the projects that they may be of. `offline`: looks at
/// all projects that are stored instead. Builds of Paper before `oldest` are not read.
pub(super) async fn find(
    fetcher: &Fetcher,
    files: &[PluginFile],
    oldest: &Minecraft,
    offline: bool,
    now: Timestamp,
    doubts: &mut Vec<Doubt>,
) -> Found {
    let owners = if offline { BTreeMap::new() } else { owners(fetcher, files, now, doubts).await };
    let mut wanted: BTreeSet<ProjectKey> = owners.values().cloned().collect();
    let mut guesses = BTreeSet::new();
    if offline {
        wanted.extend(fetcher.stored_projects());
    } else {
        let unknown = files.iter().filter(|file| !owners.contains_key(&file.sha512));
        guesses.extend(unknown.flat_map(|file| called(&file.facts.name)).filter(|key| !wanted.contains(key)));
    }
    let keys: Vec<ProjectKey> = wanted.iter().chain(&guesses).cloned().collect();
    let all = Wanted { projects: &keys, oldest: Some(oldest), ..Wanted::default() };
    let reading = fetcher.catalog(all, |_| Vec::new(), now).await;
    let subjects: BTreeSet<String> = guesses.iter().map(ToString::to_string).collect();
    doubts.extend(unread(&reading.problems, &subjects, offline));
    let failed = doubts.iter().any(|doubt| matches!(doubt, Doubt::NotAsked { .. }));
    let otherwise = match (offline, failed) {
        (true, _) => Because::Offline,
        (false, true) => Because::NotAsked,
        (false, false) => Because::Unknown,
    };
    Found { catalog: reading.catalog, owners, otherwise }
}

impl Found {
    /// Where each file comes from, in the order of the files, on a server that runs this Minecraft.
    pub(super) fn origins(&self, files: &[PluginFile], minecraft: &Minecraft) -> Vec<Origin> {
        let mut taken = BTreeSet::new();
        let origins = files.iter().map(|file| {
            let origin = origin(&self.catalog, file, self.owners.get(&file.sha512), minecraft, &self.otherwise);
            match origin {
                // A second file of a project: its Plugin can bring one only.
                Origin::Of { key, .. } if !taken.insert(key.clone()) => {
                    Origin::Nobody(Because::FurtherFile { project: key.to_string() })
                }
                known @ (Origin::Of { .. } | Origin::Nobody(_)) => known,
            }
        });
        origins.collect()
    }
}

/// The projects of the files, by sha512. What Modrinth has is not asked of Hangar.
async fn owners(
    fetcher: &Fetcher,
    files: &[PluginFile],
    now: Timestamp,
    doubts: &mut Vec<Doubt>,
) -> BTreeMap<String, ProjectKey> {
    let hashes: Vec<String> = files.iter().map(|file| file.sha512.clone()).collect();
    let mut owners = match fetcher.modrinth_by_hash(&hashes, now).await {
        Ok(owners) => owners,
        Err(error) => {
            doubts.push(Doubt::NotAsked { why: in_words(&error) });
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
                doubts.push(Doubt::NotAsked { why: in_words(&error) });
                // It is down: the others would fail as well, each after all its tries.
                break;
            }
        }
    }
    owners
}

/// The slugs that a plugin of this name would have: Modrinth's are lower case, Hangar's are its name.
fn called(name: &str) -> [ProjectKey; 2] {
    let slug = name.replace(' ', "-");
    [
        ProjectKey { source: Source::Modrinth, project: slug.to_lowercase() },
        ProjectKey { source: Source::Hangar, project: slug },
    ]
}

/// What could not be read. That there is no project of a plugin's name is no news, and offline nothing can be.
fn unread(problems: &[Problem], guesses: &BTreeSet<String>, offline: bool) -> Vec<Doubt> {
    let news = problems.iter().filter(|problem| {
        let none = matches!(&*problem.error, FetchError::NotFound { .. } | FetchError::NotAName { .. });
        let expected = offline || (none && guesses.contains(&problem.subject));
        !expected
    });
    let mut said: Vec<String> = news.map(|problem| in_words(&problem.error)).collect();
    said.sort();
    said.dedup();
    said.into_iter().map(|why| Doubt::NotAsked { why }).collect()
}

fn origin(
    catalog: &Catalog,
    file: &PluginFile,
    owner: Option<&ProjectKey>,
    minecraft: &Minecraft,
    otherwise: &Because,
) -> Origin {
    let of = |project: &Project, release: &Release, guess: bool| Origin::Of {
        key: project.key.clone(),
        version: release.version.clone(),
        listed: lists(release, minecraft),
        guess,
    };
    let is_file = |release: &&Release| {
        release.file.as_ref().and_then(|file| file.hash.as_ref()).is_some_and(|hash| file.has(hash))
    };
    let sites = catalog.projects.iter().filter(|project| project.key.source != Source::Url);
    let mut found = sites.filter_map(|project| project.releases.iter().find(is_file).map(|release| (project, release)));
    if let Some((project, release)) = found.find(|(_, release)| for_paper(release)) {
        return of(project, release, false);
    }
    if let Some(owner) = owner {
        let project = catalog.project(owner).map_or_else(|| owner.to_string(), |project| project.key.to_string());
        return Origin::Nobody(Because::FurtherFile { project });
    }
    let named: Vec<&Project> = called(&file.facts.name).iter().filter_map(|key| catalog.project(key)).collect();
    let version = file.facts.version.as_deref();
    let same = |release: &&Release| {
        version.is_some_and(|version| is_pinned(&release.version, version))
            && for_paper(release)
            && release.file.as_ref().is_some_and(|file| file.hash.is_some())
    };
    let guess = named.iter().find_map(|project| Some((*project, project.releases.iter().find(same)?)));
    match (guess, named.first()) {
        (Some((project, release)), _) => of(project, release, true),
        (None, Some(project)) => Origin::Nobody(Because::NoSuchVersion { project: project.key.to_string() }),
        (None, None) => Origin::Nobody(otherwise.clone()),
    }
}

/// Whether its page lists this Minecraft or its hotfix sibling. One without a list says nothing against it.
fn lists(release: &Release, minecraft: &Minecraft) -> bool {
    let list = &release.minecraft;
    list.is_empty()
        || list.contains(minecraft)
        || sibling::sibling(minecraft).is_some_and(|sibling| list.contains(&sibling))
}
