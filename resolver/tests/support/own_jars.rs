//! What JARs of people's own do to a new Minecraft, said a second time and without the solver's code.

use jiff::Timestamp;
use resolver::catalog::{Catalog, Release, Source};
use resolver::request::Request;
use resolver::software::Software;
use resolver::unmanaged::{UnmanagedJar, UnmanagedPlugins};
use resolver::version::Minecraft;

use super::loading::{has_list, is_meant_for};
use super::papers::starts_on;
use super::rules::Book;
use super::texts;

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
        release_of(book, jar).is_some_and(|(source, release)| {
            has_list(request.software, source, release)
                && (request.software == Software::Velocity || is_loaded_by(release, minecraft))
                && book.names(&release.minecraft, paper)
        })
    };
    let loads = |jar: &UnmanagedJar| {
        let new_enough = jar.api_version.as_ref().is_none_or(|needs| needs <= minecraft);
        new_enough && jar.java.is_none_or(|java| starts_on(book.catalog, request, now, java))
    };
    let held = request.unmanaged_plugins == UnmanagedPlugins::Hold;
    let goes = |jar: &UnmanagedJar| (!count(request) || loads(jar)) && (!held || vouched(jar) || published(jar));
    stays || request.unmanaged.iter().all(goes)
}

/// Whether a server of this Minecraft is new enough for it.
fn is_loaded_by(release: &Release, minecraft: &Minecraft) -> bool {
    release.api_version.as_ref().is_none_or(|needs| needs <= minecraft)
}

/// The release that a file is, where a site has said whose it is, and which site.
fn release_of<'b>(book: &'b Book<'_>, jar: &UnmanagedJar) -> Option<(Source, &'b Release)> {
    let sha256 = jar.sha256.as_ref()?;
    let owner = book.catalog.owners.get(sha256)?;
    let project = book.catalog.project(&owner.project)?;
    let hash = format!("sha256:{sha256}");
    let has = |release: &&Release| {
        let main = release.file.iter();
        let mut files = main.chain(release.further.iter().map(|jar| &jar.file));
        files.any(|file| file.hash.as_deref() == Some(&hash))
    };
    let mut ours = project.releases.iter().filter(|release| is_meant_for(book.request.software, release));
    let found = match &owner.release {
        Some(id) => ours.find(|release| release.id == *id),
        None => ours.find(has),
    };
    Some((owner.project.source, found?))
}
