//! Pure. Solves the same question with other solvers, from prepared tables.
//!
//! * The plain encoding is the obvious one for `pubgrub`: each release depends on the Papers it runs on, and versions are `Ranges<u32>`. It only
//!   solves, without an explanation.
//! * `resolvo` solves the same encoding, without an explanation. It does not guarantee the best answer.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Display;
use std::iter;
use std::ops::Bound;
use std::time::{Duration, Instant};

use pubgrub::{
    Dependencies, DependencyConstraints, DependencyProvider, PackageResolutionStatistics, PubGrubError, Ranges,
};
use resolver::{PlainProblem, VersionRuns};

/// The result of another solver: the version of each server's Paper, or `None` if there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Papers(Option<Vec<u32>>),
    TimedOut(Duration),
}

/// The requirements by package and version. `None` means that the version may not be chosen.
type Needs<T> = HashMap<(usize, u32), Option<Vec<T>>>;

/// A question with the requirements of every version, prepared before the measurement. For fleets they would not fit into memory, so they are
/// computed on demand.
pub(crate) struct PlainPubgrub<'q, 'x, 'a> {
    question: &'q PlainProblem<'x, 'a>,
    prepared: Needs<(usize, Ranges<u32>)>,
    deadline: Cell<Option<Instant>>,
}

impl<'q, 'x, 'a> PlainPubgrub<'q, 'x, 'a> {
    pub(crate) fn new(question: &'q PlainProblem<'x, 'a>) -> Self {
        let mut prepared = HashMap::new();
        if question.servers() == 1 {
            for package in 0..question.packages() {
                for version in 0..=question.newest(package) {
                    prepared.insert((package, version), needs(question, package, version));
                }
            }
        }
        Self { question, prepared, deadline: Cell::new(None) }
    }

    /// Solves for at most `longest`.
    pub(crate) fn solve(&self, longest: Duration) -> Found {
        self.deadline.set(Some(Instant::now() + longest));
        match pubgrub::resolve(self, self.request(), 0_u32) {
            Ok(chosen) => {
                Found::Papers((0..self.question.servers()).map(|paper| chosen.get(&paper).copied()).collect())
            }
            Err(PubGrubError::NoSolution(_)) => Found::Papers(None),
            Err(
                PubGrubError::ErrorRetrievingDependencies { .. }
                | PubGrubError::ErrorChoosingVersion { .. }
                | PubGrubError::ErrorInShouldCancel(_),
            ) => Found::TimedOut(longest),
        }
    }

    /// The package that stands for the request.
    fn request(&self) -> usize {
        self.question.packages()
    }
}

fn needs(question: &PlainProblem<'_, '_>, package: usize, version: u32) -> Option<Vec<(usize, Ranges<u32>)>> {
    let ranges = |runs: VersionRuns| -> Ranges<u32> {
        runs.into_iter().map(|(first, last)| (Bound::Included(first), Bound::Included(last))).collect()
    };
    let needs = || question.needs(package, version).into_iter().map(|(other, runs)| (other, ranges(runs))).collect();
    question.is_allowed(package, version).then(needs)
}

/// The time limit was exceeded.
#[derive(Debug)]
pub(crate) struct TooLong;

impl Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no answer in the time that there was")
    }
}

impl std::error::Error for TooLong {}

