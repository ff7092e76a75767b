//! Pure. Computes the dependency closure: the requested projects and those that their usable releases need, each with
//! its rules.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::delay_groups::{Companion, Companions};
use super::eligibility::is_pinned;
use super::eligibility_cache::{EligibilityTable, ProjectEligibility};
use super::identified_jars::{KnownFile, identified_files};
use super::jar_selection::Jars;
use super::provided_names::{DeclaredNames, NameOwner, NameTable};
use super::unmanaged_dependencies;
use super::version_bounds::BoundContext;
use super::{RequestedBy, Rules};
use crate::catalog::{Catalog, Dependency, DependencyKind, Project, ProjectKey, Release};
use crate::compatibility_facts::FactSource;
use crate::explain::Warning;
use crate::request::{Dependencies, PluginRequest, Request, Running, VersionRequest};
use crate::unusable::Unusable;
use crate::version::lenient;

/// Data that is missing before the request can be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Gap {
    /// Projects that are not in the catalog, without a recorded reason.
    pub(crate) fetch: BTreeSet<ProjectKey>,
    /// Projects that could not be read: name and reason.
    pub(crate) unread: BTreeSet<(String, String)>,
}

/// One project of the closure with its eligibility.
pub(super) struct ClosureMember<'a> {
    /// Its position in the catalog.
    pub(super) position: usize,
    pub(super) project: &'a Project,
    pub(super) requested_by: Option<RequestedBy<'a>>,
    /// Unmanaged JARs for which it stays installed.
    pub(super) unmanaged_dependents: Vec<String>,
    pub(super) rules: Rules<'a>,
    pub(super) eligibility: Rc<ProjectEligibility<'a>>,
    pub(super) declared: Rc<DeclaredNames>,
}

/// All projects of the closure.
pub(super) struct Closure<'a> {
    /// By rank.
    pub(super) members: Vec<ClosureMember<'a>>,
    /// The names under which other plugins find them.
    pub(super) names: NameTable,
}

/// The target of a dependency.
pub(super) enum DependencyTarget {
    /// A project of the catalog, by position.
    Project(usize),
    /// A project that has to be fetched.
    Fetch(ProjectKey),
    /// A project that could not be read.
    Unread { project: String, because: String },
    /// A name used in a fact or constraint that matches no readable project.
    Unknown { plugin: String, because: String, nearest: Vec<String>, says: FactSource },
    /// A project that its source does not have.
    NotAtSource(String),
    /// A required name that no plugin of this server has.
    Missing(String),
    /// An unmanaged JAR that is installed.
    Unmanaged,
    /// A project that this server would never load: pages do not state for which loader a dependency is meant.
    NeverLoaded,
}

/// Finds and orders all members and determines their eligibility. The rank is the position in the result. Missing data
/// is added to `gap`. If there is any, the members are only those that could be found.
pub(super) fn compute_closure<'a>(
    eligibility_table: &mut EligibilityTable<'a>,
    request: &'a Request,
    warnings: &mut Vec<Warning>,
    gap: &mut Gap,
) -> Closure<'a> {
    let catalog = eligibility_table.catalog;
    gap.unread.extend(catalog.builds_unread(request.software));
    let mut requested_plugins = group_requests(eligibility_table, request, warnings, gap);
    let companions = Companions::from_request(catalog, request, &requested_plugins, warnings);
    for (position, (_, rules)) in &mut requested_plugins {
        rules.companions = companions.companions_of(catalog, *position);
    }
    let requested: BTreeSet<usize> = requested_plugins.keys().copied().collect();
    let retained = unmanaged_dependencies::retained_plugins(eligibility_table, request, &requested_plugins, gap);
    let members = requested.iter().chain(retained.keys()).copied().collect();
    let files = identified_files(catalog, request, &members);
    let builder = ClosureBuilder { request, companions, requested, retained, files };
    // A JAR declares the names it needs, not their source. So the first pass collects everything that the pages bring
    // in, and the second pass resolves the names.
    let empty_names = NameTable::empty();
    let members = builder.build(eligibility_table, requested_plugins, &empty_names, gap);
    if !members.values().any(|member| member.declared.has_requirements()) {
        return Closure { members: rank_members(members), names: empty_names };
    }
    let owners: Vec<NameOwner<'_>> = members
        .values()
        .map(|member| NameOwner {
            position: member.position,
            requested: member.requested_by.is_some(),
            declared: &member.declared,
        })
        .collect();
    let names = NameTable::new(catalog, request, &owners);
    let requested_plugins =
        members.into_values().filter_map(|member| Some((member.position, (member.requested_by?, member.rules))));
    let members = builder.build(eligibility_table, requested_plugins.collect(), &names, gap);
    Closure { members: rank_members(members), names }
}

