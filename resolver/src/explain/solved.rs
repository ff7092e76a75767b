//! Pure. Explains a solution: the chosen versions, the evidence that they run, and why no newer ones were chosen.

use pubgrub::VersionSet;

use super::blockers::{find_blockers, minimize, new_blocker};
use super::inputs::{lists_read_later, paper_pin, unread_parts};
use super::shared_plugins::{self, OtherReasons};
use super::why_older::not_chosen;
use super::{ExplainContext, delisted, hints, image, name_conflicts, upstream_actions};
use crate::explanation::solved::is_change;
use crate::explanation::{
    Blocker, ChosenPaper, ChosenPlugin, DowngradePermission, LaterRelease, Listing, NewerBuild, NewerPaper,
    NewerRelease, NotUpdatedWithLatest, SolvedExplanation, Warning,
};
use crate::index::candidates::{Candidate, PluginCandidates};
use crate::index::index_set::IndexSet;
use crate::index::listed_versions::ListingEvidence;
use crate::index::unmanaged_jars::UnmanagedJarCompatibility;
use crate::index::{CandidateIndex, MissingDependency, is_same_age};
use crate::model::api_version::{ApiVersion, is_legacy_without};
use crate::model::bundled_plugins::bundled_in;
use crate::model::catalog::{BuildChannel, FALLBACK_VERSION, Project, Source};
use crate::model::jar_pattern::stem;
use crate::model::lock::Guess;
use crate::model::name_conflict::folded;
use crate::model::request::{OverrideMode, PaperRequest, Running};
use crate::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::model::unusable::Unusable;
use crate::model::version::{Minecraft, glob, lenient};
use crate::solve::Decision;
use crate::solve::build_lock::{dependents, used_facts};
use crate::solve::provider::{SolverProblem, find_solution};

/// Explains a decision.
pub(crate) fn explain(context: &ExplainContext<'_, '_>, decision: &Decision) -> SolvedExplanation {
    let candidates = context.candidates;
    let paper = chosen_paper(candidates, decision);
    let plugins: Vec<ChosenPlugin> =
        (0..candidates.plugins.len()).filter_map(|plugin| chosen_plugin(context, decision, plugin)).collect();
    let newer_paper = newer_papers(context, decision);
    let left_behind: Vec<NotUpdatedWithLatest> = decision
        .left_behind
        .iter()
        .map(|&(plugin, retained)| left_behind(context, decision, plugin, retained))
        .collect();
    let found_hints = hints::for_newer(context, &paper, &plugins, &newer_paper, &left_behind);
    let removed = removed(context, decision);
    let changes = is_change(&paper, &plugins, &removed);
    let waits = upstream_actions::for_newer(context, decision, &newer_paper, &left_behind);
    let unread = unread_parts(context, Some(&paper.minecraft));
    SolvedExplanation {
        server: candidates.request.server.clone(),
        software: candidates.request.software,
        paper,
        image: image::explain(context, decision),
        plugins,
        removed,
        newer_paper,
        left_behind,
        bounds: used_facts(candidates, decision),
        warnings: warnings(candidates, decision, changes),
        hints: found_hints.hints,
        more_hints: found_hints.more,
        hints_left_out: found_hints.skipped,
        waits,
        unread,
        lists_read_later: lists_read_later(context),
    }
}

/// Explains why one plugin does not follow: no release of it is compatible with the plugins that do.
fn left_behind(
    context: &ExplainContext<'_, '_>,
    decision: &Decision,
    at: usize,
    retained: Option<usize>,
) -> NotUpdatedWithLatest {
    let plugin = &context.candidates.plugins[at];
    let mut with = decision.problem.clone();
    with.root[at] = plugin.allowed.clone();
    with.retained[at] = IndexSet::empty();
    let mut found = find_blockers(context, &with, decision.chosen.paper).unwrap_or_default();
    let own_position = found.iter().position(|blocker| blocker.name == plugin.name());
    // Otherwise a plugin that it needs is the blocker.
    let blocker = match own_position.or((!found.is_empty()).then_some(0)) {
        Some(position) => found.swap_remove(position),
        None => blocker_among_others(context, &with, at, decision.chosen.paper),
    };
    NotUpdatedWithLatest {
        name: plugin.name().to_owned(),
        object: plugin.object().map(str::to_owned),
        blocker,
        stays: retained.map(|position| plugin.releases[position].release.version.clone()),
    }
}

