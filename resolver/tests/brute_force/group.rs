//! Pure. Compares the solver with exhaustive search for two servers that share plugins with strategy `latest`: which
//! servers are solved together, and the result.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jiff::Timestamp;
use resolver::model::catalog::{Catalog, Release};
use resolver::model::request::{PaperRequest, Request, Running, VersionRequest};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;

use super::generate::{self, Rng};
use super::oracle::{self, MemberChoice, Outcome, SearchInput, is_older};
use super::problem::Problem;
use super::rules::{ServerRules, is_running, project_index, running_releases};
use super::saved_query::saved_query_json;
use super::{software, texts, to_scenario};

/// Two servers of one namespace, by name.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) catalog: Catalog,
    pub(crate) requests: [Request; 2],
    pub(crate) now: Timestamp,
}

impl Pair {
    /// Shrinks the pair while `fails` holds, by removing parts one by one.
    pub(crate) fn shrunk(self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut smallest = self;
        while let Some(smaller) = smallest.smaller().into_iter().find(&fails) {
            smallest = smaller;
        }
        smallest
    }

    /// All pairs with one part removed. Both servers use the same catalog.
    fn smaller(&self) -> Vec<Self> {
        let of = |server_index: usize| {
            let Self { catalog, requests, now } = self.clone();
            let problem = Problem { catalog, request: requests[server_index].clone(), now };
            problem.smaller().into_iter().map(move |Problem { catalog, request, now }| {
                let mut requests = requests.clone();
                requests[server_index] = request;
                Self { catalog, requests, now }
            })
        };
        let mut all: Vec<Self> = of(0).collect();
        all.extend(of(1).filter(|pair| pair.catalog == self.catalog));
        all
    }

    /// The pair as a file for `tests/scenarios`, and as input for `resolver explain --problem FILE`.
    pub(crate) fn to_scenario(&self, name: &str) -> String {
        let scenario = to_scenario::scenario(name, &self.catalog, &self.requests, self.now);
        format!("{scenario}\n\n{}", saved_query_json(&self.catalog, &self.requests, self.now))
    }
}

/// Tests a property on the pairs of these seeds. Shrinks and prints a failing pair.
pub(crate) fn for_all(seeds: Range<u64>, property: impl Fn(&Pair) -> Result<(), String>) {
    for seed in seeds {
        let Some(mut pair) = pair(seed) else { continue };
        // A query that needs an unverified build has no answer yet.
        software::verify_all_builds(&mut pair.catalog);
        if let Err(error) = property(&pair) {
            let small = pair.shrunk(|smaller| property(smaller).is_err());
            let error = property(&small).err().unwrap_or(error);
            panic!("two servers of seed {seed}: {error}\n\n{}", small.to_scenario(&format!("seed-{seed}")));
        }
    }
}

/// The pair of a seed. `None` if its servers share no plugin.
pub(crate) fn pair(seed: u64) -> Option<Pair> {
    let Problem { catalog, mut request, now } = generate::problem(seed);
    let mut rng = Rng::new(seed ^ 0x5EED);
    for plugin_request in &mut request.plugins {
        if plugin_request.version == VersionRequest::Auto && rng.chance(70) {
            plugin_request.version = VersionRequest::Latest;
        }
    }
    let mut other = request.clone();
    "games/arena".clone_into(&mut other.server);
    other.plugins.retain(|_| rng.chance(85));
    let paper = rng.choose(&catalog.paper);
    other.paper = match rng.below(20) {
        0..9 => PaperRequest::Auto,
        9..13 => PaperRequest::Latest,
        _ => PaperRequest::Pin { version: paper.minecraft.clone() },
    };
    other.floor = None;
    other.unmanaged.clear();
    other.image = None;
    other.running = rng.chance(60).then(|| Running {
        software: Software::Paper,
        minecraft: paper.minecraft.clone(),
        build: paper.builds[0].number,
        releases: catalog.projects.iter().map(|project| rng.choose(&project.releases).id.clone()).collect(),
        unrequested: Vec::new(),
        versions: Vec::new(),
        delisted: Vec::new(),
        image: None,
        java: None,
        since: None,
    });
    let shares_plugin = other.plugins.iter().any(|plugin_request| plugin_request.version == VersionRequest::Latest);
    shares_plugin.then_some(Pair { catalog, requests: [other, request], now })
}

