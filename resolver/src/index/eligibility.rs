//! Pure. Determines the eligibility of releases: which may be used under the rules, and why the others may not.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::jar_selection::Loads;
use super::java::AvailableJava;
use super::paper_candidates::has_known_hash;
use super::rules::{MAX_RELEASES, Rules, eligible_at};
use crate::model::catalog::{Channel, Project, Release, Source};
use crate::model::request::{OverrideMode, Running, Unlisted};
use crate::model::unusable::Unusable;
use crate::model::version::lenient;

/// Releases with their eligibility, oldest first, and the channel that was used.
pub(super) struct EligibleReleases<'a> {
    pub(super) channel: Channel,
    pub(super) releases: Vec<(&'a Release, Option<Unusable>)>,
}

/// Determines the eligibility of every release that was published at `now`, and of the running release that is
/// delisted.
pub(super) fn eligible_releases<'a>(
    project: &'a Project,
    rules: &Rules<'_>,
    available_java: AvailableJava<'_>,
    now: Timestamp,
    (running, delisted): (Option<&Running>, Option<&'a Release>),
) -> EligibleReleases<'a> {
    let runs = |release: &Release| running.is_some_and(|running| running.runs_release(release));
    let releases = considered_releases(project, now, runs, delisted);
    // If a project has no release on the channel, its most stable channel is used.
    let source = project.key.source;
    let loads: Vec<Loads> = releases.iter().map(|release| rules.jars.loads(release, source)).collect();
    let intrinsic = |(release, loads): (&&Release, &Loads)| intrinsic_reason(release, *loads, rules, available_java);
    let reasons: Vec<Option<Unusable>> = releases.iter().zip(&loads).map(intrinsic).collect();
    // A delisted release does not tell how stable the remaining releases are.
    let on_page = releases.iter().zip(&reasons).skip(usize::from(delisted.is_some()));
    let usable = on_page.filter(|(_, reason)| reason.is_none());
    let best = usable.map(|(release, _)| release.channel).max();
    let channel = best.map_or(rules.channel, |best| best.min(rules.channel));
    let superseded = superseded_reasons(&releases, &reasons, channel, rules);
    let releases = (releases.iter().zip(loads).zip(reasons).zip(superseded))
        .map(|(((release, loads), reason), superseded)| {
            let exempt = runs(release) || rules.pin.is_some_and(|pin| is_pinned(&release.version, pin));
            let by_policy = || policy_reason(release, (source, loads), channel, rules, now);
            let policy = || if exempt { None } else { by_policy().or(superseded) };
            (*release, reason.or_else(policy))
        })
        .collect();
    EligibleReleases { channel, releases }
}

/// The running release below which a plugin is not downgraded.
pub(super) struct DowngradeFloor<'a> {
    release: &'a Release,
    /// The position of the running release, or of the first upload of that version at the same instant.
    first: usize,
    is_delisted: bool,
}

impl DowngradeFloor<'_> {
    /// The running version, if the release at this position is a downgrade from it.
    pub(super) fn downgrade_from(&self, at: usize, release: &Release) -> Option<&str> {
        let is_lower = || !self.is_delisted && lenient::is_lower(&release.version, &self.release.version);
        (at < self.first || is_lower()).then_some(self.release.version.as_str())
    }
}

/// The newest running release, as the floor of downgrades.
///
/// `None` if downgrades are allowed, or if the running release can no longer be used anywhere. A delisted release is
/// the first of all, because the releases before it are unknown.
pub(super) fn downgrade_floor<'a>(
    eligible: &EligibleReleases<'a>,
    rules: &Rules<'_>,
    (running, delisted): (Option<&Running>, Option<&Release>),
) -> Option<DowngradeFloor<'a>> {
    let running = running.filter(|_| !rules.may_downgrade)?;
    let runs = eligible.releases.iter().rposition(|(release, reason)| {
        running.runs_release(release) && !reason.as_ref().is_some_and(Unusable::is_inherent)
    })?;
    let (release, _) = eligible.releases[runs];
    let before = eligible.releases[..runs].iter().rev();
    let same = before.take_while(|(other, _)| is_same_age(other, release)).count();
    let is_delisted = delisted.is_some_and(|delisted| std::ptr::eq(delisted, release));
    Some(DowngradeFloor { release, first: runs - same, is_delisted })
}