/// Explains why a plugin does not follow if no mandatory plugin blocks it: a plugin that it needs is left behind
/// itself, perhaps at an insufficient release. Without remaining steps, no reason is given.
fn blocker_among_others(context: &ExplainContext<'_, '_>, with: &SolverProblem, at: usize, paper: usize) -> Blocker {
    let with = with.assuming_usable(paper);
    let fails = |subset: &[usize]| {
        let part = with.with_mandatory(|plugin| plugin == at || subset.contains(&plugin));
        Ok(find_solution(context.candidates, &part, context.meter)?.is_none())
    };
    let others = (0..context.candidates.plugins.len()).filter(|&plugin| plugin != at).collect();
    let conflict = minimize(others, fails).unwrap_or_default();
    let names = conflict.into_iter().map(|plugin| context.candidates.plugins[plugin].name().to_owned());
    Blocker { together_with: names.collect(), ..new_blocker(context.candidates, at, paper) }
}

fn chosen_paper(candidates: &CandidateIndex<'_>, decision: &Decision) -> ChosenPaper {
    let candidate = &candidates.papers[decision.chosen.paper];
    let build = candidate.build.expect("a chosen Paper version has a build");
    let running = candidates.request.running.as_ref();
    let minecraft = &candidate.version.minecraft;
    let runs_now =
        running.is_some_and(|running| running.is_build(candidates.request.software, minecraft, build.number));
    ChosenPaper {
        minecraft: minecraft.clone(),
        build: build.number,
        published: build.published,
        instead_of: running.filter(|_| !runs_now).map(Running::paper_name),
        runs_now,
        newer_build: candidate.newer_build.clone().map(|(build, unusable)| NewerBuild { build, unusable }),
    }
}

fn chosen_plugin(context: &ExplainContext<'_, '_>, decision: &Decision, at: usize) -> Option<ChosenPlugin> {
    let candidates = context.candidates;
    let position = decision.chosen.releases[at]?;
    let plugin = &candidates.plugins[at];
    let release = plugin.releases[position].release;
    let runs = plugin
        .releases
        .iter()
        .find(|candidate| candidates.is_running(candidate.release))
        .map(|candidate| candidate.release);
    let delisted = candidates.delisted_version(plugin.project);
    let (newest, next) = newer_releases(context, decision, at, position);
    Some(ChosenPlugin {
        name: plugin.name().to_owned(),
        objects: plugin
            .requested_by
            .iter()
            .flat_map(|requested_by| requested_by.objects.iter().map(|&o| o.to_owned()))
            .collect(),
        needed_by: dependents(candidates, decision, at),
        version: release.version.clone(),
        published: release.published,
        listing: match candidates.listing_evidence(at, position, decision.chosen.paper) {
            Some(ListingEvidence::Listed | ListingEvidence::Sibling(_)) | None
                if candidates.is_delisted(plugin.project, release) =>
            {
                if candidates.unread_page(plugin.project).is_some() { Listing::Unread } else { Listing::Delisted }
            }
            Some(ListingEvidence::Listed) => Listing::Listed,
            Some(ListingEvidence::Sibling(of)) => Listing::Sibling { of: of.clone() },
            Some(ListingEvidence::Override) => Listing::Override,
            Some(ListingEvidence::NoList) => Listing::NoList,
            None => Listing::RunsNow,
        },
        instead_of: match runs {
            Some(runs) => (runs.id != release.id).then(|| runs.version.clone()),
            None => delisted.map(str::to_owned),
        },
        runs_now: runs.is_some() || delisted.is_some(),
        newest,
        next,
        later: later_release(plugin, position),
    })
}

