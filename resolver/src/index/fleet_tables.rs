//! Pure. Builds the tables that all servers of a fleet share, and the view of each server on them.
//!
//! A [`super::CandidateIndex`] is built for one server and can explain its results. A thousand of them would not fit
//! into memory. Here, each project numbers its releases once for all servers, and eligibility that two servers have in
//! common is stored once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use jiff::Timestamp;
use pubgrub::VersionSet;

use super::candidates::{Candidate, Edge};
use super::dependency_edges::{DependencyReleases, release_edges, supports};
use super::eligibility::{considered_releases, is_pinned, position_among};
use super::eligibility_cache::{EligibilityTable, ProjectEligibility};
use super::jar_selection::Jars;
use super::java::AvailableJava;
use super::known_constraints::UserConstraint;
use super::listed_versions::{ListingPolicy, ListingReader};
use super::provided_names::NameTable;
use super::version_bounds::BoundContext;
use super::{dependency_closure, paper_candidates};
use crate::index::index_set::IndexSet;
use crate::model::catalog::{Catalog, Release};
use crate::model::compatibility_facts::{UsedFact, VersionFact};
use crate::model::gap::Gap;
use crate::model::request::{PaperRequest, Request, Running};
use crate::model::software::Software;
use crate::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::model::version::Minecraft;

/// Data that does not depend on a single server.
pub(crate) struct SharedTables<'a> {
    /// By the position of the project in the catalog.
    pub(crate) projects: BTreeMap<usize, ListingTable<'a>>,
    pub(crate) eligibilities: Vec<SharedEligibility>,
    /// Each list of Paper versions that a server sees, oldest first, once for each listing policy. There is almost
    /// always only one.
    pub(crate) papers: Vec<Vec<Minecraft>>,
}

/// The releases of a project, oldest first (the index is the position plus 1), and the edges of each usable one.
/// [`Edge::to`] is the position of a project in the catalog.
pub(crate) struct ListingTable<'a> {
    /// The display name.
    pub(crate) name: &'a str,
    pub(crate) releases: Vec<&'a Release>,
    pub(crate) edges: Vec<Vec<Edge>>,
}

impl ListingTable<'_> {
    /// The index of a release of the project.
    pub(crate) fn index_of(&self, release: &Release) -> Option<usize> {
        position_among(release, self.releases.iter().copied()).map(|position| position + 1)
    }
}

/// The eligibility of a project for all servers with the same rules.
pub(crate) struct SharedEligibility {
    /// Releases that may be used.
    pub(crate) usable: IndexSet,
    /// Per Paper version, the usable releases that are known to run on it.
    pub(crate) supports: Vec<IndexSet>,
}

/// One server's view of the shared tables.
#[derive(Clone)]
pub(crate) struct ServerView<'a> {
    pub(crate) request: &'a Request,
    /// The list of Paper versions. The index in the solver is the position plus 1.
    pub(crate) papers: usize,
    /// The Paper versions it can choose from.
    pub(crate) open: IndexSet,
    /// The plugins, in the order of its [`super::CandidateIndex`].
    pub(crate) plugins: Vec<PluginView<'a>>,
    /// Whether data is missing that its request needs.
    pub(crate) gap: bool,
}

/// One plugin on one server.
#[derive(Clone)]
pub(crate) struct PluginView<'a> {
    pub(crate) project: usize,
    pub(crate) eligibility: usize,
    /// The first of the Plugin objects that request it. `None` if only other plugins need it.
    pub(crate) object: Option<&'a str>,
    /// The Plugin objects that want one release on all their servers, by name.
    pub(crate) latest: Vec<&'a str>,
    /// The releases left to choose from. If it contains 0, the plugin need not be installed.
    pub(crate) domain: IndexSet,
    /// The edges of its releases, if they may differ between servers. That is so in four cases:
    ///
    /// - A JAR that was read declares names.
    /// - Facts apply that are not built in.
    /// - Its page leads to running releases that are delisted.
    /// - The software is not Paper.
    pub(crate) server_edges: Option<SharedLinks>,
    /// The selected JARs, if any that was read requires others by name.
    jars_with_requirements: Option<Jars<'a>>,
    /// Whether dependencies on its pages lead to running releases that are delisted.
    leads_to_delisted: bool,
    /// Constraints of its Plugin object on its own versions and on those of other plugins.
    pub(crate) requires: Option<UserConstraint<'a>>,
    /// Releases that count as running on every Paper version: the running ones, under strategy `latest` of the server.
    pub(crate) retained: IndexSet,
}

impl ServerView<'_> {
    /// The position of a project's view.
    pub(crate) fn position_of(&self, project: usize) -> Option<usize> {
        self.plugins.iter().position(|plugin_view| plugin_view.project == project)
    }
}