/// The releases of a project that count at `now`, oldest first: the published ones and the running ones. Running
/// releases that are delisted come before all others, so that any other sufficient release is preferred.
pub(super) fn considered_releases<'a>(
    project: &'a Project,
    now: Timestamp,
    runs: impl Fn(&Release) -> bool,
    delisted: impl IntoIterator<Item = &'a Release>,
) -> Vec<&'a Release> {
    let mut ordered: Vec<&Release> = project
        .releases
        .iter()
        .filter(|release| release.published.is_none_or(|published| published <= now) || runs(release))
        .collect();
    // For uploads of one version at one instant, the order must be the same for all servers of a group, whatever they
    // run.
    ordered.sort_by(|a, b| compare_age(a, b).then_with(|| a.id.cmp(&b.id)));
    let mut releases = move_backports(ordered);
    if releases.len() > MAX_RELEASES {
        releases.drain(..releases.len() - MAX_RELEASES);
    }
    releases.splice(0..0, delisted);
    releases
}

/// Whether two releases of a project are uploads of one version at one instant: neither is newer.
pub(crate) fn is_same_age(a: &Release, b: &Release) -> bool {
    compare_age(a, b).is_eq()
}

/// Moves each release of an older line (5.9.9) in front of the releases with a higher version that were published before
/// it (6.0.0). A line begins with the first number of its versions. If a line begins after those releases, the project
/// has changed how it numbers, and dates decide.
fn move_backports(ordered: Vec<&Release>) -> Vec<&Release> {
    let dated = ordered.iter().take_while(|release| !is_mainline(release) || release.published.is_none()).count();
    let mut placed: Vec<&Release> = Vec::with_capacity(ordered.len());
    let mut highest: Option<&Release> = None;
    for (at, release) in ordered.into_iter().enumerate() {
        if at < dated || !lenient::has_numbers(&release.version) {
            placed.push(release);
        } else if highest.is_none_or(|highest| lenient::is_lower(&highest.version, &release.version)) {
            highest = Some(release);
            placed.push(release);
        } else {
            let before = first_newer_line(&placed[dated..], release).map_or(placed.len(), |before| dated + before);
            placed.insert(before, release);
        }
    }
    placed
}

/// The position of the first release with a higher version than `release`, if an older one of its line is before it.
fn first_newer_line(placed: &[&Release], release: &Release) -> Option<usize> {
    let is_below = |other: &Release| lenient::is_lower(&release.version, &other.version);
    let is_of_line = |other: &Release| lenient::is_same_line(&release.version, &other.version) && !is_below(other);
    let line = placed.iter().position(|other| is_of_line(other))?;
    Some(line + placed[line..].iter().position(|other| is_below(other))?)
}

/// The position of a release among those of its project. The shared tables hold a delisted release once, as the first
/// of several servers describes it. Each server's own index holds its own description.
pub(crate) fn position_among<'x>(release: &Release, all: impl Iterator<Item = &'x Release>) -> Option<usize> {
    let mut equal = None;
    for (position, other) in all.enumerate() {
        if std::ptr::eq(other, release) {
            return Some(position);
        }
        if equal.is_none() && other == release {
            equal = Some(position);
        }
    }
    equal
}

/// Whether it is not a build for a Minecraft snapshot.
fn is_mainline(release: &Release) -> bool {
    !lenient::names_a_snapshot(&release.version)
}

/// Sorts older releases first: builds for a Minecraft snapshot below all others, then by date, then by version.
fn compare_age(a: &Release, b: &Release) -> Ordering {
    is_mainline(a)
        .cmp(&is_mainline(b))
        .then_with(|| a.published.cmp(&b.published))
        .then_with(|| lenient::compare(&a.version, &b.version))
}

/// Whether a pin means this version: literally, or ignoring case and a leading `v`.
pub fn is_pinned(version: &str, pin: &str) -> bool {
    let plain = |text: &str| text.trim().trim_start_matches(['v', 'V']).to_ascii_lowercase();
    version == pin || plain(version) == plain(pin)
}

