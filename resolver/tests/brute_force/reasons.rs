//! Pure. Tests on random small problems, by the rules of `docs/concepts/solve.md`, that each reason of a conflict is
//! true and has the reported effect. `properties.rs` tests that all reasons together exclude every solution.

use std::collections::BTreeSet;

use jiff::Timestamp;
use resolver::Unsolvable;
use resolver::explanation::{Conflict, ListedRelease, Reason, Span};
use resolver::model::catalog::Release;
use resolver::model::compatibility_facts::UsedFact;
use resolver::model::request::{PaperRequest, PluginRequest, VersionRequest};
use resolver::model::unusable::Unusable;
use resolver::model::version::Minecraft;

use super::blockers_complete::{Candidate, ExclusionReason, check_paper_excluded_by};
use super::loading::loads;
use super::oracle;
use super::paper_rules::is_verifiable;
use super::problem::Problem;
use super::properties::{for_all, objects_of, resolve_problem};
use super::rules::{Member, ServerRules, in_order, is_running};
use super::side_facts::check_fact;
use super::why_older::{CaseCounts, check_both_reasons, newest_listed};

/// The reasons of a conflict, with the rules applied to its problem.
struct ConflictCheck<'p> {
    problem: &'p Problem,
    reasons: &'p [Reason],
    rules: ServerRules<'p>,
}

/// Returns the error unless the condition is true.
fn ensure(condition: bool, error: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(error()) }
}

/// Checks that the newest usable release of a plugin is reported, with the newest Minecraft version on its list.
fn check_newest(member: &Member<'_>, reported: Option<&ListedRelease>) -> Result<(), String> {
    let newest = member.usable.last().map(|release| (&release.version, newest_listed(release)));
    let reported = reported.map(|reported| (&reported.version, reported.up_to.as_ref()));
    ensure(newest == reported, || {
        format!("the newest release of {} is {newest:?}, but {reported:?} is reported", member.project.name)
    })
}

impl<'p> ConflictCheck<'p> {
    fn member(&self, plugin: &str) -> Result<(usize, &Member<'p>), String> {
        let mut members = self.rules.members.iter().enumerate();
        let found = members.find(|(_, member)| member.project.name == plugin);
        found.ok_or_else(|| format!("{plugin} is not part of the solve"))
    }

    /// The indexes of the Papers in these spans.
    fn papers(&self, spans: &[Span]) -> Vec<usize> {
        let within = |minecraft: &Minecraft| spans.iter().any(|span| (&span.from..=&span.to).contains(&minecraft));
        (0..self.rules.papers.len()).filter(|&paper| within(self.rules.papers[paper].minecraft)).collect()
    }

