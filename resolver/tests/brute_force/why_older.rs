//! Pure. Tests on random small problems that the stated reasons are true, by the rules of the page: why a newer release
//! was not chosen, and what blocks a newer Paper.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use resolver::explanation::{
    Blocker, ChosenPlugin, Explanation, IneligibleCandidate, NewerRelease, SolvedExplanation, UnmetNeed, WhyOlder,
};
use resolver::model::catalog::Release;
use resolver::model::compatibility_facts::UsedFact;
use resolver::model::lock::Lock;
use resolver::model::request::VersionRequest;
use resolver::model::unusable::Unusable;
use resolver::model::version::Minecraft;
use resolver::{Resolution, why_not};
use serde::Serialize;

use super::blockers_complete::{Against, Asked};
use super::problem::Problem;
use super::properties::{for_all, resolve_problem};
use super::rules::{Book, age, is_running};
use super::side_facts::{check_conflicting_facts, check_fact, check_silent_since};
use super::{oracle, required_count};

/// How often each kind of reason was tested.
#[derive(Default)]
pub(super) struct Tried(RefCell<BTreeMap<String, u64>>);

impl Tried {
    /// Counts one reason by its name in JSON.
    pub(super) fn count(&self, reason: &impl Serialize) {
        let value = serde_json::to_value(reason).unwrap();
        let tag = ["why", "reason"].into_iter().find_map(|tag| value[tag].as_str()).unwrap();
        let inside = value["unusable"]["why"].as_str().map(|why| format!(" {why}")).unwrap_or_default();
        self.record(&format!("{tag}{inside}"));
    }

    /// Counts one case of this kind.
    pub(super) fn record(&self, kind: &str) {
        *self.0.borrow_mut().entry(kind.to_owned()).or_default() += 1;
    }

    /// Fails when one of these kinds occurred less often than the minimum of a thorough run. See [`required_count`] for
    /// other runs.
    pub(super) fn assert_enough(&self, least: &[(&str, u64)]) {
        let tried = self.0.borrow();
        for (kind, least) in least {
            assert!(
                tried.get(*kind).copied().unwrap_or_default() >= required_count(*least),
                "{kind}: too few cases in {tried:?}"
            );
        }
    }
}

/// The newest Minecraft of a list: a release, if it has one.
pub(super) fn newest_listed(release: &Release) -> Option<&Minecraft> {
    let releases = release.minecraft.iter().filter(|listed| listed.is_release()).max();
    releases.or_else(|| release.minecraft.iter().max())
}

/// The chosen version set, by the places of members.
pub(super) fn chosen<'a>(book: &Book<'a>, lock: &Lock) -> BTreeMap<usize, &'a Release> {
    let of = |(at, member): (usize, &super::rules::Member<'a>)| {
        let locked = lock.plugins.iter().find(|plugin| plugin.project_id == member.project.id)?;
        let release = member.usable.iter().find(|release| release.id == locked.release_id)?;
        Some((at, *release))
    };
    book.members.iter().enumerate().filter_map(of).collect()
}

/// The conflicts of a release with the chosen version set: the installed plugins that are incompatible, and the missing
/// plugins that it needs.
pub(super) fn conflicts(
    book: &Book<'_>,
    version_set: &BTreeMap<usize, &Release>,
    at: usize,
    release: &Release,
) -> [BTreeSet<String>; 2] {
    let (mut with, mut needs) = (BTreeSet::new(), BTreeSet::new());
    let requirements = |at: usize, release: &Release| {
        let member = &book.members[at];
        let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        &member.requirements[index]
    };
    let name_and_version =
        |at: usize, release: &Release| format!("{} {}", book.members[at].project.name, release.version);
    for requirement in requirements(at, release) {
        match version_set.get(&requirement.target) {
            Some(installed) if !requirement.one_of.contains(installed.id.as_str()) => {
                with.insert(name_and_version(requirement.target, installed));
            }
            None if !requirement.or_absent => drop(needs.insert(book.members[requirement.target].project.name.clone())),
            Some(_) | None => {}
        }
    }
    for (&other, installed) in version_set.iter().filter(|(other, _)| **other != at) {
        if requirements(other, installed)
            .iter()
            .any(|requirement| requirement.target == at && !requirement.one_of.contains(release.id.as_str()))
        {
            with.insert(name_and_version(other, installed));
        }
    }
    [with, needs]
}