/// The expected outcomes of two servers, in their order. `None` if data is missing, which is tested with one server.
pub(crate) fn expected_outcomes(pair: &Pair) -> Option<[Outcome; 2]> {
    let Pair { catalog, requests, now } = pair;
    let rules = |at: usize| ServerRules::new(catalog, &requests[at], *now).ok();
    let server_rules = [rules(0)?, rules(1)?];
    // A plugin that strategy `latest` excludes on one server does not affect the other server.
    let inputs = [0, 1].map(|at: usize| SearchInput::new(&server_rules[at]));
    let search = |server_indexes, papers, allowed| Search {
        pair,
        server_rules: &server_rules,
        inputs: &inputs,
        server_indexes,
        papers,
        allowed,
    };
    let none = BTreeMap::new();
    let both = search(&[0, 1], [None, None], &none);
    if let Some(found) = both.best() {
        return Some([0, 1].map(|server_index| both.outcome(&found, server_index)));
    }
    // Each server conflicts with one other server, so the first by name is selected.
    let solo_outcomes = [0, 1].map(|at: usize| oracle::best(&server_rules[at]));
    let is_solvable = [0, 1].map(|server_index: usize| matches!(solo_outcomes[server_index], Outcome::Chosen { .. }));
    let Some(included) = (0..2).find(|&server_index| is_solvable[server_index]) else { return Some(solo_outcomes) };
    let excluded = 1 - included;
    let included_only = [included];
    let free = search(&included_only, [None, None], &none).best()?;
    let mut papers = [None, None];
    papers[included] = Some(free.papers[included]);
    let bounds = both.bounds(excluded);
    let within_bounds = search(&included_only, papers, &bounds).best();
    let found = within_bounds.unwrap_or(free);
    let mut outcomes = solo_outcomes;
    outcomes[included] = both.outcome(&found, included);
    if is_solvable[excluded] && !both.is_downgrade(excluded, included, &found) {
        outcomes[excluded] = Outcome::NoSolution;
    }
    Some(outcomes)
}

/// Whether both servers can be solved together: on these Papers, if given, and with only these releases of shared
/// plugins, by the index of their project. `None` if that is unknown.
pub(crate) fn is_jointly_solvable(
    pair: &Pair,
    papers: [Option<&Minecraft>; 2],
    allowed: &BTreeMap<usize, BTreeSet<&str>>,
) -> Option<bool> {
    let Pair { catalog, requests, now } = pair;
    let rules = |at: usize| ServerRules::new(catalog, &requests[at], *now).ok();
    let server_rules = [rules(0)?, rules(1)?];
    let mut paper_indexes = [None, None];
    for server_index in (0..2).filter(|&server_index| papers[server_index].is_some()) {
        let wanted = papers[server_index];
        paper_indexes[server_index] =
            Some(server_rules[server_index].papers.iter().position(|paper| Some(paper.minecraft) == wanted)?);
    }
    let inputs = [0, 1].map(|at: usize| SearchInput::new(&server_rules[at]));
    let both = Search {
        pair,
        server_rules: &server_rules,
        inputs: &inputs,
        server_indexes: &[0, 1],
        papers: paper_indexes,
        allowed,
    };
    Some(both.best().is_some())
}

/// One plugin on one server, or one shared plugin on both servers.
struct Variable {
    /// The index of the member for each server.
    members: [Option<usize>; 2],
}

impl Variable {
    fn assign<'a>(&self, choice: Option<&'a Release>, releases: &mut [Vec<Option<&'a Release>>; 2]) {
        for (member, releases) in self.members.iter().zip(releases) {
            if let Some(member) = *member {
                releases[member] = choice;
            }
        }
    }
}

struct Search<'s, 'a> {
    pair: &'a Pair,
    server_rules: &'s [ServerRules<'a>; 2],
    inputs: &'s [SearchInput<'a>; 2],
    server_indexes: &'s [usize],
    /// The index of the required Paper for each server. `None` allows every Paper.
    papers: [Option<usize>; 2],
    /// The allowed release ids of shared plugins, by the index of their project.
    allowed: &'s BTreeMap<usize, BTreeSet<&'a str>>,
}