    /// The usable releases of a plugin that are listed for one of these Papers, oldest first.
    fn listed(&self, at: usize, papers: &[usize]) -> Vec<&'p Release> {
        let on_one = |release: &Release| papers.iter().any(|&paper| self.rules.is_listed(at, release, paper));
        self.rules.members[at].usable.iter().copied().filter(|release| on_one(release)).collect()
    }

    /// The Plugins that request a plugin.
    fn plugin_requests(&self, plugin: &str) -> Vec<&'p PluginRequest> {
        let objects = objects_of(self.problem, plugin);
        self.problem.request.plugins.iter().filter(|plugin_request| objects.contains(&plugin_request.object)).collect()
    }

    /// All published releases of a plugin, oldest first.
    fn published(&self, member: &Member<'p>) -> Vec<&'p Release> {
        let Problem { request, now, .. } = self.problem;
        let is_published =
            |release: &&Release| release.published.is_none_or(|date| date <= *now) || is_running(request, release);
        in_order(member.project.releases.iter().filter(is_published))
    }

    fn check_reason(&self, reason: &Reason, counts: &CaseCounts) -> Result<(), String> {
        let Problem { catalog, request, now: _ } = self.problem;
        let exists = |version: &Minecraft| self.rules.papers.iter().any(|paper| paper.minecraft == version);
        let pins = |plugin_request: &&PluginRequest, pin: &String| matches!(&plugin_request.version, VersionRequest::Pin { version } if version == pin);
        match reason {
            Reason::PaperPinned { version, build } => ensure(
                match &request.paper {
                    PaperRequest::Pin { version: pin } => (pin, None) == (version, *build),
                    PaperRequest::BuildPin { version: pin, build: number } => (pin, Some(*number)) == (version, *build),
                    PaperRequest::Auto | PaperRequest::Latest => false,
                } && exists(version),
                || format!("the request is {:?}, or the pinned Paper does not exist", request.paper),
            ),
            Reason::NoSuchPaper { version, nearest } => ensure(!exists(version) && nearest.iter().all(exists), || {
                format!("{version} exists, or one of the suggestions {nearest:?} does not")
            }),
            Reason::NoPaper => ensure(self.rules.papers.is_empty(), || "Paper versions exist".to_owned()),
            Reason::PaperUnusable { papers, unusable } => {
                let papers = self.papers(papers);
                let none_published = matches!(unusable, Unusable::NoBuild { .. });
                ensure(!papers.is_empty() || none_published, || "the reason names no existing Paper".to_owned())?;
                papers.iter().try_for_each(|&paper| {
                    check_paper_excluded_by(self.problem, self.rules.papers[paper].minecraft, unusable)
                })
            }
            Reason::NoSuchRelease { plugin, version, nearest, object: _ } => {
                let (at, member) = self.member(plugin)?;
                let of = |version: &String| member.project.releases.iter().any(|release| release.version == *version);
                let meets = self.published(member).iter().any(|release| self.rules.meets_pin(at, release));
                let is_requested =
                    self.plugin_requests(plugin).iter().any(|plugin_request| pins(plugin_request, version));
                ensure(is_requested && !meets && nearest.iter().all(of), || {
                    format!("{plugin} {version} is not pinned, or it exists, or one of {nearest:?} does not exist")
                })
            }
            Reason::NeededByFiles { plugin, files } => {
                let (_, member) = self.member(plugin)?;
                ensure(member.needed_by_files == *files, || {
                    format!("the unmanaged JARs that need {plugin} are {:?}", member.needed_by_files)
                })
            }
            Reason::PluginPinned { plugin, version, papers, object: _ } => {
                let (at, member) = self.member(plugin)?;
                let is_requested =
                    self.plugin_requests(plugin).iter().any(|plugin_request| pins(plugin_request, version));
                let pinned = self.published(member).into_iter().filter(|release| self.rules.meets_pin(at, release));
                let pinned: Vec<&Release> = pinned.collect();
                let on = |paper: &usize| pinned.iter().any(|release| self.rules.is_listed(at, release, *paper));
                let listed: Vec<usize> = (0..self.rules.papers.len()).filter(on).collect();
                ensure(is_requested && listed == self.papers(papers), || {
                    format!("{plugin} {version} is not pinned, or it is listed for the Papers at indexes {listed:?}")
                })
            }
            Reason::NotListed { plugin, papers, newest, both: _, object: _, read_at: _ } => {
                let (at, member) = self.member(plugin)?;
                let papers = self.papers(papers);
                ensure(!papers.is_empty(), || "the reason names no existing Paper".to_owned())?;
                let listed = self.listed(at, &papers);
                let newest_is =
                    member.usable.last().is_some_and(|newest| listed.iter().any(|other| other.id == newest.id));
                // If an older release is listed, another reason must be reported for it.
                ensure(!newest_is && (listed.is_empty() || self.has_other_reason(plugin, reason)), || {
                    format!("{:?} is listed for one of the Papers at indexes {papers:?}", listed[0].version)
                })?;
                check_newest(member, newest.as_ref())
            }
            Reason::ReleasesUnusable { plugin, version, published, older, unusable, up_to, object: _, delisted: _ } => {
                self.check_unusable(plugin, (version, *published), *older, unusable, up_to.as_ref())
            }
            Reason::Needs { plugin, version, older, needs, at_least, at_most, guessed: _, optional, fact } => {
                let reported = [at_least.as_ref(), at_most.as_ref()].map(|version| version.map(String::as_str));
                self.check_needs(plugin, version, needs, reported, *optional, fact.as_ref())?;
                self.check_same_need_count(plugin, version, needs, *older)?;
                fact.iter().try_for_each(|fact| {
                    counts.record("fact");
                    let is_same_subject = [&fact.plugin, &fact.version, &fact.needs] == [plugin, version, needs];
                    ensure(is_same_subject, || format!("the fact is about another requirement: {fact:?}"))?;
                    check_fact(self.problem, &self.rules, fact)
                })
            }
            Reason::Excludes { plugin, version, other, releases } => {
                self.check_excludes(plugin, version, other, releases)
            }
            Reason::OnlyThese { plugin, papers, oldest, newest } => {
                let (at, _) = self.member(plugin)?;
                let listed = self.listed(at, &self.papers(papers));
                let ends = [listed.first(), listed.last()].map(|release| release.map(|release| &release.version));
                ensure(ends == [Some(oldest), Some(newest)], || {
                    format!("the oldest and newest listed {plugin} are {ends:?}, not {oldest} and {newest}")
                })
            }
            Reason::NoRelease { plugin, object: _, papers } => {
                let (_, member) = self.member(plugin)?;
                ensure(!self.papers(papers).is_empty(), || "the reason names no existing Paper".to_owned())?;
                ensure(self.published(member).is_empty(), || {
                    format!("{plugin} has published releases: {:?}", catalog.projects[member.index])
                })
            }
            Reason::SharedVersion { .. } => {
                Err("a shared version is reported, but the server is solved alone".to_owned())
            }
        }
    }

    /// Checks that a release is listed but ineligible for this reason, and that `older` older releases are too.
    fn check_unusable(
        &self,
        plugin: &str,
        release: (&str, Option<Timestamp>),
        older: usize,
        unusable: &Unusable,
        reported: Option<&Minecraft>,
    ) -> Result<(), String> {
        let (at, member) = self.member(plugin)?;
        let listed = |candidate: &Candidate<'_>, paper: &usize| {
            self.rules.papers[*paper].build.is_some() && self.rules.is_listed(at, candidate.release, *paper)
        };
        let any = &self.rules.papers.first().ok_or("no Paper version exists")?.minecraft;
        let Some(candidate) = Candidate::find(self.problem, plugin, release, any) else { return Ok(()) };
        ensure(newest_listed(candidate.release) == reported, || {
            format!("{plugin} {} is not listed up to {reported:?}", release.0)
        })?;
        let paper = (0..self.rules.papers.len()).rfind(|paper| listed(&candidate, paper));
        let paper = paper.ok_or_else(|| format!("{plugin} {} is listed for no usable Paper", release.0))?;
        let candidate = Candidate { minecraft: self.rules.papers[paper].minecraft, ..candidate };
        candidate.check_excluded_by(self.problem, ExclusionReason::Unusable(unusable))?;
        self.check_older_count(at, member, &candidate, unusable, older)
    }

    /// Whether the conflict contains another reason that concerns a plugin.
    fn has_other_reason(&self, plugin: &str, except: &Reason) -> bool {
        let is_about = |reason: &&Reason| {
            let value = serde_json::to_value(reason).unwrap();
            ["plugin", "other", "needs"].iter().any(|role| value[role] == plugin)
        };
        self.reasons.iter().filter(|reason| *reason != except).any(|reason| is_about(&reason))
    }

    /// The requirements of a version's releases on another plugin: whether it may be absent, and which releases are
    /// accepted. With `fact`, only the requirements from that fact.
    fn requirements(
        &self,
        plugin: &str,
        version: &str,
        other: &str,
        fact: Option<&UsedFact>,
    ) -> Result<Vec<(bool, BTreeSet<&'p str>)>, String> {
        let (_, member) = self.member(plugin)?;
        let (target, _) = self.member(other)?;
        let places = (0..member.usable.len()).filter(|&index| member.usable[index].version == version);
        let requirements = places
            .flat_map(|index| member.requirements[index].iter().filter(|requirement| requirement.target == target));
        let range = fact.map(|fact| fact.range.to_string());
        let requirements = requirements.filter(|requirement| range.is_none() || requirement.fact == range);
        Ok(requirements.map(|requirement| (requirement.or_absent, requirement.one_of.clone())).collect())
    }

    fn check_needs(
        &self,
        plugin: &str,
        version: &str,
        needs: &str,
        reported: [Option<&str>; 2],
        optional: bool,
        fact: Option<&UsedFact>,
    ) -> Result<(), String> {
        let (_, member) = self.member(needs)?;
        let published = self.published(member);
        let dependents = self.published(self.member(plugin)?.1);
        let lines = dependents.iter().filter(|release| release.version == version).flat_map(|from| &from.dependencies);
        let named: BTreeSet<&str> = lines.filter_map(|line| line.version_id.as_deref()).collect();
        let is_meant = |(or_absent, one_of): &(bool, BTreeSet<&str>)| {
            let accepted = || published.iter().filter(|release| one_of.contains(release.id.as_str()));
            let newest = published.iter().rposition(|release| one_of.contains(release.id.as_str()));
            let newer = || published[newest.map_or(0, |newest| newest + 1)..].iter();
            let is_ruled_out = newer().any(|other| member.usable.iter().any(|usable| usable.id == other.id));
            let at_most = accepted().next_back().filter(|_| is_ruled_out).map(|release| release.version.as_str());
            let at_least = accepted().next().map(|release| release.version.as_str());
            // A page that names a release accepts no newer one, whether it exists or not.
            let exact = accepted().next_back().filter(|_| one_of.iter().any(|id| named.contains(id)));
            let exact = exact.map(|release| release.version.as_str()).or(at_most);
            *or_absent == optional && [[at_least, at_most], [at_least, exact]].contains(&reported)
        };
        let requirements = self.requirements(plugin, version, needs, fact)?;
        // Several requirements on one plugin apply together.
        let one_of = requirements.iter().map(|(_, one_of)| one_of.clone()).reduce(|all, this| &all & &this);
        let all = one_of.map(|one_of| (requirements.iter().all(|(or_absent, _)| *or_absent), one_of));
        // An ineligible release has no requirements here.
        let unknown = !self.member(plugin)?.1.usable.iter().any(|release| release.version == version);
        ensure(unknown || requirements.iter().chain(&all).any(is_meant), || {
            format!("the requirements of {plugin} {version} on {needs} are {requirements:?}, not {reported:?}")
        })
    }

    /// Checks the reported number of older releases with the same reason. It must not exceed the number that the reason
    /// excludes. For a defect of the file, which outranks all other reasons, it must be the exact number.
    fn check_older_count(
        &self,
        at: usize,
        member: &Member<'p>,
        candidate: &Candidate<'p>,
        unusable: &Unusable,
        reported: usize,
    ) -> Result<(), String> {
        let papers = oracle::SearchInput::new(&self.rules).papers;
        let published = self.published(member);
        let index = published.iter().position(|release| release.id == candidate.release.id).unwrap();
        let listed_older = published[..index].iter().filter_map(|release| {
            let on = papers.iter().copied().find(|&paper| self.rules.is_listed(at, release, paper))?;
            Some(Candidate { release, minecraft: self.rules.papers[on].minecraft, ..*candidate })
        });
        let listed_older: Vec<Candidate<'_>> = listed_older.collect();
        let reason = ExclusionReason::Unusable(unusable);
        let excluded = |candidate: &&Candidate<'_>| candidate.check_excluded_by(self.problem, reason).is_ok();
        let most = listed_older.iter().filter(excluded).count();
        ensure(reported <= most, || format!("{reported} older releases are reported, but {most} have this reason"))?;
        let has_defect = |candidate: &&Candidate<'_>| {
            let files = member.terms.files(candidate.release);
            loads(&member.terms, member.project.key.source, candidate.release) != Some(false)
                && if *unusable == Unusable::NoFile {
                    candidate.release.file.is_none()
                } else {
                    files.is_some_and(|files| !files.iter().all(|file| is_verifiable(file.file)))
                }
        };
        let all = listed_older.iter().filter(has_defect).count();
        let by_file = matches!(unusable, Unusable::NoFile | Unusable::NoChecksum);
        ensure(!by_file || reported == all, || {
            format!("{reported} older releases are reported, but {all} have this defect")
        })
    }

    /// Checks that the reported number of older releases with the same requirement is not too high.
    fn check_same_need_count(&self, plugin: &str, version: &str, needs: &str, reported: usize) -> Result<(), String> {
        let ((_, member), (target, _)) = (self.member(plugin)?, self.member(needs)?);
        let wants = |index: usize| {
            let requirements = member.requirements[index]
                .iter()
                .filter(|requirement| requirement.target == target)
                .map(|requirement| (requirement.or_absent, &requirement.one_of));
            let requirements: Vec<(bool, BTreeSet<&str>)> =
                requirements.map(|(absent, one_of)| (absent, one_of.clone())).collect();
            let all = requirements.iter().cloned().reduce(|(a, all), (b, this)| (a && b, &all & &this));
            requirements.into_iter().chain(all).collect::<Vec<_>>()
        };
        let Some(newest) = member.usable.iter().rposition(|release| release.version == version) else { return Ok(()) };
        let same = |index: &usize| wants(*index).iter().any(|want| wants(newest).contains(want));
        let most = (0..newest).filter(same).count();
        ensure(reported <= most, || {
            format!("{reported} older releases are reported with the same requirement, but {most} have it")
        })
    }

    fn check_excludes(&self, plugin: &str, version: &str, other: &str, releases: &[String]) -> Result<(), String> {
        let (_, member) = self.member(other)?;
        let published = self.published(member);
        let is_meant = |(or_absent, one_of): &(bool, BTreeSet<&str>)| {
            let excluded = published.iter().rev().filter(|release| !one_of.contains(release.id.as_str()));
            let excluded: Vec<&String> = excluded.map(|release| &release.version).collect();
            let all = excluded.len() == published.len();
            *or_absent && (all && releases.is_empty() || !all && excluded.into_iter().eq(releases))
        };
        let requirements = self.requirements(plugin, version, other, None)?;
        let unknown = !self.member(plugin)?.1.usable.iter().any(|release| release.version == version);
        ensure(unknown || requirements.iter().any(is_meant), || {
            format!("{releases:?} are reported as excluded, but {plugin} {version} has {requirements:?} on {other}")
        })
    }
}

