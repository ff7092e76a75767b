//! Pure. Caches the eligibility of projects for all servers with the same inputs: most of a thousand servers share
//! their rules.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use jiff::Timestamp;

use super::candidates::Candidate;
use super::dependency_targets::{DependencyTarget, find_project, required_targets};
use super::eligibility::{downgrade_floor, eligible_releases, is_pinned};
use super::jar_selection::Jars;
use super::java::{self, AvailableJava, NewestImageJava};
use super::known_constraints::is_named;
use super::known_file::KnownFile;
use super::provided_names::{DeclaredNames, NameResolution, NameTable};
use super::rules::Rules;
use super::version_bounds::BoundContext;
use super::{delay_groups, identified_jars};
use crate::model::catalog::{Catalog, Channel, Dependency, Project, ProjectKey, Release};
use crate::model::compatibility_facts::CompatibilityFacts;
use crate::model::delisted::has_any_release;
use crate::model::gap::Gap;
use crate::model::request::{Dependencies, Request, Running};
use crate::model::unusable::Unusable;

/// The eligibility of one project under one set of rules.
pub(crate) struct ProjectEligibility<'a> {
    /// The channel in use: that of the rules, or the most stable one available if the project has no release on it.
    pub(super) channel: Channel,
    /// Oldest first.
    pub(super) releases: Rc<Vec<Candidate<'a>>>,
    /// The projects, by position, that its usable releases need.
    pub(super) required: BTreeSet<usize>,
    /// Data that was missing when their dependencies were followed.
    pub(super) gap: Gap,
    /// Whether dependencies on its pages lead to running releases that are delisted. On other servers they lead
    /// elsewhere.
    pub(super) leads_to_delisted: bool,
}

/// All inputs of the eligibility apart from the catalog and the instant.
#[derive(PartialEq, Eq)]
struct EligibilityCacheKey<'a> {
    rules: Rules<'a>,
    available_java: AvailableJava<'a>,
    /// Its releases that run on the server.
    runs: Vec<&'a str>,
    /// Its running release that is delisted. Servers with the same description of it share one value.
    delisted: Option<*const Release>,
    /// The id of the running project, if that is another one that no Plugin decided about.
    other_project: Option<&'a str>,
    /// Delisted releases of other projects that dependencies on its pages lead to only because they run.
    delisted_targets: Vec<*const Release>,
    /// With `dependencies: Forbid` or `Propose`: that setting and the requested projects.
    dependency_policy: Option<(Dependencies, BTreeSet<usize>)>,
    /// With facts about it that are not built in: those facts and the requested projects, because names resolve to them
    /// first.
    facts: Option<(&'a CompatibilityFacts, BTreeSet<usize>)>,
    /// If its JARs require others by name: the owners of those names.
    names: Option<NameResolution>,
    /// Unmanaged JARs that it has to be compatible with.
    files: Vec<KnownFile<'a>>,
}

/// Eligibility by the position of the project.
type EligibilityCache<'a> = HashMap<usize, Vec<(EligibilityCacheKey<'a>, Rc<ProjectEligibility<'a>>)>>;

/// Names from JARs by the position of the project, for each selection of JARs.
type JarNamesByChoice<'a> = HashMap<usize, Vec<(Jars<'a>, Rc<DeclaredNames>)>>;

/// All eligibility that was determined so far.
pub(crate) struct EligibilityTable<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) now: Timestamp,
    /// Computed once, because there are hundreds of tags.
    pub(super) published: Option<NewestImageJava>,
    cache: EligibilityCache<'a>,
    jar_names: JarNamesByChoice<'a>,
    /// The caches of the request that this one is a change of.
    previous: Option<(&'a EligibilityCache<'a>, &'a JarNamesByChoice<'a>)>,
    positions: HashMap<&'a ProjectKey, Option<usize>>,
    /// Running releases that are delisted, by project and id. Servers with the same description of one share one value.
    delisted: HashMap<(usize, &'a str), Vec<&'a Release>>,
    /// Whether dependencies on the pages of a project (by position) lead to a delisted release. The flag tells whether
    /// that release is all that its own project has.
    leads_to_delisted: HashMap<(usize, *const Release, bool), bool>,
    /// The projects that have a release of this id. Filled when there are several servers.
    projects_by_release: Option<HashMap<&'a str, Vec<usize>>>,
}

