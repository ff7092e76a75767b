//! Pure. Computes the dependency closure: the requested projects and those that their usable releases need, each with
//! its rules.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::delay_groups::Companions;
use super::eligibility::is_pinned;
use super::eligibility_cache::{EligibilityTable, ProjectEligibility};
use super::identified_jars::identified_files;
use super::jar_selection::Jars;
use super::known_file::KnownFile;
use super::provided_names::{DeclaredNames, NameOwner, NameTable};
use super::rules::{Companion, RequestedBy, Rules};
use super::unmanaged_dependencies;
use crate::explanation::Warning;
use crate::model::catalog::{Catalog, Project};
use crate::model::deciding_plugin::{deciding_request, most_specific};
use crate::model::gap::Gap;
use crate::model::request::{Hold, PluginRequest, Request, Running, VersionRequest};

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
    // A JAR declares the names it needs, not their source. So the first pass collects everything that the pages
    // require, and the second pass resolves the names.
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
    let mut missing = Gap::default();
    for plugin_request in &request.plugins {
        if let Some(position) = eligibility_table.find_or_record_gap(&plugin_request.key, &mut missing) {
            plugin_requests.entry(position).or_default().push(plugin_request);
        }
    }
    gap.fetch.append(&mut missing.fetch);
    // A new plugin waits for its page, and the others are updated without it.
    if !missing.unread.is_empty() && !runs_only_others(eligibility_table.catalog, request, plugin_requests.keys()) {
        gap.unread.append(&mut missing.unread);
    }
    let decided = plugin_requests.into_iter().map(|(position, mut plugin_requests)| {
        plugin_requests.sort_by(|a, b| a.object.cmp(&b.object));
        let applicable = most_specific(&plugin_requests);
        let deciding = deciding_request(&applicable).expect("a group contains the request that created it");
        let objects: Vec<&str> = plugin_requests.iter().map(|plugin_request| plugin_request.object.as_str()).collect();
        if objects.len() > 1 {
            warnings.push(Warning::SeveralObjects {
                objects: objects.iter().map(|&object| object.to_owned()).collect(),
                decides: deciding.object.clone(),
            });
        }
        // A hold of the server is about the project. A hold of a Plugin is one of its fields.
        let may_hold = |plugin_request: &PluginRequest| {
            plugin_request.hold == Some(Hold::Server)
                || applicable.iter().any(|applicable| applicable.object == plugin_request.object)
        };
        let hold = plugin_requests
            .iter()
            .filter(|plugin_request| may_hold(plugin_request))
            .find_map(|plugin_request| Some((plugin_request.object.as_str(), plugin_request.hold?)));
        let hold = hold.filter(|_| runs_release_of(request, &eligibility_table.catalog.projects[position]));
        let rules = Rules {
            channel: deciding.channel,
            delay: deciding.delay,
            may_downgrade: deciding.allow_downgrade,
            hold,
            compatibility: deciding.compatibility.as_ref(),
            // A hold keeps the running release, even if a pin names another one.
            pin: deciding.pinned_version().filter(|_| hold.is_none()),
            // Every request gets the files that it names. They do not exclude each other.
            jars: Jars::from_requests(request.software, &plugin_requests),
            unlisted: request.unlisted,
            companions: Vec::new(),
            requires: Some((deciding.object.as_str(), deciding.requires.as_slice()))
                .filter(|(_, constraints)| !constraints.is_empty()),
        };
        // A plugin that is held here does not take part in the shared release of several servers.
        let latest = applicable
            .iter()
            .filter(|plugin_request| plugin_request.version == VersionRequest::Latest && hold.is_none());
        let latest = latest.map(|plugin_request| plugin_request.object.as_str()).collect();
        (position, (RequestedBy { objects, deciding_object: &deciding.object, latest }, rules))
    });
    decided.collect()
}

/// Whether the server runs, and each of its running releases belongs to one of the requested projects (by position), or
/// to one that no Plugin requests. Then a plugin that could not be read does not run, whatever name it had before.
fn runs_only_others<'x>(catalog: &Catalog, request: &Request, requested: impl Iterator<Item = &'x usize>) -> bool {
    let Some(running) = &request.running else { return false };
    let has = |project: &Project, id: &String| {
        project.has_release(id) || running.delisted_release(project).is_some_and(|delisted| delisted.id == *id)
    };
    let unrequested = running.unrequested.iter().filter_map(|key| catalog.project(key));
    let projects: Vec<&Project> = requested.map(|&position| &catalog.projects[position]).chain(unrequested).collect();
    running.releases.iter().all(|id| projects.iter().any(|project| has(project, id)))
}

/// Whether the server runs a release of a project.
pub(crate) fn runs_release_of(request: &Request, project: &Project) -> bool {
    let runs = |running: &Running| {
        running.delisted_release(project).is_some()
            || project.releases.iter().any(|release| running.runs_release(release))
    };
    request.running.as_ref().is_some_and(runs)
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
