//! What JARs of people's own do to a new Minecraft, said a second time and without the solver's code.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use resolver::catalog::{Catalog, Channel, DependencyKind, Project, ProjectKey, Release};
use resolver::request::{Dependencies, Request};
use resolver::software::Software;
use resolver::unmanaged::{UnmanagedJar, UnmanagedPlugins};
use resolver::version::Minecraft;

use super::called::plain;
use super::known_files::{KnownFile, known_files};
use super::loading::{has_list, is_meant_for};
use super::membership::Asked;
use super::needs::{Leads, Needs};
use super::papers::starts_on;
use super::rules::{Book, Terms, Unknown, place_of, runs};
use super::texts;

/// What JARs need and nobody asks for, by the place of that.
pub(super) type Kept = BTreeMap<usize, Wanted>;

/// Who needs it, and whether it runs.
#[derive(Clone, Default)]
pub(super) struct Wanted {
    files: BTreeSet<String>,
    runs: bool,
}

impl Wanted {
    fn by(&mut self, file: String, runs: bool) {
        self.files.insert(file);
        self.runs |= runs;
    }

    /// By name.
    pub(super) fn files(&self) -> Vec<String> {
        self.files.iter().cloned().collect()
    }

    /// Whether it only comes where it is in nobody's way.
    pub(super) fn is_brought(&self) -> bool {
        !self.runs
    }
}

/// The Java that those need that count: each that the server can have at all.
pub(crate) fn java(catalog: &Catalog, request: &Request, now: Timestamp) -> Option<u32> {
    let javas = request.unmanaged.iter().filter_map(|jar| jar.java);
    javas.filter(|java| count(request) && starts_on(catalog, request, now, *java)).max()
}

/// Whether anybody minds them: what they are is for servers of Minecraft, and known since something has run.
fn count(request: &Request) -> bool {
    let runs = request.running.is_some() || request.floor.is_some();
    runs && request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity
}

/// Whether they let the server leave its Minecraft for this Paper.
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

/// Nobody has said anything about what stays for a JAR: nothing young, nothing unstable.
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

/// What nobody asks for and files need: what runs and a JAR does not load without, and what pages require of those whose release
/// is known. `Err`: such a project is not read.
pub(super) fn kept(needs: &Needs<'_>, asked: &Asked<'_>) -> Result<Kept, Unknown> {
    let request = needs.request;
    let minded = request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity;
    let mut lacks: Vec<(String, &String)> = Vec::new();
    for jar in request.unmanaged.iter().filter(|_| minded) {
        for name in jar.depend.iter().map(|name| plain(name)) {
            if !is_there(needs, asked, &BTreeSet::from([name.clone()])) {
                lacks.push((name, &jar.file));
            }
        }
    }
    let mut kept = Kept::new();
    let mut met = BTreeSet::new();
    for key in unasked(request).iter().filter(|_| !lacks.is_empty()) {
        let at = place_of(needs.catalog, key).ok_or(Unknown)?;
        let names = needs.names_of(at, &terms_of_kept(request));
        for (name, file) in lacks.iter().filter(|(name, _)| names.contains(name) && !asked.contains_key(&at)) {
            kept.entry(at).or_default().by((*file).clone(), true);
            met.insert(name.clone());
        }
    }
    lacks.retain(|(name, _)| !met.contains(name));
    let there = asked.keys().copied().collect();
    for file in known_files(needs.catalog, request, &there) {
        let lacks: BTreeSet<String> =
            lacks.iter().filter(|(_, of)| **of == file.jar.file).map(|(name, _)| name.clone()).collect();
        by_page(needs, asked, (&file, &lacks), &mut kept)?;
    }
    Ok(kept)
}

/// What one page adds: what it requires, and what it has as optional that bears a name which the JAR `lacks`.
fn by_page<'a>(
    needs: &Needs<'a>,
    asked: &Asked<'_>,
    (file, lacks): (&KnownFile<'a>, &BTreeSet<String>),
    kept: &mut Kept,
) -> Result<(), Unknown> {
    let request = needs.request;
    for line in &file.release.dependencies {
        let required = line.kind == DependencyKind::Required;
        if !required && line.kind != DependencyKind::Optional {
            continue;
        }
        match needs.line(file.place, line) {
            Leads::To(at) => {
                let names = needs.names_of(at, &terms_of_kept(request));
                if !required && names.is_disjoint(lacks) {
                    continue;
                }
                let project = &needs.catalog.projects[at];
                let known = unasked(request).iter().any(|key| place_of(needs.catalog, key) == Some(at));
                let is_on = known || project.releases.iter().any(|release| runs(request, release));
                let may_come = request.dependencies == Dependencies::Install
                    && request.unmanaged.iter().all(|jar| jar.name.is_some());
                if !asked.contains_key(&at) && !is_there(needs, asked, &names) && (is_on || may_come) {
                    kept.entry(at).or_default().by(file.jar.file.clone(), is_on);
                }
            }
            Leads::Unknown if required || !lacks.is_empty() => return Err(Unknown),
            // It may be one of those that run.
            Leads::Unread if required && unasked(request).iter().any(|key| place_of(needs.catalog, key).is_none()) => {
                return Err(Unknown);
            }
            Leads::Unknown | Leads::Unread | Leads::Nobody | Leads::File | Leads::Nowhere => {}
        }
    }
    Ok(())
}

fn unasked(request: &Request) -> &[ProjectKey] {
    request.running.as_ref().map_or(&[], |running| &running.unasked)
}

/// Whether a file, or what is asked for, has one of these names.
fn is_there(needs: &Needs<'_>, asked: &Asked<'_>, names: &BTreeSet<String>) -> bool {
    let has = |jar: &UnmanagedJar| jar.name.iter().chain(&jar.provides).any(|own| names.contains(&plain(own)));
    let brings = |(at, (_, terms)): (&usize, &(_, Terms<'_>))| !needs.names_of(*at, terms).is_disjoint(names);
    needs.request.unmanaged.iter().any(has) || asked.iter().any(brings)
}

fn is_old_enough(needs: &Minecraft, minecraft: &Minecraft) -> bool {
    texts::minecraft_age(needs) <= texts::minecraft_age(minecraft)
}

/// Whether a server of this Minecraft is new enough for it.
fn is_loaded_by(release: &Release, minecraft: &Minecraft) -> bool {
    release.api_version.as_ref().is_none_or(|needs| is_old_enough(needs, minecraft))
}

/// The release that a file is, with its project, where a site has said whose it is.
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
