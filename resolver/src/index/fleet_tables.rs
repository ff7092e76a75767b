//! Pure. Builds the tables that all servers of a fleet share, and the view of each server on them.
//!
//! A [`super::CandidateIndex`] is built for one server and can explain its results. A thousand of them would not fit
//! into memory. Here, each project numbers its releases once for all servers, and eligibility that two servers have in
//! common is stored once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use jiff::Timestamp;
use pubgrub::VersionSet;

use super::dependency_closure::{self, Gap};
use super::dependency_edges::{Dependents, links, supports};
use super::eligibility::{is_pinned, listed, place_among};
use super::eligibility_cache::{EligibilityTable, ProjectEligibility};
use super::jar_selection::Jars;
use super::java::AvailableJava;
use super::listed_versions::{ListingPolicy, ListingReader};
use super::provided_names::NameTable;
use super::version_bounds::BoundContext;
use super::{Candidate, Edge, paper_candidates};
use crate::catalog::{Catalog, Release};
use crate::compatibility_facts::{UsedFact, VersionFact};
use crate::known_constraints::UserConstraint;
use crate::request::{PaperRequest, Request, Running};
use crate::software::Software;
use crate::solve::index_set::IndexSet;
use crate::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::version::Minecraft;

/// Data that does not depend on a single server.
pub(crate) struct SharedTables<'a> {
    /// By the position of the project in the catalog.
    pub(crate) projects: BTreeMap<usize, ListingTable<'a>>,
    pub(crate) sheets: Vec<SharedEligibility>,
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
    pub(crate) links: Vec<Vec<Edge>>,
}

impl ListingTable<'_> {
    /// The index of a release of the project.
    pub(crate) fn index_of(&self, release: &Release) -> Option<usize> {
        place_among(release, self.releases.iter().copied()).map(|place| place + 1)
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
    pub(crate) shelves: Vec<PluginView<'a>>,
    /// Whether data is missing that its request needs.
    pub(crate) gap: bool,
}

/// One plugin on one server.
#[derive(Clone)]
pub(crate) struct PluginView<'a> {
    pub(crate) project: usize,
    pub(crate) sheet: usize,
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
    pub(crate) named: Option<SharedLinks>,
    /// The selected JARs, if any that was read requires others by name.
    asks: Option<Jars<'a>>,
    /// Whether dependencies on its pages lead to running releases that are delisted.
    leads_to_lost: bool,
    /// Constraints of its Plugin object on its own versions and on those of other plugins.
    pub(crate) requires: Option<UserConstraint<'a>>,
    /// Releases that count as running on every Paper version: the running ones, under strategy `latest` of the server.
    pub(crate) stays: IndexSet,
}

impl ServerView<'_> {
    /// The position of a project's view.
    pub(crate) fn shelf_of(&self, project: usize) -> Option<usize> {
        self.shelves.iter().position(|place| place.project == project)
    }
}

/// All inputs from a server that its Paper versions depend on.
type PaperCacheKey<'a> = (
    &'a PaperRequest,
    jiff::SignedDuration,
    crate::catalog::BuildChannel,
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

struct PlaceCursor<'a> {
    catalog: &'a Catalog,
    now: Timestamp,
    judgements: EligibilityTable<'a>,
    running: HashSet<&'a str>,
    /// The state of the servers that run delisted releases.
    losers: Vec<&'a Running>,
    projects: BTreeMap<usize, ListingTable<'a>>,
    sheets: Vec<(usize, SharedEligibility)>,
    /// By the address of the eligibility, which `judgements` keeps alive, and the list of Paper versions.
    sheet_of: HashMap<(*const ProjectEligibility<'a>, usize), usize>,
    papers: Vec<(Vec<Minecraft>, ListingPolicy, ListingReader)>,
    opened: Vec<(PaperCacheKey<'a>, usize, IndexSet)>,
    /// The owners of names, for each server view.
    names: Vec<NameTable>,
}

impl<'a> SharedTables<'a> {
    /// Reads the catalog for these servers and returns one view for each, in the same order.
    pub(crate) fn read(catalog: &'a Catalog, requests: &[&'a Request], now: Timestamp) -> (Self, Vec<ServerView<'a>>) {
        let running = requests.iter().filter_map(|request| request.running.as_ref());
        let mut desk = PlaceCursor {
            catalog,
            now,
            judgements: EligibilityTable::of_many(catalog, requests, now),
            losers: running.clone().filter(|running| !running.lost.is_empty()).collect(),
            running: running.flat_map(|running| &running.releases).map(String::as_str).collect(),
            projects: BTreeMap::new(),
            sheets: Vec::new(),
            sheet_of: HashMap::new(),
            papers: Vec::new(),
            opened: Vec::new(),
            names: Vec::new(),
        };
        let mut seats: Vec<ServerView<'a>> = requests.iter().map(|request| desk.seat(request)).collect();
        desk.link(&mut seats);
        let PlaceCursor { projects, sheets, papers, .. } = desk;
        let tables = Self {
            projects,
            sheets: sheets.into_iter().map(|(_, sheet)| sheet).collect(),
            papers: papers.into_iter().map(|(list, _, _)| list).collect(),
        };
        (tables, seats)
    }
}