struct Found<'a> {
    papers: [usize; 2],
    releases: [Vec<Option<&'a Release>>; 2],
}

impl<'a> Search<'_, 'a> {
    fn outcome(&self, found: &Found<'a>, server_index: usize) -> Outcome {
        let left_behind = self.inputs[server_index].left_behind.clone();
        oracle::outcome(
            &self.server_rules[server_index],
            found.papers[server_index],
            &found.releases[server_index],
            left_behind,
        )
    }

    /// The Plugin objects that require one release on all servers, for a member of a server. Empty if the server holds
    /// its running release or excludes the plugin.
    fn latest_objects(&self, server_index: usize, member: usize) -> BTreeSet<&'a str> {
        let Pair { catalog, requests, .. } = self.pair;
        let one = &self.server_rules[server_index].members[member];
        let plugin_requests = || {
            requests[server_index]
                .plugins
                .iter()
                .filter(|plugin_request| project_index(catalog, &plugin_request.key) == Some(one.index))
        };
        let runs_one = running_releases(&requests[server_index], one.project).next().is_some();
        let is_held = runs_one && plugin_requests().any(|plugin_request| plugin_request.hold.is_some());
        if is_held || self.inputs[server_index].choices[member] != MemberChoice::Required {
            return BTreeSet::new();
        }
        plugin_requests()
            .filter(|plugin_request| plugin_request.version == VersionRequest::Latest)
            .map(|plugin_request| plugin_request.object.as_str())
            .collect()
    }

    /// The member of the other server that must have the same release.
    fn partner(&self, server_index: usize, member: usize) -> Option<usize> {
        let index = self.server_rules[server_index].members[member].index;
        let other = self.server_rules[1 - server_index].members.iter().position(|member| member.index == index)?;
        (!self.latest_objects(server_index, member).is_disjoint(&self.latest_objects(1 - server_index, other)))
            .then_some(other)
    }

    /// All plugins, in their order of priority.
    fn variables(&self) -> Vec<Variable> {
        let mut variables = Vec::new();
        for &server_index in self.server_indexes {
            for (member, one) in self.server_rules[server_index].members.iter().enumerate() {
                let partner = self.partner(server_index, member).filter(|_| self.server_indexes.len() == 2);
                if partner.is_some() && server_index == 1 {
                    continue;
                }
                let mut members = [None, None];
                members[server_index] = Some(member);
                members[1 - server_index] = partner;
                let rank = |server_index: usize, member: usize, objects: &[&'a str]| {
                    (objects.is_empty(), objects.first().copied().unwrap_or_default(), server_index, member)
                };
                let own_rank = rank(server_index, member, &one.objects);
                let least = partner.map_or(own_rank, |other| {
                    let other_objects = &self.server_rules[1 - server_index].members[other].objects;
                    own_rank.min(rank(1 - server_index, other, other_objects))
                });
                variables.push((least, Variable { members }));
            }
        }
        variables.sort_by_key(|(rank, _)| *rank);
        variables.into_iter().map(|(_, variable)| variable).collect()
    }

    fn best(&self) -> Option<Found<'a>> {
        let variables = self.variables();
        let open = |server_index: usize| -> Vec<usize> {
            let is_fixed = |paper: &usize| self.papers[server_index].is_none_or(|fixed| fixed == *paper);
            self.inputs[server_index].papers.iter().copied().filter(is_fixed).collect()
        };
        let papers_of = |server_index: usize| {
            if self.server_indexes.contains(&server_index) { open(server_index) } else { vec![0] }
        };
        for first in papers_of(0) {
            for &other in &papers_of(1) {
                let papers = [first, other];
                let mut releases = [0, 1].map(|server_index| vec![None; self.server_rules[server_index].members.len()]);
                if self.search(&variables, 0, papers, &mut releases) {
                    return Some(Found { papers, releases });
                }
            }
        }
        None
    }

    fn search(
        &self,
        variables: &[Variable],
        at: usize,
        papers: [usize; 2],
        releases: &mut [Vec<Option<&'a Release>>; 2],
    ) -> bool {
        let Some(variable) = variables.get(at) else { return true };
        let first_server = variable.members.iter().position(Option::is_some).unwrap();
        let index = variable.members[first_server].unwrap();
        let member = &self.server_rules[first_server].members[index];
        let is_candidate = |release: &&'a Release| {
            let bound =
                self.allowed.get(&member.index).filter(|_| !self.latest_objects(first_server, index).is_empty());
            let within = bound.is_none_or(|ids| ids.contains(release.id.as_str()));
            within
                && (0..2).all(|server_index| {
                    variable.members[server_index]
                        .is_none_or(|member| self.is_allowed(server_index, member, release, papers[server_index]))
                })
        };
        let absent = (self.inputs[first_server].choices[index] == MemberChoice::Optional).then_some(None);
        let newest_first = member.usable.iter().rev().copied().filter(is_candidate).map(Some);
        for choice in absent.into_iter().chain(newest_first) {
            variable.assign(choice, releases);
            let decided = &variables[..=at];
            if (0..2).all(|server_index| {
                variable.members[server_index]
                    .is_none_or(|_| self.is_consistent(server_index, decided, &releases[server_index]))
            }) && self.search(variables, at + 1, papers, releases)
            {
                return true;
            }
        }
        variable.assign(None, releases);
        false
    }

    fn is_allowed(&self, server_index: usize, member: usize, release: &Release, paper: usize) -> bool {
        let rules = &self.server_rules[server_index];
        let usable = rules.members[member].usable.iter().any(|usable| usable.id == release.id);
        usable && self.inputs[server_index].is_allowed(rules, member, release, paper)
    }

    /// Whether all decided releases of a server are compatible.
    fn is_consistent(&self, server_index: usize, decided: &[Variable], releases: &[Option<&'a Release>]) -> bool {
        let members: Vec<usize> = decided.iter().filter_map(|variable| variable.members[server_index]).collect();
        members.iter().all(|&dependent| {
            let Some(release) = releases[dependent] else { return true };
            let member = &self.server_rules[server_index].members[dependent];
            let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
            let requirements =
                member.requirements[index].iter().filter(|requirement| members.contains(&requirement.target));
            requirements.into_iter().all(|requirement| match releases[requirement.target] {
                None => requirement.or_absent,
                Some(installed) => requirement.one_of.contains(installed.id.as_str()),
            })
        })
    }

    /// The releases of shared plugins that would work on an excluded server: the running ones, and the usable ones that
    /// are listed for its running Paper. Empty for a server without a running version set.
    fn bounds(&self, excluded: usize) -> BTreeMap<usize, BTreeSet<&'a str>> {
        let (rules, request) = (&self.server_rules[excluded], &self.pair.requests[excluded]);
        let mut bounds = BTreeMap::new();
        let Some(running) = &request.running else { return bounds };
        let paper = rules.papers.iter().position(|paper| *paper.minecraft == running.minecraft);
        for (at, member) in rules.members.iter().enumerate().filter(|(at, _)| self.partner(excluded, *at).is_some()) {
            let runs = running_releases(request, member.project);
            let listed = member
                .usable
                .iter()
                .copied()
                .filter(|release| paper.is_some_and(|paper| rules.is_listed(at, release, paper)));
            let ids: BTreeSet<&str> = runs.chain(listed).map(|release| release.id.as_str()).collect();
            if !ids.is_empty() {
                bounds.insert(member.index, ids);
            }
        }
        bounds
    }

    /// Whether the chosen release of a shared plugin is older than the running release of the excluded server and
    /// ineligible there.
    fn is_downgrade(&self, excluded: usize, included: usize, found: &Found<'a>) -> bool {
        (0..self.server_rules[excluded].members.len()).any(|at| {
            let Some(chosen) = self.partner(excluded, at).and_then(|other| found.releases[included][other]) else {
                return false;
            };
            let member = &self.server_rules[excluded].members[at];
            let newest = member.usable.iter().rev().find(|release| is_running(&self.pair.requests[excluded], release));
            let can = member.usable.iter().any(|usable| usable.id == chosen.id);
            let is_downgrade = |from: &Release| {
                is_older(member.project, chosen, from) || texts::is_lower(&chosen.version, &from.version)
            };
            !can && newest.is_some_and(|newest| is_downgrade(newest))
        })
    }
}