/// The inputs of the search for members of one server.
struct ClosureBuilder<'a> {
    request: &'a Request,
    companions: Companions<'a>,
    /// The positions of the requested projects.
    requested: BTreeSet<usize>,
    /// Projects that stay for unmanaged JARs, with those JARs.
    retained: BTreeMap<usize, Vec<String>>,
    /// Unmanaged JARs whose release is known.
    files: Vec<KnownFile<'a>>,
}

impl<'a> ClosureBuilder<'a> {
    /// Returns the requested and kept projects and everything that the usable releases of members need.
    fn build(
        &self,
        eligibility_table: &mut EligibilityTable<'a>,
        requested: BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)>,
        names: &NameTable,
        gap: &mut Gap,
    ) -> BTreeMap<usize, ClosureMember<'a>> {
        let catalog = eligibility_table.catalog;
        let mut members: BTreeMap<usize, ClosureMember<'a>> = BTreeMap::new();
        let retained = self.retained.keys().map(|&position| {
            (
                position,
                None,
                unmanaged_dependencies::retained_rules(self.request, self.companions.companions_of(catalog, position)),
            )
        });
        let requested =
            requested.into_iter().rev().map(|(position, (requested, rules))| (position, Some(requested), rules));
        let mut queue: Vec<(usize, Option<RequestedBy<'a>>, Rules<'a>)> = retained.chain(requested).collect();
        while let Some((position, requested_by, rules)) = queue.pop() {
            let declared = eligibility_table.declared_names(position, &rules.jars);
            let server = (self.request, &self.requested, self.files.as_slice());
            let eligibility = eligibility_table.eligibility(position, &rules, server, (names, &declared));
            gap.fetch.extend(eligibility.gap.fetch.iter().cloned());
            gap.unread.extend(eligibility.gap.unread.iter().cloned());
            for &needed in eligibility.required.iter().filter(|needed| !self.requested.contains(needed)) {
                let inherited = inherited_rules(&eligibility, &rules, self.companions.companions_of(catalog, needed));
                let existing = members.get(&needed).map(|member| &member.rules);
                let queued = queue.iter().find(|(position, _, _)| *position == needed).map(|(_, _, rules)| rules);
                let merged = loosen_rules(queued.or(existing), &inherited);
                if queued.or(existing) != Some(&merged) {
                    // Otherwise stricter rules that are processed later would override these.
                    queue.retain(|(position, _, _)| *position != needed);
                    queue.push((needed, None, merged));
                }
            }
            let unmanaged_dependents = self.retained.get(&position).cloned().unwrap_or_default();
            let project = &catalog.projects[position];
            members.insert(
                position,
                ClosureMember { position, project, requested_by, unmanaged_dependents, rules, eligibility, declared },
            );
        }
        members
    }
}

