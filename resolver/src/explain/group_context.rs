//! Pure. Presents one server together with the others of its group, for explanations.

use jiff::Timestamp;
use pubgrub::VersionSet;

use super::apply_to_others;
use crate::explanation::HintStep;
use crate::index::CandidateIndex;
use crate::index::fleet_tables::{PluginView, ServerView, SharedTables};
use crate::index::index_set::IndexSet;
use crate::index::paper_candidates::candidates;
use crate::model::budget::BudgetExceeded;
use crate::model::catalog::{Catalog, Release};
use crate::model::compatibility_facts::UsedFact;
use crate::model::request::Request;
use crate::model::software::PaperName;
use crate::model::version::Minecraft;
use crate::solve::budget::BudgetMeter;
use crate::solve::group::exclusion::{self, GroupDecision, working_releases};
use crate::solve::group::problem::{DomainCache, JointProblem};
use crate::solve::group::solo_domains::{SharedDomains, solo_problem};
use crate::solve::group::{Choice, Fleet, MemberDecision, provider};
use crate::solve::{SolveOutcome, outcome};

/// Limit of group members for analyses that solve the group once per attempt. Larger groups get no hints, and the
/// blocking servers are named only if two servers alone show the conflict.
pub(crate) const MAX_ANALYSED_SERVERS: usize = 64;

/// One server and its group.
#[derive(Clone, Copy)]
pub(crate) struct GroupContext<'c, 'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) tables: &'c SharedTables<'a>,
    pub(crate) views: &'c [ServerView<'a>],
    pub(crate) outcome: &'c GroupDecision<'a>,
    /// Position of this server.
    pub(crate) server: usize,
}

/// The Paper versions, and the releases of one plugin, that a server could have alone.
pub(crate) struct SoloDomain {
    /// Position of the server.
    pub(crate) server: usize,
    /// Indexes of Paper versions.
    pub(crate) papers: IndexSet,
    /// Indexes of releases in the common numbering.
    pub(crate) releases: IndexSet,
}

/// A shared plugin without a common release on two servers, with the Paper versions in question.
pub(crate) struct GroupConflict {
    /// Position of the plugin on this server.
    pub(crate) plugin: usize,
    /// The options of this server, then those of each conflicting server.
    pub(crate) domains: Vec<SoloDomain>,
    /// The number of conflicting servers that are not listed.
    pub(crate) more: usize,
}

/// Conflicts on another server, with its chosen releases, that prevent a release of a shared plugin.
pub(crate) struct PairConflict {
    /// Position of the server.
    pub(crate) server: usize,
    /// The index of its Paper version.
    pub(crate) paper: usize,
    /// Installed plugins that are incompatible with the release: display names with versions.
    pub(crate) with: Vec<String>,
    /// Plugins that the release needs and that are not installed: display names.
    pub(crate) needs: Vec<String>,
    /// The facts behind it that no page states.
    pub(crate) facts: Vec<UsedFact>,
}

impl<'c, 'a> GroupContext<'c, 'a> {
    /// The decision for this server.
    pub(crate) fn decision(&self) -> &'c MemberDecision<'a> {
        &self.outcome.decisions[self.server]
    }

    /// The server view that was used for the decision.
    pub(crate) fn view(&self, at: usize) -> &'c ServerView<'a> {
        self.outcome.view(self.views, at)
    }

    /// The members of the group except this server.
    pub(crate) fn others(&self) -> Vec<usize> {
        self.outcome.members().into_iter().filter(|&at| at != self.server).collect()
    }

    fn choice(&self, at: usize) -> Option<&'c Choice<'a>> {
        match &self.outcome.decisions[at] {
            MemberDecision::Member(choice) => Some(choice),
            MemberDecision::UnsolvableAlone | MemberDecision::Excluded | MemberDecision::GaveUp(_) => None,
        }
    }

    /// Position of a plugin of this server on another server that shares it.
    pub(crate) fn shared_with(&self, plugin: usize, with: usize) -> Option<usize> {
        let mine = &self.view(self.server).plugins[plugin];
        let theirs = self.view(with).position_of(mine.project)?;
        let one = mine.latest.iter().any(|object| self.view(with).plugins[theirs].latest.contains(object));
        one.then_some(theirs)
    }

    /// The Paper versions of a server at the point where this server's version is chosen: fixed for servers that come
    /// before it by name.
    fn papers_before(&self, at: usize) -> IndexSet {
        match self.choice(at) {
            Some(choice) if at < self.server => IndexSet::from_indexes([choice.paper_index]),
            Some(_) | None => self.view(at).open.clone(),
        }
    }

