//! Pure. Decides how unmanaged JARs restrict a newer Minecraft: a second implementation without the solver's code.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use resolver::explanation::Warning;
use resolver::model::catalog::{Catalog, Channel, Dependency, DependencyKind, Project, ProjectKey, Release};
use resolver::model::lock::Lock;
use resolver::model::request::Request;
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use resolver::model::version::Minecraft;

use super::dependencies::{Needs, Resolved, is_named};
use super::jar_identification::{KnownFile, is_same_elsewhere, known_files};
use super::loading::{has_list, is_meant_for};
use super::membership::RequestedProjects;
use super::name_rules::normalized;
use super::paper_rules::can_use_java;
use super::rules::{Member, ServerRules, Terms, Unknown, project_index};
use super::texts;

/// The unmanaged JARs that need a running, unrequested plugin, by the index of its project.
pub(super) type RetainedProjects = BTreeMap<usize, Vec<String>>;

/// The Java that the unmanaged JARs need, limited to versions that the server can have.
pub(crate) fn java(catalog: &Catalog, request: &Request, now: Timestamp) -> Option<u32> {
    let javas = request.unmanaged.iter().filter_map(|jar| jar.java);
    javas.filter(|java| counts_unmanaged(request) && can_use_java(catalog, request, now, *java)).max()
}

/// Whether unmanaged JARs affect the solve. They do not on a proxy, and are unknown before the first start.
fn counts_unmanaged(request: &Request) -> bool {
    let runs = request.running.is_some() || request.floor.is_some();
    runs && request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity
}

/// Whether the unmanaged JARs allow this Paper: the server already runs its Minecraft version, or all JARs allow that
/// version.
pub(crate) fn allows_paper(rules: &ServerRules<'_>, paper: usize, now: Timestamp) -> bool {
    let request = rules.request;
    let minecraft = rules.papers[paper].minecraft;
    let before = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let stays = before.is_none() || before == Some(minecraft);
    let is_trusted = |jar: &UnmanagedJar| jar.trusted.iter().any(|pattern| texts::pattern_matches(pattern, minecraft));
    let published = |jar: &UnmanagedJar| {
        release_of(rules.catalog, request, jar).is_some_and(|(project, release)| {
            has_list(request.software, project.key.source, release)
                && (request.software == Software::Velocity || is_loaded_by(release, minecraft))
                && rules.list_covers(&release.minecraft, paper)
        })
    };
    let loads = |jar: &UnmanagedJar| {
        let accepted = jar.api_version.as_ref().is_none_or(|states| texts::accepts_api_version(states, minecraft));
        accepted && jar.java.is_none_or(|java| can_use_java(rules.catalog, request, now, java))
    };
    let held = request.unmanaged_plugins == UnmanagedPlugins::Hold;
    let is_allowed =
        |jar: &UnmanagedJar| (!counts_unmanaged(request) || loads(jar)) && (!held || is_trusted(jar) || published(jar));
    stays || request.unmanaged.iter().all(is_allowed)
}

/// The terms of a running plugin that is kept for an unmanaged JAR: the longest delay and the stable channel.
pub(super) fn retained_terms<'a>(request: &Request) -> Terms<'a> {
    Terms {
        software: request.software,
        channel: Channel::Release,
        delay: request.plugins.iter().map(|plugin_request| plugin_request.delay).chain([request.delay]).max().unwrap(),
        compatibility: None,
        pin: None,
        jars: vec![&[]],
        requires: &[],
        may_downgrade: false,
        held: false,
        delay_group: Vec::new(),
    }
}

/// A plugin that an unmanaged JAR needs, according to its descriptor or the page of its release.
pub(super) struct FileNeed<'a> {
    file: &'a str,
    /// The plugin names that meet the need.
    names: BTreeSet<String>,
    /// The index of the project that the page names.
    index: Option<usize>,
}

impl FileNeed<'_> {
    /// Whether a plugin with these terms meets the need.
    fn is_met_by(&self, needs: &Needs<'_>, at: usize, terms: &Terms<'_>) -> bool {
        let project = |at: usize| &needs.catalog.projects[at];
        let is_same = |index| index == at || is_same_elsewhere(project(index), &project(at).key, &project(at).name);
        self.index.is_some_and(is_same) || !needs.names_of(at, terms).is_disjoint(&self.names)
    }
}

