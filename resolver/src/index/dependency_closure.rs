//! Pure. Computes the dependency closure: the requested projects and those that their usable releases need, each with
//! its rules.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::delay_groups::{Companion, Companions};
use super::eligibility::is_pinned;
use super::eligibility_cache::{EligibilityTable, ProjectEligibility};
use super::identified_jars::{KnownFile, known_files};
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
    pub(super) place: usize,
    pub(super) project: &'a Project,
    pub(super) asked: Option<RequestedBy<'a>>,
    /// Unmanaged JARs for which it stays installed.
    pub(super) kept_for: Vec<String>,
    pub(super) rules: Rules<'a>,
    pub(super) judged: Rc<ProjectEligibility<'a>>,
    pub(super) spoken: Rc<DeclaredNames>,
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
    Outside(String),
    /// A required name that no plugin of this server has.
    Missing(String),
    /// An unmanaged JAR that is installed.
    Own,
    /// A project that this server would never load: pages do not state for which loader a dependency is meant.
    Nothing,
}

/// Finds and orders all members and determines their eligibility. The rank is the position in the result. Missing data
/// is added to `gap`. If there is any, the members are only those that could be found.
pub(super) fn stock<'a>(
    judgements: &mut EligibilityTable<'a>,
    request: &'a Request,
    warnings: &mut Vec<Warning>,
    gap: &mut Gap,
) -> Closure<'a> {
    let catalog = judgements.catalog;
    gap.unread.extend(catalog.builds_unread(request.software));
    let mut asked = asked_for(judgements, request, warnings, gap);
    let companions = Companions::of_server(catalog, request, &asked, warnings);
    for (place, (_, rules)) in &mut asked {
        rules.together = companions.of(catalog, *place);
    }
    let requested: BTreeSet<usize> = asked.keys().copied().collect();
    let kept = unmanaged_dependencies::kept(judgements, request, &asked, gap);
    let members = requested.iter().chain(kept.keys()).copied().collect();
    let files = known_files(catalog, request, &members);
    let closing = ClosureBuilder { request, companions, requested, kept, files };
    // A JAR declares the names it needs, not their source. So the first pass collects everything that the pages bring
    // in, and the second pass resolves the names.
    let unasked = NameTable::unasked();
    let members = closing.close(judgements, asked, &unasked, gap);
    if !members.values().any(|member| member.spoken.asks()) {
        return Closure { members: ranked(members), names: unasked };
    }
    let bearers: Vec<NameOwner<'_>> = members
        .values()
        .map(|member| NameOwner { place: member.place, requested: member.asked.is_some(), spoken: &member.spoken })
        .collect();
    let names = NameTable::of(catalog, request, &bearers);
    let asked = members.into_values().filter_map(|member| Some((member.place, (member.asked?, member.rules))));
    let members = closing.close(judgements, asked.collect(), &names, gap);
    Closure { members: ranked(members), names }
}

/// The inputs of the search for members of one server.
struct ClosureBuilder<'a> {
    request: &'a Request,
    companions: Companions<'a>,
    /// The positions of the requested projects.
    requested: BTreeSet<usize>,
    /// Projects that stay for unmanaged JARs, with those JARs.
    kept: BTreeMap<usize, Vec<String>>,
    /// Unmanaged JARs whose release is known.
    files: Vec<KnownFile<'a>>,
}

