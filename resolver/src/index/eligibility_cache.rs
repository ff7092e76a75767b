//! Pure. Caches the eligibility of projects for all servers with the same inputs: most of a thousand servers share
//! their rules.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use jiff::Timestamp;

use super::delay_groups;
use super::dependency_closure::{Follow, Gap, find, follow, required_targets};
use super::eligibility::{floor, is_pinned, judge};
use super::identified_jars::{self, KnownFile};
use super::jar_selection::Jars;
use super::java::{self, AvailableJava, Published};
use super::provided_names::{DeclaredNames, NameResolution, NameTable};
use super::version_bounds::BoundContext;
use super::{Candidate, Rules};
use crate::catalog::{Catalog, Channel, Dependency, ProjectKey, Release};
use crate::compatibility_facts::CompatibilityFacts;
use crate::known_constraints::is_called;
use crate::request::{Dependencies, Request, Running, has_any};
use crate::unusable::Unusable;

/// The eligibility of one project under one set of rules.
pub(super) struct ProjectEligibility<'a> {
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
    pub(super) leads_to_lost: bool,
}

/// All inputs of the eligibility apart from the catalog and the instant.
#[derive(PartialEq, Eq)]
struct EligibilityCacheKey<'a> {
    rules: Rules<'a>,
    offer: AvailableJava<'a>,
    /// Its releases that run on the server.
    runs: Vec<&'a str>,
    /// Its running release that is delisted. Servers with the same description of it share one value.
    lost: Option<*const Release>,
    /// Delisted releases of other projects that dependencies on its pages lead to only because they run.
    led_to: Vec<*const Release>,
    /// With `dependencies: Forbid` or `Propose`: that setting and the requested projects.
    forbidden_but: Option<(Dependencies, BTreeSet<usize>)>,
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
pub(super) struct EligibilityTable<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) now: Timestamp,
    /// Computed once, because there are hundreds of tags.
    pub(super) published: Option<Published>,
    known: EligibilityCache<'a>,
    heard: JarNamesByChoice<'a>,
    /// The caches of the request that this one is a change of.
    before: Option<(&'a EligibilityCache<'a>, &'a JarNamesByChoice<'a>)>,
    places: HashMap<&'a ProjectKey, Option<usize>>,
    /// Running releases that are delisted, by project and id. Servers with the same description of one share one value.
    lost: HashMap<(usize, &'a str), Vec<&'a Release>>,
    /// Whether dependencies on the pages of a project (by position) lead to a delisted release. The flag tells whether
    /// that release is all that its own project has.
    leads: HashMap<(usize, *const Release, bool), bool>,
    /// The projects that have a release of this id. Filled when there are several servers.
    owners: Option<HashMap<&'a str, Vec<usize>>>,
}

impl<'a> EligibilityTable<'a> {
    /// For one request, without running releases of other servers.
    pub(super) fn of_one(catalog: &'a Catalog, now: Timestamp) -> Self {
        Self::of_one_with(catalog, now, java::newest(catalog, now))
    }

    fn of_one_with(catalog: &'a Catalog, now: Timestamp, published: Option<Published>) -> Self {
        Self {
            catalog,
            now,
            published,
            known: HashMap::new(),
            heard: HashMap::new(),
            before: None,
            places: HashMap::new(),
            lost: HashMap::new(),
            leads: HashMap::new(),
            owners: None,
        }
    }

    /// For another request at the same instant, of a server that runs the same releases. Results with equal inputs are
    /// reused.
    pub(super) fn continued(&'a self) -> Self {
        let after = Self::of_one_with(self.catalog, self.now, self.published);
        Self { before: Some((&self.known, &self.heard)), ..after }
    }

