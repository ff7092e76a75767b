//! Pure. Judging releases: which may be used under the rules, and why the others may not.

use jiff::Timestamp;

use super::java::Offer;
use super::listing::is_about;
use super::paper::has_known_hash;
use super::{MOST_RELEASES, Rules, ripe_at};
use crate::catalog::{Channel, Project, Release};
use crate::request::{OverrideMode, Running, Unlisted};
use crate::unusable::Unusable;
use crate::version::lenient;

/// What a Paper server loads. Purpur and Folia builds are not implied by these, nor these by them.
const PAPER_LOADS: [&str; 3] = ["bukkit", "paper", "spigot"];

/// Whether a Paper server could load it; a release that names no software at all is believed.
pub(crate) fn for_paper(release: &Release) -> bool {
    release.loaders.is_empty()
        || release.loaders.iter().any(|loader| PAPER_LOADS.iter().any(|ours| loader.eq_ignore_ascii_case(ours)))
}

/// Releases with their verdicts, oldest first, and the channel that was used.
pub(super) struct Verdicts<'a> {
    pub(super) channel: Channel,
    pub(super) releases: Vec<(&'a Release, Option<Unusable>)>,
}

/// Judges every release that was out at `now`.
pub(super) fn judge<'a>(
    project: &'a Project,
    rules: &Rules<'_>,
    offer: Offer<'_>,
    now: Timestamp,
    running: Option<&Running>,
) -> Verdicts<'a> {
    let runs = |release: &Release| running.is_some_and(|running| running.has(release));
    let releases = listed(project, now, runs);
    // A project that has nothing on the channel is used at its most stable one.
    let faults: Vec<Option<Unusable>> = releases.iter().map(|release| material_fault(release, rules, offer)).collect();
    let sound = releases.iter().zip(&faults).filter(|(_, fault)| fault.is_none());
    let best = sound.map(|(release, _)| release.channel).max();
    let channel = best.map_or(rules.channel, |best| best.min(rules.channel));
    let superseded = superseded(&releases, &faults, channel, rules);
    let releases = (releases.iter().zip(faults).zip(superseded))
        .map(|((release, fault), superseded)| {
            let exempt = runs(release) || rules.pin.is_some_and(|pin| is_pinned(&release.version, pin));
            let policy = || if exempt { None } else { policy_fault(release, channel, rules, now).or(superseded) };
            (*release, fault.or_else(policy))
        })
        .collect();
    Verdicts { channel, releases }
}

/// The release (its place, and its version) below which a plugin does not go: the newest that runs. None where it may go
/// down, and where what runs can be used nowhere any more; one that its page has lost is not among the releases at all.
pub(super) fn floor(verdicts: &Verdicts<'_>, rules: &Rules<'_>, running: Option<&Running>) -> Option<(usize, String)> {
    let running = running.filter(|_| !rules.may_go_down)?;
    let runs = verdicts
        .releases
        .iter()
        .rposition(|(release, fault)| running.has(release) && !fault.as_ref().is_some_and(Unusable::is_its_own))?;
    Some((runs, verdicts.releases[runs].0.version.clone()))
}

/// The releases of a project that count at `now`, oldest first: those that were out, and those that run.
pub(super) fn listed(project: &Project, now: Timestamp, runs: impl Fn(&Release) -> bool) -> Vec<&Release> {
    let mut ordered: Vec<(bool, &Release)> = project
        .releases
        .iter()
        .filter(|release| release.published.is_none_or(|published| published <= now) || runs(release))
        .map(|release| (!lenient::names_a_snapshot(&release.version), release))
        .collect();
    ordered.sort_by(|a, b| order(*a, *b));
    let mut releases: Vec<&Release> = ordered.into_iter().map(|(_, release)| release).collect();
    if releases.len() > MOST_RELEASES {
        releases.drain(..releases.len() - MOST_RELEASES);
    }
    releases
}

/// Oldest first: builds for a Minecraft snapshot (false) below all others, then by date, then by version, then by id.
fn order((own_line_a, a): (bool, &Release), (own_line_b, b): (bool, &Release)) -> std::cmp::Ordering {
    own_line_a
        .cmp(&own_line_b)
        .then_with(|| a.published.cmp(&b.published))
        .then_with(|| lenient::compare(&a.version, &b.version))
        .then_with(|| a.id.cmp(&b.id))
}

/// Whether a pin means this version: as written, or but for case and a leading `v`.
pub(crate) fn is_pinned(version: &str, pin: &str) -> bool {
    let plain = |text: &str| text.trim().trim_start_matches(['v', 'V']).to_ascii_lowercase();
    version == pin || plain(version) == plain(pin)
}

/// What no policy can change.
fn material_fault(release: &Release, rules: &Rules<'_>, offer: Offer<'_>) -> Option<Unusable> {
    if !for_paper(release) {
        return Some(Unusable::WrongSoftware { loaders: release.loaders.clone() });
    }
    match rules.jars.pick(release) {
        Err(fault) => Some(fault),
        Ok(jars) if !jars.iter().all(|jar| has_known_hash(jar.file)) => Some(Unusable::NoChecksum),
        // The class loader refuses class files that are newer than itself.
        Ok(jars) => jars.iter().filter_map(|jar| jar.java).max().and_then(|needs| offer.fault(needs)),
    }
}

fn policy_fault(release: &Release, channel: Channel, rules: &Rules<'_>, now: Timestamp) -> Option<Unusable> {
    if release.channel < channel {
        return Some(Unusable::Channel { is: release.channel, allowed: rules.channel });
    }
    // A file by its URL has no page, and no date: whoever wrote its address chose it.
    let has_page = release.published.is_some();
    if has_page && release.minecraft.is_empty() && rules.unlisted == Unlisted::Refuse && !gives_a_list(rules, release) {
        return Some(Unusable::Unlisted);
    }
    // Without a date there is no age. The user named the very bytes: nothing newer can slip in while a delay runs.
    let ripe_at = ripe_at(release.published?, rules.delay);
    (ripe_at > now).then_some(Unusable::HeldBack { ripe_at, delay: rules.delay })
}

/// Whether the user says on which Minecraft versions a release runs.
fn gives_a_list(rules: &Rules<'_>, release: &Release) -> bool {
    rules.compatibility.is_some_and(|says| says.mode != OverrideMode::Remove && is_about(says, release))
}

/// For each release, the patch that replaced it before its delay was over.
///
/// Four `ViaVersion` releases of 2023-2025 were replaced after 16 minutes to 49 hours; without this rule a delay of 72
/// hours installs exactly those, in the hours between their ripening and that of their successors.
fn superseded(
    releases: &[&Release],
    faults: &[Option<Unusable>],
    channel: Channel,
    rules: &Rules<'_>,
) -> Vec<Option<Unusable>> {
    let mut verdicts: Vec<Option<Unusable>> = releases.iter().map(|_| None).collect();
    let on_channel = |at: usize| releases[at].channel >= channel && faults[at].is_none();
    for (at, release) in releases.iter().enumerate() {
        let Some(published) = release.published.filter(|_| on_channel(at)) else { continue };
        let ends = ripe_at(published, rules.delay);
        let patch = (at + 1..releases.len())
            .take_while(|&next| releases[next].published.is_some_and(|published| published < ends))
            .find(|&next| on_channel(next) && lenient::is_patch_of(&releases[next].version, &release.version))
            .map(|next| releases[next]);
        verdicts[at] = patch.map(|patch| Unusable::Superseded { by: patch.version.clone() });
    }
    verdicts
}
