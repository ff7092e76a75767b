//! Pure. Tests on random small problems, by the rules of the page, that each fact of a conflict is true and has the
//! reported effect. `properties.rs` tests that all of them together exclude every solution.

use std::collections::BTreeSet;

use jiff::Timestamp;
use resolver::Unsolvable;
use resolver::catalog::Release;
use resolver::compatibility_facts::UsedFact;
use resolver::explain::{Conflict, ListedRelease, Reason, Span};
use resolver::request::{PaperRequest, PluginRequest, VersionRequest};
use resolver::unusable::Unusable;
use resolver::version::Minecraft;

use super::because::{Tried, kept_twice, up_to};
use super::beside::is_said;
use super::loading::loads;
use super::oracle;
use super::papers::verifiable;
use super::problem::Problem;
use super::properties::{always, answer, objects_of};
use super::rules::{Book, Member, place_in_order, runs};
use super::stands::{Against, Asked, keeps_paper};

/// A conflict, with the rules applied to its problem.
struct Judged<'p> {
    problem: &'p Problem,
    reasons: &'p [Reason],
    book: Book<'p>,
}

/// The error, unless the fact holds.
fn holds(fact: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if fact { Ok(()) } else { Err(otherwise()) }
}

/// Checks that this is the newest usable release of a plugin, with the newest version on its list.
fn is_newest(member: &Member<'_>, told: Option<&ListedRelease>) -> Result<(), String> {
    let newest = member.usable.last().map(|release| (&release.version, up_to(release)));
    let told = told.map(|told| (&told.version, told.up_to.as_ref()));
    holds(newest == told, || format!("{newest:?} is the newest of {}, not {told:?}", member.project.name))
}

impl<'p> Judged<'p> {
    fn member(&self, plugin: &str) -> Result<(usize, &Member<'p>), String> {
        let mut members = self.book.members.iter().enumerate();
        members.find(|(_, member)| member.project.name == plugin).ok_or_else(|| format!("{plugin} takes no part"))
    }

    /// The places of the Papers in these spans.
    fn papers(&self, spans: &[Span]) -> Vec<usize> {
        let within = |minecraft: &Minecraft| spans.iter().any(|span| (&span.from..=&span.to).contains(&minecraft));
        (0..self.book.papers.len()).filter(|&paper| within(self.book.papers[paper].minecraft)).collect()
    }

