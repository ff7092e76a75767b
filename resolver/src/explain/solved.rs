//! Pure. Explains a solution: the chosen versions, the evidence that they run, and why no newer ones were chosen.

use pubgrub::VersionSet;

use super::blockers::{bare, holders, smallest, up_to};
use super::shared_plugins::Besides;
use super::{
    Blocker, ChosenPaper, ChosenPlugin, DowngradePermission, ExplainContext, Listing, NewerBuild, NewerPaper,
    NewerRelease, NotUpdatedWithLatest, PaperPin, SolvedExplanation, Warning, WhyOlder, delisted, hints, image,
    is_change, name_conflicts, shared_plugins, upstream_actions,
};
use crate::catalog::{BuildChannel, FALLBACK_VERSION, Project, Source};
use crate::compatibility_facts::UsedFact;
use crate::index::listed_versions::ListingEvidence;
use crate::index::unmanaged_jars::Strangers;
use crate::index::{Candidate, CandidateIndex, Edge, MissingDependency, is_older};
use crate::lock::Guess;
use crate::request::{OverrideMode, PaperRequest, Running};
use crate::solve::Decision;
use crate::solve::build_lock::{needed_by, used_facts};
use crate::solve::index_set::IndexSet;
use crate::solve::provider::{SolverProblem, find};
use crate::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::unusable::Unusable;
use crate::version::{Minecraft, glob, lenient};

/// Explains a decision.
pub(crate) fn explain(asked: &ExplainContext<'_, '_>, decision: &Decision) -> SolvedExplanation {
    let world = asked.world;
    let paper = chosen_paper(world, decision);
    let plugins: Vec<ChosenPlugin> =
        (0..world.shelves.len()).filter_map(|shelf| chosen_plugin(asked, decision, shelf)).collect();
    let newer_paper = newer_papers(asked, decision);
    let unfollowed: Vec<NotUpdatedWithLatest> =
        decision.unfollowed.iter().map(|&(shelf, stays)| left_behind(asked, decision, shelf, stays)).collect();
    let ways = hints::for_newer(asked, &paper, &plugins, &newer_paper, &unfollowed);
    let removed = removed(asked, decision);
    let changes = is_change(&paper, &plugins, &removed);
    let waits = upstream_actions::by_newer(world, &paper.minecraft, &newer_paper, &unfollowed);
    SolvedExplanation {
        server: world.request.server.clone(),
        software: world.request.software,
        paper,
        image: image::explain(asked, decision),
        plugins,
        removed,
        newer_paper,
        unfollowed,
        bounds: used_facts(world, decision),
        warnings: warnings(world, decision, changes),
        hints: ways.hints,
        more_hints: ways.more,
        hints_left_out: ways.left_out,
        waits,
        lists_read_later: lists_read_later(asked),
    }
}

/// Explains why one plugin does not follow: no release of it is compatible with the plugins that do.
fn left_behind(
    asked: &ExplainContext<'_, '_>,
    decision: &Decision,
    at: usize,
    stays: Option<usize>,
) -> NotUpdatedWithLatest {
    let shelf = &asked.world.shelves[at];
    let mut with = decision.question.clone();
    with.root[at] = shelf.allowed.clone();
    with.stays[at] = IndexSet::empty();
    let mut found = holders(asked, &with, decision.chosen.paper).unwrap_or_default();
    let own = found.iter().position(|holder| holder.name == shelf.name());
    // Otherwise a plugin that it needs is the blocker.
    let holder = match own.or((!found.is_empty()).then_some(0)) {
        Some(place) => found.swap_remove(place),
        None => beside_others(asked, &with, at, decision.chosen.paper),
    };
    NotUpdatedWithLatest {
        name: shelf.name().to_owned(),
        object: shelf.object().map(str::to_owned),
        holder,
        stays: stays.map(|place| shelf.releases[place].release.version.clone()),
    }
}

