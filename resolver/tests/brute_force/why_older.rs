//! Pure. Tests on random small problems, by the rules of `docs/concepts/solve.md`, that two kinds of reasons are true:
//! why a newer release was not chosen, and what blocks a newer Paper.

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

use super::blockers_complete::{Candidate, ExclusionReason};
use super::problem::Problem;
use super::properties::{for_all, resolve_problem};
use super::rules::{ServerRules, is_running};
use super::side_facts::{check_conflicting_facts, check_fact, check_last_release_date};
use super::{oracle, required_count};

/// The number of tested cases of each kind.
#[derive(Default)]
pub(super) struct CaseCounts(RefCell<BTreeMap<String, u64>>);

impl CaseCounts {
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

    /// Panics if one of these kinds occurred less often than its minimum. The given minimums are those of a thorough
    /// run, see [`required_count`].
    pub(super) fn assert_enough(&self, least: &[(&str, u64)]) {
        let counts = self.0.borrow();
        for (kind, least) in least {
            assert!(
                counts.get(*kind).copied().unwrap_or_default() >= required_count(*least),
                "too few cases of \"{kind}\", all counts: {counts:?}"
            );
        }
    }
}

/// The newest Minecraft version on a list. A preview counts only if the list has no release.
pub(super) fn newest_listed(release: &Release) -> Option<&Minecraft> {
    let releases = release.minecraft.iter().filter(|listed| listed.is_release()).max();
    releases.or_else(|| release.minecraft.iter().max())
}

/// The chosen releases, by the indexes of their members.
pub(super) fn chosen<'a>(rules: &ServerRules<'a>, lock: &Lock) -> BTreeMap<usize, &'a Release> {
    let of = |(at, member): (usize, &super::rules::Member<'a>)| {
        let locked = lock.plugins.iter().find(|plugin| plugin.project_id == member.project.id)?;
        let release = member.usable.iter().find(|release| release.id == locked.release_id)?;
        Some((at, *release))
    };
    rules.members.iter().enumerate().filter_map(of).collect()
}