impl DependencyProvider for PlainPubgrub<'_, '_, '_> {
    type P = usize;
    type V = u32;
    type VS = Ranges<u32>;
    type M = String;
    type Priority = usize;
    type Err = TooLong;

    /// A fixed priority, as in our solver. With it, and with every package named by the request, the first answer is the best one.
    fn prioritize(&self, package: &usize, _: &Ranges<u32>, _: &PackageResolutionStatistics) -> usize {
        if *package == self.request() { usize::MAX } else { self.request() - package }
    }

    fn choose_version(&self, package: &usize, range: &Ranges<u32>) -> Result<Option<u32>, TooLong> {
        if *package == self.request() {
            return Ok(Some(0));
        }
        // "Not installed" is the best version where it is open. It is not open for a required package.
        if range.contains(&0) && self.question.is_allowed(*package, 0) {
            return Ok(Some(0));
        }
        Ok((1..=self.question.newest(*package)).rev().find(|version| range.contains(version)))
    }

    fn get_dependencies(
        &self,
        package: &usize,
        version: &u32,
    ) -> Result<Dependencies<usize, Ranges<u32>, String>, TooLong> {
        let needs: Option<DependencyConstraints<usize, Ranges<u32>>> = if *package == self.request() {
            Some((0..self.request()).map(|package| (package, Ranges::full())).collect())
        } else if let Some(prepared) = self.prepared.get(&(*package, *version)) {
            prepared.as_ref().map(|needs| needs.iter().cloned().collect())
        } else {
            needs(self.question, *package, *version).map(|needs| needs.into_iter().collect())
        };
        Ok(needs.map_or_else(|| Dependencies::Unavailable("it may not be chosen".to_owned()), Dependencies::Available))
    }

    fn should_cancel(&self) -> Result<(), TooLong> {
        if self.deadline.get().is_some_and(|deadline| deadline < Instant::now()) { Err(TooLong) } else { Ok(()) }
    }
}

/// The maximum number of versions of a package. The number of a solvable is its package times this, plus its version.
const MAX_VERSIONS: u32 = 1_000;

/// The question for `resolvo`. A set of versions is identified by its index in the list.
pub(crate) struct Resolvo<'q, 'x, 'a> {
    question: &'q PlainProblem<'x, 'a>,
    /// For one server, as in [`PlainPubgrub`].
    prepared: Needs<resolvo::VersionSetId>,
    sets: RefCell<Sets>,
    deadline: Cell<Option<Instant>>,
}

#[derive(Default)]
struct Sets {
    ids: HashMap<(usize, VersionRuns), u32>,
    list: Vec<(usize, VersionRuns)>,
}

impl Sets {
    fn id(&mut self, package: usize, runs: VersionRuns) -> resolvo::VersionSetId {
        let next = to_u32(self.list.len());
        let list = &mut self.list;
        let id = self.ids.entry((package, runs)).or_insert_with_key(|key| {
            list.push(key.clone());
            next
        });
        resolvo::VersionSetId(*id)
    }
}

impl<'q, 'x, 'a> Resolvo<'q, 'x, 'a> {
    pub(crate) fn new(question: &'q PlainProblem<'x, 'a>) -> Self {
        let mut resolvo =
            Self { question, prepared: HashMap::new(), sets: RefCell::new(Sets::default()), deadline: Cell::new(None) };
        for package in 0..question.packages() {
            assert!(question.newest(package) < MAX_VERSIONS, "each solvable has its own number");
        }
        if question.servers() == 1 {
            for package in 0..question.packages() {
                for version in 0..=question.newest(package) {
                    let needs = resolvo.needs(package, version);
                    resolvo.prepared.insert((package, version), needs);
                }
            }
        }
        resolvo
    }

    /// Solves for at most `longest`.
    pub(crate) fn solve(self, longest: Duration) -> Found {
        self.deadline.set(Some(Instant::now() + longest));
        let packages = 0..self.question.packages();
        let servers = self.question.servers();
        let any = |package| self.sets.borrow_mut().id(package, vec![(0, MAX_VERSIONS)]).into();
        let problem = resolvo::Problem::new().requirements(packages.map(any).collect());
        match resolvo::Solver::new(self).solve(problem) {
            Ok(chosen) => {
                let mut papers = vec![0; servers];
                for raw in chosen.into_iter().map(resolvo::SolvableId::into_raw) {
                    if let Some(paper) = papers.get_mut(to_index(raw / MAX_VERSIONS)) {
                        *paper = raw % MAX_VERSIONS;
                    }
                }
                Found::Papers(Some(papers))
            }
            Err(resolvo::UnsolvableOrCancelled::Unsolvable(_)) => Found::Papers(None),
            Err(resolvo::UnsolvableOrCancelled::Cancelled(_)) => Found::TimedOut(longest),
        }
    }

