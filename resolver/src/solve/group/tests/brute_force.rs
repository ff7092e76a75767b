//! Pure. Computes the expected result of a group by brute force, from the catalog and the requests.
//!
//! It uses the code under test only for the projects that take part on a server and for their order.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::small_fleets::Small;
use crate::index::CandidateIndex;
use crate::model::catalog::{BuildChannel, DependencyKind, Project, Release};
use crate::model::request::{Dependencies, PaperRequest, PluginRequest, Request, VersionRequest};

mod search;

use search::{Solution, best, listed, plugin_usable, sharers};

/// The expected result of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// No solution alone.
    NoSolution,
    /// No solution with the others.
    Excluded,
    /// No solution with the others, whose releases are older than the running ones: the server keeps its own solution.
    BehindRunning,
    /// This Minecraft version and these releases, sorted.
    Runs(String, Vec<String>),
}

impl Answer {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::NoSolution => "alone",
            Self::Excluded => "aside",
            Self::BehindRunning => "below",
            Self::Runs(..) => "runs",
        }
    }
}

/// The role of a plugin on one server.
#[derive(Debug, Clone, PartialEq)]
enum Mode<'a> {
    /// Requested.
    Mandatory,
    /// Not installed unless another plugin needs it.
    Optional,
    /// This release on every Paper version.
    Retained(&'a Release),
}

/// One server.
#[derive(Clone)]
struct Server<'a> {
    request: &'a Request,
    /// Allowed ones, newest first, as positions in the sorted list.
    papers: Vec<usize>,
    plugins: Vec<Plugin<'a>>,
}

#[derive(Clone)]
struct Plugin<'a> {
    project: &'a Project,
    /// First object, if requested.
    object: Option<String>,
    latest: BTreeSet<String>,
    mode: Mode<'a>,
    /// Usable releases that match the pin, newest first.
    usable: Vec<&'a Release>,
    /// Usable releases, newest first.
    usable_unpinned: Vec<&'a Release>,
}

/// The expected results for a group.
pub(super) fn group(problem: &Small, group: &[usize]) -> Vec<(String, Answer)> {
    let mut versions: Vec<_> = problem.catalog.paper.iter().map(|paper| &paper.minecraft).collect();
    versions.sort();
    let minecraft: Vec<String> = versions.iter().map(ToString::to_string).collect();
    let mut servers: Vec<Server<'_>> =
        group.iter().map(|&position| server(problem, &problem.requests[position], &minecraft)).collect();
    let all: Vec<usize> = (0..servers.len()).collect();
    let mut members = all.clone();
    let mut able = vec![true; servers.len()];
    if best(&servers, &all, &minecraft, &|_, _, _| true).is_none() {
        for (server, able) in servers.iter_mut().zip(&mut able) {
            *able = has_solo_solution(server, &minecraft);
        }
        members = accepted_servers(&servers, &able, &minecraft);
    }
    let answer = (!members.is_empty()).then(|| best_solution(&servers, &members, &minecraft));
    let mut answers = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let answer = match members.iter().position(|&member| member == at) {
            Some(position) => {
                let (papers, releases) = answer.as_ref().unwrap();
                let mut ids: Vec<String> = releases[position].iter().flatten().map(|r| r.id.clone()).collect();
                ids.sort();
                Answer::Runs(minecraft[papers[position]].clone(), ids)
            }
            None if able[at] => {
                let others = answer.iter().flat_map(|(_, releases)| members.iter().zip(releases));
                let below =
                    others.into_iter().any(|(&member, chosen)| shares_older_release(server, &servers[member], chosen));
                if below { Answer::BehindRunning } else { Answer::Excluded }
            }
            None => Answer::NoSolution,
        };
        answers.push((server.request.server.clone(), answer));
    }
    answers
}

