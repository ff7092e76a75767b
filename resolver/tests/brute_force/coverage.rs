//! Pure. Counts how often the random problems contain each feature, because a feature that never occurs is not tested.

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
use super::rules::{ServerRules, is_running, project_index};
use super::{is_thorough, texts};

/// Kinds of problems and answers, with the minimum number of each in 10,000 problems.
const MINIMUM_COUNTS: [(&str, u64); 53] = [
    ("a project on Hangar", 1500),
    ("a project on Hangar that requires another project", 300),
    ("a project on Hangar with releases in two channels", 600),
    ("a chosen release from Hangar", 400),
    ("a Purpur server", 400),
    ("a chosen release on a Purpur server", 150),
    ("a Folia server", 400),
    ("a chosen release on a Folia server", 100),
    ("a Velocity proxy", 400),
    ("a chosen release on a Velocity proxy", 150),
    ("a plugin from a URL", 1000),
    ("a plugin from a URL whose JAR requires another plugin", 300),
    ("a chosen plugin from a URL", 200),
    ("a release from Modrinth or Hangar whose JAR requires another plugin", 1000),
    ("a chosen release from Modrinth or Hangar whose JAR requires another plugin", 150),
    ("an unmanaged JAR that the JAR of a release requires", 200),
    ("a running release not listed for the newest Paper, with an older release that is", 200),
    ("a chosen release older than the running release", 50),
    ("a release younger than its delay", 1200),
    ("a release superseded by a patch within its delay", 120),
    ("a release delayed by a release of a plugin in its delay group", 20),
    ("a chosen release that needs a newer Java than its Paper", 80),
    ("a pinned image", 250),
    ("a running image whose Java the image policy keeps", 450),
    ("a catalog with server images", 500),
    ("a release that is incompatible with another plugin", 1400),
    ("a chosen release that is incompatible with another plugin", 150),
    ("a release with an optional dependency on one version", 600),
    ("a chosen release with an optional dependency on one version", 60),
    ("a chosen plugin whose override adds to the list", 120),
    ("a chosen plugin whose override replaces the list", 100),
    ("a chosen plugin whose override removes from the list", 90),
    ("a compatibility fact of the cluster", 1100),
    ("a Plugin with requirements on other plugins", 900),
    ("a chosen ViaBackwards with a built-in minimum ViaVersion", 40),
    ("a chosen ViaBackwards with a guessed minimum ViaVersion", 20),
    ("EssentialsXChat chosen together with EssentialsX", 10),
    ("a hold on a running plugin", 200),
    ("a hold on a running plugin that the server sets", 80),
    ("unmanaged JARs that are ignored", 200),
    ("an identified unmanaged JAR of an unrequested plugin", 600),
    ("a chosen release with an identified unmanaged JAR of an unrequested plugin", 300),
    ("a running plugin kept because the page of an unmanaged JAR requires it", 2),
    ("a missing plugin that the page of an unmanaged JAR requires", 4),
    ("a delisted running release", 300),
    ("a chosen delisted release", 20),
    ("two servers that share a plugin", 300),
    ("two servers that both get a version set", 100),
    ("two servers of which only one gets a version set", 30),
    ("two servers, with a plugin that strategy latest excludes", 100),
    ("two servers that both get a version set, with a plugin that strategy latest excludes", 20),
    ("two servers of which one keeps a delisted release", 2),
    ("two servers that both keep one delisted release", 1),
];

