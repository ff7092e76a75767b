//! Pure. Enumerates every version set for some servers, best first: the first valid one is the solution.

use super::{Mode, Server};
use crate::model::catalog::Release;
use crate::solve::tests::small_fleets::accepts;

/// One plugin on one or several servers.
struct Var<'a> {
    members: Vec<(usize, usize)>,
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
    let selected: Vec<Server<'a>> = members.iter().map(|&member| servers[member].clone()).collect();
    let mut vars: Vec<((bool, String, usize, usize), Var<'a>)> = Vec::new();
    let mut var_of: Vec<Vec<usize>> = selected.iter().map(|server| vec![usize::MAX; server.plugins.len()]).collect();
    let among: Vec<usize> = (0..selected.len()).collect();
    for (server_index, server) in selected.iter().enumerate() {
        for plugin_index in 0..server.plugins.len() {
            let mut at = sharers(&selected, &among, server_index, plugin_index);
            if server.plugins[plugin_index].latest.is_empty() {
                at = vec![(server_index, plugin_index)];
            }
            if at[0] != (server_index, plugin_index) {
                continue;
            }
            let ranks = at.iter().map(|&(server_index, plugin_index)| {
                let object = selected[server_index].plugins[plugin_index].object.clone();
                (object.is_none(), object.unwrap_or_default(), server_index, plugin_index)
            });
            let plugin = &server.plugins[plugin_index];
            let originals: Vec<(usize, usize)> =
                at.iter().map(|&(server_index, plugin_index)| (members[server_index], plugin_index)).collect();
            let all = |release: &&'a Release| {
                at.iter()
                    .all(|&(server_index, plugin_index)| plugin_usable(&selected[server_index], plugin_index, release))
            };
            let releases = plugin.usable.iter().copied().filter(all);
            let mut candidates: Vec<Option<&Release>> = match &plugin.mode {
                Mode::Mandatory => releases.map(Some).collect(),
                Mode::Optional => std::iter::once(None).chain(releases.map(Some)).collect(),
                Mode::Retained(release) => vec![Some(*release)],
            };
            candidates.retain(|candidate| plugin.latest.is_empty() || may(None, &originals, *candidate));
            vars.push((ranks.min().unwrap(), Var { members: at, candidates }));
        }
    }
    vars.sort_by(|(a, _), (b, _)| a.cmp(b));
    let vars: Vec<Var<'a>> = vars.into_iter().map(|(_, var)| var).collect();
    for (number, var) in vars.iter().enumerate() {
        for &(server_index, plugin_index) in &var.members {
            var_of[server_index][plugin_index] = number;
        }
    }
    let search = Search { servers: &selected, minecraft, vars, var_of };
    let mut papers = Vec::new();
    search.papers(&mut papers, may).map(|chosen| {
        let of = |vars: &Vec<usize>| vars.iter().map(|&var| chosen[var]).collect();
        (papers.clone(), search.var_of.iter().map(of).collect())
    })
}

/// All servers and plugins that share this one, over any number of objects.
pub(super) fn sharers(
    servers: &[Server<'_>],
    among: &[usize],
    server: usize,
    plugin_index: usize,
) -> Vec<(usize, usize)> {
    let mut found = vec![(server, plugin_index)];
    let mut at = 0;
    while at < found.len() {
        let plugin = &servers[found[at].0].plugins[found[at].1];
        for &other in among {
            for (plugin_index, theirs) in servers[other].plugins.iter().enumerate() {
                let same = theirs.project.id == plugin.project.id && !theirs.latest.is_disjoint(&plugin.latest);
                if same && !found.contains(&(other, plugin_index)) {
                    found.push((other, plugin_index));
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

pub(super) fn plugin_usable(server: &Server<'_>, plugin_index: usize, release: &Release) -> bool {
    server.plugins[plugin_index].usable.iter().any(|usable| usable.id == release.id)
}

impl<'a> Search<'_, 'a> {
    fn papers(&self, papers: &mut Vec<usize>, may: &May<'_>) -> Option<Vec<Option<&'a Release>>> {
        if papers.len() == self.servers.len() {
            let mut chosen = Vec::new();
            return self.releases(papers, &mut chosen).then_some(chosen);
        }
        let server_index = papers.len();
        for &paper in &self.servers[server_index].papers {
            if !may(Some((server_index, paper)), &[], None) {
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
                var.members.iter().all(|&(server_index, plugin_index)| {
                    matches!(self.servers[server_index].plugins[plugin_index].mode, Mode::Retained(_))
                        || listed(release, &self.minecraft[papers[server_index]])
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
        (0..self.servers.len()).all(|server_index| {
            let vars = &self.var_of[server_index];
            let Some(mine) = vars.iter().position(|&var| var == last) else { return true };
            vars.iter().enumerate().filter(|&(_, &var)| var <= last).all(|(other, &var)| {
                self.accepts(server_index, chosen[last], other, chosen[var])
                    && self.accepts(server_index, chosen[var], mine, chosen[last])
            })
        })
    }

    /// Whether a release accepts the choice for another plugin of the same server.
    fn accepts(
        &self,
        server_index: usize,
        release: Option<&Release>,
        plugin_index: usize,
        target: Option<&Release>,
    ) -> bool {
        let Some(release) = release else { return true };
        let id = &self.servers[server_index].plugins[plugin_index].project.id;
        let mut lines = release.dependencies.iter().filter(|dependency| dependency.project_id.as_ref() == Some(id));
        lines.all(|dependency| accepts(dependency, target))
    }
}