/// All needs that neither another unmanaged JAR nor a requested plugin meets. `Err` if a project was not fetched.
pub(super) fn unmet_needs<'a>(
    needs: &Needs<'a>,
    requested: &RequestedProjects<'_>,
) -> Result<Vec<FileNeed<'a>>, Unknown> {
    let request = needs.request;
    let mut wants: Vec<FileNeed<'a>> = Vec::new();
    if request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity {
        for jar in &request.unmanaged {
            let names = jar.depend.iter().map(|name| BTreeSet::from([normalized(name)]));
            wants.extend(names.map(|names| FileNeed { file: &jar.file, names, index: None }));
        }
    }
    let identified = known_files(needs.catalog, request, &requested.keys().copied().collect());
    for file in &identified {
        for dependency in
            file.release.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Required)
        {
            wants.extend(need_of_dependency(needs, file, dependency)?);
        }
    }
    wants.retain(|want| {
        let has = |jar: &UnmanagedJar| {
            jar.name.iter().chain(&jar.provides).any(|alias| want.names.contains(&normalized(alias)))
        };
        let is_unmanaged = want.index.is_some_and(|at| {
            let owned = |jar: &UnmanagedJar| needs.catalog.owners.get(jar.sha256.as_ref()?);
            let mut owners = request.unmanaged.iter().filter_map(owned);
            identified.iter().any(|file| file.is_of(needs.catalog, at))
                || owners.any(|owner| project_index(needs.catalog, &owner.project) == Some(at))
        });
        let is_requested = requested.iter().any(|(at, (_, terms))| want.is_met_by(needs, *at, terms));
        !request.unmanaged.iter().any(has) && !is_unmanaged && !is_requested
    });
    Ok(wants)
}

/// The need that a required dependency on the page of an unmanaged JAR describes. `None` if the page names no plugin
/// that could be installed here.
fn need_of_dependency<'a>(
    needs: &Needs<'a>,
    file: &KnownFile<'a>,
    dependency: &Dependency,
) -> Result<Option<FileNeed<'a>>, Unknown> {
    let want = |names, index| Some(FileNeed { file: &file.jar.file, names, index });
    match needs.resolve_dependency(file.index, dependency) {
        Resolved::Project(at) => Ok(want(needs.names_of(at, &retained_terms(needs.request)), Some(at))),
        Resolved::Unknown => Err(Unknown),
        Resolved::Unread => {
            let name = dependency.name.as_ref().or(dependency.project_id.as_ref()).or(dependency.version_id.as_ref());
            Ok(name.and_then(|name| want(BTreeSet::from([normalized(name)]), None)))
        }
        Resolved::Unavailable if dependency.project_id.is_none() => {
            let source = file.project.key.source;
            let of_source = needs.catalog.projects.iter().filter(|project| project.key.source == source);
            let is_read = |name: &str| of_source.clone().any(|project| is_named(project, name));
            let name = dependency.name.as_deref().filter(|name| !is_read(name));
            Ok(name.and_then(|name| want(BTreeSet::from([normalized(name)]), None)))
        }
        Resolved::Missing | Resolved::UnmanagedFile | Resolved::Unavailable => Ok(None),
    }
}

fn unrequested(request: &Request) -> &[ProjectKey] {
    request.running.as_ref().map_or(&[], |running| &running.unrequested)
}

