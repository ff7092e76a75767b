//! Pure. What a group should come to, by trying everything: own code, from the catalog and the requests.
//!
//! It takes from the code under test only which projects take part on a server and in which order they count.

#![expect(clippy::similar_names, reason = "a shelf is a shelf everywhere here, and `self` is no name of ours")]

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::small::Small;
use crate::catalog::{BuildChannel, DependencyKind, Project, Release};
use crate::request::{Dependencies, PaperWish, PluginWish, Request, VersionWish};
use crate::shelf::World;

/// What one server should come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// No answer alone.
    Alone,
    /// Not with the others.
    Aside,
    /// Neither, because what they have is older than what runs: what it has alone.
    Below,
    /// This Minecraft and these releases, sorted.
    Runs(String, Vec<String>),
}

impl Answer {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Aside => "aside",
            Self::Below => "below",
            Self::Runs(..) => "runs",
        }
    }
}

/// How a plugin takes part on one server.
#[derive(Debug, Clone, PartialEq)]
enum Mode<'a> {
    /// Asked for.
    Insist,
    /// Not installed unless something needs it.
    Optional,
    /// This release, whatever Paper it is.
    Stays(&'a Release),
}

/// One server.
#[derive(Clone)]
struct Server<'a> {
    request: &'a Request,
    /// Open ones, newest first, as places in the sorted list.
    papers: Vec<usize>,
    plugins: Vec<Plugin<'a>>,
}

#[derive(Clone)]
struct Plugin<'a> {
    project: &'a Project,
    /// First object, if asked for.
    object: Option<String>,
    latest: BTreeSet<String>,
    mode: Mode<'a>,
    /// May be used and meet the pin, newest first.
    usable: Vec<&'a Release>,
    /// May be used, newest first.
    may: Vec<&'a Release>,
}

/// One plugin on one or several servers.
struct Var<'a> {
    at: Vec<(usize, usize)>,
    candidates: Vec<Option<&'a Release>>,
}

struct Search<'s, 'a> {
    servers: &'s [Server<'a>],
    minecraft: &'s [String],
    vars: Vec<Var<'a>>,
    var_of: Vec<Vec<usize>>,
}

type Solution<'a> = (Vec<usize>, Vec<Vec<Option<&'a Release>>>);

/// The expected answers for a group.
pub(super) fn group(problem: &Small, group: &[usize]) -> Vec<(String, Answer)> {
    let mut versions: Vec<_> = problem.catalog.paper.iter().map(|paper| &paper.minecraft).collect();
    versions.sort();
    let minecraft: Vec<String> = versions.iter().map(ToString::to_string).collect();
    let mut servers: Vec<Server<'_>> =
        group.iter().map(|&place| server(problem, &problem.requests[place], &minecraft)).collect();
    let all: Vec<usize> = (0..servers.len()).collect();
    let mut members = all.clone();
    let mut able = vec![true; servers.len()];
    if best(&servers, &all, &minecraft, &|_, _, _| true).is_none() {
        for (server, able) in servers.iter_mut().zip(&mut able) {
            *able = alone(server, &minecraft);
        }
        members = taken(&servers, &able, &minecraft);
    }
    let answer = (!members.is_empty()).then(|| heeded(&servers, &members, &minecraft));
    let mut answers = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let answer = match members.iter().position(|&member| member == at) {
            Some(place) => {
                let (papers, releases) = answer.as_ref().unwrap();
                let mut ids: Vec<String> = releases[place].iter().flatten().map(|r| r.id.clone()).collect();
                ids.sort();
                Answer::Runs(minecraft[papers[place]].clone(), ids)
            }
            None if able[at] => {
                let others = answer.iter().flat_map(|(_, releases)| members.iter().zip(releases));
                let below = others.into_iter().any(|(&member, chosen)| is_below(server, &servers[member], chosen));
                if below { Answer::Below } else { Answer::Aside }
            }
            None => Answer::Alone,
        };
        answers.push((server.request.server.clone(), answer));
    }
    answers
}

