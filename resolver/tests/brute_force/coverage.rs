//! Pure. Counts the features of the random problems, because a feature that never occurs is not tested.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use resolver::model::catalog::{Dependency, DependencyKind, Project, Release, Source};
use resolver::model::request::{Hold, ImagePolicy, OverrideMode, PluginRequest, Request};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedPlugins;

use super::dependencies::least_viaversion;
use super::group::Pair;
use super::oracle::Outcome;
use super::problem::Problem;
use super::rules::{Book, is_running, project_index};
use super::{is_thorough, texts};

/// Kinds of problems and answers, with the minimum number of each in ten thousand problems.
const LEAST: [(&str, u64); 53] = [
    ("a project of Hangar", 1500),
    ("a project of Hangar that needs another one", 300),
    ("a project of Hangar in two channels", 600),
    ("a chosen release of Hangar", 400),
    ("a server of Purpur", 400),
    ("a chosen release on Purpur", 150),
    ("a server of Folia", 400),
    ("a chosen release on Folia", 100),
    ("a proxy", 400),
    ("a chosen release on a proxy", 150),
    ("a file by its URL", 1000),
    ("a file that needs another plugin", 300),
    ("a chosen file", 200),
    ("a JAR of a site that needs another plugin", 1000),
    ("a chosen release of a site that needs another plugin by its JAR", 150),
    ("a JAR of one's own that another one needs", 200),
    ("a running release that a newer Paper would have to go below", 200),
    ("a plugin that goes below what runs", 50),
    ("a release that its delay holds", 1200),
    ("a release that a patch superseded within its delay", 120),
    ("a release that is held back together with another plugin's", 20),
    ("a chosen release that needs a newer Java than its Paper", 80),
    ("a pinned image", 250),
    ("an image that a policy holds", 450),
    ("published images", 500),
    ("a release that excludes another plugin", 1400),
    ("a chosen release that excludes another plugin", 150),
    ("a release that binds an optional plugin to one version", 600),
    ("a chosen release that binds an optional plugin to one version", 60),
    ("an override that adds to the list of a chosen release", 120),
    ("an override that stands instead of the list of a chosen release", 100),
    ("an override that takes from the list of a chosen release", 90),
    ("a fact of the cluster", 1100),
    ("a bound of a Plugin's own", 900),
    ("a chosen release with a built-in bound", 40),
    ("a chosen release whose bound is guessed", 20),
    ("a chosen module beside EssentialsX", 10),
    ("a hold of what runs", 200),
    ("a hold that the server says", 80),
    ("files of one's own that nobody minds", 200),
    ("a file of one's own whose release is known and whose plugin nobody asks for", 600),
    ("a chosen release beside such a file", 300),
    ("a plugin that stays for the page of such a file", 2),
    ("a plugin that the page of such a file requires and nobody is", 4),
    ("a running release that its page has lost", 300),
    ("a chosen release that its page has lost", 20),
    ("two servers", 300),
    ("two servers of which both move", 100),
    ("two servers of which one is set aside", 30),
    ("two servers of which one leaves a plugin behind", 100),
    ("two servers that both move, and one leaves a plugin behind", 20),
    ("two servers of which one keeps a release that its page has lost", 2),
    ("two servers that keep one release that its page has lost", 1),
];