impl<'a> ClosureBuilder<'a> {
    /// Returns the requested and kept projects and everything that the usable releases of members need.
    fn close(
        &self,
        judgements: &mut EligibilityTable<'a>,
        asked: BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)>,
        names: &NameTable,
        gap: &mut Gap,
    ) -> BTreeMap<usize, ClosureMember<'a>> {
        let catalog = judgements.catalog;
        let mut members: BTreeMap<usize, ClosureMember<'a>> = BTreeMap::new();
        let kept = self.kept.keys().map(|&place| {
            (place, None, unmanaged_dependencies::rules(self.request, self.companions.of(catalog, place)))
        });
        let asked = asked.into_iter().rev().map(|(place, (asked, rules))| (place, Some(asked), rules));
        let mut queue: Vec<(usize, Option<RequestedBy<'a>>, Rules<'a>)> = kept.chain(asked).collect();
        while let Some((place, asked, rules)) = queue.pop() {
            let spoken = judgements.spoken(place, &rules.jars);
            let server = (self.request, &self.requested, self.files.as_slice());
            let judged = judgements.judge(place, &rules, server, (names, &spoken));
            gap.fetch.extend(judged.gap.fetch.iter().cloned());
            gap.unread.extend(judged.gap.unread.iter().cloned());
            for &needed in judged.required.iter().filter(|needed| !self.requested.contains(needed)) {
                let inherited = inherited(&judged, &rules, self.companions.of(catalog, needed));
                let known = members.get(&needed).map(|member| &member.rules);
                let queued = queue.iter().find(|(place, _, _)| *place == needed).map(|(_, _, rules)| rules);
                let merged = merge(queued.or(known), &inherited);
                if queued.or(known) != Some(&merged) {
                    // Otherwise stricter rules that are processed later would override these.
                    queue.retain(|(place, _, _)| *place != needed);
                    queue.push((needed, None, merged));
                }
            }
            let kept_for = self.kept.get(&place).cloned().unwrap_or_default();
            let project = &catalog.projects[place];
            members.insert(place, ClosureMember { place, project, asked, kept_for, rules, judged, spoken });
        }
        members
    }
}

/// Groups the requests by project and chooses the request that applies.
fn asked_for<'a>(
    judgements: &mut EligibilityTable<'a>,
    request: &'a Request,
    warnings: &mut Vec<Warning>,
    gap: &mut Gap,
) -> BTreeMap<usize, (RequestedBy<'a>, Rules<'a>)> {
    let mut wishes: BTreeMap<usize, Vec<&'a PluginRequest>> = BTreeMap::new();
    for wish in &request.plugins {
        if let Some(place) = judgements.find_or_note(&wish.key, gap) {
            wishes.entry(place).or_default().push(wish);
        }
    }
    let decided = wishes.into_iter().map(|(place, mut wishes)| {
        wishes.sort_by(|a, b| a.object.cmp(&b.object));
        // A request for the newest version lets the solver choose. If all are pins, the highest one wins.
        let decides = wishes.iter().copied().find(|wish| pin(wish).is_none()).unwrap_or_else(|| {
            wishes
                .iter()
                .copied()
                .reduce(|best, wish| match (pin(best), pin(wish)) {
                    (Some(a), Some(b)) if lenient::compare(b, a).is_gt() => wish,
                    _ => best,
                })
                .expect("a group holds the wish that made it")
        });
        let objects: Vec<&str> = wishes.iter().map(|wish| wish.object.as_str()).collect();
        if objects.len() > 1 {
            warnings.push(Warning::SeveralObjects {
                objects: objects.iter().map(|&object| object.to_owned()).collect(),
                decides: decides.object.clone(),
            });
        }
        let hold = wishes.iter().find_map(|wish| Some((wish.object.as_str(), wish.hold?)));
        let hold = hold.filter(|_| runs_any(request, &judgements.catalog.projects[place]));
        let rules = Rules {
            channel: decides.channel,
            delay: decides.delay,
            may_go_down: decides.allow_downgrade,
            hold,
            compatibility: decides.compatibility.as_ref(),
            // A hold keeps the running release, even if a pin names another one.
            pin: pin(decides).filter(|_| hold.is_none()),
            // Every request gets the files that it names. They do not exclude each other.
            jars: Jars::of(request.software, &wishes),
            unlisted: request.unlisted,
            together: Vec::new(),
            requires: Some((decides.object.as_str(), decides.requires.as_slice())).filter(|(_, says)| !says.is_empty()),
        };
        // A plugin that is held here does not take part in the shared release of several servers.
        let latest = wishes.iter().filter(|wish| wish.version == VersionRequest::Latest && hold.is_none());
        let latest = latest.map(|wish| wish.object.as_str()).collect();
        (place, (RequestedBy { objects, decides: &decides.object, latest }, rules))
    });
    decided.collect()
}