/// The last release on the channel that was published after the chosen one (given by position), and is older by its
/// version.
fn later_release(plugin: &PluginCandidates<'_>, position: usize) -> Option<LaterRelease> {
    let chosen = plugin.releases[position].release.published?;
    let is_alternative = |candidate: &&Candidate<'_>| {
        !matches!(candidate.unusable, Some(Unusable::Channel { .. } | Unusable::WrongSoftware { .. }))
    };
    let dated = plugin.releases[..position].iter().filter(is_alternative).filter_map(|candidate| {
        let published = candidate.release.published.filter(|published| *published > chosen)?;
        Some(LaterRelease { version: candidate.release.version.clone(), published })
    });
    dated.filter(|later| !lenient::names_a_snapshot(&later.version)).max_by_key(|later| later.published)
}

/// The newest release on the channel, if it was not chosen. If that one has to be listed or published first, also the
/// newest one that may become usable earlier.
fn newer_releases(
    context: &ExplainContext<'_, '_>,
    decision: &Decision,
    at: usize,
    position: usize,
) -> (Option<NewerRelease>, Option<NewerRelease>) {
    let plugin = &context.candidates.plugins[at];
    let is_newer = |than: usize, newer: usize| {
        let Candidate { release, unusable, .. } = &plugin.releases[newer];
        let older = plugin.releases[than].release;
        // A delisted release has no date, so only its version can be compared.
        if context.candidates.is_delisted(plugin.project, older)
            && lenient::compare(&release.version, &older.version).is_le()
        {
            return false;
        }
        let is_excluded = matches!(unusable, Some(Unusable::Channel { .. } | Unusable::WrongSoftware { .. }));
        !is_excluded && !is_same_age(older, release)
    };
    // The release itself is made for this server: only a date or a requirement of another plugin holds it back.
    let can_follow = |newer: usize| {
        let at_all = plugin.releases[newer].unusable.as_ref().is_none_or(Unusable::is_waiting);
        let is_allowed = plugin.requested_by.is_none() || plugin.allowed.has(newer + 1);
        at_all && is_allowed && plugin.supports[decision.chosen.paper].has(newer + 1)
    };
    let mut newer = (position + 1..plugin.releases.len()).rev().filter(|&newer| is_newer(position, newer));
    let Some(newest) = newer.next() else { return (None, None) };
    let next = newer.find(|&next| is_newer(next, newest) && can_follow(next)).filter(|_| !can_follow(newest));
    let describe = |newer| not_chosen(context, decision, at, newer);
    (Some(describe(newest)), next.map(describe))
}

/// Running plugins that are not in the chosen version set in any version and that no Plugin object requests.
fn removed(context: &ExplainContext<'_, '_>, decision: &Decision) -> Vec<(String, String)> {
    let candidates = context.candidates;
    let is_kept = |project: &Project| {
        let mut plugins = candidates.plugins.iter().zip(&decision.chosen.releases);
        plugins.any(|(plugin, release)| {
            std::ptr::eq(plugin.project, project) && (release.is_some() || plugin.requested_by.is_some())
        })
    };
    let unused = context.catalog.projects.iter().filter(|project| !is_kept(project));
    let mut removed: Vec<(String, String)> = unused
        .flat_map(|project| {
            let runs = project.releases.iter().filter(|release| candidates.is_running(release));
            let versions = runs.map(|release| release.version.as_str()).chain(candidates.delisted_version(project));
            versions.map(|version| (project.name.clone(), version.to_owned()))
        })
        .collect();
    removed.sort();
    removed
}

/// The next newer Paper version that may be used (otherwise the next one), and the newest one.
fn newer_papers(context: &ExplainContext<'_, '_>, decision: &Decision) -> Vec<NewerPaper> {
    let candidates = context.candidates;
    let previews = candidates.request.channel == BuildChannel::Alpha;
    let newer: Vec<usize> = (decision.chosen.paper + 1..candidates.papers.len())
        .filter(|&position| previews || candidates.papers[position].version.minecraft.is_release())
        .collect();
    let next = newer.iter().find(|&&position| candidates.papers[position].unusable.is_none()).or(newer.first());
    let mut shown: Vec<usize> = next.into_iter().chain(newer.last()).copied().collect();
    shown.dedup();
    shown.into_iter().map(|position| newer_paper(context, decision, position)).collect()
}