fn check_all(problem: &Problem, impossible: &Conflict, counts: &CaseCounts) -> Result<(), String> {
    let Ok(rules) = ServerRules::new(&problem.catalog, &problem.request, problem.now) else {
        return Err("a conflict is reported, but the catalog lacks data for an answer".to_owned());
    };
    let conflict = ConflictCheck { problem, reasons: &impossible.reasons, rules };
    impossible.reasons.iter().try_for_each(|reason| {
        counts.count(reason);
        if let Reason::NotListed { plugin, papers, both: Some(both), .. } = reason {
            check_both_reasons(problem, plugin, both, &papers[papers.len() - 1].to, counts)?;
        }
        conflict.check_reason(reason, counts).map_err(|error| format!("{reason:?}: {error}"))
    })
}

#[test]
fn conflict_reasons_are_true_and_effective() {
    let counts = CaseCounts::default();
    for_all(19_000_000, |problem| match resolve_problem(problem) {
        Err(Unsolvable::NoSolution(impossible)) => check_all(problem, &impossible, &counts),
        Ok(_) | Err(_) => Ok(()),
    });
    counts.assert_enough(&[
        ("excludes", 3),
        ("fact", 9),
        ("needs", 15),
        ("noRelease", 2),
        ("noSuchPaper", 7),
        ("noSuchRelease", 10),
        ("notListed", 45),
        ("onlyThese", 1),
        ("paperPinned", 45),
        ("paperUnusable belowFloor", 5),
        ("paperUnusable buildChannel", 10),
        ("paperUnusable delayed", 10),
        ("paperUnusable imageCarries", 2),
        ("paperUnusable javaHeld", 5),
        ("paperUnusable javaTooOld", 1),
        ("paperUnusable noBuild", 10),
        ("paperUnusable noChecksum", 7),
        ("paperUnusable noImage", 5),
        ("paperUnusable preview", 1),
        ("paperUnusable unmanaged", 1),
        ("paperUnusable unmanagedRefused", 1),
        ("pluginPinned", 15),
        ("releasesUnusable besideFile", 5),
        ("releasesUnusable channel", 10),
        ("releasesUnusable held", 1),
        ("releasesUnusable delayed", 8),
        ("releasesUnusable needsMissing", 3),
        ("releasesUnusable needsUnknown", 1),
        ("releasesUnusable noChecksum", 6),
        ("releasesUnusable noFile", 8),
        ("releasesUnusable noSuchJar", 30),
        ("releasesUnusable older", 2),
        ("releasesUnusable severalJars", 4),
        ("releasesUnusable unlisted", 2),
        ("releasesUnusable wrongSoftware", 10),
    ]);
}