/// Explains why a plugin does not follow if no mandatory plugin blocks it: a plugin that it needs is left behind
/// itself, perhaps at an insufficient release. Without remaining steps, no reason is given.
fn beside_others(asked: &ExplainContext<'_, '_>, with: &SolverProblem, at: usize, paper: usize) -> Blocker {
    let with = with.as_if_usable(paper);
    let fails = |kept: &[usize]| {
        let part = with.only(|shelf| shelf == at || kept.contains(&shelf));
        Ok(find(asked.world, &part, asked.meter)?.is_none())
    };
    let others = (0..asked.world.shelves.len()).filter(|&shelf| shelf != at).collect();
    let clash = smallest(others, fails).unwrap_or_default();
    let names = clash.into_iter().map(|shelf| asked.world.shelves[shelf].name().to_owned());
    Blocker { together_with: names.collect(), ..bare(asked.world, at, paper) }
}

/// The latest read time, if it is after the instant of the request.
pub(super) fn lists_read_later(asked: &ExplainContext<'_, '_>) -> Option<jiff::Timestamp> {
    let projects = asked.world.shelves.iter().map(|shelf| shelf.project.read_at);
    projects.chain([asked.catalog.read_at(asked.world.request.software)]).max().filter(|read| *read > asked.world.now)
}

fn chosen_paper(world: &CandidateIndex<'_>, decision: &Decision) -> ChosenPaper {
    let candidate = &world.papers[decision.chosen.paper];
    let build = candidate.build.expect("a Paper without a build is unusable, and was not chosen");
    let running = world.request.running.as_ref();
    let minecraft = &candidate.version.minecraft;
    let runs_now = running.is_some_and(|running| running.is(world.request.software, minecraft, build.number));
    ChosenPaper {
        minecraft: minecraft.clone(),
        build: build.number,
        published: build.published,
        instead_of: running.filter(|_| !runs_now).map(Running::paper_name),
        runs_now,
        newer_build: candidate.newer_build.clone().map(|(build, unusable)| NewerBuild { build, unusable }),
    }
}

fn chosen_plugin(asked: &ExplainContext<'_, '_>, decision: &Decision, at: usize) -> Option<ChosenPlugin> {
    let world = asked.world;
    let place = decision.chosen.releases[at]?;
    let shelf = &world.shelves[at];
    let release = shelf.releases[place].release;
    let runs = shelf.releases.iter().find(|stocked| world.runs(stocked.release)).map(|stocked| stocked.release);
    let lost = world.lost(shelf.project);
    let (newest, next) = newer_releases(asked, decision, at, place);
    Some(ChosenPlugin {
        name: shelf.name().to_owned(),
        objects: shelf.asked.iter().flat_map(|asked| asked.objects.iter().map(|&o| o.to_owned())).collect(),
        needed_by: needed_by(world, decision, at),
        version: release.version.clone(),
        published: release.published,
        listing: match world.known(at, place, decision.chosen.paper) {
            Some(ListingEvidence::Listed | ListingEvidence::Sibling(_)) | None
                if world.has_lost(shelf.project, release) =>
            {
                Listing::Lost
            }
            Some(ListingEvidence::Listed) => Listing::Listed,
            Some(ListingEvidence::Sibling(of)) => Listing::Sibling { of: of.clone() },
            Some(ListingEvidence::Override) => Listing::Override,
            Some(ListingEvidence::NoList) => Listing::NoList,
            None => Listing::RunsNow,
        },
        instead_of: match runs {
            Some(runs) => (runs.id != release.id).then(|| runs.version.clone()),
            None => lost.map(str::to_owned),
        },
        runs_now: runs.is_some() || lost.is_some(),
        newest,
        next,
    })
}

