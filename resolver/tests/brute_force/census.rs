//! Pure. How many of the random problems hold what they are there for: what never comes up is not tried.

use std::collections::BTreeMap;

use resolver::catalog::{DependencyKind, Project, Release, Source};
use resolver::software::Software;

use super::oracle::Outcome;
use super::problem::Problem;
use super::rules::runs;

/// Kinds of problems and answers, and in how many of a thousand problems each has to come up.
const LEAST: [(&str, u64); 21] = [
    ("a project of Hangar", 150),
    ("a project of Hangar that needs another one", 30),
    ("a project of Hangar in two channels", 60),
    ("a chosen release of Hangar", 40),
    ("a server of Purpur", 40),
    ("a chosen release on Purpur", 15),
    ("a server of Folia", 40),
    ("a chosen release on Folia", 10),
    ("a proxy", 40),
    ("a chosen release on a proxy", 15),
    ("a file by its URL", 100),
    ("a file that needs another plugin", 30),
    ("a chosen file", 20),
    ("a JAR of a site that needs another plugin", 100),
    ("a chosen release of a site that needs another plugin by its JAR", 15),
    ("a JAR of one's own that another one needs", 20),
    ("a running release that a newer Paper would have to go below", 20),
    ("a plugin that goes below what runs", 5),
    ("two servers", 30),
    ("two servers of which both move", 10),
    ("two servers of which one is set aside", 3),
];

/// How often each kind has come up.
#[derive(Default)]
pub(crate) struct Census(BTreeMap<&'static str, u64>);

impl Census {
    fn note(&mut self, kind: &'static str, there: bool) {
        *self.0.entry(kind).or_default() += u64::from(there);
    }

    /// Notes what a problem and its answer hold.
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
        self.note("a project of Hangar", of(Source::Hangar).count() > 0);
        self.note("a project of Hangar that needs another one", of(Source::Hangar).any(needs));
        self.note("a project of Hangar in two channels", of(Source::Hangar).any(two_channels));
        self.note("a chosen release of Hangar", of(Source::Hangar).any(is_chosen));
        for (software, there, installs) in [
            (Software::Purpur, "a server of Purpur", "a chosen release on Purpur"),
            (Software::Folia, "a server of Folia", "a chosen release on Folia"),
            (Software::Velocity, "a proxy", "a chosen release on a proxy"),
        ] {
            self.note(there, request.software == software);
            self.note(installs, request.software == software && !chosen.is_empty());
        }
        self.note("a file by its URL", of(Source::Url).count() > 0);
        let asks = |release: &Release| release.declared.as_ref().is_some_and(|declared| !declared.depend.is_empty());
        self.note("a file that needs another plugin", of(Source::Url).any(|project| project.releases.iter().any(asks)));
        self.note("a chosen file", of(Source::Url).any(is_chosen));
        let sites = || catalog.projects.iter().filter(|project| project.key.source != Source::Url);
        let asking = || sites().flat_map(|project| &project.releases).filter(|release| asks(release));
        self.note("a JAR of a site that needs another plugin", asking().next().is_some());
        let kind = "a chosen release of a site that needs another plugin by its JAR";
        self.note(kind, asking().any(|release| chosen.contains(&release.id)));
        let own: Vec<&String> = request.unmanaged.iter().filter_map(|jar| jar.name.as_ref()).collect();
        let needed =
            |release: &Release| release.declared.iter().flat_map(|it| &it.depend).any(|name| own.contains(&name));
        self.note(
            "a JAR of one's own that another one needs",
            catalog.projects.iter().flat_map(|project| &project.releases).any(needed),
        );
        let (mut would, mut does) = (false, false);
        for project in &catalog.projects {
            let Some(running) = project.releases.iter().find(|release| runs(request, release)) else { continue };
            let older = || project.releases.iter().filter(|release| release.published < running.published);
            let newest_paper = catalog.paper.iter().map(|paper| &paper.minecraft).max();
            let lists = |list: &[_]| newest_paper.is_some_and(|paper| list.contains(paper));
            would |= !lists(&running.minecraft) && older().any(|release| lists(&release.minecraft));
            does |= older().any(|release| chosen.contains(&release.id));
        }
        self.note("a running release that a newer Paper would have to go below", would);
        self.note("a plugin that goes below what runs", does);
    }

    /// Notes what two servers came to.
    pub(crate) fn count_pair(&mut self, outcomes: &[Outcome; 2]) {
        let moves = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Chosen { .. })).count();
        self.note("two servers", true);
        self.note("two servers of which both move", moves == 2);
        self.note("two servers of which one is set aside", moves == 1);
    }

    /// Fails when one of the kinds has come up too rarely in so many problems.
    pub(crate) fn is_enough(&self, problems: u64) {
        for (kind, least) in LEAST {
            let found = self.0.get(kind).copied().unwrap_or_default();
            assert!(found >= problems * least / 1000, "{kind}: only in {found} of {problems}");
        }
        assert_eq!(self.0.len(), LEAST.len(), "{:?}", self.0);
    }
}
