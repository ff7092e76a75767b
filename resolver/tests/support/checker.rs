//! Pure. Checks a lock against its request, by the rules of `docs/concepts/solve.md`. Shares no code with the solver.
//! For tests only.

use std::collections::BTreeSet;

use jiff::Timestamp;
use resolver::explanation::Warning;
use resolver::model::catalog::{Artifact, Catalog, ImageTag, Project, Release};
use resolver::model::lock::{Guess, Lock, LockReason, LockedFile, LockedPlugin};
use resolver::model::request::{PaperRequest, Request};

use super::rules::{Member, ServerRules, Terms, Unknown, is_running};
use super::{texts, unmanaged_jars};

/// All errors in a lock. An empty list means that the lock satisfies the request.
pub(crate) fn violations(catalog: &Catalog, request: &Request, now: Timestamp, lock: &Lock) -> Vec<String> {
    match ServerRules::new(catalog, request, now) {
        Ok(rules) => violations_with_rules(&rules, lock, None),
        Err(Unknown) => vec!["the answer is unknown, because the catalog lacks required data".to_owned()],
    }
}

/// Like [`violations`], for rules that are already applied. With `reported`, also checks the warnings of the answer.
pub(crate) fn violations_with_rules(rules: &ServerRules<'_>, lock: &Lock, reported: Option<&[Warning]>) -> Vec<String> {
    let request = rules.request;
    let mut found = Vec::new();
    let Some(paper) = check_paper(rules, request, lock, &mut found) else { return found };
    let mut installed: Vec<Option<&Release>> = vec![None; rules.members.len()];
    let mut names = BTreeSet::new();
    for plugin in &lock.plugins {
        for file in std::iter::once(&plugin.file).chain(&plugin.more) {
            if !names.insert(file.name.to_lowercase()) || !is_plain_file_name(&file.name) {
                found.push(format!("the file name {} is duplicate or invalid", file.name));
            }
        }
        let Some(at) = rules.members.iter().position(|member| is_of(plugin, member.project, request)) else {
            found.push(format!("{} is neither requested nor a possible dependency", plugin.name));
            continue;
        };
        let Some(release) = rules.members[at].usable.iter().copied().find(|release| release.id == plugin.release_id)
        else {
            found.push(format!("{} {} is not eligible", plugin.name, plugin.version));
            continue;
        };
        let stays = request.paper == PaperRequest::Latest && is_running(request, release);
        if rules.is_refused(at, release, paper) {
            found.push(format!("Paper {} does not load {} {}", lock.minecraft, plugin.name, plugin.version));
        }
        if !rules.is_listed(at, release, paper) && !stays {
            found.push(format!("{} {} is not listed for {}", plugin.name, plugin.version, lock.minecraft));
        }
        if !rules.members[at].objects.is_empty() && !rules.meets_pin(at, release) && !stays {
            found.push(format!("{} {} is not the pinned version", plugin.name, plugin.version));
        }
        let same = plugin.version == release.version
            && plugin.name == rules.members[at].project.name
            && plugin.key == rules.members[at].project.key
            && has_files(plugin, &rules.members[at].terms, release);
        if !same {
            found.push(format!("{} {} differs from its release in the catalog", plugin.name, plugin.version));
        }
        installed[at] = Some(release);
    }
    let inside = installed.iter().zip(&rules.members).filter_map(|(release, member)| member.terms.files((*release)?));
    let java = rules.java(paper, inside.flatten().filter_map(|file| file.java));
    if java != lock.java || rules.image(java) != lock.image {
        let image = rules.image(java);
        found.push(format!(
            "the lock has Java {} and image {:?}, but its version set needs Java {java} and image {image:?}",
            lock.java, lock.image
        ));
    }
    let is_locked_image =
        |tag: &&ImageTag| lock.image == Some(format!("{}:{}@{}", tag.repository, tag.tag, tag.digest));
    let tag = rules.catalog.images.iter().find(is_locked_image);
    let read = lock.image.as_deref().and_then(texts::java_in_tag);
    if read.map(|has| (has, tag.map(|tag| tag.pushed))) != lock.image_java.map(|read| (read.has, read.pushed)) {
        found.push(format!("{:?} does not match the tag of image {:?}", lock.image_java, lock.image));
    }
    check_needs(rules, lock, &installed, &mut found);
    check_guesses(rules, lock, &installed, &mut found);
    found.extend(reported.and_then(|reported| unmanaged_jars::warning_difference(rules, lock, reported)));
    found
}

/// Checks that the lock contains exactly the minimum versions that the rules guess from dates.
fn check_guesses(rules: &ServerRules<'_>, lock: &Lock, installed: &[Option<&Release>], found: &mut Vec<String>) {
    let mut guessed = Vec::new();
    for (release, member) in installed.iter().zip(&rules.members) {
        let Some(release) = release else { continue };
        let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        guessed.extend(member.requirements[index].iter().filter_map(|requirement| {
            let (from, to, least) =
                (&member.project.name, &rules.members[requirement.target].project.name, requirement.guessed?);
            Some((from, &release.version, release.published, to, &least.version, least.published))
        }));
    }
    guessed.sort();
    let locked = lock.guesses.iter().map(|guess| {
        let Guess { plugin, version, published, needs, at_least, at_least_published } = guess;
        (plugin, version, *published, needs, at_least, *at_least_published)
    });
    if !locked.eq(guessed.iter().copied()) {
        found.push(format!("the rules guess {guessed:?}, but the lock contains the guesses {:?}", lock.guesses));
    }
}