/// The newest release on the channel, if it was not chosen. If that one has to be listed or published first, also the
/// newest one that may become usable earlier.
fn newer_releases(
    asked: &ExplainContext<'_, '_>,
    decision: &Decision,
    at: usize,
    place: usize,
) -> (Option<NewerRelease>, Option<NewerRelease>) {
    let shelf = &asked.world.shelves[at];
    let is_newer = |than: usize, newer: usize| {
        let Candidate { release, unusable, .. } = &shelf.releases[newer];
        let older = shelf.releases[than].release;
        // A delisted release has no date, so only its version can be compared.
        if asked.world.has_lost(shelf.project, older) && lenient::compare(&release.version, &older.version).is_le() {
            return false;
        }
        let never = matches!(unusable, Some(Unusable::Channel { .. } | Unusable::WrongSoftware { .. }));
        !never && is_older(older, release)
    };
    // The release itself is made for this server: only a date or a requirement of another plugin holds it back.
    let may_come = |newer: usize| {
        let at_all = shelf.releases[newer].unusable.as_ref().is_none_or(Unusable::only_waits);
        let is_asked = shelf.asked.is_none() || shelf.allowed.has(newer + 1);
        at_all && is_asked && shelf.supports[decision.chosen.paper].has(newer + 1)
    };
    let mut newer = (place + 1..shelf.releases.len()).rev().filter(|&newer| is_newer(place, newer));
    let Some(newest) = newer.next() else { return (None, None) };
    let next = newer.find(|&next| is_newer(next, newest) && may_come(next)).filter(|_| !may_come(newest));
    let told = |newer| not_taken(asked, decision, at, newer);
    (Some(told(newest)), next.map(told))
}

/// The reason why a release (given by position) was not chosen, ignoring newer releases that were chosen.
pub(super) fn not_taken(asked: &ExplainContext<'_, '_>, decision: &Decision, at: usize, newer: usize) -> NewerRelease {
    let world = asked.world;
    let shelf = &world.shelves[at];
    let stocked = &shelf.releases[newer];
    // A date that would not make the release usable is no reason.
    let because = if let Some(unusable) = stocked.unusable.as_ref().filter(|unusable| !unusable.only_waits()) {
        WhyOlder::Unusable { unusable: unusable.clone() }
    } else if shelf.asked.is_some() && !shelf.allowed.has(newer + 1) {
        WhyOlder::Pinned
    } else if let Some(unusable) = world.refuses(at, newer, decision.chosen.paper) {
        WhyOlder::Unusable { unusable }
    } else if world.known(at, newer, decision.chosen.paper).is_none() {
        WhyOlder::NotListed { up_to: up_to(stocked.release) }
    } else if let Some(unusable) = &stocked.unusable {
        WhyOlder::Unusable { unusable: unusable.clone() }
    } else {
        let why = others(world, decision, at, newer);
        let could_come = || could_come_alone(asked, decision, at, newer);
        let nobody_here = matches!(&why, WhyOlder::Needs { needs } if needs.is_empty() || could_come());
        match shared_plugins::not_taken(asked, at, newer, nobody_here) {
            Some(one_version) => WhyOlder::OneVersion { one_version },
            None => why,
        }
    };
    NewerRelease { version: stocked.release.version.clone(), published: stocked.release.published, because }
}

/// Whether the server could have a release of a shared plugin if it had no group. All other requested and chosen
/// releases stay, and its dependencies are added.
fn could_come_alone(asked: &ExplainContext<'_, '_>, decision: &Decision, at: usize, newer: usize) -> bool {
    let world = asked.world;
    if !asked.company.is_some_and(|company| shared_plugins::is_shared(company, at)) {
        return false;
    }
    let mut with = decision.question.on(IndexSet::of([decision.chosen.paper + 1]));
    for (shelf, release) in decision.chosen.releases.iter().enumerate() {
        if let (Some(release), Some(_)) = (release, &world.shelves[shelf].asked) {
            with.root[shelf] = IndexSet::of([release + 1]);
        }
    }
    with.root[at] = IndexSet::of([newer + 1]);
    find(world, &with, asked.meter).is_ok_and(|set| set.is_some())
}