    /// For several requests.
    pub(super) fn of_many(catalog: &'a Catalog, requests: &[&'a Request], now: Timestamp) -> Self {
        let mut owners: HashMap<&str, Vec<usize>> = HashMap::new();
        let running = requests.iter().filter_map(|request| request.running.as_ref());
        for id in running.flat_map(|running| &running.releases) {
            owners.entry(id).or_default();
        }
        if !owners.is_empty() {
            for (place, project) in catalog.projects.iter().enumerate() {
                for release in &project.releases {
                    if let Some(places) = owners.get_mut(release.id.as_str()) {
                        places.push(place);
                    }
                }
            }
        }
        Self { owners: Some(owners), ..Self::of_one(catalog, now) }
    }

    /// The position of a project.
    pub(super) fn find(&mut self, key: &'a ProjectKey) -> Option<usize> {
        let catalog = self.catalog;
        *self.places.entry(key).or_insert_with(|| find(catalog, key))
    }

    /// Like `find`, but records a project that the catalog does not hold in `gap`: to be fetched, or with the reason
    /// why it could not be read.
    pub(super) fn find_or_note(&mut self, key: &'a ProjectKey, gap: &mut Gap) -> Option<usize> {
        let found = self.find(key);
        if found.is_none() {
            match self.catalog.unread_because(key) {
                Some(because) => drop(gap.unread.insert((key.shown(), because.to_owned()))),
                None => drop(gap.fetch.insert(key.clone())),
            }
        }
        found
    }

    /// The releases of a project that run on a server, sorted.
    fn runs(&self, place: usize, request: &'a Request) -> Vec<&'a str> {
        let (Some(owners), Some(running)) = (&self.owners, &request.running) else { return Vec::new() };
        let ours = |id: &&str| owners.get(id).is_some_and(|places| places.contains(&place));
        let mut runs: Vec<&str> = running.releases.iter().map(String::as_str).filter(ours).collect();
        runs.sort_unstable();
        runs
    }

    /// The release of a project that runs on a server and is delisted. Servers with the same description of it share
    /// one value.
    pub(super) fn lost(&mut self, place: usize, running: &'a Running) -> Option<&'a Release> {
        let own = running.lost_release(&self.catalog.projects[place])?;
        let known = self.lost.entry((place, &own.id)).or_default();
        let same = known.iter().copied().find(|known| *known == own);
        Some(same.unwrap_or_else(|| {
            known.push(own);
            own
        }))
    }

    /// The running releases that are delisted and that dependencies lead to only for that reason. The dependencies are
    /// those on the pages of the project at `place`, or of its own delisted release that runs.
    fn led_to(&mut self, place: usize, own: Option<&Release>, request: &'a Request) -> Vec<&'a Release> {
        let Some(running) = request.running.as_ref().filter(|running| !running.lost.is_empty()) else {
            return Vec::new();
        };
        let catalog = self.catalog;
        let mut found = Vec::new();
        for lost in &running.lost {
            let Some(other) = self.find(&lost.project).filter(|other| *other != place) else { continue };
            let Some(lost) = self.lost(other, running) else { continue };
            let project = &catalog.projects[other];
            let is_all = !has_any(project, request.software, None);
            let leads = |line: &Dependency| {
                let mut names = [&line.project_id, &line.name].into_iter().flatten();
                line.version_id.as_ref() == Some(&lost.id) || is_all && names.any(|name| is_called(project, name))
            };
            let pages = || catalog.projects[place].releases.iter();
            let of_pages = self.leads.entry((place, std::ptr::from_ref(lost), is_all));
            let of_pages = *of_pages.or_insert_with(|| pages().any(|release| release.dependencies.iter().any(leads)));
            if of_pages || own.is_some_and(|own| own.dependencies.iter().any(leads)) {
                found.push(lost);
            }
        }
        found
    }

    /// The names declared in the selected JARs of a project.
    pub(super) fn spoken(&mut self, place: usize, jars: &Jars<'a>) -> Rc<DeclaredNames> {
        let before = self.before.and_then(|(_, heard)| heard.get(&place));
        let heard = self.heard.entry(place).or_default();
        if let Some((_, spoken)) = before.into_iter().flatten().chain(&*heard).find(|(other, _)| other == jars) {
            return Rc::clone(spoken);
        }
        let spoken = Rc::new(DeclaredNames::of(&self.catalog.projects[place], jars));
        heard.push((jars.clone(), Rc::clone(&spoken)));
        spoken
    }

    /// The eligibility of the project at `place` under these rules, for a server that requests `requested` and has
    /// these files.
    pub(super) fn judge(
        &mut self,
        place: usize,
        rules: &Rules<'a>,
        (request, requested, files): (&'a Request, &BTreeSet<usize>, &[KnownFile<'a>]),
        (names, spoken): (&NameTable, &DeclaredNames),
    ) -> Rc<ProjectEligibility<'a>> {
        let offer = AvailableJava::of(request, self.published);
        let (project, running) = (&self.catalog.projects[place], request.running.as_ref());
        let facing = BoundContext::of(request, requested, rules.requires).beside(files);
        let facts = !files.is_empty() || facing.mentions(project);
        let lost = running.and_then(|running| self.lost(place, running));
        let led_to = self.led_to(place, lost, request).into_iter().map(std::ptr::from_ref).collect::<Vec<_>>();
        let leads_to_lost = !led_to.is_empty();
        let basis = EligibilityCacheKey {
            rules: rules.clone(),
            offer,
            runs: self.runs(place, request),
            lost: lost.map(std::ptr::from_ref),
            led_to,
            forbidden_but: (request.dependencies != Dependencies::Install)
                .then(|| (request.dependencies, requested.clone())),
            facts: facts.then(|| (&request.facts, requested.clone())),
            names: names.meaning(spoken),
            files: files.to_vec(),
        };
        let before = self.before.and_then(|(known, _)| known.get(&place));
        let known = self.known.entry(place).or_default();
        if let Some((_, judged)) = before.into_iter().flatten().chain(&*known).find(|(other, _)| *other == basis) {
            return Rc::clone(judged);
        }
        let at = EligibilityFor { request, requested, files, names, offer, facing, lost };
        let judged = judge_one(self.catalog, self.now, place, rules, at);
        let judged = Rc::new(ProjectEligibility { leads_to_lost, ..judged });
        known.push((basis, Rc::clone(&judged)));
        judged
    }
}

