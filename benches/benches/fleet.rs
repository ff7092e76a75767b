//! Edge (reads). A fleet solved together, on invented projects: 1,000 servers share 20 plugins with strategy `latest` and have
//! 10 of 200 others each, every project with 900 releases of which a third is beta, against 54 Paper versions: 11,020 packages.
//!
//! The reference of every ratio is the plain encoding: every server's packages at the root, domains as they are. Before
//! the times, the peak of memory of each step is printed (resident, as the kernel counts it; the catalog is there before),
//! and what two ladders cost: plugins whose releases exclude each other step by step, which no real project does.

use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, PaperVersion, Project, ProjectKey,
    Release, Source,
};
use resolver::request::{Dependencies, ImagePolicy, PaperWish, PluginWish, Request, VersionWish};
use resolver::unmanaged::UnmanagedPlugins;
use resolver::{Budget, Fleet, needed_projects, resolve};

const PAPERS: usize = 54;
const RELEASES: usize = 900;
const SHARED: usize = 20;
const PROJECTS: usize = 220;
const SERVERS: usize = 1_000;
/// The Paper, by number, that all worlds have been opened with. Windows of shared plugins are 30 wide.
const FLOOR: usize = 34;

fn at() -> Timestamp {
    "2026-01-20T12:00:00Z".parse().expect("a literal")
}

/// The same numbers in each run (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(limit).expect("small")).expect("below a usize")
    }
}

/// No two of these are siblings, and none was skipped.
fn minecraft(at: usize) -> resolver::version::Minecraft {
    format!("1.{}", at + 30).parse().expect("numbers and a dot")
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
    let paper = |at| PaperVersion {
        minecraft: minecraft(at),
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
        read_at: at(),
        releases,
    }
}

fn release(project: &str, number: usize, minecraft: Vec<resolver::version::Minecraft>) -> Release {
    let hours = i64::try_from(number).expect("small");
    Release {
        id: format!("{project}-{number}"),
        version: format!("{number}.0"),
        published: Some(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)),
        channel: Channel::Release,
        minecraft,
        loaders: vec!["paper".to_owned()],
        api_version: None,
        java: None,
        provides: Vec::new(),
        dependencies: Vec::new(),
        file: Some(file(project)),
    }
}

/// Each release runs on a window of Papers that moves with its number; the newest window of a project ends anywhere in
/// the newest third, for those that are shared with room for all.
fn catalog() -> Catalog {
    let mut random = Random(7);
    let projects = (0..PROJECTS).map(|at| {
        let name = format!("p{at:03}");
        let newest = if at < SHARED { PAPERS - 4 } else { PAPERS - 1 - random.below(PAPERS / 4) };
        let width = if at < SHARED { 30 } else { 4 + random.below(16) };
        let releases = (0..RELEASES).map(|number| {
            let to = number * newest / (RELEASES - 1);
            let from = to.saturating_sub(width);
            let mut release = release(&name, number, (from..=to).map(minecraft).collect());
            if random.below(3) == 0 {
                release.channel = Channel::Beta;
            }
            // One in fifty names an exact release of a neighbour that it goes with, if that is there.
            if at >= SHARED && random.below(50) == 0 {
                let other = SHARED + random.below(PROJECTS - SHARED);
                release.dependencies = vec![dependency(&format!("p{other:03}"), number, DependencyKind::Optional)];
                release.dependencies.retain(|_| other != at);
            }
            release
        });
        project(&name, releases.collect())
    });
    let projects = projects.collect();
    Catalog { paper: papers(PAPERS), paper_read_at: at(), projects, images: Vec::new(), unread: [].into() }
}

fn dependency(project: &str, number: usize, kind: DependencyKind) -> Dependency {
    Dependency {
        project_id: Some(format!("id-{project}")),
        name: None,
        version_id: Some(format!("{project}-{number}")),
        kind,
    }
}

fn wish(project: &str, version: VersionWish) -> PluginWish {
    PluginWish {
        object: project.to_owned(),
        key: ProjectKey { source: Source::Modrinth, project: project.to_owned() },
        version,
        delay: SignedDuration::ZERO,
        channel: Channel::Release,
        compatibility: None,
    }
}

fn request(server: String, paper: PaperWish, plugins: Vec<PluginWish>) -> Request {
    Request {
        server,
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
    }
}

fn requests() -> Vec<Request> {
    let mut random = Random(11);
    let server = |at: usize| {
        let shared = (0..SHARED).map(|at| wish(&format!("p{at:03}"), VersionWish::Latest));
        let first = SHARED + random.below(PROJECTS - SHARED - 10);
        let own = (first..first + 10).map(|at| wish(&format!("p{at:03}"), VersionWish::Auto));
        request(format!("games/s{at:04}"), PaperWish::Auto, shared.chain(own).collect())
    };
    (0..SERVERS).map(server).collect()
}

