//! Pure. Checks a lock against its request, by the rules of `docs/concepts/solve.md`. Shares no code with the solver.
//! For tests only.

use std::collections::BTreeSet;

use jiff::Timestamp;
use resolver::catalog::{Artifact, Catalog, ImageTag, Release};
use resolver::explain::Warning;
use resolver::lock::{Guess, Lock, LockReason, LockedFile, LockedPlugin};
use resolver::request::{PaperRequest, Request};

use super::own_jars;
use super::rules::{Book, Terms, Unknown, runs};
use super::texts;

/// All errors in a lock. Empty means that it satisfies the request.
pub(crate) fn complaints(catalog: &Catalog, request: &Request, now: Timestamp, lock: &Lock) -> Vec<String> {
    match Book::open(catalog, request, now) {
        Ok(book) => complaints_by(&book, lock, None),
        Err(Unknown) => vec!["nobody can know yet: something is not read".to_owned()],
    }
}

/// The same with given rules. With `told`, the warnings of the answer are checked too.
pub(crate) fn complaints_by(book: &Book<'_>, lock: &Lock, told: Option<&[Warning]>) -> Vec<String> {
    let request = book.request;
    let mut found = Vec::new();
    let Some(paper) = paper(book, request, lock, &mut found) else { return found };
    let mut installed: Vec<Option<&Release>> = vec![None; book.members.len()];
    let mut names = BTreeSet::new();
    for plugin in &lock.plugins {
        for file in std::iter::once(&plugin.file).chain(&plugin.more) {
            if !names.insert(file.name.to_lowercase()) || !is_one_file_name(&file.name) {
                found.push(format!("{} is no file name of its own", file.name));
            }
        }
        let Some(at) = book.members.iter().position(|member| member.project.id == plugin.project_id) else {
            found.push(format!("nobody asks for {} nor needs it", plugin.name));
            continue;
        };
        let Some(release) = book.members[at].usable.iter().copied().find(|release| release.id == plugin.release_id)
        else {
            found.push(format!("{} {} may not be used", plugin.name, plugin.version));
            continue;
        };
        let stays = request.paper == PaperRequest::Latest && runs(request, release);
        if book.refused(at, release, paper) {
            found.push(format!("{} refuses {} {}", lock.minecraft, plugin.name, plugin.version));
        }
        if !book.listed(at, release, paper) && !stays {
            found.push(format!("{} {} is not listed for {}", plugin.name, plugin.version, lock.minecraft));
        }
        if !book.members[at].objects.is_empty() && !book.meets_pin(at, release) && !stays {
            found.push(format!("{} {} is not the pinned one", plugin.name, plugin.version));
        }
        let same = plugin.version == release.version
            && plugin.name == book.members[at].project.name
            && plugin.key == book.members[at].project.key
            && has_files(plugin, &book.members[at].terms, release);
        if !same {
            found.push(format!("{} {} is not as the catalog has it", plugin.name, plugin.version));
        }
        installed[at] = Some(release);
    }
    let inside = installed.iter().zip(&book.members).filter_map(|(release, member)| member.terms.files((*release)?));
    let java = book.java(paper, inside.flatten().filter_map(|file| file.java));
    if java != lock.java || book.image(java) != lock.image {
        found.push(format!("Java {} and image {:?} are not those of what runs", lock.java, lock.image));
    }
    let is_it = |tag: &&ImageTag| lock.image == Some(format!("{}:{}@{}", tag.repository, tag.tag, tag.digest));
    let tag = book.catalog.images.iter().find(is_it);
    let read = lock.image.as_deref().and_then(texts::java_said);
    if read.map(|has| (has, tag.map(|tag| tag.pushed))) != lock.image_java.map(|read| (read.has, read.pushed)) {
        found.push(format!("{:?} was not read in {:?}", lock.image_java, lock.image));
    }
    together(book, lock, &installed, &mut found);
    guesses(book, lock, &installed, &mut found);
    found.extend(told.and_then(|told| own_jars::untold(book, lock, told)));
    found
}

/// Checks that the lock contains exactly the guesses.
fn guesses(book: &Book<'_>, lock: &Lock, installed: &[Option<&Release>], found: &mut Vec<String>) {
    let mut guessed = Vec::new();
    for (release, member) in installed.iter().zip(&book.members) {
        let Some(release) = release else { continue };
        let place = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        guessed.extend(member.asks[place].iter().filter_map(|ask| {
            let (from, to, least) = (&member.project.name, &book.members[ask.of].project.name, ask.guessed?);
            Some((from, &release.version, release.published, to, &least.version, least.published))
        }));
    }
    guessed.sort();
    let locked = lock.guesses.iter().map(|guess| {
        let Guess { plugin, version, published, needs, at_least, at_least_published } = guess;
        (plugin, version, *published, needs, at_least, *at_least_published)
    });
    if !locked.eq(guessed.iter().copied()) {
        found.push(format!("{guessed:?} is guessed, not {:?}", lock.guesses));
    }
}

