//! Pure. Checks that all plugins that are reported as ready for a Paper can be installed on it together.

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{BuildChannel, Catalog, ImageTag, PaperVersion, Project};
use resolver::model::request::{PaperRequest, VersionRequest};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use resolver::model::version::Minecraft;

use super::problem::Problem;
use super::properties::{force_paper, is_solvable, is_unsolvable, objects_of};
use super::rules::project_index;
use super::{jar_contents, software, texts};

/// The versions that a server chooses from.
pub(crate) fn versions_mut(catalog: &mut Catalog, software: Software) -> &mut Vec<PaperVersion> {
    match software {
        Software::Paper => &mut catalog.paper,
        Software::Purpur | Software::Folia | Software::Velocity => {
            &mut catalog.others.get_mut(&software).unwrap().versions
        }
    }
}

/// The problem without all restrictions of this Paper itself, so that only plugins can exclude it.
pub(crate) fn with_usable_paper(problem: &Problem, minecraft: &Minecraft) -> Problem {
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
    // The tag of an image that bundles a Paper build states no Java version. This tag states none either, but bundles
    // no build.
    if let Some(image) = request.image.as_mut().filter(|image| texts::java_in(image).is_none()) {
        "mine:5".clone_into(image);
    }
    // The Paper itself needs no particular Java. Plugins keep their Java requirements.
    if let Some(any) = catalog.images.first().cloned() {
        catalog.images.push(ImageTag { tag: "2026.1.0-java1".to_owned(), pushed: Timestamp::UNIX_EPOCH, ..any });
    }
    for version in versions_mut(catalog, request.software).iter_mut().filter(|version| version.minecraft == *minecraft)
    {
        version.java = Some(1);
        for build in &mut version.builds {
            build.file.hash = Some(software::sha256());
        }
    }
    usable
}

/// Whether a version set for a Paper exists that contains all of these plugins. Any subset of the other plugins may be
/// requested too, with or without their pins, because pages and facts determine which dependencies are needed.
pub(crate) fn are_ready(problem: &Problem, minecraft: &Minecraft, names: &[&str]) -> bool {
    let named_objects: Vec<String> = names.iter().flat_map(|name| objects_of(problem, name)).collect();
    let mut others: Vec<Vec<String>> =
        problem.catalog.projects.iter().map(|of| objects_of(problem, &of.name)).collect();
    others.retain(|objects| objects.first().is_some_and(|object| !named_objects.contains(object)));
    others.sort();
    others.dedup();
    // A fact may name a plugin of another source. The name identifies that plugin only while it is requested. If it is
    // not requested the answer is unknown, and if it is requested there may be no solution, because it is not ready.
    let request = &problem.request;
    let has_facts = !request.facts.all().is_empty()
        || request.plugins.iter().any(|plugin_request| !plugin_request.requires.is_empty());
    let may_be_solved = |problem: &Problem| if has_facts { !is_unsolvable(problem) } else { is_solvable(problem) };
    let all = 1_usize << others.len();
    // A plugin with unread JARs may have the name that another JAR requires. Without that plugin, the required name
    // would count as missing.
    let is_read = |project: &Project| project.releases.iter().any(|release| release.declared.is_some());
    let mut problem = problem.clone();
    // An unmanaged JAR of a requested plugin does not restrict others, even in a subset without that plugin.
    let requested: Vec<Option<usize>> =
        request.plugins.iter().map(|plugin_request| project_index(&problem.catalog, &plugin_request.key)).collect();
    for jar in &mut problem.request.unmanaged {
        let owner = jar.sha256.as_ref().and_then(|sha256| problem.catalog.owners.get(sha256));
        let index = owner.and_then(|owner| project_index(&problem.catalog, &owner.project));
        if index.is_some() && requested.contains(&index) {
            problem.catalog.owners.remove(jar.sha256.as_ref().unwrap());
            jar.trusted.push("*".to_owned());
        }
    }
    if problem.catalog.projects.iter().any(|project| !is_read(project)) {
        jar_contents::clear_needs(&mut problem.catalog);
    }
    let problem = &problem;
    // First without the other plugins, then with all of them, because one of the two usually succeeds.
    [0, all - 1].into_iter().chain(1..all - 1).any(|mask| {
        let included: Vec<&String> =
            (0..others.len()).filter(|at| mask >> at & 1 == 1).flat_map(|at| &others[at]).collect();
        let forced = force_paper(problem, minecraft, &|plugin_request| {
            named_objects.contains(&plugin_request.object) || included.contains(&&plugin_request.object)
        });
        let mut free = forced.clone();
        for plugin_request in
            free.request.plugins.iter_mut().filter(|plugin_request| !named_objects.contains(&plugin_request.object))
        {
            plugin_request.version = VersionRequest::Auto;
        }
        // A pin may allow a release that is younger than its delay, so the request is also solved with the pins.
        may_be_solved(&forced) || free != forced && may_be_solved(&free)
    })
}