/// The same, and one server in the middle wants a Paper that no release for the others runs on: they cannot go back.
fn impossible() -> Vec<Request> {
    let mut requests = requests();
    for request in &mut requests {
        request.floor = Some(minecraft(FLOOR));
    }
    requests[SERVERS / 2].floor = None;
    requests[SERVERS / 2].paper = PaperWish::Pin { version: minecraft(1) };
    requests[SERVERS / 2].plugins.truncate(SHARED);
    requests
}

/// A budget that is never used up.
const PLENTY: Budget = Budget { steps: u64::MAX, words: u64::MAX };

fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

/// How far resident memory goes above what is there now, in MiB, and how long it takes, in milliseconds.
fn cost<T>(work: impl FnOnce() -> T) -> (T, u64, u128) {
    // Resets the peak. Not allowed everywhere: the figure is then that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (before, start) = (status("VmRSS"), Instant::now());
    let done = work();
    (done, status("VmHWM").saturating_sub(before) / 1024, start.elapsed().as_millis())
}

fn say(line: &str) {
    // Nobody is left to be told.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Plugins in a ring: release `k` of each goes with nothing of the next from `k` up, so nothing goes with anything.
fn ladder(plugins: usize) -> Catalog {
    let name = |at: usize| format!("l{}", at % plugins);
    let projects = (0..plugins).map(|at| {
        let releases = (1..=RELEASES).map(|number| {
            let mut release = release(&name(at), number, vec![minecraft(0)]);
            let excludes = (number..=RELEASES).map(|to| dependency(&name(at + 1), to, DependencyKind::Incompatible));
            release.dependencies = excludes.collect();
            release
        });
        project(&name(at), releases.collect())
    });
    let projects = projects.collect();
    Catalog { paper: papers(1), paper_read_at: at(), projects, images: Vec::new(), unread: [].into() }
}

fn ladders() {
    for plugins in [2, 3] {
        let catalog = ladder(plugins);
        let wishes = (0..plugins).map(|at| wish(&format!("l{at}"), VersionWish::Auto)).collect();
        let request = request("games/lobby".to_owned(), PaperWish::Auto, wishes);
        let (_, reads, read) = cost(|| needed_projects(&catalog, &request));
        let (answer, peak, took) = cost(|| resolve(&catalog, &request, at()));
        let end = match answer {
            Ok(_) => "yes".to_owned(),
            Err(unsolvable) => unsolvable.to_string(),
        };
        say(&format!("ladder of {plugins}: {took} ms, {peak} MiB (of which reading {read} ms, {reads} MiB): {end}"));
    }
}

fn fleet(criterion: &mut Criterion) {
    let catalog = catalog();
    let (requests, impossible) = (requests(), impossible());
    let (read, peak, took) = cost(|| Fleet::read(&catalog, &requests, at()));
    say(&format!("read the tables: {took} ms, {peak} MiB"));
    let (decided, peak, took) = cost(|| read.decide(PLENTY));
    assert_eq!(decided.together().len(), SERVERS, "the yes must be a yes for all");
    say(&format!("decide: {took} ms, {peak} MiB"));
    let other = Fleet::read(&catalog, &impossible, at());
    let (decided_otherwise, peak, took) = cost(|| other.decide(PLENTY));
    assert_eq!(decided_otherwise.together().len(), SERVERS - 1, "exactly one cannot go with the others");
    say(&format!("decide, one set aside: {took} ms, {peak} MiB"));
    let (plain, peak, took) = cost(|| read.goes_together_plainly(PLENTY));
    assert_eq!(plain, [Ok(true)], "both say the same");
    say(&format!("plain encoding: {took} ms, {peak} MiB"));
    ladders();

    let mut group = criterion.benchmark_group("1,000 servers");
    group.sample_size(10);
    group.bench_function("reference: the plain encoding", |bencher| {
        bencher.iter(|| black_box(&read).goes_together_plainly(PLENTY));
    });
    group.bench_function("decide", |bencher| bencher.iter(|| black_box(&read).decide(PLENTY).together().len()));
    group.bench_function("decide, one set aside", |bencher| {
        bencher.iter(|| black_box(&other).decide(PLENTY).together().len());
    });
    group.bench_function("read the tables", |bencher| {
        bencher.iter(|| Fleet::read(black_box(&catalog), &requests, at()));
    });
    group.bench_function("the answer for one server, with explanation", |bencher| {
        bencher.iter(|| decided.answer("games/s0042"));
    });
    group.finish();
}

criterion_group!(benches, fleet);
criterion_main!(benches);