impl<'a> EligibilityTable<'a> {
    /// For one request, without running releases of other servers.
    pub(super) fn for_request(catalog: &'a Catalog, now: Timestamp) -> Self {
        Self::new(catalog, now, java::newest_published(catalog, now))
    }

    fn new(catalog: &'a Catalog, now: Timestamp, published: Option<NewestImageJava>) -> Self {
        Self {
            catalog,
            now,
            published,
            cache: HashMap::new(),
            jar_names: HashMap::new(),
            previous: None,
            positions: HashMap::new(),
            delisted: HashMap::new(),
            leads_to_delisted: HashMap::new(),
            projects_by_release: None,
        }
    }

    /// For another request at the same instant, of a server that runs the same releases. Results with equal inputs are
    /// reused.
    pub(super) fn for_changed_request(&'a self) -> Self {
        let after = Self::new(self.catalog, self.now, self.published);
        Self { previous: Some((&self.cache, &self.jar_names)), ..after }
    }

    /// For several requests.
    pub(super) fn for_requests(catalog: &'a Catalog, requests: &[&'a Request], now: Timestamp) -> Self {
        let mut projects_by_release: HashMap<&str, Vec<usize>> = HashMap::new();
        let running = requests.iter().filter_map(|request| request.running.as_ref());
        for id in running.flat_map(|running| &running.releases) {
            projects_by_release.entry(id).or_default();
        }
        if !projects_by_release.is_empty() {
            for (position, project) in catalog.projects.iter().enumerate() {
                for release in &project.releases {
                    if let Some(positions) = projects_by_release.get_mut(release.id.as_str()) {
                        positions.push(position);
                    }
                }
            }
        }
        Self { projects_by_release: Some(projects_by_release), ..Self::for_request(catalog, now) }
    }

    /// The position of a project.
    pub(super) fn find_project(&mut self, key: &'a ProjectKey) -> Option<usize> {
        let catalog = self.catalog;
        *self.positions.entry(key).or_insert_with(|| find_project(catalog, key))
    }

    /// Like `find_project`, but records a project that the catalog does not hold in `gap`: to be fetched, or with the
    /// reason why it could not be read.
    pub(super) fn find_or_record_gap(&mut self, key: &'a ProjectKey, gap: &mut Gap) -> Option<usize> {
        let found = self.find_project(key);
        if found.is_none() {
            match self.catalog.unread_reason(key) {
                Some(because) => drop(gap.unread.insert((key.to_display(), because.to_owned()))),
                None => drop(gap.fetch.insert(key.clone())),
            }
        }
        found
    }

    /// The releases of a project that run on a server, sorted.
    fn running_releases(&self, position: usize, request: &'a Request) -> Vec<&'a str> {
        let (Some(projects_by_release), Some(running)) = (&self.projects_by_release, &request.running) else {
            return Vec::new();
        };
        let of_project = |id: &&str| projects_by_release.get(id).is_some_and(|positions| positions.contains(&position));
        let mut runs: Vec<&str> = running.releases.iter().map(String::as_str).filter(of_project).collect();
        runs.sort_unstable();
        runs
    }

    /// The release of a project that runs on a server and is delisted. Servers with the same description of it share
    /// one value.
    pub(super) fn delisted_release(&mut self, position: usize, running: &'a Running) -> Option<&'a Release> {
        let delisted = running.delisted_release(&self.catalog.projects[position])?;
        let existing = self.delisted.entry((position, &delisted.id)).or_default();
        let same = existing.iter().copied().find(|existing| *existing == delisted);
        Some(same.unwrap_or_else(|| {
            existing.push(delisted);
            delisted
        }))
    }

    /// The running releases that are delisted and that dependencies lead to only for that reason. The dependencies are
    /// those on the pages of the project at `position`, or of its own delisted release that runs.
    fn delisted_targets(
        &mut self,
        position: usize,
        own_delisted: Option<&Release>,
        request: &'a Request,
    ) -> Vec<&'a Release> {
        let Some(running) = request.running.as_ref().filter(|running| !running.delisted.is_empty()) else {
            return Vec::new();
        };
        let catalog = self.catalog;
        let mut found = Vec::new();
        for delisted in &running.delisted {
            let Some(other) = self.find_project(&delisted.project).filter(|other| *other != position) else { continue };
            let Some(delisted) = self.delisted_release(other, running) else { continue };
            let project = &catalog.projects[other];
            let is_all = !has_any_release(project, request.software, None);
            let leads_to = |entry: &Dependency| {
                let mut names = [&entry.project_id, &entry.name].into_iter().flatten();
                entry.version_id.as_ref() == Some(&delisted.id) || is_all && names.any(|name| is_named(project, name))
            };
            let pages = || catalog.projects[position].releases.iter();
            let of_pages = self.leads_to_delisted.entry((position, std::ptr::from_ref(delisted), is_all));
            let of_pages =
                *of_pages.or_insert_with(|| pages().any(|release| release.dependencies.iter().any(leads_to)));
            if of_pages || own_delisted.is_some_and(|own_delisted| own_delisted.dependencies.iter().any(leads_to)) {
                found.push(delisted);
            }
        }
        found
    }

    /// The names declared in the selected JARs of a project.
    pub(super) fn declared_names(&mut self, position: usize, jars: &Jars<'a>) -> Rc<DeclaredNames> {
        let previous = self.previous.and_then(|(_, known_names)| known_names.get(&position));
        let known_names = self.jar_names.entry(position).or_default();
        if let Some((_, declared)) =
            previous.into_iter().flatten().chain(&*known_names).find(|(other, _)| other == jars)
        {
            return Rc::clone(declared);
        }
        let declared = Rc::new(DeclaredNames::from_jars(&self.catalog.projects[position], jars));
        known_names.push((jars.clone(), Rc::clone(&declared)));
        declared
    }

    /// The eligibility of the project at `position` under these rules, for a server that requests `requested` and has
    /// these files.
    pub(super) fn eligibility(
        &mut self,
        position: usize,
        rules: &Rules<'a>,
        (request, requested, files): (&'a Request, &BTreeSet<usize>, &[KnownFile<'a>]),
        (names, declared): (&NameTable, &DeclaredNames),
    ) -> Rc<ProjectEligibility<'a>> {
        let available_java = AvailableJava::from_request(request, self.published);
        let (project, running) = (&self.catalog.projects[position], request.running.as_ref());
        let context = BoundContext::new(request, requested, rules.requires).with_files(files);
        let facts = !files.is_empty() || context.depends_on_server(project);
        let delisted = running.and_then(|running| self.delisted_release(position, running));
        let delisted_targets =
            self.delisted_targets(position, delisted, request).into_iter().map(std::ptr::from_ref).collect::<Vec<_>>();
        let leads_to_delisted = !delisted_targets.is_empty();
        let key = EligibilityCacheKey {
            rules: rules.clone(),
            available_java,
            runs: self.running_releases(position, request),
            delisted: delisted.map(std::ptr::from_ref),
            other_project: other_project(request, project),
            delisted_targets,
            dependency_policy: (request.dependencies != Dependencies::Install)
                .then(|| (request.dependencies, requested.clone())),
            facts: facts.then(|| (&request.facts, requested.clone())),
            names: names.resolve(declared),
            files: files.to_vec(),
        };
        let previous = self.previous.and_then(|(cache, _)| cache.get(&position));
        let existing = self.cache.entry(position).or_default();
        if let Some((_, eligibility)) =
            previous.into_iter().flatten().chain(&*existing).find(|(other, _)| *other == key)
        {
            return Rc::clone(eligibility);
        }
        let other_project = key.other_project;
        let at = EligibilityFor { request, requested, files, names, available_java, context, delisted, other_project };
        let eligibility = determine_eligibility(self.catalog, self.now, position, rules, at);
        let eligibility = Rc::new(ProjectEligibility { leads_to_delisted, ..eligibility });
        existing.push((key, Rc::clone(&eligibility)));
        eligibility
    }
}