/// Whether another server has a shared plugin in a release that is older than the one running here and unusable here.
fn shares_older_release(server: &Server<'_>, other: &Server<'_>, chosen: &[Option<&Release>]) -> bool {
    other.plugins.iter().zip(chosen).any(|(theirs, chosen)| {
        let shares =
            |mine: &&Plugin<'_>| mine.project.id == theirs.project.id && !mine.latest.is_disjoint(&theirs.latest);
        let (Some(mine), Some(chosen)) = (server.plugins.iter().find(shares), chosen) else { return false };
        let running = mine.usable.iter().copied().find(|release| runs(server.request, release));
        let can = mine.usable.iter().any(|release| release.id == chosen.id);
        !can && running.is_some_and(|running| age(chosen) < age(running) || number(chosen) < number(running))
    })
}

/// The sort key of the releases of a project.
fn age(release: &Release) -> (Option<jiff::Timestamp>, &str) {
    (release.published, &release.version)
}

/// The number in its version, such as 2 of `2.0`.
fn number(release: &Release) -> usize {
    release.version.trim_end_matches(".0").parse().expect("a number")
}

fn runs(request: &Request, release: &Release) -> bool {
    request.running.as_ref().is_some_and(|running| running.releases.contains(&release.id))
}

fn server<'a>(problem: &'a Small, request: &'a Request, minecraft: &[String]) -> Server<'a> {
    let usable_paper = |name: &String| {
        let paper = problem.catalog.paper.iter().find(|paper| paper.minecraft.as_str() == name).unwrap();
        let running = request.running.as_ref().is_some_and(|running| running.minecraft == paper.minecraft);
        running || paper.builds[0].channel == BuildChannel::Stable
    };
    let mut papers: Vec<usize> = (0..minecraft.len()).rev().filter(|&at| usable_paper(&minecraft[at])).collect();
    match &request.paper {
        PaperRequest::Latest => papers.truncate(1),
        PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => {
            papers.retain(|&at| minecraft[at] == version.to_string());
        }
        PaperRequest::Auto => {}
    }
    let candidates =
        CandidateIndex::build(&problem.catalog, request, problem.now).unwrap_or_else(|gap| panic!("{gap:?}"));
    let delay = request.plugins.first().map_or(SignedDuration::ZERO, |plugin_request| plugin_request.delay);
    let requests_for = |project: &Project| {
        let mut requests: Vec<_> =
            request.plugins.iter().filter(|plugin_request| plugin_request.key == project.key).collect();
        requests.sort_by(|a, b| a.object.cmp(&b.object));
        requests
    };
    let go_down = downgradable(problem, request, &candidates, &requests_for);
    let plugins = candidates.plugins.iter().map(|plugin| {
        let project = plugin.project;
        let requests = requests_for(project);
        let pins: Vec<&String> = requests
            .iter()
            .filter_map(|plugin_request| {
                if let VersionRequest::Pin { version } = &plugin_request.version { Some(version) } else { None }
            })
            .collect();
        // If all are pinned, the highest pin counts. All numbers have one digit.
        let pin = (pins.len() == requests.len()).then(|| pins.iter().max().copied()).flatten();
        let mut usable: Vec<&Release> = project
            .releases
            .iter()
            .filter(|release| release.file.as_ref().unwrap().hash.is_some())
            .filter(|r| runs(request, r) || pin == Some(&r.version) || r.published.unwrap() + delay <= problem.now)
            .filter(|release| {
                request.dependencies == Dependencies::Install
                    || release.dependencies.iter().all(|dependency| {
                        let to =
                            problem.catalog.projects.iter().find(|p| Some(&p.id) == dependency.project_id.as_ref());
                        dependency.kind != DependencyKind::Required || to.is_none_or(|to| !requests_for(to).is_empty())
                    })
            })
            .collect();
        let floor = (project.releases.iter())
            .filter(|release| runs(request, release) && release.file.as_ref().unwrap().hash.is_some())
            .max_by_key(|release| age(release));
        let floor = floor.filter(|_| !go_down.contains(&project.id.as_str()));
        usable.retain(|release| {
            let is_allowed = |floor: &Release| age(release) >= age(floor) && number(release) >= number(floor);
            pin == Some(&release.version) || runs(request, release) || floor.is_none_or(is_allowed)
        });
        usable.sort_by(|a, b| b.published.cmp(&a.published).then_with(|| b.version.cmp(&a.version)));
        let may = usable.clone();
        usable.retain(|release| pin.is_none_or(|pin| *pin == release.version));
        let latest = requests.iter().filter(|plugin_request| plugin_request.version == VersionRequest::Latest);
        Plugin {
            project,
            object: requests.first().map(|plugin_request| plugin_request.object.clone()),
            latest: latest.map(|plugin_request| plugin_request.object.clone()).collect(),
            mode: if requests.is_empty() { Mode::Optional } else { Mode::Mandatory },
            usable,
            usable_unpinned: may,
        }
    });
    Server { request, papers, plugins: plugins.collect() }
}