/// Number of problems of each kind.
#[derive(Default)]
pub(crate) struct Census(BTreeMap<&'static str, u64>);

impl Census {
    fn record(&mut self, kind: &'static str, occurs: bool) {
        *self.0.entry(kind).or_default() += u64::from(occurs);
    }

    /// Counts the features of a problem and its answer.
    pub(crate) fn count(&mut self, problem: &Problem, outcome: &Outcome) {
        let Problem { catalog, request, now: _ } = problem;
        let chosen: &[String] = if let Outcome::Chosen { releases, .. } = outcome { releases } else { &[] };
        let of = |source: Source| catalog.projects.iter().filter(move |project| project.key.source == source);
        let needs = |project: &Project| {
            let mut lines = project.releases.iter().flat_map(|release| &release.dependencies);
            lines.any(|line| line.kind == DependencyKind::Required)
        };
        let two_channels =
            |project: &Project| project.releases.iter().any(|release| release.channel != project.releases[0].channel);
        let is_chosen = |project: &Project| project.releases.iter().any(|release| chosen.contains(&release.id));
        self.record("a project of Hangar", of(Source::Hangar).count() > 0);
        self.record("a project of Hangar that needs another one", of(Source::Hangar).any(needs));
        self.record("a project of Hangar in two channels", of(Source::Hangar).any(two_channels));
        self.record("a chosen release of Hangar", of(Source::Hangar).any(is_chosen));
        for (software, server_kind, installs) in [
            (Software::Purpur, "a server of Purpur", "a chosen release on Purpur"),
            (Software::Folia, "a server of Folia", "a chosen release on Folia"),
            (Software::Velocity, "a proxy", "a chosen release on a proxy"),
        ] {
            self.record(server_kind, request.software == software);
            self.record(installs, request.software == software && !chosen.is_empty());
        }
        self.record("a file by its URL", of(Source::Url).count() > 0);
        let needs_plugins =
            |release: &Release| release.declared.as_ref().is_some_and(|declared| !declared.depend.is_empty());
        self.record(
            "a file that needs another plugin",
            of(Source::Url).any(|project| project.releases.iter().any(needs_plugins)),
        );
        self.record("a chosen file", of(Source::Url).any(is_chosen));
        let sites = || catalog.projects.iter().filter(|project| project.key.source != Source::Url);
        let dependents = || sites().flat_map(|project| &project.releases).filter(|release| needs_plugins(release));
        self.record("a JAR of a site that needs another plugin", dependents().next().is_some());
        let kind = "a chosen release of a site that needs another plugin by its JAR";
        self.record(kind, dependents().any(|release| chosen.contains(&release.id)));
        let unmanaged_names: Vec<&String> = request.unmanaged.iter().filter_map(|jar| jar.name.as_ref()).collect();
        let needed = |release: &Release| {
            release.declared.iter().flat_map(|declared| &declared.depend).any(|name| unmanaged_names.contains(&name))
        };
        self.record(
            "a JAR of one's own that another one needs",
            catalog.projects.iter().flat_map(|project| &project.releases).any(needed),
        );
        let (mut would, mut does) = (false, false);
        for project in &catalog.projects {
            let Some(running) = project.releases.iter().find(|release| is_running(request, release)) else { continue };
            let older = || project.releases.iter().filter(|release| release.published < running.published);
            let newest_paper = catalog.paper.iter().map(|paper| &paper.minecraft).max();
            let lists = |list: &[_]| newest_paper.is_some_and(|paper| list.contains(paper));
            would |= !lists(&running.minecraft) && older().any(|release| lists(&release.minecraft));
            does |= older().any(|release| chosen.contains(&release.id));
        }
        self.record("a running release that a newer Paper would have to go below", would);
        self.record("a plugin that goes below what runs", does);
        self.count_releases(problem, chosen);
        self.count_settings(problem, chosen);
    }

    /// Counts properties of releases and their relations.
    fn count_releases(&mut self, problem: &Problem, chosen: &[String]) {
        let Problem { catalog, request, now } = problem;
        let is_chosen = |release: &Release| chosen.contains(&release.id);
        let (mut held, mut superseded) = (false, false);
        for plugin_request in &request.plugins {
            let Some(index) = project_index(catalog, &plugin_request.key) else { continue };
            let releases = &catalog.projects[index].releases;
            for (release, published) in releases.iter().filter_map(|release| Some((release, release.published?))) {
                let eligible_at = published + plugin_request.delay;
                held |= published <= *now && eligible_at > *now;
                superseded |= releases.iter().any(|next| {
                    let within = next.published.is_some_and(|date| date >= published && date < eligible_at);
                    within && texts::is_patch_of(&next.version, &release.version)
                });
            }
        }
        self.record("a release that its delay holds", held);
        self.record("a release that a patch superseded within its delay", superseded);
        self.record("a release that is held back together with another plugin's", has_group_delay(problem));
        let all = || catalog.projects.iter().flat_map(|project| &project.releases);
        let newer_java = |release: &Release| release.java == Some(25);
        let older_paper = catalog.paper.iter().all(|paper| paper.java < Some(25));
        let kind = "a chosen release that needs a newer Java than its Paper";
        self.record(kind, older_paper && all().any(|release| is_chosen(release) && newer_java(release)));
        let has = |release: &Release, line: &dyn Fn(&Dependency) -> bool| release.dependencies.iter().any(line);
        let excludes = |line: &Dependency| line.kind == DependencyKind::Incompatible;
        let binds = |line: &Dependency| line.kind == DependencyKind::Optional && line.version_id.is_some();
        self.record("a release that excludes another plugin", all().any(|release| has(release, &excludes)));
        let kind = "a chosen release that excludes another plugin";
        self.record(kind, all().any(|release| is_chosen(release) && has(release, &excludes)));
        let kind = "a release that binds an optional plugin to one version";
        self.record(kind, all().any(|release| has(release, &binds)));
        let kind = "a chosen release that binds an optional plugin to one version";
        self.record(kind, all().any(|release| is_chosen(release) && has(release, &binds)));
        let chosen_of = |name: &str| {
            let project = catalog.projects.iter().find(|project| project.name == name);
            project.into_iter().flat_map(|project| &project.releases).find(|release| is_chosen(release))
        };
        let has_known_bound = |release: &Release| least_viaversion(&release.version).is_some();
        let backwards = chosen_of("ViaBackwards");
        self.record("a chosen release with a built-in bound", backwards.is_some_and(has_known_bound));
        self.record(
            "a chosen release whose bound is guessed",
            backwards.is_some_and(|release| !has_known_bound(release)),
        );
        let module = chosen_of("EssentialsXChat").and(chosen_of("EssentialsX"));
        self.record("a chosen module beside EssentialsX", module.is_some());
    }

    /// Counts settings of users.
    fn count_settings(&mut self, problem: &Problem, chosen: &[String]) {
        let Problem { catalog, request, now: _ } = problem;
        let of = |plugin_request: &PluginRequest| {
            project_index(catalog, &plugin_request.key).map(|index| &catalog.projects[index])
        };
        for (kind, mode) in [
            ("an override that adds to the list of a chosen release", OverrideMode::Add),
            ("an override that stands instead of the list of a chosen release", OverrideMode::Replace),
            ("an override that takes from the list of a chosen release", OverrideMode::Remove),
        ] {
            let compatibility = |plugin_request: &&PluginRequest| {
                plugin_request.compatibility.as_ref().is_some_and(|compatibility| compatibility.mode == mode)
            };
            let mut about =
                request.plugins.iter().filter(compatibility).filter_map(of).flat_map(|project| &project.releases);
            self.record(kind, about.any(|release| chosen.contains(&release.id)));
        }
        self.record("a fact of the cluster", !request.facts.all().is_empty());
        self.record(
            "a bound of a Plugin's own",
            request.plugins.iter().any(|plugin_request| !plugin_request.requires.is_empty()),
        );
        let runs_one = |plugin_request: &&PluginRequest| {
            of(plugin_request)
                .is_some_and(|project| project.releases.iter().any(|release| is_running(request, release)))
        };
        let held_plugins =
            || request.plugins.iter().filter(|plugin_request| plugin_request.hold.is_some()).filter(runs_one);
        self.record("a hold of what runs", held_plugins().next().is_some());
        self.record(
            "a hold that the server says",
            held_plugins().any(|plugin_request| plugin_request.hold == Some(Hold::Server)),
        );
        let counts_unmanaged = request.unmanaged_plugins != UnmanagedPlugins::Ignore;
        self.record("files of one's own that nobody minds", !counts_unmanaged && !request.unmanaged.is_empty());
        let is_unrequested =
            |project: &Project| !request.plugins.iter().filter_map(of).any(|requested| requested.key == project.key);
        let owners = request.unmanaged.iter().filter_map(|jar| catalog.owners.get(jar.sha256.as_ref()?));
        let mut identified =
            owners.filter_map(|owner| catalog.project(&owner.project)).filter(|project| is_unrequested(project));
        let identified = counts_unmanaged && identified.next().is_some();
        self.record("a file of one's own whose release is known and whose plugin nobody asks for", identified);
        self.record("a chosen release beside such a file", identified && !chosen.is_empty());
        self.count_page_requirements(problem, chosen);
        self.record("a running release that its page has lost", delisted(request).next().is_some());
        self.record("a chosen release that its page has lost", delisted(request).any(|id| chosen.contains(id)));
        let running = request.running.as_ref().and_then(|running| running.java);
        self.record("a pinned image", request.image.is_some());
        let held = request.image.is_none() && request.image_policy != ImagePolicy::Follow && running.is_some();
        self.record("an image that a policy holds", held);
        self.record("published images", !catalog.images.is_empty());
    }

    /// Counts requirements of files' pages.
    fn count_page_requirements(&mut self, Problem { catalog, request, now }: &Problem, chosen: &[String]) {
        let book = Book::new(catalog, request, *now).ok().filter(|_| !chosen.is_empty());
        let by_pages = book.iter().flat_map(|book| book.page_requirements.iter().map(move |want| (book, want)));
        let of_chosen = |project: &Project| project.releases.iter().any(|release| chosen.contains(&release.id));
        let (mut stays, mut lacks) = (false, false);
        for (book, want) in by_pages {
            let mut installed =
                want.met_by.iter().map(|at| &book.members[*at]).filter(|member| of_chosen(member.project));
            lacks |= installed.clone().next().is_none();
            stays |= installed.any(|member| member.needed_by_files.iter().any(|file| file == want.file));
        }
        self.record("a plugin that stays for the page of such a file", stays);
        self.record("a plugin that the page of such a file requires and nobody is", lacks);
    }

    /// Counts the outcomes of two servers.
    pub(crate) fn count_pair(&mut self, pair: &Pair, outcomes: &[Outcome; 2]) {
        let moves = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Chosen { .. })).count();
        self.record("two servers", true);
        self.record("two servers of which both move", moves == 2);
        self.record("two servers of which one is set aside", moves == 1);
        let leaves =
            |outcome: &Outcome| matches!(outcome, Outcome::Chosen { left_behind, .. } if !left_behind.is_empty());
        let one_leaves = outcomes.iter().any(leaves);
        self.record("two servers of which one leaves a plugin behind", one_leaves);
        self.record("two servers that both move, and one leaves a plugin behind", one_leaves && moves == 2);
        let has_release =
            |outcome: &Outcome, id| matches!(outcome, Outcome::Chosen { releases, .. } if releases.contains(id));
        let keeping_servers = |id| outcomes.iter().filter(|outcome| has_release(outcome, id)).count();
        let most = pair.requests.iter().flat_map(delisted).map(keeping_servers).max();
        self.record("two servers of which one keeps a release that its page has lost", most == Some(1));
        self.record("two servers that keep one release that its page has lost", most == Some(2));
    }

    /// Fails when one of the kinds occurred too rarely: less often than expected in a thorough run, or less than half
    /// as often in others.
    pub(crate) fn assert_enough(&self, problems: u64) {
        for (kind, least) in LEAST {
            let found = self.0.get(kind).copied().unwrap_or_default();
            let expected = problems * least / 10_000;
            assert!(
                found >= if is_thorough() { expected } else { expected / 2 },
                "{kind}: only in {found} of {problems}: {:?}",
                self.0
            );
        }
        assert_eq!(self.0.len(), LEAST.len(), "{:?}", self.0);
    }
}