/// The plugins of the chosen version set that a release is incompatible with.
pub(super) fn others(world: &CandidateIndex<'_>, decision: &Decision, at: usize, place: usize) -> WhyOlder {
    let chosen = |shelf: usize| decision.chosen.releases[shelf];
    let index = |shelf: usize| chosen(shelf).map_or(0, |place| place + 1);
    let named = |shelf: usize| {
        let releases = &world.shelves[shelf].releases;
        let version = chosen(shelf).map_or("", |place| releases[place].release.version.as_str());
        format!("{} {version}", world.shelves[shelf].name())
    };
    let links = &world.shelves[at].links[place];
    let unmet: Vec<&Edge> = links.iter().filter(|link| !link.set.has(index(link.to))).collect();
    let there = || unmet.iter().filter(|link| chosen(link.to).is_some());
    let mut with: Vec<String> = there().map(|link| named(link.to)).collect();
    let mut facts: Vec<UsedFact> = there().filter_map(|link| world.fact(at, place, link)).collect();
    for (other, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let links = world.shelves[other].links[release].iter();
        for link in links.filter(|link| link.to == at && !link.set.has(place + 1)) {
            with.push(named(other));
            facts.extend(world.fact(other, release, link));
        }
    }
    with.sort();
    with.dedup();
    if with.is_empty() {
        let mut needs: Vec<String> = unmet.iter().map(|link| world.shelves[link.to].name().to_owned()).collect();
        needs.sort();
        WhyOlder::Needs { needs }
    } else {
        facts.sort();
        WhyOlder::Others { with, facts }
    }
}

/// Running plugins that are not in the chosen version set in any version and that no Plugin object requests.
fn removed(asked: &ExplainContext<'_, '_>, decision: &Decision) -> Vec<(String, String)> {
    let world = asked.world;
    let kept = |project: &Project| {
        let mut shelves = world.shelves.iter().zip(&decision.chosen.releases);
        shelves.any(|(shelf, release)| {
            std::ptr::eq(shelf.project, project) && (release.is_some() || shelf.asked.is_some())
        })
    };
    let gone = asked.catalog.projects.iter().filter(|project| !kept(project));
    let mut removed: Vec<(String, String)> = gone
        .flat_map(|project| {
            let runs = project.releases.iter().filter(|release| world.runs(release));
            let versions = runs.map(|release| release.version.as_str()).chain(world.lost(project));
            versions.map(|version| (project.name.clone(), version.to_owned()))
        })
        .collect();
    removed.sort();
    removed
}

/// The next newer Paper version that may be used (otherwise the next one), and the newest one.
fn newer_papers(asked: &ExplainContext<'_, '_>, decision: &Decision) -> Vec<NewerPaper> {
    let world = asked.world;
    let previews = world.request.channel == BuildChannel::Alpha;
    let newer: Vec<usize> = (decision.chosen.paper + 1..world.papers.len())
        .filter(|&place| previews || world.papers[place].version.minecraft.is_release())
        .collect();
    let next = newer.iter().find(|&&place| world.papers[place].unusable.is_none()).or(newer.first());
    let mut shown: Vec<usize> = next.into_iter().chain(newer.last()).copied().collect();
    shown.dedup();
    shown.into_iter().map(|place| newer_paper(asked, decision, place)).collect()
}

fn newer_paper(asked: &ExplainContext<'_, '_>, decision: &Decision, place: usize) -> NewerPaper {
    let world = asked.world;
    let candidate = &world.papers[place];
    let pinned = paper_pin(world);
    let whole = SolverProblem::whole(world, IndexSet::of([place + 1]));
    let (held_by, gave_up) = match holders(asked, &whole, place) {
        Ok(held_by) => (held_by, None),
        Err(gave_up) => (Vec::new(), Some(gave_up)),
    };
    let installed: Vec<&str> = decision
        .chosen
        .releases
        .iter()
        .enumerate()
        .filter_map(|(at, release)| release.map(|_| world.shelves[at].name()))
        .collect();
    let blocked = |name: &str| held_by.iter().any(|holder| holder.stops(name));
    let ready = installed.iter().filter(|name| gave_up.is_none() && !blocked(name)).count();
    let besides = Besides { unusable: candidate.unusable.as_ref(), pin: pinned.as_ref(), holders: &held_by };
    let one_version = match asked.company.filter(|_| gave_up.is_none()) {
        // Then the group is the reason.
        Some(company) if besides.is_nothing() => shared_plugins::held(asked, company, place),
        Some(_) => shared_plugins::behind(asked, place, &besides, true).unwrap_or_default(),
        None => Vec::new(),
    };
    NewerPaper {
        minecraft: candidate.version.minecraft.clone(),
        since: candidate.since,
        unusable: candidate.unusable.clone(),
        pinned,
        ready,
        held_by,
        gave_up,
        one_version,
        one_way: world.request.software.is_minecraft()
            && candidate.version.minecraft > world.papers[decision.chosen.paper].version.minecraft,
    }
}