    /// The solutions that the members could have alone: on the chosen Paper versions if `on_chosen_papers`, otherwise
    /// on those that they can choose from.
    fn solo_domains(&self, on_chosen_papers: bool) -> &'c SharedDomains {
        let solo_domains = &self.outcome.solo_domains;
        let cell = if on_chosen_papers { &solo_domains.chosen } else { &solo_domains.open };
        cell.get_or_init(|| {
            let members = self.outcome.members().into_iter().map(|at| {
                let chosen = self.choice(at).filter(|_| on_chosen_papers);
                let papers = chosen
                    .map_or_else(|| self.view(at).open.clone(), |choice| IndexSet::from_indexes([choice.paper_index]));
                (at, self.view(at), papers)
            });
            SharedDomains::from_views(self.tables, members)
        })
    }

    /// Finds the servers that share a plugin with this one and have no common release of it.
    ///
    /// `mine` holds the Paper versions of this server. The others use the versions that they can choose from, or the
    /// chosen ones for servers before this one if `on_chosen_papers`. `ignored` holds plugins of this server to ignore.
    /// At most `many` options are listed, this server's first. The rest is counted.
    pub(crate) fn group_conflicts(
        &self,
        ignored: &[usize],
        mine: &IndexSet,
        on_chosen_papers: bool,
        many: usize,
    ) -> Vec<GroupConflict> {
        let view = self.view(self.server);
        let Some(solo) = solo_problem(self.tables, view, mine.clone(), ignored, &mut DomainCache::default()) else {
            return Vec::new();
        };
        let others = [
            (self.solo_domains(on_chosen_papers), 0..self.server),
            (self.solo_domains(false), self.server + 1..self.views.len()),
        ];
        let plugins = view.plugins.iter().enumerate().filter(|(plugin, _)| !ignored.contains(plugin));
        let conflict = |(plugin, plugin_view): (usize, &PluginView<'a>)| {
            let releases = &solo.variables[solo.variable_of[0][plugin]].domain;
            let (mut against, mut count) = (Vec::new(), 0);
            for (domains, range) in &others {
                for sharers in domains.for_project(plugin_view.project) {
                    let theirs = &self.view(sharers.representative.0).plugins[sharers.representative.1].latest;
                    let is_one = plugin_view.latest.iter().any(|object| theirs.contains(object));
                    if !is_one || !sharers.releases.is_disjoint(releases) {
                        continue;
                    }
                    let servers = sharers.within(range);
                    count += servers.len();
                    against.extend(servers.iter().take(many).map(|&server| (server, domains, &sharers.releases)));
                }
            }
            against.sort_by_key(|(server, _, _)| *server);
            let mine = SoloDomain { server: self.server, papers: solo.papers[0].clone(), releases: releases.clone() };
            let theirs = against.into_iter().map(|(server, domains, releases)| SoloDomain {
                server,
                papers: domains.papers(server).clone(),
                releases: releases.clone(),
            });
            let domains: Vec<SoloDomain> = std::iter::once(mine).chain(theirs).take(many).collect();
            (count > 0).then(|| GroupConflict { plugin, more: count + 1 - domains.len(), domains })
        };
        plugins.filter_map(conflict).collect()
    }

    /// A minimal subset of the others that this server is incompatible with on these Paper versions. Empty for a group
    /// that is too large.
    pub(crate) fn minimal_conflict(
        &self,
        mine: &IndexSet,
        on_chosen_papers: bool,
        minimize: impl FnOnce(
            Vec<usize>,
            &dyn Fn(&[usize]) -> Result<bool, BudgetExceeded>,
        ) -> Result<Vec<usize>, BudgetExceeded>,
        meter: &BudgetMeter,
    ) -> Vec<usize> {
        let others = self.others();
        if others.len() >= MAX_ANALYSED_SERVERS {
            return Vec::new();
        }
        let fails = |subset: &[usize]| Ok(!self.is_compatible_with(subset, mine, on_chosen_papers, meter)?);
        minimize(others, &fails).unwrap_or_default()
    }

    /// Whether the server is compatible with these others on these Paper versions.
    pub(crate) fn is_compatible_with(
        &self,
        others: &[usize],
        mine: &IndexSet,
        on_chosen_papers: bool,
        meter: &BudgetMeter,
    ) -> Result<bool, BudgetExceeded> {
        Ok(self.solve_with(others, mine, on_chosen_papers, meter)?.is_some())
    }

    /// The releases of the server, per plugin, in a solution with these others on these Paper versions. `None` if they
    /// are incompatible.
    pub(crate) fn solve_with(
        &self,
        others: &[usize],
        mine: &IndexSet,
        on_chosen_papers: bool,
        meter: &BudgetMeter,
    ) -> Result<Option<Vec<Option<&'a Release>>>, BudgetExceeded> {
        let mut all: Vec<usize> = others.iter().copied().chain([self.server]).collect();
        all.sort_unstable();
        let mut problem = JointProblem::new(self.tables, all.iter().map(|&at| self.view(at)).collect());
        for (papers, &at) in problem.papers.iter_mut().zip(&all) {
            if at == self.server {
                *papers = mine.clone();
            } else if on_chosen_papers {
                *papers = self.papers_before(at);
            }
        }
        let position = all.partition_point(|&at| at < self.server);
        Ok(provider::solve(&problem, meter)?.map(|solution| problem.releases(position, &solution)))
    }

    /// The servers whose chosen Paper version cannot use a release (given by its index) of a shared plugin, with their
    /// options. Excluded servers are included if the plugin stays within the releases that work on them.
    pub(crate) fn servers_without_release(&self, plugin: usize, index: usize) -> Vec<SoloDomain> {
        let all = (0..self.views.len()).filter(|&at| at != self.server);
        let found = all.filter_map(|at| {
            let theirs = self.shared_with(plugin, at)?;
            let (view, plugin_view) = (self.view(at), &self.view(at).plugins[theirs]);
            let (papers, releases) = match self.choice(at) {
                Some(choice) => (
                    IndexSet::from_indexes([choice.paper_index]),
                    self.releases_on_paper(plugin_view, choice.paper_index),
                ),
                None if self.outcome.accommodated[at] => {
                    (self.running_paper(view)?, working_releases(self.tables, view, plugin_view))
                }
                None => return None,
            };
            (!releases.has(index)).then_some(SoloDomain { server: at, papers, releases })
        });
        found.collect()
    }

    /// The other servers whose chosen releases are incompatible with a release (given by its index) of a shared plugin.
    pub(crate) fn pair_conflicts(&self, plugin: usize, index: usize) -> Vec<PairConflict> {
        let found = self.others().into_iter().filter_map(|at| {
            let theirs = self.shared_with(plugin, at)?;
            let conflict = self.pair_conflict(at, theirs, index, self.choice(at)?);
            (!conflict.with.is_empty() || !conflict.needs.is_empty()).then_some(conflict)
        });
        found.collect()
    }

    fn pair_conflict(&self, at: usize, theirs: usize, index: usize, choice: &Choice<'_>) -> PairConflict {
        let plugins = &self.view(at).plugins;
        let chosen = |plugin: usize| self.tables.projects[&plugins[plugin].project].index_of(choice.releases[plugin]?);
        let named = |plugin: usize, index: usize| {
            let listing = &self.tables.projects[&plugins[plugin].project];
            format!("{} {}", listing.name, listing.releases[index - 1].version)
        };
        let mut conflict = PairConflict {
            server: at,
            paper: choice.paper_index,
            with: Vec::new(),
            needs: Vec::new(),
            facts: Vec::new(),
        };
        for edge in self.tables.edges(&plugins[theirs], index) {
            // A project that is not used on that server puts no constraint on it.
            let Some(to) = self.view(at).position_of(edge.to) else { continue };
            match chosen(to) {
                Some(installed) if !edge.set.has(installed) => {
                    conflict.with.push(named(to, installed));
                    conflict.facts.extend(self.tables.fact(&plugins[theirs], index, edge));
                }
                None if !edge.set.has(0)
                    && self.releases_on_paper(&plugins[to], choice.paper_index).is_disjoint(&edge.set) =>
                {
                    conflict.needs.push(self.tables.projects[&edge.to].name.to_owned());
                }
                Some(_) | None => {}
            }
        }
        for (plugin, plugin_view) in plugins.iter().enumerate() {
            let Some(installed) = chosen(plugin).filter(|_| plugin != theirs) else { continue };
            let edges = self.tables.edges(plugin_view, installed).iter();
            for edge in edges.filter(|edge| edge.to == plugins[theirs].project && !edge.set.has(index)) {
                conflict.with.push(named(plugin, installed));
                conflict.facts.extend(self.tables.fact(plugin_view, installed, edge));
            }
        }
        conflict.with.sort();
        conflict.with.dedup();
        conflict.needs.sort();
        conflict.facts.sort();
        conflict
    }

    fn releases_on_paper(&self, plugin_view: &PluginView<'_>, paper: usize) -> IndexSet {
        self.tables.eligibilities[plugin_view.eligibility].supports[paper - 1].intersection(&plugin_view.domain)
    }

    fn running_paper(&self, view: &ServerView<'_>) -> Option<IndexSet> {
        let running = view.request.running.as_ref()?;
        let paper = self.tables.papers[view.papers].iter().position(|paper| *paper == running.minecraft)?;
        Some(IndexSet::from_indexes([paper + 1]))
    }

    /// The index, in the common numbering, of a release of this server.
    pub(crate) fn index_of(&self, plugin: usize, release: &Release) -> Option<usize> {
        self.tables.projects[&self.view(self.server).plugins[plugin].project].index_of(release)
    }

    /// Whether the server has this Paper version (given by its index) or a newer one.
    pub(crate) fn has_reached(&self, paper: usize) -> bool {
        self.choice(self.server).is_some_and(|choice| choice.paper_index >= paper)
    }

    /// The Paper versions that a server sees, oldest first.
    pub(crate) fn papers(&self, at: usize) -> &'c [Minecraft] {
        &self.tables.papers[self.view(at).papers]
    }

    /// The result for the server if its request were `mine` and the whole group had taken the steps that led to it.
    /// `None` if there is no solution. Groups that are too large are not tried.
    pub(crate) fn outcome(
        &self,
        mine: &Request,
        steps: &[HintStep],
        now: Timestamp,
        meter: &BudgetMeter,
    ) -> Result<Option<SolveOutcome>, BudgetExceeded> {
        let evaluate = |group: Option<&GroupContext<'_, '_>>| match group {
            Some(group) => Ok(group.bare_outcome(now)),
            None => outcome(|| CandidateIndex::build(self.catalog, mine, now), meter),
        };
        self.with_changed_requests(mine, steps, now, meter, evaluate).unwrap_or_else(|| Err(meter.exceeded()))
    }

    /// Presents the server and its group (`None` if it has no group then) under changed requests. Its own request is
    /// `mine`, and the whole group has taken the steps that led to it. `None` if the group is too large or exceeds the
    /// budget.
    pub(crate) fn with_changed_requests<T>(
        &self,
        mine: &Request,
        steps: &[HintStep],
        now: Timestamp,
        meter: &BudgetMeter,
        evaluate: impl FnOnce(Option<&GroupContext<'_, '_>>) -> T,
    ) -> Option<T> {
        if self.views.len() > MAX_ANALYSED_SERVERS || meter.is_spent() {
            return None;
        }
        let requests = self.views.iter().enumerate().map(|(at, view)| {
            if at == self.server {
                return mine.clone();
            }
            let mut request = view.request.clone();
            for step in steps {
                apply_to_others(&mut request, step);
            }
            request
        });
        let requests: Vec<Request> = requests.collect();
        let fleet = Fleet::read(self.catalog, &requests, now);
        let group = fleet.groups.iter().position(|group| group.contains(&self.server))?;
        let server = fleet.groups[group].iter().position(|&at| at == self.server)?;
        if fleet.views[group].is_empty() {
            return Some(evaluate(None));
        }
        // A server that was too hard to be decided with the others counts as too hard here, too.
        let exceeded = fleet.groups[group].iter().map(|&at| match &self.outcome.decisions[at] {
            MemberDecision::GaveUp(gave_up) => Some(gave_up.clone()),
            MemberDecision::UnsolvableAlone | MemberDecision::Excluded | MemberDecision::Member(_) => None,
        });
        let exceeded: Vec<Option<BudgetExceeded>> = exceeded.collect();
        let (tables, views) = (&fleet.tables, fleet.views[group].as_slice());
        let outcome = &exclusion::decide_within(self.catalog, tables, views, now, meter, &exceeded).ok()?;
        Some(evaluate(Some(&GroupContext { catalog: self.catalog, tables, views, outcome, server })))
    }

    /// The chosen releases of the server, without an explanation.
    fn bare_outcome(&self, now: Timestamp) -> Option<SolveOutcome> {
        let MemberDecision::Member(choice) = self.decision() else { return None };
        let ServerView { request, plugins, .. } = &self.views[self.server];
        let candidates = candidates(self.catalog, request, now);
        let paper = &candidates[choice.paper_index - 1];
        let name = |plugin: usize| self.catalog.projects[plugins[plugin].project].name.clone();
        Some(SolveOutcome {
            paper: PaperName {
                software: request.software,
                minecraft: paper.version.minecraft.clone(),
                build: paper.build?.number,
            },
            left_behind: choice.left_behind.iter().map(|&(plugin, _)| name(plugin)).collect(),
            plugins: choice
                .releases
                .iter()
                .enumerate()
                .filter_map(|(plugin, release)| Some((name(plugin), (*release)?.version.clone())))
                .collect(),
        })
    }
}
