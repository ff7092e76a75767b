//! Pure. Tests that plugins that are reported as ready for a Paper really are, all at once.

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{BuildChannel, Catalog, ImageTag, PaperVersion, Project};
use resolver::request::{PaperRequest, VersionRequest};
use resolver::software::Software;
use resolver::unmanaged_jar::UnmanagedPlugins;
use resolver::version::Minecraft;

use super::inside;
use super::problem::Problem;
use super::properties::{forced, is_no, is_yes, objects_of};
use super::rules::place_of;
use super::{software, texts};

/// The versions that a server chooses from.
pub(crate) fn versions(catalog: &mut Catalog, software: Software) -> &mut Vec<PaperVersion> {
    match software {
        Software::Paper => &mut catalog.paper,
        Software::Purpur | Software::Folia | Software::Velocity => {
            &mut catalog.others.get_mut(&software).unwrap().versions
        }
    }
}

/// The problem without all restrictions of this Paper itself, so that only plugins can exclude it.
pub(crate) fn made_usable(problem: &Problem, minecraft: &Minecraft) -> Problem {
    let mut usable = problem.clone();
    let (request, catalog) = (&mut usable.request, &mut usable.catalog);
    request.paper = PaperRequest::Pin { version: minecraft.clone() };
    request.floor = None;
    request.delay = SignedDuration::ZERO;
    request.channel = BuildChannel::Alpha;
    if request.unmanaged_plugins == UnmanagedPlugins::Hold {
        request.unmanaged_plugins = UnmanagedPlugins::Warn;
    }
    for jar in &mut request.unmanaged {
        (jar.java, jar.api_version) = (None, None);
    }
    // A bundled image has no known Java, and neither has this one.
    if let Some(image) = request.image.as_mut().filter(|image| texts::java_in(image).is_none()) {
        "mine:5".clone_into(image);
    }
    // Plugins keep their Java requirement, and the Paper itself starts on any Java.
    if let Some(any) = catalog.images.first().cloned() {
        catalog.images.push(ImageTag { tag: "2026.1.0-java1".to_owned(), pushed: Timestamp::UNIX_EPOCH, ..any });
    }
    for version in versions(catalog, request.software).iter_mut().filter(|version| version.minecraft == *minecraft) {
        version.java = Some(1);
        for build in &mut version.builds {
            build.file.hash = Some(software::sha256());
        }
    }
    usable
}

/// Whether a version set on a Paper exists that contains all of these plugins, with or without the pins of the others.
/// Any subset of the others is allowed, because pages and facts decide on the dependencies and their terms.
pub(crate) fn are_ready(problem: &Problem, minecraft: &Minecraft, names: &[&str]) -> bool {
    let own: Vec<String> = names.iter().flat_map(|name| objects_of(problem, name)).collect();
    let mut others: Vec<Vec<String>> =
        problem.catalog.projects.iter().map(|of| objects_of(problem, &of.name)).collect();
    others.retain(|objects| objects.first().is_some_and(|object| !own.contains(object)));
    others.sort();
    others.dedup();
    // A fact may name a plugin of another site, which is known by that name only while it is requested. Without it the
    // answer is unknown, and with it that plugin may be the one that is not ready.
    let request = &problem.request;
    let has_facts = !request.facts.all().is_empty() || request.plugins.iter().any(|wish| !wish.requires.is_empty());
    let goes = |problem: &Problem| if has_facts { !is_no(problem) } else { is_yes(problem) };
    let all = 1_usize << others.len();
    // A plugin whose JARs are unread may be the one that a JAR needs. If some of them were left out, it would be known
    // to be missing.
    let is_read = |project: &Project| project.releases.iter().any(|release| release.declared.is_some());
    let mut problem = problem.clone();
    // A file of a requested plugin is only a second file of it, also where that plugin is left out here.
    let asked: Vec<Option<usize>> = request.plugins.iter().map(|wish| place_of(&problem.catalog, &wish.key)).collect();
    for jar in &mut problem.request.unmanaged {
        let owner = jar.sha256.as_ref().and_then(|sha256| problem.catalog.owners.get(sha256));
        let place = owner.and_then(|owner| place_of(&problem.catalog, &owner.project));
        if place.is_some() && asked.contains(&place) {
            problem.catalog.owners.remove(jar.sha256.as_ref().unwrap());
            jar.trusted.push("*".to_owned());
        }
    }
    if problem.catalog.projects.iter().any(|project| !is_read(project)) {
        inside::forget_needs(&mut problem.catalog);
    }
    let problem = &problem;
    // Alone, then with all of them, because one of the two usually decides.
    [0, all - 1].into_iter().chain(1..all - 1).any(|with| {
        let taken: Vec<&String> =
            (0..others.len()).filter(|at| with >> at & 1 == 1).flat_map(|at| &others[at]).collect();
        let forced = forced(problem, minecraft, &|wish| own.contains(&wish.object) || taken.contains(&&wish.object));
        let mut free = forced.clone();
        for wish in free.request.plugins.iter_mut().filter(|wish| !own.contains(&wish.object)) {
            wish.version = VersionRequest::Auto;
        }
        // A pin may allow a release that is too young.
        goes(&forced) || free != forced && goes(&free)
    })
}
