//! What JARs of people's own do to a new Minecraft, said a second time and without the solver's code.

use std::collections::BTreeMap;

use jiff::Timestamp;
use resolver::catalog::{Catalog, Channel, Project, Release};
use resolver::request::Request;
use resolver::software::Software;
use resolver::unmanaged::{UnmanagedJar, UnmanagedPlugins};
use resolver::version::Minecraft;

use super::called::plain;
use super::loading::{has_list, is_meant_for};
use super::membership::Asked;
use super::needs::Needs;
use super::papers::starts_on;
use super::rules::{Book, Terms, Unknown, place_of};
use super::texts;

/// Which JARs need what nobody asks for, by the place of that.
pub(super) type Kept = BTreeMap<usize, Vec<String>>;

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

/// What runs, and nobody asks for, and a JAR does not load without; with the files. `Err`: such a project is not read.
pub(super) fn kept(needs: &Needs<'_>, asked: &Asked<'_>) -> Result<Kept, Unknown> {
    let request = needs.request;
    let minded = request.unmanaged_plugins != UnmanagedPlugins::Ignore && request.software != Software::Velocity;
    let has = |jar: &UnmanagedJar, name: &str| jar.name.iter().chain(&jar.provides).any(|own| plain(own) == name);
    let mut lacks: Vec<(String, &String)> = Vec::new();
    for jar in request.unmanaged.iter().filter(|_| minded) {
        for name in jar.depend.iter().map(|name| plain(name)) {
            let brought = || asked.iter().any(|(at, (_, terms))| needs.names_of(*at, terms).contains(&name));
            if !request.unmanaged.iter().any(|other| has(other, &name)) && !brought() {
                lacks.push((name, &jar.file));
            }
        }
    }
    let mut kept = Kept::new();
    let unasked = request.running.iter().flat_map(|running| &running.unasked).filter(|_| !lacks.is_empty());
    for key in unasked {
        let at = place_of(needs.catalog, key).ok_or(Unknown)?;
        let names = needs.names_of(at, &terms_of_kept(request));
        let mut files: Vec<String> =
            lacks.iter().filter(|(name, _)| names.contains(name)).map(|(_, file)| (*file).clone()).collect();
        files.sort();
        files.dedup();
        if !files.is_empty() && !asked.contains_key(&at) {
            kept.insert(at, files);
        }
    }
    Ok(kept)
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