/// Whether another server has a shared plugin in a release older than what runs here, and too old for here.
fn is_below(server: &Server<'_>, other: &Server<'_>, chosen: &[Option<&Release>]) -> bool {
    other.plugins.iter().zip(chosen).any(|(theirs, chosen)| {
        let shares =
            |mine: &&Plugin<'_>| mine.project.id == theirs.project.id && !mine.latest.is_disjoint(&theirs.latest);
        let (Some(mine), Some(chosen)) = (server.plugins.iter().find(shares), chosen) else { return false };
        let running = mine.usable.iter().copied().find(|release| runs(server.request, release));
        let can = mine.usable.iter().any(|release| release.id == chosen.id);
        !can && running.is_some_and(|running| age(chosen) < age(running))
    })
}

/// What orders the releases of a project.
fn age(release: &Release) -> (Option<jiff::Timestamp>, &str) {
    (release.published, &release.version)
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
        PaperWish::Latest => papers.truncate(1),
        PaperWish::Pin { version } | PaperWish::BuildPin { version, .. } => {
            papers.retain(|&at| minecraft[at] == version.to_string());
        }
        PaperWish::Auto => {}
    }
    let world = World::build(&problem.catalog, request, problem.now).unwrap_or_else(|gap| panic!("{gap:?}"));
    let delay = request.plugins.first().map_or(SignedDuration::ZERO, |wish| wish.delay);
    let asks = |project: &Project| {
        let mut asks: Vec<_> = request.plugins.iter().filter(|wish| wish.key == project.key).collect();
        asks.sort_by(|a, b| a.object.cmp(&b.object));
        asks
    };
    let go_down = may_go_down(problem, request, &world, &asks);
    let plugins = world.shelves.iter().map(|shelf| {
        let project = shelf.project;
        let asked = asks(project);
        let pins: Vec<&String> = asked
            .iter()
            .filter_map(|wish| if let VersionWish::Pin { version } = &wish.version { Some(version) } else { None })
            .collect();
        // All pinned: the highest. All numbers have one digit.
        let pin = (pins.len() == asked.len()).then(|| pins.iter().max().copied()).flatten();
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
                        dependency.kind != DependencyKind::Required || to.is_none_or(|to| !asks(to).is_empty())
                    })
            })
            .collect();
        let floor = (project.releases.iter())
            .filter(|release| runs(request, release) && release.file.as_ref().unwrap().hash.is_some())
            .map(age)
            .max();
        let floor = floor.filter(|_| !go_down.contains(&project.id.as_str()));
        usable.retain(|release| {
            pin == Some(&release.version) || runs(request, release) || floor.is_none_or(|floor| age(release) >= floor)
        });
        usable.sort_by(|a, b| b.published.cmp(&a.published).then_with(|| b.version.cmp(&a.version)));
        let may = usable.clone();
        usable.retain(|release| pin.is_none_or(|pin| *pin == release.version));
        let latest = asked.iter().filter(|wish| wish.version == VersionWish::Latest);
        Plugin {
            project,
            object: asked.first().map(|wish| wish.object.clone()),
            latest: latest.map(|wish| wish.object.clone()).collect(),
            mode: if asked.is_empty() { Mode::Optional } else { Mode::Insist },
            usable,
            may,
        }
    });
    Server { request, papers, plugins: plugins.collect() }
}

