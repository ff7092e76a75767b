//! Pure. Tests on random small pairs, by the rules of `docs/concepts/solve.md`, that a shared version is the cause
//! where it is reported: the server could have the release alone, and cannot have it together with the other server.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use resolver::explanation::{
    ChosenPlugin, Conflict, Explanation, NewerPaper, Reason, ServerChoice, SharedVersion, SolvedExplanation, WhyOlder,
};
use resolver::model::catalog::{BuildChannel, Release};
use resolver::model::lock::Lock;
use resolver::model::request::{ImagePolicy, PaperRequest, VersionRequest};
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use resolver::model::unusable::Unusable;
use resolver::model::version::Minecraft;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet};

use super::group::{self, Pair, is_jointly_solvable};
use super::oracle::{self, Outcome};
use super::problem::Problem;
use super::rules::{ServerRules, project_index};
use super::side_facts::{check_conflicting_facts, check_fact};
use super::why_older::{chosen, conflicts};

/// Number of tested seeds.
const SEEDS: u64 = 2_500;
/// Step budget for an answer. It leaves few steps for hints, because this test does not follow them.
const STEPS: u64 = 1_000;

/// Whether a server alone has a solution, on this Paper if one is given. `None` if that is unknown.
fn is_solvable_alone(pair: &Pair, server_index: usize, paper: Option<&Minecraft>) -> Option<bool> {
    let mut request = pair.requests[server_index].clone();
    if let Some(version) = paper.cloned() {
        request.paper = PaperRequest::Pin { version };
    }
    let rules = ServerRules::new(&pair.catalog, &request, pair.now).ok()?;
    Some(matches!(oracle::best(&rules), Outcome::Chosen { .. }))
}

/// Whether a server can use one of these releases on its Paper. `None` if that is unknown.
fn accepts_any(pair: &Pair, server_index: usize, paper: Option<&Minecraft>, ids: &BTreeSet<&str>) -> Option<bool> {
    let rules = ServerRules::new(&pair.catalog, &pair.requests[server_index], pair.now).ok()?;
    let paper = rules.papers.iter().position(|other| Some(other.minecraft) == paper)?;
    let suits = |at: usize, release: &Release| rules.meets_pin(at, release) && rules.is_listed(at, release, paper);
    Some(rules.members.iter().enumerate().any(|(at, member)| {
        member.usable.iter().any(|release| ids.contains(release.id.as_str()) && suits(at, release))
    }))
}

/// Checks that the server has a solution alone, and none together with the other.
fn check_separation(pair: &Pair, server_index: usize, papers: [Option<&Minecraft>; 2]) -> Result<(), String> {
    if is_solvable_alone(pair, server_index, papers[server_index]) == Some(false) {
        let (server, paper) = (&pair.requests[server_index].server, papers[server_index]);
        return Err(format!("{server} has no solution alone on {paper:?}"));
    }
    if is_jointly_solvable(pair, papers, &BTreeMap::new()) == Some(true) {
        return Err(format!("the servers can be solved together on {papers:?}"));
    }
    Ok(())
}

/// The pair in which the server at `server_index` shares only these plugins.
fn share_only(pair: &Pair, server_index: usize, shared_version: &SharedVersion) -> Pair {
    let mut changed = pair.clone();
    for plugin_request in &mut changed.requests[server_index].plugins {
        let index = project_index(&pair.catalog, &plugin_request.key).unwrap();
        let name = &pair.catalog.projects[index].name;
        if plugin_request.version == VersionRequest::Latest
            && !shared_version.plugins.iter().any(|shared| shared.plugin == *name)
        {
            plugin_request.version = VersionRequest::Auto;
        }
    }
    changed
}

fn check_exclusion(pair: &Pair, server_index: usize, impossible: &Conflict) -> Result<u32, String> {
    let mut count = 0;
    for reason in &impossible.reasons {
        let Reason::SharedVersion { shared_version } = reason else { continue };
        count += 1;
        check_separation(pair, server_index, [None, None])?;
        check_separation(&share_only(pair, server_index, shared_version), server_index, [None, None])
            .map_err(|error| format!("with only {:?} shared: {error}", shared_version.plugins))?;
    }
    Ok(count)
}