/// The running, unrequested plugins that unmanaged JARs need, with these JARs. `Err` if one of the plugins was not
/// fetched, or if one that could not be read may meet a need.
pub(super) fn retained_plugins(
    needs: &Needs<'_>,
    requested: &RequestedProjects<'_>,
    wants: &[FileNeed<'_>],
) -> Result<RetainedProjects, Unknown> {
    let mut retained = RetainedProjects::new();
    if wants.is_empty() {
        return Ok(retained);
    }
    let (mut unread, mut met) = (false, BTreeSet::new());
    for key in unrequested(needs.request) {
        let Some(at) = project_index(needs.catalog, key) else {
            needs.catalog.unread_reason(key).ok_or(Unknown)?;
            unread = true;
            continue;
        };
        let is_met = |want: &FileNeed<'_>| want.is_met_by(needs, at, &retained_terms(needs.request));
        let met_needs: Vec<usize> = (0..wants.len()).filter(|want| is_met(&wants[*want])).collect();
        if !met_needs.is_empty() && !requested.contains_key(&at) {
            let files: BTreeSet<&str> = met_needs.iter().map(|want| wants[*want].file).collect();
            retained.insert(at, files.into_iter().map(str::to_owned).collect());
        }
        met.extend(met_needs);
    }
    // An unread project may have the name that a JAR requires.
    let is_open = |want: &usize| wants[*want].index.is_none() && !met.contains(want);
    if unread && (0..wants.len()).any(|want| is_open(&want)) { Err(Unknown) } else { Ok(retained) }
}

/// A need with a known project, from the page of an unmanaged JAR, and the members that meet it if they are installed.
pub(crate) struct PageRequirement<'a> {
    pub(crate) file: &'a str,
    pub(crate) project: &'a Project,
    pub(crate) met_by: Vec<usize>,
}

/// All needs with a known project.
pub(super) fn page_requirements<'a>(
    needs: &Needs<'a>,
    wants: Vec<FileNeed<'a>>,
    members: &[Member<'_>],
) -> Vec<PageRequirement<'a>> {
    let with_project = wants.into_iter().filter_map(|want| Some((want.index?, want)));
    let by_page = |(index, want): (usize, FileNeed<'a>)| {
        let met = members.iter().enumerate().filter(|(_, member)| want.is_met_by(needs, member.index, &member.terms));
        let met_by = met.map(|(at, _)| at).collect();
        PageRequirement { file: want.file, project: &needs.catalog.projects[index], met_by }
    };
    with_project.map(by_page).collect()
}

/// Describes the difference between the warnings of an answer and the unmet needs of unmanaged JARs. `None` if they are
/// equal.
pub(crate) fn warning_difference(rules: &ServerRules<'_>, lock: &Lock, reported: &[Warning]) -> Option<String> {
    let is_installed =
        |at: &usize| lock.plugins.iter().any(|plugin| plugin.project_id == rules.members[*at].project.id);
    let unmet = rules.page_requirements.iter().filter(|want| !want.met_by.iter().any(is_installed));
    let unmet: BTreeSet<(&str, &ProjectKey)> = unmet.map(|want| (want.file, &want.project.key)).collect();
    let reported = reported.iter().filter_map(|warning| {
        let Warning::FileLacks { file, project, plugin: _ } = warning else { return None };
        Some((file.as_str(), project))
    });
    let reported: Vec<(&str, &ProjectKey)> = reported.collect();
    let is_equal = reported.len() == unmet.len() && reported.iter().all(|lack| unmet.contains(lack));
    (!is_equal).then(|| format!("unmanaged JARs lack {unmet:?}, but the warnings report {reported:?}"))
}

/// Whether a server of this Minecraft accepts the `api-version` of the release.
fn is_loaded_by(release: &Release, minecraft: &Minecraft) -> bool {
    release.api_version.as_ref().is_none_or(|states| texts::accepts_api_version(states, minecraft))
}

/// The project and release of a file, if a site knows its owner.
pub(super) fn release_of<'a>(
    catalog: &'a Catalog,
    request: &Request,
    jar: &UnmanagedJar,
) -> Option<(&'a Project, &'a Release)> {
    let sha256 = jar.sha256.as_ref()?;
    let owner = catalog.owners.get(sha256)?;
    let project = catalog.project(&owner.project)?;
    let hash = format!("sha256:{sha256}");
    let has = |release: &&Release| {
        let main = release.file.iter();
        let mut files = main.chain(release.further.iter().map(|jar| &jar.file));
        files.any(|file| file.hash.as_deref() == Some(&hash))
    };
    let mut matching = project.releases.iter().filter(|release| is_meant_for(request.software, release));
    let found = match &owner.release {
        Some(id) => matching.find(|release| release.id == *id),
        None => matching.find(has),
    };
    Some((project, found?))
}
