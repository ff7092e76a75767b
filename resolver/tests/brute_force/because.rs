//! Pure. Tests on random small problems that the stated reasons are true, by the rules of the page: why a newer release
//! was not chosen, and what blocks a newer Paper.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::Release;
use resolver::compatibility_facts::UsedFact;
use resolver::explain::{
    Blocker, ChosenPlugin, Explanation, IneligibleCandidate, NewerRelease, SolvedExplanation, UnmetNeed, WhyOlder,
};
use resolver::lock::Lock;
use resolver::request::VersionRequest;
use resolver::unusable::Unusable;
use resolver::version::Minecraft;
use resolver::{Resolution, why_not};
use serde::Serialize;

use super::beside::{facts_part, is_said, silence_is_true};
use super::least_of;
use super::oracle;
use super::problem::Problem;
use super::properties::{always, answer};
use super::rules::{Book, age, runs};
use super::stands::{Against, Asked};

/// How often each kind of reason was tested.
#[derive(Default)]
pub(super) struct Tried(RefCell<BTreeMap<String, u64>>);

impl Tried {
    /// Counts one reason by its name in JSON.
    pub(super) fn count(&self, reason: &impl Serialize) {
        let value = serde_json::to_value(reason).unwrap();
        let tag = ["why", "reason"].into_iter().find_map(|tag| value[tag].as_str()).unwrap();
        let inside = value["unusable"]["why"].as_str().map(|why| format!(" {why}")).unwrap_or_default();
        self.note(&format!("{tag}{inside}"));
    }

    /// Counts one case of this kind.
    pub(super) fn note(&self, kind: &str) {
        *self.0.borrow_mut().entry(kind.to_owned()).or_default() += 1;
    }

    /// Fails when one of these kinds occurred less often than the minimum of a thorough run. See [`least_of`] for other
    /// runs.
    pub(super) fn are_enough(&self, least: &[(&str, u64)]) {
        let tried = self.0.borrow();
        for (kind, least) in least {
            assert!(
                tried.get(*kind).copied().unwrap_or_default() >= least_of(*least),
                "{kind}: too few of them in {tried:?}"
            );
        }
    }
}