/// Checks that the reported plugins are exactly those that conflict with a release on a server.
fn check_server_conflicts(
    pair: &Pair,
    server_index: usize,
    lock: &Lock,
    reported: &ServerChoice,
    ids: &BTreeSet<&str>,
) -> Result<(), String> {
    let problem =
        Problem { catalog: pair.catalog.clone(), request: pair.requests[server_index].clone(), now: pair.now };
    let Ok(rules) = ServerRules::new(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let found =
        rules.members.iter().enumerate().find_map(|(at, member)| {
            Some((at, *member.usable.iter().find(|release| ids.contains(release.id.as_str()))?))
        });
    let Some((at, release)) = found else { return Err(format!("{ids:?} is not usable on {}", reported.server)) };
    let version_set = chosen(&rules, lock);
    let expected = conflicts(&rules, &version_set, at, release);
    let names = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    if reported.server != problem.request.server || [names(&reported.with), names(&reported.needs)] != expected {
        return Err(format!("{reported:?} is reported, but the incompatible and missing plugins are {expected:?}"));
    }
    check_conflicting_facts(&rules, &version_set, (at, release), &reported.facts)?;
    reported.facts.iter().try_for_each(|fact| check_fact(&problem, &rules, fact))
}

/// The pair without the reasons against a newer Paper of the server at `server_index`. Only the other server remains as
/// a reason.
fn without_other_reasons(pair: &Pair, server_index: usize, newer: &NewerPaper) -> Pair {
    let mut then = pair.clone();
    let request = &mut then.requests[server_index];
    if newer.pinned.is_some() {
        request.paper = PaperRequest::Auto;
    }
    match &newer.unusable {
        Some(Unusable::Delayed { eligible_at, .. }) => then.now = *eligible_at,
        Some(Unusable::BuildChannel { best, .. }) => request.channel = *best,
        Some(Unusable::Preview) => request.channel = BuildChannel::Alpha,
        Some(Unusable::Unmanaged { .. } | Unusable::UnmanagedRefused { .. }) => {
            request.unmanaged_plugins = UnmanagedPlugins::Ignore;
        }
        Some(Unusable::JavaTooOld { .. } | Unusable::ImageCarries { .. }) => request.image = None,
        Some(Unusable::JavaHeld { .. }) => request.image_policy = ImagePolicy::Follow,
        Some(other) => panic!("no setting makes this version usable: {other:?}"),
        None => {}
    }
    let is_blocking = |name: &str| {
        newer
            .blocked_by
            .iter()
            .any(|blocker| blocker.name == name || blocker.needed_by.iter().any(|dependent| dependent == name))
    };
    request.plugins.retain(|plugin_request| {
        !is_blocking(&pair.catalog.projects[project_index(&pair.catalog, &plugin_request.key).unwrap()].name)
    });
    request.unmanaged.retain(|jar| !is_blocking(&jar.file));
    then
}

fn budget() -> Budget {
    Budget { steps: STEPS, ..Budget::default() }
}

fn check_solved(
    pair: &Pair,
    server_index: usize,
    locks: [Option<&Lock>; 2],
    solved: &SolvedExplanation,
) -> Result<[u32; 4], String> {
    let papers = locks.map(|lock| lock.map(|lock| &lock.minecraft));
    let (mut releases, mut papers_blocked, mut conflicts) = (0, [0, 0], 0);
    for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
        let WhyOlder::SharedVersion { shared_version } = &newer.because else { continue };
        let index = pair.catalog.projects.iter().position(|project| project.name == plugin.name).unwrap();
        let same = pair.catalog.projects[index].releases.iter().filter(|release| release.version == newer.version);
        let ids: BTreeSet<&str> = same.map(|release| release.id.as_str()).collect();
        let [reported] = shared_version.servers.as_slice() else {
            return Err(format!(
                "not exactly one server is named that cannot use {} {}: {shared_version:?}",
                plugin.name, newer.version
            ));
        };
        let Some(lock) = locks[1 - server_index].filter(|_| ids.len() == 1) else { continue };
        if !reported.with.is_empty() || !reported.needs.is_empty() {
            conflicts += 1;
            check_server_conflicts(pair, 1 - server_index, lock, reported, &ids)?;
            continue;
        }
        releases += 1;
        if accepts_any(pair, 1 - server_index, papers[1 - server_index], &ids) == Some(true) {
            return Err(format!(
                "{} can use {} {}, but is reported as the reason against it",
                pair.requests[1 - server_index].server,
                plugin.name,
                newer.version
            ));
        }
        if is_jointly_solvable(pair, papers, &BTreeMap::from([(index, ids)])) == Some(true) {
            return Err(format!("both servers can use {} {} together", plugin.name, newer.version));
        }
    }
    for newer in solved.newer_paper.iter().filter(|newer| !newer.shared_versions.is_empty()) {
        let has_other_reasons = newer.pinned.is_some() || newer.unusable.is_some() || !newer.blocked_by.is_empty();
        papers_blocked[usize::from(has_other_reasons)] += 1;
        let then = if has_other_reasons { without_other_reasons(pair, server_index, newer) } else { pair.clone() };
        let results = resolve_fleet(&then.catalog, &then.requests, then.now, budget());
        let first = results[0].1.as_ref().ok().map(|resolution| &resolution.lock.minecraft);
        // A server gets its newest Paper with the Papers of the servers before it, by name, already fixed.
        let mut target_papers = [first.filter(|_| server_index == 1), None];
        target_papers[server_index] = Some(&newer.minecraft);
        check_separation(&then, server_index, target_papers)?;
    }
    Ok([releases, papers_blocked[0], papers_blocked[1], conflicts])
}

#[test]
fn reported_shared_version_is_true_for_two_servers() {
    let counts = [Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0)];
    group::for_all(25_000_000..25_000_000 + SEEDS, |pair| {
        let results = resolve_fleet(&pair.catalog, &pair.requests, pair.now, budget());
        let locks =
            [0, 1].map(|server_index: usize| results[server_index].1.as_ref().ok().map(|resolution| &resolution.lock));
        for (server_index, (_, result)) in results.iter().enumerate() {
            match result {
                Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => {
                    for (count, more) in counts[1..].iter().zip(check_solved(pair, server_index, locks, solved)?) {
                        count.set(count.get() + more);
                    }
                }
                Err(Unsolvable::NoSolution(impossible)) => {
                    counts[0].set(counts[0].get() + check_exclusion(pair, server_index, impossible)?);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    });
    let counts = counts.map(|count| count.get());
    let [excluded, releases, papers, papers_with_other_reasons, conflicts] = counts;
    assert!(
        excluded > 7 && releases > 2 && papers > 0 && papers_with_other_reasons > 0 && conflicts > 2,
        "too few excluded servers, releases, Papers, Papers with other reasons, or conflicts: {counts:?}"
    );
}