/// Number of problems of each kind.
#[derive(Default)]
pub(crate) struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    fn record(&mut self, kind: &'static str, occurs: bool) {
        *self.0.entry(kind).or_default() += u64::from(occurs);
    }

    /// Counts the kinds that a problem and its answer belong to.
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
        self.record("a project on Hangar", of(Source::Hangar).count() > 0);
        self.record("a project on Hangar that requires another project", of(Source::Hangar).any(needs));
        self.record("a project on Hangar with releases in two channels", of(Source::Hangar).any(two_channels));
        self.record("a chosen release from Hangar", of(Source::Hangar).any(is_chosen));
        for (software, server_kind, installs) in [
            (Software::Purpur, "a Purpur server", "a chosen release on a Purpur server"),
            (Software::Folia, "a Folia server", "a chosen release on a Folia server"),
            (Software::Velocity, "a Velocity proxy", "a chosen release on a Velocity proxy"),
        ] {
            self.record(server_kind, request.software == software);
            self.record(installs, request.software == software && !chosen.is_empty());
        }
        self.record("a plugin from a URL", of(Source::Url).count() > 0);
        let needs_plugins =
            |release: &Release| release.declared.as_ref().is_some_and(|declared| !declared.depend.is_empty());
        self.record(
            "a plugin from a URL whose JAR requires another plugin",
            of(Source::Url).any(|project| project.releases.iter().any(needs_plugins)),
        );
        self.record("a chosen plugin from a URL", of(Source::Url).any(is_chosen));
        let sites = || catalog.projects.iter().filter(|project| project.key.source != Source::Url);
        let dependents = || sites().flat_map(|project| &project.releases).filter(|release| needs_plugins(release));
        let kind = "a release from Modrinth or Hangar whose JAR requires another plugin";
        self.record(kind, dependents().next().is_some());
        let kind = "a chosen release from Modrinth or Hangar whose JAR requires another plugin";
        self.record(kind, dependents().any(|release| chosen.contains(&release.id)));
        let unmanaged_names: Vec<&String> = request.unmanaged.iter().filter_map(|jar| jar.name.as_ref()).collect();
        let needed = |release: &Release| {
            release.declared.iter().flat_map(|declared| &declared.depend).any(|name| unmanaged_names.contains(&name))
        };
        self.record(
            "an unmanaged JAR that the JAR of a release requires",
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
        self.record("a running release not listed for the newest Paper, with an older release that is", would);
        self.record("a chosen release older than the running release", does);
        self.count_releases(problem, chosen);
        self.count_settings(problem, chosen);
    }

    /// Counts kinds that depend on releases and their dependencies.
    fn count_releases(&mut self, problem: &Problem, chosen: &[String]) {
        let Problem { catalog, request, now } = problem;
        let is_chosen = |release: &Release| chosen.contains(&release.id);
        let (mut delayed, mut superseded) = (false, false);
        for plugin_request in &request.plugins {
            let Some(index) = project_index(catalog, &plugin_request.key) else { continue };
            let releases = &catalog.projects[index].releases;
            for (release, published) in releases.iter().filter_map(|release| Some((release, release.published?))) {
                let eligible_at = published + plugin_request.delay;
                delayed |= published <= *now && eligible_at > *now;
                superseded |= releases.iter().any(|next| {
                    let within = next.published.is_some_and(|date| date >= published && date < eligible_at);
                    within && texts::is_patch_of(&next.version, &release.version)
                });
            }
        }
        self.record("a release younger than its delay", delayed);
        self.record("a release superseded by a patch within its delay", superseded);
        self.record("a release delayed by a release of a plugin in its delay group", has_group_delay(problem));
        let all = || catalog.projects.iter().flat_map(|project| &project.releases);
        let newer_java = |release: &Release| release.java == Some(25);
        let older_paper = catalog.paper.iter().all(|paper| paper.java < Some(25));
        let kind = "a chosen release that needs a newer Java than its Paper";
        self.record(kind, older_paper && all().any(|release| is_chosen(release) && newer_java(release)));
        let has = |release: &Release, line: &dyn Fn(&Dependency) -> bool| release.dependencies.iter().any(line);
        let excludes = |line: &Dependency| line.kind == DependencyKind::Incompatible;
        let binds = |line: &Dependency| line.kind == DependencyKind::Optional && line.version_id.is_some();
        self.record("a release that is incompatible with another plugin", all().any(|release| has(release, &excludes)));
        let kind = "a chosen release that is incompatible with another plugin";
        self.record(kind, all().any(|release| is_chosen(release) && has(release, &excludes)));
        let kind = "a release with an optional dependency on one version";
        self.record(kind, all().any(|release| has(release, &binds)));
        let kind = "a chosen release with an optional dependency on one version";
        self.record(kind, all().any(|release| is_chosen(release) && has(release, &binds)));
        let chosen_of = |name: &str| {
            let project = catalog.projects.iter().find(|project| project.name == name);
            project.into_iter().flat_map(|project| &project.releases).find(|release| is_chosen(release))
        };
        let has_known_bound = |release: &Release| least_viaversion(&release.version).is_some();
        let backwards = chosen_of("ViaBackwards");
        self.record("a chosen ViaBackwards with a built-in minimum ViaVersion", backwards.is_some_and(has_known_bound));
        self.record(
            "a chosen ViaBackwards with a guessed minimum ViaVersion",
            backwards.is_some_and(|release| !has_known_bound(release)),
        );
        let module = chosen_of("EssentialsXChat").and(chosen_of("EssentialsX"));
        self.record("EssentialsXChat chosen together with EssentialsX", module.is_some());
    }

    /// Counts kinds that depend on the users' settings.
    fn count_settings(&mut self, problem: &Problem, chosen: &[String]) {
        let Problem { catalog, request, now: _ } = problem;
        let of = |plugin_request: &PluginRequest| {
            project_index(catalog, &plugin_request.key).map(|index| &catalog.projects[index])
        };
        for (kind, mode) in [
            ("a chosen plugin whose override adds to the list", OverrideMode::Add),
            ("a chosen plugin whose override replaces the list", OverrideMode::Replace),
            ("a chosen plugin whose override removes from the list", OverrideMode::Remove),
        ] {
            let compatibility = |plugin_request: &&PluginRequest| {
                plugin_request.compatibility.as_ref().is_some_and(|compatibility| compatibility.mode == mode)
            };
            let mut about =
                request.plugins.iter().filter(compatibility).filter_map(of).flat_map(|project| &project.releases);
            self.record(kind, about.any(|release| chosen.contains(&release.id)));
        }
        self.record("a compatibility fact of the cluster", !request.facts.all().is_empty());
        self.record(
            "a Plugin with requirements on other plugins",
            request.plugins.iter().any(|plugin_request| !plugin_request.requires.is_empty()),
        );
        let runs_one = |plugin_request: &&PluginRequest| {
            of(plugin_request)
                .is_some_and(|project| project.releases.iter().any(|release| is_running(request, release)))
        };
        let held_plugins =
            || request.plugins.iter().filter(|plugin_request| plugin_request.hold.is_some()).filter(runs_one);
        self.record("a hold on a running plugin", held_plugins().next().is_some());
        self.record(
            "a hold on a running plugin that the server sets",
            held_plugins().any(|plugin_request| plugin_request.hold == Some(Hold::Server)),
        );
        let counts_unmanaged = request.unmanaged_plugins != UnmanagedPlugins::Ignore;
        self.record("unmanaged JARs that are ignored", !counts_unmanaged && !request.unmanaged.is_empty());
        let is_unrequested =
            |project: &Project| !request.plugins.iter().filter_map(of).any(|requested| requested.key == project.key);
        let owners = request.unmanaged.iter().filter_map(|jar| catalog.owners.get(jar.sha256.as_ref()?));
        let mut identified =
            owners.filter_map(|owner| catalog.project(&owner.project)).filter(|project| is_unrequested(project));
        let identified = counts_unmanaged && identified.next().is_some();
        self.record("an identified unmanaged JAR of an unrequested plugin", identified);
        let kind = "a chosen release with an identified unmanaged JAR of an unrequested plugin";
        self.record(kind, identified && !chosen.is_empty());
        self.count_page_requirements(problem, chosen);
        self.record("a delisted running release", delisted(request).next().is_some());
        self.record("a chosen delisted release", delisted(request).any(|id| chosen.contains(id)));
        let running = request.running.as_ref().and_then(|running| running.java);
        self.record("a pinned image", request.image.is_some());
        let is_kept = request.image.is_none() && request.image_policy != ImagePolicy::Follow && running.is_some();
        self.record("a running image whose Java the image policy keeps", is_kept);
        self.record("a catalog with server images", !catalog.images.is_empty());
    }

    /// Counts requirements on the pages of unmanaged JARs.
    fn count_page_requirements(&mut self, Problem { catalog, request, now }: &Problem, chosen: &[String]) {
        let rules = ServerRules::new(catalog, request, *now).ok().filter(|_| !chosen.is_empty());
        let by_pages = rules.iter().flat_map(|rules| rules.page_requirements.iter().map(move |want| (rules, want)));
        let of_chosen = |project: &Project| project.releases.iter().any(|release| chosen.contains(&release.id));
        let (mut stays, mut lacks) = (false, false);
        for (rules, want) in by_pages {
            let mut installed =
                want.met_by.iter().map(|at| &rules.members[*at]).filter(|member| of_chosen(member.project));
            lacks |= installed.clone().next().is_none();
            stays |= installed.any(|member| member.needed_by_files.iter().any(|file| file == want.file));
        }
        self.record("a running plugin kept because the page of an unmanaged JAR requires it", stays);
        self.record("a missing plugin that the page of an unmanaged JAR requires", lacks);
    }

    /// Counts the kinds that two servers and their outcomes belong to.
    pub(crate) fn count_pair(&mut self, pair: &Pair, outcomes: &[Outcome; 2]) {
        let chosen_count = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Chosen { .. })).count();
        self.record("two servers that share a plugin", true);
        self.record("two servers that both get a version set", chosen_count == 2);
        self.record("two servers of which only one gets a version set", chosen_count == 1);
        let excludes =
            |outcome: &Outcome| matches!(outcome, Outcome::Chosen { left_behind, .. } if !left_behind.is_empty());
        let one_excludes = outcomes.iter().any(excludes);
        self.record("two servers, with a plugin that strategy latest excludes", one_excludes);
        let kind = "two servers that both get a version set, with a plugin that strategy latest excludes";
        self.record(kind, one_excludes && chosen_count == 2);
        let has_release =
            |outcome: &Outcome, id| matches!(outcome, Outcome::Chosen { releases, .. } if releases.contains(id));
        let keeping_servers = |id| outcomes.iter().filter(|outcome| has_release(outcome, id)).count();
        let most = pair.requests.iter().flat_map(delisted).map(keeping_servers).max();
        self.record("two servers of which one keeps a delisted release", most == Some(1));
        self.record("two servers that both keep one delisted release", most == Some(2));
    }

    /// Panics if a kind occurred too rarely. A thorough run must reach the minimum, other runs half of it.
    pub(crate) fn assert_enough(&self, problems: u64) {
        for (kind, least) in MINIMUM_COUNTS {
            let found = self.0.get(kind).copied().unwrap_or_default();
            let expected = problems * least / 10_000;
            assert!(
                found >= if is_thorough() { expected } else { expected / 2 },
                "too few cases of \"{kind}\": {found} in {problems} problems, all counts: {:?}",
                self.0
            );
        }
        assert_eq!(self.0.len(), MINIMUM_COUNTS.len(), "each counted kind must have a minimum: {:?}", self.0);
    }
}

/// The ids of the delisted running releases that the lock describes.
fn delisted(request: &Request) -> impl Iterator<Item = &String> {
    request.running.iter().flat_map(|running| &running.delisted).map(|delisted| &delisted.release.id)
}

/// Whether a release is older than its own delay, but a release of a plugin in its delay group, published within an
/// hour of it, is younger than the delay of that plugin.
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
                    let apart = late_published.duration_since(published).abs();
                    let within_one_hour = apart <= SignedDuration::from_hours(1);
                    let are_published = published <= *now && late_published <= *now;
                    let only_other_delayed =
                        published + plugin_request.delay <= *now && late_published + other.delay > *now;
                    release.channel == late.channel && within_one_hour && are_published && only_other_delayed
                }
                (None, _) | (_, None) => false,
            })
        })
    })
}
