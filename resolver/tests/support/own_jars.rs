//! Pure. Decides how unmanaged JARs restrict a newer Minecraft: a second implementation without the solver's code.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use resolver::catalog::{Catalog, Channel, Dependency, DependencyKind, Project, ProjectKey, Release};
use resolver::explain::Warning;
use resolver::lock::Lock;
use resolver::request::Request;
use resolver::software::Software;
use resolver::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use resolver::version::Minecraft;

use super::called::plain;
use super::known_files::{KnownFile, known_files, same_elsewhere};
use super::loading::{has_list, is_meant_for};
use super::membership::Asked;
use super::needs::{Leads, Needs, is_called};
use super::papers::starts_on;
use super::rules::{Book, Member, Terms, Unknown, place_of};
use super::texts;

/// The JARs that need an unrequested plugin, by its place.
pub(super) type Kept = BTreeMap<usize, Vec<String>>;

/// The Java that the unmanaged JARs need, limited to versions that the server can have.
pub(crate) fn java(catalog: &Catalog, request: &Request, now: Timestamp) -> Option<u32> {
    let javas = request.unmanaged.iter().filter_map(|jar| jar.java);
    javas.filter(|java| count(request) && starts_on(catalog, request, now, *java)).max()
}

/// Whether unmanaged JARs count: they are for Minecraft servers, and known only after a start.
fn count(request: &Request) -> bool {
    let runs = request.running.is_some() || request.floor.is_some();
    runs && request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity
}

/// Whether the JARs allow the server to change its Minecraft version to this Paper.
pub(crate) fn fit(book: &Book<'_>, paper: usize, now: Timestamp) -> bool {
    let request = book.request;
    let minecraft = book.papers[paper].minecraft;
    let before = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let stays = before.is_none() || before == Some(minecraft);
    let vouched = |jar: &UnmanagedJar| jar.trusted.iter().any(|pattern| texts::pattern_means(pattern, minecraft));
    let published = |jar: &UnmanagedJar| {
        release_of(book.catalog, request, jar).is_some_and(|(project, release)| {
            has_list(request.software, project.key.source, release)
                && (request.software == Software::Velocity || is_loaded_by(release, minecraft))
                && book.names(&release.minecraft, paper)
        })
    };
    let loads = |jar: &UnmanagedJar| {
        let new_enough = jar.api_version.as_ref().is_none_or(|needs| is_old_enough(needs, minecraft));
        new_enough && jar.java.is_none_or(|java| starts_on(book.catalog, request, now, java))
    };
    let held = request.unmanaged_plugins == UnmanagedPlugins::Hold;
    let goes = |jar: &UnmanagedJar| (!count(request) || loads(jar)) && (!held || vouched(jar) || published(jar));
    stays || request.unmanaged.iter().all(goes)
}

/// Default terms of a plugin that stays for a JAR: the longest delay and the stable channel.
pub(super) fn terms_of_kept<'a>(request: &Request) -> Terms<'a> {
    Terms {
        software: request.software,
        channel: Channel::Release,
        delay: request.plugins.iter().map(|wish| wish.delay).chain([request.delay]).max().unwrap(),
        says: None,
        pin: None,
        jars: vec![&[]],
        requires: &[],
        may_go_down: false,
        held: false,
        together: Vec::new(),
    }
}

/// A need of a JAR, from its descriptor or from the page of its release.
pub(super) struct Want<'a> {
    file: &'a str,
    /// The accepted names.
    names: BTreeSet<String>,
    /// The project that a page names.
    place: Option<usize>,
}

impl Want<'_> {
    /// Whether a plugin on these terms meets the need.
    fn is_met_by(&self, needs: &Needs<'_>, at: usize, terms: &Terms<'_>) -> bool {
        let project = |at: usize| &needs.catalog.projects[at];
        let is_it = |place| place == at || same_elsewhere(project(place), &project(at).key, &project(at).name);
        self.place.is_some_and(is_it) || !needs.names_of(at, terms).is_disjoint(&self.names)
    }
}

/// All needs that neither another JAR nor a requested plugin meets. `Err` if a project is not read.
pub(super) fn wants<'a>(needs: &Needs<'a>, asked: &Asked<'_>) -> Result<Vec<Want<'a>>, Unknown> {
    let request = needs.request;
    let mut wants: Vec<Want<'a>> = Vec::new();
    if request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity {
        for jar in &request.unmanaged {
            let names = jar.depend.iter().map(|name| BTreeSet::from([plain(name)]));
            wants.extend(names.map(|names| Want { file: &jar.file, names, place: None }));
        }
    }
    let known = known_files(needs.catalog, request, &asked.keys().copied().collect());
    for file in &known {
        for line in file.release.dependencies.iter().filter(|line| line.kind == DependencyKind::Required) {
            wants.extend(by_line(needs, file, line)?);
        }
    }
    wants.retain(|want| {
        let has = |jar: &UnmanagedJar| jar.name.iter().chain(&jar.provides).any(|own| want.names.contains(&plain(own)));
        let is_own = want.place.is_some_and(|at| {
            let owned = |jar: &UnmanagedJar| needs.catalog.owners.get(jar.sha256.as_ref()?);
            let mut owners = request.unmanaged.iter().filter_map(owned);
            known.iter().any(|file| file.is_of(needs.catalog, at))
                || owners.any(|owner| place_of(needs.catalog, &owner.project) == Some(at))
        });
        let is_asked_for = asked.iter().any(|(at, (_, terms))| want.is_met_by(needs, *at, terms));
        !request.unmanaged.iter().any(has) && !is_own && !is_asked_for
    });
    Ok(wants)
}