/// The conflicts of a release with the chosen version set: the installed plugins that are incompatible, and the missing
/// plugins that it needs.
pub(super) fn conflicts(
    rules: &ServerRules<'_>,
    version_set: &BTreeMap<usize, &Release>,
    at: usize,
    release: &Release,
) -> [BTreeSet<String>; 2] {
    let (mut with, mut needs) = (BTreeSet::new(), BTreeSet::new());
    let requirements = |at: usize, release: &Release| {
        let member = &rules.members[at];
        let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        &member.requirements[index]
    };
    let name_and_version =
        |at: usize, release: &Release| format!("{} {}", rules.members[at].project.name, release.version);
    for requirement in requirements(at, release) {
        match version_set.get(&requirement.target) {
            Some(installed) if !requirement.one_of.contains(installed.id.as_str()) => {
                with.insert(name_and_version(requirement.target, installed));
            }
            None if !requirement.or_absent => {
                needs.insert(rules.members[requirement.target].project.name.clone());
            }
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

/// Checks that the reported plugins are exactly those that are incompatible with a release or missing for it, that the
/// reported facts are the cause, and that the release cannot be chosen together with these plugins.
fn check_conflicts(
    candidate: Candidate<'_>,
    problem: &Problem,
    lock: &Lock,
    reported: [&[String]; 2],
    facts: &[UsedFact],
) -> Result<(), String> {
    let Ok(rules) = ServerRules::new(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let Candidate { project, release, minecraft } = candidate;
    let name = format!("{} {}", project.name, release.version);
    let at = rules.members.iter().position(|member| member.project.id == project.id).unwrap();
    let paper = rules.papers.iter().position(|paper| paper.minecraft == minecraft).unwrap();
    let Some(release) = rules.members[at].usable.iter().copied().find(|usable| usable.id == release.id) else {
        return Err(format!("{name} is not eligible"));
    };
    if !rules.is_listed(at, release, paper) || !rules.meets_pin(at, release) {
        return Err(format!("{name} is excluded by its list or a pin"));
    }
    let version_set = chosen(&rules, lock);
    let [with, needs] = conflicts(&rules, &version_set, at, release);
    let [reported_with, reported_needs] = reported.map(|names| names.iter().cloned().collect::<BTreeSet<_>>());
    // If an installed plugin is incompatible, missing plugins are not reported.
    if reported_with != with || with.is_empty() && reported_needs != needs || with.is_empty() && needs.is_empty() {
        return Err(format!(
            "{name}: {reported:?} is reported, but {with:?} are incompatible and {needs:?} are missing"
        ));
    }
    check_conflicting_facts(&rules, &version_set, (at, release), facts)?;
    facts.iter().try_for_each(|fact| check_fact(problem, &rules, fact))?;
    // The chosen version set is the first in the order of preference only if all requested plugins are installed.
    if version_set.len() < rules.members.iter().filter(|member| !member.objects.is_empty()).count() {
        return Ok(());
    }
    let before = || version_set.iter().filter(|(other, _)| **other < at).map(|(other, installed)| (*other, *installed));
    if oracle::is_solvable_with(&rules, paper, &before().chain([(at, release)]).collect()) {
        return Err(format!("{name} can be chosen if only plugins after it in the order change"));
    }
    for (&other, installed) in version_set.iter().filter(|(other, _)| **other != at) {
        let is_reported =
            reported_with.contains(&format!("{} {}", rules.members[other].project.name, installed.version));
        if is_reported && oracle::is_solvable_with(&rules, paper, &BTreeMap::from([(other, *installed), (at, release)]))
        {
            return Err(format!(
                "{name} can be installed together with {} {}",
                rules.members[other].project.name, installed.version
            ));
        }
    }
    Ok(())
}

/// Checks which newer releases of a plugin are reported: the newest one and, if that cannot become eligible on this
/// Paper, the newest one that only a date or other plugins block.
fn check_next(problem: &Problem, lock: &Lock, plugin: &ChosenPlugin, counts: &CaseCounts) -> Result<(), String> {
    let candidate =
        |version: &str, published| Candidate::find(problem, &plugin.name, (version, published), &lock.minecraft);
    let newer = |newer: &NewerRelease| candidate(&newer.version, newer.published);
    let later = Problem { now: problem.now + SignedDuration::from_hours(24 * 1000), ..problem.clone() };
    let is_possible = |candidate: Candidate<'_>| {
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
            return Err(format!(
                "{} can become eligible, but an older release is reported too",
                newest.release.version
            ));
        }
        Some(None) => return Ok(()),
        Some(Some(next)) if !is_possible(next) => {
            return Err(format!(
                "{} is reported as the next release, but cannot become eligible",
                next.release.version
            ));
        }
        Some(Some(next)) => {
            counts.record("next release");
            next
        }
    };
    let is_between = |other: &&Release| {
        oracle::is_older(newest.project, above.release, other)
            && oracle::is_older(newest.project, other, newest.release)
    };
    let mut between = newest.project.releases.iter().filter(is_between);
    match between.find(|release| !is_possible(newest) && is_possible(Candidate { release, ..newest })) {
        Some(unreported) => Err(format!("{} can become eligible, but is not reported", unreported.version)),
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
    counts: &CaseCounts,
) -> Result<(), String> {
    let Some(candidate) = Candidate::find(problem, plugin, reported, &lock.minecraft) else { return Ok(()) };
    counts.count(because);
    if let WhyOlder::Others { facts, .. } = because {
        for _ in facts {
            counts.record("fact");
        }
    }
    match because {
        WhyOlder::Unusable { unusable } => candidate.check_excluded_by(problem, ExclusionReason::Unusable(unusable)),
        WhyOlder::NotListed { up_to: reported } if reported.as_ref() != newest_listed(candidate.release) => {
            Err(format!("{} is not listed up to {reported:?}", candidate.release.version))
        }
        WhyOlder::NotListed { .. } => candidate.check_excluded_by(problem, ExclusionReason::List),
        WhyOlder::Pinned => {
            let mut free = problem.clone();
            let plugin_requests =
                free.request.plugins.iter_mut().filter(|plugin_request| objects.contains(&plugin_request.object));
            plugin_requests.for_each(|plugin_request| plugin_request.version = VersionRequest::Auto);
            let is_allowed = |problem: &Problem| {
                ServerRules::new(&problem.catalog, &problem.request, problem.now).ok().map(|rules| {
                    let at = rules.members.iter().position(|member| member.project.id == candidate.project.id).unwrap();
                    rules.meets_pin(at, candidate.release)
                })
            };
            if is_allowed(problem) == Some(true) || is_allowed(&free) == Some(false) {
                return Err(format!("{plugin} {} is not excluded by a pin alone", reported.0));
            }
            Ok(())
        }
        WhyOlder::Others { with, facts } => check_conflicts(candidate, problem, lock, [with, &[]], facts),
        WhyOlder::Needs { needs } => check_conflicts(candidate, problem, lock, [&[], needs], &[]),
        WhyOlder::SharedVersion { .. } => {
            Err(format!("{plugin} is reported as shared, but the server is solved alone"))
        }
    }
}

/// Checks the reason why a plugin blocks a Paper.
fn check_blocker(
    problem: &Problem,
    blocker: &Blocker,
    minecraft: &Minecraft,
    counts: &CaseCounts,
) -> Result<(), String> {
    let Ok(rules) = ServerRules::new(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let at = rules.members.iter().position(|member| member.project.name == blocker.name);
    let paper = rules.papers.iter().position(|paper| paper.minecraft == minecraft);
    let (Some(at), Some(paper)) = (at, paper) else { return Ok(()) };
    check_last_release_date(problem, blocker, minecraft)?;
    if blocker.last_release_at.is_some() {
        counts.record("date of the last release");
    }
    for _ in &blocker.facts {
        counts.record("fact");
    }
    blocker.facts.iter().try_for_each(|fact| check_fact(problem, &rules, fact))?;
    let member = &rules.members[at];
    let newest = member.usable.last().map(|release| (&release.version, newest_listed(release)));
    if let (Some(reported), None) = (&blocker.newest, &blocker.pinned)
        && (newest != Some((&reported.version, reported.up_to.as_ref())))
    {
        return Err(format!("the newest release of {} is {newest:?}, but {reported:?} is reported", blocker.name));
    }
    if let Some(reported) = &blocker.newest
        && let Some(release) = member.usable.last()
        && reported.refuses.is_some() != rules.is_refused(at, release, paper)
        && blocker.pinned.is_none()
    {
        return Err(format!(
            "whether {minecraft} does not load {} {} is reported wrongly: {:?}",
            blocker.name, reported.version, reported.refuses
        ));
    }
    if blocker.pinned.is_some() {
        check_pin(problem, &rules, at, &blocker.nearest, counts)?;
    }
    let is_allowed = |release: &&&Release| rules.meets_pin(at, release) && rules.is_listed(at, release, paper);
    if blocker.together_with.is_empty()
        && let Some(release) = member.usable.iter().find(is_allowed)
    {
        return Err(format!(
            "{} {} is allowed on {minecraft}, but reported as a blocker: {blocker:?}",
            blocker.name, release.version
        ));
    }
    blocker.lacks.iter().try_for_each(|need| check_unmet_need(problem, need, minecraft, counts))?;
    blocker.lacks.iter().try_for_each(|need| check_date_suffices(&rules, need, paper))?;
    if let Some(both) = &blocker.both {
        if member.usable.last().is_some_and(|newest| !rules.is_refused(at, newest, paper)) {
            return Err(format!("only its list excludes {}, but two reasons are reported: {blocker:?}", blocker.name));
        }
        check_both_reasons(problem, &blocker.name, both, minecraft, counts)?;
    }
    let Some(nearly) = &blocker.nearly else { return Ok(()) };
    let Some(candidate) = Candidate::find(problem, &blocker.name, (&nearly.version, nearly.published), minecraft)
    else {
        return Ok(());
    };
    if !rules.is_listed(at, candidate.release, paper) {
        return Err(format!("{} {} is not listed for {minecraft}", blocker.name, nearly.version));
    }
    counts.count(&nearly.unusable);
    candidate.check_excluded_by(problem, ExclusionReason::Unusable(&nearly.unusable))
}

/// Checks that both the list and the other reason alone exclude a release.
pub(super) fn check_both_reasons(
    problem: &Problem,
    plugin: &str,
    both: &IneligibleCandidate,
    minecraft: &Minecraft,
    counts: &CaseCounts,
) -> Result<(), String> {
    let Some(candidate) = Candidate::find(problem, plugin, (&both.version, both.published), minecraft) else {
        return Ok(());
    };
    counts.record("excluded by its list and by another reason");
    candidate.check_excluded_by(problem, ExclusionReason::List)?;
    candidate.check_excluded_by(problem, ExclusionReason::Unusable(&both.unusable))
}

/// Checks that a pinned version is reported as nonexistent exactly if it is, and that the suggested releases exist.
fn check_pin(
    problem: &Problem,
    rules: &ServerRules<'_>,
    at: usize,
    nearest: &[String],
    counts: &CaseCounts,
) -> Result<(), String> {
    let project = rules.members[at].project;
    let is_published = |release: &&Release| {
        release.published.is_none_or(|date| date <= problem.now) || is_running(&problem.request, release)
    };
    let published: Vec<&Release> = project.releases.iter().filter(is_published).collect();
    let exists = published.iter().any(|release| rules.meets_pin(at, release));
    if nearest.is_empty() != (exists || published.is_empty()) {
        return Err(format!(
            "whether the pinned {} exists: {exists}, but {nearest:?} are suggested instead",
            project.name
        ));
    }
    if !nearest.is_empty() {
        counts.record("no such release");
    }
    match nearest.iter().find(|version| !published.iter().any(|release| release.version == **version)) {
        Some(unreal) => Err(format!("the suggested {} {unreal} does not exist", project.name)),
        None => Ok(()),
    }
}

/// Checks the reason why the release of another plugin that a blocker needs is excluded on this Paper.
fn check_unmet_need(
    problem: &Problem,
    need: &UnmetNeed,
    minecraft: &Minecraft,
    counts: &CaseCounts,
) -> Result<(), String> {
    let Some(release) = &need.release else {
        counts.record("a missing dependency without a release");
        return Ok(());
    };
    let Some(candidate) = Candidate::find(problem, &need.name, (&release.version, release.published), minecraft) else {
        return Ok(());
    };
    if let Some(unusable) = need.unusable.as_ref().or(release.refuses.as_ref()) {
        counts.record("a missing dependency whose release is ineligible");
        return candidate.check_excluded_by(problem, ExclusionReason::Unusable(unusable));
    }
    counts.record("a missing dependency whose release is unlisted");
    candidate.check_excluded_by(problem, ExclusionReason::List)
}

/// Checks that only the date excludes a release that is reported as delayed: its list allows the Paper with this index.
fn check_date_suffices(rules: &ServerRules<'_>, need: &UnmetNeed, paper: usize) -> Result<(), String> {
    let (Some(release), Some(Unusable::Delayed { .. })) = (&need.release, &need.unusable) else { return Ok(()) };
    let Some(at) = rules.members.iter().position(|member| member.project.name == need.name) else { return Ok(()) };
    let is_same = |of: &&Release| of.version == release.version && of.published == release.published;
    match rules.members[at].project.releases.iter().find(is_same) {
        Some(found) if !rules.is_listed(at, found, paper) => {
            Err(format!("{} {} is reported as delayed, but its list excludes this Paper", need.name, release.version))
        }
        _ => Ok(()),
    }
}

fn check_all(
    problem: &Problem,
    lock: &Lock,
    solved: &SolvedExplanation,
    counts: &[CaseCounts; 2],
) -> Result<(), String> {
    for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
        let reported = (plugin.name.as_str(), plugin.objects.as_slice(), (newer.version.as_str(), newer.published));
        check_why_older(problem, lock, reported, &newer.because, &counts[0])?;
    }
    solved.plugins.iter().try_for_each(|plugin| check_next(problem, lock, plugin, &counts[0]))?;
    for newer in &solved.newer_paper {
        newer
            .blocked_by
            .iter()
            .try_for_each(|blocker| check_blocker(problem, blocker, &newer.minecraft, &counts[1]))?;
    }
    solved
        .left_behind
        .iter()
        .try_for_each(|plugin| check_blocker(problem, &plugin.blocker, &lock.minecraft, &counts[1]))
}

#[test]
fn reasons_for_blocked_releases_and_paper_are_true() {
    let counts = [CaseCounts::default(), CaseCounts::default()];
    for_all(18_000_000, |problem| {
        if let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = resolve_problem(problem) {
            check_all(problem, &lock, &solved, &counts)?;
        }
        for version in &problem.catalog.paper {
            let Ok(why) = why_not(&problem.catalog, &problem.request, &version.minecraft, problem.now) else {
                continue;
            };
            why.blockers.iter().try_for_each(|blocker| check_blocker(problem, blocker, &why.target, &counts[1]))?;
        }
        Ok(())
    });
    counts[0].assert_enough(&[
        ("fact", 2),
        ("needs", 2),
        ("next release", 1),
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
    counts[1].assert_enough(&[
        ("channel", 35),
        ("fact", 45),
        ("held", 4),
        ("delayed", 60),
        ("javaHeld", 3),
        ("excluded by its list and by another reason", 1),
        ("a missing dependency whose release is unlisted", 1),
        ("a missing dependency whose release is ineligible", 1),
        ("a missing dependency without a release", 1),
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
        ("date of the last release", 130),
        ("softwareUnsaid", 7),
        ("unlisted", 14),
        ("wrongSoftware", 20),
    ]);
}