/// All inputs from a server that its Paper versions depend on.
type PaperCacheKey<'a> = (
    &'a PaperRequest,
    jiff::SignedDuration,
    crate::model::catalog::BuildChannel,
    Option<&'a Minecraft>,
    Option<(Software, &'a Minecraft, u32)>,
    Option<&'a str>,
    AvailableJava<'a>,
    ListingPolicy,
    (&'a [UnmanagedJar], UnmanagedPlugins),
);

/// The inputs of the edges of a plugin, for one shared eligibility, if facts apply:
///
/// - The constraints of its Plugin object and the facts of the cluster.
/// - The requested projects, because names resolve to them first.
/// - The running releases, because some facts do not separate them.
///
/// The shared eligibility covers the meaning of names in JARs.
type FactCacheKey<'a> = Option<(Option<UserConstraint<'a>>, &'a [VersionFact], BTreeSet<usize>, Vec<&'a str>)>;

/// The edges of each release, shared by servers with the same edges.
type SharedLinks = Rc<Vec<Vec<Edge>>>;

struct SharedTablesBuilder<'a> {
    catalog: &'a Catalog,
    now: Timestamp,
    eligibility_table: EligibilityTable<'a>,
    running: HashSet<&'a str>,
    /// The state of the servers that run delisted releases.
    with_delisted: Vec<&'a Running>,
    projects: BTreeMap<usize, ListingTable<'a>>,
    eligibilities: Vec<(usize, SharedEligibility)>,
    /// By the address of the eligibility, which `eligibility_table` keeps alive, and the list of Paper versions.
    eligibility_of: HashMap<(*const ProjectEligibility<'a>, usize), usize>,
    papers: Vec<(Vec<Minecraft>, ListingPolicy, ListingReader)>,
    open_papers: Vec<(PaperCacheKey<'a>, usize, IndexSet)>,
    /// The owners of names, for each server view.
    names: Vec<NameTable>,
}

impl<'a> SharedTables<'a> {
    /// Reads the catalog for these servers and returns one view for each, in the same order.
    pub(crate) fn read(catalog: &'a Catalog, requests: &[&'a Request], now: Timestamp) -> (Self, Vec<ServerView<'a>>) {
        let running = requests.iter().filter_map(|request| request.running.as_ref());
        let mut builder = SharedTablesBuilder {
            catalog,
            now,
            eligibility_table: EligibilityTable::for_requests(catalog, requests, now),
            with_delisted: running.clone().filter(|running| !running.delisted.is_empty()).collect(),
            running: running.flat_map(|running| &running.releases).map(String::as_str).collect(),
            projects: BTreeMap::new(),
            eligibilities: Vec::new(),
            eligibility_of: HashMap::new(),
            papers: Vec::new(),
            open_papers: Vec::new(),
            names: Vec::new(),
        };
        let mut views: Vec<ServerView<'a>> = requests.iter().map(|request| builder.add_server(request)).collect();
        builder.add_edges(&mut views);
        let SharedTablesBuilder { projects, eligibilities, papers, .. } = builder;
        let tables = Self {
            projects,
            eligibilities: eligibilities.into_iter().map(|(_, eligibility)| eligibility).collect(),
            papers: papers.into_iter().map(|(list, _, _)| list).collect(),
        };
        (tables, views)
    }
}

