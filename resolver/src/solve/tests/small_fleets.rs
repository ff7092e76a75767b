//! Pure. Generates small problems and finds their best solution by brute force.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::index::CandidateIndex;
use crate::model::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, PaperVersion, Project, ProjectKey,
    Release, Source,
};
use crate::model::lock::Lock;
use crate::model::request::{Dependencies, ImagePolicy, PaperRequest, PluginRequest, Request, VersionRequest};
use crate::model::software::Software;
use crate::model::unmanaged_jar::UnmanagedPlugins;

/// No two of them are siblings, and none was skipped.
const PAPERS: [&str; 4] = ["1.21.4", "1.21.5", "1.21.6", "1.21.11"];
const DELAY: SignedDuration = SignedDuration::from_hours(24 * 7);

#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) catalog: Catalog,
    pub(super) request: Request,
    pub(super) now: Timestamp,
}

fn day(day: u8) -> Timestamp {
    format!("2025-01-{:02}T00:00:00Z", day + 1).parse().unwrap()
}

fn file(name: &str, hash: bool) -> Artifact {
    Artifact {
        name: format!("{name}.jar"),
        url: format!("https://files.example/{name}.jar"),
        size: None,
        hash: hash.then(|| format!("sha256:{:0>64}", name.len())),
    }
}

fn project(name: &str, releases: Vec<Release>) -> Project {
    Project {
        key: ProjectKey { source: Source::Modrinth, project: name.to_owned() },
        id: format!("id-{name}"),
        name: name.to_uppercase(),
        read_at: day(0),
        releases,
    }
}

fn release(project: &str, number: usize, published: u8, minecraft: &[usize]) -> Release {
    Release {
        id: format!("{project}-{number}"),
        version: format!("{number}.0"),
        published: Some(day(published)),
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        channel: Channel::Release,
        minecraft: minecraft.iter().map(|&at| PAPERS[at].parse().unwrap()).collect(),
        loaders: vec!["paper".to_owned()],
        dependencies: Vec::new(),
        file: Some(file(&format!("{project}-{number}"), true)),
        further: Vec::new(),
    }
}

fn plugin_request(name: &str) -> PluginRequest {
    PluginRequest {
        object: format!("my-{name}"),
        key: ProjectKey { source: Source::Modrinth, project: name.to_owned() },
        jars: Vec::new(),
        version: VersionRequest::Auto,
        delay: DELAY,
        channel: Channel::Release,
        compatibility: None,
        requires: Vec::new(),
        allow_downgrade: false,
        hold: None,
        delay_together: Vec::new(),
        selector: None,
    }
}

fn request(plugins: Vec<PluginRequest>, paper: PaperRequest) -> Request {
    Request {
        server: "games/lobby".to_owned(),
        software: Software::Paper,
        paper,
        delay: SignedDuration::ZERO,
        channel: BuildChannel::Stable,
        floor: None,
        running: None,
        plugins,
        dependencies: Dependencies::Install,
        image: None,
        image_is_given: false,
        image_policy: ImagePolicy::Follow,
        unmanaged: Vec::new(),
        unmanaged_plugins: UnmanagedPlugins::Hold,
        checked_at: None,
        hotfix_siblings: crate::model::request::HotfixSiblings::default(),
        unlisted: crate::model::request::Unlisted::default(),
        facts: crate::model::compatibility_facts::CompatibilityFacts::default(),
    }
}

fn paper(at: usize, stable: bool) -> PaperVersion {
    PaperVersion {
        minecraft: PAPERS[at].parse().unwrap(),
        java: Some(21),
        jvm_flags: Vec::new(),
        unsupported: false,
        builds: vec![Build {
            number: 7,
            published: day(0),
            channel: if stable { BuildChannel::Stable } else { BuildChannel::Alpha },
            file: file(&format!("paper-{at}"), true),
        }],
    }
}

/// The parts of a generated release.
#[derive(Debug, Clone)]
struct Seed {
    lists: u8,
    published: u8,
    hash: bool,
    /// Kind, target project, and a release of it if the dependency names one.
    needs: Vec<(u8, usize, Option<usize>)>,
}

fn seeds() -> impl Strategy<Value = Seed> {
    let need = (0..3_u8, 0..4_usize, prop::option::weighted(0.6, 0..4_usize));
    // Young releases are still delayed at `now`. Lists with every bit are the most frequent, so that some problems are
    // solvable.
    (
        prop_oneof![2 => 1..16_u8, 1 => Just(15_u8)],
        0..20_u8,
        prop::bool::weighted(0.95),
        prop::collection::vec(need, 0..3),
    )
        .prop_map(|(lists, published, hash, needs)| Seed { lists, published, hash, needs })
}