/// Groups the requests by project and chooses the request that applies.
fn group_requests<'a>(
    eligibility_table: &mut EligibilityTable<'a>,
    request: &'a Request,
    warnings: &mut Vec<Warning>,
    gap: &mut Gap,
) -> BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)> {
    let mut plugin_requests: BTreeMap<usize, Vec<&'a PluginRequest>> = BTreeMap::new();
    for plugin_request in &request.plugins {
        if let Some(position) = eligibility_table.find_or_record_gap(&plugin_request.key, gap) {
            plugin_requests.entry(position).or_default().push(plugin_request);
        }
    }
    let decided = plugin_requests.into_iter().map(|(position, mut plugin_requests)| {
        plugin_requests.sort_by(|a, b| a.object.cmp(&b.object));
        // A request for the newest version lets the solver choose. If all are pins, the highest one wins.
        let deciding = plugin_requests
            .iter()
            .copied()
            .find(|plugin_request| pinned_version(plugin_request).is_none())
            .unwrap_or_else(|| {
                plugin_requests
                    .iter()
                    .copied()
                    .reduce(|best, plugin_request| match (pinned_version(best), pinned_version(plugin_request)) {
                        (Some(a), Some(b)) if lenient::compare(b, a).is_gt() => plugin_request,
                        _ => best,
                    })
                    .expect("a group contains the request that created it")
            });
        let objects: Vec<&str> = plugin_requests.iter().map(|plugin_request| plugin_request.object.as_str()).collect();
        if objects.len() > 1 {
            warnings.push(Warning::SeveralObjects {
                objects: objects.iter().map(|&object| object.to_owned()).collect(),
                decides: deciding.object.clone(),
            });
        }
        let hold = plugin_requests
            .iter()
            .find_map(|plugin_request| Some((plugin_request.object.as_str(), plugin_request.hold?)));
        let hold = hold.filter(|_| runs_release_of(request, &eligibility_table.catalog.projects[position]));
        let rules = Rules {
            channel: deciding.channel,
            delay: deciding.delay,
            may_downgrade: deciding.allow_downgrade,
            hold,
            compatibility: deciding.compatibility.as_ref(),
            // A hold keeps the running release, even if a pin names another one.
            pin: pinned_version(deciding).filter(|_| hold.is_none()),
            // Every request gets the files that it names. They do not exclude each other.
            jars: Jars::from_requests(request.software, &plugin_requests),
            unlisted: request.unlisted,
            companions: Vec::new(),
            requires: Some((deciding.object.as_str(), deciding.requires.as_slice()))
                .filter(|(_, constraints)| !constraints.is_empty()),
        };
        // A plugin that is held here does not take part in the shared release of several servers.
        let latest = plugin_requests
            .iter()
            .filter(|plugin_request| plugin_request.version == VersionRequest::Latest && hold.is_none());
        let latest = latest.map(|plugin_request| plugin_request.object.as_str()).collect();
        (position, (RequestedBy { objects, deciding_object: &deciding.object, latest }, rules))
    });
    decided.collect()
}

fn pinned_version(plugin_request: &PluginRequest) -> Option<&str> {
    match &plugin_request.version {
        VersionRequest::Pin { version } => Some(version),
        VersionRequest::Latest | VersionRequest::Auto => None,
    }
}

/// Whether the server runs a release of a project.
pub(crate) fn runs_release_of(request: &Request, project: &Project) -> bool {
    let runs = |running: &Running| {
        running.delisted_release(project).is_some()
            || project.releases.iter().any(|release| running.runs_release(release))
    };
    request.running.as_ref().is_some_and(runs)
}

pub(super) fn find_project(catalog: &Catalog, key: &ProjectKey) -> Option<usize> {
    let found = catalog.project(key)?;
    catalog.projects.iter().position(|project| std::ptr::eq(project, found))
}

#[derive(Clone, Copy)]
pub(super) struct Follow<'x> {
    pub(super) catalog: &'x Catalog,
    pub(super) request: &'x Request,
    pub(super) runs: bool,
    pub(super) requested: &'x BTreeSet<usize>,
    pub(super) files: &'x [KnownFile<'x>],
}