/// The ids of the running releases that are delisted, as far as the lock knows them.
fn delisted(request: &Request) -> impl Iterator<Item = &String> {
    request.running.iter().flat_map(|running| &running.delisted).map(|delisted| &delisted.release.id)
}

/// Whether a release is old enough itself, but a release of a plugin in its group from the same hour is not.
fn has_group_delay(problem: &Problem) -> bool {
    let Problem { catalog, request, now } = problem;
    let requested: Vec<(&PluginRequest, &Project)> = (request.plugins.iter())
        .filter_map(|plugin_request| {
            Some((plugin_request, &catalog.projects[project_index(catalog, &plugin_request.key)?]))
        })
        .collect();
    let names = |plugin_request: &PluginRequest, other: &Project| plugin_request.delay_together.contains(&other.name);
    requested.iter().any(|(plugin_request, project)| {
        let others = requested.iter().filter(|(other, of)| {
            let belong = texts::are_grouped(&project.name, &of.name);
            of.key != project.key && (belong || names(plugin_request, of) || names(other, project))
        });
        others.into_iter().any(|(other, of)| {
            let mut pairs =
                project.releases.iter().flat_map(|release| of.releases.iter().map(move |late| (release, late)));
            pairs.any(|(release, late)| match (release.published, late.published) {
                (Some(published), Some(late_published)) => {
                    let that_night = late_published.duration_since(published).abs() <= SignedDuration::from_hours(1);
                    let are_published = published <= *now && late_published <= *now;
                    let only_other_delayed =
                        published + plugin_request.delay <= *now && late_published + other.delay > *now;
                    release.channel == late.channel && that_night && are_published && only_other_delayed
                }
                (None, _) | (_, None) => false,
            })
        })
    })
}