fn pin(wish: &PluginRequest) -> Option<&str> {
    match &wish.version {
        VersionRequest::Pin { version } => Some(version),
        VersionRequest::Latest | VersionRequest::Auto => None,
    }
}

/// Whether the server runs a release of a project.
pub(crate) fn runs_any(request: &Request, project: &Project) -> bool {
    let runs = |running: &Running| {
        running.lost_release(project).is_some() || project.releases.iter().any(|release| running.has(release))
    };
    request.running.as_ref().is_some_and(runs)
}

pub(super) fn find(catalog: &Catalog, key: &ProjectKey) -> Option<usize> {
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
pub(super) fn follow(
    targets: Vec<DependencyTarget>,
    at: Follow<'_>,
    required: &mut BTreeSet<usize>,
    outside: &mut Vec<String>,
    gap: &mut Gap,
) -> Option<Unusable> {
    let mut fault = None;
    let mut needed = Vec::new();
    let mut proposed = Vec::new();
    for target in targets {
        match target {
            DependencyTarget::Project(place) if at.files.iter().any(|file| file.is_of(at.catalog, place)) => {}
            DependencyTarget::Project(place) => {
                let project = &at.catalog.projects[place];
                match at.request.dependencies {
                    Dependencies::Propose | Dependencies::Forbid if at.requested.contains(&place) => needed.push(place),
                    Dependencies::Install => needed.push(place),
                    Dependencies::Propose => proposed.push((project.name.clone(), project.key.clone())),
                    Dependencies::Forbid => {
                        fault.get_or_insert(Unusable::NeedsForbidden { project: project.name.clone() });
                    }
                }
            }
            DependencyTarget::Fetch(key) => {
                gap.fetch.insert(key);
            }
            // A running release has what it needs, since it runs.
            DependencyTarget::Unread { project, .. } if at.runs => outside.push(project),
            DependencyTarget::Unread { project, because } => {
                fault.get_or_insert(Unusable::NeedsUnread { project, because });
            }
            DependencyTarget::Outside(name) => outside.push(name),
            DependencyTarget::Unknown { plugin, because, nearest, says } => {
                fault.get_or_insert(Unusable::NeedsUnknown { plugin, because, nearest, says });
            }
            DependencyTarget::Missing(plugin) => {
                fault.get_or_insert(Unusable::NeedsMissing { plugin });
            }
            DependencyTarget::Own | DependencyTarget::Nothing => {}
        }
    }
    proposed.sort();
    proposed.dedup();
    // With another error, creating these Plugin objects would not be enough.
    let fault = fault.or_else(|| (!proposed.is_empty()).then_some(Unusable::NeedsProposed { projects: proposed }));
    // A release that may not be used adds no dependencies and passes on no rules.
    if fault.is_none() {
        required.extend(needed);
    }
    fault
}

/// The targets of the required dependencies of a release, including those from facts.
pub(super) fn required_targets(
    catalog: &Catalog,
    names: &NameTable,
    place: usize,
    (release, jars): (&Release, &Jars<'_>),
    facing: &BoundContext<'_>,
) -> Vec<DependencyTarget> {
    let page = in_order(release)
        .into_iter()
        .filter(|dependency| dependency.kind == DependencyKind::Required)
        .map(|dependency| target(catalog, facing, place, dependency));
    let known = facing.bounds(catalog, place, release).into_iter().map(|(target, _)| target);
    page.chain(names.asked_by(catalog, place, (release, jars), facing)).chain(known).collect()
}

/// The dependencies of a page in an order that does not depend on the page: the first of several errors is the one that
/// is reported.
pub(super) fn in_order(release: &Release) -> Vec<&Dependency> {
    let mut lines: Vec<&Dependency> = release.dependencies.iter().collect();
    lines.sort_by(|a, b| {
        (&a.project_id, &a.name, &a.version_id, a.kind).cmp(&(&b.project_id, &b.name, &b.version_id, b.kind))
    });
    lines
}

/// The target of one dependency on a page. A running release counts as available even if its page no longer lists it.
pub(super) fn target(
    catalog: &Catalog,
    facing: &BoundContext<'_>,
    place: usize,
    dependency: &Dependency,
) -> DependencyTarget {
    let source = catalog.projects[place].key.source;
    let keys = [&dependency.project_id, &dependency.name].into_iter().flatten();
    let keys: Vec<ProjectKey> = keys.map(|project| ProjectKey { source, project: project.clone() }).collect();
    let by_release = || {
        let id = dependency.version_id.as_ref()?;
        let has =
            |project: &Project| project.releases.iter().chain(facing.lost(project)).any(|release| release.id == *id);
        catalog.projects.iter().position(|project| project.key.source == source && has(project))
    };
    if let Some(found) = keys.iter().find_map(|key| find(catalog, key)).or_else(by_release) {
        let usable = found != place && facing.has_any(&catalog.projects[found]);
        return if usable { DependencyTarget::Project(found) } else { DependencyTarget::Nothing };
    }
    let shown = dependency.name.as_ref().or(dependency.project_id.as_ref()).or(dependency.version_id.as_ref());
    let shown = shown.map_or("another project", String::as_str);
    if let Some(because) = keys.iter().find_map(|key| catalog.unread_because(key)) {
        return DependencyTarget::Unread { project: shown.to_owned(), because: because.to_owned() };
    }
    match &dependency.project_id {
        Some(id) => absent(catalog, ProjectKey { source, project: id.clone() }, shown),
        None => DependencyTarget::Outside(shown.to_owned()),
    }
}

fn absent(catalog: &Catalog, key: ProjectKey, shown: &str) -> DependencyTarget {
    match catalog.unread_because(&key) {
        Some(because) => DependencyTarget::Unread { project: shown.to_owned(), because: because.to_owned() },
        None => DependencyTarget::Fetch(key),
    }
}

/// The rules that a dependency inherits from a dependent: the same limits for age and stability, and downgrades allowed
/// if the dependent may be downgraded.
fn inherited<'a>(judged: &ProjectEligibility<'_>, rules: &Rules<'_>, together: Vec<Companion<'a>>) -> Rules<'a> {
    let pinned = rules.pin.and_then(|pin| {
        let pinned = judged.releases.iter().filter(|judged| is_pinned(&judged.release.version, pin));
        pinned.map(|judged| judged.release.channel).min()
    });
    let channel = pinned.map_or(judged.channel, |pinned| pinned.min(judged.channel));
    Rules {
        channel,
        delay: rules.delay,
        may_go_down: rules.may_go_down,
        hold: None,
        compatibility: None,
        pin: None,
        jars: Jars::main_for(rules.jars.software()),
        requires: None,
        unlisted: rules.unlisted,
        together,
    }
}