/// The server for which the eligibility of a project is determined.
#[derive(Clone, Copy)]
struct EligibilityFor<'x, 'a> {
    request: &'x Request,
    requested: &'x BTreeSet<usize>,
    files: &'x [KnownFile<'x>],
    names: &'x NameTable,
    available_java: AvailableJava<'x>,
    context: BoundContext<'x>,
    delisted: Option<&'a Release>,
    other_project: Option<&'x str>,
}

/// The id of the running project, if the slug of `project` led to that one before. `None` if a Plugin names one of the
/// two by its id, which decides.
pub(crate) fn other_project<'r>(request: &'r Request, project: &Project) -> Option<&'r str> {
    let runs = request.running.as_ref()?.other_project_id(project)?;
    let mut named = request.plugins.iter().map(|plugin_request| &plugin_request.key);
    let is_decided = named
        .any(|key| key.source == project.key.source && [project.id.as_str(), runs].contains(&key.project.as_str()));
    (!is_decided).then_some(runs)
}

fn determine_eligibility<'a>(
    catalog: &'a Catalog,
    now: Timestamp,
    position: usize,
    rules: &Rules<'_>,
    at: EligibilityFor<'_, 'a>,
) -> ProjectEligibility<'a> {
    let EligibilityFor { request, requested, files, names, available_java, context, delisted, other_project } = at;
    let running = request.running.as_ref();
    let eligible = eligible_releases(&catalog.projects[position], rules, available_java, now, (running, delisted));
    let (mut required, mut gap) = (BTreeSet::new(), Gap::default());
    let floor = downgrade_floor(&eligible, rules, (running, delisted));
    let runs_now = |release: &Release| running.is_some_and(|running| running.runs_release(release));
    // Few plugins are held, and the running release is searched only for those.
    let held = rules.hold.and_then(|(object, by)| {
        let (at, _) = eligible.releases.iter().rfind(|(release, _)| runs_now(release))?;
        Some(Unusable::Held { at: at.version.clone(), object: object.to_owned(), by })
    });
    let all: Vec<&Release> = eligible.releases.iter().map(|(release, _)| *release).collect();
    let conflicts = identified_jars::file_conflicts((catalog, now), position, &all, files, &context);
    let releases = eligible.releases.into_iter().zip(conflicts).enumerate();
    let releases = releases.map(|(at, ((release, mut unusable), conflict))| {
        let mut missing_at_source = Vec::new();
        let runs = runs_now(release);
        let exempt = runs || rules.pin.is_some_and(|pin| is_pinned(&release.version, pin));
        if let Some(other) = other_project.filter(|_| !runs) {
            let Project { key, id, .. } = &catalog.projects[position];
            unusable = Some(Unusable::OtherProject { project: key.clone(), runs: other.to_owned(), is: id.clone() });
        }
        if !exempt && matches!(unusable, None | Some(Unusable::Delayed { .. })) {
            unusable = delay_groups::companion_delay(catalog, release, rules, now).or(unusable);
        }
        // Checked after the policy, so that removing the hold shows the next reason.
        if !runs && unusable.is_none() {
            unusable.clone_from(&held);
        }
        if unusable.is_none() {
            unusable = conflict;
        }
        // Checked last, so that allowing the downgrade is enough to get the release.
        if !exempt && unusable.is_none() {
            let than = floor.as_ref().and_then(|floor| floor.downgrade_from(at, release));
            unusable = than.map(|than| Unusable::Older { than: than.to_owned() });
        }
        if unusable.is_none() {
            unusable = collect_dependencies(
                required_targets(catalog, names, position, (release, &rules.jars), &context),
                DependencyContext { catalog, request, runs, requested, files },
                &mut required,
                &mut missing_at_source,
                &mut gap,
            );
        }
        Candidate { release, unusable, missing_at_source }
    });
    let releases = Rc::new(releases.collect());
    ProjectEligibility { channel: eligible.channel, releases, required, gap, leads_to_delisted: false }
}

#[derive(Clone, Copy)]
pub(crate) struct DependencyContext<'x> {
    pub(super) catalog: &'x Catalog,
    pub(super) request: &'x Request,
    pub(super) runs: bool,
    pub(super) requested: &'x BTreeSet<usize>,
    pub(super) files: &'x [KnownFile<'x>],
}

/// Records the required dependencies of one release. Returns why the release cannot be used if a target of them is
/// unavailable.
pub(crate) fn collect_dependencies(
    targets: Vec<DependencyTarget>,
    at: DependencyContext<'_>,
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
