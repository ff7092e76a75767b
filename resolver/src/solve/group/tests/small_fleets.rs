//! Pure. Generates small fleets from a seed.

use jiff::{SignedDuration, Timestamp};

use super::saved_query::saved_query_json;
use crate::model::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, PaperVersion, Project, ProjectKey,
    Release, Source,
};
use crate::model::request::{Dependencies, ImagePolicy, PaperRequest, PluginRequest, Request, Running, VersionRequest};
use crate::model::software::Software;
use crate::model::unmanaged_jar::UnmanagedPlugins;

/// No two of them are siblings, and none was skipped.
pub(super) const PAPERS: [&str; 4] = ["1.21.4", "1.21.5", "1.21.6", "1.21.11"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A catalog and the requests of up to three servers.
#[derive(Debug, Clone)]
pub(super) struct Small {
    pub(super) catalog: Catalog,
    pub(super) requests: Vec<Request>,
    pub(super) now: Timestamp,
}

/// The same numbers for the same seed (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

fn day(day: usize) -> Timestamp {
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

/// The shape of a fleet.
#[derive(Debug, Clone, Copy)]
struct Style {
    projects: usize,
    /// Each release supports one or two Paper versions, the next release the next ones: servers on different versions
    /// are incompatible.
    narrow: bool,
}

fn release(random: &mut Random, style: Style, project: usize, number: usize) -> Release {
    let id = format!("{}-{number}", NAMES[project]);
    let projects = style.projects;
    let listed = match random.below(10) {
        _ if style.narrow => number..(number + 1 + random.below(2)).min(4),
        0..3 => 0..4,
        _ => {
            let from = random.below(3).max(number.min(2));
            from..(from + 1 + random.below(3)).min(4)
        }
    };
    let needs = if random.percent(if style.narrow { 10 } else { 35 }) { 1 + random.below(2) } else { 0 };
    let dependencies = (0..needs).map(|_| (random.below(3), random.below(projects), random.below(8)));
    let dependencies: Vec<_> = dependencies.collect();
    Release {
        version: format!("{number}.0"),
        published: Some(day(random.below(20))),
        channel: Channel::Release,
        minecraft: listed.map(|at| PAPERS[at].parse().unwrap()).collect(),
        loaders: vec!["paper".to_owned()],
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        dependencies: dependencies
            .into_iter()
            .filter(|&(_, to, _)| to != project)
            .map(|(kind, to, which)| Dependency {
                project_id: Some(format!("id-{}", NAMES[to])),
                name: None,
                version_id: (which < 4).then(|| format!("{}-{which}", NAMES[to])),
                kind: [DependencyKind::Required, DependencyKind::Optional, DependencyKind::Incompatible][kind],
            })
            .collect(),
        file: Some(file(&id, random.percent(95))),
        further: Vec::new(),
        id,
    }
}

/// A fleet of one to three servers, most of them in one group.
pub(super) fn fleet(seed: u64) -> Small {
    let mut random = Random::new(seed);
    let style = Style { projects: 1 + random.below(4), narrow: random.percent(50) };
    let Style { projects, narrow } = style;
    let papers = if narrow { 3 + random.below(2) } else { 1 + random.below(4) };
    let counts: Vec<usize> = (0..projects).map(|_| if narrow { 4 } else { 1 + random.below(4) }).collect();
    let paper = (0..papers).map(|at| paper(at, random.percent(if narrow { 97 } else { 88 }))).collect();
    let built = counts.iter().enumerate().map(|(project, &count)| Project {
        key: ProjectKey { source: Source::Modrinth, project: NAMES[project].to_owned() },
        id: format!("id-{}", NAMES[project]),
        name: NAMES[project].to_uppercase(),
        read_at: day(0),
        releases: (0..count).map(|number| release(&mut random, style, project, number)).collect(),
    });
    let built = built.collect();
    let go_down: Vec<bool> = (0..projects).map(|_| random.percent(35)).collect();
    // One strategy per object. A second object on a project links or unlinks further servers.
    let mut objects: Vec<(String, usize, VersionRequest)> = Vec::new();
    for (project, &count) in counts.iter().enumerate() {
        let mut strategy = || match random.below(20) {
            0..14 => VersionRequest::Latest,
            14..18 => VersionRequest::Auto,
            _ => VersionRequest::Pin { version: format!("{}.0", random.below(count)) },
        };
        let first = strategy();
        objects.push((format!("my-{}", NAMES[project]), project, first));
        let second = strategy();
        objects.push((format!("also-{}", NAMES[project]), project, second));
    }
    let servers = 1 + random.below(3).max(random.below(3));
    let requests = ["games/creative", "games/lobby", "games/survival"][..servers].iter().map(|server| {
        let delay = if random.percent(30) { SignedDuration::from_hours(24 * 7) } else { SignedDuration::ZERO };
        let requested = objects.iter().filter(|(object, _, _)| {
            let chance = if object.starts_with("also") { 8 } else { 70 };
            random.percent(chance)
        });
        let plugins: Vec<PluginRequest> = requested
            .map(|(object, project, version)| PluginRequest {
                object: object.clone(),
                key: ProjectKey { source: Source::Modrinth, project: NAMES[*project].to_owned() },
                jars: Vec::new(),
                version: version.clone(),
                delay,
                channel: Channel::Release,
                compatibility: None,
                requires: Vec::new(),
                allow_downgrade: go_down[*project],
                hold: None,
                delay_together: Vec::new(),
                selector: None,
            })
            .collect();
        let running = random.percent(40).then(|| Running {
            software: Software::Paper,
            minecraft: PAPERS[random.below(papers)].parse().unwrap(),
            build: 7,
            releases: plugins
                .iter()
                .filter_map(|plugin_request| {
                    let project = NAMES.iter().position(|name| *name == plugin_request.key.project)?;
                    Some(format!("{}-{}", plugin_request.key.project, random.below(counts[project])))
                })
                .collect(),
            unrequested: Vec::new(),
            versions: Vec::new(),
            delisted: Vec::new(),
            image: None,
            java: None,
            since: None,
        });
        Request {
            server: (*server).to_owned(),
            software: Software::Paper,
            paper: match random.below(10) {
                0..6 => PaperRequest::Auto,
                6..9 => PaperRequest::Pin { version: PAPERS[random.below(papers)].parse().unwrap() },
                _ => PaperRequest::Latest,
            },
            delay: SignedDuration::ZERO,
            channel: BuildChannel::Stable,
            floor: None,
            running,
            plugins,
            dependencies: if random.percent(15) { Dependencies::Forbid } else { Dependencies::Install },
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
    });
    let requests = requests.collect();
    let catalog = Catalog { paper, projects: built, ..Catalog::empty(day(0)) };
    Small { catalog, requests, now: day(22) }
}

/// Gives a server two conflicting plugins of its own: release `k` of each is incompatible with all releases of the
/// other from `k` up. So the solver needs many steps to find that there is no solution.
pub(super) fn add_ladder(problem: &mut Small, server: usize) {
    const RELEASES: usize = 200;
    let papers = problem.catalog.paper.len();
    let name = |at: usize| format!("ladder-{}", at % 2);
    for at in 0..2 {
        let releases = (1..=RELEASES).map(|number| {
            let id = format!("{}-{number}", name(at));
            let excludes = (number..=RELEASES).map(|to| Dependency {
                project_id: Some(format!("id-{}", name(at + 1))),
                name: None,
                version_id: Some(format!("{}-{to}", name(at + 1))),
                kind: DependencyKind::Incompatible,
            });
            Release {
                version: format!("{number}.0"),
                published: Some(day(0)),
                channel: Channel::Release,
                minecraft: PAPERS[..papers].iter().map(|paper| paper.parse().unwrap()).collect(),
                loaders: vec!["paper".to_owned()],
                api_version: None,
                refused: None,
                java: None,
                folia: None,
                declared: None,
                dependencies: excludes.collect(),
                file: Some(file(&id, true)),
                further: Vec::new(),
                id,
            }
        });
        let key = ProjectKey { source: Source::Modrinth, project: name(at) };
        problem.catalog.projects.push(Project {
            id: format!("id-{}", name(at)),
            name: name(at).to_uppercase(),
            read_at: day(0),
            releases: releases.collect(),
            key: key.clone(),
        });
        let plugin_requests = &mut problem.requests[server].plugins;
        let like = plugin_requests.first().expect("the server already requests a plugin").clone();
        let (delay, allow_downgrade) = (SignedDuration::ZERO, false);
        plugin_requests.push(PluginRequest {
            object: name(at),
            key,
            version: VersionRequest::Auto,
            delay,
            allow_downgrade,
            ..like
        });
    }
}

impl Small {
    /// The format that `resolver explain --problem FILE` reads.
    pub(super) fn to_saved(&self) -> String {
        saved_query_json(&self.catalog, &self.requests, self.now)
    }

    /// Shuffles every list of the input.
    pub(super) fn shuffle(&mut self, random: &mut Random) {
        fn mix<T>(items: &mut [T], random: &mut Random) {
            for at in (1..items.len()).rev() {
                items.swap(at, random.below(at + 1));
            }
        }
        mix(&mut self.catalog.paper, random);
        mix(&mut self.catalog.projects, random);
        mix(&mut self.requests, random);
        for project in &mut self.catalog.projects {
            mix(&mut project.releases, random);
            for release in &mut project.releases {
                mix(&mut release.dependencies, random);
                mix(&mut release.minecraft, random);
            }
        }
        for request in &mut self.requests {
            mix(&mut request.plugins, random);
        }
    }
}