/// Checks that exactly the incompatible plugins are reported, with the facts behind it, and that the release cannot be
/// chosen with them.
fn check_conflicts(
    candidate: Asked<'_>,
    problem: &Problem,
    lock: &Lock,
    reported: [&[String]; 2],
    facts: &[UsedFact],
) -> Result<(), String> {
    let Ok(book) = Book::new(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let Asked { project, release, minecraft } = candidate;
    let name = format!("{} {}", project.name, release.version);
    let at = book.members.iter().position(|member| member.project.id == project.id).unwrap();
    let paper = book.papers.iter().position(|paper| paper.minecraft == minecraft).unwrap();
    let Some(release) = book.members[at].usable.iter().copied().find(|usable| usable.id == release.id) else {
        return Err(format!("{name} may not be used at all"));
    };
    if !book.is_listed(at, release, paper) || !book.meets_pin(at, release) {
        return Err(format!("{name} is kept by its list or a pin"));
    }
    let version_set = chosen(&book, lock);
    let [with, needs] = conflicts(&book, &version_set, at, release);
    let [reported_with, reported_needs] = reported.map(|names| names.iter().cloned().collect::<BTreeSet<_>>());
    // If an installed plugin is incompatible, missing plugins are not reported.
    if reported_with != with || with.is_empty() && reported_needs != needs || with.is_empty() && needs.is_empty() {
        return Err(format!("{name}: {reported:?} are told, {with:?} do not go with it, and it lacks {needs:?}"));
    }
    check_conflicting_facts(&book, &version_set, (at, release), facts)?;
    facts.iter().try_for_each(|fact| check_fact(problem, &book, fact))?;
    // If all plugins that `latest` could exclude are installed, the best version set is the first in order.
    if version_set.len() < book.members.iter().filter(|member| !member.objects.is_empty()).count() {
        return Ok(());
    }
    let before = || version_set.iter().filter(|(other, _)| **other < at).map(|(other, installed)| (*other, *installed));
    if oracle::is_solvable_with(&book, paper, &before().chain([(at, release)]).collect()) {
        return Err(format!("{name} can be had at the cost of what comes after it"));
    }
    for (&other, installed) in version_set.iter().filter(|(other, _)| **other != at) {
        let is_reported =
            reported_with.contains(&format!("{} {}", book.members[other].project.name, installed.version));
        if is_reported && oracle::is_solvable_with(&book, paper, &BTreeMap::from([(other, *installed), (at, release)]))
        {
            return Err(format!("{name} goes with {} {}", book.members[other].project.name, installed.version));
        }
    }
    Ok(())
}

/// Checks that only the newest newer release is reported. If it is ineligible on this Paper, the newest release that
/// only a date or other plugins block is reported too.
fn check_next(problem: &Problem, lock: &Lock, plugin: &ChosenPlugin, tried: &Tried) -> Result<(), String> {
    let candidate =
        |version: &str, published| Asked::find(problem, &plugin.name, (version, published), &lock.minecraft);
    let newer = |newer: &NewerRelease| candidate(&newer.version, newer.published);
    let later = Problem { now: problem.now + SignedDuration::from_hours(24 * 1000), ..problem.clone() };
    let is_possible = |candidate: Asked<'_>| {
        candidate.is_allowed(problem) == Some(true) || candidate.is_allowed(&later) == Some(true)
    };
    let (Some(chosen), Some(newest)) =
        (candidate(&plugin.version, plugin.published), plugin.newest.as_ref().and_then(newer))
    else {
        return Ok(());
    };
    let above = match plugin.next.as_ref().map(newer) {
        None => chosen,
        Some(_) if is_possible(newest) => {
            return Err(format!("{} may come, and another one is told", newest.release.version));
        }
        Some(None) => return Ok(()),
        Some(Some(next)) if !is_possible(next) => {
            return Err(format!("{} is told as what may come next, and may not", next.release.version));
        }
        Some(Some(next)) => {
            tried.record("next");
            next
        }
    };
    let is_between = |other: &&Release| age(above.release) < age(other) && age(other) < age(newest.release);
    let mut between = newest.project.releases.iter().filter(is_between);
    match between.find(|release| !is_possible(newest) && is_possible(Asked { release, ..newest })) {
        Some(unreported) => Err(format!("{} may come, and is not told", unreported.version)),
        None => Ok(()),
    }
}

