//! Pure. Enumerates every version set for some servers, best first: the first valid one is the solution.

use super::{Mode, Server};
use crate::catalog::Release;
use crate::solve::tests::small::bears;

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

pub(super) type Solution<'a> = (Vec<usize>, Vec<Vec<Option<&'a Release>>>);

/// The filter for choices: a Paper version (server and position), or a release for these servers and plugins.
type May<'m> = dyn Fn(Option<(usize, usize)>, &[(usize, usize)], Option<&Release>) -> bool + 'm;

/// The best solution for these servers, if there is any.
pub(super) fn best<'a>(
    servers: &[Server<'a>],
    members: &[usize],
    minecraft: &[String],
    may: &May<'_>,
) -> Option<Solution<'a>> {
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

/// All servers and plugins that share this one, over any number of objects.
pub(super) fn sharers(servers: &[Server<'_>], among: &[usize], server: usize, shelf: usize) -> Vec<(usize, usize)> {
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

pub(super) fn listed(release: &Release, minecraft: &str) -> bool {
    release.minecraft.iter().any(|listed| listed.as_str() == minecraft)
}

pub(super) fn plugin_usable(server: &Server<'_>, shelf: usize, release: &Release) -> bool {
    server.plugins[shelf].usable.iter().any(|usable| usable.id == release.id)
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

    /// Whether the last choice is compatible with those before it.
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

    /// Whether a release accepts the choice for another plugin of the same server.
    fn bears(&self, seat: usize, release: Option<&Release>, shelf: usize, there: Option<&Release>) -> bool {
        let Some(release) = release else { return true };
        let id = &self.servers[seat].plugins[shelf].project.id;
        let mut lines = release.dependencies.iter().filter(|dependency| dependency.project_id.as_ref() == Some(id));
        lines.all(|dependency| bears(dependency, there))
    }
}