/// The projects that may be downgraded: their Plugin allows it, or they are not requested and an eligible release of
/// such a project requires them.
fn downgradable<'a>(
    problem: &'a Small,
    request: &Request,
    candidates: &CandidateIndex<'a>,
    requests_for: &dyn Fn(&Project) -> Vec<&'a PluginRequest>,
) -> Vec<&'a str> {
    let projects: Vec<&Project> = candidates.plugins.iter().map(|plugin_index| plugin_index.project).collect();
    let allowed = |project: &&&Project| {
        requests_for(project).first().is_some_and(|plugin_request| plugin_request.allow_downgrade)
    };
    let mut go_down: Vec<&'a str> = projects.iter().filter(allowed).map(|project| project.id.as_str()).collect();
    let mut looked_at = 0;
    while let Some(&id) = go_down.get(looked_at) {
        looked_at += 1;
        let project = problem.catalog.projects.iter().find(|project| project.id == id).unwrap();
        let delay = request.plugins.first().map_or(SignedDuration::ZERO, |plugin_request| plugin_request.delay);
        let pins: Vec<&VersionRequest> =
            requests_for(project).iter().map(|plugin_request| &plugin_request.version).collect();
        for release in &project.releases {
            let pinned = pins
                .iter()
                .any(|requested| matches!(requested, VersionRequest::Pin { version } if *version == release.version));
            let may = release.file.as_ref().unwrap().hash.is_some()
                && (runs(request, release) || pinned || release.published.unwrap() + delay <= problem.now);
            for dependency in
                release.dependencies.iter().filter(|dependency| may && dependency.kind == DependencyKind::Required)
            {
                let needed = projects.iter().find(|other| Some(&other.id) == dependency.project_id.as_ref());
                if let Some(needed) =
                    needed.filter(|other| requests_for(other).is_empty() && !go_down.contains(&other.id.as_str()))
                {
                    go_down.push(&needed.id);
                }
            }
        }
    }
    go_down
}

/// Whether a server has a solution alone. With strategy `latest`, plugins that cannot follow are left behind first.
fn has_solo_solution(server: &mut Server<'_>, minecraft: &[String]) -> bool {
    let possible = |server: &Server<'_>| best(std::slice::from_ref(server), &[0], minecraft, &|_, _, _| true).is_some();
    if possible(server) || !matches!(server.request.paper, PaperRequest::Latest) {
        return possible(server);
    }
    let mandatory: Vec<usize> =
        (0..server.plugins.len()).filter(|&at| server.plugins[at].mode == Mode::Mandatory).collect();
    for &at in &mandatory {
        server.plugins[at].mode = Mode::Optional;
    }
    if !possible(server) {
        return false;
    }
    for &at in &mandatory {
        server.plugins[at].mode = Mode::Mandatory;
        if possible(server) {
            continue;
        }
        server.plugins[at].latest.clear();
        let running = server.plugins[at].usable_unpinned.iter().rev().find(|release| runs(server.request, release));
        if let Some(running) = running {
            server.plugins[at].mode = Mode::Retained(running);
            if possible(server) {
                continue;
            }
        }
        server.plugins[at].mode = Mode::Optional;
    }
    true
}