/// Checks the reason why a release is not in the version set. The release is given by its plugin, the objects that
/// request it, its version and its date.
pub(super) fn check_why_older(
    problem: &Problem,
    lock: &Lock,
    (plugin, objects, reported): (&str, &[String], (&str, Option<Timestamp>)),
    because: &WhyOlder,
    tried: &Tried,
) -> Result<(), String> {
    let Some(candidate) = Asked::find(problem, plugin, reported, &lock.minecraft) else { return Ok(()) };
    tried.count(because);
    if let WhyOlder::Others { facts, .. } = because {
        for _ in facts {
            tried.record("fact");
        }
    }
    match because {
        WhyOlder::Unusable { unusable } => candidate.check_excluded_by(problem, Against::Unusable(unusable)),
        WhyOlder::NotListed { up_to: reported } if reported.as_ref() != newest_listed(candidate.release) => {
            Err(format!("{} is not listed up to {reported:?}", candidate.release.version))
        }
        WhyOlder::NotListed { .. } => candidate.check_excluded_by(problem, Against::List),
        WhyOlder::Pinned => {
            let mut free = problem.clone();
            let plugin_requests =
                free.request.plugins.iter_mut().filter(|plugin_request| objects.contains(&plugin_request.object));
            plugin_requests.for_each(|plugin_request| plugin_request.version = VersionRequest::Auto);
            let is_allowed = |problem: &Problem| {
                Book::new(&problem.catalog, &problem.request, problem.now).ok().map(|book| {
                    let at = book.members.iter().position(|member| member.project.id == candidate.project.id).unwrap();
                    book.meets_pin(at, candidate.release)
                })
            };
            if is_allowed(problem) == Some(true) || is_allowed(&free) == Some(false) {
                return Err(format!("{plugin} {} is not kept by a pin", reported.0));
            }
            Ok(())
        }
        WhyOlder::Others { with, facts } => check_conflicts(candidate, problem, lock, [with, &[]], facts),
        WhyOlder::Needs { needs } => check_conflicts(candidate, problem, lock, [&[], needs], &[]),
        WhyOlder::OneVersion { .. } => Err(format!("{plugin} is one version on one server")),
    }
}

