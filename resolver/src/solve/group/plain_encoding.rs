//! Pure. Encodes the problem of several servers in the plain way, to compare other solvers with this one. There is a package for
//! each Paper and each plugin, and releases depend on the Paper versions they run on. No domain is narrowed, and
//! unusable versions are not grouped.

use jiff::Timestamp;

use super::problem::JointProblem;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::index::index_set::IndexSet;
use crate::index::rules::MAX_RELEASES;
use crate::model::catalog::Catalog;
use crate::model::request::Request;
use crate::model::version::Minecraft;

/// The data that has to be read before the problem can be encoded.
pub struct PlainTables<'a> {
    tables: SharedTables<'a>,
    /// In the order of the server names.
    views: Vec<ServerView<'a>>,
}

/// Runs of versions, first and last, in ascending order.
pub type VersionRuns = Vec<(u32, u32)>;

/// Packages by number: the servers' Papers in the order of the server names, then the plugins in the order of their
/// priority. Versions count from 1, oldest first. 0 is "not installed", which is the best version wherever it is
/// allowed.
pub struct PlainProblem<'x, 'a> {
    problem: JointProblem<'x, 'a>,
    /// By shared eligibility and release, the Paper versions that it runs on.
    runs_on: Vec<Vec<VersionRuns>>,
}

impl<'a> PlainTables<'a> {
    /// Reads the catalog for these servers.
    pub fn read(catalog: &'a Catalog, requests: &'a [Request], now: Timestamp) -> Self {
        let mut requests: Vec<&Request> = requests.iter().collect();
        requests.sort_by(|a, b| a.server.cmp(&b.server));
        let (tables, views) = SharedTables::read(catalog, &requests, now);
        Self { tables, views }
    }

    /// Encodes the problem.
    pub fn encode(&self) -> PlainProblem<'_, 'a> {
        let problem = JointProblem::new(&self.tables, self.views.iter().collect());
        let runs_on = self.tables.eligibilities.iter().map(|eligibility| {
            let longest = eligibility.usable.highest(MAX_RELEASES).unwrap_or_default();
            let papers =
                |release| runs(1, eligibility.supports.len(), |paper| eligibility.supports[paper - 1].has(release));
            (0..=longest).map(papers).collect()
        });
        PlainProblem { runs_on: runs_on.collect(), problem }
    }
}

impl PlainProblem<'_, '_> {
    /// The number of Paper packages, which come first.
    pub fn servers(&self) -> usize {
        self.problem.views.len()
    }

    /// The number of packages.
    pub fn packages(&self) -> usize {
        self.servers() + self.problem.variables.len()
    }

    /// The newest version of a package, usable or not.
    pub fn newest(&self, package: usize) -> u32 {
        version_from_index(match package.checked_sub(self.servers()) {
            None => self.problem.tables.papers[self.problem.views[package].papers].len(),
            Some(variable) => self.releases(variable),
        })
    }

    /// Whether the request and the release itself allow a version.
    pub fn is_allowed(&self, package: usize, version: u32) -> bool {
        self.allowed(package).has(index_from_version(version))
    }

    /// The dependencies of an allowed version: other packages, and the versions of each.
    pub fn needs(&self, package: usize, version: u32) -> Vec<(usize, VersionRuns)> {
        let index = index_from_version(version);
        let Some(variable) = package.checked_sub(self.servers()) else { return Vec::new() };
        if index == 0 {
            return Vec::new();
        }
        let mut needs: Vec<(usize, VersionRuns)> = Vec::new();
        for &(server, plugin) in &self.problem.variables[variable].members {
            let plugin_view = &self.problem.views[server].plugins[plugin];
            needs.push((server, self.runs_on[plugin_view.eligibility][index].clone()));
            for edge in self.problem.tables.edges(plugin_view, index) {
                // A project that is not used on that server can be neither required nor excluded.
                let Some(target) = self.problem.views[server].position_of(edge.to) else { continue };
                let other = self.problem.variable_of[server][target];
                needs.push((self.servers() + other, runs(0, self.releases(other), |index| edge.set.has(index))));
            }
        }
        needs
    }

    /// The Minecraft version of a server's Paper.
    pub fn minecraft(&self, server: usize, version: u32) -> &Minecraft {
        &self.problem.tables.papers[self.problem.views[server].papers][index_from_version(version) - 1]
    }

    fn allowed(&self, package: usize) -> &IndexSet {
        match package.checked_sub(self.servers()) {
            None => &self.problem.papers[package],
            Some(variable) => &self.problem.variables[variable].domain,
        }
    }

    fn releases(&self, variable: usize) -> usize {
        self.problem.tables.projects[&self.problem.variables[variable].project].releases.len()
    }
}

fn runs(first: usize, last: usize, has: impl Fn(usize) -> bool) -> VersionRuns {
    let mut runs = VersionRuns::new();
    for version in (first..=last).filter(|&version| has(version)).map(version_from_index) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == version => *end = version,
            _ => runs.push((version, version)),
        }
    }
    runs
}

fn version_from_index(index: usize) -> u32 {
    u32::try_from(index).expect("a plugin has at most 60,000 releases")
}

fn index_from_version(version: u32) -> usize {
    usize::try_from(version).expect("a version number fits into usize")
}
