//! What JARs of people's own do to a new Minecraft, said a second time and without the solver's code.

use resolver::catalog::{Release, Source};
use resolver::software::Software;
use resolver::unmanaged::{UnmanagedJar, UnmanagedPlugins};
use resolver::version::Minecraft;

use super::loading::{has_list, is_meant_for};
use super::rules::Book;
use super::texts;

/// Whether they let the server leave its Minecraft for this Paper.
pub(crate) fn fit(book: &Book<'_>, paper: usize) -> bool {
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
    stays
        || request.unmanaged_plugins != UnmanagedPlugins::Hold
        || request.unmanaged.iter().all(|jar| vouched(jar) || published(jar))
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