impl<'a> PlaceCursor<'a> {
    fn seat(&mut self, request: &'a Request) -> ServerView<'a> {
        let (papers, open) = self.open(request);
        let mut gap = Gap::default();
        let stock = dependency_closure::stock(&mut self.judgements, request, &mut Vec::new(), &mut gap);
        self.names.push(stock.names);
        let shelves = stock.members.into_iter().map(|member| {
            let sheet = self.sheet(&member, papers);
            let usable = &self.sheets[sheet].1.usable;
            let domain = match (&member.asked, member.rules.pin) {
                (None, _) if member.kept_for.is_empty() => usable.union(&IndexSet::absent()),
                (None, _) | (Some(_), None) => usable.clone(),
                (Some(_), Some(pin)) => {
                    let releases = self.projects[&member.place].releases.iter().enumerate();
                    let pinned = releases.filter(|(_, release)| is_pinned(&release.version, pin));
                    IndexSet::of(pinned.map(|(at, _)| at + 1)).intersection(usable)
                }
            };
            PluginView {
                project: member.place,
                sheet,
                object: member.asked.as_ref().map(|asked| asked.objects[0]),
                latest: member.asked.map(|asked| asked.latest).unwrap_or_default(),
                domain,
                named: None,
                asks: member.spoken.asks().then_some(member.rules.jars),
                leads_to_lost: member.judged.leads_to_lost,
                requires: member.rules.requires,
                stays: IndexSet::empty(),
            }
        });
        let shelves = shelves.collect();
        ServerView { request, papers, open, shelves, gap: gap != Gap::default() }
    }

    fn open(&mut self, request: &'a Request) -> (usize, IndexSet) {
        let basis = (
            &request.paper,
            request.delay,
            request.channel,
            request.floor.as_ref(),
            request.running.as_ref().map(|running| (running.software, &running.minecraft, running.build)),
            request.image.as_deref(),
            AvailableJava::of(request, self.judgements.published),
            ListingPolicy::of(request),
            (request.unmanaged.as_slice(), request.unmanaged_plugins),
        );
        if let Some((_, list, open)) = self.opened.iter().find(|(other, _, _)| *other == basis) {
            return (*list, open.clone());
        }
        let candidates = paper_candidates::candidates(self.catalog, request, self.now);
        let list: Vec<Minecraft> = candidates.iter().map(|paper| paper.version.minecraft.clone()).collect();
        let policy = ListingPolicy::of(request);
        let known = self.papers.iter().position(|(other, of, _)| *other == list && *of == policy);
        let at = known.unwrap_or_else(|| {
            let papers = candidates.iter().map(|paper| paper.version);
            let built = paper_candidates::built(
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
        let open = paper_candidates::wished(&candidates, &request.paper)
            .intersection(&IndexSet::of(usable.map(|(at, _)| at + 1)));
        self.opened.push((basis, at, open.clone()));
        (at, open)
    }

    fn sheet(&mut self, member: &dependency_closure::ClosureMember<'a>, papers: usize) -> usize {
        let key = (Rc::as_ptr(&member.judged), papers);
        if let Some(&sheet) = self.sheet_of.get(&key) {
            return sheet;
        }
        let (running, losers, judgements) = (&self.running, &self.losers, &mut self.judgements);
        let listing = self.projects.entry(member.place).or_insert_with(|| {
            let runs = |release: &Release| running.contains(release.id.as_str());
            // Servers with the same description of a delisted release share one value. The shared eligibility keeps
            // other servers from using it.
            let mut seen = HashSet::new();
            let lost = losers.iter().filter_map(|running| judgements.lost(member.place, running));
            let lost = lost.filter(|lost| seen.insert(std::ptr::from_ref(*lost)));
            let releases = listed(member.project, self.now, runs, lost);
            ListingTable { name: &member.project.name, releases, links: Vec::new() }
        });
        let judged = &member.judged.releases;
        let (_, _, reader) = &self.papers[papers];
        let mut supports = supports(judged, (member.project.key.source, &member.rules), reader);
        let may = |judged: &Candidate<'_>| judged.unusable.is_none();
        let mut usable = IndexSet::of(judged.iter().enumerate().filter(|(_, j)| may(j)).map(|(at, _)| at + 1));
        let same = |(judged, listed): (&Candidate<'_>, &&Release)| std::ptr::eq(judged.release, *listed);
        if judged.len() != listing.releases.len() || !judged.iter().zip(&listing.releases).all(same) {
            // The common numbering contains releases that run on another server and are not published yet for this one.
            let numbers: HashMap<*const Release, usize> = listing
                .releases
                .iter()
                .enumerate()
                .map(|(at, release)| (std::ptr::from_ref(*release), at + 1))
                .collect();
            let number = |index: usize| numbers.get(&std::ptr::from_ref(judged[index - 1].release)).copied();
            let common = |set: &IndexSet| IndexSet::of(set.members(1, judged.len()).filter_map(number));
            supports = supports.iter().map(common).collect();
            usable = common(&usable);
        }
        // Many Paper versions share one set of releases. Most of these versions have the empty set.
        let mut shared: Vec<IndexSet> = Vec::new();
        let supports = supports.iter().map(|set| {
            let set = set.intersection(&usable);
            if let Some(known) = shared.iter().find(|known| **known == set) {
                return known.clone();
            }
            shared.push(set.clone());
            set
        });
        let supports = supports.collect();
        self.sheets.push((member.place, SharedEligibility { usable, supports }));
        self.sheet_of.insert(key, self.sheets.len() - 1);
        self.sheets.len() - 1
    }

    /// Fills in the edges of the usable releases.
    fn link(&mut self, seats: &mut [ServerView<'_>]) {
        let mut usable: BTreeMap<usize, IndexSet> = BTreeMap::new();
        for (project, sheet) in &self.sheets {
            let all = usable.entry(*project).or_insert_with(IndexSet::empty);
            *all = all.union(&sheet.usable);
        }
        let peers: BTreeMap<usize, Dependents<'a>> = self
            .projects
            .iter()
            .map(|(&project, listing)| (project, Dependents::new(listing.releases.clone())))
            .collect();
        let there = |project: usize| peers.get(&project).map(|peers| (project, peers));
        for (project, listing) in &mut self.projects {
            let usable = usable.get(project);
            let asks = listing.releases.iter().enumerate().map(|(at, release)| {
                let usable = usable.is_some_and(|usable| usable.has(at + 1));
                if !usable {
                    return Vec::new();
                }
                links(self.catalog, *project, (release, Vec::new()), &BoundContext::NOBODY, &there)
            });
            listing.links = asks.collect();
        }
        // Servers with the same facts, plugins and rules have the same edges. They are stored once, by shared
        // eligibility.
        let mut shared: HashMap<usize, Vec<(FactCacheKey<'_>, SharedLinks)>> = HashMap::new();
        for (seat, names) in seats.iter_mut().zip(&self.names) {
            let request = seat.request;
            let asked: BTreeSet<usize> =
                seat.shelves.iter().filter(|place| place.object.is_some()).map(|place| place.project).collect();
            for place in &mut seat.shelves {
                let facing = BoundContext::of(request, &asked, place.requires);
                let facts = facing.mentions(&self.catalog.projects[place.project]);
                let facts = facts || facing.guesses(&self.catalog.projects[place.project]);
                let page = place.asks.is_some() || place.leads_to_lost || !request.software.is_paper();
                if !facts && !page {
                    continue;
                }
                let basis = facts.then(|| {
                    let running = request.running.iter();
                    let running = running.flat_map(|running| facing.running(self.catalog, running, place.project));
                    (place.requires, request.facts.all(), asked.clone(), running.collect())
                });
                let known = shared.entry(place.sheet).or_default();
                if let Some((_, links)) = known.iter().find(|(other, _)| *other == basis) {
                    place.named = Some(Rc::clone(links));
                    continue;
                }
                let usable = &self.sheets[place.sheet].1.usable;
                let asks = peers[&place.project].releases.iter().enumerate().map(|(at, release)| {
                    if !usable.has(at + 1) {
                        return Vec::new();
                    }
                    let asks = place.asks.iter();
                    let asks =
                        asks.flat_map(|jars| names.asked_by(self.catalog, place.project, (release, jars), &facing));
                    links(self.catalog, place.project, (release, asks.collect()), &facing, &there)
                });
                let links = Rc::new(asks.collect::<Vec<_>>());
                place.named = Some(Rc::clone(&links));
                known.push((basis, links));
            }
        }
    }
}

impl SharedTables<'_> {
    /// The edges of a release (given by its index, empty for 0) of a plugin on a server.
    pub(crate) fn links<'x>(&'x self, place: &'x PluginView<'_>, index: usize) -> &'x [Edge] {
        let links = place.named.as_deref().unwrap_or_else(|| &self.projects[&place.project].links);
        index.checked_sub(1).and_then(|at| links.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The fact behind an edge of a release (given by its index) of a plugin on a server, as a self-contained value.
    pub(crate) fn fact(&self, place: &PluginView<'_>, index: usize, link: &Edge) -> Option<UsedFact> {
        let (range, says) = link.fact.as_deref()?;
        let from = &self.projects[&place.project];
        Some(UsedFact {
            plugin: from.name.to_owned(),
            version: from.releases[index - 1].version.clone(),
            needs: self.projects[&link.to].name.to_owned(),
            range: range.clone(),
            says: says.clone(),
        })
    }
}