/// One after the other, starting with the servers that are compatible with the most others.
fn accepted_servers(servers: &[Server<'_>], able: &[bool], minecraft: &[String]) -> Vec<usize> {
    let able: Vec<usize> = (0..servers.len()).filter(|&at| able[at]).collect();
    let domains: Vec<Vec<BTreeSet<&str>>> = servers.iter().map(|server| consistent(server, minecraft)).collect();
    let mut order: Vec<(usize, usize)> = able
        .iter()
        .map(|&me| {
            let conflicts = servers[me].plugins.iter().enumerate().map(|(at, plugin)| {
                let sharers = sharers(servers, &able, me, at);
                if sharers.len() < 2 || plugin.mode != Mode::Mandatory {
                    return 0;
                }
                let sharers_with = |id: &str| {
                    sharers.iter().filter(|&&(other, plugin_index)| domains[other][plugin_index].contains(id)).count()
                };
                sharers.len() - domains[me][at].iter().map(|id| sharers_with(id)).max().unwrap_or(0)
            });
            (conflicts.max().unwrap_or(0), me)
        })
        .collect();
    order.sort_unstable();
    let mut taken: Vec<usize> = Vec::new();
    for (_, me) in order {
        let mut with = taken.clone();
        with.push(me);
        with.sort_unstable();
        if best(servers, &with, minecraft, &|_, _, _| true).is_some() {
            taken = with;
        }
    }
    taken
}

/// The remaining releases of each plugin after Paper versions without a release and releases without a Paper version
/// are removed repeatedly.
fn consistent<'a>(server: &Server<'a>, minecraft: &[String]) -> Vec<BTreeSet<&'a str>> {
    let mut papers = server.papers.clone();
    let mut left: Vec<Vec<&Release>> = server.plugins.iter().map(|plugin| plugin.usable.clone()).collect();
    loop {
        let before = (papers.len(), left.iter().map(Vec::len).sum::<usize>());
        papers.retain(|&paper| {
            server.plugins.iter().zip(&left).all(|(plugin, left)| {
                plugin.mode != Mode::Mandatory || left.iter().any(|release| listed(release, &minecraft[paper]))
            })
        });
        for left in &mut left {
            left.retain(|release| papers.iter().any(|&paper| listed(release, &minecraft[paper])));
        }
        if before == (papers.len(), left.iter().map(Vec::len).sum::<usize>()) {
            break;
        }
    }
    left.into_iter().map(|left| left.into_iter().map(|release| release.id.as_str()).collect()).collect()
}

/// The best solution for the members, with shared plugins within the releases that work on the excluded servers.
fn best_solution<'a>(servers: &[Server<'a>], members: &[usize], minecraft: &[String]) -> Solution<'a> {
    let free = best(servers, members, minecraft, &|_, _, _| true).unwrap();
    let papers = free.0.clone();
    let works = |excluded: usize, plugin_index: usize, release: &Release| {
        let plugin = &servers[excluded].plugins[plugin_index];
        let running = servers[excluded].request.running.as_ref().unwrap();
        let usable = plugin_usable(&servers[excluded], plugin_index, release);
        runs(servers[excluded].request, release)
            || usable && listed(release, running.minecraft.as_str()) && plugin.mode == Mode::Mandatory
    };
    let excluded: Vec<usize> =
        (0..servers.len()).filter(|at| !members.contains(at) && servers[*at].request.running.is_some()).collect();
    let within = |heed: &[usize]| {
        best(servers, members, minecraft, &|paper, shared: &[(usize, usize)], release| {
            if let Some((member, paper)) = paper {
                return papers[member] == paper;
            }
            heed.iter().all(|&excluded| {
                servers[excluded].plugins.iter().enumerate().all(|(plugin_index, plugin)| {
                    let shares = shared.iter().any(|&(server, other)| {
                        let other = &servers[server].plugins[other];
                        other.project.id == plugin.project.id && !other.latest.is_disjoint(&plugin.latest)
                    });
                    let any = plugin.project.releases.iter().any(|release| works(excluded, plugin_index, release));
                    !shares || !any || works(excluded, plugin_index, release.unwrap())
                })
            })
        })
    };
    if let Some(found) = within(&excluded) {
        return found;
    }
    let (mut heed, mut found) = (Vec::new(), free);
    for at in excluded {
        let mut with = heed.clone();
        with.push(at);
        if let Some(better) = within(&with) {
            (heed, found) = (with, better);
        }
    }
    found
}