fn newer_paper(context: &ExplainContext<'_, '_>, decision: &Decision, position: usize) -> NewerPaper {
    let candidates = context.candidates;
    let candidate = &candidates.papers[position];
    let pinned = paper_pin(candidates);
    let whole = SolverProblem::new(candidates, IndexSet::from_indexes([position + 1]));
    let (blocked_by, gave_up) = match find_blockers(context, &whole, position) {
        Ok(blocked_by) => (blocked_by, None),
        Err(gave_up) => (Vec::new(), Some(gave_up)),
    };
    let installed: Vec<&str> = decision
        .chosen
        .releases
        .iter()
        .enumerate()
        .filter_map(|(at, release)| release.map(|_| candidates.plugins[at].name()))
        .collect();
    let blocked = |name: &str| blocked_by.iter().any(|blocker| blocker.blocks(name));
    let ready = installed.iter().filter(|name| gave_up.is_none() && !blocked(name)).count();
    let other_reasons =
        OtherReasons { unusable: candidate.unusable.as_ref(), pin: pinned.as_ref(), blockers: &blocked_by };
    let shared_versions = match context.group.filter(|_| gave_up.is_none()) {
        // Then the group is the reason.
        Some(group) if other_reasons.is_empty() => shared_plugins::blocking_plugins(context, group, position),
        Some(_) => shared_plugins::blocking_if_usable(context, position, &other_reasons, true).unwrap_or_default(),
        None => Vec::new(),
    };
    NewerPaper {
        minecraft: candidate.version.minecraft.clone(),
        since: candidate.since,
        unusable: candidate.unusable.clone(),
        pinned,
        ready,
        blocked_by,
        gave_up,
        shared_versions,
        one_way: candidates.request.software.is_minecraft()
            && candidate.version.minecraft > candidates.papers[decision.chosen.paper].version.minecraft,
    }
}

fn warnings(candidates: &CandidateIndex<'_>, decision: &Decision, changes: bool) -> Vec<Warning> {
    let mut warnings = candidates.warnings.clone();
    let candidate = &candidates.papers[decision.chosen.paper];
    if candidate.version.unsupported {
        warnings.push(Warning::PaperUnsupported { minecraft: candidate.version.minecraft.clone() });
    }
    if let (PaperRequest::BuildPin { .. }, Some(build)) = (&candidates.request.paper, candidate.build)
        && build.channel < candidates.request.channel
    {
        warnings.push(Warning::PinnedBuildChannel { is: build.channel, allowed: candidates.request.channel });
    }
    for (at, position) in decision.chosen.releases.iter().enumerate() {
        let Some(position) = *position else { continue };
        plugin_warnings(candidates, decision, at, position, &mut warnings);
    }
    warnings.extend(unmanaged_warnings(candidates, decision, changes));
    let same_names = name_conflicts::projects_of_one_name(candidates, &decision.chosen).into_iter();
    warnings.extend(same_names.map(|(name, projects)| Warning::SameProjectName { name, projects }));
    warnings.sort();
    warnings
}