/// Records the required dependencies of one release. Returns why the release cannot be used if a target of them is
/// unavailable.
pub(super) fn collect_dependencies(
    targets: Vec<DependencyTarget>,
    at: Follow<'_>,
    required: &mut BTreeSet<usize>,
    missing_at_source: &mut Vec<String>,
    gap: &mut Gap,
) -> Option<Unusable> {
    let mut unusable = None;
    let mut needed = Vec::new();
    let mut proposed = Vec::new();
    for target in targets {
        match target {
            DependencyTarget::Project(position) if at.files.iter().any(|file| file.is_for(at.catalog, position)) => {}
            DependencyTarget::Project(position) => {
                let project = &at.catalog.projects[position];
                match at.request.dependencies {
                    Dependencies::Propose | Dependencies::Forbid if at.requested.contains(&position) => {
                        needed.push(position);
                    }
                    Dependencies::Install => needed.push(position),
                    Dependencies::Propose => proposed.push((project.name.clone(), project.key.clone())),
                    Dependencies::Forbid => {
                        unusable.get_or_insert(Unusable::NeedsForbidden { project: project.name.clone() });
                    }
                }
            }
            DependencyTarget::Fetch(key) => {
                gap.fetch.insert(key);
            }
            // A running release has what it needs, since it runs.
            DependencyTarget::Unread { project, .. } if at.runs => missing_at_source.push(project),
            DependencyTarget::Unread { project, because } => {
                unusable.get_or_insert(Unusable::NeedsUnread { project, because });
            }
            DependencyTarget::NotAtSource(name) => missing_at_source.push(name),
            DependencyTarget::Unknown { plugin, because, nearest, says } => {
                unusable.get_or_insert(Unusable::NeedsUnknown { plugin, because, nearest, says });
            }
            DependencyTarget::Missing(plugin) => {
                unusable.get_or_insert(Unusable::NeedsMissing { plugin });
            }
            DependencyTarget::Unmanaged | DependencyTarget::NeverLoaded => {}
        }
    }
    proposed.sort();
    proposed.dedup();
    // With another error, creating these Plugin objects would not be enough.
    let unusable =
        unusable.or_else(|| (!proposed.is_empty()).then_some(Unusable::NeedsProposed { projects: proposed }));
    // A release that may not be used adds no dependencies and passes on no rules.
    if unusable.is_none() {
        required.extend(needed);
    }
    unusable
}

