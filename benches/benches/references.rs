//! Edge (reads). The same question put to others: one server with 40 plugins of 900 releases, 3 in 10 of which may not be
//! used, with the 15 newest Papers blocked, and with every Paper blocked.
//!
//! * `resolve` is all that this project does for an answer: judge every release, index, solve, explain. `solve` is only the third of these,
//!   from tables that are there, with the proof when there is no answer: what the other two do.
//! * The plain encoding is what one writes first with `pubgrub`: each release depends on the Papers it runs on, versions are
//!   `Ranges<u32>`. It is only solved: its tables are there, and nothing is explained.
//! * `resolvo` solves the same encoding, with all dependencies at hand; its tables are there, and nothing is explained. It
//!   promises no best answer.

use std::fmt::Display;
use std::iter;

use benches::measure::{Cost, cost, say};
use benches::worlds::hard::{Big, PLUGINS, big};
use benches::worlds::{PAPERS, RELEASES, at};
use pubgrub::{Dependencies, DependencyConstraints, DependencyProvider, PackageResolutionStatistics, Ranges};
use resolver::catalog::Catalog;
use resolver::request::Request;
use resolver::version::Minecraft;
use resolver::{Prepared, Unsolvable};

/// Each is done so often; the median counts.
const RUNS: usize = 3;

/// Package 0 is Paper, package 1 + n plugin n, and the last one is the request. Versions count from 0.
struct Plain<'a>(&'a Big);

const REQUEST: usize = PLUGINS + 1;

impl DependencyProvider for Plain<'_> {
    type P = usize;
    type V = u32;
    type VS = Ranges<u32>;
    type M = String;
    type Priority = usize;
    type Err = std::convert::Infallible;

    /// Fixed, as ours: with it, and with every package named by the request, the first answer is the best one.
    fn prioritize(&self, package: &usize, _: &Ranges<u32>, _: &PackageResolutionStatistics) -> usize {
        if *package == REQUEST { usize::MAX } else { REQUEST - package }
    }

    fn choose_version(&self, package: &usize, range: &Ranges<u32>) -> Result<Option<u32>, Self::Err> {
        let count = match *package {
            REQUEST => 1,
            0 => PAPERS,
            _ => RELEASES,
        };
        Ok((0..number(count)).rev().find(|version| range.contains(version)))
    }

    fn get_dependencies(
        &self,
        package: &usize,
        version: &u32,
    ) -> Result<Dependencies<usize, Ranges<u32>, String>, Self::Err> {
        let needs: DependencyConstraints<usize, Ranges<u32>> = match *package {
            REQUEST => (0..REQUEST).map(|package| (package, Ranges::full())).collect(),
            0 => iter::empty().collect(),
            _ => {
                let (from, to, usable) = self.0.plugins[package - 1][place(*version)];
                if !usable {
                    return Ok(Dependencies::Unavailable("beta".to_owned()));
                }
                iter::once((0, Ranges::between(number(from), number(to) + 1))).collect()
            }
        };
        Ok(Dependencies::Available(needs))
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("hundreds")
}

fn place(number: u32) -> usize {
    usize::try_from(number).expect("hundreds")
}

/// Names as in [`Plain`]; a solvable is its name times 1,000 and its version.
struct Others<'a>(&'a Big);

const EACH: u32 = 1_000;
/// A set of Papers is `from * 64 + to`; above all of them, "any version" of each name.
const ANY: u32 = 64 * 64;

impl resolvo::Interner for Others<'_> {
    type NameId = resolvo::NameId;
    type SolvableId = resolvo::SolvableId;

    fn display_solvable(&self, solvable: resolvo::SolvableId) -> impl Display + '_ {
        solvable.into_raw()
    }

    fn display_name(&self, name: resolvo::NameId) -> impl Display + '_ {
        name.into_raw()
    }

    fn display_version_set(&self, set: resolvo::VersionSetId) -> impl Display + '_ {
        set.0
    }

    fn display_string(&self, _: resolvo::StringId) -> impl Display + '_ {
        "beta"
    }

    fn version_set_name(&self, set: resolvo::VersionSetId) -> resolvo::NameId {
        resolvo::NameId::from_raw(set.0.saturating_sub(ANY))
    }

    fn solvable_name(&self, solvable: resolvo::SolvableId) -> resolvo::NameId {
        resolvo::NameId::from_raw(solvable.into_raw() / EACH)
    }

    fn version_sets_in_union(&self, _: resolvo::VersionSetUnionId) -> impl Iterator<Item = resolvo::VersionSetId> {
        iter::empty()
    }

    fn resolve_condition(&self, _: resolvo::ConditionId) -> resolvo::Condition {
        unreachable!("there are no conditions")
    }
}