pub(super) fn problems() -> impl Strategy<Value = Problem> {
    let stable = prop::collection::vec(prop::bool::weighted(0.85), 1..=4);
    let projects = prop::collection::vec(prop::collection::vec(seeds(), 1..=4), 1..=4);
    let pin = prop::option::weighted(0.3, 0..4_usize);
    (stable, projects, 1..16_u8, pin).prop_map(|(stable, projects, mask, pin)| {
        let names = ["a", "b", "c", "d"];
        let count = projects.len();
        let built = projects.iter().enumerate().map(|(at, seeds)| {
            let releases = seeds.iter().enumerate().map(|(number, seed)| {
                let listed: Vec<usize> = (0..4).filter(|bit| seed.lists >> bit & 1 == 1).collect();
                let mut release = release(names[at], number, seed.published, &listed);
                release.file = Some(file(&release.id, seed.hash));
                release.dependencies = seed
                    .needs
                    .iter()
                    .filter(|(_, to, _)| *to < count && *to != at)
                    .map(|&(kind, to, which)| Dependency {
                        project_id: Some(format!("id-{}", names[to])),
                        name: None,
                        version_id: which.map(|which| format!("{}-{which}", names[to])),
                        kind: [DependencyKind::Required, DependencyKind::Optional, DependencyKind::Incompatible]
                            [usize::from(kind)],
                    })
                    .collect();
                release
            });
            project(names[at], releases.collect())
        });
        let plugin_requests: Vec<PluginRequest> =
            (0..count).filter(|at| mask >> at & 1 == 1 || count == 1).map(|at| plugin_request(names[at])).collect();
        let paper_request = match pin {
            Some(at) if at < stable.len() => PaperRequest::Pin { version: PAPERS[at].parse().unwrap() },
            _ => PaperRequest::Auto,
        };
        Problem {
            catalog: Catalog {
                paper: stable.iter().enumerate().map(|(at, &stable)| paper(at, stable)).collect(),
                projects: built.collect(),
                ..Catalog::empty(day(0))
            },
            request: request(plugin_requests, paper_request),
            now: day(22),
        }
    })
}

impl Problem {
    /// The same problem with every list of the input shuffled.
    pub(super) fn shuffled(&self, seed: u64) -> Self {
        fn shuffle<T>(items: &mut [T], seed: &mut u64) {
            for at in (1..items.len()).rev() {
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                items.swap(at, usize::try_from(*seed >> 33).unwrap() % (at + 1));
            }
        }
        let mut other = self.clone();
        let mut seed = seed;
        shuffle(&mut other.catalog.paper, &mut seed);
        shuffle(&mut other.catalog.projects, &mut seed);
        shuffle(&mut other.request.plugins, &mut seed);
        for project in &mut other.catalog.projects {
            shuffle(&mut project.releases, &mut seed);
            for release in &mut project.releases {
                shuffle(&mut release.dependencies, &mut seed);
                shuffle(&mut release.minecraft, &mut seed);
            }
        }
        other
    }
}

/// A project that no request or page names.
pub(super) fn unrelated() -> Project {
    project("z", vec![release("z", 1, 1, &[0, 1, 2, 3])])
}

/// Two requested plugins that are independent of each other.
pub(super) fn independent_plugins() -> Problem {
    let projects = ["a", "b"].map(|name| project(name, vec![release(name, 0, 1, &[0]), release(name, 1, 20, &[0])]));
    Problem {
        catalog: Catalog { paper: vec![paper(0, true)], projects: projects.into(), ..Catalog::empty(day(0)) },
        request: request(vec![plugin_request("a"), plugin_request("b")], PaperRequest::Auto),
        now: day(22),
    }
}

/// One requested plugin with this many betas for the only Paper version, and one release for another.
pub(super) fn many_betas(betas: usize) -> Problem {
    let mut releases = vec![release("a", 0, 1, &[1])];
    for number in 1..=betas {
        releases.push(Release { channel: Channel::Beta, ..release("a", number, 1, &[0]) });
    }
    Problem {
        catalog: Catalog {
            paper: vec![paper(0, true)],
            projects: vec![project("a", releases)],
            ..Catalog::empty(day(0))
        },
        request: request(vec![plugin_request("a")], PaperRequest::Auto),
        now: day(22),
    }
}