/// The projects that may go below what runs: by their Plugins, or because one of these needs them in a release that is old
/// enough and whose needs are asked for, where only that can bring them.
fn may_go_down<'a>(
    problem: &'a Small,
    request: &Request,
    world: &World<'a>,
    asks: &dyn Fn(&Project) -> Vec<&'a PluginWish>,
) -> Vec<&'a str> {
    let there: Vec<&Project> = world.shelves.iter().map(|shelf| shelf.project).collect();
    let allowed = |project: &&&Project| asks(project).first().is_some_and(|wish| wish.allow_downgrade);
    let mut go_down: Vec<&'a str> = there.iter().filter(allowed).map(|project| project.id.as_str()).collect();
    let mut looked_at = 0;
    while let Some(&id) = go_down.get(looked_at) {
        looked_at += 1;
        let project = problem.catalog.projects.iter().find(|project| project.id == id).unwrap();
        let delay = request.plugins.first().map_or(SignedDuration::ZERO, |wish| wish.delay);
        let pins: Vec<&VersionWish> = asks(project).iter().map(|wish| &wish.version).collect();
        for release in &project.releases {
            let pinned =
                pins.iter().any(|wish| matches!(wish, VersionWish::Pin { version } if *version == release.version));
            let may = release.file.as_ref().unwrap().hash.is_some()
                && (runs(request, release) || pinned || release.published.unwrap() + delay <= problem.now);
            for line in release.dependencies.iter().filter(|line| may && line.kind == DependencyKind::Required) {
                let needed = there.iter().find(|other| Some(&other.id) == line.project_id.as_ref());
                if let Some(needed) =
                    needed.filter(|other| asks(other).is_empty() && !go_down.contains(&other.id.as_str()))
                {
                    go_down.push(&needed.id);
                }
            }
        }
    }
    go_down
}

/// Whether a server has an answer alone; with strategy `latest`, after leaving behind what cannot follow.
fn alone(server: &mut Server<'_>, minecraft: &[String]) -> bool {
    let possible = |server: &Server<'_>| best(std::slice::from_ref(server), &[0], minecraft, &|_, _, _| true).is_some();
    if possible(server) || !matches!(server.request.paper, PaperWish::Latest) {
        return possible(server);
    }
    let asked: Vec<usize> = (0..server.plugins.len()).filter(|&at| server.plugins[at].mode == Mode::Insist).collect();
    for &at in &asked {
        server.plugins[at].mode = Mode::Optional;
    }
    if !possible(server) {
        return false;
    }
    for &at in &asked {
        server.plugins[at].mode = Mode::Insist;
        if possible(server) {
            continue;
        }
        server.plugins[at].latest.clear();
        let running = server.plugins[at].may.iter().rev().find(|release| runs(server.request, release));
        if let Some(running) = running {
            server.plugins[at].mode = Mode::Stays(running);
            if possible(server) {
                continue;
            }
        }
        server.plugins[at].mode = Mode::Optional;
    }
    true
}