    /// The usable releases of a plugin that are listed for one of these Papers, oldest first.
    fn listed(&self, at: usize, papers: &[usize]) -> Vec<&'p Release> {
        let on_one = |release: &Release| papers.iter().any(|&paper| self.book.listed(at, release, paper));
        self.book.members[at].usable.iter().copied().filter(|release| on_one(release)).collect()
    }

    /// The Plugins that request a plugin.
    fn wishes(&self, plugin: &str) -> Vec<&'p PluginRequest> {
        let objects = objects_of(self.problem, plugin);
        self.problem.request.plugins.iter().filter(|wish| objects.contains(&wish.object)).collect()
    }

    /// All published releases of a plugin, oldest first.
    fn out(&self, member: &Member<'p>) -> Vec<&'p Release> {
        let Problem { request, now, .. } = self.problem;
        let is_out = |release: &&Release| release.published.is_none_or(|date| date <= *now) || runs(request, release);
        let mut out: Vec<&Release> = member.project.releases.iter().filter(is_out).collect();
        out.sort_by_cached_key(|release| place_in_order(release));
        out
    }

    fn is_true(&self, reason: &Reason, tried: &Tried) -> Result<(), String> {
        let Problem { catalog, request, now: _ } = self.problem;
        let exists = |version: &Minecraft| self.book.papers.iter().any(|paper| paper.minecraft == version);
        let pins = |wish: &&PluginRequest, pin: &String| matches!(&wish.version, VersionRequest::Pin { version } if version == pin);
        match reason {
            Reason::PaperPinned { version, build } => holds(
                match &request.paper {
                    PaperRequest::Pin { version: pin } => (pin, None) == (version, *build),
                    PaperRequest::BuildPin { version: pin, build: number } => (pin, Some(*number)) == (version, *build),
                    PaperRequest::Auto | PaperRequest::Latest => false,
                } && exists(version),
                || format!("{:?} is asked for", request.paper),
            ),
            Reason::NoSuchPaper { version, nearest } => {
                holds(!exists(version) && nearest.iter().all(exists), || format!("{version} and {nearest:?}"))
            }
            Reason::NoPaper => holds(self.book.papers.is_empty(), || "there are Papers".to_owned()),
            Reason::PaperUnusable { papers, unusable } => {
                let papers = self.papers(papers);
                let none_is_out = matches!(unusable, Unusable::NoBuild { .. });
                holds(!papers.is_empty() || none_is_out, || "no Paper is meant".to_owned())?;
                papers
                    .iter()
                    .try_for_each(|&paper| keeps_paper(self.problem, self.book.papers[paper].minecraft, unusable))
            }
            Reason::NoSuchRelease { plugin, version, nearest, object: _ } => {
                let (at, member) = self.member(plugin)?;
                let of = |version: &String| member.project.releases.iter().any(|release| release.version == *version);
                let meets = self.out(member).iter().any(|release| self.book.meets_pin(at, release));
                let wished = self.wishes(plugin).iter().any(|wish| pins(wish, version));
                holds(wished && !meets && nearest.iter().all(of), || format!("{plugin} {version}, {nearest:?}"))
            }
            Reason::NeededByFiles { plugin, files } => {
                let (_, member) = self.member(plugin)?;
                holds(member.kept_for == *files, || format!("{plugin} stays for {:?}", member.kept_for))
            }
            Reason::PluginPinned { plugin, version, papers, object: _ } => {
                let (at, member) = self.member(plugin)?;
                let wished = self.wishes(plugin).iter().any(|wish| pins(wish, version));
                let pinned = self.out(member).into_iter().filter(|release| self.book.meets_pin(at, release));
                let pinned: Vec<&Release> = pinned.collect();
                let on = |paper: &usize| pinned.iter().any(|release| self.book.listed(at, release, *paper));
                let listed: Vec<usize> = (0..self.book.papers.len()).filter(on).collect();
                holds(wished && listed == self.papers(papers), || {
                    format!("{plugin} {version} is listed for {listed:?}")
                })
            }
            Reason::NotListed { plugin, papers, newest, both: _, object: _, read_at: _ } => {
                let (at, member) = self.member(plugin)?;
                let papers = self.papers(papers);
                holds(!papers.is_empty(), || "no Paper is meant".to_owned())?;
                let listed = self.listed(at, &papers);
                let newest_is =
                    member.usable.last().is_some_and(|newest| listed.iter().any(|other| other.id == newest.id));
                // For an older listed release, another fact is reported.
                holds(!newest_is && (listed.is_empty() || self.says_more_of(plugin, reason)), || {
                    format!("{:?} is listed for one of {papers:?}", listed[0].version)
                })?;
                is_newest(member, newest.as_ref())
            }
            Reason::ReleasesUnusable { plugin, version, published, older, unusable, up_to, object: _, lost: _ } => {
                self.has_unusable(plugin, (version, *published), *older, unusable, up_to.as_ref())
            }
            Reason::Needs { plugin, version, older, needs, at_least, at_most, guessed: _, optional, fact } => {
                let told = [at_least.as_ref(), at_most.as_ref()].map(|version| version.map(String::as_str));
                self.needs(plugin, version, needs, told, *optional, fact.as_ref())?;
                self.need_the_same(plugin, version, needs, *older)?;
                fact.iter().try_for_each(|fact| {
                    tried.note("fact");
                    let is_its_own = [&fact.plugin, &fact.version, &fact.needs] == [plugin, version, needs];
                    holds(is_its_own, || format!("of another one: {fact:?}"))?;
                    is_said(self.problem, &self.book, fact)
                })
            }
            Reason::Excludes { plugin, version, other, releases } => self.excludes(plugin, version, other, releases),
            Reason::OnlyThese { plugin, papers, oldest, newest } => {
                let (at, _) = self.member(plugin)?;
                let listed = self.listed(at, &self.papers(papers));
                let ends = [listed.first(), listed.last()].map(|release| release.map(|release| &release.version));
                holds(ends == [Some(oldest), Some(newest)], || format!("{plugin}: {ends:?}, not {oldest} to {newest}"))
            }
            Reason::NoRelease { plugin, object: _, papers } => {
                let (_, member) = self.member(plugin)?;
                holds(!self.papers(papers).is_empty(), || "no Paper is meant".to_owned())?;
                holds(self.out(member).is_empty(), || format!("{plugin} has {:?}", catalog.projects[member.place]))
            }
            Reason::OneVersion { .. } => Err("a server alone".to_owned()),
        }
    }

    /// Checks that a release, and this many older ones, are listed and ineligible for this reason.
    fn has_unusable(
        &self,
        plugin: &str,
        release: (&str, Option<Timestamp>),
        older: usize,
        unusable: &Unusable,
        told: Option<&Minecraft>,
    ) -> Result<(), String> {
        let (at, member) = self.member(plugin)?;
        let listed = |asked: &Asked<'_>, paper: &usize| {
            self.book.papers[*paper].build.is_some() && self.book.listed(at, asked.release, *paper)
        };
        let any = &self.book.papers.first().ok_or("there is no Paper")?.minecraft;
        let Some(asked) = Asked::of(self.problem, plugin, release, any) else { return Ok(()) };
        holds(up_to(asked.release) == told, || format!("{plugin} {} is not listed up to {told:?}", release.0))?;
        let paper = (0..self.book.papers.len()).rfind(|paper| listed(&asked, paper));
        let paper = paper.ok_or_else(|| format!("{plugin} {} would not do anywhere", release.0))?;
        let asked = Asked { minecraft: self.book.papers[paper].minecraft, ..asked };
        asked.is_kept_by(self.problem, Against::Unusable(unusable))?;
        self.share(at, member, &asked, unusable, older)
    }

    /// Whether a conflict contains another fact about a plugin.
    fn says_more_of(&self, plugin: &str, but: &Reason) -> bool {
        let is_about = |reason: &&Reason| {
            let value = serde_json::to_value(reason).unwrap();
            ["plugin", "other", "needs"].iter().any(|role| value[role] == plugin)
        };
        self.reasons.iter().filter(|reason| *reason != but).any(|reason| is_about(&reason))
    }

    /// The requirements of a version's releases on another plugin: whether it may be absent, and which releases are
    /// accepted. With `fact`, only the requirements from that fact.
    fn asks(
        &self,
        plugin: &str,
        version: &str,
        other: &str,
        fact: Option<&UsedFact>,
    ) -> Result<Vec<(bool, BTreeSet<&'p str>)>, String> {
        let (_, member) = self.member(plugin)?;
        let (of, _) = self.member(other)?;
        let places = (0..member.usable.len()).filter(|&place| member.usable[place].version == version);
        let asks = places.flat_map(|place| member.asks[place].iter().filter(|ask| ask.of == of));
        let range = fact.map(|fact| fact.range.to_string());
        let asks = asks.filter(|ask| range.is_none() || ask.fact == range);
        Ok(asks.map(|ask| (ask.or_absent, ask.one_of.clone())).collect())
    }

    fn needs(
        &self,
        plugin: &str,
        version: &str,
        needs: &str,
        told: [Option<&str>; 2],
        optional: bool,
        fact: Option<&UsedFact>,
    ) -> Result<(), String> {
        let (_, member) = self.member(needs)?;
        let out = self.out(member);
        let is_meant = |(or_absent, one_of): &(bool, BTreeSet<&str>)| {
            let will_do = || out.iter().filter(|release| one_of.contains(release.id.as_str()));
            let newest = out.iter().rposition(|release| one_of.contains(release.id.as_str()));
            let newer = || out[newest.map_or(0, |newest| newest + 1)..].iter();
            let ruled_out = newer().any(|other| member.usable.iter().any(|usable| usable.id == other.id));
            let at_most = will_do().next_back().filter(|_| ruled_out).map(|release| release.version.as_str());
            let at_least = will_do().next().map(|release| release.version.as_str());
            *or_absent == optional && [at_least, at_most] == told
        };
        let asks = self.asks(plugin, version, needs, fact)?;
        // If there are several facts about one plugin, all apply.
        let one_of = asks.iter().map(|(_, one_of)| one_of.clone()).reduce(|all, this| &all & &this);
        let all = one_of.map(|one_of| (asks.iter().all(|(or_absent, _)| *or_absent), one_of));
        // An ineligible release has no requirements here.
        let unknown = !self.member(plugin)?.1.usable.iter().any(|release| release.version == version);
        holds(unknown || asks.iter().chain(&all).any(is_meant), || {
            format!("{plugin} {version} asks {asks:?} of {needs}, not {told:?}")
        })
    }

    /// Checks the number of older releases that share the reason: not more than reported. For a fault of the file,
    /// which outranks all other reasons, exactly that number.
    fn share(
        &self,
        at: usize,
        member: &Member<'p>,
        asked: &Asked<'p>,
        unusable: &Unusable,
        told: usize,
    ) -> Result<(), String> {
        let papers = oracle::Question::of(&self.book).papers;
        let out = self.out(member);
        let place = out.iter().position(|release| release.id == asked.release.id).unwrap();
        let would_do = out[..place].iter().filter_map(|release| {
            let on = papers.iter().copied().find(|&paper| self.book.listed(at, release, paper))?;
            Some(Asked { release, minecraft: self.book.papers[on].minecraft, ..*asked })
        });
        let would_do: Vec<Asked<'_>> = would_do.collect();
        let kept = |asked: &&Asked<'_>| asked.is_kept_by(self.problem, Against::Unusable(unusable)).is_ok();
        let most = would_do.iter().filter(kept).count();
        holds(told <= most, || format!("{told} older ones are told, and {most} are kept by it"))?;
        let has_fault = |asked: &&Asked<'_>| {
            let files = member.terms.files(asked.release);
            loads(&member.terms, member.project.key.source, asked.release) != Some(false)
                && if *unusable == Unusable::NoFile {
                    asked.release.file.is_none()
                } else {
                    files.is_some_and(|files| !files.iter().all(|file| verifiable(file.file)))
                }
        };
        let all = would_do.iter().filter(has_fault).count();
        let by_file = matches!(unusable, Unusable::NoFile | Unusable::NoChecksum);
        holds(!by_file || told == all, || format!("{told} older ones are told, and {all} have the fault"))
    }

    /// Checks that not more older releases are reported with the same requirement than have it.
    fn need_the_same(&self, plugin: &str, version: &str, needs: &str, told: usize) -> Result<(), String> {
        let ((_, member), (of, _)) = (self.member(plugin)?, self.member(needs)?);
        let wants = |place: usize| {
            let asks = member.asks[place].iter().filter(|ask| ask.of == of).map(|ask| (ask.or_absent, &ask.one_of));
            let asks: Vec<(bool, BTreeSet<&str>)> = asks.map(|(absent, one_of)| (absent, one_of.clone())).collect();
            let all = asks.iter().cloned().reduce(|(a, all), (b, this)| (a && b, &all & &this));
            asks.into_iter().chain(all).collect::<Vec<_>>()
        };
        let Some(newest) = member.usable.iter().rposition(|release| release.version == version) else { return Ok(()) };
        let same = |place: &usize| wants(*place).iter().any(|want| wants(newest).contains(want));
        let most = (0..newest).filter(same).count();
        holds(told <= most, || format!("{told} older ones are told to need the same, and {most} do"))
    }

    fn excludes(&self, plugin: &str, version: &str, other: &str, releases: &[String]) -> Result<(), String> {
        let (_, member) = self.member(other)?;
        let out = self.out(member);
        let is_meant = |(or_absent, one_of): &(bool, BTreeSet<&str>)| {
            let excluded = out.iter().rev().filter(|release| !one_of.contains(release.id.as_str()));
            let excluded: Vec<&String> = excluded.map(|release| &release.version).collect();
            let all = excluded.len() == out.len();
            *or_absent && (all && releases.is_empty() || !all && excluded.into_iter().eq(releases))
        };
        let asks = self.asks(plugin, version, other, None)?;
        let unknown = !self.member(plugin)?.1.usable.iter().any(|release| release.version == version);
        holds(unknown || asks.iter().any(is_meant), || format!("{plugin} {version} asks {asks:?} of {other}"))
    }
}

fn each_is_true(problem: &Problem, impossible: &Conflict, tried: &Tried) -> Result<(), String> {
    let Ok(book) = Book::open(&problem.catalog, &problem.request, problem.now) else {
        return Err("a no of what nobody can know".to_owned());
    };
    let judged = Judged { problem, reasons: &impossible.reasons, book };
    impossible.reasons.iter().try_for_each(|reason| {
        tried.count(reason);
        if let Reason::NotListed { plugin, papers, both: Some(both), .. } = reason {
            kept_twice(problem, plugin, both, &papers[papers.len() - 1].to, tried)?;
        }
        judged.is_true(reason, tried).map_err(|fault| format!("{reason:?}: {fault}"))
    })
}

#[test]
fn conflict_reasons_are_true_and_effective() {
    let tried = Tried::default();
    always(19_000_000, |problem| match answer(problem) {
        Err(Unsolvable::NoSolution(impossible)) => each_is_true(problem, &impossible, &tried),
        Ok(_) | Err(_) => Ok(()),
    });
    tried.are_enough(&[
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
        ("paperUnusable heldBack", 10),
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
        ("releasesUnusable heldBack", 8),
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