impl resolvo::DependencyProvider for Others<'_> {
    async fn filter_candidates(
        &self,
        candidates: &[resolvo::SolvableId],
        set: resolvo::VersionSetId,
        inverse: bool,
    ) -> Vec<resolvo::SolvableId> {
        let set = set.0;
        let fits = |solvable: &resolvo::SolvableId| {
            let version = solvable.into_raw() % EACH;
            (set >= ANY || (set / 64 <= version && version <= set % 64)) != inverse
        };
        candidates.iter().copied().filter(fits).collect()
    }

    async fn get_candidates(&self, name: resolvo::NameId) -> Option<resolvo::Candidates> {
        let name = name.into_raw();
        let count = if name == 0 { PAPERS } else { RELEASES };
        let solvable = |version: u32| resolvo::SolvableId::from_raw(name * EACH + version);
        let usable = |version: u32| name == 0 || self.0.plugins[place(name) - 1][place(version)].2;
        let versions = || 0..number(count);
        let beta = resolvo::StringId(0);
        Some(resolvo::Candidates {
            candidates: versions().filter(|&version| usable(version)).map(solvable).collect(),
            excluded: versions().filter(|&version| !usable(version)).map(|version| (solvable(version), beta)).collect(),
            hint_dependencies_available: resolvo::HintDependenciesAvailable::All,
            ..resolvo::Candidates::default()
        })
    }

    async fn sort_candidates(&self, _: &resolvo::SolverCache<Self>, solvables: &mut [resolvo::SolvableId]) {
        solvables.sort_by_key(|solvable| std::cmp::Reverse(solvable.into_raw()));
    }

    async fn get_dependencies(&self, solvable: resolvo::SolvableId) -> resolvo::Dependencies {
        let (name, version) = (solvable.into_raw() / EACH, solvable.into_raw() % EACH);
        let mut known = resolvo::KnownDependencies::default();
        if name > 0 {
            let (from, to, _) = self.0.plugins[place(name) - 1][place(version)];
            known.requirements.push(resolvo::VersionSetId(number(from) * 64 + number(to)).into());
        }
        resolvo::Dependencies::Known(known)
    }
}

/// The number of the Paper in the answer, if there is one.
type Paper = Option<usize>;

fn place_of(catalog: &Catalog, minecraft: &Minecraft) -> Paper {
    catalog.paper.iter().position(|paper| paper.minecraft == *minecraft)
}

fn whole(catalog: &Catalog, request: &Request) -> Paper {
    match resolver::resolve(catalog, request, at()) {
        Ok(resolution) => place_of(catalog, &resolution.lock.minecraft),
        Err(no) => {
            assert!(matches!(no, Unsolvable::NoSolution(_)), "{no}");
            None
        }
    }
}

fn alone(catalog: &Catalog, prepared: &Prepared<'_>) -> Paper {
    place_of(catalog, prepared.paper().expect("an answer within the budget")?)
}

fn plain(big: &Big) -> Paper {
    let solved = pubgrub::resolve(&Plain(big), REQUEST, 0_u32);
    solved.ok().and_then(|chosen| chosen.get(&0).copied()).map(place)
}

fn resolvo(big: &Big) -> Paper {
    let any = |name: usize| resolvo::VersionSetId(ANY + number(name)).into();
    let problem = resolvo::Problem::new().requirements((0..REQUEST).map(any).collect());
    let solved = resolvo::Solver::new(Others(big)).solve(problem);
    let chosen = solved.ok()?;
    chosen.into_iter().map(resolvo::SolvableId::into_raw).find(|raw| *raw < EACH).map(place)
}

fn median(work: impl Fn() -> Paper) -> (Paper, Cost) {
    let mut runs: Vec<(Paper, Cost)> = (0..RUNS).map(|_| cost(&work)).collect();
    runs.sort_by_key(|(_, cost)| cost.took);
    runs.swap_remove(RUNS / 2)
}

fn main() {
    for (name, blocked) in [("15 newest Papers blocked", 15), ("every Paper blocked", PAPERS)] {
        let big = big(blocked);
        let (catalog, request) = (big.catalog(), big.request());
        let prepared = Prepared::of(&catalog, &request, at()).expect("all that it takes");
        say(&format!("one server, {PLUGINS} plugins of {RELEASES} releases, {name}:"));
        let (best, all) = median(|| whole(&catalog, &request));
        let paper = |paper: Paper| paper.map_or_else(|| "no".to_owned(), |paper| format!("Paper {paper}"));
        say(&format!("  resolve, with explanation: {all}: {}", paper(best)));
        let (found, solve) = median(|| alone(&catalog, &prepared));
        assert_eq!(found, best, "the solve alone finds the same");
        say(&format!("  solve only: {:.2} ms", solve.took.as_secs_f64() * 1000.0));
        let times = |other: &Cost| {
            let ratio = |ours: &Cost| other.took.as_secs_f64() / ours.took.as_secs_f64();
            format!("{other} ({:.1} times resolve, {:.0} times solve only)", ratio(&all), ratio(&solve))
        };
        let (found, other) = median(|| plain(&big));
        assert_eq!(found, best, "the plain encoding finds the same");
        say(&format!("  plain encoding in pubgrub, solve only: {}", times(&other)));
        let (found, other) = median(|| resolvo(&big));
        say(&format!("  resolvo, solve only: {}: {}", times(&other), paper(found)));
    }
}