fn paper(book: &Book<'_>, request: &Request, lock: &Lock, found: &mut Vec<String>) -> Option<usize> {
    let at = book.papers.iter().position(|paper| *paper.minecraft == lock.minecraft);
    let Some((at, build)) = at.and_then(|at| Some((at, book.papers[at].build?))) else {
        found.push(format!("Paper {} may not be used", lock.minecraft));
        return None;
    };
    if build.number != lock.build || !is_of(&lock.paper, &build.file) {
        found.push(format!("Paper {} is used in build {}, not {}", lock.minecraft, build.number, lock.build));
    }
    let newest = book.papers.iter().rposition(|paper| paper.build.is_some());
    let wanted = match &request.paper {
        PaperRequest::Auto => true,
        PaperRequest::Latest => newest == Some(at),
        PaperRequest::Pin { version } => *version == lock.minecraft,
        PaperRequest::BuildPin { version, build } => *version == lock.minecraft && *build == lock.build,
    };
    if !wanted {
        found.push(format!("{:?} is asked for, not Paper {}", request.paper, lock.minecraft));
    }
    Some(at)
}

/// Checks that all requested plugins are installed, that each plugin has a reason, and that all needs are met.
fn together(book: &Book<'_>, lock: &Lock, installed: &[Option<&Release>], found: &mut Vec<String>) {
    let mut needed_by: Vec<Vec<String>> = book.members.iter().map(|member| member.kept_for.clone()).collect();
    for (at, release) in installed.iter().enumerate() {
        let member = &book.members[at];
        let Some(release) = release else {
            if member.must() && book.request.paper != PaperRequest::Latest {
                let why = if member.objects.is_empty() { "needed by a JAR of one's own" } else { "asked for" };
                found.push(format!("{} is {why} and not there", member.project.name));
            }
            continue;
        };
        let place = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        for ask in &member.asks[place] {
            let other = &book.members[ask.of].project.name;
            let met = match installed[ask.of] {
                None => ask.or_absent,
                Some(there) => ask.one_of.contains(there.id.as_str()),
            };
            if !met {
                let fact =
                    ask.fact.as_ref().map_or_else(String::new, |range| format!(", which a fact wants in {range}"));
                let name = &member.project.name;
                found.push(format!("{name} {} does not go with {other} as it is{fact}", release.version));
            }
            if !ask.or_absent && !needed_by[ask.of].contains(&member.project.name) {
                needed_by[ask.of].push(member.project.name.clone());
            }
        }
    }
    for plugin in &lock.plugins {
        let Some(at) = book.members.iter().position(|member| member.project.id == plugin.project_id) else { continue };
        needed_by[at].sort();
        if !reason_is(plugin, &book.members[at].objects, &needed_by[at]) {
            found.push(format!("{} is there for {:?}, which is not so", plugin.name, plugin.reason));
        }
    }
}

fn reason_is(plugin: &LockedPlugin, objects: &[&str], needed_by: &[String]) -> bool {
    match &plugin.reason {
        LockReason::RequestedBy(named) => !objects.is_empty() && named == objects,
        LockReason::NeededBy(named) => objects.is_empty() && !named.is_empty() && named == needed_by,
    }
}

/// Whether a locked plugin has exactly the installed files, the main one first.
fn has_files(plugin: &LockedPlugin, terms: &Terms<'_>, release: &Release) -> bool {
    let locked: Vec<&LockedFile> = std::iter::once(&plugin.file).chain(&plugin.more).collect();
    let wanted = terms.files(release).unwrap_or_default();
    locked.len() == wanted.len() && locked.iter().zip(wanted).all(|(locked, wanted)| is_of(locked, wanted.file))
}

fn is_of(locked: &LockedFile, file: &Artifact) -> bool {
    let hash = file.hash.as_ref().map(|hash| hash.to_lowercase());
    locked.url == file.url && locked.size == file.size && Some(&locked.hash) == hash.as_ref()
}

fn is_one_file_name(name: &str) -> bool {
    name.strip_suffix(".jar").is_some()
        && !name.starts_with('.')
        && !name.contains(['/', '\\', ':', ' '])
        && name.len() < 200
}