/// The server for which the eligibility of a project is determined.
#[derive(Clone, Copy)]
struct EligibilityFor<'x, 'a> {
    request: &'x Request,
    requested: &'x BTreeSet<usize>,
    files: &'x [KnownFile<'x>],
    names: &'x NameTable,
    offer: AvailableJava<'x>,
    facing: BoundContext<'x>,
    lost: Option<&'a Release>,
}

fn judge_one<'a>(
    catalog: &'a Catalog,
    now: Timestamp,
    place: usize,
    rules: &Rules<'_>,
    at: EligibilityFor<'_, 'a>,
) -> ProjectEligibility<'a> {
    let EligibilityFor { request, requested, files, names, offer, facing, lost } = at;
    let running = request.running.as_ref();
    let verdicts = judge(&catalog.projects[place], rules, offer, now, (running, lost));
    let (mut required, mut gap) = (BTreeSet::new(), Gap::default());
    let floor = floor(&verdicts, rules, running);
    let runs_now = |release: &Release| running.is_some_and(|running| running.has(release));
    // Few plugins are held, and the running release is searched only for those.
    let held = rules.hold.and_then(|(object, by)| {
        let (at, _) = verdicts.releases.iter().rfind(|(release, _)| runs_now(release))?;
        Some(Unusable::Held { at: at.version.clone(), object: object.to_owned(), by })
    });
    let all: Vec<&Release> = verdicts.releases.iter().map(|(release, _)| *release).collect();
    let beside = identified_jars::against((catalog, now), place, &all, files, &facing);
    let releases = verdicts.releases.into_iter().zip(beside).enumerate();
    let releases = releases.map(|(at, ((release, mut unusable), beside))| {
        let mut outside = Vec::new();
        let runs = runs_now(release);
        let exempt = runs || rules.pin.is_some_and(|pin| is_pinned(&release.version, pin));
        if !exempt && matches!(unusable, None | Some(Unusable::HeldBack { .. })) {
            unusable = delay_groups::held_back(catalog, release, rules, now).or(unusable);
        }
        // Checked after the policy, so that removing the hold shows the next reason.
        if !runs && unusable.is_none() {
            unusable.clone_from(&held);
        }
        if unusable.is_none() {
            unusable = beside;
        }
        // Checked last, so that allowing the downgrade is enough to get the release.
        if let Some((_, than)) = floor.as_ref().filter(|(floor, _)| !exempt && unusable.is_none() && at < *floor) {
            unusable = Some(Unusable::Older { than: than.clone() });
        }
        if unusable.is_none() {
            unusable = follow(
                required_targets(catalog, names, place, (release, &rules.jars), &facing),
                Follow { catalog, request, runs, requested, files },
                &mut required,
                &mut outside,
                &mut gap,
            );
        }
        Candidate { release, unusable, outside }
    });
    let releases = Rc::new(releases.collect());
    ProjectEligibility { channel: verdicts.channel, releases, required, gap, leads_to_lost: false }
}