/// Checks the reason why a plugin blocks a Paper.
fn check_blocker(problem: &Problem, blocker: &Blocker, minecraft: &Minecraft, tried: &Tried) -> Result<(), String> {
    let Ok(book) = Book::new(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let at = book.members.iter().position(|member| member.project.name == blocker.name);
    let paper = book.papers.iter().position(|paper| paper.minecraft == minecraft);
    let (Some(at), Some(paper)) = (at, paper) else { return Ok(()) };
    check_silent_since(problem, blocker, minecraft)?;
    if blocker.last_release_at.is_some() {
        tried.record("silent");
    }
    for _ in &blocker.facts {
        tried.record("fact");
    }
    blocker.facts.iter().try_for_each(|fact| check_fact(problem, &book, fact))?;
    let member = &book.members[at];
    let newest = member.usable.last().map(|release| (&release.version, newest_listed(release)));
    if let (Some(reported), None) = (&blocker.newest, &blocker.pinned)
        && (newest != Some((&reported.version, reported.up_to.as_ref())))
    {
        return Err(format!("{newest:?} is the newest of {}, not {reported:?}", blocker.name));
    }
    if let Some(reported) = &blocker.newest
        && let Some(release) = member.usable.last()
        && reported.refuses.is_some() != book.is_refused(at, release, paper)
        && blocker.pinned.is_none()
    {
        return Err(format!("{minecraft} and {} {}: {:?}", blocker.name, reported.version, reported.refuses));
    }
    if blocker.pinned.is_some() {
        check_pin(problem, &book, at, &blocker.nearest, tried)?;
    }
    let is_allowed = |release: &&&Release| book.meets_pin(at, release) && book.is_listed(at, release, paper);
    if blocker.together_with.is_empty()
        && let Some(release) = member.usable.iter().find(is_allowed)
    {
        return Err(format!("{} {} goes on {minecraft}: {blocker:?}", blocker.name, release.version));
    }
    blocker.lacks.iter().try_for_each(|need| check_unmet_need(problem, need, minecraft, tried))?;
    blocker.lacks.iter().try_for_each(|need| check_date_suffices(&book, need, paper))?;
    if let Some(both) = &blocker.both {
        if member.usable.last().is_some_and(|newest| !book.is_refused(at, newest, paper)) {
            return Err(format!("a list alone would let {} run: {blocker:?}", blocker.name));
        }
        check_both_reasons(problem, &blocker.name, both, minecraft, tried)?;
    }
    let Some(nearly) = &blocker.nearly else { return Ok(()) };
    let Some(candidate) = Asked::find(problem, &blocker.name, (&nearly.version, nearly.published), minecraft) else {
        return Ok(());
    };
    if !book.is_listed(at, candidate.release, paper) {
        return Err(format!("{} {} would not do", blocker.name, nearly.version));
    }
    tried.count(&nearly.unusable);
    candidate.check_excluded_by(problem, Against::Unusable(&nearly.unusable))
}

/// Checks that both the list and the other reason alone exclude a release.
pub(super) fn check_both_reasons(
    problem: &Problem,
    plugin: &str,
    both: &IneligibleCandidate,
    minecraft: &Minecraft,
    tried: &Tried,
) -> Result<(), String> {
    let Some(candidate) = Asked::find(problem, plugin, (&both.version, both.published), minecraft) else {
        return Ok(());
    };
    tried.record("kept twice");
    candidate.check_excluded_by(problem, Against::List)?;
    candidate.check_excluded_by(problem, Against::Unusable(&both.unusable))
}

/// Checks that a pin is reported as nonexistent exactly if it is, and that the suggested releases exist.
fn check_pin(problem: &Problem, book: &Book<'_>, at: usize, nearest: &[String], tried: &Tried) -> Result<(), String> {
    let project = book.members[at].project;
    let is_published = |release: &&Release| {
        release.published.is_none_or(|date| date <= problem.now) || is_running(&problem.request, release)
    };
    let published: Vec<&Release> = project.releases.iter().filter(is_published).collect();
    let exists = published.iter().any(|release| book.meets_pin(at, release));
    if nearest.is_empty() != (exists || published.is_empty()) {
        return Err(format!("the pin of {} exists: {exists}, and {nearest:?} are told instead", project.name));
    }
    if !nearest.is_empty() {
        tried.record("no such release");
    }
    match nearest.iter().find(|version| !published.iter().any(|release| release.version == **version)) {
        Some(unreal) => Err(format!("there is no {} {unreal}", project.name)),
        None => Ok(()),
    }
}

/// Checks the reason why the release that a blocker needs of another plugin is excluded on this Paper.
fn check_unmet_need(problem: &Problem, need: &UnmetNeed, minecraft: &Minecraft, tried: &Tried) -> Result<(), String> {
    let Some(release) = &need.release else {
        tried.record("lacks, and there is none");
        return Ok(());
    };
    let Some(candidate) = Asked::find(problem, &need.name, (&release.version, release.published), minecraft) else {
        return Ok(());
    };
    if let Some(unusable) = need.unusable.as_ref().or(release.refuses.as_ref()) {
        tried.record("lacks what is unusable");
        return candidate.check_excluded_by(problem, Against::Unusable(unusable));
    }
    tried.record("lacks what is unlisted");
    candidate.check_excluded_by(problem, Against::List)
}

/// Checks that only the date excludes the reported release: its list allows this Paper (by place).
fn check_date_suffices(book: &Book<'_>, need: &UnmetNeed, paper: usize) -> Result<(), String> {
    let (Some(release), Some(Unusable::Delayed { .. })) = (&need.release, &need.unusable) else { return Ok(()) };
    let Some(at) = book.members.iter().position(|member| member.project.name == need.name) else { return Ok(()) };
    let is_same = |of: &&Release| of.version == release.version && of.published == release.published;
    match book.members[at].project.releases.iter().find(is_same) {
        Some(found) if !book.is_listed(at, found, paper) => {
            Err(format!("{} {} is promised for a date that does not bring it", need.name, release.version))
        }
        _ => Ok(()),
    }
}

fn check_all(problem: &Problem, lock: &Lock, solved: &SolvedExplanation, tried: &[Tried; 2]) -> Result<(), String> {
    for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
        let reported = (plugin.name.as_str(), plugin.objects.as_slice(), (newer.version.as_str(), newer.published));
        check_why_older(problem, lock, reported, &newer.because, &tried[0])?;
    }
    solved.plugins.iter().try_for_each(|plugin| check_next(problem, lock, plugin, &tried[0]))?;
    for newer in &solved.newer_paper {
        newer.blocked_by.iter().try_for_each(|blocker| check_blocker(problem, blocker, &newer.minecraft, &tried[1]))?;
    }
    solved.left_behind.iter().try_for_each(|plugin| check_blocker(problem, &plugin.blocker, &lock.minecraft, &tried[1]))
}