impl<'a> SharedTablesBuilder<'a> {
    fn add_server(&mut self, request: &'a Request) -> ServerView<'a> {
        let (papers, open) = self.select_papers(request);
        let mut gap = Gap::default();
        let closure =
            dependency_closure::compute_closure(&mut self.eligibility_table, request, &mut Vec::new(), &mut gap);
        self.names.push(closure.names);
        let plugins = closure.members.into_iter().map(|member| {
            let eligibility = self.add_eligibility(&member, papers);
            let usable = &self.eligibilities[eligibility].1.usable;
            let domain = match (&member.requested_by, member.rules.pin) {
                (None, _) if member.unmanaged_dependents.is_empty() => usable.union(&IndexSet::absent()),
                (None, _) | (Some(_), None) => usable.clone(),
                (Some(_), Some(pin)) => {
                    let releases = self.projects[&member.position].releases.iter().enumerate();
                    let pinned = releases.filter(|(_, release)| is_pinned(&release.version, pin));
                    IndexSet::from_indexes(pinned.map(|(at, _)| at + 1)).intersection(usable)
                }
            };
            PluginView {
                project: member.position,
                eligibility,
                object: member.requested_by.as_ref().map(|requested_by| requested_by.objects[0]),
                latest: member.requested_by.map(|requested_by| requested_by.latest).unwrap_or_default(),
                domain,
                server_edges: None,
                jars_with_requirements: member.declared.has_requirements().then_some(member.rules.jars),
                leads_to_delisted: member.eligibility.leads_to_delisted,
                requires: member.rules.requires,
                retained: IndexSet::empty(),
            }
        });
        let plugins = plugins.collect();
        ServerView { request, papers, open, plugins, gap: gap != Gap::default() }
    }

    fn select_papers(&mut self, request: &'a Request) -> (usize, IndexSet) {
        let key = (
            &request.paper,
            request.delay,
            request.channel,
            request.floor.as_ref(),
            request.running.as_ref().map(|running| (running.software, &running.minecraft, running.build)),
            request.image.as_deref(),
            AvailableJava::from_request(request, self.eligibility_table.published),
            ListingPolicy::from_request(request),
            (request.unmanaged.as_slice(), request.unmanaged_plugins),
        );
        if let Some((_, list, open)) = self.open_papers.iter().find(|(other, _, _)| *other == key) {
            return (*list, open.clone());
        }
        let candidates = paper_candidates::candidates(self.catalog, request, self.now);
        let list: Vec<Minecraft> = candidates.iter().map(|paper| paper.version.minecraft.clone()).collect();
        let policy = ListingPolicy::from_request(request);
        let existing = self.papers.iter().position(|(other, of, _)| *other == list && *of == policy);
        let at = existing.unwrap_or_else(|| {
            let papers = candidates.iter().map(|paper| paper.version);
            let built = paper_candidates::built_versions(
                self.catalog,
                candidates.iter().map(|paper| paper.version),
                policy.software,
                self.now,
            );
            let reader = ListingReader::new(papers, policy, &built);
            self.papers.push((list, policy, reader));
            self.papers.len() - 1
        });
        let usable = candidates.iter().enumerate().filter(|(_, paper)| paper.unusable.is_none());
        let open = paper_candidates::requested_indexes(&candidates, &request.paper)
            .intersection(&IndexSet::from_indexes(usable.map(|(at, _)| at + 1)));
        self.open_papers.push((key, at, open.clone()));
        (at, open)
    }

    fn add_eligibility(&mut self, member: &dependency_closure::ClosureMember<'a>, papers: usize) -> usize {
        let key = (Rc::as_ptr(&member.eligibility), papers);
        if let Some(&eligibility) = self.eligibility_of.get(&key) {
            return eligibility;
        }
        let (running, with_delisted, eligibility_table) =
            (&self.running, &self.with_delisted, &mut self.eligibility_table);
        let listing = self.projects.entry(member.position).or_insert_with(|| {
            let runs = |release: &Release| running.contains(release.id.as_str());
            // Servers with the same description of a delisted release share one value. The shared eligibility keeps
            // other servers from using it.
            let mut visited = HashSet::new();
            let delisted =
                with_delisted.iter().filter_map(|running| eligibility_table.delisted_release(member.position, running));
            let delisted = delisted.filter(|delisted| visited.insert(std::ptr::from_ref(*delisted)));
            let releases = considered_releases(member.project, self.now, runs, delisted);
            ListingTable { name: &member.project.name, releases, edges: Vec::new() }
        });
        let candidates = &member.eligibility.releases;
        let (_, _, reader) = &self.papers[papers];
        let mut supports = supports(candidates, (member.project.key.source, &member.rules), reader);
        let may = |candidate: &Candidate<'_>| candidate.unusable.is_none();
        let mut usable =
            IndexSet::from_indexes(candidates.iter().enumerate().filter(|(_, j)| may(j)).map(|(at, _)| at + 1));
        let same = |(candidate, listed): (&Candidate<'_>, &&Release)| std::ptr::eq(candidate.release, *listed);
        if candidates.len() != listing.releases.len() || !candidates.iter().zip(&listing.releases).all(same) {
            // The common numbering contains releases that run on another server and are not published yet for this one.
            let numbers: HashMap<*const Release, usize> = listing
                .releases
                .iter()
                .enumerate()
                .map(|(at, release)| (std::ptr::from_ref(*release), at + 1))
                .collect();
            let number = |index: usize| numbers.get(&std::ptr::from_ref(candidates[index - 1].release)).copied();
            let common = |set: &IndexSet| IndexSet::from_indexes(set.members(1, candidates.len()).filter_map(number));
            supports = supports.iter().map(common).collect();
            usable = common(&usable);
        }
        // Many Paper versions share one set of releases. Most of these versions have the empty set.
        let mut shared: Vec<IndexSet> = Vec::new();
        let supports = supports.iter().map(|set| {
            let set = set.intersection(&usable);
            if let Some(existing) = shared.iter().find(|existing| **existing == set) {
                return existing.clone();
            }
            shared.push(set.clone());
            set
        });
        let supports = supports.collect();
        self.eligibilities.push((member.position, SharedEligibility { usable, supports }));
        self.eligibility_of.insert(key, self.eligibilities.len() - 1);
        self.eligibilities.len() - 1
    }

    /// Fills in the edges of the usable releases.
    fn add_edges(&mut self, views: &mut [ServerView<'_>]) {
        let mut usable: BTreeMap<usize, IndexSet> = BTreeMap::new();
        for (project, eligibility) in &self.eligibilities {
            let all = usable.entry(*project).or_insert_with(IndexSet::empty);
            *all = all.union(&eligibility.usable);
        }
        let dependents: BTreeMap<usize, DependencyReleases<'a>> = self
            .projects
            .iter()
            .map(|(&project, listing)| (project, DependencyReleases::new(listing.releases.clone())))
            .collect();
        let find_dependency = |project: usize| dependents.get(&project).map(|dependents| (project, dependents));
        for (project, listing) in &mut self.projects {
            let usable = usable.get(project);
            let edges = listing.releases.iter().enumerate().map(|(at, release)| {
                let usable = usable.is_some_and(|usable| usable.has(at + 1));
                if !usable {
                    return Vec::new();
                }
                release_edges(self.catalog, *project, (release, Vec::new()), &BoundContext::BUILT_IN, &find_dependency)
            });
            listing.edges = edges.collect();
        }
        // Servers with the same facts, plugins and rules have the same edges. They are stored once, by shared
        // eligibility.
        let mut shared: HashMap<usize, Vec<(FactCacheKey<'_>, SharedLinks)>> = HashMap::new();
        for (view, names) in views.iter_mut().zip(&self.names) {
            let request = view.request;
            let requested: BTreeSet<usize> = view
                .plugins
                .iter()
                .filter(|plugin_view| plugin_view.object.is_some())
                .map(|plugin_view| plugin_view.project)
                .collect();
            for plugin_view in &mut view.plugins {
                let context = BoundContext::new(request, &requested, plugin_view.requires);
                let facts = context.depends_on_server(&self.catalog.projects[plugin_view.project]);
                let facts = facts || context.has_running_guess(&self.catalog.projects[plugin_view.project]);
                let page = plugin_view.jars_with_requirements.is_some()
                    || plugin_view.leads_to_delisted
                    || !request.software.is_paper();
                if !facts && !page {
                    continue;
                }
                let key = facts.then(|| {
                    let running = request.running.iter();
                    let running =
                        running.flat_map(|running| context.running_ids(self.catalog, running, plugin_view.project));
                    (plugin_view.requires, request.facts.all(), requested.clone(), running.collect())
                });
                let existing = shared.entry(plugin_view.eligibility).or_default();
                if let Some((_, edges)) = existing.iter().find(|(other, _)| *other == key) {
                    plugin_view.server_edges = Some(Rc::clone(edges));
                    continue;
                }
                let usable = &self.eligibilities[plugin_view.eligibility].1.usable;
                let edges = dependents[&plugin_view.project].releases.iter().enumerate().map(|(at, release)| {
                    if !usable.has(at + 1) {
                        return Vec::new();
                    }
                    let targets = plugin_view.jars_with_requirements.iter();
                    let targets = targets.flat_map(|jars| {
                        names.required_targets(self.catalog, plugin_view.project, (release, jars), &context)
                    });
                    release_edges(
                        self.catalog,
                        plugin_view.project,
                        (release, targets.collect()),
                        &context,
                        &find_dependency,
                    )
                });
                let edges = Rc::new(edges.collect::<Vec<_>>());
                plugin_view.server_edges = Some(Rc::clone(&edges));
                existing.push((key, edges));
            }
        }
    }
}

impl SharedTables<'_> {
    /// The edges of a release (given by its index, empty for 0) of a plugin on a server.
    pub(crate) fn edges<'x>(&'x self, plugin_view: &'x PluginView<'_>, index: usize) -> &'x [Edge] {
        let edges = plugin_view.server_edges.as_deref().unwrap_or_else(|| &self.projects[&plugin_view.project].edges);
        index.checked_sub(1).and_then(|at| edges.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The fact behind an edge of a release (given by its index) of a plugin on a server, as a self-contained value.
    pub(crate) fn fact(&self, plugin_view: &PluginView<'_>, index: usize, edge: &Edge) -> Option<UsedFact> {
        let (range, source) = edge.fact.as_deref()?;
        let from = &self.projects[&plugin_view.project];
        Some(UsedFact {
            plugin: from.name.to_owned(),
            version: from.releases[index - 1].version.clone(),
            needs: self.projects[&edge.to].name.to_owned(),
            range: range.clone(),
            says: source.clone(),
        })
    }
}