/// Reasons that no policy can change.
fn intrinsic_reason(
    release: &Release,
    loads: Loads,
    rules: &Rules<'_>,
    available_java: AvailableJava<'_>,
) -> Option<Unusable> {
    if loads == Loads::No {
        let (loaders, software) = (release.loaders.clone(), rules.jars.software());
        return Some(Unusable::WrongSoftware { loaders, software });
    }
    let jars = match rules.jars.select(release) {
        Err(reason) => return Some(reason),
        Ok(jars) => jars,
    };
    if !jars.iter().all(|jar| has_known_hash(jar.file)) {
        return Some(Unusable::NoChecksum);
    }
    if let Some(rule) = rules.jars.refused(&jars) {
        return Some(Unusable::DescriptorRefused { rule: rule.to_owned(), others: rules.jars.unnamed(release) });
    }
    // The class loader refuses class files that are newer than itself.
    rules.jars.java(release).and_then(|needs| available_java.unusable_for(needs))
}

fn policy_reason(
    release: &Release,
    (source, loads): (Source, Loads),
    channel: Channel,
    rules: &Rules<'_>,
    now: Timestamp,
) -> Option<Unusable> {
    if release.channel < channel {
        return Some(Unusable::Channel { is: release.channel, allowed: rules.channel });
    }
    // A file that is given by URL has no page and no date: the user chose exactly this file.
    let has_page = release.published.is_some();
    let software = rules.jars.software();
    let has_list = !software.listed_versions(source, release).is_empty();
    if has_page && !has_list && rules.unlisted == Unlisted::Refuse && !has_user_list(rules, release) {
        return Some(Unusable::Unlisted);
    }
    // A user who sets a list declares that the release runs here. Whether its JAR agrees is known after the download.
    if loads == Loads::Unknown && !has_user_list(rules, release) {
        return Some(Unusable::SoftwareUnsaid { software });
    }
    // A release without a date has no age. The user named exactly these bytes, so no newer file can replace them during
    // a delay.
    let eligible_at = eligible_at(release.published?, rules.delay);
    (eligible_at > now).then_some(Unusable::Delayed { eligible_at, delay: rules.delay })
}

/// Whether the user states on which Minecraft versions a release runs.
fn has_user_list(rules: &Rules<'_>, release: &Release) -> bool {
    rules.compatibility.is_some_and(|user_override| {
        user_override.mode != OverrideMode::Remove && user_override.is_about(&release.version)
    })
}

/// For each release, the patch that replaced it before its delay was over, if that patch was not replaced in its turn.
///
/// Four `ViaVersion` releases of 2023-2025 were replaced after 16 minutes to 49 hours. Without this rule, a delay of 72
/// hours installs exactly those, in the hours between the end of their delay and that of their successors. In a chain
/// of patches no release is skipped: a project with a patch every day would never be updated.
fn superseded_reasons(
    releases: &[&Release],
    reasons: &[Option<Unusable>],
    channel: Channel,
    rules: &Rules<'_>,
) -> Vec<Option<Unusable>> {
    let on_channel = |at: usize| Some((releases[at].published?, at)).filter(|_| releases[at].channel >= channel);
    let usable = (0..releases.len()).filter(|&at| reasons[at].is_none());
    let mut by_date: Vec<(Timestamp, usize)> = usable.filter_map(on_channel).collect();
    by_date.sort_unstable();
    let mut first_patch: Vec<Option<usize>> = vec![None; releases.len()];
    let mut is_patch = vec![false; releases.len()];
    for (position, &(published, at)) in by_date.iter().enumerate() {
        let ends = eligible_at(published, rules.delay);
        let within_delay = by_date[position + 1..].iter().take_while(|(published, _)| *published < ends);
        for &(_, next) in within_delay {
            if lenient::is_patch_of(&releases[next].version, &releases[at].version) {
                first_patch[at].get_or_insert(next);
                is_patch[next] = true;
            }
        }
    }
    let replaced_by = |at: usize| {
        let patch = first_patch[at].filter(|&patch| !is_patch[at] && first_patch[patch].is_none())?;
        Some(Unusable::Superseded { by: releases[patch].version.clone() })
    };
    (0..releases.len()).map(replaced_by).collect()
}