/// Warnings about unmanaged JARs. `changes` means that the solution differs from the running versions.
fn unmanaged_warnings(candidates: &CandidateIndex<'_>, decision: &Decision, changes: bool) -> Vec<Warning> {
    let paper = &candidates.papers[decision.chosen.paper];
    let mut warnings = Vec::new();
    let UnmanagedJarCompatibility { unknown, refused, .. } = &paper.unmanaged;
    if !unknown.is_empty() {
        let minecraft = paper.version.minecraft.clone();
        warnings.push(Warning::Unmanaged { files: unknown.clone(), minecraft });
    }
    warnings.extend(
        refused
            .iter()
            .map(|(file, because)| Warning::UnmanagedRefused { file: file.clone(), because: because.clone() }),
    );
    warnings.extend(candidates.missing_dependencies(&decision.chosen).into_iter().map(
        |MissingDependency { file, plugin, project }| Warning::FileLacks {
            file: file.to_owned(),
            plugin: plugin.to_owned(),
            project: project.clone(),
        },
    ));
    let checks_files =
        candidates.request.unmanaged_plugins != UnmanagedPlugins::Ignore && candidates.request.software.is_minecraft();
    // The Java version of a file is read with the rest. Without it, the file may not have been read.
    let read = |jar: &&UnmanagedJar| jar.name.is_some() && (jar.java.is_some() || jar.api_version.is_some());
    let minecraft = &paper.version.minecraft;
    let legacy = candidates.request.unmanaged.iter().filter(|_| checks_files).filter(read);
    warnings.extend(
        legacy
            .filter(|jar| is_legacy(jar.api_version.as_ref(), minecraft))
            .map(|jar| Warning::LegacyFile { file: jar.file.clone(), api_version: stated(jar.api_version.as_ref()) }),
    );
    warnings.extend(name_conflicts::conflicts_of_version_set(candidates, &decision.chosen).into_iter().map(
        |(conflict, is_refused)| {
            // This applies whether the file runs or not: the operator does not deploy a version set with such a file.
            // Without a change, there is nothing to stop.
            Warning::SharedName { name: conflict.name, files: conflict.files, stops: changes && is_refused }
        },
    ));
    warnings
}

fn plugin_warnings(
    candidates: &CandidateIndex<'_>,
    decision: &Decision,
    at: usize,
    position: usize,
    warnings: &mut Vec<Warning>,
) {
    let plugin_candidates = &candidates.plugins[at];
    let candidate = &plugin_candidates.releases[position];
    let plugin = || plugin_candidates.name().to_owned();
    let version = || candidate.release.version.clone();
    if plugin_candidates.channel < plugin_candidates.rules.channel
        && candidate.release.channel < plugin_candidates.rules.channel
        && plugin_candidates.rules.pin.is_none()
    {
        warnings.push(Warning::ChannelFallback {
            plugin: plugin(),
            used: candidate.release.channel,
            allowed: plugin_candidates.rules.channel,
        });
    }
    warnings.extend(
        downgrade_warning(candidates, at, position)
            .or_else(|| delisted::delisted_warning(candidates, decision, at, position)),
    );
    // No warning if pages at this source cannot have a list for the software.
    let can_have_one = candidates.request.software.is_listed_at(plugin_candidates.project.key.source);
    if can_have_one && candidates.listing_evidence(at, position, decision.chosen.paper) == Some(ListingEvidence::NoList)
    {
        warnings.push(Warning::NoList { plugin: plugin(), version: version() });
    }
    if plugin_candidates.project.key.source == Source::Url && candidate.release.version == FALLBACK_VERSION {
        warnings.push(Warning::FallbackVersion { plugin: plugin(), version: version() });
    }
    let jars = plugin_candidates.rules.jars.select(candidate.release).unwrap_or_default();
    let others = plugin_candidates.rules.jars.unnamed(candidate.release);
    if let Some(jar) = jars.first().filter(|_| !others.is_empty()) {
        let jar = stem(&jar.file.name);
        warnings.push(Warning::SeveralJars { plugin: plugin(), version: version(), jar, others });
    }
    // The value is unknown for a JAR that was not read, and a proxy does not use it.
    let mut read = jars.iter().filter(|jar| jar.declared.is_some() && candidates.request.software.is_minecraft());
    let minecraft = &candidates.papers[decision.chosen.paper].version.minecraft;
    if let Some(jar) = read.find(|jar| is_legacy(jar.api_version, minecraft)) {
        warnings.push(Warning::Legacy { plugin: plugin(), version: version(), api_version: stated(jar.api_version) });
    }
    warnings.extend(candidates.guesses(at, position).map(|Guess { plugin, version, needs, at_least, .. }| {
        Warning::GuessedBound { plugin, version, needs, at_least }
    }));
    let bundled = || bundled_in(candidates.request.software, minecraft);
    let main_classes = jars.iter().filter_map(|jar| jar.declared?.main.as_deref());
    for found in main_classes.filter_map(|main| bundled().find(|bundled| bundled.main == main)) {
        warnings.push(Warning::Bundled { plugin: plugin(), version: version(), since: found.since() });
    }
    let is_unmanaged = |name: &str| candidates.request.unmanaged.iter().any(|jar| jar.is_named(name));
    let is_bundled = |name: &str| bundled().any(|bundled| folded(bundled.name) == folded(name));
    for needs in candidate.missing_at_source.iter().filter(|needs| !is_unmanaged(needs) && !is_bundled(needs)) {
        warnings.push(Warning::OutsideDependency { plugin: plugin(), needs: needs.clone() });
    }
    let conflicts = candidates.file_conflicts(at, position).into_iter();
    warnings.extend(conflicts.map(|because| Warning::BesideFile { plugin: plugin(), version: version(), because }));
    if let (Some(user_override), Some(object)) = (plugin_candidates.rules.compatibility, plugin_candidates.object())
        && user_override.mode == OverrideMode::Add
        && user_override.releases.contains(&candidate.release.version)
        && !plugin_candidates.rules.jars.is_loading_unknown(candidate.release, plugin_candidates.project.key.source)
        && is_override_redundant(candidates, at, position, &user_override.minecraft)
    {
        warnings.push(Warning::OverrideNotNeeded { object: object.to_owned(), version: version() });
    }
}