/// Loosens rules and never tightens them: several plugins may need the same dependency.
fn merge<'a>(known: Option<&Rules<'a>>, more: &Rules<'a>) -> Rules<'a> {
    match known {
        None => more.clone(),
        Some(known) => Rules {
            channel: known.channel.min(more.channel),
            delay: known.delay.min(more.delay),
            may_go_down: known.may_go_down || more.may_go_down,
            ..known.clone()
        },
    }
}

/// Orders the requested projects by object name. The others follow, dependents before their dependencies, ties and
/// cycles by name.
///
/// The order is the rank in the solver. A dependency is decided after all plugins that might need it, so "not
/// installed" is chosen exactly when no plugin needs it.
fn ranked(mut members: BTreeMap<usize, ClosureMember<'_>>) -> Vec<ClosureMember<'_>> {
    let (mut ranked, mut waiting): (Vec<usize>, Vec<usize>) =
        members.keys().partition(|place| members[place].asked.is_some());
    ranked.sort_by_key(|place| members[place].asked.as_ref().map(|asked| asked.objects[0]));
    waiting.sort_by_key(|place| (&members[place].project.name, &members[place].project.id));
    while !waiting.is_empty() {
        let free = waiting.iter().position(|place| {
            waiting.iter().all(|other| other == place || !members[other].judged.required.contains(place))
        });
        ranked.push(waiting.remove(free.unwrap_or(0)));
    }
    ranked.into_iter().filter_map(|place| members.remove(&place)).collect()
}