/// One after the other, those first who go with the most others.
fn taken(servers: &[Server<'_>], able: &[bool], minecraft: &[String]) -> Vec<usize> {
    let able: Vec<usize> = (0..servers.len()).filter(|&at| able[at]).collect();
    let could: Vec<Vec<BTreeSet<&str>>> = servers.iter().map(|server| consistent(server, minecraft)).collect();
    let mut order: Vec<(usize, usize)> = able
        .iter()
        .map(|&me| {
            let strangers = servers[me].plugins.iter().enumerate().map(|(at, plugin)| {
                let sharers = sharers(servers, &able, me, at);
                if sharers.len() < 2 || plugin.mode != Mode::Insist {
                    return 0;
                }
                let takers =
                    |id: &str| sharers.iter().filter(|&&(other, shelf)| could[other][shelf].contains(id)).count();
                sharers.len() - could[me][at].iter().map(|id| takers(id)).max().unwrap_or(0)
            });
            (strangers.max().unwrap_or(0), me)
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

/// All servers and shelves that are one with this, over any number of objects.
fn sharers(servers: &[Server<'_>], among: &[usize], server: usize, shelf: usize) -> Vec<(usize, usize)> {
    let mut found = vec![(server, shelf)];
    let mut at = 0;
    while at < found.len() {
        let plugin = &servers[found[at].0].plugins[found[at].1];
        for &other in among {
            for (shelf, theirs) in servers[other].plugins.iter().enumerate() {
                let same = theirs.project.id == plugin.project.id && !theirs.latest.is_disjoint(&plugin.latest);
                if same && !found.contains(&(other, shelf)) {
                    found.push((other, shelf));
                }
            }
        }
        at += 1;
    }
    found.sort_unstable();
    found
}

fn listed(release: &Release, minecraft: &str) -> bool {
    release.minecraft.iter().any(|listed| listed.as_str() == minecraft)
}

/// What is left of each plugin when Papers without one and releases without a Paper are dropped, again and again.
fn consistent<'a>(server: &Server<'a>, minecraft: &[String]) -> Vec<BTreeSet<&'a str>> {
    let mut papers = server.papers.clone();
    let mut left: Vec<Vec<&Release>> = server.plugins.iter().map(|plugin| plugin.usable.clone()).collect();
    loop {
        let before = (papers.len(), left.iter().map(Vec::len).sum::<usize>());
        papers.retain(|&paper| {
            server.plugins.iter().zip(&left).all(|(plugin, left)| {
                plugin.mode != Mode::Insist || left.iter().any(|release| listed(release, &minecraft[paper]))
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

/// The best for the members, where shared plugins stay within what would work for those who are no members.
fn heeded<'a>(servers: &[Server<'a>], members: &[usize], minecraft: &[String]) -> Solution<'a> {
    let free = best(servers, members, minecraft, &|_, _, _| true).unwrap();
    let papers = free.0.clone();
    let works = |aside: usize, shelf: usize, release: &Release| {
        let plugin = &servers[aside].plugins[shelf];
        let running = servers[aside].request.running.as_ref().unwrap();
        let usable = plugin_usable(&servers[aside], shelf, release);
        runs(servers[aside].request, release)
            || usable && listed(release, running.minecraft.as_str()) && plugin.mode == Mode::Insist
    };
    let aside: Vec<usize> =
        (0..servers.len()).filter(|at| !members.contains(at) && servers[*at].request.running.is_some()).collect();
    let within = |heed: &[usize]| {
        best(servers, members, minecraft, &|paper, shared: &[(usize, usize)], release| {
            if let Some((seat, paper)) = paper {
                return papers[seat] == paper;
            }
            heed.iter().all(|&aside| {
                servers[aside].plugins.iter().enumerate().all(|(shelf, plugin)| {
                    let shares = shared.iter().any(|&(server, other)| {
                        let other = &servers[server].plugins[other];
                        other.project.id == plugin.project.id && !other.latest.is_disjoint(&plugin.latest)
                    });
                    let any = plugin.project.releases.iter().any(|release| works(aside, shelf, release));
                    !shares || !any || works(aside, shelf, release.unwrap())
                })
            })
        })
    };
    if let Some(found) = within(&aside) {
        return found;
    }
    let (mut heed, mut found) = (Vec::new(), free);
    for at in aside {
        let mut with = heed.clone();
        with.push(at);
        if let Some(better) = within(&with) {
            (heed, found) = (with, better);
        }
    }
    found
}

fn plugin_usable(server: &Server<'_>, shelf: usize, release: &Release) -> bool {
    server.plugins[shelf].usable.iter().any(|usable| usable.id == release.id)
}

/// What may be chosen: a Paper (seat and place), or a release for these servers and shelves.
type May<'m> = dyn Fn(Option<(usize, usize)>, &[(usize, usize)], Option<&Release>) -> bool + 'm;

/// The best for these servers, if there is any.
fn best<'a>(servers: &[Server<'a>], members: &[usize], minecraft: &[String], may: &May<'_>) -> Option<Solution<'a>> {
    let seats: Vec<Server<'a>> = members.iter().map(|&member| servers[member].clone()).collect();
    let mut vars: Vec<((bool, String, usize, usize), Var<'a>)> = Vec::new();
    let mut var_of: Vec<Vec<usize>> = seats.iter().map(|server| vec![usize::MAX; server.plugins.len()]).collect();
    let among: Vec<usize> = (0..seats.len()).collect();
    for (seat, server) in seats.iter().enumerate() {
        for shelf in 0..server.plugins.len() {
            let mut at = sharers(&seats, &among, seat, shelf);
            if server.plugins[shelf].latest.is_empty() {
                at = vec![(seat, shelf)];
            }
            if at[0] != (seat, shelf) {
                continue;
            }
            let ranks = at.iter().map(|&(seat, shelf)| {
                let object = seats[seat].plugins[shelf].object.clone();
                (object.is_none(), object.unwrap_or_default(), seat, shelf)
            });
            let plugin = &server.plugins[shelf];
            let originals: Vec<(usize, usize)> = at.iter().map(|&(seat, shelf)| (members[seat], shelf)).collect();
            let all =
                |release: &&'a Release| at.iter().all(|&(seat, shelf)| plugin_usable(&seats[seat], shelf, release));
            let releases = plugin.usable.iter().copied().filter(all);
            let mut candidates: Vec<Option<&Release>> = match &plugin.mode {
                Mode::Insist => releases.map(Some).collect(),
                Mode::Optional => std::iter::once(None).chain(releases.map(Some)).collect(),
                Mode::Stays(release) => vec![Some(*release)],
            };
            candidates.retain(|candidate| plugin.latest.is_empty() || may(None, &originals, *candidate));
            vars.push((ranks.min().unwrap(), Var { at, candidates }));
        }
    }
    vars.sort_by(|(a, _), (b, _)| a.cmp(b));
    let vars: Vec<Var<'a>> = vars.into_iter().map(|(_, var)| var).collect();
    for (number, var) in vars.iter().enumerate() {
        for &(seat, shelf) in &var.at {
            var_of[seat][shelf] = number;
        }
    }
    let search = Search { servers: &seats, minecraft, vars, var_of };
    let mut papers = Vec::new();
    search.papers(&mut papers, may).map(|chosen| {
        let of = |vars: &Vec<usize>| vars.iter().map(|&var| chosen[var]).collect();
        (papers.clone(), search.var_of.iter().map(of).collect())
    })
}

impl<'a> Search<'_, 'a> {
    fn papers(&self, papers: &mut Vec<usize>, may: &May<'_>) -> Option<Vec<Option<&'a Release>>> {
        if papers.len() == self.servers.len() {
            let mut chosen = Vec::new();
            return self.releases(papers, &mut chosen).then_some(chosen);
        }
        let seat = papers.len();
        for &paper in &self.servers[seat].papers {
            if !may(Some((seat, paper)), &[], None) {
                continue;
            }
            papers.push(paper);
            if let Some(found) = self.papers(papers, may) {
                return Some(found);
            }
            papers.pop();
        }
        None
    }

    fn releases(&self, papers: &[usize], chosen: &mut Vec<Option<&'a Release>>) -> bool {
        let Some(var) = self.vars.get(chosen.len()) else { return true };
        for &candidate in &var.candidates {
            let runs = candidate.is_none_or(|release| {
                var.at.iter().all(|&(seat, shelf)| {
                    matches!(self.servers[seat].plugins[shelf].mode, Mode::Stays(_))
                        || listed(release, &self.minecraft[papers[seat]])
                })
            });
            if !runs {
                continue;
            }
            chosen.push(candidate);
            if self.agrees(chosen) && self.releases(papers, chosen) {
                return true;
            }
            chosen.pop();
        }
        false
    }

    /// Whether the last one chosen goes together with those before it.
    fn agrees(&self, chosen: &[Option<&'a Release>]) -> bool {
        let last = chosen.len() - 1;
        (0..self.servers.len()).all(|seat| {
            let vars = &self.var_of[seat];
            let Some(mine) = vars.iter().position(|&var| var == last) else { return true };
            vars.iter().enumerate().filter(|&(_, &var)| var <= last).all(|(other, &var)| {
                self.bears(seat, chosen[last], other, chosen[var]) && self.bears(seat, chosen[var], mine, chosen[last])
            })
        })
    }

    /// Whether a release bears what is chosen for another plugin of the same server.
    fn bears(&self, seat: usize, release: Option<&Release>, shelf: usize, there: Option<&Release>) -> bool {
        let Some(release) = release else { return true };
        let id = &self.servers[seat].plugins[shelf].project.id;
        release.dependencies.iter().filter(|dependency| dependency.project_id.as_ref() == Some(id)).all(|dependency| {
            let meant = |other: &Release| dependency.version_id.as_ref().is_none_or(|id| *id == other.id);
            match dependency.kind {
                DependencyKind::Required => there.is_some_and(meant),
                DependencyKind::Optional => there.is_none_or(meant),
                DependencyKind::Incompatible => there.is_none_or(|other| !meant(other)),
                DependencyKind::Embedded => true,
            }
        })
    }
}