/// Whether a server treats a plugin with this `api-version` as one from before the flattening of materials.
fn is_legacy(api_version: Option<&ApiVersion>, minecraft: &Minecraft) -> bool {
    api_version.map_or_else(|| is_legacy_without(minecraft), |states| states.is_legacy_on(minecraft))
}

/// The stated text. A descriptor that says `none` or nothing states none.
fn stated(api_version: Option<&ApiVersion>) -> Option<String> {
    let text = api_version?.text();
    (!text.trim().is_empty() && !text.eq_ignore_ascii_case("none")).then(|| text.to_owned())
}

/// The warning that the chosen release is older than the running one, with the reason why that is allowed.
fn downgrade_warning(candidates: &CandidateIndex<'_>, at: usize, position: usize) -> Option<Warning> {
    let plugin_candidates = &candidates.plugins[at];
    let releases = &plugin_candidates.releases;
    let chosen = releases[position].release;
    let runs_at = releases.iter().rposition(|candidate| candidates.is_running(candidate.release))?;
    let runs = &releases[runs_at];
    let is_older = position < runs_at && !is_same_age(chosen, runs.release);
    if candidates.is_delisted(plugin_candidates.project, runs.release)
        || !is_older && !lenient::is_lower(&chosen.version, &runs.release.version)
    {
        return None;
    }
    let reason = match &runs.unusable {
        _ if plugin_candidates.rules.pin.is_some() => DowngradePermission::Pinned,
        Some(unusable) if unusable.is_inherent() => DowngradePermission::Unusable { unusable: unusable.clone() },
        Some(_) | None => DowngradePermission::Allowed,
    };
    let (plugin, from, to) =
        (plugin_candidates.name().to_owned(), runs.release.version.clone(), chosen.version.clone());
    Some(Warning::Downgrade { plugin, from, to, reason })
}

/// Whether the page now lists everything that the user added: each existing version of a pattern, on every such Paper
/// version.
fn is_override_redundant(candidates: &CandidateIndex<'_>, at: usize, position: usize, patterns: &[String]) -> bool {
    patterns.iter().all(|pattern| {
        let papers = candidates.papers.iter().enumerate();
        let mut meant = papers.filter(|(_, paper)| glob::matches(pattern, &paper.version.minecraft)).peekable();
        meant.peek().is_some() && meant.all(|(paper, _)| candidates.page_evidence(at, position, paper).is_some())
    })
}