fn check_paper(rules: &ServerRules<'_>, request: &Request, lock: &Lock, found: &mut Vec<String>) -> Option<usize> {
    let at = rules.papers.iter().position(|paper| *paper.minecraft == lock.minecraft);
    let Some((at, build)) = at.and_then(|at| Some((at, rules.papers[at].build?))) else {
        found.push(format!("Paper {} is not eligible", lock.minecraft));
        return None;
    };
    if build.number != lock.build || !is_same_file(&lock.paper, &build.file) {
        found.push(format!(
            "the rules choose build {} of Paper {}, but the lock has build {} or another file",
            build.number, lock.minecraft, lock.build
        ));
    }
    let newest = rules.papers.iter().rposition(|paper| paper.build.is_some());
    let wanted = match &request.paper {
        PaperRequest::Auto => true,
        PaperRequest::Latest => newest == Some(at),
        PaperRequest::Pin { version } => *version == lock.minecraft,
        PaperRequest::BuildPin { version, build } => *version == lock.minecraft && *build == lock.build,
    };
    if !wanted {
        found.push(format!("the request is {:?}, but the lock has Paper {}", request.paper, lock.minecraft));
    }
    Some(at)
}

/// Checks that all requested plugins are installed, that each plugin has the right reason, and that all requirements
/// are met.
fn check_needs(rules: &ServerRules<'_>, lock: &Lock, installed: &[Option<&Release>], found: &mut Vec<String>) {
    let mut needed_by: Vec<Vec<String>> = rules.members.iter().map(|member| member.needed_by_files.clone()).collect();
    for (at, release) in installed.iter().enumerate() {
        let member = &rules.members[at];
        let Some(release) = release else {
            if member.is_required() && rules.request.paper != PaperRequest::Latest {
                let why = if member.objects.is_empty() { "needed by an unmanaged JAR" } else { "requested" };
                found.push(format!("{} is {why}, but the lock does not contain it", member.project.name));
            }
            continue;
        };
        let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        for requirement in &member.requirements[index] {
            let other = &rules.members[requirement.target].project.name;
            let met = match installed[requirement.target] {
                None => requirement.or_absent,
                Some(other_release) => requirement.one_of.contains(other_release.id.as_str()),
            };
            if !met {
                let fact =
                    requirement.fact.as_ref().map_or_else(String::new, |range| format!(" (a fact requires {range})"));
                let name = &member.project.name;
                found.push(format!("the requirement of {name} {} on {other} is not met{fact}", release.version));
            }
            if !requirement.or_absent && !needed_by[requirement.target].contains(&member.project.name) {
                needed_by[requirement.target].push(member.project.name.clone());
            }
        }
    }
    for plugin in &lock.plugins {
        let of_plugin = |member: &Member<'_>| is_of(plugin, member.project, rules.request);
        let Some(at) = rules.members.iter().position(of_plugin) else { continue };
        needed_by[at].sort();
        if !has_reason(plugin, &rules.members[at].objects, &needed_by[at]) {
            found.push(format!("the lock has a wrong reason for {}: {:?}", plugin.name, plugin.reason));
        }
    }
}

/// Whether a locked plugin is of this project, or its running release is of the project that its slug led to before.
fn is_of(plugin: &LockedPlugin, project: &Project, request: &Request) -> bool {
    let mut kept = request.running.iter().flat_map(|running| &running.delisted);
    let kept = kept.find(|kept| kept.project == project.key && kept.release.id == plugin.release_id);
    kept.and_then(|kept| kept.project_id.as_ref()).unwrap_or(&project.id) == &plugin.project_id
}

fn has_reason(plugin: &LockedPlugin, objects: &[&str], needed_by: &[String]) -> bool {
    match &plugin.reason {
        LockReason::RequestedBy(named) => !objects.is_empty() && named == objects,
        LockReason::NeededBy(named) => objects.is_empty() && !named.is_empty() && named == needed_by,
    }
}

/// Whether a locked plugin has exactly the files that its terms select, the main file first.
fn has_files(plugin: &LockedPlugin, terms: &Terms<'_>, release: &Release) -> bool {
    let locked: Vec<&LockedFile> = std::iter::once(&plugin.file).chain(&plugin.more).collect();
    let wanted = terms.files(release).unwrap_or_default();
    locked.len() == wanted.len() && locked.iter().zip(wanted).all(|(locked, wanted)| is_same_file(locked, wanted.file))
}

fn is_same_file(locked: &LockedFile, file: &Artifact) -> bool {
    let hash = file.hash.as_ref().map(|hash| hash.to_lowercase());
    locked.url == file.url && locked.size == file.size && Some(&locked.hash) == hash.as_ref()
}

fn is_plain_file_name(name: &str) -> bool {
    name.strip_suffix(".jar").is_some()
        && !name.starts_with('.')
        && !name.contains(['/', '\\', ':', ' '])
        && name.len() < 200
}
