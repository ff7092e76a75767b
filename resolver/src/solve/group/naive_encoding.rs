//! Pure. Encodes the problem of several servers naively, to compare other solvers with this one. There is a package for
//! each Paper and each plugin, and releases depend on the Paper versions they run on. No domain is narrowed, and
//! unusable versions are not grouped.

use jiff::Timestamp;

use super::problem::JointProblem;
use crate::catalog::Catalog;
use crate::index::MOST_RELEASES;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::request::Request;
use crate::solve::index_set::IndexSet;
use crate::version::Minecraft;

/// The data that has to be read before the problem can be encoded.
pub struct PlainTables<'a> {
    tables: SharedTables<'a>,
    /// In the order of the server names.
    seats: Vec<ServerView<'a>>,
}

/// Runs of versions, first and last, in ascending order.
pub type Runs = Vec<(u32, u32)>;

/// Packages by number: the servers' Papers in the order of the server names, then the plugins in the order of their
/// priority. Versions count from 1, oldest first. 0 is "not installed", which is the best version wherever it is
/// allowed.
pub struct PlainQuestion<'x, 'a> {
    party: JointProblem<'x, 'a>,
    /// By shared eligibility and release, the Paper versions that it runs on.
    runs_on: Vec<Vec<Runs>>,
}

impl<'a> PlainTables<'a> {
    /// Reads the catalog for these servers.
    pub fn read(catalog: &'a Catalog, requests: &'a [Request], now: Timestamp) -> Self {
        let mut requests: Vec<&Request> = requests.iter().collect();
        requests.sort_by(|a, b| a.server.cmp(&b.server));
        let (tables, seats) = SharedTables::read(catalog, &requests, now);
        Self { tables, seats }
    }

    /// Encodes the problem.
    pub fn question(&self) -> PlainQuestion<'_, 'a> {
        let party = JointProblem::of(&self.tables, self.seats.iter().collect());
        let runs_on = self.tables.sheets.iter().map(|sheet| {
            let longest = sheet.usable.highest(MOST_RELEASES).unwrap_or_default();
            let papers = |release| runs(1, sheet.supports.len(), |paper| sheet.supports[paper - 1].has(release));
            (0..=longest).map(papers).collect()
        });
        PlainQuestion { runs_on: runs_on.collect(), party }
    }
}

impl PlainQuestion<'_, '_> {
    /// The number of Paper packages, which come first.
    pub fn servers(&self) -> usize {
        self.party.seats.len()
    }

    /// The number of packages.
    pub fn packages(&self) -> usize {
        self.servers() + self.party.slots.len()
    }

    /// The newest version of a package, usable or not.
    pub fn newest(&self, package: usize) -> u32 {
        number(match package.checked_sub(self.servers()) {
            None => self.party.tables.papers[self.party.seats[package].papers].len(),
            Some(slot) => self.releases(slot),
        })
    }

    /// Whether the request and the release itself allow a version.
    pub fn is_open(&self, package: usize, version: u32) -> bool {
        self.open(package).has(place(version))
    }

    /// The dependencies of an allowed version: other packages, and the versions of each.
    pub fn needs(&self, package: usize, version: u32) -> Vec<(usize, Runs)> {
        let index = place(version);
        let Some(slot) = package.checked_sub(self.servers()) else { return Vec::new() };
        if index == 0 {
            return Vec::new();
        }
        let mut needs: Vec<(usize, Runs)> = Vec::new();
        for &(seat, shelf) in &self.party.slots[slot].at {
            let place = &self.party.seats[seat].shelves[shelf];
            needs.push((seat, self.runs_on[place.sheet][index].clone()));
            for link in self.party.tables.links(place, index) {
                // A project that is not used on that server can be neither required nor excluded.
                let Some(there) = self.party.seats[seat].shelf_of(link.to) else { continue };
                let other = self.party.slot_of[seat][there];
                needs.push((self.servers() + other, runs(0, self.releases(other), |index| link.set.has(index))));
            }
        }
        needs
    }

    /// The Minecraft version of a server's Paper.
    pub fn minecraft(&self, server: usize, version: u32) -> &Minecraft {
        &self.party.tables.papers[self.party.seats[server].papers][place(version) - 1]
    }

    fn open(&self, package: usize) -> &IndexSet {
        match package.checked_sub(self.servers()) {
            None => &self.party.papers[package],
            Some(slot) => &self.party.slots[slot].domain,
        }
    }

    fn releases(&self, slot: usize) -> usize {
        self.party.tables.projects[&self.party.slots[slot].project].releases.len()
    }
}

fn runs(first: usize, last: usize, has: impl Fn(usize) -> bool) -> Runs {
    let mut runs = Runs::new();
    for version in (first..=last).filter(|&version| has(version)).map(number) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == version => *end = version,
            _ => runs.push((version, version)),
        }
    }
    runs
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("shelves are cut at 60,000 releases")
}

fn place(version: u32) -> usize {
    usize::try_from(version).expect("an index")
}