/// The targets of the required dependencies of a release, including those from facts.
pub(super) fn required_targets(
    catalog: &Catalog,
    names: &NameTable,
    position: usize,
    (release, jars): (&Release, &Jars<'_>),
    context: &BoundContext<'_>,
) -> Vec<DependencyTarget> {
    let page = sorted_dependencies(release)
        .into_iter()
        .filter(|dependency| dependency.kind == DependencyKind::Required)
        .map(|dependency| resolve_target(catalog, context, position, dependency));
    let fact_targets = context.bounds(catalog, position, release).into_iter().map(|(target, _)| target);
    page.chain(names.required_targets(catalog, position, (release, jars), context)).chain(fact_targets).collect()
}

/// The dependencies of a page in an order that does not depend on the page: the first of several errors is the one that
/// is reported.
pub(super) fn sorted_dependencies(release: &Release) -> Vec<&Dependency> {
    let mut entries: Vec<&Dependency> = release.dependencies.iter().collect();
    entries.sort_by(|a, b| {
        (&a.project_id, &a.name, &a.version_id, a.kind).cmp(&(&b.project_id, &b.name, &b.version_id, b.kind))
    });
    entries
}

/// The target of one dependency on a page. A running release counts as available even if its page no longer lists it.
pub(super) fn resolve_target(
    catalog: &Catalog,
    context: &BoundContext<'_>,
    position: usize,
    dependency: &Dependency,
) -> DependencyTarget {
    let source = catalog.projects[position].key.source;
    let keys = [&dependency.project_id, &dependency.name].into_iter().flatten();
    let keys: Vec<ProjectKey> = keys.map(|project| ProjectKey { source, project: project.clone() }).collect();
    let by_release = || {
        let id = dependency.version_id.as_ref()?;
        let has = |project: &Project| {
            project.releases.iter().chain(context.delisted_release(project)).any(|release| release.id == *id)
        };
        catalog.projects.iter().position(|project| project.key.source == source && has(project))
    };
    if let Some(found) = keys.iter().find_map(|key| find_project(catalog, key)).or_else(by_release) {
        let usable = found != position && context.has_release(&catalog.projects[found]);
        return if usable { DependencyTarget::Project(found) } else { DependencyTarget::NeverLoaded };
    }
    let shown = dependency.name.as_ref().or(dependency.project_id.as_ref()).or(dependency.version_id.as_ref());
    let shown = shown.map_or("another project", String::as_str);
    if let Some(because) = keys.iter().find_map(|key| catalog.unread_reason(key)) {
        return DependencyTarget::Unread { project: shown.to_owned(), because: because.to_owned() };
    }
    match &dependency.project_id {
        Some(id) => absent_target(catalog, ProjectKey { source, project: id.clone() }, shown),
        None => DependencyTarget::NotAtSource(shown.to_owned()),
    }
}

fn absent_target(catalog: &Catalog, key: ProjectKey, shown: &str) -> DependencyTarget {
    match catalog.unread_reason(&key) {
        Some(because) => DependencyTarget::Unread { project: shown.to_owned(), because: because.to_owned() },
        None => DependencyTarget::Fetch(key),
    }
}

/// The rules that a dependency inherits from a dependent: the same limits for age and stability, and downgrades allowed
/// if the dependent may be downgraded.
fn inherited_rules<'a>(
    eligibility: &ProjectEligibility<'_>,
    rules: &Rules<'_>,
    companions: Vec<Companion<'a>>,
) -> Rules<'a> {
    let pinned = rules.pin.and_then(|pin| {
        let pinned = eligibility.releases.iter().filter(|candidate| is_pinned(&candidate.release.version, pin));
        pinned.map(|candidate| candidate.release.channel).min()
    });
    let channel = pinned.map_or(eligibility.channel, |pinned| pinned.min(eligibility.channel));
    Rules {
        channel,
        delay: rules.delay,
        may_downgrade: rules.may_downgrade,
        hold: None,
        compatibility: None,
        pin: None,
        jars: Jars::main_for(rules.jars.software()),
        requires: None,
        unlisted: rules.unlisted,
        companions,
    }
}

/// Loosens rules and never tightens them: several plugins may need the same dependency.
fn loosen_rules<'a>(existing: Option<&Rules<'a>>, more: &Rules<'a>) -> Rules<'a> {
    match existing {
        None => more.clone(),
        Some(existing) => Rules {
            channel: existing.channel.min(more.channel),
            delay: existing.delay.min(more.delay),
            may_downgrade: existing.may_downgrade || more.may_downgrade,
            ..existing.clone()
        },
    }
}

/// Orders the requested projects by object name. The others follow, dependents before their dependencies, ties and
/// cycles by name.
///
/// The order is the rank in the solver. A dependency is decided after all plugins that might need it, so "not
/// installed" is chosen exactly when no plugin needs it.
fn rank_members(mut members: BTreeMap<usize, ClosureMember<'_>>) -> Vec<ClosureMember<'_>> {
    let (mut ranked, mut waiting): (Vec<usize>, Vec<usize>) =
        members.keys().partition(|position| members[position].requested_by.is_some());
    ranked.sort_by_key(|position| members[position].requested_by.as_ref().map(|requested_by| requested_by.objects[0]));
    waiting.sort_by_key(|position| (&members[position].project.name, &members[position].project.id));
    while !waiting.is_empty() {
        let free = waiting.iter().position(|position| {
            waiting.iter().all(|other| other == position || !members[other].eligibility.required.contains(position))
        });
        ranked.push(waiting.remove(free.unwrap_or(0)));
    }
    ranked.into_iter().filter_map(|position| members.remove(&position)).collect()
}