    fn needs(&self, package: usize, version: u32) -> Option<Vec<resolvo::VersionSetId>> {
        let needs = || {
            let needs = self.question.needs(package, version).into_iter();
            needs.map(|(other, runs)| self.sets.borrow_mut().id(other, runs)).collect()
        };
        self.question.is_allowed(package, version).then(needs)
    }
}

impl resolvo::Interner for Resolvo<'_, '_, '_> {
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
        "it may not be chosen"
    }

    fn version_set_name(&self, set: resolvo::VersionSetId) -> resolvo::NameId {
        resolvo::NameId::from_raw(to_u32(self.sets.borrow().list[to_index(set.0)].0))
    }

    fn solvable_name(&self, solvable: resolvo::SolvableId) -> resolvo::NameId {
        resolvo::NameId::from_raw(solvable.into_raw() / MAX_VERSIONS)
    }

    fn version_sets_in_union(&self, _: resolvo::VersionSetUnionId) -> impl Iterator<Item = resolvo::VersionSetId> {
        iter::empty()
    }

    fn resolve_condition(&self, _: resolvo::ConditionId) -> resolvo::Condition {
        unreachable!("the question has no conditions")
    }
}

impl resolvo::DependencyProvider for Resolvo<'_, '_, '_> {
    async fn filter_candidates(
        &self,
        candidates: &[resolvo::SolvableId],
        set: resolvo::VersionSetId,
        inverse: bool,
    ) -> Vec<resolvo::SolvableId> {
        let sets = self.sets.borrow();
        let (_, runs) = &sets.list[to_index(set.0)];
        let fits = |solvable: &resolvo::SolvableId| {
            let version = solvable.into_raw() % MAX_VERSIONS;
            runs.iter().any(|(first, last)| (first..=last).contains(&&version)) != inverse
        };
        candidates.iter().copied().filter(fits).collect()
    }

    async fn get_candidates(&self, name: resolvo::NameId) -> Option<resolvo::Candidates> {
        let package = to_index(name.into_raw());
        let all = 0..=self.question.newest(package);
        let (open, closed): (Vec<u32>, Vec<u32>) = all.partition(|&version| self.question.is_allowed(package, version));
        let solvable = |version: u32| resolvo::SolvableId::from_raw(name.into_raw() * MAX_VERSIONS + version);
        let reason = resolvo::StringId(0);
        let hint = if self.prepared.is_empty() {
            resolvo::HintDependenciesAvailable::None
        } else {
            resolvo::HintDependenciesAvailable::All
        };
        Some(resolvo::Candidates {
            candidates: open.into_iter().map(solvable).collect(),
            excluded: closed.into_iter().map(|version| (solvable(version), reason)).collect(),
            hint_dependencies_available: hint,
            ..resolvo::Candidates::default()
        })
    }

    /// Sorts the newest first, with "not installed" before all.
    async fn sort_candidates(&self, _: &resolvo::SolverCache<Self>, solvables: &mut [resolvo::SolvableId]) {
        solvables.sort_by_key(|solvable| {
            let version = solvable.into_raw() % MAX_VERSIONS;
            std::cmp::Reverse(if version == 0 { MAX_VERSIONS } else { version })
        });
    }

    async fn get_dependencies(&self, solvable: resolvo::SolvableId) -> resolvo::Dependencies {
        let (package, version) = (to_index(solvable.into_raw() / MAX_VERSIONS), solvable.into_raw() % MAX_VERSIONS);
        let needs = match self.prepared.get(&(package, version)) {
            Some(prepared) => prepared.clone(),
            None => self.needs(package, version),
        };
        let requirements = needs.into_iter().flatten().map(Into::into).collect();
        resolvo::Dependencies::Known(resolvo::KnownDependencies { requirements, ..Default::default() })
    }

    fn should_cancel_with_value(&self) -> Option<Box<dyn Any>> {
        let late = self.deadline.get().is_some_and(|deadline| deadline < Instant::now());
        late.then(|| Box::new(()) as Box<dyn Any>)
    }
}

fn to_u32(index: usize) -> u32 {
    u32::try_from(index).expect("an index is a few thousand at most")
}

fn to_index(number: u32) -> usize {
    usize::try_from(number).expect("usize has at least 32 bits")
}
