//! Pure. Determines what unmanaged JARs need, from their descriptors and from the pages of identified releases.
//!
//! A running plugin that one of them needs stays installed, even if no Plugin object requests it. No plugin is added
//! for them. Missing plugins that only a page requires are reported.

use std::collections::{BTreeMap, BTreeSet};

use super::dependency_targets::{DependencyTarget, resolve_target, sorted_dependencies};
use super::eligibility_cache::EligibilityTable;
use super::identified_jars::identified_files;
use super::jar_selection::Jars;
use super::known_file::{KnownFile, are_namesakes};
use super::provided_names::DeclaredNames;
use super::rules::{Companion, RequestedBy, Rules};
use super::version_bounds::BoundContext;
use crate::model::catalog::{Catalog, Channel, DependencyKind, Project, ProjectKey};
use crate::model::gap::Gap;
use crate::model::name_conflict::folded;
use crate::model::request::Request;
use crate::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};

/// A dependency of an unmanaged JAR.
pub(crate) struct UnmanagedDependency<'a> {
    /// Its name in `plugins/`.
    pub(crate) file: &'a str,
    /// The project that is needed. `None` for a dependency by name, which does not state a project.
    pub(crate) project: Option<&'a Project>,
    /// The folded names of the dependency. A plugin with any of them satisfies it.
    names: BTreeSet<String>,
}

impl UnmanagedDependency<'_> {
    /// Whether the dependency is on this project, or on its namesake at the other site.
    fn is_for(&self, project: &Project) -> bool {
        self.project.is_some_and(|needed| std::ptr::eq(needed, project) || are_namesakes(needed, project))
    }

    pub(crate) fn is_met_by(&self, project: &Project, declared: &DeclaredNames) -> bool {
        self.is_for(project) || self.names.iter().any(|name| declared.has_name(project, name))
    }

    /// Whether an unmanaged JAR satisfies it.
    pub(crate) fn is_met_by_unmanaged(&self, catalog: &Catalog, request: &Request, files: &[KnownFile<'_>]) -> bool {
        let has_one = |jar: &UnmanagedJar| jar.names().any(|name| self.names.contains(&folded(name)));
        // A site may know the project of a file but not its release, or only a release for other software.
        let is_its = |jar: &UnmanagedJar| {
            let owner = jar.sha256.as_ref().and_then(|sha256| catalog.owners.get(sha256));
            let owner_project = owner.and_then(|owner| catalog.project(&owner.project));
            owner_project.zip(self.project).is_some_and(|(one, other)| std::ptr::eq(one, other))
        };
        request.unmanaged.iter().any(|jar| has_one(jar) || is_its(jar))
            || files.iter().any(|file| self.is_for(file.project))
    }
}

/// The plugins that stay although no Plugin object requests them, by the position of their projects, with the files
/// that need each.
///
/// Only running plugins stay: a JAR with a missing dependency is no worse off than today. A user may have added a JAR
/// that needs a plugin installed for a managed one. Only the JAR or its page shows that.
pub(super) fn retained_plugins<'a>(
    eligibility_table: &mut EligibilityTable<'a>,
    request: &'a Request,
    requested_plugins: &BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)>,
    gap: &mut Gap,
) -> BTreeMap<usize, Vec<String>> {
    let catalog = eligibility_table.catalog;
    let requested: BTreeSet<usize> = requested_plugins.keys().copied().collect();
    let files = identified_files(catalog, request, &requested);
    let mut needs = needs_by_name(request);
    needs.extend(needs_by_page(
        eligibility_table,
        request,
        (&files, &BoundContext::new(request, &requested, None)),
        gap,
    ));
    needs.retain(|need| !need.is_met_by_unmanaged(catalog, request, &files));
    let mut retained: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    if needs.is_empty() {
        return retained;
    }
    for (&position, (_, rules)) in requested_plugins {
        let declared = eligibility_table.declared_names(position, &rules.jars);
        needs.retain(|need| !need.is_met_by(&catalog.projects[position], &declared));
    }
    let mut met = vec![false; needs.len()];
    let mut missing = Gap::default();
    for key in unrequested_projects(request).iter().filter(|_| !needs.is_empty()) {
        let Some(position) = eligibility_table.find_or_record_gap(key, &mut missing) else { continue };
        let declared = eligibility_table.declared_names(position, &Jars::main_for(request.software));
        let mut files = BTreeSet::new();
        for (need, met) in needs.iter().zip(&mut met) {
            if need.is_met_by(&catalog.projects[position], &declared) {
                *met = true;
                files.insert(need.file);
            }
        }
        if !files.is_empty() && !requested.contains(&position) {
            retained.insert(position, files.into_iter().map(str::to_owned).collect());
        }
    }
    gap.fetch.append(&mut missing.fetch);
    // A project that cannot be read may be the target of a name. It is not the target if a page names the project.
    if needs.iter().zip(met).any(|(need, met)| !met && need.project.is_none()) {
        gap.unread.append(&mut missing.unread);
    }
    retained
}