#[test]
fn reasons_for_blocked_releases_and_paper_are_true() {
    let tried = [Tried::default(), Tried::default()];
    for_all(18_000_000, |problem| {
        if let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = resolve_problem(problem) {
            check_all(problem, &lock, &solved, &tried)?;
        }
        for version in &problem.catalog.paper {
            let Ok(why) = why_not(&problem.catalog, &problem.request, &version.minecraft, problem.now) else {
                continue;
            };
            why.blockers.iter().try_for_each(|blocker| check_blocker(problem, blocker, &why.target, &tried[1]))?;
        }
        Ok(())
    });
    tried[0].assert_enough(&[
        ("fact", 2),
        ("needs", 2),
        ("next", 1),
        ("notListed", 8),
        ("others", 4),
        ("pinned", 2),
        ("unusable apiVersion", 3),
        ("unusable besideFile", 2),
        ("unusable delayed", 15),
        ("unusable noChecksum", 6),
        ("unusable noFile", 3),
        ("unusable noSuchJar", 4),
        ("unusable unlisted", 3),
    ]);
    tried[1].assert_enough(&[
        ("channel", 35),
        ("fact", 45),
        ("held", 4),
        ("delayed", 60),
        ("javaHeld", 3),
        ("kept twice", 1),
        ("lacks what is unlisted", 1),
        ("lacks what is unusable", 1),
        ("lacks, and there is none", 1),
        ("needsForbidden", 1),
        ("needsMissing", 8),
        ("needsProposed", 1),
        ("needsUnknown", 9),
        ("needsUnread", 1),
        ("noChecksum", 30),
        ("noFile", 25),
        ("no such release", 1),
        ("noSuchJar", 150),
        ("older", 3),
        ("severalJars", 12),
        ("silent", 130),
        ("softwareUnsaid", 7),
        ("unlisted", 14),
        ("wrongSoftware", 20),
    ]);
}