pub(super) fn paper_pin(world: &CandidateIndex<'_>) -> Option<PaperPin> {
    match &world.request.paper {
        PaperRequest::Pin { version } => Some(PaperPin { version: version.clone(), build: None }),
        PaperRequest::BuildPin { version, build } => Some(PaperPin { version: version.clone(), build: Some(*build) }),
        PaperRequest::Latest | PaperRequest::Auto => None,
    }
}

fn warnings(world: &CandidateIndex<'_>, decision: &Decision, changes: bool) -> Vec<Warning> {
    let mut warnings = world.warnings.clone();
    let candidate = &world.papers[decision.chosen.paper];
    if candidate.version.unsupported {
        warnings.push(Warning::PaperUnsupported { minecraft: candidate.version.minecraft.clone() });
    }
    if let (PaperRequest::BuildPin { .. }, Some(build)) = (&world.request.paper, candidate.build)
        && build.channel < world.request.channel
    {
        warnings.push(Warning::PinnedBuildChannel { is: build.channel, allowed: world.request.channel });
    }
    for (at, place) in decision.chosen.releases.iter().enumerate() {
        let Some(place) = *place else { continue };
        plugin_warnings(world, decision, at, place, &mut warnings);
    }
    warnings.extend(own_files(world, decision, changes));
    warnings.sort();
    warnings
}

/// Warnings about unmanaged JARs. `changes` means that the solution differs from the running versions.
fn own_files(world: &CandidateIndex<'_>, decision: &Decision, changes: bool) -> Vec<Warning> {
    let paper = &world.papers[decision.chosen.paper];
    let mut warnings = Vec::new();
    let Strangers { unknown, refused, .. } = &paper.strangers;
    if !unknown.is_empty() {
        let minecraft = paper.version.minecraft.clone();
        warnings.push(Warning::Unmanaged { files: unknown.clone(), minecraft });
    }
    warnings.extend(
        refused
            .iter()
            .map(|(file, because)| Warning::UnmanagedRefused { file: file.clone(), because: because.clone() }),
    );
    warnings.extend(world.missing(&decision.chosen).into_iter().map(|MissingDependency { file, plugin, project }| {
        Warning::FileLacks { file: file.to_owned(), plugin: plugin.to_owned(), project: project.clone() }
    }));
    let minds = world.request.unmanaged_plugins != UnmanagedPlugins::Ignore && world.request.software.is_minecraft();
    // The Java version of a file is read with the rest. Without it, the file may not have been read.
    let read = |jar: &&UnmanagedJar| jar.name.is_some() && (jar.java.is_some() || jar.api_version.is_some());
    let legacy = world.request.unmanaged.iter().filter(|_| minds).filter(read);
    warnings.extend(
        legacy
            .filter(|jar| is_legacy(jar.api_version.as_ref()))
            .map(|jar| Warning::LegacyFile { file: jar.file.clone(), api_version: jar.api_version.clone() }),
    );
    warnings.extend(name_conflicts::of_set(world, &decision.chosen).into_iter().map(|(shared, is_refused)| {
        // This applies whether the file runs or not: the operator does not deploy a version set with such a file.
        // Without a change, there is nothing to stop.
        Warning::SharedName { name: shared.name, files: shared.files, stops: changes && is_refused }
    }));
    warnings
}