fn unrequested_projects(request: &Request) -> &[ProjectKey] {
    request.running.as_ref().map_or(&[], |running| &running.unrequested)
}

/// The names that unmanaged JARs do not load without.
fn needs_by_name<'a>(request: &'a Request) -> Vec<UnmanagedDependency<'a>> {
    if request.unmanaged_plugins == UnmanagedPlugins::Ignore || !request.software.is_minecraft() {
        return Vec::new();
    }
    let needs_of = |jar: &'a UnmanagedJar| {
        let names = jar.depend.iter().map(|name| BTreeSet::from([folded(name)]));
        names.map(|names| UnmanagedDependency { file: &jar.file, project: None, names })
    };
    request.unmanaged.iter().flat_map(needs_of).collect()
}

/// The dependencies that the pages of these files require. Projects that have to be read first are added to `gap`.
pub(crate) fn needs_by_page<'a>(
    eligibility_table: &mut EligibilityTable<'a>,
    request: &'a Request,
    (files, context): (&[KnownFile<'a>], &BoundContext<'_>),
    gap: &mut Gap,
) -> Vec<UnmanagedDependency<'a>> {
    let catalog = eligibility_table.catalog;
    let mut needs = Vec::new();
    for file in files {
        for entry in
            sorted_dependencies(file.release).into_iter().filter(|entry| entry.kind == DependencyKind::Required)
        {
            match resolve_target(catalog, context, file.position, entry) {
                DependencyTarget::Project(position) => {
                    let project = &catalog.projects[position];
                    let names =
                        eligibility_table.declared_names(position, &Jars::main_for(request.software)).names(project);
                    needs.push(UnmanagedDependency { file: file.file, project: Some(project), names });
                }
                DependencyTarget::Fetch(key) => drop(gap.fetch.insert(key)),
                // It may be one of the running plugins, which must not be removed.
                DependencyTarget::Unread { project: name, because: _ } | DependencyTarget::NotAtSource(name) => {
                    needs.push(UnmanagedDependency {
                        file: file.file,
                        project: None,
                        names: BTreeSet::from([folded(&name)]),
                    });
                }
                // No page refers to the others.
                DependencyTarget::NeverLoaded
                | DependencyTarget::Unknown { .. }
                | DependencyTarget::Missing(_)
                | DependencyTarget::Unmanaged => {}
            }
        }
    }
    needs
}

/// A requirement on the page of an unmanaged JAR that no plugin on the server is known to satisfy.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MissingDependency<'x> {
    /// The JAR.
    pub(crate) file: &'x str,
    /// The required plugin, by its display name.
    pub(crate) plugin: &'x str,
    /// The required project.
    pub(crate) project: &'x ProjectKey,
}

/// The rules of a plugin that stays for unmanaged JARs. No user set rules for it, so it waits at least as long as every
/// requested plugin.
pub(super) fn retained_rules<'a>(request: &'a Request, companions: Vec<Companion<'a>>) -> Rules<'a> {
    let delays = request.plugins.iter().map(|plugin_request| plugin_request.delay);
    Rules {
        channel: Channel::Release,
        delay: delays.fold(request.delay, std::cmp::Ord::max),
        may_downgrade: false,
        hold: None,
        compatibility: None,
        pin: None,
        jars: Jars::main_for(request.software),
        requires: None,
        unlisted: request.unlisted,
        companions,
    }
}