/// The newest Minecraft of a list: a release, if it has one.
pub(super) fn up_to(release: &Release) -> Option<&Minecraft> {
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
pub(super) fn apart(
    book: &Book<'_>,
    set: &BTreeMap<usize, &Release>,
    at: usize,
    release: &Release,
) -> [BTreeSet<String>; 2] {
    let (mut with, mut needs) = (BTreeSet::new(), BTreeSet::new());
    let asks = |at: usize, release: &Release| {
        let member = &book.members[at];
        let place = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        &member.asks[place]
    };
    let named = |at: usize, release: &Release| format!("{} {}", book.members[at].project.name, release.version);
    for ask in asks(at, release) {
        match set.get(&ask.of) {
            Some(there) if !ask.one_of.contains(there.id.as_str()) => drop(with.insert(named(ask.of, there))),
            None if !ask.or_absent => drop(needs.insert(book.members[ask.of].project.name.clone())),
            Some(_) | None => {}
        }
    }
    for (&other, there) in set.iter().filter(|(other, _)| **other != at) {
        if asks(other, there).iter().any(|ask| ask.of == at && !ask.one_of.contains(release.id.as_str())) {
            with.insert(named(other, there));
        }
    }
    [with, needs]
}

/// Checks that exactly the incompatible plugins are reported, with the facts behind it, and that the release cannot be
/// chosen with them.
fn others_are_true(
    asked: Asked<'_>,
    problem: &Problem,
    lock: &Lock,
    told: [&[String]; 2],
    facts: &[UsedFact],
) -> Result<(), String> {
    let Ok(book) = Book::open(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let Asked { project, release, minecraft } = asked;
    let name = format!("{} {}", project.name, release.version);
    let at = book.members.iter().position(|member| member.project.id == project.id).unwrap();
    let paper = book.papers.iter().position(|paper| paper.minecraft == minecraft).unwrap();
    let Some(release) = book.members[at].usable.iter().copied().find(|usable| usable.id == release.id) else {
        return Err(format!("{name} may not be used at all"));
    };
    if !book.listed(at, release, paper) || !book.meets_pin(at, release) {
        return Err(format!("{name} is kept by its list or a pin"));
    }
    let set = chosen(&book, lock);
    let [with, needs] = apart(&book, &set, at, release);
    let [told_with, told_needs] = told.map(|names| names.iter().cloned().collect::<BTreeSet<_>>());
    // If an installed plugin is incompatible, missing plugins are not reported.
    if told_with != with || with.is_empty() && told_needs != needs || with.is_empty() && needs.is_empty() {
        return Err(format!("{name}: {told:?} are told, {with:?} do not go with it, and it lacks {needs:?}"));
    }
    facts_part(&book, &set, (at, release), facts)?;
    facts.iter().try_for_each(|fact| is_said(problem, &book, fact))?;
    // If all plugins that `latest` could exclude are installed, the best version set is the first in order.
    if set.len() < book.members.iter().filter(|member| !member.objects.is_empty()).count() {
        return Ok(());
    }
    let before = || set.iter().filter(|(other, _)| **other < at).map(|(other, there)| (*other, *there));
    if oracle::goes_with(&book, paper, &before().chain([(at, release)]).collect()) {
        return Err(format!("{name} can be had at the cost of what comes after it"));
    }
    for (&other, there) in set.iter().filter(|(other, _)| **other != at) {
        let is_told = told_with.contains(&format!("{} {}", book.members[other].project.name, there.version));
        if is_told && oracle::goes_with(&book, paper, &BTreeMap::from([(other, *there), (at, release)])) {
            return Err(format!("{name} goes with {} {}", book.members[other].project.name, there.version));
        }
    }
    Ok(())
}

/// Checks that only the newest newer release is reported. If it is ineligible on this Paper, the newest release that
/// only a date or other plugins block is reported too.
fn next_is_true(problem: &Problem, lock: &Lock, plugin: &ChosenPlugin, tried: &Tried) -> Result<(), String> {
    let asked = |version: &str, published| Asked::of(problem, &plugin.name, (version, published), &lock.minecraft);
    let newer = |newer: &NewerRelease| asked(&newer.version, newer.published);
    let later = Problem { now: problem.now + SignedDuration::from_hours(24 * 1000), ..problem.clone() };
    let may_come = |asked: Asked<'_>| asked.goes(problem) == Some(true) || asked.goes(&later) == Some(true);
    let (Some(chosen), Some(newest)) =
        (asked(&plugin.version, plugin.published), plugin.newest.as_ref().and_then(newer))
    else {
        return Ok(());
    };
    let above = match plugin.next.as_ref().map(newer) {
        None => chosen,
        Some(_) if may_come(newest) => {
            return Err(format!("{} may come, and another one is told", newest.release.version));
        }
        Some(None) => return Ok(()),
        Some(Some(next)) if !may_come(next) => {
            return Err(format!("{} is told as what may come next, and may not", next.release.version));
        }
        Some(Some(next)) => {
            tried.note("next");
            next
        }
    };
    let is_between = |other: &&Release| age(above.release) < age(other) && age(other) < age(newest.release);
    let mut between = newest.project.releases.iter().filter(is_between);
    match between.find(|release| !may_come(newest) && may_come(Asked { release, ..newest })) {
        Some(left_out) => Err(format!("{} may come, and is not told", left_out.version)),
        None => Ok(()),
    }
}

/// Checks the reason why a release is not in the version set. The release is given by its plugin, the objects that
/// request it, its version and its date.
pub(super) fn because_is_true(
    problem: &Problem,
    lock: &Lock,
    (plugin, objects, told): (&str, &[String], (&str, Option<Timestamp>)),
    because: &WhyOlder,
    tried: &Tried,
) -> Result<(), String> {
    let Some(asked) = Asked::of(problem, plugin, told, &lock.minecraft) else { return Ok(()) };
    tried.count(because);
    if let WhyOlder::Others { facts, .. } = because {
        for _ in facts {
            tried.note("fact");
        }
    }
    match because {
        WhyOlder::Unusable { unusable } => asked.is_kept_by(problem, Against::Unusable(unusable)),
        WhyOlder::NotListed { up_to: told } if told.as_ref() != up_to(asked.release) => {
            Err(format!("{} is not listed up to {told:?}", asked.release.version))
        }
        WhyOlder::NotListed { .. } => asked.is_kept_by(problem, Against::List),
        WhyOlder::Pinned => {
            let mut free = problem.clone();
            let wishes = free.request.plugins.iter_mut().filter(|wish| objects.contains(&wish.object));
            wishes.for_each(|wish| wish.version = VersionRequest::Auto);
            let goes = |problem: &Problem| {
                Book::open(&problem.catalog, &problem.request, problem.now).ok().map(|book| {
                    let at = book.members.iter().position(|member| member.project.id == asked.project.id).unwrap();
                    book.meets_pin(at, asked.release)
                })
            };
            if goes(problem) == Some(true) || goes(&free) == Some(false) {
                return Err(format!("{plugin} {} is not kept by a pin", told.0));
            }
            Ok(())
        }
        WhyOlder::Others { with, facts } => others_are_true(asked, problem, lock, [with, &[]], facts),
        WhyOlder::Needs { needs } => others_are_true(asked, problem, lock, [&[], needs], &[]),
        WhyOlder::OneVersion { .. } => Err(format!("{plugin} is one version on one server")),
    }
}

/// Checks the reason why a plugin blocks a Paper.
fn holder_is_true(problem: &Problem, holder: &Blocker, minecraft: &Minecraft, tried: &Tried) -> Result<(), String> {
    let Ok(book) = Book::open(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let at = book.members.iter().position(|member| member.project.name == holder.name);
    let paper = book.papers.iter().position(|paper| paper.minecraft == minecraft);
    let (Some(at), Some(paper)) = (at, paper) else { return Ok(()) };
    silence_is_true(problem, holder, minecraft)?;
    if holder.silent_since.is_some() {
        tried.note("silent");
    }
    for _ in &holder.facts {
        tried.note("fact");
    }
    holder.facts.iter().try_for_each(|fact| is_said(problem, &book, fact))?;
    let member = &book.members[at];
    let newest = member.usable.last().map(|release| (&release.version, up_to(release)));
    if let (Some(told), None) = (&holder.newest, &holder.pinned)
        && (newest != Some((&told.version, told.up_to.as_ref())))
    {
        return Err(format!("{newest:?} is the newest of {}, not {told:?}", holder.name));
    }
    if let Some(told) = &holder.newest
        && let Some(release) = member.usable.last()
        && told.refuses.is_some() != book.refused(at, release, paper)
        && holder.pinned.is_none()
    {
        return Err(format!("{minecraft} and {} {}: {:?}", holder.name, told.version, told.refuses));
    }
    if holder.pinned.is_some() {
        pin_is_real(problem, &book, at, &holder.nearest, tried)?;
    }
    let goes = |release: &&&Release| book.meets_pin(at, release) && book.listed(at, release, paper);
    if holder.together_with.is_empty()
        && let Some(release) = member.usable.iter().find(goes)
    {
        return Err(format!("{} {} goes on {minecraft}: {holder:?}", holder.name, release.version));
    }
    holder.lacks.iter().try_for_each(|lack| lack_is_true(problem, lack, minecraft, tried))?;
    holder.lacks.iter().try_for_each(|lack| date_brings_it(&book, lack, paper))?;
    if let Some(both) = &holder.both {
        if member.usable.last().is_some_and(|newest| !book.refused(at, newest, paper)) {
            return Err(format!("a list alone would let {} run: {holder:?}", holder.name));
        }
        kept_twice(problem, &holder.name, both, minecraft, tried)?;
    }
    let Some(nearly) = &holder.nearly else { return Ok(()) };
    let Some(asked) = Asked::of(problem, &holder.name, (&nearly.version, nearly.published), minecraft) else {
        return Ok(());
    };
    if !book.listed(at, asked.release, paper) {
        return Err(format!("{} {} would not do", holder.name, nearly.version));
    }
    tried.count(&nearly.unusable);
    asked.is_kept_by(problem, Against::Unusable(&nearly.unusable))
}

/// Checks that both the list and the other reason alone exclude a release.
pub(super) fn kept_twice(
    problem: &Problem,
    plugin: &str,
    both: &IneligibleCandidate,
    minecraft: &Minecraft,
    tried: &Tried,
) -> Result<(), String> {
    let Some(asked) = Asked::of(problem, plugin, (&both.version, both.published), minecraft) else { return Ok(()) };
    tried.note("kept twice");
    asked.is_kept_by(problem, Against::List)?;
    asked.is_kept_by(problem, Against::Unusable(&both.unusable))
}

/// Checks that a pin is reported as nonexistent exactly if it is, and that the suggested releases exist.
fn pin_is_real(problem: &Problem, book: &Book<'_>, at: usize, nearest: &[String], tried: &Tried) -> Result<(), String> {
    let project = book.members[at].project;
    let is_out = |release: &&Release| {
        release.published.is_none_or(|date| date <= problem.now) || runs(&problem.request, release)
    };
    let out: Vec<&Release> = project.releases.iter().filter(is_out).collect();
    let exists = out.iter().any(|release| book.meets_pin(at, release));
    if nearest.is_empty() != (exists || out.is_empty()) {
        return Err(format!("the pin of {} exists: {exists}, and {nearest:?} are told instead", project.name));
    }
    if !nearest.is_empty() {
        tried.note("no such release");
    }
    match nearest.iter().find(|version| !out.iter().any(|release| release.version == **version)) {
        Some(unreal) => Err(format!("there is no {} {unreal}", project.name)),
        None => Ok(()),
    }
}

/// Checks the reason why the release that a blocker needs of another plugin is excluded on this Paper.
fn lack_is_true(problem: &Problem, lack: &UnmetNeed, minecraft: &Minecraft, tried: &Tried) -> Result<(), String> {
    let Some(release) = &lack.release else {
        tried.note("lacks, and there is none");
        return Ok(());
    };
    let Some(asked) = Asked::of(problem, &lack.name, (&release.version, release.published), minecraft) else {
        return Ok(());
    };
    if let Some(unusable) = lack.unusable.as_ref().or(release.refuses.as_ref()) {
        tried.note("lacks what is unusable");
        return asked.is_kept_by(problem, Against::Unusable(unusable));
    }
    tried.note("lacks what is unlisted");
    asked.is_kept_by(problem, Against::List)
}

/// Checks that only the date excludes the reported release: its list allows this Paper (by place).
fn date_brings_it(book: &Book<'_>, lack: &UnmetNeed, paper: usize) -> Result<(), String> {
    let (Some(release), Some(Unusable::HeldBack { .. })) = (&lack.release, &lack.unusable) else { return Ok(()) };
    let Some(at) = book.members.iter().position(|member| member.project.name == lack.name) else { return Ok(()) };
    let is_it = |of: &&Release| of.version == release.version && of.published == release.published;
    match book.members[at].project.releases.iter().find(is_it) {
        Some(found) if !book.listed(at, found, paper) => {
            Err(format!("{} {} is promised for a date that does not bring it", lack.name, release.version))
        }
        _ => Ok(()),
    }
}

fn all_is_true(problem: &Problem, lock: &Lock, solved: &SolvedExplanation, tried: &[Tried; 2]) -> Result<(), String> {
    for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
        let told = (plugin.name.as_str(), plugin.objects.as_slice(), (newer.version.as_str(), newer.published));
        because_is_true(problem, lock, told, &newer.because, &tried[0])?;
    }
    solved.plugins.iter().try_for_each(|plugin| next_is_true(problem, lock, plugin, &tried[0]))?;
    for newer in &solved.newer_paper {
        newer.held_by.iter().try_for_each(|holder| holder_is_true(problem, holder, &newer.minecraft, &tried[1]))?;
    }
    solved.unfollowed.iter().try_for_each(|left| holder_is_true(problem, &left.holder, &lock.minecraft, &tried[1]))
}

#[test]
fn reasons_for_blocked_releases_and_paper_are_true() {
    let tried = [Tried::default(), Tried::default()];
    always(18_000_000, |problem| {
        if let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = answer(problem) {
            all_is_true(problem, &lock, &solved, &tried)?;
        }
        for version in &problem.catalog.paper {
            let Ok(why) = why_not(&problem.catalog, &problem.request, &version.minecraft, problem.now) else {
                continue;
            };
            why.holders.iter().try_for_each(|holder| holder_is_true(problem, holder, &why.target, &tried[1]))?;
        }
        Ok(())
    });
    tried[0].are_enough(&[
        ("fact", 2),
        ("needs", 2),
        ("next", 1),
        ("notListed", 8),
        ("others", 4),
        ("pinned", 2),
        ("unusable apiVersion", 3),
        ("unusable besideFile", 2),
        ("unusable heldBack", 15),
        ("unusable noChecksum", 6),
        ("unusable noFile", 3),
        ("unusable noSuchJar", 4),
        ("unusable unlisted", 3),
    ]);
    tried[1].are_enough(&[
        ("channel", 35),
        ("fact", 45),
        ("held", 4),
        ("heldBack", 60),
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