/// The requirement in a line of a file's page, as far as it is known.
fn by_line<'a>(needs: &Needs<'a>, file: &KnownFile<'a>, line: &Dependency) -> Result<Option<Want<'a>>, Unknown> {
    let want = |names, place| Some(Want { file: &file.jar.file, names, place });
    match needs.line(file.place, line) {
        Leads::To(at) => Ok(want(needs.names_of(at, &terms_of_kept(needs.request)), Some(at))),
        Leads::Unknown => Err(Unknown),
        Leads::Unread => {
            let name = line.name.as_ref().or(line.project_id.as_ref()).or(line.version_id.as_ref());
            Ok(name.and_then(|name| want(BTreeSet::from([plain(name)]), None)))
        }
        Leads::Nowhere if line.project_id.is_none() => {
            let source = file.project.key.source;
            let of_source = needs.catalog.projects.iter().filter(|project| project.key.source == source);
            let is_read = |name: &str| of_source.clone().any(|project| is_called(project, name));
            let name = line.name.as_deref().filter(|name| !is_read(name));
            Ok(name.and_then(|name| want(BTreeSet::from([plain(name)]), None)))
        }
        Leads::Nobody | Leads::File | Leads::Nowhere => Ok(None),
    }
}

fn unasked(request: &Request) -> &[ProjectKey] {
    request.running.as_ref().map_or(&[], |running| &running.unasked)
}

/// Running, unrequested plugins that a JAR needs, with those files. `Err` if such a project is not read.
pub(super) fn kept(needs: &Needs<'_>, asked: &Asked<'_>, wants: &[Want<'_>]) -> Result<Kept, Unknown> {
    let mut kept = Kept::new();
    if wants.is_empty() {
        return Ok(kept);
    }
    let (mut unread, mut met) = (false, BTreeSet::new());
    for key in unasked(needs.request) {
        let Some(at) = place_of(needs.catalog, key) else {
            needs.catalog.unread_because(key).ok_or(Unknown)?;
            unread = true;
            continue;
        };
        let will_do = |want: &Want<'_>| want.is_met_by(needs, at, &terms_of_kept(needs.request));
        let of_it: Vec<usize> = (0..wants.len()).filter(|want| will_do(&wants[*want])).collect();
        if !of_it.is_empty() && !asked.contains_key(&at) {
            let files: BTreeSet<&str> = of_it.iter().map(|want| wants[*want].file).collect();
            kept.insert(at, files.into_iter().map(str::to_owned).collect());
        }
        met.extend(of_it);
    }
    // A need that is known only by name may be for an unread project.
    let is_open = |want: &usize| wants[*want].place.is_none() && !met.contains(want);
    if unread && (0..wants.len()).any(|want| is_open(&want)) { Err(Unknown) } else { Ok(kept) }
}

/// A requirement of a file's page with a known project, and the members that meet it. Requested members always do.
pub(crate) struct ByPage<'a> {
    pub(crate) file: &'a str,
    pub(crate) project: &'a Project,
    pub(crate) met_by: Vec<usize>,
}

/// All requirements with a known project.
pub(super) fn by_pages<'a>(needs: &Needs<'a>, wants: Vec<Want<'a>>, members: &[Member<'_>]) -> Vec<ByPage<'a>> {
    let known = wants.into_iter().filter_map(|want| Some((want.place?, want)));
    let by_page = |(place, want): (usize, Want<'a>)| {
        let met = members.iter().enumerate().filter(|(_, member)| want.is_met_by(needs, member.place, &member.terms));
        ByPage { file: want.file, project: &needs.catalog.projects[place], met_by: met.map(|(at, _)| at).collect() }
    };
    known.map(by_page).collect()
}

/// The difference between the warnings of an answer and the actual unmet needs of files, if there is one: the file and
/// the project.
pub(crate) fn untold(book: &Book<'_>, lock: &Lock, told: &[Warning]) -> Option<String> {
    let there = |at: &usize| lock.plugins.iter().any(|plugin| plugin.project_id == book.members[*at].project.id);
    let lacking = book.by_pages.iter().filter(|want| !want.met_by.iter().any(there));
    let lacking: BTreeSet<(&str, &ProjectKey)> = lacking.map(|want| (want.file, &want.project.key)).collect();
    let told = told.iter().filter_map(|warning| {
        let Warning::FileLacks { file, project, plugin: _ } = warning else { return None };
        Some((file.as_str(), project))
    });
    let told: Vec<(&str, &ProjectKey)> = told.collect();
    let just = told.len() == lacking.len() && told.iter().all(|lack| lacking.contains(lack));
    (!just).then(|| format!("files lack {lacking:?}, and {told:?} is said"))
}

fn is_old_enough(needs: &Minecraft, minecraft: &Minecraft) -> bool {
    texts::minecraft_age(needs) <= texts::minecraft_age(minecraft)
}

/// Whether a server of this Minecraft is new enough for the release.
fn is_loaded_by(release: &Release, minecraft: &Minecraft) -> bool {
    release.api_version.as_ref().is_none_or(|needs| is_old_enough(needs, minecraft))
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
    let mut ours = project.releases.iter().filter(|release| is_meant_for(request.software, release));
    let found = match &owner.release {
        Some(id) => ours.find(|release| release.id == *id),
        None => ours.find(has),
    };
    Some((project, found?))
}