fn plugin_warnings(
    world: &CandidateIndex<'_>,
    decision: &Decision,
    at: usize,
    place: usize,
    warnings: &mut Vec<Warning>,
) {
    let shelf = &world.shelves[at];
    let stocked = &shelf.releases[place];
    let plugin = || shelf.name().to_owned();
    let version = || stocked.release.version.clone();
    if shelf.channel < shelf.rules.channel && stocked.release.channel < shelf.rules.channel && shelf.rules.pin.is_none()
    {
        warnings.push(Warning::ChannelFallback {
            plugin: plugin(),
            used: stocked.release.channel,
            allowed: shelf.rules.channel,
        });
    }
    warnings.extend(goes_down(world, at, place).or_else(|| delisted::warning(world, decision, at, place)));
    // No warning if pages at this source cannot have a list for the software.
    let can_have_one = world.request.software.is_listed_at(shelf.project.key.source);
    if can_have_one && world.known(at, place, decision.chosen.paper) == Some(ListingEvidence::NoList) {
        warnings.push(Warning::NoList { plugin: plugin(), version: version() });
    }
    if shelf.project.key.source == Source::Url && stocked.release.version == FALLBACK_VERSION {
        warnings.push(Warning::FallbackVersion { plugin: plugin(), version: version() });
    }
    let jars = shelf.rules.jars.pick(stocked.release).unwrap_or_default();
    // The value is unknown for a JAR that was not read, and a proxy does not use it.
    let mut read = jars.iter().filter(|jar| jar.declared.is_some() && world.request.software.is_minecraft());
    if let Some(jar) = read.find(|jar| is_legacy(jar.api_version)) {
        warnings.push(Warning::Legacy { plugin: plugin(), version: version(), api_version: jar.api_version.cloned() });
    }
    warnings.extend(world.guesses(at, place).map(|Guess { plugin, version, needs, at_least, .. }| {
        Warning::GuessedBound { plugin, version, needs, at_least }
    }));
    let is_there = |name: &str| world.request.unmanaged.iter().any(|jar| jar.is_called(name));
    for needs in stocked.outside.iter().filter(|needs| !is_there(needs)) {
        warnings.push(Warning::OutsideDependency { plugin: plugin(), needs: needs.clone() });
    }
    let beside = world.beside(at, place).into_iter();
    warnings.extend(beside.map(|because| Warning::BesideFile { plugin: plugin(), version: version(), because }));
    if let (Some(says), Some(object)) = (shelf.rules.compatibility, shelf.object())
        && says.mode == OverrideMode::Add
        && says.releases.contains(&stocked.release.version)
        && !shelf.rules.jars.is_unsaid(stocked.release, shelf.project.key.source)
        && caught_up(world, at, place, &says.minecraft)
    {
        warnings.push(Warning::OverrideNotNeeded { object: object.to_owned(), version: version() });
    }
}

/// Whether a server treats a plugin with this `api-version` as one from before the flattening of materials.
fn is_legacy(api_version: Option<&Minecraft>) -> bool {
    api_version.is_none_or(|states| states.parts().is_some_and(|[major, minor, _]| (major, minor) < (1, 13)))
}

/// The warning that the chosen release is older than the running one, with the reason why that is allowed.
fn goes_down(world: &CandidateIndex<'_>, at: usize, place: usize) -> Option<Warning> {
    let shelf = &world.shelves[at];
    let chosen = shelf.releases[place].release;
    let runs = shelf.releases.iter().rfind(|stocked| world.runs(stocked.release))?;
    if !is_older(chosen, runs.release) || world.has_lost(shelf.project, runs.release) {
        return None;
    }
    let reason = match &runs.unusable {
        _ if shelf.rules.pin.is_some() => DowngradePermission::Pinned,
        Some(unusable) if unusable.is_its_own() => DowngradePermission::Unusable { unusable: unusable.clone() },
        Some(_) | None => DowngradePermission::Allowed,
    };
    let (plugin, from, to) = (shelf.name().to_owned(), runs.release.version.clone(), chosen.version.clone());
    Some(Warning::GoesDown { plugin, from, to, reason })
}

/// Whether the page now lists everything that the user added: each existing version of a pattern, on every such Paper
/// version.
fn caught_up(world: &CandidateIndex<'_>, at: usize, place: usize, patterns: &[String]) -> bool {
    patterns.iter().all(|pattern| {
        let papers = world.papers.iter().enumerate();
        let mut meant = papers.filter(|(_, paper)| glob::matches(pattern, &paper.version.minecraft)).peekable();
        meant.peek().is_some() && meant.all(|(paper, _)| world.known_by_page(at, place, paper).is_some())
    })
}
