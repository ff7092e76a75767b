//! Pure. Generates catalogs and requests that are the same in each run.

use std::sync::LazyLock;

use fixtures::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, PaperVersion, Project, ProjectKey,
    Release, Source,
};
use resolver::model::request::{Dependencies, ImagePolicy, PaperRequest, PluginRequest, Request, VersionRequest};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use resolver::model::version::Minecraft;

pub mod adversarial;

/// The number of Paper versions in every catalog of fleets and of one big server.
pub const PAPERS: usize = 54;
/// The number of releases of every project in these catalogs.
pub const RELEASES: usize = 900;
/// The number of plugins that all servers of a fleet share, with strategy `latest`.
pub const SHARED: usize = 20;
/// The number of projects in the catalog of a fleet.
const PROJECTS: usize = 220;
/// The Paper, by number, that opened all worlds. Windows of shared plugins are 30 wide.
const FLOOR: usize = 34;

/// The time of every question: 20 January 2026, 12:00 UTC.
pub fn now() -> Timestamp {
    Timestamp::constant(1_768_910_400, 0)
}

/// Six plugins that are recorded with files for Paper.
pub const SIX_PLUGINS: [&str; 6] =
    ["viabackwards", "viaversion", "discordsrv", "griefprevention", "multiverse-core", ON_HANGAR];
/// The one of them that is on Hangar. All others are on Modrinth.
pub const ON_HANGAR: &str = "BlueMap";

/// Minecraft by number. No two of these versions are siblings, and no version was skipped.
pub fn minecraft(index: usize) -> Minecraft {
    // Parsed once: a catalog of a fleet has millions of them.
    static ALL: LazyLock<Vec<Minecraft>> = LazyLock::new(|| {
        (0..PAPERS).map(|index| format!("1.{}", index + 30).parse().expect("a valid version")).collect()
    });
    ALL[index].clone()
}

fn file(name: &str) -> Artifact {
    Artifact {
        name: format!("{name}.jar"),
        url: format!("https://files.example/{name}.jar"),
        size: None,
        hash: Some(format!("sha256:{:0>64}", 1)),
    }
}

fn papers(count: usize) -> Vec<PaperVersion> {
    let paper = |index| PaperVersion {
        minecraft: minecraft(index),
        java: Some(21),
        jvm_flags: Vec::new(),
        unsupported: false,
        builds: vec![Build {
            number: 7,
            published: Timestamp::UNIX_EPOCH,
            channel: BuildChannel::Stable,
            file: file("paper"),
        }],
    };
    (0..count).map(paper).collect()
}

fn project(name: &str, releases: Vec<Release>) -> Project {
    Project {
        key: ProjectKey { source: Source::Modrinth, project: name.to_owned() },
        id: format!("id-{name}"),
        name: name.to_owned(),
        read_at: now(),
        releases,
    }
}

fn release(project: &str, number: usize, minecraft: Vec<Minecraft>) -> Release {
    let hours = i64::try_from(number).expect("the number is small");
    Release {
        id: format!("{project}-{number}"),
        version: format!("{number}.0"),
        published: Some(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)),
        channel: Channel::Release,
        minecraft,
        loaders: vec!["paper".to_owned()],
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        dependencies: Vec::new(),
        file: Some(file(project)),
        further: Vec::new(),
    }
}

fn catalog(papers: Vec<PaperVersion>, projects: Vec<Project>) -> Catalog {
    Catalog { paper: papers, projects, ..Catalog::empty(now()) }
}

/// 220 projects. Each release runs on a range of Papers that moves with its number. The newest range of a project ends anywhere in the newest third.
/// For shared projects it leaves room for all servers.
pub fn fleet_catalog() -> Catalog {
    let mut random = Rng::new(7);
    let projects = (0..PROJECTS).map(|index| {
        let name = format!("p{index:03}");
        let newest = if index < SHARED { PAPERS - 4 } else { PAPERS - 1 - random.number_below(PAPERS / 4) };
        let width = if index < SHARED { 30 } else { 4 + random.number_below(16) };
        let releases = (0..RELEASES).map(|number| {
            let to = number * newest / (RELEASES - 1);
            let from = to.saturating_sub(width);
            let mut release = release(&name, number, (from..=to).map(minecraft).collect());
            if random.number_below(3) == 0 {
                release.channel = Channel::Beta;
            }
            // One in fifty releases names an exact release of another project that it works with, if that is installed.
            if index >= SHARED && random.number_below(50) == 0 {
                let other = SHARED + random.number_below(PROJECTS - SHARED);
                release.dependencies = vec![dependency(&format!("p{other:03}"), number, DependencyKind::Optional)];
                release.dependencies.retain(|_| other != index);
            }
            release
        });
        project(&name, releases.collect())
    });
    let projects = projects.collect();
    catalog(papers(PAPERS), projects)
}

fn dependency(project: &str, number: usize, kind: DependencyKind) -> Dependency {
    Dependency {
        project_id: Some(format!("id-{project}")),
        name: None,
        version_id: Some(format!("{project}-{number}")),
        kind,
    }
}

/// A request of a server for a Modrinth project.
pub fn plugin_request(project: &str, version: VersionRequest) -> PluginRequest {
    PluginRequest {
        object: project.to_owned(),
        key: ProjectKey { source: Source::Modrinth, project: project.to_owned() },
        jars: Vec::new(),
        version,
        delay: SignedDuration::ZERO,
        channel: Channel::Release,
        compatibility: None,
        requires: Vec::new(),
        allow_downgrade: false,
        hold: None,
        delay_together: Vec::new(),
        selector: None,
    }
}

/// One server with default values for all other fields.
pub fn request(server: String, paper: PaperRequest, plugins: Vec<PluginRequest>) -> Request {
    Request {
        server,
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
        hotfix_siblings: resolver::model::request::HotfixSiblings::default(),
        unlisted: resolver::model::request::Unlisted::default(),
        facts: resolver::model::compatibility_facts::CompatibilityFacts::default(),
    }
}

/// As many servers that share 20 plugins with strategy `latest`, and have 10 of 200 others each.
pub fn fleet(servers: usize) -> Vec<Request> {
    let mut random = Rng::new(11);
    let server = |index: usize| {
        let shared = (0..SHARED).map(|index| plugin_request(&format!("p{index:03}"), VersionRequest::Latest));
        let first = SHARED + random.number_below(PROJECTS - SHARED - 10);
        let others = (first..first + 10).map(|index| plugin_request(&format!("p{index:03}"), VersionRequest::Auto));
        request(format!("games/s{index:05}"), PaperRequest::Auto, shared.chain(others).collect())
    };
    (0..servers).map(server).collect()
}

/// As many servers that share 20 plugins with strategy `latest`, and have no others.
pub fn uniform_fleet(servers: usize) -> Vec<Request> {
    let mut fleet = fleet(servers);
    for request in &mut fleet {
        request.plugins.truncate(SHARED);
    }
    fleet
}

/// The servers of [`fleet`], but the one in the middle requires a Paper on which no release for the others runs. The others cannot be downgraded.
pub fn conflicting_fleet(servers: usize) -> Vec<Request> {
    let mut requests = fleet(servers);
    for request in &mut requests {
        request.floor = Some(minecraft(FLOOR));
    }
    let one = &mut requests[servers / 2];
    one.floor = None;
    one.paper = PaperRequest::Pin { version: minecraft(1) };
    one.plugins.truncate(SHARED);
    requests
}