/// Two requested plugins: release `k` of each is incompatible with all releases of the other from `k` up, so no two are
/// compatible.
pub(super) fn ladder(length: usize) -> Problem {
    let excludes = |other: &str, from: usize| {
        let excluded = (from..=length).map(|number| Dependency {
            project_id: Some(format!("id-{other}")),
            name: None,
            version_id: Some(format!("{other}-{number}")),
            kind: DependencyKind::Incompatible,
        });
        excluded.collect()
    };
    // More than 64 releases, so that sets need words at all. The additional ones are for another Paper version.
    let releases = |this: &str, other: &str| {
        let old = (length + 1..=length + 70).map(|number| release(this, number, 0, &[1]));
        let rungs = (1..=length).map(|number| Release {
            dependencies: excludes(other, number),
            ..release(this, number, u8::try_from(1 + number / 4).unwrap(), &[0])
        });
        old.chain(rungs).collect()
    };
    Problem {
        catalog: Catalog {
            paper: vec![paper(0, true)],
            projects: vec![project("a", releases("a", "b")), project("b", releases("b", "a"))],
            ..Catalog::empty(day(0))
        },
        request: request(vec![plugin_request("a"), plugin_request("b")], PaperRequest::Auto),
        now: day(29),
    }
}

/// A solution by names: the Minecraft version, and the release ids, sorted.
pub(super) type Named = (String, Vec<String>);

pub(super) fn named(lock: &Lock) -> Named {
    let mut releases: Vec<String> = lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect();
    releases.sort();
    (lock.minecraft.to_string(), releases)
}

/// The best solution, found by trying every Paper version with every set of releases. It uses the code under test only
/// for the order of the plugins.
pub(super) fn best(problem: &Problem) -> Option<Named> {
    let index =
        CandidateIndex::build(&problem.catalog, &problem.request, problem.now).unwrap_or_else(|gap| panic!("{gap:?}"));
    let order: Vec<&Project> = index.plugins.iter().map(|plugin| plugin.project).collect();
    let requested: Vec<bool> = index.plugins.iter().map(|plugin| plugin.requested_by.is_some()).collect();
    let mut candidates: Vec<Vec<Option<&Release>>> = Vec::new();
    for (project, requested) in order.iter().zip(&requested) {
        let mut releases: Vec<&Release> = project
            .releases
            .iter()
            .filter(|release| release.published.is_some_and(|published| published + DELAY <= problem.now))
            .filter(|release| release.file.as_ref().unwrap().hash.is_some())
            .collect();
        releases.sort_by(|a, b| b.published.cmp(&a.published).then_with(|| b.version.cmp(&a.version)));
        let absent = if *requested { None } else { Some(None) };
        candidates.push(absent.into_iter().chain(releases.into_iter().map(Some)).collect());
    }
    let mut papers: Vec<&PaperVersion> = problem.catalog.paper.iter().collect();
    papers.sort_by(|a, b| b.minecraft.cmp(&a.minecraft));
    papers
        .into_iter()
        .filter(|paper| paper.builds[0].channel == BuildChannel::Stable)
        .filter(|paper| match &problem.request.paper {
            PaperRequest::Pin { version } => *version == paper.minecraft,
            PaperRequest::Auto | PaperRequest::Latest | PaperRequest::BuildPin { .. } => true,
        })
        .find_map(|paper| {
            let mut chosen = Vec::new();
            search(paper, &order, &candidates, &mut chosen).then(|| {
                let mut ids: Vec<String> = chosen.iter().flatten().map(|release| release.id.clone()).collect();
                ids.sort();
                (paper.minecraft.to_string(), ids)
            })
        })
}

/// Depth first in the order of preference: the first complete valid set is the best.
fn search<'a>(
    paper: &PaperVersion,
    order: &[&Project],
    candidates: &[Vec<Option<&'a Release>>],
    chosen: &mut Vec<Option<&'a Release>>,
) -> bool {
    if chosen.len() == candidates.len() {
        return is_valid(paper, order, chosen);
    }
    for candidate in &candidates[chosen.len()] {
        chosen.push(*candidate);
        if search(paper, order, candidates, chosen) {
            return true;
        }
        chosen.pop();
    }
    false
}

fn is_valid(paper: &PaperVersion, order: &[&Project], chosen: &[Option<&Release>]) -> bool {
    chosen.iter().flatten().all(|release| {
        release.minecraft.contains(&paper.minecraft)
            && release.dependencies.iter().all(|dependency| {
                let to = order.iter().position(|project| Some(&project.id) == dependency.project_id.as_ref());
                accepts(dependency, to.and_then(|to| chosen[to]))
            })
    })
}

/// Whether an entry of a page accepts the choice for the project that it names.
pub(in crate::solve) fn accepts(dependency: &Dependency, target: Option<&Release>) -> bool {
    let meant = |other: &Release| dependency.version_id.as_ref().is_none_or(|id| *id == other.id);
    match dependency.kind {
        DependencyKind::Required => target.is_some_and(meant),
        DependencyKind::Optional => target.is_none_or(meant),
        DependencyKind::Incompatible => target.is_none_or(|other| !meant(other)),
        DependencyKind::Embedded => true,
    }
}
